// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compilers ask for an initialiser of c10::impl::raw_local_dispatch_key_set (Itanium ABI 5.2.2:
// _ZTH and the variable's name) wherever the thread-local is used, weakly, since only its own
// file knows that there is nothing to run. Defined, it is no undefined symbol of c10's. Weakly
// defined, it gives way to that file's, which has one where it is compiled with others'.

extern "C" __attribute__((weak, visibility("hidden"))) void initLocalDispatchKeySet() __asm__(
    "_ZTHN3c104impl26raw_local_dispatch_key_setE");
extern "C" void initLocalDispatchKeySet() {}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What code compiled with the toolchain's libstdc++ headers calls of a newer libstdc++.so.6 than
// manylinux_2_28 promises, written with what that one has. The version script keeps it ours.
//
// The audit finds what is missing here: a symbol of libstdc++'s that nothing defines.

#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

// GLIBCXX_3.4.26: constructors without arguments.
template std::basic_ostringstream<char>::basic_ostringstream();
template std::basic_istringstream<char>::basic_istringstream();
template std::basic_stringstream<char>::basic_stringstream();

// GLIBCXX_3.4.26
template char *std::basic_string<char>::data();

// GLIBCXX_3.4.29
#if __cplusplus >= 202002L
template std::basic_string<char> std::basic_stringbuf<char>::str() const &;
template std::basic_string<char> std::basic_stringbuf<char>::str() &&;
#endif

// GLIBCXX_3.4.26: they moved by copying before, which doesn't throw.
std::runtime_error::runtime_error(runtime_error &&other) noexcept
    : runtime_error(static_cast<const runtime_error &>(other)) {}
std::logic_error::logic_error(logic_error &&other) noexcept
    : logic_error(static_cast<const logic_error &>(other)) {}

// GLIBCXX_3.4.29
void std::__throw_bad_array_new_length() { throw std::bad_array_new_length(); }

// CXXABI_1.3.13: the copy constructor and the destructor, which were not inline before, counted.
extern "C" void _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(void *made, const void *other) noexcept;
extern "C" void _ZNSt15__exception_ptr13exception_ptrD1Ev(void *object) noexcept;

void std::__exception_ptr::exception_ptr::_M_addref() noexcept {
  void *copy = nullptr; // stays, and with it what it counts for
  _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(&copy, this);
}
void std::__exception_ptr::exception_ptr::_M_release() noexcept {
  _ZNSt15__exception_ptr13exception_ptrD1Ev(this);
  _M_exception_object = nullptr;
}

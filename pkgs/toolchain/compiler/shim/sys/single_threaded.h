/* libstdc++'s headers include this one of glibc 2.32; compat.c defines what it declares. */
#ifndef TORCH_MLIR_SYS_SINGLE_THREADED_H
#define TORCH_MLIR_SYS_SINGLE_THREADED_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char __libc_single_threaded __attribute__((visibility("hidden")));

#ifdef __cplusplus
}
#endif

#endif

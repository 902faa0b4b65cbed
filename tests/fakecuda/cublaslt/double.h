/* tests/fakecuda/cublaslt/double.h: a double of cuBLASLt, built as libcublasLt.so.MAJOR of the headers found.
 *
 * Products of regular row-major and column-major matrices of f32, f16 and bf16, with their epilogues. The
 * header's contract is checked, and beside it restrictions that users of the library have measured on GPUs.
 * Other element types (f64, 8 bits, complex), matrix transforms, emulation and scaled tensors:
 * CUBLAS_STATUS_NOT_SUPPORTED or CUBLAS_STATUS_INVALID_VALUE.
 *
 * The work of cublasLtMatmul is enqueued by fakecuda_enqueue. The functions of tests/fakecuda/driver/task.h
 * are looked up in the global scope of the program, then in a loaded libcuda.so.1; cublasLtCreate fails where
 * they are missing.
 *
 * Every entry point calls fakecuda_call with its name first. Where that is not 0, it returns
 * CUBLAS_STATUS_INTERNAL_ERROR: a Destroy frees all the same, a Get or Set has done nothing.
 * cublasLtGetVersion and cublasLtGetCudartVersion, which return no status, return 0; the functions of names
 * cannot fail. */
#pragma once

#include <stdint.h>

#define FAKELT_EXPORT __attribute__((visibility("default")))

/* The reason of the last refusal on the calling thread, and the entry point; "" before the first. Found by
 * dlsym. */
FAKELT_EXPORT const char *fakecublaslt_why(void);
/* Handles and descriptors created and not destroyed yet, of all threads. Found by dlsym. */
FAKELT_EXPORT int64_t fakecublaslt_live(void);

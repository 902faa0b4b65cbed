/* tests/fakecuda/driver/task.h: how another double, such as that of cuBLASLt, enqueues work of its own. The
 * functions are exported by the double of libcuda.so.1; other doubles find them with dlsym. */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Enqueues body(arg), with a copy of `bytes` <= 1024 bytes of `arg`, on a stream, or records it in the
 * capture that the stream is part of. `name` is a literal, for messages. Device memory is accessible while
 * the body runs. A code other than 0 fails the stream as a fault in a kernel does. */
CUresult fakecuda_enqueue(CUstream stream, const char *name, int (*body)(void *arg), const void *arg,
                          size_t bytes);
enum { FAKECUDA_PENDING = -2 };

/* The same for work that waits for something outside of the device, such as other ranks. While the body
 * returns FAKECUDA_PENDING, it is called again from time to time, and other streams of the device run in
 * between; `first` is true in the first call of each run. Device memory is not accessible at its own
 * addresses (fakecuda_real). `arg` is the caller's, for as long as the work may run; `release` (may be NULL)
 * is called when no graph has the captured work any more, and never for work that is not captured. It must
 * not call the driver. */
CUresult fakecuda_enqueue_waiting(CUstream stream, const char *name, int (*body)(void *arg, bool first),
                                  void (*release)(void *arg), void *arg);
/* Lets the waiting work of a device run again soon. Any thread. */
void fakecuda_wake(int device);
/* Where the bodies of waiting work find [from, from + bytes); NULL: not inside of one allocation of the
 * device. The memory must not be freed meanwhile. */
void *fakecuda_real(int device, const void *from, size_t bytes);
/* Whether [from, from + bytes) lies in one allocation of device memory of the current context. */
int fakecuda_is_device_memory(const void *from, size_t bytes);
/* Counts a call of an entry point ("cublasLtMatmul"). Where a test asked for this call to fail, returns the
 * code that the test gave, else CUDA_ERROR_UNKNOWN. */
int fakecuda_call(const char *name);
/* Appends a line to FAKECUDA_LOG: a violation of another library's contract. Any thread. */
void fakecuda_log(const char *line);

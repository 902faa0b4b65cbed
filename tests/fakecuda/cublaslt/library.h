/* tests/fakecuda/cublaslt/library.h: what all entry points of the double use: counting, refusals, the driver.
 */
#pragma once

#include <cublasLt.h>
#include "tests/fakecuda/driver/task.h"

/* The functions of the double of the driver. NULL members: it is not loaded. */
typedef struct fakelt_driver {
  __typeof__(&fakecuda_enqueue) enqueue;
  __typeof__(&fakecuda_is_device_memory) is_device_memory;
  __typeof__(&fakecuda_call) call;
} fakelt_driver;
fakelt_driver fakelt_find_driver(void);

/* Begins an entry point: counts it. Another status than success is what the entry point returns. */
cublasStatus_t fakelt_enter(const char *name);
/* Keeps a reason for fakecublaslt_why and returns `status`. */
cublasStatus_t fakelt_refuse(cublasStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds to the number of live handles and descriptors. */
void fakelt_count_live(int change);
/* Refuses NULL and handles that have been destroyed. */
cublasStatus_t fakelt_check_handle(cublasLtHandle_t handle);

#define FAKELT_TRY(expression)                                                                               \
  do {                                                                                                       \
    cublasStatus_t fakelt_status = (expression);                                                             \
    if (fakelt_status != CUBLAS_STATUS_SUCCESS) return fakelt_status;                                        \
  } while (0)

#define FAKELT_REQUIRE(condition, status, ...)                                                               \
  do {                                                                                                       \
    if (!(condition)) return fakelt_refuse(status, __VA_ARGS__);                                             \
  } while (0)

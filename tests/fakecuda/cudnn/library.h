/* tests/fakecuda/cudnn/library.h: what all entry points of the double use: counting, refusals, the driver. */
#pragma once

#include <cudnn_graph.h>
#include <stdbool.h>
#include "tests/fakecuda/driver/task.h"

/* The functions of the double of the driver. NULL members: it is not loaded. */
typedef struct fakednn_driver {
  __typeof__(&fakecuda_enqueue) enqueue;
  __typeof__(&fakecuda_is_device_memory) is_device_memory;
  __typeof__(&fakecuda_log) log;
  __typeof__(&cuCtxGetCurrent) current;
  __typeof__(&cuCtxGetDevice) device;
  __typeof__(&cuDeviceGetAttribute) attribute;
} fakednn_driver;
fakednn_driver fakednn_find_driver(void);

/* Begins an entry point: counts it. Another status than success is what the entry point returns. */
cudnnStatus_t fakednn_enter(const char *name);
/* Keeps a reason and returns `status`. Violations of the contract (statuses of 1000 and 2000) are logged,
 * and so is what fakednn_lacks says. */
cudnnStatus_t fakednn_refuse(cudnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The library may have it, the double has not: CUDNN_STATUS_NOT_SUPPORTED. */
cudnnStatus_t fakednn_lacks(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds to the number of live handles and descriptors. */
void fakednn_count_live(int change);

struct cudnnContext {
  CUcontext context; /* in which it was created */
  CUstream stream;
  int arch; /* 90: sm_90 */
};
/* Refuses NULL and handles that have been destroyed. */
cudnnStatus_t fakednn_check_handle(cudnnHandle_t handle);

#define FAKEDNN_TRY(expression)                                                                              \
  do {                                                                                                       \
    cudnnStatus_t fakednn_status = (expression);                                                             \
    if (fakednn_status != CUDNN_STATUS_SUCCESS) return fakednn_status;                                       \
  } while (0)

#define FAKEDNN_REQUIRE(condition, status, ...)                                                              \
  do {                                                                                                       \
    if (!(condition)) return fakednn_refuse(status, __VA_ARGS__);                                            \
  } while (0)

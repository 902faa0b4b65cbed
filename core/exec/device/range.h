/* core/exec/device/range.h: ranges that a profiler of the device's vendor shows, as NVTX in Nsight Systems.
 * They nest, on each thread. */
#pragma once

#include "core/exec/device/device.h"

static inline void tn_range_begin(const tn_device *device, const char *name) {
  if (device->backend->range_begin != NULL) device->backend->range_begin(device->device, name);
}

static inline void tn_range_end(const tn_device *device) {
  if (device->backend->range_end != NULL) device->backend->range_end(device->device);
}

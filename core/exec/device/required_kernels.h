/* core/exec/device/required_kernels.h: the kernels that every device needs, since memory plans insert their
 * ops (tenon/plugin/backend.h). */
#pragma once

#include "core/exec/device/device.h"

/* TN_EABI, with the names of all that are missing, in the device's env. */
tn_status tn_device_check_kernels(tn_device *device, tn_registry *registry);

/* tests/cudnn/real.h: the real cuDNN without a device, and descriptions of devices. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/cudnn/engines.h"

/* The library in the usual places; NULL: it is absent, and the reason is printed. */
tn_cudnn_library *real_library(void);
/* Loads the double of the driver, where one is given, under the name that cuDNN looks for: engines that are
 * compiled at run time are hidden without a driver. false: it does not load code. */
bool real_driver(const char *folder);

/* The device of tests/devices/NAME.json. */
tn_device_properties real_device(const char *name);
tn_type real_image(int32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w);

/* core/conformance/device/own_kernels.h: the kernels of a device's own families, for devices that accept no
 * others. */
#pragma once

#include "core/conformance/device/fixture.h"

/* Runs a program of copy and full several times, with other inputs each time; from the second run on it is
 * replayed where the device can capture. */
tn_status tn_own_kernels_launch(tn_device_fixture *f);

/* The kernel whose launch enqueues work that fails: its pattern is "y = device_failure(x)", an op of no
 * program. *kernel is NULL where the families of the device have none. */
tn_status tn_own_kernels_find_failing(tn_device_fixture *f, const tn_kernel **kernel);

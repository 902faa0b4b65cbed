/* core/exec/tune/measure.h: a tuner that measures variants of kernels on an open device and stores the
 * results in a file: one file per device name and number of threads, one line per variant and shape, "KEY
 * SECONDS KERNEL VARIANT". The key is a hash of whether launches were replayed, of the kernel, the versions
 * of its plugin and of its backend's libraries, the ops of the match with their attributes, its types, and
 * which operands are cold.
 *
 * A fault in a kernel breaks the device for the rest of the process. Each measurement is therefore noted in
 * the file before it begins, and a variant with which the device has failed is left out by later processes.
 */
#pragma once

#include "core/exec/device/device.h"

/* Sets device->target.tuner; tn_device_destroy frees it. folder: of the file, created before the first write;
 * NULL or "": measurements are not stored. measure: false reads the file only. An unreadable file, or one
 * with another heading, is logged and not changed. */
tn_status tn_tune_open(tn_device *device, const char *folder, bool measure);

/* The measurements that one device knows are known to another, in memory, so that both choose alike although
 * a file lacks those of a busy machine. Does nothing where one has no tuner. */
void tn_tune_copy(tn_device *to, tn_device *from);

/* The default folder: $XDG_CACHE_HOME/tenon, or $HOME/.cache/tenon; NULL if neither variable is set. The
 * caller frees it (tn_release). */
char *tn_tune_folder(const void *handle);

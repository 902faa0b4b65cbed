/* core/exec/tune/measure.h: measures variants of kernels on an open device, and keeps what was measured in a
 * file: one per device name and number of threads, a line per variant and shape, "KEY SECONDS KERNEL
 * VARIANT". The key covers the kernel, the versions of its plugin and of its backend's libraries, and the
 * match with all types and attributes. */
#ifndef TN_CORE_EXEC_TUNE_MEASURE_H
#define TN_CORE_EXEC_TUNE_MEASURE_H

#include "core/exec/device/device.h"

/* Makes device->target.tuner, which lives as long as the device. folder: where the file lies, made when there
 * is something to write; NULL or "": nothing is kept. measure: false answers from the file alone. A file that
 * cannot be read, or is of something else, is left alone and logged. */
tn_status tn_tune_open(tn_device *device, const char *folder, bool measure);
void tn_tune_close(tn_device *device);

/* The usual folder: $XDG_CACHE_HOME/tenon, or $HOME/.cache/tenon; NULL where neither is set. The caller's
 * (tn_release). */
char *tn_tune_folder(const void *handle);

#endif

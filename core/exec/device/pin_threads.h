/* core/exec/device/pin_threads.h: threads bound to processors, [run] pin.
 *
 * A backend that runs kernels on the host has an option `pin`, a list of processors, and binds thread i of
 * its team to the i-th of them. The first is for the launching thread, which belongs to the application: it
 * is bound only while a program runs. Threads that it starts between runs, such as the loader's workers, are
 * not bound. */
#pragma once

#include <sched.h>

#include "core/base/system/processors.h"
#include "core/exec/device/device.h"

enum { TN_PIN_NO = 0, TN_PIN_YES = 1, TN_PIN_LIST = 2 };

/* The value of [run] pin, before it is resolved to processors of this machine. */
typedef struct tn_pin {
  int32_t how;
  tn_ints list; /* of TN_PIN_LIST */
} tn_pin;

/* Reads "no", "yes", or a list; TN_EINVAL for other texts. The list is allocated in the arena. */
tn_status tn_pin_read(const void *handle, tn_arena *arena, const char *text, tn_pin *pin);

/* The processors on this machine; empty for TN_PIN_NO. *threads = 0 is replaced by the number of processors.
 * Fails as tn_pin_check does. */
tn_status tn_pin_resolve(const void *handle, tn_arena *arena, const tn_pin *pin, int64_t *threads,
                         tn_ints *processors);

/* TN_EINVAL, for the option `pin`, unless the processors are distinct, allowed for this process, and at least
 * as many as the threads. An empty list is valid. */
tn_status tn_pin_check(const void *handle, const tn_ints *processors, int64_t threads);

/* Binds the calling thread to the device's first processor, if the device has a list, and undoes it. */
typedef struct tn_pinned {
  bool bound;
  cpu_set_t before;
} tn_pinned;
void tn_pin_enter(tn_pinned *pinned, const tn_device *device);
void tn_pin_leave(const tn_pinned *pinned);

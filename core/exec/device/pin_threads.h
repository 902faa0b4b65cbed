/* core/exec/device/pin_threads.h: threads bound to processors, [run] pin.
 *
 * A backend that runs kernels on the host has an option `pin`, a list of processors, and binds thread i of
 * its team to the i-th of them. The first is the launching thread's, which belongs to the application: it is
 * bound here, while a program runs, and has all its processors back afterwards. So whatever it starts between
 * runs, the loader's workers say, may run anywhere. */
#ifndef TN_CORE_EXEC_DEVICE_PIN_THREADS_H
#define TN_CORE_EXEC_DEVICE_PIN_THREADS_H

#include <sched.h>

#include "core/base/processors.h"
#include "core/exec/device/device.h"

enum { TN_PIN_NO = 0, TN_PIN_YES = 1, TN_PIN_LIST = 2 };

/* What [run] pin says, before anybody has looked at the machine. */
typedef struct tn_pin {
  int32_t how;
  tn_ints list; /* of TN_PIN_LIST */
} tn_pin;

/* "no", "yes", or a list; TN_EINVAL for other texts. The list lies in the arena. */
tn_status tn_pin_read(const void *handle, tn_arena *arena, const char *text, tn_pin *pin);

/* The processors on this machine, none for TN_PIN_NO. *threads of 0 becomes as many as there are of them.
 * TN_EINVAL where tn_pin_check finds something. */
tn_status tn_pin_resolve(const void *handle, tn_arena *arena, const tn_pin *pin, int64_t *threads,
                         tn_ints *processors);

/* Each processor stands in the list once and is one that this process may run on, and there are enough of
 * them. The option that a failure blames is `pin`. */
tn_status tn_pin_check(const void *handle, const tn_ints *processors, int64_t threads);

/* Binds the calling thread to the device's first processor, if it has any, and gives it back its own. */
typedef struct tn_pinned {
  bool bound;
  cpu_set_t before;
} tn_pinned;
void tn_pin_enter(tn_pinned *pinned, const tn_device *device);
void tn_pin_leave(const tn_pinned *pinned);

#endif

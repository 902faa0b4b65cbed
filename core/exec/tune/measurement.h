/* core/exec/tune/measurement.h: the time of a launch, measured on an open device. */
#pragma once

#include "core/compile/kernels/tuner.h"
#include "core/exec/device/device.h"

typedef struct tn_measured {
  double seconds; /* of a launch: the fastest round */
  double spread;  /* by how much the median of the rounds is slower, relative to the fastest */
  bool replayed;  /* the rounds were captured */
  bool steady;    /* the spread is small enough for the figure to be kept */
  bool declined;  /* there is no launch: the variant declined when it was prepared ... */
  bool late;      /* ... by finish_prepare: what it had promised did not come */
  bool tried;     /* the kernel was prepared or launched */
  bool broken;    /* after a failure: the device answers no wait any more */
} tn_measured;

/* Operands hold random numbers. Those that are state alternate between copies, as many as exceed the caches,
 * so that a launch finds them as cold as in a step. A round is several launches between two events of the
 * device's clock; without event_seconds, between two looks at the host's. Rounds that differ by too much, as
 * on a busy machine, are repeated a few times. The message of a failure is in the device's env. */
tn_status tn_measure_launch(tn_device *device, const tn_tuning *tuning, const tn_choice *choice,
                            tn_measured *measured);

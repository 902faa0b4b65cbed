/* core/conformance/device/device.h: a device, blocks of its memory and events, for the cases that try it
 * alone. */
#ifndef TN_CORE_CONFORMANCE_DEVICE_DEVICE_H
#define TN_CORE_CONFORMANCE_DEVICE_DEVICE_H

#include "core/conformance/suite.h"
#include "core/plugin/handles.h"

enum { TN_MACHINE_BLOCK = 1 << 18, TN_MACHINE_BLOCKS = 4, TN_MACHINE_EVENTS = 3, TN_MACHINE_LAUNCHES = 5 };

typedef struct tn_machine {
  tn_suite *suite;
  tn_device *device;
  const tn_backend *backend;
  tn_env *env;
  char *far[TN_MACHINE_BLOCKS];  /* of the device */
  char *near[TN_MACHINE_BLOCKS]; /* staging */
  void *events[TN_MACHINE_EVENTS];
  tn_launch_host launches[TN_MACHINE_LAUNCHES]; /* stay until all streams have been waited for */
  tn_view views[3];
  const char *wrong; /* what was found; NULL: nothing so far */
} tn_machine;

/* Copies on the compute stream and waits. */
tn_status tn_machine_move(const tn_machine *m, int32_t direction, void *to, const void *from, uint64_t bytes);
/* The first thing that does not hold is what was found. */
void tn_machine_expect(tn_machine *m, bool holds_true, const char *wrong);

/* ---- machine_launch.c ---- */

/* Kernels of a family that the device accepts, written here: each operand, result, workspace and folded
 * memory is an address that has to be translated, and an absent operand is none. */
tn_status tn_machine_try_launch(tn_machine *m);
/* Ops on tensors of the caller's, more of them than run ahead. */
tn_status tn_machine_try_calls(tn_machine *m);
/* A kernel fails in the middle of a stream. Whoever waits behind it is told. The device is broken then. */
tn_status tn_machine_try_failure(tn_machine *m);

#endif

/* core/compare/solo_launch.h: one kernel, launched alone with given operands, variant and layouts. */
#pragma once

#include "core/compare/launch_file.h"
#include "core/exec/device/device.h"

typedef struct tn_solo_launch tn_solo_launch;

/* Prepares the kernel of a launch on a device, which both outlive it. Messages go to env. TN_EUNSUPPORTED:
 * the kernel is not installed, or no longer takes these ops. */
tn_status tn_solo_launch_create(tn_env *env, tn_registry *registry, tn_device *device,
                                const tn_launch_file *file, tn_solo_launch **solo);
/* Accepts NULL. */
void tn_solo_launch_destroy(tn_solo_launch *solo);

/* Copies the operands to the device, launches once and waits. out: the results, row-major, in the order of
 * the file; owned by the solo launch and valid until the next run. */
tn_status tn_solo_launch_run(tn_solo_launch *solo, const void *const **out);
bool tn_solo_launch_is_deterministic(const tn_solo_launch *solo);

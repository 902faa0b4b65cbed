/* core/conformance/trial/guard.h: bytes of a program's arena and outputs that no buffer and no workspace lies
 * in, filled with a pattern before a run and looked at behind it. */
#ifndef TN_CORE_CONFORMANCE_TRIAL_GUARD_H
#define TN_CORE_CONFORMANCE_TRIAL_GUARD_H

#include "core/exec/executor.h"

/* Fills arena and outputs; only before a run, while nothing of value lies there. */
tn_status tn_guard_fill(tn_executor *executor);
/* *broken is the first byte that changed although nobody owns it, as an offset in the arena or among the
 * outputs; -1: none. *near names the launch whose buffer lies in front of it. */
tn_status tn_guard_check(tn_executor *executor, const tn_program *program, int64_t *broken,
                         const char **near);

#endif

/* core/conformance/trial/guard.h: canaries. The bytes of arena and outputs are filled with a pattern before a
 * run; after it, the bytes outside all buffers and workspaces must still hold the pattern. */
#ifndef TN_CORE_CONFORMANCE_TRIAL_GUARD_H
#define TN_CORE_CONFORMANCE_TRIAL_GUARD_H

#include "core/exec/executor.h"

/* Fills arena and outputs, whose contents are lost. */
tn_status tn_guard_fill(tn_executor *executor);
/* *broken: the offset, in the arena or among the outputs, of the first changed byte outside all buffers; -1:
 * all are intact. *launch: the name of the launch whose result is next before it. */
tn_status tn_guard_check(tn_executor *executor, const tn_program *program, int64_t *broken,
                         const char **launch);

#endif

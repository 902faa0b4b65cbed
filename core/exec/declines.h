/* core/exec/declines.h: variants that decline when they are prepared. They are left out, and the programs are
 * compiled again (docs/decisions/0024-remembered-queries.md). */
#pragma once

#include "core/exec/device/device.h"

/* Notes that a variant has declined its match, for the reason in the device's env, so that no query of the
 * device offers it again. `level` of the log line: TN_LOG_WARN where it was the kernel's last variant for the
 * match; TN_LOG_WARN becomes TN_LOG_INFO where a warning has had this reason. `name`: of the launch. false:
 * the target remembers no answers, or the memory is short. */
bool tn_decline_note(tn_device *device, int32_t level, const char *name, const tn_entry *entry,
                     const tn_choice *choice, tn_match_key key);

/* Compiles programs and prepares their kernels. */
typedef struct tn_attempt {
  void *context;
  tn_status (*make)(void *context); /* messages go to the env of tn_attempt_repeat */
  void (*undo)(void *context);      /* frees what a failed `make` has left */
} tn_attempt;

/* Makes an attempt, and another one where variants have declined in it, which each leave out at least one
 * variant: it ends with success, another failure, or an op that no kernel takes. The last failure is not
 * undone. */
tn_status tn_attempt_repeat(tn_env *env, const tn_device *device, const tn_attempt *attempt);

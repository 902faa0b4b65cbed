/* core/exec/declines.c: see declines.h. */
#include "core/exec/declines.h"

#include "core/compile/kernels/answers.h"

bool tn_decline_note(tn_device *device, int32_t level, const char *name, const tn_entry *entry,
                     const tn_choice *choice, tn_match_key key) {
  tn_answers *answers = device->target.answers;
  const char *reason = tn_error_text(&device->env);
  if (answers == NULL) return false;
  if (level == TN_LOG_WARN && tn_answers_has_reason(answers, reason)) level = TN_LOG_INFO;
  tn_logf(&device->env, level, "%s: kernel %s%s%s declined when it was prepared: %s", name, entry->item->name,
          choice->name[0] != '\0' ? " " : "", choice->name, reason);
  return tn_answers_decline(answers, (const tn_kernel *)entry->item, key, choice->id, reason) == TN_OK;
}

tn_status tn_attempt_repeat(tn_env *env, const tn_device *device, const tn_attempt *attempt) {
  for (;;) {
    size_t declines = tn_answers_declines(&device->target);
    tn_status status = attempt->make(attempt->context);
    if (status != TN_EUNSUPPORTED || tn_answers_declines(&device->target) == declines) return status;
    attempt->undo(attempt->context);
    tn_error_clear(env);
  }
}

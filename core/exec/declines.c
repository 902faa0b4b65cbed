/* core/exec/declines.c: see declines.h. */
#include "core/exec/declines.h"

#include "core/compile/kernels/answers.h"

/* A kernel that is lost for its match is worth a warning, also where autotune finds it out. */
static int32_t choose_decline_level(const tn_answers *answers, int32_t level, bool is_last,
                                    const char *reason) {
  if (is_last) level = TN_LOG_WARN;
  return level == TN_LOG_WARN && tn_answers_has_warned(answers, reason) ? TN_LOG_INFO : level;
}

bool tn_decline_note(tn_device *device, int32_t level, const char *name, const tn_entry *entry,
                     const tn_choice *choice, tn_match_key key) {
  tn_answers *answers = device->target.answers;
  const tn_kernel *kernel = (const tn_kernel *)entry->item;
  const char *reason = tn_error_text(&device->env);
  if (answers == NULL) return false;
  bool is_last = tn_answers_is_last(answers, kernel, key, choice->id);
  level = choose_decline_level(answers, level, is_last, reason);
  tn_logf(&device->env, level, "%s: kernel %s%s%s declined when it was prepared: %s%s", name,
          entry->item->name, choice->name[0] != '\0' ? " " : "", choice->name, reason,
          is_last ? "; other kernels take its ops" : "");
  return tn_answers_decline(answers, kernel, key, choice->id, reason, level == TN_LOG_WARN) == TN_OK;
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

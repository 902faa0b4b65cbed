/* core/graph/build/failure.c: the first failure of a builder, which it keeps: later calls have no effect. */
#include <string.h>

#include "core/graph/build/builder.h"

tn_status tn_builder_status(tn_build *handle) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status == TN_OK) return TN_OK;
  tn_error_record *record = handle->env.record;
  record->code = b->status;
  memcpy(record->option, b->option, sizeof record->option);
  memcpy(record->text, b->text, sizeof record->text);
  return b->status;
}

/* Copies the failure out of the handle. */
static void failure_keep(tn_builder *b, tn_status status) {
  const tn_error_record *record = b->graph->env->record;
  b->status = status;
  memcpy(b->option, record->option, sizeof b->option);
  memcpy(b->text, record->text, sizeof b->text);
}

_Static_assert(sizeof(((tn_builder *)0)->text) == sizeof(((tn_error_record *)0)->text) &&
                   sizeof(((tn_builder *)0)->option) == sizeof(((tn_error_record *)0)->option),
               "a builder keeps the text and option of an error record");

void tn_builder_fail(tn_build *handle, tn_status status) {
  tn_builder *b = tn_builder_of(handle);
  if (status == TN_OK) return;
  const tn_error_record *record = handle->env.record;
  bool has_text = record->code == status && record->text[0] != '\0';
  if (b->status == TN_OK) {
    if (!has_text) tn_failf(handle, status, "%s", tn_status_unsaid(status));
    failure_keep(b, status);
  } else if (has_text && strstr(record->text, b->text) != NULL) {
    failure_keep(b, status);
  } else {
    tn_builder_status(handle);
  }
}

bool tn_builder_need(tn_build *handle, const void *pointer, const char *name) {
  if (pointer != NULL || tn_builder_of(handle)->status != TN_OK) return pointer != NULL;
  tn_builder_stick(tn_builder_of(handle), tn_failf(handle, TN_EINVAL, "%s is NULL", name));
  return false;
}

bool tn_builder_recover(tn_build *handle) {
  tn_builder *b = tn_builder_of(handle);
  if (b->frames.n > 0 || b->lost_frames > 0) return false;
  b->status = TN_OK;
  b->ops.n = b->args.n = 0;
  return true;
}

tn_status tn_builder_stick(tn_builder *b, tn_status status) {
  if (status == TN_OK || b->status != TN_OK) return status;
  const tn_env *env = b->graph->env;
  const char *where = tn_builder_top(b)->where;
  if (where != NULL && where[0] != '\0' && !tn_text_starts(tn_error_text(env), where))
    tn_wrap(env, status, "%s", where);
  tn_builder_fail(&b->host.pub, status);
  return status;
}

tn_status tn_builder_wrap(tn_build *handle, tn_status status, const char *kind, const char *op) {
  tn_builder *b = tn_builder_of(handle);
  const tn_error_record *record = handle->env.record;
  if (status == TN_OK) return TN_OK;
  const char *where = tn_builder_top(b)->where,
             *text = record->code == status ? record->text : tn_status_unsaid(status);
  if (where == NULL) where = "";
  if (where[0] != '\0' && tn_text_starts(text, where)) text += strlen(where);
  if (where[0] != '\0' && tn_text_starts(text, ": ")) text += 2;
  tn_fail(handle, status, record->option, "%s%s%s of %s: %s", where, where[0] != '\0' ? ": " : "", kind, op,
          text);
  failure_keep(b, status);
  return status;
}

/* core/model/error_context.c: the context of error messages: configuration line, layer, block. */
#include "core/model/assemble.h"

#include <string.h>

const char *tn_error_text_behind(const char *text, const char *head, size_t n) {
  return n > 0 && strncmp(text, head, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

tn_status tn_error_add_context(tn_env *env, tn_status status, const char *where, const char *what) {
  if (status == TN_OK) return TN_OK;
  const char *text = env->record->code == status && *env->record->text != '\0' ? env->record->text
                                                                               : tn_status_unsaid(status);
  text = tn_error_text_behind(text, where, strlen(where));
  text = tn_error_text_behind(text, what, strlen(what));       /* a block that uses itself */
  text = tn_error_text_behind(text, what, strcspn(what, " ")); /* an op of the same name as the layer */
  return tn_failf(env, status, "%s: %s%s%s", where, what, *what != '\0' ? ": " : "", text);
}

const char *tn_line_where(tn_assembly *a, const tn_line *line) {
  return line->line > 0 ? tn_arena_printf(&a->arena, "%s:%d", line->file, line->line) : line->file;
}

tn_status tn_find_layer(const tn_assembly *a, const char *name, const tn_layer_kind **kind) {
  tn_registry *registry = a->request->registry;
  const tn_entry *entry = NULL;
  tn_status status = tn_registry_find(registry, a->env, TN_LAYER, name, &entry);
  if (status == TN_EUNAVAILABLE && !tn_registry_has(registry, TN_LAYER, name))
    return tn_failf(a->env, TN_EINVAL, "%s", tn_error_text(a->env));
  if (status == TN_OK) *kind = (const tn_layer_kind *)entry->item;
  return status;
}

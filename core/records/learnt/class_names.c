#include "core/records/learnt/class_names.h"

#include <jansson.h>
#include <stdlib.h>

#include "core/base/json_list.h"
#include "core/run/result.h"

/* The names of a target that is a class number, or a 0 or 1 for each label. */
static int64_t class_names_count(const tn_field *field) {
  bool labels = field->classes == 0 && field->type.dtype == TN_F32 && field->type.rank == 1;
  if (field->role != TN_FIELD_TARGET || field->class_names == NULL) return 0;
  return labels ? field->type.dims[0] : field->classes;
}

/* NULL: out of memory. */
static json_t *class_names_list(const tn_field *field) {
  json_t *list = json_array();
  for (int64_t i = 0; i < class_names_count(field); i++)
    tn_json_list_add(&list, tn_json_text(field->class_names[i]));
  return list;
}

static json_t *class_names_collect(const tn_loader *loader) {
  json_t *all = json_object();
  for (int32_t i = 0; i < tn_loader_field_count(loader); i++) {
    const tn_field *field = tn_loader_field(loader, i);
    if (class_names_count(field) < 1) continue;
    json_t *list = class_names_list(field);
    if (list != NULL) json_object_set_new(all, field->name, list);
  }
  return all;
}

tn_status tn_class_names_of_data(tn_run *run, const tn_loader *loader) {
  json_t *all = class_names_collect(loader);
  bool any = json_object_size(all) > 0;
  char *text = any ? json_dumps(all, JSON_COMPACT) : NULL;
  json_decref(all);
  if (!any) return TN_OK;
  if (text != NULL) run->class_names = tn_arena_strdup(&run->arena, text);
  free(text);
  return text != NULL && run->class_names != NULL ? TN_OK : TN_ENOMEM;
}

void tn_class_names_of_weights(tn_run *run, const tn_safetensors *file) {
  const char *note = tn_safetensors_metadata(file, TN_CLASS_NAMES_NOTE);
  if (run->class_names == NULL && note != NULL) run->class_names = tn_arena_strdup(&run->arena, note);
}

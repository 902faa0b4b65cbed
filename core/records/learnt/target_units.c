#include "core/records/learnt/target_units.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *target_units_list(const double *v, int64_t n) {
  json_t *list = json_array();
  for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_real(v[i]));
  return list;
}

static json_t *target_units_collect(const tn_loader *loader) {
  json_t *all = json_object();
  for (int32_t i = 0; i < tn_loader_field_count(loader); i++) {
    const tn_field *field = tn_loader_field(loader, i);
    int64_t n = tn_type_count(&field->type);
    if (field->role != TN_FIELD_TARGET || field->scale == NULL || field->shift == NULL || n < 1) continue;
    json_object_set_new(all, field->name,
                        json_pack("{s:o, s:o}", "scale", target_units_list(field->scale, n), "shift",
                                  target_units_list(field->shift, n)));
  }
  return all;
}

tn_status tn_target_units_of_data(tn_run *run, const tn_loader *loader) {
  json_t *all = target_units_collect(loader);
  char *text = json_object_size(all) > 0 ? json_dumps(all, JSON_COMPACT) : NULL;
  json_decref(all);
  if (text == NULL) return TN_OK;
  run->target_units = tn_arena_strdup(&run->arena, text);
  free(text);
  return run->target_units != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_target_units_of_weights(tn_run *run, const tn_safetensors *file) {
  const char *note = tn_safetensors_metadata(file, TN_TARGET_UNITS_NOTE);
  if (note == NULL || run->target_units != NULL) return TN_OK;
  run->target_units = tn_arena_strdup(&run->arena, note);
  return run->target_units != NULL ? TN_OK : TN_ENOMEM;
}

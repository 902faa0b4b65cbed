#include "core/infer/prediction/output_units.h"

#include <jansson.h>

#include "core/config/language/syntax.h"

static tn_status output_units_read(const tn_forward *f, const json_t *list, int64_t n, double **v) {
  *v = tn_arena_alloc(&f->run->arena, tn_size_mul((size_t)n, sizeof **v));
  if (*v == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < n; i++) (*v)[i] = json_number_value(json_array_get(list, (size_t)i));
  return TN_OK;
}

/* Whether a line reads `output` and then `target`, as `mse <- y, price` does. */
static bool output_units_are_paired(const tn_line *line, const char *output, const char *target) {
  if (line->n_refs == 0 || !tn_text_equal(line->refs[0], output)) return false;
  for (int32_t i = 1; i < line->n_refs; i++)
    if (tn_text_equal(line->refs[i], target)) return true;
  return false;
}

/* The scaled target that a loss of the model pairs with an output, or NULL. */
static tn_status output_units_of_loss(const tn_forward *f, const char *output, json_t *all,
                                      const char **paired) {
  tn_run *run = f->run;
  tn_section *section = tn_ini_section(&run->ini, "model");
  const tn_key *loss = section != NULL ? tn_section_key(section, "loss") : NULL;
  tn_line *lines = NULL;
  int32_t n = 0;
  const char *target;
  json_t *units;
  *paired = NULL;
  if (loss != NULL) TN_TRY(tn_syntax_lines(&run->env, &run->arena, loss, &run->ini, &lines, &n));
  for (int32_t i = 0; i < n && *paired == NULL; i++) {
    json_object_foreach(all, target, units) {
      if (*paired == NULL && output_units_are_paired(&lines[i], output, target)) *paired = target;
    }
  }
  return TN_OK;
}

/* The name of the target of an output; NULL: none is scaled. */
static const char *output_units_target(const tn_forward *f, int32_t k, json_t *all, const char *paired) {
  const char *name = f->outputs[k].name;
  if (json_object_get(all, name) != NULL) return name;
  if (paired != NULL) return paired;
  return k == 0 && json_object_size(all) == 1 ? json_object_iter_key(json_object_iter(all)) : NULL;
}

static tn_status output_units_take(const tn_forward *f, int32_t k, json_t *all, tn_output_units *units) {
  const tn_type *row = &f->outputs[k].row;
  const char *paired;
  TN_TRY(output_units_of_loss(f, f->outputs[k].name, all, &paired));
  const char *name = output_units_target(f, k, all, paired);
  const json_t *target = name != NULL ? json_object_get(all, name) : NULL;
  int64_t n = tn_type_count(row);
  bool fits = row->dtype == TN_F32 && (int64_t)json_array_size(json_object_get(target, "scale")) == n &&
              (int64_t)json_array_size(json_object_get(target, "shift")) == n;
  if (!fits) return TN_OK;
  TN_TRY(output_units_read(f, json_object_get(target, "scale"), n, &units->scale));
  TN_TRY(output_units_read(f, json_object_get(target, "shift"), n, &units->shift));
  units->target = tn_arena_strdup(&f->run->arena, name);
  return units->target != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_output_units_find(const tn_forward *f, int32_t k, tn_output_units *units) {
  *units = (tn_output_units){.target = NULL};
  if (f->run->target_units == NULL) return TN_OK;
  json_t *all = json_loads(f->run->target_units, JSON_REJECT_DUPLICATES, NULL);
  tn_status status = json_is_object(all) ? output_units_take(f, k, all, units) : TN_OK;
  json_decref(all);
  return status;
}

void tn_output_units_apply(const tn_output_units *units, const tn_output_rows *output, char *rows,
                           int64_t n) {
  int64_t elements = tn_type_count(&output->row);
  if (units->target == NULL) return;
  for (int64_t i = 0; i < n * elements; i++) {
    float *value = (float *)(void *)rows + i;
    *value = (float)(*value * units->scale[i % elements] + units->shift[i % elements]);
  }
}

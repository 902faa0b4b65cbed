/* core/model/lines/field.c: the fields that the model takes: inputs of the program, or values that the graph
 * prepares from inputs. */
#include "core/base/rows.h"
#include "core/model/assemble.h"

#include <string.h>

static tn_val field_fail(const tn_assembly *a, tn_status status) {
  tn_builder_fail(a->b, status);
  return 0;
}

/* Prints a type without its batch dimension. */
static void field_print_type(tn_text *text, const tn_type *type) {
  tn_text_addf(text, "%s[", tn_dtype_name(type->dtype));
  for (int32_t i = 1; i < type->rank; i++)
    tn_text_addf(text, "%s%lld", i > 1 ? ", " : "", (long long)type->dims[i]);
  tn_text_add(text, "]");
}

static tn_val field_fail_type(const tn_assembly *a, const tn_prepared_input *input, const tn_type *wanted) {
  tn_text has = tn_text_new(a->env), wants = tn_text_new(a->env);
  field_print_type(&has, tn_val_type(a->b, input->value));
  field_print_type(&wants, wanted);
  tn_status status = tn_failf(a->b, TN_EINVAL,
                              "%s: field '%s' is %s, but the model takes %s; change [model] inputs or the "
                              "transforms",
                              input->where, input->name, has.v ? has.v : "", wants.v ? wants.v : "");
  tn_text_free(&has);
  tn_text_free(&wants);
  return field_fail(a, status);
}

static const tn_prepared_input *field_find_prepared(const tn_assembly *a, const char *name) {
  const tn_prepared_inputs *prepared = a->request->prepared;
  for (int32_t i = 0; prepared != NULL && i < prepared->n; i++)
    if (tn_text_equal(prepared->v[i].name, name)) return &prepared->v[i];
  return NULL;
}

tn_val tn_model_sample_weight(const tn_assembly *a) {
  const tn_type type = {TN_F32, 1, {a->request->batch}};
  return tn_graph_input(tn_builder_graph(a->b), "sample.weight", &type);
}

tn_val tn_model_field(const tn_assembly *a, const char *name, const tn_type *type) {
  tn_type batched = tn_type_batched(type, a->request->batch);
  const tn_prepared_input *prepared = field_find_prepared(a, name);
  if (prepared != NULL && tn_type_equal(tn_val_type(a->b, prepared->value), &batched)) return prepared->value;
  if (prepared != NULL) return field_fail_type(a, prepared, &batched);
  tn_val value = tn_graph_input(tn_builder_graph(a->b), name, &batched);
  return value != 0 ? value : field_fail(a, tn_builder_graph(a->b)->env->record->code);
}

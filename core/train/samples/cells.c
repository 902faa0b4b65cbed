/* core/train/samples/cells.c: values that are a class, scores of classes, or few numbers. */
#include <math.h>

#include "core/base/element.h"
#include "core/train/samples/sample_view.h"

enum { MOST_NUMBERS = 16 };

static void cell_print_class(const tn_sample_set *set, const char *target, int64_t number, tn_text *text) {
  const char *name = target != NULL ? tn_sample_class_name(set, target, number) : NULL;
  if (name != NULL)
    tn_text_add(text, name);
  else
    tn_text_addf(text, "%lld", (long long)number);
}

/* ---- a class ---- */

static bool label_takes(const tn_sample_set *set, const tn_sample_value *value) {
  (void)set;
  return !tn_dtype_is_float(value->type.dtype) && tn_type_count(&value->type) == 1;
}

static void label_print(const tn_sample_set *set, const tn_sample_value *value, int64_t i, tn_text *text) {
  int64_t number = (int64_t)tn_element_load(value->type.dtype, tn_sample_row(value, i), 0);
  cell_print_class(set, value->name, number, text);
}

const tn_sample_view tn_label_view = {.takes = label_takes, .print = label_print};

/* ---- scores of classes ---- */

/* The target whose classes an output [classes] has scores of; NULL where no target fits. */
static const tn_sample_value *score_find_target(const tn_sample_set *set, const tn_sample_value *output) {
  for (int32_t i = 0; i < set->n_values; i++) {
    const tn_sample_value *v = &set->values[i];
    if (v->role == TN_FIELD_TARGET && label_takes(set, v) &&
        (v->classes == 0 || v->classes == output->type.dims[0]))
      return v;
  }
  return NULL;
}

static bool score_takes(const tn_sample_set *set, const tn_sample_value *value) {
  const tn_type *type = &value->type;
  return value->role == TN_SAMPLE_OUTPUT && tn_dtype_is_float(type->dtype) && type->rank == 1 &&
         type->dims[0] > 1 && score_find_target(set, value) != NULL;
}

/* The class of the greatest score, with its probability by a softmax: "cat 0.71". */
static void score_print(const tn_sample_set *set, const tn_sample_value *value, int64_t i, tn_text *text) {
  const tn_type *type = &value->type;
  const char *row = tn_sample_row(value, i);
  int64_t best = 0;
  double most = tn_element_load(type->dtype, row, 0), sum = 0;
  for (int64_t k = 1; k < type->dims[0]; k++) {
    double score = tn_element_load(type->dtype, row, k);
    if (score > most) most = score, best = k;
  }
  for (int64_t k = 0; k < type->dims[0]; k++) sum += exp(tn_element_load(type->dtype, row, k) - most);
  cell_print_class(set, score_find_target(set, value)->name, best, text);
  tn_text_addf(text, " %.2f", 1 / sum);
}

const tn_sample_view tn_score_view = {.takes = score_takes, .print = score_print};

/* ---- few numbers ---- */

static bool number_takes(const tn_sample_set *set, const tn_sample_value *value) {
  (void)set;
  return tn_type_count(&value->type) <= MOST_NUMBERS;
}

static void number_print(const tn_sample_set *set, const tn_sample_value *value, int64_t i, tn_text *text) {
  (void)set;
  for (int64_t k = 0; k < tn_type_count(&value->type); k++)
    tn_text_addf(text, "%s%.4g", k > 0 ? ", " : "",
                 tn_element_load(value->type.dtype, tn_sample_row(value, i), k));
}

const tn_sample_view tn_number_view = {.takes = number_takes, .print = number_print};

/* core/conformance/trial/trial_compare.c: compares the results of a trial with those of the reference. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/conformance/trial/hull.h"
#include "core/conformance/trial/spread.h"
#include "core/conformance/trial/trial_run.h"

/* ---- numbers of very different sizes ---- */

/* The inputs of the reference in a variant of a hull. */
static tn_status fill_variant(trial_run *s, int32_t variant) {
  tn_rng rng = tn_rng_at((uint64_t)s->trial->draw, TN_DRAW_VALUES);
  for (int32_t i = 0; i < s->d.n_inputs; i++) {
    const tn_case_input *input = &s->d.inputs[i];
    size_t count = (size_t)tn_type_count(&input->type);
    double *values = tn_alloc(s->site->env, (count + 1) * sizeof *values),
           *to = tn_reference_input(s->reference, input->name);
    if (values == NULL) return TN_ENOMEM;
    tn_draw_values(&rng, input, values);
    for (size_t k = 0; to != NULL && k < count; k++)
      to[k] = input->fill == TN_FILL_DOMAIN && tn_dtype_is_float(input->type.dtype)
                  ? tn_hull_operand(variant, input->type.dtype, values[k])
                  : values[k];
    tn_release(s->site->env, values);
  }
  return tn_reference_run(s->reference);
}

static tn_status add_variants(trial_run *s, const char *output, tn_hull *hull) {
  for (int32_t variant = TN_HULL_VARIANTS - 1; variant >= TN_HULL_PLAIN; variant--) {
    tn_type type;
    TN_TRY(fill_variant(s, variant));
    const double *values = tn_reference_output(s->reference, output, &type);
    TN_TRY(tn_hull_add(s->site->env, hull, &type, values));
  }
  return TN_OK;
}

static void judge_special_element(trial_run *s, const char *output, const tn_hull *hull, int64_t i,
                                  double found) {
  double expected = tn_reference_output(s->reference, output, NULL)[i];
  if (hull->low[i] > hull->high[i])
    trial_judge(s, TN_VERDICT_FAILED, "%s[%lld] is %.9g, the reference has nan", output, (long long)i, found);
  else
    trial_judge(s, TN_VERDICT_FAILED,
                "%s[%lld] is %.9g, the reference has %.9g; rounding of the operands explains %.9g to %.9g",
                output, (long long)i, found, expected, hull->low[i], hull->high[i]);
}

static void compare_with_hull(trial_run *s, const char *output, const tn_hull *hull, const double *found) {
  for (int64_t i = 0; i < tn_type_count(&hull->type) && trial_is_undecided(s); i++)
    if (!tn_hull_accepts(hull, i, found[i], s->tolerance))
      judge_special_element(s, output, hull, i, found[i]);
}

static tn_status compare_special_output(trial_run *s, const char *output) {
  tn_type type;
  tn_hull hull = {.low = NULL};
  double *found = tn_on_device_output(s->device, output, &type);
  tn_status status = found == NULL ? TN_ENOMEM : add_variants(s, output, &hull);
  if (status == TN_OK) compare_with_hull(s, output, &hull, found);
  tn_hull_free(s->site->env, &hull);
  tn_release(s->site->env, found);
  return status;
}

/* ---- comparison with the reference ---- */

static double largest_magnitude(const tn_type *type, const double *v) {
  double largest = 1;
  for (int64_t i = 0; i < tn_type_count(type); i++)
    if (isfinite(v[i])) largest = fmax(largest, fabs(v[i]));
  return largest;
}

/* A number beyond the largest one of a dtype is an infinity in it. */
static bool close_enough(int32_t dtype, double found, double expected, double allowed) {
  if (isinf(found) && tn_reference_round(dtype, expected) == found) return true;
  return found == expected || (found != found && expected != expected) || fabs(found - expected) <= allowed;
}

static bool has_plain_sums(const tn_program *program) {
  for (int32_t i = 0; i < program->n_steps; i++)
    if (program->steps[i].group->choice.plain_sums) return true;
  return false;
}

/* The error that rounding explains of element i of a variance, relative to the element itself, or to the mean
 * of squares for kernels that compute the variance from it. */
static double allow_for_variance(const trial_run *s, double variance, int64_t i) {
  tn_type type;
  double mean = tn_reference_output(s->reference, "y.0", &type)[i];
  return s->sums_tolerance *
         (has_plain_sums(tn_on_device_program(s->device)) ? variance + mean * mean : variance);
}

/* A use of a pattern has the results of its nodes as outputs, too. */
static bool is_variance(const trial_run *s, const char *output) {
  char result[24], inner[24];
  snprintf(result, sizeof result, "y.%d", s->trial->c->variance);
  snprintf(inner, sizeof inner, "inner.%d", s->trial->c->variance);
  return s->trial->c->variance > 0 && (strcmp(output, result) == 0 || strcmp(output, inner) == 0);
}

/* The largest of all operands and outputs. */
static double largest_of_use(const trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  double largest = 1;
  for (int32_t i = 0; i < s->d.n_inputs; i++) {
    const double *values = tn_reference_input(s->reference, s->d.inputs[i].name);
    if (values != NULL) largest = fmax(largest, largest_magnitude(&s->d.inputs[i].type, values));
  }
  for (int32_t i = 0; i < program->n_outputs; i++) {
    tn_type type;
    const double *values = tn_reference_output(s->reference, program->outputs[i].name, &type);
    if (values != NULL) largest = fmax(largest, largest_magnitude(&type, values));
  }
  return largest;
}

/* Of successive uses, what the rounding of narrower values explains. */
static tn_status measure_spread(trial_run *s, const char *output, double *spread) {
  *spread = 0;
  return s->trial->c->successive
             ? tn_spread_measure(s->site->env, s->reference, s->trial->dtype, output, spread)
             : TN_OK;
}

static tn_status compare_output(trial_run *s, const char *output) {
  tn_type type;
  double spread;
  TN_TRY(measure_spread(s, output, &spread));
  const double *expected = tn_reference_output(s->reference, output, &type);
  double *found = tn_on_device_output(s->device, output, &type);
  if (found == NULL) return TN_ENOMEM;
  /* The arithmetic of T limits the precision of results of every dtype. */
  double largest = s->trial->c->successive ? largest_of_use(s) : largest_magnitude(&type, expected);
  double allowed = tn_dtype_is_float(type.dtype) ? s->tolerance * largest + spread : 0;
  for (int64_t i = 0; i < tn_type_count(&type) && trial_is_undecided(s); i++) {
    if (is_variance(s, output)) allowed = allow_for_variance(s, expected[i], i);
    if (!close_enough(type.dtype, found[i], expected[i], allowed))
      trial_judge(s, TN_VERDICT_FAILED,
                  "%s[%lld] is %.9g, the reference has %.9g; rounding explains a difference up to %.2g",
                  output, (long long)i, found[i], expected[i], allowed);
  }
  tn_release(s->site->env, found);
  return TN_OK;
}

static bool has_domains(const trial_run *s) {
  for (int32_t i = 0; i < s->d.n_inputs; i++)
    if (s->d.inputs[i].fill == TN_FILL_DOMAIN) return true;
  return false;
}

tn_status trial_compare(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  for (int32_t i = 0; i < program->n_outputs && trial_is_undecided(s); i++)
    if (strcmp(program->outputs[i].name, "loss") != 0)
      TN_TRY(s->d.style == TN_STYLE_SPECIAL && has_domains(s)
                 ? compare_special_output(s, program->outputs[i].name)
                 : compare_output(s, program->outputs[i].name));
  return TN_OK;
}

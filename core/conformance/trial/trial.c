/* core/conformance/trial/trial.c: draws a use of an op, computes it on the device and on the reference, and
 * compares the results. */
#include "core/conformance/trial/trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/conformance/trial/gradients.h"
#include "core/conformance/trial/guard.h"
#include "core/conformance/trial/hull.h"
#include "core/conformance/trial/on_device.h"
#include "core/conformance/trial/spread.h"
#include "core/conformance/reference/reference.h"

enum { LARGE_DRAWS = 2 };

/* The random streams of a trial. */
enum { STREAM_SHAPES = 1, STREAM_VALUES = 2 };

typedef struct trial_run {
  const tn_trial_site *site;
  const tn_trial *trial;
  tn_verdict *verdict;
  tn_draw d;
  tn_builder *builder;
  tn_reference *reference;
  tn_on_device *device;
  double tolerance, sums_tolerance; /* sums_tolerance: of results in the dtype of sums */
} trial_run;

static void trial_judge(trial_run *s, int32_t what, const char *format, ...) TN_PRINTF(3, 4);
static void trial_judge(trial_run *s, int32_t what, const char *format, ...) {
  va_list args;
  s->verdict->what = what;
  va_start(args, format);
  vsnprintf(s->verdict->text, sizeof s->verdict->text, format, args);
  va_end(args);
}

static bool trial_is_undecided(const trial_run *s) { return s->verdict->what == TN_VERDICT_PASSED; }

/* A failure of the device, a kernel or an op's rules becomes a verdict. TN_ENOMEM ends the suite. */
static tn_status trial_accept(trial_run *s, const void *handle, tn_status status, const char *doing) {
  if (status == TN_OK || status == TN_ENOMEM) return status;
  int32_t what = status == TN_EUNSUPPORTED ? TN_VERDICT_UNSUPPORTED : TN_VERDICT_FAILED;
  trial_judge(s, what, "%s: %s", status == TN_EDEVICE ? "the device broke" : doing, tn_error_text(handle));
  return TN_OK;
}

/* ---- the graph ---- */

static tn_status add_trial_gradients(trial_run *s, tn_val first) {
  tn_val results[TN_REFERENCE_RESULTS], wrt[TN_CASE_INPUTS];
  int32_t n_wrt = 0, n = tn_draw_results(&s->d, first, results);
  for (int32_t i = 0; i < n; i++)
    if (!tn_dtype_is_float(tn_graph_type(s->d.graph, results[i])->dtype)) results[i] = 0;
  for (int32_t i = 0; i < s->d.n_inputs; i++)
    if (tn_dtype_is_float(s->d.inputs[i].type.dtype))
      wrt[n_wrt++] = tn_graph_input(s->d.graph, s->d.inputs[i].name, &s->d.inputs[i].type);
  return tn_gradients_add(s->d.graph, results, n, wrt, n_wrt);
}

static bool is_gradient_noise(const tn_trial *t) {
  return t->c->wide_gradient && t->dtype != TN_F32 && t->dtype != TN_F64;
}

static bool trial_has_gradient(const tn_draw *d, tn_val first) {
  return tn_draw_is_differentiable(d, first) && tn_dtype_is_float(tn_graph_type(d->graph, first)->dtype);
}

static tn_status add_trial_outputs(trial_run *s, tn_val first) {
  tn_val results[TN_REFERENCE_RESULTS];
  int32_t n = tn_draw_results(&s->d, first, results);
  for (int32_t i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "y.%d", i);
    tn_val y = s->d.dying ? tn_copy(s->d.b, results[i]) : results[i];
    TN_TRY(tn_graph_output(s->d.graph, name, y));
  }
  for (int32_t i = 0; i < s->d.n_inner; i++) {
    char name[24];
    snprintf(name, sizeof name, "inner.%d", i);
    TN_TRY(tn_graph_output(s->d.graph, name, s->d.inner[i]));
  }
  return s->trial->gradient ? add_trial_gradients(s, first) : TN_OK;
}

/* Of eight draws one has wide numbers, and two have special ones, whose gradients are not defined. */
static int32_t trial_style(const tn_trial *t) {
  int64_t draw = t->draw % TN_TRIAL_DRAWS;
  if (draw == 4) return TN_STYLE_WIDE;
  if (draw == 5 || draw == 6) return t->gradient ? TN_STYLE_WIDE : TN_STYLE_SPECIAL;
  return TN_STYLE_ORDINARY;
}

static tn_status make_trial_graph(trial_run *s) {
  const tn_trial_site *site = s->site;
  const tn_trial *t = s->trial;
  s->d = (tn_draw){.rng = tn_rng_at((uint64_t)t->draw, STREAM_SHAPES),
                   .dtype = t->dtype,
                   .draw = t->draw,
                   .style = trial_style(t),
                   .settings = site->settings,
                   .large = t->draw % TN_TRIAL_DRAWS < LARGE_DRAWS,
                   .dying = t->draw % 2 == 1};
  TN_TRY(tn_graph_create(site->env, site->ops, &s->d.graph));
  TN_TRY(tn_builder_create(s->d.graph, &s->builder));
  s->d.b = tn_builder_handle(s->builder);
  tn_val first = t->c->emit(&s->d, t->c);
  TN_TRY(trial_accept(s, s->d.b, tn_build_status(s->d.b), "emitting it"));
  if (!trial_is_undecided(s)) return TN_OK;
  if (t->gradient && (t->c->forward_only || is_gradient_noise(t) || !trial_has_gradient(&s->d, first))) {
    trial_judge(s, TN_VERDICT_NOTHING, "there is no gradient");
    return TN_OK;
  }
  tn_status status = add_trial_outputs(s, first);
  s->tolerance = tn_trial_tolerance(s->d.graph, t->dtype);
  s->sums_tolerance = tn_trial_tolerance(s->d.graph, t->dtype == TN_F64 ? TN_F64 : TN_F32);
  return trial_accept(s, site->env, status, "its gradient");
}

static tn_status compile_trial(trial_run *s) {
  const tn_trial_site *site = s->site;
  TN_TRY(trial_accept(s, site->env, tn_reference_create(s->d.graph, &s->reference), "the reference"));
  if (!trial_is_undecided(s)) return TN_OK;
  tn_builder_destroy(s->builder);
  s->builder = NULL;
  tn_graph *graph = s->d.graph;
  s->d.graph = NULL;
  tn_status status = tn_on_device_create(site->env, site->registry, site->device, graph, &s->device);
  return trial_accept(s, site->env, status, "compiling it");
}

static tn_status fill_trial_input(trial_run *s, const tn_case_input *input, tn_rng *rng) {
  size_t count = (size_t)tn_type_count(&input->type);
  double *values = tn_alloc(s->site->env, (count + 1) * sizeof *values),
         *to = tn_reference_input(s->reference, input->name);
  if (values == NULL) return TN_ENOMEM;
  tn_draw_values(rng, input, values);
  if (to != NULL) memcpy(to, values, count * sizeof *values);
  tn_on_device_input(s->device, input->name, values);
  tn_release(s->site->env, values);
  return TN_OK;
}

/* Fills operands as the case requires, cotangents with TN_FILL_ANY, with the same values in every call. */
static tn_status fill_trial_inputs(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  tn_rng rng = tn_rng_at((uint64_t)s->trial->draw, STREAM_VALUES);
  for (int32_t i = 0; i < s->d.n_inputs; i++) {
    tn_case_input input = s->d.inputs[i];
    /* The rounding of a mean far from 0 is an error of x - mean in gradients. */
    if (input.fill == TN_FILL_FAR && s->trial->gradient) input.fill = TN_FILL_ANY;
    TN_TRY(fill_trial_input(s, &input, &rng));
  }
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *b = &program->inputs[i];
    tn_case_input dout = {.type = b->type, .fill = TN_FILL_ANY};
    snprintf(dout.name, sizeof dout.name, "%s", b->name);
    if (strncmp(b->name, "dout.", 5) == 0) TN_TRY(fill_trial_input(s, &dout, &rng));
  }
  return TN_OK;
}

/* ---- numbers of very different sizes ---- */

/* The inputs of the reference in a variant of a hull. */
static tn_status fill_variant(trial_run *s, int32_t variant) {
  tn_rng rng = tn_rng_at((uint64_t)s->trial->draw, STREAM_VALUES);
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

static tn_status compare_outputs(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  for (int32_t i = 0; i < program->n_outputs && trial_is_undecided(s); i++)
    if (strcmp(program->outputs[i].name, "loss") != 0)
      TN_TRY(s->d.style == TN_STYLE_SPECIAL && has_domains(s)
                 ? compare_special_output(s, program->outputs[i].name)
                 : compare_output(s, program->outputs[i].name));
  return TN_OK;
}

/* ---- determinism ---- */

/* A hash of the bits of all outputs. */
static tn_status hash_outputs(trial_run *s, uint64_t *hash) {
  const tn_program *program = tn_on_device_program(s->device);
  *hash = TN_HASH_START;
  for (int32_t i = 0; i < program->n_outputs; i++) {
    tn_type type;
    double *values = tn_on_device_output(s->device, program->outputs[i].name, &type);
    if (values == NULL) return TN_ENOMEM;
    *hash = tn_hash_bytes(*hash, values, (size_t)tn_type_count(&type) * sizeof *values);
    tn_release(s->site->env, values);
  }
  return TN_OK;
}

static tn_status run_trial_once(trial_run *s) {
  TN_TRY(fill_trial_inputs(s));
  return trial_accept(s, s->site->env, tn_on_device_run(s->device), "running it");
}

/* Overwrites the last results first, so that a replay that computes nothing gives other bits. */
static tn_status repeat_run(trial_run *s, int32_t pattern) {
  tn_status status = tn_guard_fill(tn_on_device_executor(s->device), pattern);
  TN_TRY(trial_accept(s, s->site->env, status, "filling its memory"));
  return trial_is_undecided(s) ? run_trial_once(s) : TN_OK;
}

/* The first element of an output that differs between the outputs now and those in other memory. */
static tn_status find_unwritten_byte(trial_run *s, int32_t output, bool *found) {
  const tn_binding *b = &tn_on_device_program(s->device)->outputs[output];
  tn_type type;
  double *before = tn_on_device_output(s->device, b->name, &type), *now = NULL;
  tn_status status = before == NULL ? TN_ENOMEM : repeat_run(s, TN_GUARD_NAN);
  if (status == TN_OK) now = tn_on_device_output(s->device, b->name, &type);
  for (int64_t i = 0; now != NULL && i < tn_type_count(&type) && !*found; i++) {
    if (memcmp(&before[i], &now[i], sizeof *now) == 0) continue;
    *found = true;
    trial_judge(
        s, TN_VERDICT_FAILED,
        "%s[%lld] is %.9g, and %.9g when the bytes around the operands are NaN: a kernel reads beyond an "
        "operand, or a workspace that it has not written; expected results of the operands only",
        b->name, (long long)i, before[i], now[i]);
  }
  if (status == TN_OK && trial_is_undecided(s)) status = repeat_run(s, TN_GUARD_NUMBER);
  tn_release(s->site->env, before);
  tn_release(s->site->env, now);
  return status;
}

static tn_status judge_unwritten_bytes(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  bool found = false;
  for (int32_t i = 0; i < program->n_outputs && trial_is_undecided(s) && !found; i++)
    TN_TRY(find_unwritten_byte(s, i, &found));
  if (trial_is_undecided(s))
    trial_judge(s, TN_VERDICT_FAILED, "its results depend on bytes that no launch has written");
  return TN_OK;
}

/* Runs again in memory with other contents, and once more in the first: the bits must be the same. */
static tn_status check_determinism(trial_run *s) {
  uint64_t first, among_nan = 0, again = 0;
  TN_TRY(hash_outputs(s, &first));
  s->verdict->bits = first;
  TN_TRY(repeat_run(s, TN_GUARD_NAN));
  if (trial_is_undecided(s)) TN_TRY(hash_outputs(s, &among_nan));
  if (trial_is_undecided(s)) TN_TRY(repeat_run(s, TN_GUARD_NUMBER));
  if (trial_is_undecided(s)) TN_TRY(hash_outputs(s, &again));
  if (!trial_is_undecided(s)) return TN_OK;
  if (again != first)
    trial_judge(s, TN_VERDICT_FAILED,
                "run 3 gives other bits than the first, although every kernel is declared deterministic");
  return again == first && among_nan != first ? judge_unwritten_bytes(s) : TN_OK;
}

/* Kernels that are not deterministic: the results in other memory are compared with the reference again. */
static tn_status check_unwritten_bytes(trial_run *s) {
  TN_TRY(repeat_run(s, TN_GUARD_NAN));
  if (trial_is_undecided(s))
    TN_TRY(trial_accept(s, s->site->env, tn_reference_run(s->reference), "the reference"));
  return trial_is_undecided(s) ? compare_outputs(s) : TN_OK;
}

/* ---- NaN ---- */

/* Draws with special numbers. */
static bool plants_nan(const trial_run *s) {
  return !s->trial->gradient && trial_style(s->trial) == TN_STYLE_SPECIAL && !s->trial->c->masked;
}

/* Whether an operand can have a NaN: it has floats, and the reference reads it. */
static bool can_plant(const trial_run *s, const tn_case_input *input) {
  return tn_dtype_is_float(input->type.dtype) && tn_type_count(&input->type) > 0 &&
         tn_reference_input(s->reference, input->name) != NULL;
}

/* Fills the operands, makes an element of one of them NaN, and computes the results. */
static tn_status run_with_nan(trial_run *s, const tn_case_input *input) {
  TN_TRY(fill_trial_inputs(s));
  double *values = tn_reference_input(s->reference, input->name);
  values[tn_type_count(&input->type) / 2] = NAN;
  tn_on_device_input(s->device, input->name, values);
  TN_TRY(trial_accept(s, s->site->env, tn_on_device_run(s->device), "running it with a NaN"));
  if (!trial_is_undecided(s)) return TN_OK;
  return trial_accept(s, s->site->env, tn_reference_run(s->reference), "the reference");
}

/* A kernel may have more NaN than the reference: a convolution may multiply a weight by the zeros of the
 * padding. Integers are places, as that of the largest element, which a NaN is. */
static bool has_nan(int32_t dtype, double found, double expected) {
  return tn_dtype_is_float(dtype) ? isnan(found) || !isnan(expected) : found == expected;
}

static tn_status find_lost_nan(trial_run *s, const char *output, const char *operand) {
  tn_type type;
  const double *expected = tn_reference_output(s->reference, output, &type);
  double *found = tn_on_device_output(s->device, output, &type);
  if (found == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < tn_type_count(&type) && trial_is_undecided(s); i++)
    if (!has_nan(type.dtype, found[i], expected[i]))
      trial_judge(s, TN_VERDICT_FAILED, "%s[%lld] is %.9g where operand %s has a NaN, expected %.9g", output,
                  (long long)i, found[i], operand, expected[i]);
  tn_release(s->site->env, found);
  return TN_OK;
}

/* A NaN in an operand is in every result that depends on it, so that a training that has diverged shows it.
 */
static tn_status check_nan(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  for (int32_t k = 0; k < s->d.n_inputs && trial_is_undecided(s); k++) {
    const tn_case_input *input = &s->d.inputs[k];
    if (!can_plant(s, input)) continue;
    TN_TRY(run_with_nan(s, input));
    for (int32_t i = 0; i < program->n_outputs && trial_is_undecided(s); i++)
      TN_TRY(find_lost_nan(s, program->outputs[i].name, input->name));
  }
  return TN_OK;
}

/* ---- writes out of bounds ---- */

static tn_status check_guards(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  const char *near = "";
  int64_t broken;
  TN_TRY(tn_guard_check(tn_on_device_executor(s->device), program, &broken, &near));
  if (broken >= 0)
    trial_judge(s, TN_VERDICT_FAILED,
                "byte %lld was written, which is outside all buffers; the buffer before it is a result of %s",
                (long long)broken, near);
  return TN_OK;
}

/* ---- the trial ---- */

static void report_launches(const trial_run *s, const tn_trial_watch *watch) {
  const tn_program *program = tn_on_device_program(s->device);
  for (int32_t i = 0; watch != NULL && i < program->n_steps; i++) {
    const tn_entry *entry = program->steps[i].group->entry;
    watch->launched(watch->context, entry->item->name, entry->plugin);
  }
}

static tn_status run_whole_trial(trial_run *s, const tn_trial_watch *watch) {
  const tn_env *env = s->site->env;
  TN_TRY(make_trial_graph(s));
  if (trial_is_undecided(s)) TN_TRY(compile_trial(s));
  if (!trial_is_undecided(s)) return TN_OK;
  report_launches(s, watch);
  TN_TRY(trial_accept(s, env, tn_guard_fill(tn_on_device_executor(s->device), TN_GUARD_NUMBER),
                      "filling its memory"));
  if (trial_is_undecided(s)) TN_TRY(run_trial_once(s));
  if (trial_is_undecided(s)) TN_TRY(trial_accept(s, env, tn_reference_run(s->reference), "the reference"));
  if (trial_is_undecided(s)) TN_TRY(compare_outputs(s));
  if (trial_is_undecided(s)) TN_TRY(trial_accept(s, env, check_guards(s), "checking its memory"));
  if (!trial_is_undecided(s)) return TN_OK;
  TN_TRY(tn_on_device_is_deterministic(s->device) ? check_determinism(s) : check_unwritten_bytes(s));
  return trial_is_undecided(s) && plants_nan(s) ? check_nan(s) : TN_OK;
}

tn_status tn_trial_run(const tn_trial_site *site, const tn_trial *trial, const tn_trial_watch *watch,
                       tn_verdict *verdict) {
  trial_run s = {.site = site, .trial = trial, .verdict = verdict};
  *verdict = (tn_verdict){.what = TN_VERDICT_PASSED};
  tn_status status = run_whole_trial(&s, watch);
  tn_on_device_destroy(s.device);
  tn_reference_destroy(s.reference);
  if (s.builder != NULL) tn_builder_destroy(s.builder);
  if (s.d.graph != NULL) tn_graph_destroy(s.d.graph);
  return status;
}

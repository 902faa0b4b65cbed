/* core/conformance/trial/trial.c: a use of an op on the device and on the reference, once more for the same
 * bits, and with NaN. */
#include "core/conformance/trial/trial_run.h"

#include <math.h>
#include <string.h>

#include "core/conformance/trial/guard.h"

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

/* Overwrites the last results first, so that a replay that computes nothing gives other bits. */
static tn_status repeat_run(trial_run *s, int32_t pattern) {
  tn_status status = tn_guard_fill(tn_on_device_executor(s->device), pattern);
  TN_TRY(trial_accept(s, s->site->env, status, "filling its memory"));
  return trial_is_undecided(s) ? trial_run_once(s) : TN_OK;
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
  return trial_is_undecided(s) ? trial_compare(s) : TN_OK;
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
  TN_TRY(trial_fill_inputs(s));
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
  TN_TRY(trial_make_graph(s));
  if (trial_is_undecided(s)) TN_TRY(trial_compile(s));
  if (!trial_is_undecided(s)) return TN_OK;
  report_launches(s, watch);
  TN_TRY(trial_accept(s, env, tn_guard_fill(tn_on_device_executor(s->device), TN_GUARD_NUMBER),
                      "filling its memory"));
  if (trial_is_undecided(s)) TN_TRY(trial_run_once(s));
  if (trial_is_undecided(s)) TN_TRY(trial_accept(s, env, tn_reference_run(s->reference), "the reference"));
  if (trial_is_undecided(s)) TN_TRY(trial_compare(s));
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

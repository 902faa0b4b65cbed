/* core/conformance/trial/trial.c: a use is drawn, computed twice over, and compared. */
#include "core/conformance/trial/trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/conformance/trial/gradients.h"
#include "core/conformance/trial/guard.h"
#include "core/conformance/trial/on_device.h"
#include "core/conformance/reference/reference.h"

enum { LARGE = 2, AGAIN = 2 };

/* Kinds of numbers that are drawn for one trial, each from a stream of its own. */
enum { STREAM_SHAPES = 1, STREAM_VALUES = 2 };

typedef struct tn_scene {
  const tn_trial_site *site;
  const tn_trial *trial;
  tn_verdict *verdict;
  tn_draw d;
  tn_builder *builder;
  tn_reference *reference;
  tn_on_device *device;
  double tolerance;
} tn_scene;

static void judge(tn_scene *s, int32_t what, const char *format, ...) TN_PRINTF(3, 4);
static void judge(tn_scene *s, int32_t what, const char *format, ...) {
  va_list args;
  s->verdict->what = what;
  va_start(args, format);
  vsnprintf(s->verdict->text, sizeof s->verdict->text, format, args);
  va_end(args);
}

static bool undecided(const tn_scene *s) { return s->verdict->what == TN_VERDICT_PASSED; }

/* What the device, a kernel or an op's own rules did wrong is a verdict; memory and our own faults are not.
 */
static tn_status settle(tn_scene *s, const void *handle, tn_status status, const char *doing) {
  if (status == TN_OK || status == TN_ENOMEM) return status;
  int32_t what = status == TN_EUNSUPPORTED ? TN_VERDICT_UNSUPPORTED : TN_VERDICT_FAILED;
  judge(s, what, "%s: %s", status == TN_EDEVICE ? "the device broke" : doing, tn_error_text(handle));
  return TN_OK;
}

/* ---- both sides ---- */

static tn_status add_gradients(tn_scene *s, tn_val first) {
  const tn_gnode *node = tn_graph_maker(s->d.graph, first);
  tn_val results[TN_REFERENCE_RESULTS], wrt[TN_CASE_INPUTS];
  int32_t n_wrt = 0;
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = first + (tn_val)i;
    results[i] = tn_dtype_is_float(tn_graph_type(s->d.graph, v)->dtype) ? v : 0;
  }
  for (int32_t i = 0; i < s->d.n_inputs; i++)
    if (tn_dtype_is_float(s->d.inputs[i].type.dtype))
      wrt[n_wrt++] = tn_graph_input(s->d.graph, s->d.inputs[i].name, &s->d.inputs[i].type);
  return tn_gradients_add(s->d.graph, results, node->n_out, wrt, n_wrt);
}

static bool is_noise(const tn_trial *t) {
  return t->c->wide_gradient && t->dtype != TN_F32 && t->dtype != TN_F64;
}

static bool differentiable(const tn_graph *g, tn_val first) {
  const tn_gnode *node = tn_graph_maker(g, first);
  return (node->op->flags & TN_OP_NONDIFF) == 0 && node->n_in > 0 &&
         tn_dtype_is_float(tn_graph_type(g, first)->dtype);
}

static tn_status add_outputs(tn_scene *s, tn_val first) {
  int32_t n = tn_graph_maker(s->d.graph, first)->n_out;
  for (int32_t i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "y.%d", i);
    tn_val y = s->d.dying ? tn_op1(s->d.b, "copy", first + (tn_val)i) : first + (tn_val)i;
    TN_TRY(tn_graph_output(s->d.graph, name, y));
  }
  for (int32_t i = 0; i < s->d.n_leaving; i++) {
    char name[24];
    snprintf(name, sizeof name, "inner.%d", i);
    TN_TRY(tn_graph_output(s->d.graph, name, s->d.leaving[i]));
  }
  return s->trial->gradient ? add_gradients(s, first) : TN_OK;
}

static tn_status make_graph(tn_scene *s) {
  const tn_trial_site *site = s->site;
  const tn_trial *t = s->trial;
  s->d = (tn_draw){.rng = tn_rng_at((uint64_t)t->draw, STREAM_SHAPES),
                   .dtype = t->dtype,
                   .large = t->draw % TN_TRIAL_DRAWS < LARGE,
                   .dying = t->draw % 2 == 1};
  TN_TRY(tn_graph_create(site->env, site->ops, &s->d.graph));
  TN_TRY(tn_builder_create(s->d.graph, &s->builder));
  s->d.b = tn_builder_handle(s->builder);
  tn_val first = t->c->emit(&s->d, t->c);
  TN_TRY(settle(s, s->d.b, tn_build_status(s->d.b), "emitting it"));
  if (!undecided(s)) return TN_OK;
  if (t->gradient && (t->c->forward_only || is_noise(t) || !differentiable(s->d.graph, first))) {
    judge(s, TN_VERDICT_NOTHING, "there is no gradient");
    return TN_OK;
  }
  tn_status status = add_outputs(s, first);
  s->tolerance = tn_trial_tolerance(s->d.graph, t->dtype);
  return settle(s, site->env, status, "its gradient");
}

static tn_status compile(tn_scene *s) {
  const tn_trial_site *site = s->site;
  TN_TRY(settle(s, site->env, tn_reference_create(s->d.graph, &s->reference), "the reference"));
  if (!undecided(s)) return TN_OK;
  tn_builder_destroy(s->builder);
  s->builder = NULL;
  tn_graph *graph = s->d.graph;
  s->d.graph = NULL;
  tn_status status = tn_on_device_create(site->env, site->registry, site->device, graph, &s->device);
  return settle(s, site->env, status, "compiling it");
}

static tn_status fill_input(tn_scene *s, const tn_case_input *input, tn_rng *rng) {
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

/* The op's own operands are filled as the case says, cotangents with anything. The same every time. */
static tn_status fill_inputs(tn_scene *s) {
  const tn_program *program = tn_on_device_program(s->device);
  tn_rng rng = tn_rng_at((uint64_t)s->trial->draw, STREAM_VALUES);
  for (int32_t i = 0; i < s->d.n_inputs; i++) TN_TRY(fill_input(s, &s->d.inputs[i], &rng));
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *b = &program->inputs[i];
    tn_case_input dout = {.type = b->type, .fill = TN_FILL_ANY};
    snprintf(dout.name, sizeof dout.name, "%s", b->name);
    if (strncmp(b->name, "dout.", 5) == 0) TN_TRY(fill_input(s, &dout, &rng));
  }
  return TN_OK;
}

/* ---- comparison with the reference ---- */

static double largest_of(const tn_type *type, const double *v) {
  double largest = 1;
  for (int64_t i = 0; i < tn_type_count(type); i++)
    if (isfinite(v[i])) largest = fmax(largest, fabs(v[i]));
  return largest;
}

static bool close_enough(double found, double expected, double allowed) {
  return found == expected || (found != found && expected != expected) || fabs(found - expected) <= allowed;
}

static tn_status compare(tn_scene *s, const char *output) {
  tn_type type;
  const double *expected = tn_reference_output(s->reference, output, &type);
  double *found = tn_on_device_output(s->device, output, &type);
  if (found == NULL) return TN_ENOMEM;
  /* Whatever its own type, a result is no better than the arithmetic of T. */
  double allowed = tn_dtype_is_float(type.dtype) ? s->tolerance * largest_of(&type, expected) : 0;
  for (int64_t i = 0; i < tn_type_count(&type) && undecided(s); i++)
    if (!close_enough(found[i], expected[i], allowed))
      judge(s, TN_VERDICT_FAILED, "%s[%lld] is %.9g, the reference has %.9g; at most %.2g apart is rounding",
            output, (long long)i, found[i], expected[i], allowed);
  tn_release(s->site->env, found);
  return TN_OK;
}

static tn_status compare_all(tn_scene *s) {
  const tn_program *program = tn_on_device_program(s->device);
  for (int32_t i = 0; i < program->n_outputs && undecided(s); i++)
    if (strcmp(program->outputs[i].name, "loss") != 0) TN_TRY(compare(s, program->outputs[i].name));
  return TN_OK;
}

/* ---- the same bits again ---- */

/* A sum of the bits of all outputs. */
static tn_status hash_outputs(tn_scene *s, uint64_t *hash) {
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

static bool deterministic(const tn_program *program) {
  for (int32_t i = 0; i < program->n_steps; i++)
    if (!program->steps[i].group->choice.deterministic) return false;
  return true;
}

static tn_status run_once(tn_scene *s) {
  TN_TRY(fill_inputs(s));
  return settle(s, s->site->env, tn_on_device_run(s->device), "running it");
}

/* Over what the last run has left, or a replay that does nothing would give the same bits. */
static tn_status run_anew(tn_scene *s) {
  tn_status status = tn_guard_fill(tn_on_device_executor(s->device));
  TN_TRY(settle(s, s->site->env, status, "filling its memory"));
  return undecided(s) ? run_once(s) : TN_OK;
}

static tn_status run_again(tn_scene *s) {
  uint64_t first, now;
  if (!deterministic(tn_on_device_program(s->device))) return TN_OK;
  TN_TRY(hash_outputs(s, &first));
  s->verdict->bits = first;
  for (int32_t i = 0; i < AGAIN && undecided(s); i++) {
    TN_TRY(run_anew(s));
    if (!undecided(s)) return TN_OK;
    TN_TRY(hash_outputs(s, &now));
    if (now != first)
      judge(s, TN_VERDICT_FAILED,
            "run %d gives other bits than the first, though every kernel says it is "
            "deterministic",
            i + 2);
  }
  return TN_OK;
}

/* ---- what nobody may write ---- */

static tn_status check_guards(tn_scene *s) {
  const tn_program *program = tn_on_device_program(s->device);
  const char *near = "";
  int64_t broken;
  TN_TRY(tn_guard_check(tn_on_device_executor(s->device), program, &broken, &near));
  if (broken >= 0)
    judge(s, TN_VERDICT_FAILED,
          "byte %lld was written, which belongs to nobody; in front of it "
          "lies a result of %s",
          (long long)broken, near);
  return TN_OK;
}

/* ---- the whole ---- */

static void report_launches(const tn_scene *s, const tn_trial_watch *watch) {
  const tn_program *program = tn_on_device_program(s->device);
  for (int32_t i = 0; watch != NULL && i < program->n_steps; i++) {
    const tn_entry *entry = program->steps[i].group->entry;
    watch->launched(watch->context, entry->item->name, entry->plugin);
  }
}

static tn_status run_scene(tn_scene *s, const tn_trial_watch *watch) {
  const tn_env *env = s->site->env;
  TN_TRY(make_graph(s));
  if (undecided(s)) TN_TRY(compile(s));
  if (!undecided(s)) return TN_OK;
  report_launches(s, watch);
  TN_TRY(settle(s, env, tn_guard_fill(tn_on_device_executor(s->device)), "filling its memory"));
  if (undecided(s)) TN_TRY(run_once(s));
  if (undecided(s)) TN_TRY(settle(s, env, tn_reference_run(s->reference), "the reference"));
  if (undecided(s)) TN_TRY(compare_all(s));
  if (undecided(s)) TN_TRY(settle(s, env, check_guards(s), "looking at its memory"));
  return undecided(s) ? run_again(s) : TN_OK;
}

tn_status tn_trial_run(const tn_trial_site *site, const tn_trial *trial, const tn_trial_watch *watch,
                       tn_verdict *verdict) {
  tn_scene s = {.site = site, .trial = trial, .verdict = verdict};
  *verdict = (tn_verdict){.what = TN_VERDICT_PASSED};
  tn_status status = run_scene(&s, watch);
  tn_on_device_destroy(s.device);
  tn_reference_destroy(s.reference);
  if (s.builder != NULL) tn_builder_destroy(s.builder);
  if (s.d.graph != NULL) tn_graph_destroy(s.d.graph);
  return status;
}

/* core/conformance/trial/trial_run.c: draws the use of a trial, and computes it on the device. */
#include "core/conformance/trial/trial_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/conformance/trial/gradients.h"

enum { LARGE_DRAWS = 2 };

void trial_judge(trial_run *s, int32_t what, const char *format, ...) TN_PRINTF(3, 4);
void trial_judge(trial_run *s, int32_t what, const char *format, ...) {
  va_list args;
  s->verdict->what = what;
  va_start(args, format);
  vsnprintf(s->verdict->text, sizeof s->verdict->text, format, args);
  va_end(args);
}

bool trial_is_undecided(const trial_run *s) { return s->verdict->what == TN_VERDICT_PASSED; }

tn_status trial_accept(trial_run *s, const void *handle, tn_status status, const char *doing) {
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

int32_t trial_style(const tn_trial *t) {
  int64_t draw = t->draw % TN_TRIAL_DRAWS;
  if (draw == 4) return TN_STYLE_WIDE;
  if (draw == 5 || draw == 6) return t->gradient ? TN_STYLE_WIDE : TN_STYLE_SPECIAL;
  return TN_STYLE_ORDINARY;
}

tn_status trial_make_graph(trial_run *s) {
  const tn_trial_site *site = s->site;
  const tn_trial *t = s->trial;
  s->d = (tn_draw){.rng = tn_rng_at((uint64_t)t->draw, TN_DRAW_SHAPES),
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

tn_status trial_compile(trial_run *s) {
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

tn_status trial_fill_inputs(trial_run *s) {
  const tn_program *program = tn_on_device_program(s->device);
  tn_rng rng = tn_rng_at((uint64_t)s->trial->draw, TN_DRAW_VALUES);
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

/* ---- a run ---- */

tn_status trial_run_once(trial_run *s) {
  TN_TRY(trial_fill_inputs(s));
  return trial_accept(s, s->site->env, tn_on_device_run(s->device), "running it");
}

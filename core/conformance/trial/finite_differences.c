/* core/conformance/trial/finite_differences.c: compares elements of a gradient with central differences of
 * the loss. */
#include "core/conformance/trial/finite_differences.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/conformance/trial/gradients.h"
#include "core/conformance/reference/reference.h"
#include "core/graph/input_state.h"

enum { PROBES = 12 };
static const double STEP = 1e-5, TOLERANCE = 2e-6;
/* The distance of operands from the bounds of their domain, so that x + h is inside, too. */
static const double MARGIN = 1e-2;
/* The second step, and the difference of the one-sided slopes from which on a point may be a kink. */
static const double SMALL_STEP = 1e-5 / 16, BENT = 1e-3;

typedef struct difference_trial {
  const tn_trial_site *site;
  const tn_trial *trial;
  tn_verdict *verdict;
  tn_draw d;
  tn_builder *builder;
  tn_reference *reference;
  double loss;                      /* at the drawn point */
  double *gradient[TN_CASE_INPUTS]; /* copies, since further runs overwrite them; NULL: zero */
} difference_trial;

/* ---- the graph ---- */

static int32_t choose_loss_results(difference_trial *p, tn_val first, tn_val *results) {
  int32_t n = tn_draw_results(&p->d, first, results), left = 0;
  for (int32_t i = 0; i < n; i++) {
    if (!tn_dtype_is_float(tn_graph_type(p->d.graph, results[i])->dtype)) results[i] = 0;
    left += results[i] != 0;
  }
  for (int32_t i = 0; i < n && left > 1; i++)
    if (results[i] != 0 && tn_draw_between(&p->d, 0, 2) == 0) {
      results[i] = 0;
      left--;
    }
  return left > 0 ? n : 0;
}

static int32_t float_inputs(difference_trial *p, tn_val *wrt) {
  int32_t n = 0;
  for (int32_t i = 0; i < p->d.n_inputs; i++)
    if (tn_dtype_is_float(p->d.inputs[i].type.dtype))
      wrt[n++] = tn_graph_input(p->d.graph, p->d.inputs[i].name, &p->d.inputs[i].type);
  return n;
}

static tn_status verdict_no_gradient(difference_trial *p) {
  p->verdict->what = TN_VERDICT_NOTHING;
  return TN_OK;
}

static tn_status difference_fail(difference_trial *p, const void *handle, tn_status status) {
  if (status == TN_OK || status == TN_ENOMEM) return status;
  p->verdict->what = status == TN_EUNSUPPORTED ? TN_VERDICT_UNSUPPORTED : TN_VERDICT_FAILED;
  snprintf(p->verdict->text, sizeof p->verdict->text, "%s", tn_error_text(handle));
  return TN_OK;
}

static bool is_undecided(const difference_trial *p) { return p->verdict->what == TN_VERDICT_PASSED; }

static tn_status add_difference_gradients(difference_trial *p, tn_val first) {
  tn_val results[TN_REFERENCE_RESULTS], wrt[TN_CASE_INPUTS];
  bool differentiable = tn_draw_is_differentiable(&p->d, first);
  int32_t n_results = choose_loss_results(p, first, results), n_wrt = float_inputs(p, wrt);
  if (n_results == 0 || n_wrt == 0 || !differentiable) return verdict_no_gradient(p);
  tn_status status = tn_gradients_add(p->d.graph, results, n_results, wrt, n_wrt);
  if (status == TN_OK) status = tn_graph_verify(p->d.graph);
  if (status == TN_OK) status = tn_reference_create(p->d.graph, &p->reference);
  return difference_fail(p, p->site->env, status);
}

static tn_status make_difference_graph(difference_trial *p) {
  const tn_trial *t = p->trial;
  p->d = (tn_draw){.rng = tn_rng_at((uint64_t)t->draw, TN_DRAW_SHAPES),
                   .dtype = t->dtype,
                   .draw = t->draw,
                   .exact = true,
                   .settings = p->site->settings,
                   .style = t->draw % 4 == 3 ? TN_STYLE_WIDE : TN_STYLE_ORDINARY};
  TN_TRY(tn_graph_create(p->site->env, p->site->ops, &p->d.graph));
  TN_TRY(tn_builder_create(p->d.graph, &p->builder));
  p->d.b = tn_builder_handle(p->builder);
  tn_val first = t->c->emit(&p->d, t->c);
  TN_TRY(difference_fail(p, p->d.b, tn_build_status(p->d.b)));
  return is_undecided(p) ? add_difference_gradients(p, first) : TN_OK;
}

/* ---- values ---- */

static void fill_difference_inputs(difference_trial *p) {
  tn_rng rng = tn_rng_at((uint64_t)p->trial->draw, TN_DRAW_VALUES);
  for (int32_t i = 0; i < p->d.n_inputs; i++) {
    double *v = tn_reference_input(p->reference, p->d.inputs[i].name);
    p->d.inputs[i].margin = MARGIN;
    if (v != NULL) tn_draw_values(&rng, &p->d.inputs[i], v);
  }
  for (size_t i = 0; i < p->d.graph->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(p->d.graph, p->d.graph->inputs.v[i])->attributes;
    tn_case_input dout = {.type = a->type, .fill = TN_FILL_ANY};
    double *v = strncmp(a->name, "dout.", 5) == 0 ? tn_reference_input(p->reference, a->name) : NULL;
    if (v != NULL) tn_draw_values(&rng, &dout, v);
  }
}

static tn_status copy_gradient(difference_trial *p, int32_t input, int32_t wrt) {
  char name[16];
  tn_type type;
  snprintf(name, sizeof name, "grad.%d", wrt);
  const double *g = tn_reference_output(p->reference, name, &type);
  if (g == NULL) return TN_OK;
  size_t bytes = (size_t)tn_type_count(&type) * sizeof *g;
  p->gradient[input] = tn_alloc(p->site->env, bytes + 1);
  if (p->gradient[input] == NULL) return TN_ENOMEM;
  memcpy(p->gradient[input], g, bytes);
  return TN_OK;
}

static tn_status copy_gradients(difference_trial *p) {
  int32_t wrt = 0;
  for (int32_t i = 0; i < p->d.n_inputs; i++)
    if (tn_dtype_is_float(p->d.inputs[i].type.dtype)) TN_TRY(copy_gradient(p, i, wrt++));
  return TN_OK;
}

/* ---- differences ---- */

static tn_status loss_with(difference_trial *p, double *element, double value, double *loss) {
  double before = *element;
  *element = value;
  tn_status status = tn_reference_run(p->reference);
  *element = before;
  *loss = tn_reference_output(p->reference, "loss", NULL)[0];
  return status;
}

/* The slopes of the loss on both sides of element i of an operand. */
typedef struct slopes {
  double left, right, central, scale;
} slopes;

static tn_status find_slopes(difference_trial *p, double *x, double step, slopes *s) {
  double up, down, at = *x;
  TN_TRY(loss_with(p, x, at + step, &up));
  TN_TRY(loss_with(p, x, at - step, &down));
  *s = (slopes){
      .left = (p->loss - down) / step, .right = (up - p->loss) / step, .central = (up - down) / (2 * step)};
  s->scale = 1 + fabs(s->central) + fabs(up) * 1e-2;
  return TN_OK;
}

/* Whether the differences go to the gradient as the step gets smaller: where the slope bends, their error is
 * as large as the step. A wrong gradient stays as far away as it was. */
static bool is_limit_of_slopes(const slopes *wide, const slopes *near, double analytic) {
  double far = fabs(wide->central - analytic), left = fabs(near->central - analytic);
  return left <= TOLERANCE * near->scale || left <= far / 8;
}

/* At a kink the two slopes differ however small the step, and any value between them is a gradient. */
static bool is_gradient_at_kink(const slopes *wide, const slopes *near, double analytic) {
  double bent = fabs(wide->right - wide->left), allowed = TOLERANCE * near->scale;
  return bent > BENT * wide->scale && fabs(near->right - near->left) > bent / 2 &&
         analytic >= fmin(near->left, near->right) - allowed &&
         analytic <= fmax(near->left, near->right) + allowed;
}

static void judge_outside_domain(difference_trial *p, int32_t input, double at) {
  p->verdict->what = TN_VERDICT_FAILED;
  snprintf(
      p->verdict->text, sizeof p->verdict->text,
      "the results are not finite where operand %s has values such as %.6g; if that is outside the domain, "
      "state it in tn_op.domain, as in \"x > 0\"",
      p->d.inputs[input].name, at);
}

static tn_status compare_element(difference_trial *p, int32_t input, double *x, int64_t i) {
  double analytic = p->gradient[input] == NULL ? 0 : p->gradient[input][i];
  slopes wide, near;
  TN_TRY(find_slopes(p, &x[i], STEP, &wide));
  if (fabs(wide.central - analytic) <= TOLERANCE * wide.scale) return TN_OK;
  TN_TRY(find_slopes(p, &x[i], SMALL_STEP, &near));
  if (is_limit_of_slopes(&wide, &near, analytic) || is_gradient_at_kink(&wide, &near, analytic)) return TN_OK;
  if (!isfinite(wide.central)) {
    judge_outside_domain(p, input, x[i]);
    return TN_OK;
  }
  p->verdict->what = TN_VERDICT_FAILED;
  snprintf(p->verdict->text, sizeof p->verdict->text,
           "the gradient rule gives d loss / d %s[%lld] = %.10g at %.10g, finite differences give %.10g",
           p->d.inputs[input].name, (long long)i, analytic, x[i], wide.central);
  return TN_OK;
}

/* Compares up to PROBES elements of the gradient of one input. */
static tn_status compare_input(difference_trial *p, int32_t input) {
  const tn_case_input *in = &p->d.inputs[input];
  double *x = tn_reference_input(p->reference, in->name);
  int64_t count = tn_type_count(&in->type), step = count / PROBES + 1;
  if (x == NULL || !tn_dtype_is_float(in->type.dtype)) return TN_OK;
  for (int64_t i = tn_draw_between(&p->d, 0, step - 1); i < count && is_undecided(p); i += step)
    TN_TRY(compare_element(p, input, x, i));
  return TN_OK;
}

static tn_status run_differences(difference_trial *p) {
  if (p->trial->c->straight_through) return verdict_no_gradient(p);
  TN_TRY(make_difference_graph(p));
  if (!is_undecided(p)) return TN_OK;
  fill_difference_inputs(p);
  TN_TRY(difference_fail(p, p->site->env, tn_reference_run(p->reference)));
  if (!is_undecided(p)) return TN_OK;
  p->loss = tn_reference_output(p->reference, "loss", NULL)[0];
  TN_TRY(copy_gradients(p));
  for (int32_t i = 0; i < p->d.n_inputs && is_undecided(p); i++) TN_TRY(compare_input(p, i));
  return TN_OK;
}

tn_status tn_finite_differences_run(const tn_trial_site *site, const tn_trial *trial, tn_verdict *verdict) {
  difference_trial p = {.site = site, .trial = trial, .verdict = verdict};
  *verdict = (tn_verdict){.what = TN_VERDICT_PASSED};
  tn_status status = run_differences(&p);
  for (int32_t i = 0; i < TN_CASE_INPUTS; i++) tn_release(site->env, p.gradient[i]);
  tn_reference_destroy(p.reference);
  if (p.builder != NULL) tn_builder_destroy(p.builder);
  if (p.d.graph != NULL) tn_graph_destroy(p.d.graph);
  return status;
}

/* Every gradient rule against differences of the op's own values, in f64 on the reference:
 * (f(x + h) - f(x - h)) / 2h, whose error is of the order h^2 + 1e-16 / h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/special.h"

#include "core/conformance/cases.h"
#include "core/conformance/gradients.h"
#include "core/conformance/reference.h"
#include "fixture.h"

enum { DRAWS = 60, PROBES = 12 };
static const double STEP = 1e-5, TOLERANCE = 2e-6;

/* One drawn use of an op, with its gradients. */
typedef struct trial {
  const tn_case *c;
  uint64_t seed;
  tn_draw d;
  tn_builder *builder;
  tn_reference *r;
} trial;

static void check(const trial *t, const void *handle, tn_status status, const char *doing) {
  if (status != TN_OK)
    fail_msg("%s, draw %llu: %s: %s", t->c->op, (unsigned long long)t->seed, doing, tn_error_text(handle));
}

/* The float results, some left out at times, so that rules meet results without a gradient. */
static int32_t choose_results(trial *t, tn_val first, tn_val *results) {
  int32_t n = tn_graph_maker(t->d.graph, first)->n_out, left = 0;
  for (int32_t i = 0; i < n; i++) {
    tn_val v = first + (tn_val)i;
    results[i] = tn_dtype_is_float(tn_graph_type(t->d.graph, v)->dtype) ? v : 0;
    left += results[i] != 0;
  }
  for (int32_t i = 0; i < n && left > 1; i++)
    if (results[i] != 0 && tn_draw_between(&t->d, 0, 2) == 0) {
      results[i] = 0;
      left--;
    }
  return left > 0 ? n : 0;
}

static int32_t float_inputs(trial *t, tn_val *wrt) {
  int32_t n = 0;
  for (int32_t i = 0; i < t->d.n_inputs; i++)
    if (tn_dtype_is_float(t->d.inputs[i].type.dtype))
      wrt[n++] = tn_graph_input(t->d.graph, t->d.inputs[i].name, &t->d.inputs[i].type);
  return n;
}

/* Makes the graph; false where there is nothing to differentiate. */
static bool trial_open(trial *t, fixture *f) {
  tn_val results[TN_REFERENCE_RESULTS], wrt[TN_CASE_INPUTS];
  t->d = (tn_draw){.rng = tn_rng_at(t->seed, 1), .dtype = TN_F64};
  check(t, &f->env, tn_graph_create(&f->env, f->ops, &t->d.graph), "graph");
  check(t, &f->env, tn_builder_create(t->d.graph, &t->builder), "builder");
  t->d.b = tn_builder_handle(t->builder);
  tn_val first = t->c->emit(&t->d, t->c);
  check(t, t->d.b, tn_build_status(t->d.b), "emit");
  assert_string_equal(tn_graph_maker(t->d.graph, first)->op->item.name, t->c->op);
  int32_t n_results = choose_results(t, first, results), n_wrt = float_inputs(t, wrt);
  bool differentiable = (tn_graph_maker(t->d.graph, first)->op->flags & TN_OP_NONDIFF) == 0;
  if (n_results == 0 || n_wrt == 0 || !differentiable) return false;
  check(t, &f->env, tn_gradients_add(t->d.graph, results, n_results, wrt, n_wrt), "gradient");
  check(t, &f->env, tn_graph_verify(t->d.graph), "verify");
  check(t, &f->env, tn_reference_create(t->d.graph, &t->r), "reference");
  return true;
}

static void trial_close(trial *t) {
  tn_reference_destroy(t->r);
  tn_builder_destroy(t->builder);
  tn_graph_destroy(t->d.graph);
}

static void fill(trial *t) {
  tn_rng rng = tn_rng_at(t->seed, 2);
  for (int32_t i = 0; i < t->d.n_inputs; i++) {
    double *v = tn_reference_input(t->r, t->d.inputs[i].name);
    if (v != NULL) tn_draw_values(&rng, &t->d.inputs[i], v);
  }
  for (size_t i = 0; i < t->d.graph->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(t->d.graph, t->d.graph->inputs.v[i])->attributes;
    tn_case_input dout = {.type = a->type, .fill = TN_FILL_ANY};
    double *v = strncmp(a->name, "dout.", 5) == 0 ? tn_reference_input(t->r, a->name) : NULL;
    if (v != NULL) tn_draw_values(&rng, &dout, v);
  }
}

static double loss_at(trial *t, double *place, double value) {
  double before = *place;
  *place = value;
  check(t, t->d.graph->env, tn_reference_run(t->r), "run");
  *place = before;
  return tn_reference_output(t->r, "loss", NULL)[0];
}

/* Compares up to PROBES elements of the gradient of one input. */
static void probe(trial *t, const tn_case_input *input, const double *gradient) {
  double *x = tn_reference_input(t->r, input->name);
  int64_t count = tn_type_count(&input->type), step = count / PROBES + 1;
  for (int64_t i = tn_draw_between(&t->d, 0, step - 1); i < count && x != NULL; i += step) {
    double at = x[i], up = loss_at(t, &x[i], at + STEP), down = loss_at(t, &x[i], at - STEP);
    double numeric = (up - down) / (2 * STEP), analytic = gradient == NULL ? 0 : gradient[i];
    double scale = 1 + fabs(numeric) + fabs(up) * 1e-2;
    if (!(fabs(numeric - analytic) <= TOLERANCE * scale))
      fail_msg("%s, draw %llu: d loss / d %s[%lld] is %.10g, differences give %.10g", t->c->op,
               (unsigned long long)t->seed, input->name, (long long)i, analytic, numeric);
  }
}

/* The gradients, out of the way of further runs. */
static double *copy_of(trial *t, int32_t wrt) {
  char name[16];
  tn_type type;
  snprintf(name, sizeof name, "grad.%d", wrt);
  const double *g = tn_reference_output(t->r, name, &type);
  if (g == NULL) return NULL;
  size_t bytes = (size_t)tn_type_count(&type) * sizeof *g;
  double *copy = tn_alloc(t->d.graph->env, bytes + 1);
  assert_non_null(copy);
  memcpy(copy, g, bytes);
  return copy;
}

static void run_trial(fixture *f, const tn_case *c, uint64_t seed) {
  trial t = {.c = c, .seed = seed};
  if (trial_open(&t, f)) {
    double *gradients[TN_CASE_INPUTS];
    int32_t n = 0;
    fill(&t);
    check(&t, &f->env, tn_reference_run(t.r), "run");
    for (int32_t i = 0; i < t.d.n_inputs; i++)
      if (tn_dtype_is_float(t.d.inputs[i].type.dtype)) gradients[i] = copy_of(&t, n++);
    for (int32_t i = 0; i < t.d.n_inputs; i++) {
      if (!tn_dtype_is_float(t.d.inputs[i].type.dtype)) continue;
      probe(&t, &t.d.inputs[i], gradients[i]);
      tn_release(&f->env, gradients[i]);
    }
  }
  trial_close(&t);
}

static void run_family(void **state, const tn_case *cases) {
  fixture *f = *state;
  for (const tn_case *c = cases; c->op != NULL; c++)
    for (uint64_t seed = 0; seed < DRAWS; seed++) run_trial(f, c, seed);
}

static void pointwise(void **state) { run_family(state, tn_pointwise_cases); }
static void tensors_of_positions(void **state) { run_family(state, tn_fill_cases); }
static void reductions_and_pooling(void **state) { run_family(state, tn_reduce_cases); }
static void products_attention_embedding(void **state) { run_family(state, tn_product_cases); }
static void normalization(void **state) { run_family(state, tn_norm_cases); }
static void softmax_and_cross_entropy(void **state) { run_family(state, tn_loss_cases); }
static void movement(void **state) { run_family(state, tn_movement_cases); }

static int open_fixture(void **state) {
  static fixture f;
  *state = &f;
  return fixture_open(&f) == TN_OK ? 0 : -1;
}
static int close_fixture(void **state) {
  fixture_close(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pointwise),
      cmocka_unit_test(tensors_of_positions),
      cmocka_unit_test(reductions_and_pooling),
      cmocka_unit_test(products_attention_embedding),
      cmocka_unit_test(normalization),
      cmocka_unit_test(softmax_and_cross_entropy),
      cmocka_unit_test(movement),
  };
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}

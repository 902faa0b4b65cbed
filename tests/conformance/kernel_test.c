/* What a backend computes for every op and its gradient, in every dtype, against the reference: the
 * drawn uses of cases.h, compiled and run as a training step is. Arguments: the backend's name and
 * its plugin file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/conformance/cases.h"
#include "core/conformance/gradients.h"
#include "core/conformance/on_device.h"
#include "core/conformance/reference.h"
#include "fixture.h"

enum { DRAWS = 8, LARGE = 2 /* of them */ };

typedef struct stage {
  fixture f;
  tn_device *device;
} stage;

/* One drawn use on both sides. */
typedef struct trial {
  stage *s;
  const tn_case *c;
  int32_t dtype;
  uint64_t seed;
  bool with_gradient;
  tn_draw d;
  tn_builder *builder;
  tn_reference *r;
  tn_on_device *run;
} trial;

static void check(const trial *t, const void *handle, tn_status status, const char *doing) {
  if (status == TN_OK) return;
  fail_msg("%s in %s, draw %llu%s: %s: %s", t->c->op, tn_dtype_name(t->dtype), (unsigned long long)t->seed,
           t->with_gradient ? " with gradient" : "", doing, tn_error_text(handle));
}

/* ---- both sides ---- */

static tn_status add_gradients(trial *t, tn_val first) {
  const tn_gnode *node = tn_graph_maker(t->d.graph, first);
  tn_val results[TN_REFERENCE_RESULTS], wrt[TN_CASE_INPUTS];
  int32_t n_wrt = 0;
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = first + (tn_val)i;
    results[i] = tn_dtype_is_float(tn_graph_type(t->d.graph, v)->dtype) ? v : 0;
  }
  for (int32_t i = 0; i < t->d.n_inputs; i++)
    if (tn_dtype_is_float(t->d.inputs[i].type.dtype))
      wrt[n_wrt++] = tn_graph_input(t->d.graph, t->d.inputs[i].name, &t->d.inputs[i].type);
  return tn_gradients_add(t->d.graph, results, node->n_out, wrt, n_wrt);
}

static bool differentiable(const tn_graph *g, tn_val first) {
  const tn_gnode *node = tn_graph_maker(g, first);
  return (node->op->flags & TN_OP_NONDIFF) == 0 && node->n_in > 0 &&
         tn_dtype_is_float(tn_graph_type(g, first)->dtype);
}

/* False: there is no gradient to test. */
static bool make_graph(trial *t) {
  fixture *f = &t->s->f;
  t->d = (tn_draw){.rng = tn_rng_at(t->seed, 1), .dtype = t->dtype, .large = t->seed % DRAWS < LARGE};
  check(t, &f->env, tn_graph_create(&f->env, f->ops, &t->d.graph), "graph");
  check(t, &f->env, tn_builder_create(t->d.graph, &t->builder), "builder");
  t->d.b = tn_builder_handle(t->builder);
  tn_val first = t->c->emit(&t->d, t->c);
  check(t, t->d.b, tn_build_status(t->d.b), "emit");
  if (t->with_gradient && !differentiable(t->d.graph, first)) return false;
  int32_t n = tn_graph_maker(t->d.graph, first)->n_out;
  for (int32_t i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "y.%d", i);
    check(t, &f->env, tn_graph_output(t->d.graph, name, first + (tn_val)i), "output");
  }
  if (t->with_gradient) check(t, &f->env, add_gradients(t, first), "gradient");
  return true;
}

static void compile(trial *t) {
  tn_env *env = &t->s->f.env;
  check(t, env, tn_reference_create(t->d.graph, &t->r), "reference");
  tn_builder_destroy(t->builder);
  t->builder = NULL;
  tn_graph *graph = t->d.graph;
  t->d.graph = NULL;
  check(t, env, tn_on_device_create(env, t->s->f.registry, t->s->device, graph, &t->run), "compile");
}

static void fill(trial *t, const tn_case_input *input, tn_rng *rng) {
  size_t count = (size_t)tn_type_count(&input->type);
  double *values = tn_alloc(&t->s->f.env, (count + 1) * sizeof *values),
         *to = tn_reference_input(t->r, input->name);
  assert_non_null(values);
  tn_draw_values(rng, input, values);
  if (to != NULL) memcpy(to, values, count * sizeof *values);
  tn_on_device_input(t->run, input->name, values);
  tn_release(&t->s->f.env, values);
}

/* The op's own operands are filled as the case says, cotangents with anything. */
static void run(trial *t) {
  const tn_program *program = tn_on_device_program(t->run);
  tn_rng rng = tn_rng_at(t->seed, 2);
  for (int32_t i = 0; i < t->d.n_inputs; i++) fill(t, &t->d.inputs[i], &rng);
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *b = &program->inputs[i];
    tn_case_input dout = {.type = b->type, .fill = TN_FILL_ANY};
    snprintf(dout.name, sizeof dout.name, "%s", b->name);
    if (strncmp(b->name, "dout.", 5) == 0) fill(t, &dout, &rng);
  }
  check(t, &t->s->f.env, tn_reference_run(t->r), "reference");
  check(t, &t->s->f.env, tn_on_device_run(t->run), "run");
}

/* ---- comparison ---- */

/* A share of the largest element: sums round relative to what they add up. */
static double tolerance(int32_t dtype) {
  static const double of[TN_DTYPES] = {[TN_F16] = 4e-3, [TN_BF16] = 3e-2, [TN_F32] = 5e-6, [TN_F64] = 1e-12};
  return of[dtype];
}

static double allowed_for(const trial *t, const tn_type *type, const double *expected) {
  double largest = 1;
  for (int64_t i = 0; i < tn_type_count(type); i++)
    if (fabs(expected[i]) > largest && isfinite(expected[i])) largest = fabs(expected[i]);
  /* Whatever its own type, a result is no better than the arithmetic of T. */
  return tn_dtype_is_float(type->dtype) ? fmax(tolerance(type->dtype), tolerance(t->dtype)) * largest : 0;
}

static void compare(trial *t, const char *output) {
  tn_type type;
  const double *expected = tn_reference_output(t->r, output, &type);
  double *found = tn_on_device_output(t->run, output, &type), allowed = allowed_for(t, &type, expected);
  assert_non_null(found);
  for (int64_t i = 0; i < tn_type_count(&type); i++) {
    double v = found[i], e = expected[i];
    if (!(v == e || (v != v && e != e) || fabs(v - e) <= allowed))
      fail_msg("%s in %s, draw %llu: %s[%lld] is %.9g, the reference has %.9g", t->c->op,
               tn_dtype_name(t->dtype), (unsigned long long)t->seed, output, (long long)i, v, e);
  }
  tn_release(&t->s->f.env, found);
}

static void run_trial(trial *t) {
  if (make_graph(t)) {
    compile(t);
    run(t);
    const tn_program *program = tn_on_device_program(t->run);
    for (int32_t i = 0; i < program->n_outputs; i++)
      if (strcmp(program->outputs[i].name, "loss") != 0) compare(t, program->outputs[i].name);
    tn_on_device_destroy(t->run);
    tn_reference_destroy(t->r);
  }
  if (t->builder != NULL) tn_builder_destroy(t->builder);
  if (t->d.graph != NULL) tn_graph_destroy(t->d.graph);
}

static void run_family(void **state, const tn_case *cases) {
  for (const tn_case *c = cases; c->op != NULL; c++)
    for (int32_t dtype = TN_I32; dtype <= TN_F64; dtype++)
      for (uint64_t seed = 0; seed < DRAWS; seed++) {
        trial t = {.s = *state, .c = c, .dtype = dtype, .seed = seed};
        if (!tn_dtype_is_float(dtype) && c->dtypes != TN_CASE_NUMBERS) continue;
        run_trial(&t);
        trial g = {.s = *state, .c = c, .dtype = dtype, .seed = seed, .with_gradient = true};
        if (tn_dtype_is_float(dtype)) run_trial(&g);
      }
}

static void pointwise(void **state) { run_family(state, tn_pointwise_cases); }
static void tensors_of_positions(void **state) { run_family(state, tn_fill_cases); }
static void reductions_and_pooling(void **state) { run_family(state, tn_reduce_cases); }
static void products_attention_embedding(void **state) { run_family(state, tn_product_cases); }
static void normalization(void **state) { run_family(state, tn_norm_cases); }
static void softmax_and_cross_entropy(void **state) { run_family(state, tn_loss_cases); }
static void movement(void **state) { run_family(state, tn_movement_cases); }
static void updates(void **state) { run_family(state, tn_update_cases); }

/* ---- the backend ---- */

static const char *backend_name, *backend_file;

static tn_status open_stage(stage *s) {
  TN_TRY(fixture_open(&s->f));
  return fixture_device(&s->f, backend_name, backend_file, &s->device);
}

static int set_up(void **state) {
  static stage s;
  *state = &s;
  if (open_stage(&s) == TN_OK) return 0;
  fprintf(stderr, "%s\n", tn_error_text(&s.f.env));
  return -1;
}

static int tear_down(void **state) {
  stage *s = *state;
  tn_device_destroy(s->device);
  fixture_close(&s->f);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pointwise),
      cmocka_unit_test(tensors_of_positions),
      cmocka_unit_test(reductions_and_pooling),
      cmocka_unit_test(products_attention_embedding),
      cmocka_unit_test(normalization),
      cmocka_unit_test(softmax_and_cross_entropy),
      cmocka_unit_test(movement),
      cmocka_unit_test(updates),
  };
  if (argc != 3) {
    fprintf(stderr, "usage: %s BACKEND PLUGIN\n", argv[0]);
    return 2;
  }
  backend_name = argv[1];
  backend_file = argv[2];
  return cmocka_run_group_tests_name(backend_name, tests, set_up, tear_down);
}

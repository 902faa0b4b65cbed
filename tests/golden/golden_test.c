/* Values and gradients against PyTorch's, within the tolerances of its assert_close. Decompositions and
 * gradient rules run on the reference interpreter. Arguments: files written by make_goldens.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/special.h"

#include "../conformance/fixture.h"
#include "../conformance/reference.h"
#include "golden_file.h"

enum { MOST = 16 };

/* One golden case as it is being checked. */
typedef struct trial {
  fixture *f;
  const tn_safetensors *file;
  golden_case c;
  tn_graph *graph;
  tn_val inputs[MOST], results[MOST]; /* results: 0 where PyTorch had no gradient */
  const char *input_names[MOST], *result_names[MOST];
  int32_t n_inputs, n_results, n_wrt;
  tn_val wrt[MOST];
  const char *wrt_names[MOST];
  reference *r;
} trial;

static void check(const trial *t, tn_status status) {
  if (status != TN_OK) fail_msg("%s: %s\n%s", t->c.name, tn_error_text(&t->f->env), t->c.graph);
}

static bool has(const trial *t, const char *kind, const char *tensor) {
  tn_type type;
  double *v = golden_tensor(t->file, &t->f->env, t->c.name, kind, tensor, &type);
  tn_release(&t->f->env, v);
  return v != NULL;
}

static void list_values(trial *t) {
  tn_graph *g = t->graph;
  for (size_t i = 0; i < g->inputs.n && i < MOST; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    t->inputs[t->n_inputs] = g->inputs.v[i];
    t->input_names[t->n_inputs++] = a->name;
    if (!has(t, "grad", a->name)) continue;
    t->wrt[t->n_wrt] = g->inputs.v[i];
    t->wrt_names[t->n_wrt++] = a->name;
  }
  for (size_t i = 0; i < g->outputs.n && i < MOST; i++) {
    t->result_names[t->n_results] = g->outputs.v[i].name;
    t->results[t->n_results++] = has(t, "dout", g->outputs.v[i].name) ? g->outputs.v[i].value : 0;
  }
}

static void fill(trial *t, const char *input, const char *kind, const char *tensor) {
  tn_type type;
  double *to = reference_input(t->r, input),
         *from = golden_tensor(t->file, &t->f->env, t->c.name, kind, tensor, &type);
  if (to != NULL && from != NULL) memcpy(to, from, (size_t)tn_type_count(&type) * sizeof *to);
  if (to != NULL && from == NULL) fail_msg("%s: no tensor for input %s", t->c.name, input);
  tn_release(&t->f->env, from);
}

/* torch.testing.assert_close's defaults: relative, then absolute. */
static double allowed(int32_t dtype, double expected) {
  static const double tolerance[TN_DTYPES][2] = {[TN_F16] = {1e-3, 1e-5},
                                                 [TN_BF16] = {1.6e-2, 1e-5},
                                                 [TN_F32] = {1.3e-6, 1e-5},
                                                 [TN_F64] = {1e-7, 1e-7}};
  return tolerance[dtype][0] * fabs(expected) + tolerance[dtype][1];
}

static void compare(trial *t, const char *output, const char *kind, const char *tensor) {
  tn_type type, made;
  double *expected = golden_tensor(t->file, &t->f->env, t->c.name, kind, tensor, &type);
  const double *found = reference_output(t->r, output, &made);
  assert_non_null(expected);
  if (found != NULL && !tn_type_equal(&type, &made))
    fail_msg("%s: %s %s has another type than PyTorch's", t->c.name, kind, tensor);
  for (int64_t i = 0; i < tn_type_count(&type); i++) {
    double v = found == NULL ? 0 : reference_round(type.dtype, found[i]), e = expected[i];
    bool same = v == e || (v != v && e != e) || fabs(v - e) <= allowed(type.dtype, e);
    if (!same)
      fail_msg("%s: %s %s [%lld] is %.9g, PyTorch has %.9g\n%s", t->c.name, kind, tensor, (long long)i, v, e,
               t->c.graph);
  }
  tn_release(&t->f->env, expected);
}

static void run_case(fixture *f, const tn_safetensors *file, golden_case c) {
  trial t = {.f = f, .file = file, .c = c};
  char name[32];
  check(&t, tn_graph_parse(&f->env, f->ops, c.graph, c.name, &t.graph));
  list_values(&t);
  if (t.n_wrt > 0) check(&t, fixture_add_gradients(t.graph, t.results, t.n_results, t.wrt, t.n_wrt));
  check(&t, tn_graph_verify(t.graph));
  check(&t, reference_create(t.graph, &t.r));
  for (int32_t i = 0; i < t.n_inputs; i++) fill(&t, t.input_names[i], "in", t.input_names[i]);
  for (int32_t i = 0; i < t.n_results && t.n_wrt > 0; i++) {
    snprintf(name, sizeof name, "dout.%d", i);
    if (t.results[i] != 0) fill(&t, name, "dout", t.result_names[i]);
  }
  check(&t, reference_run(t.r));
  for (int32_t i = 0; i < t.n_results; i++) compare(&t, t.result_names[i], "out", t.result_names[i]);
  for (int32_t i = 0; i < t.n_wrt; i++) {
    snprintf(name, sizeof name, "grad.%d", i);
    compare(&t, name, "grad", t.wrt_names[i]);
  }
  reference_destroy(t.r);
  tn_graph_destroy(t.graph);
}

static void every_case_agrees_with_pytorch(void **state) {
  fixture f;
  tn_safetensors *file = NULL;
  golden_case c;
  const char *cursor = NULL;
  int cases = 0;
  assert_int_equal(fixture_open(&f), TN_OK);
  if (tn_safetensors_open(&f.env, *state, &file) != TN_OK) fail_msg("%s", tn_error_text(&f.env));
  for (; golden_next(file, &cursor, &c); cases++) run_case(&f, file, c);
  assert_true(cases > 0);
  tn_safetensors_close(file);
  fixture_close(&f);
}

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(every_case_agrees_with_pytorch, argv[i])};
    failed += cmocka_run_group_tests_name(argv[i], tests, NULL, NULL);
  }
  return failed;
}

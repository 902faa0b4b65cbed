/* tests/golden/golden_test.c: compares values and gradients with PyTorch's, within the tolerances of its
 * assert_close.
 *
 *     golden_test FILE...                    decompositions and gradient rules, with the reference evaluation
 *     golden_test -b BACKEND PLUGIN FILE...  compiled programs, on the first device of a backend
 *
 * make_goldens.py and make_composites.py write FILE. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/input_state.h"

#include "../conformance/fixture.h"
#include "core/conformance/trial/gradients.h"
#include "core/conformance/trial/on_device.h"
#include "core/conformance/reference/reference.h"
#include "golden_file.h"

enum { MOST = 16 };

typedef struct stage {
  fixture f;
  tn_device *device; /* NULL: the reference evaluation */
} stage;

/* A golden case during its check. */
typedef struct trial {
  fixture *f;
  tn_device *device; /* NULL: the reference evaluation */
  const tn_safetensors *file;
  golden_case c;
  tn_graph *graph;
  tn_val inputs[MOST], results[MOST]; /* results: 0 if PyTorch has no gradient */
  char input_names[MOST][16], result_names[MOST][16],
      wrt_names[MOST][16]; /* copies: the graph may be freed earlier */
  int32_t n_inputs, n_results, n_wrt;
  tn_val wrt[MOST];
  tn_reference *r; /* r or run evaluates the case */
  tn_on_device *run;
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

static void name_as(char to[16], const char *name) { snprintf(to, 16, "%s", name); }

static void list_values(trial *t) {
  tn_graph *g = t->graph;
  for (size_t i = 0; i < g->inputs.n && i < MOST; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    t->inputs[t->n_inputs] = g->inputs.v[i];
    name_as(t->input_names[t->n_inputs++], a->name);
    if (!has(t, "grad", a->name)) continue;
    t->wrt[t->n_wrt] = g->inputs.v[i];
    name_as(t->wrt_names[t->n_wrt++], a->name);
  }
  for (size_t i = 0; i < g->outputs.n && i < MOST; i++) {
    name_as(t->result_names[t->n_results], g->outputs.v[i].name);
    t->results[t->n_results++] = has(t, "dout", g->outputs.v[i].name) ? g->outputs.v[i].value : 0;
  }
}

/* ---- evaluation, by the reference or on a device ---- */

static void load(trial *t) {
  if (t->device == NULL)
    check(t, tn_reference_create(t->graph, &t->r));
  else
    check(t, tn_on_device_create(&t->f->env, t->f->registry, t->device, t->graph, &t->run));
  if (t->device != NULL) t->graph = NULL;
}

static void fill(trial *t, const char *input, const char *kind, const char *tensor) {
  tn_type type;
  double *from = golden_tensor(t->file, &t->f->env, t->c.name, kind, tensor, &type);
  if (from == NULL) fail_msg("%s: no tensor for input %s", t->c.name, input);
  double *to = t->r == NULL ? NULL : tn_reference_input(t->r, input);
  if (to != NULL) memcpy(to, from, (size_t)tn_type_count(&type) * sizeof *to);
  if (t->run != NULL) tn_on_device_input(t->run, input, from);
  tn_release(&t->f->env, from);
}

static void run(trial *t) { check(t, t->run != NULL ? tn_on_device_run(t->run) : tn_reference_run(t->r)); }

/* A copy of an output, or NULL if there is no such output. */
static double *result(trial *t, const char *output, tn_type *type) {
  if (t->run != NULL) return tn_on_device_output(t->run, output, type);
  const double *from = tn_reference_output(t->r, output, type);
  size_t bytes = from == NULL ? 0 : (size_t)tn_type_count(type) * sizeof *from;
  double *copy = from == NULL ? NULL : tn_alloc(&t->f->env, bytes + 1);
  return copy == NULL ? NULL : memcpy(copy, from, bytes);
}

/* ---- comparison ---- */

/* The defaults of torch.testing.assert_close: relative and absolute tolerance. */
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
  double *found = result(t, output, &made);
  assert_non_null(expected);
  if (found != NULL && !tn_type_equal(&type, &made))
    fail_msg("%s: %s %s has another type than PyTorch's", t->c.name, kind, tensor);
  for (int64_t i = 0; i < tn_type_count(&type); i++) {
    double v = found == NULL ? 0 : tn_reference_round(type.dtype, found[i]), e = expected[i];
    bool same = v == e || (v != v && e != e) || fabs(v - e) <= allowed(type.dtype, e);
    if (!same)
      fail_msg("%s: %s %s [%lld] is %.9g, PyTorch has %.9g\n%s", t->c.name, kind, tensor, (long long)i, v, e,
               t->c.graph);
  }
  tn_release(&t->f->env, expected);
  tn_release(&t->f->env, found);
}

static void run_case(stage *s, const tn_safetensors *file, golden_case c) {
  trial t = {.f = &s->f, .device = s->device, .file = file, .c = c};
  fixture *f = &s->f;
  char name[32];
  check(&t, tn_graph_parse(&f->env, f->ops, c.graph, c.name, &t.graph));
  list_values(&t);
  if (t.n_wrt > 0) check(&t, tn_gradients_add(t.graph, t.results, t.n_results, t.wrt, t.n_wrt));
  check(&t, tn_graph_verify(t.graph));
  load(&t);
  for (int32_t i = 0; i < t.n_inputs; i++) fill(&t, t.input_names[i], "in", t.input_names[i]);
  for (int32_t i = 0; i < t.n_results && t.n_wrt > 0; i++) {
    snprintf(name, sizeof name, "dout.%d", i);
    if (t.results[i] != 0) fill(&t, name, "dout", t.result_names[i]);
  }
  run(&t);
  for (int32_t i = 0; i < t.n_results; i++) compare(&t, t.result_names[i], "out", t.result_names[i]);
  for (int32_t i = 0; i < t.n_wrt; i++) {
    snprintf(name, sizeof name, "grad.%d", i);
    compare(&t, name, "grad", t.wrt_names[i]);
  }
  tn_reference_destroy(t.r);
  tn_on_device_destroy(t.run);
  if (t.graph != NULL) tn_graph_destroy(t.graph);
}

/* The backend of the arguments. */
static const char *backend_name, *backend_file;

static void open_stage(stage *s) {
  *s = (stage){.device = NULL};
  tn_status status = fixture_open(&s->f);
  if (status == TN_OK && backend_name != NULL)
    status = fixture_device(&s->f, backend_name, backend_file, &s->device);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&s->f.env));
}

static void every_case_agrees_with_pytorch(void **state) {
  stage s;
  tn_safetensors *file = NULL;
  golden_case c;
  const char *cursor = NULL;
  int cases = 0;
  open_stage(&s);
  if (tn_safetensors_open(&s.f.env, *state, &file) != TN_OK) fail_msg("%s", tn_error_text(&s.f.env));
  for (; golden_next(file, &cursor, &c); cases++) run_case(&s, file, c);
  assert_true(cases > 0);
  tn_safetensors_close(file);
  if (s.device != NULL) tn_device_destroy(s.device);
  fixture_close(&s.f);
}

int main(int argc, char **argv) {
  int failed = 0, first = 1;
  if (argc > 3 && strcmp(argv[1], "-b") == 0) {
    backend_name = argv[2];
    backend_file = argv[3];
    first = 4;
  }
  for (int i = first; i < argc; i++) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(every_case_agrees_with_pytorch, argv[i])};
    failed += cmocka_run_group_tests_name(argv[i], tests, NULL, NULL);
  }
  return failed;
}

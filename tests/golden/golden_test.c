/* tests/golden/golden_test.c: compares values and gradients with PyTorch's, within the tolerances of its
 * assert_close.
 *
 *     golden_test FILE...                       graphs and gradients, by the reference evaluation
 *     golden_test -b BACKEND PLUGIN... FILE...  compiled programs, on a backend's first device
 *
 * make_goldens.py, make_composites.py, draw_goldens.py and compare_onnx.py write FILE. A case that fails
 * prints "failed NAME: reason" on stderr. */
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

static tn_status load(trial *t) {
  if (t->device == NULL) return tn_reference_create(t->graph, &t->r);
  tn_graph *take_graph = t->graph;
  t->graph = NULL;
  return tn_on_device_create(&t->f->env, t->f->registry, t->device, take_graph, &t->run);
}

static tn_status fill(trial *t, const char *input, const char *kind, const char *tensor) {
  tn_type type;
  double *from = golden_tensor(t->file, &t->f->env, t->c.name, kind, tensor, &type);
  if (from == NULL) return tn_failf(&t->f->env, TN_EINVAL, "no tensor for input %s", input);
  double *to = t->r == NULL ? NULL : tn_reference_input(t->r, input);
  if (to != NULL) memcpy(to, from, (size_t)tn_type_count(&type) * sizeof *to);
  if (t->run != NULL) tn_on_device_input(t->run, input, from);
  tn_release(&t->f->env, from);
  return TN_OK;
}

static tn_status fill_all(trial *t) {
  char name[32];
  for (int32_t i = 0; i < t->n_inputs; i++) TN_TRY(fill(t, t->input_names[i], "in", t->input_names[i]));
  for (int32_t i = 0; i < t->n_results && t->n_wrt > 0; i++) {
    snprintf(name, sizeof name, "dout.%d", i);
    if (t->results[i] != 0) TN_TRY(fill(t, name, "dout", t->result_names[i]));
  }
  return TN_OK;
}

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
static double allowed(int32_t dtype, double size) {
  static const double tolerance[TN_DTYPES][2] = {[TN_F16] = {1e-3, 1e-5},
                                                 [TN_BF16] = {1.6e-2, 1e-5},
                                                 [TN_F32] = {1.3e-6, 1e-5},
                                                 [TN_F64] = {1e-7, 1e-7}};
  return tolerance[dtype][0] * size + tolerance[dtype][1];
}

/* In a file with the metadata "errors = tensor" an error is relative to the largest element, as rounding of
 * the terms of a sum is, else to the element. */
static double largest_finite(const tn_type *type, const double *v) {
  double largest = 0;
  for (int64_t i = 0; i < tn_type_count(type); i++)
    if (isfinite(v[i])) largest = fmax(largest, fabs(v[i]));
  return largest;
}

static tn_status compare_elements(trial *t, const char *what, const tn_type *type, const double *expected,
                                  const double *found) {
  const char *errors = tn_safetensors_metadata(t->file, "errors");
  bool of_tensor = errors != NULL && strcmp(errors, "tensor") == 0;
  double largest = of_tensor ? largest_finite(type, expected) : 0;
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double v = found == NULL ? 0 : tn_reference_round(type->dtype, found[i]), e = expected[i];
    bool same =
        v == e || (v != v && e != e) || fabs(v - e) <= allowed(type->dtype, of_tensor ? largest : fabs(e));
    if (!same)
      return tn_failf(&t->f->env, TN_EINVAL, "%s [%lld] is %.9g, expected %.9g", what, (long long)i, v, e);
  }
  return TN_OK;
}

static tn_status compare(trial *t, const char *output, const char *kind, const char *tensor) {
  tn_type type, made;
  char what[64];
  double *expected = golden_tensor(t->file, &t->f->env, t->c.name, kind, tensor, &type);
  if (expected == NULL) return tn_failf(&t->f->env, TN_EINVAL, "no tensor %s %s in the file", kind, tensor);
  double *found = result(t, output, &made);
  snprintf(what, sizeof what, "%s %s", kind, tensor);
  tn_status status = found == NULL || tn_type_equal(&type, &made)
                         ? compare_elements(t, what, &type, expected, found)
                         : tn_failf(&t->f->env, TN_EINVAL, "%s has another type than in the file", what);
  tn_release(&t->f->env, expected);
  tn_release(&t->f->env, found);
  return status;
}

static tn_status compare_all(trial *t) {
  char name[32];
  for (int32_t i = 0; i < t->n_results; i++)
    TN_TRY(compare(t, t->result_names[i], "out", t->result_names[i]));
  for (int32_t i = 0; i < t->n_wrt; i++) {
    snprintf(name, sizeof name, "grad.%d", i);
    TN_TRY(compare(t, name, "grad", t->wrt_names[i]));
  }
  return TN_OK;
}

static tn_status run_trial(trial *t) {
  TN_TRY(tn_graph_parse(&t->f->env, t->f->ops, t->c.graph, t->c.name, &t->graph));
  list_values(t);
  if (t->n_wrt > 0) TN_TRY(tn_gradients_add(t->graph, t->results, t->n_results, t->wrt, t->n_wrt));
  TN_TRY(tn_graph_verify(t->graph));
  TN_TRY(load(t));
  TN_TRY(fill_all(t));
  TN_TRY(t->run != NULL ? tn_on_device_run(t->run) : tn_reference_run(t->r));
  return compare_all(t);
}

/* Whether the case passed. */
static bool run_case(stage *s, const tn_safetensors *file, golden_case c) {
  trial t = {.f = &s->f, .device = s->device, .file = file, .c = c};
  tn_error_clear(&s->f.env);
  tn_status status = run_trial(&t);
  if (status != TN_OK) print_error("failed %s: %s\n%s", c.name, tn_error_text(&s->f.env), c.graph);
  tn_reference_destroy(t.r);
  tn_on_device_destroy(t.run);
  if (t.graph != NULL) tn_graph_destroy(t.graph);
  return status == TN_OK;
}

/* The backend of the arguments. */
static const char *backend_name;
static char **backend_files;
static int n_backend_files;

static void open_stage(stage *s) {
  *s = (stage){.device = NULL};
  tn_status status = fixture_open(&s->f);
  for (int i = 0; status == TN_OK && i + 1 < n_backend_files; i++)
    status = tn_registry_load(s->f.registry, &s->f.env, backend_files[i]);
  if (status == TN_OK && backend_name != NULL)
    status = fixture_device(&s->f, backend_name, backend_files[n_backend_files - 1], &s->device);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&s->f.env));
}

static void every_case_agrees_with_pytorch(void **state) {
  stage s;
  tn_safetensors *file = NULL;
  golden_case c;
  const char *cursor = NULL;
  int cases = 0, failures = 0;
  open_stage(&s);
  if (tn_safetensors_open(&s.f.env, *state, &file) != TN_OK) fail_msg("%s", tn_error_text(&s.f.env));
  for (; golden_next(file, &cursor, &c); cases++) failures += run_case(&s, file, c) ? 0 : 1;
  print_message("%d cases, %d failures\n", cases, failures);
  assert_true(cases > 0);
  assert_int_equal(failures, 0);
  tn_safetensors_close(file);
  if (s.device != NULL) tn_device_destroy(s.device);
  fixture_close(&s.f);
}

int main(int argc, char **argv) {
  int failed = 0, first = 1;
  if (argc > 3 && strcmp(argv[1], "-b") == 0) {
    backend_name = argv[2];
    backend_files = argv + 3;
    for (first = 3; first < argc && strstr(argv[first], ".so") != NULL; first++) n_backend_files++;
  }
  for (int i = first; i < argc; i++) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(every_case_agrees_with_pytorch, argv[i])};
    failed += cmocka_run_group_tests_name(argv[i], tests, NULL, NULL);
  }
  return failed;
}

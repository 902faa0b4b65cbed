/* tests/golden/models_test.c: the models of docs/examples/models compute what PyTorch computes: the output,
 * the losses and metrics of three steps, the gradients of the first one, and the parameters behind the last
 * one, within 1e-4 of the largest element of a tensor.
 *
 *     models_test NAME [BACKEND]
 *
 * make_models.py writes the goldens, tests/golden/models/NAME.json. */
#include "tenon/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { BATCH = 2, MOST_BUFFERS = 16 };
static const double tolerance = 1e-4;
static const char *model_name, *backend_name = "auto";

typedef struct trial {
  tn_context *context;
  tn_run *run;
  tn_session *session;
  json_t *golden;
  void *buffers[MOST_BUFFERS];
  int n_buffers;
  double off[4]; /* the largest difference of output, losses, gradients, parameters */
} trial;

#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                   \
  } while (0)

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (memory == NULL) fail_msg("out of memory");
  return memory;
}

static void open_trial(trial *t) {
  char path[512], use[64], rate[64];
  snprintf(path, sizeof path, GOLDENS "/%s.json", model_name);
  *t = (trial){.golden = json_load_file(path, 0, NULL)};
  assert_non_null(t->golden);
  snprintf(use, sizeof use, "backend.use=%s", backend_name);
  snprintf(rate, sizeof rate, "optimizer.lr=%.9g", json_number_value(json_object_get(t->golden, "lr")));
  const char *set[] = {"run.seed=1", "run.output=", "optimizer.type=sgd", "optimizer.momentum=0.9", rate,
                       use};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 6, .quiet = 1};
  const tn_session_options uses = {
      .struct_size = sizeof uses, .train = 1, .infer = 1, .batch = BATCH, .weights = ""};
  snprintf(path, sizeof path, EXAMPLES "/%s.ini", model_name);
  OK(NULL, tn_context_open(NULL, &t->context));
  OK(t->context, tn_run_open(t->context, path, &options, &t->run));
  OK(t->run, tn_session_open(t->run, &uses, &t->session));
}

static void close_trial(trial *t) {
  tn_session_close(t->session);
  tn_run_close(t->run);
  tn_context_close(t->context);
  for (int i = 0; i < t->n_buffers; i++) free(t->buffers[i]);
  json_decref(t->golden);
}

/* ---- data ---- */

/* A number of [-1, 1): make_models.py has the same formula. */
static float hashed(size_t i) {
  uint32_t h = (uint32_t)i * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return (float)(h >> 8) * 0x1p-23f - 1;
}

static void fill(void *to, const tn_type *type, const json_t *numbers) {
  size_t n = (size_t)tn_type_count(type);
  if (numbers != NULL) assert_int_equal(json_array_size(numbers), n);
  for (size_t i = 0; i < n; i++) {
    long long number = json_integer_value(json_array_get(numbers, i));
    switch (type->dtype) {
    case TN_F32: ((float *)to)[i] = numbers != NULL ? (float)number : hashed(i); break;
    case TN_I32: ((int32_t *)to)[i] = (int32_t)number; break;
    case TN_I64: ((int64_t *)to)[i] = number; break;
    case TN_BOOL: ((unsigned char *)to)[i] = number != 0; break;
    default: fail_msg("a field of another element type");
    }
  }
}

/* Binds all inputs and targets, and the output, of which it returns the buffer. */
static const float *bind_fields(trial *t, size_t *count) {
  const json_t *fields = json_object_get(t->golden, "fields");
  const float *output = NULL;
  tn_session_field f = {.struct_size = sizeof f};
  for (int32_t i = 0; tn_session_describe(t->session, i, &f) == TN_OK; i++) {
    size_t bytes = (size_t)tn_type_bytes(&f.type);
    bool is_output = strcmp(f.name, "output") == 0;
    if (strcmp(f.name, "sample.weight") == 0 || (f.role == TN_SESSION_OUTPUT && !is_output)) continue;
    assert_true(t->n_buffers < MOST_BUFFERS);
    void *buffer = t->buffers[t->n_buffers++] = allocate(bytes);
    if (!is_output) fill(buffer, &f.type, json_object_get(fields, f.name));
    OK(t->session, tn_session_bind(t->session, f.name, buffer, bytes));
    if (is_output) output = buffer;
    if (is_output) *count = (size_t)tn_type_count(&f.type);
  }
  assert_non_null(output);
  return output;
}

/* ---- comparison ---- */

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* The largest difference from PyTorch's tensor, as a part of its largest element. */
static double difference(const float *v, size_t n, const json_t *want) {
  const json_t *at = json_object_get(want, "at"), *values = json_object_get(want, "values");
  double largest = number(want, "largest"), sum = 0;
  assert_int_equal(n, json_integer_value(json_object_get(want, "count")));
  for (size_t i = 0; i < n; i++) sum += fabs((double)v[i]);
  double off = fabs(sum - number(want, "sum")) / (double)n;
  for (size_t i = 0; i < json_array_size(at); i++) {
    double d = fabs((double)v[json_integer_value(json_array_get(at, i))] -
                    json_number_value(json_array_get(values, i)));
    if (!(d <= off)) off = d;
  }
  return largest > 0 ? off / largest : off;
}

static void expect(trial *t, int kind, const char *what, double off) {
  if (!(off <= tolerance))
    fail_msg("%s of %s on %s: the largest difference is %.3g of the largest element, expected %.3g at most",
             what, model_name, backend_name, off, tolerance);
  if (off > t->off[kind]) t->off[kind] = off;
}

/* Compares states called as the tensors of a golden, with `suffix` behind. */
static void expect_states(trial *t, int kind, const char *key, const char *suffix) {
  const char *name;
  json_t *want, *tensors = json_object_get(t->golden, key);
  assert_true(json_object_size(tensors) > 0);
  json_object_foreach(tensors, name, want) {
    char path[256];
    size_t n = (size_t)json_integer_value(json_object_get(want, "count"));
    float *v = allocate(n * sizeof *v);
    snprintf(path, sizeof path, "%s%s", name, suffix);
    OK(t->session, tn_session_read(t->session, path, v, n * sizeof *v));
    double off = difference(v, n, want);
    free(v);
    expect(t, kind, path, off);
  }
}

static void expect_metrics(trial *t, size_t step) {
  const char *name;
  json_t *values;
  json_object_foreach(json_object_get(t->golden, "metrics"), name, values) {
    double value;
    OK(t->session, tn_session_metric(t->session, name, &value));
    expect(t, 1, name, fabs(value - json_number_value(json_array_get(values, step))));
  }
}

static void train(trial *t) {
  const json_t *losses = json_object_get(t->golden, "losses");
  for (size_t i = 0; i < json_array_size(losses); i++) {
    double loss, want = json_number_value(json_array_get(losses, i));
    OK(t->session, tn_session_train(t->session, 0));
    OK(t->session, tn_session_metric(t->session, "loss", &loss));
    expect(t, 1, "the loss", fabs(loss - want) / fabs(want));
    expect_metrics(t, i);
    if (i == 0) expect_states(t, 2, "gradients", ".momentum");
  }
  expect_states(t, 3, "parameters", "");
}

static void a_model_computes_what_pytorch_does(void **state) {
  (void)state;
  trial t;
  size_t n = 0;
  open_trial(&t);
  const float *output = bind_fields(&t, &n);
  OK(t.session, tn_session_infer(t.session, 0));
  expect(&t, 0, "the output", difference(output, n, json_object_get(t.golden, "output")));
  train(&t);
  print_message("%s on %s: output %.1e, losses %.1e, gradients %.1e, parameters %.1e\n", model_name,
                backend_name, t.off[0], t.off[1], t.off[2], t.off[3]);
  close_trial(&t);
}

/* A training by its own configuration reads its source. */
static void a_model_trains_on_its_source(void **state) {
  (void)state;
  tn_context *context;
  tn_run *run;
  char path[512], *json = NULL;
  const char *set[] = {"run.output=", "run.max_steps=2", "run.observers=", "data.valid.epoch=2",
                       "data.batch=2"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 5, .quiet = 1};
  snprintf(path, sizeof path, EXAMPLES "/%s.ini", model_name);
  OK(NULL, tn_context_open(NULL, &context));
  OK(context, tn_run_open(context, path, &options, &run));
  OK(run, tn_run_train(run, &json));
  json_t *result = json_loads(json, 0, NULL);
  assert_int_equal(json_integer_value(json_object_get(result, "steps")), 2);
  assert_true(number(json_object_get(result, "valid"), "loss") > 0);
  json_decref(result);
  tn_string_free(context, json);
  tn_run_close(run);
  tn_context_close(context);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_model_computes_what_pytorch_does),
                                     cmocka_unit_test(a_model_trains_on_its_source)};
  if (argc < 2) return 2;
  model_name = argv[1];
  if (argc > 2) backend_name = argv[2];
  return cmocka_run_group_tests_name(model_name, tests, NULL, NULL);
}

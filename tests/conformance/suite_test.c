/* The suite itself (tenon/conformance.h): it detects faulty kernels and rules, reports unsupported ops, and
 * gives the same bits for any number of threads and in contexts that run concurrently. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "tenon/conformance.h"

/* Runs the suite on a device of its own. The caller frees the report (json_decref). NULL: failed, with the
 * message in `error`. */
static json_t *run(const char *backend, const char *options, const char *file, tn_conformance_options *wanted,
                   char error[512]) {
  tn_context *context = NULL;
  tn_device *device = NULL;
  char *text = NULL;
  json_t *report = NULL;
  wanted->struct_size = sizeof *wanted;
  tn_status status = tn_context_open(NULL, &context);
  if (status == TN_OK && file) status = tn_context_load(context, file);
  if (status == TN_OK) status = tn_device_open(context, backend, 0, options, &device);
  if (status == TN_OK) status = tn_conformance_run(device, wanted, &text);
  if (status == TN_OK) report = json_loads(text, 0, NULL);
  if (status != TN_OK && error)
    snprintf(error, 512, "%s", tn_error_text(device ? (const void *)device : context));
  if (text) tn_string_free(device, text);
  tn_device_close(device);
  tn_context_close(context);
  return report;
}

static size_t count(const json_t *report, const char *key) {
  return json_array_size(json_object_get(report, key));
}

/* ---- plugins that are wrong ---- */

/* The reason of the first failure contains `expected`. */
static void finds(const char *plugin, const char *expected) {
  char file[512], error[512] = "";
  snprintf(file, sizeof file, WRONG_FOLDER "/%s.so", plugin);
  tn_conformance_options wanted = {.plugin = "wrong"};
  json_t *report = run("cpu", "", file, &wanted, error);
  if (!report) fail_msg("%s", error);
  assert_true(count(report, "failed") > 0);
  const json_t *first = json_array_get(json_object_get(report, "failed"), 0);
  const char *reason = json_string_value(json_object_get(first, "reason"));
  if (!strstr(reason, expected)) fail_msg("'%s' does not say '%s'", reason, expected);
  json_decref(report);
}

static void a_wrong_element_is_found(void **state) {
  (void)state;
  finds("wrong_sum", "the reference has");
}
static void a_write_behind_the_end_is_found(void **state) {
  (void)state;
  finds("wrong_border", "is outside all buffers; the buffer before it is a result of relu");
}
static void other_bits_are_found(void **state) {
  (void)state;
  finds("wrong_bits", "other bits than the first");
}
static void a_kernel_that_takes_nothing_is_found(void **state) {
  (void)state;
  finds("wrong_declines", "never chosen");
}
static void a_wrong_epilogue_is_found(void **state) {
  (void)state;
  finds("wrong_epilogue", "the reference has");
}
static void a_wrong_prologue_is_found(void **state) {
  (void)state;
  finds("wrong_prologue", "the reference has");
}
static void a_wrong_gradient_rule_is_found(void **state) {
  (void)state;
  finds("wrong_gradient", "the gradient rule gives");
}

/* ---- plugins that are wrong in one thing, and right without it ---- */

static json_t *report_of(const char *plugin) {
  char file[512], error[512] = "";
  snprintf(file, sizeof file, WRONG_FOLDER "/%s.so", plugin);
  tn_conformance_options wanted = {.plugin = "wrong"};
  json_t *report = run("cpu", "", file, &wanted, error);
  if (!report) fail_msg("%s", error);
  return report;
}

/* A failure of a case that begins with `name` says `expected`. */
static void assert_finds(const json_t *report, const char *name, const char *expected) {
  const json_t *list = json_object_get(report, "failed"), *one;
  const char *other = "nothing";
  size_t i;
  json_array_foreach(list, i, one) {
    const char *reason = json_string_value(json_object_get(one, "reason"));
    if (strncmp(json_string_value(json_object_get(one, "case")), name, strlen(name)) != 0) continue;
    if (strstr(reason, expected)) return;
    other = reason;
  }
  fail_msg("%s: expected '%s', found: %s", name, expected, other);
}

static void assert_passes(const char *plugin) {
  json_t *report = report_of(plugin);
  const json_t *first = json_array_get(json_object_get(report, "failed"), 0);
  if (first) fail_msg("%s: %s", plugin, json_string_value(json_object_get(first, "reason")));
  assert_true(json_integer_value(json_object_get(report, "passed")) > 0);
  json_decref(report);
}

static void a_wrong_gradient_of_negative_numbers_is_found(void **state) {
  (void)state;
  json_t *report = report_of("wrong_elu");
  assert_finds(report, "test_elu/f64/", "the gradient rule gives d loss / d x0[");
  assert_finds(report, "test_elu/f64/", "at -");
  json_decref(report);
  assert_passes("right_elu");
}

static void a_wrong_kernel_for_negative_numbers_is_found(void **state) {
  (void)state;
  json_t *report = report_of("wrong_swish");
  assert_finds(report, "test_swish/f32/", "is 12345, the reference has -");
  json_decref(report);
  assert_passes("right_swish");
}

static void an_op_states_its_domain(void **state) {
  (void)state;
  json_t *report = report_of("wrong_domain");
  assert_finds(report, "test_log/f64/", "state it in tn_op.domain");
  json_decref(report);
  assert_passes("right_domain");
}

static void special_numbers_are_drawn(void **state) {
  (void)state;
  json_t *report = report_of("wrong_bits"); /* its relu makes NaN to 0 */
  assert_finds(report, "wrong_relu/f32/", "the reference has nan");
  json_decref(report);
}

/* It is the largest element of argmax, whose results are integers. */
static void a_lost_nan_is_found_in_integers(void **state) {
  (void)state;
  json_t *report = report_of("wrong_argmax");
  assert_finds(report, "test_argmax/f32/", "where operand x0 has a NaN, expected ");
  json_decref(report);
  assert_passes("right_argmax");
}

static void a_layer_with_a_wrong_gradient_is_found(void **state) {
  (void)state;
  json_t *report = report_of("wrong_layer");
  assert_finds(report, "layer:test_bend/f64/", "finite differences give");
  json_decref(report);
  assert_passes("right_layer");
}

static void an_optimizer_that_reads_beyond_its_slots_is_found(void **state) {
  (void)state;
  json_t *report = report_of("wrong_optimizer");
  assert_finds(report, "optimizer:test_blocks/f32/", "a kernel reads beyond an operand");
  json_decref(report);
  assert_passes("right_optimizer");
}

static void a_source_that_depends_on_the_worker_is_found(void **state) {
  (void)state;
  json_t *report = report_of("wrong_source");
  assert_finds(report, "source:test_noise/workers", "from another worker");
  assert_finds(report, "source:test_noise/workers", "as in the first reading");
  json_decref(report);
  assert_passes("right_source");
}

/* The option of an item is not ignored, neither where its name is wrong nor where its value is. */
static void options_of_items_are_set(void **state) {
  (void)state;
  static const char *const examples[][2] = {{"source:test_nois.x=1", "'source:test_nois.x=1' names no item"},
                                            {"test_noise", "'test_noise' names no item of the plugin"}};
  char error[512];
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    tn_conformance_options wanted = {.plugin = "wrong", .settings = examples[i][0]};
    assert_null(run("cpu", "", WRONG_FOLDER "/right_source.so", &wanted, error));
    if (!strstr(error, examples[i][1])) fail_msg("'%s' does not say '%s'", error, examples[i][1]);
  }
  tn_conformance_options wanted = {.plugin = "wrong", .settings = "source:test_noise.volume=1"};
  json_t *report = run("cpu", "", WRONG_FOLDER "/right_source.so", &wanted, error);
  assert_finds(report, "source:test_noise/samples", "volume");
  json_decref(report);
}

/* Each check of an item fails for an item that is wrong in what it looks at. */
static void every_check_of_items_can_fail(void **state) {
  (void)state;
  static const struct {
    const char *name, *expected;
  } checks[] = {
      {"optimizer:test_deaf/gradient", "the same for every gradient"},
      {"optimizer:test_fixed/lr", "does not depend on the option lr"},
      {"optimizer:test_mixing/elements", "belong to other parameters"},
      {"optimizer:test_forgets/f32/", "state 'momentum' is never committed"},
      {"optimizer:test_outside/checkpoint", "where a checkpoint was written and read before it"},
      {"loss:test_loss/weight", "depends on the targets only"},
      {"precision:test_integer/dtypes", "expected a float dtype"},
      {"precision:test_stuck/scale", "expected that it grows again"},
      {"source:test_gaps/", "byte 3 of field 'x' is not written"},
      {"source:test_beyond/", "byte 4 of field 'x' is written, which has 4 bytes"},
      {"source:test_class/", "class 3, expected 0 to 2"},
      {"source:test_opened/seed", "opened again with the same seed"},
      {"source:test_key/key", "with another key, although keep is 1"},
      {"source:test_told/samples", "class_of gives sample 0 class 1, but read writes 0"},
      {"source:test_fickle/learnt", "expected the same"},
      {"source:test_stream/position", "after 20 samples it tells 21"},
      {"transform:test_late/host", "after other samples"},
      {"transform:test_greedy/host", "of the result is written, which has"},
      {"transform:test_brief/host", "of the result is not written"},
      {"transform:test_shifted/device", "build gives"},
  };
  json_t *report = report_of("wrong_items");
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    assert_finds(report, checks[i].name, checks[i].expected);
  json_decref(report);
}

static void a_check_of_an_item_can_be_run_alone(void **state) {
  (void)state;
  tn_conformance_options wanted = {.plugin = "wrong", .only = "source:test_noise/workers"};
  json_t *report = run("cpu", "", WRONG_FOLDER "/wrong_source.so", &wanted, NULL);
  assert_non_null(report);
  assert_int_equal(json_integer_value(json_object_get(report, "passed")), 0);
  assert_int_equal(count(report, "failed"), 1);
  json_decref(report);
}

static void a_variance_that_lost_its_digits_is_found_where_sums_are_not_declared(void **state) {
  (void)state;
  finds("wrong_hidden_sums", ".1[0] is");
  tn_conformance_options wanted = {.plugin = "wrong"};
  json_t *report = run("cpu", "", WRONG_FOLDER "/wrong_declared_sums.so", &wanted, NULL);
  const json_t *first = json_array_get(json_object_get(report, "failed"), 0);
  if (first) fail_msg("%s", json_string_value(json_object_get(first, "reason")));
  assert_true(json_integer_value(json_object_get(report, "passed")) > 0);
  json_decref(report);
}

/* ---- unsupported ops ---- */

static void a_line_that_no_longer_holds_is_stale(void **state) {
  (void)state;
  tn_conformance_options wanted = {.draws = 1, .unsupported = "# nothing\nmatmul/f64: no double precision\n"};
  json_t *report = run("cpu", "", NULL, &wanted, NULL);
  assert_int_equal(count(report, "stale"), 1);
  assert_int_equal(count(report, "failed"), 0);
  json_decref(report);
}

static void wrong_options_say_what_is_expected(void **state) {
  (void)state;
  static const struct {
    const char *only, *unsupported, *plugin, *message;
  } examples[] = {{"matmul/f33", NULL, NULL, "expected OP, OP/DTYPE"},
                  {"matmul/f32/x", NULL, NULL, "expected OP, OP/DTYPE"},
                  {"matmul/f32/1/backwards", NULL, NULL, "expected OP, OP/DTYPE"},
                  {"matmull", NULL, NULL, "there is no such case"},
                  {NULL, "matmul f64 is slow", NULL, "expected OP/DTYPE: reason"},
                  {NULL, NULL, "absent", "has nothing that is tested"}};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    char error[512] = "";
    tn_conformance_options wanted = {
        .only = examples[i].only, .unsupported = examples[i].unsupported, .plugin = examples[i].plugin};
    assert_null(run("cpu", "", NULL, &wanted, error));
    if (!strstr(error, examples[i].message)) fail_msg("'%s' does not say '%s'", error, examples[i].message);
  }
}

static void one_use_can_be_run_alone(void **state) {
  (void)state;
  tn_conformance_options wanted = {.only = "matmul/f32/3/gradient"};
  json_t *report = run("cpu", "", NULL, &wanted, NULL);
  assert_int_equal(json_integer_value(json_object_get(report, "passed")), 1);
  json_decref(report);
}

/* silu has no case of its own: it is drawn from its schema, with finite differences. */
static void an_op_without_a_case_is_drawn_from_its_schema(void **state) {
  static const struct {
    const char *only;
    int passed;
  } parts[] = {{"silu/bf16/1/gradient", 1}, {"silu/f64/1/gradient", 2}};
  (void)state;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    tn_conformance_options wanted = {.only = parts[i].only};
    json_t *report = run("cpu", "", NULL, &wanted, NULL);
    assert_non_null(report);
    assert_int_equal(json_integer_value(json_object_get(report, "passed")), parts[i].passed);
    assert_int_equal(count(report, "failed"), 0);
    json_decref(report);
  }
}

/* ---- quick ---- */

/* How many dtypes the report has of an op: floats, or integers. */
static int dtypes_of(const json_t *report, const char *op, bool of_floats) {
  static const char *const floats[] = {"f16", "bf16", "f32", "f64"}, *const integers[] = {"u8", "i8", "i32",
                                                                                          "i64"};
  int n = 0;
  for (int i = 0; i < 4; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s/%s", op, of_floats ? floats[i] : integers[i]);
    n += json_object_get(json_object_get(report, "cases"), name) != NULL;
  }
  return n;
}

static void quick_runs_a_float_and_an_integer_dtype_of_each_op(void **state) {
  (void)state;
  tn_conformance_options wanted = {.draws = 1, .quick = 1};
  json_t *report = run("cpu", NULL, NULL, &wanted, NULL);
  assert_int_equal(count(report, "failed"), 0);
  const char *const of_schema[] = {"abs", "add", "maximum", "where", "roll", "clamp"};
  for (size_t i = 0; i < sizeof of_schema / sizeof *of_schema; i++) {
    assert_int_equal(dtypes_of(report, of_schema[i], true), 1);
    assert_int_equal(dtypes_of(report, of_schema[i], false), 1);
  }
  const char *const of_cases[] = {"gather", "reduce_sum", "copy"};
  for (size_t i = 0; i < sizeof of_cases / sizeof *of_cases; i++) {
    assert_in_range(dtypes_of(report, of_cases[i], true), 1, 2);
    assert_in_range(dtypes_of(report, of_cases[i], false), 1, 2);
    char name[64];
    snprintf(name, sizeof name, "%s/f32", of_cases[i]);
    assert_non_null(json_object_get(json_object_get(report, "cases"), name));
  }
  json_decref(report);
}

/* ---- the same bits ---- */

typedef struct job {
  const char *backend, *options;
  char bits[32];
  long long passed;
} job;

static void *work(void *argument) {
  job *j = argument;
  tn_conformance_options wanted = {.draws = 2, .quick = 1};
  json_t *report = run(j->backend, j->options, NULL, &wanted, NULL);
  if (!report) return NULL;
  snprintf(j->bits, sizeof j->bits, "%s", json_string_value(json_object_get(report, "bits")));
  j->passed = count(report, "failed") == 0 ? json_integer_value(json_object_get(report, "passed")) : -1;
  json_decref(report);
  return NULL;
}

static void threads_and_contexts_change_no_bit(void **state) {
  (void)state;
  job jobs[] = {{.backend = "cpu", .options = "threads = 1"},
                {.backend = "cpu", .options = "threads = 2"},
                {.backend = "cpu", .options = "threads = 3"},
                {.backend = "sim", .options = "order = random; seed = 4"}};
  enum { JOBS = sizeof jobs / sizeof *jobs };
  pthread_t threads[JOBS];
  for (size_t i = 0; i < JOBS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  for (size_t i = 0; i < JOBS; i++) pthread_join(threads[i], NULL);
  assert_true(jobs[0].passed > 1000);
  for (size_t i = 1; i < JOBS; i++) {
    assert_int_equal(jobs[i].passed, jobs[0].passed);
    assert_string_equal(jobs[i].bits, jobs[0].bits);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wrong_element_is_found),
      cmocka_unit_test(a_write_behind_the_end_is_found),
      cmocka_unit_test(other_bits_are_found),
      cmocka_unit_test(a_kernel_that_takes_nothing_is_found),
      cmocka_unit_test(a_wrong_epilogue_is_found),
      cmocka_unit_test(a_wrong_prologue_is_found),
      cmocka_unit_test(a_wrong_gradient_rule_is_found),
      cmocka_unit_test(a_wrong_gradient_of_negative_numbers_is_found),
      cmocka_unit_test(a_wrong_kernel_for_negative_numbers_is_found),
      cmocka_unit_test(an_op_states_its_domain),
      cmocka_unit_test(special_numbers_are_drawn),
      cmocka_unit_test(a_lost_nan_is_found_in_integers),
      cmocka_unit_test(a_layer_with_a_wrong_gradient_is_found),
      cmocka_unit_test(an_optimizer_that_reads_beyond_its_slots_is_found),
      cmocka_unit_test(a_source_that_depends_on_the_worker_is_found),
      cmocka_unit_test(options_of_items_are_set),
      cmocka_unit_test(every_check_of_items_can_fail),
      cmocka_unit_test(a_check_of_an_item_can_be_run_alone),
      cmocka_unit_test(a_variance_that_lost_its_digits_is_found_where_sums_are_not_declared),
      cmocka_unit_test(a_line_that_no_longer_holds_is_stale),
      cmocka_unit_test(wrong_options_say_what_is_expected),
      cmocka_unit_test(one_use_can_be_run_alone),
      cmocka_unit_test(an_op_without_a_case_is_drawn_from_its_schema),
      cmocka_unit_test(quick_runs_a_float_and_an_integer_dtype_of_each_op),
      cmocka_unit_test(threads_and_contexts_change_no_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

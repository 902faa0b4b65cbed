/* Traces: the text is JSON of the trace event format. */
#include "tests/support/folder.h"

#include <jansson.h>
#include <math.h>

#include "core/formats/trace.h"

static test_env B;
static folder F;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  folder_make(&F);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

static json_t *read_events(json_t **root) {
  json_error_t error;
  *root = json_load_file(folder_path(&F, "trace.json"), JSON_REJECT_DUPLICATES, &error);
  if (*root == NULL) fail_msg("%s", error.text);
  return json_object_get(*root, "traceEvents");
}

static const tn_trace_event matmul = {"layer1.0.conv1 \"x\"", "kernel", 2, 1.5, 0.000025};

static void events_and_row_names_are_written(void **state) {
  (void)state;
  tn_trace_writer *trace;
  json_t *root;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  assert_ok(&B, tn_trace_thread(trace, 2, "compute"));
  assert_ok(&B, tn_trace_add(trace, &matmul));
  assert_ok(&B, tn_trace_commit(trace));
  json_t *events = read_events(&root);
  assert_int_equal(json_array_size(events), 3);
  const char *ph, *name, *row;
  double ts, dur;
  int pid, tid, order;
  assert_int_equal(json_unpack(json_array_get(events, 0), "{s:s, s:s, s:{s:s}}", "ph", &ph, "name", &name,
                               "args", "name", &row),
                   0);
  assert_string_equal(ph, "M");
  assert_string_equal(name, "thread_name");
  assert_string_equal(row, "compute");
  assert_int_equal(
      json_unpack(json_array_get(events, 1), "{s:s, s:{s:i}}", "name", &name, "args", "sort_index", &order),
      0);
  assert_string_equal(name, "thread_sort_index");
  assert_int_equal(order, 2);
  assert_int_equal(json_unpack(json_array_get(events, 2), "{s:s, s:s, s:F, s:F, s:i, s:i}", "ph", &ph, "name",
                               &name, "ts", &ts, "dur", &dur, "pid", &pid, "tid", &tid),
                   0);
  assert_string_equal(ph, "X");
  assert_string_equal(name, matmul.name);
  assert_true(ts == 1.5e6);
  assert_true(fabs(dur - 25) < 1e-9);
  assert_int_equal(tid, 2);
  json_decref(root);
}

static void facts_are_texts_and_numbers(void **state) {
  (void)state;
  static const tn_trace_fact facts[] = {{"kernel", "conv \"2d\"", 0}, {"bytes", NULL, 1024}};
  tn_trace_writer *trace;
  json_t *root;
  tn_trace_event event = matmul;
  event.facts = facts;
  event.n_facts = 2;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  assert_ok(&B, tn_trace_add(trace, &event));
  assert_ok(&B, tn_trace_commit(trace));
  const char *kernel;
  double bytes;
  assert_int_equal(json_unpack(json_array_get(read_events(&root), 0), "{s:{s:s, s:F}}", "args", "kernel",
                               &kernel, "bytes", &bytes),
                   0);
  assert_string_equal(kernel, facts[0].text);
  assert_true(bytes == 1024);
  json_decref(root);
}

static void a_fact_that_is_not_utf8_is_an_error(void **state) {
  (void)state;
  static const tn_trace_fact fact = {"kernel", "\xff", 0};
  tn_trace_writer *trace;
  tn_trace_event event = matmul;
  event.facts = &fact;
  event.n_facts = 1;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  assert_int_equal(tn_trace_add(trace, &event), TN_EINVAL);
  tn_trace_abandon(trace);
}

static void an_empty_trace_is_still_a_trace(void **state) {
  (void)state;
  tn_trace_writer *trace;
  json_t *root;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  assert_ok(&B, tn_trace_commit(trace));
  assert_int_equal(json_array_size(read_events(&root)), 0);
  json_decref(root);
}

static void a_long_trace_is_written_in_pieces(void **state) {
  (void)state;
  tn_trace_writer *trace;
  json_t *root;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  for (int i = 0; i < 5000; i++) assert_ok(&B, tn_trace_add(trace, &matmul));
  assert_ok(&B, tn_trace_commit(trace));
  assert_int_equal(json_array_size(read_events(&root)), 5000);
  json_decref(root);
}

static void an_abandoned_trace_leaves_no_file(void **state) {
  (void)state;
  tn_trace_writer *trace;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  assert_ok(&B, tn_trace_add(trace, &matmul));
  tn_trace_abandon(trace);
  tn_trace_abandon(NULL);
  assert_int_equal(access(folder_path(&F, "trace.json"), F_OK), -1);
}

static void what_json_cannot_say_is_refused(void **state) {
  (void)state;
  tn_trace_writer *trace;
  json_t *root;
  tn_trace_event event = matmul;
  assert_ok(&B, tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  event.start_s = NAN;
  assert_error(&B, tn_trace_add(trace, &event), TN_EINVAL, "the start or the duration is not finite");
  event.start_s = 0;
  event.duration_s = -1;
  assert_error(&B, tn_trace_add(trace, &event), TN_EINVAL, "the start or the duration is not finite");
  event = matmul;
  event.name = "\xff";
  assert_error(&B, tn_trace_add(trace, &event), TN_EINVAL, "not UTF-8");
  assert_ok(&B, tn_trace_commit(trace));
  assert_int_equal(json_array_size(read_events(&root)), 0);
  json_decref(root);
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
  (void)state;
  tn_trace_writer *trace;
  assert_error(&B, tn_trace_begin(&B, folder_path(&F, "none/t.json"), &trace), TN_EIO, "cannot be created");
  assert_null(trace);
}

static tn_status write_one(void) {
  tn_trace_writer *trace;
  TN_TRY(tn_trace_begin(&B, folder_path(&F, "trace.json"), &trace));
  tn_status status = tn_trace_add(trace, &matmul);
  if (status == TN_OK) return tn_trace_commit(trace);
  tn_trace_abandon(trace);
  return status;
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  tn_status status = TN_ENOMEM;
  for (long left = 0; left < 60 && status != TN_OK; left++) {
    test_env_allow(&B, left);
    status = write_one();
    test_env_allow(&B, -1);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_int_equal(B.live, 0);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(events_and_row_names_are_written),
      CASE(facts_are_texts_and_numbers),
      CASE(a_fact_that_is_not_utf8_is_an_error),
      CASE(an_empty_trace_is_still_a_trace),
      CASE(a_long_trace_is_written_in_pieces),
      CASE(an_abandoned_trace_leaves_no_file),
      CASE(what_json_cannot_say_is_refused),
      CASE(a_folder_that_is_not_there_is_an_error),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
  };
  return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}

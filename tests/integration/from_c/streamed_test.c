/* [run] offload in sessions: weights in memory of the host that each inference copies to the device. They are
 * read, written and loaded as any others, also between runs that a device has captured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/run.h"
#include "tenon/session.h"

enum { BATCH = 4, WIDTH = 64, OUTPUTS = 3 };

static const char settings[] =
    "[run]\nname = streamed\noutput =\nseed = 5\n[model]\ninputs = x: f32[64]\nlayers =\n"
    "    fc1: linear(64)\n         relu\n    fc2: linear(64)\n         relu\n"
    "    fc3: linear(64)\n         relu\n    fc4: linear(64)\n         relu\n"
    "    fc5: linear(64)\n         relu\n    fc6: linear(3)\n";
/* Parameters take 82 KiB, of which all but 1.8 KiB are five weights of 16 KiB. */
static const char limit[] = "run.memory_limit=60KiB", none[] = "run.memory_limit=0";

static char folder[64];
static tn_context *context;
static tn_run *run;

static int set_up(void **state) {
  (void)state;
  strcpy(folder, "/tmp/tenon-streamed-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  return tn_context_open(NULL, &context) == TN_OK ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  tn_context_close(context);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static tn_session *open_session(const char *memory, const char *capture) {
  const char *const set[] = {"backend.use=sim", memory, capture};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 3};
  const tn_session_options wanted = {.struct_size = sizeof wanted, .infer = 1, .batch = BATCH, .weights = ""};
  tn_session *session = NULL;
  char path[128];
  snprintf(path, sizeof path, "%s/net.ini", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(settings, file) >= 0 && fclose(file) == 0);
  assert_int_equal(tn_run_open(context, path, &options, &run), TN_OK);
  if (tn_session_open(run, &wanted, &session) != TN_OK) fail_msg("%s", tn_error_text(run));
  return session;
}

static void close_session(tn_session *session) {
  tn_session_close(session);
  tn_run_close(run);
}

static void infer(tn_session *session, float out[BATCH * OUTPUTS]) {
  float x[BATCH * WIDTH];
  for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)(i % 13) / 13.0f;
  assert_int_equal(tn_session_bind(session, "x", x, sizeof x), TN_OK);
  assert_int_equal(tn_session_bind(session, "output", out, BATCH * OUTPUTS * sizeof *out), TN_OK);
  if (tn_session_infer(session, BATCH) != TN_OK) fail_msg("%s", tn_error_text(session));
}

static void fill_weight(float w[WIDTH * WIDTH], int seed) {
  for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)((i * seed) % 31 - 15) / 64.0f;
}

/* The results of the initial weights, of written ones, and of those that a file brings back. */
static void infer_three_times(const char *memory, const char *capture, float out[3][BATCH * OUTPUTS]) {
  float weight[WIDTH * WIDTH], again[WIDTH * WIDTH];
  char path[128];
  snprintf(path, sizeof path, "%s/weights.safetensors", folder);
  tn_session *session = open_session(memory, capture);
  infer(session, out[0]);
  assert_int_equal(tn_session_save(session, path), TN_OK);
  fill_weight(weight, 7);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tn_session_write(session, i == 0 ? "fc2.weight" : "fc4.weight", weight, sizeof weight),
                     TN_OK);
  infer(session, out[1]);
  assert_int_equal(tn_session_read(session, "fc4.weight", again, sizeof again), TN_OK);
  assert_memory_equal(weight, again, sizeof weight);
  assert_int_equal(tn_session_load(session, path), TN_OK);
  infer(session, out[2]);
  close_session(session);
}

static void results_are_those_of_weights_on_the_device(void **state) {
  static const char *const ways[] = {"backend.capture=yes", "backend.capture=no"};
  float here[3][BATCH * OUTPUTS], streamed[3][BATCH * OUTPUTS];
  (void)state;
  infer_three_times(none, ways[0], here);
  assert_memory_equal(here[0], here[2], sizeof here[0]);
  assert_memory_not_equal(here[0], here[1], sizeof here[0]);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    infer_three_times(limit, ways[i], streamed);
    assert_memory_equal(here, streamed, sizeof here);
  }
}

/* tn_plan_options.mode and batch. */
static void a_plan_of_predictions_says_what_is_streamed(void **state) {
  tn_plan_options options = {.struct_size = sizeof options, .mode = TN_BENCH_INFER, .batch = BATCH};
  char *json = NULL;
  (void)state;
  tn_session *session = open_session(limit, "backend.capture=yes");
  if (tn_run_plan(run, &options, &json, NULL) != TN_OK) fail_msg("%s", tn_error_text(run));
  assert_non_null(strstr(json, "\"streamed_bytes\""));
  assert_null(strstr(json, "\"streamed_bytes\": 0,"));
  tn_string_free(run, json);
  options.batch = -1;
  assert_int_equal(tn_run_plan(run, &options, &json, NULL), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(run), "a prediction of -1 samples"));
  options.mode = TN_BENCH_LOAD;
  assert_int_equal(tn_run_plan(run, &options, &json, NULL), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(run), "a plan of mode 2, expected 0 (TN_BENCH_TRAIN) or 1"));
  close_session(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(results_are_those_of_weights_on_the_device, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_plan_of_predictions_says_what_is_streamed, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

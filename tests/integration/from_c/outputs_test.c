/* tests/integration/from_c/outputs_test.c: a session of a model with several inputs and outputs by name, of
 * several element types. */
#include "tenon/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BATCH = 4, WIDTH = 3, CLASSES = 2 };

static const char ini[] =
    "[run]\noutput =\n[model]\n"
    "inputs = x: f32[3], ids: i64[], mask: bool[3]\ntargets = label: i32[]\nlayers =\n"
    "    kept = x if mask else 0\n    even = ids % 2 == 0\n    scores: linear(2) <- kept\n"
    "outputs = scores, kept, even\nloss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                   \
  } while (0)

typedef struct fixture {
  tn_context *context;
  tn_run *run;
  tn_session *session;
  char path[32];
  float x[BATCH][WIDTH], scores[BATCH][CLASSES], kept[BATCH][WIDTH];
  int64_t ids[BATCH];
  int32_t label[BATCH];
  uint8_t mask[BATCH][WIDTH], even[BATCH];
} fixture;

static void write_file(fixture *f, const char *text) {
  strcpy(f->path, "/tmp/tenon-outputs-XXXXXX");
  int file = mkstemp(f->path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  close(file);
}

static void open_fixture(fixture *f, int32_t train) {
  tn_session_options options = {
      .struct_size = sizeof options, .train = train, .infer = 1, .batch = BATCH, .weights = ""};
  memset(f, 0, sizeof *f);
  write_file(f, ini);
  for (int i = 0; i < BATCH * WIDTH; i++) {
    f->x[i / WIDTH][i % WIDTH] = (float)(i + 1);
    f->mask[i / WIDTH][i % WIDTH] = i % 3 != 1;
  }
  for (int i = 0; i < BATCH; i++) f->ids[i] = INT64_C(1) << 40 | i;
  OK(NULL, tn_context_open(NULL, &f->context));
  OK(f->context, tn_run_open(f->context, f->path, NULL, &f->run));
  OK(f->run, tn_session_open(f->run, &options, &f->session));
  OK(f->session, tn_session_bind(f->session, "x", f->x, sizeof f->x));
  OK(f->session, tn_session_bind(f->session, "ids", f->ids, sizeof f->ids));
  OK(f->session, tn_session_bind(f->session, "mask", f->mask, sizeof f->mask));
  OK(f->session, tn_session_bind(f->session, "kept", f->kept, sizeof f->kept));
  OK(f->session, tn_session_bind(f->session, "even", f->even, sizeof f->even));
}

static void close_fixture(fixture *f) {
  tn_session_close(f->session);
  tn_run_close(f->run);
  tn_context_close(f->context);
  unlink(f->path);
}

static void expect_outputs(const fixture *f) {
  for (int i = 0; i < BATCH; i++) {
    assert_int_equal(f->even[i], i % 2 == 0);
    for (int k = 0; k < WIDTH; k++) assert_true(f->kept[i][k] == (f->mask[i][k] ? f->x[i][k] : 0));
  }
}

static void inputs_and_outputs_have_their_names(void **state) {
  (void)state;
  static const char *const expected[] = {"x in f32",       "ids in i64",   "mask in bool",
                                         "scores out f32", "kept out f32", "even out bool"};
  fixture f;
  int found = 0;
  open_fixture(&f, 0);
  tn_session_field field = {.struct_size = sizeof field};
  for (int32_t i = 0; tn_session_describe(f.session, i, &field) == TN_OK; i++) {
    char text[64];
    snprintf(text, sizeof text, "%s %s %s", field.name, field.role == TN_SESSION_INPUT ? "in" : "out",
             tn_dtype_name(field.type.dtype));
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) found += strcmp(text, expected[k]) == 0;
    assert_int_equal(field.type.dims[0], BATCH);
  }
  assert_int_equal(found, 6);
  close_fixture(&f);
}

static void all_outputs_are_written(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  OK(f.session, tn_session_bind(f.session, "scores", f.scores, sizeof f.scores));
  OK(f.session, tn_session_infer(f.session, 0));
  expect_outputs(&f);
  assert_true(f.scores[0][0] != f.scores[1][0]);
  close_fixture(&f);
}

static void output_stands_for_the_first_one(void **state) {
  (void)state;
  fixture f;
  float again[BATCH][CLASSES];
  open_fixture(&f, 0);
  OK(f.session, tn_session_bind(f.session, "scores", f.scores, sizeof f.scores));
  OK(f.session, tn_session_infer(f.session, 0));
  OK(f.session, tn_session_bind(f.session, "output", again, sizeof again));
  OK(f.session, tn_session_infer(f.session, 0));
  assert_memory_equal(again, f.scores, sizeof again);
  assert_int_equal(tn_session_bind(f.session, "outputs", again, sizeof again), TN_EINVAL);
  assert_int_equal(tn_session_bind(f.session, "kept", again, sizeof again), TN_EINVAL);
  assert_non_null(
      strstr(tn_error_text(f.session), "'kept': a buffer of 32 bytes, expected 48 for f32[4, 3]"));
  close_fixture(&f);
}

/* Losses read the first output, and a step of training gives all of them. */
static void training_gives_the_outputs_as_well(void **state) {
  (void)state;
  fixture f;
  double first = 0, loss = 0;
  open_fixture(&f, 1);
  OK(f.session, tn_session_bind(f.session, "label", f.label, sizeof f.label));
  OK(f.session, tn_session_bind(f.session, "output", f.scores, sizeof f.scores));
  for (int i = 0; i < 20; i++) {
    OK(f.session, tn_session_train(f.session, 0));
    OK(f.session, tn_session_metric(f.session, "cross_entropy", &loss));
    if (i == 0) first = loss;
    expect_outputs(&f);
  }
  assert_true(loss < first);
  assert_true(f.scores[0][0] > f.scores[0][1]);
  close_fixture(&f);
}

static const char lengths_ini[] =
    "[run]\noutput =\n[model]\ninputs = x: f32[n], length: i32[]\nlengths = 3, 5\nlayers =\n"
    "    y = sum(x if iota([1, n], axis=1, dtype=i32) < length[:, None] else 0, axis=1)\noutputs = y\n";

/* Of several lengths a session takes the longest, and the application pads. */
static void a_session_takes_the_longest_length(void **state) {
  (void)state;
  fixture f;
  tn_session_options options = {.struct_size = sizeof options, .infer = 1, .batch = 2, .weights = ""};
  const float x[2][5] = {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}};
  const int32_t length[2] = {2, 5};
  float y[2];
  memset(&f, 0, sizeof f);
  write_file(&f, lengths_ini);
  OK(NULL, tn_context_open(NULL, &f.context));
  OK(f.context, tn_run_open(f.context, f.path, NULL, &f.run));
  OK(f.run, tn_session_open(f.run, &options, &f.session));
  OK(f.session, tn_session_bind(f.session, "x", (void *)x, sizeof x));
  OK(f.session, tn_session_bind(f.session, "length", (void *)length, sizeof length));
  OK(f.session, tn_session_bind(f.session, "y", y, sizeof y));
  OK(f.session, tn_session_infer(f.session, 0));
  assert_true(y[0] == 3 && y[1] == 150);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_and_outputs_have_their_names),
      cmocka_unit_test(all_outputs_are_written),
      cmocka_unit_test(output_stands_for_the_first_one),
      cmocka_unit_test(training_gives_the_outputs_as_well),
      cmocka_unit_test(a_session_takes_the_longest_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/integration/from_c/session_test.c: models that a function emits, and sessions on buffers of the
 * application, through the public headers alone. */
#include "tenon/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tenon/model.h"
#include "tenon/ops.h"

enum { BATCH = 8, WIDTH = 6, CLASSES = 3 };

static tn_context *context;

static int open_context(void **state) {
  (void)state;
  return tn_context_open(NULL, &context) == TN_OK ? 0 : -1;
}

static int close_context(void **state) {
  (void)state;
  tn_context_close(context);
  return 0;
}

#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                   \
  } while (0)
#define FAILS(handle, call, code, text)                                                                      \
  do {                                                                                                       \
    assert_int_equal((call), (code));                                                                        \
    if (strstr(tn_error_text(handle), (text)) == NULL) fail_msg("'%s'", tn_error_text(handle));              \
  } while (0)

/* ---- models ---- */

static const tn_type features = {TN_F32, 1, {WIDTH}}, label_type = {TN_I32, 0, {0}};

static tn_status classifier(tn_build *b, void *user) {
  tn_val x = tn_model_input(b, "x", &features);
  x = tn_build_layer(b, "fc1", "linear(16)", &x, 1);
  x = tn_build_layer(b, "", "relu", &x, 1);
  x = tn_build_layer(b, "fc2", "linear(3)", &x, 1);
  tn_model_output(b, "output", x);
  if (user != NULL) ++*(int *)user;
  if (tn_model_measured(b)) {
    tn_val label = tn_model_target(b, "label", &label_type);
    tn_model_loss(b, "cross_entropy", (tn_val[]){x, label}, 2);
    tn_model_metric(b, "accuracy", (tn_val[]){x, label}, 2);
  }
  return tn_build_status(b);
}

static const char same_as_ini[] = "[run]\nseed = 3\noutput =\n[optimizer]\nlr = 0.1\nmomentum = 0.9\n";
static const char ini_model[] = "[model]\ninputs = x: f32[6]\nlayers =\n    fc1: linear(16)\n         relu\n"
                                "    fc2: linear(3)\nloss = cross_entropy\nmetrics = accuracy\n";

static float xs[BATCH][WIDTH];
static int32_t labels[BATCH];

static void make_data(void) {
  for (int i = 0; i < BATCH; i++) {
    labels[i] = i % CLASSES;
    for (int k = 0; k < WIDTH; k++)
      xs[i][k] = (float)((i * 7 + k * 3) % 11) / 11.0f + (k == labels[i] ? 1.0f : 0.0f);
  }
}

static tn_run *open_model(tn_model_fn emit, const char *settings) {
  tn_run *run;
  OK(context, tn_run_open_model(context, emit, NULL, settings, NULL, &run));
  return run;
}

static tn_session *open_session(tn_run *run, int32_t train, int32_t eval, int32_t infer,
                                const char *weights) {
  tn_session_options o = {.struct_size = sizeof o,
                          .train = train,
                          .eval = eval,
                          .infer = infer,
                          .batch = BATCH,
                          .weights = weights};
  tn_session *s;
  OK(run, tn_session_open(run, &o, &s));
  return s;
}

static void bind_data(tn_session *s) {
  make_data();
  OK(s, tn_session_bind(s, "x", xs, sizeof xs));
  OK(s, tn_session_bind(s, "label", labels, sizeof labels));
}

static double metric(tn_session *s, const char *name) {
  double value;
  OK(s, tn_session_metric(s, name, &value));
  return value;
}

/* ---- training ---- */

static void an_emitted_model_learns(void **state) {
  (void)state;
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 1, 1, 1, NULL);
  float scores[BATCH][CLASSES];
  bind_data(s);
  OK(s, tn_session_bind(s, "output", scores, sizeof scores));
  OK(s, tn_session_train(s, 0));
  double first = metric(s, "loss");
  for (int i = 0; i < 100; i++) OK(s, tn_session_train(s, 0));
  assert_true(metric(s, "loss") < first / 4);
  assert_int_equal(tn_session_steps(s), 101);
  OK(s, tn_session_eval(s, 0));
  assert_true(metric(s, "accuracy") == 1.0);
  assert_true(metric(s, "cross_entropy") == metric(s, "loss"));
  OK(s, tn_session_infer(s, 0));
  for (int i = 0; i < BATCH; i++)
    for (int c = 0; c < CLASSES; c++) assert_true(scores[i][c] <= scores[i][labels[i]]);
  tn_session_close(s);
  tn_run_close(run);
}

static const char *write_ini(void) {
  static char path[] = "/tmp/tenon-session-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_true(write(file, same_as_ini, strlen(same_as_ini)) > 0 &&
              write(file, ini_model, strlen(ini_model)) > 0);
  close(file);
  return path;
}

static void train_and_read(tn_run *run, float weight[3][16]) {
  tn_session *s = open_session(run, 1, 0, 0, NULL);
  bind_data(s);
  for (int i = 0; i < 5; i++) OK(s, tn_session_train(s, i == 3 ? 5 : 0));
  OK(s, tn_session_read(s, "fc2.weight", weight, 3 * 16 * sizeof(float)));
  tn_session_close(s);
}

static void it_trains_to_the_bits_of_the_same_model_in_a_configuration(void **state) {
  (void)state;
  float one[3][16], other[3][16];
  const char *path = write_ini();
  tn_run *emitted = open_model(classifier, same_as_ini), *read;
  OK(context, tn_run_open(context, path, NULL, &read));
  train_and_read(emitted, one);
  train_and_read(read, other);
  assert_memory_equal(one, other, sizeof one);
  tn_run_close(emitted);
  tn_run_close(read);
  unlink(path);
}

static void rows_behind_the_given_ones_count_for_nothing(void **state) {
  (void)state;
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 0, 1, 0, "");
  bind_data(s);
  OK(s, tn_session_eval(s, 3));
  double three = metric(s, "loss");
  for (int i = 3; i < BATCH; i++) xs[i][0] = 1e6f;
  OK(s, tn_session_eval(s, 3));
  assert_true(metric(s, "loss") == three);
  float weights[BATCH] = {1, 1, 1};
  OK(s, tn_session_bind(s, "sample.weight", weights, sizeof weights));
  OK(s, tn_session_eval(s, 0));
  assert_true(metric(s, "loss") == three);
  tn_session_close(s);
  tn_run_close(run);
}

static void parameters_go_to_a_file_and_back(void **state) {
  (void)state;
  char path[] = "/tmp/tenon-weights-XXXXXX";
  close(mkstemp(path));
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 1, 0, 1, NULL);
  float before[CLASSES], after[CLASSES], zeros[CLASSES] = {0};
  bind_data(s);
  for (int i = 0; i < 3; i++) OK(s, tn_session_train(s, 0));
  OK(s, tn_session_save(s, path));
  OK(s, tn_session_read(s, "fc2.bias", before, sizeof before));
  OK(s, tn_session_write(s, "fc2.bias", zeros, sizeof zeros));
  OK(s, tn_session_load(s, path));
  OK(s, tn_session_read(s, "fc2.bias", after, sizeof after));
  assert_memory_equal(before, after, sizeof before);
  FAILS(s, tn_session_load(s, "/nowhere/x.safetensors"), TN_EIO, "/nowhere/x.safetensors");
  FAILS(s, tn_session_read(s, "fc3.bias", after, sizeof after), TN_EINVAL, "fc3.bias");
  tn_session_close(s);
  s = open_session(run, 0, 0, 1, path);
  OK(s, tn_session_read(s, "fc2.bias", after, sizeof after));
  assert_memory_equal(before, after, sizeof before);
  tn_session_close(s);
  tn_run_close(run);
  unlink(path);
}

static void flip_last_bit(const char *path) {
  FILE *file = fopen(path, "r+e");
  assert_non_null(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  int byte = fgetc(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void write_damaged_ini(const char *path, const char *root) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fprintf(file,
          "[run]\nname = run\noutput = %s\nepochs = 1\n[data]\nsource = random\nshape = 6\nclasses = 3\n"
          "samples = 16\nbatch = 8\n[model]\ninputs = image: f32[6]\nlayers =\n    fc: linear(3)\n"
          "loss = cross_entropy\n",
          root);
  fclose(file);
}

/* A server goes on with the weights that it has. */
static void a_damaged_checkpoint_does_not_change_an_open_session(void **state) {
  (void)state;
  char root[] = "/tmp/tenon-damaged-XXXXXX", ini[64], file[128], command[64], *json = NULL;
  float before[CLASSES], after[CLASSES];
  const tn_session_options o = {.struct_size = sizeof o, .infer = 1},
                           damaged = {.struct_size = sizeof o, .infer = 1, .weights = file};
  tn_session *s = NULL, *other = NULL;
  tn_run *run;
  assert_non_null(mkdtemp(root));
  snprintf(ini, sizeof ini, "%s/run.ini", root);
  snprintf(file, sizeof file, "%s/run/checkpoints/last/model.safetensors", root);
  write_damaged_ini(ini, root);
  OK(context, tn_run_open(context, ini, NULL, &run));
  OK(run, tn_run_train(run, &json));
  tn_string_free(run, json);
  OK(run, tn_session_open(run, &o, &s));
  OK(s, tn_session_read(s, "fc.bias", before, sizeof before));
  flip_last_bit(file);
  FAILS(s, tn_session_load(s, file), TN_EINVAL, "is not as it was written: its checksum is");
  OK(s, tn_session_read(s, "fc.bias", after, sizeof after));
  assert_memory_equal(before, after, sizeof before);
  FAILS(run, tn_session_open(run, &damaged, &other), TN_EINVAL, "is not as it was written: its checksum is");
  flip_last_bit(file);
  OK(s, tn_session_load(s, file));
  tn_session_close(s);
  tn_run_close(run);
  snprintf(command, sizeof command, "rm -r %s", root);
  assert_int_equal(system(command), 0);
}

/* With ema, evaluation and files have the average, and reading has both. */
static void averages_are_evaluated_and_saved(void **state) {
  (void)state;
  char path[] = "/tmp/tenon-weights-XXXXXX";
  close(mkstemp(path));
  tn_run *run = open_model(classifier, "[run]\nseed = 3\noutput =\n[optimizer]\nlr = 0.1\nema = 0.9\n");
  tn_session *s = open_session(run, 1, 1, 0, NULL);
  float trained[CLASSES], average[CLASSES], loaded[CLASSES];
  bind_data(s);
  for (int i = 0; i < 9; i++) OK(s, tn_session_train(s, 0));
  OK(s, tn_session_eval(s, 0));
  double loss = metric(s, "loss");
  OK(s, tn_session_read(s, "fc2.bias", trained, sizeof trained));
  OK(s, tn_session_read(s, "fc2.bias.average", average, sizeof average));
  assert_memory_not_equal(trained, average, sizeof trained);
  OK(s, tn_session_save(s, path));
  OK(s, tn_session_load(s, path)); /* training goes on from the average, which begins anew */
  OK(s, tn_session_read(s, "fc2.bias", loaded, sizeof loaded));
  assert_memory_equal(average, loaded, sizeof average);
  OK(s, tn_session_eval(s, 0));
  assert_true(metric(s, "loss") == loss);
  tn_session_close(s);
  s = open_session(run, 0, 1, 0, path);
  bind_data(s);
  OK(s, tn_session_eval(s, 0));
  assert_true(fabs(metric(s, "loss") - loss) < 1e-6);
  tn_session_close(s);
  tn_run_close(run);
  run = open_model(classifier, "[optimizer]\nlr = 0.1\nswa_from = 2\n");
  tn_session_options o = {.struct_size = sizeof o, .train = 1, .batch = BATCH};
  FAILS(run, tn_session_open(run, &o, &s), TN_EINVAL, "[optimizer] swa_from = 2: a session has no epochs");
  tn_run_close(run);
  run = open_model(classifier, "[group.body]\nmatch = fc1.*\nfreeze = 2\n");
  FAILS(run, tn_session_open(run, &o, &s), TN_EINVAL,
        "[group.body] freeze = 2: a session has no epochs in which a group could thaw");
  tn_run_close(run);
  unlink(path);
}

/* ---- what a session says ---- */

static void a_session_lists_its_fields(void **state) {
  (void)state;
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 0, 0, 1, "");
  tn_session_field f = {.struct_size = sizeof f};
  OK(s, tn_session_describe(s, 0, &f));
  assert_string_equal(f.name, "x");
  assert_int_equal(f.role, TN_SESSION_INPUT);
  assert_int_equal(f.type.dims[0], BATCH);
  OK(s, tn_session_describe(s, 1, &f));
  assert_string_equal(f.name, "output");
  assert_int_equal(f.role, TN_SESSION_OUTPUT);
  assert_int_equal(tn_session_describe(s, 2, &f), TN_EOF);
  tn_session_close(s);
  tn_run_close(run);
}

static void wrong_calls_say_what_was_expected(void **state) {
  (void)state;
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 0, 0, 1, "");
  double value;
  FAILS(s, tn_session_train(s, 0), TN_EINVAL, "set tn_session_options.train");
  FAILS(s, tn_session_infer(s, 0), TN_EINVAL, "no buffer is bound to 'x'");
  FAILS(s, tn_session_bind(s, "x", xs, 4), TN_EINVAL, "expected 192 for f32[8, 6]");
  FAILS(s, tn_session_bind(s, "outptu", xs, 4), TN_EINVAL, "did you mean 'output'");
  OK(s, tn_session_bind(s, "x", xs, sizeof xs));
  FAILS(s, tn_session_infer(s, 9), TN_EINVAL, "9 rows, expected 1 to 8");
  FAILS(s, tn_session_infer(s, -1), TN_EINVAL, "-1 rows");
  FAILS(s, tn_session_metric(s, "loss", &value), TN_EINVAL, "nothing has been measured");
  tn_session_close(s);
  tn_session_options o = {.struct_size = sizeof o, .infer = 1};
  FAILS(run, tn_session_open(run, &o, &s), TN_EINVAL, "there are no weights to infer with; expected");
  assert_null(s);
  o = (tn_session_options){.struct_size = sizeof o, .train = 1, .batch = -1};
  FAILS(run, tn_session_open(run, &o, &s), TN_EINVAL, "0 or more");
  tn_run_close(run);
}

static tn_status has_no_output(tn_build *b, void *user) {
  (void)user;
  tn_model_input(b, "x", &features);
  return TN_OK;
}

static tn_status has_a_wrong_layer(tn_build *b, void *user) {
  (void)user;
  tn_val x = tn_model_input(b, "x", &features);
  x = tn_build_layer(b, "fc", "linaer(3)", &x, 1);
  tn_model_output(b, "output", x);
  return tn_build_status(b);
}

static tn_status uses_a_name_twice(tn_build *b, void *user) {
  (void)user;
  tn_val x = tn_model_input(b, "x", &features);
  x = tn_build_layer(b, "fc", "linear(6)", &x, 1);
  x = tn_build_layer(b, "fc", "linear(6)", &x, 1);
  tn_model_output(b, "output", x);
  return tn_build_status(b);
}

static tn_status asks_for_targets(tn_build *b, void *user) {
  (void)user;
  tn_val x = tn_model_target(b, "label", &label_type);
  tn_model_output(b, "output", x);
  return tn_build_status(b);
}

static tn_status gives_up(tn_build *b, void *user) {
  (void)user;
  return tn_fail(b, TN_EUNSUPPORTED, NULL, "not today");
}

static void a_wrong_function_is_explained(void **state) {
  (void)state;
  const struct {
    tn_model_fn emit;
    tn_status status;
    const char *text;
  } wrong[] = {{has_no_output, TN_EINVAL, "model: the function names no result"},
               {has_a_wrong_layer, TN_EINVAL, "linear"},
               {uses_a_name_twice, TN_EINVAL, "'fc' is the name of an earlier layer"},
               {asks_for_targets, TN_EINVAL, "ask tn_model_measured first"},
               {gives_up, TN_EUNSUPPORTED, "not today"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tn_run *run = open_model(wrong[i].emit, same_as_ini);
    tn_session *s;
    tn_session_options o = {.struct_size = sizeof o, .infer = 1, .weights = ""};
    FAILS(run, tn_session_open(run, &o, &s), wrong[i].status, wrong[i].text);
    tn_run_close(run);
  }
  tn_run *run;
  FAILS(context, tn_run_open_model(context, classifier, NULL, ini_model, NULL, &run), TN_EINVAL,
        "settings:1: [model] beside a function");
  FAILS(context, tn_run_open_model(context, classifier, NULL, "[optimizer]\nlrr = 1\n", NULL, &run),
        TN_EINVAL, "settings:2");
}

/* A loss that the function computes itself, a parameter of its own, and two outputs. */
static tn_status own_loss(tn_build *b, void *user) {
  (void)user;
  tn_val x = tn_model_input(b, "x", &features);
  tn_val scale = tn_build_param(b, "scale", &features, "ones");
  tn_val y = tn_mul(b, x, scale);
  tn_model_output(b, "output", y);
  tn_model_output(b, "twice", tn_affine(b, y, 2, 0));
  if (tn_model_measured(b)) {
    tn_val wanted = tn_model_target(b, "y", &features), d = tn_sub(b, y, wanted);
    tn_model_loss_value(b, "square", tn_mul(b, d, d), 0, 1.0);
  }
  return tn_build_status(b);
}

static void a_function_may_have_losses_parameters_and_outputs_of_its_own(void **state) {
  (void)state;
  tn_run *run = open_model(own_loss, "[run]\noutput =\n[optimizer]\nlr = 0.5\n");
  tn_session *s = open_session(run, 1, 0, 1, NULL);
  float y[BATCH][WIDTH], twice[BATCH][WIDTH], scale[WIDTH];
  make_data();
  for (int i = 0; i < BATCH * WIDTH; i++) y[i / WIDTH][i % WIDTH] = 3 * xs[i / WIDTH][i % WIDTH];
  OK(s, tn_session_bind(s, "x", xs, sizeof xs));
  OK(s, tn_session_bind(s, "y", y, sizeof y));
  OK(s, tn_session_bind(s, "twice", twice, sizeof twice));
  for (int i = 0; i < 500; i++) OK(s, tn_session_train(s, 0));
  OK(s, tn_session_read(s, "scale", scale, sizeof scale));
  for (int k = 0; k < WIDTH; k++) assert_true(fabsf(scale[k] - 3) < 1e-3f);
  OK(s, tn_session_infer(s, 2));
  assert_true(fabsf(twice[1][1] - 6 * xs[1][1]) < 1e-2f);
  assert_true(metric(s, "square") < 1e-6);
  tn_session_close(s);
  tn_run_close(run);
}

/* y = x @ m with m[i][k] = |i - k|, which no input and no state changes: a launch that runs once. */
static tn_status distances(tn_build *b, void *user) {
  const tn_type rows = {TN_F32, 2, {WIDTH, 1}}, columns = {TN_F32, 2, {1, WIDTH}};
  (void)user;
  tn_val x = tn_model_input(b, "x", &features), scale = tn_build_param(b, "scale", &features, "ones");
  tn_val m = tn_abs(b, tn_sub(b, tn_iota(b, &rows, 0), tn_iota(b, &columns, 1)));
  tn_val y = tn_mul(b, tn_matmul(b, x, m, 0, 0, 0, TN_MATH_FULL), scale);
  tn_model_output(b, "output", y);
  if (tn_model_measured(b)) {
    tn_val wanted = tn_model_target(b, "y", &features), d = tn_sub(b, y, wanted);
    tn_model_loss_value(b, "square", tn_mul(b, d, d), 0, 1.0);
  }
  return tn_build_status(b);
}

/* Whole numbers, so the sums are exact. */
static void expect_distances(const float x[BATCH][WIDTH], const float scale[WIDTH],
                             const float y[BATCH][WIDTH]) {
  for (int r = 0; r < BATCH; r++)
    for (int k = 0; k < WIDTH; k++) {
      float sum = 0;
      for (int i = 0; i < WIDTH; i++) sum += x[r][i] * (float)abs(i - k);
      assert_true(y[r][k] == sum * scale[k]);
    }
}

/* The programs of a session run in turns, each with the other's values in their common memory. */
static void train_and_infer_in_turns(const char *settings) {
  tn_run *run = open_model(distances, settings);
  char *json = NULL, *dump = NULL;
  float y[BATCH][WIDTH] = {{0}}, out[BATCH][WIDTH], scale[WIDTH];
  const tn_plan_options wants = {.struct_size = sizeof wants, .dump_after = "constants"};
  OK(run, tn_run_plan(run, &wants, &json, &dump));
  assert_non_null(strstr(dump, "# once: "));
  tn_string_free(context, json);
  tn_string_free(context, dump);
  tn_session *s = open_session(run, 1, 1, 1, NULL);
  OK(s, tn_session_bind(s, "x", xs, sizeof xs));
  OK(s, tn_session_bind(s, "y", y, sizeof y));
  OK(s, tn_session_bind(s, "output", out, sizeof out));
  for (int turn = 0; turn < 4; turn++) {
    for (int i = 0; i < BATCH * WIDTH; i++) xs[i / WIDTH][i % WIDTH] = (float)((i * 7 + turn) % 5);
    OK(s, tn_session_read(s, "scale", scale, sizeof scale));
    OK(s, tn_session_infer(s, 0));
    expect_distances(xs, scale, out);
    OK(s, tn_session_eval(s, 0));
    expect_distances(xs, scale, out);
    OK(s, tn_session_train(s, 0));
    expect_distances(xs, scale, out);
  }
  tn_session_close(s);
  tn_run_close(run);
}

static void constants_serve_every_program_of_a_session(void **state) {
  (void)state;
  train_and_infer_in_turns("[run]\noutput =\n[optimizer]\nlr = 0.125\n[backend]\nuse = cpu\n");
  train_and_infer_in_turns("[run]\noutput =\n[optimizer]\nlr = 0.125\n[backend]\nuse = sim\n");
}

static void a_loss_that_is_not_finite_is_said(void **state) {
  (void)state;
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 1, 0, 0, NULL);
  bind_data(s);
  xs[0][0] = INFINITY;
  FAILS(s, tn_session_train(s, 0), TN_ENONFINITE, "at step 1");
  tn_session_close(s);
  tn_run_close(run);
}

/* ---- outputs that are not finite ---- */

/* The outputs of the other rows are those of a batch without it. */
static void an_output_that_is_not_finite_is_named(void **state) {
  (void)state;
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 0, 1, 1, "");
  float scores[BATCH][CLASSES], expected[BATCH][CLASSES];
  bind_data(s);
  OK(s, tn_session_bind(s, "output", expected, sizeof expected));
  OK(s, tn_session_infer(s, 0));
  OK(s, tn_session_eval(s, 0));
  OK(s, tn_session_bind(s, "output", scores, sizeof scores));
  xs[2][1] = NAN;
  xs[5][0] = INFINITY;
  FAILS(s, tn_session_infer(s, 0), TN_ENONFINITE,
        "2 of 8 outputs are not finite, first that of 'row 2 of output'");
  for (int i = 0; i < BATCH; i++)
    if (i != 2 && i != 5) assert_memory_equal(scores[i], expected[i], sizeof scores[i]);
  assert_true(isnan(scores[2][0]));
  OK(s, tn_session_infer(s, 2)); /* the rows that were not copied do not count */
  FAILS(s, tn_session_eval(s, 0), TN_ENONFINITE, "tn_session_eval: the loss is");
  assert_true(isnan(metric(s, "loss")) && isnan(metric(s, "accuracy")));
  OK(s, tn_session_bind(s, "output", NULL, 0));
  OK(s, tn_session_infer(s, 0)); /* nothing is copied */
  tn_session_close(s);
  tn_run_close(run);
}

static tn_status ignoring_classifier(tn_build *b, void *user) {
  (void)user;
  tn_val x = tn_model_input(b, "x", &features);
  x = tn_build_layer(b, "fc", "linear(3)", &x, 1);
  tn_model_output(b, "output", x);
  if (tn_model_measured(b)) {
    tn_val label = tn_model_target(b, "label", &label_type);
    tn_model_loss(b, "cross_entropy(ignore=9)", (tn_val[]){x, label}, 2);
    tn_model_metric(b, "accuracy(ignore=9)", (tn_val[]){x, label}, 2);
    tn_model_metric(b, "top_k(k=1, ignore=9)", (tn_val[]){x, label}, 2);
    tn_model_metric(b, "perplexity(ignore=9)", (tn_val[]){x, label}, 2);
  }
  return tn_build_status(b);
}

/* A row with a NaN predicts no class: it is neither class 0 nor among the k first. Where its target is
 * ignored, it does not count. */
static void metrics_over_scores_that_are_no_numbers_are_none(void **state) {
  (void)state;
  static const char *const metrics[] = {"accuracy", "top_k", "perplexity"};
  tn_run *run = open_model(ignoring_classifier, same_as_ini);
  tn_session *s = open_session(run, 0, 1, 0, "");
  bind_data(s);
  xs[0][2] = NAN;
  labels[0] = 9;
  OK(s, tn_session_eval(s, 0));
  assert_true(metric(s, "accuracy") >= 0 && metric(s, "accuracy") <= 1);
  assert_true(metric(s, "top_k") == metric(s, "accuracy") && isfinite(metric(s, "perplexity")));
  for (int32_t label = 0; label < CLASSES; label++) {
    labels[0] = label;
    FAILS(s, tn_session_eval(s, 0), TN_ENONFINITE, "the loss is");
    for (int i = 0; i < 3; i++)
      if (!isnan(metric(s, metrics[i])))
        fail_msg("label %d: %s is %g", (int)label, metrics[i], metric(s, metrics[i]));
  }
  tn_session_close(s);
  tn_run_close(run);
}

/* As a model says that a class is impossible. */
static void a_score_of_minus_infinity_is_allowed(void **state) {
  (void)state;
  const float bias[CLASSES] = {0, -INFINITY, 0}, none[CLASSES] = {-INFINITY, -INFINITY, -INFINITY};
  tn_run *run = open_model(classifier, same_as_ini);
  tn_session *s = open_session(run, 0, 0, 1, "");
  float scores[BATCH][CLASSES];
  make_data();
  OK(s, tn_session_bind(s, "x", xs, sizeof xs));
  OK(s, tn_session_bind(s, "output", scores, sizeof scores));
  OK(s, tn_session_write(s, "fc2.bias", bias, sizeof bias));
  OK(s, tn_session_infer(s, 0));
  assert_true(isinf(scores[3][1]) && isfinite(scores[3][0]));
  OK(s, tn_session_write(s, "fc2.bias", none, sizeof none));
  FAILS(s, tn_session_infer(s, 3), TN_ENONFINITE,
        "3 of 3 outputs are not finite, first that of 'row 0 of output'");
  tn_session_close(s);
  tn_run_close(run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_emitted_model_learns),
      cmocka_unit_test(it_trains_to_the_bits_of_the_same_model_in_a_configuration),
      cmocka_unit_test(rows_behind_the_given_ones_count_for_nothing),
      cmocka_unit_test(parameters_go_to_a_file_and_back),
      cmocka_unit_test(a_damaged_checkpoint_does_not_change_an_open_session),
      cmocka_unit_test(averages_are_evaluated_and_saved),
      cmocka_unit_test(a_session_lists_its_fields),
      cmocka_unit_test(wrong_calls_say_what_was_expected),
      cmocka_unit_test(a_wrong_function_is_explained),
      cmocka_unit_test(a_function_may_have_losses_parameters_and_outputs_of_its_own),
      cmocka_unit_test(constants_serve_every_program_of_a_session),
      cmocka_unit_test(a_loss_that_is_not_finite_is_said),
      cmocka_unit_test(an_output_that_is_not_finite_is_named),
      cmocka_unit_test(a_score_of_minus_infinity_is_allowed),
      cmocka_unit_test(metrics_over_scores_that_are_no_numbers_are_none),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}

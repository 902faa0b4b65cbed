/* Inference with oneDNN: batch_norm, residuals and relu folded into convolutions match the reference, and are
 * folded again after the state has changed. */
#include <jansson.h>

#include "session_rig.h"

static const char model[] =
    "[run]\nname = net\nseed = 5\n"
    "[model]\ninputs = image: f32[3, 20, 20]\n"
    "layers =\n"
    "    stem:  conv2d(16, kernel=5, stride=2, padding=2, bias=no)\n"
    "    bn:    batch_norm\n"
    "           relu\n"
    "    a:     residual(16)\n"
    "    b:     residual(32, 2)\n"
    "    up:    conv2d(32, kernel=3, padding=1)\n"
    "           relu\n"
    "    one:   conv2d(32, kernel=1)\n"
    "    wide:  conv2d(32, kernel=3, padding=1, groups=2)\n"
    "    pool:  global_avg_pool\n"
    "    fc:    linear(6)\n"
    "[block residual]\nargs = planes, stride=1\nlayers =\n"
    "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    conv2: conv2d(planes, kernel=3, padding=1)\n"
    "    bn2:   batch_norm\n"
    "    down:  conv2d(planes, kernel=1, stride=stride, bias=no), batch_norm <- in if stride != 1\n"
    "           add <- bn2, down\n"
    "           relu\n";

/* Channels that fill no blocks, activations behind convolutions, halves that are shuffled, and a gate. */
static const char uneven[] = "[run]\nname = uneven\nseed = 5\n"
                             "[model]\ninputs = image: f32[3, 20, 20]\n"
                             "layers =\n"
                             "    stem:  conv2d(18, kernel=3, padding=1, bias=no), batch_norm, relu6\n"
                             "    deep:  conv2d(18, kernel=3, padding=1, groups=18), batch_norm, hardswish\n"
                             "    wide:  conv2d(58, kernel=1), silu\n"
                             "           max_pool(3, stride=2, padding=1)\n"
                             "    a:     unit * 2\n"
                             "    gate:  gated\n"
                             "           avg_pool(2)\n"
                             "    pool:  global_avg_pool\n"
                             "    fc:    linear(6)\n"
                             "[block unit]\nlayers =\n"
                             "    x, y: split(2)\n"
                             "    half: conv2d(29, kernel=1, bias=no), batch_norm, relu <- y\n"
                             "    concat <- x, half\n"
                             "    channel_shuffle(2)\n"
                             "[block gated]\nlayers =\n"
                             "    fc1: conv2d(7, kernel=1), relu <- mean(in, axis=[2, 3], keep=yes)\n"
                             "    fc2: conv2d(58, kernel=1), hardsigmoid\n"
                             "    mul <- in, fc2\n"
                             "    out: conv2d(58, kernel=1), sigmoid\n";

static model_file file;

static int write_model(void **state) {
  (void)state;
  return model_file_write(&file, model);
}
static int write_uneven(void **state) {
  (void)state;
  return model_file_write(&file, uneven);
}

static int remove_model(void **state) {
  (void)state;
  return model_file_remove(&file);
}

/* Statistics and parameters with values as after training. */
static void unsettle(rig *r, float by) {
  static const char *const names[] = {"bn.running_mean",     "bn.running_var",    "bn.weight",
                                      "a.bn2.running_mean",  "a.bn2.running_var", "a.bn2.bias",
                                      "b.down.1.running_var"};
  float values[32];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t n = names[i][0] == 'b' && names[i][1] == '.' ? 32 : 16;
    for (size_t k = 0; k < n; k++) values[k] = 0.4f + by * (float)((k + i) % 5);
    ok(tn_session_write(r->session, names[i], values, n * sizeof *values), r->session);
  }
}

static void compare(const char *const *more, int32_t n_more, double allowed) {
  rig *cpu = start(&file, "backend.use=cpu", NULL, 0),
      *fast = start(&file, "backend.use=onednn", more, n_more);
  double before[2];
  for (int32_t round = 0; round < 3; round++) {
    unsettle(cpu, 0.1f * (float)(round + 1));
    unsettle(fast, 0.1f * (float)(round + 1));
    for (int32_t again = 0; again < 2; again++) {
      ok(tn_session_infer(cpu->session, BATCH), cpu->session);
      ok(tn_session_infer(fast->session, BATCH), fast->session);
      assert_true(difference(cpu, fast) <= allowed);
    }
    before[round % 2] = cpu->scores[0];
    if (round > 0) assert_true(before[0] != before[1]); /* the write has an effect */
  }
  stop(cpu);
  stop(fast);
}

static void folded_layers_give_what_the_reference_gives(void **state) {
  (void)state;
  compare(NULL, 0, 2e-5);
}

static void without_winograd_too(void **state) {
  static const char *const more[] = {"backend.onednn.winograd=off", "run.threads=1"};
  (void)state;
  compare(more, 2, 2e-6);
}

static void in_bf16_to_its_accuracy(void **state) {
  static const char *const more[] = {"precision.policy=bf16"};
  (void)state;
  compare(more, 1, 3e-2);
}

/* Images and weights of the uneven model; some activations bend at the edges of these images. */
static void any_number_of_channels_gives_what_the_reference_gives(void **state) {
  (void)state;
  rig *cpu = start(&file, "backend.use=cpu", NULL, 0), *fast = start(&file, "backend.use=onednn", NULL, 0);
  for (int32_t i = 0; i < BATCH * PIXELS; i++) cpu->image[i] = fast->image[i] *= 5;
  ok(tn_session_infer(cpu->session, BATCH), cpu->session);
  ok(tn_session_infer(fast->session, BATCH), fast->session);
  assert_true(difference(cpu, fast) <= 2e-5);
  stop(cpu);
  stop(fast);
}

/* Kernels of convolutions take every activation, and nothing falls back to row-major images in between. */
static void the_plan_keeps_channels_innermost(void **state) {
  const char *set[] = {"backend.use=onednn", "backend.autotune=no"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 2};
  static const char *const wanted[] = {"relu6_folded",         "hardswish_folded",   "silu_folded",
                                       "slice_concat_shuffle", "hardsigmoid_folded", "sigmoid_folded",
                                       "max_pool2d_values"};
  tn_context *context;
  tn_run *run;
  char *text;
  (void)state;
  ok(tn_context_open(NULL, &context), context);
  ok(tn_run_open(context, file.path, &options, &run), context);
  ok(tn_run_plan(run, NULL, &text, NULL), run);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    if (strstr(text, wanted[i]) == NULL) fail_msg("no kernel %s in %s", wanted[i], text);
  tn_string_free(run, text);
  tn_run_close(run);
  tn_context_close(context);
}

/* Every batch_norm is folded, and activations stay in a blocked layout from the first layer to the pooling.
 */
static void the_plan_has_folded_kernels_and_no_reorders(void **state) {
  const char *set[] = {"backend.use=onednn", "backend.autotune=no"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 2};
  tn_context *context;
  tn_run *run;
  char *text;
  (void)state;
  ok(tn_context_open(NULL, &context), context);
  ok(tn_run_open(context, file.path, &options, &run), context);
  ok(tn_run_plan(run, NULL, &text, NULL), run);
  json_t *plan = json_loads(text, 0, NULL), *op;
  size_t i, folded = 0;
  json_array_foreach(json_object_get(plan, "ops"), i, op) {
    const char *name = json_string_value(json_object_get(op, "op"));
    folded += strstr(json_string_value(json_object_get(op, "kernel")), "folded") != NULL;
    assert_null(strstr(name, "reorder"));
    assert_null(strstr(name, "rsqrt"));
  }
  assert_int_equal(folded, 9);
  json_decref(plan);
  tn_string_free(run, text);
  tn_run_close(run);
  tn_context_close(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folded_layers_give_what_the_reference_gives),
      cmocka_unit_test(without_winograd_too),
      cmocka_unit_test(in_bf16_to_its_accuracy),
      cmocka_unit_test(the_plan_has_folded_kernels_and_no_reorders),
  };
  const struct CMUnitTest of_uneven[] = {
      cmocka_unit_test(any_number_of_channels_gives_what_the_reference_gives),
      cmocka_unit_test(the_plan_keeps_channels_innermost)};
  return cmocka_run_group_tests(tests, write_model, remove_model) +
         cmocka_run_group_tests(of_uneven, write_uneven, remove_model);
}

/* Skipped steps, and the scale of the loss meanwhile. */
#include <math.h>

#include "checkpoint.h"

/* A small net with running statistics, and an optimizer that counts its updates. Step k reads samples 4k to
 * 4k + 3. */
static const char spikes_ini[] = "[run]\n"
                                 "name = spikes\n"
                                 "[plugins]\n"
                                 "load = " HOLES "\n"
                                 "[data]\n"
                                 "source = holes\n"
                                 "value = inf\n"
                                 "element = 0\n"
                                 "samples = 1000\n"
                                 "batch = 4\n"
                                 "shuffle = no\n"
                                 "workers = 0\n"
                                 "[model]\n"
                                 "inputs = image: f32[2, 4, 4]\n"
                                 "layers =\n"
                                 "    conv: conv2d(4, kernel=3, padding=1)\n"
                                 "    bn:   batch_norm\n"
                                 "          relu\n"
                                 "          flatten\n"
                                 "    fc:   linear(3)\n"
                                 "loss = cross_entropy\n"
                                 "[optimizer]\n"
                                 "type = adamw\n"
                                 "lr = 0.01\n"
                                 "[precision]\n"
                                 "policy = fp16\n";

enum { BATCH = 4 };
static const char model_file[] = "spikes/checkpoints/last/model.safetensors",
                  optimizer_file[] = "spikes/checkpoints/last/optimizer.safetensors";

static const char *in(const char *output, const char *file) {
  static char path[4][128];
  static int next;
  next = (next + 1) % 4;
  snprintf(path[next], sizeof path[next], "%s/%s", output, file);
  return path[next];
}

/* The line of a step in metrics.jsonl; ends the array with NULL. */
static int read_steps(const char *output, const json_t *steps[], int most) {
  size_t n;
  int count = 0;
  char *text = file_read(in(output, "spikes/metrics.jsonl"), &n);
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    json_t *json = json_loads(line, 0, NULL);
    assert_non_null(json);
    if (strcmp(program_text(json, "event"), "step") == 0 && count < most)
      steps[count++] = json;
    else
      json_decref(json);
  }
  return count;
}

static void free_steps(const json_t *steps[], int n) {
  for (int i = 0; i < n; i++) json_decref((json_t *)(uintptr_t)steps[i]);
}

/* "[8, 12]": the first sample of each step whose gradients shall overflow. */
static void list_spikes(const json_t *golden, char *text, size_t size) {
  const json_t *spikes = json_object_get(golden, "spikes");
  int n = snprintf(text, size, "[");
  for (size_t i = 0; i < json_array_size(spikes); i++)
    n += snprintf(text + n, size - (size_t)n, "%s%d", i ? "," : "",
                  BATCH * (int)json_integer_value(json_array_get(spikes, i)));
  snprintf(text + n, size - (size_t)n, "]");
}

static void compare_with_gradscaler(const char *name) {
  char path[256], spikes[256];
  const json_t *steps[64];
  snprintf(path, sizeof path, SCALER "/%s.json", name);
  const json_t *golden = file_json(path), *scales = json_object_get(golden, "scales"),
               *skipped = json_object_get(golden, "skipped");
  int want = (int)program_number(golden, "steps");
  list_spikes(golden, spikes, sizeof spikes);
  file_write("spikes.ini", spikes_ini);
  program_json(
      0,
      "train spikes.ini --output %s --set run.max_steps=%d --set data.at=%s --set "
      "precision.init_scale=%g --set precision.growth_factor=%g --set precision.backoff_factor=%g --set "
      "precision.growth_interval=%d",
      name, want, spikes, program_number(golden, "init_scale"), program_number(golden, "growth_factor"),
      program_number(golden, "backoff_factor"), (int)program_number(golden, "growth_interval"));
  assert_int_equal(read_steps(name, steps, 64), want);
  for (int i = 0; i < want; i++) {
    double scale = program_number(steps[i], "loss_scale"),
           expected = json_number_value(json_array_get(scales, (size_t)i));
    if ((float)scale != (float)expected)
      fail_msg("%s: step %d has scale %.9g, expected %.9g", name, i, scale, expected);
    assert_int_equal(program_number(steps[i], "skipped"),
                     json_integer_value(json_array_get(skipped, (size_t)i)));
  }
  free_steps(steps, want);
}

static void scales_and_skipped_steps_are_gradscalers(void **state) {
  (void)state;
  compare_with_gradscaler("mixed");
  compare_with_gradscaler("restless");
}

/* Three steps, and three steps and one that overflows before the loss: they differ only in the scale and in
 * the host's count of steps. */
static void an_overflow_changes_only_the_scale(void **state) {
  (void)state;
  static const char *const parameters[] = {"conv.weight", "conv.bias",       "bn.weight",      "bn.bias",
                                           "fc.weight",   "bn.running_mean", "bn.running_var", "fc.bias"};
  static const char *const slots[] = {"conv.weight.exp_avg", "conv.weight.exp_avg_sq", "fc.bias.exp_avg",
                                      "fc.bias.exp_avg_sq", "run.updates"};
  file_write("spikes.ini", spikes_ini);
  program_json(0, "train spikes.ini --output three --set run.max_steps=3 --set precision.init_scale=64");
  program_json(0, "train spikes.ini --output four --set run.max_steps=4 --set precision.init_scale=64 --set "
                  "data.at=[13]");
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    assert_true(checkpoint_same(in("three", model_file), in("four", model_file), parameters[i]));
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
    assert_true(checkpoint_same(in("three", optimizer_file), in("four", optimizer_file), slots[i]));
  assert_int_equal(checkpoint_count(in("four", optimizer_file), "run.updates"), 3);
  assert_true(checkpoint_f32(in("three", optimizer_file), "precision.scale") == 64);
  assert_true(checkpoint_f32(in("four", optimizer_file), "precision.scale") == 32);
  assert_int_equal(checkpoint_count(in("three", optimizer_file), "precision.good_steps"), 3);
  assert_int_equal(checkpoint_count(in("four", optimizer_file), "precision.good_steps"), 0);
  assert_int_equal(program_number(file_json("four/spikes/checkpoints/last/state.json"), "step"), 4);
  assert_non_null(strstr(file_read("four/spikes/metrics.csv", &(size_t){0}), ",train,skipped,1\n"));
  assert_non_null(strstr(program_err, "1 updates skipped"));
}

/* The statistics of the image itself: a step with an infinite value in channel 0 keeps that channel's, and
 * changes those of channel 1. */
static void a_statistic_that_is_not_finite_keeps_its_channel(void **state) {
  (void)state;
  size_t bytes;
  float before[2][2], after[2][2];
  static const char *const names[] = {"first.running_mean", "first.running_var"};
  char text[sizeof spikes_ini + 64];
  const char *at = strstr(spikes_ini, "    conv:");
  snprintf(text, sizeof text, "%.*s    first: batch_norm\n%s", (int)(at - spikes_ini), spikes_ini, at);
  file_write("spikes.ini", text);
  program_json(0, "train spikes.ini --output three --set run.max_steps=3 --set precision.init_scale=64");
  program_json(0, "train spikes.ini --output four --set run.max_steps=4 --set precision.init_scale=64 --set "
                  "data.at=[13]");
  for (int i = 0; i < 2; i++) {
    memcpy(before[i], checkpoint_tensor(in("three", model_file), names[i], &bytes), sizeof before[i]);
    memcpy(after[i], checkpoint_tensor(in("four", model_file), names[i], &bytes), sizeof after[i]);
    assert_int_equal(bytes, sizeof after[i]);
    assert_true(before[i][0] == after[i][0]);
    assert_true(before[i][1] != after[i][1]);
    assert_true(isfinite(after[i][1]));
  }
  assert_true(checkpoint_same(in("three", model_file), in("four", model_file), "conv.weight"));
}

/* The scale is so large that only the backward pass overflows: parameters stay, and running statistics
 * change. */
static void an_overflow_of_gradients_alone_keeps_the_statistics(void **state) {
  (void)state;
  file_write("spikes.ini", spikes_ini);
  program_json(0, "train spikes.ini --output zero --set run.epochs=0");
  const json_t *r = program_json(0, "train spikes.ini --output two --set run.max_steps=2 --set "
                                    "precision.init_scale=1e30 --set precision.scaling=static");
  assert_true(isfinite(program_number(r, "train.loss")));
  assert_true(checkpoint_same(in("zero", model_file), in("two", model_file), "conv.weight"));
  assert_true(checkpoint_same(in("zero", model_file), in("two", model_file), "fc.bias"));
  assert_false(checkpoint_same(in("zero", model_file), in("two", model_file), "bn.running_mean"));
  assert_false(checkpoint_same(in("zero", model_file), in("two", model_file), "bn.running_var"));
  assert_int_equal(checkpoint_count(in("two", optimizer_file), "run.updates"), 0);
  assert_false(
      checkpoint_has(in("two", optimizer_file), "precision.scale")); /* a static scale has no state */
}

/* Images of hundreds: the gradient of the convolution's weight is a sum of 8192 products, and alone overflows
 * f16 at the larger scale. The other parameters keep their values. */
static const char steep_ini[] = "[run]\nname = spikes\n"
                                "[data]\nsource = random\nshape = 2, 16, 16\nclasses = 2\nsamples = 64\n"
                                "batch = 32\ntransforms = normalize(mean=0, std=0.01)\n"
                                "[model]\ninputs = image: f32[2, 16, 16]\nlayers =\n"
                                "    conv: conv2d(4, kernel=1, bias=no)\n"
                                "          relu\n"
                                "          flatten\n"
                                "    fc:   linear(2)\n"
                                "loss = cross_entropy\n"
                                "[optimizer]\ntype = sgd\nlr = 1e-6\n"
                                "[group.still]\nmatch = fc.weight\nfreeze = yes\n"
                                "[precision]\npolicy = fp16\nscaling = static\n";

static void an_overflow_in_half_precision_is_seen(void **state) {
  (void)state;
  file_write("steep.ini", steep_ini);
  program_json(0, "train steep.ini --output zero --set run.epochs=0");
  for (int steep = 0; steep < 2; steep++) {
    const char *output = steep ? "steep" : "flat";
    const json_t *r =
        program_json(0, "train steep.ini --output %s --set run.max_steps=2 --set precision.init_scale=%d",
                     output, steep ? 65536 : 1024);
    assert_true(isfinite(program_number(r, "train.loss")));
    assert_int_equal(checkpoint_count(in(output, optimizer_file), "run.updates"), steep ? 0 : 2);
    assert_int_equal(checkpoint_same(in("zero", model_file), in(output, model_file), "conv.weight"), steep);
    assert_int_equal(checkpoint_same(in("zero", model_file), in(output, model_file), "fc.bias"), steep);
  }
}

static void a_dynamic_scale_adapts(void **state) {
  (void)state;
  file_write("spikes.ini", spikes_ini);
  program_json(0, "train spikes.ini --output run --set run.max_steps=60 --set precision.init_scale=1e12");
  int64_t updates = checkpoint_count(in("run", optimizer_file), "run.updates");
  assert_in_range(updates, 30, 59);
  assert_true(checkpoint_f32(in("run", optimizer_file), "precision.scale") ==
              (float)ldexp(1e12, (int)(updates - 60)));
}

/* ---- without scaling ---- */

static void without_scaling_a_nonfinite_loss_ends_the_run(void **state) {
  (void)state;
  static const char *const sets[] = {"precision.policy=bf16", "precision.policy=fp32",
                                     "precision.scaling=none",
                                     "precision.policy=fp32 --set optimizer.check_finite=yes"};
  file_write("spikes.ini", spikes_ini);
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    assert_int_equal(
        program_run("train spikes.ini --output run --set run.max_steps=4 --set data.at=[9] --set %s",
                    sets[i]),
        76);
}

/* check_finite without a scale: skipped steps are reported, without fields of scaling. */
static void check_finite_and_clipping_report_skipped_updates(void **state) {
  (void)state;
  const json_t *steps[8];
  file_write("spikes.ini", spikes_ini);
  program_json(0, "train spikes.ini --output run --set run.max_steps=2 --set precision.policy=fp32 --set "
                  "optimizer.check_finite=yes");
  assert_int_equal(read_steps("run", steps, 8), 2);
  assert_int_equal(program_number(steps[1], "skipped"), 0);
  assert_null(json_object_get(steps[1], "loss_scale"));
  free_steps(steps, 2);
  program_json(0, "train spikes.ini --output plain --set run.max_steps=2 --set precision.policy=fp32");
  assert_int_equal(read_steps("plain", steps, 8), 2);
  assert_null(json_object_get(steps[1], "skipped"));
  free_steps(steps, 2);
  files_equal(in("run", model_file), in("plain", model_file));
}

static void a_loss_that_never_becomes_finite_ends_the_run(void **state) {
  (void)state;
  file_write("spikes.ini", spikes_ini);
  assert_int_equal(program_run("train spikes.ini --output run --set run.max_steps=150 --set data.every=4"),
                   76);
  assert_non_null(strstr(program_err, "as in the 99 steps before, which were skipped"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(scales_and_skipped_steps_are_gradscalers),
      CASE(an_overflow_changes_only_the_scale),
      CASE(a_statistic_that_is_not_finite_keeps_its_channel),
      CASE(an_overflow_of_gradients_alone_keeps_the_statistics),
      CASE(an_overflow_in_half_precision_is_seen),
      CASE(a_dynamic_scale_adapts),
      CASE(without_scaling_a_nonfinite_loss_ends_the_run),
      CASE(check_finite_and_clipping_report_skipped_updates),
      CASE(a_loss_that_never_becomes_finite_ends_the_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* [optimizer] sharpness: ten steps of two passes, against those of PyTorch (tests/golden/make_sharpness.py).
 */
#include "golden_net.h"

static const char sam[] =
    "--set optimizer.type=sgd --set optimizer.momentum=0.9 --set optimizer.sharpness=0.05",
                  asam[] = "--set optimizer.type=adamw --set optimizer.lr=0.01 --set optimizer.sharpness=0.5 "
                           "--set optimizer.sharpness_adaptive=yes";

static int open_with_samples(void **state) {
  int failed = program_open(state);
  golden_write_data(SHARPNESS "/net.ini");
  return failed;
}

static void train(const char *run, const char *keys, const char *more) {
  if (program_run("train net.ini --quiet --set run.name=%s %s %s", run, keys, more) != 0)
    fail_msg("%s %s: %s", keys, more, program_err);
}

/* The runs of a test have names of their own: a run does not replace another. */
static const char *weights_of(const char *run) {
  static char paths[2][64];
  static int next;
  char *path = paths[next++ % 2];
  snprintf(path, sizeof paths[0], "runs/%s/checkpoints/last/model.safetensors", run);
  return path;
}

/* ---- PyTorch ---- */

static void expect_tensors(const char *run, const char *what, const json_t *tensors) {
  const char *name;
  json_t *want;
  json_object_foreach((json_t *)(uintptr_t)tensors, name, want) {
    size_t n = 0;
    const float *has = tensor_find(weights_of(run), name, &n);
    assert_non_null(has);
    assert_int_equal(n, json_array_size(want));
    for (size_t i = 0; has && i < n; i++) {
      double wants = json_number_value(json_array_get(want, i));
      if (!(fabs((double)has[i] - wants) <= 1e-6 * (1 + fabs(wants))))
        fail_msg("%s: %s[%zu] is %.9g, PyTorch has %.9g", what, name, i, (double)has[i], wants);
    }
  }
}

/* The loss of a step is that of the first pass. */
static void expect_losses(const char *run, const char *what, const json_t *losses) {
  char path[64];
  size_t n, step = 0;
  snprintf(path, sizeof path, "runs/%s/metrics.jsonl", run);
  for (const char *at = file_read(path, &n); *at != '\0'; at = strchr(at, '\n') + 1) {
    json_error_t error;
    json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);
    if (strcmp(json_string_value(json_object_get(line, "event")), "step") == 0) {
      double has = json_number_value(json_object_get(json_object_get(line, "train"), "loss")),
             wants = json_number_value(json_array_get(losses, step++));
      if (!(fabs(has - wants) <= 1e-6 * (1 + fabs(wants))))
        fail_msg("%s: the loss of step %zu is %.9g, PyTorch has %.9g", what, step, has, wants);
    }
    json_decref(line);
  }
  assert_int_equal(step, json_array_size(losses));
}

static void expect_golden(const char *backend) {
  const json_t *cases = file_json(SHARPNESS "/golden.json");
  const char *name;
  json_t *golden;
  int number = 0;
  json_object_foreach((json_t *)(uintptr_t)cases, name, golden) {
    char keys[512] = "", copy[256], run[16];
    size_t n = 0;
    snprintf(run, sizeof run, "%d", number++);
    snprintf(copy, sizeof copy, "%s", name);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
      n += (size_t)snprintf(keys + n, sizeof keys - n, "--set optimizer.%s ", word);
    train(run, keys, backend);
    expect_tensors(run, name, json_object_get(golden, "tensors"));
    expect_losses(run, name, json_object_get(golden, "losses"));
  }
}

static void ten_steps_are_those_of_pytorch(void **state) {
  (void)state;
  expect_golden("--set backend.use=onednn");
}

static void expect_same(const char *one, const char *other, const char *name) {
  double distance = tensor_distance(weights_of(one), weights_of(other), name);
  if (!(distance < 1e-6)) fail_msg("%s and %s: %s differs by %g", one, other, name, distance);
}

static void backends_and_launches_of_steps_agree(void **state) {
  (void)state;
  static const char *const more[] = {"--set backend.use=cpu", "--set backend.use=sim",
                                     "--set backend.use=onednn --set run.steps_per_launch=5"};
  train("sam", sam, "--set backend.use=onednn");
  train("asam", asam, "--set backend.use=onednn");
  for (int i = 0; i < 6; i++) {
    char other[16];
    snprintf(other, sizeof other, "%d", i);
    train(other, i % 2 ? asam : sam, more[i / 2]);
    expect_same(i % 2 ? "asam" : "sam", other, "conv.weight");
    expect_same(i % 2 ? "asam" : "sam", other, "bn.running_var");
    expect_same(i % 2 ? "asam" : "sam", other, "fc.weight");
  }
}

/* ---- ranks, precision, random numbers ---- */

#define WITHOUT_STATISTICS "--set group.norm.match=bn.* --set group.norm.freeze=yes "
#define TWO_DEVICES        "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2 "

/* The perturbation is that of the gradient of all devices. A norm that is frozen sees no batch. */
static void devices_agree_with_one(void **state) {
  (void)state;
  static const char *const more[] = {TWO_DEVICES "--set data.batch=8",
                                     TWO_DEVICES "--set distributed.bucket=64",
                                     TWO_DEVICES "--set distributed.shard=optimizer"};
  train("sam", sam, WITHOUT_STATISTICS "--set backend.use=sim");
  train("asam", asam, WITHOUT_STATISTICS "--set backend.use=sim");
  for (int i = 0; i < 6; i++) {
    char all[256], two[16];
    snprintf(all, sizeof all, WITHOUT_STATISTICS "%s", more[i / 2]);
    snprintf(two, sizeof two, "%d", i);
    train(two, i % 2 ? asam : sam, all);
    expect_same(i % 2 ? "asam" : "sam", two, "conv.weight");
    expect_same(i % 2 ? "asam" : "sam", two, "fc.weight");
  }
}

/* A loss scale of 1e30 overflows in the first pass: those updates are skipped, and the parameters stay. */
static void low_precision_trains_and_skips(void **state) {
  (void)state;
  train("start", sam, "--set run.epochs=0");
  train("bf16", sam, "--set precision.policy=bf16");
  train("fp16", asam, "--set precision.policy=fp16");
  assert_true(tensor_distance(weights_of("start"), weights_of("bf16"), "fc.weight") > 1e-3);
  assert_true(tensor_distance(weights_of("start"), weights_of("fp16"), "fc.weight") > 1e-3);
  train("skipped", sam, "--set precision.policy=fp16 --set precision.init_scale=1e30");
  assert_true(tensor_distance(weights_of("start"), weights_of("skipped"), "fc.weight") == 0);
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)) != NULL; text++) n++;
  return n;
}

/* The second pass repeats what depends on a parameter, and reads the random numbers of the first. */
static void both_passes_have_the_same_random_numbers(void **state) {
  (void)state;
  size_t n;
  char text[2048];
  const char *ini = file_read("net.ini", &n), *relu = strstr(ini, "relu");
  snprintf(text, sizeof text, "%.*sdropout(0.5), %s", (int)(relu - ini), ini, relu);
  file_write("net.ini", text);
  assert_int_equal(program_run("plan net.ini --dump-after select"), 0);
  int convolutions = count(program_out, "= conv2d");
  assert_true(convolutions > 0);
  assert_int_equal(program_run("plan net.ini --dump-after select %s", sam), 0);
  assert_int_equal(count(program_out, "= conv2d"), 2 * convolutions);
  assert_int_equal(count(program_out, "= random_uniform"), 1);
}

static void resuming_is_exact(void **state) {
  (void)state;
  train("whole", asam, "--set optimizer.ema=0.9");
  train("part", asam, "--set optimizer.ema=0.9 --set run.max_steps=4");
  train("part", asam, "--set optimizer.ema=0.9 --resume auto");
  assert_true(tensor_distance(weights_of("whole"), weights_of("part"), "fc.weight") == 0);
  assert_true(tensor_distance(weights_of("whole"), weights_of("part"), "bn.running_mean") == 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_with_samples, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(ten_steps_are_those_of_pytorch),
      CASE(backends_and_launches_of_steps_agree),
      CASE(devices_agree_with_one),
      CASE(low_precision_trains_and_skips),
      CASE(both_passes_have_the_same_random_numbers),
      CASE(resuming_is_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

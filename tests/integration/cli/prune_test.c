/* [prune]: ten steps against those of PyTorch (tests/golden/make_pruning.py). */
#include "golden_net.h"

static int open_with_samples(void **state) {
  int failed = program_open(state);
  golden_write_data(PRUNING "/net.ini");
  return failed;
}

static void train(const char *run, const char *keys) {
  if (program_run("train net.ini --quiet --set run.name=%s %s", run, keys) != 0)
    fail_msg("%s: %s", keys, program_err);
}

static const char *weights_of(const char *run) {
  static char paths[2][64];
  static int next;
  char *path = paths[next++ % 2];
  snprintf(path, sizeof paths[0], "runs/%s/checkpoints/last/model.safetensors", run);
  return path;
}

/* "type=sgd lr=0.1|sparsity=0.5" as settings. */
static void settings_of(const char *name, char *keys, size_t room) {
  char copy[256];
  const char *section = "optimizer";
  size_t n = 0;
  snprintf(copy, sizeof copy, "%s", name);
  for (char *word = copy, *end; *word != '\0'; word = end) {
    end = word + strcspn(word, " |");
    char after = *end;
    if (after != '\0') *end++ = '\0';
    n += (size_t)snprintf(keys + n, room - n, "--set %s.%s ", section, word);
    if (after == '|') section = "prune";
  }
}

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

static int zeros_of(const char *run) {
  static const char *const names[] = {"conv.weight", "fc.weight"};
  int zeros = 0;
  for (int k = 0; k < 2; k++) {
    size_t n = 0;
    const float *has = tensor_find(weights_of(run), names[k], &n);
    for (size_t i = 0; i < n; i++) zeros += has[i] == 0;
  }
  return zeros;
}

static void ten_steps_are_those_of_pytorch(void **state) {
  (void)state;
  const json_t *cases = file_json(PRUNING "/golden.json");
  const char *name;
  json_t *golden;
  int number = 0;
  json_object_foreach((json_t *)(uintptr_t)cases, name, golden) {
    char keys[512], run[16];
    snprintf(run, sizeof run, "%d", number++);
    settings_of(name, keys, sizeof keys);
    train(run, keys);
    expect_tensors(run, name, json_object_get(golden, "tensors"));
    assert_int_equal(zeros_of(run), json_integer_value(json_object_get(golden, "zeros")));
  }
  assert_int_equal(number, 10);
}

static const char gradual[] = "--set prune.sparsity=0.8 --set prune.first=1 --set prune.last=9 "
                              "--set prune.every=2 --set optimizer.lr=0.05";

static void expect_same(const char *one, const char *other) {
  static const char *const names[] = {"conv.weight", "fc.weight", "fc.bias"};
  for (int i = 0; i < 3; i++) {
    double distance = tensor_distance(weights_of(one), weights_of(other), names[i]);
    if (!(distance < 1e-6)) fail_msg("%s and %s: %s differs by %g", one, other, names[i], distance);
  }
}

/* Choices fall between launches of several steps, and micro-batches have one choice. */
static void backends_and_launches_agree(void **state) {
  (void)state;
  static const char *const more[] = {
      "--set backend.use=cpu", "--set backend.use=sim --set run.steps_per_launch=4",
      "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2",
      "--set optimizer.accumulate=2 --set data.batch=4"};
  char keys[512];
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    char run[16];
    snprintf(run, sizeof run, "%zu", i);
    snprintf(keys, sizeof keys, "%s %s", gradual, more[i]);
    train(run, keys);
    assert_int_equal(zeros_of(run), 128);
    if (i == 1) expect_same("0", run);
  }
}

/* The masks are in the checkpoint. */
static void a_resumed_run_has_the_same_weights(void **state) {
  (void)state;
  char keys[512];
  train("whole", gradual);
  snprintf(keys, sizeof keys, "%s --set run.pause_after=1", gradual);
  train("halves", keys);
  if (program_run("train net.ini --quiet --resume auto --set run.name=halves %s", gradual) != 0)
    fail_msg("%s", program_err);
  expect_same("whole", "halves");
  size_t n = 0;
  const char *lines = file_read("runs/whole/metrics.jsonl", &n);
  assert_non_null(strstr(lines, "\"sparsity\": 0.8"));
}

/* In blocks of 8 bits the optimizer has the parameters of another shape. */
static void small_states_go_with_masks(void **state) {
  (void)state;
  static const char *const dtypes[] = {"bf16", "int8"};
  file_write("wide.ini", "[run]\nname = wide\nmax_steps = 4\n[data]\nsource = random\nfields = x: f32[16]\n"
                         "targets = label: i32[]\nsamples = 32\nbatch = 8\nclasses = 4\n[model]\ninputs = x: "
                         "f32[16]\nlayers =\n    fc1: linear(512)\n    relu\n    fc2: linear(4)\nloss = "
                         "cross_entropy\n[optimizer]\ntype = adamw\n[prune]\nsparsity = 0.5\nfirst = 2\n");
  for (int i = 0; i < 2; i++) {
    if (program_run("train wide.ini --quiet --set run.name=%s --set optimizer.state_dtype=%s", dtypes[i],
                    dtypes[i]) != 0)
      fail_msg("%s", program_err);
    size_t n = 0, zeros = 0;
    const float *has = tensor_find(weights_of(dtypes[i]), "fc1.weight", &n);
    for (size_t k = 0; k < n; k++) zeros += has[k] == 0;
    assert_int_equal(zeros, 4096);
  }
}

/* Averages that validation and prediction read have the zeros as well. */
static void averages_are_pruned(void **state) {
  (void)state;
  char keys[512];
  snprintf(keys, sizeof keys, "%s --set optimizer.ema=0.9", gradual);
  train("ema", keys);
  assert_int_equal(zeros_of("ema"), 128);
}

static void expect_refusal(const char *keys, const char *text) {
  assert_int_equal(program_run("train net.ini %s", keys), 65);
  if (strstr(program_err, text) == NULL) fail_msg("%s, expected %s", program_err, text);
}

static void settings_without_sense_are_refused(void **state) {
  (void)state;
  expect_refusal("--set prune.pattern=4:2",
                 "[prune] pattern = 4:2, expected none, or how many of how many neighbours stay, as in 2:4");
  expect_refusal("--set prune.match=head.*", "[prune] match = head.*: no trained parameter of two dimensions "
                                             "or more has such a name");
  expect_refusal("--set prune.first=5 --set prune.last=2", "[prune] last = 2 is before first = 5");
  expect_refusal("--set prune.sparsity=1", "sparsity");
  expect_refusal("--set run.max_steps=8 --set prune.first=8",
                 "[prune] first = 8 steps is behind the end of the run, which has 8 steps, ");
  expect_refusal("--set run.epochs=2 --set prune.unit=epochs --set prune.first=3",
                 "[prune] first = 3 epochs is behind the end of the run");
  expect_refusal("--set prune.sparsity=0.5 --set distributed.shard=optimizer",
                 "[prune] beside [distributed] shard = optimizer");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_with_samples, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(ten_steps_are_those_of_pytorch),     TEST(backends_and_launches_agree),
      TEST(a_resumed_run_has_the_same_weights), TEST(averages_are_pruned),
      TEST(small_states_go_with_masks),         TEST(settings_without_sense_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

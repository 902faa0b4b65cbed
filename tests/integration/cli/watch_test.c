/* [run] watch: norms and ratios of groups of parameters. */
#include <math.h>
#include <stdbool.h>

#include "configs.h"
#include "tensors.h"

static int open_with_net(void **state) {
  int failed = program_open(state);
  file_write("noise.ini", noise_ini);
  return failed;
}

static void train(const char *name, const char *more) {
  if (program_run("train noise.ini --quiet --set run.name=%s --set optimizer.momentum=0 %s", name, more) != 0)
    fail_msg("%s: %s", more, program_err);
}

/* The value that metrics.jsonl has for a watched step. */
static double watched(const char *name, int64_t step, const char *what) {
  char path[96];
  size_t n;
  double value = NAN;
  snprintf(path, sizeof path, "runs/%s/metrics.jsonl", name);
  for (const char *at = file_read(path, &n); *at != '\0'; at = strchr(at, '\n') + 1) {
    json_error_t error;
    json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);
    assert_non_null(line);
    bool is = strcmp(json_string_value(json_object_get(line, "event")), "watch") == 0;
    if (is && json_integer_value(json_object_get(line, "step")) == step)
      value = json_number_value(json_object_get(json_object_get(line, "watched"), what));
    json_decref(line);
  }
  return value;
}

static void expect_close(double has, double wants, double part) {
  if (!(fabs(has - wants) <= part * fabs(wants))) fail_msg("it is %.9g, expected %.9g", has, wants);
}

/* Of fc1 in the checkpoint of a run, without that of another run. */
static double norm(const char *run, const char *without) {
  static const char *const names[] = {"fc1.weight", "fc1.bias"};
  char path[96], other[96];
  double squares = 0;
  snprintf(path, sizeof path, "runs/%s/checkpoints/last/model.safetensors", run);
  snprintf(other, sizeof other, "runs/%s/checkpoints/last/model.safetensors", without ? without : "");
  for (int k = 0; k < 2; k++) {
    size_t n, m;
    const float *x = tensor_find(path, names[k], &n), *y = without ? tensor_find(other, names[k], &m) : NULL;
    for (size_t i = 0; i < n; i++) {
      double d = (double)x[i] - (y ? (double)y[i] : 0);
      squares += d * d;
    }
  }
  return sqrt(squares);
}

/* The update of plain descent is lr times the gradient, and the difference of the weights of two steps. */
static void the_norms_are_those_of_the_weights(void **state) {
  (void)state;
  train("before", "--set run.max_steps=9");
  train("after", "--set run.max_steps=10 --set run.watch=5");
  double weights = watched("after", 10, "weight_norm/fc1"), ratio = watched("after", 10, "update_ratio/fc1");
  expect_close(weights, norm("before", NULL), 1e-6);
  expect_close(ratio * weights, norm("after", "before"), 1e-4);
  expect_close(ratio * weights, 0.05 * watched("after", 10, "gradient_norm/fc1"), 1e-5);
  double fc1 = watched("after", 5, "gradient_norm/fc1"), fc2 = watched("after", 5, "gradient_norm/fc2");
  expect_close(watched("after", 5, "gradient_norm/all"), sqrt(fc1 * fc1 + fc2 * fc2), 1e-6);
  assert_true(isnan(watched("after", 9, "weight_norm/fc1")));
}

/* The program of watched steps trains as the other one. */
static void watching_changes_no_weight(void **state) {
  static const char *const ways[] = {"", "--set optimizer.accumulate=2", "--set precision.policy=fp16",
                                     "--set optimizer.type=muon --set optimizer.clip=0.1"};
  (void)state;
  char more[160], plain[16], other[16], folders[2][64];
  for (int i = 0; i < 4; i++) {
    snprintf(plain, sizeof plain, "plain%d", i);
    snprintf(other, sizeof other, "watched%d", i);
    train(plain, ways[i]);
    snprintf(more, sizeof more, "%s --set run.watch=3 --set run.watch_histograms=yes", ways[i]);
    train(other, more);
    snprintf(folders[0], sizeof folders[0], "runs/%s/checkpoints/last", plain);
    snprintf(folders[1], sizeof folders[1], "runs/%s/checkpoints/last", other);
    checkpoint_folders_equal(folders[0], folders[1]);
  }
}

/* One update from equal weights, by other ways of making its gradient. */
static void gradients_are_those_of_the_whole_update(void **state) {
#define SIM "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2 "
  static const char *const ways[] = {"--set optimizer.accumulate=2 --set data.batch=4", SIM,
                                     SIM "--set distributed.shard=optimizer", "--set precision.policy=fp16",
                                     "--set optimizer.clip=0.001"};
  static const double parts[] = {1e-5, 1e-5, 1e-5, 1e-2, 1e-6};
  (void)state;
  char more[320], other[16];
  train("plain", "--set run.watch=1 --set run.max_steps=1");
  for (int i = 0; i < 5; i++) {
    snprintf(more, sizeof more, "%s --set run.watch=1 --set run.max_steps=1", ways[i]);
    snprintf(other, sizeof other, "other%d", i);
    train(other, more);
    double gradient = watched("plain", 1, "gradient_norm/fc2"),
           weights = watched("plain", 1, "weight_norm/fc2");
    expect_close(watched(other, 1, "gradient_norm/fc2"), gradient, parts[i]);
    expect_close(watched(other, 1, "weight_norm/fc2"), weights, 1e-5);
  }
}

static void groups_are_patterns_or_parameters(void **state) {
  (void)state;
  train("run", "--set run.watch=20 --set run.watch_groups=*.bias,fc2.*");
  assert_true(watched("run", 20, "gradient_norm/*.bias") > 0);
  assert_true(watched("run", 20, "gradient_norm/fc2.*") > 0);
  assert_true(watched("run", 20, "gradient_norm/fc1") == 0); /* there is no such value */
  train("each", "--set run.watch=20 --set run.watch_groups=parameters");
  assert_true(watched("each", 20, "weight_norm/fc1.bias") > 0);
  assert_non_null(strstr(file_read("runs/each/metrics.csv", NULL), ",watch,update_ratio/fc2.weight,"));
}

/* Each line is there once, after a run that went on from a checkpoint. */
static void a_resumed_run_has_each_line_once(void **state) {
  (void)state;
  train("run", "--set run.watch=5 --set run.max_steps=12");
  train("run", "--set run.watch=5 --resume auto");
  size_t n;
  int lines = 0;
  for (const char *at = file_read("runs/run/metrics.jsonl", &n); (at = strstr(at, "\"watch\"")) != NULL; at++)
    lines++;
  assert_int_equal(lines, 4);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_with_net, program_close)
  const struct CMUnitTest tests[] = {
      CASE(the_norms_are_those_of_the_weights), CASE(watching_changes_no_weight),
      CASE(gradients_are_those_of_the_whole_update), CASE(groups_are_patterns_or_parameters),
      CASE(a_resumed_run_has_each_line_once)};
  return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}

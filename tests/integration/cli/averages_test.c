/* [optimizer] ema and swa_from: averages of parameters and running statistics, which validation reads. */
#include "golden_net.h"

#include <stdlib.h>

#define LAST(run) "runs/" run "/checkpoints/last/"

static void write_data(void) { golden_write_data(AVERAGES "/net.ini"); }

static void train(const char *run, const char *more) {
  if (program_run("train net.ini --quiet --set run.name=%s %s", run, more) != 0)
    fail_msg("%s: %s", more, program_err);
}

static const char *path_of(const char *run, const char *file) {
  static char paths[4][128];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "runs/%s/checkpoints/%s", run, file);
  return path;
}

/* The files of the last checkpoint, and the loss of every epoch. */
static void expect_golden(const char *run, const char *what) {
  const json_t *golden = file_json(AVERAGES "/golden.json");
  char key[64], trained[64];
  snprintf(key, sizeof key, "%s.average", what);
  const json_t *average = json_object_get(golden, key);
  snprintf(key, sizeof key, "%s.trained", what);
  const json_t *own = json_object_get(golden, key);
  for (int i = 0; i < GOLDEN_NAMES; i++) {
    snprintf(trained, sizeof trained, "%s.trained", golden_names[i]);
    golden_expect_tensor(path_of(run, "last/model.safetensors"), golden_names[i],
                         json_object_get(average, golden_names[i]));
    golden_expect_tensor(path_of(run, "last/optimizer.safetensors"), trained,
                         json_object_get(own, golden_names[i]));
  }
}

static void expect_losses(const char *run, const char *what, double within) {
  const json_t *golden = file_json(AVERAGES "/golden.json");
  char key[64], path[64];
  snprintf(key, sizeof key, "%s.losses", what);
  snprintf(path, sizeof path, "runs/%s/metrics.jsonl", run);
  const json_t *losses = json_object_get(golden, key);
  size_t n, epoch = 0;
  for (const char *line = strstr(file_read(path, &n), "\"event\": \"epoch\""); line;
       line = strstr(line + 1, "\"event\": \"epoch\"")) {
    const char *valid = strstr(line, "\"valid\": {\"loss\": ");
    assert_non_null(valid);
    double want = json_number_value(json_array_get(losses, epoch++)),
           loss = strtod(valid + strlen("\"valid\": {\"loss\": "), NULL);
    if (!(fabs(loss - want) <= within)) fail_msg("epoch %zu: %.7g, PyTorch has %.7g", epoch, loss, want);
  }
  assert_int_equal(epoch, json_array_size(losses));
}

static const char ema[] = "--set optimizer.ema=0.8", swa[] = "--set optimizer.swa_from=3";

static void averages_are_those_of_pytorch(void **state) {
  (void)state;
  static const char *const ways[] = {
      "--set backend.use=cpu", "--set backend.use=onednn", "--set backend.use=sim",
      "--set backend.use=sim --set run.steps_per_launch=3",
      "--set group.head.match=fc2.* --set group.head.lr=0.2 --set optimizer.clip=1e9"};
  static const char *const keys[] = {"ema=0.8", "swa_from=3"};
  char more[256], run[32];
  write_data();
  for (int i = 0; i < 10; i++) {
    const char *what = i % 2 ? "swa" : "ema";
    snprintf(more, sizeof more, "--set optimizer.%s --set run.observers=jsonl %s", keys[i % 2], ways[i / 2]);
    snprintf(run, sizeof run, "%s-%d", what, i / 2);
    train(run, more);
    expect_golden(run, what);
    expect_losses(run, what, 2e-5);
  }
}

/* eval reads the weights whose loss validation told, from the last and from the best checkpoint; in low
 * precision, too, where validation reads copies of the average. */
static void checkpoints_have_the_evaluated_weights(void **state) {
  (void)state;
  static const char *const policies[] = {"fp32", "bf16", "fp16"}, *const keys[] = {"ema=0.8", "swa_from=3"};
  write_data();
  for (int i = 0; i < 6; i++) {
    const json_t *run = program_json(0,
                                     "train net.ini --set run.name=net%d --set optimizer.%s "
                                     "--set precision.policy=%s",
                                     i, keys[i % 2], policies[i / 2]);
    char state_file[64];
    snprintf(state_file, sizeof state_file, "runs/net%d/checkpoints/best/state.json", i);
    double last = program_number(run, "valid.loss"), best = program_number(file_json(state_file), "best");
    const json_t *eval = program_json(0,
                                      "eval net.ini --weights runs/net%d/checkpoints/last "
                                      "--set precision.policy=%s",
                                      i, policies[i / 2]);
    assert_true(fabs(program_number(eval, "loss") - last) < 1e-6);
    eval = program_json(0, "eval net.ini --weights runs/net%d/checkpoints/best --set precision.policy=%s", i,
                        policies[i / 2]);
    assert_true(fabs(program_number(eval, "loss") - best) < 1e-6);
  }
}

/* The training itself is the same with an average, to the bit. */
static void averages_leave_the_training_alone(void **state) {
  (void)state;
  size_t n, m;
  write_data();
  train("net", ema);
  train("plain", "");
  assert_true(tensor_distance(LAST("net") "model.safetensors", LAST("plain") "model.safetensors",
                              "fc1.weight") > 1e-3);
  const float *trained = tensor_find(LAST("net") "optimizer.safetensors", "fc1.weight.trained", &n),
              *plain = tensor_find(LAST("plain") "model.safetensors", "fc1.weight", &m);
  assert_true(trained && plain && n == m);
  if (trained && plain) assert_memory_equal(trained, plain, n * sizeof *plain);
}

/* Stopped in an epoch and at its end, in every way to compute an update. On several devices a stop in an
 * epoch averages running statistics over them once more, which may change their last bits, so those stop at
 * its end. */
static void resuming_is_exact(void **state) {
  (void)state;
  static const char *const ways[] = {
      "--set optimizer.ema=0.8",
      "--set optimizer.swa_from=2",
      "--set optimizer.ema=0.8 --set optimizer.accumulate=2 --set data.batch=4",
      "--set optimizer.swa_from=2 --set precision.policy=fp16 --set optimizer.type=adamw",
      "--set optimizer.ema=0.8 --set precision.policy=bf16 --set optimizer.clip=1",
      "--set optimizer.ema=0.8 --set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2",
      "--set optimizer.swa_from=2 --set backend.use=sim --set backend.sim.devices=2 --set "
      "distributed.devices=2"};
  static const int steps[] = {8, 12, 18};
  char run[32];
  write_data();
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    snprintf(run, sizeof run, "whole%zu", w);
    train(run, ways[w]);
    for (int i = strstr(ways[w], "devices") != NULL; i < 3; i++) {
      char more[256], other[32];
      snprintf(other, sizeof other, "part%zu-%d", w, i);
      snprintf(more, sizeof more, "%s --set run.max_steps=%d", ways[w], steps[i]);
      train(other, more);
      snprintf(more, sizeof more, "%s --resume auto", ways[w]);
      train(other, more);
      checkpoint_folders_equal(path_of(run, "last"), path_of(other, "last"));
    }
  }
}

/* Before the first epoch of the mean, and before the first update, the averages are the trained weights. */
static void averages_begin_as_copies(void **state) {
  (void)state;
  write_data();
  train("start", "--set run.epochs=0 --set optimizer.ema=0.999");
  train("plain", "--set run.epochs=0");
  for (int i = 0; i < GOLDEN_NAMES; i++)
    assert_true(tensor_distance(LAST("start") "model.safetensors", LAST("plain") "model.safetensors",
                                golden_names[i]) == 0);
  train("late", "--set optimizer.swa_from=9");
  train("never", "");
  files_equal(LAST("late") "model.safetensors", LAST("never") "model.safetensors");
}

/* The scale overflows in every step, so that no update is applied. The statistics of the trained model follow
 * the batches; their averages do not. */
static void skipped_updates_do_not_move_averages(void **state) {
  (void)state;
  size_t n, m;
  write_data();
  train("start", "--set run.epochs=0");
  train("skipped", "--set optimizer.ema=0.5 --set run.max_steps=3 --set precision.policy=fp16 "
                   "--set precision.init_scale=1e30 --set precision.backoff_factor=0.999");
  for (int i = 0; i < GOLDEN_NAMES; i++)
    assert_true(tensor_distance(LAST("start") "model.safetensors", LAST("skipped") "model.safetensors",
                                golden_names[i]) == 0);
  const float *before = tensor_find(LAST("start") "model.safetensors", "bn.running_mean", &n),
              *after = tensor_find(LAST("skipped") "optimizer.safetensors", "bn.running_mean.trained", &m);
  assert_true(before && after && n == m);
  if (before && after) assert_memory_not_equal(before, after, n * sizeof *before);
}

/* Frozen parameters have no average; parameters of groups and of optimizers for one parameter have. */
static void frozen_parameters_have_no_average(void **state) {
  (void)state;
  write_data();
  train("net", "--set optimizer.ema=0.8 --set group.body.freeze=yes --set group.body.match=fc1.*,bn.*");
  const char *moments = LAST("net") "optimizer.safetensors";
  assert_false(tensor_exists(moments, "fc1.weight.trained"));
  assert_false(tensor_exists(moments, "bn.running_mean.trained"));
  assert_true(tensor_exists(moments, "fc2.weight.trained"));
  assert_true(tensor_exists(LAST("net") "model.safetensors", "fc1.weight"));
}

static void mistakes_are_told(void **state) {
  (void)state;
  write_data();
  assert_int_equal(program_run("train net.ini %s %s", ema, swa), 65);
  assert_non_null(strstr(program_err, "[optimizer] swa_from = 3 beside ema = 0.8"));
  assert_int_equal(program_run("train net.ini --set optimizer.ema=1"), 65);
  assert_non_null(strstr(program_err, "ema"));
  train("net", "");
  assert_int_equal(program_run("train net.ini --resume auto --set run.epochs=9 %s", ema), 65);
  assert_non_null(strstr(program_err, "[optimizer] ema = 0.8, but runs/net was trained with 0"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(averages_are_those_of_pytorch),     CASE(checkpoints_have_the_evaluated_weights),
      CASE(averages_leave_the_training_alone), CASE(resuming_is_exact),
      CASE(averages_begin_as_copies),          CASE(skipped_updates_do_not_move_averages),
      CASE(frozen_parameters_have_no_average), CASE(mistakes_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* [schedule.accumulate]: updates whose batches grow, against trainings of one number of batches each, one
 * behind the other. */
#include "nets.h"

#include <math.h>
#include <stdbool.h>

/* Updates of one batch of 12 up to sample 48, of two up to sample 96, then of four. An epoch has 14 batches,
 * of which the last one is short; the updates of the second epoch have four. */
static void write_net(const char *more) {
  static char text[4096];
  snprintf(text, sizeof text,
           "%s[schedule.accumulate]\ntype = sequential\nunit = samples\n"
           "schedules = [constant(0.25), constant(0.5), constant]\nmilestones = [48, 96]\n%s",
           nets_tokens, more);
  file_write("model.ini", text);
  file_write("equal.ini", nets_tokens);
}

static const char data[] = "--set data.samples=161 --set run.epochs=2 --set optimizer.clip=0.5";

/* Three processes, each with another number of batches, on one device. */
static void train_by_hand(const char *folder, const char *more) {
  static const struct { int accumulate, steps; } parts[] = {{1, 4}, {2, 6}, {4, 12}};
  for (int i = 0; i < 3; i++)
    program_expect(
        program_run(
            "train equal.ini --quiet --set backend.use=sim --output %s %s --set optimizer.accumulate=%d "
            "--set run.max_steps=%d %s %s",
            folder, data, parts[i].accumulate, parts[i].steps, i > 0 ? "--resume auto" : "", more),
        0);
}

static const json_t *train(const char *folder, int devices, const char *more) {
  char all[512];
  snprintf(all, sizeof all, "%s --set optimizer.accumulate=4 %s", data, more);
  return nets_train(folder, devices, all);
}

static void the_updates_are_those_of_runs_with_equal_ones(void **state) {
  (void)state;
  write_net("");
  train_by_hand("hand", "");
  for (int devices = 1; devices <= 4; devices++) {
    char folder[16];
    snprintf(folder, sizeof folder, "grown%d", devices);
    const json_t *r = train(folder, devices, devices % 2 ? "" : "--set backend.sim.order=random");
    assert_true(program_number(r, "steps") == 12 && program_number(r, "epochs") == 2);
    nets_compare(folder, folder, "hand", 1e-6);
  }
}

/* 12 updates of 32 batches in all; the last 4 have 16. */
static void the_samples_of_an_update_are_told_as_their_mean(void **state) {
  (void)state;
  write_net("");
  static const char line[] = "train model.ini --set backend.use=sim --set optimizer.accumulate=4 %s %s";
  program_expect(program_run(line, data, "--set run.max_steps=8"), 0);
  if (strstr(program_err, "batch 12, 24\n           samples an update") == NULL) fail_msg("%s", program_err);
  program_expect(program_run(line, data, "--resume auto"), 0);
  if (strstr(program_err, "batch 12, 48\n           samples an update") == NULL) fail_msg("%s", program_err);
}

static void skipped_updates_count_as_updates(void **state) {
  (void)state;
  static const char half[] = "--set precision.policy=fp16 --set precision.init_scale=1e9";
  write_net("");
  train_by_hand("hand", half);
  train("grown", 1, half);
  nets_compare("fp16", "grown", "hand", 1e-6);
  assert_non_null(strstr(file_read("grown/run/metrics.jsonl", NULL), "\"skipped\": 1"));
}

/* A line of metrics.jsonl for each update. */
static const json_t *step_line(const char *folder, int step) {
  static char path[64];
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", folder);
  char *text = file_read(path, NULL), *save = NULL;
  for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
    file_write("line.json", line);
    const json_t *json = file_json("line.json");
    if (strcmp(program_text(json, "event"), "step") == 0 && program_number(json, "step") == step) return json;
  }
  fail_msg("%s has no step %d", path, step);
  return NULL;
}

/* lr is meant for 48 samples; warm-up ends behind 48 samples, which are the first four updates, and lr drops
 * behind the first epoch, which has eight. */
static void rates_follow_the_samples_of_each_update(void **state) {
  (void)state;
  static const struct {
    int step;
    double samples, lr;
  } steps[] = {{1, 12, 0.5 * 0.25 * 0.2},
               {4, 12, 0.5 * 0.25 * 0.8},
               {5, 24, 0.5 * 0.5},
               {7, 48, 0.5},
               {8, 17, 0.5},
               {9, 48, 0.05},
               {12, 17, 0.05}};
  write_net("[schedule]\ntype = step\nevery_epochs = 1\nwarmup = 48\nwarmup_unit = samples\n");
  train("grown", 2, "--set optimizer.lr_batch=48");
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    const json_t *line = step_line("grown", steps[i].step);
    double lr = program_number(line, "lr");
    assert_true(program_number(line, "samples") == steps[i].samples);
    if (fabs(lr - steps[i].lr) > 1e-8)
      fail_msg("step %d: lr %g, expected %g", steps[i].step, lr, steps[i].lr);
  }
  train("root", 1, "--set optimizer.lr_batch=48 --set optimizer.lr_rule=sqrt");
  assert_true(fabs(program_number(step_line("root", 6), "lr") - 0.5 * sqrt(0.5)) < 1e-8);
}

/* Behind each of the updates, also in the middle of an epoch. */
static void resumed_runs_have_the_same_bits(void **state) {
  (void)state;
  write_net("[schedule]\nwarmup = 3\nwarmup_unit = epochs\n");
  train("whole", 1, "");
  for (int stop = 5; stop <= 9; stop += 4) {
    char more[96], folder[16];
    snprintf(folder, sizeof folder, "cut%d", stop);
    snprintf(more, sizeof more, "--set run.max_steps=%d", stop);
    train(folder, 1, more);
    train(folder, 1, "--resume auto");
    checkpoints_equal(folder, "whole");
  }
}

/* In front of sample 60 the schedule of the resumed run has another number of batches. */
static void a_run_resumed_with_another_schedule_goes_on_at_its_sample(void **state) {
  (void)state;
  write_net("");
  train("run", 1, "--set run.max_steps=5"); /* 72 samples */
  const json_t *r = train("run", 1, "--resume auto --set schedule.accumulate.milestones=[24,48]"), *line;
  bool told = false;
  size_t i;
  json_array_foreach((json_t *)(uintptr_t)program_member(r, "remarks"), i, line) told =
      told ||
      strstr(json_string_value(line), "epoch 1 goes on at update 4 of 6, behind 48 of its samples; 24");
  assert_true(told);
}

static void a_constant_schedule_changes_nothing(void **state) {
  (void)state;
  char text[4096];
  snprintf(text, sizeof text, "%s[schedule.accumulate]\ntype = constant\n", nets_tokens);
  file_write("model.ini", text);
  train("constant", 2, "");
  file_write("model.ini", nets_tokens);
  train("plain", 2, "");
  checkpoints_equal("constant", "plain");
}

/* The last update is left out where batches are missing. */
static void an_incomplete_update_is_dropped(void **state) {
  (void)state;
  write_net("");
  const json_t *r = train("run", 1, "--set data.last=drop --set run.epochs=1");
  assert_true(program_number(r, "steps") == 7); /* 13 batches: 1 1 1 1 2 2 4, and one is left */
}

/* The parts of s of the micro-batches add up to s, however many there are. */
static void learned_weights_follow(void **state) {
  (void)state;
  write_net("");
  char text[4096];
  const char *files[] = {"model.ini", "equal.ini"};
  for (int i = 0; i < 2; i++) {
    const char *ini = file_read(files[i], NULL), *at = strstr(ini, "cross_entropy(");
    snprintf(text, sizeof text, "%.*scross_entropy(weight=learned, %s", (int)(at - ini), ini,
             at + strlen("cross_entropy("));
    file_write(files[i], text);
  }
  train_by_hand("hand", "");
  train("grown", 2, "");
  nets_compare("a learned weight", "grown", "hand", 1e-6);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(the_updates_are_those_of_runs_with_equal_ones),
      CASE(the_samples_of_an_update_are_told_as_their_mean),
      CASE(skipped_updates_count_as_updates),
      CASE(rates_follow_the_samples_of_each_update),
      CASE(resumed_runs_have_the_same_bits),
      CASE(a_run_resumed_with_another_schedule_goes_on_at_its_sample),
      CASE(a_constant_schedule_changes_nothing),
      CASE(an_incomplete_update_is_dropped),
      CASE(learned_weights_follow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

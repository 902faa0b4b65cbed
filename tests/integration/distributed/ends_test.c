/* Runs on several devices that are resumed, refused, or fail. */
#include "nets.h"
#include "configs.h"
#include "side_by_side.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- resumed ---- */

static void copy_run(const char *from, const char *to) {
  char line[160];
  snprintf(line, sizeof line, "cp -r %s %s", from, to);
  assert_int_equal(system(line), 0);
}

/* The ResNet with batch norm per rank, whose running statistics are averaged. */
static void write_local_resnet(void) {
  char text[4096];
  size_t n = 0;
  for (const char *at = nets_resnet; *at;) {
    bool sync = strncmp(at, "sync=yes", 8) == 0;
    n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", sync ? 7 : 1, sync ? "sync=no" : at);
    at += sync ? 8 : 1;
  }
  file_write("model.ini", text);
}

/* Trains `steps` steps, which end within an epoch, then resumes for the rest. */
static const json_t *train_in_parts(int devices, int steps, const char *more) {
  char first[256], second[256];
  const json_t *whole = nets_train("whole", devices, more);
  snprintf(first, sizeof first, "--set run.max_steps=%d %s", steps, more);
  nets_train("parts", devices, first);
  snprintf(second, sizeof second, "--resume parts/run --set backend.sim.order=lazy %s", more);
  const json_t *rest = nets_train("parts", devices, second);
  assert_true(program_number(rest, "steps") == 20);
  assert_true(program_number(rest, "train.loss") == program_number(whole, "train.loss"));
  return rest;
}

static void a_resumed_run_ends_in_the_same_bits(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  train_in_parts(2, 11, "");
  checkpoints_equal("parts", "whole");
}

static void statistics_of_each_rank_and_micro_batches_are_resumed(void **state) {
  (void)state;
  write_local_resnet();
  train_in_parts(4, 10, "--set run.save_every=5 --set optimizer.accumulate=2");
  checkpoints_equal("parts", "whole");
}

/* Training does not read the statistics, so the weights have the same bits. */
static void an_additional_checkpoint_averages_only_the_statistics(void **state) {
  (void)state;
  write_local_resnet();
  train_in_parts(4, 11, "");
  assert_true(nets_difference("parts", "whole", "conv1.weight") == 0);
  assert_true(nets_difference("parts", "whole", "fc.weight") == 0);
  nets_compare("statistics averaged once more", "parts", "whole", NETS_BAND);
}

static void a_checkpoint_of_four_devices_resumes_on_another_number(void **state) {
  (void)state;
  file_write("model.ini", nets_resnet);
  nets_train("whole", 1, "");
  nets_train("four", 4, "--set run.max_steps=11");
  for (int devices = 1; devices <= 4; devices *= 2) {
    char folder[16], more[64];
    snprintf(folder, sizeof folder, "with%d", devices);
    snprintf(more, sizeof more, "--resume with%d/run", devices);
    copy_run("four", folder);
    assert_true(program_number(nets_train(folder, devices, more), "steps") == 20);
    nets_compare("resumed", folder, "whole", NETS_BAND);
  }
  copy_run("whole", "one"); /* and from one to four */
  nets_train("one", 4, "--resume one/run --set run.max_steps=24");
}

/* The run is stopped wherever it is, and the one that is not stopped ends some steps later. */
static void a_stopped_run_resumes(void **state) {
  (void)state;
  char more[128];
  file_write("model.ini", nets_lenet);
  program_start("train model.ini --output parts --set backend.use=sim --set backend.sim.devices=2 "
                "--set distributed.devices=2 --set run.max_steps=100000000000 " ENDLESS);
  program_await_lines("parts/run/metrics.jsonl", 5);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  double step = program_number(file_json("parts/run/checkpoints/last/state.json"), "step");
  snprintf(more, sizeof more, "--set run.max_steps=%.0f " ENDLESS, step + 20);
  nets_train("whole", 2, more);
  snprintf(more, sizeof more, "--resume parts/run --set run.max_steps=%.0f " ENDLESS, step + 20);
  nets_train("parts", 2, more);
  checkpoints_equal("parts", "whole");
}

/* The mean of the ranks' means is the mean over the whole batch while the weights before are equal. */
static void running_statistics_of_the_ranks_are_averaged(void **state) {
  (void)state;
  write_local_resnet();
  nets_train("one", 1, "--set run.max_steps=1");
  nets_train("four", 4, "--set run.max_steps=1");
  assert_true(nets_difference("four", "one", "bn1.running_mean") < NETS_BAND);
  assert_true(nets_difference("four", "one", "bn1.running_var") > NETS_BAND);
  nets_train("sum", 1, "--set run.max_steps=1 --set data.train.batch=2 --set optimizer.accumulate=4");
  assert_true(nets_difference("sum", "one", "bn1.running_mean") > NETS_BAND); /* four updates of them */
}

/* ---- refused ---- */

static void refused(int code, const char *says, const char *more) {
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim %s", more), code);
  if (strstr(program_err, says) == NULL) fail_msg("expected '%s': %s", says, program_err);
  assert_int_equal(program_run("plan model.ini --set backend.use=sim %s", more), code);
  assert_non_null(strstr(program_err, says));
}

static void a_batch_that_does_not_divide_is_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  refused(65, "[data] batch = 8 cannot be divided among 3 devices, expected a multiple of 3",
          "--set backend.sim.devices=3 --set distributed.devices=3");
  refused(65, "[data.valid] batch = 18 cannot be divided among 4 devices",
          "--set backend.sim.devices=4 --set distributed.devices=4 --set data.valid.batch=18");
  refused(65, "[distributed] devices = some, expected a number from 1 on, or all",
          "--set distributed.devices=some");
}

static void more_devices_than_exist_are_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  refused(69, "[distributed] devices = 4, but backend 'sim' has 2; ask for fewer, or for all",
          "--set backend.sim.devices=2 --set distributed.devices=4");
  refused(69, "[distributed] devices = 2, but backend 'cpu' has 1",
          "--set backend.use=cpu --set distributed.devices=2");
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set distributed.devices=2 "
                               "--set backend.sim.devices=2 --set distributed.communicator=absent"),
                   65);
  assert_non_null(strstr(program_err, "communicator"));
}

static void all_means_the_number_of_devices(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *run =
      program_json(0, "train model.ini --output o --set backend.use=sim --set run.max_steps=1 "
                      "--set backend.sim.devices=4 --set distributed.devices=all");
  assert_true(program_number(run, "devices") == 4);
}

static void a_rank_with_another_plan_is_refused(void **state) {
  (void)state;
  char text[4096];
  snprintf(text, sizeof text, "%s[plugins]\nload = " ERRATIC "\n", nets_lenet);
  char *last = strstr(text, "           flatten\n");
  memcpy(last, "           erratic\n", 19);
  memmove(last + 19 + 19, last + 19, strlen(last + 19) + 1);
  memcpy(last + 19, "           flatten\n", 19);
  file_write("model.ini", text);
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2"),
                   77);
  assert_non_null(strstr(program_err, "the plan of rank 1 has hash "));
  assert_false(file_exists("o/run"));
}

/* ---- failed ---- */

/* A failure of one device ends the run on all devices, long before the timeout. */
static void fails(int devices, const char *fault, const char *says) {
  int code =
      program_run("train model.ini --output o --set backend.use=sim --set distributed.timeout=1h "
                  "--set backend.sim.devices=%d --set distributed.devices=%d --set backend.sim.fail=%s",
                  devices, devices, fault);
  if (code != 77 && code != 69) fail_msg("%s: exit code %d: %s", fault, code, program_err);
  if (strstr(program_err, says) == NULL) fail_msg("%s: expected '%s': %s", fault, says, program_err);
}

static void a_device_that_fails_ends_the_run_on_all(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  fails(2, "kernel:40@1", "rank 1: ");
  fails(2, "kernel:40@0", "rank 0: ");
  fails(4, "launch:300@2", "rank 2: ");
  fails(4, "copy:7@3", "rank 3: ");
  fails(4, "device:200@2", "rank 2: ");
  fails(2, "allocation:3@1", "rank 1: ");
}

/* A run that ends by the timeout, because a rank has stopped. */
typedef struct stop {
  int devices, rank;
  const char *more;
} stop;

#define N_STOPS(stops) ((int)(sizeof(stops) / sizeof *(stops)))

/* One run: "rank 1 did not come to " and `what`. */
static void check_stop(int i, const stop *one, const char *what) {
  char says[96];
  int code = nets_finish(i);
  snprintf(says, sizeof says, "rank %d did not come to %s", one->rank, what);
  if (code != 77 || strstr(program_err, says) == NULL ||
      strstr(program_err, "within " NETS_SHORT_TEXT) == NULL)
    fail_msg("%s: exit code %d, expected '%s' within " NETS_SHORT_TEXT ": %s", one->more, code, says,
             program_err);
}

static void start_stops(int n, const stop *stops) {
  for (int i = 0; i < n; i++)
    nets_start(i,
               "train ../model.ini --output o --set backend.use=sim --set distributed.timeout=" NETS_SHORT
               " --set backend.sim.devices=%d --set distributed.devices=%d %s",
               stops[i].devices, stops[i].devices, stops[i].more);
}

static void all_stop(int n, const stop *stops, const char *what) {
  start_stops(n, stops);
  for (int i = 0; i < n; i++) check_stop(i, &stops[i], what);
}

/* A device computes nothing from some kernel on, as one that hangs. Its own rank waits for it as well: only
 * the communicator's status ends that wait. */
static void a_rank_that_stops_answering_is_named_within_the_timeout(void **state) {
  (void)state;
  static const stop stops[] = {
      {2, 1, "--set backend.sim.fail=stall:40@1"},
      {2, 0, "--set backend.sim.fail=stall:200@0 --set backend.capture=no"},
      {4, 2, "--set backend.sim.fail=stall:300@2 --set backend.sim.order=lazy --set backend.sim.seed=3"},
      {4, 3,
       "--set backend.sim.fail=stall:150@3 --set distributed.bucket=4KiB --set data.train.batch=8 "
       "--set optimizer.accumulate=2"}};
  file_write("model.ini", nets_lenet);
  all_stop(N_STOPS(stops), stops, "'all_reduce");
}

/* Collectives that end with undefined results when they are given up, as NCCL's do: no step is read after it,
 * and no checkpoint is written. */
#define SILENT " --set communicator.sim.failure=status"

static void a_collective_that_was_given_up_is_no_good_step(void **state) {
  (void)state;
  static const stop stops[] = {
      {2, 1, "--set backend.sim.fail=stall:40@1" SILENT},
      {2, 0, "--set backend.sim.fail=stall:200@0 --set backend.capture=no" SILENT},
      {4, 2, "--set backend.sim.fail=stall:300@2 --set backend.sim.order=lazy" SILENT}};
  file_write("model.ini", nets_lenet);
  all_stop(N_STOPS(stops), stops, "'all_reduce");
  for (int i = 0; i < N_STOPS(stops); i++) assert_false(file_exists(nets_path(i, "o/run/checkpoints/last")));
  fails(2, "kernel:40@1" SILENT, "rank 1: ");
  fails(4, "device:200@2" SILENT, "rank 2: ");
  assert_false(file_exists("o/run/checkpoints/last"));
}

/* It is waited for outside of collectives. */
static void a_rank_that_stops_before_the_first_collective_is_named(void **state) {
  (void)state;
  static const stop stops[] = {{2, 1, "--set backend.sim.fail=stall:1@1"},
                               {2, 0, "--set backend.sim.fail=stall:1@0"},
                               {4, 2, "--set backend.sim.fail=stall:5@2" SILENT}};
  file_write("model.ini", nets_lenet);
  all_stop(N_STOPS(stops), stops, "an exchange between the ranks within ");
}

/* The host is held in a launch, for which its full device has no room; collectives that no host gives up
 * never end. */
static void hosts_that_wait_for_room_on_their_devices_are_ended(void **state) {
  (void)state;
  static const stop stops[] = {{2, 1, "--set backend.sim.queue=4 --set backend.sim.fail=stall:40@1" SILENT},
                               {2, 0, "--set backend.sim.queue=4 --set backend.sim.fail=stall:200@0" SILENT}};
  file_write("model.ini", nets_lenet);
  all_stop(N_STOPS(stops), stops, "'all_reduce");
}

/* The thread of the rank never ends: the others have some seconds more, and the process ends without it. */
static void all_are_left(int n, const stop *stops) {
  start_stops(n, stops);
  for (int i = 0; i < n; i++) {
    char says[64];
    check_stop(i, &stops[i], "");
    snprintf(says, sizeof says, "the thread of rank %d has not ended %d s after that", stops[i].rank,
             NETS_SHORT_S < 15 ? NETS_SHORT_S : 15);
    if (strstr(program_err, says) == NULL)
      fail_msg("%s: expected '%s': %s", stops[i].more, says, program_err);
  }
}

static void a_device_that_never_ends_does_not_keep_the_process(void **state) {
  (void)state;
  static const stop stops[] = {{2, 1, "--set backend.sim.fail=hang:3@1"},
                               {2, 0, "--set backend.sim.fail=hang:3@0"},
                               {2, 1, "--set backend.sim.fail=hang:60@1" SILENT},
                               {2, 0, "--set backend.sim.fail=hang:700@0 --set backend.capture=no"}};
  file_write("model.ini", nets_lenet);
  all_are_left(N_STOPS(stops), stops);
}

/* Without shuffling, samples 16 to 19 are read for rank 0, and 20 to 23 for rank 1. */
static void a_host_that_never_comes_back_does_not_keep_the_process(void **state) {
  (void)state;
  static const stop stops[] = {{2, 1, "--set data.stuck=20"}, {2, 0, "--set data.stuck=17"}};
  nets_write_steady(STEADY, "");
  all_are_left(N_STOPS(stops), stops);
}

static void a_loss_that_is_not_finite_ends_the_run_on_all(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2 --set optimizer.lr=1e30"),
                   76);
}

/* In the first micro-batch, the gradient of one sample is no number. Its rank has found that, while the other
 * searches on, and both run the rest of the step launch by launch: `sim` refuses a collective that one rank
 * replays and another does not. */
static void ranks_search_together_until_the_step_ends(void **state) {
  (void)state;
  for (int zero = 1; zero < 8; zero += 4) {
    char text[1024];
    snprintf(text, sizeof text,
             "[run]\nname = run\nepochs = 20\n"
             "[data]\nsource = steady\nzero = %d\nshuffle = no\nbatch = 8\nworkers = 1\n"
             "[model]\ninputs = image: f32[3, 6, 6]\nlayers =\n"
             "        flatten\n"
             "    fc: linear(4, bias=no)\n"
             "    no: root\n"
             "loss = cross_entropy\n"
             "[optimizer]\ntype = sgd\nlr = 0.05\naccumulate = 2\n"
             "[plugins]\nload = " STEADY ", " MIX "\n",
             zero);
    file_write("model.ini", text);
    int code = program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                           "--set distributed.devices=2 --set distributed.bucket=1KiB");
    if (strstr(program_err, "of layer 'no'") == NULL) fail_msg("%s", program_err);
    assert_int_equal(code, 76);
  }
}

/* A collective is captured by all ranks or by none. Launches without collectives are enqueued one by one. */
static void a_rank_that_cannot_capture_a_collective_ends_the_run(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("captured", 2, "");
  nets_train("without", 2, "--set backend.sim.fail=capture:1@0");
  if (strstr(program_err, "program 'init': launches 0 to") == NULL ||
      strstr(program_err, " are enqueued one by one: sim: this capture was asked to fail") == NULL)
    fail_msg("%s", program_err);
  checkpoints_equal("captured", "without");
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2 --set backend.sim.fail=capture:4@1"),
                   77);
  if (strstr(program_err, "rank 1: program 'step': launches 0 to ") == NULL ||
      strstr(program_err, " cannot be captured, and have collectives, which all ranks capture or none; set "
                          "[backend] capture = no: sim: this capture was asked to fail") == NULL)
    fail_msg("%s", program_err);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

/* The cases of the first group wait for the end of a limit; the others run meanwhile. */
int main(void) {
  const struct CMUnitTest waits[] = {
      CASE(a_rank_that_stops_answering_is_named_within_the_timeout),
      CASE(a_collective_that_was_given_up_is_no_good_step),
      CASE(a_rank_that_stops_before_the_first_collective_is_named),
      CASE(hosts_that_wait_for_room_on_their_devices_are_ended),
      CASE(a_device_that_never_ends_does_not_keep_the_process),
      CASE(a_host_that_never_comes_back_does_not_keep_the_process),
  };
  const struct CMUnitTest works[] = {
      CASE(a_resumed_run_ends_in_the_same_bits),
      CASE(statistics_of_each_rank_and_micro_batches_are_resumed),
      CASE(an_additional_checkpoint_averages_only_the_statistics),
      CASE(a_checkpoint_of_four_devices_resumes_on_another_number),
      CASE(a_stopped_run_resumes),
      CASE(running_statistics_of_the_ranks_are_averaged),
      CASE(a_batch_that_does_not_divide_is_refused),
      CASE(more_devices_than_exist_are_refused),
      CASE(all_means_the_number_of_devices),
      CASE(a_rank_with_another_plan_is_refused),
      CASE(a_device_that_fails_ends_the_run_on_all),
      CASE(a_loss_that_is_not_finite_ends_the_run_on_all),
      CASE(ranks_search_together_until_the_step_ends),
      CASE(a_rank_that_cannot_capture_a_collective_ends_the_run),
  };
  program_begin_side_by_side(waits, sizeof waits / sizeof *waits);
  int failed = cmocka_run_group_tests(works, NULL, NULL);
  return failed + program_end_side_by_side();
}

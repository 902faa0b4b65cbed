/* Synchronous devices whose communicator runs collectives on a thread of its own (later.c): the host awaits
 * them where the step of an asynchronous device would await their events. */
#include "nets.h"
#include "profiles.h"

#include <stdlib.h>

static void write_model(const char *ini) {
  char text[4096];
  int n = snprintf(text, sizeof text, "%s[plugins]\nload = " LATER "\n", ini);
  assert_true((size_t)n < sizeof text);
  file_write("model.ini", text);
}

static const char line[] = "model.ini --set backend.use=plain --set distributed.devices=%d "
                           "--set distributed.timeout=1h --set distributed.communicator=%s %s";

static const json_t *train(const char *folder, int devices, const char *communicator, const char *more) {
  char all[512];
  snprintf(all, sizeof all, "--output %s %s", folder, more);
  snprintf(all + strlen(all), sizeof all - strlen(all), " --set run.max_steps=8");
  char command[1024] = "train ";
  snprintf(command + strlen(command), sizeof command - strlen(command), line, devices, communicator, all);
  return program_json(0, "%s", command);
}

/* Delays of other seeds move the ends of collectives about the steps that follow them. */
static void same_bits(const char *ini, int devices, int seeds, const char *more) {
  write_model(ini);
  train("prompt", devices, "prompt", more);
  for (int seed = 1; seed <= seeds; seed++) {
    char all[256];
    snprintf(all, sizeof all, "%s --set communicator.later.seed=%d --set communicator.later.delay_us=%d",
             more, seed, seed % 4 == 0 ? 0 : 400 * (seed % 4));
    train("later", devices, "later", all);
    checkpoints_equal("later", "prompt");
    assert_int_equal(system("rm -rf later"), 0);
  }
  assert_int_equal(system("rm -rf prompt"), 0);
}

static void buckets_overlap_with_the_backward_pass(void **state) {
  (void)state;
  same_bits(nets_lenet, 2, 12, "--set distributed.bucket=32KiB");
  same_bits(nets_lenet, 3, 4,
            "--set distributed.bucket=4KiB --set data.train.batch=6 --set data.valid.batch=18");
}

static void micro_batches_and_statistics_over_the_ranks(void **state) {
  (void)state;
  same_bits(nets_resnet, 2, 6, "--set distributed.bucket=32KiB");
  same_bits(nets_transformer, 2, 6, "--set data.train.batch=4 --set optimizer.accumulate=2");
}

/* A launch that is timed is waited for with its collective, so there is no overlap, and the bits are the
 * same. */
static void a_traced_run_has_the_same_bits_and_shows_the_collectives(void **state) {
  (void)state;
  write_model(nets_lenet);
  train("prompt", 2, "prompt", "--set distributed.bucket=32KiB");
  train("traced", 2, "later", "--set distributed.bucket=32KiB --set run.profile=3");
  checkpoints_equal("traced", "prompt");
  profile_check_sums(file_json("traced/run/profile.json"), 3, 8);
  const json_t *trace = file_json("traced/run/trace.json");
  trace_check(trace);
  assert_true(trace_count(trace, "collectives", "launch") >= 3);
  assert_true(trace_count(trace, "compute", "wait") >= 3);
}

/* The failure is that of a collective that `run` had handed over; memory is freed after the rest has ended.
 */
static void a_collective_that_fails_later_ends_the_run(void **state) {
  (void)state;
  static const int numbers[] = {1, 2, 5, 18};
  write_model(nets_lenet);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char more[256], command[1024] = "train --output o ";
    snprintf(more, sizeof more,
             "--set distributed.bucket=32KiB --set communicator.later.fail=%d "
             "--set communicator.later.delay_us=20000",
             numbers[i]);
    snprintf(command + strlen(command), sizeof command - strlen(command), line, 2, "later", more);
    assert_int_equal(program_run("%s", command), 77);
    if (strstr(program_err, "later: a collective has failed") == NULL) fail_msg("%s", program_err);
  }
}

static void await_and_captures_exclude_each_other(void **state) {
  (void)state;
  char command[512] = "train --output o ";
  write_model(nets_lenet);
  snprintf(command + strlen(command), sizeof command - strlen(command), line, 2, "both", "");
  assert_int_not_equal(program_run("%s", command), 0);
  if (strstr(program_err, "communicator 'both' has await and is capturable, expected one of the two") == NULL)
    fail_msg("%s", program_err);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(buckets_overlap_with_the_backward_pass),
      CASE(micro_batches_and_statistics_over_the_ranks),
      CASE(a_traced_run_has_the_same_bits_and_shows_the_collectives),
      CASE(a_collective_that_fails_later_ends_the_run),
      CASE(await_and_captures_exclude_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `tenon bench` on several devices: computed by simulated ones, and rehearsed in predicted times. */
#include "nets.h"

#include <math.h>
#include <stdlib.h>

/* A device of a family without kernels of its own. Its kernels take some microseconds each. */
static const char device_json[] =
    "{\"family\": \"made_up\", \"name\": \"made-up device\", \"accepts\": \"cpu\", \"count\": 2,\n"
    "\"memory_bytes\": 85899345920, \"bytes_per_s\": 1e11, \"vector_flops_per_s\": 1e12, \"launch_s\": 2e-6}";

static void write_files(const char *net) {
  file_write("model.ini", net);
  file_write("device.json", device_json);
}

static const json_t *rehearse(int ranks, const char *more) {
  return program_json(0, "bench model.ini --device device.json --ranks %d --rounds 2 --steps 2 %s", ranks,
                      more);
}

static double number_of(const json_t *bench, const char *who, const char *key) {
  return program_number(program_member(program_member(bench, "overlap"), who), key);
}

static void expect_equal(const json_t *bench, const char *key, const char *more) {
  double predicted = number_of(bench, "predicted", key), measured = number_of(bench, "measured", key);
  if (!(fabs(predicted - measured) <= 1e-6 * predicted + 1e-9))
    fail_msg("%s: %s is %.9g, predicted %.9g", more, key, measured, predicted);
}

/* Streams and events of the executor give the times that the plan has added up. */
static void a_rehearsal_takes_the_predicted_times(void **state) {
  (void)state;
  static const char *const ways[] = {
      "--set distributed.link=nvlink",
      "--set distributed.link=0.5:5",
      "--set distributed.link=0.05:1000",
      "--set distributed.link=0.5:5 --set distributed.bucket=4KiB",
      "--set distributed.link=0.5:5 --set distributed.shard=optimizer",
      "--set distributed.link=0.5:5 --set distributed.shard=optimizer --set optimizer.clip=1",
      "--set distributed.link=0.5:5 --set distributed.reduce_dtype=f16 --set precision.policy=fp16",
      "--set distributed.link=0.5:5 --set distributed.host_ranks=2"};
  write_files(nets_lenet);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const json_t *bench = rehearse(4, ways[i]);
    assert_true(program_number(bench, "devices") == 4);
    assert_string_equal(program_text(bench, "rehearsed"), "made-up device");
    expect_equal(bench, "step_ms", ways[i]);
    expect_equal(bench, "compute_ms", ways[i]);
    expect_equal(bench, "communication_ms", ways[i]);
    expect_equal(bench, "exposed_ms", ways[i]);
    double median = json_number_value(json_array_get(program_member(bench, "ms"), 1));
    assert_true(fabs(median - number_of(bench, "predicted", "step_ms")) < 1e-6 * median);
    print_message("%s: %.4f of %.4f ms exposed\n", ways[i], number_of(bench, "measured", "exposed_ms"),
                  median);
  }
}

/* The schedule of the plan is that of the rehearsal. */
static void the_plan_predicts_the_rehearsal(void **state) {
  (void)state;
  static const char more[] = "--set distributed.link=0.2:20 --set backend.sim.order=random";
  write_files(nets_lenet);
  const json_t *bench = rehearse(8, more);
  double exposed = number_of(bench, "measured", "exposed_ms");
  const json_t *plan = program_json(0, "plan model.ini --device device.json --ranks 8 %s", more);
  assert_true(exposed > 0);
  assert_true(fabs(program_number(program_member(plan, "overlap"), "exposed_ms") - exposed) < 1e-6 * exposed);
}

/* Kernels that vary: the step ends with the slowest rank, and the drawn times are the same in every run. */
static void ranks_wait_for_slower_ones(void **state) {
  (void)state;
  static const char more[] = "--set distributed.link=nvlink --set backend.sim.jitter=0.5";
  write_files(nets_lenet);
  const json_t *bench = rehearse(4, more);
  double exposed = number_of(bench, "worst", "exposed_ms"), step = number_of(bench, "measured", "step_ms");
  assert_true(exposed > number_of(bench, "predicted", "exposed_ms"));
  assert_true(step > number_of(bench, "predicted", "step_ms"));
  /* a collective begins when the last rank has come */
  assert_true(number_of(bench, "measured", "communication_ms") >
              number_of(bench, "predicted", "communication_ms"));
  assert_true(step < 1.5 * number_of(bench, "predicted", "step_ms"));
  assert_true(fabs(number_of(rehearse(4, more), "measured", "step_ms") - step) < 1e-6 * step);
}

static void one_rank_is_rehearsed_too(void **state) {
  (void)state;
  write_files(nets_lenet);
  const json_t *bench = rehearse(1, "");
  double median = json_number_value(json_array_get(program_member(bench, "ms"), 1));
  const json_t *plan = program_json(0, "plan model.ini --device device.json --set data.device_transforms=no");
  assert_true(fabs(program_number(plan, "cost_ms") - median) < 1e-6 * median);
  assert_null(json_object_get(bench, "overlap"));
}

/* The devices compute, and the waits are those of their clocks. */
static void simulated_devices_are_measured(void **state) {
  (void)state;
  static const char command[] =
      "bench model.ini --set backend.use=sim --set backend.sim.devices=2 --rounds 2 "
      "--steps 2 %s";
  write_files(nets_lenet);
  const json_t *bench = program_json(0, command, "--set distributed.devices=2");
  assert_true(program_number(bench, "devices") == 2 && program_number(bench, "batch") == 8);
  assert_null(json_object_get(bench, "rehearsed"));
  assert_true(number_of(bench, "measured", "step_ms") > 0);
  assert_true(number_of(bench, "measured", "communication_ms") > 0);
  assert_true(number_of(bench, "measured", "exposed_ms") >= 0);
  assert_true(number_of(bench, "worst", "exposed_ms") >= number_of(bench, "measured", "exposed_ms"));
  bench = program_json(0, command, "--ranks 2 --batch 6 --set optimizer.accumulate=2");
  assert_true(program_number(bench, "batch") == 6 && program_number(bench, "accumulate") == 2);
  assert_int_equal(program_run(command, "--ranks 2"), 0);
  assert_non_null(strstr(program_out, "\ndevices    2\npredicted  "));
}

static void wrong_requests_are_refused(void **state) {
  (void)state;
  write_files(nets_lenet);
  assert_int_equal(program_run("bench model.ini --device device.json --ranks 3"), 65);
  assert_non_null(strstr(program_err, "a batch of 8 cannot be divided among 3 devices"));
  assert_int_equal(program_run("bench model.ini --device device.json --ranks 65 --batch 65"), 69);
  assert_int_equal(program_run("bench model.ini --set backend.use=sim --ranks 2"), 69);
  assert_non_null(strstr(program_err, "a benchmark of 2 ranks, but backend 'sim' has 1 device"));
  assert_int_equal(program_run("bench model.ini --device device.json --ranks 2 --ops"), 69);
  assert_int_equal(program_run("bench model.ini --device nothing.json --ranks 2"), 74);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_rehearsal_takes_the_predicted_times),
      CASE(the_plan_predicts_the_rehearsal),
      CASE(ranks_wait_for_slower_ones),
      CASE(one_rank_is_rehearsed_too),
      CASE(simulated_devices_are_measured),
      CASE(wrong_requests_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* [run] profile and --trace: the figures of a profile agree with each other, the trace shows the same steps,
 * and the run goes on as if there had been no profile. */
#include <sys/stat.h>

#include "configs.h"
#include "profiles.h"

static const char *const backends[] = {"cpu", "onednn", "sim"};
enum { BACKENDS = sizeof backends / sizeof *backends, EPOCH = 10, BATCH = 8 };

static void train(const char *backend, const char *options) {
  file_write("noise.ini", noise_ini);
  program_json(0, "train noise.ini --set backend.use=%s --set run.output=%s %s", backend, backend, options);
}

static const json_t *read_profile(const char *backend, const char *file) {
  char path[128];
  snprintf(path, sizeof path, "%s/noise/%s", backend, file);
  return file_json(path);
}

static void each_launch_of_the_plan_has_its_time(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    train(backends[b], "--set run.profile=3");
    const json_t *p = read_profile(backends[b], "profile.json"),
                 *plan = program_member(read_profile(backends[b], "plan.json"), "ops"),
                 *launches = program_member(p, "launches");
    profile_check_sums(p, 3, BATCH);
    assert_int_equal(program_number(p, "first_step"), 3);
    assert_int_equal(program_number(p, "of_steps"), 2 * EPOCH);
    profile_near(program_number(p, "launched_ms"), profile_sum(launches, "ms"), program_number(p, "wall_ms"));
    assert_int_equal(json_array_size(launches), json_array_size(plan));
    for (size_t i = 0; i < json_array_size(plan); i++) {
      const json_t *one = json_array_get(launches, i), *op = json_array_get(plan, i);
      assert_int_equal(program_number(one, "launches"), 3);
      assert_string_equal(program_text(one, "program"), "step");
      assert_string_equal(program_text(one, "name"), program_text(op, "name"));
      assert_string_equal(program_text(one, "kernel"), program_text(op, "kernel"));
      assert_true(program_number(one, "bytes") > 0);
    }
  }
}

/* A device with memory of its own has copies, and times of its own clock. */
static void copies_and_clocks_are_those_of_the_device(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    int late = strcmp(backends[b], "sim") == 0;
    train(backends[b], "--set run.profile=3");
    const json_t *p = read_profile(backends[b], "profile.json");
    assert_string_equal(program_text(p, "clock"), late ? "device" : "host");
    assert_int_equal(program_number(p, "copies.to_device.copies"), late ? 3 : 0);
    assert_int_equal(program_number(p, "copies.to_host.copies"), late ? 3 : 0);
    assert_true(program_number(p, "copies.to_device.bytes") >= (late ? 3.0 * BATCH * 36 : 0));
  }
}

static void the_trace_shows_the_same_steps(void **state) {
  (void)state;
  for (int b = 0; b < BACKENDS; b++) {
    int late = strcmp(backends[b], "sim") == 0;
    train(backends[b], "--set run.profile=3 --set data.workers=1");
    const json_t *p = read_profile(backends[b], "profile.json"),
                 *trace = read_profile(backends[b], "trace.json");
    trace_check(trace);
    assert_int_equal(trace_count(trace, "compute", "launch"),
                     3 * json_array_size(program_member(p, "launches")));
    assert_int_equal(trace_count(trace, "host", "step"), 3);
    assert_int_equal(trace_count(trace, "host", "host"), 3);
    assert_int_equal(trace_count(trace, "loader 1", "loader"), program_number(p, "loader.parts"));
    assert_int_equal(trace_count(trace, "copies to the device", "copy"), late ? 3 : 0);
    assert_int_equal(trace_count(trace, "copies to the host", "copy"), late ? 3 : 0);
    assert_int_equal(trace_row(trace, "collectives"), -1);
  }
}

/* Without workers the launching thread reads, while it waits for the batch. */
static void without_workers_the_host_reads(void **state) {
  (void)state;
  train("cpu", "--set run.profile=3 --set data.workers=0");
  const json_t *p = read_profile("cpu", "profile.json"), *trace = read_profile("cpu", "trace.json");
  profile_check_sums(p, 3, BATCH);
  trace_check(trace);
  assert_true(trace_count(trace, "host", "loader") >= 3);
  assert_true(program_number(p, "loader.waited_ms") >=
              program_number(p, "loader.reading_ms") + program_number(p, "loader.transforms_ms"));
}

/* Captures, several steps in a launch, several devices: the profile leaves no trace in the state. */
static void the_run_goes_on_with_the_same_bits(void **state) {
  (void)state;
  static const char *const options[] = {
      "--set backend.use=cpu",
      "--set backend.use=onednn",
      "--set backend.use=sim",
      "--set backend.use=sim --set run.steps_per_launch=3",
      "--set backend.use=cpu --set optimizer.accumulate=2",
      "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2",
  };
  file_write("noise.ini", noise_ini);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    program_json(0, "train noise.ini %s --set run.output=plain%zu --set run.name=run", options[i], i);
    program_json(0, "train noise.ini %s --set run.output=profiled%zu --set run.name=run --set run.profile=4",
                 options[i], i);
    char plain[32], profiled[32];
    snprintf(plain, sizeof plain, "plain%zu", i);
    snprintf(profiled, sizeof profiled, "profiled%zu", i);
    checkpoints_equal(plain, profiled);
  }
}

static void validation_and_checkpoints_are_not_in_the_profile(void **state) {
  (void)state;
  train("sim", "--set run.profile=15 --set run.save_every=4");
  const json_t *p = read_profile("sim", "profile.json"), *launches = program_member(p, "launches"),
               *trace = read_profile("sim", "trace.json");
  profile_check_sums(p, 15, BATCH);
  trace_check(trace);
  assert_int_equal(trace_count(trace, "host", "step"), 15);
  for (size_t i = 0; i < json_array_size(launches); i++) {
    assert_string_equal(program_text(json_array_get(launches, i), "program"), "step");
    assert_int_equal(program_number(json_array_get(launches, i), "launches"), 15);
  }
}

static void the_programs_of_an_accumulated_step_are_one_step(void **state) {
  (void)state;
  static const char *const names[] = {"weigh", "micro", "step"};
  int seen[3] = {0};
  for (int b = 0; b < BACKENDS; b++) {
    train(backends[b], "--set run.profile=2 --set optimizer.accumulate=3");
    const json_t *p = read_profile(backends[b], "profile.json"), *launches = program_member(p, "launches");
    profile_check_sums(p, 2, 3 * BATCH);
    for (size_t i = 0; i < json_array_size(launches); i++)
      for (int k = 0; k < 3; k++) {
        const json_t *one = json_array_get(launches, i);
        if (strcmp(program_text(one, "program"), names[k]) != 0) continue;
        assert_int_equal(program_number(one, "launches"), 2 * (3 - k));
        seen[k]++;
      }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
  }
}

/* Collectives have a row of their own; compute waits for them. */
static void collectives_are_apart_from_the_launches(void **state) {
  (void)state;
  train("sim", "--set run.profile=3 --set backend.sim.devices=2 --set distributed.devices=2");
  const json_t *p = read_profile("sim", "profile.json"), *trace = read_profile("sim", "trace.json");
  profile_check_sums(p, 3, BATCH);
  trace_check(trace);
  assert_true(program_number(p, "collective_wait_ms") > 0);
  assert_true(program_number(p, "launched_ms") < profile_sum(program_member(p, "launches"), "ms"));
  assert_true(trace_count(trace, "collectives", "launch") >= 3);
  assert_true(trace_count(trace, "compute", "wait") >= 3);
}

/* Ops that the device lacks are launches of the fallback, between copies. */
static void launches_on_the_fallback_have_a_row(void **state) {
  (void)state;
  train("sim", "--set run.profile=3 --set backend.sim.lacks=matmul --set backend.fallback=allow");
  const json_t *p = read_profile("sim", "profile.json"), *trace = read_profile("sim", "trace.json");
  profile_check_sums(p, 3, BATCH);
  trace_check(trace);
  assert_true(trace_count(trace, "fallback", "launch") >= 3);
  assert_true(program_number(p, "copies.to_host.copies") > 3);
}

static void a_trace_can_be_written_elsewhere(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --trace own.json");
  assert_string_equal(program_text(r, "trace"), "own.json");
  assert_string_equal(program_text(r, "profile"), "runs/noise/profile.json");
  assert_int_equal(program_number(file_json("runs/noise/profile.json"), "steps"), 10);
  trace_check(file_json("own.json"));
  assert_false(file_exists("runs/noise/trace.json"));
  r = program_json(0, "train noise.ini --trace own.json --set run.profile=2");
  assert_int_equal(trace_count(file_json("own.json"), "host", "step"), 2);
  r = program_json(0, "train noise.ini");
  assert_null(json_object_get(r, "trace"));
  assert_null(json_object_get(r, "profile"));
  assert_false(file_exists("runs/noise-3/profile.json"));
}

static void a_short_run_is_traced_as_a_whole(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_json(0, "train noise.ini --trace own.json --set run.max_steps=3");
  assert_int_equal(program_number(file_json("runs/noise/profile.json"), "first_step"), 1);
  assert_int_equal(program_number(file_json("runs/noise/profile.json"), "steps"), 3);
  program_json(0, "train noise.ini --trace dev.json --set run.fast_dev_run=yes --set run.profile=7");
  assert_int_equal(trace_count(file_json("dev.json"), "host", "step"), 1);
  assert_false(file_exists("runs/noise-2"));
}

static void a_run_that_ends_early_has_the_profile_so_far(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(
      0, "train noise.ini --set run.epochs=5 --set run.profile=45 --set run.patience=1 --set optimizer.lr=0");
  assert_string_equal(program_text(r, "status"), "patience");
  profile_check_sums(file_json("runs/noise/profile.json"), (int)program_number(r, "steps") - 2, BATCH);
}

static void a_resumed_run_profiles_the_steps_that_are_left(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_json(0, "train noise.ini --set run.max_steps=14");
  program_json(0, "train noise.ini --resume auto --set run.profile=30");
  const json_t *p = file_json("runs/noise/profile.json");
  assert_int_equal(program_number(p, "first_step"), 15);
  assert_int_equal(program_number(p, "steps"), 6);
  assert_null(strstr(program_err, "not replayed"));
}

/* The search for the first value repeats steps, which are not profiled. */
static void a_loss_that_is_not_finite_ends_the_profile(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  for (int b = 0; b < BACKENDS; b++) {
    const json_t *r = program_json(
        76, "train noise.ini --set backend.use=%s --set run.profile=20 --set optimizer.lr=1e30", backends[b]);
    assert_string_equal(program_text(r, "status"), "non-finite");
    assert_null(json_object_get(r, "profile"));
    assert_non_null(strstr(program_err, "is the first whose result is not finite"));
  }
}

/* The training is worth more than its profile. */
static void a_trace_that_cannot_be_written_later_ends_no_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_json(0, "train noise.ini --set run.max_steps=10");
  assert_int_equal(mkdir("runs/noise/trace.json", 0777), 0);
  const json_t *r = program_json(0, "train noise.ini --resume auto --set run.profile=3");
  assert_int_equal(program_number(r, "steps"), 2 * EPOCH);
  assert_non_null(strstr(program_err, "the profile is not complete: runs/noise/trace.json: is a folder"));
  assert_true(file_exists("runs/noise/profile.json"));
}

static void the_table_is_part_of_the_progress(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.profile=3"), 0);
  static const char *const parts[] = {"profile of steps 3 to 5 of 20: ",
                                      "kernel                          launches       ms     %",
                                      "op                              launches       ms     %",
                                      "\nlaunches  ",
                                      "\nbetween launches  ",
                                      "\nloader: 2 threads, ",
                                      "\ntrace: runs/noise/trace.json"};
  const char *at = program_err;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    at = strstr(at, parts[i]);
    if (at == NULL) fail_msg("the table lacks, or has in another place: %s", parts[i]);
  }
  for (const char *line = strstr(program_err, "profile of"); line < at; line = strchr(line, '\n') + 1)
    if (strcspn(line, "\n") > 80) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
  assert_null(strstr(program_out, "profile of"));
  assert_int_equal(program_run("train noise.ini --set run.profile=3 --quiet"), 0);
  assert_string_equal(program_err, "");
  assert_true(file_exists("runs/noise-2/profile.json"));
}

static void benchmarks_write_traces(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  for (int b = 0; b < BACKENDS; b++) {
    const json_t *r = program_json(
        0, "bench noise.ini --steps 1 --rounds 1 --trace bench.json --set backend.use=%s", backends[b]);
    assert_string_equal(program_text(r, "trace"), "bench.json");
    const json_t *trace = file_json("bench.json");
    trace_check(trace);
    assert_int_equal(trace_count(trace, "host", "step"), 10);
    assert_int_equal(trace_count(trace, "compute", "launch") % 10, 0);
    assert_true(trace_count(trace, "compute", "launch") > 0);
  }
  program_json(0, "bench noise.ini --mode infer --steps 1 --rounds 1 --trace infer.json");
  assert_true(trace_count(file_json("infer.json"), "compute", "launch") > 0);
  program_json(0, "bench noise.ini --mode load --steps 2 --rounds 1 --trace load.json");
  const json_t *load = file_json("load.json");
  trace_check(load);
  assert_int_equal(trace_count(load, "host", "wait"), 10);
  assert_true(trace_count(load, "loader 1", "loader") + trace_count(load, "loader 2", "loader") > 0);
  assert_int_equal(program_run("bench noise.ini --steps 1 --rounds 1 --trace bench.json"), 0);
  assert_non_null(strstr(program_out, "trace      bench.json"));
}

/* The page has the sums; the launches stay in the file. */
static void a_report_shows_the_profile(void **state) {
  (void)state;
  size_t n;
  file_write("noise.ini", noise_ini);
  program_json(0, "train noise.ini --set run.profile=3");
  program_json(0, "train noise.ini");
  program_json(0, "report runs/noise runs/noise-2 --output page.html");
  const char *page = file_read("page.html", &n), *first = strstr(page, "\"profile\":{\"version\":1");
  assert_non_null(first);
  assert_non_null(strstr(first, "\"kernels\":[{\"kernel\":"));
  assert_non_null(strstr(first, "\"profile\":null"));
  assert_null(strstr(page, "\"launches\":["));
}

static void refuse(int code, const char *command, const char *text) {
  assert_int_equal(program_run("%s", command), code);
  if (strstr(program_err, text) == NULL) fail_msg("%s: %s", command, program_err);
  assert_null(strstr(program_err, "epoch 1"));
  assert_false(file_exists("runs"));
}

static void mistakes_are_told_before_the_training(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  refuse(65, "train noise.ini --set run.profile=-1", "[run] profile: -1 is out of range");
  refuse(65, "train noise.ini --set run.profile=many", "[run] profile: 'many' is not a whole number");
  refuse(65, "train noise.ini --set run.profile=21",
         "--set run.profile: [run] profile = 21, but the run has 20 steps");
  refuse(65, "train noise.ini --set run.profile=2 --set run.max_steps=1",
         "[run] profile = 2, but the run has 1 step\n");
  refuse(74, "train noise.ini --trace none/own.json",
         "the trace: none/own.json: there is no folder none; make it first");
  refuse(65, "train noise.ini --trace .", "the trace: .: is a folder");
  refuse(74, "bench noise.ini --trace none/own.json", "there is no folder none; make it first");
  refuse(74, "bench noise.ini --mode load --trace none/own.json", "there is no folder none; make it first");
  refuse(2, "train noise.ini --trace", "--trace");
  refuse(2, "predict noise.ini --trace own.json", "unknown option");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_launch_of_the_plan_has_its_time),
      TEST(copies_and_clocks_are_those_of_the_device),
      TEST(the_trace_shows_the_same_steps),
      TEST(without_workers_the_host_reads),
      TEST(the_run_goes_on_with_the_same_bits),
      TEST(validation_and_checkpoints_are_not_in_the_profile),
      TEST(the_programs_of_an_accumulated_step_are_one_step),
      TEST(collectives_are_apart_from_the_launches),
      TEST(launches_on_the_fallback_have_a_row),
      TEST(a_trace_can_be_written_elsewhere),
      TEST(a_short_run_is_traced_as_a_whole),
      TEST(a_run_that_ends_early_has_the_profile_so_far),
      TEST(a_resumed_run_profiles_the_steps_that_are_left),
      TEST(a_loss_that_is_not_finite_ends_the_profile),
      TEST(a_trace_that_cannot_be_written_later_ends_no_run),
      TEST(the_table_is_part_of_the_progress),
      TEST(benchmarks_write_traces),
      TEST(a_report_shows_the_profile),
      TEST(mistakes_are_told_before_the_training),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `tenon bench` on the doubles of CUDA's libraries: what the host calls in a step, and in measurements of
 * kernels. */
#include "double.h"

/* deterministic: no measurement adds calls. */
static const char net[] = "[run]\nname = run\ndeterministic = yes\n[data]\nsource = random\nshape = 1, 6, 6\n"
                          "classes = 4\nsamples = 80\nbatch = 8\n[model]\ninputs = image: f32[1, 6, 6]\n"
                          "layers =\n    flatten\n    fc1: linear(16)\n    relu\n    fc2: linear(4)\n"
                          "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

static const char *const functions[] = {"cuEventSynchronize", "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2",
                                        "cuGraphLaunch"};
enum { WAITS, STREAM_WAITS, COPIES, LAUNCHES, FUNCTIONS };

static void bench(int steps, int rounds, int steps_per_launch, int calls[FUNCTIONS]) {
  const json_t *r =
      program_json(0, "bench net.ini " ON_DOUBLE "--steps %d --rounds %d --set run.steps_per_launch=%d",
                   steps, rounds, steps_per_launch);
  double_is_content();
  for (int i = 0; i < FUNCTIONS; i++) calls[i] = double_calls(functions[i]);
  assert_true(program_number(r, "host_ms") > 0);
  assert_true(program_number(r, "device_ms") > 0);
  assert_true(program_number(r, "copy_ms") > 0);
  assert_true(program_number(r, "copy_bytes") >= 8 * 36 * 4);
  assert_int_equal(program_number(r, "planned_peak_mib") * 1024,
                   program_number(r, "measured_peak_mib") * 1024);
}

static void the_host_waits_once_a_round(void **state) {
  (void)state;
  int few[FUNCTIONS], many[FUNCTIONS], rounds[FUNCTIONS];
  file_write("net.ini", net);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  bench(4, 2, 1, few);
  bench(12, 2, 1, many);
  bench(4, 3, 1, rounds);
  /* two rounds with copies, and two without: 8 more steps in each */
  assert_int_equal(many[COPIES] - few[COPIES], 2 * 8);
  assert_int_equal(many[LAUNCHES] - few[LAUNCHES], 4 * 8);
  assert_int_equal(many[WAITS] - few[WAITS], 0);
  assert_int_equal(many[STREAM_WAITS] - few[STREAM_WAITS], 0);
  /* a round more of each kind, and a copy by itself */
  assert_int_equal(rounds[WAITS] - few[WAITS], 3);
}

static void several_steps_are_one_launch(void **state) {
  (void)state;
  int few[FUNCTIONS], many[FUNCTIONS];
  file_write("net.ini", net);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  bench(4, 2, 4, few);
  bench(12, 2, 4, many);
  assert_int_equal(many[COPIES] - few[COPIES], 2 * 8 / 4);
  assert_int_equal(many[LAUNCHES] - few[LAUNCHES], 4 * 8 / 4);
}

/* A step of two batches copies both, into slots that the step before does not read. */
static void batches_of_a_step_are_copied_beside_the_step_before(void **state) {
  (void)state;
  int calls[2][FUNCTIONS];
  file_write("net.ini", net);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  for (int i = 0; i < 2; i++) {
    const json_t *r = program_json(
        0, "bench net.ini " ON_DOUBLE "--steps %d --rounds 2 --set optimizer.accumulate=2", i == 0 ? 4 : 12);
    double_is_content();
    assert_int_equal(program_number(r, "accumulate"), 2);
    for (int f = 0; f < FUNCTIONS; f++) calls[i][f] = double_calls(functions[f]);
  }
  assert_int_equal(calls[1][COPIES] - calls[0][COPIES], 2 * 8 * 2);
  assert_int_equal(calls[1][WAITS] - calls[0][WAITS], 0);
  assert_int_equal(calls[1][STREAM_WAITS] - calls[0][STREAM_WAITS], 0);
}

static void a_round_has_whole_launches(void **state) {
  (void)state;
  int one[FUNCTIONS], four[FUNCTIONS];
  file_write("net.ini", net);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  bench(1, 1, 4, one);
  bench(4, 1, 4, four);
  assert_int_equal(one[LAUNCHES], four[LAUNCHES]);
  assert_int_equal(program_number(program_json(0, "bench net.ini " ON_DOUBLE "--set run.steps_per_launch=4"),
                                  "steps_per_launch"),
                   4);
}

/* Bytes that a benchmark copies to the host. */
static int bytes_to_host(int batch) {
  setenv("FAKECUDA_BYTES", "bytes", 1);
  program_json(0, "bench net.ini " ON_DOUBLE "--steps 4 --rounds 1 --set data.batch=%d", batch);
  unsetenv("FAKECUDA_BYTES");
  double_is_content();
  const char *bytes = strstr(file_read("bytes", NULL), "to_host ");
  assert_non_null(bytes);
  return atoi(bytes + strlen("to_host "));
}

/* A step copies measures, of one size for every batch, and not the scores: a language model's are larger than
 * all else that it copies. */
static void no_scores_are_copied_to_the_host(void **state) {
  (void)state;
  file_write("net.ini", net);
  int bytes = bytes_to_host(8);
  assert_true(bytes > 0);
  assert_int_equal(bytes_to_host(40), bytes);
}

/* Of 1.2 million parameters: a block of 256 threads with packs of 4 has work for 1184 blocks. */
static const char wide_net[] =
    "[run]\nname = run\ndeterministic = yes\nsteps_per_launch = 1\n[data]\nsource = random\nshape = 1, 6, 6\n"
    "classes = 4\nsamples = 4\nbatch = 2\n[model]\ninputs = image: f32[1, 6, 6]\n"
    "layers =\n    flatten\n    fc1: linear(32768, bias=no)\n    fc2: linear(4, bias=no)\n"
    "loss = cross_entropy\n[optimizer]\ntype = adamw\nlr = 0.01\n";

/* Blocks of a step: the difference of two benchmarks, of which one has a step more. */
static int blocks_of_a_step(const char *at_once) {
  int blocks[2];
  setenv("FAKECUDA_BLOCKS", at_once, 1);
  for (int i = 0; i < 2; i++) {
    program_json(0, "bench net.ini " ON_DOUBLE "--steps %d --rounds 1 --set backend.capture=no", 1 + i);
    blocks[i] = double_calls("blocks");
  }
  unsetenv("FAKECUDA_BLOCKS");
  return (blocks[1] - blocks[0]) / 2; /* a step with a copy, and one without */
}

/* The update draws on numbers that every block computes first, so more blocks than run at once repeat them.
 */
static void the_update_has_the_blocks_that_run_at_once(void **state) {
  (void)state;
  file_write("net.ini", wide_net);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  int three = blocks_of_a_step("3"), two = blocks_of_a_step("2");
  assert_int_equal(three - two, 132); /* multiprocessors of the double */
}

/* ---- measurements of kernels ---- */

static const char measured_net[] =
    "[run]\nname = run\nsteps_per_launch = 1\n[data]\nsource = random\nshape = 1, 6, 6\n"
    "classes = 4\nsamples = 8\nbatch = 8\n[model]\ninputs = image: f32[1, 6, 6]\n"
    "layers =\n    flatten\n    fc1: linear(%d, bias=no)\n    fc2: linear(4, bias=no)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.01\n";

/* Calls of a benchmark of one step. A folder for measurements is empty at the start. */
static void measure(int width, const char *options, int calls[FUNCTIONS]) {
  char text[1024];
  snprintf(text, sizeof text, measured_net, width);
  file_write("net.ini", text);
  assert_int_equal(system("rm -rf tenon"), 0);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  program_json(0, "bench net.ini " ON_DOUBLE "--steps 1 --rounds 1 %s", options);
  for (int i = 0; i < FUNCTIONS; i++) calls[i] = double_calls(functions[i]);
}

static void measurements_replay_captures(void **state) {
  (void)state;
  int measured[FUNCTIONS], estimated[FUNCTIONS], single[FUNCTIONS];
  measure(16, "", measured);
  measure(16, "--set backend.autotune=no", estimated);
  measure(16, "--set backend.capture=no", single);
  assert_true(measured[LAUNCHES] >= estimated[LAUNCHES] + 10);
  assert_int_equal(single[LAUNCHES], 0);
}

/* A library that refuses captures costs the replays alone. */
static void measurements_go_on_without_captures(void **state) {
  (void)state;
  int calls[FUNCTIONS], estimated[FUNCTIONS];
  measure(16, "--set backend.autotune=no", estimated);
  setenv("FAKECUDA_FAIL", "cublasLtMatmul:captured", 1);
  measure(16, "", calls);
  unsetenv("FAKECUDA_FAIL");
  assert_true(calls[COPIES] > estimated[COPIES]); /* of operands that are measured */
  assert_null(strstr(program_err, "cannot be measured"));
}

/* 1.2 million weights are 4.7 MB, 1152 are 4.6 kB. */
static void large_operands_are_filled_on_the_device(void **state) {
  (void)state;
  int small[FUNCTIONS], large[FUNCTIONS];
  measure(32, "", small);
  measure(32768, "", large);
  assert_true(large[COPIES] < small[COPIES] + 20);
}

static void memory_that_is_shared_has_no_parts(void **state) {
  (void)state;
  file_write("net.ini", net);
  const json_t *r = program_json(0, "bench net.ini --set backend.use=cpu --steps 2 --rounds 2");
  assert_null(json_object_get(r, "device_ms"));
  assert_null(json_object_get(r, "steps_per_launch"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_host_waits_once_a_round),
                                     TEST(several_steps_are_one_launch),
                                     TEST(batches_of_a_step_are_copied_beside_the_step_before),
                                     TEST(no_scores_are_copied_to_the_host),
                                     TEST(a_round_has_whole_launches),
                                     TEST(the_update_has_the_blocks_that_run_at_once),
                                     TEST(measurements_replay_captures),
                                     TEST(measurements_go_on_without_captures),
                                     TEST(large_operands_are_filled_on_the_device),
                                     TEST(memory_that_is_shared_has_no_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

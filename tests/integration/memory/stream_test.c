/* [run] offload for predictions: weights that memory_limit or the device has no room for are in memory of the
 * host and streamed in each run. The bits are those without a limit, memory is as planned, and copies hide
 * behind compute where the link allows it. */
#include "npy_files.h"
#include "program.h"
#include "tests/support/whole.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- configurations ---- */

/* Sixteen weights of 16 KiB; those of the last layer and the biases are too small to be streamed. */
static const char deep_ini[] = "[run]\nname = net\nmax_steps = 2\n"
                               "[data]\nsource = random\nshape = 64\nclasses = 4\nsamples = 64\nbatch = 32\n"
                               "workers = 1\n"
                               "[model]\ninputs = image: f32[64]\nlayers =\n"
                               "    b:  deep(64) * 8\n"
                               "    fc: linear(4)\n"
                               "loss = cross_entropy\n"
                               "[block deep]\nargs = width\nlayers =\n"
                               "    one: linear(width)\n"
                               "         gelu\n"
                               "    two: linear(width)\n"
                               "         add <- two, in\n"
                               "[optimizer]\ntype = sgd\nlr = 0.01\n";

#define ON_SIM  "--set backend.use=sim --set backend.sim.link=1e9"
#define WEIGHTS "--weights out/net/checkpoints/last/model.safetensors --input x.npy"

static const char device_json[] =
    "{\"family\": \"made_up\", \"name\": \"made-up device\", \"accepts\": \"cpu\",\n"
    "\"memory_bytes\": %s, \"bytes_per_s\": 1e11, \"launch_s\": 2e-6,\n"
    "\"vector_flops_per_s\": 1e12, \"link_bytes_per_s\": 2e10}";

/* ---- helpers ---- */

static const json_t *plan_of(const char *more) {
  return program_json(0, "plan net.ini --mode infer --batch 32 " ON_SIM " %s", more);
}

/* A limit that leaves this share of the bytes of the parameters. */
static void limit_to(double share, char more[128]) {
  const json_t *plan = plan_of("");
  assert_true(program_number(plan, "streamed_bytes") == 0);
  snprintf(more, 128, "--set run.memory_limit=%.0f",
           program_number(plan, "peak_bytes") - (1 - share) * program_number(plan, "state_bytes"));
}

static void prepare(void) {
  float x[32 * 64];
  for (int i = 0; i < 32 * 64; i++) x[i] = (float)(i * 37 % 101) / 101.0f;
  file_write("net.ini", deep_ini);
  write_npy("x.npy", 32, "64", x, 32 * 64);
  program_json(0, "train net.ini --output out --set backend.use=sim");
}

static void predict_into(const char *file, const char *more) {
  program_expect(program_run("predict net.ini " WEIGHTS " --output %s " ON_SIM " %s", file, more), 0);
}

/* Three runs, the last on a part of a batch. */
static void predicts_the_same(const char *limit, const char *more) {
  char both[512];
  snprintf(both, sizeof both, "--verbose %s %s", limit, more);
  predict_into("tight.npy", both);
  assert_non_null(strstr(program_err, "streamed to the device"));
  files_equal("free.npy", "tight.npy");
}

/* ---- tests ---- */

/* Captured and launched one by one; the device finds memory that nothing orders. */
static void streamed_weights_have_the_same_bits(void **state) {
  static const char *const ways[] = {"", "--set backend.capture=no", "--set backend.sim.order=lazy",
                                     "--set backend.sim.order=eager"};
  static const double shares[] = {0.7, 0.3};
  char limit[128];
  (void)state;
  prepare();
  predict_into("free.npy", "");
  for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
    limit_to(shares[k], limit);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) predicts_the_same(limit, ways[i]);
  }
}

static void any_order_of_the_streams_predicts_alike(void **state) {
  char limit[128], more[128];
  (void)state;
  prepare();
  predict_into("free.npy", "");
  limit_to(0.4, limit);
  for (int seed = 1; seed <= whole_or(50, 3); seed++) {
    snprintf(more, sizeof more, "--set backend.sim.seed=%d --set backend.capture=%s", seed,
             seed % 2 ? "yes" : "no");
    predicts_the_same(limit, more);
  }
}

/* The host makes the copies in low precision, which are streamed. */
static void copies_in_low_precision_are_streamed(void **state) {
  char limit[128], more[256];
  static const char policy[] = "--set precision.policy=bf16";
  (void)state;
  prepare();
  predict_into("free.npy", policy);
  const json_t *plan = plan_of(policy);
  snprintf(limit, sizeof limit, "--set run.memory_limit=%.0f",
           program_number(plan, "peak_bytes") - 0.6 * program_number(plan, "state_bytes"));
  predicts_the_same(limit, policy);
  snprintf(more, sizeof more, "%s %s", policy, limit);
  const json_t *o = program_member(plan_of(more), "offload.streamed");
  assert_true(program_number(o, "bytes") == program_number(o, "copies") * 64 * 64 * 2);
}

static void the_plan_says_what_is_streamed(void **state) {
  char limit[128];
  (void)state;
  prepare();
  limit_to(0.5, limit);
  const json_t *plan = plan_of(limit), *table = program_member(plan, "memory_table");
  double streamed = program_number(plan, "streamed_bytes"), step = program_number(plan, "offload.step_ms");
  assert_true(streamed >= 0.5 * 16 * 64 * 64 * 4);
  assert_true(program_number(plan, "offload.streamed.bytes") == streamed);
  assert_true(program_number(plan, "offload.streamed.copies") * 64 * 64 * 4 == streamed);
  assert_true(program_number(plan, "placed_bytes") == 0);
  assert_true(program_number(plan, "peak_bytes") <= atof(strchr(limit, '=') + 1));
  assert_true(program_number(table, "executor_bytes") == program_number(plan, "peak_bytes"));
  assert_true(program_number(table, "streamed_bytes") == streamed);
  assert_true(step > program_number(plan, "offload.unlimited_ms"));
  assert_int_equal(program_run("plan net.ini --mode infer --batch 32 " ON_SIM " %s", limit), 0);
  assert_non_null(strstr(program_out, "streamed for memory_limit: "));
  assert_non_null(strstr(program_out, "of it streamed weights"));
  assert_non_null(strstr(program_out, "  streamed weights "));
  assert_non_null(strstr(program_out, "in place of"));
}

/* Between two buffers for the largest weight and all weights, each limit is kept, and more of it is faster.
 */
static void each_limit_is_kept_as_planned(void **state) {
  char limit[128];
  double before = 0;
  (void)state;
  prepare();
  for (double share = 0.2; share < 0.95; share += 0.1) {
    limit_to(share, limit);
    const json_t *plan = plan_of(limit),
                 *bench =
                     program_json(0, "bench net.ini --mode infer --rounds 1 --steps 2 " ON_SIM " %s", limit);
    double streamed = program_number(plan, "streamed_bytes");
    assert_true(streamed > 0 && (before == 0 || streamed <= before));
    assert_true(program_number(bench, "planned_peak_mib") == program_number(bench, "measured_peak_mib"));
    before = streamed;
  }
}

/* Without memory_limit the device's own memory decides. */
static void a_small_device_streams_by_itself(void **state) {
  static const char plan_on[] = "plan net.ini --mode infer --batch 32 --device device.json";
  char device[1024], bytes[32];
  (void)state;
  file_write("net.ini", deep_ini);
  snprintf(device, sizeof device, device_json, "85899345920");
  file_write("device.json", device);
  const json_t *plan = program_json(0, plan_on);
  assert_true(program_number(plan, "streamed_bytes") == 0);
  snprintf(bytes, sizeof bytes, "%.0f",
           program_number(plan, "peak_bytes") - 0.5 * program_number(plan, "state_bytes"));
  snprintf(device, sizeof device, device_json, bytes);
  file_write("device.json", device);
  assert_true(program_number(program_json(0, plan_on), "streamed_bytes") > 0);
  assert_int_equal(program_run("%s --set run.offload=no", plan_on), 69);
  assert_non_null(strstr(program_err, "with [run] offload = auto"));
}

/* With enough samples each launch takes longer than the copy of the next weight. */
static void copies_of_weights_hide_behind_compute(void **state) {
  char device[1024];
  (void)state;
  file_write("net.ini", deep_ini);
  snprintf(device, sizeof device, device_json, "85899345920");
  file_write("device.json", device);
  static const char plan_on[] = "plan net.ini --mode infer --batch 4096 --device device.json";
  const json_t *plan = program_json(0, plan_on);
  double limit = program_number(plan, "peak_bytes") - 0.4 * program_number(plan, "state_bytes");
  plan = program_json(0, "%s --set run.memory_limit=%.0f", plan_on, limit);
  double copies = program_number(plan, "offload.streamed.copy_ms"),
         exposed = program_number(plan, "offload.streamed.exposed_ms");
  print_message("%.4f ms of copies, %.4f ms exposed\n", copies, exposed);
  assert_true(program_number(plan, "streamed_bytes") > 0);
  assert_true(exposed <= 0.1 * copies);
}

static void offload_no_keeps_weights_on_the_device(void **state) {
  char limit[128];
  (void)state;
  prepare();
  limit_to(0.5, limit);
  assert_int_equal(program_run("predict net.ini " WEIGHTS " " ON_SIM " %s --set run.offload=no", limit), 65);
  assert_non_null(strstr(program_err, "let weights stay in memory of the host with [run] offload = auto"));
  assert_int_equal(program_run("predict net.ini " WEIGHTS " --set backend.use=cpu %s", limit), 65);
  assert_non_null(strstr(program_err, "is too little"));
}

/* Two buffers for the largest weight and the values of a launch are needed in any case. */
static void a_limit_below_two_weights_is_refused(void **state) {
  (void)state;
  prepare();
  assert_int_equal(program_run("predict net.ini " WEIGHTS " " ON_SIM " --set run.memory_limit=32KiB"), 65);
  assert_non_null(strstr(program_err, "is too little"));
  assert_non_null(strstr(program_err, "at least"));
}

/* Every allocation of the run fails once: the message says for what it was, and nothing else goes wrong. */
static void weights_without_memory_end_the_prediction(void **state) {
  char limit[128];
  bool named = false;
  int n = 0, code;
  (void)state;
  prepare();
  limit_to(0.5, limit);
  do {
    code = program_run("predict net.ini " WEIGHTS " " ON_SIM " %s --set backend.sim.fail=allocation:%d",
                       limit, ++n);
    if (code != 0) assert_non_null(strstr(program_err, "bytes of"));
    named = named || strstr(program_err, "(weights: [run] offload)") != NULL;
  } while (code != 0 && n < 64);
  assert_true(n < 64 && named);
}

/* Forward and backward fetch what no epoch changes: the second layers, through which gradients go. */
static void frozen_weights_are_streamed_in_a_training(void **state) {
  static const char frozen[] =
      "--set group.base.match=*.two.* --set group.base.freeze=yes --set data.batch=8 " ON_SIM;
  static const char *const ways[] = {"", "--set backend.capture=no", "--set backend.sim.order=lazy",
                                     "--set precision.policy=bf16"};
  (void)state;
  file_write("net.ini", deep_ini);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const json_t *plan = program_json(0, "plan net.ini %s %s", frozen, ways[i]);
    double limit = program_number(plan, "peak_bytes") - 0.3 * program_number(plan, "state_bytes");
    program_json(0, "train net.ini --output free %s %s", frozen, ways[i]);
    plan = program_json(0, "plan net.ini %s %s --set run.memory_limit=%.0f", frozen, ways[i], limit);
    assert_true(program_number(plan, "streamed_bytes") > 0);
    assert_true(i == 3 ||
                program_number(plan, "offload.streamed.bytes") > 0); /* copies of half the size fit */
    const json_t *run = program_json(0, "train net.ini --output tight %s %s --set run.memory_limit=%.0f",
                                     frozen, ways[i], limit);
    assert_true(program_number(run, "planned_peak_bytes") == program_number(run, "measured_peak_bytes"));
    checkpoint_folders_equal("free/net/checkpoints/last", "tight/net/checkpoints/last");
  }
}

/* The file has no name, so nothing is left behind. */
static void weights_in_a_file_have_the_same_bits(void **state) {
  static const char *const ways[] = {"", "--set backend.sim.order=lazy", "--set backend.sim.seed=9"};
  char limit[128], more[256];
  (void)state;
  prepare();
  predict_into("free.npy", "");
  limit_to(0.4, limit);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    assert_int_equal(mkdir("disk", 0700), 0);
    snprintf(more, sizeof more, "--set run.offload_folder=disk %s", ways[i]);
    predicts_the_same(limit, more);
    assert_int_equal(rmdir("disk"), 0);
  }
}

/* It is told before anything runs. */
static void a_disk_without_room_ends_the_prediction(void **state) {
  static const char *const folders[] = {"disk", "nowhere", "net.ini"}, *const reasons[] = {
                                                                           "see `ulimit -f`",
                                                                           "No such file or directory",
                                                                           "Not a directory"};
  char limit[128];
  (void)state;
  prepare();
  limit_to(0.4, limit);
  assert_int_equal(mkdir("disk", 0700), 0);
  program_limit_files(64 << 10);
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    assert_int_equal(program_run("predict net.ini " WEIGHTS " " ON_SIM " %s --set run.offload_folder=%s",
                                 limit, folders[i]),
                     74);
    assert_non_null(strstr(program_err, folders[i]));
    assert_non_null(strstr(program_err, "cannot be the place of a file of"));
    if (strstr(program_err, reasons[i]) == NULL) fail_msg("%s", program_err);
  }
  program_limit_files(0);
  assert_int_equal(rmdir("disk"), 0);
}

static void a_plan_of_an_unknown_mode_is_refused(void **state) {
  (void)state;
  file_write("net.ini", deep_ini);
  assert_int_equal(program_run("plan net.ini --mode load"), 2);
  assert_non_null(strstr(program_err, "--mode load, expected train or infer"));
  assert_int_equal(program_run("plan net.ini --batch 8"), 2);
  assert_non_null(strstr(program_err, "expected beside --mode infer"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(streamed_weights_have_the_same_bits),
      TEST(any_order_of_the_streams_predicts_alike),
      TEST(copies_in_low_precision_are_streamed),
      TEST(the_plan_says_what_is_streamed),
      TEST(each_limit_is_kept_as_planned),
      TEST(a_small_device_streams_by_itself),
      TEST(copies_of_weights_hide_behind_compute),
      TEST(offload_no_keeps_weights_on_the_device),
      TEST(a_limit_below_two_weights_is_refused),
      TEST(weights_without_memory_end_the_prediction),
      TEST(frozen_weights_are_streamed_in_a_training),
      TEST(weights_in_a_file_have_the_same_bits),
      TEST(a_disk_without_room_ends_the_prediction),
      TEST(a_plan_of_an_unknown_mode_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

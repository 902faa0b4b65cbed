/* [run] offload: under memory_limit values wait in memory of the host. The bits are those of a run without a
 * limit, memory is as planned, and copies hide behind compute where the link allows it. */
#include "program.h"
#include "tests/support/whole.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- configurations ---- */

/* Deep and narrow: each layer takes long enough for the copy of one value. */
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
                               "         dropout(0.1)\n"
                               "         add <- two, in\n"
                               "[optimizer]\ntype = sgd\nlr = 0.01\n";

#define ON_SIM "--set backend.use=sim --set backend.sim.link=1e9"
/* Copies take longer than compute, and each value is an eighth of a MiB. */
#define SLOW_LINK                                                                                            \
  "--set backend.use=sim --set backend.sim.link=1e8 --set data.batch=512 --set data.samples=1024"

/* ---- helpers ---- */

/* Bytes in all where the arena has so much of what it would have without a limit. */
static long long limit_of(const char *more, double share) {
  const json_t *plan = program_json(0, "plan net.ini %s", more);
  double arena = program_number(plan, "arena_bytes");
  assert_true(program_number(plan, "offloaded_bytes") == 0);
  return (long long)(program_number(plan, "peak_bytes") - arena + share * arena);
}

static void write_limit(long long bytes) {
  char ini[128];
  snprintf(ini, sizeof ini, "include = net.ini\n[run]\nmemory_limit = %lld\n", bytes);
  file_write("tight.ini", ini);
}

static void write_limited(const char *more, double share) {
  file_write("net.ini", deep_ini);
  write_limit(limit_of(more, share));
}

static void trains_as_planned(const char *more) {
  const json_t *run = program_json(0, "train tight.ini --output tight %s", more);
  assert_true(program_number(run, "planned_peak_bytes") == program_number(run, "measured_peak_bytes"));
  checkpoint_folders_equal("free/net/checkpoints/last", "tight/net/checkpoints/last");
}

/* ---- tests ---- */

/* Captured and launched one by one; the device finds memory that nothing orders. */
static void offloaded_values_have_the_same_bits(void **state) {
  (void)state;
  static const char *const ways[] = {ON_SIM, ON_SIM " --set backend.capture=no",
                                     ON_SIM " --set backend.sim.order=lazy",
                                     ON_SIM " --set backend.sim.order=eager --set run.profile=2"};
  write_limited(ON_SIM, 0.6);
  const json_t *plan = program_json(0, "plan tight.ini " ON_SIM);
  assert_true(program_number(plan, "offloaded_bytes") > 0);
  assert_true(json_array_size(program_member(plan, "offload.values")) > 1);
  program_json(0, "train net.ini --output free " ON_SIM);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) trains_as_planned(ways[i]);
}

static void any_order_of_the_streams_gives_the_same_bits(void **state) {
  (void)state;
  char more[256];
  write_limited(ON_SIM, 0.6);
  program_json(0, "train net.ini --output free " ON_SIM);
  for (int seed = 1; seed <= whole_or(50, 4); seed++) {
    snprintf(more, sizeof more, ON_SIM " --set backend.sim.seed=%d --set backend.capture=%s", seed,
             seed % 2 ? "yes" : "no");
    trains_as_planned(more);
  }
}

/* A file without a name takes the place of the host's memory, and leaves nothing behind. */
static void values_wait_in_a_file_as_well(void **state) {
  static const char *const ways[] = {"", " --set backend.sim.order=lazy", " --set optimizer.place=host"};
  char more[256];
  (void)state;
  write_limited(ON_SIM, 0.6);
  program_json(0, "train net.ini --output free " ON_SIM);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    assert_int_equal(mkdir("disk", 0700), 0);
    snprintf(more, sizeof more, ON_SIM " --set run.offload_folder=disk%s", ways[i]);
    trains_as_planned(more);
    assert_int_equal(rmdir("disk"), 0);
  }
}

static void the_text_of_the_plan_names_the_values(void **state) {
  (void)state;
  write_limited(ON_SIM, 0.6);
  assert_int_equal(program_run("plan tight.ini " ON_SIM), 0);
  assert_non_null(strstr(program_out, "offloaded for memory_limit"));
  assert_non_null(strstr(program_out, " of b.0."));
  assert_non_null(strstr(program_out, "% hidden"));
  assert_non_null(strstr(program_out, "in place of"));
}

/* Rematerialization alone does not reach this limit; without a known rate nothing is offloaded. */
static void offload_no_keeps_values_on_the_device(void **state) {
  (void)state;
  write_limited(ON_SIM, 0.6);
  assert_int_equal(program_run("plan tight.ini " ON_SIM " --set run.offload=no"), 65);
  assert_non_null(strstr(program_err, "is too little for a batch of 32"));
  assert_int_equal(program_run("plan tight.ini --set backend.use=sim"), 65);
  assert_non_null(strstr(program_err, "is too little for a batch of 32"));
}

/* Every allocation of the run fails once: the message says for what it was, and nothing else goes wrong. */
static void memory_of_the_host_that_is_not_there_ends_the_run(void **state) {
  (void)state;
  bool named = false;
  int n = 0, code;
  write_limited(ON_SIM, 0.6);
  do {
    code = program_run("train tight.ini --output out " ON_SIM " --set backend.sim.fail=allocation:%d", ++n);
    if (code != 0) assert_non_null(strstr(program_err, "bytes of"));
    named = named || strstr(program_err, "of host memory for offloaded values ([run] offload") != NULL;
  } while (code != 0 && n < 64);
  assert_true(n < 64 && named);
}

/* Compute waits for copies to the host and for late ones back. */
static void the_least_bytes_are_enough_and_give_the_same_bits(void **state) {
  (void)state;
  char more[256];
  write_limited(SLOW_LINK, 0.05);
  assert_int_equal(program_run("plan tight.ini " SLOW_LINK), 65);
  const char *at = strstr(program_err, "at least ");
  assert_non_null(at);
  write_limit((long long)(strtod(at + 9, NULL) * 1048576) + 1);
  const json_t *plan = program_json(0, "plan tight.ini " SLOW_LINK);
  print_message("%.0f bytes, %.0f of them offloaded, copies of %.3f ms, %.3f ms exposed\n",
                program_number(plan, "peak_bytes"), program_number(plan, "offloaded_bytes"),
                program_number(plan, "offload.copy_ms"), program_number(plan, "offload.exposed_ms"));
  assert_true(program_number(plan, "offloaded_bytes") > 0);
  assert_true(program_number(plan, "offload.exposed_ms") > 0);
  program_json(0, "train net.ini --output free " SLOW_LINK);
  for (int seed = 1; seed <= whole_or(20, 3); seed++) {
    snprintf(more, sizeof more, SLOW_LINK " --set backend.sim.seed=%d --set backend.capture=%s", seed,
             seed % 2 ? "yes" : "no");
    trains_as_planned(more);
  }
}

/* At a quarter compute has to wait for copies in both directions; values that are made again for the peak are
 * offloaded in its place. */
static void resnet50_fits_into_a_quarter_of_its_memory(void **state) {
  static const char plan_of[] =
      "plan " EXAMPLES "/imagenet_resnet50.ini --device device.json --set data.batch=64 %s";
  (void)state;
  char limit[64];
  json_t *device = json_load_file(EXAMPLES "/../../tests/devices/made_up_desktop.json", 0, NULL);
  assert_int_equal(json_object_set_new(device, "link_bytes_per_s", json_real(2.5e10)), 0);
  assert_int_equal(json_dump_file(device, "device.json", 0), 0);
  json_decref(device);
  double peak = program_number(program_json(0, plan_of, ""), "peak_bytes");
  snprintf(limit, sizeof limit, "--set run.memory_limit=%.0f", 0.25 * peak);
  const json_t *plan = program_json(0, plan_of, limit);
  print_message("%.0f MiB in place of %.0f, %.1f ms in place of %.1f\n",
                program_number(plan, "peak_bytes") / 1048576, peak / 1048576,
                program_number(plan, "offload.step_ms"), program_number(plan, "offload.unlimited_ms"));
  assert_true(program_number(plan, "peak_bytes") <= 0.25 * peak);
}

/* A rehearsal runs the streams and events of the executor in predicted times. */
static void copies_hide_behind_compute(void **state) {
  (void)state;
  static const char device[] =
      "{\"family\": \"made_up\", \"name\": \"made-up device\", \"accepts\": \"cpu\",\n"
      "\"memory_bytes\": 85899345920, \"bytes_per_s\": 1e11, \"launch_s\": 2e-6,\n"
      "\"vector_flops_per_s\": 1e12, \"link_bytes_per_s\": 2e10}";
  file_write("device.json", device);
  write_limited("--device device.json --set data.batch=4096", 0.6);
  const json_t *plan = program_json(0, "plan tight.ini --device device.json --set data.batch=4096");
  double copies = program_number(plan, "offload.copy_ms"), step = program_number(plan, "offload.step_ms"),
         exposed = program_number(plan, "offload.exposed_ms");
  assert_true(program_number(plan, "offloaded_bytes") > 0);
  print_message("%.4f ms of copies, %.4f ms exposed in a step of %.4f ms\n", copies, exposed, step);
  assert_true(exposed <= 0.1 * copies);
  const json_t *bench =
      program_json(0, "bench tight.ini --device device.json --set data.batch=4096 --rounds 1 --steps 2");
  double measured = json_number_value(json_array_get(program_member(bench, "ms"), 0));
  print_message("the rehearsal takes %.4f ms\n", measured);
  assert_true(fabs(measured - step) <= 0.02 * step);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(offloaded_values_have_the_same_bits, program_open, program_close),
      cmocka_unit_test_setup_teardown(any_order_of_the_streams_gives_the_same_bits, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(values_wait_in_a_file_as_well, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_text_of_the_plan_names_the_values, program_open, program_close),
      cmocka_unit_test_setup_teardown(offload_no_keeps_values_on_the_device, program_open, program_close),
      cmocka_unit_test_setup_teardown(memory_of_the_host_that_is_not_there_ends_the_run, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(the_least_bytes_are_enough_and_give_the_same_bits, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(resnet50_fits_into_a_quarter_of_its_memory, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(copies_hide_behind_compute, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

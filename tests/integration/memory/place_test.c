/* [optimizer] place = host: parameters and optimizer state in memory of the host, which updates them beside
 * the backward pass. The bits are those of the device, whose backend computes as the host's does; memory is
 * as planned, and checkpoints do not know the place. */
#include "program.h"
#include "tests/support/whole.h"

#include <stdbool.h>
#include <stdlib.h>

/* ---- configurations ---- */

static const char deep_ini[] = "[run]\nname = net\nmax_steps = 3\n"
                               "[data]\nsource = random\nshape = 64\nclasses = 4\nsamples = 128\nbatch = 32\n"
                               "workers = 1\n"
                               "[model]\ninputs = image: f32[64]\nlayers =\n"
                               "    b:  deep(64) * 4\n"
                               "    fc: linear(4)\n"
                               "loss = cross_entropy\n"
                               "[block deep]\nargs = width\nlayers =\n"
                               "    one: linear(width)\n"
                               "         gelu\n"
                               "    two: linear(width)\n"
                               "         add <- two, in\n"
                               "[optimizer]\ntype = adamw\nlr = 0.01\n"
                               "[group.no_decay]\nmatch = *.bias\nweight_decay = 0\n";

#define ON_SIM  "--set backend.use=sim --set backend.sim.link=1e9"
#define ON_HOST "--set optimizer.place=host --set distributed.bucket=32KiB"

/* ---- helpers ---- */

static void train_into(const char *folder, const char *more) {
  const json_t *run = program_json(0, "train net.ini --output %s " ON_SIM " %s", folder, more);
  assert_true(program_number(run, "planned_peak_bytes") == program_number(run, "measured_peak_bytes"));
}

static void has_the_same_bits(const char *more, const char *host) {
  char both[512];
  train_into("device", more);
  snprintf(both, sizeof both, "%s %s", more, host);
  train_into("host", both);
  checkpoint_folders_equal("device/net/checkpoints/last", "host/net/checkpoints/last");
}

/* ---- tests ---- */

/* Captured and launched one by one; the device finds memory that nothing orders. */
static void the_host_updates_to_the_same_bits(void **state) {
  static const char *const ways[] = {"", "--set backend.capture=no", "--set backend.sim.order=lazy",
                                     "--set backend.sim.order=eager --set run.profile=2",
                                     "--set distributed.bucket=auto"};
  char more[256];
  (void)state;
  file_write("net.ini", deep_ini);
  train_into("device", "");
  for (int i = 0; i < whole_or(sizeof ways / sizeof *ways, 2); i++) {
    snprintf(more, sizeof more, ON_HOST " %s", ways[i]);
    train_into("host", more);
    checkpoint_folders_equal("device/net/checkpoints/last", "host/net/checkpoints/last");
  }
}

static void any_order_of_the_streams_updates_alike(void **state) {
  char more[256];
  (void)state;
  file_write("net.ini", deep_ini);
  train_into("device", "");
  for (int seed = 1; seed <= whole_or(50, 2); seed++) {
    snprintf(more, sizeof more, ON_HOST " --set backend.sim.seed=%d --set backend.capture=%s", seed,
             seed % 2 ? "yes" : "no");
    train_into("host", more);
    checkpoint_folders_equal("device/net/checkpoints/last", "host/net/checkpoints/last");
  }
}

/* Features around the optimizer: averages, conditions, sums of micro-batches, states in 8 bits, copies. */
static void all_that_an_update_does_has_the_same_bits(void **state) {
  static const char *const features[] = {
      "--set optimizer.ema=0.9 --set precision.policy=fp16",
      "--set optimizer.state_dtype=int8 --set optimizer.clip_value=0.01",
      "--set optimizer.type=sgd --set optimizer.lookahead=2 --set optimizer.accumulate=2",
      "--set precision.policy=bf16 --set optimizer.cautious=yes",
      "--set optimizer.swa_from=1 --set run.epochs=2 --set optimizer.no_decay=yes",
  };
  (void)state;
  file_write("net.ini", deep_ini);
  for (int i = 0; i < whole_or(sizeof features / sizeof *features, 3); i++)
    has_the_same_bits(features[i], ON_HOST);
}

/* With place = auto, squares are summed in the same buckets on both sides. */
static void the_norm_of_all_gradients_has_the_same_bits(void **state) {
  static const char *const features[] = {"", "--set distributed.bucket=8KiB",
                                         "--set precision.policy=fp16 --set optimizer.accumulate=2",
                                         "--set optimizer.state_dtype=int8 --set distributed.bucket=20KiB"};
  char more[256];
  (void)state;
  file_write("net.ini", deep_ini);
  for (int i = 0; i < whole_or(sizeof features / sizeof *features, 3); i++) {
    snprintf(more, sizeof more, "--set optimizer.clip=0.01 --set optimizer.place=auto %s", features[i]);
    has_the_same_bits(more, "--set optimizer.place=host");
  }
}

/* With place = device, squares are one sum, in another order than those of several buckets: the last bit of
 * the factor may differ. */
static void the_norm_of_all_gradients_is_limited(void **state) {
  (void)state;
  file_write("net.ini", deep_ini);
  const json_t *device = program_json(0, "train net.ini --output d " ON_SIM " --set optimizer.clip=0.01"),
               *host = program_json(0, "train net.ini --output h " ON_SIM " " ON_HOST
                                       " --set optimizer.clip=0.01");
  double difference = program_number(device, "train.loss") - program_number(host, "train.loss");
  assert_true(difference < 1e-6 && difference > -1e-6);
}

static void checkpoints_go_from_place_to_place(void **state) {
  static const char *const ways[] = {ON_HOST, "", ON_HOST " --set distributed.bucket=8KiB"};
  char more[256];
  (void)state;
  file_write("net.ini", deep_ini);
  train_into("device", "--set run.max_steps=6 --set run.epochs=2");
  for (int i = 0; i < 3; i++) {
    snprintf(more, sizeof more, "%s --set run.max_steps=%d --set run.epochs=2 %s", ways[i], 2 * (i + 1),
             i > 0 ? "--resume host/net" : "");
    train_into("host", more);
  }
  checkpoint_folders_equal("device/net/checkpoints/last", "host/net/checkpoints/last");
}

static void the_plan_has_the_memory_of_both_sides(void **state) {
  (void)state;
  file_write("net.ini", deep_ini);
  const json_t *device = program_json(0, "plan net.ini " ON_SIM),
               *host = program_json(0, "plan net.ini " ON_SIM " " ON_HOST);
  double states = program_number(device, "state_bytes"), parameters = program_number(device, "parameters");
  assert_true(program_number(device, "placed_bytes") == 0);
  assert_true(program_number(host, "placed_bytes") >= 3 * 4 * parameters);
  assert_true(program_number(host, "offloaded_bytes") >= program_number(host, "placed_bytes"));
  assert_true(program_number(host, "state_bytes") < 0.4 * states);
  assert_true(program_number(host, "peak_bytes") < program_number(device, "peak_bytes") - 0.6 * states);
  assert_true(program_number(host, "offload.host_ms") > 0);
  assert_true(program_number(host, "cuts") == 0);
  assert_int_equal(program_run("plan net.ini " ON_SIM " " ON_HOST), 0);
  assert_non_null(strstr(program_out, "the optimizer is on the host with"));
  assert_non_null(strstr(program_out, "of it by [optimizer] place"));
}

/* `auto` decides by the plan: the state goes to the host where it does not fit otherwise. */
static void auto_goes_to_the_host_where_it_must(void **state) {
  char more[256];
  (void)state;
  file_write("net.ini", deep_ini);
  const json_t *device = program_json(0, "plan net.ini " ON_SIM " --set optimizer.place=auto");
  assert_true(program_number(device, "placed_bytes") == 0);
  double limit = program_number(device, "peak_bytes") - 0.6 * program_number(device, "state_bytes");
  snprintf(more, sizeof more, "--set run.memory_limit=%.0f --set optimizer.place=", limit);
  assert_int_equal(program_run("plan net.ini " ON_SIM " %sdevice", more), 65);
  assert_non_null(strstr(program_err, "[optimizer] place = auto"));
  assert_true(program_number(program_json(0, "plan net.ini " ON_SIM " %sauto", more), "placed_bytes") > 0);
  strcat(more, "auto");
  has_the_same_bits("", more);
}

/* Every allocation of the run fails once, or every third: the message says for what it was, and nothing else
 * goes wrong. */
static void a_place_that_has_no_memory_ends_the_run(void **state) {
  bool named = false;
  int n = -2, code;
  (void)state;
  file_write("net.ini", deep_ini);
  do {
    n += whole_or(1, 3);
    code = program_run("train net.ini --output out " ON_SIM " " ON_HOST
                       " --set distributed.bucket=256KiB --set backend.sim.fail=allocation:%d",
                       n > 0 ? n : 1);
    if (code != 0) assert_non_null(strstr(program_err, "bytes of"));
    named = named || strstr(program_err, "([optimizer] place)") != NULL;
  } while (code != 0 && n < 64);
  assert_true(n < 64 && named);
}

/* On a device in memory of the host nothing changes. */
static void a_device_of_the_host_has_one_place(void **state) {
  (void)state;
  file_write("net.ini", deep_ini);
  const json_t *plain = program_json(0, "plan net.ini --set backend.use=cpu"),
               *host = program_json(0, "plan net.ini --set backend.use=cpu --set optimizer.place=host");
  assert_true(program_number(host, "placed_bytes") == 0);
  assert_true(program_number(host, "peak_bytes") == program_number(plain, "peak_bytes"));
}

/* A described device has plans; its rehearsal computes nothing on the host. */
static void a_rehearsed_device_has_no_host(void **state) {
  static const char device[] =
      "{\"family\": \"made_up\", \"name\": \"made-up device\", \"accepts\": \"cpu\",\n"
      "\"memory_bytes\": 85899345920, \"bytes_per_s\": 1e11, \"launch_s\": 2e-6,\n"
      "\"vector_flops_per_s\": 1e12, \"link_bytes_per_s\": 2e10}";
  (void)state;
  file_write("net.ini", deep_ini);
  file_write("device.json", device);
  const json_t *plan = program_json(0, "plan net.ini --device device.json " ON_HOST);
  assert_true(program_number(plan, "placed_bytes") > 0);
  assert_int_equal(program_run("bench net.ini --device device.json --rounds 1 --steps 2 " ON_HOST), 65);
  assert_non_null(strstr(program_err, "(a rehearsed device has none)"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_host_updates_to_the_same_bits),
      TEST(any_order_of_the_streams_updates_alike),
      TEST(all_that_an_update_does_has_the_same_bits),
      TEST(the_norm_of_all_gradients_has_the_same_bits),
      TEST(the_norm_of_all_gradients_is_limited),
      TEST(checkpoints_go_from_place_to_place),
      TEST(the_plan_has_the_memory_of_both_sides),
      TEST(auto_goes_to_the_host_where_it_must),
      TEST(a_place_that_has_no_memory_ends_the_run),
      TEST(a_device_of_the_host_has_one_place),
      TEST(a_rehearsed_device_has_no_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

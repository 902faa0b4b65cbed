/* `tenon plan` for devices that are not open, and for devices that are not there. */
#include "program.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "configs.h"

static const char lenet[] =
    "[run]\nname = lenet\n[data]\nsource = digits\nbatch = 32\ntransforms = to_float\n" LENET;

/* The rates of the H200 of tests/devices, for a family that has no kernels of its own, with one member
 * replaced or added. */
static void write_device(const char *key, json_t *value) {
  json_t *json = json_load_file(DEVICES "/made_up_h200.json", 0, NULL);
  assert_non_null(json);
  json_object_set_new(json, "family", json_string("made_up"));
  json_object_set_new(json, key, value);
  assert_int_equal(json_dump_file(json, "device.json", 0), 0);
  json_decref(json);
}

static const json_t *product_of(const json_t *plan) {
  const json_t *op;
  size_t i;
  json_array_foreach(program_member(plan, "ops"), i,
                     op) if (strcmp(program_text(op, "op"), "conv2d") == 0) return op;
  fail_msg("no conv2d");
  return NULL;
}

static void costs_follow_from_the_rates_of_the_file(void **state) {
  (void)state;
  file_write("lenet.ini", lenet);
  const char *command = "plan lenet.ini --set precision.policy=fp16 --device %s";
  write_device("count", json_integer(8));
  const json_t *plan = program_json(0, command, "device.json");
  assert_string_equal(program_text(plan, "backend"), "made_up");
  assert_string_equal(program_text(plan, "device"), "made-up H200");
  const json_t *op = product_of(plan);
  assert_string_equal(program_text(op, "dtype"), "f16");
  double arithmetic_s = program_number(op, "flops") / 9.9e14, memory_s = program_number(op, "bytes") / 4.8e12;
  double expected_ms = 1e3 * (2e-6 + fmax(arithmetic_s, memory_s));
  assert_true(fabs(program_number(op, "cost_ms") - expected_ms) < 1e-6 * expected_ms);
  write_device("launch_s", json_real(5e-6));
  const json_t *slower = program_json(0, command, "device.json");
  double launches = program_number(plan, "launches");
  double more_ms = program_number(slower, "cost_ms") - program_number(plan, "cost_ms");
  assert_true(fabs(more_ms - launches * 3e-3) < 1e-6);
}

static void a_family_without_kernels_is_refused(void **state) {
  (void)state;
  file_write("lenet.ini", lenet);
  write_device("accepts", json_string("metal"));
  assert_int_equal(program_run("plan lenet.ini --device device.json"), 65);
  assert_non_null(strstr(program_err, "device.json:1: no kernel of family 'made_up' is installed"));
  assert_non_null(strstr(program_err, "set \"accepts\""));
  write_device("extension", json_string("sim"));
  assert_int_equal(program_run("plan lenet.ini --device device.json"), 65);
  assert_non_null(strstr(program_err, "device.json:1: backend 'sim' does not extend 'made_up'"));
  write_device("extension", json_string("nothing"));
  assert_int_equal(program_run("plan lenet.ini --device device.json"), 65);
  assert_non_null(strstr(program_err, "device.json:1: backend 'nothing' is not installed"));
  assert_int_equal(program_run("plan lenet.ini --device nothing.json"), 74);
}

static void the_file_says_how_many_devices_there_are(void **state) {
  (void)state;
  file_write("lenet.ini", lenet);
  write_device("count", json_integer(8));
  const json_t *plan = program_json(0, "plan lenet.ini --set distributed.devices=8 --device device.json");
  assert_true(program_number(plan, "devices") == 8);
  assert_int_equal(program_run("plan lenet.ini --set distributed.devices=16 --device device.json"), 69);
  assert_non_null(strstr(program_err, "backend 'made_up' has 8"));
}

/* The doctor's description of the processors gives the plan that they give themselves. */
static void the_doctor_describes_a_device_for_plan(void **state) {
  (void)state;
  file_write("lenet.ini", lenet);
  program_stdout("here.json");
  assert_int_equal(program_run("doctor cpu --device-json"), 0);
  program_stdout(NULL);
  const json_t *here = file_json("here.json");
  assert_string_equal(program_text(here, "family"), "cpu");
  assert_true(program_number(here, "bytes_per_s") > 0 && program_number(here, "memory_bytes") > 0);
  const json_t *host = program_json(0, "doctor");
  assert_true(program_number(here, "threads") == program_number(host, "processors"));
  assert_true(fabs(program_number(here, "memory_bytes") / 1048576 - program_number(host, "memory_mib")) < 1);
  const json_t *planned = program_json(0, "plan lenet.ini --set backend.use=cpu");
  const json_t *described = program_json(0, "plan lenet.ini --device here.json");
  assert_string_equal(program_text(planned, "hash"), program_text(described, "hash"));
  double cost_ms = program_number(planned, "cost_ms");
  assert_true(fabs(program_number(described, "cost_ms") - cost_ms) < 1e-6 * cost_ms);
  /* The host cannot use the memory of a rehearsal, though the description says host_addressable. */
  const json_t *rehearsed = program_json(0, "bench lenet.ini --device here.json --steps 1 --rounds 1");
  assert_non_null(program_text(rehearsed, "rehearsed"));
  assert_int_equal(program_run("doctor onednn --device-json"), 69);
  assert_non_null(strstr(program_err, "backend 'onednn' has no device here"));
}

/* The batch that a message names fits, and one more does not. */
static void check_named_batch(const char *command) {
  const char *at = strstr(program_err, "the largest batch that fits is ");
  assert_non_null(at);
  int batch = atoi(at + strlen("the largest batch that fits is "));
  assert_true(batch > 1 && batch < 32);
  assert_int_equal(program_run("%s --set data.batch=%d", command, batch), 0);
  assert_int_not_equal(program_run("%s --set data.batch=%d", command, batch + 1), 0);
}

static void a_plan_that_does_not_fit_its_device_names_the_largest_batch(void **state) {
  static const char command[] = "plan lenet.ini --device device.json";
  (void)state;
  file_write("lenet.ini", lenet);
  write_device("memory_bytes", json_integer(2 << 20));
  assert_int_equal(program_run("%s", command), 69);
  assert_non_null(strstr(program_err, "lenet.ini:5: [data] batch: the plan for a batch of 32 needs "));
  assert_non_null(strstr(program_err, "device 'made-up H200' has 2.0 MiB; the largest batch"));
  check_named_batch(command);
  write_device("free_bytes", json_integer(2 << 20));
  assert_int_equal(program_run("%s", command), 69);
  assert_non_null(strstr(program_err, "has 2.0 MiB that are not in use; the largest batch"));
  write_device("memory_bytes", json_integer(1 << 10));
  assert_int_equal(program_run("%s", command), 69);
  assert_null(strstr(program_err, "the largest batch"));
}

/* Training and benchmarks say so before the first step. */
static void a_run_that_does_not_fit_its_device_is_not_started(void **state) {
  static const char *const commands[] = {"train lenet.ini", "bench lenet.ini --steps 1 --rounds 1"};
  (void)state;
  file_write("lenet.ini", lenet);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(program_run("%s --set backend.use=sim --set backend.sim.memory=2MiB", commands[i]), 69);
    assert_non_null(strstr(program_err, "the plan for a batch of 32 needs "));
    assert_non_null(strstr(program_err, "the largest batch that fits is "));
  }
}

/* The parts of a device's memory add up, in train and bench; a device that does not say has no such line. */
static void results_show_the_memory_of_the_device(void **state) {
  static const char *const commands[] = {"train lenet.ini --json --set run.max_steps=2",
                                         "bench lenet.ini --json --steps 1 --rounds 1"};
  (void)state;
  file_write("lenet.ini", lenet);
  for (int i = 0; i < 2; i++) {
    const json_t *result =
        program_json(0, "%s --set backend.use=sim --set backend.sim.memory=64MiB", commands[i]);
    const json_t *memory = program_member(result, "memory");
    double allocated = program_number(memory, "allocated_mib"), unused = program_number(memory, "free_mib");
    assert_true(program_number(memory, "device_mib") == 64);
    assert_true(allocated > 1 && allocated <= program_number(result, "measured_peak_mib"));
    assert_true(fabs(program_number(memory, "libraries_mib")) < 1e-6);
    assert_true(fabs(64 - allocated - unused - program_number(memory, "others_mib")) < 1e-6);
    assert_null(json_object_get(program_json(0, "%s --set backend.use=cpu", commands[i]), "memory"));
  }
  assert_int_equal(
      program_run(
          "bench lenet.ini --steps 1 --rounds 1 --set backend.use=sim --set backend.sim.memory=64MiB"),
      0);
  assert_non_null(strstr(program_out, "device     64.0 MiB: "));
}

/* memory_limit counts the memory after rematerialization. */
static void a_limit_that_is_too_small_names_the_largest_batch(void **state) {
  static const char command[] = "plan lenet.ini --set run.memory_limit=2MiB --set data.prefetch=2";
  (void)state;
  file_write("lenet.ini", lenet);
  assert_int_equal(program_run("%s", command), 65);
  check_named_batch(command);
}

/* The rate of memory is measured once, kept where only the user can write, and used. */
static void a_measured_rate_is_kept_in_the_cache_folder(void **state) {
  static const char command[] = "plan lenet.ini --set backend.use=cpu --set backend.tune_folder=cache "
                                "--set backend.cpu.bandwidth=measured";
  struct stat folder;
  char heading[300], path[400] = "";
  (void)state;
  file_write("lenet.ini", lenet);
  assert_int_equal(program_run("plan lenet.ini --set backend.use=cpu --set backend.tune_folder=cache"), 0);
  assert_false(file_exists("cache"));
  for (int i = 0; i < 20 && path[0] == '\0'; i++) { /* on a busy machine nothing is kept */
    assert_int_equal(program_run("%s", command), 0);
    DIR *files = opendir("cache/cpu");
    for (struct dirent *e; files != NULL && (e = readdir(files)) != NULL;)
      if (e->d_name[0] != '.') snprintf(path, sizeof path, "cache/cpu/%s", e->d_name);
    if (files != NULL) closedir(files);
  }
  assert_string_not_equal(path, "");
  assert_int_equal(stat("cache/cpu", &folder), 0);
  assert_int_equal(folder.st_mode & 0777, 0700);
  char *text = file_read(path, NULL), *line = strchr(text, '\n');
  assert_non_null(line);
  assert_true(atof(line + 1) > 1e8);
  double cost_ms = program_number(program_json(0, "%s", command), "cost_ms");
  snprintf(heading, sizeof heading, "%.*s\n1e7\n", (int)(line - text), text);
  file_write(path, heading);
  assert_true(program_number(program_json(0, "%s", command), "cost_ms") > 2 * cost_ms);
  /* a folder that others can write to is not used */
  assert_int_equal(remove(path), 0);
  assert_int_equal(chmod("cache/cpu", 0777), 0);
  assert_int_equal(program_run("%s", command), 0);
  assert_false(file_exists(path));
}

/* A device of sim that was opened writes a line when it is closed. */
static void a_plan_opens_no_device(void **state) {
  (void)state;
  file_write("lenet.ini", lenet);
  assert_int_equal(program_run("plan lenet.ini --verbose --set backend.use=sim"), 0);
  assert_null(strstr(program_err, "sim: device 0"));
  assert_int_equal(program_run("train lenet.ini --verbose --set backend.use=sim --set run.max_steps=1"), 0);
  assert_non_null(strstr(program_err, "sim: device 0"));
}

/* The counts in the line of --verbose about the queries of a plan. */
static void read_queries(long long *asked, long long *remembered) {
  const char *line = strstr(program_err, " queries of kernels, ");
  assert_non_null(line);
  while (line > program_err && line[-1] >= '0' && line[-1] <= '9') line--;
  assert_int_equal(sscanf(line, "%lld queries of kernels, %lld answers remembered", asked, remembered), 2);
}

/* Answers are remembered while the description of the device is in use, and no longer: they are not written
 * to a file that the next plan, perhaps with other kernels installed, would read. */
static void answers_for_a_device_that_is_absent_are_remembered_within_one_plan(void **state) {
  static const char command[] =
      "plan lenet.ini --verbose --set backend.tune_folder=cache --device device.json";
  long long asked, remembered, again, again_remembered;
  (void)state;
  file_write("lenet.ini", lenet);
  write_device("arch", json_integer(90));
  assert_int_equal(program_run("%s", command), 0);
  read_queries(&asked, &remembered);
  assert_true(asked > 0 && remembered > asked);
  assert_false(file_exists("cache"));
  assert_int_equal(program_run("%s", command), 0);
  read_queries(&again, &again_remembered);
  assert_true(again == asked && again_remembered == remembered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(costs_follow_from_the_rates_of_the_file),
      TEST(a_family_without_kernels_is_refused),
      TEST(the_file_says_how_many_devices_there_are),
      TEST(the_doctor_describes_a_device_for_plan),
      TEST(a_measured_rate_is_kept_in_the_cache_folder),
      TEST(a_plan_opens_no_device),
      TEST(answers_for_a_device_that_is_absent_are_remembered_within_one_plan),
      TEST(a_plan_that_does_not_fit_its_device_names_the_largest_batch),
      TEST(a_run_that_does_not_fit_its_device_is_not_started),
      TEST(a_limit_that_is_too_small_names_the_largest_batch),
      TEST(results_show_the_memory_of_the_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

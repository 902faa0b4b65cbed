/* Training on several devices of the double of CUDA, by the communicator nccl and the double of NCCL: the
 * weights of one device, captured and not, and the failures that users see. */
#include "tests/integration/distributed/nets.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ON_DOUBLES                                                                                           \
  "--set backend.use=cuda --set backend.fallback=error --set backend.cuda.libraries=" DOUBLES                \
  " --set communicator.nccl.libraries=" DOUBLES " "

static int doubles_open(void **state) {
  static const char *const faults[] = {"FAKENCCL_FAIL",     "FAKENCCL_STALL", "FAKENCCL_DELAY",
                                       "FAKENCCL_PROGRESS", "FAKENCCL_LATE",  "FAKENCCL_VERSION"};
  setenv("FAKECUDA_LOG", "doubles.log", 1);
  setenv("FAKENCCL_LOG", "doubles.log", 1);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) unsetenv(faults[i]);
  return program_open(state);
}

/* No violation of the contracts of CUDA or NCCL, and no leak. */
static void doubles_are_content(void) {
  if (access("doubles.log", F_OK) != 0) return;
  const char *log = file_read("doubles.log", NULL);
  if (*log != '\0') fail_msg("the doubles say: %s", log);
}

static const json_t *train(const char *folder, int devices, const char *more) {
  const json_t *result =
      program_json(0,
                   "train model.ini --output %s " ON_DOUBLES
                   "--set run.deterministic=yes --set distributed.devices=%d --set distributed.timeout=1h %s",
                   folder, devices, more);
  doubles_are_content();
  assert_true(program_number(result, "devices") == devices);
  return result;
}

/* Sums over ranks have another order. The bound is relative. */
static void is_near(const json_t *a, const json_t *b, double bound) {
  static const char *const names[] = {"train.loss", "valid.loss"};
  for (int i = 0; i < 2; i++) {
    double x = program_number(a, names[i]), y = program_number(b, names[i]);
    if (!(fabs(x - y) <= bound * fabs(y))) fail_msg("%s: %.9g, one device has %.9g", names[i], x, y);
  }
}

static void is_equal(const json_t *a, const json_t *b) {
  assert_true(program_number(a, "train.loss") == program_number(b, "train.loss"));
  assert_true(program_number(a, "valid.loss") == program_number(b, "valid.loss"));
}

static void lenet_trains_to_the_weights_of_one_device(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *one = train("one", 1, "");
  const json_t *two = train("two", 2, "");
  nets_compare("LeNet on 2", "two", "one", NETS_BAND);
  is_near(two, one, 1e-6);
  const json_t *four = train("four", 4, "");
  nets_compare("LeNet on 4", "four", "one", NETS_BAND);
  is_near(four, one, 1e-6);
  const json_t *plain = train("plain", 4, "--set backend.capture=no");
  nets_compare("LeNet on 4, not captured", "plain", "four", 0);
  is_equal(plain, four);
}

/* Eight of the twenty steps. */
#define SHORT "--set run.max_steps=8 "

/* Late ranks and calls that stay in progress change nothing, nor does a device that notes nothing. */
static void delays_change_no_bit(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *four = train("four", 4, SHORT);
  setenv("FAKENCCL_DELAY", "2000:5", 1);
  setenv("FAKENCCL_PROGRESS", "3", 1);
  is_equal(train("late", 4, SHORT "--set backend.capture=no"), four);
  is_equal(train("captured", 4, SHORT "--set communicator.nccl.follow=no"), four);
}

/* Arena and regions with collectives come from ncclMemAlloc; their bytes are as planned. */
static void memory_of_nccl_changes_no_bit(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *own = train("own", 2, SHORT);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  const json_t *registered = train("registered", 2, SHORT "--set communicator.nccl.memory=registered");
  is_equal(registered, own);
  assert_non_null(strstr(file_read("counts", NULL), "ncclMemAlloc "));
  assert_non_null(strstr(file_read("counts", NULL), "ncclCommDeregister "));
  unsetenv("FAKECUDA_COUNTS");
  assert_true(program_number(registered, "measured_peak_bytes") ==
              program_number(own, "measured_peak_bytes"));
  setenv("FAKENCCL_VERSION", "22907", 1);
  is_equal(train("symmetric", 2, SHORT "--set communicator.nccl.memory=symmetric"), own);
}

static void sums_in_half_precision_are_near(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *one = train("one", 1, SHORT);
  is_near(train("bf16", 4, SHORT "--set distributed.reduce_dtype=bf16"), one, 2e-2);
  is_near(train("f16", 4, SHORT "--set distributed.reduce_dtype=f16"), one, 1e-2);
}

/* All collectives are part of the step's graph. */
static void a_step_is_one_capture(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *plan = program_json(0, "plan model.ini " ON_DOUBLES "--set distributed.devices=4");
  assert_int_equal(json_array_size(program_member(plan, "uncaptured")), 0);
  assert_true(program_number(plan, "captured_parts") == 1);
  assert_true(program_number(plan, "collectives") > 0);
}

static void fails(const char *more, int code, const char *const *texts) {
  int got = program_run("train model.ini --output bad " ON_DOUBLES "--set distributed.devices=4 %s", more);
  for (; *texts != NULL; texts++)
    if (strstr(program_err, *texts) == NULL) fail_msg("'%s' is not in: %s", *texts, program_err);
  assert_int_equal(got, code);
}

/* The work of rank 2 hangs in a collective, which all ranks have begun. */
static void a_collective_that_hangs_ends_the_run(void **state) {
  (void)state;
  static const char *const captures[] = {"yes", "no"};
  file_write("model.ini", nets_lenet);
  setenv("FAKENCCL_STALL", "2:9", 1);
  for (int i = 0; i < 2; i++) {
    char more[160];
    snprintf(more, sizeof more, "--set distributed.timeout=" NETS_SHORT " --set backend.capture=%s",
             captures[i]);
    fails(more, 77,
          (const char *const[]){"has waited in 'all_reduce", "at most " NETS_SHORT_TEXT,
                                "all ranks have come to it", NULL});
  }
}

/* The host of rank 1 waits for a sample; the devices of the others wait in a collective, in a replay too. */
static void a_rank_without_data_is_named(void **state) {
  (void)state;
  static const char *const more[] = {"", "--set backend.capture=no"};
  nets_write_steady(STEADY, "stuck = 52"); /* of rank 1 in the seventh step */
  for (int i = 0; i < 2; i++) {
    int code = program_run("train model.ini --output bad " ON_DOUBLES
                           "--set distributed.devices=2 --set distributed.timeout=" NETS_SHORT " %s",
                           more[i]);
    if (strstr(program_err, "; the device of rank 1 has not come to collective ") == NULL ||
        strstr(program_err, ", step 7), in which rank 0 waited; it has waited for ") == NULL ||
        strstr(program_err, " s for its next batch") == NULL)
      fail_msg("%s", program_err);
    assert_int_equal(code, 77);
    assert_true(file_exists("bad/run/failure/rank1.jsonl"));
    assert_int_equal(system("rm -rf bad"), 0);
  }
}

static void what_nccl_reports_ends_the_run(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  setenv("FAKENCCL_FAIL", "ncclAllReduce:5@1=6", 1);
  fails("--set backend.capture=no", 77,
        (const char *const[]){"nccl: rank 1 on device 1: ncclAllReduce: ", "NCCL_DEBUG=INFO", NULL});
}

static void an_old_library_is_refused(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  fails("--set communicator.nccl.libraries=" OLD, 69,
        (const char *const[]){"communicator 'nccl'", "is of version 2.17.1 (21701), expected 2.18.0",
                              "[communicator.nccl] libraries", NULL});
}

/* The library, or the reason why there is none, which is then a missing part. */
static void the_doctor_tells_of_the_library(void **state) {
  (void)state;
  const json_t *result = program_json(0, "doctor"), *list = program_member(result, "communicators"),
               *nccl = NULL, *missing = program_member(result, "missing");
  bool told = false;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    if (strcmp(program_text(one, "name"), "nccl") == 0) nccl = one;
    if (strcmp(program_text(one, "name"), "sim") == 0)
      assert_int_equal(json_array_size(program_member(one, "libraries")), 0);
  }
  assert_non_null(nccl);
  for (size_t i = 0; i < json_array_size(missing); i++)
    told = told || strcmp(program_text(json_array_get(missing, i), "name"), "nccl") == 0;
  const json_t *library = json_array_get(program_member(nccl, "libraries"), 0);
  assert_true(told == (json_object_get(nccl, "reason") != NULL));
  assert_true(told == (library == NULL));
  if (library != NULL) assert_string_equal(program_text(library, "name"), "NCCL");
  assert_int_equal(program_run("doctor"), 0);
  assert_non_null(strstr(program_out,
                         told ? "communicator nccl: not usable\n" : "communicator nccl\n  library  NCCL 2."));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, doubles_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(lenet_trains_to_the_weights_of_one_device),
      TEST(delays_change_no_bit),
      TEST(memory_of_nccl_changes_no_bit),
      TEST(sums_in_half_precision_are_near),
      TEST(a_step_is_one_capture),
      TEST(a_collective_that_hangs_ends_the_run),
      TEST(a_rank_without_data_is_named),
      TEST(what_nccl_reports_ends_the_run),
      TEST(an_old_library_is_refused),
      TEST(the_doctor_tells_of_the_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* [data] batch = auto: the largest batch whose plan fits, without a trial run; [optimizer] lr_batch. */
#include "configs.h"
#include "program.h"

static long long peak_of(const char *ini, long long batch, const char *more) {
  return (long long)program_number(program_json(0, "plan %s --set data.batch=%lld %s", ini, batch, more),
                                   "peak_bytes");
}

static long long batch_in(const char *path) {
  long long batch = 0;
  const char *line = strstr(file_read(path, NULL), "\nbatch = ");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "\nbatch = %lld", &batch), 1);
  return batch;
}

/* A multiple of 8 that fits, and the next one does not. */
static void the_batch_is_the_largest(const char *ini, const char *name, const char *more) {
  char path[64];
  assert_int_equal(
      program_run("train %s --set data.batch=auto --set run.memory_limit=800KiB --set run.max_steps=1 --set "
                  "backend.autotune=no %s",
                  ini, more),
      0);
  assert_non_null(strstr(program_err, "note       batch = auto: "));
  snprintf(path, sizeof path, "runs/%s/config.ini", name);
  long long batch = batch_in(path);
  assert_true(batch >= 8 && batch % 8 == 0);
  assert_true(peak_of(ini, batch, more) <= 800 * 1024);
  assert_true(peak_of(ini, batch + 8, more) > 800 * 1024);
}

static void the_largest_batch_that_fits_is_taken(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  the_batch_is_the_largest("digits.ini", "plain",
                           "--set backend.use=cpu --set data.valid.batch=8 --set run.name=plain");
  the_batch_is_the_largest("digits.ini", "late",
                           "--set backend.use=sim --set data.valid.batch=8 --set run.name=late");
  the_batch_is_the_largest("digits.ini", "sums",
                           "--set backend.use=cpu --set data.valid.batch=8 --set run.name=sums "
                           "--set optimizer.accumulate=2");
}

static void a_batch_has_no_more_than_the_samples_of_an_epoch(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set data.batch=auto --set run.max_steps=1"), 0);
  assert_int_equal(batch_in("runs/noise/config.ini"), 80);
  assert_int_equal(
      program_run("train noise.ini --set data.batch=auto --set data.samples=5 --set run.max_steps=1 "
                  "--set run.name=few"),
      0);
  assert_int_equal(batch_in("runs/few/config.ini"), 4); /* below 8, powers of two */
}

static void a_resumed_run_keeps_its_batch(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  static const char command[] = "train noise.ini --set data.batch=auto --set run.memory_limit=";
  assert_int_equal(program_run("%s20KiB --set run.max_steps=1", command), 0);
  long long batch = batch_in("runs/noise/config.ini");
  assert_true(batch >= 8 && batch < 80);
  assert_int_equal(program_run("%s1MiB --set run.max_steps=2 --resume auto", command), 0);
  assert_non_null(strstr(program_err, ", as before\n"));
  assert_int_equal(batch_in("runs/noise/config.ini"), batch);
}

static double loss_of(const char *more) {
  return program_number(program_json(0, "train noise.ini --set data.batch=32 %s --set run.output=", more),
                        "train.loss");
}

static void lr_follows_the_batch_when_it_is_asked_to(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  double plain = loss_of(""), doubled = loss_of("--set optimizer.lr=0.1");
  assert_true(loss_of("--set optimizer.lr_batch=16") == doubled && doubled != plain);
  assert_true(loss_of("--set optimizer.lr_batch=8 --set optimizer.lr_rule=sqrt") == doubled);
  assert_true(loss_of("--set optimizer.lr_batch=32") == plain);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)
  const struct CMUnitTest tests[] = {
      TEST(the_largest_batch_that_fits_is_taken),
      TEST(a_batch_has_no_more_than_the_samples_of_an_epoch),
      TEST(a_resumed_run_keeps_its_batch),
      TEST(lr_follows_the_batch_when_it_is_asked_to),
  };
  return cmocka_run_group_tests_name("memory: the batch", tests, NULL, NULL);
}

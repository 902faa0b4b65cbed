/* [run] limit_train and limit_valid: shorter epochs for quick tries. */
#include "configs.h"
#include "program.h"

static const json_t *train(const char *run, const char *more) {
  return program_json(0, "train digits.ini --output %s --set run.name=run %s", run, more);
}

static int steps_with(const char *more) { return (int)program_number(train("tries", more), "steps"); }

/* 2400 samples in batches of 16, two epochs. */
static void an_epoch_has_so_many_batches(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(steps_with("--set run.limit_train=3"), 6);
  assert_int_equal(steps_with("--set run.limit_train=0.1"), 30);
  assert_int_equal(steps_with("--set run.limit_train=0.1 --set optimizer.accumulate=4"),
                   6); /* of 37 updates */
  assert_int_equal(steps_with("--set run.limit_train=9 --set optimizer.accumulate=4"), 4);
  assert_int_equal(steps_with("--set run.limit_train=1000 --set run.epochs=1"), 150);
  assert_int_equal(steps_with("--set run.limit_train=0.5 --set data.train.epoch=320"), 20);
}

/* The same samples, and the schedule of the shorter epochs, as with [data] epoch. */
static void a_limit_is_a_shorter_epoch(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  train("limited", "--set run.limit_train=5 --set run.limit_valid=2");
  train("shorter", "--set data.train.epoch=80 --set data.valid.epoch=200");
  checkpoints_equal("limited", "shorter");
  assert_true(program_number(file_json("limited/run/checkpoints/best/state.json"), "best") ==
              program_number(file_json("shorter/run/checkpoints/best/state.json"), "best"));
}

static void a_limited_run_is_resumed(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  train("whole", "--set run.limit_train=6");
  assert_int_equal(program_number(train("parts", "--set run.limit_train=6 --set run.max_steps=8"), "steps"),
                   8);
  const json_t *r = program_json(
      0, "train digits.ini --output parts --set run.name=run --set run.limit_train=6 --resume auto");
  assert_int_equal(program_number(r, "steps"), 12);
  /* the step limit was another one, and the cosine counts the steps of the whole run */
  r = program_json(0, "train digits.ini --output on --set run.name=run --set run.limit_train=6 "
                      "--set schedule.type=constant --set run.max_steps=8");
  r = program_json(0, "train digits.ini --output on --set run.name=run --set run.limit_train=6 "
                      "--set schedule.type=constant --resume auto");
  r = program_json(0, "train digits.ini --output at-once --set run.name=run --set run.limit_train=6 "
                      "--set schedule.type=constant");
  assert_int_equal(program_number(r, "steps"), 12);
  checkpoints_equal("on", "at-once");
}

/* A finite source, shuffled: other samples in each epoch, and the same ones in each validation. */
static void validation_takes_the_same_samples_each_time(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --set optimizer.lr=0 --set run.limit_valid=1 "
                                    "--set run.observers=csv --set run.epochs=3");
  double last = program_number(r, "valid.loss");
  assert_true(program_number(file_json("runs/noise/checkpoints/best/state.json"), "best") ==
              program_number(r, "valid.accuracy"));
  r = program_json(0, "train noise.ini --set optimizer.lr=0 --set run.limit_valid=1 --set run.epochs=1");
  assert_true(program_number(r, "valid.loss") == last);
  r = program_json(0, "train noise.ini --set optimizer.lr=0 --set run.epochs=1");
  assert_true(program_number(r, "valid.loss") != last);
}

static void the_first_lines_tell_it_and_eval_takes_all(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *r = train("runs", "--set run.limit_train=0.02 --set run.limit_valid=1");
  assert_string_equal(json_string_value(json_array_get(program_member(r, "remarks"), 0)),
                      "limit_train = 0.02: 3 batches in an epoch");
  assert_string_equal(json_string_value(json_array_get(program_member(r, "remarks"), 1)),
                      "limit_valid = 1: 1 batch in a validation");
  assert_non_null(strstr(program_err, "note       limit_train = 0.02: 3 batches in an epoch"));
  r = program_json(0, "eval runs/run");
  assert_int_equal(program_number(r, "samples"), 250);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(an_epoch_has_so_many_batches),
      CASE(a_limit_is_a_shorter_epoch),
      CASE(a_limited_run_is_resumed),
      CASE(validation_takes_the_same_samples_each_time),
      CASE(the_first_lines_tell_it_and_eval_takes_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

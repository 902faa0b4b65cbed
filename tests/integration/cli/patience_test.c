/* [run] patience, min_delta and best_mode: runs that end when they do not improve any more. */
#include "configs.h"
#include "program.h"

/* Without learning no epoch after the first improves. */
static const char still[] = "--set optimizer.lr=0 --set optimizer.weight_decay=0 --set run.epochs=10";

static void ends_with(const json_t *r, const char *status, int epochs) {
  assert_string_equal(program_text(r, "status"), status);
  assert_int_equal(program_number(r, "epochs"), epochs);
}

static void a_run_that_does_not_improve_ends(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  ends_with(program_json(0, "train noise.ini %s --set run.patience=3", still), "patience", 4);
  ends_with(program_json(0, "train noise.ini %s --set run.patience=1 --set run.best=loss", still), "patience",
            2);
  ends_with(program_json(0, "train noise.ini %s --set run.epochs=3", still), "finished", 3);
  assert_int_equal(program_run("train noise.ini %s --set run.patience=3", still), 0);
  assert_non_null(strstr(program_out, "patience after 40 steps"));
  assert_int_equal(program_run("runs"), 0);
  assert_null(strstr(program_out, "interrupted"));
}

static void the_count_survives_resuming(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const char *more = "--set run.patience=3 --resume runs/noise";
  ends_with(program_json(0, "train noise.ini %s --set run.patience=3 --set run.epochs=2", still), "finished",
            2);
  ends_with(program_json(0, "train noise.ini %s %s", still, more), "patience", 4);
  const json_t *r = program_json(0, "train noise.ini %s %s", still, more);
  ends_with(r, "patience", 4);
  assert_int_equal(program_number(r, "steps"), 40);
  ends_with(program_json(0, "train noise.ini %s --resume runs/noise --set run.epochs=6", still), "finished",
            6);
}

static void small_improvements_do_not_count(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const char *run = "train digits.ini --set run.epochs=3 --set run.best=loss --set run.patience=1";
  ends_with(program_json(0, "%s", run), "finished", 3);
  const json_t *r = program_json(0, "%s --set run.min_delta=100", run);
  ends_with(r, "patience", 2);
  /* the best checkpoint is the best all the same */
  assert_int_equal(program_number(file_json("runs/digits-2/checkpoints/best/state.json"), "epoch"), 2);
}

static void the_mode_says_which_side_is_best(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(
      program_run("train digits.ini --set run.epochs=3 --set run.best=loss --set run.best_mode=max"), 0);
  assert_int_equal(program_number(file_json("runs/digits/checkpoints/best/state.json"), "epoch"), 1);
  assert_int_equal(program_run("train digits.ini --set run.best_mode=least"), 65);
  assert_non_null(strstr(program_err, "best_mode"));
  assert_int_equal(program_run("train digits.ini --set run.patience=-1"), 65);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(a_run_that_does_not_improve_ends),
      CASE(the_count_survives_resuming),
      CASE(small_improvements_do_not_count),
      CASE(the_mode_says_which_side_is_best),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

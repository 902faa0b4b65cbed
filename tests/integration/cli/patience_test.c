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

/* ---- metrics that are not finite ---- */

/* The loss is some thousands, and e to its power is infinite. */
static const char loud_ini[] =
    "[run]\nname = loud\nepochs = 4\nbest = perplexity\n[data]\nsource = random\nshape = 4\nclasses = 3\n"
    "samples = 64\nbatch = 16\n[model]\ninputs = image: f32[4]\nlayers = fc: linear(3, init=normal(0, 1e4))\n"
    "loss = cross_entropy\nmetrics = perplexity\n[optimizer]\ntype = sgd\nlr = 1e-20\n"
    "[schedule]\ntype = plateau\nmetric = perplexity\npatience = 0\ngamma = 0.5\n";

static void a_metric_that_is_not_finite_is_no_improvement(void **state) {
  (void)state;
  size_t n;
  file_write("loud.ini", loud_ini);
  const json_t *r = program_json(0, "train loud.ini --set run.observers=jsonl");
  assert_true(program_number(r, "train.loss") > 1000);
  assert_true(json_is_null(program_member(r, "train.perplexity")));
  assert_true(file_exists("runs/loud/checkpoints/last"));
  assert_false(file_exists("runs/loud/checkpoints/best"));
  /* the rate drops behind the second epoch and the third */
  const char *lines = file_read("runs/loud/metrics.jsonl", &n);
  assert_non_null(strstr(lines, "\"lr\": 5e-21"));
  assert_non_null(strstr(lines, "\"lr\": 2.5e-21"));
  assert_null(strstr(lines, "inf"));
  ends_with(program_json(0, "train loud.ini --set run.patience=2"), "patience", 2);
  r = program_json(76, "eval runs/loud");
  assert_true(json_is_null(program_member(r, "perplexity")) && program_number(r, "loss") > 1000);
  assert_non_null(strstr(program_err, "perplexity over the validation data is inf"));
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(a_run_that_does_not_improve_ends),
      CASE(the_count_survives_resuming),
      CASE(small_improvements_do_not_count),
      CASE(the_mode_says_which_side_is_best),
      CASE(a_metric_that_is_not_finite_is_no_improvement),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

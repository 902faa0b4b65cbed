/* Which configurations of a sweep go on: successive halving, with rounds and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "tools/sweep/sweep.h"

enum { MOST = 27, RUNGS = 3 };

static sweep_run runs[MOST];

/* n configurations with one run each, in three rungs; a smaller score is better. */
static sweep halved(int n, int factor, bool asynchronous) {
  for (int i = 0; i < n; i++) runs[i] = (sweep_run){.wanted = 1};
  return (sweep){.smaller = true,
                 .halves = true,
                 .asynchronous = asynchronous,
                 .factor = factor,
                 .n_rungs = RUNGS,
                 .runs = runs,
                 .n = n,
                 .n_configurations = n,
                 .repeats = 1};
}

/* The process of a run has come to its rung. */
static void reach(sweep_run *run, double score) {
  while (run->rungs < run->wanted) run->score[run->rungs++] = score;
  run->ended = run->rungs == RUNGS;
}

static void the_best_third_of_a_round_goes_on(void **state) {
  (void)state;
  sweep s = halved(9, 3, false);
  for (int i = 0; i < 9; i++) {
    sweep_run *next = sweep_next(&s);
    assert_ptr_equal(next, &runs[i]); /* none goes on before all have come */
    reach(next, (i * 4) % 9);         /* 0 4 8 3 7 2 6 1 5: the runs 0, 7 and 5 are best */
  }
  static const int second[] = {0, 5, 7};
  for (int i = 0; i < 3; i++) {
    sweep_run *next = sweep_next(&s);
    assert_ptr_equal(next, &runs[second[i]]);
    assert_int_equal(next->wanted, 2);
    reach(next, second[i] == 5 ? -1 : 1);
  }
  assert_ptr_equal(sweep_next(&s), &runs[5]);
  assert_int_equal(runs[5].wanted, 3);
  reach(&runs[5], 0);
  assert_null(sweep_next(&s));
}

static void without_rounds_a_run_goes_on_when_it_is_among_the_best(void **state) {
  (void)state;
  sweep s = halved(6, 2, true);
  reach(sweep_next(&s), 5);
  assert_ptr_equal(sweep_next(&s), &runs[1]); /* one of one is not the better half */
  reach(&runs[1], 3);
  assert_ptr_equal(sweep_next(&s), &runs[1]); /* the higher rung comes first */
  assert_int_equal(runs[1].wanted, 2);
  runs[1].pid = 7; /* it trains */
  assert_ptr_equal(sweep_next(&s), &runs[2]);
}

/* A run without a score, as after a failure, is not waited for and does not go on. */
static void failed_runs_do_not_go_on(void **state) {
  (void)state;
  sweep s = halved(3, 3, false);
  reach(&runs[0], NAN);
  runs[1].ended = true;
  assert_ptr_equal(sweep_next(&s), &runs[2]);
  reach(&runs[2], 9);
  assert_ptr_equal(sweep_next(&s), &runs[2]);
  assert_int_equal(runs[2].wanted, 2);
}

/* The mean of two seeds decides. */
static void runs_of_a_configuration_go_on_together(void **state) {
  (void)state;
  sweep s = halved(4, 2, false);
  s.n_configurations = s.repeats = 2;
  const double scores[] = {0, 4, 1, 1};
  for (int i = 0; i < 4; i++) reach(&runs[i], scores[i]);
  assert_ptr_equal(sweep_next(&s), &runs[2]);
  assert_int_equal(runs[3].wanted, 2);
  assert_int_equal(runs[0].wanted, 1);
}

static void a_grid_starts_each_run_once(void **state) {
  (void)state;
  sweep s = halved(2, 3, false);
  s.halves = false;
  s.n_rungs = 1;
  for (int i = 0; i < 2; i++) {
    assert_ptr_equal(sweep_next(&s), &runs[i]);
    runs[i].rungs = 1;
  }
  assert_null(sweep_next(&s));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_third_of_a_round_goes_on),
                                     cmocka_unit_test(without_rounds_a_run_goes_on_when_it_is_among_the_best),
                                     cmocka_unit_test(failed_runs_do_not_go_on),
                                     cmocka_unit_test(runs_of_a_configuration_go_on_together),
                                     cmocka_unit_test(a_grid_starts_each_run_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

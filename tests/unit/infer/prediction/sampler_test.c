/* Tokens are drawn with the probabilities of the softmax, and only those that top_k and top_p leave. */
#include <math.h>

#include "tests/support/check_status.h"
#include "tests/support/test_env.h"

#include "core/infer/prediction/sampler.h"

enum { TOKENS = 6, DRAWS = 20000 };

static test_env B;
static const float scores[TOKENS] = {1, 3, 0, 3, 2, -1};

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return B.live == 0 ? 0 : -1;
}

static void draw_many(tn_sampler s, int64_t counts[TOKENS]) {
  memset(counts, 0, TOKENS * sizeof *counts);
  s.rng = tn_rng_at(7, 0);
  assert_ok(&B, tn_sampler_open(&B, TOKENS, &s));
  for (int i = 0; i < DRAWS; i++) {
    int32_t token = -1;
    assert_true(tn_sampler_draw(&s, scores, &token));
    assert_in_range(token, 0, TOKENS - 1);
    counts[token]++;
  }
  tn_sampler_close(&B, &s);
}

/* Within five standard deviations of a binomial distribution. */
static void check_counts(const int64_t counts[TOKENS], const double weights[TOKENS]) {
  double sum = 0;
  for (int i = 0; i < TOKENS; i++) sum += weights[i];
  for (int i = 0; i < TOKENS; i++) {
    double p = weights[i] / sum, expected = DRAWS * p, deviation = sqrt(DRAWS * p * (1 - p));
    if (!(fabs((double)counts[i] - expected) <= 5 * deviation))
      fail_msg("token %d: %lld times, expected %g +- %g", i, (long long)counts[i], expected, deviation);
  }
}

static void the_temperature_divides_the_scores(void **state) {
  (void)state;
  static const double temperatures[] = {0.5, 1, 3};
  for (int t = 0; t < 3; t++) {
    int64_t counts[TOKENS];
    double weights[TOKENS];
    for (int i = 0; i < TOKENS; i++) weights[i] = exp((double)scores[i] / temperatures[t]);
    draw_many((tn_sampler){.temperature = temperatures[t], .top_p = 1}, counts);
    check_counts(counts, weights);
  }
}

static void temperature_0_takes_the_first_of_the_largest(void **state) {
  (void)state;
  int64_t counts[TOKENS];
  draw_many((tn_sampler){.top_p = 1}, counts);
  assert_int_equal(counts[1], DRAWS);
}

static void top_k_keeps_the_best_with_their_probabilities(void **state) {
  (void)state;
  for (int k = 1; k <= TOKENS; k++) {
    static const int order[TOKENS] = {1, 3, 4, 0, 2, 5};
    int64_t counts[TOKENS];
    double weights[TOKENS] = {0};
    for (int i = 0; i < k; i++) weights[order[i]] = exp((double)scores[order[i]]);
    draw_many((tn_sampler){.temperature = 1, .top_p = 1, .top_k = k}, counts);
    check_counts(counts, weights);
  }
}

/* Two tokens have 0.39 of the mass each: 0.3 takes one, 0.5 two, 0.9 three. */
static void top_p_keeps_the_smallest_set_of_this_mass(void **state) {
  (void)state;
  static const struct {
    double p;
    double keeps[TOKENS];
  } cases[] = {{0.3, {0, 1, 0, 0, 0, 0}}, {0.5, {0, 1, 0, 1, 0, 0}}, {0.9, {0, 1, 0, 1, 1, 0}}};
  for (int c = 0; c < 3; c++) {
    int64_t counts[TOKENS];
    double weights[TOKENS];
    for (int i = 0; i < TOKENS; i++) weights[i] = cases[c].keeps[i] * exp((double)scores[i]);
    draw_many((tn_sampler){.temperature = 1, .top_p = cases[c].p}, counts);
    check_counts(counts, weights);
  }
}

/* Wherever it is: no token may stand for the one whose score is not known. */
static void no_token_is_drawn_where_a_score_is_no_number(void **state) {
  (void)state;
  const float none = -INFINITY,
              wrong[][3] = {{NAN, 0, 1},       {0, NAN, 1},        {0, 1, NAN},     {NAN, NAN, NAN},
                            {NAN, none, none}, {none, none, none}, {0, INFINITY, 1}};
  static const double temperatures[] = {0, 1};
  for (int t = 0; t < 2; t++) {
    tn_sampler s = {.temperature = temperatures[t], .top_p = 0.9, .top_k = 2, .rng = tn_rng_at(1, 0)};
    assert_ok(&B, tn_sampler_open(&B, 3, &s));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
      int32_t token = -1;
      assert_false(tn_sampler_draw(&s, wrong[i], &token));
      assert_int_equal(token, -1);
    }
    tn_sampler_close(&B, &s);
  }
}

/* A model rules tokens out in this way. */
static void a_token_with_minus_infinity_is_never_drawn(void **state) {
  (void)state;
  const float some[3] = {-INFINITY, 1, -INFINITY};
  for (int k = 0; k < 4; k++) {
    tn_sampler s = {.temperature = 1, .top_p = k < 2 ? 1 : 0.5, .top_k = k % 2 * 3, .rng = tn_rng_at(1, 0)};
    int32_t token = -1;
    assert_ok(&B, tn_sampler_open(&B, 3, &s));
    for (int i = 0; i < 100; i++) {
      assert_true(tn_sampler_draw(&s, some, &token));
      assert_int_equal(token, 1);
    }
    tn_sampler_close(&B, &s);
  }
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(the_temperature_divides_the_scores),
      CASE(temperature_0_takes_the_first_of_the_largest),
      CASE(top_k_keeps_the_best_with_their_probabilities),
      CASE(top_p_keeps_the_smallest_set_of_this_mass),
      CASE(no_token_is_drawn_where_a_score_is_no_number),
      CASE(a_token_with_minus_infinity_is_never_drawn),
  };
  return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}

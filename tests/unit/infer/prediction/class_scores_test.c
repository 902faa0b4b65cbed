/* Precision, recall, F1 and the area under the curve, against numbers that were counted by hand. */
#include <math.h>

#include "tests/support/check_status.h"
#include "tests/support/test_env.h"

#include "core/infer/prediction/class_scores.h"

static test_env B;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return B.live == 0 ? 0 : -1;
}

static json_t *names(int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(list, json_sprintf("c%d", i));
  return list;
}

static double number(const json_t *list, size_t class, const char *name) {
  const json_t *value = json_object_get(json_array_get(list, class), name);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static void near(double a, double b) {
  if (!(fabs(a - b) < 1e-6)) fail_msg("%.9g, expected %.9g", a, b);
}

/* Six samples of three classes; class 2 is never predicted. */
static void numbers_are_those_of_the_confusion_matrix(void **state) {
  (void)state;
  static const float scores[6][3] = {{2, 1, 0}, {0, 3, 1}, {1, 2, 0}, {0, 5, 4}, {3, 0, 2}, {1, 4, 3}};
  static const int labels[6] = {0, 0, 1, 1, 2, 2}, predictions[6] = {0, 1, 1, 1, 0, 1};
  tn_class_scores s;
  assert_ok(&B, tn_class_scores_start(&B, 3, 6, &s));
  for (int i = 0; i < 6; i++) {
    int64_t predicted;
    double log_probability, certainty;
    assert_true(tn_class_scores_add(&s, scores[i], labels[i], &predicted, &log_probability, &certainty));
    assert_int_equal(predicted, predictions[i]);
    double sum = exp((double)scores[i][0]) + exp((double)scores[i][1]) + exp((double)scores[i][2]);
    near(log_probability, (double)scores[i][labels[i]] - log(sum));
  }
  json_t *list = names(3), *by_class = tn_class_scores_by_class(&B, &s, list),
         *matrix = tn_class_scores_confusion(&s),
         *expected = json_loads("[[1, 1, 0], [0, 2, 0], [1, 1, 0]]", 0, NULL),
         *means = tn_class_scores_means(by_class);
  assert_true(json_equal(matrix, expected));
  near(number(by_class, 0, "precision"), 0.5);
  near(number(by_class, 0, "recall"), 0.5);
  near(number(by_class, 1, "precision"), 0.5);
  near(number(by_class, 1, "recall"), 1);
  near(number(by_class, 1, "f1"), 2.0 / 3);
  assert_true(isnan(number(by_class, 2, "precision")));
  near(number(by_class, 2, "recall"), 0);
  near(number(by_class, 2, "f1"), 0);
  near(json_number_value(json_object_get(means, "precision")), 0.5);
  near(json_number_value(json_object_get(means, "recall")), 0.5);
  json_decref(list), json_decref(by_class), json_decref(matrix), json_decref(expected), json_decref(means);
  tn_class_scores_free(&B, &s);
}

/* Class 1 has the margins -2, 0, 0 | 0, 4 (others | class 1): of 6 pairs 4 are in order and 2 equal. */
static void equal_scores_count_half_in_the_area(void **state) {
  (void)state;
  static const float scores[5][2] = {{2, 0}, {1, 1}, {3, 3}, {0, 0}, {0, 4}};
  static const int labels[5] = {0, 0, 0, 1, 1};
  tn_class_scores s;
  int64_t predicted;
  double log_probability, certainty;
  assert_ok(&B, tn_class_scores_start(&B, 2, 5, &s));
  for (int i = 0; i < 5; i++)
    tn_class_scores_add(&s, scores[i], labels[i], &predicted, &log_probability, &certainty);
  json_t *list = names(2), *by_class = tn_class_scores_by_class(&B, &s, list);
  near(number(by_class, 1, "auc"), 5.0 / 6);
  near(number(by_class, 0, "auc"), 5.0 / 6);
  json_decref(list), json_decref(by_class);
  tn_class_scores_free(&B, &s);
}

static void labels_outside_count_for_nothing(void **state) {
  (void)state;
  static const float scores[2] = {0, 1};
  tn_class_scores s;
  int64_t predicted;
  double log_probability, certainty;
  assert_ok(&B, tn_class_scores_start(&B, 2, 2, &s));
  assert_false(tn_class_scores_add(&s, scores, -1, &predicted, &log_probability, &certainty));
  assert_false(tn_class_scores_add(&s, scores, 2, &predicted, &log_probability, &certainty));
  assert_true(tn_class_scores_add(&s, scores, 1, &predicted, &log_probability, &certainty));
  json_t *list = names(2), *by_class = tn_class_scores_by_class(&B, &s, list);
  assert_int_equal(s.counted, 1);
  assert_true(isnan(number(by_class, 1, "auc"))); /* there is no other class */
  json_decref(list), json_decref(by_class);
  tn_class_scores_free(&B, &s);
}

static void scores_that_are_not_numbers_count_for_nothing(void **state) {
  (void)state;
  static const float scores[5][2] = {{0, NAN}, {INFINITY, 0}, {-INFINITY, -INFINITY}, {-INFINITY, 2}, {1, 0}};
  static const bool counted[5] = {false, false, false, true, true};
  tn_class_scores s;
  int64_t predicted;
  double log_probability, certainty;
  assert_ok(&B, tn_class_scores_start(&B, 2, 5, &s));
  for (int i = 0; i < 5; i++)
    assert_int_equal(tn_class_scores_add(&s, scores[i], i % 2, &predicted, &log_probability, &certainty),
                     counted[i]);
  json_t *list = names(2), *by_class = tn_class_scores_by_class(&B, &s, list);
  near(number(by_class, 1, "auc"), 1);
  json_decref(list), json_decref(by_class);
  tn_class_scores_free(&B, &s);
}

/* As an older file of scores may have them: the area is found, in a time that does not depend on them. */
static void equal_infinite_scores_share_a_rank(void **state) {
  (void)state;
  static const float scores[4][2] = {{-INFINITY, 0}, {-INFINITY, 0}, {0, -INFINITY}, {0, -INFINITY}};
  tn_class_scores s;
  int64_t predicted;
  double log_probability, certainty;
  assert_ok(&B, tn_class_scores_start(&B, 2, 4, &s));
  for (int i = 0; i < 4; i++)
    tn_class_scores_add(&s, scores[i], i < 2, &predicted, &log_probability, &certainty);
  json_t *list = names(2), *by_class = tn_class_scores_by_class(&B, &s, list);
  near(number(by_class, 1, "auc"), 1);
  json_decref(list), json_decref(by_class);
  tn_class_scores_free(&B, &s);
}

/* A class that the model rules out, although it is the true one. */
static void a_true_class_without_probability_leaves_the_other_number(void **state) {
  (void)state;
  const float scores[3] = {-INFINITY, 1, 0};
  int64_t predicted;
  double log_probability, certainty;
  tn_class_scores s;
  assert_ok(&B, tn_class_scores_start(&B, 3, 1, &s));
  assert_true(tn_class_scores_add(&s, scores, 0, &predicted, &log_probability, &certainty));
  assert_int_equal(predicted, 1);
  assert_true(isinf(log_probability) && log_probability < 0);
  near(certainty, exp(1) / (exp(1) + 1));
  tn_class_scores_free(&B, &s);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(numbers_are_those_of_the_confusion_matrix),
      CASE(equal_scores_count_half_in_the_area),
      CASE(labels_outside_count_for_nothing),
      CASE(scores_that_are_not_numbers_count_for_nothing),
      CASE(equal_infinite_scores_share_a_rank),
      CASE(a_true_class_without_probability_leaves_the_other_number),
  };
  return cmocka_run_group_tests_name("class scores", tests, NULL, NULL);
}

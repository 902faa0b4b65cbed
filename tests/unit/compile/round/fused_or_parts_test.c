/* Pass `select`: a fusion against its parts, by the times that a tuner gives. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/kernels/tuner.h"
#include "core/compile/select/select.h"
#include "tests/unit/compile/kernels.h"

/* ---- kernels: a product and a ReLU of 2 ms each by estimate ---- */

static double estimate_s, fused_estimate_s;

static tn_status offer_one(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "one", .cost_s = estimate_s, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_fused(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "one", .cost_s = fused_estimate_s, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* Two layouts of the second operand, of equal estimates, and one that is estimated to be slower. */
static tn_status offer_layouts(tn_query *q) {
  static const tn_operand_layout rules[][2] = {{{.rule = TN_LAYOUT_ANY}, {.rule = TN_LAYOUT_ROW_MAJOR}},
                                               {{.rule = TN_LAYOUT_ROW_MAJOR}, {.rule = TN_LAYOUT_ANY}}};
  static const char *const names[] = {"one", "other", "slow"};
  for (int i = 0; i < 3; i++) {
    tn_variant v = {.struct_size = sizeof v,
                    .id = i,
                    .name = names[i],
                    .in = i == 0 ? NULL : rules[i - 1],
                    .cost_s = i == 2 ? 2 * estimate_s : estimate_s,
                    .capturable = 1};
    tn_add_variant(q, &v);
  }
  return TN_OK;
}

static tn_status offer_rivals(tn_query *q) {
  for (int i = 0; i < 2; i++) {
    tn_variant v = {.struct_size = sizeof v, .id = i, .name = "rival", .cost_s = estimate_s};
    tn_add_variant(q, &v);
  }
  return TN_OK;
}

static KERNEL(k_rivals, "t.rivals", "t", "y = matmul(a, b)", offer_rivals);
static KERNEL(k_dear, "t.dear", "t", "y = matmul(a, b)", offer_fused);
static KERNEL(k_product, "t.product", "t", "y = matmul(a, b)", offer_one);
static KERNEL(k_layouts, "t.product", "t", "y = matmul(a, b)", offer_layouts);
static KERNEL(k_relu, "t.relu", "t", "y = relu(x)", offer_one);
static KERNEL(k_fused, "t.fused", "t", "y = matmul(a, b); z = relu(y)", offer_fused);
#define GRAPH                                                                                                \
  "a: f32[4, 8] = input(name=a)\nw: f32[8, 8] = input(name=w)\n"                                             \
  "h = matmul(a, w)\nr = relu(h)\noutput r = r\n"

/* ---- a tuner ---- */

/* A time in ms; 0: it has none. */
typedef struct kernel_time {
  const char *kernel, *variant;
  double ms;
} kernel_time;

static kernel_time times[8];
static int timed; /* launches that were asked for */
static tn_status answer;

static tn_status time_no_rival(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                               double *seconds) {
  (void)tuner, (void)env, (void)choice;
  fail_msg("%s has no rivals", tuning->entry->item->name);
  *seconds = 0;
  return TN_OK;
}

static tn_status find_replay(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                             double *seconds) {
  (void)tuner;
  *seconds = 0;
  timed++;
  if (answer != TN_OK) return tn_failf(env, answer, "the device has failed");
  for (int i = 0; i < 8 && times[i].kernel != NULL; i++)
    if (strcmp(times[i].kernel, tuning->entry->item->name) == 0 &&
        strcmp(times[i].variant, choice->name) == 0)
      *seconds = times[i].ms * 1e-3;
  return TN_OK;
}

static bool has_never_faulted(tn_tuner *tuner, const tn_tuning *tuning, const tn_choice *choice) {
  (void)tuner, (void)tuning, (void)choice;
  return false;
}

static bool knows_no_faults(tn_tuner *tuner) {
  (void)tuner;
  return false;
}

static tn_tuner tuner = {time_no_rival, find_replay, has_never_faulted, knows_no_faults};

/* ---- a cover ---- */

static fixture F;

static int open_kernels(void **state) {
  (void)state;
  FIXTURE_OPEN(&F, &k_product.item, &k_relu.item, &k_fused.item);
  F.target.tuner = &tuner;
  F.target.properties.launch_s = 1e-6;
  estimate_s = 2e-3;
  fused_estimate_s = 3e-3;
  timed = 0;
  answer = TN_OK;
  memset(times, 0, sizeof times);
  return 0;
}

static int shut(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

static void set_times(double fused_ms, double product_ms, double relu_ms) {
  times[0] = (kernel_time){"t.fused", "one", fused_ms};
  times[1] = (kernel_time){"t.product", "one", product_ms};
  times[2] = (kernel_time){"t.relu", "one", relu_ms};
}

/* Whether the fused kernel is chosen; the reason why it is not. */
static bool is_fused(char reason[128]) {
  tn_cover *cover = fixture_cover(&F, GRAPH);
  bool fused = cover->groups.n == 1;
  assert_int_equal(cover->groups.n, fused ? 1 : 2);
  const tn_group *g = &cover->groups.v[0];
  reason[0] = '\0';
  for (int32_t i = 0; i < g->n_rejected; i++)
    if (strcmp(g->rejected[i].kernel, "t.fused") == 0) snprintf(reason, 128, "%s", g->rejected[i].reason);
  tn_cover_destroy(cover);
  return fused;
}

static void expect_fused(bool expected, const char *expected_reason) {
  char reason[128];
  assert_int_equal(is_fused(reason), expected);
  assert_string_equal(reason, expected_reason);
}

/* ---- tests ---- */

static void a_fusion_that_is_slower_than_its_parts_loses(void **state) {
  (void)state;
  expect_fused(true, ""); /* no time is known */
  set_times(5, 2, 2);
  expect_fused(false, "takes 5 ms, its parts 4 ms, as measured");
  set_times(3.9, 2, 2);
  expect_fused(true, "");
}

/* A twentieth is for what a fusion saves beside the kernels. */
static void a_fusion_has_a_margin(void **state) {
  (void)state;
  set_times(4.19, 2, 2);
  expect_fused(true, "");
  set_times(4.21, 2, 2);
  expect_fused(false, "takes 4.21 ms, its parts 4 ms, as measured");
}

static void a_fusion_that_is_estimated_to_be_slower_wins_by_its_time(void **state) {
  (void)state;
  fused_estimate_s = 6e-3;
  expect_fused(false, "costs 6 ms, its parts 4 ms");
  set_times(3, 2, 2);
  expect_fused(true, "");
}

/* One unknown time leaves the choice to estimates. */
static void times_and_estimates_are_not_added(void **state) {
  (void)state;
  for (int unknown = 0; unknown < 3; unknown++) {
    set_times(unknown == 0 ? 0 : 9, unknown == 1 ? 0 : 1, unknown == 2 ? 0 : 1);
    expect_fused(true, "");
  }
}

/* The product alone takes longer than the fusion. */
static void parts_are_timed_until_they_take_longer(void **state) {
  (void)state;
  set_times(2, 2, 2);
  expect_fused(true, "");
  assert_int_equal(timed, 2);
  set_times(3, 2, 2);
  expect_fused(true, "");
  assert_int_equal(timed, 2 + 3);
}

/* Nothing is timed where estimates differ by far, or for launches of a few microseconds. */
static void estimates_may_decide_alone(void **state) {
  static const double estimates[][2] = {{2e-3, 1.3e-3}, {2e-3, 13e-3}, {2e-6, 1.9e-6}};
  static const bool fused[] = {true, false, true};
  (void)state;
  for (int i = 0; i < 3; i++) {
    estimate_s = estimates[i][0];
    fused_estimate_s = estimates[i][1];
    set_times(fused[i] ? 9 : 1, 2, 2);
    expect_fused(fused[i], fused[i] ? "" : "costs 13 ms, its parts 4 ms");
  }
  assert_int_equal(timed, 0);
}

static void a_part_has_the_time_of_its_fastest_layout(void **state) {
  (void)state;
  fixture_close(&F);
  FIXTURE_OPEN(&F, &k_layouts.item, &k_relu.item, &k_fused.item);
  F.target.tuner = &tuner;
  set_times(4, 2, 2);
  times[3] = (kernel_time){"t.product", "other", 1};
  times[4] =
      (kernel_time){"t.product", "slow", 0.1}; /* by estimate it takes longer, so it is not asked for */
  expect_fused(false, "takes 4 ms, its parts 3 ms, as measured");
  assert_int_equal(timed, 4);
}

static void a_failure_of_the_device_ends_the_compilation(void **state) {
  (void)state;
  answer = TN_EDEVICE;
  assert_non_null(strstr(fixture_failure(&F, GRAPH, TN_EDEVICE), "the device has failed"));
}

/* ---- a kernel with rival variants against one without ---- */

static tn_status take_9_ms(tn_tuner *t, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                           double *seconds) {
  (void)t, (void)env, (void)tuning, (void)choice;
  *seconds = 9e-3;
  return TN_OK;
}

/* The time of one does not compare with the estimate of the other, which is the larger of two. */
static void a_time_is_not_compared_with_an_estimate(void **state) {
  static tn_tuner times_rivals = {take_9_ms, find_replay, has_never_faulted, knows_no_faults};
  (void)state;
  fixture_close(&F);
  FIXTURE_OPEN(&F, &k_dear.item, &k_rivals.item, &k_relu.item);
  F.target.tuner = &times_rivals;
  tn_cover *cover = fixture_cover(&F, GRAPH);
  const tn_group *g = &cover->groups.v[0];
  assert_string_equal(g->kernel->item.name, "t.rivals");
  assert_true(g->choice.measured && g->choice.cost_s == 9e-3);
  assert_int_equal(g->n_rejected, 1);
  assert_string_equal(g->rejected[0].reason, "3 ms against 2 ms");
  tn_cover_destroy(cover);
}

/* As with [backend] autotune = no. */
static void without_a_tuner_estimates_decide(void **state) {
  (void)state;
  set_times(5, 2, 2);
  F.target.tuner = NULL;
  expect_fused(true, "");
  assert_int_equal(timed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kernels, shut)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_fusion_that_is_slower_than_its_parts_loses),
      TEST(a_fusion_has_a_margin),
      TEST(a_fusion_that_is_estimated_to_be_slower_wins_by_its_time),
      TEST(times_and_estimates_are_not_added),
      TEST(parts_are_timed_until_they_take_longer),
      TEST(estimates_may_decide_alone),
      TEST(a_part_has_the_time_of_its_fastest_layout),
      TEST(a_failure_of_the_device_ends_the_compilation),
      TEST(a_time_is_not_compared_with_an_estimate),
      TEST(without_a_tuner_estimates_decide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

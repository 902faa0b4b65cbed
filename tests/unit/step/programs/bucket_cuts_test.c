/* The cuts of gradients into buckets, against all possible cuts. */
#include "core/step/programs/bucket_cuts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/plugin/handles.h"
#include "core/base/system/system.h"
#include "tenon/random.h"

enum { MOST = 10, LARGE = 3000 };

static tn_error_record record;
static tn_env env;

static int set_up(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  return 0;
}

/* A latency, and a rate. */
typedef struct link_times {
  double latency, rate;
} link_times;

static double link_s(const void *context, double bytes) {
  const link_times *l = context;
  return l->latency + bytes / l->rate;
}

/* Gradients of a backward pass of about n seconds, with sizes over three orders of magnitude. */
static void draw(tn_rng *rng, int32_t n, int32_t parts, tn_ready_gradient *g) {
  int32_t i = 0;
  for (int32_t p = 0; p < parts; p++) {
    int32_t end = p == parts - 1 ? n : n * (p + 1) / parts;
    for (double now = 0; i < end; i++) {
      now += 2 * tn_rng_uniform(rng) * parts;
      g[i] = (tn_ready_gradient){now, pow(10, 3 * tn_rng_uniform(rng)), p};
    }
  }
}

static bool fits(const tn_cut_problem *problem, const bool *begins) {
  double bytes = 0;
  for (int32_t i = 0; i < problem->n && problem->most_bytes > 0; i++) {
    bytes = begins[i] ? problem->gradients[i].bytes : bytes + problem->gradients[i].bytes;
    if (!begins[i] && bytes > problem->most_bytes) return false;
  }
  return true;
}

static double brute_force(const tn_cut_problem *problem, bool *begins) {
  double best = INFINITY;
  int32_t n = problem->n;
  for (uint32_t cuts = 0; cuts < 1u << (n - 1); cuts++) {
    begins[0] = true;
    for (int32_t i = 1; i < n; i++)
      begins[i] = (cuts >> (i - 1) & 1) != 0 || problem->gradients[i].part != problem->gradients[i - 1].part;
    double end = tn_cut_end_s(&env, problem, begins);
    if (end < best && fits(problem, begins)) best = end;
  }
  return best;
}

static double solve(const tn_cut_problem *problem, bool *begins) {
  memset(begins, 0, (size_t)problem->n);
  assert_int_equal(tn_cut_buckets(&env, problem, begins), TN_OK);
  for (int32_t i = 0; i < problem->n; i++)
    if (i == 0 || problem->gradients[i].part != problem->gradients[i - 1].part) assert_true(begins[i]);
  return tn_cut_end_s(&env, problem, begins);
}

static int32_t count(const bool *begins, int32_t n) {
  int32_t buckets = 0;
  for (int32_t i = 0; i < n; i++) buckets += begins[i];
  return buckets;
}

/* The time of the collectives beside that of the backward pass: from a hundredth of it to a hundredfold. */
static link_times draw_link(tn_rng *rng) {
  return (link_times){3 * tn_rng_uniform(rng) * tn_rng_uniform(rng), pow(10, 4 * tn_rng_uniform(rng))};
}

static void no_cuts_of_one_part_end_earlier(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(1, 0);
  tn_ready_gradient g[MOST];
  bool found[MOST], any[MOST];
  for (int32_t trial = 0; trial < 400; trial++) {
    int32_t n = 1 + (int32_t)tn_rng_below(&rng, MOST);
    draw(&rng, n, 1, g);
    link_times link = draw_link(&rng);
    const tn_cut_problem problem = {g, n, link_s, &link, 0, trial % 2 == 0 ? 0 : 1000 * tn_rng_uniform(&rng)};
    double best = brute_force(&problem, any), end = solve(&problem, found);
    assert_true(fits(&problem, found));
    if (!(fabs(end - best) <= 1e-9 * best))
      fail_msg("trial %d: ends at %g, the best at %g", trial, end, best);
  }
}

/* Within the slack, and with as few buckets as that allows. */
static void the_slack_saves_buckets(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(2, 0);
  tn_ready_gradient g[MOST];
  bool found[MOST], any[MOST];
  for (int32_t trial = 0; trial < 200; trial++) {
    draw(&rng, MOST, 1, g);
    link_times link = draw_link(&rng);
    tn_cut_problem problem = {g, MOST, link_s, &link, 0.5, 0};
    double best = brute_force(&problem, any), end = solve(&problem, found);
    assert_true(end <= best + 0.5 + 1e-9);
    for (uint32_t cuts = 0; cuts < 1u << (MOST - 1); cuts++) {
      for (int32_t i = 0; i < MOST; i++) any[i] = i == 0 || (cuts >> (i - 1) & 1) != 0;
      if (count(any, MOST) < count(found, MOST))
        assert_true(tn_cut_end_s(&env, &problem, any) > best + 0.5 - 1e-9);
    }
  }
}

/* Never worse than one bucket a part, or one a gradient; mostly the best cuts of all. */
static void several_parts_end_early_too(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(3, 0);
  tn_ready_gradient g[MOST];
  bool found[MOST], any[MOST];
  int32_t best_found = 0;
  enum { TRIALS = 300 };
  for (int32_t trial = 0; trial < TRIALS; trial++) {
    int32_t parts = 2 + trial % 2;
    draw(&rng, MOST, parts, g);
    link_times link = draw_link(&rng);
    const tn_cut_problem problem = {g, MOST, link_s, &link, 0, 0};
    double best = brute_force(&problem, any), end = solve(&problem, found);
    for (int32_t i = 0; i < MOST; i++) any[i] = i == 0 || g[i].part != g[i - 1].part;
    assert_true(end <= tn_cut_end_s(&env, &problem, any) * (1 + 1e-9));
    memset(any, true, sizeof any);
    assert_true(end <= tn_cut_end_s(&env, &problem, any) * (1 + 1e-9));
    assert_true(end <= 1.25 * best);
    best_found += end <= best * (1 + 1e-9);
  }
  print_message("the best cuts in %d of %d trials\n", best_found, TRIALS);
  assert_true(best_found >= TRIALS / 2);
}

/* A part whose times go back stays in the order of its region. */
static void a_part_keeps_its_order(void **state) {
  (void)state;
  const tn_ready_gradient g[] = {{5, 100, 0}, {1, 100, 0}, {9, 1, 0}, {2, 1, 1}, {2, 1, 1}};
  const link_times link = {0.1, 100};
  const tn_cut_problem problem = {g, 5, link_s, &link, 0, 0};
  bool begins[5];
  assert_true(solve(&problem, begins) <= 9 + 0.1 + 0.01 + 1e-9);
  assert_true(begins[0] && begins[2] && begins[3]);
}

static void nothing_is_cut_without_gradients(void **state) {
  (void)state;
  const link_times link = {1, 1};
  const tn_cut_problem problem = {NULL, 0, link_s, &link, 0, 0};
  assert_int_equal(tn_cut_buckets(&env, &problem, NULL), TN_OK);
}

/* Thousands of gradients: in a moment, and close to cuts before every gradient over a link without latency,
 * which are the best there. */
static void large_models_are_cut_fast(void **state) {
  (void)state;
  static tn_ready_gradient g[LARGE];
  static bool begins[LARGE], each[LARGE];
  tn_rng rng = tn_rng_at(4, 0);
  draw(&rng, LARGE, 2, g);
  link_times link = {0, 200};
  const tn_cut_problem problem = {g, LARGE, link_s, &link, 1, 0};
  double start = tn_clock_s(), end = solve(&problem, begins), took = tn_clock_s() - start;
  memset(each, true, sizeof each);
  double best = tn_cut_end_s(&env, &problem, each);
  print_message("%d buckets, in %.2f s\n", count(begins, LARGE), took);
  assert_true(end <= 1.02 * best);
  assert_true(count(begins, LARGE) < LARGE / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_cuts_of_one_part_end_earlier),  cmocka_unit_test(the_slack_saves_buckets),
      cmocka_unit_test(several_parts_end_early_too),      cmocka_unit_test(a_part_keeps_its_order),
      cmocka_unit_test(nothing_is_cut_without_gradients), cmocka_unit_test(large_models_are_cut_fast)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}

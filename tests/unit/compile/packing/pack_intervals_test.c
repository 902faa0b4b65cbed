/* Offsets of live intervals: none overlap at a step, and little memory is wasted. */
#include "tests/unit/compile/fixture.h"

#include "core/compile/packing/pack_intervals.h"
#include "core/plugin/handles.h"
#include "tenon/random.h"

static tn_env env;
static tn_error_record record;

static int set_up(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  return 0;
}

static int64_t assign_for(tn_live_interval *v, int32_t n, tn_packing_goal goal) {
  int64_t arena;
  assert_int_equal(tn_intervals_pack(&env, v, n, &goal, &arena), TN_OK);
  return arena;
}

/* By the first order alone. */
static int64_t assign(tn_live_interval *v, int32_t n) { return assign_for(v, n, (tn_packing_goal){0}); }

static int64_t bound(const tn_live_interval *v, int32_t n, int32_t steps) {
  int64_t bytes;
  assert_int_equal(tn_intervals_lower_bound(&env, v, n, steps, &bytes), TN_OK);
  return bytes;
}

static void no_intervals_need_no_memory(void **state) {
  (void)state;
  tn_live_interval none[1];
  assert_int_equal(assign(none, 0), 0);
  assert_int_equal(assign_for(none, 0, (tn_packing_goal){.placements = TN_PACK_MANY}), 0);
  assert_int_equal(bound(none, 0, 0), 0);
}

static void intervals_that_are_not_live_together_share_bytes(void **state) {
  (void)state;
  tn_live_interval v[] = {{100, 0, 1, 0}, {128, 2, 3, 0}, {1, 1, 2, 0}};
  assert_int_equal(assign(v, 3), 192);
  assert_int_equal(v[0].offset, 0);
  assert_int_equal(v[1].offset, 0);
  assert_int_equal(v[2].offset, 128);
  assert_int_equal(bound(v, 3, 4), 192);
}

static void the_smallest_gap_that_fits_is_taken(void **state) {
  (void)state;
  /* at steps 1 to 9 there are gaps of 512 and of 256 bytes */
  tn_live_interval v[] = {{640, 0, 9, 0}, {512, 0, 0, 0}, {384, 0, 9, 0},
                          {256, 0, 0, 0}, {192, 0, 9, 0}, {120, 1, 9, 0}};
  assert_int_equal(assign(v, 6), 640 + 512 + 384 + 256 + 192);
  assert_int_equal(v[5].offset, v[3].offset);
}

static void check_no_overlap(const tn_live_interval *v, int32_t n, int64_t arena) {
  for (int32_t i = 0; i < n; i++) {
    assert_int_equal(v[i].offset % 64, 0);
    assert_true(v[i].offset >= 0 && v[i].offset + v[i].bytes <= arena);
    for (int32_t k = 0; k < i; k++) {
      bool together = v[i].first <= v[k].last && v[k].first <= v[i].last;
      bool apart = v[i].offset + v[i].bytes <= v[k].offset || v[k].offset + v[k].bytes <= v[i].offset;
      assert_true(!together || apart);
    }
  }
}

/* Returns how many there are, of 200 at most, in 100 steps. */
static int32_t random_short_intervals(uint64_t seed, tn_live_interval *v) {
  tn_rng rng = tn_rng_at(seed, 0);
  int32_t n = 1 + (int32_t)tn_rng_below(&rng, 200), steps = 100;
  for (int32_t i = 0; i < n; i++) {
    int32_t first = (int32_t)tn_rng_below(&rng, steps), length = (int32_t)tn_rng_below(&rng, 20);
    int64_t bytes = 1 + tn_rng_below(&rng, 1 << tn_rng_below(&rng, 20));
    v[i] = (tn_live_interval){bytes, first, first + length < steps ? first + length : steps - 1, 0};
  }
  return n;
}

static void random_intervals_never_overlap_and_waste_little(void **state) {
  (void)state;
  double arenas = 0, bounds = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    tn_live_interval v[200];
    int32_t n = random_short_intervals(seed, v);
    int64_t arena = assign(v, n), least = bound(v, n, 100);
    check_no_overlap(v, n, arena);
    assert_true(arena >= least);
    arenas += (double)arena;
    bounds += (double)least;
  }
  assert_true(arenas < 1.05 * bounds);
}

/* ---- further orders ---- */

/* By size the two of 256 bytes lie one above the other at the bottom, and those of 192 bytes beside them. */
static const tn_live_interval chain[] = {{256, 0, 3, 0}, {256, 2, 5, 0}, {192, 4, 7, 0}, {192, 5, 8, 0}};
enum { CHAIN = sizeof chain / sizeof *chain };

static int64_t assign_chain(tn_packing_goal goal, tn_live_interval *v) {
  memcpy(v, chain, sizeof chain);
  int64_t arena = assign_for(v, CHAIN, goal);
  check_no_overlap(v, CHAIN, arena);
  return arena;
}

static void further_orders_reach_the_bound(void **state) {
  (void)state;
  tn_live_interval v[CHAIN];
  assert_int_equal(bound(chain, CHAIN, 9), 640);
  assert_int_equal(assign_chain((tn_packing_goal){0}, v), 704);
  assert_int_equal(assign_chain((tn_packing_goal){.placements = TN_PACK_FEW}, v), 640);
}

static void bytes_that_suffice_end_the_search(void **state) {
  (void)state;
  tn_live_interval v[CHAIN];
  assert_int_equal(assign_chain((tn_packing_goal){.placements = TN_PACK_FEW, .enough = 704}, v), 704);
  assert_int_equal(assign_chain((tn_packing_goal){.placements = TN_PACK_FEW, .enough = 703}, v), 640);
  assert_int_equal(assign_chain((tn_packing_goal){.placements = TN_PACK_FEW, .enough = 1}, v), 640);
}

static void bytes_that_cannot_suffice_leave_the_first_order(void **state) {
  (void)state;
  tn_live_interval v[CHAIN];
  tn_packing_goal goal = {.placements = TN_PACK_FEW, .enough = 639, .only_enough = true};
  assert_int_equal(assign_chain(goal, v), 704);
  goal.enough = 640;
  assert_int_equal(assign_chain(goal, v), 640);
}

/* A goal with more placements begins with those of the smaller one. */
static void more_placements_never_need_more_bytes(void **state) {
  static const int64_t placements[] = {0, 300, 1000, TN_PACK_FEW, TN_PACK_MANY};
  enum { GOALS = sizeof placements / sizeof *placements };
  (void)state;
  double arenas[GOALS] = {0}, bounds = 0;
  for (uint64_t seed = 0; seed < 40; seed++) {
    tn_live_interval v[200];
    int32_t n = random_short_intervals(seed, v);
    int64_t before = INT64_MAX;
    for (int32_t i = 0; i < GOALS; i++) {
      int64_t arena = assign_for(v, n, (tn_packing_goal){.placements = placements[i]});
      check_no_overlap(v, n, arena);
      assert_true(arena <= before);
      before = arena;
      arenas[i] += (double)arena;
    }
    assert_true(before >= bound(v, n, 100));
    bounds += (double)bound(v, n, 100);
  }
  for (int32_t i = 0; i < GOALS; i++) print_message("%.4f ", arenas[i] / bounds);
  print_message("of the bound\n");
  assert_true(arenas[GOALS - 1] - bounds <= 0.5 * (arenas[0] - bounds));
}

static void equal_intervals_get_equal_offsets(void **state) {
  (void)state;
  const tn_packing_goal goal = {.placements = TN_PACK_MANY};
  for (uint64_t seed = 0; seed < 10; seed++) {
    tn_live_interval v[200], again[200];
    int32_t n = random_short_intervals(seed, v);
    memcpy(again, v, (size_t)n * sizeof *v);
    assert_int_equal(assign_for(v, n, goal), assign_for(again, n, goal));
    for (int32_t i = 0; i < n; i++) assert_int_equal(v[i].offset, again[i].offset);
  }
}

/* ---- the first order: the same offsets as the plain algorithm ---- */

/* Whether `a` is placed before `b`: the larger one, then the one with the earlier start. */
static bool goes_before(const tn_live_interval *a, const tn_live_interval *b) {
  int64_t bytes_a = tn_interval_aligned(a->bytes), bytes_b = tn_interval_aligned(b->bytes);
  if (bytes_a != bytes_b) return bytes_a > bytes_b;
  return a->first != b->first ? a->first < b->first : a < b;
}

/* The smallest gap between the placed intervals, sorted by offset, that live at the same time. */
static int64_t plain_offset(tn_live_interval *const *placed, int32_t n, const tn_live_interval *new) {
  int64_t end = 0, best = -1, best_gap = INT64_MAX;
  for (int32_t i = 0; i < n; i++) {
    const tn_live_interval *p = placed[i];
    if (p->first > new->last || p->last < new->first) continue;
    int64_t gap = p->offset - end, after = p->offset + tn_interval_aligned(p->bytes);
    if (gap >= tn_interval_aligned(new->bytes) && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    if (after > end) end = after;
  }
  return best >= 0 ? best : end;
}

static void pack_plainly(tn_live_interval *v, int32_t n) {
  tn_live_interval *placed[300];
  bool done[300] = {false};
  for (int32_t k = 0; k < n; k++) {
    int32_t next = -1, at = k;
    for (int32_t i = 0; i < n; i++)
      if (!done[i] && (next < 0 || goes_before(&v[i], &v[next]))) next = i;
    done[next] = true;
    v[next].offset = plain_offset(placed, k, &v[next]);
    for (; at > 0 && placed[at - 1]->offset > v[next].offset; at--) placed[at] = placed[at - 1];
    placed[at] = &v[next];
  }
}

/* Few sizes or many, short intervals or long ones, and some that lie one inside the other as activations do.
 */
static tn_live_interval random_interval(tn_rng *rng, uint64_t seed, int32_t i, int32_t steps) {
  int32_t first = (int32_t)tn_rng_below(rng, steps), longest = seed % 2 == 0 ? 5 : steps;
  int32_t last = first + (int32_t)tn_rng_below(rng, longest);
  int64_t bytes = 1 + tn_rng_below(rng, seed % 3 == 0 ? 200 : 1 << tn_rng_below(rng, 16));
  if (seed % 5 == 0 && 2 * i < steps) return (tn_live_interval){bytes, i, steps - 1 - i, 0};
  return (tn_live_interval){bytes, first, last < steps ? last : steps - 1, 0};
}

static void offsets_are_those_of_the_plain_algorithm(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    tn_rng rng = tn_rng_at(seed, 1);
    tn_live_interval v[300], plain[300];
    int32_t n = 1 + (int32_t)tn_rng_below(&rng, 300), steps = 1 + (int32_t)tn_rng_below(&rng, 150);
    for (int32_t i = 0; i < n; i++) plain[i] = v[i] = random_interval(&rng, seed, i, steps);
    int64_t arena = assign(v, n), highest = 0;
    pack_plainly(plain, n);
    for (int32_t i = 0; i < n; i++) {
      int64_t end = plain[i].offset + tn_interval_aligned(plain[i].bytes);
      if (end > highest) highest = end;
      assert_int_equal(v[i].offset, plain[i].offset);
    }
    assert_int_equal(arena, highest);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_intervals_need_no_memory),
      cmocka_unit_test(intervals_that_are_not_live_together_share_bytes),
      cmocka_unit_test(the_smallest_gap_that_fits_is_taken),
      cmocka_unit_test(random_intervals_never_overlap_and_waste_little),
      cmocka_unit_test(further_orders_reach_the_bound),
      cmocka_unit_test(bytes_that_suffice_end_the_search),
      cmocka_unit_test(bytes_that_cannot_suffice_leave_the_first_order),
      cmocka_unit_test(more_placements_never_need_more_bytes),
      cmocka_unit_test(equal_intervals_get_equal_offsets),
      cmocka_unit_test(offsets_are_those_of_the_plain_algorithm),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}

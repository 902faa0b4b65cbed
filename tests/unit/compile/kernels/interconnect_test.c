/* Predicted times of collectives over links. */
#include "core/compile/kernels/interconnect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tenon/plugin/communicator.h"

static const tn_link_rate fast = {400e9, 2e-6}, slow = {10e9, 20e-6};
static const double start_s = 5e-6; /* of every collective */

static tn_interconnect of(int32_t ranks, int32_t host_ranks) {
  return (tn_interconnect){ranks, host_ranks, fast, slow};
}

static double time_s(int32_t ranks, int32_t host_ranks, int32_t kind, double bytes) {
  tn_interconnect c = of(ranks, host_ranks);
  return tn_collective_s(&c, kind, bytes) - start_s;
}

static void expect_near(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-9 * expected)) fail_msg("%.9g s, expected %.9g s", value, expected);
}

/* Of a large vector: 2 (n - 1) hops, and 2 (n - 1) / n of the bytes. */
static void large_vectors_go_around_a_ring(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 16; n++) {
    double hops = n - 1, bytes = 1e9;
    expect_near(time_s(n, n, TN_ALL_REDUCE, bytes), 2 * hops * 2e-6 + 2 * hops / n * bytes / 400e9);
    expect_near(time_s(n, n, TN_REDUCE_SCATTER, bytes), hops * 2e-6 + hops / n * bytes / 400e9);
    expect_near(time_s(n, n, TN_ALL_GATHER, bytes), hops * 2e-6 + hops / n * bytes / 400e9);
  }
}

/* Of a scalar the hops count: 2 log2 n. */
static void small_vectors_go_over_trees(void **state) {
  (void)state;
  expect_near(time_s(8, 8, TN_ALL_REDUCE, 4), 2 * (3 * 2e-6 + 4 / 400e9));
  expect_near(time_s(1024, 1024, TN_ALL_REDUCE, 4), 2 * (10 * 2e-6 + 4 / 400e9));
  expect_near(time_s(9, 9, TN_ALL_REDUCE, 4), 2 * (4 * 2e-6 + 4 / 400e9));
}

/* The ranks of a host scatter and gather, and in between the hosts exchange all pieces over their links. */
static void hosts_exchange_what_their_ranks_have_summed(void **state) {
  (void)state;
  double bytes = 1e9, inside = 7 * 2e-6 + 7.0 / 8 * bytes / 400e9,
         between = 3 * 20e-6 + 3.0 / 4 * bytes / 10e9;
  expect_near(time_s(32, 8, TN_ALL_REDUCE, bytes), 2 * inside + 2 * between);
  expect_near(time_s(32, 8, TN_REDUCE_SCATTER, bytes), inside + between);
  expect_near(time_s(32, 8, TN_ALL_GATHER, bytes), inside + between);
  expect_near(time_s(30, 8, TN_ALL_REDUCE, bytes), 2 * inside + 2 * between); /* the last host has six */
  expect_near(time_s(4, 1, TN_ALL_GATHER, bytes), between);                   /* a rank a host */
}

static void one_rank_sends_nothing(void **state) {
  (void)state;
  for (int32_t kind = TN_ALL_REDUCE; kind <= TN_ALL_GATHER; kind++) {
    assert_true(fabs(time_s(1, 1, kind, 1e9)) < 1e-12);
    assert_true(fabs(time_s(0, 0, kind, 1e9)) < 1e-12); /* unknown */
  }
}

/* More bytes take longer, and so do more ranks. */
static void times_grow_with_bytes_and_ranks(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 512; n *= 2)
    for (double bytes = 1; bytes < 1e9; bytes *= 4) {
      double now = time_s(n, 8, TN_ALL_REDUCE, bytes);
      assert_true(time_s(n, 8, TN_ALL_REDUCE, 4 * bytes) > now);
      assert_true(time_s(2 * n, 8, TN_ALL_REDUCE, bytes) > now);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_vectors_go_around_a_ring), cmocka_unit_test(small_vectors_go_over_trees),
      cmocka_unit_test(hosts_exchange_what_their_ranks_have_summed), cmocka_unit_test(one_rank_sends_nothing),
      cmocka_unit_test(times_grow_with_bytes_and_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/data/shuffle.h"
#include "tenon/random.h"

static void every_index_appears_exactly_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 10, 16, 17, 64, 100, 257, 1000, 4096, 4097, 50000};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
    int64_t n = sizes[s];
    char *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
      int64_t p = tn_permute(42, n, i);
      assert_in_range(p, 0, n - 1);
      assert_int_equal(seen[p]++, 0);
    }
    free(seen);
  }
}

static void a_large_set_stays_inside_its_bounds(void **state) {
  (void)state;
  int64_t n = ((int64_t)1 << 40) + 12345;
  for (int64_t i = 0; i < 1000; i++) {
    int64_t p = tn_permute(7, n, i * 1000003);
    assert_true(p >= 0 && p < n);
  }
}

/* Pearson's test: over many keys each of ten positions gets each index about equally often. With 81
 * degrees of freedom the statistic exceeds 140 about once in ten thousand times; the keys are fixed. */
static void places_are_close_to_uniform(void **state) {
  (void)state;
  enum { N = 10, KEYS = 20000 };
  static int count[N][N];
  for (uint64_t key = 0; key < KEYS; key++)
    for (int64_t i = 0; i < N; i++) count[i][tn_permute(tn_hash_mix(1, key), N, i)]++;
  double statistic = 0, expected = (double)KEYS / N;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) statistic += (count[i][j] - expected) * (count[i][j] - expected) / expected;
  assert_true(statistic < 140);
}

static void neighbours_do_not_stay_neighbours(void **state) {
  (void)state;
  int together = 0;
  for (int64_t i = 0; i + 1 < 10000; i++)
    together += llabs(tn_permute(3, 10000, i) - tn_permute(3, 10000, i + 1)) == 1;
  assert_true(together < 15);
}

static void another_key_gives_another_order(void **state) {
  (void)state;
  int same = 0;
  for (int64_t i = 0; i < 1000; i++) same += tn_permute(1, 1000, i) == tn_permute(2, 1000, i);
  assert_true(same < 10);
}

/* Also of sets whose network is up to four times as large, and of ends that fill no lanes. */
static void several_at_once_are_the_same(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 5, 64, 65, 1000, 4097, 1000003, (int64_t)1 << 40};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int32_t count = 1; count <= 33 && count <= sizes[s]; count += 4) {
      int64_t images[33], first = sizes[s] - count;
      tn_permute_many(99, sizes[s], first, count, images);
      for (int32_t i = 0; i < count; i++) assert_int_equal(images[i], tn_permute(99, sizes[s], first + i));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(several_at_once_are_the_same),
      cmocka_unit_test(every_index_appears_exactly_once),
      cmocka_unit_test(a_large_set_stays_inside_its_bounds),
      cmocka_unit_test(places_are_close_to_uniform),
      cmocka_unit_test(neighbours_do_not_stay_neighbours),
      cmocka_unit_test(another_key_gives_another_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

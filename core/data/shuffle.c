/* core/data/shuffle.c: the pseudo-random permutation and the spread sample, evaluated one index at a time. */
#include "core/data/shuffle.h"

#include "tenon/random.h"

/* Four rounds make a Feistel network a strong pseudo-random permutation (Luby and Rackoff, SIAM J. Comput.
 * 1988); two more compensate for the few bits of small sets. */
enum { ROUNDS = 6 };

/* The bits of one half, so that 2^(2 * half) >= n. */
static int shuffle_half_bits(int64_t n) {
  int half = 1;
  while (half < 31 && ((int64_t)1 << (2 * half)) < n) half++;
  return half;
}

static uint64_t shuffle_feistel(uint64_t key, int half, uint64_t x) {
  uint64_t mask = ((uint64_t)1 << half) - 1;
  uint64_t left = x >> half, right = x & mask;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    uint64_t next = left ^ (tn_philox_at(key, round, right).v[0] & mask);
    left = right;
    right = next;
  }
  return left << half | right;
}

int64_t tn_permute(uint64_t key, int64_t n, int64_t i) {
  if (n <= 1) return i;
  int half = shuffle_half_bits(n);
  uint64_t x = (uint64_t)i;
  /* The network permutes up to 4n values. Repeating it until the result is below n restricts the
   * permutation to 0 .. n-1 (cycle walking). */
  do x = shuffle_feistel(key, half, x);
  while (x >= (uint64_t)n);
  return (int64_t)x;
}

/* The beginning of part i of m. */
static int64_t shuffle_part_begin(int64_t n, int64_t m, int64_t i) {
  return (int64_t)((__extension__(unsigned __int128)(uint64_t) n * (uint64_t)i) / (uint64_t)m);
}

int64_t tn_sample_spread(uint64_t key, int64_t n, int64_t m, int64_t i) {
  int64_t begin = shuffle_part_begin(n, m, i), size = shuffle_part_begin(n, m, i + 1) - begin;
  tn_philox drawn = tn_philox_at(key, 0, (uint64_t)i);
  uint64_t number = (uint64_t)drawn.v[1] << 32 | drawn.v[0];
  return begin + (int64_t)(number % (uint64_t)size);
}

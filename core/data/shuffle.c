/* core/data/shuffle.c: the shuffle, one index at a time. */
#include "core/data/loader.h"

/* Four rounds make a Feistel network a strong pseudo-random permutation (Luby and Rackoff, SIAM J.
 * Comput. 1988); two more make up for the few bits of a small set. */
enum { ROUNDS = 6 };

/* Bits of one half, such that 2^(2 * half) values hold 0 .. n-1. */
static int half_bits(int64_t n) {
  int half = 1;
  while (half < 31 && ((int64_t)1 << (2 * half)) < n) half++;
  return half;
}

static uint64_t feistel(uint64_t key, int half, uint64_t x) {
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
  int half = half_bits(n);
  uint64_t x = (uint64_t)i;
  /* The network permutes up to four times as many values as there are. Following its cycle from a
   * value inside the set until it is inside again permutes the set itself. */
  do x = feistel(key, half, x);
  while (x >= (uint64_t)n);
  return (int64_t)x;
}

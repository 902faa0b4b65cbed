/* core/data/shuffle.c: the pseudo-random permutation and the spread sample, evaluated one index at a time. */
#include "core/data/shuffle.h"

#include <string.h>

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

/* ---- several at once: independent lanes, which the compiler puts into vectors ---- */

enum { LANES = 8 };

/* The first word of tn_philox_at(key, round, at[i]) for every lane. */
static void shuffle_words(uint64_t key, uint32_t round, const uint32_t at[LANES], uint32_t word[LANES]) {
  uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES], k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int i = 0; i < LANES; i++) c0[i] = at[i], c1[i] = 0, c2[i] = round, c3[i] = 0;
  for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < LANES; i++) {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
      c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
      c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = (uint32_t)p1;
      c3[i] = (uint32_t)p0;
    }
  memcpy(word, c0, sizeof c0);
}

static void shuffle_feistel_lanes(uint64_t key, int half, int64_t x[LANES]) {
  uint32_t mask = (uint32_t)(((uint64_t)1 << half) - 1), left[LANES], right[LANES], word[LANES];
  for (int i = 0; i < LANES; i++) {
    left[i] = (uint32_t)(x[i] >> half);
    right[i] = (uint32_t)x[i] & mask;
  }
  for (uint32_t round = 0; round < ROUNDS; round++) {
    shuffle_words(key, round, right, word);
    for (int i = 0; i < LANES; i++) {
      uint32_t next = left[i] ^ (word[i] & mask);
      left[i] = right[i];
      right[i] = next;
    }
  }
  for (int i = 0; i < LANES; i++) x[i] = (int64_t)((uint64_t)left[i] << half | right[i]);
}

void tn_permute_many(uint64_t key, int64_t n, int64_t first, int32_t count, int64_t *images) {
  int half = shuffle_half_bits(n);
  int32_t done = 0;
  for (; n > 1 && done + LANES <= count; done += LANES) {
    int64_t *x = &images[done];
    for (int i = 0; i < LANES; i++) x[i] = first + done + i;
    shuffle_feistel_lanes(key, half, x);
    for (int i = 0; i < LANES; i++) /* the network continues until the result is below n */
      while (x[i] >= n) x[i] = (int64_t)shuffle_feistel(key, half, (uint64_t)x[i]);
  }
  for (; done < count; done++) images[done] = tn_permute(key, n, first + done);
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

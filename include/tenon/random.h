/* tenon/random.h: the generator of all random numbers, Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011). It is counter-based: a number is a pure function of key and
 * counter, so masks, shuffles and augmentations are independent of threads, workers, ranks and backend, and a
 * resumed run continues them exactly. */
#ifndef TENON_RANDOM_H
#define TENON_RANDOM_H

#include "tenon/base.h"

TN_BEGIN_C

typedef struct tn_philox {
  uint32_t v[4];
} tn_philox;

/* Four random words for `counter` under `key`; (hi, lo) is the 128-bit counter. */
static inline tn_philox tn_philox_at(uint64_t key, uint64_t hi, uint64_t lo) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
  uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  tn_philox r = {{c0, c1, c2, c3}};
  return r;
}

/* [0, 1) with 24 bits, exact in binary32. */
static inline float tn_uniform_of(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* A sequence of numbers from one key, for sources and transforms: tn_rng_at(key, 0) begins it. A copy
 * continues independently with the same numbers. */
typedef struct tn_rng {
  uint64_t key, hi, lo;
  tn_philox word;
  int32_t used;
} tn_rng;

static inline tn_rng tn_rng_at(uint64_t key, uint64_t stream) {
  tn_rng r = {key, stream, 0, {{0, 0, 0, 0}}, 4};
  return r;
}
static inline uint32_t tn_rng_u32(tn_rng *r) {
  if (r->used == 4) {
    r->word = tn_philox_at(r->key, r->hi, r->lo++);
    r->used = 0;
  }
  return r->word.v[r->used++];
}
/* Uniform on [0, 1), with 32 bits. */
static inline double tn_rng_uniform(tn_rng *r) { return (double)tn_rng_u32(r) * 0x1p-32; }
static inline double tn_rng_between(tn_rng *r, double low, double high) {
  return low + (high - low) * tn_rng_uniform(r);
}
/* An integer of 0 .. n-1; n >= 1. The bias of the remainder is below n * 2^-64. */
static inline int64_t tn_rng_below(tn_rng *r, int64_t n) {
  uint64_t wide = (uint64_t)tn_rng_u32(r) << 32;
  wide |= tn_rng_u32(r);
  return (int64_t)(wide % (uint64_t)n);
}

/* Mixes two words into one key (SplitMix64's finalizer, Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t tn_hash_mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

TN_END_C
#endif

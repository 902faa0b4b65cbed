/* core/data/shuffle.h: orders of samples that need no memory. */
#pragma once

#include <stdint.h>

/* A pseudo-random permutation of 0 .. n-1, evaluated one index at a time, so that shuffling needs no
 * memory and resuming no replay: a balanced Feistel network with cycle walking (Black and Rogaway, CT-RSA
 * 2002) over Philox. */
int64_t tn_permute(uint64_t key, int64_t n, int64_t i);
/* The images of first, first + 1, ... first + count - 1: the same values as tn_permute has, in a third of the
 * time. */
void tn_permute_many(uint64_t key, int64_t n, int64_t first, int32_t count, int64_t *images);

/* Number i of m different indices of 0 .. n-1 in rising order, m <= n: one drawn from each of m equal parts.
 * Where a source lists its samples by class, each class has its share. */
int64_t tn_sample_spread(uint64_t key, int64_t n, int64_t m, int64_t i);

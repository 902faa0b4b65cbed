/* backends/cuda/device/cached_attention.cuh: the arguments of attention with a cache of keys and values, for host and
 * device. */
#ifndef TN_CUDA_CACHED_ATTENTION_CUH
#define TN_CUDA_CACHED_ATTENTION_CUH

#include "backends/cuda/device/attention.cuh"

enum {
  CACHED_THREADS = 256,
  CACHED_WARPS = CACHED_THREADS / 32,
  CACHED_ROWS = CACHED_THREADS, /* that a block reads in one round: 32 a warp */
  CACHED_MOST_PARTS = 64,
  CACHED_WIDTH = 256            /* of a head, at most: a column for each thread of a block */
};

/* A query is the token t of a head: number (b heads + h) tokens + t. `parts` blocks share the rows that it sees. Where
 * there are several, `sums` is [query][part][2 + value_width]: the largest score, the sum of exponentials relative to
 * it, and the sums of values weighted by them. */
struct cached_attention_args {
  struct attention_rows q, k, v, y, keys, values; /* keys, values: the caches with the old rows */
  const void *position;                           /* i64 */
  void *sums;
  double scale;
  int heads, tokens, room, width, value_width, parts;
  int vector; /* rows are read in vectors of 16 bytes */
  int pad;
};

#endif

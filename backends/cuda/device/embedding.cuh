/* backends/cuda/device/embedding.cuh: the arguments of embedding and its gradient, for host and device. */
#ifndef TN_CUDA_EMBEDDING_CUH
#define TN_CUDA_EMBEDDING_CUH

enum {
  EMBEDDING_THREADS = 256,
  SORT_BITS = 8,                             /* of a key, in a pass */
  SORT_DIGITS = 1 << SORT_BITS,
  SORT_ROUNDS = 8,                           /* of EMBEDDING_THREADS keys, in a block */
  SORT_TILE = EMBEDDING_THREADS * SORT_ROUNDS,
  EMBEDDING_STRETCH = 32                     /* sorted positions whose rows of dy a group of threads adds up */
};

/* Rows of `units` units of some bytes. `width` threads, a power of two, copy a row. */
struct embedding_args {
  const void *ids, *table;
  void *y;
  long long count, rows, units;
  unsigned long long nan; /* a unit of elements that are NaN, or its first 8 bytes */
  int id_bytes, width;
};

/* Positions 0 .. count - 1 are sorted by id, SORT_BITS bits in a pass; a position whose id is no row has the key
 * `rows`. The first pass reads ids, later ones from_keys and from_positions. `counts`: [digit][block]. */
struct sort_args {
  const void *ids; /* NULL after the first pass */
  const unsigned *from_keys, *from_positions;
  unsigned *to_keys, *to_positions, *counts;
  long long count, rows, blocks;
  int id_bytes, shift;
};

/* Groups of `width` threads add up rows of dy, EMBEDDING_STRETCH sorted positions each, with `tiles` groups for the columns
 * of a stretch. A row of the result that lies within one stretch is written; of one that begins before the stretch or
 * goes on after it the sum in the stretch is written to `sums`: [stretch][2][columns], first 0 and then 1.
 * `ranges`, [row][2], zero before, gets the sorted positions of a row. The second launch adds up the sums, and writes
 * zeros to rows without positions. */
struct embedding_grad_args {
  const unsigned *keys, *positions;
  unsigned *ranges;
  const void *dy;
  void *dtable, *sums;
  long long count, rows, columns, stretches, tiles;
  int vector, width;
};

#endif

/* backends/cuda/device/pool.cuh: the arguments of pool.cu, for host and device. */
#ifndef TN_CUDA_POOL_CUH
#define TN_CUDA_POOL_CUH

#include "backends/cuda/device/divide.cuh"

/* One spatial dimension of x (in) and y (out). */
struct pool_axis {
  int in, out, kernel, padding;
  struct divider stride;
};

/* The element of channel l at (row, column) of a plane lies at ((plane * height + row) * width + column) * lanes + l:
 * 1 lane for row-major images, as many as channels where channels are innermost. */
struct pool_args {
  const void *from; /* x, or dy */
  void *to;         /* y, or dx */
  int *index;       /* of maxima; NULL for averages */
  long long count;  /* elements of the result */
  struct divider lanes, columns, rows; /* of the result */
  struct pool_axis axis[2];
  int include_pad, pad;
};

enum { POOL_TILE_BYTES = 32768 };

/* Tiles of max_pool2d with a prologue: `rows` x `columns` outputs of `lanes` lanes, and the elements of x under them,
 * which fit in POOL_TILE_BYTES. A thread makes packs of neighbouring lanes. */
struct pool_tile {
  int rows, columns, lanes, in_rows, in_columns;
  int aligned;             /* packs are */
  long long count;         /* tiles */
  struct divider tiles[3]; /* of a plane: along rows, columns and lanes */
  struct divider packs, pixels, outputs[2]; /* packs of a pixel, pixels of a row of x; columns and lanes of y */
};

#endif

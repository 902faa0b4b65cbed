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

#endif

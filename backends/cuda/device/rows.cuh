/* backends/cuda/device/rows.cuh: the arguments of softmax and of layer norm, for host and device. */
#ifndef TN_CUDA_ROWS_CUH
#define TN_CUDA_ROWS_CUH

enum { ROWS_THREADS = 256 };

/* `rows` rows of n elements, `inner` apart; rows with neighbouring elements are neighbours.
 * Where inner is 1, `lanes` threads compute a row, in vectors where `vector` is 1. Elsewhere `width` threads compute
 * neighbouring rows, and `lanes` times as many threads share each row. */
struct softmax_args {
  const void *x;
  void *y;
  long long rows, n, inner;
  int vector, lanes, width, pad;
};

struct layer_norm_args {
  const void *x, *weight, *bias; /* weight and bias may be NULL */
  void *y, *mean, *rstd;
  long long rows, n;
  double epsilon;
  int vector, lanes;
};

/* `blocks` blocks; the sums of block b are `sums` [b][sets][n]: for dweight, for dbias and, of three sets, for dsum. Those
 * of its groups of threads lie in shared memory, [group][sets][n], unless `in_workspace`, where the block is one group. n is
 * n / pack vectors. */
struct layer_norm_grad_args {
  const void *dy, *x, *mean, *rstd, *weight, *more; /* weight may be NULL, and `more`, which is added to dx */
  void *dx, *dweight, *dbias, *sums;
  void *copy, *dsum; /* of dx, with `more` added, in the type of dy, or NULL; the sum of its rows */
  long long rows, n, blocks;
  int vector, lanes, in_workspace, pack, sets, pad;
};

#endif

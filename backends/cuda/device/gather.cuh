/* backends/cuda/device/gather.cuh: the arguments of gather and scatter, of running sums and of sorts, for host and
 * device. */
#ifndef TN_CUDA_GATHER_CUH
#define TN_CUDA_GATHER_CUH

enum { GATHER_DIMS = 8, CUMULATIVE_THREADS = 256, SORT_THREADS = 256, SORT_BLOCK = 1024 /* elements that a block sorts */ };

/* Merged dimensions of the elements that are named (backends/shared/index_walk.h); `strides` are those of the tensor that
 * is indexed, of which the axis has `size` elements. An index outside it gives the bits `missing`, or no update. */
struct index_args {
  const void *x, *index, *updates;
  void *y;
  long long count, size; /* count: a thread has an element of a gather, or all updates along the axis */
  long long dims[GATHER_DIMS], strides[GATHER_DIMS], reach_strides[GATHER_DIMS];
  unsigned long long missing;
  int rank, axis, vector, is_long, mode, pad;
};

/* `rows` rows of n elements, `inner` apart. */
struct cumulative_args {
  const void *x;
  void *y;
  long long rows, n, inner;
  int mode, exclusive, reverse, pad;
};

/* Rows of n elements, `inner` apart, padded to `size`, a power of two. The first k of a sorted row are stored. Rows longer
 * than SORT_BLOCK have keys and indices in the workspace. `run` and `distance` are of a step of the bitonic sort. */
struct bitonic_args {
  const void *x;
  void *y;
  int *index;
  unsigned long long *keys;
  unsigned *indices;
  long long rows, n, inner, k, size, run, distance;
  int descending, pad;
};

#endif

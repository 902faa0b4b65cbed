/* backends/cuda/device/reorder.cuh: the arguments of reorder, for host and device. */
#ifndef TN_CUDA_REORDER_CUH
#define TN_CUDA_REORDER_CUH

enum { REORDER_AXES = 16, REORDER_DIMS = 8 };

/* An axis of a storage: `extent` positions, `stride` apart, each `scale` elements of dimension `dim`. */
struct reorder_axis {
  long long extent, stride, scale;
  int dim, pad;
};

struct reorder_args {
  void *to;
  const void *from;
  long long count; /* positions of the result */
  long long dims[REORDER_DIMS];
  int rank, n_to, n_from, pad;
  struct reorder_axis to_axis[REORDER_AXES], from_axis[REORDER_AXES]; /* outermost first */
};

#endif

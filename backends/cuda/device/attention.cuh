/* backends/cuda/device/attention.cuh: the arguments of attention and its gradient, for host and device. */
#ifndef TN_CUDA_ATTENTION_CUH
#define TN_CUDA_ATTENTION_CUH

enum {
  ATTENTION_THREADS = 256,
  ATTENTION_DEPTH = 16,     /* terms of a product in shared memory */
  ATTENTION_COLUMNS = 64,   /* results of 16 threads side by side, four each */
  ATTENTION_WIDTH = 256     /* of a head, at most */
};

/* Row r of head h of item b of the batch: `width` adjacent elements at b batch + h head + r row. */
struct attention_rows {
  void *data;
  long long batch, head, row;
};

struct attention_args {
  struct attention_rows q, k, v, y, dy, dq, dk, dv; /* dy .. dv: of the gradient */
  void *lse, *delta; /* one number for each query of each head, in the type of sums; delta: the sum of dy y */
  double scale;
  long long heads_of_batch; /* heads of all items */
  int heads, queries, keys, width, value_width, causal;
};

#endif

/* backends/cuda/device/alignment.cuh: the arguments of alignment and its gradient, for host and device. */
#ifndef TN_CUDA_ALIGNMENT_CUH
#define TN_CUDA_ALIGNMENT_CUH

enum { ALIGNMENT_THREADS = 128 };

/* `room` has (steps + 2) * states numbers for each of `rows` sequences. dtotal and dscore: NULL without a gradient. */
struct alignment_args {
  const void *score, *dtotal;
  const unsigned char *skip;
  const int *of_steps, *of_states;
  void *total, *dscore;
  double *room;
  long long rows, steps, states;
};

#endif

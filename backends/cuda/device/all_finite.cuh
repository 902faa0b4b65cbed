/* backends/cuda/device/all_finite.cuh: the arguments of all_finite, for host and device. */
#ifndef TN_CUDA_ALL_FINITE_CUH
#define TN_CUDA_ALL_FINITE_CUH

enum { ALL_FINITE_THREADS = 256 };

/* Elements whose bits in `exponent` are all ones are not finite. A block writes to flags[block] whether all of its
 * elements are finite; with one block that is the result. */
struct all_finite_args {
  const void *x;
  unsigned char *flags;
  long long count;
  unsigned long long exponent;
};

#endif

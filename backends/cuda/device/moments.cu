/* backends/cuda/device/moments.cu: means and biased variances over any axes; NaN over nothing. All elements come less the
 * result's first, so that the variance keeps its digits where the mean is far from 0. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_FLOATS(moments, moments_run)

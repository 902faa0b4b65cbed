/* backends/cuda/device/cross_entropy.cu: of each row of logits lse, the logarithm of the sum of exponentials, and
 *
 *     loss = (1 - s) (lse - x[target]) + s (lse - mean(x)),  s the label smoothing
 *
 * which is 0 where the target is the ignored one, and NaN where it is no class. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_FLOATS(cross_entropy, exps_of)

/* backends/cuda/device/cross_entropy.cu: of each row of logits lse, the logarithm of the sum of exponentials, and
 *
 *     loss = (1 - s) (lse - x[target]) + s (lse - mean(x)),  s the label smoothing
 *
 * which is 0 where the target is the ignored one, and NaN where it is no class. */
#include "backends/cuda/device/reduce_kernels.cuh"

static __device__ inline i64 target_of(const reduce_args &a, i64 row) {
  return a.target_bytes == 8 ? ((const i64 *)a.target)[row] : ((const i32 *)a.target)[row];
}

template <typename T, typename A>
static __device__ inline void store(T *, const reduce_args &a, i64 row, A, const exps_of<A> &c) {
  A lse = c.largest + log_of(whole_exps(c)), loss = 0, smoothing = (A)a.smoothing;
  i64 target = target_of(a, row);
  if (target != a.ignore && (target < 0 || target >= a.count)) {
    set_nan(&loss);
  } else if (target != a.ignore) {
    A own = widen(((const T *)a.x)[first_element(a, row) + target * a.class_stride]);
    loss = ((A)1 - smoothing) * (lse - own);
    if (smoothing != 0) loss += smoothing * (lse - c.sum / (A)a.count);
  }
  ((A *)a.out[0])[row] = loss;
  ((A *)a.out[1])[row] = lse;
}

REDUCE_FLOATS(cross_entropy, exps_of)

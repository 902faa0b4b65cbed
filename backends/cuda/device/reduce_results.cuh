/* backends/cuda/device/reduce_results.cuh: writes a result of each kind of reduction. T: the elements of the operand;
 * `center`: the number that elements came less; E: the epilogue, whose function `after` gets each result's number and
 * its values (backends/cuda/pointwise/printed.h). Results that only the epilogue reads have no memory. */
#ifndef TN_CUDA_REDUCE_RESULTS_CUH
#define TN_CUDA_REDUCE_RESULTS_CUH

#include "backends/cuda/device/epilogue.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/reduce_args.cuh"

static __device__ inline i64 loops_offset(const reduce_loops &l, i64 at) {
  i64 offset = 0;
  for (int i = l.n - 1; i > 0; i--) {
    i64 outer = at / l.dims[i];
    offset += (at - outer * l.dims[i]) * l.strides[i];
    at = outer;
  }
  return offset + at * l.strides[0]; /* without loops both are 0 */
}

/* Where a result's first element is in the operand. */
static __device__ inline i64 first_element(const reduce_args &a, i64 result) {
  if (a.columns == 0) return loops_offset(a.kept, result);
  return loops_offset(a.kept, result / a.columns) + result % a.columns;
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &e, i64 result, A, const sum_of<A> &c) {
  T sum;
  put(&sum, c.value);
  if (a.out[0]) ((T *)a.out[0])[result] = sum;
  after(e, result, sum);
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &, i64 result, A, const largest_of<A> &c) {
  put((T *)a.out[0] + result, c.value);
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &, i64 result, A, const smallest_of<A> &c) {
  put((T *)a.out[0] + result, c.value);
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &, i64 result, A, const argmax_of<A> &c) {
  ((i32 *)a.out[0])[result] = (i32)c.at;
}

template <typename A, typename E>
static __device__ inline void store_pair(const reduce_args &a, const E &e, i64 result, A first, A second) {
  if (a.out[0]) ((A *)a.out[0])[result] = first;
  if (a.out[1]) ((A *)a.out[1])[result] = second;
  after(e, result, first, second);
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &e, i64 result, A center, const moments_of<A> &c) {
  A mean = center + c.mean, variance = c.squares / (A)a.count;
  if (a.count == 0) {
    set_nan(&mean);
    set_nan(&variance);
  }
  store_pair(a, e, result, mean, variance);
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &e, i64 result, A, const grads_of<A> &c) {
  store_pair(a, e, result, c.sum, c.dot * ((const A *)a.rstd)[result]);
}

static __device__ inline i64 target_of(const reduce_args &a, i64 row) {
  return a.target_bytes == 8 ? ((const i64 *)a.target)[row] : ((const i32 *)a.target)[row];
}

template <typename T, typename A, typename E>
static __device__ inline void store(T *, const reduce_args &a, const E &, i64 row, A, const exps_of<A> &c) {
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

#endif

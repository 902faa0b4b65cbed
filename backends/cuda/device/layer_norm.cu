/* backends/cuda/device/layer_norm.cu: layer norm of rows. The moments come from elements less the row's first, so that the
 * variance keeps its digits where the mean is far from 0. The result may be narrower than the operand; where it is not, it
 * may have the operand's address. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/rows.cuh"

template <typename T, int V, typename A>
static __device__ moments_of<A> layer_norm_moments(const layer_norm_args &a, i64 base, int lane, A center) {
  moments_run<A> s;
  begin(&s);
  for (i64 at = lane * V; at < a.n; at += a.lanes * V) {
    pack_of<T, V> p = load_pack<T, V>(a.x, base + at);
#pragma unroll
    for (int j = 0; j < V; j++) add(&s, widen(p.at[j]) - center, (A)0, 0);
  }
  return finished(s);
}

template <typename T, typename U, int V, typename A>
static __device__ void layer_norm_store(const layer_norm_args &a, i64 base, int lane, A mean, A rstd) {
  for (i64 at = lane * V; at < a.n; at += a.lanes * V) {
    pack_of<T, V> p = load_pack<T, V>(a.x, base + at);
    A y[V];
#pragma unroll
    for (int j = 0; j < V; j++) {
      y[j] = (widen(p.at[j]) - mean) * rstd;
      if (a.weight != 0) y[j] *= ((const A *)a.weight)[at + j];
      if (a.bias != 0) y[j] += ((const A *)a.bias)[at + j];
    }
    store_pack<U, V>(a.y, base + at, y);
  }
}

template <typename T, typename U> static __device__ void layer_norm_rows(const layer_norm_args &a) {
  typedef typename wide_of<T>::type A;
  __shared__ moments_of<A> shared[WARP];
  int lane = (int)threadIdx.x % a.lanes, groups = ROWS_THREADS / a.lanes;
  for (i64 first = (i64)blockIdx.x * groups; first < a.rows; first += (i64)gridDim.x * groups) {
    i64 row = first + (int)threadIdx.x / a.lanes, base = row * a.n;
    A center = row < a.rows ? widen(((const T *)a.x)[base]) : 0;
    moments_of<A> c;
    begin(&c);
    if (row < a.rows)
      c = a.vector ? layer_norm_moments<T, vector_of<T>::N>(a, base, lane, center)
                   : layer_norm_moments<T, 1>(a, base, lane, center);
    c = merge_group(c, a.lanes, shared);
    A mean = of_first(center + c.mean, a.lanes);
    A rstd = of_first((A)1 / sqrt_of(c.squares / (A)a.n + (A)a.epsilon), a.lanes);
    if (row >= a.rows) continue;
    if (lane == 0) {
      ((A *)a.mean)[row] = mean;
      ((A *)a.rstd)[row] = rstd;
    }
    if (a.vector)
      layer_norm_store<T, U, vector_of<T>::N>(a, base, lane, mean, rstd);
    else
      layer_norm_store<T, U, 1>(a, base, lane, mean, rstd);
  }
}

#define LAYER_NORM(name, T, U)                                                                                           \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) layer_norm_##name(const layer_norm_args a) {                \
    layer_norm_rows<T, U>(a);                                                                                            \
  }
LAYER_NORM(f16, f16, f16)
LAYER_NORM(bf16, bf16, bf16)
LAYER_NORM(f32, f32, f32)
LAYER_NORM(f64, f64, f64)
LAYER_NORM(f32_f16, f32, f16)
LAYER_NORM(f32_bf16, f32, bf16)

/* backends/cuda/device/pool.cu: max_pool2d, avg_pool2d and their gradients. A thread computes elements of the result; in
 * the gradients it collects from the windows that hold its element, so that sums have one order. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/pool.cuh"

/* Positions low .. high - 1; padded: their number with padding. */
struct pool_window {
  int low, high, padded;
};

/* The elements of x under window o. A last window that reaches beyond the padding counts only the positions within it. */
static __device__ inline pool_window window_at(const pool_axis &a, int o) {
  int start = o * (int)a.stride.divisor - a.padding, stop = start + a.kernel, end = a.in + a.padding;
  if (stop > end) stop = end;
  pool_window w = {start > 0 ? start : 0, stop < a.in ? stop : a.in, stop - start};
  return w;
}

/* The windows that hold element i of x. */
static __device__ inline pool_window windows_of(const pool_axis &a, int i) {
  int before = i + a.padding - a.kernel + 1, after = (int)divide((u32)(i + a.padding), a.stride) + 1;
  pool_window w = {before > 0 ? (int)divide((u32)(before + (int)a.stride.divisor - 1), a.stride) : 0,
                   after < a.out ? after : a.out, 0};
  return w;
}

static __device__ inline int divisor_of(const pool_args &a, const pool_window &w) {
  return a.include_pad ? w.padded : w.high - w.low;
}

/* An element of the result. */
template <typename I> struct pool_place {
  I plane, row, column, lane;
};

template <typename I> static __device__ inline pool_place<I> pool_place_of(const pool_args &a, I i) {
  pool_place<I> p;
  p.lane = split(&i, a.lanes);
  p.column = split(&i, a.columns);
  p.row = split(&i, a.rows);
  p.plane = i;
  return p;
}

/* The place in the operand, whose planes are height x width, of position 0 of the plane of p. */
template <typename I>
static __device__ inline i64 plane_start(const pool_args &a, const pool_place<I> &p, int height, int width) {
  return (i64)p.plane * height * width * a.lanes.divisor + (i64)p.lane;
}

/* NaN is larger than every number; the first of equal elements wins. */
template <typename T, typename W, typename I> static __device__ inline void max_element(const pool_args &a, I i) {
  const pool_place<I> p = pool_place_of<I>(a, i);
  const pool_window v = window_at(a.axis[0], (int)p.row), h = window_at(a.axis[1], (int)p.column);
  const int width = a.axis[1].in, lanes = (int)a.lanes.divisor;
  const T *x = (const T *)a.from + plane_start(a, p, a.axis[0].in, width);
  int at = v.low * width + h.low;
  T found = x[(i64)at * lanes];
  W best = widen(found);
  for (int r = v.low; r < v.high; r++)
    for (int c = h.low; c < h.high; c++) {
      T element = x[(i64)(r * width + c) * lanes];
      W value = widen(element);
      bool larger = value > best || (value != value && best == best);
      best = larger ? value : best;
      found = larger ? element : found;
      at = larger ? r * width + c : at;
    }
  ((T *)a.to)[i] = found;
  a.index[i] = at;
}

template <typename T, typename W, typename I> static __device__ inline void max_grad_element(const pool_args &a, I i) {
  const pool_place<I> p = pool_place_of<I>(a, i);
  const pool_window v = windows_of(a.axis[0], (int)p.row), h = windows_of(a.axis[1], (int)p.column);
  const int width = a.axis[1].out, lanes = (int)a.lanes.divisor, here = (int)p.row * a.axis[1].in + (int)p.column;
  const i64 start = plane_start(a, p, a.axis[0].out, width);
  W sum = 0;
  for (int r = v.low; r < v.high; r++)
    for (int c = h.low; c < h.high; c++) {
      i64 o = start + (i64)(r * width + c) * lanes;
      if (a.index[o] == here) sum += widen(((const T *)a.from)[o]);
    }
  narrow((T *)a.to + i, sum);
}

template <typename T, typename W, typename I> static __device__ inline void avg_element(const pool_args &a, I i) {
  const pool_place<I> p = pool_place_of<I>(a, i);
  const pool_window v = window_at(a.axis[0], (int)p.row), h = window_at(a.axis[1], (int)p.column);
  const int width = a.axis[1].in, lanes = (int)a.lanes.divisor;
  const T *x = (const T *)a.from + plane_start(a, p, a.axis[0].in, width);
  W sum = 0;
  for (int r = v.low; r < v.high; r++)
    for (int c = h.low; c < h.high; c++) sum += widen(x[(i64)(r * width + c) * lanes]);
  narrow((T *)a.to + i, sum / (W)(divisor_of(a, v) * divisor_of(a, h)));
}

template <typename T, typename W, typename I> static __device__ inline void avg_grad_element(const pool_args &a, I i) {
  const pool_place<I> p = pool_place_of<I>(a, i);
  const pool_window v = windows_of(a.axis[0], (int)p.row), h = windows_of(a.axis[1], (int)p.column);
  const int width = a.axis[1].out, lanes = (int)a.lanes.divisor;
  const T *dy = (const T *)a.from + plane_start(a, p, a.axis[0].out, width);
  W sum = 0;
  for (int r = v.low; r < v.high; r++) {
    int rows = divisor_of(a, window_at(a.axis[0], r));
    for (int c = h.low; c < h.high; c++)
      sum += widen(dy[(i64)(r * width + c) * lanes]) / (W)(rows * divisor_of(a, window_at(a.axis[1], c)));
  }
  narrow((T *)a.to + i, sum);
}

#define POOL_KERNEL(op, suffix, T, W, I)                                                                               \
  extern "C" __global__ void __launch_bounds__(256, 1) op##_pool_##suffix(const pool_args a) {                            \
    for (I i = (I)grid_first(); i < (I)a.count; i += (I)grid_step()) op##_element<T, W, I>(a, i);                      \
  }
#define POOL_OF(name, T, W)                                                                                            \
  POOL_KERNEL(max, name, T, W, u32)                                                                                    \
  POOL_KERNEL(max, name##_long, T, W, i64)                                                                             \
  POOL_KERNEL(max_grad, name, T, W, u32)                                                                               \
  POOL_KERNEL(max_grad, name##_long, T, W, i64)                                                                        \
  POOL_KERNEL(avg, name, T, W, u32)                                                                                    \
  POOL_KERNEL(avg, name##_long, T, W, i64)                                                                             \
  POOL_KERNEL(avg_grad, name, T, W, u32)                                                                               \
  POOL_KERNEL(avg_grad, name##_long, T, W, i64)

POOL_OF(f16, f16, f32)
POOL_OF(bf16, bf16, f32)
POOL_OF(f32, f32, f32)
POOL_OF(f64, f64, f64)

/* backends/cuda/device/pool_kernels.cuh: max_pool2d, avg_pool2d and their gradients. A thread computes elements of the
 * result; in the gradients it collects from the windows that hold its element, so that sums have one order. F: the
 * prologue, which makes x of max_pool2d, or dy of its gradient (prologue.cuh). */
#ifndef TN_CUDA_POOL_KERNELS_CUH
#define TN_CUDA_POOL_KERNELS_CUH

#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/pool.cuh"
#include "backends/cuda/device/prologue.cuh"

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
template <typename W> static __device__ inline bool is_larger(W value, W best) {
  return value > best || (value != value && best == best);
}

template <typename T, typename W, typename I, typename F>
static __device__ inline void max_element(const pool_args &a, const F &, I i) {
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
      bool larger = is_larger(value, best);
      best = larger ? value : best;
      found = larger ? element : found;
      at = larger ? r * width + c : at;
    }
  ((T *)a.to)[i] = found;
  a.index[i] = at;
}

template <typename T, typename W, typename I, typename F>
static __device__ inline void max_grad_element(const pool_args &a, const F &f, I i) {
  const pool_place<I> p = pool_place_of<I>(a, i);
  const pool_window v = windows_of(a.axis[0], (int)p.row), h = windows_of(a.axis[1], (int)p.column);
  const int width = a.axis[1].out, lanes = (int)a.lanes.divisor, here = (int)p.row * a.axis[1].in + (int)p.column;
  const i64 start = plane_start(a, p, a.axis[0].out, width);
  W sum = 0;
  for (int r = v.low; r < v.high; r++)
    for (int c = h.low; c < h.high; c++) {
      i64 o = start + (i64)(r * width + c) * lanes;
      if (a.index[o] == here) sum += widen(element_of<T>(f, a.from, o));
    }
  narrow((T *)a.to + i, sum);
}

template <typename T, typename W, typename I, typename F>
static __device__ inline void avg_element(const pool_args &a, const F &, I i) {
  const pool_place<I> p = pool_place_of<I>(a, i);
  const pool_window v = window_at(a.axis[0], (int)p.row), h = window_at(a.axis[1], (int)p.column);
  const int width = a.axis[1].in, lanes = (int)a.lanes.divisor;
  const T *x = (const T *)a.from + plane_start(a, p, a.axis[0].in, width);
  W sum = 0;
  for (int r = v.low; r < v.high; r++)
    for (int c = h.low; c < h.high; c++) sum += widen(x[(i64)(r * width + c) * lanes]);
  narrow((T *)a.to + i, sum / (W)(divisor_of(a, v) * divisor_of(a, h)));
}

template <typename T, typename W, typename I, typename F>
static __device__ inline void avg_grad_element(const pool_args &a, const F &, I i) {
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

/* ---- maxima of what a prologue makes: a block makes the elements under a tile of windows once ---- */

/* The places of a tile: outputs and elements of x, from those on. */
struct tile_place {
  i64 plane;
  int row, column, lane, in_row, in_column;
};

static __device__ inline tile_place tile_place_of(const pool_args &a, const pool_tile &t, u32 i) {
  tile_place p;
  p.lane = (int)split(&i, t.tiles[2]) * t.lanes;
  p.column = (int)split(&i, t.tiles[1]) * t.columns;
  p.row = (int)split(&i, t.tiles[0]) * t.rows;
  p.plane = i;
  p.in_row = p.row * (int)a.axis[0].stride.divisor - a.axis[0].padding;
  p.in_column = p.column * (int)a.axis[1].stride.divisor - a.axis[1].padding;
  return p;
}

template <typename T, typename F>
static __device__ inline void make_tile(const pool_args &a, const pool_tile &t, const F &f, const tile_place &p, T *made) {
  enum { W = F::WIDTH };
  const int lanes = (int)a.lanes.divisor, height = a.axis[0].in, width = a.axis[1].in;
  const u32 units = (u32)(t.in_rows * t.in_columns * (t.lanes / W));
  for (u32 unit = threadIdx.x; unit < units; unit += blockDim.x) {
    u32 pixel = unit;
    int lane = (int)split(&pixel, t.packs) * W, at = (int)pixel * t.lanes + lane;
    int column = p.in_column + (int)split(&pixel, t.pixels), row = p.in_row + (int)pixel;
    if (row < 0 || row >= height || column < 0 || column >= width || p.lane + lane >= lanes) continue;
    i64 from = ((p.plane * height + row) * width + column) * lanes + p.lane + lane;
    typename F::fetched loads;
    T x[W], y[W];
    fetch(f, from, W, t.aligned != 0, &loads);
    compute(f, loads, from, W, t.aligned != 0, false, x, y);
#pragma unroll
    for (int k = 0; k < W; k++) made[at + k] = x[k];
  }
}

template <typename T, typename A>
static __device__ inline void max_of_tile(const pool_args &a, const pool_tile &t, const tile_place &p, const T *made,
                                          u32 i) {
  u32 rest = i;
  const int lane = (int)split(&rest, t.outputs[1]), o = p.column + (int)split(&rest, t.outputs[0]), r = p.row + (int)rest;
  const int lanes = (int)a.lanes.divisor, width = a.axis[1].in;
  if (r >= a.axis[0].out || o >= a.axis[1].out || p.lane + lane >= lanes) return;
  const pool_window v = window_at(a.axis[0], r), h = window_at(a.axis[1], o);
  int at = v.low * width + h.low;
  T found = made[((v.low - p.in_row) * t.in_columns + h.low - p.in_column) * t.lanes + lane];
  A best = widen(found);
  for (int row = v.low; row < v.high; row++)
    for (int column = h.low; column < h.high; column++) {
      T element = made[((row - p.in_row) * t.in_columns + column - p.in_column) * t.lanes + lane];
      A value = widen(element);
      bool larger = is_larger(value, best);
      best = larger ? value : best;
      found = larger ? element : found;
      at = larger ? row * width + column : at;
    }
  i64 to = ((p.plane * a.axis[0].out + r) * a.axis[1].out + o) * lanes + p.lane + lane;
  ((T *)a.to)[to] = found;
  a.index[to] = at;
}

template <typename T, typename A, typename F>
static __device__ void max_of_tiles(const pool_args &a, const pool_tile &t, const F &f) {
  __shared__ T made[POOL_TILE_BYTES / sizeof(T)];
  const u32 outputs = (u32)(t.rows * t.columns * t.lanes);
  for (i64 tile = blockIdx.x; tile < t.count; tile += gridDim.x) {
    const tile_place p = tile_place_of(a, t, (u32)tile);
    make_tile(a, t, f, p, made);
    __syncthreads();
    for (u32 i = threadIdx.x; i < outputs; i += blockDim.x) max_of_tile<T, A>(a, t, p, made, i);
    __syncthreads();
  }
}

/* With a printed prologue, whose words are behind the pool's arguments. */
#define POOL_WITH_PROLOGUE(T, W)                                                                                       \
  struct joined_args {                                                                                                 \
    pool_args pool;                                                                                                    \
    pool_tile tile;                                                                                                    \
    front::words prologue;                                                                                             \
  };                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(256) max_pool(const joined_args a) {                                         \
    max_of_tiles<T, W>(a.pool, a.tile, a.prologue);                                                                    \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256) max_grad_pool(const joined_args a) {                                    \
    for (u32 i = (u32)grid_first(); i < (u32)a.pool.count; i += (u32)grid_step())                                      \
      max_grad_element<T, W, u32>(a.pool, a.prologue, i);                                                              \
  }

#endif

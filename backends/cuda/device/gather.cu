/* backends/cuda/device/gather.cu: elements by indices along an axis. A thread of a scatter applies all updates that can
 * have the same target, in their order: no atomics, and the same bits in every run. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/gather.cuh"

static __device__ inline i64 gather_index(const index_args &a, i64 at) {
  return a.is_long ? ((const i64 *)a.index)[at] : (i64)((const i32 *)a.index)[at];
}

template <typename U> static __device__ void gather(const index_args &a) {
  for (i64 i = grid_first(); i < a.count; i += grid_step()) {
    i64 rest = i, wide = 0, place = 0;
    for (int d = a.rank - 1; d >= 0; d--) {
      i64 before = rest / a.dims[d], k = rest - before * a.dims[d];
      rest = before;
      if (d == a.axis)
        place = k;
      else
        wide += k * a.strides[d];
    }
    i64 id = gather_index(a, a.vector ? place : i);
    bool inside = id >= 0 && id < a.size;
    ((U *)a.y)[i] = inside ? ((const U *)a.x)[wide + id * a.strides[a.axis]] : (U)a.missing;
  }
}

#define GATHER(bytes, U) \
  extern "C" __global__ void __launch_bounds__(256, 1) gather_##bytes(const index_args a) { gather<U>(a); }
GATHER(1, u8)
GATHER(2, u16)
GATHER(4, u32)
GATHER(8, u64)

/* ---- scatter ---- */

/* The modes of TN_SCATTER_... */
template <typename A> static __device__ inline A scatter_join(int mode, A x, A update) {
  if (mode == 0) return plus(x, update);
  if (mode == 1) return larger(x, update);
  if (mode == 2) return smaller(x, update);
  return update;
}

template <typename T> static __device__ void scatter(const index_args &a) {
  typedef decltype(widen(T())) A;
  for (i64 i = grid_first(); i < a.count; i += grid_step()) {
    i64 rest = i, wide = 0, reach = 0;
    for (int d = a.rank - 1; d >= 0; d--) {
      if (d == a.axis) continue;
      i64 before = rest / a.dims[d], k = rest - before * a.dims[d];
      rest = before;
      wide += k * a.strides[d];
      reach += k * a.reach_strides[d];
    }
    for (i64 k = 0; k < a.dims[a.axis]; k++) {
      i64 from = reach + k * a.reach_strides[a.axis], id = gather_index(a, a.vector ? k : from);
      if (id < 0 || id >= a.size) continue;
      A *to = (A *)a.y + wide + id * a.strides[a.axis];
      *to = scatter_join(a.mode, *to, widen(((const T *)a.updates)[from]));
    }
  }
}

/* To the type of sums, and back. */
template <typename T> static __device__ void scatter_begin(const index_args &a) {
  for (i64 i = grid_first(); i < a.count; i += grid_step())
    ((decltype(widen(T())) *)a.y)[i] = widen(((const T *)a.x)[i]);
}
template <typename T> static __device__ void scatter_end(const index_args &a) {
  for (i64 i = grid_first(); i < a.count; i += grid_step())
    narrow((T *)a.y + i, ((const decltype(widen(T())) *)a.x)[i]);
}

#define SCATTER(T) \
  extern "C" __global__ void __launch_bounds__(256, 1) scatter_##T(const index_args a) { scatter<T>(a); } \
  extern "C" __global__ void __launch_bounds__(256, 1) scatter_begin_##T(const index_args a) { scatter_begin<T>(a); } \
  extern "C" __global__ void __launch_bounds__(256, 1) scatter_end_##T(const index_args a) { scatter_end<T>(a); }
SCATTER(f16)
SCATTER(bf16)
SCATTER(f32)
SCATTER(f64)
SCATTER(i32)
SCATTER(i64)

/* backends/cuda/device/crop.cu: a part of each picture of a batch; elements outside of the picture are zero. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/movement.cuh"

static __device__ inline i64 crop_start_of(const void *pairs, int is_long, i64 at) {
  if (pairs == 0) return 0;
  return is_long ? ((const i64 *)pairs)[at] : (i64)((const i32 *)pairs)[at];
}

/* The place in the picture of position `at` of the part along an axis. A start beyond the bounds leaves zeros only; the
 * bounds keep the sum small. */
template <typename I> static __device__ inline i64 crop_place(const crop_args &a, int axis, I sample, I at) {
  i64 in = a.in[axis], out = a.out[axis].divisor, pair = 2 * (i64)sample + axis;
  i64 start = crop_start_of(a.start, a.start_is_long, pair);
  start = start < -out ? -out : start > in ? in : start;
  return start + (crop_start_of(a.mirror, a.mirror_is_long, pair) != 0 ? out - 1 - (i64)at : (i64)at);
}

template <typename T, typename I> static __device__ void crop(const crop_args &a) {
  for (I i = (I)grid_first(); i < (I)a.count; i += (I)grid_step()) {
    I plane = i;
    I x = split(&plane, a.out[1]), y = split(&plane, a.out[0]);
    I sample = divide(plane, a.planes);
    i64 row = crop_place(a, 0, sample, y), column = crop_place(a, 1, sample, x);
    bool inside = row >= 0 && row < a.in[0] && column >= 0 && column < a.in[1];
    ((T *)a.to)[i] = inside ? ((const T *)a.from)[((i64)plane * a.in[0] + row) * a.in[1] + column] : (T)0;
  }
}

#define CROP_OF(name, T)                                                                                               \
  extern "C" __global__ void __launch_bounds__(256, 1) crop_##name(const crop_args a) { crop<T, u32>(a); }               \
  extern "C" __global__ void __launch_bounds__(256, 1) crop_##name##_long(const crop_args a) { crop<T, i64>(a); }

CROP_OF(1, u8)
CROP_OF(2, u16)
CROP_OF(4, u32)
CROP_OF(8, u64)

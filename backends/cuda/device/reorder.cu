/* backends/cuda/device/reorder.cu: copies a tensor to another layout. A thread writes positions of the result: it finds
 * their coordinates, and the element's place in the operand. Positions without an element are zero. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/reorder.cuh"

/* The coordinates of a position; false: it holds no element. */
static __device__ bool coordinates_of(const reorder_args &a, i64 position, i64 *c) {
  for (int d = 0; d < a.rank; d++) c[d] = 0;
  for (int i = a.n_to - 1; i >= 0; i--) {
    const reorder_axis &axis = a.to_axis[i];
    c[axis.dim] += position % axis.extent * axis.scale;
    position /= axis.extent;
  }
  for (int d = 0; d < a.rank; d++)
    if (c[d] >= a.dims[d]) return false;
  return true;
}

static __device__ i64 place_of(const reorder_args &a, const i64 *c) {
  i64 place = 0;
  for (int i = 0; i < a.n_from; i++) {
    const reorder_axis &axis = a.from_axis[i];
    place += c[axis.dim] / axis.scale % axis.extent * axis.stride;
  }
  return place;
}

template <typename T> static __device__ void reorder(const reorder_args &a) {
  i64 c[REORDER_DIMS];
  for (i64 i = grid_first(); i < a.count; i += grid_step())
    ((T *)a.to)[i] = coordinates_of(a, i, c) ? ((const T *)a.from)[place_of(a, c)] : (T)0;
}

extern "C" __global__ void __launch_bounds__(256) reorder_1(const reorder_args a) { reorder<u8>(a); }
extern "C" __global__ void __launch_bounds__(256) reorder_2(const reorder_args a) { reorder<u16>(a); }
extern "C" __global__ void __launch_bounds__(256) reorder_4(const reorder_args a) { reorder<u32>(a); }
extern "C" __global__ void __launch_bounds__(256) reorder_8(const reorder_args a) { reorder<u64>(a); }

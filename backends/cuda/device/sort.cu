/* backends/cuda/device/sort.cu: sorted rows, by the bitonic sort (K. E. Batcher, "Sorting networks and their applications",
 * 1968) of pairs of a key and an index. Keys are unsigned numbers in the order of the elements; pairs are distinct, so the
 * sort is stable. A block sorts a row of SORT_BLOCK elements in shared memory; longer rows take launches over the workspace
 * for steps of larger distance. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/gather.cuh"

/* Negative floats have their sign bit set: their order is inverted. NaN is above all, and -0 is 0. */
static __device__ inline u64 sort_key(f32 x) {
  u32 bits = bits_of_f32(x == 0 ? 0.0f : x);
  return x != x ? 0xffffffffu : bits >> 31 ? ~bits : bits | 0x80000000u;
}
static __device__ inline u64 sort_key(f64 x) {
  u64 bits = (u64)__double_as_longlong(x == 0 ? 0.0 : x);
  return x != x ? ~0ull : bits >> 63 ? ~bits : bits | 1ull << 63;
}
static __device__ inline u64 sort_key(i32 x) { return (u32)x ^ 0x80000000u; }
static __device__ inline u64 sort_key(i64 x) { return (u64)x ^ 1ull << 63; }

/* The place of element `at` of a row. */
static __device__ inline i64 sort_place(const bitonic_args &a, i64 row, i64 n, i64 at) {
  i64 outer = row / a.inner;
  return (outer * n + at) * a.inner + (row - outer * a.inner);
}

/* Behind the row are the largest keys, with indices behind all others. */
template <typename T> static __device__ inline u64 sort_load(const bitonic_args &a, i64 row, i64 at) {
  if (at >= a.n) return ~0ull;
  u64 key = sort_key(widen(((const T *)a.x)[sort_place(a, row, a.n, at)]));
  return a.descending ? ~key : key;
}

template <typename T> static __device__ inline void sort_store(const bitonic_args &a, i64 row, i64 at, u32 index) {
  if (at >= a.k) return;
  i64 to = sort_place(a, row, a.k, at);
  ((T *)a.y)[to] = ((const T *)a.x)[sort_place(a, row, a.n, index)];
  a.index[to] = (i32)index;
}

/* Brings the pair of `low` and low + distance into the order of its run. */
static __device__ inline void sort_pair(u64 *keys, u32 *indices, i64 low, i64 distance, bool ascending) {
  u64 x = keys[low], y = keys[low + distance];
  u32 i = indices[low], j = indices[low + distance];
  if ((x > y || (x == y && i > j)) != ascending) return;
  keys[low] = y;
  keys[low + distance] = x;
  indices[low] = j;
  indices[low + distance] = i;
}

/* The steps of distance `distance` and below in runs of `run` elements, for `size` elements in shared memory of which the
 * first is element `first` of the row. */
static __device__ inline void sort_steps(u64 *keys, u32 *indices, i64 first, int size, i64 run, int distance) {
  for (; distance > 0; distance /= 2) {
    for (int p = (int)threadIdx.x; p < size / 2; p += SORT_THREADS) {
      int low = 2 * p - (p & (distance - 1));
      sort_pair(keys, indices, low, distance, ((first + low) & run) == 0);
    }
    __syncthreads();
  }
}

template <typename T> static __device__ void sort_rows(const bitonic_args &a) {
  __shared__ u64 keys[SORT_BLOCK];
  __shared__ u32 indices[SORT_BLOCK];
  int size = (int)a.size;
  for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
    for (int at = (int)threadIdx.x; at < size; at += SORT_THREADS) {
      keys[at] = sort_load<T>(a, row, at);
      indices[at] = (u32)at;
    }
    __syncthreads();
    for (int run = 2; run <= size; run *= 2) sort_steps(keys, indices, 0, size, run, run / 2);
    for (int at = (int)threadIdx.x; at < size; at += SORT_THREADS) sort_store<T>(a, row, at, indices[at]);
    __syncthreads();
  }
}

/* ---- rows in the workspace ---- */

template <typename T> static __device__ void sort_fill(const bitonic_args &a) {
  for (i64 i = grid_first(); i < a.rows * a.size; i += grid_step()) {
    i64 at = i & (a.size - 1);
    a.keys[i] = sort_load<T>(a, i / a.size, at);
    a.indices[i] = (u32)at;
  }
}

template <typename T> static __device__ void sort_take(const bitonic_args &a) {
  for (i64 i = grid_first(); i < a.rows * a.size; i += grid_step())
    sort_store<T>(a, i / a.size, i & (a.size - 1), a.indices[i]);
}

/* Blocks of SORT_BLOCK elements: all runs up to that length where a.run is SORT_BLOCK, else the last steps of one. */
extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1) sort_blocks(const bitonic_args a) {
  __shared__ u64 keys[SORT_BLOCK];
  __shared__ u32 indices[SORT_BLOCK];
  for (i64 block = blockIdx.x; block < a.rows * a.size / SORT_BLOCK; block += gridDim.x) {
    i64 base = block * SORT_BLOCK, first = base & (a.size - 1);
    for (int at = (int)threadIdx.x; at < SORT_BLOCK; at += SORT_THREADS) {
      keys[at] = a.keys[base + at];
      indices[at] = a.indices[base + at];
    }
    __syncthreads();
    for (i64 run = a.run > SORT_BLOCK ? a.run : 2; run <= a.run; run *= 2)
      sort_steps(keys, indices, first, SORT_BLOCK, run, (int)(run > SORT_BLOCK ? SORT_BLOCK / 2 : run / 2));
    for (int at = (int)threadIdx.x; at < SORT_BLOCK; at += SORT_THREADS) {
      a.keys[base + at] = keys[at];
      a.indices[base + at] = indices[at];
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1) sort_step(const bitonic_args a) {
  for (i64 p = grid_first(); p < a.rows * a.size / 2; p += grid_step()) {
    i64 low = 2 * p - (p & (a.distance - 1));
    sort_pair(a.keys, a.indices, low, a.distance, (low & (a.size - 1) & a.run) == 0);
  }
}

#define SORT(T) \
  extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1) sort_rows_##T(const bitonic_args a) { sort_rows<T>(a); } \
  extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1) sort_fill_##T(const bitonic_args a) { sort_fill<T>(a); } \
  extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1) sort_take_##T(const bitonic_args a) { sort_take<T>(a); }
SORT(f16)
SORT(bf16)
SORT(f32)
SORT(f64)
SORT(i32)
SORT(i64)

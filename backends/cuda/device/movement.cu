/* backends/cuda/device/movement.cu: copies of elements to other places: transpose, slice, pad, concat, pack, reorder. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/movement.cuh"

struct __align__(16) words4 {
  u32 v[4];
};

static __device__ inline void clear(u8 *x) { *x = 0; }
static __device__ inline void clear(u16 *x) { *x = 0; }
static __device__ inline void clear(u32 *x) { *x = 0; }
static __device__ inline void clear(u64 *x) { *x = 0; }
static __device__ inline void clear(words4 *x) { x->v[0] = x->v[1] = x->v[2] = x->v[3] = 0; }

/* ---- gather ---- */

template <typename T, typename I> static __device__ void gather(const gather_args &a) {
  for (I i = (I)grid_first(); i < (I)a.count; i += (I)grid_step()) {
    I rest = i;
    i64 from = a.first;
#pragma unroll
    for (int d = MOVEMENT_RANK - 1; d > 0; d--)
      if (d < a.rank) from += (i64)split(&rest, a.dims[d]) * a.stride[d];
    ((T *)a.to)[i] = ((const T *)a.from)[from + (i64)rest * a.stride[0]];
  }
}

/* ---- tiles: read along rows of the operand, written along columns of the result ---- */

struct tile_place {
  i64 row, column, to, from; /* the first element */
};

static __device__ inline tile_place place_of_block(const tiles_args &a) {
  u32 rest = blockIdx.x;
  tile_place p = {0, 0, a.to_first, a.from_first};
  p.row = (i64)split(&rest, a.row_tiles) * MOVEMENT_TILE;
  p.column = (i64)split(&rest, a.column_tiles) * MOVEMENT_TILE;
#pragma unroll
  for (int d = MOVEMENT_RANK - 1; d >= 0; d--)
    if (d < a.rank) {
      i64 at = split(&rest, a.dims[d]);
      p.to += at * a.to_stride[d];
      p.from += at * a.from_stride[d];
    }
  return p;
}

template <typename T> static __device__ void tiles(const tiles_args &a) {
  __shared__ T tile[MOVEMENT_TILE][MOVEMENT_TILE + 1]; /* [column][row] */
  const tile_place p = place_of_block(a);
  const T *from = (const T *)a.from + p.from;
  T *to = (T *)a.to + p.to;
  int x = (int)threadIdx.x, y = (int)threadIdx.y;
#pragma unroll
  for (int i = y; i < MOVEMENT_TILE; i += MOVEMENT_TILE_ROWS)
    if (p.row + x < a.rows && p.column + i < a.columns)
      tile[i][x] = from[p.row + x + (p.column + i) * a.from_column];
  __syncthreads();
#pragma unroll
  for (int i = y; i < MOVEMENT_TILE; i += MOVEMENT_TILE_ROWS)
    if (p.row + i < a.rows && p.column + x < a.columns)
      to[(p.row + i) * a.to_row + p.column + x] = tile[x][i];
}

/* ---- pad ---- */

/* The place in the operand of coordinate c of dimension d, or -1 where the coordinate is padding. */
template <typename I> static __device__ inline i64 place_in_operand(const pad_args &a, int d, I c) {
  i64 distance = (i64)c - a.low[d];
  if (distance < 0) return -1;
  if (a.step[d].divisor == 1) return distance < a.size[d] ? distance : -1;
  I at = (I)distance;
  return split(&at, a.step[d]) == 0 && (i64)at < a.size[d] ? (i64)at : -1;
}

template <typename T, typename I> static __device__ void pad(const pad_args &a) {
  for (I i = (I)grid_first(); i < (I)a.count; i += (I)grid_step()) {
    I rest = i;
    i64 from = 0;
    bool inside = true;
    T value;
    clear(&value);
#pragma unroll
    for (int d = MOVEMENT_RANK - 1; d >= 0; d--)
      if (d < a.rank) {
        i64 at = place_in_operand(a, d, split(&rest, a.dims[d]));
        inside = inside && at >= 0;
        from += at * a.stride[d];
      }
    if (inside) value = ((const T *)a.from)[from];
    ((T *)a.to)[i] = value;
  }
}

/* ---- parts: a block copies a chunk of one part ---- */

static __device__ inline int part_of_block(const parts_args &a) {
  int low = 0, high = a.n; /* the last part that begins at this block or before */
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (a.part[middle].first_block <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static __device__ inline i64 place_in_result(const movement_part &p, i64 i) {
  if (p.run.divisor == 0) return p.to_first + i;
  i64 row = p.count < 0x80000000ll ? (i64)divide((u32)i, p.run) : divide(i, p.run);
  return p.to_first + row * p.to_row + (i - row * p.run.divisor);
}

/* Elements begin .. end - 1, `sizeof(U) / sizeof(T)` at a time. */
template <typename T, typename U>
static __device__ inline void copy_part(void *to, const movement_part &p, i64 begin, i64 end) {
  const int n = (int)(sizeof(U) / sizeof(T));
  for (i64 i = begin + (i64)threadIdx.x * n; i + n <= end; i += (i64)blockDim.x * n) {
    U value;
    clear(&value);
    if (p.from != 0) value = *(const U *)((const T *)p.from + i);
    *(U *)((T *)to + place_in_result(p, i)) = value;
  }
}

template <typename T> static __device__ void parts(const parts_args &a) {
  const movement_part &p = a.part[part_of_block(a)];
  const int n = (int)(sizeof(words4) / sizeof(T));
  i64 begin = (i64)(blockIdx.x - p.first_block) * MOVEMENT_CHUNK;
  i64 end = begin + MOVEMENT_CHUNK < p.count ? begin + MOVEMENT_CHUNK : p.count;
  if (!p.vector) {
    copy_part<T, T>(a.to, p, begin, end);
    return;
  }
  copy_part<T, words4>(a.to, p, begin, end);
  copy_part<T, T>(a.to, p, end - (end - begin) % n, end);
}

#define MOVEMENT_OF(name, T)                                                                                           \
  extern "C" __global__ void __launch_bounds__(256) gather_##name(const gather_args a) { gather<T, u32>(a); }         \
  extern "C" __global__ void __launch_bounds__(256) gather_##name##_long(const gather_args a) { gather<T, i64>(a); }  \
  extern "C" __global__ void __launch_bounds__(256) pad_##name(const pad_args a) { pad<T, u32>(a); }                  \
  extern "C" __global__ void __launch_bounds__(256) pad_##name##_long(const pad_args a) { pad<T, i64>(a); }
#define MOVEMENT_OF_ELEMENTS(name, T)                                                                                  \
  extern "C" __global__ void __launch_bounds__(256) tiles_##name(const tiles_args a) { tiles<T>(a); }                 \
  extern "C" __global__ void __launch_bounds__(256) parts_##name(const parts_args a) { parts<T>(a); }

MOVEMENT_OF(1, u8)
MOVEMENT_OF(2, u16)
MOVEMENT_OF(4, u32)
MOVEMENT_OF(8, u64)
MOVEMENT_OF(16, words4)
MOVEMENT_OF_ELEMENTS(1, u8)
MOVEMENT_OF_ELEMENTS(2, u16)
MOVEMENT_OF_ELEMENTS(4, u32)
MOVEMENT_OF_ELEMENTS(8, u64)

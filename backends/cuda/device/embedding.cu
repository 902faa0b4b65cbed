/* backends/cuda/device/embedding.cu: rows of a table by their numbers, and the sort by number for the gradient. The row of
 * a number outside the table is NaN. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/embedding.cuh"

static __device__ inline i64 id_at(const void *ids, int bytes, i64 at) {
  return bytes == 8 ? ((const i64 *)ids)[at] : ((const i32 *)ids)[at];
}

/* ---- embedding ---- */

struct __align__(16) unit_16 {
  u64 low, high;
};
static __device__ inline void set_unit(unit_16 *to, u64 bits) { to->low = to->high = bits; }
static __device__ inline void set_unit(u64 *to, u64 bits) { *to = bits; }
static __device__ inline void set_unit(u32 *to, u64 bits) { *to = (u32)bits; }
static __device__ inline void set_unit(u16 *to, u64 bits) { *to = (u16)bits; }

template <typename U> static __device__ void embedding_rows(const embedding_args &a) {
  int lane = (int)threadIdx.x % a.width, groups = EMBEDDING_THREADS / a.width;
  i64 step = (i64)gridDim.x * groups;
  for (i64 i = (i64)blockIdx.x * groups + (int)threadIdx.x / a.width; i < a.count; i += step) {
    i64 id = id_at(a.ids, a.id_bytes, i);
    bool valid = id >= 0 && id < a.rows;
    const U *from = (const U *)a.table + id * a.units;
    U *to = (U *)a.y + i * a.units, nan;
    set_unit(&nan, a.nan);
    for (i64 k = lane; k < a.units; k += a.width) to[k] = valid ? from[k] : nan;
  }
}

#define EMBEDDING(bytes, U)                                                                                              \
  extern "C" __global__ void __launch_bounds__(EMBEDDING_THREADS) embedding_##bytes(const embedding_args a) {            \
    embedding_rows<U>(a);                                                                                                \
  }
EMBEDDING(2, u16)
EMBEDDING(4, u32)
EMBEDDING(8, u64)
EMBEDDING(16, unit_16)

/* ---- the stable sort of positions by id: in each pass three launches count digits, add counts up, and move ---- */

static __device__ inline u32 key_at(const sort_args &a, i64 at) {
  if (a.ids == 0) return a.from_keys[at];
  i64 id = id_at(a.ids, a.id_bytes, at);
  return (u32)(id >= 0 && id < a.rows ? id : a.rows);
}

static __device__ inline u32 digit_of(const sort_args &a, u32 key) { return key >> a.shift & (SORT_DIGITS - 1); }

extern "C" __global__ void __launch_bounds__(EMBEDDING_THREADS) sort_count(const sort_args a) {
  __shared__ u32 counts[SORT_DIGITS];
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int round = 0; round < SORT_ROUNDS; round++) {
    i64 at = (i64)blockIdx.x * SORT_TILE + round * EMBEDDING_THREADS + (int)threadIdx.x;
    if (at < a.count) atomicAdd(&counts[digit_of(a, key_at(a, at))], 1u);
  }
  __syncthreads();
  a.counts[(i64)threadIdx.x * a.blocks + blockIdx.x] = counts[threadIdx.x];
}

/* The sum over the block; all threads get it. */
static __device__ u32 sort_block_sum(u32 x, u32 *shared) {
  shared[threadIdx.x] = x;
  for (int half = EMBEDDING_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  x = shared[0];
  __syncthreads();
  return x;
}

/* The sum over this thread and those before it. */
static __device__ u32 sort_running_sum(u32 x, u32 *shared) {
  shared[threadIdx.x] = x;
  for (int apart = 1; apart < EMBEDDING_THREADS; apart *= 2) {
    __syncthreads();
    u32 before = (int)threadIdx.x >= apart ? shared[threadIdx.x - apart] : 0;
    __syncthreads();
    shared[threadIdx.x] += before;
  }
  x = shared[threadIdx.x];
  __syncthreads();
  return x;
}

/* Block d turns the counts of digit d into the first places of its keys: behind those of all smaller digits, which it
 * adds up itself. It reads from `counts` and writes to the second half. */
extern "C" __global__ void __launch_bounds__(EMBEDDING_THREADS) sort_add_up(const sort_args a) {
  __shared__ u32 shared[EMBEDDING_THREADS];
  i64 mine = (i64)blockIdx.x * a.blocks;
  u32 sum = 0, *places = a.counts + SORT_DIGITS * a.blocks + mine;
  for (i64 i = threadIdx.x; i < mine; i += EMBEDDING_THREADS) sum += a.counts[i];
  sum = sort_block_sum(sum, shared);
  for (i64 first = 0; first < a.blocks; first += EMBEDDING_THREADS) {
    i64 i = first + threadIdx.x;
    u32 count = i < a.blocks ? a.counts[mine + i] : 0, running = sort_running_sum(count, shared);
    if (i < a.blocks) places[i] = sum + running - count;
    sum += sort_block_sum(count, shared);
  }
}

/* Keys of a block go to their places in their order: in a round, those of lower warps first. */
extern "C" __global__ void __launch_bounds__(EMBEDDING_THREADS) sort_move(const sort_args a) {
  enum { WARPS = EMBEDDING_THREADS / 32 };
  __shared__ u32 next[SORT_DIGITS];
  __shared__ u32 first[WARPS][SORT_DIGITS];
  int t = (int)threadIdx.x, warp = t / 32;
  next[t] = a.counts[(SORT_DIGITS + t) * a.blocks + blockIdx.x];
  for (int round = 0; round < SORT_ROUNDS; round++) {
    i64 at = (i64)blockIdx.x * SORT_TILE + round * EMBEDDING_THREADS + t;
    bool valid = at < a.count;
    u32 key = valid ? key_at(a, at) : 0, digit = valid ? digit_of(a, key) : SORT_DIGITS;
    u32 same = __match_any_sync(0xffffffffu, digit), before = (u32)__popc(same & ((1u << t % 32) - 1));
    for (int w = 0; w < WARPS; w++) first[w][t] = 0;
    __syncthreads();
    if (valid && before == 0) first[warp][digit] = (u32)__popc(same);
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
      u32 count = first[w][t];
      first[w][t] = next[t];
      next[t] += count;
    }
    __syncthreads();
    if (valid) {
      i64 place = first[warp][digit] + before;
      a.to_keys[place] = key;
      a.to_positions[place] = a.ids != 0 ? (u32)at : a.from_positions[at];
    }
    __syncthreads();
  }
}

/* backends/cuda/device/cached_attention.cu: attention of new tokens to themselves and to the tokens of a cache.
 *
 * Blocks share the rows that a query sees, and warps those of a block: round by round a warp has 32 rows, and keeps the
 * largest score, the sum of exponentials and the sums of values so far (Milakov and Gimelshein, "Online normalizer
 * calculation for softmax", 2018; Dao and others, "Flash-Decoding for long-context inference", 2023). The position lies
 * in memory of the device: blocks and warps without rows end at once.
 *
 * The first block of a query writes its row into the caches. Rows of new tokens are read from the operands, not from
 * the caches, so no block reads what another one writes. A position without room for the tokens gives NaN, and nothing
 * is written. */
#include "backends/cuda/device/cached_attention.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/tile.cuh"

enum { CACHED_LANE = CACHED_WIDTH / WARP /* elements of a row, at most */, CACHED_BATCH = 4 /* rows in flight */ };

/* ---- places ---- */

struct cached_place {
  i64 query, batch;
  int part, head, token, position, seen; /* seen: the rows of this query */
  bool valid;
};

static __device__ inline cached_place cached_place_of(const cached_attention_args &a, i64 query, int part) {
  cached_place p;
  i64 position = *(const i64 *)a.position, head = query / a.tokens;
  p.query = query;
  p.part = part;
  p.token = (int)(query - head * a.tokens);
  p.batch = head / a.heads;
  p.head = (int)(head - p.batch * a.heads);
  p.valid = position >= 0 && position <= a.room - a.tokens;
  p.position = p.valid ? (int)position : 0;
  p.seen = p.position + p.token + 1;
  return p;
}

template <typename T> static __device__ inline T *head_at(const attention_rows &r, const cached_place &p) {
  return (T *)r.data + p.batch * r.batch + p.head * r.head;
}

/* The rows of a head: those before the position are in the cache, the others in the operand. */
template <typename T> struct seen_rows {
  const T *old, *fresh;
  i64 old_row, fresh_row;
  int position, seen;
};
template <typename T>
static __device__ inline seen_rows<T> seen_rows_of(const attention_rows &cache, const attention_rows &fresh,
                                                   const cached_place &p) {
  seen_rows<T> s = {head_at<T>(cache, p), head_at<T>(fresh, p), cache.row, fresh.row, p.position, p.seen};
  return s;
}

/* `lanes` lanes of a warp read a row, which has `units` packs of elements; the warp reads `at_once` rows. */
struct row_lanes {
  int units, lanes, lane, group, at_once;
};
static __device__ inline row_lanes row_lanes_of(int units) {
  int lanes = CACHED_BATCH, t = (int)threadIdx.x % WARP;
  while (lanes < units && lanes < WARP) lanes *= 2;
  row_lanes l = {units, lanes, t % lanes, t / lanes, WARP / lanes};
  return l;
}

/* ---- rows ---- */

template <typename T, int V, int C>
static __device__ inline void load_row(const T *from, bool inside, const row_lanes &l, pack_of<T, V> (&x)[C]) {
#pragma unroll
  for (int c = 0; c < C; c++) {
    int unit = l.lane + c * l.lanes;
    pack_of<T, V> none = {};
    x[c] = inside && unit < l.units ? load_pack<T, V>(from, (i64)unit * V) : none;
  }
}

template <typename T, int V, int C>
static __device__ inline void load_rows(const seen_rows<T> &s, int first, const row_lanes &l,
                                        pack_of<T, V> (&x)[CACHED_BATCH][C]) {
#pragma unroll
  for (int b = 0; b < CACHED_BATCH; b++) {
    int row = first + b * l.at_once + l.group;
    const T *from = row < s.position ? s.old + row * s.old_row : s.fresh + (row - s.position) * s.fresh_row;
    load_row<T, V, C>(from, row < s.seen, l, x[b]);
  }
}

/* The products of q and 32 rows: lane i gets that of row first + i. */
template <typename T, int V, int C, typename A>
static __device__ inline A product_of_rows(const seen_rows<T> &keys, int first, const row_lanes &l, const A (&q)[C][V]) {
  int t = (int)threadIdx.x % WARP;
  A mine = 0;
  for (int round = 0; round < l.lanes; round += CACHED_BATCH) {
    pack_of<T, V> x[CACHED_BATCH][C];
    load_rows<T, V, C>(keys, first + round * l.at_once, l, x);
#pragma unroll
    for (int b = 0; b < CACHED_BATCH; b++) {
      A sum = 0;
#pragma unroll
      for (int i = 0; i < C * V; i++) sum = multiply_add(q[i / V][i % V], (A)widen(x[b][i / V].at[i % V]), sum);
      for (int mask = l.lanes / 2; mask > 0; mask /= 2) sum += shuffled(sum, mask);
      A of_row = __shfl_sync((u32)ALL_LANES, sum, t % l.at_once * l.lanes);
      if (t / l.at_once == round + b) mine = of_row;
    }
  }
  return mine;
}

/* sums += 32 rows, weighted by the numbers of the lanes. */
template <typename T, int V, int C, typename A>
static __device__ inline void add_cached_rows(const seen_rows<T> &values, int first, const row_lanes &l, A weight,
                                       A (&sums)[C][V]) {
  for (int round = 0; round < l.lanes; round += CACHED_BATCH) {
    pack_of<T, V> x[CACHED_BATCH][C];
    load_rows<T, V, C>(values, first + round * l.at_once, l, x);
#pragma unroll
    for (int b = 0; b < CACHED_BATCH; b++) {
      A of_row = __shfl_sync((u32)ALL_LANES, weight, (round + b) * l.at_once + l.group);
#pragma unroll
      for (int i = 0; i < C * V; i++)
        sums[i / V][i % V] = multiply_add(of_row, (A)widen(x[b][i / V].at[i % V]), sums[i / V][i % V]);
    }
  }
}

/* ---- softmax ---- */

/* exp(x - largest); 0 for -infinity, also where no number is larger. */
template <typename A> static __device__ inline A weight_of(A x, A largest) {
  A lowest;
  set_lowest(&lowest);
  return x == lowest ? (A)0 : exp_of(x - largest);
}

template <typename A> static __device__ inline A largest_of_warp(A x) {
#pragma unroll
  for (int mask = WARP / 2; mask > 0; mask /= 2) x = larger(x, shuffled(x, mask));
  return x;
}

/* A column of the sums of values of a warp, a block, or all blocks of a query. */
template <typename A> struct cached_column {
  A largest, sum, value;
};

/* `n` parts, each with the largest score, the sum and the columns. */
template <typename A>
static __device__ inline cached_column<A> join_parts(const A *parts, int n, int value_width, int column) {
  const int step = 2 + value_width;
  cached_column<A> all;
  set_lowest(&all.largest);
  all.sum = all.value = 0;
  for (int i = 0; i < n; i++) all.largest = larger(all.largest, parts[i * step]);
  for (int i = 0; i < n; i++) {
    A weight = weight_of(parts[i * step], all.largest);
    all.sum = multiply_add(weight, parts[i * step + 1], all.sum);
    all.value = multiply_add(weight, parts[i * step + 2 + column], all.value);
  }
  return all;
}

/* The part of a warp, for join_parts. */
template <typename T, int V, int C, typename A>
static __device__ inline void attend_of_warp(const cached_attention_args &a, const cached_place &p, A *part) {
  const seen_rows<T> keys = seen_rows_of<T>(a.keys, a.k, p), values = seen_rows_of<T>(a.values, a.v, p);
  const row_lanes l = row_lanes_of(a.width / V), m = row_lanes_of(a.value_width / V);
  const int t = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
  pack_of<T, V> x[C];
  A q[C][V], sums[C][V] = {}, largest, sum = 0, scale = (A)a.scale, lowest;
  set_lowest(&lowest);
  largest = lowest;
  if (!p.valid) set_nan(&scale);
  load_row<T, V, C>(head_at<T>(a.q, p) + p.token * a.q.row, true, l, x);
#pragma unroll
  for (int i = 0; i < C * V; i++) q[i / V][i % V] = widen(x[i / V].at[i % V]);
  for (int first = (p.part * CACHED_WARPS + warp) * WARP; first < p.seen; first += a.parts * CACHED_ROWS) {
    A score = product_of_rows<T, V, C>(keys, first, l, q) * scale;
    if (first + t >= p.seen) score = lowest;
    A old = largest;
    largest = larger(old, largest_of_warp(score));
    A factor = weight_of(old, largest), weight = weight_of(score, largest);
    sum = multiply_add(sum, factor, weight);
#pragma unroll
    for (int i = 0; i < C * V; i++) sums[i / V][i % V] *= factor;
    add_cached_rows<T, V, C>(values, first, m, weight, sums);
  }
#pragma unroll
  for (int mask = WARP / 2; mask > 0; mask /= 2) sum += shuffled(sum, mask);
#pragma unroll
  for (int i = 0; i < C * V; i++)
    for (int mask = m.lanes; mask < WARP; mask *= 2) sums[i / V][i % V] += shuffled(sums[i / V][i % V], mask);
  if (t == 0) {
    part[0] = largest;
    part[1] = sum;
  }
#pragma unroll
  for (int i = 0; i < C * V; i++) {
    int unit = m.lane + i / V * m.lanes;
    if (m.group == 0 && unit < m.units) part[2 + unit * V + i % V] = sums[i / V][i % V];
  }
}

/* ---- blocks ---- */

/* The row of a new token into a cache. */
template <typename T, int V>
static __device__ inline void write_row(const attention_rows &from, const attention_rows &to, const cached_place &p,
                                        int width) {
  const T *row = head_at<T>(from, p) + p.token * from.row;
  T *cached = head_at<T>(to, p) + (i64)(p.position + p.token) * to.row;
  for (int i = (int)threadIdx.x * V; i < width; i += CACHED_THREADS * V)
    *(pack_of<T, V> *)(cached + i) = load_pack<T, V>(row, i);
}

template <typename T, int V, typename A>
static __device__ inline void attend(const cached_attention_args &a, const cached_place &p, A *parts) {
  if (p.part == 0 && p.valid) {
    write_row<T, V>(a.k, a.keys, p, a.width);
    write_row<T, V>(a.v, a.values, p, a.value_width);
  }
  attend_of_warp<T, V, CACHED_LANE / V>(a, p, parts + (int)threadIdx.x / WARP * (2 + a.value_width));
}

template <typename T, typename A>
static __device__ inline void write_result(const cached_attention_args &a, const cached_place &p, int column,
                                           const cached_column<A> &c) {
  narrow(head_at<T>(a.y, p) + p.token * a.y.row + column, c.value / c.sum);
}

/* Blocks of a query that have rows. */
static __device__ inline int live_parts(const cached_attention_args &a, const cached_place &p) {
  int rounds = (p.seen + CACHED_ROWS - 1) / CACHED_ROWS;
  return rounds < a.parts ? rounds : a.parts;
}

template <typename T> static __device__ inline void cached_attention(const cached_attention_args &a) {
  typedef typename wide_of<T>::type A;
  __shared__ A parts[CACHED_WARPS * (2 + CACHED_WIDTH)];
  const i64 query = blockIdx.x / a.parts;
  const cached_place p = cached_place_of(a, query, (int)(blockIdx.x - query * a.parts));
  const int column = (int)threadIdx.x;
  if (p.part >= live_parts(a, p)) return;
  if (a.vector)
    attend<T, vector_of<T>::N>(a, p, parts);
  else
    attend<T, 1>(a, p, parts);
  __syncthreads();
  if (column >= a.value_width) return;
  const cached_column<A> c = join_parts(parts, CACHED_WARPS, a.value_width, column);
  if (a.parts == 1) {
    write_result<T>(a, p, column, c);
    return;
  }
  A *sums = (A *)a.sums + (i64)blockIdx.x * (2 + a.value_width);
  sums[2 + column] = c.value;
  if (column > 0) return;
  sums[0] = c.largest;
  sums[1] = c.sum;
}

/* Joins the parts of a query: a thread for each column. */
template <typename T> static __device__ inline void cached_attention_join(const cached_attention_args &a) {
  typedef typename wide_of<T>::type A;
  const cached_place p = cached_place_of(a, blockIdx.x, 0);
  const int column = (int)threadIdx.x;
  if (column >= a.value_width) return;
  const A *sums = (const A *)a.sums + p.query * a.parts * (2 + a.value_width);
  write_result<T>(a, p, column, join_parts(sums, live_parts(a, p), a.value_width, column));
}

/* `blocks` fit into a multiprocessor at once. */
#define CACHED_ATTENTION(T, blocks)                                                                                    \
  extern "C" __global__ void __launch_bounds__(CACHED_THREADS, blocks)                                                 \
      cached_attention_##T(const cached_attention_args a) {                                                            \
    cached_attention<T>(a);                                                                                            \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(CACHED_THREADS)                                                         \
      cached_attention_join_##T(const cached_attention_args a) {                                                       \
    cached_attention_join<T>(a);                                                                                       \
  }
CACHED_ATTENTION(f16, 2)
CACHED_ATTENTION(bf16, 2)
CACHED_ATTENTION(f32, 2)
CACHED_ATTENTION(f64, 1)

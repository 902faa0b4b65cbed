/* backends/cuda/device/attention_kernels.cuh: attention and its gradient over tiles, without the probabilities of all pairs
 * in memory (Dao and others, "FlashAttention", NeurIPS 2022).
 *
 * A block has an outer tile of rows, which it keeps the results of, and goes through inner tiles: queries and keys in
 * attention and in the gradient of q, keys and queries in the gradients of k and v. The gradient computes the probabilities
 * twice, so that no sum depends on the order of blocks.
 *
 * T: elements; W: the type of sums. A thread has R outer rows x R inner rows of a tile of 16 R x 16 R, and R rows x 4 S
 * columns of a result, whose rows are up to 64 S wide. */
#ifndef TN_CUDA_ATTENTION_KERNELS_CUH
#define TN_CUDA_ATTENTION_KERNELS_CUH

#include "backends/cuda/device/attention.cuh"
#include "backends/cuda/device/tile.cuh"

static __device__ inline f32 exp_of(f32 x) { return expf(x); }
static __device__ inline f64 exp_of(f64 x) { return exp(x); }
static __device__ inline f32 log_of(f32 x) { return logf(x); }
static __device__ inline f64 log_of(f64 x) { return log(x); }

/* Rows are padded by 16 bytes against conflicts of banks. */
template <typename W, int R, int S> struct attention_tiles {
  enum {
    PAD = 16 / sizeof(W),
    SIZE = 16 * R,
    OPERANDS = 2 * ATTENTION_DEPTH * (SIZE + PAD),
    VALUES = ATTENTION_DEPTH * (ATTENTION_COLUMNS * S + PAD)
  };
  __align__(16) W pairs[SIZE][SIZE + PAD]; /* [inner][outer]: probabilities, or their gradients */
  __align__(16) W chunk[(int)OPERANDS > (int)VALUES ? (int)OPERANDS : (int)VALUES];
};

/* The rows of a head. */
template <typename T> struct head_rows {
  T *data;
  i64 row;
  int count, width;
};
template <typename T>
static __device__ inline head_rows<T> head_of(const attention_rows &r, const attention_args &a, i64 n, int count, int width) {
  head_rows<T> h = {(T *)r.data + n / a.heads * r.batch + n % a.heads * r.head, r.row, count, width};
  return h;
}

/* Where a block is: its head, and the first row of its outer tile. Heads lie along x. */
struct attention_place {
  i64 head;
  int first;
};
static __device__ inline attention_place attention_place_of(const attention_args &a, int rows, int size, bool from_last) {
  u32 tiles = (u32)((rows + size - 1) / size), tile = blockIdx.x % tiles;
  attention_place p = {blockIdx.x / tiles, (int)(from_last ? tiles - 1 - tile : tile) * size};
  return p;
}

/* ---- products ---- */

/* ATTENTION_DEPTH elements from `depth` on of N rows from `first` on: to[element][row]. */
template <typename T, typename W, int N, int PAD>
static __device__ inline void read_rows(const head_rows<T> &h, int first, int depth, W *to) {
#pragma unroll
  for (int i = (int)threadIdx.x; i < ATTENTION_DEPTH * N; i += ATTENTION_THREADS) {
    int at = i % ATTENTION_DEPTH, row = i / ATTENTION_DEPTH;
    bool inside = first + row < h.count && depth + at < h.width;
    to[at * (N + PAD) + row] = inside ? (W)widen(h.data[(i64)(first + row) * h.row + depth + at]) : (W)0;
  }
}

/* sums = outer inner^T: dot products of the rows of two tiles. */
template <typename T, typename W, int R, int S>
static __device__ inline void dots(attention_tiles<W, R, S> &s, const head_rows<T> &outer, int outer_first,
                                   const head_rows<T> &inner, int inner_first, W (&sums)[R][R]) {
  typedef attention_tiles<W, R, S> tiles;
  const int step = (int)tiles::SIZE + (int)tiles::PAD, ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
  W *a = s.chunk, *b = s.chunk + ATTENTION_DEPTH * step;
#pragma unroll
  for (int i = 0; i < R * R; i++) sums[i / R][i % R] = 0;
  for (int depth = 0; depth < outer.width; depth += ATTENTION_DEPTH) {
    read_rows<T, W, tiles::SIZE, tiles::PAD>(outer, outer_first, depth, a);
    read_rows<T, W, tiles::SIZE, tiles::PAD>(inner, inner_first, depth, b);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ATTENTION_DEPTH; i++) add_term<W, R, 1, R, 1>(a + i * step, b + i * step, ty, tx, sums);
    __syncthreads();
  }
}

/* sums += pairs^T values: the inner rows from `first` on, weighted by s.pairs. */
template <typename T, typename W, int R, int S>
static __device__ inline void add_values(attention_tiles<W, R, S> &s, const head_rows<T> &values, int first,
                                         W (&sums)[R][4 * S]) {
  typedef attention_tiles<W, R, S> tiles;
  const int columns = ATTENTION_COLUMNS * S, step = columns + (int)tiles::PAD;
  const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
  for (int k = 0; k < tiles::SIZE; k += ATTENTION_DEPTH) {
#pragma unroll
    for (int i = (int)threadIdx.x; i < ATTENTION_DEPTH * columns; i += ATTENTION_THREADS) {
      int column = i % columns, row = first + k + i / columns;
      bool inside = row < values.count && column < values.width;
      s.chunk[i / columns * step + column] = inside ? (W)widen(values.data[(i64)row * values.row + column]) : (W)0;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ATTENTION_DEPTH; i++)
      add_term<W, R, 1, 4, S>(s.pairs[k + i], s.chunk + i * step, ty, tx, sums);
    __syncthreads();
  }
}

/* For add_values: the numbers of this thread. */
template <typename W, int R, int S>
static __device__ inline void write_pairs(attention_tiles<W, R, S> &s, const W (&pairs)[R][R]) {
  const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
#pragma unroll
  for (int i = 0; i < R; i++)
#pragma unroll
    for (int j = 0; j < R; j++) s.pairs[tx * R + j][ty * R + i] = pairs[i][j];
}

template <typename T, typename W, int R, int S>
static __device__ inline void write_result(const head_rows<T> &to, int first, const W (&sums)[R][4 * S]) {
  const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
#pragma unroll
  for (int i = 0; i < R; i++)
#pragma unroll
    for (int j = 0; j < 4 * S; j++) {
      int row = first + ty * R + i, column = (j / 4 * 16 + tx) * 4 + j % 4;
      if (row < to.count && column < to.width) narrow(to.data + (i64)row * to.row + column, sums[i][j]);
    }
}

/* ---- attention ---- */

/* Reductions over the 16 threads of a row: all of them get the result. */
template <typename W> static __device__ inline W largest_of_row(W x) {
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2) {
    W other = __shfl_xor_sync(0xffffffffu, x, lanes);
    x = other > x ? other : x;
  }
  return x;
}
template <typename W> static __device__ inline W sum_of_row(W x) {
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
  return x;
}

static __device__ inline int visible_keys(const attention_args &a, int query) {
  int visible = a.causal ? query + a.keys - a.queries + 1 : a.keys;
  return visible < a.keys ? visible : a.keys;
}

/* Online softmax of a row (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018): scores become
 * probabilities relative to the largest score so far. Returns the factor of earlier sums. */
template <typename W, int R>
static __device__ inline W softmax_step(W (&scores)[R], int first, int visible, W scale, W *largest, W *sum) {
  W high = *largest, more = 0;
#pragma unroll
  for (int j = 0; j < R; j++) {
    scores[j] *= scale;
    high = first + j < visible && scores[j] > high ? scores[j] : high;
  }
  high = largest_of_row(high);
#pragma unroll
  for (int j = 0; j < R; j++) {
    scores[j] = first + j < visible ? exp_of(scores[j] - high) : (W)0;
    more += scores[j];
  }
  W factor = exp_of(*largest - high);
  *sum = *sum * factor + sum_of_row(more);
  *largest = high;
  return factor;
}

template <typename T, typename W, int R, int S> static __device__ inline void attention_forward(const attention_args &a) {
  __shared__ attention_tiles<W, R, S> s;
  const int size = 16 * R, ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
  const attention_place at = attention_place_of(a, a.queries, size, a.causal);
  const head_rows<T> q = head_of<T>(a.q, a, at.head, a.queries, a.width), k = head_of<T>(a.k, a, at.head, a.keys, a.width),
                     v = head_of<T>(a.v, a, at.head, a.keys, a.value_width),
                     y = head_of<T>(a.y, a, at.head, a.queries, a.value_width);
  const int seen = visible_keys(a, at.first + size - 1);
  W scores[R][R], sums[R][4 * S] = {}, largest[R], sum[R];
#pragma unroll
  for (int i = 0; i < R; i++) {
    largest[i] = -(W)f32_of_bits(0x7f800000u);
    sum[i] = 0;
  }
  for (int key = 0; key < seen; key += size) {
    dots<T, W, R, S>(s, q, at.first, k, key, scores);
#pragma unroll
    for (int i = 0; i < R; i++) {
      W factor = softmax_step<W, R>(scores[i], key + tx * R, visible_keys(a, at.first + ty * R + i), (W)a.scale,
                                    &largest[i], &sum[i]);
#pragma unroll
      for (int j = 0; j < 4 * S; j++) sums[i][j] *= factor;
    }
    write_pairs<W, R, S>(s, scores);
    add_values<T, W, R, S>(s, v, key, sums);
  }
#pragma unroll
  for (int i = 0; i < R; i++) {
    int row = at.first + ty * R + i;
#pragma unroll
    for (int j = 0; j < 4 * S; j++) sums[i][j] /= sum[i];
    if (tx == 0 && row < a.queries) ((W *)a.lse)[at.head * a.queries + row] = largest[i] + log_of(sum[i]);
  }
  write_result<T, W, R, S>(y, at.first, sums);
}

/* ---- the gradient ---- */

/* delta = sum of dy y for each query; a warp for each. */
template <typename T, typename W> static __device__ inline void sum_deltas(const attention_args &a) {
  const i64 rows = a.heads_of_batch * a.queries;
  const int lane = (int)threadIdx.x % 32;
  for (i64 n = grid_first() / 32; n < rows; n += grid_step() / 32) {
    const head_rows<T> y = head_of<T>(a.y, a, n / a.queries, a.queries, a.value_width),
                       dy = head_of<T>(a.dy, a, n / a.queries, a.queries, a.value_width);
    const i64 row = n % a.queries;
    W sum = 0;
    for (int c = lane; c < a.value_width; c += 32)
      sum = multiply_add((W)widen(dy.data[row * dy.row + c]), (W)widen(y.data[row * y.row + c]), sum);
    sum = sum_of_row(sum);
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
    if (lane == 0) ((W *)a.delta)[n] = sum;
  }
}

/* From a score and the gradient of its probability: the probability, and the gradient of the score. */
template <typename W> struct attention_pair {
  W probability, gradient;
};
template <typename W>
static __device__ inline attention_pair<W> pair_of(const attention_args &a, i64 head, int query, int key, W score, W gradient) {
  attention_pair<W> p = {0, 0};
  if (query >= a.queries || key >= visible_keys(a, query)) return p;
  const i64 at = head * a.queries + query;
  p.probability = exp_of(score * (W)a.scale - ((const W *)a.lse)[at]);
  p.gradient = p.probability * (gradient - ((const W *)a.delta)[at]) * (W)a.scale;
  return p;
}

template <typename T, typename W, int R, int S> static __device__ inline void attention_grad_query(const attention_args &a) {
  __shared__ attention_tiles<W, R, S> s;
  const int size = 16 * R, ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
  const attention_place at = attention_place_of(a, a.queries, size, a.causal);
  const head_rows<T> q = head_of<T>(a.q, a, at.head, a.queries, a.width), k = head_of<T>(a.k, a, at.head, a.keys, a.width),
                     v = head_of<T>(a.v, a, at.head, a.keys, a.value_width),
                     dy = head_of<T>(a.dy, a, at.head, a.queries, a.value_width);
  const int seen = visible_keys(a, at.first + size - 1);
  W scores[R][R], gradients[R][R], sums[R][4 * S] = {};
  for (int key = 0; key < seen; key += size) {
    dots<T, W, R, S>(s, q, at.first, k, key, scores);
    dots<T, W, R, S>(s, dy, at.first, v, key, gradients);
#pragma unroll
    for (int i = 0; i < R * R; i++)
      scores[i / R][i % R] = pair_of<W>(a, at.head, at.first + ty * R + i / R, key + tx * R + i % R, scores[i / R][i % R],
                                        gradients[i / R][i % R]).gradient;
    write_pairs<W, R, S>(s, scores);
    add_values<T, W, R, S>(s, k, key, sums);
  }
  write_result<T, W, R, S>(head_of<T>(a.dq, a, at.head, a.queries, a.width), at.first, sums);
}

/* The first tile of queries that sees a key of the outer tile. */
static __device__ inline int first_query(const attention_args &a, int key, int size) {
  int query = a.causal ? key - (a.keys - a.queries) : 0;
  return query > 0 ? query / size * size : 0;
}

template <typename T, typename W, int R, int S> static __device__ inline void attention_grad_key(const attention_args &a) {
  __shared__ attention_tiles<W, R, S> s;
  const int size = 16 * R, ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
  const attention_place at = attention_place_of(a, a.keys, size, false);
  const head_rows<T> q = head_of<T>(a.q, a, at.head, a.queries, a.width), k = head_of<T>(a.k, a, at.head, a.keys, a.width),
                     v = head_of<T>(a.v, a, at.head, a.keys, a.value_width),
                     dy = head_of<T>(a.dy, a, at.head, a.queries, a.value_width);
  W scores[R][R], gradients[R][R], dk[R][4 * S] = {}, dv[R][4 * S] = {};
  for (int query = first_query(a, at.first, size); query < a.queries; query += size) {
    dots<T, W, R, S>(s, k, at.first, q, query, scores);
    dots<T, W, R, S>(s, v, at.first, dy, query, gradients);
#pragma unroll
    for (int i = 0; i < R * R; i++) {
      const attention_pair<W> p = pair_of<W>(a, at.head, query + tx * R + i % R, at.first + ty * R + i / R,
                                             scores[i / R][i % R], gradients[i / R][i % R]);
      scores[i / R][i % R] = p.probability;
      gradients[i / R][i % R] = p.gradient;
    }
    write_pairs<W, R, S>(s, scores);
    add_values<T, W, R, S>(s, dy, query, dv);
    write_pairs<W, R, S>(s, gradients);
    add_values<T, W, R, S>(s, q, query, dk);
  }
  write_result<T, W, R, S>(head_of<T>(a.dk, a, at.head, a.keys, a.width), at.first, dk);
  write_result<T, W, R, S>(head_of<T>(a.dv, a, at.head, a.keys, a.value_width), at.first, dv);
}

#define ATTENTION_KERNEL(name, blocks, call)                                                                           \
  extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, blocks) attention_##name(const attention_args a) {   \
    call;                                                                                                              \
  }
/* Blocks that fit into a multiprocessor at once: of attention, of the gradient of q. */
#define ATTENTION_OF_WIDTH(width, blocks, query_blocks, T, W, R, S)                                                    \
  ATTENTION_KERNEL(forward_##width, blocks, (attention_forward<T, W, R, S>(a)))                                        \
  ATTENTION_KERNEL(grad_query_##width, query_blocks, (attention_grad_query<T, W, R, S>(a)))                            \
  ATTENTION_KERNEL(grad_key_##width, 1, (attention_grad_key<T, W, R, S>(a)))
#define ATTENTION_KERNELS(T, W, R)                                                                                     \
  ATTENTION_KERNEL(delta, 2, (sum_deltas<T, W>(a)))                                                               \
  ATTENTION_OF_WIDTH(64, 2, 2, T, W, R, 1)                                                                               \
  ATTENTION_OF_WIDTH(128, 2, 1, T, W, R, 2)                                                                              \
  ATTENTION_OF_WIDTH(256, 1, 1, T, W, R, 4)

#endif

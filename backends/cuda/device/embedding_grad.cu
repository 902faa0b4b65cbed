/* backends/cuda/device/embedding_grad.cu: the gradient of a table: each row is the sum of the rows of dy at its positions,
 * in their order, in stretches of some dozens. Positions come sorted by row (embedding.cu). */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/embedding.cuh"

enum { EMBEDDING_LOADS = 4, EMBEDDING_LONG = 16 /* stretches: a row with more is summed by the whole block */ };

/* A run of positions with one key, in some columns. */
template <typename A, int V> struct run_of {
  u32 key;
  bool began_before;
  A sum[V];
};

template <typename A, int V> static __device__ inline void run_begin(run_of<A, V> *r, u32 key, bool began_before) {
  r->key = key;
  r->began_before = began_before;
#pragma unroll
  for (int j = 0; j < V; j++) r->sum[j] = 0;
}

/* The run ends before sorted position `end`, or the stretch does and the run goes on. */
template <typename T, int V, typename A>
static __device__ inline void run_end(const embedding_grad_args &a, const run_of<A, V> &r, i64 stretch, i64 column, i64 end,
                                      bool goes_on) {
  if (r.key >= (u32)a.rows) return; /* ids that are no rows */
  if (!goes_on && column == 0) a.ranges[2 * (i64)r.key + 1] = (u32)end;
  if (!r.began_before && !goes_on)
    store_pack<T, V>(a.dtable, r.key * a.columns + column, r.sum);
  else
    store_pack<A, V>(a.sums, (stretch * 2 + !r.began_before) * a.columns + column, r.sum);
}

template <typename T, int V>
static __device__ void add_stretch(const embedding_grad_args &a, i64 stretch, i64 column) {
  run_of<typename wide_of<T>::type, V> r;
  i64 first = stretch * EMBEDDING_STRETCH, last = first + EMBEDDING_STRETCH;
  if (last > a.count) last = a.count;
  run_begin(&r, a.keys[first], first > 0 && a.keys[first - 1] == a.keys[first]);
  if (!r.began_before && column == 0 && r.key < (u32)a.rows) a.ranges[2 * (i64)r.key] = (u32)first;
  for (i64 at = first; at < last; at += EMBEDDING_LOADS) {
    pack_of<T, V> dy[EMBEDDING_LOADS];
#pragma unroll
    for (int k = 0; k < EMBEDDING_LOADS; k++)
      if (at + k < last) dy[k] = load_pack<T, V>(a.dy, a.positions[at + k] * a.columns + column);
#pragma unroll
    for (int k = 0; k < EMBEDDING_LOADS; k++) {
      if (at + k >= last) break;
#pragma unroll
      for (int j = 0; j < V; j++) r.sum[j] += widen(dy[k].at[j]);
      i64 next = at + k + 1;
      u32 key = next < a.count ? a.keys[next] : 0xffffffffu;
      if (key == r.key && next < last) continue;
      run_end<T, V>(a, r, stretch, column, next, key == r.key);
      if (next == last) break;
      run_begin(&r, key, false);
      if (column == 0 && key < (u32)a.rows) a.ranges[2 * (i64)key] = (u32)next;
    }
  }
}

template <typename T> static __device__ void embedding_stretches(const embedding_grad_args &a) {
  enum { V = vector_of<T>::N };
  int lane = (int)threadIdx.x % a.width, groups = EMBEDDING_THREADS / a.width;
  i64 tasks = a.stretches * a.tiles;
  for (i64 task = (i64)blockIdx.x * groups + (int)threadIdx.x / a.width; task < tasks; task += (i64)gridDim.x * groups) {
    i64 stretch = a.tiles == 1 ? task : task / a.tiles, unit = (task - stretch * a.tiles) * a.width + lane;
    if (a.vector && unit * V < a.columns) add_stretch<T, V>(a, stretch, unit * V);
    if (!a.vector && unit < a.columns) add_stretch<T, 1>(a, stretch, unit);
  }
}

/* ---- the second launch ---- */

/* The stretches of a row of the result. */
struct row_stretches {
  i64 first, last;
  bool empty;
};
static __device__ inline row_stretches stretches_of(const embedding_grad_args &a, i64 row) {
  row_stretches s;
  i64 from = a.ranges[2 * row], end = a.ranges[2 * row + 1];
  s.empty = from == end;
  s.first = from / EMBEDDING_STRETCH;
  s.last = s.empty ? s.first : (end - 1) / EMBEDDING_STRETCH;
  return s;
}

/* Adds the sums of every `step`-th stretch from s.first + part on. */
template <typename A, int V>
static __device__ inline void add_sums(const embedding_grad_args &a, const row_stretches &s, int part, int step, i64 column,
                                       sum_of<A> *sum) {
#pragma unroll 2
  for (i64 k = s.first + part; k <= s.last; k += step) {
    pack_of<A, V> p = load_pack<A, V>(a.sums, (k * 2 + (k == s.first)) * a.columns + column);
#pragma unroll
    for (int j = 0; j < V; j++) sum[j].value += p.at[j];
  }
}

template <typename T, int V, typename A>
static __device__ inline void store_sums(const embedding_grad_args &a, i64 row, i64 column, const sum_of<A> *sum) {
  A y[V];
#pragma unroll
  for (int j = 0; j < V; j++) y[j] = sum[j].value;
  store_pack<T, V>(a.dtable, row * a.columns + column, y);
}

/* Each group of threads has a row; then those of long rows are shared by all groups. */
template <typename T, int V, typename A>
static __device__ void join_rows(const embedding_grad_args &a, i64 first, i64 column, sum_of<A> *shared) {
  int group = (int)threadIdx.x / a.width, groups = EMBEDDING_THREADS / a.width;
  bool mine = first + group < a.rows && column < a.columns;
  sum_of<A> sum[V];
#pragma unroll
  for (int j = 0; j < V; j++) begin(&sum[j]);
  if (mine) {
    row_stretches s = stretches_of(a, first + group);
    if (s.last > s.first && s.last - s.first < EMBEDDING_LONG) add_sums<A, V>(a, s, 0, 1, column, sum);
    if (s.empty || (s.last > s.first && s.last - s.first < EMBEDDING_LONG)) store_sums<T, V>(a, first + group, column, sum);
  }
  for (int g = 0; g < groups && first + g < a.rows; g++) {
    row_stretches s = stretches_of(a, first + g);
    if (s.empty || s.last - s.first < EMBEDDING_LONG) continue;
#pragma unroll
    for (int j = 0; j < V; j++) begin(&sum[j]);
    if (column < a.columns) add_sums<A, V>(a, s, group, groups, column, sum);
    merge_rows<V>(sum, a.width, groups, shared);
    if (group == 0 && column < a.columns) store_sums<T, V>(a, first + g, column, sum);
  }
}

template <typename T> static __device__ void embedding_join(const embedding_grad_args &a) {
  typedef typename wide_of<T>::type A;
  enum { V = sizeof(A) == 8 ? 2 : 4 };
  __shared__ sum_of<A> shared[V * EMBEDDING_THREADS];
  int groups = EMBEDDING_THREADS / a.width, lane = (int)threadIdx.x % a.width;
  i64 tasks = (a.rows + groups - 1) / groups * a.tiles;
  for (i64 task = blockIdx.x; task < tasks; task += gridDim.x) {
    i64 rows = a.tiles == 1 ? task : task / a.tiles, unit = (task - rows * a.tiles) * a.width + lane;
    if (a.vector)
      join_rows<T, V>(a, rows * groups, unit * V, shared);
    else
      join_rows<T, 1>(a, rows * groups, unit, shared);
  }
}

#define EMBEDDING_GRAD(T)                                                                                                \
  extern "C" __global__ void __launch_bounds__(EMBEDDING_THREADS, 3) embedding_stretches_##T(const embedding_grad_args a) { \
    embedding_stretches<T>(a);                                                                                           \
  }                                                                                                                      \
  extern "C" __global__ void __launch_bounds__(EMBEDDING_THREADS, 3) embedding_join_##T(const embedding_grad_args a) {      \
    embedding_join<T>(a);                                                                                                \
  }
EMBEDDING_GRAD(f16)
EMBEDDING_GRAD(bf16)
EMBEDDING_GRAD(f32)
EMBEDDING_GRAD(f64)

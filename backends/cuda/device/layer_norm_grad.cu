/* backends/cuda/device/layer_norm_grad.cu: the gradients of layer norm. With g = dy weight and normal = (x - mean) rstd,
 *
 *     dx = rstd (g - mean(g) - normal mean(g normal)),
 *
 * dweight is the sum of dy normal over all rows and dbias that of dy. A block computes some rows and adds to sums of its
 * own; a second launch adds up the sums of blocks in their order. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/rows.cuh"

/* The sums of g and of g normal, both in grads_of. Adds to the sums of the group, of which each thread has elements of its
 * own: element j of vector u is at j n / V + u, where lanes of a warp use different banks. */
template <typename T, int V, typename A>
static __device__ grads_of<A> layer_norm_grad_sums(const layer_norm_grad_args &a, i64 base, int lane, A mean, A rstd,
                                                   A *sums) {
  grads_of<A> s;
  begin(&s);
  int units = (int)(a.n / V);
  for (int u = lane; u < units; u += a.lanes) {
    i64 at = (i64)u * V;
    pack_of<T, V> x = load_pack<T, V>(a.x, base + at), dy = load_pack<T, V>(a.dy, base + at);
#pragma unroll
    for (int j = 0; j < V; j++) {
      A d = widen(dy.at[j]), normal = (widen(x.at[j]) - mean) * rstd;
      sums[j * units + u] += d * normal;
      sums[a.n + j * units + u] += d;
      if (a.weight != 0) d *= ((const A *)a.weight)[at + j];
      add(&s, d, normal, 0);
    }
  }
  return s;
}

template <typename T, int V, typename A>
static __device__ void layer_norm_grad_store(const layer_norm_grad_args &a, i64 base, int lane, A mean, A rstd,
                                             A average, A along) {
  for (i64 at = lane * V; at < a.n; at += a.lanes * V) {
    pack_of<T, V> x = load_pack<T, V>(a.x, base + at), dy = load_pack<T, V>(a.dy, base + at);
    A dx[V];
#pragma unroll
    for (int j = 0; j < V; j++) {
      A g = widen(dy.at[j]), normal = (widen(x.at[j]) - mean) * rstd;
      if (a.weight != 0) g *= ((const A *)a.weight)[at + j];
      dx[j] = (g - average - normal * along) * rstd;
    }
    if (a.more != 0) {
      pack_of<T, V> more = load_pack<T, V>(a.more, base + at);
#pragma unroll
      for (int j = 0; j < V; j++) dx[j] += widen(more.at[j]);
    }
    store_pack<T, V>(a.dx, base + at, dx);
  }
}

/* A row; `row` may be past the last one. */
template <typename T, int V, typename A>
static __device__ void layer_norm_grad_row(const layer_norm_grad_args &a, i64 row, int lane, A *sums,
                                           grads_of<A> *shared) {
  A mean = 0, rstd = 0;
  grads_of<A> s;
  begin(&s);
  if (row < a.rows) {
    mean = ((const A *)a.mean)[row];
    rstd = ((const A *)a.rstd)[row];
    s = layer_norm_grad_sums<T, V>(a, row * a.n, lane, mean, rstd, sums);
  }
  s = merge_group(s, a.lanes, shared);
  A average = of_first(s.sum, a.lanes) / (A)a.n, along = of_first(s.dot, a.lanes) / (A)a.n;
  if (row < a.rows) layer_norm_grad_store<T, V>(a, row * a.n, lane, mean, rstd, average, along);
}

/* The sums of the groups of a block. */
extern __shared__ f64 layer_norm_sums[];

template <typename T> static __device__ void layer_norm_grad_rows(const layer_norm_grad_args &a) {
  typedef typename wide_of<T>::type A;
  __shared__ grads_of<A> shared[WARP];
  int t = (int)threadIdx.x, groups = ROWS_THREADS / a.lanes;
  A *of_block = (A *)a.sums + (i64)blockIdx.x * 2 * a.n, *all = a.in_workspace ? of_block : (A *)layer_norm_sums;
  for (i64 i = t; i < groups * 2 * a.n; i += ROWS_THREADS) all[i] = 0;
  __syncthreads();
  for (i64 first = (i64)blockIdx.x * groups; first < a.rows; first += a.blocks * groups) {
    A *sums = all + t / a.lanes * 2 * a.n;
    if (a.vector)
      layer_norm_grad_row<T, vector_of<T>::N>(a, first + t / a.lanes, t % a.lanes, sums, shared);
    else
      layer_norm_grad_row<T, 1>(a, first + t / a.lanes, t % a.lanes, sums, shared);
  }
  __syncthreads();
  for (i64 i = t; i < 2 * a.n && !a.in_workspace; i += ROWS_THREADS) {
    A sum = all[i];
    for (int g = 1; g < groups; g++) sum += all[g * 2 * a.n + i];
    of_block[i] = sum;
  }
}

/* Warps of a block have different parts of the blocks, lanes neighbouring columns. */
template <typename A> static __device__ void layer_norm_grad_blocks(const layer_norm_grad_args &a) {
  __shared__ sum_of<A> shared[ROWS_THREADS];
  int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, warps = ROWS_THREADS / WARP;
  i64 units = a.n / a.pack;
  for (i64 first = (i64)blockIdx.x * WARP; first < 2 * a.n; first += (i64)gridDim.x * WARP) {
    i64 at = first + lane, place = at < a.n ? at : at - a.n, j = place / units;
    sum_of<A> s;
    begin(&s);
    for (i64 b = warp; b < a.blocks && at < 2 * a.n; b += warps) s.value += ((const A *)a.sums)[b * 2 * a.n + at];
    merge_rows<1>(&s, WARP, warps, shared);
    if (warp == 0 && at < 2 * a.n) ((A *)(at < a.n ? a.dweight : a.dbias))[(place - j * units) * a.pack + j] = s.value;
  }
}

#define LAYER_NORM_GRAD(T)                                                                                               \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) layer_norm_grad_rows_##T(const layer_norm_grad_args a) {    \
    layer_norm_grad_rows<T>(a);                                                                                          \
  }
LAYER_NORM_GRAD(f16)
LAYER_NORM_GRAD(bf16)
LAYER_NORM_GRAD(f32)
LAYER_NORM_GRAD(f64)
#define LAYER_NORM_GRAD_BLOCKS(A)                                                                                        \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) layer_norm_grad_blocks_##A(const layer_norm_grad_args a) {  \
    layer_norm_grad_blocks<A>(a);                                                                                        \
  }
LAYER_NORM_GRAD_BLOCKS(f32)
LAYER_NORM_GRAD_BLOCKS(f64)

/* backends/cuda/device/layer_norm_grad.cu: the gradients of layer norm. With g = dy weight and normal = (x - mean) rstd,
 *
 *     dx = rstd (g - mean(g) - normal mean(g normal)),
 *
 * dweight is the sum of dy normal over all rows and dbias that of dy; dsum, where it is asked for, that of dx, with the
 * residual. A block computes some rows and adds to sums of its own; a second launch adds up the sums of blocks in their
 * order. dy and the copy of dx may be narrower than x and dx. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/rows.cuh"

/* The sums of g and of g normal, both in grads_of. Adds to the sums of the group, of which each thread has elements of its
 * own: element j of vector u is at j n / V + u, where lanes of a warp use different banks. */
template <typename T, typename D, int V, typename A>
static __device__ grads_of<A> layer_norm_grad_sums(const layer_norm_grad_args &a, i64 base, int lane, A mean, A rstd,
                                                   A *sums) {
  grads_of<A> s;
  begin(&s);
  int units = (int)(a.n / V);
  for (int u = lane; u < units; u += a.lanes) {
    i64 at = (i64)u * V;
    pack_of<T, V> x = load_pack<T, V>(a.x, base + at);
    pack_of<D, V> dy = load_pack<D, V>(a.dy, base + at);
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

template <typename T, typename D, int V, typename A>
static __device__ void layer_norm_grad_store(const layer_norm_grad_args &a, i64 base, int lane, A mean, A rstd,
                                             A average, A along, A *sums) {
  int units = (int)(a.n / V);
  for (int u = lane; u < units; u += a.lanes) {
    i64 at = (i64)u * V;
    pack_of<T, V> x = load_pack<T, V>(a.x, base + at);
    pack_of<D, V> dy = load_pack<D, V>(a.dy, base + at);
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
    if (a.copy != 0) store_pack<D, V>(a.copy, base + at, dx);
    if (a.sets < 3) continue;
#pragma unroll
    for (int j = 0; j < V; j++) sums[2 * a.n + j * units + u] += dx[j];
  }
}

/* A row; `row` may be past the last one. */
template <typename T, typename D, int V, typename A>
static __device__ void layer_norm_grad_row(const layer_norm_grad_args &a, i64 row, int lane, A *sums,
                                           grads_of<A> *shared) {
  A mean = 0, rstd = 0;
  grads_of<A> s;
  begin(&s);
  if (row < a.rows) {
    mean = ((const A *)a.mean)[row];
    rstd = ((const A *)a.rstd)[row];
    s = layer_norm_grad_sums<T, D, V>(a, row * a.n, lane, mean, rstd, sums);
  }
  s = merge_group(s, a.lanes, shared);
  A average = of_first(s.sum, a.lanes) / (A)a.n, along = of_first(s.dot, a.lanes) / (A)a.n;
  if (row < a.rows) layer_norm_grad_store<T, D, V>(a, row * a.n, lane, mean, rstd, average, along, sums);
}

/* The sums of the groups of a block. */
extern __shared__ f64 layer_norm_sums[];

template <typename T, typename D> static __device__ void layer_norm_grad_rows(const layer_norm_grad_args &a) {
  typedef typename wide_of<T>::type A;
  __shared__ grads_of<A> shared[WARP];
  int t = (int)threadIdx.x, groups = ROWS_THREADS / a.lanes;
  const i64 count = a.sets * a.n;
  A *of_block = (A *)a.sums + (i64)blockIdx.x * count, *all = a.in_workspace ? of_block : (A *)layer_norm_sums;
  for (i64 i = t; i < groups * count; i += ROWS_THREADS) all[i] = 0;
  __syncthreads();
  for (i64 first = (i64)blockIdx.x * groups; first < a.rows; first += a.blocks * groups) {
    A *sums = all + t / a.lanes * count;
    if (a.vector)
      layer_norm_grad_row<T, D, vector_of<T>::N>(a, first + t / a.lanes, t % a.lanes, sums, shared);
    else
      layer_norm_grad_row<T, D, 1>(a, first + t / a.lanes, t % a.lanes, sums, shared);
  }
  __syncthreads();
  for (i64 i = t; i < count && !a.in_workspace; i += ROWS_THREADS) {
    A sum = all[i];
    for (int g = 1; g < groups; g++) sum += all[g * count + i];
    of_block[i] = sum;
  }
}

/* Warps of a block have different parts of the blocks, lanes neighbouring columns. */
template <typename A> static __device__ void layer_norm_grad_blocks(const layer_norm_grad_args &a) {
  __shared__ sum_of<A> shared[ROWS_THREADS];
  int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, warps = ROWS_THREADS / WARP;
  const i64 units = a.n / a.pack, count = a.sets * a.n;
  for (i64 first = (i64)blockIdx.x * WARP; first < count; first += (i64)gridDim.x * WARP) {
    i64 at = first + lane, set = at < a.n ? 0 : at < 2 * a.n ? 1 : 2, place = at - set * a.n, j = place / units;
    void *to = set == 0 ? a.dweight : set == 1 ? a.dbias : a.dsum;
    sum_of<A> s;
    begin(&s);
    for (i64 b = warp; b < a.blocks && at < count; b += warps) s.value += ((const A *)a.sums)[b * count + at];
    merge_rows<1>(&s, WARP, warps, shared);
    if (warp == 0 && at < count) ((A *)to)[(place - j * units) * a.pack + j] = s.value;
  }
}

#define LAYER_NORM_GRAD(name, T, D)                                                                                      \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) layer_norm_grad_rows_##name(const layer_norm_grad_args a) { \
    layer_norm_grad_rows<T, D>(a);                                                                                       \
  }
LAYER_NORM_GRAD(f16, f16, f16)
LAYER_NORM_GRAD(bf16, bf16, bf16)
LAYER_NORM_GRAD(f32, f32, f32)
LAYER_NORM_GRAD(f64, f64, f64)
LAYER_NORM_GRAD(f32_f16, f32, f16)
LAYER_NORM_GRAD(f32_bf16, f32, bf16)
#define LAYER_NORM_GRAD_BLOCKS(A)                                                                                        \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) layer_norm_grad_blocks_##A(const layer_norm_grad_args a) {  \
    layer_norm_grad_blocks<A>(a);                                                                                        \
  }
LAYER_NORM_GRAD_BLOCKS(f32)
LAYER_NORM_GRAD_BLOCKS(f64)

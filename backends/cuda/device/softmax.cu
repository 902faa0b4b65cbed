/* backends/cuda/device/softmax.cu: softmax and its logarithm along any axis: a pass over a row for its largest element and
 * its sum of exponentials, and one for the results. The result may have the operand's address. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/rows.cuh"

/* An element of the result; log_sum: the logarithm of the sum. */
template <int LOG, typename A> static __device__ inline A softmax_element(A x, A largest, A sum, A log_sum) {
  return LOG ? x - largest - log_sum : exp_of(x - largest) / sum;
}

/* ---- contiguous rows ---- */

template <typename T, int V>
static __device__ exps_of<typename wide_of<T>::type> softmax_row_sum(const softmax_args &a, i64 base, int lane) {
  exps_of<typename wide_of<T>::type> s;
  begin(&s);
  for (i64 at = lane * V; at < a.n; at += a.lanes * V) {
    typename wide_of<T>::type x[V];
    pack_of<T, V> p = load_pack<T, V>(a.x, base + at);
#pragma unroll
    for (int j = 0; j < V; j++) x[j] = widen(p.at[j]);
    add_exps<V>(&s, x);
  }
  return s;
}

template <int LOG, typename T, int V, typename A>
static __device__ void softmax_row_store(const softmax_args &a, i64 base, int lane, A largest, A sum) {
  A log_sum = LOG ? log_of(sum) : 0;
  for (i64 at = lane * V; at < a.n; at += a.lanes * V) {
    A y[V];
    pack_of<T, V> p = load_pack<T, V>(a.x, base + at);
#pragma unroll
    for (int j = 0; j < V; j++) y[j] = softmax_element<LOG>(widen(p.at[j]), largest, sum, log_sum);
    store_pack<T, V>(a.y, base + at, y);
  }
}

template <int LOG, typename T> static __device__ void softmax_rows(const softmax_args &a) {
  typedef typename wide_of<T>::type A;
  __shared__ exps_of<A> shared[WARP];
  int lane = (int)threadIdx.x % a.lanes, groups = ROWS_THREADS / a.lanes;
  for (i64 first = (i64)blockIdx.x * groups; first < a.rows; first += (i64)gridDim.x * groups) {
    i64 row = first + (int)threadIdx.x / a.lanes, base = row * a.n;
    exps_of<A> s;
    begin(&s);
    if (row < a.rows)
      s = a.vector ? softmax_row_sum<T, vector_of<T>::N>(a, base, lane) : softmax_row_sum<T, 1>(a, base, lane);
    s = merge_group(s, a.lanes, shared);
    A largest = of_first(s.largest, a.lanes), sum = of_first(whole_exps(s), a.lanes);
    if (row >= a.rows) continue;
    if (a.vector)
      softmax_row_store<LOG, T, vector_of<T>::N>(a, base, lane, largest, sum);
    else
      softmax_row_store<LOG, T, 1>(a, base, lane, largest, sum);
  }
}

/* ---- rows whose elements are `inner` apart ---- */

template <int LOG, typename T> static __device__ void softmax_columns(const softmax_args &a) {
  typedef typename wide_of<T>::type A;
  __shared__ exps_of<A> shared[ROWS_THREADS];
  int column = (int)threadIdx.x % a.width, part = (int)threadIdx.x / a.width % a.lanes;
  int group = a.width * a.lanes, groups = ROWS_THREADS / group, tile = (int)threadIdx.x / group;
  for (i64 first = (i64)blockIdx.x * groups * a.width; first < a.rows; first += (i64)gridDim.x * groups * a.width) {
    i64 row = first + tile * a.width + column, outer = row / a.inner;
    i64 base = outer * a.n * a.inner + (row - outer * a.inner);
    exps_of<A> s;
    begin(&s);
    for (i64 i = part; i < a.n && row < a.rows; i += a.lanes) {
      A x = widen(((const T *)a.x)[base + i * a.inner]);
      add_exps<1>(&s, &x);
    }
    merge_rows<1>(&s, a.width, a.lanes, shared);
    if (a.lanes > 1) s = shared[tile * group + column];
    __syncthreads();
    if (row >= a.rows) continue;
    A sum = whole_exps(s), log_sum = LOG ? log_of(sum) : 0;
    for (i64 i = part; i < a.n; i += a.lanes) {
      i64 at = base + i * a.inner;
      narrow((T *)a.y + at, softmax_element<LOG>(widen(((const T *)a.x)[at]), s.largest, sum, log_sum));
    }
  }
}

#define SOFTMAX_FUNCTIONS(name, LOG, T)                                                                                  \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) name##_rows_##T(const softmax_args a) {                     \
    softmax_rows<LOG, T>(a);                                                                                             \
  }                                                                                                                      \
  extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 3) name##_columns_##T(const softmax_args a) {                  \
    softmax_columns<LOG, T>(a);                                                                                          \
  }
#define SOFTMAX_FLOATS(name, LOG)                                                                                        \
  SOFTMAX_FUNCTIONS(name, LOG, f16)                                                                                      \
  SOFTMAX_FUNCTIONS(name, LOG, bf16)                                                                                     \
  SOFTMAX_FUNCTIONS(name, LOG, f32)                                                                                      \
  SOFTMAX_FUNCTIONS(name, LOG, f64)
SOFTMAX_FLOATS(softmax, 0)
SOFTMAX_FLOATS(log_softmax, 1)

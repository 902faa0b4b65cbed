/* backends/cuda/device/reduce.cuh: what reductions share: types of sums, loads of vectors, accumulators and their
 * merges over the lanes of a warp and the threads of a block.
 *
 * An accumulator is a struct with begin(&c), merge(&c, other) and shuffled(c, mask). Some are made from a struct for the
 * elements of one thread with begin(&s), add(&s, x, y, index) and finished(s); the others are that struct, too.
 * The order of merges depends on the number of threads alone, so results have the same bits in every run. */
#ifndef TN_CUDA_REDUCE_CUH
#define TN_CUDA_REDUCE_CUH

#include "backends/cuda/device/prelude.cuh"

enum { WARP = 32, ALL_LANES = -1 };

/* ---- types of arithmetic, loads and stores ---- */

template <typename T> struct wide_of { typedef f32 type; };
template <> struct wide_of<f64> { typedef f64 type; };
template <> struct wide_of<i32> { typedef i64 type; };
template <> struct wide_of<i64> { typedef i64 type; };

/* V elements that are loaded or stored at once. */
template <typename T, int V> struct __align__(sizeof(T) * V) pack_of { T at[V]; };

/* The elements of 16 bytes. */
template <typename T> struct vector_of { enum { N = 16 / sizeof(T) }; };

template <typename T, int V> static __device__ inline pack_of<T, V> load_pack(const void *from, i64 at) {
  return *(const pack_of<T, V> *)((const T *)from + at);
}

template <typename T, int V, typename A> static __device__ inline void store_pack(void *to, i64 at, const A *x) {
  pack_of<T, V> p;
#pragma unroll
  for (int j = 0; j < V; j++) narrow(&p.at[j], x[j]);
  *(pack_of<T, V> *)((T *)to + at) = p;
}

static __device__ inline bool is_aligned(const void *p) { return ((u64)p & 15) == 0; }

/* A result; integers wrap around. */
template <typename T, typename A> static __device__ inline void put(T *to, A x) { narrow(to, x); }
static __device__ inline void put(i32 *to, i64 x) { *to = (i32)x; }

static __device__ inline void set_infinity(f32 *x) { *x = f32_of_bits(0x7f800000u); }
static __device__ inline void set_infinity(f64 *x) { *x = __longlong_as_double(0x7ff0000000000000ll); }
static __device__ inline void set_nan(f32 *x) { *x = f32_of_bits(0x7fc00000u); }
static __device__ inline void set_nan(f64 *x) { *x = __longlong_as_double(0x7ff8000000000000ll); }
static __device__ inline void set_highest(f32 *x) { set_infinity(x); }
static __device__ inline void set_highest(f64 *x) { set_infinity(x); }
static __device__ inline void set_highest(i32 *x) { *x = 0x7fffffff; }
static __device__ inline void set_highest(i64 *x) { *x = 0x7fffffffffffffffll; }
static __device__ inline void set_lowest(f32 *x) { *x = f32_of_bits(0xff800000u); }
static __device__ inline void set_lowest(f64 *x) { *x = -__longlong_as_double(0x7ff0000000000000ll); }
static __device__ inline void set_lowest(i32 *x) { *x = -0x7fffffff - 1; }
static __device__ inline void set_lowest(i64 *x) { *x = -0x7fffffffffffffffll - 1; }

static __device__ inline f32 exp_of(f32 x) { return expf(x); }
static __device__ inline f64 exp_of(f64 x) { return exp(x); }
static __device__ inline f32 log_of(f32 x) { return logf(x); }
static __device__ inline f64 log_of(f64 x) { return log(x); }
static __device__ inline f32 sqrt_of(f32 x) { return sqrtf(x); }
static __device__ inline f64 sqrt_of(f64 x) { return sqrt(x); }

static __device__ inline f32 plus(f32 a, f32 b) { return a + b; }
static __device__ inline f64 plus(f64 a, f64 b) { return a + b; }
static __device__ inline i32 plus(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
static __device__ inline i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }

/* The larger and the smaller one; NaN where one of them is. */
template <typename A> static __device__ inline A larger(A a, A b) { return b > a || b != b ? b : a; }
template <typename A> static __device__ inline A smaller(A a, A b) { return b < a || b != b ? b : a; }

template <typename A> static __device__ inline A shuffled(A x, int mask) {
  return __shfl_xor_sync((u32)ALL_LANES, x, mask);
}

/* ---- sums and extremes ---- */

template <typename A> struct sum_of {
  typedef A number;
  typedef sum_of<A> done;
  enum { PAIR = 0, CENTERED = 0, TAILS = 0 }; /* takes two operands; subtracts a number from elements; takes part of a vector */
  A value;
};
template <typename A> static __device__ inline void begin(sum_of<A> *c) { c->value = 0; }
template <typename A> static __device__ inline void add(sum_of<A> *c, A x, A, i64) { c->value = plus(c->value, x); }
template <typename A> static __device__ inline void merge(sum_of<A> *c, const sum_of<A> &b) {
  c->value = plus(c->value, b.value);
}
template <typename A> static __device__ inline sum_of<A> shuffled(const sum_of<A> &c, int mask) {
  return sum_of<A>{shuffled(c.value, mask)};
}

template <typename A> struct largest_of {
  typedef A number;
  typedef largest_of<A> done;
  enum { PAIR = 0, CENTERED = 0, TAILS = 0 };
  A value;
};
template <typename A> static __device__ inline void begin(largest_of<A> *c) { set_lowest(&c->value); }
template <typename A> static __device__ inline void add(largest_of<A> *c, A x, A, i64) { c->value = larger(c->value, x); }
template <typename A> static __device__ inline void merge(largest_of<A> *c, const largest_of<A> &b) {
  c->value = larger(c->value, b.value);
}
template <typename A> static __device__ inline largest_of<A> shuffled(const largest_of<A> &c, int mask) {
  return largest_of<A>{shuffled(c.value, mask)};
}

template <typename A> struct smallest_of {
  typedef A number;
  typedef smallest_of<A> done;
  enum { PAIR = 0, CENTERED = 0, TAILS = 0 };
  A value;
};
template <typename A> static __device__ inline void begin(smallest_of<A> *c) { set_highest(&c->value); }
template <typename A> static __device__ inline void add(smallest_of<A> *c, A x, A, i64) {
  c->value = smaller(c->value, x);
}
template <typename A> static __device__ inline void merge(smallest_of<A> *c, const smallest_of<A> &b) {
  c->value = smaller(c->value, b.value);
}
template <typename A> static __device__ inline smallest_of<A> shuffled(const smallest_of<A> &c, int mask) {
  return smallest_of<A>{shuffled(c.value, mask)};
}

/* ---- the index of the largest element: the first of equals; NaN is larger than every number ---- */

template <typename A> struct argmax_of {
  typedef A number;
  typedef argmax_of<A> done;
  enum { PAIR = 0, CENTERED = 0, TAILS = 0 };
  A value;
  u32 at; /* the largest u32 where there is no element yet */
};
template <typename A> static __device__ inline void begin(argmax_of<A> *c) {
  c->value = 0;
  c->at = 0xffffffffu;
}
template <typename A> static __device__ inline void merge(argmax_of<A> *c, const argmax_of<A> &b) {
  bool none = c->at == 0xffffffffu, above = b.value > c->value || (b.value != b.value && c->value == c->value);
  bool same = b.value == c->value || (b.value != b.value && c->value != c->value);
  if (b.at != 0xffffffffu && (none || above || (same && b.at < c->at))) *c = b;
}
template <typename A> static __device__ inline void add(argmax_of<A> *c, A x, A, i64 index) {
  merge(c, argmax_of<A>{x, (u32)index});
}
template <typename A> static __device__ inline argmax_of<A> shuffled(const argmax_of<A> &c, int mask) {
  return argmax_of<A>{shuffled(c.value, mask), shuffled(c.at, mask)};
}

/* ---- moments ---- */

/* n elements with their mean and the sum of their squared distances from it, merged pairwise (Chan, Golub, LeVeque,
 * "Updating formulae and a pairwise algorithm for computing sample variances", 1979). */
template <typename A> struct moments_of {
  typedef A number;
  A n, mean, squares;
};
template <typename A> static __device__ inline void begin(moments_of<A> *c) { c->n = c->mean = c->squares = 0; }
template <typename A> static __device__ inline void merge(moments_of<A> *c, const moments_of<A> &b) {
  A n = c->n + b.n, apart = b.mean - c->mean;
  if (b.n == 0) return;
  A share = b.n / n;
  c->mean = c->mean + apart * share;
  c->squares = c->squares + b.squares + apart * apart * (c->n * share);
  c->n = n;
}
template <typename A> static __device__ inline moments_of<A> shuffled(const moments_of<A> &c, int mask) {
  return moments_of<A>{shuffled(c.n, mask), shuffled(c.mean, mask), shuffled(c.squares, mask)};
}

/* The elements of a thread: sums of x - first and of its square, where `first` is the thread's first element. All
 * elements come less a number near all elements of the result, so that means are as small as deviations. */
template <typename A> struct moments_run {
  typedef A number;
  typedef moments_of<A> done;
  enum { PAIR = 0, CENTERED = 1, TAILS = 0 };
  A first, sum, squares;
  i32 n;
};
template <typename A> static __device__ inline void begin(moments_run<A> *s) {
  s->first = s->sum = s->squares = 0;
  s->n = 0;
}
template <typename A> static __device__ inline void add(moments_run<A> *s, A x, A, i64) {
  if (s->n == 0) s->first = x;
  A apart = x - s->first;
  s->sum += apart;
  s->squares += apart * apart;
  s->n++;
}
template <typename A> static __device__ inline moments_of<A> finished(const moments_run<A> &s) {
  moments_of<A> c;
  begin(&c);
  if (s.n == 0) return c;
  c.n = (A)s.n;
  A apart = s.sum / c.n, squares = s.squares - s.sum * apart;
  c.mean = s.first + apart;
  c.squares = squares < 0 ? (A)0 : squares;
  return c;
}

/* ---- the sums of a normalization's gradient: of dy, and of dy (x - mean) ---- */

template <typename A> struct grads_of {
  typedef A number;
  typedef grads_of<A> done;
  enum { PAIR = 1, CENTERED = 1, TAILS = 0 };
  A sum, dot;
};
template <typename A> static __device__ inline void begin(grads_of<A> *c) { c->sum = c->dot = 0; }
template <typename A> static __device__ inline void add(grads_of<A> *c, A dy, A centered, i64) {
  c->sum += dy;
  c->dot += dy * centered;
}
template <typename A> static __device__ inline void merge(grads_of<A> *c, const grads_of<A> &b) {
  c->sum += b.sum;
  c->dot += b.dot;
}
template <typename A> static __device__ inline grads_of<A> shuffled(const grads_of<A> &c, int mask) {
  return grads_of<A>{shuffled(c.sum, mask), shuffled(c.dot, mask)};
}

/* ---- the sum of exponentials relative to the largest element, and the sum ---- */

template <typename A> struct exps_of {
  typedef A number;
  typedef exps_of<A> done;
  enum { PAIR = 0, CENTERED = 0, TAILS = 1 };
  A largest, exps, sum;
};
template <typename A> static __device__ inline void begin(exps_of<A> *c) {
  set_lowest(&c->largest);
  c->exps = c->sum = 0;
}
/* `exps` relative to another largest element. 0 stays 0, also where both are -infinity. */
template <typename A> static __device__ inline A exps_at(const exps_of<A> &c, A largest) {
  return c.largest == largest ? c.exps : c.exps * exp_of(c.largest - largest);
}
template <typename A> static __device__ inline void add(exps_of<A> *c, A x, A, i64) {
  A lowest, old = c->largest;
  set_lowest(&lowest);
  c->sum += x;
  if (x == lowest) return;
  A apart = x > old ? old - x : x - old, e = exp_of(apart);
  c->exps = x > old ? c->exps * e + 1 : c->exps + e;
  c->largest = x > old ? x : old;
}
/* V elements with one change of the largest. */
template <int V, typename A> static __device__ inline void add_exps(exps_of<A> *c, const A *x) {
  A lowest, most = c->largest, sum = 0, exps = 0;
  set_lowest(&lowest);
#pragma unroll
  for (int j = 0; j < V; j++) most = x[j] > most ? x[j] : most;
#pragma unroll
  for (int j = 0; j < V; j++) {
    sum += x[j];
    exps += x[j] == lowest ? (A)0 : exp_of(x[j] - most);
  }
  c->exps = exps_at(*c, most) + exps;
  c->largest = most;
  c->sum += sum;
}
template <typename A> static __device__ inline void merge(exps_of<A> *c, const exps_of<A> &b) {
  A most = b.largest > c->largest ? b.largest : c->largest;
  c->exps = exps_at(*c, most) + exps_at(b, most);
  c->largest = most;
  c->sum += b.sum;
}
template <typename A> static __device__ inline exps_of<A> shuffled(const exps_of<A> &c, int mask) {
  return exps_of<A>{shuffled(c.largest, mask), shuffled(c.exps, mask), shuffled(c.sum, mask)};
}
/* The sum of exponentials at the end: NaN where the largest element is infinite, as x - largest is. */
template <typename A> static __device__ inline A whole_exps(const exps_of<A> &c) {
  A x = c.largest - c.largest;
  return x == 0 ? c.exps : x;
}

/* ---- all of them ---- */

template <typename S> static __device__ inline typename S::done finished(const S &s) { return s; }

/* The elements x of one load; y: of the other operand. The first has number `index`. */
template <int V, typename S, typename A>
static __device__ inline void add_pack(S *s, const A *x, const A *y, i64 index) {
#pragma unroll
  for (int j = 0; j < V; j++) add(s, x[j], y[j], index + j);
}
template <int V, typename A> static __device__ inline void add_pack(exps_of<A> *s, const A *x, const A *, i64) {
  add_exps<V>(s, x);
}

/* ---- merges over threads ---- */

/* Over `lanes` neighbouring lanes of a warp, a power of two; all lanes of the warp call it. The first lane's result is
 * the one to use. */
template <typename C> static __device__ inline C merge_lanes(C c, int lanes) {
  for (int mask = lanes / 2; mask > 0; mask /= 2) merge(&c, shuffled(c, mask));
  return c;
}

/* Over the block; all threads call it, and all get the same result. `shared` has an entry for each warp, and may be used
 * again at once. */
template <typename C> static __device__ inline C merge_block(C c, C *shared) {
  int warps = (int)blockDim.x / WARP;
  c = merge_lanes(c, WARP);
  if (threadIdx.x % WARP == 0) shared[threadIdx.x / WARP] = c;
  __syncthreads();
  c = shared[0];
  for (int w = 1; w < warps; w++) merge(&c, shared[w]);
  __syncthreads();
  return c;
}

/* Over groups of `lanes` threads: part of a warp, or the block. All threads of the block call it; the first thread of a
 * group gets the result. */
template <typename C> static __device__ inline C merge_group(C c, int lanes, C *shared) {
  return lanes > WARP ? merge_block(c, shared) : merge_lanes(c, lanes);
}

/* For all threads of such a group a number of its first thread, which merge_group has made. */
template <typename A> static __device__ inline A of_first(A x, int lanes) {
  return lanes > WARP ? x : __shfl_sync((u32)ALL_LANES, x, (int)threadIdx.x % WARP / lanes * lanes);
}

/* Over threads `width` apart, `rows` of them, both powers of two: thread t merges with t + width, t + 2 width ... of
 * its group of rows * width threads. `shared` has V * blockDim.x entries. The first `width` threads of a group get the
 * results. All threads call it. */
template <int V, typename C> static __device__ inline void merge_rows(C *c, int width, int rows, C *shared) {
  int t = (int)threadIdx.x, row = t / width % rows, n = (int)blockDim.x;
  if (rows == 1) return;
#pragma unroll
  for (int j = 0; j < V; j++) shared[j * n + t] = c[j];
  for (int half = rows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half) {
#pragma unroll
      for (int j = 0; j < V; j++) {
        merge(&c[j], shared[j * n + t + half * width]);
        shared[j * n + t] = c[j];
      }
    }
  }
  __syncthreads();
}

#endif

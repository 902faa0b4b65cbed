/* backends/cuda/device/reduce_kernels.cuh: reductions over any axes, for any accumulator S of reduce.cuh, elements T,
 * prologue F and epilogue E. */
#ifndef TN_CUDA_REDUCE_KERNELS_CUH
#define TN_CUDA_REDUCE_KERNELS_CUH

#include "backends/cuda/device/prologue.cuh"
#include "backends/cuda/device/reduce_results.cuh"

enum { REDUCE_UNROLL = 4 };

/* ---- units: operands of 16 bytes or less, or what the prologue F makes of its operands ---- */

enum { TAKES_X = 1, TAKES_Y = 2 };

template <typename S, typename T, int V, typename F> struct unit_of {
  enum {
    N = (V + F::WIDTH - 1) / F::WIDTH, /* calls of the prologue; one where vectors are loaded */
    BYTES = V * sizeof(T) * (F::TAKES & TAKES_X ? 0 : 1) + V * sizeof(T) * (F::TAKES & TAKES_Y ? 0 : 1) + N * F::BYTES,
    AT_ONCE = BYTES <= 32 && F::HELD <= 32 ? REDUCE_UNROLL : BYTES <= 64 ? 2 : 1 /* units under way */
  };
  pack_of<T, V> x, y;
  typename F::fetched front[N];
  i64 at;
};

template <typename S, typename T, int V, typename F>
static __device__ inline void load_unit(const reduce_args &a, const F &f, i64 at, unit_of<S, T, V, F> *u) {
  enum { W = F::WIDTH, N = unit_of<S, T, V, F>::N };
  u->at = at;
#pragma unroll
  for (int j = 0; j < N; j++) fetch(f, at + j * W, V < W ? V : W, V >= W, &u->front[j]);
  if (!(F::TAKES & TAKES_X)) u->x = load_pack<T, V>(a.x, at);
  if (S::PAIR && !(F::TAKES & TAKES_Y)) u->y = load_pack<T, V>(a.y, at);
}

/* The loads of several units come before this, which stores results of the prologue. */
template <typename S, typename T, int V, typename F>
static __device__ inline void make_unit(const F &f, unit_of<S, T, V, F> *u) {
  enum { W = F::WIDTH, N = unit_of<S, T, V, F>::N };
#pragma unroll
  for (int j = 0; j < N; j++) {
    T x[W], y[W];
    compute(f, u->front[j], u->at + j * W, V < W ? V : W, V >= W, true, x, y);
#pragma unroll
    for (int k = 0; k < W && j * W + k < V; k++) {
      if (F::TAKES & TAKES_X) u->x.at[j * W + k] = x[k];
      if (F::TAKES & TAKES_Y) u->y.at[j * W + k] = y[k];
    }
  }
  if (!S::PAIR) u->y = u->x;
}

/* The number that the elements of a result come less: its mean for norm_grad_sums, its first element for moments. */
template <typename S, typename T, typename F>
static __device__ inline typename S::number center_of(const reduce_args &a, const F &f, i64 result, i64 base) {
  if (!S::CENTERED) return 0;
  if (S::PAIR) return ((const typename S::number *)a.mean)[result];
  return a.count > 0 ? widen(element_of<T>(f, a.x, base)) : 0;
}

/* An element as `add` takes it. */
template <typename S, typename T>
static __device__ inline void prepare_element(T tx, T ty, typename S::number center, typename S::number *x,
                                              typename S::number *y) {
  *x = widen(tx);
  *y = widen(ty);
  if (S::CENTERED && S::PAIR) *y -= center;
  if (S::CENTERED && !S::PAIR) *x -= center;
}

template <typename S> static __device__ inline void deliver(const reduce_args &a, i64 part, i64 result,
                                                            const typename S::done &c) {
  ((typename S::done *)a.workspace)[part * a.results + result] = c;
}

/* ---- runs ---- */

template <typename S, typename T, int V, typename F>
static __device__ inline void add_unit(S *s, const unit_of<S, T, V, F> &u, typename S::number center, i64 index,
                                       int n) {
  typename S::number x[V], y[V];
#pragma unroll
  for (int j = 0; j < V; j++) prepare_element<S, T>(u.x.at[j], u.y.at[j], center, &x[j], &y[j]);
  if (n == V) {
    add_pack<V>(s, x, y, index);
    return;
  }
#pragma unroll
  for (int j = 0; j < V; j++)
    if (j < n) add(s, x[j], y[j], index + j);
}

/* The elements of a vector; 1 where the prologue makes single elements, since there are no vectors then. */
template <typename F, int V> struct vector_with { enum { N = F::TAKES && F::WIDTH == 1 ? 1 : V }; };

/* A thread's place in the runs of a result. */
struct run_place {
  i64 outer, inside;
};
static __device__ inline run_place place_of(const reduce_args &a, i64 at) {
  run_place p;
  p.outer = a.units == a.steps ? 0 : at / a.units;
  p.inside = at - p.outer * a.units;
  return p;
}
static __device__ inline void advance(const reduce_args &a, run_place *p) {
  p->inside += a.step_inside;
  p->outer += a.step_outer;
  if (p->inside >= a.units) {
    p->inside -= a.units;
    p->outer++;
  }
}

/* The elements of the unit at a place: less than V where the rest is padding, which only accumulators with TAILS look
 * for. */
template <typename S, int V> static __device__ inline int elements_at(const reduce_args &a, const run_place &p) {
  if (V == 1 || !S::TAILS || a.row == 0) return V;
  i64 left = a.row - p.inside * V;
  return left < V ? (int)left : V;
}

/* Several loads are under way at once, where finding their places takes no division. */
template <typename S, typename T, int V, typename F>
static __device__ S run_sum(const reduce_args &a, const F &f, i64 base, typename S::number center, i64 at, i64 last) {
  enum { AT_ONCE = unit_of<S, T, V, F>::AT_ONCE };
  S s;
  begin(&s);
  if (at >= last) return s;
  run_place p = place_of(a, at);
  if (a.reduced.n <= 1)
    for (; at + (AT_ONCE - 1) * a.lanes < last; at += AT_ONCE * a.lanes) {
      unit_of<S, T, V, F> u[AT_ONCE];
      int n[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        load_unit<S, T, V>(a, f, base + p.outer * a.reduced.strides[0] + p.inside * V, &u[k]);
        n[k] = elements_at<S, V>(a, p);
        advance(a, &p);
      }
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        make_unit<S, T, V>(f, &u[k]);
        add_unit<S, T, V>(&s, u[k], center, (at + k * a.lanes) * V, n[k]);
      }
    }
#pragma unroll 1
  for (; at < last; at += a.lanes) {
    unit_of<S, T, V, F> u;
    load_unit<S, T, V>(a, f, base + loops_offset(a.reduced, p.outer) + p.inside * V, &u);
    int n = elements_at<S, V>(a, p);
    advance(a, &p);
    make_unit<S, T, V>(f, &u);
    add_unit<S, T, V>(&s, u, center, at * V, n);
  }
  return s;
}

template <typename S, typename T, typename F, typename E>
static __device__ void reduce_runs(const reduce_args &a, const F &f, const E &e) {
  typedef typename S::done C;
  __shared__ C shared[WARP];
  int lane = (int)threadIdx.x % a.lanes, groups = REDUCE_THREADS / a.lanes;
  i64 tasks = a.tasks * a.parts;
  for (i64 first = (i64)blockIdx.x * groups; first < tasks; first += (i64)gridDim.x * groups) {
    i64 task = first + (int)threadIdx.x / a.lanes, result = a.parts == 1 ? task : task / a.parts;
    i64 part = task - result * a.parts, begins = part * a.part, ends = begins + a.part;
    typename S::number center = 0;
    C c;
    begin(&c);
    if (task < tasks) {
      i64 base = loops_offset(a.kept, result);
      center = center_of<S, T>(a, f, result, base);
      if (ends > a.steps) ends = a.steps;
      c = finished(a.vector ? run_sum<S, T, vector_with<F, vector_of<T>::N>::N>(a, f, base, center, begins + lane, ends)
                            : run_sum<S, T, 1>(a, f, base, center, begins + lane, ends));
    }
    c = merge_group(c, a.lanes, shared);
    if (lane != 0 || task >= tasks) continue;
    if (a.parts > 1)
      deliver<S>(a, part, result, c);
    else
      store((T *)0, a, e, result, center, c);
  }
}

/* ---- columns ---- */

/* The place of a thread among the columns. */
struct column_place {
  i64 result, base; /* of the thread's first column */
  i64 row, last;
  int n; /* columns of the thread: V, or 0 */
};

/* An element to each of V columns. */
template <typename S, typename T, int V, typename F>
static __device__ inline void add_row(S *s, const unit_of<S, T, V, F> &u, const typename S::number *center, i64 index) {
#pragma unroll
  for (int j = 0; j < V; j++) {
    typename S::number x, y;
    prepare_element<S, T>(u.x.at[j], u.y.at[j], center[j], &x, &y);
    add(&s[j], x, y, index);
  }
}

template <typename S, typename T, int V, typename F>
static __device__ void column_sums(const reduce_args &a, const F &f, const column_place &p,
                                   const typename S::number *center, S *s) {
  enum { AT_ONCE = unit_of<S, T, V, F>::AT_ONCE };
  i64 row = p.row;
  int step = a.rows;
  if (a.reduced.n <= 1)
    for (; row + (AT_ONCE - 1) * step < p.last; row += AT_ONCE * step) {
      unit_of<S, T, V, F> u[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++)
        load_unit<S, T, V>(a, f, p.base + (row + k * step) * a.reduced.strides[0], &u[k]);
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        make_unit<S, T, V>(f, &u[k]);
        add_row<S, T, V>(s, u[k], center, row + k * step);
      }
    }
#pragma unroll 1
  for (; row < p.last; row += step) {
    unit_of<S, T, V, F> u;
    load_unit<S, T, V>(a, f, p.base + loops_offset(a.reduced, row), &u);
    make_unit<S, T, V>(f, &u);
    add_row<S, T, V>(s, u, center, row);
  }
}

template <typename S, typename T, int V, typename F, typename E>
static __device__ void columns_block(const reduce_args &a, const F &f, const E &e, i64 first, typename S::done *shared) {
  typedef typename S::done C;
  int t = (int)threadIdx.x;
  i64 task = first + t / a.lanes, tile = a.parts == 1 ? task : task / a.parts, part = task - tile * a.parts;
  i64 outer = a.tiles == 1 ? tile : tile / a.tiles, column = ((tile - outer * a.tiles) * a.width + t % a.width) * V;
  column_place p;
  typename S::number center[V];
  C c[V];
  S s[V];
  p.n = tile < a.tasks && column < a.columns ? V : 0;
  p.result = outer * a.columns + column;
  p.base = p.n > 0 ? loops_offset(a.kept, outer) + column : 0;
  p.row = part * a.part + t / a.width % a.rows;
  p.last = (part + 1) * a.part < a.steps ? (part + 1) * a.part : a.steps;
#pragma unroll
  for (int j = 0; j < V; j++) {
    center[j] = p.n > 0 ? center_of<S, T>(a, f, p.result + j, p.base + j) : 0;
    begin(&s[j]);
  }
  if (p.n > 0) column_sums<S, T, V>(a, f, p, center, s);
#pragma unroll
  for (int j = 0; j < V; j++) c[j] = finished(s[j]);
  merge_rows<V>(c, a.width, a.rows, shared);
  if (p.n == 0 || t / a.width % a.rows != 0) return;
#pragma unroll
  for (int j = 0; j < V; j++) {
    if (a.parts > 1)
      deliver<S>(a, part, p.result + j, c[j]);
    else
      store((T *)0, a, e, p.result + j, center[j], c[j]);
  }
}

/* The elements of a thread in a row of columns: half as many where sums have 8 bytes. */
template <typename T> struct column_pack {
  enum { N = sizeof(typename wide_of<T>::type) == 8 ? REDUCE_COLUMN_PACK / 2 : REDUCE_COLUMN_PACK };
};

template <typename S, typename T, typename F, typename E>
static __device__ void reduce_columns(const reduce_args &a, const F &f, const E &e) {
  enum { V = vector_with<F, column_pack<T>::N>::N };
  __shared__ typename S::done shared[V * REDUCE_THREADS];
  int groups = REDUCE_THREADS / a.lanes;
  i64 tasks = a.tasks * a.parts;
  for (i64 first = (i64)blockIdx.x * groups; first < tasks; first += (i64)gridDim.x * groups) {
    if (a.vector)
      columns_block<S, T, V>(a, f, e, first, shared);
    else
      columns_block<S, T, 1>(a, f, e, first, shared);
  }
}

/* ---- the second launch: merges the parts in their order ---- */

template <typename S, typename T, typename F, typename E>
static __device__ void reduce_parts(const reduce_args &a, const F &f, const E &e) {
  typedef typename S::done C;
  __shared__ C shared[REDUCE_THREADS];
  int column = (int)threadIdx.x % a.width, row = (int)threadIdx.x / a.width;
  for (i64 first = (i64)blockIdx.x * a.width; first < a.results; first += (i64)gridDim.x * a.width) {
    i64 result = first + column;
    C c;
    begin(&c);
    for (i64 part = row; part < a.parts && result < a.results; part += a.rows)
      merge(&c, ((const C *)a.workspace)[part * a.results + result]);
    merge_rows<1>(&c, a.width, a.rows, shared);
    if (row == 0 && result < a.results)
      store((T *)0, a, e, result, center_of<S, T>(a, f, result, S::CENTERED && !S::PAIR ? first_element(a, result) : 0), c);
  }
}

/* The functions of an op, `runs` or `columns`, and `parts`, for elements T with accumulator S. Their argument, of type
 * ARGS, has the reduction in member REDUCTION, the prologue in PROLOGUE and the epilogue in EPILOGUE. */
#define REDUCE_FUNCTION(KIND, name, S, T, ARGS, REDUCTION, PROLOGUE, EPILOGUE)                                           \
  extern "C" __global__ void __launch_bounds__(REDUCE_THREADS, 3) name(const ARGS a) {                                   \
    reduce_##KIND<S<wide_of<T>::type>, T>(REDUCTION, PROLOGUE, EPILOGUE);                                                \
  }
#define REDUCE_FUNCTIONS(op, S, T)                                                                                       \
  REDUCE_FUNCTION(runs, op##_runs_##T, S, T, reduce_args, a, no_prologue(), no_epilogue())                               \
  REDUCE_FUNCTION(columns, op##_columns_##T, S, T, reduce_args, a, no_prologue(), no_epilogue())                         \
  REDUCE_FUNCTION(parts, op##_parts_##T, S, T, reduce_args, a, no_prologue(), no_epilogue())
/* With a printed prologue, or a printed epilogue, or both, whose words are behind the reduction's arguments. KIND: `runs`
 * or `columns`. */
#define REDUCE_JOINED(KIND, S, T, PROLOGUE, EPILOGUE)                                                                    \
  REDUCE_FUNCTION(KIND, KIND, S, T, joined_args, a.reduction, PROLOGUE, EPILOGUE)                                        \
  REDUCE_FUNCTION(parts, parts, S, T, joined_args, a.reduction, PROLOGUE, EPILOGUE)
#define REDUCE_WITH_EPILOGUE(KIND, S, T)                                                                                 \
  struct joined_args {                                                                                                   \
    reduce_args reduction;                                                                                               \
    words epilogue;                                                                                                      \
  };                                                                                                                     \
  REDUCE_JOINED(KIND, S, T, no_prologue(), a.epilogue)
#define REDUCE_WITH_PROLOGUE(KIND, S, T)                                                                                 \
  struct joined_args {                                                                                                   \
    reduce_args reduction;                                                                                               \
    front::words prologue;                                                                                               \
  };                                                                                                                     \
  REDUCE_JOINED(KIND, S, T, a.prologue, no_epilogue())
#define REDUCE_WITH_BOTH(KIND, S, T)                                                                                     \
  struct joined_args {                                                                                                   \
    reduce_args reduction;                                                                                               \
    front::words prologue;                                                                                               \
    words epilogue;                                                                                                      \
  };                                                                                                                     \
  REDUCE_JOINED(KIND, S, T, a.prologue, a.epilogue)
#define REDUCE_FLOATS(op, S)                                                                                             \
  REDUCE_FUNCTIONS(op, S, f16) REDUCE_FUNCTIONS(op, S, bf16) REDUCE_FUNCTIONS(op, S, f32) REDUCE_FUNCTIONS(op, S, f64)
#define REDUCE_NUMBERS(op, S) REDUCE_FLOATS(op, S) REDUCE_FUNCTIONS(op, S, i32) REDUCE_FUNCTIONS(op, S, i64)

#endif

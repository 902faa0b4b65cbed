/* backends/cpu/kernels/cumulative.c: running sums, products and extremes along an axis. Floats are
 * accumulated in f64, integers in i64. A row along the innermost axis is computed tile by tile, rows beside
 * each other element by element (rows.h). */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/rows.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

enum { MODES = TN_CUMULATIVE_LOGSUMEXP + 1 };

typedef union cumulative_tile {
  double f64[TN_TILE];
  int64_t i64[TN_TILE];
} cumulative_tile;

/* name_run: n neighbours of one row, in steps of `by`. name_each: one element of each of n rows. Both replace
 * the elements by the results. */
typedef struct cumulative_functions {
  void (*run)(void *v, int64_t n, int64_t by, bool exclusive, void *sum);
  void (*each)(void *v, int64_t n, bool exclusive, void *sum);
} cumulative_functions;

#define CUMULATIVE(name, T, next)                                                                            \
  static void name##_run(void *values, int64_t n, int64_t by, bool exclusive, void *sum) {                   \
    T *v = values, s = *(T *)sum;                                                                            \
    for (int64_t i = 0; i < n; i++, v += by) {                                                               \
      T x = *v, before = s;                                                                                  \
      s = next;                                                                                              \
      *v = exclusive ? before : s;                                                                           \
    }                                                                                                        \
    *(T *)sum = s;                                                                                           \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_each(void *values, int64_t n, bool exclusive, void *sum) {                \
    T *v = values, *sums = sum;                                                                              \
    TN_CPU_VECTOR for (int64_t i = 0; i < n; i++) {                                                          \
      T x = v[i], s = sums[i], y = next;                                                                     \
      v[i] = exclusive ? s : y;                                                                              \
      sums[i] = y;                                                                                           \
    }                                                                                                        \
  }

/* log(exp(x) + exp(y)); infinities of one sign have no difference. */
static double cumulative_log_add(double x, double y) {
  double high = x > y ? x : y, low = x > y ? y : x;
  return x == y ? x + M_LN2 : high + log1p(exp(low - high));
}

/* A NaN stays: no comparison with it holds. */
CUMULATIVE(sum_f64, double, s + x)
CUMULATIVE(prod_f64, double, s *x)
CUMULATIVE(max_f64, double, x > s || x != x ? x : s)
CUMULATIVE(min_f64, double, x < s || x != x ? x : s)
CUMULATIVE(log_f64, double, cumulative_log_add(s, x))
CUMULATIVE(sum_i64, int64_t, (int64_t)((uint64_t)s + (uint64_t)x))
CUMULATIVE(prod_i64, int64_t, (int64_t)((uint64_t)s *(uint64_t)x))
CUMULATIVE(max_i64, int64_t, x > s ? x : s)
CUMULATIVE(min_i64, int64_t, x < s ? x : s)

static const cumulative_functions functions[2][MODES] = {{{sum_i64_run, sum_i64_each},
                                                          {prod_i64_run, prod_i64_each},
                                                          {max_i64_run, max_i64_each},
                                                          {min_i64_run, min_i64_each}},
                                                         {{sum_f64_run, sum_f64_each},
                                                          {prod_f64_run, prod_f64_each},
                                                          {max_f64_run, max_f64_each},
                                                          {min_f64_run, min_f64_each},
                                                          {log_f64_run, log_f64_each}}};

typedef struct cumulative_kernel {
  tn_rows rows;
  tn_cumulative_attributes a;
  bool is_float;
} cumulative_kernel;

typedef struct cumulative_job {
  const cumulative_kernel *k;
  const tn_launch *l;
} cumulative_job;

/* ---- tiles ---- */

static void cumulative_begin(const cumulative_kernel *k, int64_t n, cumulative_tile *sum) {
  static const double f64[MODES] = {0, 1, -INFINITY, INFINITY, -INFINITY};
  static const int64_t i64[MODES] = {0, 1, INT64_MIN, INT64_MAX, 0};
  for (int64_t i = 0; i < n && k->is_float; i++) sum->f64[i] = f64[k->a.mode];
  for (int64_t i = 0; i < n && !k->is_float; i++) sum->i64[i] = i64[k->a.mode];
}

static void cumulative_load(const cumulative_job *j, int64_t at, int64_t n, cumulative_tile *tile) {
  const tn_view *x = &j->l->in[0];
  const void *from = j->k->is_float ? (const void *)tn_cpu_f64(x->type.dtype, x->data, at, n, tile->f64)
                                    : tn_cpu_i64(x->type.dtype, x->data, at, n, tile->i64);
  if (from != tile) memcpy(tile, from, (size_t)n * sizeof(double));
}

static void cumulative_store(const cumulative_job *j, int64_t at, int64_t n, const cumulative_tile *tile) {
  const tn_view *y = &j->l->out[0];
  void *to = tn_cpu_at(y->data, y->type.dtype, at);
  float narrow[TN_TILE], *f32 = y->type.dtype == TN_F32 ? to : narrow;
  if (tn_dtype_size(y->type.dtype) == 8) {
    memcpy(to, tile, (size_t)n * sizeof(double));
  } else if (y->type.dtype == TN_I32) {
    for (int64_t i = 0; i < n; i++) ((int32_t *)to)[i] = (int32_t)(uint32_t)(uint64_t)tile->i64[i];
  } else {
    for (int64_t i = 0; i < n; i++) f32[i] = (float)tile->f64[i];
    if (f32 == narrow) tn_cpu_narrow(y->type.dtype, narrow, to, n);
  }
}

/* ---- rows ---- */

static void cumulative_do_row(const cumulative_job *j, int64_t row) {
  const cumulative_kernel *k = j->k;
  const cumulative_functions *f = &functions[k->is_float][k->a.mode];
  int64_t n = k->rows.n, tiles = divide_up(n, TN_TILE);
  cumulative_tile tile, sum;
  cumulative_begin(k, 1, &sum);
  for (int64_t t = 0; t < tiles; t++) {
    int64_t first = (k->a.reverse ? tiles - 1 - t : t) * TN_TILE;
    int64_t count = least(n - first, TN_TILE);
    cumulative_load(j, row * n + first, count, &tile);
    f->run(tile.f64 + (k->a.reverse ? count - 1 : 0), count, k->a.reverse ? -1 : 1, k->a.exclusive, &sum);
    cumulative_store(j, row * n + first, count, &tile);
  }
}

static void cumulative_do_block(const cumulative_job *j, int64_t task) {
  const cumulative_kernel *k = j->k;
  const tn_rows *r = &k->rows;
  int64_t column = task % r->blocks * TN_ROW_BLOCK, n = least(r->inner - column, TN_ROW_BLOCK);
  int64_t base = task / r->blocks * r->n * r->inner + column;
  cumulative_tile tile, sum;
  cumulative_begin(k, n, &sum);
  for (int64_t i = 0; i < r->n; i++) {
    int64_t at = base + (k->a.reverse ? r->n - 1 - i : i) * r->inner;
    cumulative_load(j, at, n, &tile);
    functions[k->is_float][k->a.mode].each(&tile, n, k->a.exclusive, &sum);
    cumulative_store(j, at, n, &tile);
  }
}

static void cumulative_chunk(void *arg, int64_t chunk) {
  const cumulative_job *j = arg;
  const tn_rows *r = &j->k->rows;
  int64_t task = chunk * r->tasks_per_chunk;
  int64_t end = least(task + r->tasks_per_chunk, r->tasks);
  for (; task < end; task++) (r->inner == 1 ? cumulative_do_row : cumulative_do_block)(j, task);
}

static tn_status cumulative_launch(tn_launch *l) {
  cumulative_job j = {l->prepared, l};
  if (tn_type_count(&l->in[0].type) > 0) tn_parallel(l, j.k->rows.chunks, cumulative_chunk, &j);
  return TN_OK;
}

static tn_status cumulative_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  return tn_offer(q, (tn_variant){.name = "one pass",
                                  .prepared_bytes = sizeof(cumulative_kernel),
                                  .n_inplace = 1,
                                  .inplace = inplace});
}

static tn_status cumulative_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  cumulative_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  k->a = *(const tn_cumulative_attributes *)n->attributes;
  k->rows = tn_rows_of(n->in[0], k->a.axis);
  k->is_float = tn_dtype_is_float(n->in[0]->dtype);
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, cumulative, "cumulative", "y = cumulative(x)",
                 "running sums, products and extremes along an axis",
                 TN_KERNEL_CALLBACKS_WITH(cumulative, tn_delete_prepared));

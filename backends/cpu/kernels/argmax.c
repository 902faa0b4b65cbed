/* backends/cpu/kernels/argmax.c: the index of the largest element along one axis. The first of equal
 * elements wins. NaN is larger than every number. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/lane.h"

#include <math.h>

#include "tenon/attributes.h"

enum { BLOCK = 256, CHUNK = 1 << 15 };

/* The prepared kernel: the operand as (outer, n, inner), n along the axis. A task computes up to BLOCK
 * neighbouring results. */
typedef struct argmax_kernel {
  int64_t outer, n, inner, blocks, tasks_per_chunk;
} argmax_kernel;

typedef struct argmax_job {
  argmax_kernel s;
  const tn_launch *l;
} argmax_job;

static argmax_kernel argmax_kernel_of(const tn_type *type, const void *attributes) {
  const tn_axis_attributes *a = attributes;
  int64_t axis = a->axis < 0 ? a->axis + type->rank : a->axis;
  argmax_kernel s = {.outer = 1, .n = type->dims[axis], .inner = 1};
  for (int32_t i = 0; i < type->rank; i++) {
    if (i < axis) s.outer *= type->dims[i];
    if (i > axis) s.inner *= type->dims[i];
  }
  s.blocks = (s.inner + BLOCK - 1) / BLOCK;
  int64_t work = s.n * (s.inner < BLOCK ? s.inner : BLOCK);
  s.tasks_per_chunk = work > 0 && work < CHUNK ? CHUNK / work : 1;
  return s;
}

/* name_run: n neighbours of one result, where the axis is innermost; `at` is the index of the first.
 * name_row: element `at` of n neighbouring results. */
#define SEARCH_RUN(name, T, beats)                                                                           \
  static void name##_run(const T *x, int64_t n, int64_t at, T *best, int32_t *index) {                       \
    for (int64_t i = 0; i < n; i++)                                                                          \
      if (beats(x[i], *best)) {                                                                              \
        *best = x[i];                                                                                        \
        *index = (int32_t)(at + i);                                                                          \
      }                                                                                                      \
  }                                                                                                          \
  static void name##_row(const T *x, int64_t n, int64_t at, T *best, int32_t *index) {                       \
    for (int64_t i = 0; i < n; i++)                                                                          \
      if (beats(x[i], best[i])) {                                                                            \
        best[i] = x[i];                                                                                      \
        index[i] = (int32_t)at;                                                                              \
      }                                                                                                      \
  }
#define LARGER(x, best)        ((x) > (best))
#define LARGER_OR_NAN(x, best) ((x) > (best) || ((x) != (x) && (best) == (best)))
SEARCH_RUN(f64, double, LARGER_OR_NAN)
SEARCH_RUN(i64, int64_t, LARGER)

/* One result, where the axis is innermost. */
static void argmax_search_run(const argmax_job *j, int64_t row, int32_t *to) {
  const tn_view *x = &j->l->in[0];
  int64_t base = row * j->s.n;
  union {
    double f[TN_TILE];
    int64_t i[TN_TILE];
  } tile;
  double best = -INFINITY;
  int64_t integer = INT64_MIN;
  *to = 0;
  for (int64_t at = 0, n; at < j->s.n; at += n) {
    n = j->s.n - at < TN_TILE ? j->s.n - at : TN_TILE;
    if (x->type.dtype == TN_I64)
      i64_run(tn_cpu_i64(TN_I64, x->data, base + at, n, tile.i), n, at, &integer, to);
    else
      f64_run(tn_cpu_f64(x->type.dtype, x->data, base + at, n, tile.f), n, at, &best, to);
  }
}

/* Up to BLOCK results, where the axis has stride `inner`. */
static void argmax_search_rows(const argmax_job *j, int64_t task, int32_t *to) {
  const tn_view *x = &j->l->in[0];
  const argmax_kernel *s = &j->s;
  int64_t column = task % s->blocks * BLOCK, n = s->inner - column < BLOCK ? s->inner - column : BLOCK;
  int64_t base = task / s->blocks * s->n * s->inner + column;
  double best[BLOCK], tile[BLOCK];
  int64_t integer[BLOCK];
  to += task / s->blocks * s->inner + column;
  for (int64_t k = 0; k < n; k++) {
    best[k] = -INFINITY;
    integer[k] = INT64_MIN;
    to[k] = 0;
  }
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = base + i * s->inner;
    if (x->type.dtype == TN_I64)
      i64_row((const int64_t *)x->data + at, n, i, integer, to);
    else
      f64_row(tn_cpu_f64(x->type.dtype, x->data, at, n, tile), n, i, best, to);
  }
}

static void argmax_chunk(void *arg, int64_t chunk) {
  const argmax_job *j = arg;
  int64_t task = chunk * j->s.tasks_per_chunk, tasks = j->s.outer * j->s.blocks;
  int64_t end = task + j->s.tasks_per_chunk < tasks ? task + j->s.tasks_per_chunk : tasks;
  int32_t *to = j->l->out[0].data;
  for (; task < end; task++) {
    if (j->s.inner == 1)
      argmax_search_run(j, task, to + task);
    else
      argmax_search_rows(j, task, to);
  }
}

static tn_status argmax_launch(tn_launch *l) {
  const argmax_kernel *s = l->prepared;
  argmax_job j = {*s, l};
  tn_parallel(l, (s->outer * s->blocks + s->tasks_per_chunk - 1) / s->tasks_per_chunk, argmax_chunk, &j);
  return TN_OK;
}

static tn_status argmax_query(tn_query *q) {
  const tn_type *x = q->match->in[0];
  argmax_kernel s = argmax_kernel_of(x, q->match->nodes[0].node->attributes);
  if (s.n == 0 && s.outer * s.inner > 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "argmax over no elements has no value");
  return tn_offer(q, (tn_variant){.name = "scan", .prepared_bytes = sizeof(argmax_kernel)});
}

static tn_status argmax_prepare(tn_prepare *p, void **prepared) {
  argmax_kernel *s = tn_new(p, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  *s = argmax_kernel_of(p->match->in[0], p->match->nodes[0].node->attributes);
  *prepared = s;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, argmax, "argmax", "y = argmax(x)", "index of the largest element along an axis",
                 TN_KERNEL_CALLBACKS_WITH(argmax, tn_delete_prepared));

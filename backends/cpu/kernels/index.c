/* backends/cpu/kernels/index.c: gather and scatter. A row is a run along the last merged dimension
 * (index_walk.h). gather computes rows in any order. A task of scatter has all updates that can have the same
 * target, in their order along the axis: the bits depend on no thread. Half floats are widened to f32 in the
 * workspace, updated and rounded once. An index outside the axis is an error. */
#include "backends/shared/define_kernel.h"
#include "backends/shared/index_walk.h"
#include "backends/shared/integer_math.h"
#include "backends/cpu/kernels/common/lane.h"
#include "backends/cpu/kernels/common/strided_copy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

enum { CHUNK_BYTES = 1 << 16, COLUMNS = 4096 };

/* ---- indices ---- */

static inline int64_t index_at(const tn_view *index, int64_t at) {
  return index->type.dtype == TN_I64 ? ((const int64_t *)index->data)[at]
                                     : ((const int32_t *)index->data)[at];
}

/* Some indices; `bad` is set where one is outside the axis. */
typedef struct index_scan {
  const tn_view *index;
  int64_t n, size;
  atomic_bool bad;
} index_scan;

static void index_scan_chunk(void *arg, int64_t chunk) {
  index_scan *s = arg;
  int64_t first = chunk * CHUNK_BYTES, end = least(first + CHUNK_BYTES, s->n), bad = 0;
  for (int64_t i = first; i < end; i++)
    bad |= (int64_t)((uint64_t)index_at(s->index, i) >= (uint64_t)s->size);
  if (bad != 0) atomic_store(&s->bad, true);
}

static tn_status index_check(tn_launch *l, const char *op, int64_t size) {
  const tn_view *index = &l->in[1];
  index_scan s = {index, tn_type_count(&index->type), size, false};
  tn_parallel(l, divide_up(s.n, CHUNK_BYTES), index_scan_chunk, &s);
  for (int64_t i = 0; atomic_load(&s.bad) && i < s.n; i++)
    if ((uint64_t)index_at(index, i) >= (uint64_t)size)
      return tn_fail(l, TN_EINVAL, NULL,
                     "%s: index %lld at position %lld, expected 0 .. %lld: check the data that the index is "
                     "made of",
                     op, (long long)index_at(index, i), (long long)i, (long long)(size - 1));
  return TN_OK;
}

/* Whether n indices from `at` on are equal, as those of an index that is broadcast along rows. */
static bool index_is_one(const tn_view *index, int64_t at, int64_t n) {
  int64_t first = index_at(index, at), other = 0;
  for (int64_t i = 1; i < n; i++) other |= index_at(index, at + i) ^ first;
  return other == 0;
}

/* ---- gather ---- */

typedef struct gather_job {
  const tn_index_walk *w;
  const tn_view *x, *index, *y;
  size_t size;
  int64_t rows, step, run;
} gather_job;

/* A run along the axis, or, with `across` 1, along a dimension behind it. */
#define GATHER_LOOP(T, I)                                                                                    \
  for (int64_t j = 0; j < run; j++)                                                                          \
  ((T *)to)[j] = ((const T *)from)[((const I *)index)[j] * stride + j * across]
#define GATHER_RUN(T)                                                                                        \
  if (wide)                                                                                                  \
    GATHER_LOOP(T, int64_t);                                                                                 \
  else                                                                                                       \
    GATHER_LOOP(T, int32_t);                                                                                 \
  break

static void gather_run(const void *index, bool wide, const void *from, int64_t stride, int64_t across,
                       void *to, int64_t run, size_t size) {
  switch (size) {
  case 1: GATHER_RUN(uint8_t);
  case 2: GATHER_RUN(uint16_t);
  case 4: GATHER_RUN(uint32_t);
  default: GATHER_RUN(uint64_t);
  }
}

static void gather_row(const gather_job *j, int64_t row) {
  const tn_index_walk *w = j->w;
  int64_t wide = 0, reach = 0, stride = w->strides[w->axis];
  tn_index_walk_at(w, 0, w->rank - 1, row, &wide, &reach);
  uint8_t *to = (uint8_t *)j->y->data + (size_t)reach * j->size;
  const uint8_t *from = (const uint8_t *)j->x->data;
  bool along = w->axis == w->rank - 1;
  if (!along && (w->vector || index_is_one(j->index, reach, j->run))) {
    int64_t place =
        w->vector ? row / tn_index_walk_count(w, w->axis + 1, w->rank - 1) % w->dims[w->axis] : reach;
    memcpy(to, from + (size_t)(wide + index_at(j->index, place) * stride) * j->size,
           (size_t)j->run * j->size);
  } else {
    gather_run(tn_cpu_at(j->index->data, j->index->type.dtype, w->vector ? 0 : reach),
               j->index->type.dtype == TN_I64, from + (size_t)wide * j->size, stride, !along, to, j->run,
               j->size);
  }
}

static void gather_chunk(void *arg, int64_t chunk) {
  const gather_job *j = arg;
  int64_t row = chunk * j->step, end = least(row + j->step, j->rows);
  for (; row < end; row++) gather_row(j, row);
}

static tn_status gather_launch(tn_launch *l) {
  const tn_index_walk *w = l->prepared;
  size_t size = tn_dtype_size(l->out[0].type.dtype);
  if (tn_type_count(&l->out[0].type) == 0) return TN_OK;
  TN_TRY(index_check(l, "gather", w->size));
  gather_job j = {.w = w,
                  .x = &l->in[0],
                  .index = &l->in[1],
                  .y = &l->out[0],
                  .size = size,
                  .rows = tn_index_walk_count(w, 0, w->rank - 1),
                  .run = w->dims[w->rank - 1]};
  j.step = CHUNK_BYTES / ((int64_t)size * j.run) + 1;
  tn_parallel(l, divide_up(j.rows, j.step), gather_chunk, &j);
  return TN_OK;
}

/* ---- scatter ---- */

typedef struct scatter_job {
  const tn_index_walk *w;
  const tn_view *index, *updates;
  void *sum; /* the result, or its elements in f32 */
  int32_t mode, lane;
  int64_t blocks; /* tasks of one place before the axis: columns of the last dimension */
} scatter_job;

typedef struct scatter_run {
  const tn_view *index;
  int64_t at, pace; /* of the first update's index; 0: one index for the run */
  int64_t stride, across, n;
} scatter_run;

/* Targets side by side, which differ: one index for a run along a dimension behind the axis. */
#define SCATTER_ROW(T, statement)                                                                            \
  T *row = sum + index_at(r->index, r->at) * r->stride;                                                      \
  _Pragma("GCC ivdep") for (int64_t j = 0; j < r->n; j++) {                                                  \
    T *to = row + j, u = updates[j];                                                                         \
    statement;                                                                                               \
  }
#define SCATTER_LOOP(T, statement)                                                                           \
  if (r->pace == 0 && r->across == 1) {                                                                      \
    SCATTER_ROW(T, statement)                                                                                \
  } else                                                                                                     \
    for (int64_t j = 0; j < r->n; j++) {                                                                     \
      T *to = sum + index_at(r->index, r->at + j * r->pace) * r->stride + j * r->across, u = updates[j];     \
      statement;                                                                                             \
    }

/* Unsigned sums of integers wrap. */
#define SCATTER_RUN(name, T, U)                                                                              \
  static void scatter_##name(const scatter_run *r, int32_t mode, const void *from, void *target) {           \
    const T *updates = from;                                                                                 \
    T *sum = target;                                                                                         \
    switch (mode) {                                                                                          \
    case TN_SCATTER_ADD: SCATTER_LOOP(T, *to = (T)((U)*to + (U)u)) break;                                    \
    case TN_SCATTER_MAX: SCATTER_LOOP(T, if (u > *to || u != u) *to = u) break;                              \
    case TN_SCATTER_MIN: SCATTER_LOOP(T, if (u < *to || u != u) *to = u) break;                              \
    default: SCATTER_LOOP(T, *to = u) break;                                                                 \
    }                                                                                                        \
  }
SCATTER_RUN(f32, float, float)
SCATTER_RUN(f64, double, double)
SCATTER_RUN(i32, int32_t, uint32_t)
SCATTER_RUN(i64, int64_t, uint64_t)

/* Updates from element `from` on, in tiles where they are half floats. */
static void scatter_apply(const scatter_job *j, scatter_run r, int64_t from, int64_t wide) {
  static void (*const run[TN_LANES])(const scatter_run *, int32_t, const void *,
                                     void *) = {[TN_LANE_F32] = scatter_f32,
                                                [TN_LANE_F64] = scatter_f64,
                                                [TN_LANE_I32] = scatter_i32,
                                                [TN_LANE_I64] = scatter_i64};
  int32_t dtype = j->updates->type.dtype;
  size_t size = tn_lane_size(j->lane);
  int64_t n = r.n, tile = tn_lane_is_stored(dtype) ? n : TN_TILE;
  float narrow[TN_TILE];
  for (int64_t at = 0; at < n; at += tile) {
    r.n = least(n - at, tile);
    const void *updates = tn_cpu_at(j->updates->data, dtype, from + at);
    if (!tn_lane_is_stored(dtype)) updates = tn_cpu_f32(dtype, j->updates->data, from + at, r.n, narrow);
    run[j->lane](&r, j->mode, updates, (uint8_t *)j->sum + (size_t)(wide + at * r.across) * size);
    r.at += r.n * r.pace;
  }
}

/* All updates of one place of the dimensions before the axis, in some columns of the last one. */
static void scatter_task(void *arg, int64_t task) {
  const scatter_job *j = arg;
  const tn_index_walk *w = j->w;
  bool along = w->axis == w->rank - 1;
  int64_t column = along ? 0 : task % j->blocks * COLUMNS, last = w->dims[w->rank - 1];
  int64_t rows = along ? 1 : tn_index_walk_count(w, w->axis, w->rank - 1), wide = 0, reach = 0;
  tn_index_walk_at(w, 0, w->axis, task / j->blocks, &wide, &reach);
  scatter_run r = {.index = j->index,
                   .pace = along || !w->vector,
                   .stride = w->strides[w->axis],
                   .across = !along,
                   .n = along ? last : least(last - column, COLUMNS)};
  for (int64_t row = 0; row < rows; row++) {
    int64_t to = wide + column, from = reach + column;
    if (!along) tn_index_walk_at(w, w->axis, w->rank - 1, row, &to, &from);
    if (!along && !w->vector) r.pace = !index_is_one(j->index, from, r.n);
    r.at = !w->vector ? from : along ? 0 : row / (rows / w->dims[w->axis]);
    scatter_apply(j, r, from, to);
  }
}

/* Half floats to f32 in the workspace, or back. */
typedef struct scatter_convert {
  int32_t dtype;
  void *half;
  float *wide;
  int64_t n;
  bool back;
} scatter_convert;

static void scatter_convert_chunk(void *arg, int64_t chunk) {
  const scatter_convert *c = arg;
  int64_t at = chunk * CHUNK_BYTES, n = least(c->n - at, CHUNK_BYTES);
  if (c->back)
    tn_cpu_narrow(c->dtype, c->wide + at, tn_cpu_at(c->half, c->dtype, at), n);
  else
    tn_cpu_widen(c->dtype, tn_cpu_at(c->half, c->dtype, at), c->wide + at, n);
}

static void scatter_convert_all(tn_launch *l, void *half, bool back) {
  const tn_type *y = &l->out[0].type;
  scatter_convert c = {y->dtype, half, l->workspace, tn_type_count(y), back};
  tn_parallel(l, divide_up(c.n, CHUNK_BYTES), scatter_convert_chunk, &c);
}

typedef struct scatter_kernel {
  tn_index_walk w;
  int32_t mode;
} scatter_kernel;

static tn_status scatter_launch(tn_launch *l) {
  const scatter_kernel *k = l->prepared;
  const tn_index_walk *w = &k->w;
  const tn_type *y = &l->out[0].type;
  int64_t updates = tn_type_count(&l->in[2].type);
  bool along = w->axis == w->rank - 1, stored = tn_lane_is_stored(y->dtype);
  if (tn_type_count(y) == 0 && updates == 0) return TN_OK;
  if (updates > 0) TN_TRY(index_check(l, "scatter", w->size));
  if (stored)
    tn_cpu_copy_bytes(l, l->out[0].data, l->in[0].data, tn_type_bytes(y));
  else
    scatter_convert_all(l, l->in[0].data, false);
  scatter_job j = {.w = w,
                   .index = &l->in[1],
                   .updates = &l->in[2],
                   .sum = stored ? l->out[0].data : l->workspace,
                   .mode = k->mode,
                   .lane = tn_lane_of(y->dtype),
                   .blocks = along ? 1 : divide_up(w->dims[w->rank - 1], COLUMNS)};
  if (updates > 0) tn_parallel(l, tn_index_walk_count(w, 0, w->axis) * j.blocks, scatter_task, &j);
  if (!stored) scatter_convert_all(l, l->out[0].data, true);
  return TN_OK;
}

/* ---- query, prepare ---- */

static tn_status gather_query(tn_query *q) {
  return tn_offer(q, (tn_variant){.name = "rows", .prepared_bytes = sizeof(tn_index_walk)});
}

static tn_status gather_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_axis_attributes *a = n->attributes;
  tn_index_walk *w = *made = tn_new(p, sizeof *w);
  if (w == NULL) return TN_ENOMEM;
  *w = tn_index_walk_make(n->in[0], &n->out[0], a->axis, n->in[1]->rank != n->in[0]->rank);
  return TN_OK;
}

static tn_status scatter_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  const tn_type *y = q->match->out[0];
  return tn_offer(q, (tn_variant){.name = "in order",
                                  .prepared_bytes = sizeof(scatter_kernel),
                                  .workspace_bytes = tn_lane_is_stored(y->dtype)
                                                         ? 0
                                                         : tn_type_count(y) * (int64_t)sizeof(float),
                                  .n_inplace = 1,
                                  .inplace = inplace});
}

static tn_status scatter_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_scatter_attributes *a = n->attributes;
  scatter_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  k->w = tn_index_walk_make(n->in[0], n->in[2], a->axis, n->in[1]->rank != n->in[0]->rank);
  k->mode = a->mode;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, gather, "gather", "y = gather(x, index)", "copies elements by their indices",
                 TN_KERNEL_CALLBACKS_WITH(gather, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, scatter, "scatter", "y = scatter(x, index, updates)",
                 "applies updates in their order along the axis",
                 TN_KERNEL_CALLBACKS_WITH(scatter, tn_delete_prepared));

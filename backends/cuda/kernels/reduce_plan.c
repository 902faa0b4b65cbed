/* backends/cuda/kernels/reduce_plan.c: see reduce_plan.h. The shape alone decides how a reduction is divided,
 * so that results have the same bits on every GPU. */
#include "backends/cuda/kernels/reduce_plan.h"

#include <stdio.h>

#include "backends/cuda/kernels/threads.h"

_Static_assert((int)REDUCE_LOOPS * 2 >= (int)TN_MAX_RANK, "adjacent dimensions of one kind are one loop");

enum {
  REDUCE_BLOCKS = 1024, /* that fill a GPU: eight for each of 132 processors */
  REDUCE_UNITS = 4      /* of a thread, at least, where a reduction is divided into parts */
};

/* ---- the shape ---- */

typedef struct reduce_groups {
  int32_t n;
  int64_t dims[TN_MAX_RANK];
  bool reduced[TN_MAX_RANK];
} reduce_groups;

/* Adjacent dimensions that are all kept, or all reduced, are one, unless there is padding between them; those
 * of size 1 are left out. */
static reduce_groups cuda_reduce_groups(const tn_type *x, const uint8_t *order, int64_t row,
                                        const bool *reduced) {
  reduce_groups g = {0};
  for (int32_t i = 0; i < x->rank; i++) {
    int32_t d = order[i];
    if (x->dims[d] == 1) continue;
    bool gap = i == x->rank - 1 && row > 0;
    if (g.n > 0 && g.reduced[g.n - 1] == reduced[d] && !gap) {
      g.dims[g.n - 1] *= x->dims[d];
      continue;
    }
    g.dims[g.n] = x->dims[d];
    g.reduced[g.n++] = reduced[d];
  }
  return g;
}

static bool reduce_order_kept(const tn_type *x, const uint8_t *order, const bool *reduced) {
  int32_t last = -1;
  for (int32_t i = 0; i < x->rank; i++) {
    if (x->dims[order[i]] == 1 || reduced[order[i]]) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

static int64_t cuda_reduce_count(const struct reduce_loops *l) {
  int64_t count = 1;
  for (int32_t i = 0; i < l->n; i++) count *= l->dims[i];
  return count;
}

/* All but the innermost dimension become loops. */
static void reduce_fill_loops(struct reduce_args *a, const reduce_groups *g, int64_t row) {
  for (int32_t i = 0; i + 1 < g->n; i++) {
    struct reduce_loops *l = g->reduced[i] ? &a->reduced : &a->kept;
    int64_t stride = row > 0 ? row : g->dims[g->n - 1];
    for (int32_t k = i + 1; k < g->n - 1; k++) stride *= g->dims[k];
    l->dims[l->n] = g->dims[i];
    l->strides[l->n++] = stride;
  }
}

/* ---- the division ---- */

/* Divides the steps of a task into parts where there are too few blocks; a part has several steps for each of
 * its threads. */
static void reduce_divide_parts(struct reduce_args *a, int64_t blocks, int64_t threads) {
  int64_t parts = least(divide_up(REDUCE_BLOCKS, at_least_1(blocks)), a->steps / (threads * REDUCE_UNITS));
  if (blocks * 2 > REDUCE_BLOCKS) parts = 1;
  a->part = at_least_1(divide_up(a->steps, at_least_1(parts)));
  a->parts = at_least_1(divide_up(a->steps, a->part));
}

static void reduce_set_step(struct reduce_args *a) {
  a->step_outer = a->units > 0 ? a->lanes / a->units : 0;
  a->step_inside = a->lanes - a->step_outer * a->units;
}

/* `padded`: vectors may read behind a run. */
static void reduce_divide_runs(struct reduce_args *a, int64_t inner, int64_t vector, bool padded) {
  a->vector = padded || inner % vector == 0 ? (int)vector : 0;
  a->units = a->vector ? divide_up(inner, vector) : inner;
  a->row = padded ? inner : 0;
  a->steps = a->units * cuda_reduce_count(&a->reduced);
  a->tasks = a->results = cuda_reduce_count(&a->kept);
  a->lanes = tn_cuda_row_lanes(a->results, a->steps, REDUCE_THREADS);
  reduce_set_step(a);
  reduce_divide_parts(a, a->lanes == REDUCE_THREADS ? a->tasks : REDUCE_BLOCKS, a->lanes);
}

static void reduce_divide_columns(struct reduce_args *a, int64_t inner, int64_t pack) {
  a->columns = inner;
  a->vector = inner % pack == 0 ? (int)pack : 0;
  int64_t units = a->vector ? inner / pack : inner, outer = cuda_reduce_count(&a->kept);
  a->steps = cuda_reduce_count(&a->reduced);
  a->results = outer * inner;
  a->width = tn_cuda_power(units, TN_CUDA_WARP);
  a->rows = tn_cuda_power(a->steps, REDUCE_THREADS / a->width);
  a->tiles = at_least_1(divide_up(units, a->width));
  a->tasks = outer * a->tiles;
  a->lanes = a->width * a->rows;
  reduce_divide_parts(a, divide_up(a->tasks, REDUCE_THREADS / a->lanes), a->rows);
}

/* The second launch reads the accumulators as columns. */
static void reduce_set_grids(tn_cuda_reduction *r) {
  struct reduce_args *a = &r->args;
  r->elements_grid = tn_cuda_task_grid(a->tasks * a->parts, REDUCE_THREADS / a->lanes, REDUCE_THREADS);
  r->parts_grid = tn_cuda_task_grid(a->results, tn_cuda_power(a->results, TN_CUDA_WARP), REDUCE_THREADS);
}

/* Bytes of a number of the type of arithmetic. */
static int64_t cuda_reduce_word(int32_t dtype) {
  return tn_dtype_size(dtype) == 8 || !tn_dtype_is_float(dtype) ? 8 : 4;
}

bool tn_cuda_reduction_make(tn_cuda_reduction *r, const tn_type *x, const uint8_t *order, tn_cuda_run run,
                            const bool *reduced) {
  struct reduce_args *a = &r->args;
  reduce_groups g = cuda_reduce_groups(x, order, run.length, reduced);
  int64_t inner = g.n > 0 ? g.dims[g.n - 1] : 1, size = (int64_t)tn_dtype_size(x->dtype);
  *r = (tn_cuda_reduction){0};
  reduce_fill_loops(a, &g, run.length);
  a->count = 1;
  for (int32_t i = 0; i < g.n; i++) a->count *= g.reduced[i] ? g.dims[i] : 1;
  if (g.n == 0 || g.reduced[g.n - 1])
    reduce_divide_runs(a, inner, 16 / size, run.vectors);
  else
    reduce_divide_columns(a, inner,
                          cuda_reduce_word(x->dtype) == 8 ? REDUCE_COLUMN_PACK / 2 : REDUCE_COLUMN_PACK);
  reduce_set_grids(r);
  return reduce_order_kept(x, order, reduced);
}

double tn_cuda_reduction_join_s(const tn_cuda_reduction *r, const tn_device_properties *device) {
  return r->args.parts > 1 ? device->launch_s : 0;
}

int64_t tn_cuda_reduction_workspace(const tn_cuda_reduction *r, int32_t dtype, int32_t words) {
  return r->args.parts > 1 ? r->args.parts * r->args.results * words * cuda_reduce_word(dtype) : 0;
}

/* ---- functions and launches ---- */

tn_status tn_cuda_reduction_request(tn_prepare *p, tn_cuda_reduction *r, const char *op, int32_t dtype) {
  char file[TN_CUDA_FUNCTION_NAME];
  snprintf(file, sizeof file, "%s.cu", op);
  tn_status status = tn_cuda_request(p, &r->elements, file, "%s_%s_%s", op,
                                     r->args.columns > 0 ? "columns" : "runs", tn_dtype_name(dtype));
  if (status != TN_OK || r->args.parts == 1) return status;
  return tn_cuda_request(p, &r->parts, file, "%s_parts_%s", op, tn_dtype_name(dtype));
}

tn_status tn_cuda_reduction_request_text(tn_prepare *p, tn_cuda_reduction *r, const char *title,
                                         const char *text) {
  tn_status status =
      tn_cuda_request_text(p, &r->elements, title, text, r->args.columns > 0 ? "columns" : "runs");
  if (status != TN_OK || r->args.parts == 1) return status;
  return tn_cuda_request_text(p, &r->parts, title, text, "parts");
}

void tn_cuda_reduction_release(tn_env *env, void *prepared) {
  tn_cuda_reduction *r = prepared;
  if (r == NULL) return;
  tn_cuda_withdraw(&r->elements);
  tn_cuda_withdraw(&r->parts);
  tn_delete(env, r);
}

/* The same division with single elements, for operands that are not aligned. The grid stays: blocks stride.
 */
static void reduce_drop_vectors(struct reduce_args *a) {
  int64_t pack = a->vector;
  a->vector = 0;
  if (a->columns > 0) {
    a->tasks /= a->tiles;
    a->tiles = divide_up(a->columns, a->width);
    a->tasks *= a->tiles;
    return;
  }
  int64_t runs = a->units > 0 ? a->steps / a->units : 0;
  a->units = a->row > 0 ? a->row : a->units * pack;
  a->steps = a->units * runs;
  a->part *= pack;
  reduce_set_step(a);
}

tn_status tn_cuda_reduction_launch(tn_launch *l, const tn_cuda_reduction *r, struct reduce_args *args,
                                   size_t bytes, bool aligned) {
  if (args->results == 0) return TN_OK;
  args->workspace = l->workspace;
  if (args->vector && !(aligned && tn_cuda_is_aligned(args->x) && tn_cuda_is_aligned(args->y)))
    reduce_drop_vectors(args);
  tn_status status = tn_cuda_launch(l, &r->elements, &r->elements_grid, args, bytes);
  if (status != TN_OK || args->parts == 1) return status;
  args->width = tn_cuda_power(args->results, TN_CUDA_WARP);
  args->rows = REDUCE_THREADS / args->width;
  return tn_cuda_launch(l, &r->parts, &r->parts_grid, args, bytes);
}

/* backends/cpu/kernels/reduce.c: sums, maxima, minima, moments and the sums of a normalization's gradient
 * over any set of axes.
 *
 * Adjacent dimensions that are all kept, or all reduced, are merged. A reduction then has runs, where the
 * innermost dimension is reduced and neighbours belong to one result, or rows, where it is kept and
 * neighbours belong to different results. Floats are accumulated in f64, integers in i64. The shape alone
 * determines the accumulator of each element and the order in which accumulators are added.
 *
 * The moments of a result are computed from the sums of x - first and of (x - first)^2, where `first` is the
 * first element of the result: the variance keeps its digits where the mean is far from 0. */
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/lane.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

enum {
  REDUCE_LANES = 32,        /* with fewer, GCC unrolls the loop before it can vectorize it */
  REDUCE_BLOCK = 256,       /* results of a row per task */
  REDUCE_CHUNK = 1 << 15,   /* least elements per chunk */
  REDUCE_CHUNKS = 64,       /* chunks beyond this number do not help any team */
  REDUCE_OUTPUTS = 1 << 12, /* results per chunk when parts are combined */
  SETS = 2                  /* accumulators per result, at most */
};

#define X             float
#define ACC           double
#define LANE(name)    f32_##name
#define REDUCE_FLOATS 1
#include "backends/cpu/kernels/reduce_lane.h"
#undef X
#undef LANE
#define X          double
#define LANE(name) f64_##name
#include "backends/cpu/kernels/reduce_lane.h"
#undef X
#undef ACC
#undef LANE
#undef REDUCE_FLOATS
#define X             int64_t
#define ACC           int64_t
#define LANE(name)    i64_##name
#define REDUCE_FLOATS 0
#include "backends/cpu/kernels/reduce_lane.h"
#undef X
#undef ACC
#undef LANE
#undef REDUCE_FLOATS

/* An accumulator. */
typedef union reduce_word {
  double f;
  int64_t i;
} reduce_word;

enum { SUM, MAX, MIN, MOMENTS, GRADS };

/* `mean` has one number for a run and one per result for a row (moments, norm_grad_sums). */
typedef void (*reduce_add_function)(void *acc, const void *x, const void *y, int64_t n, const double *mean);
enum { OF_F32, OF_F64, OF_I64 };
static const reduce_add_function reduce_run_of[][3] = {[SUM] = {f32_sum_run, f64_sum_run, i64_sum_run},
                                                       [MAX] = {f32_max_run, f64_max_run, i64_max_run},
                                                       [MIN] = {f32_min_run, f64_min_run, i64_min_run},
                                                       [MOMENTS] = {f32_moments_run, f64_moments_run, NULL},
                                                       [GRADS] = {f32_grads_run, f64_grads_run, NULL}};
static const reduce_add_function reduce_row_of[][3] = {[SUM] = {f32_sum_row, f64_sum_row, i64_sum_row},
                                                       [MAX] = {f32_max_row, f64_max_row, i64_max_row},
                                                       [MIN] = {f32_min_row, f64_min_row, i64_min_row},
                                                       [MOMENTS] = {f32_moments_row, f64_moments_row, NULL},
                                                       [GRADS] = {f32_grads_row, f64_grads_row, NULL}};

/* ---- the shape of a reduction ---- */

/* Nested loops over dimensions of the operand. */
typedef struct reduce_loops {
  int32_t n;
  int64_t count, dims[TN_MAX_RANK], strides[TN_MAX_RANK];
} reduce_loops;

typedef struct reduce_kernel {
  int32_t op, of, sets, dtype; /* dtype: of the operand */
  bool runs;                   /* else rows */
  reduce_loops kept, reduced;  /* without the innermost dimension */
  int64_t inner;               /* size of the innermost dimension */
  int64_t results;
  /* A task computes one result (runs) or up to REDUCE_BLOCK results (rows) in `steps` elements or rows. A
   * part has `part` of the steps. A chunk is tasks_per_chunk tasks and one part. */
  int64_t tasks, columns, steps, part, parts, tasks_per_chunk;
} reduce_kernel;

static void reduce_add_loop(reduce_loops *l, int64_t dim, int64_t stride) {
  l->dims[l->n] = dim;
  l->strides[l->n++] = stride;
  l->count *= dim;
}

static int64_t reduce_loops_offset(const reduce_loops *l, int64_t at) {
  int64_t offset = 0;
  for (int32_t i = l->n - 1; i > 0; i--) {
    offset += at % l->dims[i] * l->strides[i];
    at /= l->dims[i];
  }
  return l->n > 0 ? offset + at * l->strides[0] : 0;
}

static void reduce_mark_axes(const tn_reduce_attributes *a, int32_t rank, bool *reduced) {
  for (int32_t i = 0; i < TN_MAX_RANK; i++) reduced[i] = a->axes.n == 0 && i < rank;
  for (int64_t i = 0; i < a->axes.n; i++)
    reduced[a->axes.v[i] < 0 ? a->axes.v[i] + rank : a->axes.v[i]] = true;
}

/* Merges adjacent dimensions of one kind and skips those of size 1. Returns the number of the others,
 * outermost first. */
static int32_t reduce_merge(const tn_type *type, const bool *reduced, int64_t *dims, bool *kinds) {
  int32_t n = 0;
  for (int32_t i = 0; i < type->rank; i++) {
    if (type->dims[i] == 1) continue;
    if (n > 0 && kinds[n - 1] == reduced[i]) {
      dims[n - 1] *= type->dims[i];
      continue;
    }
    dims[n] = type->dims[i];
    kinds[n++] = reduced[i];
  }
  return n;
}

static void reduce_set_shape(reduce_kernel *p, const tn_type *type, const tn_reduce_attributes *a) {
  int64_t dims[TN_MAX_RANK], stride = 1;
  bool reduced[TN_MAX_RANK], kinds[TN_MAX_RANK];
  reduce_mark_axes(a, type->rank, reduced);
  int32_t n = reduce_merge(type, reduced, dims, kinds);
  p->kept.count = p->reduced.count = 1;
  p->runs = n > 0 && kinds[n - 1];
  p->inner = n > 0 ? dims[n - 1] : 1;
  for (int32_t i = 0; i < n - 1; i++) {
    stride = 1;
    for (int32_t k = i + 1; k < n; k++) stride *= dims[k];
    reduce_add_loop(kinds[i] ? &p->reduced : &p->kept, dims[i], stride);
  }
  p->results = p->kept.count * (p->runs ? 1 : p->inner);
}

/* Divides the work into chunks: by tasks, and, where there are few tasks, by parts of the reductions. */
static void reduce_divide(reduce_kernel *p) {
  int64_t width = p->runs ? 1 : least(p->inner, REDUCE_BLOCK);
  p->columns = p->runs ? 1 : divide_up(p->inner, REDUCE_BLOCK);
  p->tasks = p->kept.count * p->columns;
  p->steps = p->reduced.count * (p->runs ? p->inner : 1);
  int64_t work = at_least_1(p->steps * width);
  p->tasks_per_chunk = at_least_1(REDUCE_CHUNK / work);
  int64_t chunks = at_least_1(divide_up(p->tasks, p->tasks_per_chunk));
  int64_t parts = at_least_1(least(divide_up(work, REDUCE_CHUNK), divide_up(REDUCE_CHUNKS, chunks)));
  p->part = at_least_1(round_up(divide_up(p->steps, parts), REDUCE_LANES));
  p->parts = at_least_1(divide_up(p->steps, p->part));
}

/* ---- accumulators ---- */

static reduce_word reduce_start_of(const reduce_kernel *p) {
  reduce_word w = {.f = 0};
  if (p->of == OF_I64) {
    w.i = p->op == MAX ? INT64_MIN : p->op == MIN ? INT64_MAX : 0;
  } else {
    w.f = p->op == MAX ? -INFINITY : p->op == MIN ? INFINITY : 0;
  }
  return w;
}

static void reduce_start(const reduce_kernel *p, reduce_word *acc, int64_t n) {
  reduce_word w = reduce_start_of(p);
  for (int64_t i = 0; i < n; i++) acc[i] = w;
}

static reduce_word reduce_combine(const reduce_kernel *p, reduce_word a, reduce_word b) {
  bool integer = p->of == OF_I64;
  if (p->op == MAX && integer)
    a.i = b.i > a.i ? b.i : a.i;
  else if (p->op == MAX)
    a.f = b.f > a.f || b.f != b.f ? b.f : a.f;
  else if (p->op == MIN && integer)
    a.i = b.i < a.i ? b.i : a.i;
  else if (p->op == MIN)
    a.f = b.f < a.f || b.f != b.f ? b.f : a.f;
  else if (integer)
    a.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
  else
    a.f += b.f;
  return a;
}

/* Combines the first n lanes of a run pairwise: the upper half into the lower, then the next half. */
static reduce_word reduce_combine_lanes(const reduce_kernel *p, reduce_word *lanes, int64_t n) {
  bool adds = p->of != OF_I64 && p->op != MAX && p->op != MIN;
  for (int64_t half = REDUCE_LANES / 2; half > 0; half /= 2) {
    int64_t pairs = n - half < half ? n - half : half;
    for (int64_t j = 0; j < pairs && adds; j++) lanes[j].f += lanes[j + half].f;
    for (int64_t j = 0; j < pairs && !adds; j++) lanes[j] = reduce_combine(p, lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

/* ---- a launch ---- */

typedef struct reduce_job {
  const reduce_kernel *p;
  const tn_launch *l;
  reduce_word *parts; /* [part][result][set]; used with several parts */
} reduce_job;

static void reduce_put_integer(int32_t dtype, void *to, int64_t at, int64_t value) {
  switch (dtype) {
  case TN_I64: ((int64_t *)to)[at] = value; break;
  case TN_I32: ((int32_t *)to)[at] = (int32_t)value; break;
  default: ((uint8_t *)to)[at] = (uint8_t)value; break;
  }
}

/* Where the result's first element is in the operand. */
static int64_t reduce_first_element(const reduce_kernel *p, int64_t result) {
  if (p->runs) return reduce_loops_offset(&p->kept, result);
  return reduce_loops_offset(&p->kept, result / p->inner) + result % p->inner;
}

/* The number to subtract from the elements of a result: the given mean (GRADS) or the first element. */
static double reduce_mean_of(const reduce_job *j, int64_t result) {
  const tn_view *x = &j->l->in[0], *mean = &j->l->in[2];
  if (j->p->op == GRADS) return tn_cpu_get(mean->type.dtype, mean->data, result);
  if (j->p->op != MOMENTS || j->p->steps == 0) return 0;
  return tn_cpu_get(x->type.dtype, x->data, reduce_first_element(j->p, result));
}

/* The sums of x - first and of its square become mean and variance. */
static void reduce_finish_moments(const reduce_job *j, int64_t result, reduce_word *acc) {
  double n = (double)j->p->steps, apart = acc[0].f / n, variance = acc[1].f / n - apart * apart;
  acc[0].f = reduce_mean_of(j, result) + apart;
  acc[1].f = variance < 0 ? 0 : variance;
}

/* Stores a result. norm_grad_sums multiplies the sum of dy (x - mean) by rstd first. */
static void reduce_finish(const reduce_job *j, int64_t result, reduce_word *acc) {
  const reduce_kernel *p = j->p;
  if (p->op == MOMENTS) reduce_finish_moments(j, result, acc);
  if (p->op == GRADS) acc[1].f *= tn_cpu_get(j->l->in[3].type.dtype, j->l->in[3].data, result);
  for (int32_t s = 0; s < p->sets; s++) {
    const tn_view *out = &j->l->out[s];
    if (p->of == OF_I64)
      reduce_put_integer(out->type.dtype, out->data, result, acc[s].i);
    else
      tn_cpu_put(out->type.dtype, out->data, result, acc[s].f);
  }
}

/* Stores the partial result of a part, or the result if there is one part. */
static void reduce_deliver(const reduce_job *j, int64_t part, int64_t result, reduce_word *acc) {
  if (j->p->parts == 1)
    reduce_finish(j, result, acc);
  else
    memcpy(j->parts + (part * j->p->results + result) * j->p->sets, acc, (size_t)j->p->sets * sizeof *acc);
}

/* At most TN_TILE elements of operand k in the type of the loops. */
static const void *reduce_load(const reduce_job *j, int32_t k, int64_t at, int64_t n, reduce_word *tile) {
  const tn_view *v = &j->l->in[k];
  if (v->data == NULL) return NULL;
  if (j->p->of == OF_I64) return tn_cpu_i64(v->type.dtype, v->data, at, n, &tile->i);
  if (j->p->of == OF_F64) return tn_cpu_f64(v->type.dtype, v->data, at, n, &tile->f);
  return tn_cpu_f32(v->type.dtype, v->data, at, n, (float *)(void *)tile);
}

/* Adds elements at .. at + n - 1 to the lanes, tile by tile. */
static void reduce_add_run(const reduce_job *j, reduce_word *lanes, int64_t at, int64_t n,
                           const double *mean) {
  reduce_word x_tile[TN_TILE], y_tile[TN_TILE];
  for (int64_t done = 0, m; done < n; done += m) {
    m = least(TN_TILE, n - done);
    const void *x = reduce_load(j, 0, at + done, m, x_tile);
    const void *y = j->p->op == GRADS ? reduce_load(j, 1, at + done, m, y_tile) : x;
    reduce_run_of[j->p->op][j->p->of](lanes, x, y, m, mean);
  }
}

/* One result from steps first .. last - 1. */
static void reduce_runs(const reduce_job *j, int64_t result, int64_t part, int64_t first, int64_t last) {
  const reduce_kernel *p = j->p;
  reduce_word lanes[SETS * REDUCE_LANES], acc[SETS];
  double mean = reduce_mean_of(j, result);
  int64_t base = reduce_loops_offset(&p->kept, result),
          used = p->inner < REDUCE_LANES ? at_least_1(p->inner) : REDUCE_LANES;
  for (int32_t s = 0; s < p->sets; s++) reduce_start(p, lanes + s * REDUCE_LANES, used);
  for (int64_t at = first, n; at < last; at += n) {
    int64_t inside = at % p->inner;
    n = least(p->inner - inside, last - at);
    reduce_add_run(j, lanes, base + reduce_loops_offset(&p->reduced, at / p->inner) + inside, n, &mean);
  }
  for (int32_t s = 0; s < p->sets; s++) acc[s] = reduce_combine_lanes(p, lanes + s * REDUCE_LANES, used);
  reduce_deliver(j, part, result, acc);
}

/* Up to REDUCE_BLOCK results from steps first .. last - 1. */
static void reduce_rows(const reduce_job *j, int64_t task, int64_t part, int64_t first, int64_t last) {
  const reduce_kernel *p = j->p;
  reduce_word acc[SETS * REDUCE_BLOCK], x_tile[REDUCE_BLOCK], y_tile[REDUCE_BLOCK];
  double mean[REDUCE_BLOCK];
  int64_t column = task % p->columns * REDUCE_BLOCK, n = least(REDUCE_BLOCK, p->inner - column);
  int64_t result = task / p->columns * p->inner + column,
          base = reduce_loops_offset(&p->kept, task / p->columns) + column;
  for (int64_t k = 0; k < n; k++) mean[k] = reduce_mean_of(j, result + k);
  reduce_start(p, acc, p->sets * REDUCE_BLOCK);
  for (int64_t row = first; row < last; row++) {
    int64_t at = base + reduce_loops_offset(&p->reduced, row);
    const void *x = reduce_load(j, 0, at, n, x_tile);
    const void *y = p->op == GRADS ? reduce_load(j, 1, at, n, y_tile) : x;
    reduce_row_of[p->op][p->of](acc, x, y, n, mean);
  }
  for (int64_t k = 0; k < n; k++) {
    reduce_word sets[SETS] = {acc[k], acc[REDUCE_BLOCK + k]};
    reduce_deliver(j, part, result + k, sets);
  }
}

static void reduce_steps_chunk(void *arg, int64_t chunk) {
  const reduce_job *j = arg;
  const reduce_kernel *p = j->p;
  int64_t part = chunk % p->parts, task = chunk / p->parts * p->tasks_per_chunk;
  int64_t end = least(p->tasks, task + p->tasks_per_chunk);
  int64_t first = part * p->part, last = least(p->steps, first + p->part);
  for (; task < end; task++) (p->runs ? reduce_runs : reduce_rows)(j, task, part, first, last);
}

/* Combines the parts of up to REDUCE_OUTPUTS results, in order. */
static void reduce_combine_chunk(void *arg, int64_t chunk) {
  const reduce_job *j = arg;
  const reduce_kernel *p = j->p;
  int64_t end = least(p->results, (chunk + 1) * REDUCE_OUTPUTS);
  for (int64_t result = chunk * REDUCE_OUTPUTS; result < end; result++) {
    reduce_word acc[SETS];
    reduce_start(p, acc, SETS);
    for (int64_t part = 0; part < p->parts; part++)
      for (int32_t s = 0; s < p->sets; s++)
        acc[s] = reduce_combine(p, acc[s], j->parts[(part * p->results + result) * p->sets + s]);
    reduce_finish(j, result, acc);
  }
}

static tn_status reduce_launch(tn_launch *l) {
  const reduce_kernel *p = l->prepared;
  reduce_job j = {p, l, l->workspace};
  if (p->results == 0) return TN_OK;
  tn_parallel(l, divide_up(p->tasks, p->tasks_per_chunk) * p->parts, reduce_steps_chunk, &j);
  if (p->parts > 1) tn_parallel(l, divide_up(p->results, REDUCE_OUTPUTS), reduce_combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---- */

static const struct {
  const char *op;
  int32_t id, sets;
  bool floats;
} reduce_ops[] = {{"reduce_sum", SUM, 1, false},
                  {"reduce_max", MAX, 1, false},
                  {"reduce_min", MIN, 1, false},
                  {"moments", MOMENTS, 2, true},
                  {"norm_grad_sums", GRADS, 2, true}};

static int32_t reduce_type_of_loops(int32_t dtype) {
  if (dtype == TN_F64) return OF_F64;
  return tn_dtype_is_float(dtype) ? OF_F32 : OF_I64;
}

static tn_status reduce_kernel_make(const void *handle, const tn_match *m, reduce_kernel *p) {
  const tn_node *n = m->nodes[0].node;
  const tn_type *x = n->in[0];
  size_t k = 0;
  while (strcmp(reduce_ops[k].op, n->op) != 0) k++;
  *p = (reduce_kernel){.op = reduce_ops[k].id,
                       .of = reduce_type_of_loops(x->dtype),
                       .sets = reduce_ops[k].sets,
                       .dtype = x->dtype};
  if ((reduce_ops[k].floats && !tn_dtype_is_float(x->dtype)) || (p->op == SUM && x->dtype == TN_BOOL))
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "%s does not support elements of type %s", n->op,
                   tn_dtype_name(x->dtype));
  reduce_set_shape(p, x, n->attributes);
  reduce_divide(p);
  if ((p->op == MAX || p->op == MIN) && p->steps == 0 && p->results > 0)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "%s over no elements has no value", n->op);
  return TN_OK;
}

static tn_status reduce_query(tn_query *q) {
  reduce_kernel p;
  TN_TRY(reduce_kernel_make(q, q->match, &p));
  return tn_offer(
      q, (tn_variant){.name = p.runs ? "runs" : "rows",
                      .workspace_bytes =
                          p.parts > 1 ? p.parts * p.results * p.sets * (int64_t)sizeof(reduce_word) : 0,
                      .prepared_bytes = sizeof(reduce_kernel)});
}

static tn_status reduce_prepare(tn_prepare *p, void **made) {
  reduce_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = reduce_kernel_make(p, p->match, keep);
  if (status != TN_OK) tn_delete(p, keep);
  return status;
}

TN_DEFINE_KERNEL(cpu, reduce_sum, "reduce_sum", "y = reduce_sum(x)", "sums over any axes, accumulated in f64",
                 TN_KERNEL_CALLBACKS_WITH(reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, reduce_max, "reduce_max", "y = reduce_max(x)", "largest elements over any axes",
                 TN_KERNEL_CALLBACKS_WITH(reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, reduce_min, "reduce_min", "y = reduce_min(x)", "smallest elements over any axes",
                 TN_KERNEL_CALLBACKS_WITH(reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, moments, "moments", "mean, variance = moments(x)",
                 "means and variances, accumulated in f64",
                 TN_KERNEL_CALLBACKS_WITH(reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, norm_grad_sums, "norm_grad_sums", "s, d = norm_grad_sums(dy, x, mean, rstd)",
                 "the sums of a normalization's gradient, accumulated in f64",
                 TN_KERNEL_CALLBACKS_WITH(reduce, tn_delete_prepared));

/* Sums, extremes, moments and the sums of normalization's gradient, over any set of axes.
 *
 * Neighbouring dimensions that are all kept, or all reduced, count as one. The remaining dimensions are
 * either runs (the innermost dimension is reduced: neighbours add up) or rows (it is kept: neighbours
 * belong to different results). Floats are accumulated in f64, whole numbers in i64; which element
 * goes to which accumulator, and the order in which those are added, follow from the shape alone. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/clones.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/lane.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

enum {
  REDUCE_LANES = 32,        /* fewer would be unrolled before they are vectorized */
  REDUCE_BLOCK = 256,       /* results of a row in one go */
  REDUCE_CHUNK = 1 << 15,   /* elements that a chunk should at least have */
  REDUCE_CHUNKS = 64,       /* chunks that are enough for any team */
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
typedef union word {
  double f;
  int64_t i;
} word;

enum { SUM, MAX, MIN, MOMENTS, GRADS };

/* `mean` is one number for a run and one per result for a row. */
typedef void (*add_function)(void *acc, const void *x, const void *y, int64_t n, const double *mean);
enum { OF_F32, OF_F64, OF_I64 };
static const add_function run_of[][3] = {[SUM] = {f32_sum_run, f64_sum_run, i64_sum_run},
                                         [MAX] = {f32_max_run, f64_max_run, i64_max_run},
                                         [MIN] = {f32_min_run, f64_min_run, i64_min_run},
                                         [MOMENTS] = {f32_moments_run, f64_moments_run, NULL},
                                         [GRADS] = {f32_grads_run, f64_grads_run, NULL}};
static const add_function row_of[][3] = {[SUM] = {f32_sum_row, f64_sum_row, i64_sum_row},
                                         [MAX] = {f32_max_row, f64_max_row, i64_max_row},
                                         [MIN] = {f32_min_row, f64_min_row, i64_min_row},
                                         [MOMENTS] = {f32_moments_row, f64_moments_row, NULL},
                                         [GRADS] = {f32_grads_row, f64_grads_row, NULL}};

/* ---- the shape of a reduction ---- */

/* Nested loops over some dimensions of the operand. */
typedef struct loops {
  int32_t n;
  int64_t count, dims[TN_MAX_RANK], strides[TN_MAX_RANK];
} loops;

typedef struct plan {
  int32_t op, of, sets, dtype; /* dtype: of the operand */
  bool runs;                   /* else rows */
  loops kept, reduced;         /* all but the innermost dimension */
  int64_t inner;               /* elements of that */
  int64_t results;
  /* A task is one result, or up to REDUCE_BLOCK of a row's. Its reduction has `steps`: elements, or
   * rows; a part has `part` of them. A chunk is some tasks and one part. */
  int64_t tasks, columns, steps, part, parts, tasks_per_chunk;
} plan;

static void add_loop(loops *l, int64_t dim, int64_t stride) {
  l->dims[l->n] = dim;
  l->strides[l->n++] = stride;
  l->count *= dim;
}

static int64_t loops_offset(const loops *l, int64_t at) {
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

/* Dimensions outermost first, neighbours of a kind merged, those of size 1 left out. Returns how many. */
static int32_t merge(const tn_type *type, const bool *reduced, int64_t *dims, bool *kinds) {
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

static void reduce_shape(plan *p, const tn_type *type, const tn_reduce_attributes *a) {
  int64_t dims[TN_MAX_RANK], stride = 1;
  bool reduced[TN_MAX_RANK], kinds[TN_MAX_RANK];
  reduce_mark_axes(a, type->rank, reduced);
  int32_t n = merge(type, reduced, dims, kinds);
  p->kept.count = p->reduced.count = 1;
  p->runs = n > 0 && kinds[n - 1];
  p->inner = n > 0 ? dims[n - 1] : 1;
  for (int32_t i = 0; i < n - 1; i++) {
    stride = 1;
    for (int32_t k = i + 1; k < n; k++) stride *= dims[k];
    add_loop(kinds[i] ? &p->reduced : &p->kept, dims[i], stride);
  }
  p->results = p->kept.count * (p->runs ? 1 : p->inner);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t at_least_1(int64_t n) { return n > 1 ? n : 1; }
static int64_t reduce_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Cuts the work into chunks: by tasks first, and by parts of the reductions where tasks are few. */
static void reduce_divide(plan *p) {
  int64_t width = p->runs ? 1 : reduce_smaller(p->inner, REDUCE_BLOCK);
  p->columns = p->runs ? 1 : ceil_div(p->inner, REDUCE_BLOCK);
  p->tasks = p->kept.count * p->columns;
  p->steps = p->reduced.count * (p->runs ? p->inner : 1);
  int64_t work = at_least_1(p->steps * width);
  p->tasks_per_chunk = at_least_1(REDUCE_CHUNK / work);
  int64_t chunks = at_least_1(ceil_div(p->tasks, p->tasks_per_chunk));
  int64_t parts = at_least_1(reduce_smaller(ceil_div(work, REDUCE_CHUNK), ceil_div(REDUCE_CHUNKS, chunks)));
  p->part = at_least_1(ceil_div(ceil_div(p->steps, parts), REDUCE_LANES) * REDUCE_LANES);
  p->parts = at_least_1(ceil_div(p->steps, p->part));
}

/* ---- accumulators ---- */

static word start_of(const plan *p) {
  word w = {.f = 0};
  if (p->of == OF_I64) {
    w.i = p->op == MAX ? INT64_MIN : p->op == MIN ? INT64_MAX : 0;
  } else {
    w.f = p->op == MAX ? -INFINITY : p->op == MIN ? INFINITY : 0;
  }
  return w;
}

static void reduce_start(const plan *p, word *acc, int64_t n) {
  word w = start_of(p);
  for (int64_t i = 0; i < n; i++) acc[i] = w;
}

static word reduce_combine(const plan *p, word a, word b) {
  bool whole = p->of == OF_I64;
  if (p->op == MAX && whole)
    a.i = b.i > a.i ? b.i : a.i;
  else if (p->op == MAX)
    a.f = b.f > a.f || b.f != b.f ? b.f : a.f;
  else if (p->op == MIN && whole)
    a.i = b.i < a.i ? b.i : a.i;
  else if (p->op == MIN)
    a.f = b.f < a.f || b.f != b.f ? b.f : a.f;
  else if (whole)
    a.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
  else
    a.f += b.f;
  return a;
}

/* The first n lanes of a run as one, by halves. */
static word reduce_fold(const plan *p, word *lanes, int64_t n) {
  bool adds = p->of != OF_I64 && p->op != MAX && p->op != MIN;
  for (int64_t half = REDUCE_LANES / 2; half > 0; half /= 2) {
    int64_t pairs = n - half < half ? n - half : half;
    for (int64_t j = 0; j < pairs && adds; j++) lanes[j].f += lanes[j + half].f;
    for (int64_t j = 0; j < pairs && !adds; j++) lanes[j] = reduce_combine(p, lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

/* ---- a launch ---- */

typedef struct job {
  const plan *p;
  const tn_launch *l;
  word *parts; /* [part][result][set], where there are several parts */
} job;

static void reduce_put_whole(int32_t dtype, void *to, int64_t at, int64_t value) {
  switch (dtype) {
  case TN_I64: ((int64_t *)to)[at] = value; break;
  case TN_I32: ((int32_t *)to)[at] = (int32_t)value; break;
  default: ((uint8_t *)to)[at] = (uint8_t)value; break;
  }
}

/* Writes a result, the sum of dy (x - mean) times rstd where that is asked for. */
static void reduce_finish(const job *j, int64_t result, word *acc) {
  const plan *p = j->p;
  if (p->op == GRADS) acc[1].f *= tn_cpu_get(j->l->in[3].type.dtype, j->l->in[3].data, result);
  for (int32_t s = 0; s < p->sets; s++) {
    const tn_view *out = &j->l->out[s];
    if (p->of == OF_I64)
      reduce_put_whole(out->type.dtype, out->data, result, acc[s].i);
    else
      tn_cpu_put(out->type.dtype, out->data, result, acc[s].f);
  }
}

/* Keeps what a part found of a result, or writes the result if there is one part. */
static void reduce_deliver(const job *j, int64_t part, int64_t result, word *acc) {
  if (j->p->parts == 1)
    reduce_finish(j, result, acc);
  else
    memcpy(j->parts + (part * j->p->results + result) * j->p->sets, acc, (size_t)j->p->sets * sizeof *acc);
}

/* At most TN_TILE elements of operand k as the type that the loops take. */
static const void *reduce_load(const job *j, int32_t k, int64_t at, int64_t n, word *tile) {
  const tn_view *v = &j->l->in[k];
  if (v->data == NULL) return NULL;
  if (j->p->of == OF_I64) return tn_cpu_i64(v->type.dtype, v->data, at, n, &tile->i);
  if (j->p->of == OF_F64) return tn_cpu_f64(v->type.dtype, v->data, at, n, &tile->f);
  return tn_cpu_f32(v->type.dtype, v->data, at, n, (float *)(void *)tile);
}

static double reduce_mean_of(const job *j, int64_t result) {
  return j->p->op == GRADS ? tn_cpu_get(j->l->in[2].type.dtype, j->l->in[2].data, result) : 0;
}

/* Adds elements at .. at + n - 1 to the lanes, tile by tile. */
static void add_run(const job *j, word *lanes, int64_t at, int64_t n, const double *mean) {
  word x_tile[TN_TILE], y_tile[TN_TILE];
  for (int64_t done = 0, m; done < n; done += m) {
    m = reduce_smaller(TN_TILE, n - done);
    const void *x = reduce_load(j, 0, at + done, m, x_tile);
    const void *y = j->p->op == GRADS ? reduce_load(j, 1, at + done, m, y_tile) : x;
    run_of[j->p->op][j->p->of](lanes, x, y, m, mean);
  }
}

/* One result from steps first .. last - 1. */
static void reduce_runs(const job *j, int64_t result, int64_t part, int64_t first, int64_t last) {
  const plan *p = j->p;
  word lanes[SETS * REDUCE_LANES], acc[SETS];
  double mean = reduce_mean_of(j, result);
  int64_t base = loops_offset(&p->kept, result),
          used = p->inner < REDUCE_LANES ? at_least_1(p->inner) : REDUCE_LANES;
  for (int32_t s = 0; s < p->sets; s++) reduce_start(p, lanes + s * REDUCE_LANES, used);
  for (int64_t at = first, n; at < last; at += n) {
    int64_t inside = at % p->inner;
    n = reduce_smaller(p->inner - inside, last - at);
    add_run(j, lanes, base + loops_offset(&p->reduced, at / p->inner) + inside, n, &mean);
  }
  for (int32_t s = 0; s < p->sets; s++) acc[s] = reduce_fold(p, lanes + s * REDUCE_LANES, used);
  reduce_deliver(j, part, result, acc);
}

/* A row's worth of results from steps first .. last - 1. */
static void reduce_rows(const job *j, int64_t task, int64_t part, int64_t first, int64_t last) {
  const plan *p = j->p;
  word acc[SETS * REDUCE_BLOCK], x_tile[REDUCE_BLOCK], y_tile[REDUCE_BLOCK];
  double mean[REDUCE_BLOCK];
  int64_t column = task % p->columns * REDUCE_BLOCK, n = reduce_smaller(REDUCE_BLOCK, p->inner - column);
  int64_t result = task / p->columns * p->inner + column,
          base = loops_offset(&p->kept, task / p->columns) + column;
  for (int64_t k = 0; k < n; k++) mean[k] = reduce_mean_of(j, result + k);
  reduce_start(p, acc, p->sets * REDUCE_BLOCK);
  for (int64_t row = first; row < last; row++) {
    int64_t at = base + loops_offset(&p->reduced, row);
    const void *x = reduce_load(j, 0, at, n, x_tile);
    const void *y = p->op == GRADS ? reduce_load(j, 1, at, n, y_tile) : x;
    row_of[p->op][p->of](acc, x, y, n, mean);
  }
  for (int64_t k = 0; k < n; k++) {
    word sets[SETS] = {acc[k], acc[REDUCE_BLOCK + k]};
    reduce_deliver(j, part, result + k, sets);
  }
}

static void reduce_reduce_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t part = chunk % p->parts, task = chunk / p->parts * p->tasks_per_chunk;
  int64_t end = reduce_smaller(p->tasks, task + p->tasks_per_chunk);
  int64_t first = part * p->part, last = reduce_smaller(p->steps, first + p->part);
  for (; task < end; task++) (p->runs ? reduce_runs : reduce_rows)(j, task, part, first, last);
}

/* Parts in their order, for some results. */
static void reduce_combine_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t end = reduce_smaller(p->results, (chunk + 1) * REDUCE_OUTPUTS);
  for (int64_t result = chunk * REDUCE_OUTPUTS; result < end; result++) {
    word acc[SETS];
    reduce_start(p, acc, SETS);
    for (int64_t part = 0; part < p->parts; part++)
      for (int32_t s = 0; s < p->sets; s++)
        acc[s] = reduce_combine(p, acc[s], j->parts[(part * p->results + result) * p->sets + s]);
    reduce_finish(j, result, acc);
  }
}

static tn_status reduce_launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l, l->workspace};
  if (p->results == 0) return TN_OK;
  tn_parallel(l, ceil_div(p->tasks, p->tasks_per_chunk) * p->parts, reduce_reduce_chunk, &j);
  if (p->parts > 1) tn_parallel(l, ceil_div(p->results, REDUCE_OUTPUTS), reduce_combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---- */

static const struct {
  const char *op;
  int32_t id, sets;
  bool floats;
} ops[] = {{"reduce_sum", SUM, 1, false},
           {"reduce_max", MAX, 1, false},
           {"reduce_min", MIN, 1, false},
           {"moments", MOMENTS, 2, true},
           {"norm_grad_sums", GRADS, 2, true}};

static int32_t type_of_loops(int32_t dtype) {
  if (dtype == TN_F64) return OF_F64;
  return tn_dtype_is_float(dtype) ? OF_F32 : OF_I64;
}

static tn_status reduce_make_plan(const void *handle, const tn_match *m, plan *p) {
  const tn_node *n = m->nodes[0].node;
  const tn_type *x = n->in[0];
  size_t k = 0;
  while (strcmp(ops[k].op, n->op) != 0) k++;
  *p = (plan){.op = ops[k].id, .of = type_of_loops(x->dtype), .sets = ops[k].sets, .dtype = x->dtype};
  if ((ops[k].floats && !tn_dtype_is_float(x->dtype)) || (p->op == SUM && x->dtype == TN_BOOL))
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "%s of %s is not among its types", n->op,
                   tn_dtype_name(x->dtype));
  reduce_shape(p, x, n->attributes);
  reduce_divide(p);
  if ((p->op == MAX || p->op == MIN) && p->steps == 0 && p->results > 0)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "%s over no elements has no value", n->op);
  return TN_OK;
}

static tn_status reduce_query(tn_query *q) {
  plan p;
  tn_status status = reduce_make_plan(q, q->match, &p);
  if (status != TN_OK) return status;
  double bytes = 0;
  for (int32_t i = 0; i < q->match->n_in; i++) bytes += (double)tn_type_bytes(q->match->in[i]);
  tn_variant v = {.struct_size = sizeof v,
                  .name = p.runs ? "runs" : "rows",
                  .workspace_bytes = p.parts > 1 ? p.parts * p.results * p.sets * (int64_t)sizeof(word) : 0,
                  .prepared_bytes = sizeof(plan),
                  .cost_s = bytes / 1e10,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status reduce_prepare(tn_prepare *p, void **made) {
  plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *made = keep;
  tn_status status = reduce_make_plan(p, p->match, keep);
  if (status != TN_OK) tn_delete(p, keep);
  return status;
}

static void reduce_release(tn_env *env, void *made) { tn_delete(env, made); }

#define REDUCE(id, text, what)                                                                               \
  const tn_kernel tn_cpu_##id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, #id, what),                     \
                                 .family = "cpu",                                                            \
                                 .pattern = text,                                                            \
                                 .query = reduce_query,                                                      \
                                 .prepare = reduce_prepare,                                                  \
                                 .release = reduce_release,                                                  \
                                 .launch = reduce_launch}

TN_DEFINE_KERNEL(cpu, reduce_sum, "reduce_sum", "y = reduce_sum(x)", "sums over any axes, accumulated in f64",
                 TN_KERNEL_CALLBACKS(reduce));
TN_DEFINE_KERNEL(cpu, reduce_max, "reduce_max", "y = reduce_max(x)", "largest elements over any axes",
                 TN_KERNEL_CALLBACKS(reduce));
TN_DEFINE_KERNEL(cpu, reduce_min, "reduce_min", "y = reduce_min(x)", "smallest elements over any axes",
                 TN_KERNEL_CALLBACKS(reduce));
TN_DEFINE_KERNEL(cpu, moments, "moments", "s, q = moments(x)",
                 "sums of elements and of their squares, accumulated in f64", TN_KERNEL_CALLBACKS(reduce));
TN_DEFINE_KERNEL(cpu, norm_grad_sums, "norm_grad_sums", "s, d = norm_grad_sums(dy, x, mean, rstd)",
                 "the sums that a normalization's gradient needs, accumulated in f64",
                 TN_KERNEL_CALLBACKS(reduce));

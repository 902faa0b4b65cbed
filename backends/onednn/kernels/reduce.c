/* backends/onednn/kernels/reduce.c: sums, extremes, moments and the sums of a normalization's gradient, of
 * f32, bf16 and f16.
 *
 * An operand has the dimensions (batch, outer, kept, inner), of which outer and inner are reduced: adjacent
 * dimensions that are all kept, or all reduced, are one, and missing ones are 1. The kernel reads runs where
 * inner is more than 1, columns where it is 1, and blocks where the channels come in blocks. The accumulator
 * of an element depends on the shape alone. */
#include "backends/onednn/kernels/reduce.h"
#include "backends/shared/integer_math.h"

#include <math.h>
#include <stdbool.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "tenon/attributes.h"

enum {
  CHUNK = 1 << 15,  /* elements of a chunk, at least */
  CHUNKS = 32,      /* at most */
  FEW = 8,          /* chunks: fewer do not occupy a team */
  RESULTS = 1 << 12 /* of a chunk that combines parts */
};

enum { RUNS = 0, COLUMNS = 1, BLOCKS = 2 }; /* how the elements of a reduction lie */

typedef struct reduce_kernel {
  tn_reduce_functions add;
  void (*store)(const double *sums, void *to, int64_t n);
  int32_t op, sets, how, lanes;
  int64_t batch, outer, kept, inner;
  /* A task computes `width` adjacent results from `steps` elements, blocks or rows, and a part of it reads
   * `part` of those. A chunk is one part of some tasks. */
  int64_t width, tasks, steps, part, parts, tasks_per_chunk;
} reduce_kernel;

/* The smallest power of two from n on, which teams of two or four threads share evenly. */
static int64_t reduce_power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/* ---- shapes --------------------------------------------------------------------------------------- */

static void onednn_reduce_mark_axes(const tn_reduce_attributes *a, int32_t rank, bool *reduced) {
  for (int32_t i = 0; i < rank; i++) reduced[i] = a->axes.n == 0;
  for (int64_t i = 0; i < a->axes.n; i++)
    reduced[a->axes.v[i] < 0 ? a->axes.v[i] + rank : a->axes.v[i]] = true;
}

/* Fills batch, outer, kept and inner from the innermost dimension outwards. False where it takes more than
 * four. */
static bool onednn_reduce_shape(reduce_kernel *p, const tn_type *x, const bool *reduced) {
  int64_t *group[] = {&p->inner, &p->kept, &p->outer, &p->batch};
  int32_t at = 0;
  p->batch = p->outer = p->kept = p->inner = 1;
  for (int32_t i = x->rank; i-- > 0;) {
    bool belongs = reduced[i] == (at % 2 == 0);
    if (x->dims[i] == 1) continue;
    if (!belongs && ++at == 4) return false;
    *group[at] *= x->dims[i];
  }
  return true;
}

/* The same for channels in blocks: images whose channels are kept and whose space is reduced. */
static bool reduce_shape_blocked(reduce_kernel *p, const tn_type *x, const bool *reduced) {
  if (x->rank < 3 || x->dims[1] % p->lanes != 0 || x->dims[1] == 0 || reduced[1]) return false;
  p->batch = reduced[0] ? 1 : x->dims[0];
  p->outer = reduced[0] ? x->dims[0] : 1;
  p->kept = x->dims[1];
  p->inner = 1;
  for (int32_t i = 2; i < x->rank; i++) {
    if (!reduced[i]) return false;
    p->inner *= x->dims[i];
  }
  return true;
}

/* The same for channels as the innermost dimension. Results are row-major,
 * so of channels and space one is reduced. */
static bool reduce_shape_last(reduce_kernel *p, const tn_type *x, const bool *reduced) {
  bool memory[TN_MAX_RANK], space = true;
  for (int32_t i = 0; i < x->rank; i++) {
    memory[tn_image_dimension(TN_IMAGE_LAST, x->rank, i)] = reduced[i];
    space = space && (i < 2 || reduced[i]);
  }
  tn_type type = tn_image_memory(TN_IMAGE_LAST, x, 1);
  return x->rank == 4 && (space || reduced[1]) && onednn_reduce_shape(p, &type, memory);
}

/* A task has several short runs. */
static int64_t reduce_width(const reduce_kernel *p) {
  if (p->how == BLOCKS) return p->lanes;
  int64_t most = p->how == RUNS ? at_least_1(CHUNK / at_least_1(p->outer * p->inner)) : TN_REDUCE_COLUMNS;
  return at_least_1(least(least(p->kept, most), TN_REDUCE_COLUMNS));
}

/* Chunks are groups of tasks, and parts of the reductions where there are few tasks. */
static void onednn_reduce_divide(reduce_kernel *p) {
  p->width = reduce_width(p);
  p->tasks = p->batch * divide_up(p->kept, p->width);
  p->steps = p->outer * p->inner;
  int64_t work = at_least_1(p->steps * p->width);
  p->tasks_per_chunk = at_least_1(CHUNK / work);
  int64_t chunks = at_least_1(divide_up(p->tasks, p->tasks_per_chunk));
  int64_t parts = reduce_power_of_two(least(work / CHUNK, divide_up(CHUNKS, chunks)));
  if (parts == 1 && chunks < FEW && work * p->tasks > CHUNK) {
    /* A few small reductions: each chunk has a part of all of them. */
    parts = reduce_power_of_two(least(work * p->tasks / CHUNK, CHUNKS));
    p->tasks_per_chunk = p->tasks;
  }
  p->part = at_least_1(divide_up(p->steps, parts));
  p->parts = at_least_1(divide_up(p->steps, p->part));
}

/* ---- a launch ------------------------------------------------------------------------------------- */

typedef struct reduce_job {
  const reduce_kernel *p;
  const tn_launch *l;
  double *parts; /* [part][set][result], where there are several parts */
} reduce_job;

static void reduce_initialize(const reduce_kernel *p, double *sums, int64_t n) {
  double first = p->op == TN_REDUCE_MAX ? -INFINITY : p->op == TN_REDUCE_MIN ? INFINITY : 0;
  for (int64_t i = 0; i < n; i++) sums[i] = first;
}

/* n sums of x and of x squared become means and variances. */
static void onednn_reduce_finish_moments(int64_t steps, int64_t n, double *first, double *second) {
  double count = (double)steps;
  for (int64_t i = 0; i < n; i++) {
    double mean = first[i] / count, variance = second[i] / count - mean * mean;
    first[i] = mean;
    second[i] = variance < 0 ? 0 : variance;
  }
}

/* Writes n results; the sums of dy (x - mean) are multiplied with rstd. */
static void onednn_reduce_finish(const reduce_job *j, int64_t result, int64_t n, double *first,
                                 double *second) {
  const tn_view *out = j->l->out;
  const float *rstd = j->p->op == TN_REDUCE_GRADS ? j->l->in[3].data : NULL;
  size_t size = tn_dtype_size(out[0].type.dtype);
  if (j->p->op == TN_REDUCE_MOMENTS) onednn_reduce_finish_moments(j->p->steps, n, first, second);
  for (int64_t i = 0; i < n && rstd != NULL; i++) second[i] *= (double)rstd[result + i];
  j->p->store(first, (uint8_t *)out[0].data + (size_t)result * size, n);
  if (j->p->sets == 2) j->p->store(second, (uint8_t *)out[1].data + (size_t)result * size, n);
}

/* Stores the sums of a part, or writes the results where there is one part. */
static void onednn_reduce_deliver(const reduce_job *j, int64_t part, int64_t result, int64_t n,
                                  double *sums) {
  const reduce_kernel *p = j->p;
  int64_t results = p->batch * p->kept;
  if (p->parts == 1) {
    onednn_reduce_finish(j, result, n, sums, sums + n);
    return;
  }
  for (int32_t s = 0; s < p->sets; s++)
    for (int64_t i = 0; i < n; i++) j->parts[(part * p->sets + s) * results + result + i] = sums[s * n + i];
}

typedef struct reduce_operands {
  const uint8_t *x, *y;
  const float *mean;
  int64_t size; /* of an element */
} reduce_operands;

/* Adds runs or blocks of a task, image by image. */
static void reduce_add_runs(const reduce_kernel *p, const reduce_operands *from, int64_t first, int64_t last,
                            double *sums) {
  void (*add)(const void *, const void *, int64_t, const float *, double *) =
      p->how == BLOCKS ? p->add.block : p->add.run;
  int64_t step = (p->how == BLOCKS ? p->lanes : 1) * from->size, outer = p->kept * p->inner * from->size;
  int64_t image = first == 0 ? 0 : first / p->inner, inside = first - image * p->inner;
  for (int64_t at = first, n; at < last; at += n, inside = 0, image++) {
    int64_t offset = image * outer + inside * step;
    n = least(p->inner - inside, last - at);
    add(from->x + offset, from->y + offset, n, from->mean, sums);
  }
}

static void reduce_add_each_run(const reduce_kernel *p, reduce_operands from, int64_t first, int64_t last,
                                int64_t n, double *sums) {
  for (int64_t k = 0; k < n; k++) {
    double sum[2] = {sums[k], 0};
    reduce_add_runs(p, &from, first, last, sum);
    sums[k] = sum[0];
    if (p->sets == 2) sums[n + k] = sum[1];
    from.x += p->inner * from.size;
    from.y += p->inner * from.size;
    if (from.mean != NULL) from.mean++;
  }
}

static void reduce_task(const reduce_job *j, int64_t task, int64_t part) {
  const reduce_kernel *p = j->p;
  double sums[2 * TN_REDUCE_COLUMNS];
  int64_t groups = divide_up(p->kept, p->width), kept = task % groups * p->width;
  int64_t n = least(p->width, p->kept - kept), result = task / groups * p->kept + kept;
  int64_t first = part * p->part, last = least(p->steps, first + p->part);
  int64_t offset = (task / groups * p->outer * p->kept + kept) * p->inner;
  bool grads = p->op == TN_REDUCE_GRADS;
  reduce_operands from = {j->l->in[0].data, grads ? j->l->in[1].data : j->l->in[0].data,
                          grads ? (const float *)j->l->in[2].data + result : NULL,
                          (int64_t)tn_dtype_size(j->l->in[0].type.dtype)};
  from.x += offset * from.size;
  from.y += offset * from.size;
  reduce_initialize(p, sums, p->sets * n);
  if (p->how == COLUMNS) {
    int64_t skip = first * p->kept * from.size;
    p->add.columns(from.x + skip, from.y + skip, last - first, p->kept, n, from.mean, sums);
  } else if (p->how == BLOCKS) {
    reduce_add_runs(p, &from, first, last, sums);
  } else {
    reduce_add_each_run(p, from, first, last, n, sums);
  }
  onednn_reduce_deliver(j, part, result, n, sums);
}

static void reduce_run_chunk(void *arg, int64_t chunk) {
  const reduce_job *j = arg;
  const reduce_kernel *p = j->p;
  int64_t part = chunk % p->parts, task = chunk / p->parts * p->tasks_per_chunk;
  int64_t end = least(p->tasks, task + p->tasks_per_chunk);
  for (; task < end; task++) reduce_task(j, task, part);
}

static double onednn_reduce_combine(int32_t op, double a, double b) {
  if (op == TN_REDUCE_MAX) return b > a || b != b ? b : a;
  if (op == TN_REDUCE_MIN) return b < a || b != b ? b : a;
  return a + b;
}

/* Combines the parts of some results in the order of the parts, into the first part. */
static void onednn_reduce_combine_chunk(void *arg, int64_t chunk) {
  const reduce_job *j = arg;
  const reduce_kernel *p = j->p;
  int64_t results = p->batch * p->kept, first = chunk * RESULTS, n = least(results - first, RESULTS);
  for (int64_t part = 1; part < p->parts; part++)
    for (int32_t s = 0; s < p->sets; s++) {
      double *to = j->parts + s * results + first, *from = to + part * p->sets * results;
      for (int64_t i = 0; i < n; i++) to[i] = onednn_reduce_combine(p->op, to[i], from[i]);
    }
  onednn_reduce_finish(j, first, n, j->parts + first, j->parts + results + first);
}

static tn_status onednn_reduce_launch(tn_launch *l) {
  const reduce_kernel *p = l->prepared;
  reduce_job j = {p, l, l->workspace};
  int64_t results = p->batch * p->kept;
  if (results == 0) return TN_OK;
  tn_parallel(l, divide_up(p->tasks, p->tasks_per_chunk) * p->parts, reduce_run_chunk, &j);
  if (p->parts > 1) tn_parallel(l, divide_up(results, RESULTS), onednn_reduce_combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static int32_t reduce_op(const char *name) {
  switch (name[0]) { /* reduce_sum, reduce_max, reduce_min, moments, norm_grad_sums */
  case 'm': return TN_REDUCE_MOMENTS;
  case 'n': return TN_REDUCE_GRADS;
  default: return name[7] == 's' ? TN_REDUCE_SUM : name[8] == 'a' ? TN_REDUCE_MAX : TN_REDUCE_MIN;
  }
}

/* False where the kernel does not support the match in this way, TN_IMAGE_.... */
static bool reduce_make(const tn_match *m, const void *backend, int32_t way, reduce_kernel *p) {
  static bool (*const shape[])(reduce_kernel *, const tn_type *,
                               const bool *) = {onednn_reduce_shape, reduce_shape_blocked, reduce_shape_last};
  const tn_reduce_loops *loops = TN_LOOPS_PICK_AT(tn_loops_reduce, tn_onednn_isa_of(backend));
  const tn_node *n = m->nodes[0].node;
  const tn_type *x = n->in[0];
  bool reduced[TN_MAX_RANK];
  *p = (reduce_kernel){.op = reduce_op(n->op), .sets = n->n_out, .lanes = loops->lanes};
  p->add = loops->of[p->op][x->dtype];
  p->store = loops->store[n->out[0].dtype];
  if (p->add.run == NULL || p->store == NULL) return false;
  onednn_reduce_mark_axes(n->attributes, x->rank, reduced);
  if (!shape[way](p, x, reduced)) return false;
  p->how = way == TN_IMAGE_BLOCKS ? BLOCKS : p->inner > 1 ? RUNS : COLUMNS;
  onednn_reduce_divide(p);
  bool extreme = p->op == TN_REDUCE_MAX || p->op == TN_REDUCE_MIN;
  return !extreme || p->steps > 0 || p->batch * p->kept == 0;
}

static void reduce_offer(tn_query *q, int32_t way, const reduce_kernel *p) {
  static const char *const name[] = {"runs", "columns", "blocks"};
  tn_operand_layout image = {TN_LAYOUT_FIXED, 0, tn_image_layout(way, q->match->in[0]->rank, p->lanes)};
  tn_operand_layout plain = {0}, in[4] = {image, p->op == TN_REDUCE_GRADS ? image : plain, plain, plain};
  double bytes = 0;
  for (int32_t i = 0; i < q->match->n_in; i++) bytes += (double)tn_type_bytes(q->match->in[i]);
  tn_offer(q, (tn_variant){.id = way,
                           .name = way == TN_IMAGE_LAST ? "channels last" : name[p->how],
                           .in = way == TN_IMAGE_PLAIN ? NULL : in,
                           .workspace_bytes = p->parts > 1 ? p->parts * p->batch * p->kept * p->sets *
                                                                 (int64_t)sizeof(double)
                                                           : 0,
                           .prepared_bytes = sizeof(reduce_kernel),
                           .cost_s = tn_cost_of_bytes(q->device, bytes)});
}

static tn_status onednn_reduce_query(tn_query *q) {
  reduce_kernel p;
  const tn_node *n = q->match->nodes[0].node;
  if (!reduce_make(q->match, q->backend, TN_IMAGE_PLAIN, &p))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s of %s over these axes is not supported", n->op,
                   tn_dtype_name(n->in[0]->dtype));
  for (int32_t way = TN_IMAGE_PLAIN; way < TN_IMAGE_WAYS; way++)
    if (reduce_make(q->match, q->backend, way, &p)) reduce_offer(q, way, &p);
  return TN_OK;
}

static tn_status onednn_reduce_prepare(tn_prepare *p, void **made) {
  reduce_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  reduce_make(p->match, p->backend, p->variant, keep);
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, reduce_sum, "onednn_reduce_sum", "y = reduce_sum(x)",
                 "sums over any axes, in vectors",
                 TN_KERNEL_CALLBACKS_WITH(onednn_reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, reduce_max, "onednn_reduce_max", "y = reduce_max(x)",
                 "largest elements over any axes, in vectors",
                 TN_KERNEL_CALLBACKS_WITH(onednn_reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, reduce_min, "onednn_reduce_min", "y = reduce_min(x)",
                 "smallest elements over any axes, in vectors",
                 TN_KERNEL_CALLBACKS_WITH(onednn_reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, moments, "onednn_moments", "mean, variance = moments(x)",
                 "means and variances, also with channels in blocks",
                 TN_KERNEL_CALLBACKS_WITH(onednn_reduce, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, norm_grad_sums, "onednn_norm_grad_sums", "s, d = norm_grad_sums(dy, x, mean, rstd)",
                 "the sums of a normalization's gradient, also with channels in blocks",
                 TN_KERNEL_CALLBACKS_WITH(onednn_reduce, tn_delete_prepared));

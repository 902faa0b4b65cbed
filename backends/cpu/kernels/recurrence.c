/* backends/cpu/kernels/recurrence.c: recurrence and its gradient. A task takes some sequences through all
 * steps, so no step waits for other tasks. The gradient of the weight is a product of all steps at the end.
 * Arithmetic is in f32, for f64 in f64; the state is not rounded between steps. */
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "backends/shared/sequence.h"
#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/lane.h"
#include "backends/cpu/kernels/common/vmath.h"

#include <math.h>
#include <string.h>

#include "tenon/attributes.h"

enum { MOST_ROWS = 8, WEIGHT_ROWS = 16 };

typedef struct recurrence_job {
  const tn_launch *l;
  const tn_recurrence_attributes *a;
  int64_t batch, steps, units, gates, stored;
  int64_t rows;                             /* sequences of a task */
  const int32_t *length;                    /* NULL: absent */
  const tn_view *dy;                        /* NULL: absent */
  void *weight, *product, *state, *scratch; /* of the workspace, in lanes */
} recurrence_job;

static const tn_view *recurrence_operand(const tn_launch *l, int32_t i) {
  return l->in[i].data != NULL ? &l->in[i] : NULL;
}

/* The sizes are those of y, w and stored. */
static recurrence_job recurrence_job_of(const tn_recurrence_attributes *a, const tn_type *y, const tn_type *w,
                                        const tn_type *stored) {
  recurrence_job j = {.a = a, .batch = y->dims[0], .steps = y->dims[1], .units = y->dims[2]};
  j.gates = j.units > 0 ? w->dims[0] / j.units : 0;
  j.stored = j.units > 0 ? stored->dims[2] / j.units : 0;
  j.rows =
      least(at_least_1(j.batch / 8), MOST_ROWS); /* some tasks for each thread before a task has several */
  return j;
}

static int64_t recurrence_tasks(const recurrence_job *j) { return divide_up(j->batch, j->rows); }
static int64_t recurrence_first(const recurrence_job *j, int64_t task) { return task * j->rows; }
static int64_t recurrence_end(const recurrence_job *j, int64_t task) {
  return least((task + 1) * j->rows, j->batch);
}

/* Lanes of the workspace: of the weight, and of one task of forward or backward. */
static int64_t recurrence_weight_lanes(const recurrence_job *j) { return j->gates * j->units * j->units; }
static int64_t recurrence_scratch(const recurrence_job *j) {
  return (j->rows * (2 + j->gates) + 2 * j->gates + j->stored) * j->units;
}
static int64_t recurrence_grad_scratch(const recurrence_job *j) {
  return (2 * j->rows + j->stored + 2 + j->gates) * j->units;
}

static int64_t recurrence_length(const recurrence_job *j, int64_t row) {
  return tn_sequence_length(j->length, row, j->steps);
}

/* The element of a tensor of (batch, steps, ...) at which step k of a sequence begins. */
static int64_t recurrence_at(const recurrence_job *j, int64_t row, int64_t k, int64_t width) {
  int64_t t = j->a->reverse ? recurrence_length(j, row) - 1 - k : k;
  return (row * j->steps + t) * width;
}

static int64_t recurrence_longest(const recurrence_job *j, int64_t first, int64_t end) {
  int64_t longest = 0;
  for (int64_t row = first; row < end; row++)
    if (recurrence_length(j, row) > longest) longest = recurrence_length(j, row);
  return longest;
}

static void recurrence_clear(const tn_view *v) {
  if (v->data != NULL) memset(v->data, 0, tn_type_bytes(&v->type));
}

/* ---- f32, also for halves ---- */

#define LANE        float
#define TYPED(name) recurrence_##name##_f32
#define SIGMOID(x)  vm_sigmoid(x)
#define TANH(x)     vm_tanh(x)
static inline void recurrence_load_f32(const tn_view *v, int64_t at, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i += TN_TILE) {
    int64_t m = n - i < TN_TILE ? n - i : TN_TILE;
    const float *from = tn_cpu_f32(v->type.dtype, v->data, at + i, m, to + i);
    if (from != to + i) memcpy(to + i, from, (size_t)m * sizeof *to);
  }
}
static inline void recurrence_store_f32(const tn_view *v, int64_t at, int64_t n, const float *from) {
  void *to = tn_cpu_at(v->data, v->type.dtype, at);
  if (v->type.dtype == TN_F32)
    memcpy(to, from, (size_t)n * sizeof *from);
  else
    tn_cpu_narrow(v->type.dtype, from, to, n);
}
#include "backends/cpu/kernels/recurrence_typed.h"
#undef LANE
#undef TYPED
#undef SIGMOID
#undef TANH

/* ---- f64 ---- */

#define LANE        double
#define TYPED(name) recurrence_##name##_f64
#define SIGMOID(x)  (((x) >= 0 ? 1.0 : exp(x)) / (1.0 + exp(-fabs(x))))
#define TANH(x)     tanh(x)
static inline void recurrence_load_f64(const tn_view *v, int64_t at, int64_t n, double *to) {
  memcpy(to, (const double *)v->data + at, (size_t)n * sizeof *to);
}
static inline void recurrence_store_f64(const tn_view *v, int64_t at, int64_t n, const double *from) {
  memcpy((double *)v->data + at, from, (size_t)n * sizeof *from);
}
#include "backends/cpu/kernels/recurrence_typed.h"

/* ---- launch ---- */

static int64_t recurrence_lane_size(int32_t dtype) {
  return dtype == TN_F64 ? sizeof(double) : sizeof(float);
}

static tn_status recurrence_launch(tn_launch *l) {
  const tn_view *y = &l->out[0];
  recurrence_job j = recurrence_job_of(l->prepared, &y->type, &l->in[1].type, &l->out[3].type);
  j.l = l;
  j.length = l->in[5].data;
  TN_TRY(tn_check_sequence_lengths(l, j.length, j.batch, j.steps));
  if (j.units == 0) return TN_OK;
  bool wide = y->type.dtype == TN_F64;
  j.weight = l->workspace;
  j.scratch = (uint8_t *)l->workspace + recurrence_weight_lanes(&j) * recurrence_lane_size(y->type.dtype);
  if (j.length != NULL) recurrence_clear(y);
  if (j.length != NULL) recurrence_clear(&l->out[3]);
  (wide ? recurrence_transpose_weight_f64 : recurrence_transpose_weight_f32)(&j, &l->in[1]);
  tn_parallel(l, recurrence_tasks(&j), wide ? recurrence_forward_f64 : recurrence_forward_f32, &j);
  return TN_OK;
}

static tn_status recurrence_grad_launch(tn_launch *l) {
  const tn_view *y = &l->in[4];
  recurrence_job j = recurrence_job_of(l->prepared, &y->type, &l->in[0].type, &l->in[5].type);
  j.l = l;
  j.length = l->in[3].data;
  j.dy = recurrence_operand(l, 6);
  TN_TRY(tn_check_sequence_lengths(l, j.length, j.batch, j.steps));
  if (j.units == 0) return TN_OK;
  bool wide = y->type.dtype == TN_F64;
  int64_t size = recurrence_lane_size(y->type.dtype), all = j.batch * j.steps;
  j.weight = l->workspace;
  j.product = (uint8_t *)j.weight + recurrence_weight_lanes(&j) * size;
  j.state = (uint8_t *)j.product + all * j.gates * j.units * size;
  j.scratch = (uint8_t *)j.state + all * j.units * size;
  if (j.length != NULL) recurrence_clear(&l->out[0]);
  if (j.length != NULL) memset(j.product, 0, (size_t)(all * (j.gates + 1) * j.units * size));
  (wide ? recurrence_load_weight_f64 : recurrence_load_weight_f32)(&j, &l->in[0]);
  tn_parallel(l, recurrence_tasks(&j), wide ? recurrence_backward_f64 : recurrence_backward_f32, &j);
  tn_parallel(l, (j.gates * j.units + WEIGHT_ROWS - 1) / WEIGHT_ROWS,
              wide ? recurrence_weight_grad_f64 : recurrence_weight_grad_f32, &j);
  return TN_OK;
}

/* ---- query ---- */

static tn_status recurrence_prepare(tn_prepare *p, void **made) {
  tn_recurrence_attributes *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *keep = *(const tn_recurrence_attributes *)p->match->nodes[0].node->attributes;
  *made = keep;
  return TN_OK;
}

static tn_status recurrence_offer(tn_query *q, int64_t lanes, int32_t dtype) {
  return tn_offer(q, (tn_variant){.name = "sequences",
                                  .workspace_bytes = lanes * recurrence_lane_size(dtype),
                                  .prepared_bytes = sizeof(tn_recurrence_attributes)});
}

static tn_status recurrence_query(tn_query *q) {
  const tn_match *m = q->match;
  recurrence_job j = recurrence_job_of(m->nodes[0].node->attributes, m->out[0], m->in[1], m->out[3]);
  int64_t tasks = recurrence_tasks(&j) * recurrence_scratch(&j);
  return recurrence_offer(q, recurrence_weight_lanes(&j) + tasks, m->out[0]->dtype);
}

static tn_status recurrence_grad_query(tn_query *q) {
  const tn_match *m = q->match;
  recurrence_job j = recurrence_job_of(m->nodes[0].node->attributes, m->in[4], m->in[0], m->in[5]);
  int64_t all = j.batch * j.steps * (j.gates + 1) * j.units;
  int64_t tasks = recurrence_tasks(&j) * recurrence_grad_scratch(&j);
  int64_t weight = j.gates * j.units * (j.units + 1);
  return recurrence_offer(q, recurrence_weight_lanes(&j) + all + (tasks > weight ? tasks : weight),
                          m->in[4]->dtype);
}

TN_DEFINE_KERNEL(cpu, recurrence, "recurrence",
                 "y, last, cell, stored = recurrence(x, w, bias?, h?, c?, length?)",
                 "takes some sequences through all steps in each task", .query = recurrence_query,
                 .prepare = recurrence_prepare, .release = tn_delete_prepared, .launch = recurrence_launch);

TN_DEFINE_KERNEL(
    cpu, recurrence_grad, "recurrence_grad",
    "dx, dw, dbias, dh, dc = recurrence_grad(w, h?, c?, length?, y, stored, dy?, dlast?, dcell?)",
    "takes some sequences back through all steps in each task, then sums the gradient of w",
    .query = recurrence_grad_query, .prepare = recurrence_prepare, .release = tn_delete_prepared,
    .launch = recurrence_grad_launch);

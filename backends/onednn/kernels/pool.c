/* max_pool2d and avg_pool2d and their gradients, with channels in blocks as wide as a vector, or plane by
 * plane where windows lie so that vectors run along rows. */
#include "backends/onednn/kernels/pool.h"
#include "backends/onednn/integer_math.h"

#include <stdbool.h>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "tenon/attributes.h"

enum { CHUNK = 1 << 14 /* elements that a chunk should at least have */ };
enum { PLANES = 0, BLOCKS = 1 }; /* ids of variants */

typedef struct plan {
  tn_pool_function plane;
  tn_pool_shape shape;
  int32_t lanes;      /* channels of a block; 1: planes */
  int64_t planes;     /* of as many channels */
  int64_t from, to;   /* bytes of a plane that is read, and of one that is written */
  int64_t index_step; /* entries of index in a plane */
  int64_t per_chunk;
} plan;

/* ---- query and prepare ---------------------------------------------------------------------------- */

static int32_t kind_of(const char *op) { /* max_pool2d, max_pool2d_grad, avg_pool2d, avg_pool2d_grad */
  return (op[0] == 'm' ? TN_POOL_MAX : TN_POOL_AVG) + (op[10] == '_');
}

static tn_pool_axis axis_of(const tn_pool2d_attributes *a, int32_t i, const tn_type *x, const tn_type *y) {
  const tn_ints *stride = a->stride.n > 0 ? &a->stride : &a->kernel;
  return (tn_pool_axis){x->dims[2 + i], y->dims[2 + i], a->kernel.v[i], stride->v[i], a->padding.v[i]};
}

/* Whether the loops over planes do it. */
static bool planes_do(int32_t kind, const tn_pool_shape *s) {
  const tn_pool_axis *a = s->axis;
  if (kind == TN_POOL_MAX || kind == TN_POOL_AVG)
    return a[1].stride <= 2 &&
           a[1].in + 2 * a[1].padding + a[1].kernel + 2 * a[1].stride * 16 <= TN_POOL_COLUMNS;
  for (int32_t i = 0; i < 2; i++)
    if (a[i].kernel != 2 || a[i].stride != 2 || a[i].padding != 0 || a[i].in != 2 * a[i].out) return false;
  return true;
}

/* False: not this way. */
static bool make_plan(const tn_match *m, const void *backend, int32_t how, plan *p) {
  const tn_pool_loops *loops = TN_LOOPS_PICK_AT(tn_loops_pool, tn_onednn_isa_of(backend));
  const tn_node *n = m->nodes[0].node;
  int32_t kind = kind_of(n->op), dtype = n->in[0]->dtype;
  bool forward = kind == TN_POOL_MAX || kind == TN_POOL_AVG;
  const tn_type *x = forward ? m->in[0] : m->out[0], *y = forward ? m->out[0] : m->in[0];
  const tn_pool2d_attributes *a = n->attributes;
  *p = (plan){.plane = (how == BLOCKS ? loops->blocks : loops->planes)[kind][dtype],
              .shape = {a->include_pad, {axis_of(a, 0, x, y), axis_of(a, 1, x, y)}},
              .lanes = how == BLOCKS ? loops->lanes : 1};
  if (p->plane == NULL) return false;
  if (how == BLOCKS ? x->dims[1] == 0 || x->dims[1] % p->lanes != 0 : !planes_do(kind, &p->shape))
    return false;
  int64_t bytes = (int64_t)tn_dtype_size(dtype) * p->lanes, large = x->dims[2] * x->dims[3] * p->lanes;
  p->planes = x->dims[0] * x->dims[1] / p->lanes;
  p->from = m->in[0]->dims[2] * m->in[0]->dims[3] * bytes;
  p->to = m->out[0]->dims[2] * m->out[0]->dims[3] * bytes;
  p->index_step = y->dims[2] * y->dims[3] * p->lanes;
  p->per_chunk = at_least_1(CHUNK / at_least_1(large));
  return true;
}

static void offer(tn_query *q, int32_t how, const plan *p) {
  const tn_match *m = q->match;
  tn_operand_layout plain = {0}, blocked = {TN_LAYOUT_FIXED, 0, tn_channels_blocked(4, p->lanes)};
  tn_operand_layout lies = how == BLOCKS ? blocked : plain, all[2] = {lies, lies};
  double bytes = 0;
  for (int32_t i = 0; i < m->n_in; i++) bytes += (double)tn_type_bytes(m->in[i]);
  for (int32_t i = 0; i < m->n_out; i++) bytes += (double)tn_type_bytes(m->out[i]);
  tn_variant v = {.struct_size = sizeof v,
                  .id = how,
                  .name = how == BLOCKS ? "blocks" : "planes",
                  .in = all,
                  .out = all,
                  .prepared_bytes = sizeof(plan),
                  .cost_s = 1e-7 + bytes / (how == BLOCKS ? 1e10 : 0.5e10),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
}

static tn_status query(tn_query *q) {
  bool any = false;
  plan p;
  for (int32_t how = PLANES; how <= BLOCKS; how++) {
    if (!make_plan(q->match, q->backend, how, &p)) continue;
    offer(q, how, &p);
    any = true;
  }
  if (any) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "channels that do not come in blocks, and windows of another kind");
}

static tn_status prepare(tn_prepare *p, void **made) {
  plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, p->variant, keep);
  *made = keep;
  return TN_OK;
}

static void release(tn_env *env, void *made) { tn_delete(env, made); }

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct job {
  const plan *p;
  const uint8_t *from;
  uint8_t *to;
  int32_t *index;
} job;

static void pool_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  int64_t at = chunk * p->per_chunk, end = at + p->per_chunk < p->planes ? at + p->per_chunk : p->planes;
  for (; at < end; at++)
    p->plane(&p->shape, j->from + at * p->from, j->to + at * p->to,
             j->index != NULL ? j->index + at * p->index_step : NULL);
}

static tn_status launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l->in[0].data, l->out[0].data,
           l->n_out == 2  ? l->out[1].data
           : l->n_in == 2 ? l->in[1].data
                          : NULL};
  tn_parallel(l, (p->planes + p->per_chunk - 1) / p->per_chunk, pool_chunk, &j);
  return TN_OK;
}

#define POOL(id, text, what)                                                                                 \
  const tn_kernel tn_onednn_##id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #id, what),        \
                                    .family = "onednn",                                                      \
                                    .pattern = text,                                                         \
                                    .query = query,                                                          \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .launch = launch}

POOL(max_pool2d, "y, index = max_pool2d(x)", "maxima of windows, channels in blocks or not");
POOL(max_pool2d_grad, "dx = max_pool2d_grad(dy, index)", "each element collects from its windows");
POOL(avg_pool2d, "y = avg_pool2d(x)", "means of windows, channels in blocks or not");
POOL(avg_pool2d_grad, "dx = avg_pool2d_grad(dy)", "each element collects from its windows");

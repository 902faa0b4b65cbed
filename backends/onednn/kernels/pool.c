/* backends/onednn/kernels/pool.c: max_pool2d, avg_pool2d and their gradients, on channels in blocks as wide
 * as a vector, or plane by plane with vectors along the rows; without gradients on channels innermost, too.
 */
#include "backends/onednn/kernels/pool.h"
#include "backends/shared/integer_math.h"

#include <stdbool.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "tenon/attributes.h"

enum { CHUNK = 1 << 14 /* elements of a chunk, at least */ };

typedef struct pool_kernel {
  tn_pool_function plane;
  tn_pool_rows_function rows; /* with channels innermost; else NULL */
  tn_pool_shape shape;
  int32_t lanes;      /* channels of a block; 1: planes */
  int64_t planes;     /* of `lanes` channels each */
  int64_t from, to;   /* bytes of a plane of the operand, and of the result */
  int64_t index_step; /* entries of index in a plane */
  int64_t channels;   /* with channels innermost: a plane is an image */
  int64_t per_chunk;
} pool_kernel;

/* ---- query and prepare ---------------------------------------------------------------------------- */

static int32_t pool_kind(const char *op) { /* max_pool2d, max_pool2d_grad, avg_pool2d, avg_pool2d_grad */
  return (op[0] == 'm' ? TN_POOL_MAX : TN_POOL_AVG) + (op[10] == '_');
}

static tn_pool_axis pool_axis(const tn_pool2d_attributes *a, int32_t i, const tn_type *x, const tn_type *y) {
  const tn_ints *stride = a->stride.n > 0 ? &a->stride : &a->kernel;
  return (tn_pool_axis){x->dims[2 + i], y->dims[2 + i], a->kernel.v[i], stride->v[i], a->padding.v[i]};
}

/* Whether the loops over planes support the windows. */
static bool pool_fits_planes(int32_t kind, const tn_pool_shape *s) {
  const tn_pool_axis *a = s->axis;
  if (kind == TN_POOL_MAX || kind == TN_POOL_AVG)
    return a[1].stride <= 2 &&
           a[1].in + 2 * a[1].padding + a[1].kernel + 2 * a[1].stride * 16 <= TN_POOL_COLUMNS;
  for (int32_t i = 0; i < 2; i++)
    if (a[i].kernel != 2 || a[i].stride != 2 || a[i].padding != 0 || a[i].in != 2 * a[i].out) return false;
  return true;
}

/* Rows of images, a chunk at a time. */
static void pool_set_rows(const tn_match *m, const tn_type *x, int64_t bytes, pool_kernel *p) {
  p->channels = x->dims[1];
  p->planes = x->dims[0];
  p->from = m->in[0]->dims[2] * m->in[0]->dims[3] * p->channels * bytes;
  p->to = m->out[0]->dims[2] * m->out[0]->dims[3] * p->channels * bytes;
  p->index_step = m->out[0]->dims[2] * m->out[0]->dims[3] * p->channels;
  p->per_chunk = at_least_1(CHUNK / at_least_1(m->out[0]->dims[3] * p->channels * p->shape.axis[0].stride *
                                               p->shape.axis[1].stride));
}

/* False where `how`, TN_IMAGE_..., does not apply. */
static bool pool_make(const tn_match *m, const void *backend, int32_t how, pool_kernel *p) {
  const tn_pool_loops *loops = TN_LOOPS_PICK_AT(tn_loops_pool, tn_onednn_isa_of(backend));
  const tn_node *n = m->nodes[0].node;
  int32_t kind = pool_kind(n->op), dtype = n->in[0]->dtype;
  bool forward = kind == TN_POOL_MAX || kind == TN_POOL_AVG;
  const tn_type *x = forward ? m->in[0] : m->out[0], *y = forward ? m->out[0] : m->in[0];
  const tn_pool2d_attributes *a = n->attributes;
  bool blocks = how == TN_IMAGE_BLOCKS;
  *p = (pool_kernel){.plane = (blocks ? loops->blocks : loops->planes)[kind][dtype],
                     .rows = how == TN_IMAGE_LAST ? loops->rows[kind][dtype] : NULL,
                     .shape = {a->include_pad, {pool_axis(a, 0, x, y), pool_axis(a, 1, x, y)}},
                     .lanes = blocks ? loops->lanes : 1};
  if (how == TN_IMAGE_LAST) {
    pool_set_rows(m, x, (int64_t)tn_dtype_size(dtype), p);
    return p->rows != NULL;
  }
  if (p->plane == NULL) return false;
  if (blocks ? x->dims[1] == 0 || x->dims[1] % p->lanes != 0 : !pool_fits_planes(kind, &p->shape))
    return false;
  int64_t bytes = (int64_t)tn_dtype_size(dtype) * p->lanes, large = x->dims[2] * x->dims[3] * p->lanes;
  p->planes = x->dims[0] * x->dims[1] / p->lanes;
  p->from = m->in[0]->dims[2] * m->in[0]->dims[3] * bytes;
  p->to = m->out[0]->dims[2] * m->out[0]->dims[3] * bytes;
  p->index_step = y->dims[2] * y->dims[3] * p->lanes;
  p->per_chunk = at_least_1(CHUNK / at_least_1(large));
  return true;
}

static void onednn_pool_offer(tn_query *q, int32_t how, const pool_kernel *p) {
  const tn_match *m = q->match;
  tn_operand_layout layout = {how == TN_IMAGE_PLAIN ? TN_LAYOUT_ROW_MAJOR : TN_LAYOUT_FIXED, 0,
                              tn_image_layout(how, 4, p->lanes)};
  tn_operand_layout all[2] = {layout, layout};
  double passes = how == TN_IMAGE_PLAIN ? 2 : how == TN_IMAGE_LAST ? 1.05 : 1;
  tn_offer(q, (tn_variant){.id = how,
                           .name = how == TN_IMAGE_PLAIN ? "planes" : tn_image_way_name(how),
                           .in = all,
                           .out = all,
                           .prepared_bytes = sizeof(pool_kernel),
                           .cost_s = tn_cost_of_bytes(q->device, tn_match_bytes(m) * passes)});
}

static tn_status onednn_pool_query(tn_query *q) {
  bool any = false;
  pool_kernel p;
  for (int32_t how = TN_IMAGE_PLAIN; how < TN_IMAGE_WAYS; how++) {
    if (!pool_make(q->match, q->backend, how, &p)) continue;
    onednn_pool_offer(q, how, &p);
    any = true;
  }
  if (any) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "the channels do not fill blocks, and the windows are not those of the loops over planes");
}

static tn_status onednn_pool_prepare(tn_prepare *p, void **made) {
  pool_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  pool_make(p->match, p->backend, p->variant, kernel);
  *made = kernel;
  return TN_OK;
}

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct pool_job {
  const pool_kernel *p;
  const uint8_t *from;
  uint8_t *to;
  int32_t *index;
} pool_job;

static void onednn_pool_run_chunk(void *arg, int64_t chunk) {
  const pool_job *j = arg;
  const pool_kernel *p = j->p;
  int64_t at = chunk * p->per_chunk, end = at + p->per_chunk < p->planes ? at + p->per_chunk : p->planes;
  for (; at < end; at++)
    p->plane(&p->shape, j->from + at * p->from, j->to + at * p->to,
             j->index != NULL ? j->index + at * p->index_step : NULL);
}

/* Some rows of the result of an image. */
static void onednn_pool_run_rows(void *arg, int64_t chunk) {
  const pool_job *j = arg;
  const pool_kernel *p = j->p;
  int64_t chunks = divide_up(p->shape.axis[0].out, p->per_chunk), image = chunk / chunks;
  int64_t first = chunk % chunks * p->per_chunk, last = least(first + p->per_chunk, p->shape.axis[0].out);
  p->rows(&p->shape, p->channels, first, last, j->from + image * p->from, j->to + image * p->to,
          j->index != NULL ? j->index + image * p->index_step : NULL);
}

static tn_status onednn_pool_launch(tn_launch *l) {
  const pool_kernel *p = l->prepared;
  pool_job j = {p, l->in[0].data, l->out[0].data,
                l->n_out == 2  ? l->out[1].data
                : l->n_in == 2 ? l->in[1].data
                               : NULL};
  if (p->rows != NULL)
    tn_parallel(l, p->planes * divide_up(p->shape.axis[0].out, p->per_chunk), onednn_pool_run_rows, &j);
  else
    tn_parallel(l, divide_up(p->planes, p->per_chunk), onednn_pool_run_chunk, &j);
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, max_pool2d, "onednn_max_pool2d", "y, index = max_pool2d(x)",
                 "maxima of windows, on planes or blocks of channels",
                 TN_KERNEL_CALLBACKS_WITH(onednn_pool, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, max_pool2d_values, "onednn_max_pool2d_values", "y, _ = max_pool2d(x)",
                 "maxima of windows without their indices",
                 TN_KERNEL_CALLBACKS_WITH(onednn_pool, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, max_pool2d_grad, "onednn_max_pool2d_grad", "dx = max_pool2d_grad(dy, index)",
                 "each element collects from its windows",
                 TN_KERNEL_CALLBACKS_WITH(onednn_pool, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, avg_pool2d, "onednn_avg_pool2d", "y = avg_pool2d(x)",
                 "means of windows, on planes or blocks of channels",
                 TN_KERNEL_CALLBACKS_WITH(onednn_pool, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, avg_pool2d_grad, "onednn_avg_pool2d_grad", "dx = avg_pool2d_grad(dy)",
                 "each element collects from its windows",
                 TN_KERNEL_CALLBACKS_WITH(onednn_pool, tn_delete_prepared));

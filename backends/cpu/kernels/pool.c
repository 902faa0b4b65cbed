/* backends/cpu/kernels/pool.c: max_pool2d, avg_pool2d and their gradients, plane by plane. Elements in
 * half precision are summed in f32. */

#include <stddef.h>

#include "backends/shared/define_kernel.h"
#include "backends/shared/half.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

/* One spatial dimension of x (in) and y (out). */
typedef struct pool_axis {
  int64_t in, out, kernel, stride, padding;
} pool_axis;

typedef struct pool_shape {
  int64_t planes, from, to; /* from, to: elements per plane of the operand and of the result */
  int32_t dtype, include_pad;
  pool_axis axis[2];
} pool_shape;

/* Positions low .. high-1; padded: their number including padding. */
typedef struct pool_window {
  int64_t low, high, padded;
} pool_window;

/* The elements of x in window o. With `ceil` the last window may reach beyond the padding; positions beyond
 * it are not counted, as in PyTorch. */
static inline pool_window pool_window_at(const pool_axis *a, int64_t o) {
  int64_t start = o * a->stride - a->padding, stop = least(start + a->kernel, a->in + a->padding);
  return (pool_window){most(start, 0), least(stop, a->in), stop - start};
}

/* The windows that contain element i of x. */
static inline pool_window pool_windows_of(const pool_axis *a, int64_t i) {
  int64_t before = i + a->padding - a->kernel + 1;
  int64_t low = before > 0 ? (before + a->stride - 1) / a->stride : 0;
  return (pool_window){low, least((i + a->padding) / a->stride + 1, a->out), 0};
}

static inline int64_t pool_divisor(const pool_shape *s, const pool_window *w) {
  return s->include_pad ? w->padded : w->high - w->low;
}

/* ---- element types --------------------------------------------------------------------------------- */

#define ELEMENT   float
#define WIDE      float
#define TYPED(n)  n##_f32
#define WIDEN(x)  (x)
#define NARROW(x) (x)
#include "backends/cpu/kernels/pool_typed.h"
#undef ELEMENT
#undef WIDE
#undef TYPED

#define ELEMENT  double
#define WIDE     double
#define TYPED(n) n##_f64
#include "backends/cpu/kernels/pool_typed.h"
#undef ELEMENT
#undef WIDE
#undef TYPED
#undef WIDEN
#undef NARROW

#define ELEMENT   uint16_t
#define WIDE      float
#define TYPED(n)  n##_f16
#define WIDEN(x)  tn_f32_of_f16(x)
#define NARROW(x) tn_f16_of_f32(x)
#include "backends/cpu/kernels/pool_typed.h"
#undef TYPED
#undef WIDEN
#undef NARROW

#define TYPED(n)  n##_bf16
#define WIDEN(x)  tn_f32_of_bf16(x)
#define NARROW(x) tn_bf16_of_f32(x)
#include "backends/cpu/kernels/pool_typed.h"

/* index: the indices of the maxima in their plane; NULL for averages. */
typedef void (*pool_plane_function)(const pool_shape *s, const void *from, void *to, int32_t *index);

#define BY_DTYPE(name)                                                                                       \
  { [TN_F16] = name##_f16, [TN_BF16] = name##_bf16, [TN_F32] = name##_f32, [TN_F64] = name##_f64 }
static const pool_plane_function max_planes[TN_DTYPES] = BY_DTYPE(max_plane);
static const pool_plane_function max_grad_planes[TN_DTYPES] = BY_DTYPE(max_grad_plane);
static const pool_plane_function avg_planes[TN_DTYPES] = BY_DTYPE(avg_plane);
static const pool_plane_function avg_grad_planes[TN_DTYPES] = BY_DTYPE(avg_grad_plane);

/* ---- query and prepare ------------------------------------------------------------------------------ */

static pool_axis pool_axis_of(const tn_pool2d_attributes *a, int32_t i, const tn_type *x, const tn_type *y) {
  const tn_ints *stride = a->stride.n > 0 ? &a->stride : &a->kernel;
  return (pool_axis){x->dims[2 + i], y->dims[2 + i], a->kernel.v[i], stride->v[i], a->padding.v[i]};
}

/* x is the operand and y the result of the forward op. */
static pool_shape pool_shape_of(const tn_match *match, const tn_type *x, const tn_type *y) {
  const tn_pool2d_attributes *a = match->nodes[0].node->attributes;
  const tn_type *from = match->in[0], *to = match->out[0];
  return (pool_shape){.planes = x->dims[0] * x->dims[1],
                      .from = from->dims[2] * from->dims[3],
                      .to = to->dims[2] * to->dims[3],
                      .dtype = x->dtype,
                      .include_pad = a->include_pad,
                      .axis = {pool_axis_of(a, 0, x, y), pool_axis_of(a, 1, x, y)}};
}

static pool_shape pool_forward_shape(const tn_match *m) { return pool_shape_of(m, m->in[0], m->out[0]); }
static pool_shape pool_gradient_shape(const tn_match *m) { return pool_shape_of(m, m->out[0], m->in[0]); }

static tn_status pool_offer(tn_query *q, const pool_shape *s) {
  if (s->dtype < 0 || s->dtype >= TN_DTYPES || avg_planes[s->dtype] == NULL)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16, f32 or f64",
                   tn_dtype_name(s->dtype));
  return tn_offer(q, (tn_variant){.name = "planes", .prepared_bytes = (int64_t)sizeof(pool_shape)});
}

static tn_status pool_forward_query(tn_query *q) {
  pool_shape s = pool_forward_shape(q->match);
  return pool_offer(q, &s);
}

static tn_status pool_gradient_query(tn_query *q) {
  pool_shape s = pool_gradient_shape(q->match);
  return pool_offer(q, &s);
}

static tn_status pool_keep(tn_prepare *p, pool_shape shape, void **prepared) {
  pool_shape *s = tn_new(p, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  *s = shape;
  *prepared = s;
  return TN_OK;
}

static tn_status pool_forward_prepare(tn_prepare *p, void **prepared) {
  return pool_keep(p, pool_forward_shape(p->match), prepared);
}
static tn_status pool_gradient_prepare(tn_prepare *p, void **prepared) {
  return pool_keep(p, pool_gradient_shape(p->match), prepared);
}

/* ---- launch ---------------------------------------------------------------------------------------- */

enum { CHUNK_ELEMENTS = 16384 };

typedef struct pool_run {
  const pool_shape *shape;
  pool_plane_function plane;
  const char *from;
  char *to;
  int32_t *index;
  int64_t index_step, planes_per_chunk;
} pool_run;

static void pool_run_chunk(void *arg, int64_t chunk) {
  const pool_run *run = arg;
  const pool_shape *s = run->shape;
  int64_t size = (int64_t)tn_dtype_size(s->dtype), first = chunk * run->planes_per_chunk;
  int64_t stop = least(first + run->planes_per_chunk, s->planes);
  for (int64_t p = first; p < stop; p++)
    run->plane(s, run->from + p * s->from * size, run->to + p * s->to * size,
               run->index != NULL ? run->index + p * run->index_step : NULL);
}

static tn_status pool_run_planes(tn_launch *l, const pool_plane_function *by_dtype, int32_t *index) {
  const pool_shape *s = l->prepared;
  int64_t elements = most(s->from, s->to), per_chunk = most(CHUNK_ELEMENTS / most(elements, 1), 1);
  pool_run run = {.shape = s,
                  .plane = by_dtype[s->dtype],
                  .from = l->in[0].data,
                  .to = l->out[0].data,
                  .index = index,
                  .index_step = s->axis[0].out * s->axis[1].out,
                  .planes_per_chunk = per_chunk};
  int64_t chunks = (s->planes + per_chunk - 1) / per_chunk;
  if (chunks > 0) tn_parallel(l, chunks, pool_run_chunk, &run);
  return TN_OK;
}

static tn_status max_pool_launch(tn_launch *l) { return pool_run_planes(l, max_planes, l->out[1].data); }
static tn_status max_pool_grad_launch(tn_launch *l) {
  return pool_run_planes(l, max_grad_planes, l->in[1].data);
}
static tn_status avg_pool_launch(tn_launch *l) { return pool_run_planes(l, avg_planes, NULL); }
static tn_status avg_pool_grad_launch(tn_launch *l) { return pool_run_planes(l, avg_grad_planes, NULL); }

/* ---- descriptors ------------------------------------------------------------------------------------ */

TN_DEFINE_KERNEL(cpu, max_pool2d, "max_pool2d", "y, index = max_pool2d(x)",
                 "maxima of windows, plane by plane", .query = pool_forward_query,
                 .prepare = pool_forward_prepare, .release = tn_delete_prepared, .launch = max_pool_launch);

TN_DEFINE_KERNEL(cpu, max_pool2d_grad, "max_pool2d_grad", "dx = max_pool2d_grad(dy, index)",
                 "sums over the windows of each element", .query = pool_gradient_query,
                 .prepare = pool_gradient_prepare, .release = tn_delete_prepared,
                 .launch = max_pool_grad_launch);

TN_DEFINE_KERNEL(cpu, avg_pool2d, "avg_pool2d", "y = avg_pool2d(x)", "means of windows, plane by plane",
                 .query = pool_forward_query, .prepare = pool_forward_prepare, .release = tn_delete_prepared,
                 .launch = avg_pool_launch);

TN_DEFINE_KERNEL(cpu, avg_pool2d_grad, "avg_pool2d_grad", "dx = avg_pool2d_grad(dy)",
                 "sums over the windows of each element", .query = pool_gradient_query,
                 .prepare = pool_gradient_prepare, .release = tn_delete_prepared,
                 .launch = avg_pool_grad_launch);

/* core/ops/pool_ranks.c: pooling in terms of pooling over two dimensions. One dimension is a row of height 1,
 * which is a view. Windows over three dimensions are products of intervals, so that those over the planes are
 * reduced first, and what they leave along the depth. Pooling over all of an image, pooling by a norm of the
 * elements of a window, and unpooling are composites as well. */
#include "core/ops/pool.h"

#include <stdio.h>

/* ---- emitting ---- */

tn_val tn_pool_emit(tn_build *b, const char *op, tn_val x, tn_val index, const tn_pool2d_attributes *a,
                    const tn_type *dims) {
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  if (index != 0) tn_op_arg(b, index);
  tn_op_set_ints(b, "kernel", a->kernel.n, a->kernel.v);
  tn_op_set_ints(b, "stride", a->stride.n, a->stride.v);
  tn_op_set_ints(b, "padding", a->padding.n, a->padding.v);
  tn_op_set_int(b, "ceil", a->ceil);
  if (op[0] == 'a') tn_op_set_int(b, "include_pad", a->include_pad);
  if (dims != NULL) tn_op_set_ints(b, "dims", dims->rank, dims->dims);
  return tn_op_end(b);
}

/* Attributes of two dimensions, with room for their lists. */
typedef struct pool_plane {
  int64_t kernel[2], stride[2], padding[2];
  tn_pool2d_attributes a;
} pool_plane;

/* Dimensions first and first + 1 of `a`; a window of 1 stands for those that it lacks. */
static const tn_pool2d_attributes *pool_plane_of(const tn_pool2d_attributes *a, int64_t first, int64_t stop,
                                                 pool_plane *p) {
  const tn_ints *stride = a->stride.n > 0 ? &a->stride : &a->kernel;
  for (int64_t i = 0; i < 2; i++) {
    bool within = first + i >= 0 && first + i < stop;
    p->kernel[i] = within ? a->kernel.v[first + i] : 1;
    p->stride[i] = within ? stride->v[first + i] : 1;
    p->padding[i] = within ? a->padding.v[first + i] : 0;
  }
  p->a = *a;
  p->a.kernel = (tn_ints){2, p->kernel};
  p->a.stride = (tn_ints){2, p->stride};
  p->a.padding = (tn_ints){2, p->padding};
  return &p->a;
}

/* ---- one dimension ---- */

/* (N, C, W) as an image of height 1. */
static tn_val pool_as_image(tn_build *b, tn_val v) {
  tn_type t = tn_ops_type(b, v);
  return tn_reshape(b, v, 4, (int64_t[]){t.dims[0], t.dims[1], 1, t.dims[2]});
}

static tn_val pool_row(tn_build *b, const char *op, const tn_pool2d_attributes *a) {
  pool_plane plane;
  return tn_pool_emit(b, op, pool_as_image(b, tn_build_in(b, 0)), 0, pool_plane_of(a, -1, 1, &plane), NULL);
}

static void pool_yield_row(tn_build *b, int32_t i, tn_val v) {
  tn_type t = tn_ops_type(b, v);
  tn_build_yield(b, i, tn_reshape(b, v, 3, (int64_t[]){t.dims[0], t.dims[1], t.dims[3]}));
}

tn_status tn_max_pool1d_decompose(tn_build *b, const void *attributes) {
  tn_val y = pool_row(b, "max_pool2d", attributes);
  pool_yield_row(b, 0, y);
  pool_yield_row(b, 1, tn_op_result(b, y, 1));
  return TN_OK;
}

tn_status tn_avg_pool1d_decompose(tn_build *b, const void *attributes) {
  pool_yield_row(b, 0, pool_row(b, "avg_pool2d", attributes));
  return TN_OK;
}

/* ---- three dimensions ---- */

/* A volume (N, C, D, H, W) whose planes have been reduced to H' x W': (N, C, D, H' W'). */
typedef struct pool_planes {
  tn_type x;
  tn_val planes;
  int64_t height, width;
} pool_planes;

/* x as (N, C D, H, W), whose windows leave (N, C, D, H' W'). */
static pool_planes pool_planes_of(tn_build *b, const char *op, tn_val x, const tn_pool2d_attributes *a) {
  pool_planes p = {.x = tn_ops_type(b, x)};
  const int64_t *d = p.x.dims;
  pool_plane plane;
  x = tn_reshape(b, x, 4, (int64_t[]){d[0], d[1] * d[2], d[3], d[4]});
  p.planes = tn_pool_emit(b, op, x, 0, pool_plane_of(a, 1, 3, &plane), NULL);
  p.height = tn_val_dim(b, p.planes, 2);
  p.width = tn_val_dim(b, p.planes, 3);
  return p;
}

/* The windows along the depth: (N, C, D', H' W'). */
static tn_val pool_depth(tn_build *b, const char *op, const pool_planes *p, const tn_pool2d_attributes *a) {
  const int64_t dims[] = {p->x.dims[0], p->x.dims[1], p->x.dims[2], p->height * p->width};
  pool_plane depth;
  return tn_pool_emit(b, op, tn_reshape(b, p->planes, 4, dims), 0, pool_plane_of(a, 0, 1, &depth), NULL);
}

static tn_val pool_as_volume(tn_build *b, const pool_planes *p, tn_val v) {
  int64_t depth = tn_val_dim(b, v, 2);
  return tn_reshape(b, v, 5, (int64_t[]){p->x.dims[0], p->x.dims[1], depth, p->height, p->width});
}

/* v as a row for each channel of each sample. */
static tn_val pool_as_rows(tn_build *b, tn_val v) {
  tn_type t = tn_ops_type(b, v);
  int64_t rows = t.dims[0] * t.dims[1], width = 1;
  for (int32_t i = 2; i < t.rank; i++) width *= t.dims[i];
  return tn_reshape(b, v, 2, (int64_t[]){rows, width});
}

/* Where the largest element lies in its D*H*W volume: the index in its plane is read where the index along
 * the depth, which counts in D*H'*W', points. */
static tn_val pool_volume_index(tn_build *b, const pool_planes *p, tn_val y) {
  tn_val at = tn_op_result(b, y, 1), in_plane = tn_op_result(b, p->planes, 1);
  tn_type t = tn_ops_type(b, at);
  tn_val plane = tn_quotient(b, at, tn_scalar(b, TN_I32, (double)(p->height * p->width)));
  tn_val first = tn_mul(b, plane, tn_scalar(b, TN_I32, (double)(p->x.dims[3] * p->x.dims[4])));
  int64_t rows[] = {p->x.dims[0] * p->x.dims[1], p->x.dims[2] * p->height * p->width};
  tn_val read = tn_gather(b, tn_reshape(b, in_plane, 2, rows), pool_as_rows(b, at), 1);
  return tn_add(b, first, tn_reshape(b, read, t.rank, t.dims));
}

tn_status tn_max_pool3d_decompose(tn_build *b, const void *attributes) {
  pool_planes p = pool_planes_of(b, "max_pool2d", tn_build_in(b, 0), attributes);
  tn_val y = pool_depth(b, "max_pool2d", &p, attributes);
  tn_build_yield(b, 0, pool_as_volume(b, &p, y));
  tn_build_yield(b, 1, pool_as_volume(b, &p, pool_volume_index(b, &p, y)));
  return TN_OK;
}

/* The means over the planes are f32 at least. */
tn_status tn_avg_pool3d_decompose(tn_build *b, const void *attributes) {
  int32_t dtype = tn_val_type(b, tn_build_in(b, 0))->dtype;
  pool_planes p = pool_planes_of(b, "avg_pool2d", tn_ops_wide(b, tn_build_in(b, 0)), attributes);
  tn_val y = pool_as_volume(b, &p, pool_depth(b, "avg_pool2d", &p, attributes));
  tn_build_yield(b, 0, tn_to_dtype(b, y, dtype));
  return TN_OK;
}

/* ---- norms, and maxima back in their places ---- */

/* (sum of x^p)^(1/p), the sum as a multiple of the mean. */
tn_status tn_lp_pool_decompose(tn_build *b, const void *attributes) {
  const tn_lp_pool_attributes *a = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  int32_t dtype = tn_val_type(b, x)->dtype;
  tn_pool2d_attributes mean = a->pool;
  double count = 1;
  char op[16];
  mean.include_pad = 1;
  for (int64_t i = 0; i < mean.kernel.n; i++) count *= (double)mean.kernel.v[i];
  snprintf(op, sizeof op, "avg_pool%dd", (int)mean.kernel.n % 10);
  tn_val y = tn_pool_emit(b, op, tn_pow(b, x, tn_scalar(b, dtype, a->p)), 0, &mean, NULL);
  y = tn_pow(b, tn_affine(b, y, count, 0), tn_scalar(b, dtype, 1 / a->p));
  tn_build_yield(b, 0, tn_to_dtype(b, y, tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

tn_type tn_unpool_type(const tn_unpool_attributes *a, const tn_type *x) {
  const tn_ints *stride = a->pool.stride.n > 0 ? &a->pool.stride : &a->pool.kernel;
  tn_type y = *x;
  for (int32_t i = 0; i < x->rank - 2; i++)
    y.dims[2 + i] =
        a->size.n > 0 ? a->size.v[i]
                      : (x->dims[2 + i] - 1) * stride->v[i] - 2 * a->pool.padding.v[i] + a->pool.kernel.v[i];
  return y;
}

tn_status tn_max_unpool1d_decompose(tn_build *b, const void *attributes) {
  const tn_unpool_attributes *a = attributes;
  tn_type y = tn_unpool_type(a, tn_val_type(b, tn_build_in(b, 0)));
  const tn_type image = {y.dtype, 4, {y.dims[0], y.dims[1], 1, y.dims[2]}};
  tn_val small = pool_as_image(b, tn_build_in(b, 0)), index = pool_as_image(b, tn_build_in(b, 1));
  pool_plane plane;
  const tn_pool2d_attributes *row = pool_plane_of(&a->pool, -1, 1, &plane);
  pool_yield_row(b, 0, tn_pool_emit(b, "max_pool2d_grad", small, index, row, &image));
  return TN_OK;
}

tn_status tn_max_unpool2d_decompose(tn_build *b, const void *attributes) {
  const tn_unpool_attributes *a = attributes;
  tn_type y = tn_unpool_type(a, tn_val_type(b, tn_build_in(b, 0)));
  tn_val small = tn_build_in(b, 0), index = tn_build_in(b, 1);
  tn_build_yield(b, 0, tn_pool_emit(b, "max_pool2d_grad", small, index, &a->pool, &y));
  return TN_OK;
}

tn_status tn_max_unpool3d_decompose(tn_build *b, const void *attributes) {
  tn_type y = tn_unpool_type(attributes, tn_val_type(b, tn_build_in(b, 0)));
  tn_val rows = pool_as_rows(b, tn_full(b, &y, 0));
  rows = tn_scatter(b, rows, pool_as_rows(b, tn_build_in(b, 1)), pool_as_rows(b, tn_build_in(b, 0)), 1,
                    TN_SCATTER_ADD);
  tn_build_yield(b, 0, tn_reshape(b, rows, y.rank, y.dims));
  return TN_OK;
}

/* ---- over all of an image ---- */

static tn_status pool_check_image(tn_infer *n, const tn_type *x) {
  if (x->rank >= 3) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "x is %s of rank %d, expected at least 3: batch, channels, then space",
                 tn_ops_text(x).v, (int)x->rank);
}

static tn_status global_pool_infer(tn_infer *n) {
  const tn_type *x = n->node.in[0];
  n->node.out[0].rank = 2;
  n->node.out[0].dims[0] = x->dims[0];
  n->node.out[0].dims[1] = x->dims[1];
  return pool_check_image(n, x);
}

/* Reduces all dimensions from the third on. */
static tn_status global_pool_yield(tn_build *b, const char *op) {
  int32_t rank = tn_val_type(b, tn_build_in(b, 0))->rank;
  int64_t axes[TN_MAX_RANK];
  for (int32_t i = 2; i < rank; i++) axes[i - 2] = i;
  tn_op_begin(b, op);
  tn_op_arg(b, tn_build_in(b, 0));
  tn_op_set_ints(b, "axes", rank - 2, axes);
  tn_build_yield(b, 0, tn_op_end(b));
  return TN_OK;
}

static tn_status global_avg_pool_decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  return global_pool_yield(b, "reduce_mean");
}
static tn_status global_max_pool_decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  return global_pool_yield(b, "reduce_max");
}

static void global_pool_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, tn_ops_count(n->in[0]));
}

#define GLOBAL_POOL(name, help, types)                                                                       \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM_PLAIN(tn_op, TN_OP, #name, help ": (N, C, spatial...) to (N, C)"),                     \
      .schema = "(x:T) -> (y:T)" types,                                                                      \
      .op_class = TN_CLASS_REDUCE,                                                                           \
      .infer = global_pool_infer,                                                                            \
      .decompose = name##_decompose,                                                                         \
      .cost = global_pool_cost,                                                                              \
  };
GLOBAL_POOL(global_avg_pool, "mean of each channel", TN_OPS_FLOATS)
GLOBAL_POOL(global_max_pool, "largest element of each channel", TN_OPS_MAXIMA)

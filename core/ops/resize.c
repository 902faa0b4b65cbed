/* core/ops/resize.c: images of other sizes: interpolation, and pooling to a given size. All of them are
 * separable, and linear but for maxima: along each dimension the result is A x with a constant matrix A,
 * which a program makes once. Whole factors of nearest elements and of means need no product. Keys, "Cubic
 * convolution interpolation for digital image processing", 1981. */
#include <math.h>
#include <stdio.h>

#include "core/ops/common.h"

enum {
  RESIZE_NEAREST,
  RESIZE_NEAREST_EXACT,
  RESIZE_LINEAR, /* and its names for two and three dimensions */
  RESIZE_BILINEAR,
  RESIZE_TRILINEAR,
  RESIZE_BICUBIC,
  RESIZE_AREA
};

typedef struct resize_attributes {
  tn_ints size; /* one entry, or one for each spatial dimension; 0 in pooling keeps the size */
  tn_floats scale;
  int32_t mode, align_corners, antialias;
} resize_attributes;

/* One spatial dimension: element o of the result lies at position ratio * o of x, from corner to corner or
 * from center to center. */
typedef struct resize_axis {
  int64_t in, out;
  double ratio;
} resize_axis;

static int64_t resize_entry(int64_t n, int32_t i) { return n == 1 ? 0 : i; }

static resize_axis resize_axis_of(const resize_attributes *a, const tn_type *x, int32_t i) {
  resize_axis r = {.in = x->dims[2 + i]};
  double scale = a->scale.n > 0 ? a->scale.v[resize_entry(a->scale.n, i)] : 0;
  r.out = a->size.n > 0 ? a->size.v[resize_entry(a->size.n, i)] : (int64_t)floor((double)r.in * scale);
  if (r.out == 0 && a->scale.n == 0) r.out = r.in;
  r.ratio = scale > 0 ? 1 / scale : (double)r.in / (double)r.out;
  if (a->align_corners) r.ratio = r.out > 1 ? (double)(r.in - 1) / (double)(r.out - 1) : 0;
  return r;
}

/* ---- shapes ---- */

static tn_status resize_check_lists(tn_infer *n, const resize_attributes *a, int32_t rank) {
  int64_t entries = a->size.n > 0 ? a->size.n : a->scale.n;
  if ((a->size.n > 0) == (a->scale.n > 0))
    return tn_fail(n, TN_EINVAL, "size", "expected either size or scale");
  if (entries == 1 || entries == rank) return TN_OK;
  return tn_fail(n, TN_EINVAL, a->size.n > 0 ? "size" : "scale",
                 "%lld entries, expected 1 or %d: one for each dimension behind batch and channels",
                 (long long)entries, (int)rank);
}

static tn_status resize_op_infer(tn_infer *n) {
  enum { LARGEST = INT32_MAX };
  const resize_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  if (x->rank < 3)
    return tn_fail(n, TN_EINVAL, NULL, "x is %s of rank %d, expected at least 3: batch, channels, then space",
                   tn_ops_text(x).v, (int)x->rank);
  TN_TRY(resize_check_lists(n, a, x->rank - 2));
  n->node.out[0] = *x;
  for (int32_t i = 0; i < x->rank - 2; i++) {
    double scale = a->scale.n > 0 ? a->scale.v[resize_entry(a->scale.n, i)] : 1;
    bool fits = scale > 0 && (double)x->dims[2 + i] * scale <= LARGEST;
    int64_t out = n->node.out[0].dims[2 + i] = fits ? resize_axis_of(a, x, i).out : 0;
    if (out < 1 || out > LARGEST || x->dims[2 + i] < 1 || x->dims[2 + i] > LARGEST)
      return tn_fail(n, TN_EINVAL, a->size.n > 0 ? "size" : "scale",
                     "spatial dimension %d of x of %s cannot get this size, expected 1 .. %d elements",
                     (int)i, tn_ops_text(x).v, LARGEST);
  }
  if (n->node.n_out > 1) {
    n->node.out[1] = n->node.out[0];
    n->node.out[1].dtype = TN_I32;
    TN_TRY(tn_ops_check_channel(n, x));
  }
  return tn_ops_check_count(n, &n->node.out[0]);
}

/* ---- matrices ---- */

/* The indices of result and operand, (out, in) each. */
typedef struct resize_grid {
  tn_val o, j;
} resize_grid;

static resize_grid resize_grid_of(tn_build *b, const resize_axis *r, int32_t dtype) {
  const tn_type row = {dtype, 2, {r->out, 1}}, column = {dtype, 2, {1, r->in}};
  return (resize_grid){tn_iota(b, &row, 0), tn_iota(b, &column, 1)};
}

/* 1 where the condition holds, in the dtype of `like`. */
static tn_val resize_one_where(tn_build *b, tn_val condition, tn_val like) {
  return tn_where(b, condition, tn_ops_number(b, like, 1), tn_ops_number(b, like, 0));
}

/* PyTorch computes these positions in f32 for elements of every dtype. */
static tn_val resize_nearest_matrix(tn_build *b, const resize_axis *r, bool exact) {
  resize_grid g = resize_grid_of(b, r, TN_F32);
  tn_val at = tn_floor(b, tn_affine(b, exact ? tn_affine(b, g.o, 1, 0.5) : g.o, r->ratio, 0));
  at = tn_minimum(b, at, tn_ops_number(b, at, (double)(r->in - 1)));
  return resize_one_where(b, tn_eq(b, at, g.j), at);
}

/* The position of each element of the result in x. */
static tn_val resize_position(tn_build *b, const resize_axis *r, bool align, tn_val o) {
  return align ? tn_affine(b, o, r->ratio, 0) : tn_affine(b, o, r->ratio, 0.5 * r->ratio - 0.5);
}

/* max(0, 1 - |distance|) */
static tn_val resize_hat(tn_build *b, tn_val distance) {
  return tn_relu(b, tn_affine(b, tn_abs(b, distance), -1, 1));
}

/* Keys's kernel with parameter c, 0 beyond 2. */
static tn_val resize_cubic(tn_build *b, tn_val distance, double c) {
  tn_val x = tn_abs(b, distance), square = tn_mul(b, x, x), one = tn_ops_number(b, x, 1);
  tn_val near = tn_affine(b, tn_mul(b, square, tn_affine(b, x, c + 2, -(c + 3))), 1, 1);
  tn_val far =
      tn_affine(b, tn_mul(b, tn_affine(b, tn_mul(b, tn_affine(b, x, 1, -5), x), 1, 8), x), c, -4 * c);
  tn_val outer = tn_where(b, tn_lt(b, x, tn_ops_number(b, x, 2)), far, tn_ops_number(b, x, 0));
  return tn_where(b, tn_le(b, x, one), near, outer);
}

static tn_val resize_linear_matrix(tn_build *b, const resize_axis *r, bool align) {
  resize_grid g = resize_grid_of(b, r, TN_F64);
  tn_val at = tn_maximum(b, resize_position(b, r, align, g.o), tn_ops_number(b, g.o, 0));
  at = tn_minimum(b, at, tn_ops_number(b, at, (double)(r->in - 1)));
  return resize_hat(b, tn_sub(b, at, g.j));
}

/* Of the four neighbours those outside x are its edge. */
static tn_val resize_cubic_matrix(tn_build *b, const resize_axis *r, bool align) {
  resize_grid g = resize_grid_of(b, r, TN_F64);
  tn_val at = resize_position(b, r, align, g.o), base = tn_floor(b, at), sum = 0;
  tn_val first = tn_ops_number(b, at, 0), last = tn_ops_number(b, at, (double)(r->in - 1));
  for (int32_t k = -1; k <= 2; k++) {
    tn_val tap = tn_affine(b, base, 1, k), weight = resize_cubic(b, tn_sub(b, at, tap), -0.75);
    tn_val inside = tn_minimum(b, tn_maximum(b, tap, first), last);
    sum = tn_ops_sum(b, sum, tn_mul(b, resize_one_where(b, tn_eq(b, inside, g.j), at), weight));
  }
  return sum;
}

/* Filters as wide as the distance of two elements of the result, with weights that add up to 1. */
static tn_val resize_antialias_matrix(tn_build *b, const resize_axis *r, bool cubic) {
  resize_grid g = resize_grid_of(b, r, TN_F64);
  double width = r->ratio > 1 ? r->ratio : 1;
  tn_val center = tn_affine(b, g.o, r->ratio, 0.5 * r->ratio);
  tn_val distance = tn_affine(b, tn_sub(b, tn_affine(b, g.j, 1, 0.5), center), 1 / width, 0);
  tn_val weight = cubic ? resize_cubic(b, distance, -0.5) : resize_hat(b, distance);
  return tn_div(b, weight, tn_reduce_sum(b, weight, 1, (int64_t[]){1}, 1));
}

/* Means over elements floor(o in / out) .. ceil((o + 1) in / out) - 1. */
static tn_val resize_area_matrix(tn_build *b, const resize_axis *r) {
  resize_grid g = resize_grid_of(b, r, TN_F64);
  tn_val out = tn_ops_number(b, g.o, (double)r->out);
  tn_val start = tn_floor(b, tn_div(b, tn_affine(b, g.o, (double)r->in, 0), out));
  tn_val stop = tn_neg(b, tn_floor(b, tn_div(b, tn_affine(b, g.o, -(double)r->in, -(double)r->in), out)));
  tn_val inside = tn_and(b, tn_ge(b, g.j, start), tn_lt(b, g.j, stop));
  return tn_div(b, resize_one_where(b, inside, g.j), tn_sub(b, stop, start));
}

static tn_val resize_matrix(tn_build *b, const resize_attributes *a, const resize_axis *r) {
  bool align = a->align_corners, cubic = a->mode == RESIZE_BICUBIC;
  if (a->mode <= RESIZE_NEAREST_EXACT) return resize_nearest_matrix(b, r, a->mode == RESIZE_NEAREST_EXACT);
  if (a->mode == RESIZE_AREA) return resize_area_matrix(b, r);
  if (a->antialias) return resize_antialias_matrix(b, r, cubic);
  return cubic ? resize_cubic_matrix(b, r, align) : resize_linear_matrix(b, r, align);
}

/* ---- along one dimension ---- */

/* x as (elements before the dimension, those along it, those behind it). */
static tn_type resize_three(const tn_type *x, int32_t axis) {
  tn_type t = {x->dtype, 3, {1, x->dims[axis], 1}};
  for (int32_t i = 0; i < x->rank; i++)
    if (i != axis) t.dims[i < axis ? 0 : 2] *= x->dims[i];
  return t;
}

/* v, whose dimension `axis` has another size, with the rank of x. */
static tn_val resize_restore(tn_build *b, tn_val v, tn_type x, int32_t axis, int64_t size) {
  x.dims[axis] = size;
  return tn_reshape(b, v, x.rank, x.dims);
}

static tn_val resize_multiply(tn_build *b, tn_val matrix, tn_val x, int32_t axis, int64_t out) {
  tn_type t = tn_ops_type(b, x), three = resize_three(&t, axis);
  matrix = tn_to_dtype(b, matrix, t.dtype);
  if (axis == t.rank - 1) return tn_matmul(b, x, matrix, 0, 0, 1, TN_MATH_FULL);
  tn_val y = tn_matmul(b, matrix, tn_reshape(b, x, 3, three.dims), 0, 0, 0, TN_MATH_FULL);
  return resize_restore(b, y, t, axis, out);
}

static tn_val resize_along(tn_build *b, const resize_attributes *a, tn_val x, int32_t i) {
  tn_type t = tn_ops_type(b, x);
  resize_axis r = resize_axis_of(a, &t, i);
  bool nearest = a->mode <= RESIZE_NEAREST_EXACT, whole = r.ratio == (double)r.in / (double)r.out;
  if (whole && r.in == r.out) return x;
  if (nearest && whole && r.out % r.in == 0) return tn_ops_repeat(b, x, 2 + i, r.out / r.in, true);
  return resize_multiply(b, resize_matrix(b, a, &r), x, 2 + i, r.out);
}

/* Dimensions that shrink come first, so that the others are resized on fewer elements. */
static tn_val resize_all(tn_build *b, const resize_attributes *a, tn_val x) {
  tn_type t = tn_ops_type(b, x);
  for (int32_t grows = 0; grows < 2; grows++)
    for (int32_t i = t.rank - 3; i >= 0; i--)
      if ((resize_axis_of(a, &t, i).out > t.dims[2 + i]) == grows) x = resize_along(b, a, x, i);
  return x;
}

/* ---- interpolate ---- */

/* Nearest elements keep their bits; sums are computed in f32 at least. */
static tn_status interpolate_decompose(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0);
  int32_t dtype = tn_val_type(b, x)->dtype;
  tn_build_yield(b, 0, tn_to_dtype(b, resize_all(b, attributes, tn_ops_wide(b, x)), dtype));
  return TN_OK;
}

static const tn_option interpolate_options[] = {
    TN_OPT(resize_attributes, size, TN_OPT_INTS, "[]", NULL,
           "of the result: one number, or one for each spatial dimension"),
    TN_OPT(resize_attributes, scale, TN_OPT_FLOATS, "[]", "> 0", "factor, instead of size"),
    TN_OPT(resize_attributes, mode, TN_OPT_ENUM, "nearest",
           "nearest|nearest_exact|linear|bilinear|trilinear|bicubic|area",
           "linear, bilinear and trilinear are one, for any number of dimensions"),
    TN_OPT(
        resize_attributes, align_corners, TN_OPT_FLAG, "no", NULL,
        "the outermost elements of x and of the result lie at the same places, instead of their outer edges"),
    TN_OPT(resize_attributes, antialias, TN_OPT_FLAG, "no", NULL,
           "linear and cubic filters are as wide as the factor by which the size falls"),
    TN_OPT_END};

const tn_op tn_op_interpolate = {
    .item = TN_ITEM(tn_op, TN_OP, "interpolate", "images of another size: (N, C, spatial...)",
                    resize_attributes, interpolate_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_OTHER,
    .infer = resize_op_infer,
    .decompose = interpolate_decompose,
    .notes = "The modes and positions of PyTorch's interpolate. Each element of the result is a sum over all "
             "elements of its row or column, most with weight 0: an infinite element makes the others NaN.",
};

/* ---- pooling to a given size ---- */

/* Windows of one size, side by side. */
static tn_val adaptive_windows(tn_build *b, const resize_attributes *a, tn_val x, const char *op) {
  tn_type t = tn_ops_type(b, x);
  int64_t kernel[TN_MAX_RANK];
  char name[24];
  for (int32_t i = 0; i < t.rank - 2; i++) {
    resize_axis r = resize_axis_of(a, &t, i);
    if (r.in % r.out != 0 || t.rank > 5) return 0;
    kernel[i] = r.in / r.out;
  }
  snprintf(name, sizeof name, "%s_pool%dd", op, (int)t.rank - 2);
  tn_op_begin(b, name);
  tn_op_arg(b, x);
  tn_op_set_ints(b, "kernel", t.rank - 2, kernel);
  return tn_op_end(b);
}

static tn_status adaptive_avg_pool_decompose(tn_build *b, const void *attributes) {
  resize_attributes area = *(const resize_attributes *)attributes;
  tn_val x = tn_build_in(b, 0), y = adaptive_windows(b, &area, x, "avg");
  area.mode = RESIZE_AREA;
  if (y == 0) y = tn_to_dtype(b, resize_all(b, &area, tn_ops_wide(b, x)), tn_val_type(b, x)->dtype);
  tn_build_yield(b, 0, y);
  return TN_OK;
}

enum { ADAPTIVE_JOINED = 16 /* operands of one concat */ };

/* The maxima of a part of x along a dimension, of which the first of equals gets the gradient, and where they
 * lie along it. */
static tn_val adaptive_max_of(tn_build *b, tn_val part, int32_t axis, tn_val *at) {
  tn_type t = tn_ops_type(b, part), three = resize_three(&t, axis), place = t;
  const int64_t image[] = {1, three.dims[0], three.dims[1], three.dims[2]}, kernel[] = {three.dims[1], 1};
  tn_val y = tn_max_pool2d(b, tn_reshape(b, part, 4, image), 2, kernel, 0, NULL, 0, NULL, 0);
  place.dtype = TN_I32;
  *at = tn_quotient(b, tn_op_result(b, y, 1), tn_scalar(b, TN_I32, (double)three.dims[2]));
  *at = resize_restore(b, *at, place, axis, 1);
  return resize_restore(b, y, t, axis, 1);
}

/* The maxima of windows along an axis that differ in size or overlap, one window after the other, and what
 * `places` has there. */
static void adaptive_max_along(tn_build *b, const resize_axis *r, int32_t axis, tn_val *y, tn_val *places) {
  tn_val parts[2][ADAPTIVE_JOINED];
  int64_t n = 0;
  for (int64_t o = 0; o < r->out; o++) {
    if (n == ADAPTIVE_JOINED) {
      for (int32_t i = 0; i < 2; i++) parts[i][0] = tn_concat(b, n, parts[i], axis);
      n = 1;
    }
    int64_t begin = o * r->in / r->out, end = ((o + 1) * r->in + r->out - 1) / r->out;
    tn_val at, largest = adaptive_max_of(b, tn_slice_axis(b, *y, axis, begin, end), axis, &at);
    parts[1][n] = tn_gather(b, tn_slice_axis(b, *places, axis, begin, end), at, axis);
    parts[0][n++] = largest;
  }
  *y = n == 1 ? parts[0][0] : tn_concat(b, n, parts[0], axis);
  *places = n == 1 ? parts[1][0] : tn_concat(b, n, parts[1], axis);
}

/* Indices that count the elements of each channel in row-major order. */
static tn_val adaptive_places(tn_build *b, const tn_type *x) {
  int64_t count = 1, dims[TN_MAX_RANK] = {1, 1};
  for (int32_t i = 2; i < x->rank; i++) count *= dims[i] = x->dims[i];
  const tn_type row = {TN_I32, 1, {count}};
  tn_val places = tn_reshape(b, tn_iota(b, &row, 0), x->rank, dims);
  return tn_broadcast(b, places, x->rank, x->dims);
}

/* The last axis first, so that the first of equal elements in row-major order is taken. */
static tn_status adaptive_max_pool_decompose(tn_build *b, const void *attributes) {
  const resize_attributes *a = attributes;
  tn_val x = tn_build_in(b, 0), y = adaptive_windows(b, a, x, "max"), index;
  tn_type t = tn_ops_type(b, x);
  if (y != 0) {
    index = tn_op_result(b, y, 1);
  } else {
    y = x;
    index = adaptive_places(b, &t);
    for (int32_t i = t.rank - 3; i >= 0; i--) {
      resize_axis r = resize_axis_of(a, &t, i);
      if (r.in != r.out) adaptive_max_along(b, &r, 2 + i, &y, &index);
    }
  }
  tn_build_yield(b, 0, y);
  tn_build_yield(b, 1, index);
  return TN_OK;
}

static const tn_option adaptive_options[] = {
    TN_OPT(resize_attributes, size, TN_OPT_INTS, NULL, ">= 0",
           "of the result: one number, or one for each spatial dimension; 0 keeps that of x"),
    TN_OPT_END};

#define ADAPTIVE_POOL(name, help, results, types)                                                            \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM(tn_op, TN_OP, #name, help, resize_attributes, adaptive_options),                       \
      .schema = "(x:T) -> " results types,                                                                   \
      .op_class = TN_CLASS_REDUCE,                                                                           \
      .infer = resize_op_infer,                                                                              \
      .decompose = name##_decompose,                                                                         \
      .notes = "(N, C, spatial...). Window o begins at element o in / out, rounded down, and ends before "   \
               "(o + 1) in / out, rounded up, for sizes in and out of x and the result.",                    \
  };
ADAPTIVE_POOL(adaptive_avg_pool, "means of windows that divide an image into a given number of parts",
              "(y:T)", TN_OPS_FLOATS)
ADAPTIVE_POOL(
    adaptive_max_pool,
    "maxima of windows that divide an image into a given number of parts, and where they lie in their "
    "channel",
    "(y:T, index:i32)", TN_OPS_MAXIMA)

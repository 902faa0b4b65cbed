/* core/ops/rearrange.c: composites over matrices and images: triangles, diagonals, shuffles of channels and
 * pixels, patches. */
#include "core/ops/common.h"
#include "tenon/attributes.h"

static tn_status rearrange_need_rank(tn_build *b, int32_t least, const char *dims) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  if (x.rank >= least) return TN_OK;
  return tn_fail(b, TN_EINVAL, NULL, "x is %s of rank %d, expected rank %d or more: %s", tn_ops_text(&x).v,
                 (int)x.rank, (int)least, dims);
}

/* Yields x reshaped to `split`, transposed by `order`, and reshaped to `dims`. */
static void rearrange_yield(tn_build *b, int32_t n, const int64_t *split, const int64_t *order, int32_t rank,
                            const int64_t *dims) {
  tn_val y = tn_transpose(b, tn_reshape(b, tn_build_in(b, 0), n, split), n, order);
  tn_build_yield(b, 0, tn_reshape(b, y, rank, dims));
}

/* ---- triangles ---- */

typedef struct diagonal_options {
  int64_t diagonal;
} diagonal_options;

static tn_status rearrange_triangle(tn_build *b, const void *attributes, bool lower) {
  int64_t diagonal = ((const diagonal_options *)attributes)->diagonal;
  tn_val x = tn_build_in(b, 0);
  TN_TRY(rearrange_need_rank(b, 2, "rows, columns"));
  tn_val below =
      tn_triangular_mask(b, tn_val_dim(b, x, -2), tn_val_dim(b, x, -1), lower ? diagonal : diagonal - 1);
  tn_val zero = tn_ops_zero(b, x);
  tn_build_yield(b, 0, lower ? tn_where(b, below, x, zero) : tn_where(b, below, zero, x));
  return TN_OK;
}

static tn_status tril_decompose(tn_build *b, const void *attributes) {
  return rearrange_triangle(b, attributes, true);
}

static tn_status triu_decompose(tn_build *b, const void *attributes) {
  return rearrange_triangle(b, attributes, false);
}

/* Where the elements of the lower triangle are in a matrix of `columns`. Row r of the triangle begins at its
 * element m (m + 1) / 2 with m = r + diagonal. */
static tn_status rearrange_triangle_index(tn_build *b, int64_t rows, int64_t columns, int64_t diagonal,
                                          tn_val *at) {
  int64_t n = rows + diagonal, *starts = tn_new(b, 2 * (size_t)n * sizeof *starts), *row = starts + n;
  tn_type type = {TN_I32, 1, {rows}};
  if (starts == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < n; i++) {
    starts[i] = i * (i + 1) / 2;
    row[i] = i - diagonal;
  }
  tn_val first = tn_iota(b, &type, 0), one = tn_scalar(b, TN_I32, 1);
  tn_val before = tn_add(b, first, tn_scalar(b, TN_I32, (double)diagonal));
  tn_val begin = tn_shift_right(b, tn_mul(b, before, tn_add(b, before, one)), one);
  tn_val offset = tn_sub(b, tn_mul(b, first, tn_scalar(b, TN_I32, (double)columns)), begin);
  type.dims[0] = n * (n + 1) / 2;
  *at = tn_add(b, tn_spread(b, offset, n, starts, n, row, type.dims[0]), tn_iota(b, &type, 0));
  tn_delete(b, starts);
  return TN_OK;
}

static tn_status tril_flatten_decompose(tn_build *b, const void *attributes) {
  int64_t diagonal = ((const diagonal_options *)attributes)->diagonal;
  tn_val at = 0;
  TN_TRY(rearrange_need_rank(b, 2, "rows, columns"));
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  int64_t rows = x.dims[x.rank - 2], columns = x.dims[x.rank - 1];
  if (diagonal > 0 || rows + diagonal < 1 || rows + diagonal > columns)
    return tn_fail(b, TN_EINVAL, "diagonal",
                   "x is %s and diagonal is %lld, expected 0 or less, and 1 to %lld elements in the last row "
                   "of the triangle",
                   tn_ops_text(&x).v, (long long)diagonal, (long long)columns);
  if (rows > INT32_MAX / (columns + 1))
    return tn_fail(b, TN_EINVAL, NULL, "x is %s: a matrix has more elements than an i32 index can count",
                   tn_ops_text(&x).v);
  TN_TRY(rearrange_triangle_index(b, rows, columns, diagonal, &at));
  x.dims[x.rank - 2] = rows * columns;
  tn_val flat = tn_reshape(b, tn_build_in(b, 0), x.rank - 1, x.dims);
  tn_build_yield(b, 0, tn_gather(b, flat, at, x.rank - 2));
  return TN_OK;
}

/* ---- diagonals ---- */

/* Every (columns + 1)-th element from the first one on. */
tn_val tn_ops_diagonal(tn_build *b, tn_val x, int64_t diagonal) {
  tn_type type = tn_ops_type(b, x);
  int64_t rows = tn_val_dim(b, x, -2), columns = tn_val_dim(b, x, -1), batch = 1, dims[TN_MAX_RANK];
  for (int32_t i = 0; i < type.rank - 2; i++) batch *= dims[i] = type.dims[i];
  int64_t down = diagonal < 0 ? -diagonal : 0, right = diagonal > 0 ? diagonal : 0;
  int64_t n = rows - down < columns - right ? rows - down : columns - right;
  if (n < 0) n = 0;
  const int64_t flat[] = {batch, rows * columns}, starts[] = {0, n > 0 ? down * columns + right : 0},
                steps[] = {1, columns + 1};
  const int64_t stops[] = {batch, n > 0 ? starts[1] + (n - 1) * steps[1] + 1 : 0};
  dims[type.rank - 2] = n;
  x = tn_slice(b, tn_reshape(b, x, 2, flat), 2, starts, 2, stops, 2, steps);
  return tn_reshape(b, x, type.rank - 1, dims);
}

/* The two dimensions go behind the others. */
tn_val tn_ops_diagonal_of(tn_build *b, tn_val x, int32_t rows, int32_t columns, int64_t diagonal) {
  int32_t rank = tn_val_type(b, x)->rank;
  int64_t order[TN_MAX_RANK], n = 0;
  for (int32_t i = 0; i < rank; i++)
    if (i != rows && i != columns) order[n++] = i;
  order[n++] = rows;
  order[n++] = columns;
  return tn_ops_diagonal(b, tn_transpose(b, x, n, order), diagonal);
}

/* Matrices with x, a vector for each, on a diagonal. */
static tn_val rearrange_embed(tn_build *b, tn_val x, int64_t diagonal) {
  tn_type type = tn_ops_type(b, x);
  int64_t n = tn_val_dim(b, x, -1), batch = 1, dims[TN_MAX_RANK + 1];
  int64_t down = diagonal < 0 ? -diagonal : 0, right = diagonal > 0 ? diagonal : 0, size = n + down + right;
  for (int32_t i = 0; i < type.rank - 1; i++) batch *= dims[i] = type.dims[i];
  dims[type.rank - 1] = dims[type.rank] = size;
  const int64_t flat[] = {batch, n}, inner[] = {0, size}, low[] = {0, n > 0 ? down * size + right : 0};
  const int64_t high[] = {0, size * size - low[1] - (n > 0 ? (n - 1) * (size + 1) + 1 : 0)};
  x = tn_pad(b, tn_reshape(b, x, 2, flat), 2, low, 2, high, 2, inner);
  return tn_reshape(b, x, type.rank + 1, dims);
}

typedef struct diagonal_axes_options {
  int64_t diagonal, axis1, axis2;
} diagonal_axes_options;

static tn_status diagonal_decompose(tn_build *b, const void *attributes) {
  const diagonal_axes_options *o = attributes;
  int32_t rows, columns;
  TN_TRY(tn_ops_axis_of_x(b, o->axis1, &rows));
  TN_TRY(tn_ops_axis_of_x(b, o->axis2, &columns));
  if (rows == columns) return tn_fail(b, TN_EINVAL, "axis2", "axis1 and axis2 are both %d", (int)rows);
  tn_build_yield(b, 0, tn_ops_diagonal_of(b, tn_build_in(b, 0), rows, columns, o->diagonal));
  return TN_OK;
}

static tn_status diag_embed_decompose(tn_build *b, const void *attributes) {
  TN_TRY(rearrange_need_rank(b, 1, "a vector of each matrix"));
  int64_t diagonal = ((const diagonal_options *)attributes)->diagonal;
  tn_build_yield(b, 0, rearrange_embed(b, tn_build_in(b, 0), diagonal));
  return TN_OK;
}

static tn_status diag_decompose(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  if (x.rank == 1) return diag_embed_decompose(b, attributes);
  if (x.rank == 2) {
    int64_t diagonal = ((const diagonal_options *)attributes)->diagonal;
    tn_build_yield(b, 0, tn_ops_diagonal(b, tn_build_in(b, 0), diagonal));
    return TN_OK;
  }
  return tn_fail(b, TN_EINVAL, NULL, "x is %s, expected a vector or a matrix", tn_ops_text(&x).v);
}

static tn_status trace_decompose(tn_build *b, const void *attributes) {
  const int64_t last = -1;
  (void)attributes;
  TN_TRY(rearrange_need_rank(b, 2, "rows, columns"));
  tn_build_yield(b, 0, tn_reduce_sum(b, tn_ops_diagonal(b, tn_build_in(b, 0), 0), 1, &last, 0));
  return TN_OK;
}

static const tn_option diagonal_rows[] = {
    TN_OPT(diagonal_options, diagonal, TN_OPT_INT, "0", NULL,
           "the diagonal, counted to the right; below the main one where negative"),
    TN_OPT_END};

static const tn_option diagonal_axes_rows[] = {
    TN_OPT(diagonal_axes_options, diagonal, TN_OPT_INT, "0", NULL,
           "the diagonal, counted to the right; below the main one where negative"),
    TN_OPT(diagonal_axes_options, axis1, TN_OPT_INT, "0", NULL, "the dimension of rows, -rank .. rank-1"),
    TN_OPT(diagonal_axes_options, axis2, TN_OPT_INT, "1", NULL, "the dimension of columns"), TN_OPT_END};

#define DIAGONAL_OP(name, doc)                                                                               \
  TN_OPS_COMPOSITE(name, doc, diagonal_options, diagonal_rows, TN_CLASS_MOVE, "(x:T) -> (y:T)")

DIAGONAL_OP(tril, "x on and below a diagonal of its matrices, 0 above");
DIAGONAL_OP(triu, "x on and above a diagonal of its matrices, 0 below");
DIAGONAL_OP(tril_flatten, "the elements of matrices on and below a diagonal as vectors, row by row");
DIAGONAL_OP(diag_embed, "matrices with the last dimension of x on a diagonal, 0 elsewhere");
DIAGONAL_OP(diag, "a matrix with the vector x on a diagonal, or a diagonal of the matrix x");

TN_OPS_COMPOSITE(diagonal, "a diagonal of the matrices of two dimensions, as the last dimension",
                 diagonal_axes_options, diagonal_axes_rows, TN_CLASS_MOVE, "(x:T) -> (y:T)");

const tn_op tn_op_trace = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "trace",
                          "sum of the main diagonal of the matrices of the last two dimensions"),
    .schema = "(x:T) -> (y:any)" TN_OPS_SUMS,
    .op_class = TN_CLASS_REDUCE,
    .decompose = trace_decompose,
};

/* ---- shuffles ---- */

/* The dims of images behind the batch: channels, height, width. */
static tn_status rearrange_image(tn_build *b, int64_t *batch, int64_t *image) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  TN_TRY(rearrange_need_rank(b, 3, "channels, height, width"));
  *batch = 1;
  for (int32_t i = 0; i < x.rank - 3; i++) *batch *= x.dims[i];
  for (int32_t i = 0; i < 3; i++) image[i] = x.dims[x.rank - 3 + i];
  return TN_OK;
}

static void rearrange_yield_image(tn_build *b, int32_t n, const int64_t *split, const int64_t *order,
                                  const int64_t *image) {
  tn_type y = tn_ops_type(b, tn_build_in(b, 0));
  for (int32_t i = 0; i < 3; i++) y.dims[y.rank - 3 + i] = image[i];
  rearrange_yield(b, n, split, order, y.rank, y.dims);
}

static tn_status rearrange_indivisible(tn_build *b, const char *option, int64_t n, int64_t by) {
  return tn_fail(b, TN_EINVAL, option, "%lld does not divide %lld, a dimension of x", (long long)by,
                 (long long)n);
}

static tn_status pixel_shuffle_decompose(tn_build *b, const void *attributes) {
  int64_t r = ((const tn_shuffle_attributes *)attributes)->factor, batch, c[3];
  TN_TRY(rearrange_image(b, &batch, c));
  if (c[0] % (r * r) != 0) return rearrange_indivisible(b, "factor", c[0], r * r);
  const int64_t split[] = {batch, c[0] / (r * r), r, r, c[1], c[2]}, order[] = {0, 1, 4, 2, 5, 3},
                image[] = {c[0] / (r * r), c[1] * r, c[2] * r};
  rearrange_yield_image(b, 6, split, order, image);
  return TN_OK;
}

static tn_status pixel_unshuffle_decompose(tn_build *b, const void *attributes) {
  int64_t r = ((const tn_shuffle_attributes *)attributes)->factor, batch, c[3];
  TN_TRY(rearrange_image(b, &batch, c));
  for (int32_t i = 1; i < 3; i++)
    if (c[i] % r != 0) return rearrange_indivisible(b, "factor", c[i], r);
  const int64_t split[] = {batch, c[0], c[1] / r, r, c[2] / r, r}, order[] = {0, 1, 3, 5, 2, 4},
                image[] = {c[0] * r * r, c[1] / r, c[2] / r};
  rearrange_yield_image(b, 6, split, order, image);
  return TN_OK;
}

static tn_status channel_shuffle_decompose(tn_build *b, const void *attributes) {
  int64_t groups = ((const tn_shuffle_attributes *)attributes)->groups, inner = 1;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  TN_TRY(rearrange_need_rank(b, 2, "batch, channels"));
  if (x.dims[1] % groups != 0) return rearrange_indivisible(b, "groups", x.dims[1], groups);
  for (int32_t i = 2; i < x.rank; i++) inner *= x.dims[i];
  const int64_t split[] = {x.dims[0], groups, x.dims[1] / groups, inner}, order[] = {0, 2, 1, 3};
  rearrange_yield(b, 4, split, order, x.rank, x.dims);
  return TN_OK;
}

static const tn_option factor_rows[] = {
    TN_OPT(tn_shuffle_attributes, factor, TN_OPT_INT, NULL, ">= 1", "of the height and of the width"),
    TN_OPT_END};
static const tn_option groups_rows[] = {
    TN_OPT(tn_shuffle_attributes, groups, TN_OPT_INT, NULL, ">= 1", "of channels, which are interleaved"),
    TN_OPT_END};

#define SHUFFLE_OP(name, doc, options)                                                                       \
  TN_OPS_COMPOSITE(name, doc, tn_shuffle_attributes, options, TN_CLASS_MOVE, "(x:T) -> (y:T)")

SHUFFLE_OP(pixel_shuffle, "images with groups of channels spread over larger pixels", factor_rows);
SHUFFLE_OP(pixel_unshuffle, "images with blocks of pixels collected in channels", factor_rows);
SHUFFLE_OP(channel_shuffle, "images with the channels of groups interleaved", groups_rows);

/* ---- patches ---- */

typedef struct unfold_options {
  tn_ints kernel, stride, padding, dilation, size;
} unfold_options;

/* One axis of the patches. */
typedef struct unfold_axis {
  int64_t size, kernel, stride, padding, dilation, out;
} unfold_axis;

static int64_t unfold_entry(const tn_ints *list, int32_t i, int64_t otherwise) {
  return list->n == 0 ? otherwise : list->v[list->n == 1 ? 0 : i];
}

static tn_status unfold_axes(tn_build *b, const unfold_options *o, const int64_t *size, unfold_axis *axis) {
  for (int32_t i = 0; i < 2; i++) {
    axis[i] = (unfold_axis){size[i],
                            unfold_entry(&o->kernel, i, 0),
                            unfold_entry(&o->stride, i, 1),
                            unfold_entry(&o->padding, i, 0),
                            unfold_entry(&o->dilation, i, 1),
                            0};
    unfold_axis *a = &axis[i];
    int64_t span = a->size + 2 * a->padding - a->dilation * (a->kernel - 1) - 1;
    if (a->kernel < 1 || a->stride < 1 || a->padding < 0 || a->dilation < 1 || span < 0)
      return tn_fail(b, TN_EINVAL, "kernel",
                     "kernel %lld, stride %lld, padding %lld and dilation %lld leave no patch "
                     "of %lld pixels",
                     (long long)a->kernel, (long long)a->stride, (long long)a->padding,
                     (long long)a->dilation, (long long)a->size);
    a->out = span / a->stride + 1;
  }
  return TN_OK;
}

/* Element (r, c) of every patch. */
static tn_val unfold_part(tn_build *b, tn_val x, const unfold_axis *axis, int64_t r, int64_t c) {
  int64_t n = tn_val_dim(b, x, 0), channels = tn_val_dim(b, x, 1), at[] = {r, c};
  int64_t starts[4] = {0}, stops[] = {n, channels, 0, 0}, steps[] = {1, 1, 1, 1};
  for (int32_t i = 0; i < 2; i++) {
    starts[2 + i] = at[i] * axis[i].dilation;
    steps[2 + i] = axis[i].stride;
    stops[2 + i] = starts[2 + i] + (axis[i].out - 1) * axis[i].stride + 1;
  }
  const int64_t dims[] = {n, channels, 1, axis[0].out * axis[1].out};
  return tn_reshape(b, tn_slice(b, x, 4, starts, 4, stops, 4, steps), 4, dims);
}

static tn_status unfold_decompose(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0);
  tn_type type = tn_ops_type(b, x);
  unfold_axis axis[2];
  if (type.rank != 4)
    return tn_fail(b, TN_EINVAL, NULL, "x is %s, expected (N, C, H, W)", tn_ops_text(&type).v);
  TN_TRY(unfold_axes(b, attributes, type.dims + 2, axis));
  int64_t count = axis[0].kernel * axis[1].kernel;
  tn_val *parts = tn_new(b, (size_t)count * sizeof *parts);
  if (parts == NULL) return TN_ENOMEM;
  const int64_t border[] = {0, 0, axis[0].padding, axis[1].padding};
  if (border[2] > 0 || border[3] > 0) x = tn_pad(b, x, 4, border, 4, border, 0, NULL);
  for (int64_t i = 0; i < count; i++)
    parts[i] = unfold_part(b, x, axis, i / axis[1].kernel, i % axis[1].kernel);
  const int64_t dims[] = {type.dims[0], type.dims[1] * count, axis[0].out * axis[1].out};
  tn_build_yield(b, 0, tn_reshape(b, tn_concat(b, count, parts, 2), 3, dims));
  tn_delete(b, parts);
  return TN_OK;
}

/* The transpose of unfold_part: element (r, c) of every patch, in the padded image. */
static tn_val fold_part(tn_build *b, tn_val x, const unfold_axis *axis, int64_t r, int64_t c) {
  int64_t at[] = {r, c}, count = axis[0].kernel * axis[1].kernel, channels = tn_val_dim(b, x, 1) / count;
  const int64_t split[] = {tn_val_dim(b, x, 0), channels, count, axis[0].out * axis[1].out};
  const int64_t dims[] = {split[0], channels, axis[0].out, axis[1].out};
  int64_t low[4] = {0}, high[4] = {0}, inner[4] = {0}, k = r * axis[1].kernel + c;
  for (int32_t i = 0; i < 2; i++) {
    low[2 + i] = at[i] * axis[i].dilation;
    inner[2 + i] = axis[i].stride - 1;
    high[2 + i] = axis[i].size + 2 * axis[i].padding - low[2 + i] - (axis[i].out - 1) * axis[i].stride - 1;
  }
  tn_val part = tn_slice_axis(b, tn_reshape(b, x, 4, split), 2, k, k + 1);
  return tn_pad(b, tn_reshape(b, part, 4, dims), 4, low, 4, high, 4, inner);
}

static tn_status fold_decompose(tn_build *b, const void *attributes) {
  const unfold_options *o = attributes;
  tn_val x = tn_build_in(b, 0), sum = 0;
  tn_type type = tn_ops_type(b, x);
  int64_t size[] = {unfold_entry(&o->size, 0, 0), unfold_entry(&o->size, 1, 0)};
  unfold_axis axis[2];
  TN_TRY(unfold_axes(b, o, size, axis));
  int64_t count = axis[0].kernel * axis[1].kernel;
  if (type.rank != 3 || type.dims[1] % count != 0 || type.dims[2] != axis[0].out * axis[1].out)
    return tn_fail(b, TN_EINVAL, NULL, "x is %s, expected (N, C * %lld, %lld) for these patches",
                   tn_ops_text(&type).v, (long long)count, (long long)(axis[0].out * axis[1].out));
  for (int64_t i = 0; i < count; i++)
    sum = tn_ops_sum(b, sum, fold_part(b, x, axis, i / axis[1].kernel, i % axis[1].kernel));
  const int64_t starts[] = {0, 0, axis[0].padding, axis[1].padding},
                stops[] = {type.dims[0], type.dims[1] / count, starts[2] + size[0], starts[3] + size[1]};
  tn_build_yield(b, 0, tn_slice(b, sum, 4, starts, 4, stops, 0, NULL));
  return TN_OK;
}

#define UNFOLD_PATCHES                                                                                       \
  TN_OPT(unfold_options, kernel, TN_OPT_INTS, NULL, NULL, "height and width of a patch"),                    \
      TN_OPT(unfold_options, stride, TN_OPT_INTS, "[]", NULL, "distance of patches; none: 1"),               \
      TN_OPT(unfold_options, padding, TN_OPT_INTS, "[]", NULL, "zeros around the image; none: 0"),           \
      TN_OPT(unfold_options, dilation, TN_OPT_INTS, "[]", NULL,                                              \
             "distance of the pixels of a patch; none: 1")

static const tn_option unfold_rows[] = {UNFOLD_PATCHES, TN_OPT_END};
static const tn_option fold_rows[] = {
    TN_OPT(unfold_options, size, TN_OPT_INTS, NULL, NULL, "height and width of the image"), UNFOLD_PATCHES,
    TN_OPT_END};

TN_OPS_COMPOSITE(unfold, "the patches of images as columns: (N, C, H, W) to (N, C * kernel, patches)",
                 unfold_options, unfold_rows, TN_CLASS_MOVE, "(x:T) -> (y:T)",
                 .notes = "A list of one entry stands for both dimensions.");
TN_OPS_COMPOSITE(fold, "images as the sums of their patches: the transpose of unfold", unfold_options,
                 fold_rows, TN_CLASS_MOVE, "(x:T) -> (y:T)" TN_OPS_FLOATS,
                 .notes = "A list of one entry stands for both dimensions.");

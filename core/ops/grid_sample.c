/* core/ops/grid_sample.c: elements of images at given positions, which are gathered as rows of channels
 * (Jaderberg et al., "Spatial transformer networks", 2015), and the positions of an affine map. */
#include "core/ops/common.h"

enum { GRID_BILINEAR, GRID_NEAREST };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

typedef struct grid_attributes {
  int32_t mode, padding_mode, align_corners;
  tn_ints size; /* affine_grid */
} grid_attributes;

/* ---- grid_sample ---- */

static tn_status grid_sample_infer(tn_infer *n) {
  const tn_type *x = n->node.in[0], *grid = n->node.in[1];
  tn_type *y = &n->node.out[0];
  TN_TRY(tn_ops_check_rank(n, "x", x, 4, tn_ops_image_dims(2)));
  TN_TRY(tn_ops_check_rank(n, "grid", grid, 4, "batch, height, width, 2"));
  if (grid->dims[0] != x->dims[0] || grid->dims[3] != 2 || x->dims[2] < 1 || x->dims[3] < 1)
    return tn_fail(n, TN_EINVAL, NULL,
                   "x is %s and grid %s, expected images with elements, and grid [%lld, height, width, 2]",
                   tn_ops_text(x).v, tn_ops_text(grid).v, (long long)x->dims[0]);
  *y = *x;
  y->dims[2] = grid->dims[1];
  y->dims[3] = grid->dims[2];
  return tn_ops_check_count(n, y);
}

static tn_val grid_clip(tn_build *b, tn_val v, int64_t size) {
  return tn_minimum(b, tn_maximum(b, v, tn_ops_number(b, v, 0)), tn_ops_number(b, v, (double)(size - 1)));
}

/* Mirrors positions at both ends of low .. low + span until they lie inside. */
static tn_val grid_reflect(tn_build *b, tn_val v, double low, double span) {
  if (span <= 0) return tn_affine(b, v, 0, 0);
  tn_val away = tn_abs(b, tn_affine(b, v, 1, -low)), period = tn_ops_number(b, v, 2 * span);
  tn_val within = tn_sub(b, away, tn_mul(b, tn_floor(b, tn_div(b, away, period)), period));
  tn_val back = tn_affine(b, within, -1, 2 * span);
  return tn_affine(b, tn_minimum(b, within, back), 1, low);
}

/* Positions of -1 .. 1 as positions of elements: coordinate 0 of the grid runs along the width. */
static tn_val grid_position(tn_build *b, const grid_attributes *a, tn_val grid, int32_t coordinate,
                            int64_t size) {
  tn_type t = tn_ops_type(b, grid);
  tn_val v = tn_reshape(b, tn_slice_axis(b, grid, 3, coordinate, coordinate + 1), 3, t.dims);
  double half = (double)(a->align_corners ? size - 1 : size) / 2;
  v = tn_affine(b, v, half, a->align_corners ? half : half - 0.5);
  if (a->padding_mode == GRID_REFLECTION)
    v = a->align_corners ? grid_reflect(b, v, 0, (double)(size - 1)) : grid_reflect(b, v, -0.5, (double)size);
  return a->padding_mode == GRID_ZEROS ? v : grid_clip(b, v, size);
}

/* The images as a table whose rows are the channels of one element. */
typedef struct grid_table {
  tn_val rows;
  tn_type x;
} grid_table;

static tn_val grid_is_inside(tn_build *b, tn_val v, int64_t size) {
  return tn_and(b, tn_ge(b, v, tn_ops_number(b, v, 0)), tn_le(b, v, tn_ops_number(b, v, (double)(size - 1))));
}

/* weight times the elements at whole positions; 0 outside the images, and where a position is NaN. */
static tn_val grid_take(tn_build *b, const grid_table *t, tn_val row, tn_val column, tn_val weight) {
  const tn_type batch = {TN_I64, 3, {t->x.dims[0], 1, 1}};
  tn_val inside = tn_and(b, grid_is_inside(b, row, t->x.dims[2]), grid_is_inside(b, column, t->x.dims[3]));
  tn_val zero = tn_ops_number(b, row, 0), width = tn_scalar(b, TN_I64, (double)t->x.dims[3]);
  tn_val r = tn_to_dtype(b, tn_where(b, inside, row, zero), TN_I64);
  tn_val c = tn_to_dtype(b, tn_where(b, inside, column, zero), TN_I64);
  tn_val plane = tn_scalar(b, TN_I64, (double)(t->x.dims[2] * t->x.dims[3]));
  tn_val at = tn_add(b, tn_add(b, tn_mul(b, tn_iota(b, &batch, 0), plane), tn_mul(b, r, width)), c);
  tn_type dims = tn_ops_type(b, at);
  tn_val factor = tn_where(b, inside, weight != 0 ? weight : tn_ops_number(b, row, 1), zero);
  factor = tn_reshape(b, tn_to_dtype(b, factor, t->x.dtype), 4,
                      (int64_t[]){dims.dims[0], dims.dims[1], dims.dims[2], 1});
  return tn_mul(b, tn_embedding(b, at, t->rows), factor);
}

/* The four neighbours, each with the area of the opposite rectangle. */
static tn_val grid_interpolate(tn_build *b, const grid_table *t, tn_val row, tn_val column) {
  tn_val top = tn_floor(b, row), left = tn_floor(b, column), sum = 0;
  tn_val down = tn_sub(b, row, top), right = tn_sub(b, column, left);
  for (int32_t i = 0; i < 4; i++) {
    tn_val vertical = i / 2 ? down : tn_affine(b, down, -1, 1);
    tn_val horizontal = i % 2 ? right : tn_affine(b, right, -1, 1);
    tn_val taken = grid_take(b, t, tn_affine(b, top, 1, i / 2), tn_affine(b, left, 1, i % 2),
                             tn_mul(b, vertical, horizontal));
    sum = tn_ops_sum(b, sum, taken);
  }
  return sum;
}

/* Positions are f64: their rounding errors would be multiplied by the differences of neighbours. */
static tn_status grid_sample_decompose(tn_build *b, const void *attributes) {
  const grid_attributes *a = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0)), grid = tn_to_dtype(b, tn_build_in(b, 1), TN_F64);
  grid_table t = {.x = tn_ops_type(b, x)};
  const int64_t *d = t.x.dims, table[] = {d[0] * d[2] * d[3], d[1]};
  t.rows = tn_reshape(b, tn_transpose(b, x, 4, (int64_t[]){0, 2, 3, 1}), 2, table);
  tn_val column = grid_position(b, a, grid, 0, d[3]), row = grid_position(b, a, grid, 1, d[2]);
  tn_val y = a->mode == GRID_NEAREST ? grid_take(b, &t, tn_round(b, row), tn_round(b, column), 0)
                                     : grid_interpolate(b, &t, row, column);
  y = tn_transpose(b, y, 4, (int64_t[]){0, 3, 1, 2});
  tn_build_yield(b, 0, tn_to_dtype(b, y, tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

#define GRID_ALIGN                                                                                           \
  TN_OPT(grid_attributes, align_corners, TN_OPT_FLAG, "no", NULL,                                            \
         "-1 and 1 are the centers of the outermost elements, instead of their outer edges")

static const tn_option grid_sample_options[] = {
    TN_OPT(grid_attributes, mode, TN_OPT_ENUM, "bilinear", "bilinear|nearest", "elements between positions"),
    TN_OPT(grid_attributes, padding_mode, TN_OPT_ENUM, "zeros", "zeros|border|reflection",
           "elements outside the image"),
    GRID_ALIGN, TN_OPT_END};

const tn_op tn_op_grid_sample = {
    .item = TN_ITEM(tn_op, TN_OP, "grid_sample",
                    "elements of (N, C, H, W) at the positions (N, H', W', 2): (N, C, H', W')",
                    grid_attributes, grid_sample_options),
    .schema = "(x:T, grid:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_INDEX,
    .infer = grid_sample_infer,
    .decompose = grid_sample_decompose,
    .notes = "A position is column and row, from -1 to 1. Those of NaN give 0. Jaderberg et al., \"Spatial "
             "transformer networks\", 2015.",
};

/* ---- affine_grid ---- */

static tn_status affine_grid_infer(tn_infer *n) {
  const grid_attributes *a = n->node.attributes;
  const tn_type *theta = n->node.in[0];
  TN_TRY(tn_ops_check_list(n, "size", &a->size, 2, 1));
  TN_TRY(tn_ops_check_rank(n, "theta", theta, 3, "batch, 2, 3"));
  if (theta->dims[1] != 2 || theta->dims[2] != 3)
    return tn_fail(n, TN_EINVAL, NULL, "theta is %s, expected [batch, 2, 3]", tn_ops_text(theta).v);
  n->node.out[0] = (tn_type){theta->dtype, 4, {theta->dims[0], a->size.v[0], a->size.v[1], 2}};
  return tn_ops_check_count(n, &n->node.out[0]);
}

/* Positions -1 .. 1 along dimension `axis` of a grid (height, width, 1). */
static tn_val affine_grid_positions(tn_build *b, const grid_attributes *a, int32_t axis, int32_t dtype) {
  const tn_type one = {dtype, 3, {a->size.v[0], a->size.v[1], 1}};
  double size = (double)a->size.v[axis], first = a->align_corners ? -1 : 1 / size - 1;
  double step = !a->align_corners ? 2 / size : size > 1 ? 2 / (size - 1) : 0;
  return tn_affine(b, tn_iota(b, &one, axis), step, size > 1 || !a->align_corners ? first : 0);
}

/* (column, row, 1) times the transpose of theta, at each element. */
static tn_status affine_grid_decompose(tn_build *b, const void *attributes) {
  const grid_attributes *a = attributes;
  tn_val theta = tn_ops_wide(b, tn_build_in(b, 0));
  tn_type t = tn_ops_type(b, theta), one = {t.dtype, 3, {a->size.v[0], a->size.v[1], 1}};
  tn_val parts[] = {affine_grid_positions(b, a, 1, t.dtype), affine_grid_positions(b, a, 0, t.dtype),
                    tn_full(b, &one, 1)};
  const int64_t rows[] = {a->size.v[0] * a->size.v[1], 3},
                grid[] = {t.dims[0], a->size.v[0], a->size.v[1], 2};
  tn_val base = tn_reshape(b, tn_concat(b, 3, parts, 2), 2, rows);
  tn_val y = tn_reshape(b, tn_matmul(b, base, theta, 0, 0, 1, TN_MATH_FULL), 4, grid);
  tn_build_yield(b, 0, tn_to_dtype(b, y, tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

static const tn_option affine_grid_options[] = {
    TN_OPT(grid_attributes, size, TN_OPT_INTS, NULL, NULL, "height and width of the grid"), GRID_ALIGN,
    TN_OPT_END};

const tn_op tn_op_affine_grid = {
    .item = TN_ITEM(tn_op, TN_OP, "affine_grid",
                    "the grid of grid_sample that an affine map (N, 2, 3) makes of an image of this size",
                    grid_attributes, affine_grid_options),
    .schema = "(theta:T) -> (grid:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_INDEX,
    .infer = affine_grid_infer,
    .decompose = affine_grid_decompose,
};

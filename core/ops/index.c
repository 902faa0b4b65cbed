/* core/ops/index.c: elements by indices along an axis: `gather` reads them, `scatter` writes them. The index
 * has the rank of x, or is a vector that holds for every position of the other axes. An index outside the
 * axis is an error of the data, as an id of `embedding` is: the results are unspecified, but a kernel must
 * not access memory outside the operands. */
#include "core/ops/common.h"

/* ---- shapes ---- */

/* Sets `reach` to the dims of the elements that the index names. */
static tn_status index_reach(tn_infer *n, int64_t given, tn_type *reach) {
  const tn_type *x = n->node.in[0], *index = n->node.in[1];
  int32_t axis;
  TN_TRY(tn_ops_check_axis(n, given, x->rank, &axis));
  bool fits = index->rank == x->rank;
  for (int32_t i = 0; i < x->rank && fits; i++) fits = i == axis || index->dims[i] <= x->dims[i];
  *reach = *x;
  for (int32_t i = 0; i < x->rank && fits; i++) reach->dims[i] = index->dims[i];
  if (!fits && index->rank == 1)
    reach->dims[axis] = index->dims[0];
  else if (!fits)
    return tn_fail(n, TN_EINVAL, NULL,
                   "index is %s and x is %s: expected a vector, or rank %d and no dimension but %d that is "
                   "larger than that of x",
                   tn_ops_text(index).v, tn_ops_text(x).v, (int)x->rank, (int)axis);
  return tn_ops_check_count(n, reach);
}

/* ---- emitting ---- */

/* 0, 1, 2 ... along an axis of `like`. */
static tn_val index_iota(tn_build *b, const tn_type *like, int64_t axis) {
  tn_type type = *like;
  type.dtype = TN_I32;
  return tn_iota(b, &type, axis);
}

static tn_val index_fill(tn_build *b, const tn_type *like, int32_t dtype, double value) {
  tn_type type = *like;
  type.dtype = dtype;
  return tn_full(b, &type, value);
}

/* ---- gather ---- */

static tn_status gather_infer(tn_infer *n) {
  const tn_axis_attributes *a = n->node.attributes;
  return index_reach(n, a->axis, &n->node.out[0]);
}

/* Whole rows go to the kernel for tables, which adds up the updates of a row at once. */
static tn_val gather_grad_rows(tn_build *b, const tn_type *x) {
  int64_t rows = x->dims[0], width = 1;
  for (int32_t i = 1; i < x->rank; i++) width *= x->dims[i];
  tn_val index = tn_build_in(b, 1);
  int64_t dims[] = {tn_val_dim(b, index, 0), width};
  tn_val dx = tn_embedding_grad(b, index, tn_reshape(b, tn_build_out_grad(b, 0), 2, dims), rows);
  return tn_reshape(b, dx, x->rank, x->dims);
}

static tn_status gather_grad(tn_build *b, const void *attributes) {
  const tn_axis_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val index = tn_build_in(b, 1);
  if (!tn_build_wants_grad(b, 0)) return TN_OK;
  if (tn_ops_axis(a->axis, x.rank) == 0 && tn_val_type(b, index)->rank == 1) {
    tn_build_yield(b, 0, gather_grad_rows(b, &x));
    return TN_OK;
  }
  tn_val dy = tn_ops_wide(b, tn_build_out_grad(b, 0)),
         zeros = index_fill(b, &x, tn_ops_accumulator(x.dtype), 0);
  tn_build_yield(b, 0, tn_to_dtype(b, tn_scatter(b, zeros, index, dy, a->axis, TN_SCATTER_ADD), x.dtype));
  return TN_OK;
}

static void gather_cost(const tn_node *n, tn_cost *cost) {
  cost->bytes = 2 * tn_ops_count(&n->out[0]) * (double)tn_dtype_size(n->out[0].dtype) +
                tn_ops_count(n->in[1]) * (double)tn_dtype_size(n->in[1]->dtype);
}

static const tn_option gather_options[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "0", NULL, "dimension that is indexed, -rank .. rank-1"),
    TN_OPT_END};

const tn_op tn_op_gather = {
    .item = TN_ITEM(tn_op, TN_OP, "gather", "elements of x by their indices along an axis",
                    tn_axis_attributes, gather_options),
    .schema = "(x:T, index:I) -> (y:T)" TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .infer = gather_infer,
    .grad = gather_grad,
    .cost = gather_cost,
    .notes = "An index of the rank of x: y[i, j, k] = x[i, index[i, j, k], k] for axis 1, with the dims of "
             "the index. A vector: y[i, j, k] = x[i, index[j], k].",
};

/* ---- scatter ---- */

static tn_status scatter_infer(tn_infer *n) {
  const tn_scatter_attributes *a = n->node.attributes;
  tn_type reach;
  tn_status status = index_reach(n, a->axis, &reach);
  n->node.out[0] = *n->node.in[0];
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "updates", n->node.in[2], &reach);
}

/* The updates that no later one has overwritten. */
static tn_val scatter_last(tn_build *b, int64_t axis) {
  tn_val x = tn_build_in(b, 0), index = tn_build_in(b, 1), updates = tn_build_in(b, 2);
  tn_val order = index_iota(b, tn_val_type(b, updates), axis);
  tn_val none = index_fill(b, tn_val_type(b, x), TN_I32, -1);
  tn_val last = tn_scatter(b, none, index, order, axis, TN_SCATTER_SET);
  return tn_eq(b, tn_gather(b, last, index, axis), order);
}

static void scatter_grad_set(tn_build *b, int64_t axis) {
  tn_val index = tn_build_in(b, 1), dy = tn_build_out_grad(b, 0), zero = tn_ops_zero(b, dy);
  tn_type updates = tn_ops_type(b, tn_build_in(b, 2));
  if (tn_build_wants_grad(b, 0)) {
    tn_val zeros = tn_full(b, &updates, 0);
    tn_build_yield(b, 0, tn_scatter(b, dy, index, zeros, axis, TN_SCATTER_SET));
  }
  if (tn_build_wants_grad(b, 2))
    tn_build_yield(b, 2, tn_where(b, scatter_last(b, axis), tn_gather(b, dy, index, axis), zero));
}

/* dy is divided evenly among the elements and updates that equal the extreme. */
static void scatter_grad_extreme(tn_build *b, int64_t axis) {
  tn_val x = tn_build_in(b, 0), index = tn_build_in(b, 1), updates = tn_build_in(b, 2),
         y = tn_build_out(b, 0);
  int32_t dtype = tn_val_type(b, x)->dtype, wide = tn_ops_accumulator(dtype);
  tn_val own = tn_eq(b, x, y), other = tn_eq(b, updates, tn_gather(b, y, index, axis));
  tn_val ties =
      tn_scatter(b, tn_to_dtype(b, own, wide), index, tn_to_dtype(b, other, wide), axis, TN_SCATTER_ADD);
  tn_val share = tn_to_dtype(b, tn_div(b, tn_ops_wide(b, tn_build_out_grad(b, 0)), ties), dtype);
  tn_val zero = tn_ops_zero(b, share);
  if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, tn_where(b, own, share, zero));
  if (tn_build_wants_grad(b, 2))
    tn_build_yield(b, 2, tn_where(b, other, tn_gather(b, share, index, axis), zero));
}

static tn_status scatter_grad(tn_build *b, const void *attributes) {
  const tn_scatter_attributes *a = attributes;
  tn_val dy = tn_build_out_grad(b, 0);
  if (a->mode == TN_SCATTER_SET) {
    scatter_grad_set(b, a->axis);
  } else if (a->mode != TN_SCATTER_ADD) {
    scatter_grad_extreme(b, a->axis);
  } else {
    if (tn_build_wants_grad(b, 0)) tn_build_yield(b, 0, dy);
    if (tn_build_wants_grad(b, 2)) tn_build_yield(b, 2, tn_gather(b, dy, tn_build_in(b, 1), a->axis));
  }
  return TN_OK;
}

static void scatter_cost(const tn_node *n, tn_cost *cost) { tn_ops_cost(n, cost, tn_ops_count(n->in[2])); }

static const tn_option scatter_options[] = {
    TN_OPT(tn_scatter_attributes, axis, TN_OPT_INT, "0", NULL, "dimension that is indexed, -rank .. rank-1"),
    TN_OPT(
        tn_scatter_attributes, mode, TN_OPT_ENUM, "add", "add|max|min|set",
        "what becomes of an update and the element at its index; set: the last update of an element stays"),
    TN_OPT_END};

const tn_op tn_op_scatter = {
    .item = TN_ITEM(tn_op, TN_OP, "scatter", "x with updates at their indices along an axis",
                    tn_scatter_attributes, scatter_options),
    .schema = "(x:T, index:I, updates:T) -> (y:T)" TN_OPS_WIDENED TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .infer = scatter_infer,
    .grad = scatter_grad,
    .cost = scatter_cost,
    .notes = "An index of the rank of x and of the dims of the updates: y[i, index[i, j, k], k] += "
             "updates[i, j, k] for axis 1 and mode add. A vector: y[i, index[j], k] += updates[i, j, k]. "
             "Updates of one element are applied in their order along the axis: the bits are those of every "
             "run. f16 and bf16 are added up in f32.",
};

/* ---- composites ---- */

static tn_val index_flat(tn_build *b, tn_val v) {
  const int64_t all = -1;
  return tn_val_type(b, v)->rank == 1 ? v : tn_reshape(b, v, 1, &all);
}

static tn_status index_select_decompose(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0)), index = tn_ops_type(b, tn_build_in(b, 1));
  int64_t dims[2 * TN_MAX_RANK], n = 0;
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, ((const tn_axis_attributes *)attributes)->axis, &axis));
  for (int32_t i = 0; i < axis; i++) dims[n++] = x.dims[i];
  for (int32_t i = 0; i < index.rank; i++) dims[n++] = index.dims[i];
  for (int32_t i = axis + 1; i < x.rank; i++) dims[n++] = x.dims[i];
  const int64_t count = tn_type_count(&index);
  tn_val y = tn_gather(b, tn_build_in(b, 0), tn_reshape(b, tn_build_in(b, 1), 1, &count), axis);
  tn_build_yield(b, 0, tn_reshape(b, y, n, dims));
  return TN_OK;
}

static tn_status take_decompose(tn_build *b, const void *attributes) {
  tn_type index = tn_ops_type(b, tn_build_in(b, 1));
  (void)attributes;
  tn_val y = tn_gather(b, index_flat(b, tn_build_in(b, 0)), index_flat(b, tn_build_in(b, 1)), 0);
  tn_build_yield(b, 0, tn_reshape(b, y, index.rank, index.dims));
  return TN_OK;
}

/* The dims of both operands, aligned at the last, except along the axis. */
static tn_status take_along_dim_decompose(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0), index = tn_build_in(b, 1);
  tn_type wide = tn_ops_type(b, x), reach = tn_ops_type(b, index);
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, ((const tn_axis_attributes *)attributes)->axis, &axis));
  if (wide.rank != reach.rank)
    return tn_fail(b, TN_EINVAL, NULL, "index is %s and x is %s, expected equal ranks", tn_ops_text(&reach).v,
                   tn_ops_text(&wide).v);
  for (int32_t i = 0; i < wide.rank; i++)
    if (i != axis) wide.dims[i] = reach.dims[i] = wide.dims[i] == 1 ? reach.dims[i] : wide.dims[i];
  x = tn_broadcast(b, x, wide.rank, wide.dims);
  tn_build_yield(b, 0, tn_gather(b, x, tn_broadcast(b, index, reach.rank, reach.dims), axis));
  return TN_OK;
}

/* The element length - 1 of each sequence; the first one of an empty sequence. */
static tn_status last_step_decompose(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0)), length = tn_ops_type(b, tn_build_in(b, 1));
  (void)attributes;
  if (x.rank < 2 || length.rank != 1 || length.dims[0] != x.dims[0])
    return tn_fail(b, TN_EINVAL, NULL,
                   "x is %s and length is %s, expected (N, steps, ...) and a number for each sequence (N)",
                   tn_ops_text(&x).v, tn_ops_text(&length).v);
  tn_val last = tn_sub(b, tn_build_in(b, 1), tn_scalar(b, length.dtype, 1));
  last = tn_maximum(b, last, tn_scalar(b, length.dtype, 0));
  int64_t dims[TN_MAX_RANK] = {x.dims[0], 1, 1, 1, 1, 1, 1, 1};
  last = tn_reshape(b, last, x.rank, dims);
  for (int32_t i = 2; i < x.rank; i++) dims[i] = x.dims[i];
  tn_val y = tn_gather(b, tn_build_in(b, 0), tn_broadcast(b, last, x.rank, dims), 1);
  for (int32_t i = 1; i < x.rank - 1; i++) dims[i] = dims[i + 1];
  tn_build_yield(b, 0, tn_reshape(b, y, x.rank - 1, dims));
  return TN_OK;
}

static tn_status index_scatter(tn_build *b, int64_t axis, int32_t mode) {
  tn_val x = tn_build_in(b, 0), index = tn_build_in(b, 1), updates = tn_build_in(b, 2);
  tn_build_yield(b, 0, tn_scatter(b, x, index, updates, axis, mode));
  return TN_OK;
}

static tn_status index_add_decompose(tn_build *b, const void *attributes) {
  return index_scatter(b, ((const tn_axis_attributes *)attributes)->axis, TN_SCATTER_ADD);
}

static tn_status index_copy_decompose(tn_build *b, const void *attributes) {
  return index_scatter(b, ((const tn_axis_attributes *)attributes)->axis, TN_SCATTER_SET);
}

typedef struct index_fill_options {
  int64_t axis;
  double value;
} index_fill_options;
static const tn_option index_fill_rows[] = {
    TN_OPT(index_fill_options, axis, TN_OPT_INT, "0", NULL, "dimension that is indexed, -rank .. rank-1"),
    TN_OPT(index_fill_options, value, TN_OPT_FLOAT, "0", NULL, "of the elements"), TN_OPT_END};

static tn_status index_fill_decompose(tn_build *b, const void *attributes) {
  const index_fill_options *o = attributes;
  tn_val x = tn_build_in(b, 0), index = tn_build_in(b, 1);
  tn_type updates = tn_ops_type(b, x);
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, o->axis, &axis));
  updates.dims[axis] = tn_val_dim(b, index, 0);
  tn_build_yield(b, 0, tn_scatter(b, x, index, tn_full(b, &updates, o->value), axis, TN_SCATTER_SET));
  return TN_OK;
}

typedef struct one_hot_options {
  int64_t classes;
  int32_t dtype;
} one_hot_options;
static const tn_option one_hot_rows[] = {
    TN_OPT(one_hot_options, classes, TN_OPT_INT, NULL, ">= 0", "size of the last dimension of the result"),
    TN_OPT(one_hot_options, dtype, TN_OPT_DTYPE, "i64", NULL, "element type of the result"), TN_OPT_END};

static tn_status one_hot_decompose(tn_build *b, const void *attributes) {
  const one_hot_options *o = attributes;
  tn_val index = tn_build_in(b, 0);
  tn_type type = tn_ops_type(b, index), classes = {type.dtype, 1, {o->classes}};
  int64_t dims[TN_MAX_RANK + 1];
  for (int32_t i = 0; i < type.rank; i++) dims[i] = type.dims[i];
  dims[type.rank] = 1;
  tn_val hot = tn_eq(b, tn_reshape(b, index, type.rank + 1, dims), tn_iota(b, &classes, 0));
  tn_build_yield(b, 0, tn_to_dtype(b, hot, o->dtype));
  return TN_OK;
}

#define INDEX_OP(name_, doc_, schema_, ...)                                                                  \
  TN_OPS_COMPOSITE(name_, doc_, tn_axis_attributes, gather_options, TN_CLASS_INDEX, schema_, __VA_ARGS__)

INDEX_OP(index_select, "slices of x by their indices along an axis", "(x:T, index:I) -> (y:T)" TN_OPS_INDEX,
         .notes = "The dims of the index, of any rank, take the place of the axis.");
INDEX_OP(take_along_dim, "elements of x by their indices along an axis, for operands that broadcast",
         "(x:T, index:I) -> (y:T)" TN_OPS_INDEX);
INDEX_OP(index_add, "x, with updates added to the slices of their indices",
         "(x:T, index:I, updates:T) -> (y:T)" TN_OPS_WIDENED TN_OPS_INDEX);
INDEX_OP(index_copy, "x, with updates in place of the slices of their indices",
         "(x:T, index:I, updates:T) -> (y:T)" TN_OPS_WIDENED TN_OPS_INDEX);
TN_OPS_COMPOSITE(index_fill, "x, with a value in place of the slices of the indices", index_fill_options,
                 index_fill_rows, TN_CLASS_INDEX, "(x:T, index:I) -> (y:T)" TN_OPS_WIDENED TN_OPS_INDEX);
TN_OPS_COMPOSITE(one_hot, "1 at the index along a new last dimension, 0 elsewhere", one_hot_options,
                 one_hot_rows, TN_CLASS_INDEX, "(index:I) -> (y:any)" TN_OPS_INDEX, .flags = TN_OP_NONDIFF,
                 .notes = "An index outside of the classes has zeros only.");

const tn_op tn_op_take = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "take", "elements of x, flattened, by their indices"),
    .schema = "(x:T, index:I) -> (y:T)" TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .decompose = take_decompose,
};

const tn_op tn_op_last_step = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "last_step", "the last step of each sequence"),
    .schema = "(x:T, length:I) -> (y:T)" TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .decompose = last_step_decompose,
    .domain = "length [0, x.1]",
    .notes = "x (N, steps, ...) and the number of steps of each sequence (N) to (N, ...): y[i] = x[i, "
             "length[i] - 1]; the first step where the length is 0.",
};

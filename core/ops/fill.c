/* core/ops/fill.c: constants, indices, masks, and repeated values. Each element of a result is a function of
 * its index, so the ops are pointwise and can join any fused region. */
#include "core/ops/common.h"

/* ---- full, iota ---- */

static tn_status full_infer(tn_infer *n) {
  const tn_full_attributes *a = n->node.attributes;
  if (a->dtype == TN_ANY)
    return tn_fail(n, TN_EINVAL, "dtype", "dtype is any, expected an element type such as f32");
  n->node.out[0].dtype = a->dtype;
  return tn_ops_check_dims(n, &a->dims, &n->node.out[0]);
}

static const tn_option full_options[] = {
    TN_OPT(tn_full_attributes, dims, TN_OPT_INTS, "[]", NULL, "dimensions; none: a scalar"),
    TN_OPT(tn_full_attributes, value, TN_OPT_FLOAT, "0", NULL, "of every element"),
    TN_OPT(tn_full_attributes, dtype, TN_OPT_DTYPE, "f32", NULL, "element type"), TN_OPT_END};

const tn_op tn_op_full = {
    .item = TN_ITEM(tn_op, TN_OP, "full", "a tensor of one value", tn_full_attributes, full_options),
    .schema = "() -> (y:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_POINTWISE,
    .infer = full_infer,
};

static tn_status iota_infer(tn_infer *n) {
  const tn_iota_attributes *a = n->node.attributes;
  tn_type *y = &n->node.out[0];
  if (a->dtype == TN_ANY || a->dtype == TN_BOOL)
    return tn_fail(n, TN_EINVAL, "dtype", "dtype is %s, expected a number type such as i32",
                   tn_dtype_name(a->dtype));
  y->dtype = a->dtype;
  tn_status status = tn_ops_check_dims(n, &a->dims, y);
  int32_t axis;
  return status != TN_OK ? status : tn_ops_check_axis(n, a->axis, y->rank, &axis);
}

static const tn_option iota_options[] = {
    TN_OPT(tn_iota_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions"),
    TN_OPT(tn_iota_attributes, axis, TN_OPT_INT, "0", NULL, "along which to count, -rank .. rank-1"),
    TN_OPT(tn_iota_attributes, dtype, TN_OPT_DTYPE, "i64", NULL, "element type"), TN_OPT_END};

const tn_op tn_op_iota = {
    .item = TN_ITEM(tn_op, TN_OP, "iota", "0, 1, 2 ... along one axis", tn_iota_attributes, iota_options),
    .schema = "() -> (y:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_POINTWISE,
    .infer = iota_infer,
};

/* ---- broadcast ---- */

static tn_status broadcast_infer(tn_infer *n) {
  const tn_broadcast_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  tn_type *y = &n->node.out[0];
  TN_TRY(tn_ops_check_dims(n, &a->dims, y));
  int32_t lead = y->rank - x->rank;
  for (int32_t i = 0; i < x->rank; i++)
    if (lead < 0 || (x->dims[i] != 1 && x->dims[i] != y->dims[lead + i]))
      return tn_fail(n, TN_EINVAL, "dims",
                     "x is %s and cannot be repeated to %s: aligned at the last dimension, each "
                     "of x must be 1 or equal",
                     tn_ops_text(x).v, tn_ops_text(y).v);
  return TN_OK;
}

static tn_status broadcast_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_ops_yield_to(b, 0, tn_build_out_grad(b, 0));
  return TN_OK;
}

static const tn_option broadcast_options[] = {
    TN_OPT(tn_broadcast_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions of the result"), TN_OPT_END};

const tn_op tn_op_broadcast = {
    .item = TN_ITEM(tn_op, TN_OP, "broadcast", "x repeated along dimensions of size 1 and new leading ones",
                    tn_broadcast_attributes, broadcast_options),
    .schema = "(x:T) -> (y:T)",
    .op_class = TN_CLASS_POINTWISE,
    .infer = broadcast_infer,
    .grad = broadcast_grad,
};

/* ---- spread ---- */

static tn_status spread_check(tn_infer *n, const tn_spread_attributes *a, int64_t values) {
  if (a->starts.n != a->index.n)
    return tn_fail(n, TN_EINVAL, "index", "index has %lld entries and starts %lld, expected as many",
                   (long long)a->index.n, (long long)a->starts.n);
  if (a->starts.n == 0 || a->starts.v[0] != 0)
    return tn_fail(n, TN_EINVAL, "starts", "starts must begin with 0, so that every element has a value");
  for (int64_t i = 0; i < a->starts.n; i++) {
    if (i > 0 && a->starts.v[i] < a->starts.v[i - 1])
      return tn_fail(n, TN_EINVAL, "starts", "starts falls from %lld to %lld, expected ascending",
                     (long long)a->starts.v[i - 1], (long long)a->starts.v[i]);
    if (a->index.v[i] < 0 || a->index.v[i] >= values)
      return tn_fail(n, TN_EINVAL, "index", "index has %lld, but there are %lld values",
                     (long long)a->index.v[i], (long long)values);
  }
  return TN_OK;
}

static tn_status spread_infer(tn_infer *n) {
  const tn_spread_attributes *a = n->node.attributes;
  const tn_type *values = n->node.in[0];
  tn_status status = tn_ops_check_rank(n, "values", values, 1, "one value per parameter group");
  if (status == TN_OK) status = spread_check(n, a, values->dims[0]);
  n->node.out[0].rank = 1;
  n->node.out[0].dims[0] = a->count;
  return status != TN_OK ? status : tn_ops_check_count(n, &n->node.out[0]);
}

static const tn_option spread_options[] = {
    TN_OPT(tn_spread_attributes, starts, TN_OPT_INTS, NULL, NULL, "where each range begins; the first is 0"),
    TN_OPT(tn_spread_attributes, index, TN_OPT_INTS, NULL, NULL, "which value each range has"),
    TN_OPT(tn_spread_attributes, count, TN_OPT_INT, NULL, ">= 0", "elements of the result"), TN_OPT_END};

/* Each value's gradient is the sum over its ranges. */
static tn_status spread_grad(tn_build *b, const void *attributes) {
  const tn_spread_attributes *a = attributes;
  tn_type values = tn_ops_type(b, tn_build_in(b, 0));
  tn_val total = 0;
  for (int64_t r = 0; r < a->starts.n; r++) {
    int64_t stop = r + 1 < a->starts.n ? a->starts.v[r + 1] : a->count;
    if (stop > a->count) stop = a->count;
    int64_t start = a->starts.v[r] < stop ? a->starts.v[r] : stop;
    tn_val part = tn_reduce_sum(b, tn_slice_axis(b, tn_build_out_grad(b, 0), 0, start, stop), 0, NULL, 1);
    int64_t low = a->index.v[r], high = values.dims[0] - low - 1;
    total = tn_ops_sum(b, total, tn_pad(b, part, 1, &low, 1, &high, 0, NULL));
  }
  tn_build_yield(b, 0, total);
  return TN_OK;
}

const tn_op tn_op_spread = {
    .item = TN_ITEM(tn_op, TN_OP, "spread", "one of a few values for each range of elements",
                    tn_spread_attributes, spread_options),
    .schema = "(values:T) -> (y:T)",
    .op_class = TN_CLASS_POINTWISE,
    .infer = spread_infer,
    .grad = spread_grad,
    .notes = "y[i] = values[index[r]] for the last r with starts[r] <= i.",
};

/* ---- triangular_mask ---- */

static tn_status triangular_mask_infer(tn_infer *n) {
  const tn_mask_attributes *a = n->node.attributes;
  tn_type *y = &n->node.out[0];
  y->rank = 2;
  y->dims[0] = a->rows;
  y->dims[1] = a->columns;
  return tn_ops_check_count(n, y);
}

static tn_val mask_emit_iota(tn_build *b, int64_t rows, int64_t columns, int64_t axis) {
  const tn_type type = {TN_I64, 2, {rows, columns}};
  return tn_iota(b, &type, axis);
}

static tn_status triangular_mask_decompose(tn_build *b, const void *attributes) {
  const tn_mask_attributes *a = attributes;
  tn_val row = mask_emit_iota(b, a->rows, 1, 0), column = mask_emit_iota(b, 1, a->columns, 1);
  tn_val last = tn_add(b, row, tn_scalar(b, TN_I64, (double)a->diagonal));
  tn_build_yield(b, 0, tn_le(b, column, last));
  return TN_OK;
}

static const tn_option triangular_mask_options[] = {
    TN_OPT(tn_mask_attributes, rows, TN_OPT_INT, NULL, ">= 0", "rows"),
    TN_OPT(tn_mask_attributes, columns, TN_OPT_INT, NULL, ">= 0", "columns"),
    TN_OPT(tn_mask_attributes, diagonal, TN_OPT_INT, "0", NULL,
           "how far the true part reaches right of the diagonal"),
    TN_OPT_END};

const tn_op tn_op_triangular_mask = {
    .item = TN_ITEM(tn_op, TN_OP, "triangular_mask", "true where column <= row + diagonal",
                    tn_mask_attributes, triangular_mask_options),
    .schema = "() -> (y:bool)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_POINTWISE,
    .infer = triangular_mask_infer,
    .decompose = triangular_mask_decompose,
};

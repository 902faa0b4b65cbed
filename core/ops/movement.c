/* core/ops/movement.c: ops that move elements without changing their bits. */
#include "core/ops/common.h"

/* No flops; every element is read and written once. */
static void movement_cost(const tn_node *n, tn_cost *cost) { tn_ops_cost(n, cost, 0); }

static tn_status copy_infer(tn_infer *n) {
  n->node.out[0] = *n->node.in[0];
  return TN_OK;
}

static tn_status copy_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_build_out_grad(b, 0));
  return TN_OK;
}

/* ---- copy, reorder ---- */

const tn_op tn_op_copy = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "copy", "x in memory of its own"),
    .schema = "(x:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = copy_infer,
    .grad = copy_grad,
    .cost = movement_cost,
};

const tn_op tn_op_reorder = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "reorder", "x in another layout"),
    .schema = "(x:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = copy_infer,
    .grad = copy_grad,
    .cost = movement_cost,
    .notes = "The host chooses the layout.",
};

/* ---- reshape ---- */

/* Infers the one dimension that is -1 from the number of elements. */
static tn_status reshape_infer(tn_infer *n) {
  const tn_reshape_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  tn_type *y = &n->node.out[0];
  if (a->dims.n > TN_MAX_RANK)
    return tn_fail(n, TN_EINVAL, "dims", "dims has %lld entries, the highest rank is %d",
                   (long long)a->dims.n, (int)TN_MAX_RANK);
  int32_t open = -1;
  int64_t known = 1, count = tn_type_count(x);
  y->rank = (int32_t)a->dims.n;
  for (int32_t i = 0; i < y->rank; i++) {
    int64_t dim = y->dims[i] = a->dims.v[i];
    if (dim < -1 || (dim == -1 && open >= 0))
      return tn_fail(n, TN_EINVAL, "dims", "entry %d of dims is %lld, expected >= 0, or one -1 for the rest",
                     (int)i, (long long)dim);
    if (dim == -1)
      open = i;
    else if (__builtin_mul_overflow(known, dim, &known))
      return tn_fail(n, TN_EINVAL, "dims", "dims names more elements than can be counted");
  }
  if (open >= 0) y->dims[open] = known > 0 ? count / known : 0;
  if (open >= 0 && known == 0)
    return tn_fail(n, TN_EINVAL, "dims", "-1 in dims is not determined when another entry is 0");
  if (tn_type_count(y) == count) return TN_OK;
  return tn_fail(n, TN_EINVAL, "dims",
                 "x is %s with %lld elements, which dims cannot hold: the others make %lld", tn_ops_text(x).v,
                 (long long)count, (long long)known);
}

static tn_status reshape_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_build_yield(b, 0, tn_reshape(b, tn_build_out_grad(b, 0), x.rank, x.dims));
  return TN_OK;
}

static void reshape_cost(const tn_node *n, tn_cost *cost) {
  (void)n;
  cost->flops = cost->bytes = 0;
}

static const tn_option reshape_options[] = {TN_OPT(tn_reshape_attributes, dims, TN_OPT_INTS, NULL, NULL,
                                                   "dimensions of the result; one may be -1: the rest"),
                                            TN_OPT_END};

const tn_op tn_op_reshape = {
    .item = TN_ITEM(tn_op, TN_OP, "reshape", "the elements in the same order under other dimensions",
                    tn_reshape_attributes, reshape_options),
    .schema = "(x:T) -> (y:T)",
    .flags = TN_OP_VIEW,
    .op_class = TN_CLASS_MOVE,
    .infer = reshape_infer,
    .grad = reshape_grad,
    .cost = reshape_cost,
};

/* ---- transpose ---- */

static tn_status transpose_infer(tn_infer *n) {
  const tn_transpose_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  tn_type *y = &n->node.out[0];
  bool seen[TN_MAX_RANK] = {false};
  if (a->order.n != x->rank)
    return tn_fail(n, TN_EINVAL, "order", "order has %lld entries, but x is %s of rank %d",
                   (long long)a->order.n, tn_ops_text(x).v, (int)x->rank);
  y->rank = x->rank;
  for (int32_t i = 0; i < x->rank; i++) {
    int64_t from = a->order.v[i];
    if (from < 0 || from >= x->rank || seen[from])
      return tn_fail(n, TN_EINVAL, "order", "entry %d of order is %lld, expected each of 0 .. %d once",
                     (int)i, (long long)from, (int)x->rank - 1);
    seen[from] = true;
    y->dims[i] = x->dims[from];
  }
  return TN_OK;
}

static tn_status transpose_grad(tn_build *b, const void *attributes) {
  const tn_transpose_attributes *a = attributes;
  int64_t inverse[TN_MAX_RANK];
  for (int64_t i = 0; i < a->order.n; i++) inverse[a->order.v[i]] = i;
  tn_build_yield(b, 0, tn_transpose(b, tn_build_out_grad(b, 0), a->order.n, inverse));
  return TN_OK;
}

static const tn_option transpose_options[] = {TN_OPT(tn_transpose_attributes, order, TN_OPT_INTS, NULL, NULL,
                                                     "result dimension i is dimension order[i] of x"),
                                              TN_OPT_END};

const tn_op tn_op_transpose = {
    .item = TN_ITEM(tn_op, TN_OP, "transpose", "x with its dimensions in another order",
                    tn_transpose_attributes, transpose_options),
    .schema = "(x:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = transpose_infer,
    .grad = transpose_grad,
    .cost = movement_cost,
};

/* ---- slice and pad: each the transpose of the other ---- */

static tn_status slice_infer(tn_infer *n) {
  const tn_slice_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  TN_TRY(tn_ops_check_list(n, "starts", &a->starts, x->rank, 0));
  TN_TRY(tn_ops_check_list(n, "stops", &a->stops, x->rank, 0));
  if (a->steps.n > 0) TN_TRY(tn_ops_check_list(n, "steps", &a->steps, x->rank, 1));
  n->node.out[0].rank = x->rank;
  for (int32_t i = 0; i < x->rank; i++) {
    int64_t start = a->starts.v[i], stop = a->stops.v[i], step = a->steps.n > 0 ? a->steps.v[i] : 1;
    if (start > stop || stop > x->dims[i])
      return tn_fail(n, TN_EINVAL, start > stop ? "starts" : "stops",
                     "dimension %d: %lld .. %lld, expected start <= stop <= %lld for x of %s", (int)i,
                     (long long)start, (long long)stop, (long long)x->dims[i], tn_ops_text(x).v);
    n->node.out[0].dims[i] = (stop - start) / step + ((stop - start) % step != 0);
  }
  return TN_OK;
}

/* The extent of n elements at distance `step`. */
static int64_t slice_reach(int64_t n, int64_t step) { return n > 0 ? (n - 1) * step + 1 : 0; }

static tn_status slice_grad(tn_build *b, const void *attributes) {
  const tn_slice_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0)), y = tn_ops_type(b, tn_build_out(b, 0));
  int64_t high[TN_MAX_RANK], inner[TN_MAX_RANK];
  for (int32_t i = 0; i < x.rank; i++) {
    int64_t step = a->steps.n > 0 && y.dims[i] > 1 ? a->steps.v[i] : 1;
    inner[i] = step - 1;
    high[i] = x.dims[i] - a->starts.v[i] - slice_reach(y.dims[i], step);
  }
  tn_build_yield(b, 0,
                 tn_pad(b, tn_build_out_grad(b, 0), x.rank, a->starts.v, x.rank, high,
                        a->steps.n > 0 ? x.rank : 0, inner));
  return TN_OK;
}

static const tn_option slice_options[] = {
    TN_OPT(tn_slice_attributes, starts, TN_OPT_INTS, NULL, NULL, "first index in each dimension"),
    TN_OPT(tn_slice_attributes, stops, TN_OPT_INTS, NULL, NULL, "index behind the last in each dimension"),
    TN_OPT(tn_slice_attributes, steps, TN_OPT_INTS, "[]", NULL, "distance of those taken; none: all 1"),
    TN_OPT_END};

const tn_op tn_op_slice = {
    .item =
        TN_ITEM(tn_op, TN_OP, "slice", "a part of x: start, start + step ... below stop in each dimension",
                tn_slice_attributes, slice_options),
    .schema = "(x:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = slice_infer,
    .grad = slice_grad,
    .cost = movement_cost,
};

static tn_status pad_infer(tn_infer *n) {
  const tn_pad_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  TN_TRY(tn_ops_check_list(n, "low", &a->low, x->rank, 0));
  TN_TRY(tn_ops_check_list(n, "high", &a->high, x->rank, 0));
  if (a->inner.n > 0) TN_TRY(tn_ops_check_list(n, "inner", &a->inner, x->rank, 0));
  n->node.out[0].rank = x->rank;
  for (int32_t i = 0; i < x->rank; i++) {
    int64_t gaps = x->dims[i] > 0 ? x->dims[i] - 1 : 0, size = x->dims[i],
            inner = a->inner.n > 0 ? a->inner.v[i] : 0;
    if (__builtin_mul_overflow(gaps, inner, &gaps) || __builtin_add_overflow(size, gaps, &size) ||
        __builtin_add_overflow(size, a->low.v[i], &size) || __builtin_add_overflow(size, a->high.v[i], &size))
      return tn_fail(n, TN_EINVAL, NULL, "dimension %d of the result is larger than can be counted", (int)i);
    n->node.out[0].dims[i] = size;
  }
  return tn_ops_check_count(n, &n->node.out[0]);
}

static tn_status pad_grad(tn_build *b, const void *attributes) {
  const tn_pad_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  int64_t stops[TN_MAX_RANK], steps[TN_MAX_RANK];
  for (int32_t i = 0; i < x.rank; i++) {
    steps[i] = a->inner.n > 0 ? a->inner.v[i] + 1 : 1;
    stops[i] = a->low.v[i] + slice_reach(x.dims[i], steps[i]);
  }
  tn_build_yield(b, 0,
                 tn_slice(b, tn_build_out_grad(b, 0), x.rank, a->low.v, x.rank, stops,
                          a->inner.n > 0 ? x.rank : 0, steps));
  return TN_OK;
}

static const tn_option pad_options[] = {
    TN_OPT(tn_pad_attributes, low, TN_OPT_INTS, NULL, NULL, "zeros in front of each dimension"),
    TN_OPT(tn_pad_attributes, high, TN_OPT_INTS, NULL, NULL, "zeros behind each dimension"),
    TN_OPT(tn_pad_attributes, inner, TN_OPT_INTS, "[]", NULL, "zeros between neighbours; none: 0"),
    TN_OPT_END};

const tn_op tn_op_pad = {
    .item = TN_ITEM(tn_op, TN_OP, "pad", "x with zeros around it and between its elements", tn_pad_attributes,
                    pad_options),
    .schema = "(x:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = pad_infer,
    .grad = pad_grad,
    .cost = movement_cost,
};

/* ---- concat ---- */

static tn_status concat_infer(tn_infer *n) {
  const tn_axis_attributes *a = n->node.attributes;
  int32_t axis;
  if (n->node.n_in < 1) return tn_fail(n, TN_EINVAL, NULL, "no operands, expected at least one");
  tn_type expected = *n->node.in[0], *y = &n->node.out[0];
  TN_TRY(tn_ops_check_axis(n, a->axis, expected.rank, &axis));
  int64_t total = 0;
  for (int32_t i = 0; i < n->node.n_in; i++) {
    const tn_type *x = n->node.in[i];
    if (x->rank == expected.rank) expected.dims[axis] = x->dims[axis];
    if (!tn_type_same_dims(x, &expected))
      return tn_fail(n, TN_EINVAL, NULL,
                     "operand %d is %s and operand 0 is %s: they may differ in dimension %d only", (int)i,
                     tn_ops_text(x).v, tn_ops_text(n->node.in[0]).v, (int)axis);
    if (__builtin_add_overflow(total, x->dims[axis], &total))
      return tn_fail(n, TN_EINVAL, NULL, "dimension %d of the result is larger than can be counted",
                     (int)axis);
  }
  *y = expected;
  y->dims[axis] = total;
  return tn_ops_check_count(n, y);
}

static tn_status concat_grad(tn_build *b, const void *attributes) {
  const tn_axis_attributes *a = attributes;
  int32_t axis = tn_ops_axis(a->axis, tn_val_type(b, tn_build_out(b, 0))->rank);
  int64_t start = 0;
  for (int32_t i = 0; i < tn_build_n_in(b); i++) {
    int64_t stop = start + tn_val_dim(b, tn_build_in(b, i), axis);
    if (tn_build_wants_grad(b, i))
      tn_build_yield(b, i, tn_slice_axis(b, tn_build_out_grad(b, 0), axis, start, stop));
    start = stop;
  }
  return TN_OK;
}

static const tn_option concat_options[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "0", NULL, "dimension along which to join, -rank .. rank-1"),
    TN_OPT_END};

const tn_op tn_op_concat = {
    .item = TN_ITEM(tn_op, TN_OP, "concat", "operands joined along one dimension", tn_axis_attributes,
                    concat_options),
    .schema = "(xs*:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = concat_infer,
    .grad = concat_grad,
    .cost = movement_cost,
};

/* ---- pack ---- */

static tn_status pack_infer(tn_infer *n) {
  const tn_pack_attributes *a = n->node.attributes;
  if (n->node.n_in < 1) return tn_fail(n, TN_EINVAL, NULL, "no operands, expected at least one");
  tn_status status = tn_ops_check_list(n, "offsets", &a->offsets, n->node.n_in, 0);
  int64_t end = 0;
  for (int32_t i = 0; i < n->node.n_in && status == TN_OK; i++) {
    int64_t offset = a->offsets.v[i];
    if (offset < end)
      status = tn_fail(n, TN_EINVAL, "offsets",
                       "offset %lld of operand %d lies before %lld, where the one before ends",
                       (long long)offset, (int)i, (long long)end);
    else if (__builtin_add_overflow(offset, tn_type_count(n->node.in[i]), &end) || end > a->count)
      status =
          tn_fail(n, TN_EINVAL, "count", "operand %d is %s and does not fit at offset %lld of %lld elements",
                  (int)i, tn_ops_text(n->node.in[i]).v, (long long)offset, (long long)a->count);
  }
  n->node.out[0].rank = 1;
  n->node.out[0].dims[0] = a->count;
  return status != TN_OK ? status : tn_ops_check_count(n, &n->node.out[0]);
}

static tn_status pack_grad(tn_build *b, const void *attributes) {
  const tn_pack_attributes *a = attributes;
  for (int32_t i = 0; i < tn_build_n_in(b); i++) {
    if (!tn_build_wants_grad(b, i)) continue;
    tn_type x = tn_ops_type(b, tn_build_in(b, i));
    int64_t start = a->offsets.v[i];
    tn_val part = tn_slice_axis(b, tn_build_out_grad(b, 0), 0, start, start + tn_type_count(&x));
    tn_build_yield(b, i, tn_reshape(b, part, x.rank, x.dims));
  }
  return TN_OK;
}

static const tn_option pack_options[] = {
    TN_OPT(tn_pack_attributes, offsets, TN_OPT_INTS, NULL, NULL,
           "where each operand begins, in elements, ascending"),
    TN_OPT(tn_pack_attributes, count, TN_OPT_INT, NULL, ">= 0", "elements of the result"),
    TN_OPT(tn_pack_attributes, region, TN_OPT_TEXT, "", NULL,
           "the region of state whose layouts the operands have"),
    TN_OPT(tn_pack_attributes, start, TN_OPT_INT, "0", ">= 0", "where the result begins in that region"),
    TN_OPT_END};

const tn_op tn_op_pack = {
    .item = TN_ITEM(tn_op, TN_OP, "pack", "operands flattened one after the other, zeros in the gaps",
                    tn_pack_attributes, pack_options),
    .schema = "(xs*:T) -> (y:T)",
    .op_class = TN_CLASS_MOVE,
    .infer = pack_infer,
    .grad = pack_grad,
    .cost = movement_cost,
    .notes = "Value i begins at element offsets[i] of the result, which has rank 1.",
};

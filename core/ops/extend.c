/* core/ops/extend.c: x with a border of a constant, of its edge, or of its elements in reverse or periodic
 * order, one dimension after the other. */
#include "core/ops/common.h"

enum { EXTEND_CONSTANT, EXTEND_REFLECT, EXTEND_REPLICATE, EXTEND_CIRCULAR };

typedef struct extend_attributes {
  tn_ints low, high; /* one entry per dimension */
  int32_t mode;
  double value;
} extend_attributes;

/* The most elements that a border can have: those of which each is an element of x once. */
static int64_t extend_most(int32_t mode, int64_t size) {
  if (mode == EXTEND_REFLECT) return size > 0 ? size - 1 : 0;
  if (mode == EXTEND_CIRCULAR) return size;
  return mode == EXTEND_REPLICATE && size == 0 ? 0 : INT64_MAX;
}

static tn_status extend_infer(tn_infer *n) {
  const extend_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  tn_type *y = &n->node.out[0];
  TN_TRY(tn_ops_check_list(n, "low", &a->low, x->rank, 0));
  TN_TRY(tn_ops_check_list(n, "high", &a->high, x->rank, 0));
  y->rank = x->rank;
  for (int32_t i = 0; i < x->rank; i++) {
    int64_t low = a->low.v[i], high = a->high.v[i], most = extend_most(a->mode, x->dims[i]);
    if (low > most || high > most)
      return tn_fail(n, TN_EINVAL, low > most ? "low" : "high",
                     "dimension %d has a border of %lld, expected at most %lld for x of %s and this mode",
                     (int)i, (long long)(low > most ? low : high), (long long)most, tn_ops_text(x).v);
    if (__builtin_add_overflow(x->dims[i], low, &y->dims[i]) ||
        __builtin_add_overflow(y->dims[i], high, &y->dims[i]))
      return tn_fail(n, TN_EINVAL, NULL, "dimension %d of the result is larger than can be counted", (int)i);
  }
  return tn_ops_check_count(n, y);
}

/* x with the elements along an axis in reverse order, by a crop of rows that are mirrored. */
static tn_val extend_reverse(tn_build *b, tn_val x, int32_t axis) {
  const tn_type pair = {TN_I32, 2, {1, 2}};
  tn_type t = tn_ops_type(b, x);
  int64_t dims[4] = {1, 1, t.dims[axis], 1};
  if (t.dims[axis] <= 1) return x;
  for (int32_t i = 0; i < t.rank; i++)
    if (i != axis) dims[i < axis ? 1 : 3] *= t.dims[i];
  tn_val rows = tn_sub(b, tn_scalar(b, TN_I32, 1), tn_iota(b, &pair, 1)); /* 1, 0 */
  tn_val y = tn_crop(b, tn_reshape(b, x, 4, dims), 0, rows, 2, dims + 2);
  return tn_reshape(b, y, t.rank, t.dims);
}

/* The `count` elements in front of x along an axis, or those behind it. */
static tn_val extend_border(tn_build *b, const extend_attributes *a, tn_val x, int32_t axis, int64_t count,
                            bool behind) {
  tn_type t = tn_ops_type(b, x);
  int64_t size = t.dims[axis];
  t.dims[axis] = count;
  if (a->mode == EXTEND_CONSTANT) return tn_full(b, &t, a->value);
  if (a->mode == EXTEND_CIRCULAR)
    return tn_slice_axis(b, x, axis, behind ? 0 : size - count, behind ? count : size);
  if (a->mode == EXTEND_REFLECT)
    return extend_reverse(
        b, tn_slice_axis(b, x, axis, behind ? size - 1 - count : 1, behind ? size - 1 : 1 + count), axis);
  tn_val edge = tn_slice_axis(b, x, axis, behind ? size - 1 : 0, behind ? size : 1);
  return tn_broadcast(b, edge, t.rank, t.dims);
}

static tn_val extend_axis(tn_build *b, const extend_attributes *a, tn_val x, int32_t axis) {
  int64_t low = a->low.v[axis], high = a->high.v[axis];
  tn_val parts[3];
  int64_t n = 0;
  if (low > 0) parts[n++] = extend_border(b, a, x, axis, low, false);
  parts[n++] = x;
  if (high > 0) parts[n++] = extend_border(b, a, x, axis, high, true);
  return n > 1 ? tn_concat(b, n, parts, axis) : x;
}

static tn_status extend_decompose(tn_build *b, const void *attributes) {
  const extend_attributes *a = attributes;
  tn_val x = tn_build_in(b, 0);
  int32_t rank = tn_val_type(b, x)->rank;
  if (a->mode == EXTEND_CONSTANT && a->value == 0)
    x = tn_pad(b, x, rank, a->low.v, rank, a->high.v, 0, NULL);
  else
    for (int32_t axis = 0; axis < rank; axis++) x = extend_axis(b, a, x, axis);
  tn_build_yield(b, 0, x);
  return TN_OK;
}

static const tn_option extend_options[] = {
    TN_OPT(extend_attributes, low, TN_OPT_INTS, NULL, NULL, "elements in front of each dimension"),
    TN_OPT(extend_attributes, high, TN_OPT_INTS, NULL, NULL, "elements behind each dimension"),
    TN_OPT(extend_attributes, mode, TN_OPT_ENUM, "constant", "constant|reflect|replicate|circular",
           "what the border has"),
    TN_OPT(extend_attributes, value, TN_OPT_FLOAT, "0", NULL, "of a constant border"), TN_OPT_END};

const tn_op tn_op_extend = {
    .item = TN_ITEM(tn_op, TN_OP, "extend", "x with a border around it", extend_attributes, extend_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_NUMBERS,
    .op_class = TN_CLASS_MOVE,
    .infer = extend_infer,
    .decompose = extend_decompose,
    .notes =
        "The modes of PyTorch's pad. reflect: the elements next to the edge, without it, in reverse order; "
        "replicate: the edge; circular: the elements at the other end.",
};

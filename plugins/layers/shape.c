/* plugins/layers/shape.c: layers without parameters over shapes and branches: identity, flatten, reshape,
 * add, mul, concat, split, unbind. */
#include "plugins/layers/layers.h"

static tn_status build_identity(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_build_in(b, 0));
  return TN_OK;
}
const tn_layer_kind layer_identity = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "identity", "returns its input"),
    .min_in = 1,
    .max_in = 1,
    .types = "one tensor of any shape; the result has the same",
    .example = "inputs = x: f32[64]\nlayers = identity",
    .build = build_identity};

static tn_status build_flatten(tn_build *b, const void *options) {
  (void)options;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  int64_t width = 1;
  for (int32_t i = 1; i < x->rank; i++) width *= x->dims[i];
  tn_build_yield(
      b, 0, tn_reshape(b, tn_build_in(b, 0), 2, (int64_t[]){tn_val_dim(b, tn_build_in(b, 0), 0), width}));
  return TN_OK;
}
const tn_layer_kind layer_flatten = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "flatten",
                                                           "all dimensions except the batch merged into one"),
                                     .min_in = 1,
                                     .max_in = 1,
                                     .types = "(N, ...) to (N, elements of a sample)",
                                     .example = "inputs = image: f32[3, 32, 32]\nlayers = flatten",
                                     .build = build_flatten};

typedef struct reshape_options {
  tn_ints dims;
} reshape_options;
static const tn_option reshape_rows[] = {
    TN_OPT(reshape_options, dims, TN_OPT_INTS, NULL, ">= -1", "dimensions without the batch; one may be -1"),
    TN_OPT_END};

static tn_status build_reshape(tn_build *b, const void *given) {
  const reshape_options *o = given;
  int64_t dims[TN_MAX_RANK] = {tn_val_dim(b, tn_build_in(b, 0), 0)};
  if (o->dims.n >= TN_MAX_RANK)
    return tn_fail(b, TN_EINVAL, "dims", "%lld dimensions, expected at most %d", (long long)o->dims.n,
                   TN_MAX_RANK - 1);
  for (int64_t i = 0; i < o->dims.n; i++) dims[i + 1] = o->dims.v[i];
  tn_build_yield(b, 0, tn_reshape(b, tn_build_in(b, 0), o->dims.n + 1, dims));
  return TN_OK;
}
const tn_layer_kind layer_reshape = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "reshape",
                                                     "the same elements in other dimensions", reshape_options,
                                                     reshape_rows),
                                     .min_in = 1,
                                     .max_in = 1,
                                     .types = "(N, ...) to (N, dims)",
                                     .example = "inputs = x: f32[64]\nlayers = reshape([4, 16])",
                                     .build = build_reshape};

/* Applies a binary op to the inputs from left to right. */
static tn_status shape_reduce(tn_build *b, const char *op) {
  tn_val y = tn_build_in(b, 0);
  for (int32_t i = 1; i < tn_build_n_in(b); i++) y = tn_op2(b, op, y, tn_build_in(b, i));
  tn_build_yield(b, 0, y);
  return TN_OK;
}
static tn_status build_add(tn_build *b, const void *options) {
  (void)options;
  return shape_reduce(b, "add");
}
static tn_status build_mul(tn_build *b, const void *options) {
  (void)options;
  return shape_reduce(b, "mul");
}
const tn_layer_kind layer_add = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "add", "sum of the inputs"),
                                 .min_in = 2,
                                 .max_in = -1,
                                 .types = "tensors of one shape, or shapes that broadcast",
                                 .example =
                                     "inputs = x: f32[64]\nlayers =\n    a: linear(64) <- x\n    add <- a, x",
                                 .build = build_add};
const tn_layer_kind layer_mul = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "mul", "product of the inputs"),
    .min_in = 2,
    .max_in = -1,
    .types = "tensors of one shape, or shapes that broadcast",
    .example = "inputs = x: f32[64]\nlayers =\n    gate: linear(64) <- x\n    mul <- gate, x",
    .build = build_mul};

static const tn_option concat_rows[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "1", NULL, "the dimension to concatenate along"),
    TN_OPT_END};

static tn_status build_concat(tn_build *b, const void *given) {
  const tn_axis_attributes *o = given;
  tn_op_begin(b, "concat");
  for (int32_t i = 0; i < tn_build_n_in(b); i++) tn_op_arg(b, tn_build_in(b, i));
  tn_op_set_int(b, "axis", o->axis);
  tn_build_yield(b, 0, tn_op_end(b));
  return TN_OK;
}
const tn_layer_kind layer_concat = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "concat", "concatenates the inputs along an axis",
                    tn_axis_attributes, concat_rows),
    .min_in = 1,
    .max_in = -1,
    .types = "tensors whose shapes differ along the axis only",
    .example = "inputs = x: f32[64]\nlayers =\n    a: linear(32) <- x\n    concat <- a, x",
    .build = build_concat};

typedef struct split_options {
  int64_t parts, axis;
  tn_ints sizes;
} split_options;
static const tn_option split_rows[] = {
    TN_OPT(split_options, parts, TN_OPT_INT, "1", "[1, 64]", "number of equal parts"),
    TN_OPT(split_options, axis, TN_OPT_INT, "1", NULL, "the dimension to split"),
    TN_OPT(split_options, sizes, TN_OPT_INTS, "[]", NULL, "the size of each part; none: equal parts"),
    TN_OPT_END};

static tn_status split_axis(tn_build *b, int64_t given, int32_t *axis) {
  int32_t rank = tn_val_type(b, tn_build_in(b, 0))->rank;
  *axis = (int32_t)(given < 0 ? given + rank : given);
  if (*axis >= 0 && *axis < rank) return TN_OK;
  return tn_fail(b, TN_EINVAL, "axis", "%lld is out of range for a rank-%d input", (long long)given, rank);
}

static tn_status split_by_sizes(tn_build *b, const tn_ints *sizes, int32_t axis) {
  int64_t start = 0, size = tn_val_dim(b, tn_build_in(b, 0), axis);
  for (int64_t i = 0; i < sizes->n; i++) {
    int64_t part = sizes->v[i];
    if (part < 0 || part > size - start)
      return tn_fail(b, TN_EINVAL, "sizes", "part %lld of %lld elements ends behind the dimension's %lld",
                     (long long)i, (long long)part, (long long)size);
    tn_build_yield(b, (int32_t)i, tn_slice_axis(b, tn_build_in(b, 0), axis, start, start + part));
    start += part;
  }
  if (start == size) return TN_OK;
  return tn_fail(b, TN_EINVAL, "sizes", "the sizes add up to %lld, expected the dimension's %lld",
                 (long long)start, (long long)size);
}

static tn_status build_split(tn_build *b, const void *given) {
  const split_options *o = given;
  int32_t axis;
  tn_status status = split_axis(b, o->axis, &axis);
  if (status != TN_OK) return status;
  if (o->parts > 1 && o->sizes.n > 0)
    return tn_fail(b, TN_EINVAL, "sizes", "parts is %lld and sizes has %lld entries, expected one of them",
                   (long long)o->parts, (long long)o->sizes.n);
  if (o->sizes.n > 0) return split_by_sizes(b, &o->sizes, axis);
  int64_t size = tn_val_dim(b, tn_build_in(b, 0), axis), part = size / o->parts;
  if (part * o->parts != size)
    return tn_fail(b, TN_EINVAL, "parts", "%lld does not divide the dimension's %lld", (long long)o->parts,
                   (long long)size);
  for (int32_t i = 0; i < o->parts; i++)
    tn_build_yield(b, i, tn_slice_axis(b, tn_build_in(b, 0), axis, i * part, (i + 1) * part));
  return TN_OK;
}
const tn_layer_kind layer_split = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "split",
                    "splits the input into parts along an axis, one output each", split_options, split_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "one tensor to as many tensors as parts",
    .example = "inputs = x: f32[64]\nlayers =\n    a, b: split(2)\n    add <- a, b",
    .build = build_split};

static const tn_option unbind_rows[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "1", NULL, "the dimension to take apart"), TN_OPT_END};

static tn_status build_unbind(tn_build *b, const void *given) {
  int32_t axis;
  tn_status status = split_axis(b, ((const tn_axis_attributes *)given)->axis, &axis);
  if (status != TN_OK) return status;
  for (int64_t i = 0; i < tn_val_dim(b, tn_build_in(b, 0), axis); i++)
    tn_build_yield(b, (int32_t)i, tn_select(b, tn_build_in(b, 0), axis, i));
  return TN_OK;
}
const tn_layer_kind layer_unbind = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "unbind",
                    "takes the input apart along an axis: an output for each element, without the axis",
                    tn_axis_attributes, unbind_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "one tensor to as many tensors as the axis has elements",
    .example = "inputs = x: f32[2, 64]\nlayers =\n    a, b: unbind\n    add <- a, b",
    .build = build_unbind};

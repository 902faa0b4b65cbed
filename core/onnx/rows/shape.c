/* core/onnx/rows/shape.c: operators that move elements. */
#include <string.h>

#include "core/onnx/import.h"

static const tn_type *type_of(const onnx_use *n, int32_t i) { return &onnx_operand(n, i)->type; }

/* ---- reshape ---- */

/* The batch of the file, where it is fixed, stands for any batch. */
static void dims_free_batch(const onnx_use *n, int64_t *dims, int32_t rank) {
  const tn_type *x = type_of(n, 0);
  bool batched = x->rank > 0 && x->dims[0] == ONNX_BATCH;
  if (rank > 0 && batched && n->m->batch > 0 && dims[0] == n->m->batch) dims[0] = ONNX_BATCH;
}

/* Puts the size in the place of -1. */
static tn_status dims_complete(const onnx_use *n, int64_t *dims, int32_t rank) {
  int64_t product = 1, all = tn_type_count(type_of(n, 0));
  int32_t open = -1;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) open = i;
    if (dims[i] >= 0 && __builtin_mul_overflow(product, dims[i], &product)) product = 0;
  }
  if (open >= 0 && product > 0 && all % product == 0) {
    dims[open] = all / product;
    product = all;
  }
  if (product == all && all > 0) return TN_OK;
  return ONNX_REFUSE(n, "a shape that does not follow from that of the operand");
}

/* Dims as the op writes them: one of them may be -1, that which depends on the batch. */
static tn_status row_dims(const onnx_use *n, const char *x, int64_t *dims, int32_t rank) {
  int32_t open = -1;
  const tn_type *type = type_of(n, 0);
  bool batched = type->rank > 0 && type->dims[0] == ONNX_BATCH;
  if (batched && rank == 2 && dims[0] == ONNX_BATCH) return onnx_emit(n, &x, 1, "flatten");
  if (batched && rank > 0 && dims[0] == ONNX_BATCH)
    return onnx_emit(n, &x, 1, "reshape(%s)", onnx_list_text(n, dims + 1, rank - 1, false));
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] % ONNX_BATCH != 0) continue;
    if (open >= 0) return ONNX_REFUSE(n, "two dimensions that depend on the batch");
    open = i;
    dims[i] = -1;
  }
  return onnx_emit(n, &x, 1, "op.reshape(dims=%s)", onnx_list_text(n, dims, rank, false));
}

static tn_status row_to_dims(const onnx_use *n, const int64_t *wanted, int32_t rank, bool zeros) {
  int64_t dims[TN_MAX_RANK];
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  if (rank < 0 || rank > TN_MAX_RANK) return ONNX_REFUSE(n, "more than %d dimensions", TN_MAX_RANK);
  for (int32_t i = 0; i < rank; i++)
    dims[i] = wanted[i] == 0 && !zeros && i < type_of(n, 0)->rank ? type_of(n, 0)->dims[i] : wanted[i];
  dims_free_batch(n, dims, rank);
  TN_TRY(dims_complete(n, dims, rank));
  return row_dims(n, x, dims, rank);
}

static tn_status row_reshape(const onnx_use *n) {
  const int64_t *dims;
  int32_t rank;
  TN_TRY(onnx_wholes(n, "shape", 1, &dims, &rank));
  return row_to_dims(n, dims, rank, onnx_whole(n, "allowzero", 0) != 0);
}

static tn_status row_flatten(const onnx_use *n) {
  const tn_type *x = type_of(n, 0);
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 1), x->rank);
  int64_t dims[2] = {1, -1};
  for (int32_t i = 0; i < axis && i < x->rank; i++) dims[0] *= x->dims[i];
  return row_to_dims(n, dims, 2, true);
}

static tn_status row_squeeze(const onnx_use *n) {
  const tn_type x = *type_of(n, 0);
  const int64_t *axes;
  int32_t count, rank = 0;
  int64_t dims[TN_MAX_RANK];
  TN_TRY(onnx_wholes(n, "axes", 1, &axes, &count));
  for (int32_t i = 0; i < x.rank; i++) {
    bool dropped = count < 0 && x.dims[i] == 1;
    for (int32_t k = 0; k < count; k++) dropped = dropped || onnx_axis(axes[k], x.rank) == i;
    if (!dropped) dims[rank++] = x.dims[i];
  }
  return row_to_dims(n, dims, rank, true);
}

static tn_status row_unsqueeze(const onnx_use *n) {
  const tn_type x = *type_of(n, 0);
  const int64_t *axes;
  int32_t count;
  int64_t dims[TN_MAX_RANK];
  TN_TRY(onnx_wholes(n, "axes", 1, &axes, &count));
  int32_t rank = x.rank + count, from = 0;
  if (count < 0 || rank > TN_MAX_RANK) return ONNX_REFUSE(n, "more than %d dimensions", TN_MAX_RANK);
  for (int32_t i = 0; i < rank; i++) {
    bool added = false;
    for (int32_t k = 0; k < count; k++) added = added || onnx_axis(axes[k], rank) == i;
    dims[i] = added || from == x.rank ? 1 : x.dims[from++];
  }
  return row_to_dims(n, dims, rank, true);
}

/* ---- order and parts ---- */

static tn_status row_transpose(const onnx_use *n) {
  const int64_t *order;
  int32_t count, rank = type_of(n, 0)->rank;
  int64_t turned[TN_MAX_RANK];
  TN_TRY(onnx_wholes(n, "perm", -1, &order, &count));
  if (count >= 0 && count != rank) return ONNX_REFUSE(n, "an order of %d of %d dimensions", count, rank);
  for (int32_t i = 0; i < rank; i++) turned[i] = rank - 1 - i;
  return onnx_emit(n, NULL, 0, "transpose(%s)", onnx_list_text(n, count > 0 ? order : turned, rank, false));
}

static tn_status row_concat(const onnx_use *n) {
  int32_t rank = type_of(n, 0)->rank, axis = onnx_axis(onnx_whole(n, "axis", 0), rank);
  return axis == 1 ? onnx_emit(n, NULL, 0, "concat") : onnx_emit(n, NULL, 0, "concat(axis=%d)", axis);
}

/* The sizes of the parts: an operand, an attribute, or equal ones. */
static tn_status row_split(const onnx_use *n) {
  const int64_t *sizes;
  int32_t count, parts = n->node->n_out, axis = onnx_axis(onnx_whole(n, "axis", 0), type_of(n, 0)->rank);
  int64_t equal[ONNX_MOST_OPERANDS];
  TN_TRY(onnx_wholes(n, "split", 1, &sizes, &count));
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (parts > ONNX_MOST_OPERANDS || (count >= 0 && count != parts))
    return ONNX_REFUSE(n, "%d sizes of %d parts", count, parts);
  int64_t all = type_of(n, 0)->dims[axis], each = (all + parts - 1) / parts;
  for (int32_t i = 0; i < parts; i++) equal[i] = i + 1 < parts ? each : all - each * (parts - 1);
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  if (count < 0 && all % parts == 0) return onnx_emit(n, &x, 1, "split(%d, axis=%d)", parts, axis);
  return onnx_emit(n, &x, 1, "split(axis=%d, sizes=%s)", axis,
                   onnx_list_text(n, count < 0 ? equal : sizes, parts, false));
}

/* "1:-1:2" for one dimension; "" for all of it. */
static const char *part_text(const onnx_use *n, int64_t start, int64_t stop, int64_t step, int64_t size) {
  bool from = start != 0 && start > -size, to = stop < size;
  if (step == 1)
    return onnx_print(n, "%s:%s", from ? onnx_print(n, "%lld", (long long)start) : "",
                      to ? onnx_print(n, "%lld", (long long)stop) : "");
  return onnx_print(n, "%s:%s:%lld", from ? onnx_print(n, "%lld", (long long)start) : "",
                    to ? onnx_print(n, "%lld", (long long)stop) : "", (long long)step);
}

/* x[:, 1:5] from a text for each dimension; those at the end that take all are left out. */
static tn_status compute_part(const onnx_use *n, const char *x, const char *const *parts, int32_t rank) {
  tn_text text = tn_text_new(n->m->env);
  while (rank > 1 && strcmp(parts[rank - 1], ":") == 0) rank--;
  for (int32_t i = 0; i < rank; i++) tn_text_addf(&text, "%s%s", i > 0 ? ", " : "", parts[i]);
  tn_status status = text.v != NULL && !text.failed ? onnx_compute(n, "%s[%s]", x, text.v) : TN_ENOMEM;
  tn_text_free(&text);
  return status;
}

static tn_status row_slice(const onnx_use *n) {
  const int64_t *starts, *stops, *axes, *steps;
  int32_t count, n_stops, n_axes, n_steps, rank = type_of(n, 0)->rank;
  const char *parts[TN_MAX_RANK], *x = onnx_text_of(n, 0, false);
  TN_TRY(onnx_wholes(n, "starts", 1, &starts, &count));
  TN_TRY(onnx_wholes(n, "ends", 2, &stops, &n_stops));
  TN_TRY(onnx_wholes(n, "axes", 3, &axes, &n_axes));
  TN_TRY(onnx_wholes(n, "steps", 4, &steps, &n_steps));
  if (x == NULL) return onnx_failed(n);
  for (int32_t i = 0; i < rank; i++) parts[i] = ":";
  for (int32_t i = 0; i < count; i++) {
    int32_t axis = n_axes > 0 ? onnx_axis(axes[i], rank) : i;
    int64_t step = n_steps > 0 ? steps[i] : 1;
    if (axis < 0 || axis >= rank || i >= n_stops) return ONNX_REFUSE(n, "an axis that the operand lacks");
    if (step < 1) return ONNX_REFUSE(n, "parts backwards");
    parts[axis] = part_text(n, starts[i], stops[i], step, type_of(n, 0)->dims[axis]);
  }
  return compute_part(n, x, parts, rank);
}

/* ---- gather ---- */

static bool gathers_rows(const onnx_use *n) {
  return onnx_whole(n, "axis", 0) == 0 && onnx_is_weight(n, 0, 2) && onnx_operand(n, 0)->is_weight &&
         onnx_operand(n, 1)->line != NULL;
}

/* Element `at` of the axis, in a line that computes: x[:, 3]. */
static tn_status gather_one(const onnx_use *n, int32_t axis, int64_t at) {
  const char *parts[TN_MAX_RANK], *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  for (int32_t i = 0; i < axis; i++) parts[i] = ":";
  parts[axis] = onnx_print(n, "%lld", (long long)at);
  return compute_part(n, x, parts, axis + 1);
}

static tn_status row_gather(const onnx_use *n) {
  const tn_type *x = type_of(n, 0), *index = type_of(n, 1);
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 0), x->rank);
  int64_t count;
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (gathers_rows(n))
    return onnx_layer(n, 1, n, &(onnx_layer_weight){"weight", n->node->in[0], false}, 1,
                      onnx_print(n, "embedding(%lld, %lld)", (long long)x->dims[0], (long long)x->dims[1]));
  const double *known = onnx_peek(n, 1, &count);
  if (known != NULL && count == 1 && index->rank == 0) return gather_one(n, axis, onnx_to_whole(known[0]));
  if (index->rank != 1) return ONNX_REFUSE(n, "an index of %d dimensions", index->rank);
  return onnx_emit(n, NULL, 0, "index_select(axis=%d)", axis);
}

static tn_status row_gather_elements(const onnx_use *n) {
  return onnx_emit(n, NULL, 0, "gather(axis=%d)", onnx_axis(onnx_whole(n, "axis", 0), type_of(n, 0)->rank));
}

/* ---- sizes ---- */

static tn_status row_expand(const onnx_use *n) {
  const int64_t *dims;
  int32_t rank, own = type_of(n, 0)->rank;
  const char *x = onnx_text_of(n, 0, false);
  tn_text text = tn_text_new(n->m->env);
  TN_TRY(onnx_wholes(n, "shape", 1, &dims, &rank));
  if (x == NULL) return onnx_failed(n);
  if (rank < own) return ONNX_REFUSE(n, "fewer dimensions than those of the operand");
  for (int32_t i = 0; i < rank; i++) {
    int64_t had = i >= rank - own ? type_of(n, 0)->dims[i - (rank - own)] : 1,
            size = dims[i] == 1 ? had : dims[i];
    tn_text_addf(&text, "%s%s", i > 0 ? ", " : "", onnx_size_text(n, size));
  }
  tn_status status = onnx_compute(n, "broadcast(%s, dims=[%s])", x, text.v != NULL ? text.v : "");
  tn_text_free(&text);
  return status;
}

static tn_status row_filled(const onnx_use *n) {
  const int64_t *dims;
  int32_t rank, dtype;
  double number;
  tn_text text = tn_text_new(n->m->env);
  TN_TRY(onnx_wholes(n, "", 0, &dims, &rank));
  TN_TRY(onnx_filled(n, &number, &dtype));
  for (int32_t i = 0; i < rank; i++)
    tn_text_addf(&text, "%s%s", i > 0 ? ", " : "", onnx_size_text(n, dims[i]));
  tn_status status = onnx_compute(n, "full([%s], %s, dtype=%s)", text.v != NULL ? text.v : "",
                                  onnx_float_text(n, number), tn_dtype_name(dtype));
  tn_text_free(&text);
  return status;
}

static tn_status row_tile(const onnx_use *n) {
  const int64_t *repeats;
  int32_t count;
  const char *x = onnx_text_of(n, 0, false);
  TN_TRY(onnx_wholes(n, "repeats", 1, &repeats, &count));
  return x != NULL ? onnx_emit(n, &x, 1, "tile(%s)", onnx_list_text(n, repeats, count, false))
                   : onnx_failed(n);
}

static tn_status row_pad(const onnx_use *n) {
  static const char *const modes[][2] = {
      {"constant", "constant"}, {"edge", "replicate"}, {"reflect", "reflect"}, {"wrap", "circular"}};
  const int64_t *pads, *axes;
  int32_t count, n_axes, rank = type_of(n, 0)->rank;
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0}, one;
  const char *x = onnx_text_of(n, 0, false), *mode = onnx_word(n, "mode", "constant"), *own = NULL;
  double value = onnx_number(n, "value", 0);
  TN_TRY(onnx_wholes(n, "pads", 1, &pads, &count));
  TN_TRY(onnx_wholes(n, "axes", 3, &axes, &n_axes));
  if (onnx_has(n, 2)) {
    const double *known = onnx_known(n, 2, &one);
    if (known == NULL) return onnx_failed(n);
    value = one > 0 ? known[0] : 0;
  }
  if (x == NULL) return onnx_failed(n);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(mode, modes[i][0]) == 0) own = modes[i][1];
  int32_t named = n_axes >= 0 ? n_axes : rank;
  if (own == NULL || count != 2 * named) return ONNX_REFUSE(n, "padding of the form %s", mode);
  for (int32_t i = 0; i < named; i++) {
    int32_t axis = n_axes >= 0 ? onnx_axis(axes[i], rank) : i;
    if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
    low[axis] = pads[i];
    high[axis] = pads[named + i];
  }
  return onnx_emit(n, &x, 1, "extend(%s, %s, mode=%s, value=%s)", onnx_list_text(n, low, rank, false),
                   onnx_list_text(n, high, rank, false), own, onnx_float_text(n, value));
}

static tn_status row_depth_to_space(const onnx_use *n) {
  if (strcmp(onnx_word(n, "mode", "DCR"), "CRD") == 0)
    return onnx_emit(n, NULL, 0, "pixel_shuffle(%lld)", (long long)onnx_whole(n, "blocksize", 1));
  const tn_type *x = type_of(n, 0);
  if (x->rank != 4) return ONNX_REFUSE(n, "pictures of %d dimensions", x->rank);
  int64_t b = onnx_whole(n, "blocksize", 1), c = x->dims[1], h = x->dims[2], w = x->dims[3];
  if (b < 1 || b > c || c % (b * b) != 0) return ONNX_REFUSE(n, "blocks that do not divide the channels");
  const char *value = onnx_text_of(n, 0, false);
  if (value != NULL)
    value = onnx_between(n, &value, 1, "reshape([%lld, %lld, %lld, %lld, %lld])", (long long)b, (long long)b,
                         (long long)(c / (b * b)), (long long)h, (long long)w);
  if (value != NULL) value = onnx_between(n, &value, 1, "transpose([0, 3, 4, 1, 5, 2])");
  if (value == NULL) return onnx_failed(n);
  return onnx_emit(n, &value, 1, "reshape([%lld, %lld, %lld])", (long long)(c / (b * b)), (long long)(h * b),
                   (long long)(w * b));
}

static tn_status row_trilu(const onnx_use *n) {
  int64_t count;
  const double *k = onnx_has(n, 1) ? onnx_known(n, 1, &count) : NULL;
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL || (onnx_has(n, 1) && k == NULL)) return onnx_failed(n);
  const char *op = onnx_whole(n, "upper", 1) ? "triu" : "tril";
  if (k == NULL || k[0] == 0) return onnx_emit(n, &x, 1, "%s", op);
  return onnx_emit(n, &x, 1, "%s(diagonal=%lld)", op, (long long)onnx_to_whole(k[0]));
}

/* ---- resize ---- */

/* The size of the result: sizes, or scales times the size. */
static tn_status resize_sizes(const onnx_use *n, int64_t *size) {
  const tn_type *x = type_of(n, 0);
  bool upsample = strcmp(n->node->op, "Upsample") == 0;
  int32_t scales = upsample ? 1 : 2, sizes = upsample ? -1 : 3;
  int64_t count;
  bool given = sizes > 0 && onnx_has(n, sizes);
  const double *known = onnx_known(n, given ? sizes : scales, &count);
  if (known == NULL) return onnx_failed(n);
  if (count != x->rank) return ONNX_REFUSE(n, "sizes of some dimensions alone");
  for (int32_t i = 2; i < x->rank; i++)
    size[i - 2] = onnx_to_whole(given ? known[i] : (double)x->dims[i] * known[i] + 1e-6);
  return TN_OK;
}

static tn_status row_resize(const onnx_use *n) {
  int64_t size[TN_MAX_RANK];
  const char *mode = onnx_word(n, "mode", "nearest"), *x = onnx_text_of(n, 0, false);
  const char *at = onnx_word(n, "coordinate_transformation_mode",
                             strcmp(n->node->op, "Upsample") == 0 ? "asymmetric" : "half_pixel");
  int32_t rank = type_of(n, 0)->rank;
  bool nearest = strcmp(mode, "nearest") == 0, linear = strcmp(mode, "linear") == 0,
       cubic = strcmp(mode, "cubic") == 0, corners = strcmp(at, "align_corners") == 0;
  if (x == NULL) return onnx_failed(n);
  TN_TRY(resize_sizes(n, size));
  bool half = strcmp(at, "half_pixel") == 0 || strcmp(at, "pytorch_half_pixel") == 0;
  bool floor_ = strcmp(at, "asymmetric") == 0 && strcmp(onnx_word(n, "nearest_mode", "floor"), "floor") == 0;
  if (nearest ? !floor_ && !half : !half && !corners)
    return ONNX_REFUSE(n, "coordinates of the form %s with %s", at, mode);
  if (cubic && onnx_number(n, "cubic_coeff_a", -0.75) != -0.75)
    return ONNX_REFUSE(n, "another cubic filter than that of PyTorch");
  const char *names[] = {"linear", "bilinear", "trilinear"};
  const char *own = nearest                            ? floor_ ? "nearest" : "nearest_exact"
                    : linear && rank >= 3 && rank <= 5 ? names[rank - 3]
                    : cubic                            ? "bicubic"
                                                       : NULL;
  if (own == NULL) return ONNX_REFUSE(n, "the filter %s", mode);
  return onnx_emit(n, &x, 1, "interpolate(size=%s, mode=%s%s%s)", onnx_list_text(n, size, rank - 2, false),
                   own, corners && !nearest ? ", align_corners=yes" : "",
                   onnx_whole(n, "antialias", 0) ? ", antialias=yes" : "");
}

const onnx_row onnx_shape_rows[] = {
    {"Reshape", row_reshape, NULL},
    {"Flatten", row_flatten, NULL},
    {"Squeeze", row_squeeze, NULL},
    {"Unsqueeze", row_unsqueeze, NULL},
    {"Transpose", row_transpose, NULL},
    {"Concat", row_concat, NULL},
    {"Split", row_split, NULL},
    {"Slice", row_slice, NULL},
    {"Gather", row_gather, NULL, 2},
    {"GatherElements", row_gather_elements, NULL, 2},
    {"Expand", row_expand, NULL, 2},
    {"ConstantOfShape", row_filled, NULL},
    {"Tile", row_tile, NULL},
    {"Pad", row_pad, NULL},
    {"DepthToSpace", row_depth_to_space, NULL},
    {"Trilu", row_trilu, NULL},
    {"Resize", row_resize, NULL},
    {"Upsample", row_resize, NULL},
    {NULL, NULL, NULL},
};

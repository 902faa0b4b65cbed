/* core/onnx/rows/shape.c: operators that move elements. */
#include <string.h>

#include "core/onnx/import.h"

/* ---- reshape ---- */

/* The batch of the file, where it is fixed, stands for any batch. */
static void dims_free_batch(const onnx_use *n, int64_t *dims, int32_t rank) {
  const tn_type *x = onnx_type(n, 0);
  bool batched = !n->m->whole && x->rank > 0 && x->dims[0] == ONNX_BATCH;
  if (rank > 0 && batched && n->m->batch > 0 && dims[0] == n->m->batch) dims[0] = ONNX_BATCH;
}

/* Puts the size in the place of -1. */
static tn_status dims_complete(const onnx_use *n, int64_t *dims, int32_t rank) {
  int64_t product = 1, all = tn_type_count(onnx_type(n, 0));
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

const char *onnx_dims_text(const onnx_use *n, const int64_t *dims, int32_t rank) {
  int64_t list[TN_MAX_RANK];
  int32_t open = -1;
  for (int32_t i = 0; i < rank; i++) {
    list[i] = dims[i];
    if (!onnx_is_batch(n->m, dims[i])) continue;
    if (open >= 0) {
      ONNX_REFUSE(n, "two dimensions that depend on the batch");
      return NULL;
    }
    open = i;
    list[i] = -1;
  }
  return onnx_list_text(n, list, rank, false);
}

static tn_status row_dims(const onnx_use *n, const char *x, const int64_t *dims, int32_t rank) {
  const tn_type *type = onnx_type(n, 0);
  bool batched = !n->m->whole && type->rank > 0 && type->dims[0] == ONNX_BATCH;
  if (batched && rank == 2 && dims[0] == ONNX_BATCH) return onnx_emit(n, &x, 1, "flatten");
  if (batched && rank > 0 && dims[0] == ONNX_BATCH)
    return onnx_emit(n, &x, 1, "reshape(%s)", onnx_list_text(n, dims + 1, rank - 1, false));
  const char *list = onnx_dims_text(n, dims, rank);
  return list != NULL ? onnx_emit(n, &x, 1, "op.reshape(dims=%s)", list) : onnx_failed(n);
}

/* The dimensions that the node asks for; -1 stands for the rest, 0 for those of the operand unless `zeros`.
 */
typedef struct dims_wanted {
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  bool zeros;
} dims_wanted;

static tn_status dims_reshape(const onnx_use *n, dims_wanted *w) {
  const int64_t *dims;
  TN_TRY(onnx_wholes(n, "shape", 1, &dims, &w->rank));
  if (w->rank < 0 || w->rank > TN_MAX_RANK) return ONNX_REFUSE(n, "more than %d dimensions", TN_MAX_RANK);
  memcpy(w->dims, dims, (size_t)w->rank * sizeof *dims);
  w->zeros = onnx_whole(n, "allowzero", 0) != 0;
  return TN_OK;
}

static tn_status dims_flatten(const onnx_use *n, dims_wanted *w) {
  const tn_type *x = onnx_type(n, 0);
  int64_t given = onnx_whole(n, "axis", 1);
  int32_t axis = given == x->rank ? x->rank : onnx_axis(given, x->rank);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  *w = (dims_wanted){{1, -1}, 2, true};
  for (int32_t i = 0; i < axis; i++) w->dims[0] *= x->dims[i];
  return TN_OK;
}

static tn_status dims_squeeze(const onnx_use *n, dims_wanted *w) {
  const tn_type *x = onnx_type(n, 0);
  const int64_t *axes;
  int32_t count;
  TN_TRY(onnx_wholes(n, "axes", 1, &axes, &count));
  w->zeros = true;
  for (int32_t i = 0; i < x->rank; i++) {
    bool dropped = count < 0 && x->dims[i] == 1;
    for (int32_t k = 0; k < count; k++) dropped = dropped || onnx_axis(axes[k], x->rank) == i;
    if (!dropped) w->dims[w->rank++] = x->dims[i];
  }
  return TN_OK;
}

static tn_status dims_unsqueeze(const onnx_use *n, dims_wanted *w) {
  const tn_type *x = onnx_type(n, 0);
  const int64_t *axes;
  int32_t count, from = 0;
  TN_TRY(onnx_wholes(n, "axes", 1, &axes, &count));
  if (count < 0 || x->rank + count > TN_MAX_RANK)
    return ONNX_REFUSE(n, "more than %d dimensions", TN_MAX_RANK);
  *w = (dims_wanted){.rank = x->rank + count, .zeros = true};
  for (int32_t i = 0; i < w->rank; i++) {
    bool added = from == x->rank;
    for (int32_t k = 0; k < count; k++) added = added || onnx_axis(axes[k], w->rank) == i;
    w->dims[i] = added ? 1 : x->dims[from++];
  }
  return TN_OK;
}

tn_status onnx_new_dims(const onnx_use *n, int64_t dims[TN_MAX_RANK], int32_t *rank) {
  dims_wanted w = {.rank = 0};
  const char *op = n->node->op;
  if (strcmp(op, "Reshape") == 0) TN_TRY(dims_reshape(n, &w));
  if (strcmp(op, "Flatten") == 0) TN_TRY(dims_flatten(n, &w));
  if (strcmp(op, "Squeeze") == 0) TN_TRY(dims_squeeze(n, &w));
  if (strcmp(op, "Unsqueeze") == 0) TN_TRY(dims_unsqueeze(n, &w));
  *rank = w.rank;
  for (int32_t i = 0; i < w.rank; i++)
    dims[i] = w.dims[i] == 0 && !w.zeros && i < onnx_type(n, 0)->rank ? onnx_type(n, 0)->dims[i] : w.dims[i];
  dims_free_batch(n, dims, w.rank);
  return dims_complete(n, dims, w.rank);
}

static tn_status row_new_dims(const onnx_use *n) {
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  TN_TRY(onnx_new_dims(n, dims, &rank));
  return row_dims(n, x, dims, rank);
}

/* ---- order and parts ---- */

/* Recurrent operators have the steps in front of the samples, and Tenon behind them. Two such orders one
 * after the other cancel. */
static tn_status transpose_first(const onnx_use *n) {
  const onnx_value *x = onnx_operand(n, 0);
  if (x->turned != NULL) return onnx_bind(n, 0, x->turned);
  const char *text = onnx_text_of(n, 0, false);
  if (text == NULL) return onnx_failed(n);
  tn_type type = *onnx_type(n, 0);
  int64_t first = type.dims[0];
  type.dims[0] = type.dims[1];
  type.dims[1] = first;
  return onnx_bind_lazy(n, onnx_print(n, "transpose(%s, [1, 0, 2])", text), &type, text);
}

static tn_status row_transpose(const onnx_use *n) {
  const int64_t *order;
  int32_t count, rank = onnx_type(n, 0)->rank;
  int64_t turned[TN_MAX_RANK];
  TN_TRY(onnx_wholes(n, "perm", -1, &order, &count));
  if (count >= 0 && count != rank) return ONNX_REFUSE(n, "an order of %d of %d dimensions", count, rank);
  for (int32_t i = 0; i < rank; i++) turned[i] = rank - 1 - i;
  if (count > 0) memcpy(turned, order, (size_t)rank * sizeof *order);
  if (rank == 2 && turned[0] == 1 && onnx_is_weight(n, 0, 2) && onnx_operand(n, 0)->is_weight)
    return onnx_bind_tensor(n, onnx_transposed(n->m, onnx_operand(n, 0)->tensor), true);
  if (rank == 3 && turned[0] == 1 && turned[1] == 0) return transpose_first(n);
  return onnx_emit(n, NULL, 0, "transpose(%s)", onnx_list_text(n, turned, rank, false));
}

/* The sizes of the parts: an operand, an attribute, or equal ones. */
static tn_status row_split(const onnx_use *n) {
  const int64_t *sizes;
  int32_t count, parts = n->node->n_out, axis = onnx_axis(onnx_whole(n, "axis", 0), onnx_type(n, 0)->rank);
  int64_t equal[ONNX_MOST_OPERANDS];
  TN_TRY(onnx_wholes(n, "split", 1, &sizes, &count));
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (parts > ONNX_MOST_OPERANDS || (count >= 0 && count != parts))
    return ONNX_REFUSE(n, "%d sizes of %d parts", count, parts);
  int64_t all = onnx_type(n, 0)->dims[axis], each = (all + parts - 1) / parts;
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

/* A range backwards is one forwards in the reverse order of the axis. */
static const char *slice_backwards(const onnx_use *n, const char *x, int32_t axis, int64_t size,
                                   int64_t *start, int64_t *stop, int64_t *step) {
  int64_t first = *start < 0 ? *start + size : *start,
          last = *stop < 0 && *stop >= -size ? *stop + size : *stop;
  first = first >= size ? size - 1 : first;
  *start = size - 1 - first;
  *stop = last < 0 ? size : size - 1 - last;
  *step = -*step;
  return onnx_let(n, "flip(%s, [%d])", x, axis);
}

static tn_status row_slice(const onnx_use *n) {
  const int64_t *starts, *stops, *axes, *steps;
  const tn_type type = *onnx_type(n, 0);
  int32_t count, n_stops, n_axes, n_steps, rank = type.rank;
  const char *parts[TN_MAX_RANK], *x = onnx_text_of(n, 0, false);
  TN_TRY(onnx_wholes(n, "starts", 1, &starts, &count));
  TN_TRY(onnx_wholes(n, "ends", 2, &stops, &n_stops));
  TN_TRY(onnx_wholes(n, "axes", 3, &axes, &n_axes));
  TN_TRY(onnx_wholes(n, "steps", 4, &steps, &n_steps));
  for (int32_t i = 0; i < rank; i++) parts[i] = ":";
  for (int32_t i = 0; i < count; i++) {
    int32_t axis = n_axes > 0 ? onnx_axis(axes[i], rank) : i;
    int64_t step = n_steps > 0 ? steps[i] : 1, start = starts[i], stop = i < n_stops ? stops[i] : 0;
    if (axis < 0 || axis >= rank || i >= n_stops || step == 0 || step == INT64_MIN)
      return ONNX_REFUSE(n, "an axis that the operand lacks, or a step of 0");
    if (x != NULL && step < 0) x = slice_backwards(n, x, axis, type.dims[axis], &start, &stop, &step);
    parts[axis] = part_text(n, start, stop, step, type.dims[axis]);
  }
  return x != NULL ? compute_part(n, x, parts, rank) : onnx_failed(n);
}

/* ---- sizes ---- */

static tn_status row_expand(const onnx_use *n) {
  const int64_t *dims;
  int32_t rank, own = onnx_type(n, 0)->rank;
  const char *x = onnx_text_of(n, 0, false), *list = "";
  TN_TRY(onnx_wholes(n, "shape", 1, &dims, &rank));
  if (x == NULL) return onnx_failed(n);
  int32_t all = rank > own ? rank : own;
  for (int32_t i = 0; i < all; i++) {
    int64_t had = i >= all - own ? onnx_type(n, 0)->dims[i - (all - own)] : 1,
            wanted = i >= all - rank ? dims[i - (all - rank)] : 1;
    list = onnx_print(n, "%s%s%s", list, i > 0 ? ", " : "", onnx_size_text(n, wanted == 1 ? had : wanted));
  }
  return onnx_compute(n, "broadcast(%s, dims=[%s])", x, list);
}

static tn_status row_filled(const onnx_use *n) {
  const int64_t *dims;
  int32_t rank, dtype;
  double number;
  const char *list = "";
  TN_TRY(onnx_wholes(n, "", 0, &dims, &rank));
  TN_TRY(onnx_filled(n, &number, &dtype));
  if (rank > TN_MAX_RANK) return ONNX_REFUSE(n, "more than %d dimensions", TN_MAX_RANK);
  tn_type type = {.dtype = dtype, .rank = rank};
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] < 1) return ONNX_REFUSE(n, "an array without elements");
    type.dims[i] = dims[i];
    list = onnx_print(n, "%s%s%s", list, i > 0 ? ", " : "", onnx_size_text(n, dims[i]));
  }
  const char *text =
      onnx_print(n, "full([%s], %s, dtype=%s)", list, onnx_float_text(n, number), tn_dtype_name(dtype));
  TN_TRY(onnx_bind_lazy(n, text, &type, NULL));
  onnx_find(n->m, n->node->out[0])->zero = number == 0;
  return TN_OK;
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
  int32_t count, n_axes, rank = onnx_type(n, 0)->rank;
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
  const tn_type *x = onnx_type(n, 0);
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

static tn_status row_space_to_depth(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0);
  const char *text = onnx_text_of(n, 0, false);
  bool apart = strcmp(onnx_word(n, "mode", "DCR"), "CRD") == 0;
  long long b = onnx_whole(n, "blocksize", 1);
  if (text == NULL) return onnx_failed(n);
  if (x.rank != 4 || b < 1 || x.dims[2] % b != 0 || x.dims[3] % b != 0)
    return ONNX_REFUSE(n, "pictures of %d dimensions, or blocks that do not divide them", x.rank);
  long long c = x.dims[1], h = x.dims[2] / b, w = x.dims[3] / b;
  return onnx_compute(
      n,
      "op.reshape(transpose(op.reshape(%s, dims=[-1, %lld, %lld, %lld, %lld, %lld]), [0, %s, 2, 4]), "
      "dims=[-1, %lld, %lld, %lld])",
      text, c, h, b, w, b, apart ? "1, 3, 5" : "3, 5, 1", c * b * b, h, w);
}

/* The middle of axes that are larger than wanted, and zeros around those that are smaller. */
static tn_status row_center(const onnx_use *n) {
  const int64_t *wanted, *axes;
  int32_t count, n_axes, rank = onnx_type(n, 0)->rank;
  const char *x = onnx_text_of(n, 0, false), *parts[TN_MAX_RANK], *part = "";
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0};
  TN_TRY(onnx_wholes(n, "", 1, &wanted, &count));
  TN_TRY(onnx_wholes(n, "axes", -1, &axes, &n_axes));
  if (x == NULL) return onnx_failed(n);
  for (int32_t i = 0; i < rank; i++) parts[i] = ":";
  for (int32_t i = 0; i < count; i++) {
    int32_t axis = n_axes > 0 ? onnx_axis(axes[i], rank) : i;
    if (axis < 0 || axis >= rank) return ONNX_REFUSE(n, "an axis that the operand lacks");
    int64_t more = wanted[i] - onnx_type(n, 0)->dims[axis];
    if (more < 0)
      parts[axis] = onnx_print(n, "%lld:%lld", (long long)(-more / 2), (long long)(-more / 2 + wanted[i]));
    if (more > 0) low[axis] = more / 2, high[axis] = more - more / 2;
  }
  for (int32_t i = 0; i < rank; i++) part = onnx_print(n, "%s%s%s", part, i > 0 ? ", " : "", parts[i]);
  return onnx_compute(n, "pad(%s[%s], %s, %s)", x, part, onnx_list_text(n, low, rank, false),
                      onnx_list_text(n, high, rank, false));
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

const onnx_row onnx_shape_rows[] = {
    {"Reshape", row_new_dims, NULL},
    {"Flatten", row_new_dims, NULL},
    {"Squeeze", row_new_dims, NULL},
    {"Unsqueeze", row_new_dims, NULL},
    {"Transpose", row_transpose, NULL},
    {"Split", row_split, NULL},
    {"Slice", row_slice, NULL},
    {"Expand", row_expand, NULL, 2},
    {"ConstantOfShape", row_filled, NULL},
    {"Tile", row_tile, NULL},
    {"Pad", row_pad, NULL},
    {"DepthToSpace", row_depth_to_space, NULL},
    {"SpaceToDepth", row_space_to_depth, NULL},
    {"CenterCropPad", row_center, NULL, 2},
    {"Trilu", row_trilu, NULL},
    {NULL, NULL, NULL},
};

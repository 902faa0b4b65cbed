/* core/onnx/rows/indices.c: operators that take or write elements by their indices. Indices of ONNX may count
 * from the end. */
#include <string.h>

#include "core/onnx/import.h"

/* Indices that are known not to be negative stay; others are taken modulo the size. */
static const char *index_text(const onnx_use *n, int32_t i, int64_t size) {
  int64_t count = 0;
  const double *known = onnx_peek(n, i, &count);
  const char *text = onnx_text_of(n, i, false);
  bool negative = known == NULL;
  for (int64_t k = 0; known != NULL && k < count; k++) negative = negative || known[k] < 0;
  if (text == NULL || !negative) return text;
  if (onnx_is_batch(n->m, size)) {
    ONNX_REFUSE(n, "indices of samples");
    return NULL;
  }
  return onnx_print(n, "%s %% %lld", text, (long long)size);
}

/* ---- along one axis ---- */

static bool gathers_rows(const onnx_use *n) {
  return onnx_whole(n, "axis", 0) == 0 && onnx_is_weight(n, 0, 2) && onnx_operand(n, 0)->is_weight &&
         onnx_operand(n, 1)->line != NULL && onnx_type(n, 1)->rank > 0;
}

/* Element `at` of the axis, in a line that computes: x[:, 3]. */
static tn_status gather_one(const onnx_use *n, int32_t axis, int64_t at) {
  const char *x = onnx_text_of(n, 0, false), *parts = "";
  if (x == NULL) return onnx_failed(n);
  for (int32_t i = 0; i < axis; i++) parts = onnx_print(n, "%s:, ", parts);
  return onnx_compute(n, "%s[%s%lld]", x, parts, (long long)at);
}

/* All elements, in the shape of the index. */
static tn_status gather_all(const onnx_use *n) {
  const tn_type *index = onnx_type(n, 1);
  const char *x = onnx_text_of(n, 0, false), *dims = onnx_dims_text(n, index->dims, index->rank);
  return x != NULL && dims != NULL ? onnx_emit(n, &x, 1, "op.reshape(dims=%s)", dims) : onnx_failed(n);
}

static tn_status row_gather(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0), index = *onnx_type(n, 1);
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 0), x.rank);
  int64_t count;
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (gathers_rows(n))
    return onnx_layer(n, 1, n, &(onnx_layer_weight){.name = "weight", .from = n->node->in[0]}, 1,
                      onnx_print(n, "embedding(%lld, %lld)", (long long)x.dims[0], (long long)x.dims[1]));
  if (axis == 0 && onnx_is_whole_list(n, 0, 1)) return gather_all(n);
  const double *known = onnx_peek(n, 1, &count);
  if (known != NULL && count == 1 && index.rank == 0) return gather_one(n, axis, onnx_to_whole(known[0]));
  const char *operands[] = {onnx_text_of(n, 0, false), index_text(n, 1, x.dims[axis])};
  if (operands[0] == NULL || operands[1] == NULL) return onnx_failed(n);
  return onnx_emit(n, operands, 2, "index_select(axis=%d)", axis);
}

static tn_status row_gather_elements(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0);
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 0), x.rank);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  const char *operands[] = {onnx_text_of(n, 0, false), index_text(n, 1, x.dims[axis])};
  if (operands[0] == NULL || operands[1] == NULL) return onnx_failed(n);
  return onnx_emit(n, operands, 2, "gather(axis=%d)", axis);
}

/* The mode of scatter for a reduction; NULL: it has none. */
static const char *scatter_mode(const onnx_use *n) {
  static const char *const modes[][2] = {{"none", "set"}, {"add", "add"}, {"max", "max"}, {"min", "min"}};
  const char *wanted = onnx_word(n, "reduction", "none");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(modes[i][0], wanted) == 0) return modes[i][1];
  ONNX_REFUSE(n, "updates that multiply");
  return NULL;
}

static tn_status row_scatter_elements(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0);
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 0), x.rank);
  const char *mode = scatter_mode(n);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  const char *operands[] = {onnx_text_of(n, 0, false), index_text(n, 1, x.dims[axis]),
                            onnx_text_of(n, 2, false)};
  if (mode == NULL || operands[0] == NULL || operands[1] == NULL || operands[2] == NULL)
    return onnx_failed(n);
  return onnx_emit(n, operands, 3, "scatter(axis=%d, mode=%s)", axis, mode);
}

/* Where a known condition holds. */
static tn_status row_compress(const onnx_use *n) {
  int64_t count, found = 0;
  const double *known = onnx_known(n, 1, &count);
  const tn_onnx_attribute *axis = onnx_attribute(n, "axis");
  const char *x = onnx_text_of(n, 0, false);
  double *at = known != NULL ? tn_arena_alloc(&n->m->arena, (size_t)count * sizeof *at + 1) : NULL;
  if (known == NULL || x == NULL) return onnx_failed(n);
  if (at == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < count; i++)
    if (known[i] != 0) at[found++] = (double)i;
  const tn_type type = {.dtype = TN_I64, .rank = 1, .dims = {found}};
  const char *name = onnx_print(n, "%s.chosen", n->node->out[0]);
  TN_TRY(onnx_add_value(n->m, &(onnx_value){.name = name, .known = at, .type = type}));
  const char *index = onnx_line_of(n, name);
  if (index == NULL) return onnx_failed(n);
  if (axis == NULL) return onnx_compute(n, "index_select(op.reshape(%s, dims=[-1]), %s)", x, index);
  return onnx_compute(n, "index_select(%s, %s, axis=%lld)", x, index, (long long)axis->whole);
}

/* ---- along several axes ---- */

/* Indices (..., k) of the dimensions from `first` on as positions in those dimensions laid flat. */
typedef struct flat_index {
  int64_t places, before; /* elements of the flat dimensions, and those of the dimensions in front of them */
  int64_t dims[TN_MAX_RANK]; /* of x with the flat dimension in their place */
  int32_t rank;
  const char *text;
} flat_index;

static tn_status flat_positions(const onnx_use *n, const tn_type *x, int32_t first, int32_t k,
                                flat_index *f) {
  const char *index = onnx_text_of(n, 1, false), *sum = "";
  int64_t stride = 1;
  if (index == NULL) return onnx_failed(n);
  for (int32_t i = k - 1; i >= 0; i--) {
    int64_t size = x->dims[first + i];
    const char *part = onnx_print(n, "%s[..., %d]", index, i);
    if (!onnx_is_batch(n->m, size)) part = onnx_print(n, "%s %% %lld", part, (long long)size);
    if (stride != 1) part = onnx_print(n, "%s * %lld", part, (long long)stride);
    sum = onnx_print(n, "%s%s%s", part, sum[0] != '\0' ? " + " : "", sum);
    stride *= size;
  }
  f->places = stride;
  f->text = sum;
  return TN_OK;
}

/* Adds the positions of the `first` dimensions that x and the indices share. */
static const char *flat_shared(const onnx_use *n, const tn_type *x, int32_t first, const flat_index *f) {
  const tn_type *index = onnx_type(n, 1);
  const char *dims = "", *count;
  for (int32_t i = 0; i < index->rank - 1; i++)
    dims = onnx_print(n, "%s%s%s", dims, i > 0 ? ", " : "", i < first ? onnx_size_text(n, x->dims[i]) : "1");
  if (first == 1)
    count = onnx_print(n, "iota([%s], dtype=%s)", dims, tn_dtype_name(index->dtype));
  else
    count = onnx_print(n, "op.reshape(iota([%lld], dtype=%s), dims=[%s])", (long long)f->before,
                       tn_dtype_name(index->dtype), dims);
  return onnx_print(n, "%s * %lld + %s", count, (long long)f->places, f->text);
}

static tn_status flat_read(const onnx_use *n, int32_t first, flat_index *f) {
  const tn_type x = *onnx_type(n, 0), index = *onnx_type(n, 1);
  int32_t k = index.rank > 0 ? (int32_t)index.dims[index.rank - 1] : 0;
  if (k < 1 || first < 0 || first + k > x.rank || first >= index.rank)
    return ONNX_REFUSE(n, "indices of %d of %d dimensions", k, x.rank);
  *f = (flat_index){.before = 1};
  for (int32_t i = 0; i < first; i++) f->before *= x.dims[i];
  for (int32_t i = 0; i < first; i++)
    if (onnx_is_batch(n->m, x.dims[i]) && first > 1)
      return ONNX_REFUSE(n, "indices of several dimensions with the batch");
  TN_TRY(flat_positions(n, &x, first, k, f));
  f->dims[f->rank++] = f->before * f->places;
  for (int32_t i = first + k; i < x.rank; i++) f->dims[f->rank++] = x.dims[i];
  if (first > 0) f->text = flat_shared(n, &x, first, f);
  return TN_OK;
}

static tn_status row_gather_nd(const onnx_use *n) {
  flat_index f;
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  TN_TRY(flat_read(n, (int32_t)onnx_whole(n, "batch_dims", 0), &f));
  const char *dims = onnx_dims_text(n, f.dims, f.rank);
  if (dims == NULL) return onnx_failed(n);
  return onnx_compute(n, "index_select(op.reshape(%s, dims=%s), %s)", x, dims, f.text);
}

static tn_status row_scatter_nd(const onnx_use *n) {
  flat_index f;
  const tn_type x = *onnx_type(n, 0);
  const char *mode = scatter_mode(n), *data = onnx_text_of(n, 0, false), *updates = onnx_text_of(n, 2, false);
  if (mode == NULL || data == NULL || updates == NULL) return onnx_failed(n);
  TN_TRY(flat_read(n, 0, &f));
  int64_t list[TN_MAX_RANK], *dims = list;
  memcpy(dims, f.dims, sizeof f.dims);
  dims[0] = tn_type_count(onnx_type(n, 1)) / onnx_type(n, 1)->dims[onnx_type(n, 1)->rank - 1];
  const char *flat = onnx_dims_text(n, f.dims, f.rank), *rows = onnx_dims_text(n, dims, f.rank),
             *own = onnx_dims_text(n, x.dims, x.rank), *many = onnx_dims_text(n, dims, 1);
  if (flat == NULL || rows == NULL || own == NULL || many == NULL) return onnx_failed(n);
  return onnx_compute(n,
                      "op.reshape(scatter(op.reshape(%s, dims=%s), op.reshape(%s, dims=%s), "
                      "op.reshape(%s, dims=%s), axis=0, mode=%s), dims=%s)",
                      data, flat, f.text, many, updates, rows, mode, own);
}

/* ---- ones at an index ---- */

static tn_status row_one_hot(const onnx_use *n) {
  int64_t count;
  const double *depth = onnx_known(n, 1, &count);
  const char *index = onnx_text_of(n, 0, false), *values = onnx_text_of(n, 2, false);
  int32_t rank = onnx_type(n, 0)->rank;
  if (depth == NULL || index == NULL || values == NULL) return onnx_failed(n);
  long long classes = onnx_to_whole(depth[0]), axis = onnx_whole(n, "axis", -1);
  if (onnx_type(n, 0)->dtype == TN_F32) index = onnx_let(n, "cast(%s, to=i64)", index);
  if (rank == 0 || index == NULL) return ONNX_REFUSE(n, "an index without dimensions");
  const char *ones = onnx_let(n, "one_hot(%s + %lld if %s < 0 else %s, classes=%lld) > 0", index, classes,
                              index, index, classes);
  if (ones != NULL && axis != -1 && axis != rank)
    ones = onnx_let(n, "movedim(%s, [-1], [%lld])", ones, axis < 0 ? axis + rank + 1 : axis);
  return ones != NULL ? onnx_compute(n, "%s[1] if %s else %s[0]", values, ones, values) : onnx_failed(n);
}

static tn_status row_hardmax(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0);
  bool old = n->m->file->opset < 13;
  int32_t axis = onnx_axis(onnx_whole(n, "axis", old ? 1 : -1), x.rank);
  const char *text = onnx_text_of(n, 0, false);
  if (text == NULL) return onnx_failed(n);
  if (axis < 0 || (old && axis != x.rank - 1)) return ONNX_REFUSE(n, "hardmax over several dimensions");
  const char *ones = onnx_print(n, "one_hot(argmax(%s, axis=%d), classes=%lld, dtype=f32)", text, axis,
                                (long long)x.dims[axis]);
  return axis == x.rank - 1 ? onnx_compute(n, "%s", ones)
                            : onnx_compute(n, "movedim(%s, [-1], [%d])", ones, axis);
}

static tn_status row_eye(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0);
  const tn_onnx_attribute *type = onnx_attribute(n, "dtype");
  long long k = onnx_whole(n, "k", 0);
  if (x.rank != 2 || onnx_is_batch(n->m, x.dims[0]))
    return ONNX_REFUSE(n, "a matrix as large as the batch, or an operand of %d dimensions", x.rank);
  int32_t dtype = type != NULL ? onnx_value_dtype((int32_t)type->whole) : x.dtype;
  if (dtype == TN_ANY) return ONNX_REFUSE(n, "elements of a type that Tenon lacks");
  return onnx_compute(n,
                      "cast(triangular_mask(rows=%lld, columns=%lld, diagonal=%lld) and not "
                      "triangular_mask(rows=%lld, columns=%lld, diagonal=%lld), to=%s)",
                      (long long)x.dims[0], (long long)x.dims[1], k, (long long)x.dims[0],
                      (long long)x.dims[1], k - 1, tn_dtype_name(dtype));
}

/* ---- along sequences ---- */

/* "[:, None, None]": the dimensions in front of and behind one of `rank`. */
static const char *beside(const onnx_use *n, int32_t axis, int32_t rank) {
  const char *text = "";
  for (int32_t i = 0; i < rank; i++)
    text = onnx_print(n, "%s%s%s", text, i > 0 ? ", " : "", i == axis ? ":" : "None");
  return onnx_print(n, "[%s]", text);
}

static const char *dims_list(const onnx_use *n, const tn_type *type) {
  const char *text = "";
  for (int32_t i = 0; i < type->rank; i++)
    text = onnx_print(n, "%s%s%s", text, i > 0 ? ", " : "", onnx_size_text(n, type->dims[i]));
  return onnx_print(n, "[%s]", text);
}

static tn_status row_reverse_sequence(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0);
  int32_t time = (int32_t)onnx_whole(n, "time_axis", 0), batch = (int32_t)onnx_whole(n, "batch_axis", 1);
  const char *text = onnx_text_of(n, 0, false), *length = onnx_text_of(n, 1, false);
  if (text == NULL || length == NULL) return onnx_failed(n);
  if (time < 0 || batch < 0 || time > 1 || batch > 1 || time == batch || x.rank < 2)
    return ONNX_REFUSE(n, "sequences along another axis");
  const char *dtype = tn_dtype_name(onnx_type(n, 1)->dtype);
  const char *step =
      onnx_let(n, "iota([%s], dtype=%s)%s", onnx_size_text(n, x.dims[time]), dtype, beside(n, time, x.rank));
  const char *ends = onnx_let(n, "%s%s", length, beside(n, batch, x.rank));
  if (step == NULL || ends == NULL) return onnx_failed(n);
  return onnx_compute(n, "gather(%s, op.broadcast(%s - 1 - %s if %s < %s else %s, dims=%s), axis=%d)", text,
                      ends, step, step, ends, step, dims_list(n, &x), time);
}

static tn_status row_tensor_scatter(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0), update = *onnx_type(n, 1);
  int32_t axis = onnx_axis(onnx_whole(n, "axis", -2), x.rank);
  const char *cache = onnx_text_of(n, 0, false), *more = onnx_text_of(n, 1, false), *start = "0";
  if (axis < 1) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (onnx_has(n, 2)) {
    const char *text = onnx_text_of(n, 2, false);
    start = text != NULL ? onnx_print(n, "%s%s", text, beside(n, 0, x.rank)) : NULL;
  }
  if (cache == NULL || more == NULL || start == NULL) return onnx_failed(n);
  const char *dtype = onnx_has(n, 2) ? tn_dtype_name(onnx_type(n, 2)->dtype) : "i64";
  const char *at = onnx_let(n, "(iota([%lld], dtype=%s)%s + %s) %% %lld", (long long)update.dims[axis], dtype,
                            beside(n, axis, x.rank), start, (long long)x.dims[axis]);
  if (at == NULL) return onnx_failed(n);
  return onnx_compute(n, "scatter(%s, op.broadcast(%s, dims=%s), %s, axis=%d, mode=set)", cache, at,
                      dims_list(n, &update), more, axis);
}

/* ---- counting ---- */

/* Its operands are known, so that it was computed; else the message says which is not. */
static tn_status row_known(const onnx_use *n) {
  int64_t count;
  for (int32_t i = 0; i < n->node->n_in; i++)
    if (onnx_known(n, i, &count) == NULL) return onnx_failed(n);
  return ONNX_REFUSE(n, "more than %d known numbers", ONNX_MOST_COMPUTED);
}

/* Numbers of the samples; other ranges are known. */
static tn_status row_range(const onnx_use *n) {
  int64_t count;
  const double *start = onnx_known(n, 0, &count), *stop = onnx_known(n, 1, &count),
               *by = onnx_known(n, 2, &count);
  if (start == NULL || stop == NULL || by == NULL) return onnx_failed(n);
  if (start[0] != 0 || by[0] != 1 || n->m->whole || stop[0] != ONNX_BATCH) return row_known(n);
  return onnx_compute(n, "iota([%s], dtype=%s)", onnx_size_text(n, ONNX_BATCH),
                      tn_dtype_name(onnx_type(n, 1)->dtype));
}

const onnx_row onnx_index_rows[] = {
    {"Gather", row_gather, NULL, 2},
    {"GatherElements", row_gather_elements, NULL, 2},
    {"GatherND", row_gather_nd, NULL, 2},
    {"Scatter", row_scatter_elements, NULL, 3},
    {"ScatterElements", row_scatter_elements, NULL, 3},
    {"ScatterND", row_scatter_nd, NULL, 3},
    {"TensorScatter", row_tensor_scatter, NULL, 2},
    {"ReverseSequence", row_reverse_sequence, NULL, 2},
    {"Compress", row_compress, NULL, 2},
    {"OneHot", row_one_hot, NULL, 3},
    {"Hardmax", row_hardmax, NULL},
    {"EyeLike", row_eye, NULL},
    {"Range", row_range, NULL, 3},
    {"HannWindow", row_known, NULL},
    {"HammingWindow", row_known, NULL},
    {"BlackmanWindow", row_known, NULL},
    {NULL, NULL, NULL},
};

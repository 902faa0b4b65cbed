/* core/onnx/fold.c: arithmetic of shapes. Exporters compute the dimensions of `Reshape` and `Expand` by
 * nodes; their values are known here, because the shapes of all values are. */
#include <math.h>
#include <string.h>

#include "core/onnx/import.h"

/* The known operands of a node, and the result that it computes. */
typedef struct fold_work {
  const onnx_use *n;
  const double *v[ONNX_MOST_OPERANDS];
  const tn_type *type[ONNX_MOST_OPERANDS];
  int64_t count[ONNX_MOST_OPERANDS];
  tn_type out;
  double *to;
} fold_work;

static tn_status fold_new(fold_work *w) {
  onnx_import *m = w->n->m;
  int64_t count = 1;
  for (int32_t i = 0; i < w->out.rank && count >= 0; i++) {
    int64_t size = w->out.dims[i];
    bool fits = size >= 0 && !onnx_is_batch(m, size) && (size == 0 || count <= ONNX_MOST_COMPUTED / size);
    count = fits ? count * size : -1;
  }
  if (count < 0 || m->computed + count > ONNX_MOST_COMPUTED_IN_ALL)
    return ONNX_REFUSE(w->n, "more than %d known numbers, or one for each sample", ONNX_MOST_COMPUTED);
  m->computed += count;
  w->to = tn_arena_alloc(&w->n->m->arena, (size_t)count * sizeof *w->to + 1);
  return w->to != NULL ? TN_OK : TN_ENOMEM;
}

static void fold_list(fold_work *w, int64_t count, int32_t dtype) {
  w->out = (tn_type){.dtype = dtype, .rank = 1, .dims = {count}};
}

/* ---- numbers ---- */

typedef double (*fold_function)(double x, double y);
static double fold_add(double x, double y) { return x + y; }
static double fold_sub(double x, double y) { return x - y; }
static double fold_mul(double x, double y) { return x * y; }
static double fold_div(double x, double y) { return x / y; }
static double fold_quotient(double x, double y) { return y == 0 ? 0 : trunc(x / y); }
static double fold_mod(double x, double y) { return y == 0 ? 0 : x - floor(x / y) * y; }
static double fold_eq(double x, double y) { return x == y; }
static double fold_gt(double x, double y) { return x > y; }
static double fold_ge(double x, double y) { return x >= y; }
static double fold_lt(double x, double y) { return x < y; }
static double fold_le(double x, double y) { return x <= y; }
static double fold_and(double x, double y) { return x != 0 && y != 0; }
static double fold_or(double x, double y) { return x != 0 || y != 0; }
static double fold_neg(double x, double y) { return (void)y, -x; }
static double fold_not(double x, double y) { return (void)y, x == 0; }
static double fold_floor(double x, double y) { return (void)y, floor(x); }
static double fold_ceil(double x, double y) { return (void)y, ceil(x); }
static double fold_abs(double x, double y) { return (void)y, fabs(x); }
static double fold_sqrt(double x, double y) { return (void)y, sqrt(x); }
static double fold_copy(double x, double y) { return (void)y, x; }
static double fold_cos(double x, double y) { return (void)y, cos(x); }
static double fold_sin(double x, double y) { return (void)y, sin(x); }
static double fold_exp(double x, double y) { return (void)y, exp(x); }
static double fold_log(double x, double y) { return (void)y, log(x); }
static double fold_reciprocal(double x, double y) { return (void)y, 1 / x; }

typedef struct fold_row {
  const char *op;
  fold_function of;
  bool is_bool;
} fold_row;

static const fold_row fold_rows[] = {
    {"Add", fold_add, false},       {"Sub", fold_sub, false}, {"Mul", fold_mul, false},
    {"Div", fold_div, false},       {"Mod", fold_mod, false}, {"Max", fmax, false},
    {"Min", fmin, false},           {"Pow", pow, false},      {"Equal", fold_eq, true},
    {"Greater", fold_gt, true},     {"Less", fold_lt, true},  {"GreaterOrEqual", fold_ge, true},
    {"LessOrEqual", fold_le, true}, {"And", fold_and, true},  {"Or", fold_or, true},
    {"Neg", fold_neg, false},       {"Not", fold_not, true},  {"Floor", fold_floor, false},
    {"Ceil", fold_ceil, false},     {"Abs", fold_abs, false}, {"Sqrt", fold_sqrt, false},
    {"Identity", fold_copy, false}, {"Cos", fold_cos, false}, {"Sin", fold_sin, false},
    {"Exp", fold_exp, false},       {"Log", fold_log, false}, {"Reciprocal", fold_reciprocal, false},
};

/* The dimensions of the result of several operands, which broadcast. */
static tn_status fold_broadcast(fold_work *w, int32_t operands) {
  w->out = (tn_type){.dtype = w->type[0]->dtype};
  for (int32_t i = 0; i < operands; i++)
    if (w->type[i]->rank > w->out.rank) w->out.rank = w->type[i]->rank;
  for (int32_t d = 0; d < w->out.rank; d++) {
    w->out.dims[d] = 1;
    for (int32_t i = 0; i < operands; i++) {
      int32_t own = d - (w->out.rank - w->type[i]->rank);
      int64_t size = own >= 0 ? w->type[i]->dims[own] : 1;
      if (size != 1 && w->out.dims[d] != 1 && size != w->out.dims[d])
        return ONNX_REFUSE(w->n, "known numbers of several shapes");
      if (size != 1) w->out.dims[d] = size;
    }
  }
  return fold_new(w);
}

/* Where element `at` of the result is in an operand. */
static int64_t fold_place(const fold_work *w, int32_t operand, int64_t at) {
  const tn_type *type = w->type[operand];
  int64_t place = 0, stride = 1;
  for (int32_t d = w->out.rank - 1, own = type->rank - 1; own >= 0; d--, own--) {
    place += type->dims[own] == 1 ? 0 : at % w->out.dims[d] * stride;
    at /= w->out.dims[d];
    stride *= type->dims[own];
  }
  return place;
}

static tn_status fold_elements(fold_work *w, const fold_row *row) {
  int32_t other = w->n->node->n_in > 1 ? 1 : 0;
  if (w->n->node->n_in > 2) return ONNX_REFUSE(w->n, "more than two operands");
  bool whole = w->type[0]->dtype != TN_F32;
  fold_function of = row->of == fold_div && whole ? fold_quotient : row->of;
  TN_TRY(fold_broadcast(w, other + 1));
  if (row->is_bool) w->out.dtype = TN_BOOL;
  for (int64_t i = 0; i < tn_type_count(&w->out); i++)
    w->to[i] = of(w->v[0][fold_place(w, 0, i)], w->v[other][fold_place(w, other, i)]);
  return TN_OK;
}

static tn_status fold_where(fold_work *w) {
  TN_TRY(fold_broadcast(w, 3));
  w->out.dtype = w->type[1]->dtype;
  for (int64_t i = 0; i < tn_type_count(&w->out); i++) {
    int32_t from = w->v[0][fold_place(w, 0, i)] != 0 ? 1 : 2;
    w->to[i] = w->v[from][fold_place(w, from, i)];
  }
  return TN_OK;
}

static tn_status fold_cast(fold_work *w) {
  bool like = w->n->node->n_in > 1;
  w->out = *w->type[0];
  w->out.dtype = like ? w->type[1]->dtype : onnx_value_dtype((int32_t)onnx_whole(w->n, "to", TN_ONNX_FLOAT));
  TN_TRY(fold_new(w));
  bool whole = w->out.dtype != TN_F32;
  for (int64_t i = 0; i < w->count[0]; i++)
    w->to[i] = w->out.dtype == TN_BOOL ? w->v[0][i] != 0 : whole ? trunc(w->v[0][i]) : w->v[0][i];
  return TN_OK;
}

/* ---- lists ---- */

static tn_status fold_same(fold_work *w, int32_t rank, const int64_t *dims) {
  w->out = (tn_type){.dtype = w->type[0]->dtype, .rank = rank};
  if (rank > 0) memcpy(w->out.dims, dims, (size_t)rank * sizeof *dims);
  TN_TRY(fold_new(w));
  if (tn_type_count(&w->out) != w->count[0]) return ONNX_REFUSE(w->n, "known numbers of another shape");
  memcpy(w->to, w->v[0], (size_t)w->count[0] * sizeof *w->to);
  return TN_OK;
}

/* Operators that change the dimensions alone; those of the row, too. */
static tn_status fold_dims(fold_work *w) {
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  TN_TRY(onnx_new_dims(w->n, dims, &rank));
  return fold_same(w, rank, dims);
}

/* Strides of the first operand, in elements. */
static void fold_strides(const fold_work *w, int64_t stride[TN_MAX_RANK]) {
  int64_t step = 1;
  for (int32_t d = w->type[0]->rank - 1; d >= 0; step *= w->type[0]->dims[d--]) stride[d] = step;
}

/* The first operand's elements from `base` on, which lie in these strides along the dimensions of the result.
 */
static tn_status fold_walk(fold_work *w, int64_t base, const int64_t stride[TN_MAX_RANK]) {
  TN_TRY(fold_new(w));
  for (int64_t i = 0; i < tn_type_count(&w->out); i++) {
    int64_t left = i, at = base;
    for (int32_t d = w->out.rank - 1; d >= 0; left /= w->out.dims[d--])
      at += left % w->out.dims[d] * stride[d];
    w->to[i] = w->v[0][at];
  }
  return TN_OK;
}

static tn_status fold_transpose(fold_work *w) {
  const int64_t *order;
  int32_t count, rank = w->type[0]->rank;
  int64_t own[TN_MAX_RANK], stride[TN_MAX_RANK];
  TN_TRY(onnx_wholes(w->n, "perm", -1, &order, &count));
  w->out = *w->type[0];
  fold_strides(w, own);
  for (int32_t i = 0; i < rank; i++) {
    int64_t from = count == rank ? order[i] : rank - 1 - i;
    if (from < 0 || from >= rank) return ONNX_REFUSE(w->n, "an order of other dimensions");
    w->out.dims[i] = w->type[0]->dims[from];
    stride[i] = own[from];
  }
  return fold_walk(w, 0, stride);
}

/* The dimensions of the index in place of the axis. */
static tn_status fold_gather_type(fold_work *w, int32_t axis) {
  const tn_type *x = w->type[0], *index = w->type[1];
  if (axis < 0 || x->rank - 1 + index->rank > TN_MAX_RANK)
    return ONNX_REFUSE(w->n, "an axis of known numbers");
  w->out = (tn_type){.dtype = x->dtype};
  for (int32_t d = 0; d < x->rank; d++) {
    if (d != axis) w->out.dims[w->out.rank++] = x->dims[d];
    for (int32_t k = 0; d == axis && k < index->rank; k++) w->out.dims[w->out.rank++] = index->dims[k];
  }
  return fold_new(w);
}

static tn_status fold_gather(fold_work *w) {
  int32_t axis = onnx_axis(onnx_whole(w->n, "axis", 0), w->type[0]->rank);
  int64_t behind = 1;
  TN_TRY(fold_gather_type(w, axis));
  int64_t size = w->type[0]->dims[axis];
  for (int32_t d = axis + 1; d < w->type[0]->rank; d++) behind *= w->type[0]->dims[d];
  for (int64_t i = 0; i < tn_type_count(&w->out); i++) {
    int64_t at = onnx_to_whole(w->v[1][i / behind % w->count[1]]);
    if (at < 0) at += size;
    if (at < 0 || at >= size) return ONNX_REFUSE(w->n, "an index beyond a list of known numbers");
    w->to[i] = w->v[0][(i / behind / w->count[1] * size + at) * behind + i % behind];
  }
  return TN_OK;
}

/* The dimensions of the operands, of which `axis` is the sum. */
static tn_status fold_concat_type(fold_work *w, int32_t axis) {
  w->out = *w->type[0];
  for (int32_t i = 1; i < w->n->node->n_in; i++) {
    const tn_type *x = w->type[i];
    bool same = x->rank == w->out.rank;
    for (int32_t d = 0; d < w->out.rank && same; d++) same = d == axis || x->dims[d] == w->out.dims[d];
    if (!same) return ONNX_REFUSE(w->n, "known numbers of several shapes");
    w->out.dims[axis] += x->dims[axis];
  }
  return fold_new(w);
}

static tn_status fold_concat(fold_work *w) {
  int32_t axis = onnx_axis(onnx_whole(w->n, "axis", 0), w->type[0]->rank);
  int64_t before = 1, at = 0;
  if (axis < 0) return ONNX_REFUSE(w->n, "an axis that the operand lacks");
  TN_TRY(fold_concat_type(w, axis));
  for (int32_t d = 0; d < axis; d++) before *= w->out.dims[d];
  for (int64_t row = 0; row < before; row++)
    for (int32_t i = 0; i < w->n->node->n_in; i++) {
      int64_t part = w->count[i] / before;
      memcpy(w->to + at, w->v[i] + row * part, (size_t)part * sizeof *w->to);
      at += part;
    }
  return TN_OK;
}

/* Where the row of a list of indices begins in the operand; -1: beyond it. */
static int64_t fold_index(const fold_work *w, const double *index, int32_t n) {
  int64_t at = 0;
  for (int32_t d = 0; d < n; d++) {
    int64_t size = w->type[0]->dims[d], i = onnx_to_whole(index[d]);
    if (i < 0) i += size;
    if (i < 0 || i >= size) return -1;
    at = at * size + i;
  }
  return at;
}

static tn_status fold_scatter(fold_work *w) {
  const tn_type *index = w->type[1];
  int64_t depth = index->rank > 0 ? index->dims[index->rank - 1] : 0, part = 1;
  if (depth < 1 || depth > w->type[0]->rank || strcmp(onnx_word(w->n, "reduction", "none"), "none") != 0)
    return ONNX_REFUSE(w->n, "known numbers that are added");
  for (int32_t d = (int32_t)depth; d < w->type[0]->rank; d++) part *= w->type[0]->dims[d];
  int64_t rows = w->count[1] / depth;
  if (w->count[2] != rows * part) return ONNX_REFUSE(w->n, "known numbers of another shape");
  TN_TRY(fold_same(w, w->type[0]->rank, w->type[0]->dims));
  for (int64_t i = 0; i < rows; i++) {
    int64_t at = fold_index(w, w->v[1] + i * depth, (int32_t)depth);
    if (at < 0) return ONNX_REFUSE(w->n, "an index beyond known numbers");
    memcpy(w->to + at * part, w->v[2] + i * part, (size_t)part * sizeof *w->to);
  }
  return TN_OK;
}

static int64_t fold_clamp(double x, int64_t low, int64_t high) {
  return x < (double)low ? low : x > (double)high ? high : (int64_t)x;
}

/* A part along each axis: elements first, first + step ... of the operand. */
typedef struct fold_part {
  int64_t first[TN_MAX_RANK], step[TN_MAX_RANK];
} fold_part;

/* Entry i of starts, ends, axes and steps. Behind the last axis, and in front of the first, lie the places -1
 * and size - 1 for steps that go back. */
static tn_status fold_slice_axis(fold_work *w, int64_t i, fold_part *part) {
  double start = w->v[1][i], stop = w->v[2][i], step = w->n->node->n_in > 4 ? w->v[4][i] : 1;
  int32_t axis = onnx_axis(w->n->node->n_in > 3 ? onnx_to_whole(w->v[3][i]) : i, w->out.rank);
  if (axis < 0 || step == 0)
    return ONNX_REFUSE(w->n, "a part along an axis that the operand lacks, or with steps of 0");
  int64_t n = w->type[0]->dims[axis], by = onnx_to_whole(step), low = by < 0 ? -1 : 0,
          high = by < 0 ? n - 1 : n;
  int64_t from = fold_clamp(start < 0 ? start + (double)n : start, low, high);
  int64_t to = fold_clamp(stop < 0 ? stop + (double)n : stop, low, high);
  int64_t count = by > 0 ? (to - from + by - 1) / by : (from - to - by - 1) / -by;
  part->first[axis] = from;
  part->step[axis] = by;
  w->out.dims[axis] = count > 0 ? count : 0;
  return TN_OK;
}

static tn_status fold_slice(fold_work *w) {
  fold_part part = {.first = {0}};
  int64_t base = 0, stride[TN_MAX_RANK];
  w->out = *w->type[0];
  fold_strides(w, stride);
  for (int32_t d = 0; d < TN_MAX_RANK; d++) part.step[d] = 1;
  for (int32_t i = 2; i < w->n->node->n_in; i++)
    if (w->count[i] != w->count[1]) return ONNX_REFUSE(w->n, "lists of several lengths");
  for (int64_t i = 0; i < w->count[1]; i++) TN_TRY(fold_slice_axis(w, i, &part));
  for (int32_t d = 0; d < w->out.rank; d++) {
    base += part.first[d] * stride[d];
    stride[d] *= part.step[d];
  }
  return fold_walk(w, base, stride);
}

static tn_status fold_range(fold_work *w) {
  double start = w->v[0][0], stop = w->v[1][0], by = w->v[2][0];
  double count = by != 0 ? ceil((stop - start) / by) : 0;
  fold_list(w,
            count > 0 && count <= ONNX_MOST_COMPUTED ? (int64_t)count
            : count > 0                              ? ONNX_MOST_COMPUTED + 1
                                                     : 0,
            w->type[0]->dtype);
  TN_TRY(fold_new(w));
  for (int64_t i = 0; i < w->out.dims[0]; i++) w->to[i] = start + by * (double)i;
  return TN_OK;
}

static tn_status fold_product(fold_work *w) {
  w->out =
      (tn_type){.dtype = w->type[0]->dtype, .rank = onnx_whole(w->n, "keepdims", 1) ? 1 : 0, .dims = {1}};
  TN_TRY(fold_new(w));
  w->to[0] = 1;
  for (int64_t i = 0; i < w->count[0]; i++) w->to[0] *= w->v[0][i];
  return TN_OK;
}

static tn_status fold_filled(fold_work *w) {
  double number;
  TN_TRY(onnx_filled(w->n, &number, &w->out.dtype));
  if (w->count[0] > TN_MAX_RANK) return ONNX_REFUSE(w->n, "more than %d dimensions", TN_MAX_RANK);
  w->out.rank = (int32_t)w->count[0];
  for (int32_t i = 0; i < w->out.rank; i++) w->out.dims[i] = onnx_to_whole(w->v[0][i]);
  TN_TRY(fold_new(w));
  for (int64_t i = 0; i < tn_type_count(&w->out); i++) w->to[i] = number;
  return TN_OK;
}

static tn_status fold_expand(fold_work *w) {
  tn_type wanted = {.dtype = TN_F32, .rank = (int32_t)w->count[1]};
  if (w->count[1] > TN_MAX_RANK) return ONNX_REFUSE(w->n, "more than %d dimensions", TN_MAX_RANK);
  for (int64_t i = 0; i < w->count[1]; i++) wanted.dims[i] = onnx_to_whole(w->v[1][i]);
  w->type[1] = &wanted;
  TN_TRY(fold_broadcast(w, 2));
  for (int64_t i = 0; i < tn_type_count(&w->out); i++) w->to[i] = w->v[0][fold_place(w, 0, i)];
  return TN_OK;
}

/* Elements along an axis of a window of this size. */
typedef double (*fold_curve)(double angle);
static double curve_hann(double angle) { return 0.5 - 0.5 * cos(angle); }
static double curve_hamming(double angle) { return 25.0 / 46 - 21.0 / 46 * cos(angle); }
static double curve_blackman(double angle) { return 0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle); }

static tn_status fold_window(fold_work *w, fold_curve curve) {
  int64_t size = onnx_to_whole(w->v[0][0]), around = size - (onnx_whole(w->n, "periodic", 1) ? 0 : 1);
  if (w->count[0] != 1 || size < 1 || size > ONNX_MOST_COMPUTED)
    return ONNX_REFUSE(w->n, "a window of more than %d elements", ONNX_MOST_COMPUTED);
  fold_list(w, size, TN_F32);
  TN_TRY(fold_new(w));
  for (int64_t i = 0; i < size; i++)
    w->to[i] = curve(6.283185307179586 * (double)i / (double)(around > 0 ? around : 1));
  return TN_OK;
}
static tn_status fold_hann(fold_work *w) { return fold_window(w, curve_hann); }
static tn_status fold_hamming(fold_work *w) { return fold_window(w, curve_hamming); }
static tn_status fold_blackman(fold_work *w) { return fold_window(w, curve_blackman); }

typedef struct fold_special {
  const char *op;
  tn_status (*fold)(fold_work *w);
  int32_t least; /* operands */
} fold_special;

static const fold_special fold_specials[] = {
    {"Where", fold_where, 3},
    {"Cast", fold_cast, 1},
    {"CastLike", fold_cast, 2},
    {"Squeeze", fold_dims, 1},
    {"Unsqueeze", fold_dims, 1},
    {"Reshape", fold_dims, 1},
    {"Flatten", fold_dims, 1},
    {"Transpose", fold_transpose, 1},
    {"Gather", fold_gather, 2},
    {"Concat", fold_concat, 1},
    {"Slice", fold_slice, 3},
    {"ScatterND", fold_scatter, 3},
    {"Range", fold_range, 3},
    {"ReduceProd", fold_product, 1},
    {"ConstantOfShape", fold_filled, 1},
    {"Expand", fold_expand, 2},
    {"HannWindow", fold_hann, 1},
    {"HammingWindow", fold_hamming, 1},
    {"BlackmanWindow", fold_blackman, 1},
};

/* ---- nodes ---- */

/* Shape and Size read the type of a value alone. */
static tn_status fold_shape(const onnx_use *n, const onnx_value *x) {
  int64_t start = onnx_whole(n, "start", 0), end = onnx_whole(n, "end", x->type.rank), rank = x->type.rank;
  bool size = strcmp(n->node->op, "Size") == 0;
  double *to = tn_arena_alloc(&n->m->arena, (TN_MAX_RANK + 1) * sizeof *to);
  if (to == NULL) return TN_ENOMEM;
  tn_type type = {.dtype = TN_I64, .rank = size ? 0 : 1};
  start = start < 0 ? start + rank : start;
  end = end < 0 ? end + rank : end > rank ? rank : end;
  to[0] = (double)tn_type_count(&x->type);
  for (int64_t i = start < 0 ? 0 : start; !size && i < end; i++) to[type.dims[0]++] = (double)x->type.dims[i];
  return onnx_bind_known(n, 0, &type, to);
}

/* Weights are not computed with: they are trained. */
static bool fold_is_known(const onnx_use *n, fold_work *w) {
  for (int32_t i = 0; i < n->node->n_in; i++) {
    const onnx_value *x = onnx_operand(n, i);
    if (x == NULL || (x->is_weight && x->type.dtype == TN_F32 && tn_type_count(&x->type) > 1)) return false;
    w->v[i] = onnx_peek(n, i, &w->count[i]);
    if (w->v[i] == NULL) return false;
    w->type[i] = &onnx_operand(n, i)->type;
  }
  return n->node->n_in > 0;
}

static tn_status fold_compute(fold_work *w) {
  const char *op = w->n->node->op;
  for (size_t i = 0; i < sizeof fold_rows / sizeof *fold_rows; i++)
    if (strcmp(fold_rows[i].op, op) == 0) return fold_elements(w, &fold_rows[i]);
  for (size_t i = 0; i < sizeof fold_specials / sizeof *fold_specials; i++)
    if (strcmp(fold_specials[i].op, op) == 0 && w->n->node->n_in >= fold_specials[i].least)
      return fold_specials[i].fold(w);
  return ONNX_REFUSE(w->n, "known numbers");
}

static bool fold_is_shape(const char *op) { return strcmp(op, "Shape") == 0 || strcmp(op, "Size") == 0; }

bool onnx_folds(const char *op) {
  for (size_t i = 0; i < sizeof fold_specials / sizeof *fold_specials; i++)
    if (strcmp(fold_specials[i].op, op) == 0) return true;
  return fold_is_shape(op);
}

tn_status onnx_fold(const onnx_use *n, bool *folded) {
  fold_work w = {.n = n};
  *folded = fold_is_shape(n->node->op) && onnx_operand(n, 0) != NULL;
  if (*folded) return fold_shape(n, onnx_operand(n, 0));
  if (n->node->n_in > ONNX_MOST_OPERANDS || n->node->n_out != 1 || !fold_is_known(n, &w)) return TN_OK;
  tn_status status = fold_compute(&w);
  if (status == TN_EUNSUPPORTED) { /* a line computes it */
    tn_error_clear(n->m->env);
    return TN_OK;
  }
  *folded = status == TN_OK;
  return status == TN_OK ? onnx_bind_known(n, 0, &w.out, w.to) : status;
}

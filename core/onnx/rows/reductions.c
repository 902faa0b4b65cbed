/* core/onnx/rows/reductions.c: reductions, softmax, cumulative ops and order. */
#include <string.h>

#include "core/onnx/import.h"

/* "axes=[2, 3], keep=yes"; `axis` is the name of the axes' option. */
static tn_status reduction_options(const onnx_use *n, const char **options) {
  const int64_t *axes;
  int32_t count, rank = onnx_operand(n, 0)->type.rank;
  int64_t all[TN_MAX_RANK];
  TN_TRY(onnx_wholes(n, "axes", 1, &axes, &count));
  if (count > rank) return ONNX_REFUSE(n, "%d axes of %d dimensions", count, rank);
  for (int32_t i = 0; i < (count > 0 ? count : rank); i++) all[i] = count > 0 ? onnx_axis(axes[i], rank) : i;
  *options = onnx_print(n, "axes=%s%s", onnx_list_text(n, all, count > 0 ? count : rank, false),
                        onnx_whole(n, "keepdims", 1) ? ", keep=yes" : "");
  return TN_OK;
}

/* Whether it reduces no dimension: each element is its own result. */
static bool reduction_is_none(const onnx_use *n) {
  const int64_t *axes;
  int32_t count;
  if (!onnx_whole(n, "noop_with_empty_axes", 0) || onnx_wholes(n, "axes", 1, &axes, &count) != TN_OK)
    return false;
  return count <= 0;
}

static const char *reduction_of_none(const onnx_use *n, const char *before, const char *after,
                                     const char *x) {
  if (before != NULL) x = onnx_print(n, "%s(%s)", before, x);
  return after != NULL    ? onnx_print(n, "%s(%s)", after, x)
         : before != NULL ? x
                          : onnx_print(n, "copy(%s)", x);
}

static tn_status row_reduction(const onnx_use *n, const char *before, const char *op, const char *after) {
  const char *options = "", *x = onnx_text_of(n, 0, false);
  if (x != NULL && reduction_is_none(n)) return onnx_compute(n, "%s", reduction_of_none(n, before, after, x));
  TN_TRY(reduction_options(n, &options));
  if (x == NULL) return onnx_failed(n);
  if (before == NULL && after == NULL) return onnx_emit(n, &x, 1, "%s(%s)", op, options);
  const char *inner = before != NULL ? onnx_print(n, "%s(%s)", before, x) : x;
  if (after == NULL) return onnx_compute(n, "%s(%s, %s)", op, inner, options);
  return onnx_compute(n, "%s(%s(%s, %s))", after, op, inner, options);
}

static tn_status row_reduce_sum(const onnx_use *n) { return row_reduction(n, NULL, "reduce_sum", NULL); }
static tn_status row_reduce_mean(const onnx_use *n) { return row_reduction(n, NULL, "reduce_mean", NULL); }
static tn_status row_reduce_prod(const onnx_use *n) { return row_reduction(n, NULL, "prod", NULL); }
static tn_status row_reduce_squares(const onnx_use *n) {
  return row_reduction(n, "square", "reduce_sum", NULL);
}
static tn_status row_reduce_l1(const onnx_use *n) { return row_reduction(n, "abs", "reduce_sum", NULL); }
static tn_status row_reduce_l2(const onnx_use *n) { return row_reduction(n, "square", "reduce_sum", "sqrt"); }
static tn_status row_reduce_log(const onnx_use *n) { return row_reduction(n, NULL, "reduce_sum", "log"); }
static tn_status row_reduce_log_exp(const onnx_use *n) { return row_reduction(n, NULL, "logsumexp", NULL); }
static bool is_bool(const onnx_use *n) { return onnx_operand(n, 0)->type.dtype == TN_BOOL; }
static tn_status row_reduce_max(const onnx_use *n) {
  return row_reduction(n, NULL, is_bool(n) ? "any" : "reduce_max", NULL);
}
static tn_status row_reduce_min(const onnx_use *n) {
  return row_reduction(n, NULL, is_bool(n) ? "all" : "reduce_min", NULL);
}

/* Indices of ONNX are i64. */
static tn_status row_extreme(const onnx_use *n, const char *op) {
  int32_t rank = onnx_operand(n, 0)->type.rank, axis = onnx_axis(onnx_whole(n, "axis", 0), rank);
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  const char *index = onnx_print(n, "cast(%s(%s, axis=%d), to=i64)", op, x, axis);
  if (onnx_whole(n, "select_last_index", 0)) /* the first one from the other end */
    index = onnx_print(n, "%lld - cast(%s(flip(%s, [%d]), axis=%d), to=i64)",
                       (long long)onnx_operand(n, 0)->type.dims[axis] - 1, op, x, axis, axis);
  return onnx_whole(n, "keepdims", 1) ? onnx_compute(n, "unsqueeze(%s, axis=%d)", index, axis)
                                      : onnx_compute(n, "%s", index);
}
static tn_status row_argmax(const onnx_use *n) { return row_extreme(n, "argmax"); }
static tn_status row_argmin(const onnx_use *n) { return row_extreme(n, "argmin"); }

/* Before version 13 the operand is a matrix, whose rows begin at the axis. */
static tn_status softmax_of_matrix(const onnx_use *n, const char *op, int32_t axis) {
  const tn_type x = onnx_operand(n, 0)->type;
  int64_t dims[2] = {1, 1};
  for (int32_t i = 0; i < x.rank; i++) dims[i < axis ? 0 : 1] *= x.dims[i];
  const char *text = onnx_text_of(n, 0, false), *flat = onnx_dims_text(n, dims, 2),
             *own = onnx_dims_text(n, x.dims, x.rank);
  if (text == NULL || flat == NULL || own == NULL) return onnx_failed(n);
  return onnx_compute(n, "op.reshape(%s(op.reshape(%s, dims=%s)), dims=%s)", op, text, flat, own);
}

static tn_status row_softmax_op(const onnx_use *n, const char *op) {
  int32_t rank = onnx_operand(n, 0)->type.rank;
  bool old = n->m->file->opset < 13;
  int32_t axis = onnx_axis(onnx_whole(n, "axis", old ? 1 : -1), rank);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (old && axis != rank - 1) return softmax_of_matrix(n, op, axis);
  return axis == rank - 1 ? onnx_emit(n, NULL, 0, "%s", op) : onnx_emit(n, NULL, 0, "%s(axis=%d)", op, axis);
}
static tn_status row_softmax(const onnx_use *n) { return row_softmax_op(n, "softmax"); }
static tn_status row_log_softmax(const onnx_use *n) { return row_softmax_op(n, "log_softmax"); }

static tn_status row_cumulative(const onnx_use *n, const char *op) {
  int64_t count;
  const double *axis = onnx_known(n, 1, &count);
  const char *x = onnx_text_of(n, 0, false);
  if (axis == NULL || x == NULL) return onnx_failed(n);
  return onnx_emit(n, &x, 1, "%s(axis=%lld%s%s)", op, (long long)onnx_to_whole(axis[0]),
                   onnx_whole(n, "exclusive", 0) ? ", exclusive=yes" : "",
                   onnx_whole(n, "reverse", 0) ? ", reverse=yes" : "");
}
static tn_status row_cumsum(const onnx_use *n) { return row_cumulative(n, "cumsum"); }
static tn_status row_cumprod(const onnx_use *n) { return row_cumulative(n, "cumprod"); }

static tn_status row_topk(const onnx_use *n) {
  int64_t count;
  const double *k = onnx_known(n, 1, &count);
  const char *x = onnx_text_of(n, 0, false);
  if (k == NULL || x == NULL) return onnx_failed(n);
  return onnx_emit(n, &x, 1, "topk(%lld, axis=%lld%s)", (long long)onnx_to_whole(k[0]),
                   (long long)onnx_whole(n, "axis", -1), onnx_whole(n, "largest", 1) ? "" : ", largest=no");
}

const onnx_row onnx_reduction_rows[] = {
    {"ReduceSum", row_reduce_sum, NULL},
    {"ReduceMean", row_reduce_mean, NULL},
    {"ReduceMax", row_reduce_max, NULL},
    {"ReduceMin", row_reduce_min, NULL},
    {"ReduceProd", row_reduce_prod, NULL},
    {"ReduceSumSquare", row_reduce_squares, NULL},
    {"ReduceL1", row_reduce_l1, NULL},
    {"ReduceL2", row_reduce_l2, NULL},
    {"ReduceLogSum", row_reduce_log, NULL},
    {"ReduceLogSumExp", row_reduce_log_exp, NULL},
    {"ArgMax", row_argmax, NULL},
    {"ArgMin", row_argmin, NULL},
    {"Softmax", row_softmax, NULL},
    {"LogSoftmax", row_log_softmax, NULL},
    {"CumSum", row_cumsum, NULL},
    {"CumProd", row_cumprod, NULL},
    {"TopK", row_topk, NULL},
    {NULL, NULL, NULL},
};

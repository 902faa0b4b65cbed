/* core/ops/loss.c: softmax, its logarithm, and the cross entropy of classes. Exponentials are relative to the
 * largest element, in f32 (f64 for f64). */
#include "core/ops/common.h"

static void softmax_mark_axis(int64_t axis, int32_t rank, bool *reduced) {
  for (int32_t i = 0; i < rank; i++) reduced[i] = i == tn_ops_axis(axis, rank);
}

/* ---- softmax, log_softmax ---- */

static tn_status softmax_infer(tn_infer *n) {
  const tn_axis_attributes *a = n->node.attributes;
  int32_t axis;
  n->node.out[0] = *n->node.in[0];
  return tn_ops_check_axis(n, a->axis, n->node.in[0]->rank, &axis);
}

/* x minus its largest element, the exponentials of these differences, and their sum. */
typedef struct shifted {
  tn_val x, exp, sum;
} shifted;

static shifted softmax_shift(tn_build *b, tn_val x, const bool *reduced) {
  shifted s;
  s.x = tn_sub(b, x, tn_ops_reduce(b, "reduce_max", x, reduced));
  s.exp = tn_exp(b, s.x);
  s.sum = tn_ops_reduce(b, "reduce_sum", s.exp, reduced);
  return s;
}

/* The result of an empty tensor is a copy: reduce_max is undefined for it. */
static bool softmax_yield_empty(tn_build *b, const tn_type *type) {
  if (tn_type_count(type) > 0) return false;
  tn_build_yield(b, 0, tn_copy(b, tn_build_in(b, 0)));
  return true;
}

static tn_status softmax_decompose_as(tn_build *b, const tn_axis_attributes *a, bool logarithm) {
  tn_type type = tn_ops_type(b, tn_build_in(b, 0));
  bool reduced[TN_MAX_RANK];
  softmax_mark_axis(a->axis, type.rank, reduced);
  if (softmax_yield_empty(b, &type)) return TN_OK;
  shifted s = softmax_shift(b, tn_ops_wide(b, tn_build_in(b, 0)), reduced);
  tn_val y = logarithm ? tn_sub(b, s.x, tn_log(b, s.sum)) : tn_div(b, s.exp, s.sum);
  tn_build_yield(b, 0, tn_to_dtype(b, y, type.dtype));
  return TN_OK;
}

static tn_status softmax_decompose(tn_build *b, const void *attributes) {
  return softmax_decompose_as(b, attributes, false);
}

static tn_status log_softmax_decompose(tn_build *b, const void *attributes) {
  return softmax_decompose_as(b, attributes, true);
}

/* dx = y (dy - sum(dy y)) */
static tn_status softmax_grad(tn_build *b, const void *attributes) {
  const tn_axis_attributes *a = attributes;
  tn_val y = tn_ops_wide(b, tn_build_out(b, 0)), dy = tn_ops_wide(b, tn_build_out_grad(b, 0));
  tn_type type = tn_ops_type(b, tn_build_in(b, 0));
  bool reduced[TN_MAX_RANK];
  softmax_mark_axis(a->axis, type.rank, reduced);
  tn_val total = tn_ops_reduce(b, "reduce_sum", tn_mul(b, dy, y), reduced);
  tn_build_yield(b, 0, tn_to_dtype(b, tn_mul(b, y, tn_sub(b, dy, total)), type.dtype));
  return TN_OK;
}

/* dx = dy - exp(y) sum(dy) */
static tn_status log_softmax_grad(tn_build *b, const void *attributes) {
  const tn_axis_attributes *a = attributes;
  tn_val y = tn_ops_wide(b, tn_build_out(b, 0)), dy = tn_ops_wide(b, tn_build_out_grad(b, 0));
  tn_type type = tn_ops_type(b, tn_build_in(b, 0));
  bool reduced[TN_MAX_RANK];
  softmax_mark_axis(a->axis, type.rank, reduced);
  tn_val total = tn_ops_reduce(b, "reduce_sum", dy, reduced);
  tn_build_yield(b, 0, tn_to_dtype(b, tn_sub(b, dy, tn_mul(b, tn_exp(b, y), total)), type.dtype));
  return TN_OK;
}

/* Maximum, difference, exponential, sum, quotient. */
static void softmax_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 5 * tn_ops_count(n->in[0]));
}

static const tn_option softmax_options[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "-1", NULL, "dimension of the classes, -rank .. rank-1"),
    TN_OPT_END};

const tn_op tn_op_softmax = {
    .item = TN_ITEM(tn_op, TN_OP, "softmax", "exp(x) / sum(exp(x)) along one dimension", tn_axis_attributes,
                    softmax_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_NORM,
    .infer = softmax_infer,
    .decompose = softmax_decompose,
    .grad = softmax_grad,
    .cost = softmax_cost,
};

const tn_op tn_op_log_softmax = {
    .item = TN_ITEM(tn_op, TN_OP, "log_softmax", "x - log(sum(exp(x))) along one dimension",
                    tn_axis_attributes, softmax_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_NORM,
    .infer = softmax_infer,
    .decompose = log_softmax_decompose,
    .grad = log_softmax_grad,
    .cost = softmax_cost,
};

/* ---- cross_entropy ---- */

static tn_status cross_entropy_infer(tn_infer *n) {
  const tn_cross_entropy_attributes *a = n->node.attributes;
  const tn_type *logits = n->node.in[0];
  int32_t axis;
  TN_TRY(tn_ops_check_axis(n, a->axis, logits->rank, &axis));
  bool reduced[TN_MAX_RANK];
  softmax_mark_axis(axis, logits->rank, reduced);
  tn_type rows = tn_ops_reduced(logits, reduced, false);
  if (logits->dims[axis] == 0 && tn_type_count(&rows) > 0)
    return tn_fail(n, TN_EINVAL, "axis", "logits is %s: no classes in dimension %d", tn_ops_text(logits).v,
                   (int)axis);
  rows.dtype = tn_ops_accumulator(logits->dtype);
  n->node.out[0] = n->node.out[1] = rows;
  return tn_ops_check_dims_of(n, "target", n->node.in[1], &rows);
}

/* Values that loss and gradient share. Their dims are those of the logits, with class axis 1 except in `hot`.
 */
typedef struct class_rows {
  tn_type type; /* of the logits */
  bool reduced[TN_MAX_RANK];
  tn_val x;     /* logits in A */
  tn_val hot;   /* bool: the class is the target */
  tn_val valid; /* bool: the target is not `ignore` */
} class_rows;

static class_rows cross_entropy_rows(tn_build *b, const tn_cross_entropy_attributes *a) {
  class_rows r = {.type = tn_ops_type(b, tn_build_in(b, 0)), .x = tn_ops_wide(b, tn_build_in(b, 0))};
  softmax_mark_axis(a->axis, r.type.rank, r.reduced);
  tn_val target = tn_ops_keep(b, tn_build_in(b, 1), &r.type, r.reduced);
  int32_t dtype = tn_val_type(b, target)->dtype;
  tn_type classes = {dtype, r.type.rank, {0}};
  for (int32_t i = 0; i < r.type.rank; i++) classes.dims[i] = r.reduced[i] ? r.type.dims[i] : 1;
  r.hot = tn_eq(b, tn_iota(b, &classes, a->axis), target);
  r.valid = tn_ne(b, target, tn_scalar(b, dtype, (double)a->ignore));
  return r;
}

/* v without the class axis. */
static tn_val cross_entropy_drop_axis(tn_build *b, tn_val v, const class_rows *r) {
  tn_type t = tn_ops_reduced(&r->type, r->reduced, false);
  return tn_reshape(b, v, t.rank, t.dims);
}

/* loss = (1 - s) (lse - x[target]) + s (lse - mean(x)): the cross entropy with label smoothing: every class
 * has the probability s / classes, the target 1 - s more (Szegedy et al., "Rethinking the Inception
 * architecture", CVPR 2016). */
static tn_status cross_entropy_decompose(tn_build *b, const void *attributes) {
  const tn_cross_entropy_attributes *a = attributes;
  class_rows r = cross_entropy_rows(b, a);
  tn_val zero = tn_ops_zero(b, r.x);
  tn_val largest = tn_ops_reduce(b, "reduce_max", r.x, r.reduced);
  tn_val sum = tn_ops_reduce(b, "reduce_sum", tn_exp(b, tn_sub(b, r.x, largest)), r.reduced);
  tn_val lse = tn_add(b, largest, tn_log(b, sum));
  tn_val own = tn_ops_reduce(b, "reduce_sum", tn_where(b, r.hot, r.x, zero), r.reduced);
  tn_val loss = tn_sub(b, lse, own);
  if (a->smoothing != 0) {
    tn_val even = tn_sub(b, lse, tn_ops_reduce(b, "reduce_mean", r.x, r.reduced));
    loss = tn_add(b, tn_affine(b, loss, 1 - a->smoothing, 0), tn_affine(b, even, a->smoothing, 0));
  }
  tn_build_yield(b, 0, cross_entropy_drop_axis(b, tn_where(b, r.valid, loss, zero), &r));
  tn_build_yield(b, 1, cross_entropy_drop_axis(b, lse, &r));
  return TN_OK;
}

/* With p = exp(x - lse): dx = dloss valid (p - (1 - s) hot - s / classes) + dlse p */
static tn_status cross_entropy_grad(tn_build *b, const void *attributes) {
  const tn_cross_entropy_attributes *a = attributes;
  class_rows r = cross_entropy_rows(b, a);
  tn_val dloss = tn_ops_keep(b, tn_build_out_grad(b, 0), &r.type, r.reduced);
  tn_val dlse = tn_ops_keep(b, tn_build_out_grad(b, 1), &r.type, r.reduced);
  tn_val p = tn_exp(b, tn_sub(b, r.x, tn_ops_keep(b, tn_build_out(b, 1), &r.type, r.reduced))), dx = 0;
  if (dloss != 0) {
    double classes = (double)tn_ops_reduced_count(&r.type, r.reduced), even = a->smoothing / classes;
    int32_t dtype = tn_val_type(b, p)->dtype;
    tn_val share =
        tn_where(b, r.hot, tn_scalar(b, dtype, 1 - a->smoothing + even), tn_scalar(b, dtype, even));
    dx = tn_mul(b, tn_sub(b, p, share), tn_where(b, r.valid, dloss, tn_ops_zero(b, dloss)));
  }
  if (dlse != 0) dx = tn_ops_sum(b, dx, tn_mul(b, p, dlse));
  tn_build_yield(b, 0, tn_to_dtype(b, dx, r.type.dtype));
  return TN_OK;
}

/* Maximum, difference, exponential, sum; smoothing sums once more. */
static void cross_entropy_cost(const tn_node *n, tn_cost *cost) {
  const tn_cross_entropy_attributes *a = n->attributes;
  tn_ops_cost(n, cost, (a->smoothing != 0 ? 5 : 4) * tn_ops_count(n->in[0]));
}

static const tn_option cross_entropy_options[] = {TN_OPT(tn_cross_entropy_attributes, axis, TN_OPT_INT, "-1",
                                                         NULL, "dimension of the classes, -rank .. rank-1"),
                                                  TN_OPT(tn_cross_entropy_attributes, ignore, TN_OPT_INT,
                                                         "-100", NULL, "rows with this target have loss 0"),
                                                  TN_OPT(tn_cross_entropy_attributes, smoothing, TN_OPT_FLOAT,
                                                         "0", "[0, 1]",
                                                         "part of the target spread over all classes"),
                                                  TN_OPT_END};

const tn_op tn_op_cross_entropy = {
    .item = TN_ITEM(tn_op, TN_OP, "cross_entropy",
                    "-log softmax(logits)[target] of each row, not reduced, and log(sum(exp(logits)))",
                    tn_cross_entropy_attributes, cross_entropy_options),
    .schema = "(logits:T, target:I) -> (loss:any, lse:any)" TN_OPS_FLOATS TN_OPS_INDEX,
    .op_class = TN_CLASS_LOSS,
    .infer = cross_entropy_infer,
    .decompose = cross_entropy_decompose,
    .grad = cross_entropy_grad,
    .cost = cross_entropy_cost,
    .notes = "`smoothing` is PyTorch's label_smoothing.",
};

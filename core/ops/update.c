/* core/ops/update.c: the updates of optimizers, element by element. lr and weight_decay are scalars, or have
 * one value for each element if parameter groups differ. `updates` counts from 1. */
#include "core/ops/common.h"

/* ---- shapes ---- */

/* An operand must broadcast to the parameter's dims. */
static tn_status update_check_spread(tn_infer *n, const char *name, const tn_type *v, const tn_type *param) {
  bool fits = v->rank <= param->rank;
  for (int32_t i = 0; i < v->rank && fits; i++)
    fits = v->dims[i] == 1 || v->dims[i] == param->dims[param->rank - v->rank + i];
  if (fits) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "%s is %s, expected a scalar or one value an element of param, %s", name,
                 tn_ops_text(v).v, tn_ops_text(param).v);
}

/* Operands 1 .. n_like have the dims of param; lr, weight_decay and updates follow. */
static tn_status update_check(tn_infer *n, const char *const *name, int32_t n_like) {
  const tn_type *param = n->node.in[0];
  tn_status status = TN_OK;
  for (int32_t i = 1; i <= n_like && status == TN_OK; i++)
    if (n->node.in[i] != NULL) status = tn_ops_check_dims_of(n, name[i], n->node.in[i], param);
  for (int32_t i = 1; i <= 2 && status == TN_OK; i++)
    status = update_check_spread(n, i == 1 ? "lr" : "weight_decay", n->node.in[n_like + i], param);
  return status != TN_OK ? status : tn_ops_check_rank(n, "updates", n->node.in[n_like + 3], 0, "a scalar");
}

/* ---- sgd_update ---- */

static tn_status sgd_update_infer(tn_infer *n) {
  static const char *const name[] = {"param", "grad", "buffer"};
  const tn_sgd_attributes *a = n->node.attributes;
  const tn_type *param = n->node.in[0], *buffer = n->node.in[2];
  TN_TRY(update_check(n, name, 2));
  if ((buffer != NULL) != (a->momentum != 0))
    return tn_fail(n, TN_EINVAL, "momentum",
                   "momentum is %g and the buffer is %s, expected a buffer with momentum only", a->momentum,
                   buffer != NULL ? "there" : "absent");
  if (a->nesterov && (a->momentum <= 0 || a->dampening != 0))
    return tn_fail(n, TN_EINVAL, "nesterov",
                   "momentum is %g and dampening %g, expected momentum > 0 and no dampening", a->momentum,
                   a->dampening);
  n->node.out[0] = *param;
  n->node.out[1] = *param;
  if (buffer == NULL) {
    n->node.out[1].rank = 1;
    n->node.out[1].dims[0] = 0;
  }
  return TN_OK;
}

/* The part of the gradient that enters the buffer: the first update has no dampening. */
static tn_val sgd_share(tn_build *b, double dampening, int32_t dtype) {
  tn_val first = tn_le(b, tn_build_in(b, 5), tn_scalar(b, TN_I64, 1));
  return tn_where(b, first, tn_scalar(b, dtype, 1), tn_scalar(b, dtype, 1 - dampening));
}

/* The direction with momentum. The buffer begins with zeros, so it is the gradient itself after the first
 * update. */
static tn_val sgd_direction(tn_build *b, const tn_sgd_attributes *a, tn_val d) {
  tn_val taken = d;
  if (a->dampening != 0) taken = tn_mul(b, d, sgd_share(b, a->dampening, tn_val_type(b, d)->dtype));
  tn_val buffer = tn_add(b, tn_affine(b, tn_build_in(b, 2), a->momentum, 0), taken);
  tn_build_yield(b, 1, buffer);
  return a->nesterov ? tn_add(b, d, tn_affine(b, buffer, a->momentum, 0)) : buffer;
}

static tn_status sgd_update_decompose(tn_build *b, const void *attributes) {
  const tn_sgd_attributes *a = attributes;
  tn_val param = tn_build_in(b, 0);
  tn_val d = tn_add(b, tn_build_in(b, 1), tn_mul(b, param, tn_build_in(b, 4)));
  if (tn_build_in(b, 2) != 0) {
    d = sgd_direction(b, a, d);
  } else {
    tn_type empty = {tn_val_type(b, param)->dtype, 1, {0}};
    tn_build_yield(b, 1, tn_full(b, &empty, 0));
  }
  tn_build_yield(b, 0, tn_sub(b, param, tn_mul(b, d, tn_build_in(b, 3))));
  return TN_OK;
}

static void sgd_update_cost(const tn_node *n, tn_cost *cost) {
  const tn_sgd_attributes *a = n->attributes;
  int32_t flops = 4 + (n->in[2] != NULL ? 3 : 0) + (a->nesterov ? 2 : 0);
  tn_ops_cost(n, cost, flops * tn_ops_count(n->in[0]));
}

static const tn_option sgd_options[] = {
    TN_OPT(tn_sgd_attributes, momentum, TN_OPT_FLOAT, "0", ">= 0", "part of the buffer that is kept"),
    TN_OPT(tn_sgd_attributes, dampening, TN_OPT_FLOAT, "0", NULL,
           "part of the gradient that the buffer leaves out"),
    TN_OPT(tn_sgd_attributes, nesterov, TN_OPT_FLAG, "no", NULL, "look ahead along the buffer"), TN_OPT_END};

const tn_op tn_op_sgd_update = {
    .item =
        TN_ITEM(tn_op, TN_OP, "sgd_update",
                "a step of gradient descent, with momentum where a buffer is given, which begins with zeros; "
                "without one the second result is empty",
                tn_sgd_attributes, sgd_options),
    .schema = "(param:T, grad:T, buffer?:T, lr:T, weight_decay:T, updates:i64) -> (param:T, buffer:T); T in "
              "f32 f64",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_OTHER,
    .infer = sgd_update_infer,
    .decompose = sgd_update_decompose,
    .cost = sgd_update_cost,
    .notes = "lr and weight_decay are scalars, or have one value for each element. `updates` counts from "
             "1.",
};

/* ---- adamw_update ---- */

static tn_status adamw_update_infer(tn_infer *n) {
  static const char *const name[] = {"param", "grad", "m", "v"};
  tn_status status = update_check(n, name, 3);
  for (int32_t i = 0; i < 3; i++) n->node.out[i] = *n->node.in[0];
  return status;
}

/* 1 - beta^updates, in f64: for beta near 1 the difference loses most digits of an f32. */
static tn_val bias_correction(tn_build *b, double beta) {
  tn_val t = tn_to_dtype(b, tn_build_in(b, 6), TN_F64);
  return tn_affine(b, tn_pow(b, tn_scalar(b, TN_F64, beta), t), -1, 1);
}

/* Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019. */
static tn_status adamw_update_decompose(tn_build *b, const void *attributes) {
  const tn_adamw_attributes *a = attributes;
  tn_val param = tn_build_in(b, 0), grad = tn_build_in(b, 1), lr = tn_build_in(b, 4);
  int32_t dtype = tn_val_type(b, param)->dtype;
  tn_val m = tn_add(b, tn_affine(b, tn_build_in(b, 2), a->beta1, 0), tn_affine(b, grad, 1 - a->beta1, 0));
  tn_val square = tn_mul(b, grad, grad);
  tn_val v = tn_add(b, tn_affine(b, tn_build_in(b, 3), a->beta2, 0), tn_affine(b, square, 1 - a->beta2, 0));
  tn_val first = tn_to_dtype(b, bias_correction(b, a->beta1), dtype);
  tn_val second = tn_to_dtype(b, tn_sqrt(b, bias_correction(b, a->beta2)), dtype);
  tn_val scale = tn_affine(b, tn_div(b, tn_sqrt(b, v), second), 1, a->epsilon);
  tn_val decayed = tn_mul(b, param, tn_affine(b, tn_mul(b, lr, tn_build_in(b, 5)), -1, 1));
  tn_val step = tn_div(b, tn_mul(b, tn_div(b, lr, first), m), scale);
  tn_build_yield(b, 0, tn_sub(b, decayed, step));
  tn_build_yield(b, 1, m);
  tn_build_yield(b, 2, v);
  return TN_OK;
}

static void adamw_update_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 14 * tn_ops_count(n->in[0]));
}

static const tn_option adamw_options[] = {
    TN_OPT(tn_adamw_attributes, beta1, TN_OPT_FLOAT, "0.9", "[0, 1)", "decay of the mean gradient"),
    TN_OPT(tn_adamw_attributes, beta2, TN_OPT_FLOAT, "0.999", "[0, 1)", "decay of the mean square"),
    TN_OPT(tn_adamw_attributes, epsilon, TN_OPT_FLOAT, "1e-8", ">= 0",
           "added to the root of the mean square"),
    TN_OPT_END};

const tn_op tn_op_adamw_update = {
    .item = TN_ITEM(tn_op, TN_OP, "adamw_update", "a step of Adam with decoupled weight decay",
                    tn_adamw_attributes, adamw_options),
    .schema =
        "(param:T, grad:T, m:T, v:T, lr:T, weight_decay:T, updates:i64) -> (param:T, m:T, v:T); T in f32 f64",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_OTHER,
    .infer = adamw_update_infer,
    .decompose = adamw_update_decompose,
    .cost = adamw_update_cost,
    .notes = "lr and weight_decay are scalars, or have one value for each element. `updates` counts from "
             "1. I. Loshchilov, F. Hutter, \"Decoupled weight decay regularization\", ICLR 2019.",
};

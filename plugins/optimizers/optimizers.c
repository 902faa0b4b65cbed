/* plugins/optimizers/optimizers.c: sgd and adamw. Each is one update op over flat regions. The weight decay
 * and the learning rate may differ by parameter group and by step. */
#include "tenon/plugin/optimizer.h"

typedef struct sgd_options {
  double lr, momentum, weight_decay, dampening;
  int32_t nesterov;
} sgd_options;

static const tn_option sgd_rows[] = {
    TN_OPT_WITH(sgd_options, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.01", ">= 0", "learning rate"),
    TN_OPT(sgd_options, momentum, TN_OPT_FLOAT, "0", "[0, 1)", "decay of the momentum buffer"),
    TN_OPT_WITH(sgd_options, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0", ">= 0",
                "L2 penalty added to the gradient"),
    TN_OPT(sgd_options, dampening, TN_OPT_FLOAT, "0", "[0, 1]",
           "fraction of the gradient that the momentum omits"),
    TN_OPT(sgd_options, nesterov, TN_OPT_FLAG, "no", NULL, "Nesterov momentum"),
    TN_OPT_END};

static tn_status update_sgd(tn_build *b, const void *given) {
  const sgd_options *o = given;
  tn_val param = tn_build_in(b, 0), buffer = 0;
  if (o->nesterov && (o->momentum == 0.0 || o->dampening != 0.0))
    return tn_fail(b, TN_EINVAL, "nesterov", "nesterov requires momentum above 0 and dampening 0");
  if (o->momentum == 0.0 && o->dampening != 0.0)
    return tn_fail(b, TN_EINVAL, "dampening", "dampening has no effect without momentum");
  if (o->momentum != 0.0) buffer = tn_build_state(b, "momentum", tn_val_type(b, param), "zeros");
  tn_val lr = tn_build_option_value(b, "lr"), decay = tn_build_option_value(b, "weight_decay"),
         updates = tn_build_counter(b, TN_UPDATES);
  tn_val next = tn_sgd_update(b, param, tn_build_in(b, 1), buffer, lr, decay, updates, o->momentum,
                              o->dampening, o->nesterov);
  if (buffer) tn_build_commit(b, buffer, tn_op_result(b, next, 1));
  tn_build_yield(b, 0, next);
  return TN_OK;
}
static const tn_optimizer sgd = {
    .item =
        TN_ITEM(tn_optimizer, TN_OPTIMIZER, "sgd",
                "stochastic gradient descent with momentum, as PyTorch defines it", sgd_options, sgd_rows),
    .granularity = TN_UPDATE_ELEMENTWISE,
    .update = update_sgd};

typedef struct adamw_options {
  double lr, beta1, beta2, epsilon, weight_decay;
} adamw_options;

static const tn_option adamw_rows[] = {
    TN_OPT_WITH(adamw_options, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.001", ">= 0", "learning rate"),
    TN_OPT(adamw_options, beta1, TN_OPT_FLOAT, "0.9", "[0, 1)", "decay of the mean of gradients"),
    TN_OPT(adamw_options, beta2, TN_OPT_FLOAT, "0.999", "[0, 1)", "decay of the mean of squared gradients"),
    TN_OPT(adamw_options, epsilon, TN_OPT_FLOAT, "1e-8", "[1e-37, 1e37]",
           "added to the root of the mean square"),
    TN_OPT_WITH(adamw_options, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.01", ">= 0",
                "decoupled weight decay"),
    TN_OPT_END};

static tn_status update_adamw(tn_build *b, const void *given) {
  const adamw_options *o = given;
  tn_val param = tn_build_in(b, 0);
  tn_val m = tn_build_state(b, "exp_avg", tn_val_type(b, param), "zeros");
  tn_val v = tn_build_state(b, "exp_avg_sq", tn_val_type(b, param), "zeros");
  tn_val lr = tn_build_option_value(b, "lr"), decay = tn_build_option_value(b, "weight_decay"),
         updates = tn_build_counter(b, TN_UPDATES);
  tn_val next =
      tn_adamw_update(b, param, tn_build_in(b, 1), m, v, lr, decay, updates, o->beta1, o->beta2, o->epsilon);
  tn_build_commit(b, m, tn_op_result(b, next, 1));
  tn_build_commit(b, v, tn_op_result(b, next, 2));
  tn_build_yield(b, 0, next);
  return TN_OK;
}
static const tn_optimizer adamw = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "adamw",
                    "Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)", adamw_options,
                    adamw_rows),
    .granularity = TN_UPDATE_ELEMENTWISE,
    .update = update_adamw};

TN_PLUGIN(optimizers, "0.1.0", "MIT", &sgd.item, &adamw.item)

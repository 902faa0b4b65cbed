/* plugins/optimizers/momentum.c: optimizers that follow an average of the gradients: sgd, lion and asgd. */
#include "plugins/optimizers/optimizers.h"

tn_status momentum_check(const tn_env *env, double momentum, double dampening, bool nesterov) {
  if (nesterov && (momentum == 0.0 || dampening != 0.0))
    return tn_fail(env, TN_EINVAL, "nesterov", "nesterov requires momentum above 0 and dampening 0");
  if (momentum == 0.0 && dampening != 0.0)
    return tn_fail(env, TN_EINVAL, "dampening", "dampening has no effect without momentum");
  return TN_OK;
}

static tn_status sgd_check(const tn_env *env, const void *given) {
  const optimizer_options *o = given;
  return momentum_check(env, o->v[2], o->v[3], o->flag[0]);
}

#define SGD_OPTIONS(decay)                                                                                   \
  OPTIONS(LR("0.01"), decay, SCHEDULABLE(2, "momentum", "0", "[0, 1)", "decay of the momentum buffer"),      \
          NUMBER(3, "dampening", "0", "[0, 1]", "fraction of the gradient that the momentum omits"),         \
          FLAG(0, "nesterov", "no", "Nesterov momentum"))
#define SGD_STATES STATES({"momentum", .when = "momentum", .in_formula = "buffer"})

OPTIMIZER(sgd, "stochastic gradient descent with momentum, as PyTorch defines it", SGD_OPTIONS(L2_DECAY("0")),
          SGD_STATES, .check = sgd_check, .formula = PENALIZED MOMENTUM_STEP);
OPTIMIZER(sgdw, "sgd with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)",
          SGD_OPTIONS(DECOUPLED_DECAY("0")), SGD_STATES, .check = sgd_check,
          .formula = DECAYED "g = grad; " MOMENTUM_STEP);

OPTIMIZER(lion, "signs of an average of the gradients (Chen et al., \"Symbolic discovery\", NeurIPS 2023)",
          OPTIONS(LR("1e-4"), DECOUPLED_DECAY("0"),
                  SCHEDULABLE(2, "beta1", "0.9", "[0, 1)", "decay of the average in the update"),
                  SCHEDULABLE(3, "beta2", "0.99", "[0, 1)", "decay of the average that is kept")),
          STATES({"exp_avg"}),
          .formula = DECAYED "move = lr * sign(beta1 * exp_avg + (1 - beta1) * grad);"
                             "next_exp_avg = beta2 * exp_avg + (1 - beta2) * grad");

/* The rate of an update is that which the update before it has computed. */
OPTIMIZER(asgd, "averaged stochastic gradient descent (Polyak and Juditsky, 1992); `ax` is the average",
          OPTIONS(LR("0.01"), L2_DECAY("0"), NUMBER(2, "lambd", "1e-4", ">= 0", "decay term"),
                  NUMBER(3, "alpha", "0.75", ">= 0", "power by which the rate falls"),
                  NUMBER(4, "t0", "1e6", ">= 0", "update from which parameters are averaged")),
          STATES(EXACT("ax")),
          .formula = PENALIZED "eta = lr / (1 + lambd * lr * (updates - 1)) ^ alpha;"
                               "next_param = param * (1 - lambd * eta) - eta * g;"
                               "mu = 1 / maximum(updates - 1 - t0, 1);"
                               "next_ax = ax + (next_param - ax) * mu");

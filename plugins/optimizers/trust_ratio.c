/* plugins/optimizers/trust_ratio.c: optimizers that look at the norms of whole parameters: lamb, lars and
 * novograd. So each parameter is updated by itself. */
#include "plugins/optimizers/optimizers.h"

#define WHOLE .granularity = TN_UPDATE_PER_PARAMETER
#define TRUST_OPTIONS                                                                                        \
  FLAG(0, "trust_clip", "no", "a ratio is at most 1"),                                                       \
      FLAG(1, "always_adapt", "no", "parameters without weight decay have a ratio, too")
/* `ratio` is that of a parameter and a step with norms above 0. */
#define TRUSTED                                                                                              \
  "clipped = minimum(ratio, 1) if trust_clip else ratio;"                                                    \
  "known = param_norm > 0 and step_norm > 0 and (always_adapt or weight_decay > 0);"                         \
  "trust = clipped if known else 1;"

OPTIMIZER(lamb, "adamw with a ratio of norms for each parameter (You et al., ICLR 2020)",
          OPTIONS(LR("0.001"), SCHEDULED(1, "weight_decay", "0.01", ">= 0", "decay inside the ratio"),
                  SCHEDULABLE(2, "beta1", "0.9", "[0, 1)", "decay of the mean of gradients"),
                  NUMBER(3, "beta2", "0.999", "[0, 1)", "decay of the mean of squared gradients"),
                  NUMBER(4, "epsilon", "1e-6", "[1e-37, 1e37]", "added to the root of the mean square"),
                  TRUST_OPTIONS,
                  FLAG(2, "decoupled", "no", "decay of the parameter in place of the ratio's")),
          STATES({"exp_avg"}, POSITIVE("exp_avg_sq")), WHOLE,
          .formula = MEAN("grad")
              MEAN_SQUARE("grad") "root = sqrt(next_exp_avg_sq) / sqrt(bias2) + epsilon;"
                                  "kept = param * (1 - lr * weight_decay) if decoupled else param;"
                                  "adapted = next_exp_avg / bias1 / root;"
                                  "direction = adapted if decoupled else adapted + weight_decay * param;"
                                  "param_norm = sqrt(reduce_sum(kept * kept)); step_norm = "
                                  "sqrt(reduce_sum(direction * direction));"
                                  "ratio = param_norm / step_norm;" TRUSTED "move = lr * trust * direction");

static tn_status lars_check(const tn_env *env, const void *given) {
  const optimizer_options *o = given;
  return momentum_check(env, o->v[2], o->v[3], o->flag[2]);
}

OPTIMIZER(
    lars, "sgd with a ratio of norms for each parameter (You, Gitman and Ginsburg, 2017)",
    OPTIONS(LR("1"), L2_DECAY("0"), SCHEDULABLE(2, "momentum", "0", "[0, 1)", "decay of the momentum buffer"),
            NUMBER(3, "dampening", "0", "[0, 1]", "fraction of the gradient that the momentum omits"),
            NUMBER(4, "trust_coefficient", "0.001", "> 0", "factor of the ratio"),
            NUMBER(5, "epsilon", "1e-8", ">= 0", "added to the norm of the gradient"), TRUST_OPTIONS,
            FLAG(2, "nesterov", "no", "Nesterov momentum")),
    STATES({"momentum", .when = "momentum", .in_formula = "buffer"}), WHOLE, .check = lars_check,
    .formula =
        "param_norm = sqrt(reduce_sum(param * param)); step_norm = sqrt(reduce_sum(grad * grad));"
        "ratio = trust_coefficient * param_norm / (step_norm + param_norm * weight_decay + epsilon);" TRUSTED
        "kept = param; g = (grad + param * weight_decay) * trust;" MOMENTUM_STEP);

/* The gradient of a parameter is divided by its norm, of which an average is kept: one number. */
#define NOVOGRAD_OPTIONS(decay)                                                                              \
  OPTIONS(LR("0.001"), decay, SCHEDULABLE(2, "beta1", "0.95", "[0, 1)", "decay of the mean of gradients"),   \
          NUMBER(3, "beta2", "0.98", "[0, 1)", "decay of the mean of squared norms"),                        \
          NUMBER(4, "epsilon", "1e-8", "[1e-37, 1e37]", "added to the root"),                                \
          FLAG(0, "amsgrad", "no", "divide by the greatest norm so far"),                                    \
          FLAG(1, "grad_averaging", "no", "a gradient counts by 1 - beta1"))
#define NOVOGRAD_STATES                                                                                      \
  STATES({"exp_avg"}, {"exp_avg_sq", .scalar = 1}, {"max_exp_avg_sq", .when = "amsgrad", .scalar = 1})
#define NOVOGRAD_STEP(penalty)                                                                               \
  "norm = reduce_sum(grad * grad);"                                                                          \
  "next_exp_avg_sq = norm if exp_avg_sq == 0 else beta2 * exp_avg_sq + (1 - beta2) * norm;"                  \
  "next_max_exp_avg_sq = maximum(max_exp_avg_sq, next_exp_avg_sq);"                                          \
  "root = sqrt(next_max_exp_avg_sq if amsgrad else next_exp_avg_sq) + epsilon;"                              \
  "scaled = grad / root" penalty ";"                                                                         \
  "next_exp_avg = beta1 * exp_avg + ((1 - beta1) * scaled if grad_averaging else scaled);"                   \
  "move = lr * next_exp_avg"

OPTIMIZER(novograd, "gradients by the norm of a parameter's (Ginsburg et al., 2019)",
          NOVOGRAD_OPTIONS(L2_DECAY("0")), NOVOGRAD_STATES, WHOLE,
          .formula = "kept = param; " NOVOGRAD_STEP(" + weight_decay * param"));
OPTIMIZER(novogradw, "novograd with decoupled weight decay", NOVOGRAD_OPTIONS(DECOUPLED_DECAY("0")),
          NOVOGRAD_STATES, WHOLE, .formula = DECAYED NOVOGRAD_STEP(""));

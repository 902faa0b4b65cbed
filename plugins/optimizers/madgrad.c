/* plugins/optimizers/madgrad.c: dual averaging, whose steps begin at the first parameter. */
#include "plugins/optimizers/optimizers.h"

/* The parameter is a running average of z, which is the first parameter minus all gradients so far by the
 * cube root of all squares so far. */
#define MADGRAD_OPTIONS(decay)                                                                               \
  OPTIONS(LR("0.01"), decay, NUMBER(2, "momentum", "0.9", "[0, 1)", "the part of the parameter that stays"), \
          NUMBER(3, "epsilon", "1e-6", "> 0", "added to the rate and to the cube root"))
#define MADGRAD_STATES                                                                                       \
  STATES(POSITIVE("grad_sum_sq"), {"s"}, {"x0", .when = "momentum", .values = TN_VALUES_EXACT})
#define MADGRAD_STEP                                                                                         \
  "weight = (lr + epsilon) * sqrt(updates);"                                                                 \
  "next_grad_sum_sq = grad_sum_sq + weight * (g * g); next_s = s + weight * g;"                              \
  "next_x0 = param if updates <= 1 else x0;"                                                                 \
  "from = next_x0 if momentum > 0 else decayed + s / (grad_sum_sq ^ (1 / 3) + epsilon);"                     \
  "z = from - next_s / (next_grad_sum_sq ^ (1 / 3) + epsilon);"                                              \
  "next_param = momentum * decayed + (1 - momentum) * z if momentum > 0 else z"

OPTIMIZER(madgrad, "dual averaging with momentum (Defazio and Jelassi, JMLR 2022)",
          MADGRAD_OPTIONS(L2_DECAY("0")), MADGRAD_STATES,
          .formula = "g = grad + param * weight_decay; decayed = param; " MADGRAD_STEP);
OPTIMIZER(madgradw, "madgrad with decoupled weight decay", MADGRAD_OPTIONS(DECOUPLED_DECAY("0")),
          MADGRAD_STATES, .formula = "g = grad; decayed = param * (1 - lr * weight_decay); " MADGRAD_STEP);

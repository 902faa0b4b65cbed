/* plugins/optimizers/schedule_free.c: optimizers that need no schedule (Defazio et al., "The road less
 * scheduled", NeurIPS 2024). The parameter lies between z, which steps as the base optimizer does, and the
 * average of z over the updates, which validation and checkpoints read. An update counts by a power of its
 * lr, so that those of a warm-up count less. */
#include "plugins/optimizers/optimizers.h"

#define FREE_POWER                                                                                           \
  NUMBER(5, "weight_power", "2", ">= 0", "power of lr by which an update counts in the average")
#define FREE_STEP(share)                                                                                     \
  "before = param if updates <= 1 else z;"                                                                   \
  "weight = lr ^ weight_power; next_weight_sum = weight_sum + weight;"                                       \
  "part = weight / next_weight_sum if next_weight_sum > 0 else 0;"                                           \
  "next_z = before - lr * g;"                                                                                \
  "next_param = param + (before - param) * part + lr * (" share " * (1 - part) - 1) * g;"                    \
  "next_average = next_param / " share " + (1 - 1 / " share ") * next_z"

OPTIMIZER(schedule_free_sgd, "sgd without a schedule (Defazio et al., NeurIPS 2024)",
          OPTIONS(LR("1"), L2_DECAY("0"),
                  NUMBER(2, "momentum", "0.9", "(0, 1)", "place of the parameter between z and the average"),
                  FREE_POWER),
          STATES(EXACT("z"), EXACT("weight_sum"), EXACT("average")),
          .formula = PENALIZED FREE_STEP("momentum"));

OPTIMIZER(schedule_free_adamw, "adamw without a schedule (Defazio et al., NeurIPS 2024)",
          OPTIONS(LR("0.0025"), DECOUPLED_DECAY("0"),
                  NUMBER(2, "beta1", "0.9", "(0, 1)", "place of the parameter between z and the average"),
                  NUMBER(3, "beta2", "0.999", "[0, 1)", "decay of the mean of squared gradients"),
                  NUMBER(4, "epsilon", "1e-8", "[1e-37, 1e37]", "added to the root of the mean square"),
                  FREE_POWER),
          STATES(EXACT("z"), EXACT("weight_sum"), POSITIVE("exp_avg_sq"), EXACT("average")),
          .formula = "next_exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (grad * grad);"
                     "root = sqrt(next_exp_avg_sq / (1 - beta2 ^ updates)) + epsilon;"
                     "g = grad / root + weight_decay * param;" FREE_STEP("beta1"));

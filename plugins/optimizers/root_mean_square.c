/* plugins/optimizers/root_mean_square.c: optimizers that divide the gradient by a root of its squares:
 * adagrad, adadelta, rmsprop; and rprop, which has a step for each element. */
#include "plugins/optimizers/optimizers.h"

OPTIMIZER(adagrad, "divides by the root of the sum of squares (Duchi, Hazan and Singer, JMLR 2011)",
          OPTIONS(LR("0.01"), L2_DECAY("0"),
                  NUMBER(2, "lr_decay", "0", ">= 0", "lr is divided by 1 + lr_decay * updates before"),
                  NUMBER(3, "initial_accumulator_value", "0", ">= 0", "sum of squares at the start"),
                  NUMBER(4, "epsilon", "1e-10", ">= 0", "added to the root")),
          STATES(POSITIVE("sum")),
          .formula = PENALIZED "next_sum = (initial_accumulator_value if updates <= 1 else sum) + g * g;"
                               "move = lr / (1 + (updates - 1) * lr_decay) * g / (sqrt(next_sum) + epsilon)");

OPTIMIZER(adadelta, "steps by the ratio of two root mean squares (Zeiler, 2012)",
          OPTIONS(LR("1"), L2_DECAY("0"), NUMBER(2, "rho", "0.9", "[0, 1]", "decay of both mean squares"),
                  NUMBER(3, "epsilon", "1e-6", ">= 0", "added below the roots")),
          STATES(POSITIVE("square_avg"), POSITIVE("acc_delta")),
          .formula = PENALIZED "next_square_avg = rho * square_avg + (1 - rho) * (g * g);"
                               "delta = sqrt(acc_delta + epsilon) / sqrt(next_square_avg + epsilon) * g;"
                               "next_acc_delta = rho * acc_delta + (1 - rho) * (delta * delta);"
                               "move = lr * delta");

#define RMSPROP_OPTIONS(decay, alpha, epsilon, where)                                                        \
  OPTIONS(LR("0.01"), decay, NUMBER(2, "alpha", alpha, "[0, 1)", "decay of the mean square"),                \
          SCHEDULABLE(3, "momentum", "0", "[0, 1)", "decay of the momentum buffer"),                         \
          NUMBER(4, "epsilon", epsilon, ">= 0", where),                                                      \
          FLAG(0, "centered", "no", "subtract the square of the mean gradient: divide by the deviation"))
#define RMSPROP_STATES                                                                                       \
  STATES(POSITIVE("square_avg"), {"grad_avg", .when = "centered"},                                           \
         {"momentum", .when = "momentum", .in_formula = "buffer"})
#define RMSPROP_VARIANCE                                                                                     \
  "next_grad_avg = alpha * grad_avg + (1 - alpha) * g;"                                                      \
  "variance = next_square_avg - next_grad_avg * next_grad_avg if centered else next_square_avg;"

OPTIMIZER(rmsprop, "divides by the root of the mean square (Hinton, 2012), as PyTorch defines it",
          RMSPROP_OPTIONS(L2_DECAY("0"), "0.99", "1e-8", "added to the root"), RMSPROP_STATES,
          .formula = PENALIZED
          "next_square_avg = alpha * square_avg + (1 - alpha) * (g * g);" RMSPROP_VARIANCE
          "scaled = g / (sqrt(variance) + epsilon);"
          "next_buffer = momentum * buffer + scaled;"
          "move = lr * (next_buffer if momentum > 0 else scaled)");
#define RMSPROP_TF_STEP                                                                                      \
  "before = 1 if updates <= 1 else square_avg;"                                                              \
  "next_square_avg = alpha * before + (1 - alpha) * (g * g);" RMSPROP_VARIANCE                               \
  "scaled = lr * g / sqrt(variance + epsilon);"                                                              \
  "next_buffer = momentum * buffer + scaled;"                                                                \
  "move = next_buffer if momentum > 0 else scaled"

OPTIMIZER(rmsprop_tf, "rmsprop as TensorFlow defines it: epsilon below the root, lr in the momentum",
          RMSPROP_OPTIONS(L2_DECAY("0"), "0.9", "1e-10", "added below the root"), RMSPROP_STATES,
          .formula = PENALIZED RMSPROP_TF_STEP);
OPTIMIZER(rmsprop_tfw, "rmsprop_tf with decoupled weight decay",
          RMSPROP_OPTIONS(DECOUPLED_DECAY("0"), "0.9", "1e-10", "added below the root"), RMSPROP_STATES,
          .formula = DECAYED "g = grad; " RMSPROP_TF_STEP);

/* The step grows where the sign of the gradient stays, and shrinks, without a move, where it changes. */
OPTIMIZER(rprop, "a step for each element, by the sign of its gradient (Riedmiller and Braun, 1993)",
          OPTIONS(LR("0.01"), NUMBER(2, "eta_minus", "0.5", "(0, 1)", "factor of a step that was too long"),
                  NUMBER(3, "eta_plus", "1.2", "> 1", "factor of a step that may be longer"),
                  NUMBER(4, "step_min", "1e-6", ">= 0", "least step"),
                  NUMBER(5, "step_max", "50", ">= 0", "greatest step")),
          STATES({"previous"}, EXACT("step_size")),
          .formula = "agreement = grad * previous;"
                     "factor = eta_plus if agreement > 0 else eta_minus if agreement < 0 else 1;"
                     "size = (lr if updates <= 1 else step_size) * factor;"
                     "next_step_size = minimum(maximum(size, step_min), step_max);"
                     "next_previous = 0 if agreement < 0 else grad;"
                     "kept = param; move = sign(next_previous) * next_step_size");

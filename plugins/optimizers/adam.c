/* plugins/optimizers/adam.c: Adam (Kingma and Ba, ICLR 2015) and its variants. `adamw`, `nadamw` and `radamw`
 * have decoupled weight decay (Loshchilov and Hutter, ICLR 2019). */
#include "plugins/optimizers/optimizers.h"

#define BETAS(mean, square)                                                                                  \
  SCHEDULABLE(2, "beta1", mean, "[0, 1)", "decay of the mean of gradients"),                                 \
      NUMBER(3, "beta2", square, "[0, 1)", "decay of the mean of squared gradients")
#define EPSILON(default_text)                                                                                \
  NUMBER(4, "epsilon", default_text, "[1e-37, 1e37]", "added to the root of the mean square")
#define AMSGRAD                                                                                              \
  FLAG(0, "amsgrad", "no", "divide by the greatest mean square so far (Reddi et al., ICLR 2018)")

#define ADAM_STATES                                                                                          \
  STATES({"exp_avg"}, POSITIVE("exp_avg_sq"),                                                                \
         {"max_exp_avg_sq", .when = "amsgrad", .values = TN_VALUES_POSITIVE})
#define ADAM_STEP                                                                                            \
  "next_max_exp_avg_sq = maximum(max_exp_avg_sq, next_exp_avg_sq);"                                          \
  "square = next_max_exp_avg_sq if amsgrad else next_exp_avg_sq;"                                            \
  "move = lr / bias1 * next_exp_avg / (sqrt(square) / sqrt(bias2) + epsilon)"

OPTIMIZER(adam, "Adam with an L2 penalty (Kingma and Ba, ICLR 2015)",
          OPTIONS(LR("0.001"), L2_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-8"), AMSGRAD), ADAM_STATES,
          .formula = PENALIZED MEAN("g") MEAN_SQUARE("g") ADAM_STEP);
OPTIMIZER(adamw, "Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)",
          OPTIONS(LR("0.001"), DECOUPLED_DECAY("0.01"), BETAS("0.9", "0.999"), EPSILON("1e-8"), AMSGRAD),
          ADAM_STATES, .formula = DECAYED MEAN("grad") MEAN_SQUARE("grad") ADAM_STEP);

/* The product of the momenta of all updates so far has no closed form. */
#define NADAM_STATES STATES({"exp_avg"}, POSITIVE("exp_avg_sq"), {"mu_product", .scalar = 1})
#define NADAM_STEP                                                                                           \
  "mu = beta1 * (1 - 0.5 * 0.96 ^ (updates * momentum_decay));"                                              \
  "mu_after = beta1 * (1 - 0.5 * 0.96 ^ ((updates + 1) * momentum_decay));"                                  \
  "next_mu_product = (1 if updates <= 1 else mu_product) * mu;"                                              \
  "root = sqrt(next_exp_avg_sq / bias2) + epsilon;"                                                          \
  "now = lr * (1 - mu) / (1 - next_mu_product) * g / root;"                                                  \
  "ahead = lr * mu_after / (1 - next_mu_product * mu_after) * next_exp_avg / root;"
#define NADAM_DECAY NUMBER(5, "momentum_decay", "0.004", ">= 0", "how fast the momentum rises to beta1")

OPTIMIZER(nadam, "Adam with Nesterov momentum (Dozat, 2016), as PyTorch defines it",
          OPTIONS(LR("0.002"), L2_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-8"), NADAM_DECAY),
          NADAM_STATES,
          .formula = PENALIZED "next_exp_avg = beta1 * exp_avg + (1 - beta1) * g;" MEAN_SQUARE("g") NADAM_STEP
          "move = now + ahead");
OPTIMIZER(nadamw, "nadam with decoupled weight decay",
          OPTIONS(LR("0.002"), DECOUPLED_DECAY("0.01"), BETAS("0.9", "0.999"), EPSILON("1e-8"), NADAM_DECAY),
          NADAM_STATES,
          .formula = DECAYED "g = grad; next_exp_avg = beta1 * exp_avg + (1 - beta1) * g;" MEAN_SQUARE("g")
              NADAM_STEP "move = now + ahead");

/* Before the variance of the mean square is known, the step is that of momentum. */
#define RADAM_STATES STATES({"exp_avg"}, POSITIVE("exp_avg_sq"))
#define RADAM_STEP                                                                                           \
  "most = 2 / (1 - beta2) - 1;"                                                                              \
  "rho = most - 2 * updates * beta2 ^ updates / bias2;"                                                      \
  "above = maximum(rho, 5);"                                                                                 \
  "part = sqrt((above - 4) * (above - 2) * most / ((most - 4) * (most - 2) * above));"                       \
  "adapted = part * sqrt(bias2) / (sqrt(next_exp_avg_sq) + epsilon);"                                        \
  "move = next_exp_avg / bias1 * lr * (adapted if rho > 5 else 1)"

OPTIMIZER(radam, "rectified Adam (Liu et al., ICLR 2020)",
          OPTIONS(LR("0.001"), L2_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-8")), RADAM_STATES,
          .formula = PENALIZED MEAN("g") MEAN_SQUARE("g") RADAM_STEP);
OPTIMIZER(radamw, "radam with decoupled weight decay",
          OPTIONS(LR("0.001"), DECOUPLED_DECAY("0.01"), BETAS("0.9", "0.999"), EPSILON("1e-8")), RADAM_STATES,
          .formula = DECAYED MEAN("grad") MEAN_SQUARE("grad") RADAM_STEP);

/* The variance is that of gradients around their mean; epsilon stays in it. */
#define BELIEF_STATES                                                                                        \
  STATES(                                                                                                    \
      {"exp_avg"}, {"exp_avg_var", .values = TN_VALUES_POSITIVE, .in_formula = "exp_avg_sq"},                \
      {"max_exp_avg_var", .when = "amsgrad", .values = TN_VALUES_POSITIVE, .in_formula = "max_exp_avg_sq"})
#define BELIEF                                                                                               \
  MEAN("grad")                                                                                               \
  "rest = grad - next_exp_avg; bias2 = 1 - beta2 ^ updates;"                                                 \
  "next_exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (rest * rest) + epsilon;"

OPTIMIZER(adabelief, "adamw by the variance of the gradients (Zhuang et al., NeurIPS 2020)",
          OPTIONS(LR("0.001"), DECOUPLED_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-16"), AMSGRAD),
          BELIEF_STATES, .formula = DECAYED BELIEF ADAM_STEP);
OPTIMIZER(radabelief, "adabelief, rectified as radam",
          OPTIONS(LR("0.001"), DECOUPLED_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-16")),
          STATES({"exp_avg"}, {"exp_avg_var", .values = TN_VALUES_POSITIVE, .in_formula = "exp_avg_sq"}),
          .formula = DECAYED BELIEF RADAM_STEP);

OPTIMIZER(adamax, "Adam by the greatest gradient (Kingma and Ba, ICLR 2015)",
          OPTIONS(LR("0.002"), L2_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-8")),
          STATES({"exp_avg"}, POSITIVE("exp_inf")),
          .formula = PENALIZED MEAN("g") "next_exp_inf = maximum(beta2 * exp_inf, abs(g) + epsilon);"
                                         "move = lr / bias1 * next_exp_avg / next_exp_inf");

/* The difference of two gradients is 0 in the first update. */
#define ADAN_STATES STATES({"exp_avg"}, {"exp_avg_diff"}, POSITIVE("exp_avg_sq"), {"previous_grad"})
#define ADAN_OPTIONS(decay)                                                                                  \
  OPTIONS(LR("0.001"), DECOUPLED_DECAY(decay),                                                               \
          SCHEDULABLE(2, "beta1", "0.98", "[0, 1)", "decay of the mean of gradients"),                       \
          NUMBER(3, "beta2", "0.92", "[0, 1)", "decay of the mean of differences of gradients"),             \
          NUMBER(5, "beta3", "0.99", "[0, 1)", "decay of the mean of squares"), EPSILON("1e-8"))
#define ADAN_STEP(shrunk)                                                                                    \
  "change = grad - (grad if updates <= 1 else previous_grad); next_previous_grad = grad;"                    \
  "ahead = grad + beta2 * change;" MEAN(                                                                     \
      "grad") "next_exp_avg_diff = beta2 * exp_avg_diff + (1 - beta2) * change; bias2 = 1 - beta2 ^ "        \
              "updates;"                                                                                     \
              "next_exp_avg_sq = beta3 * exp_avg_sq + (1 - beta3) * (ahead * ahead); bias3 = 1 - beta3 ^ "   \
              "updates;"                                                                                     \
              "root = sqrt(next_exp_avg_sq) / sqrt(bias3) + epsilon;"                                        \
              "move = (lr / bias1 * next_exp_avg / root + lr * beta2 / bias2 * next_exp_avg_diff / "         \
              "root)" shrunk

OPTIMIZER(adan, "adaptive Nesterov momentum (Xie et al., 2022); the decay is proximal", ADAN_OPTIONS("0"),
          ADAN_STATES,
          .formula = "kept = param / (1 + lr * weight_decay); " ADAN_STEP(" / (1 + lr * weight_decay)"));
OPTIMIZER(adanw, "adan with the weight decay of adamw", ADAN_OPTIONS("0"), ADAN_STATES,
          .formula = DECAYED ADAN_STEP(""));

/* The slow mean is as fast as the other one at first; its half-life rises evenly. The rise reaches beta3 +
 * 1e-8, as the authors' program has it. */
OPTIMIZER(
    ademamix, "adamw with a second, slow mean of gradients (Pagliardini, Ablin, Grangier, ICLR 2025)",
    OPTIONS(LR("0.001"), DECOUPLED_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-8"),
            NUMBER(5, "beta3", "0.9999", "[0, 1)", "decay of the slow mean"),
            NUMBER(6, "alpha", "5", ">= 0", "weight of the slow mean"),
            NUMBER(7, "alpha_steps", "0", ">= 0", "updates in which alpha rises from 0; 0: none"),
            NUMBER(8, "beta3_steps", "0", ">= 0", "updates in which the slow mean becomes slow; 0: none")),
    STATES({"exp_avg"}, {"exp_avg_slow"}, POSITIVE("exp_avg_sq")),
    .formula = DECAYED MEAN("grad")
        MEAN_SQUARE("grad") "weight = alpha * minimum(updates / maximum(alpha_steps, 1), 1) if alpha_steps > "
                            "0 else alpha;"
                            "first = log(0.5) / log(beta1 + 1e-8); last = log(0.5) / log(beta3 + 1e-8);"
                            "half = first + minimum(updates / maximum(beta3_steps, 1), 1) * (last - first);"
                            "gone = 1 - beta3 if updates >= beta3_steps else -expm1(log(0.5) / half);"
                            "next_exp_avg_slow = exp_avg_slow + gone * (grad - exp_avg_slow);"
                            "root = sqrt(next_exp_avg_sq) / sqrt(bias2) + epsilon;"
                            "move = lr * (next_exp_avg / bias1 + weight * next_exp_avg_slow) / root");

/* Squares of the gradients before this one: the first update only takes its square. */
OPTIMIZER(adopt, "Adam that converges with any beta2 (Taniguchi et al., NeurIPS 2024)",
          OPTIONS(LR("0.001"), DECOUPLED_DECAY("0"), BETAS("0.9", "0.9999"),
                  NUMBER(4, "epsilon", "1e-6", "[1e-37, 1e37]", "least root of the mean square"),
                  NUMBER(5, "clip_exp", "0.25", ">= 0",
                         "steps are clipped at this power of the updates before")),
          STATES({"exp_avg"}, POSITIVE("exp_avg_sq")),
          .formula =
              "first = updates <= 1;"
              "most = maximum(updates - 1, 1) ^ clip_exp;"
              "scaled = minimum(maximum(grad / maximum(sqrt(exp_avg_sq), epsilon), -most), most);"
              "mean = beta1 * exp_avg + (1 - beta1) * scaled;"
              "next_exp_avg = exp_avg if first else mean;"
              "next_exp_avg_sq = grad * grad if first else beta2 * exp_avg_sq + (1 - beta2) * (grad * grad);"
              "kept = param if first else param * (1 - lr * weight_decay); move = 0 if first else lr * mean");

/* The gradient is divided before it is averaged; the decay follows the step. */
OPTIMIZER(laprop, "Adam with momentum and adaption apart (Ziyin, Wang and Ueda, 2020)",
          OPTIONS(LR("4e-4"), DECOUPLED_DECAY("0"), BETAS("0.9", "0.999"), EPSILON("1e-15")),
          STATES({"exp_avg"}, POSITIVE("exp_avg_sq")),
          .formula = MEAN_SQUARE("grad") "scaled = grad / (sqrt(next_exp_avg_sq / bias2) + epsilon);"
                                         "next_exp_avg = beta1 * exp_avg + (1 - beta1) * lr * scaled;"
                                         "left = 1 - lr * weight_decay; kept = param * left;"
                                         "move = next_exp_avg / (1 - beta1 ^ updates) * left");

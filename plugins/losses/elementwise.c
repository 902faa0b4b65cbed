/* plugins/losses/elementwise.c: losses and metrics of single elements: an entry with a formula each. */
#include "plugins/losses/losses.h"

/* Option i is v[i]; option i that is yes or no, flag[i]. */
typedef struct element_options {
  double v[2];
  int32_t flag[2];
} element_options;

#define ELEMENT(kind, role_, name_, doc_, options_, ...)                                                     \
  const tn_layer_kind kind##_##name_ = {.item = {(uint32_t)sizeof(tn_layer_kind), TN_LAYER, #name_, doc_,    \
                                                 options_, (uint32_t)sizeof(tn_option),                      \
                                                 (uint32_t)sizeof(element_options)},                         \
                                        .role = role_,                                                       \
                                        __VA_ARGS__}
/* Brackets keep the list one argument of the macros below. */
#define OPTIONS(...) ((const tn_option[]){__VA_ARGS__, TN_OPT_END})
#define NONE         ((const tn_option[]){TN_OPT_END})
#define NUMBER(i, name, default_text, range, doc)                                                            \
  {                                                                                                          \
    name, TN_OPT_FLOAT, 0, (uint32_t)offsetof(element_options, v[i]), (uint32_t)sizeof(double),              \
        default_text, range, doc                                                                             \
  }
#define FLAG(i, name, default_text, doc)                                                                     \
  {                                                                                                          \
    name, TN_OPT_FLAG, 0, (uint32_t)offsetof(element_options, flag[i]), (uint32_t)sizeof(int32_t),           \
        default_text, NULL, doc                                                                              \
  }

/* A loss of a value and a target of one shape. */
#define PAIR(name, doc, options, arguments, ...)                                                             \
  ELEMENT(loss, TN_LAYER_LOSS, name, doc, options, .min_in = 2, .max_in = 2, .inputs = "x target",           \
          .types = "two tensors of one shape",                                                               \
          .example = "targets = label: f32[10]\nloss = " #name arguments, .formula = __VA_ARGS__)
#define PAIR_METRIC(name, doc, ...)                                                                          \
  ELEMENT(metric, TN_LAYER_METRIC, name, doc, NONE, .min_in = 2, .max_in = 2, .inputs = "x target",          \
          .types = "two tensors of one shape", .falls = 1,                                                   \
          .example = "targets = label: f32[10]\nloss = mse\nmetrics = " #name, __VA_ARGS__)

/* ---- numbers ---- */

PAIR(mse, "squared error per element", NONE, "", "y = (x - target) ^ 2");
PAIR(l1, "absolute error per element", NONE, "", "y = abs(x - target)");
PAIR(huber, "half the squared error per element up to delta, and delta (|error| - delta / 2) beyond",
     OPTIONS(NUMBER(0, "delta", "1", "[1e-30, 1e30]", "error from which the loss grows linearly")),
     "(delta=0.5)", "size = abs(x - target); near = minimum(size, delta); y = near * (size - 0.5 * near)");
PAIR(smooth_l1, "huber divided by beta (Girshick, ICCV 2015)",
     OPTIONS(NUMBER(0, "beta", "1", "[1e-30, 1e30]", "error from which the loss grows linearly")),
     "(beta=0.1)",
     "size = abs(x - target); near = minimum(size, beta); y = near * (size - 0.5 * near) / beta");
PAIR(quantile_loss,
     "pinball loss, whose best prediction is a quantile of the targets (Koenker and Bassett, 1978)",
     OPTIONS(NUMBER(0, "q", "0.5", "(0, 1)", "the quantile")), "(q=0.9)",
     "error = target - x; y = maximum(q * error, (q - 1) * error)");
PAIR(poisson_nll, "negative log-likelihood of counts under a Poisson distribution",
     OPTIONS(FLAG(0, "log_input", "yes", "x is the logarithm of the rate"),
             FLAG(1, "full", "no", "with Stirling's approximation of log(target!)"),
             NUMBER(0, "epsilon", "1e-8", "> 0", "added to the rate before its logarithm")),
     "",
     "part = exp(x) - target * x if log_input else x - target * log(x + epsilon);"
     "count = maximum(target, 1);"
     "stirling = count * log(count) - count + 0.5 * log(2 * pi * count);"
     "y = part + (stirling if target > 1 else 0) if full else part");
ELEMENT(loss, TN_LAYER_LOSS, gaussian_nll,
        "negative log-likelihood of targets under a normal distribution with a mean and a variance",
        OPTIONS(FLAG(0, "full", "no", "with the constant log(2 pi) / 2"),
                NUMBER(0, "epsilon", "1e-6", "> 0", "least variance")),
        .min_in = 3, .max_in = 3, .inputs = "x target variance",
        .types = "mean, target and variance: three tensors of one shape",
        .example = "targets = label: f32[10]\nloss = gaussian_nll <- fc, label, exp(fc)",
        .formula = "v = maximum(variance, epsilon);"
                   "y = 0.5 * (log(v) + (x - target) ^ 2 / v) + (0.5 * log(2 * pi) if full else 0)");

/* ---- yes or no ---- */

/* With s(x) = log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): target positive s(-x) + (1 - target) s(x), where
 * s(x) = x + s(-x). The exponential has no large argument. */
#define SOFTPLUS_OF_MINUS_X "below = maximum(-x, 0) + log(1 + exp(-abs(x)));"

ELEMENT(loss, TN_LAYER_LOSS, binary_cross_entropy,
        "negative log-likelihood of yes or no per element, of scores before the sigmoid",
        OPTIONS(NUMBER(0, "positive", "1", "[0, 1e30]", "factor of the loss where the target is 1")),
        .min_in = 2, .max_in = 2, .inputs = "x target",
        .types = "scores and targets from 0 to 1, two tensors of one shape",
        .example = "targets = label: f32[10]\nloss = binary_cross_entropy(positive=3)",
        .formula = SOFTPLUS_OF_MINUS_X "y = (1 - target) * x + ((positive - 1) * target + 1) * below");
ELEMENT(loss, TN_LAYER_LOSS, bce, "binary_cross_entropy of probabilities, whose logarithms are at least -100",
        NONE, .min_in = 2, .max_in = 2, .inputs = "x target",
        .types = "probabilities and targets from 0 to 1, two tensors of one shape",
        .example = "targets = label: f32[10]\nloss = bce <- sigmoid(fc), label",
        .formula = "one = -100 if x < 1e-38 else log(maximum(x, 1e-38));"
                   "zero = -100 if x > 0.99999994 else log1p(-minimum(x, 0.99999994));"
                   "y = -(target * one + (1 - target) * zero)");
ELEMENT(loss, TN_LAYER_LOSS, focal,
        "binary_cross_entropy with less weight for elements that are right (Lin et al., ICCV 2017), as "
        "torchvision's "
        "sigmoid_focal_loss",
        OPTIONS(NUMBER(0, "alpha", "0.25", "[-1, 1]",
                       "weight of the target 1, and 1 - alpha of 0; below 0: none"),
                NUMBER(1, "gamma", "2", ">= 0", "power of the probability of the other answer")),
        .min_in = 2, .max_in = 2, .inputs = "x target",
        .types = "scores and targets of 0 or 1, two tensors of one shape",
        .example = "targets = label: f32[10]\nloss = focal(gamma=1.5)",
        .formula = SOFTPLUS_OF_MINUS_X
        "entropy = (1 - target) * x + below; p = sigmoid(x);"
        "wrong = p + target - 2 * p * target;"
        "part = entropy * wrong ^ gamma;"
        "y = part * (alpha * target + (1 - alpha) * (1 - target)) if alpha >= 0 else part");

/* ---- targets of 1 and -1 ---- */

PAIR(soft_margin, "logarithm of 1 + e^(-target x), for targets of 1 and -1", NONE, "",
     "z = target * x; y = maximum(-z, 0) + log1p(exp(-abs(z)))");
PAIR(hinge_embedding, "x where the target is 1, and the distance from x to margin where it is -1",
     OPTIONS(NUMBER(0, "margin", "1", NULL, "x from which the loss is 0")), "(margin=2)",
     "y = x if target > 0 else maximum(margin - x, 0)");
PAIR(hinge, "distance of target x to 1, for targets of 1 and -1 (support vector machines)",
     OPTIONS(NUMBER(0, "margin", "1", NULL, "target x from which the loss is 0")), "",
     "y = maximum(margin - target * x, 0)");
ELEMENT(loss, TN_LAYER_LOSS, margin_ranking,
        "how far x is from being above other (target 1), or below it (-1)",
        OPTIONS(NUMBER(0, "margin", "0", NULL, "distance that is asked for")), .min_in = 3, .max_in = 3,
        .inputs = "x other target", .types = "three tensors of one shape",
        .example = "targets = label: f32[10]\nloss = margin_ranking <- fc, fc * 2, label",
        .formula = "y = maximum(margin - target * (x - other), 0)");

/* ---- distributions ---- */

PAIR(kl_div,
     "Kullback-Leibler divergence per element, of logarithms of probabilities x and probabilities target",
     OPTIONS(FLAG(0, "log_target", "no", "targets are logarithms, too")), "",
     "y = exp(target) * (target - x) if log_target else xlogy(target, maximum(target, 1e-38)) - target * x");

/* ---- metrics ---- */

PAIR_METRIC(mae, "mean absolute error", .formula = "y = abs(x - target)");
PAIR_METRIC(rmse, "root of the mean squared error", .formula = "y = (x - target) ^ 2",
            .of_mean = TN_OF_MEAN_ROOT);
/* A target of 0 counts as the rounding of f64, as in scikit-learn. */
PAIR_METRIC(mape, "mean absolute error as a part of the target: 0.1 is ten percent",
            .formula = "y = abs(x - target) / maximum(abs(target), 2.220446049250313e-16)");

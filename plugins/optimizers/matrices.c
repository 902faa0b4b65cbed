/* plugins/optimizers/matrices.c: optimizers that see a parameter as a matrix: muon and adafactor. Vectors,
 * such as biases, have a formula. */
#include <math.h>
#include <stdbool.h>

#include "plugins/optimizers/matrices.h"

/* A parameter of n dimensions as a matrix: the first dimension, and all others. */
static void matrix_dims(const tn_type *type, int64_t dims[2]) {
  dims[0] = type->dims[0];
  dims[1] = 1;
  for (int32_t i = 1; i < type->rank; i++) dims[1] *= type->dims[i];
}

/* ---- muon ---- */

typedef struct muon_options {
  double lr, weight_decay, momentum, beta1, beta2, epsilon;
  int64_t steps;
  int32_t nesterov, adjust, adamw, products;
} muon_options;
enum { MUON_BF16 = 0, MUON_F32 = 1 };
enum { MUON_ORIGINAL = 0, MUON_MATCH_RMS_ADAMW = 1, MUON_NONE = 2 };

static const tn_option muon_rows[] = {
    TN_OPT_WITH(muon_options, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.001", ">= 0", "learning rate"),
    TN_OPT_WITH(muon_options, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.1", ">= 0",
                "decoupled weight decay"),
    TN_OPT(muon_options, momentum, TN_OPT_FLOAT, "0.95", "[0, 1)", "decay of the momentum of matrices"),
    TN_OPT(muon_options, nesterov, TN_OPT_FLAG, "yes", NULL, "Nesterov momentum"),
    TN_OPT(muon_options, steps, TN_OPT_INT, "5", "[1, 99]", "Newton-Schulz iterations"),
    TN_OPT(
        muon_options, adjust, TN_OPT_ENUM, "original", "original|match_rms_adamw|none",
        "factor of lr for a matrix of A rows and B columns: sqrt(max(1, A / B)), 0.2 sqrt(max(A, B)), or 1"),
    TN_OPT(muon_options, products, TN_OPT_ENUM, "bf16", "bf16|f32",
           "dtype of the matrices of the iterations; sums are f32"),
    TN_OPT(muon_options, adamw, TN_OPT_FLAG, "no", NULL,
           "matrices are updated as vectors are, for the [group.NAME] of embeddings and of the last layer"),
    TN_OPT(muon_options, beta1, TN_OPT_FLOAT, "0.9", "[0, 1)", "of vectors: decay of the mean of gradients"),
    TN_OPT(muon_options, beta2, TN_OPT_FLOAT, "0.999", "[0, 1)", "of vectors: decay of the mean of squares"),
    TN_OPT(muon_options, epsilon, TN_OPT_FLOAT, "1e-8", "[1e-37, 1e37]",
           "of vectors: added to the root of the mean square"),
    TN_OPT_END};

/* x rounded as the matrices of the iterations are. */
static tn_val muon_rounded(tn_build *b, tn_val x, int32_t dtype) {
  return tn_to_dtype(b, tn_to_dtype(b, x, dtype), TN_F32);
}

/* scale * product + plus * x, rounded once. */
static tn_val muon_sum(tn_build *b, tn_val product, double scale, tn_val x, double plus) {
  tn_val sum = tn_add(b, tn_affine(b, tn_to_dtype(b, x, TN_F32), plus, 0),
                      tn_affine(b, tn_to_dtype(b, product, TN_F32), scale, 0));
  return tn_to_dtype(b, sum, tn_val_type(b, x)->dtype);
}

/* x with its norm as the length. */
static tn_val muon_normed(tn_build *b, tn_val x, int32_t dtype) {
  x = muon_rounded(b, x, dtype);
  tn_val norm = muon_rounded(b, tn_sqrt(b, tn_reduce_sum(b, tn_mul(b, x, x), 0, NULL, 0)), dtype);
  return tn_to_dtype(b, tn_div(b, x, tn_maximum(b, norm, tn_scalar(b, TN_F32, 1e-7))), dtype);
}

/* The factors of a matrix with its singular values near 1, by an iteration of degree five whose slope at 0 is
 * as steep as possible (Jordan et al., "Muon", 2024). The smaller dimension comes first, so that products are
 * small. */
static tn_val muon_orthogonal(tn_build *b, tn_val x, const muon_options *o) {
  bool tall = tn_val_dim(b, x, 0) > tn_val_dim(b, x, 1);
  x = muon_normed(b, x, o->products == MUON_BF16 ? TN_BF16 : TN_F32);
  for (int64_t i = 0; i < o->steps; i++) {
    tn_val gram = tn_matmul(b, x, x, 0, tall, !tall, 0);
    tn_val curve = muon_sum(b, tn_matmul(b, gram, gram, 0, 0, 0, 0), 2.0315, gram, -4.775);
    tn_val moved = tall ? tn_matmul(b, x, curve, 0, 0, 0, 0) : tn_matmul(b, curve, x, 0, 0, 0, 0);
    x = muon_sum(b, moved, 1, x, 3.4445);
  }
  return tn_to_dtype(b, x, TN_F32);
}

static double muon_factor(int32_t adjust, const int64_t dims[2]) {
  double rows = (double)dims[0], columns = (double)dims[1];
  if (adjust == MUON_MATCH_RMS_ADAMW) return 0.2 * sqrt(fmax(rows, columns));
  return adjust == MUON_ORIGINAL ? sqrt(fmax(1, rows / columns)) : 1;
}

static tn_status muon_update(tn_build *b, const void *given) {
  const muon_options *o = given;
  const tn_type type = *tn_val_type(b, tn_build_in(b, 0));
  tn_val grad = tn_build_in(b, 1), lr = tn_build_option_value(b, "lr");
  tn_val buffer = tn_build_state(b, "momentum_buffer", &type, "zeros");
  tn_val mean = matrix_blend(b, buffer, o->momentum, grad);
  int64_t dims[2];
  matrix_dims(&type, dims);
  tn_build_commit(b, buffer, mean);
  tn_val step = o->nesterov ? matrix_blend(b, mean, o->momentum, grad) : mean;
  step = muon_orthogonal(b, tn_reshape(b, step, 2, dims), o);
  step = tn_affine(b, tn_reshape(b, step, type.rank, type.dims), muon_factor(o->adjust, dims), 0);
  tn_build_yield(b, 0, tn_sub(b, matrix_decayed(b, lr), tn_mul(b, step, lr)));
  return TN_OK;
}

static int32_t muon_takes(const void *given, const tn_type *param) {
  return param->rank >= 2 && !((const muon_options *)given)->adamw;
}

const tn_optimizer optimizer_muon = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "muon",
                    "momentum of matrices made orthogonal (Jordan et al., 2024), as PyTorch defines it; "
                    "vectors are updated by adamw",
                    muon_options, muon_rows),
    .granularity = TN_UPDATE_PER_PARAMETER,
    .update = muon_update,
    .takes = muon_takes,
    STATES({"exp_avg"}, POSITIVE("exp_avg_sq")),
    .formula =
        DECAYED MEAN("grad") MEAN_SQUARE("grad") "root = sqrt(next_exp_avg_sq) / sqrt(bias2) + epsilon;"
                                                 "move = lr / bias1 * next_exp_avg / root"};

/* ---- adafactor ---- */

typedef struct adafactor_options {
  double lr, weight_decay, beta2_decay, epsilon1, epsilon2, d;
} adafactor_options;

static const tn_option adafactor_rows[] = {
    TN_OPT_WITH(adafactor_options, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.01", ">= 0",
                "greatest relative step"),
    TN_OPT_WITH(adafactor_options, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0", ">= 0",
                "decoupled weight decay"),
    TN_OPT(adafactor_options, beta2_decay, TN_OPT_FLOAT, "-0.8", "<= 0",
           "power of the number of updates by which new squares count"),
    TN_OPT(adafactor_options, epsilon1, TN_OPT_FLOAT, "1.1920929e-07", "> 0",
           "least root of the mean square"),
    TN_OPT(adafactor_options, epsilon2, TN_OPT_FLOAT, "1e-3", "> 0", "least size of a parameter"),
    TN_OPT(adafactor_options, d, TN_OPT_FLOAT, "1", ">= 1", "most root mean square of a step"),
    TN_OPT_END};

/* Mean squares as the product of those of rows and columns, divided by their mean. */
static tn_val adafactor_squares(tn_build *b, double epsilon, tn_val weight) {
  tn_val grad = tn_build_in(b, 1), squares = tn_mul(b, grad, grad);
  int64_t last = tn_val_type(b, grad)->rank - 1, before = last - 1;
  tn_val rows = matrix_axis_mean(b, "row_var", squares, last, weight),
         columns = matrix_axis_mean(b, "col_var", squares, before, weight);
  tn_val mean = tn_maximum(b, tn_reduce_mean(b, rows, 1, &before, 1), tn_scalar(b, TN_F32, epsilon));
  return tn_div(b, tn_mul(b, rows, columns), mean);
}

static tn_status adafactor_update(tn_build *b, const void *given) {
  const adafactor_options *o = given;
  tn_val lr = tn_build_option_value(b, "lr"), size = matrix_root_mean_square(b, tn_build_in(b, 0));
  tn_val least = tn_scalar(b, TN_F32, o->epsilon1 * o->epsilon1);
  tn_val squares = adafactor_squares(b, o->epsilon1, matrix_power(b, o->beta2_decay));
  tn_val step = tn_mul(b, tn_rsqrt(b, tn_maximum(b, squares, least)), tn_build_in(b, 1));
  tn_val rate = tn_mul(b, tn_maximum(b, size, tn_scalar(b, TN_F32, o->epsilon2)),
                       tn_minimum(b, lr, matrix_power(b, -0.5)));
  tn_build_yield(
      b, 0, tn_sub(b, matrix_decayed(b, lr), tn_mul(b, step, tn_div(b, rate, matrix_above(b, step, o->d)))));
  return TN_OK;
}

static int32_t adafactor_takes(const void *options, const tn_type *param) {
  (void)options;
  return param->rank >= 2;
}

const tn_optimizer optimizer_adafactor = {
    .item = TN_ITEM(
        tn_optimizer, TN_OPTIMIZER, "adafactor",
        "squares of gradients kept as means of rows and columns (Shazeer and Stern, ICML 2018), as PyTorch "
        "defines it",
        adafactor_options, adafactor_rows),
    .granularity = TN_UPDATE_PER_PARAMETER,
    .update = adafactor_update,
    .takes = adafactor_takes,
    STATES(POSITIVE("variance")),
    .formula = DECAYED "size = maximum(sqrt(reduce_mean(param * param)), epsilon2);"
                       "next_variance = variance + (grad * grad - variance) * updates ^ beta2_decay;"
                       "scaled = grad * rsqrt(maximum(next_variance, epsilon1 * epsilon1));"
                       "clip = maximum(sqrt(reduce_mean(scaled * scaled)) / d, 1);"
                       "move = size * minimum(lr, updates ^ -0.5) / clip * scaled"};

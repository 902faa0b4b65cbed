/* plugins/optimizers/mars.c: MARS (Yuan et al., "MARS: unleashing the power of variance reduction for
 * training large models", 2024), as timm defines it: adamw by gradients that are moved by their change since
 * the update before, with a norm of 1 at most. Vectors are updated by adamw. */
#include "plugins/optimizers/matrices.h"

static tn_val mars_gradient(tn_build *b, double factor) {
  tn_val grad = tn_build_in(b, 1), last = tn_build_state(b, "last_grad", tn_val_type(b, grad), "zeros");
  tn_val first = tn_le(b, tn_build_counter(b, TN_UPDATES), tn_scalar(b, TN_I64, 1));
  tn_val moved = tn_add(b, tn_affine(b, tn_sub(b, grad, last), factor, 0), grad);
  tn_build_commit(b, last, tn_affine(b, grad, 1, 0));
  moved = tn_where(b, first, grad, moved);
  tn_val norm = tn_sqrt(b, tn_reduce_sum(b, tn_mul(b, moved, moved), 0, NULL, 0));
  return tn_div(b, moved, tn_maximum(b, norm, tn_scalar(b, TN_F32, 1)));
}

static tn_status mars_update(tn_build *b, const void *given) {
  const double *v = ((const optimizer_options *)given)->v;
  tn_val grad = mars_gradient(b, v[5] * v[2] / (1 - v[2])), lr = tn_build_option_value(b, "lr");
  tn_val step = matrix_adam_step(b, grad, v[2], v[3], v[4]);
  tn_build_yield(b, 0, tn_sub(b, matrix_decayed(b, lr), tn_mul(b, lr, step)));
  return TN_OK;
}

static int32_t mars_takes(const void *options, const tn_type *param) {
  return param->rank >= 2 || ((const optimizer_options *)options)->flag[0];
}

OPTIMIZER(mars, "adamw by gradients with less variance (Yuan et al., 2024)",
          OPTIONS(LR("0.003"), DECOUPLED_DECAY("0"),
                  NUMBER(2, "beta1", "0.9", "[0, 1)", "decay of the mean of gradients"),
                  NUMBER(3, "beta2", "0.99", "[0, 1)", "decay of the mean of squared gradients"),
                  NUMBER(4, "epsilon", "1e-8", "[1e-37, 1e37]", "added to the root of the mean square"),
                  NUMBER(5, "gamma", "0.025", ">= 0", "how far a gradient is moved"),
                  FLAG(0, "optimize_1d", "no", "vectors have moved gradients, too")),
          STATES({"exp_avg"}, POSITIVE("exp_avg_sq")), .granularity = TN_UPDATE_PER_PARAMETER,
          .update = mars_update, .takes = mars_takes,
          .formula = DECAYED MEAN("grad")
              MEAN_SQUARE("grad") "root = sqrt(next_exp_avg_sq) / sqrt(bias2) + epsilon;"
                                  "move = lr * (next_exp_avg / bias1 / root)");

/* plugins/optimizers/projection.c: adamp and sgdp (Heo et al., "AdamP", ICLR 2021): of weights that a
 * normalization follows, whose gradients are orthogonal to them, the step loses its part along the weights,
 * and the decay is weaker. Rows of a weight are looked at first, then the weight as a whole. */
#include <math.h>

#include "plugins/optimizers/matrices.h"

typedef struct projection {
  tn_val step, found; /* found: whether the gradient is orthogonal, a truth */
} projection;

static tn_val projection_dot(tn_build *b, tn_val x, tn_val y) {
  const int64_t axis = 1;
  return tn_reduce_sum(b, tn_mul(b, x, y), 1, &axis, 1);
}

/* Of parameter, gradient and step as so many rows. */
static projection projection_of(tn_build *b, int64_t rows, tn_val step, double delta, double epsilon) {
  const tn_type type = *tn_val_type(b, step);
  const int64_t dims[] = {rows, tn_type_count(&type) / rows};
  tn_val p = tn_reshape(b, tn_build_in(b, 0), 2, dims), g = tn_reshape(b, tn_build_in(b, 1), 2, dims);
  tn_val x = tn_reshape(b, step, 2, dims), least = tn_scalar(b, TN_F32, epsilon);
  tn_val p_norm = tn_sqrt(b, projection_dot(b, p, p)), g_norm = tn_sqrt(b, projection_dot(b, g, g));
  tn_val norms = tn_mul(b, tn_maximum(b, p_norm, least), tn_maximum(b, g_norm, least));
  tn_val cosine = tn_abs(b, tn_div(b, projection_dot(b, g, p), norms));
  tn_val unit = tn_div(b, p, tn_affine(b, p_norm, 1, epsilon));
  tn_val moved = tn_sub(b, x, tn_mul(b, unit, projection_dot(b, unit, x)));
  tn_val most = tn_reduce_max(b, cosine, 0, NULL, 0);
  tn_val limit = tn_scalar(b, TN_F32, delta / sqrt((double)dims[1]));
  return (projection){tn_reshape(b, moved, type.rank, type.dims), tn_lt(b, most, limit)};
}

/* Yields the parameter after a step. `decay`: of a weight that is not projected, a scalar. */
static void projection_yield(tn_build *b, tn_val step, tn_val decay, const double *o) {
  tn_val param = tn_build_in(b, 0);
  projection rows = projection_of(b, tn_val_dim(b, param, 0), step, o[0], o[2]);
  projection all = projection_of(b, 1, step, o[0], o[2]);
  tn_val found = tn_or(b, rows.found, all.found), one = tn_scalar(b, TN_F32, 1);
  tn_val moved = tn_where(b, rows.found, rows.step, tn_where(b, all.found, all.step, step));
  tn_val weight = tn_where(b, found, tn_scalar(b, TN_F32, o[1]), one);
  tn_val kept = tn_mul(b, param, tn_sub(b, one, tn_mul(b, decay, weight)));
  tn_build_yield(b, 0, tn_sub(b, kept, tn_mul(b, tn_build_option_value(b, "lr"), moved)));
}

static tn_val projection_decay(tn_build *b) {
  return tn_mul(b, tn_build_option_value(b, "lr"), tn_build_option_value(b, "weight_decay"));
}

static int32_t projection_takes(const void *options, const tn_type *param) {
  (void)options;
  return param->rank >= 2;
}

#define PROJECTION(epsilon)                                                                                  \
  NUMBER(5, "delta", "0.1", ">= 0",                                                                          \
         "cosine, times the root of the length, below which a step is projected"),                           \
      NUMBER(6, "wd_ratio", "0.1", ">= 0", "factor of the decay of projected weights"),                      \
      NUMBER(7, "epsilon", epsilon, "[1e-37, 1e37]", "added to norms and roots"),                            \
      FLAG(0, "nesterov", "no", "Nesterov momentum")

static tn_status adamp_update(tn_build *b, const void *given) {
  const optimizer_options *o = given;
  tn_val grad = tn_build_in(b, 1), mean = matrix_adam_mean(b, grad, o->v[2]);
  if (o->flag[0]) mean = matrix_blend(b, mean, o->v[2], grad);
  tn_val step = tn_div(b, mean, matrix_adam_root(b, grad, o->v[3], o->v[7]));
  projection_yield(b, tn_div(b, step, matrix_correction(b, o->v[2])), projection_decay(b), &o->v[5]);
  return TN_OK;
}

OPTIMIZER(adamp, "adamw with steps that do not grow normalized weights (Heo et al., ICLR 2021)",
          OPTIONS(LR("0.001"), DECOUPLED_DECAY("0"),
                  NUMBER(2, "beta1", "0.9", "[0, 1)", "decay of the mean of gradients"),
                  NUMBER(3, "beta2", "0.999", "[0, 1)", "decay of the mean of squared gradients"),
                  PROJECTION("1e-8")),
          STATES({"exp_avg"}, POSITIVE("exp_avg_sq")), .granularity = TN_UPDATE_PER_PARAMETER,
          .update = adamp_update, .takes = projection_takes,
          .formula = DECAYED MEAN("grad") MEAN_SQUARE(
              "grad") "mean = beta1 * next_exp_avg + (1 - beta1) * grad if nesterov else next_exp_avg;"
                      "move = lr / bias1 * mean / (sqrt(next_exp_avg_sq) / sqrt(bias2) + epsilon)");

static tn_status sgdp_update(tn_build *b, const void *given) {
  const optimizer_options *o = given;
  tn_val grad = tn_build_in(b, 1), buffer = tn_build_state(b, "momentum", tn_val_type(b, grad), "zeros");
  tn_val next = tn_add(b, tn_affine(b, buffer, o->v[2], 0), tn_affine(b, grad, 1 - o->v[3], 0));
  tn_build_commit(b, buffer, next);
  tn_val step = o->flag[0] ? tn_add(b, grad, tn_affine(b, next, o->v[2], 0)) : next;
  projection_yield(b, step, tn_affine(b, projection_decay(b), 1 / (1 - o->v[2]), 0), &o->v[5]);
  return TN_OK;
}

OPTIMIZER(sgdp, "sgd with steps that do not grow normalized weights (Heo et al., ICLR 2021)",
          OPTIONS(LR("0.01"), DECOUPLED_DECAY("0"),
                  NUMBER(2, "momentum", "0", "[0, 1)", "decay of the momentum buffer"),
                  NUMBER(3, "dampening", "0", "[0, 1]", "fraction of the gradient that the momentum omits"),
                  PROJECTION("1e-8")),
          STATES({"momentum", .in_formula = "buffer"}), .granularity = TN_UPDATE_PER_PARAMETER,
          .update = sgdp_update, .takes = projection_takes,
          .formula = "next_buffer = momentum * buffer + (1 - dampening) * grad;"
                     "kept = param * (1 - lr * weight_decay / (1 - momentum));"
                     "move = lr * (grad + momentum * next_buffer if nesterov else next_buffer)");

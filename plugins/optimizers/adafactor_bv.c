/* plugins/optimizers/adafactor_bv.c: Adafactor as Big Vision has it for ViT (Zhai et al., "Scaling vision
 * transformers", CVPR 2022), as timm defines it: no relative steps, momentum, and the two largest dimensions
 * as rows and columns. */
#include "plugins/optimizers/matrices.h"

enum { LR_OPTION = 0, DECAY_RATE = 2, CAP = 3, MOMENTUM = 4, EPSILON = 5, CLIP = 6, LEAST = 7 };

/* The two largest dimensions, of equal ones the last; the largest is dims[1]. False: the second is too small.
 */
static bool adafactor_bv_dims(const double *o, const tn_type *type, int64_t dims[2]) {
  for (int32_t k = 1; type->rank > 1 && k >= 0; k--) {
    dims[k] = -1;
    for (int32_t i = 0; i < type->rank; i++)
      if ((k == 1 || i != dims[1]) && (dims[k] < 0 || type->dims[i] >= type->dims[dims[k]])) dims[k] = i;
  }
  return type->rank > 1 && (double)type->dims[dims[0]] >= o[LEAST];
}

static tn_val adafactor_bv_scaled(tn_build *b, const double *o, const int64_t dims[2]) {
  tn_val grad = tn_build_in(b, 1), squares = tn_affine(b, tn_mul(b, grad, grad), 1, o[EPSILON]);
  /* 1 - min(cap, 1 - updates ^ -rate) */
  tn_val weight = tn_maximum(b, matrix_power(b, -o[DECAY_RATE]), tn_scalar(b, TN_F32, 1 - o[CAP]));
  tn_val rows = matrix_axis_mean(b, "exp_avg_sq_r", squares, dims[1], weight),
         columns = matrix_axis_mean(b, "exp_avg_sq_c", squares, dims[0], weight);
  tn_val row = tn_rsqrt(b, tn_div(b, rows, tn_reduce_mean(b, rows, 1, &dims[0], 1)));
  tn_val step = tn_mul(b, tn_mul(b, grad, row), tn_rsqrt(b, columns));
  return o[CLIP] > 0 ? tn_div(b, step, matrix_above(b, step, o[CLIP])) : step;
}

static tn_status adafactor_bv_update(tn_build *b, const void *given) {
  const optimizer_options *o = given;
  int64_t dims[2];
  adafactor_bv_dims(o->v, tn_val_type(b, tn_build_in(b, 1)), dims);
  tn_val step = adafactor_bv_scaled(b, o->v, dims), lr = tn_build_option_value(b, "lr");
  if (o->v[MOMENTUM] > 0) step = matrix_adam_mean(b, step, o->v[MOMENTUM]);
  tn_val rate = o->flag[0] ? tn_scalar(b, TN_F32, 1) : lr;
  tn_build_yield(b, 0, tn_sub(b, matrix_decayed(b, rate), tn_mul(b, lr, step)));
  return TN_OK;
}

static int32_t adafactor_bv_takes(const void *options, const tn_type *param) {
  int64_t dims[2];
  return adafactor_bv_dims(((const optimizer_options *)options)->v, param, dims);
}

OPTIMIZER(
    adafactor_bv, "Adafactor as Big Vision has it, without relative steps (Zhai et al., CVPR 2022)",
    OPTIONS(LR("1"), DECOUPLED_DECAY("0"),
            NUMBER(2, "decay_rate", "0.8", "> 0", "power of the number of updates by which squares count"),
            NUMBER(3, "beta2_cap", "0.999", "[0, 1)", "greatest decay of the mean squares"),
            NUMBER(4, "momentum", "0.9", "[0, 1)", "decay of the mean of steps; 0: none"),
            NUMBER(5, "epsilon", "1e-30", "[0, 1e37]", "added to squares"),
            NUMBER(6, "clipping_threshold", "0", ">= 0", "greatest root mean square of a step; 0: no limit"),
            NUMBER(7, "min_dim_size_to_factor", "16", ">= 1", "least second dimension with rows and columns"),
            FLAG(0, "unscaled_wd", "no", "weight decay without lr")),
    STATES(POSITIVE("exp_avg_sq"), {"exp_avg", .when = "momentum"}), .granularity = TN_UPDATE_PER_PARAMETER,
    .update = adafactor_bv_update, .takes = adafactor_bv_takes,
    .formula = "keep = minimum(beta2_cap, 1 - updates ^ (0 - decay_rate));"
               "next_exp_avg_sq = exp_avg_sq + (grad * grad + epsilon - exp_avg_sq) * (1 - keep);"
               "scaled = grad * rsqrt(next_exp_avg_sq);"
               "above = maximum(sqrt(reduce_mean(scaled * scaled)) / clipping_threshold, 1) if "
               "clipping_threshold > 0 else 1;"
               "step = scaled / above;"
               "next_exp_avg = momentum * exp_avg + (1 - momentum) * step;"
               "kept = param * (1 - weight_decay) if unscaled_wd else param * (1 - lr * weight_decay);"
               "move = lr * (next_exp_avg if momentum > 0 else step)");

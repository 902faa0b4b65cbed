/* plugins/optimizers/matrices.h: ops of optimizers in C. */
#pragma once

#include "plugins/optimizers/optimizers.h"

static inline tn_val matrix_blend(tn_build *b, tn_val x, double keep, tn_val y) {
  return tn_add(b, tn_affine(b, x, keep, 0), tn_affine(b, y, 1 - keep, 0));
}

static inline tn_val matrix_root_mean_square(tn_build *b, tn_val x) {
  return tn_sqrt(b, tn_reduce_mean(b, tn_mul(b, x, x), 0, NULL, 0));
}

/* How far the root mean square of a step is above `most`: at least 1. */
static inline tn_val matrix_above(tn_build *b, tn_val step, double most) {
  tn_val above = tn_affine(b, matrix_root_mean_square(b, step), 1 / most, 0);
  return tn_maximum(b, above, tn_scalar(b, TN_F32, 1));
}

/* updates ^ power, in f64 until it is an f32 scalar. */
static inline tn_val matrix_power(tn_build *b, double power) {
  tn_val updates = tn_to_dtype(b, tn_build_counter(b, TN_UPDATES), TN_F64);
  return tn_to_dtype(b, tn_pow(b, updates, tn_scalar(b, TN_F64, power)), TN_F32);
}

/* The mean of x over an axis, as an average over the updates in which the newest has this weight; commits the
 * state. */
static inline tn_val matrix_axis_mean(tn_build *b, const char *name, tn_val x, int64_t axis, tn_val weight) {
  tn_type type = *tn_val_type(b, x);
  type.dims[axis] = 1;
  tn_val mean = tn_build_state(b, name, &type, "zeros");
  tn_val next = tn_add(b, mean, tn_mul(b, tn_sub(b, tn_reduce_mean(b, x, 1, &axis, 1), mean), weight));
  tn_build_commit(b, mean, next);
  return next;
}

/* The parameter with decoupled weight decay. */
static inline tn_val matrix_decayed(tn_build *b, tn_val lr) {
  tn_val decay = tn_mul(b, lr, tn_build_option_value(b, "weight_decay"));
  return tn_mul(b, tn_build_in(b, 0), tn_affine(b, decay, -1, 1));
}

/* 1 - beta ^ updates, in f64 until it is an f32 scalar. */
static inline tn_val matrix_correction(tn_build *b, double beta) {
  tn_val updates = tn_to_dtype(b, tn_build_counter(b, TN_UPDATES), TN_F64);
  return tn_to_dtype(b, tn_affine(b, tn_pow(b, tn_scalar(b, TN_F64, beta), updates), -1, 1), TN_F32);
}

/* The root of the mean square of a gradient, corrected, plus epsilon; commits the state exp_avg_sq. */
static inline tn_val matrix_adam_root(tn_build *b, tn_val grad, double beta2, double epsilon) {
  tn_val squares = tn_build_state(b, "exp_avg_sq", tn_val_type(b, grad), "zeros");
  tn_val next = matrix_blend(b, squares, beta2, tn_mul(b, grad, grad));
  tn_build_commit(b, squares, next);
  return tn_affine(b, tn_div(b, tn_sqrt(b, next), tn_sqrt(b, matrix_correction(b, beta2))), 1, epsilon);
}

/* The mean of a gradient; commits the state exp_avg. */
static inline tn_val matrix_adam_mean(tn_build *b, tn_val grad, double beta1) {
  tn_val mean = tn_build_state(b, "exp_avg", tn_val_type(b, grad), "zeros");
  tn_val next = matrix_blend(b, mean, beta1, grad);
  tn_build_commit(b, mean, next);
  return next;
}

static inline tn_val matrix_adam_step(tn_build *b, tn_val grad, double beta1, double beta2, double epsilon) {
  tn_val mean = tn_div(b, matrix_adam_mean(b, grad, beta1), matrix_correction(b, beta1));
  return tn_div(b, mean, matrix_adam_root(b, grad, beta2, epsilon));
}

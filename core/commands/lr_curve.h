/* core/commands/lr_curve.h: the losses of steps whose learning rate rises, and the rates that they
 * suggest (L. N. Smith, "Cyclical learning rates for training neural networks", WACV 2017). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_lr_point {
  double lr, loss, smoothed;
} tn_lr_point;

typedef struct tn_lr_curve {
  tn_lr_point *v; /* the caller's, with room for all points */
  int32_t n;
  double sum, weight; /* of the exponential average */
} tn_lr_curve;

/* Adds a point with a finite loss, and smooths it over the points before. Returns whether the curve goes on:
 * not where the loss has risen far above its least value. */
bool tn_lr_curve_add(tn_lr_curve *curve, double lr, double loss);

/* The positions of the least smoothed loss, and of the point before it where the smoothed loss falls most for
 * its step of the learning rate. Both are -1 where the loss does not fall. */
typedef struct tn_lr_advice {
  int32_t least, steepest;
} tn_lr_advice;
tn_lr_advice tn_lr_curve_advise(const tn_lr_curve *curve);

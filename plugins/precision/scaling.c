/* plugins/precision/scaling.c: loss scaling (Micikevicius et al., ICLR 2018, section 3.2). Gradients below
 * 6e-8 underflow in f16, so the loss is multiplied by a scale. The scale shrinks when a gradient overflows
 * and grows after growth_interval finite steps, with the rule of torch.amp.GradScaler. */
#include <stdio.h>

#include "plugins/precision/precision.h"

static const tn_type scale_type = {.dtype = TN_F32}, count_type = {.dtype = TN_I64};

static tn_val scale_state(tn_build *b, const precision_options *o) {
  char init[64];
  snprintf(init, sizeof init, "constant(%.17g)", o->init_scale);
  return tn_build_state(b, "scale", &scale_type, init);
}

tn_status precision_scale(tn_build *b, const void *options) {
  const precision_options *o = options;
  if (o->scaling == SCALING_STATIC) tn_build_yield(b, 0, tn_scalar(b, TN_F32, o->init_scale));
  if (o->scaling == SCALING_DYNAMIC) tn_build_yield(b, 0, scale_state(b, o));
  return TN_OK;
}

/* The product is computed in f64: a factor such as 0.3, rounded to f32 first, would give another scale. */
static tn_val scaling_multiply(tn_build *b, tn_val scale, double factor) {
  return tn_to_dtype(b, tn_affine(b, tn_to_dtype(b, scale, TN_F64), factor, 0), TN_F32);
}

/* The scale does not grow if it would become infinite. */
tn_status precision_update(tn_build *b, const void *options) {
  const precision_options *o = options;
  if (o->scaling != SCALING_DYNAMIC) return TN_OK;
  tn_val finite = tn_build_in(b, 0), scale = scale_state(b, o);
  tn_val streak = tn_build_state(b, "good_steps", &count_type, "zeros");
  tn_val longer = tn_add(b, streak, tn_scalar(b, TN_I64, 1));
  tn_val due = tn_ge(b, longer, tn_scalar(b, TN_I64, (double)o->growth_interval));
  tn_val grown = scaling_multiply(b, scale, o->growth_factor);
  tn_val grows = tn_and(b, due, tn_is_finite(b, grown));
  tn_val good = tn_where(b, grows, grown, scale), bad = scaling_multiply(b, scale, o->backoff_factor);
  tn_val goes_on = tn_and(b, finite, tn_not(b, due));
  tn_build_commit(b, scale, tn_where(b, finite, good, bad));
  tn_build_commit(b, streak, tn_where(b, goes_on, longer, tn_scalar(b, TN_I64, 0)));
  return TN_OK;
}

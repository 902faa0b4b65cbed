/* plugins/transforms/policy/auto_augment.h: the ops that rand_augment, trivial_augment and aug_mix choose
 * from. */
#pragma once

#include "plugins/transforms/pixels/canvas.h"

/* In the order of torchvision's tables. */
typedef enum augment_op {
  AUGMENT_IDENTITY,
  AUGMENT_SHEAR_X,
  AUGMENT_SHEAR_Y,
  AUGMENT_TRANSLATE_X,
  AUGMENT_TRANSLATE_Y,
  AUGMENT_ROTATE,
  AUGMENT_BRIGHTNESS,
  AUGMENT_COLOR,
  AUGMENT_CONTRAST,
  AUGMENT_SHARPNESS,
  AUGMENT_POSTERIZE,
  AUGMENT_SOLARIZE,
  AUGMENT_AUTOCONTRAST,
  AUGMENT_EQUALIZE,
  AUGMENT_OPS
} augment_op;

/* Magnitudes are those of torchvision: tangents, pixels, degrees, factors minus 1, bits, a part of 255. */
void augment_apply(canvas *c, augment_op op, double magnitude, const sampling *how);
/* The same, with either sign where the op has one. */
void augment_apply_either_way(canvas *c, augment_op op, double magnitude, tn_rng *rng, const sampling *how);
/* Strength `bin` of `bins` of an op of aug_mix. */
double augment_mix_magnitude(augment_op op, int64_t bin, int64_t bins, const canvas *c);

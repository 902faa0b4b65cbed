/* plugins/transforms/auto_augment.h: the ops that rand_augment and trivial_augment choose from. */
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

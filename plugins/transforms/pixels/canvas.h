/* plugins/transforms/pixels/canvas.h: changes of bytes in place, with the values of torchvision's functional
 * ops on uint8: what color_jitter, rand_augment and trivial_augment consist of. A canvas holds pictures of
 * one or three channels; each picture is changed by itself, as one in a video.
 *
 * canvas.c    memory; ops of single bytes by tables
 * color.c     ops that mix channels
 * sharpness.c, affine.c    ops that read other pixels */
#pragma once

#include "plugins/transforms/transforms.h"

typedef struct canvas {
  uint8_t *pixels; /* [frames, channels, height, width] */
  uint8_t *spare;  /* as many bytes */
  int64_t *places; /* for affine_apply */
  int64_t frames, channels, height, width;
} canvas;

/* Fails unless all fields are pictures of u8 with one or three channels, or of a size that varies; with
 * `colors`, masks, boxes and points may follow the first. */
tn_status canvas_check(tn_env *env, int32_t n, const tn_type *types, int colors);
/* Copies field k to the result, where the ops then change it. Fields that are no pictures have no frames, so
 * the ops leave them as they are. */
tn_status canvas_open(tn_transform_call *c, int32_t k, canvas *to);

/* Factors are at least 0; 1 changes nothing. torchvision's adjust_brightness, adjust_contrast,
 * adjust_saturation and adjust_sharpness. */
void canvas_brightness(canvas *c, float factor);
void canvas_contrast(canvas *c, float factor);
void canvas_saturation(canvas *c, float factor);
void canvas_sharpness(canvas *c, float factor);
/* Turns the hue by a part of the circle, -0.5 to 0.5. */
void canvas_hue(canvas *c, float turn);
/* Keeps the upper bits, 0 to 8. */
void canvas_posterize(canvas *c, int bits);
/* Inverts bytes of at least `threshold`. */
void canvas_solarize(canvas *c, float threshold);
/* Stretches each channel to 0 .. 255. */
void canvas_autocontrast(canvas *c);
/* Gives each channel an even histogram. */
void canvas_equalize(canvas *c);
/* Puts the channels in random order. */
void canvas_permute(canvas *c, tn_rng *rng);
/* See affine_apply. */
void canvas_affine(canvas *c, const affine *by, const sampling *how);

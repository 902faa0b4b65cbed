/* plugins/transforms/photometric/random_colors.c: changes of colors that are applied with a probability, as
 * torchvision's transforms of these names. Each is one op of a canvas (pixels/canvas.h). */
#include "plugins/transforms/pixels/canvas.h"

typedef struct colors_options {
  double p, threshold, sharpness_factor;
  int64_t bits;
} colors_options;

#define P_OPTION TN_OPT(colors_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability")

static const tn_option plain_options[] = {P_OPTION, TN_OPT_END};
static const tn_option posterize_options[] = {
    TN_OPT(colors_options, bits, TN_OPT_INT, NULL, "[0, 8]", "upper bits that are kept"), P_OPTION,
    TN_OPT_END};
static const tn_option solarize_options[] = {
    TN_OPT(colors_options, threshold, TN_OPT_FLOAT, NULL, "[0, 256]", "bytes of at least this are inverted"),
    P_OPTION, TN_OPT_END};
static const tn_option sharpness_options[] = {TN_OPT(colors_options, sharpness_factor, TN_OPT_FLOAT, NULL,
                                                     "[0, 1000000]",
                                                     "0 blurs, 1 changes nothing, 2 sharpens"),
                                              P_OPTION, TN_OPT_END};

static tn_status colors_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  (void)opts;
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return canvas_check(env, n, in, 1);
}

/* One choice for all fields. */
static tn_status colors_apply(tn_transform_call *c, const colors_options *o,
                              void (*change)(canvas *, const colors_options *, tn_rng)) {
  tn_rng rng = tn_rng_at(c->key, 0);
  int chosen = tn_rng_uniform(&rng) < o->p;
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    canvas work;
    status = canvas_open(c, k, &work);
    if (status == TN_OK && chosen) change(&work, o, rng);
  }
  return status;
}

static void colors_autocontrast(canvas *c, const colors_options *o, tn_rng rng) {
  (void)o, (void)rng;
  canvas_autocontrast(c);
}

static void colors_equalize(canvas *c, const colors_options *o, tn_rng rng) {
  (void)o, (void)rng;
  canvas_equalize(c);
}

static void colors_invert(canvas *c, const colors_options *o, tn_rng rng) {
  (void)o, (void)rng;
  canvas_solarize(c, 0);
}

static void colors_posterize(canvas *c, const colors_options *o, tn_rng rng) {
  (void)rng;
  canvas_posterize(c, (int)o->bits);
}

static void colors_solarize(canvas *c, const colors_options *o, tn_rng rng) {
  (void)rng;
  canvas_solarize(c, (float)o->threshold);
}

static void colors_sharpness(canvas *c, const colors_options *o, tn_rng rng) {
  (void)rng;
  canvas_sharpness(c, (float)o->sharpness_factor);
}

static void colors_permute(canvas *c, const colors_options *o, tn_rng rng) {
  (void)o;
  canvas_permute(c, &rng);
}

/* With p: brightness; contrast before or after the others; saturation; hue; order of channels (Liu et al.,
 * "SSD", ECCV 2016, with torchvision's ranges). */
static void colors_distort(canvas *c, const colors_options *o, tn_rng rng) {
  static const double low[4] = {0.875, 0.5, 0.5, -0.05}, high[4] = {1.125, 1.5, 1.5, 0.05};
  float by[4];
  int chosen[5];
  for (int i = 0; i < 5; i++) chosen[i] = tn_rng_uniform(&rng) < o->p;
  for (int i = 0; i < 4; i++) by[i] = (float)tn_rng_between(&rng, low[i], high[i]);
  int first = tn_rng_uniform(&rng) < 0.5;
  if (chosen[0]) canvas_brightness(c, by[0]);
  if (chosen[1] && first) canvas_contrast(c, by[1]);
  if (chosen[2]) canvas_saturation(c, by[2]);
  if (chosen[3]) canvas_hue(c, by[3]);
  if (chosen[1] && !first) canvas_contrast(c, by[1]);
  if (chosen[4]) canvas_permute(c, &rng);
}

/* Its choices have probabilities of their own. */
static tn_status colors_apply_distort(tn_transform_call *c, const void *opts) {
  const colors_options *o = opts;
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    canvas work;
    status = canvas_open(c, k, &work);
    if (status == TN_OK) colors_distort(&work, o, tn_rng_at(c->key, 0));
  }
  return status;
}

#define COLORS_APPLY(change)                                                                                 \
  static tn_status colors_apply_##change(tn_transform_call *c, const void *opts) {                           \
    return colors_apply(c, opts, colors_##change);                                                           \
  }
COLORS_APPLY(autocontrast)
COLORS_APPLY(equalize)
COLORS_APPLY(invert)
COLORS_APPLY(permute)
COLORS_APPLY(posterize)
COLORS_APPLY(sharpness)
COLORS_APPLY(solarize)

#define COLORS(change, NAME, doc, list, line)                                                                \
  const tn_transform NAME##_transform = {                                                                    \
      .item = TN_ITEM(tn_transform, TN_TRANSFORM, #NAME, doc, colors_options, list),                         \
      .training_only = 1,                                                                                    \
      .types = "u8 [channels, height, width], 1 or 3 channels",                                              \
      .example = "transforms = " line ", to_float",                                                          \
      .infer = colors_infer,                                                                                 \
      .apply = colors_apply_##change,                                                                        \
  };
COLORS(autocontrast, random_autocontrast,
       "stretches each channel to 0 .. 255, with probability p (training only; u8)", plain_options,
       "random_autocontrast")
COLORS(equalize, random_equalize,
       "gives each channel an even histogram, with probability p (training only; u8)", plain_options,
       "random_equalize")
COLORS(invert, random_invert, "inverts the bytes, with probability p (training only; u8)", plain_options,
       "random_invert(0.2)")
COLORS(permute, random_channel_permutation,
       "puts the channels in random order, with probability p (training only; u8)", plain_options,
       "random_channel_permutation")
COLORS(posterize, random_posterize, "keeps the upper bits, with probability p (training only; u8)",
       posterize_options, "random_posterize(bits=4)")
COLORS(sharpness, random_adjust_sharpness, "sharpens or blurs, with probability p (training only; u8)",
       sharpness_options, "random_adjust_sharpness(2)")
COLORS(solarize, random_solarize, "inverts bright bytes, with probability p (training only; u8)",
       solarize_options, "random_solarize(threshold=192)")
COLORS(distort, random_photometric_distort,
       "changes brightness, contrast, saturation, hue and the order of channels, each with probability p "
       "(training only; u8)",
       plain_options, "random_photometric_distort")

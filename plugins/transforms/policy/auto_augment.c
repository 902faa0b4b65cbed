/* plugins/transforms/policy/auto_augment.c: rand_augment (Cubuk et al., "RandAugment", 2020) applies several
 * ops of one strength, trivial_augment (Mueller and Hutter, "TrivialAugment", ICCV 2021) one op of any
 * strength. Both choose from the same ops, with the strengths of torchvision's RandAugment and
 * TrivialAugmentWide. */
#include <math.h>

#include "plugins/transforms/policy/auto_augment.h"

void augment_apply(canvas *c, augment_op op, double magnitude, const sampling *how) {
  picture p = {c->frames * c->channels, c->height, c->width};
  affine by = {{0}};
  switch (op) {
  case AUGMENT_SHEAR_X: by = affine_shear(magnitude, 0, p); break;
  case AUGMENT_SHEAR_Y: by = affine_shear(0, magnitude, p); break;
  case AUGMENT_TRANSLATE_X: by = affine_shift(trunc(magnitude), 0); break;
  case AUGMENT_TRANSLATE_Y: by = affine_shift(0, trunc(magnitude)); break;
  case AUGMENT_ROTATE: by = affine_rotation(magnitude); break;
  case AUGMENT_BRIGHTNESS: canvas_brightness(c, (float)(1 + magnitude)); return;
  case AUGMENT_COLOR: canvas_saturation(c, (float)(1 + magnitude)); return;
  case AUGMENT_CONTRAST: canvas_contrast(c, (float)(1 + magnitude)); return;
  case AUGMENT_SHARPNESS: canvas_sharpness(c, (float)(1 + magnitude)); return;
  case AUGMENT_POSTERIZE: canvas_posterize(c, (int)magnitude); return;
  case AUGMENT_SOLARIZE: canvas_solarize(c, (float)(255 * magnitude)); return;
  case AUGMENT_AUTOCONTRAST: canvas_autocontrast(c); return;
  case AUGMENT_EQUALIZE: canvas_equalize(c); return;
  default: return;
  }
  canvas_affine(c, &by, how);
}

/* ---- strengths ---- */

/* The greatest magnitudes. Widths and heights of rand_augment are parts of the picture. */
typedef struct augment_space {
  double shear, translate_part, translate, rotate, factor, bits,
      posterize; /* keeps bits to bits - posterize */
} augment_space;
static const augment_space rand_space = {0.3, 150.0 / 331.0, 0, 30, 0.9, 8, 4};
static const augment_space trivial_space = {0.99, 0, 32, 135, 0.99, 8, 6};
static const augment_space mix_space = {0.3, 1.0 / 3.0, 0, 30, 0.9, 4, 4};

static int augment_is_signed(augment_op op) { return op >= AUGMENT_SHEAR_X && op <= AUGMENT_SHARPNESS; }

/* Number `i` of `n` numbers at equal distances, counted from the nearer end, with the rounding of
 * torch.linspace: once to f32. */
static double augment_linspace(double start, double end, int64_t i, int64_t n) {
  double step = (float)(((float)end - (float)start) / (float)(n - 1));
  return (float)(i < n / 2 ? start + step * (double)i : end - step * (double)(n - 1 - i));
}

static double augment_magnitude(const augment_space *s, augment_op op, int64_t bin, int64_t bins,
                                const canvas *c) {
  switch (op) {
  case AUGMENT_SHEAR_X:
  case AUGMENT_SHEAR_Y: return augment_linspace(0, s->shear, bin, bins);
  case AUGMENT_TRANSLATE_X:
    return augment_linspace(0, s->translate + s->translate_part * (double)c->width, bin, bins);
  case AUGMENT_TRANSLATE_Y:
    return augment_linspace(0, s->translate + s->translate_part * (double)c->height, bin, bins);
  case AUGMENT_ROTATE: return augment_linspace(0, s->rotate, bin, bins);
  case AUGMENT_POSTERIZE: return rint(s->bits - (double)bin / ((double)(bins - 1) / s->posterize));
  case AUGMENT_SOLARIZE: return augment_linspace(1, 0, bin, bins);
  default: return augment_linspace(0, s->factor, bin, bins);
  }
}

double augment_mix_magnitude(augment_op op, int64_t bin, int64_t bins, const canvas *c) {
  return augment_magnitude(&mix_space, op, bin, bins, c);
}

void augment_apply_either_way(canvas *c, augment_op op, double magnitude, tn_rng *rng, const sampling *how) {
  int turned = tn_rng_uniform(rng) < 0.5;
  augment_apply(c, op, turned && augment_is_signed(op) ? -magnitude : magnitude, how);
}

/* ---- the transforms ---- */

typedef struct augment_options {
  int64_t num_ops, magnitude; /* rand_augment only */
  int64_t num_magnitude_bins;
  sampling how;
} augment_options;

#define BINS_OPTION                                                                                          \
  TN_OPT(augment_options, num_magnitude_bins, TN_OPT_INT, "31", "[2, 1000000]", "number of strengths")

static const tn_option rand_options[] = {
    TN_OPT(augment_options, num_ops, TN_OPT_INT, "2", "[0, 1000]", "ops to apply one after the other"),
    TN_OPT_WITH(augment_options, magnitude, TN_OPT_INT, TN_OPT_SCHEDULABLE, "9", ">= 0",
                "strength, less than num_magnitude_bins"),
    BINS_OPTION, SAMPLING_OPTIONS(augment_options), TN_OPT_END};
static const tn_option trivial_options[] = {BINS_OPTION, SAMPLING_OPTIONS(augment_options), TN_OPT_END};

static tn_status augment_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const augment_options *o = opts;
  if (o->magnitude >= o->num_magnitude_bins)
    return tn_fail(env, TN_EINVAL, "magnitude",
                   "magnitude is %lld, expected less than num_magnitude_bins, which is %lld",
                   (long long)o->magnitude, (long long)o->num_magnitude_bins);
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  tn_status status = canvas_check(env, n, in, 0);
  return status == TN_OK ? sampling_check(env, &o->how, n, in) : status;
}

/* One op of any kind, with strength `bin`, or with any if it is negative. */
static void augment_step(const augment_options *o, const augment_space *space, int64_t bin, tn_rng *rng,
                         canvas *c) {
  augment_op op = (augment_op)tn_rng_below(rng, AUGMENT_OPS);
  if (bin < 0) bin = tn_rng_below(rng, o->num_magnitude_bins);
  augment_apply_either_way(c, op, augment_magnitude(space, op, bin, o->num_magnitude_bins, c), rng, &o->how);
}

/* Fields that go together get the same choices. */
static tn_status augment_fields(tn_transform_call *c, const augment_options *o, const augment_space *space,
                                int64_t steps, int64_t bin) {
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    tn_rng rng = tn_rng_at(c->key, 0);
    canvas work;
    status = canvas_open(c, k, &work);
    for (int64_t i = 0; status == TN_OK && i < steps; i++) augment_step(o, space, bin, &rng, &work);
  }
  return status;
}

static tn_status rand_augment_apply(tn_transform_call *c, const void *opts) {
  const augment_options *o = opts;
  int64_t most = o->num_magnitude_bins - 1; /* a schedule may go beyond it */
  return augment_fields(c, o, &rand_space, o->num_ops, o->magnitude < most ? o->magnitude : most);
}

static tn_status trivial_augment_apply(tn_transform_call *c, const void *opts) {
  return augment_fields(c, opts, &trivial_space, 1, -1);
}

const tn_transform rand_augment_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "rand_augment",
                    "several random changes of one strength (RandAugment; training only; u8)",
                    augment_options, rand_options),
    .training_only = 1,
    .types = "u8 [channels, height, width], 1 or 3 channels",
    .example = "transforms = rand_augment(num_ops=2, magnitude=9), to_float",
    .infer = augment_infer,
    .apply = rand_augment_apply,
};

const tn_transform trivial_augment_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "trivial_augment",
                    "one random change of random strength (TrivialAugmentWide; training only; u8)",
                    augment_options, trivial_options),
    .training_only = 1,
    .types = "u8 [channels, height, width], 1 or 3 channels",
    .example = "transforms = trivial_augment, to_float",
    .infer = augment_infer,
    .apply = trivial_augment_apply,
};

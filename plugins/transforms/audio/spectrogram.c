/* plugins/transforms/audio/spectrogram.c: transforms of spectrograms, values whose last two dimensions are
 * bins and frames: mfcc, and spec_augment (Park et al., "SpecAugment", Interspeech 2019). */
#include <math.h>
#include <string.h>

#include "plugins/transforms/transforms.h"

static tn_status spectrogram_check(tn_env *env, int32_t n, const tn_type *in) {
  for (int32_t k = 0; k < n; k++)
    if (in[k].dtype != TN_F32 || in[k].rank < 2 || in[k].dims[in[k].rank - 2] < 1)
      return tn_fail(env, TN_EINVAL, NULL,
                     "a field is %s of rank %d, expected a spectrogram, f32[bins, frames]; put mel in front",
                     tn_dtype_name(in[k].dtype), (int)in[k].rank);
  return TN_OK;
}

/* ---- mfcc ---- */

typedef struct mfcc_options {
  int64_t coefficients;
} mfcc_options;

static const tn_option mfcc_list[] = {
    TN_OPT(mfcc_options, coefficients, TN_OPT_INT, "20", "[1, 4096]", "numbers of a frame that are kept"),
    TN_OPT_END};

static tn_status mfcc_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  int64_t wanted = ((const mfcc_options *)opts)->coefficients;
  TN_TRY(spectrogram_check(env, n, in));
  for (int32_t k = 0; k < n; k++) {
    int64_t bins = in[k].dims[in[k].rank - 2];
    if (wanted > bins)
      return tn_fail(env, TN_EINVAL, "coefficients",
                     "coefficients = %lld of %lld bins, expected at most so many", (long long)wanted,
                     (long long)bins);
    out[k] = in[k];
    out[k].dims[in[k].rank - 2] = wanted;
  }
  return TN_OK;
}

/* The orthonormal cosine transform (DCT-II) of the bins of each frame. */
static void mfcc_channel(const float *in, int64_t bins, int64_t frames, int64_t wanted, float *out) {
  for (int64_t i = 0; i < wanted; i++) {
    double norm = sqrt((i == 0 ? 1.0 : 2.0) / (double)bins);
    memset(out + i * frames, 0, (size_t)frames * sizeof *out);
    for (int64_t b = 0; b < bins; b++) {
      double angle = 3.14159265358979323846 * (double)(i * (2 * b + 1)) / (double)(2 * bins);
      float factor = (float)(norm * cos(angle));
      for (int64_t t = 0; t < frames; t++) out[i * frames + t] += factor * in[b * frames + t];
    }
  }
}

static tn_status mfcc_apply(tn_transform_call *c, const void *opts) {
  int64_t wanted = ((const mfcc_options *)opts)->coefficients;
  for (int32_t k = 0; k < c->n; k++) {
    picture p = picture_of(&c->in_type[k]);
    for (int64_t i = 0; i < p.planes; i++)
      mfcc_channel((const float *)c->in[k] + i * p.height * p.width, p.height, p.width, wanted,
                   (float *)c->out[k] + i * wanted * p.width);
  }
  return TN_OK;
}

const tn_transform mfcc_transform = {
    .item =
        TN_ITEM(tn_transform, TN_TRANSFORM, "mfcc",
                "mel-frequency cepstral coefficients of a spectrogram in decibels", mfcc_options, mfcc_list),
    .types = "f32[..., bins, frames] to f32[..., coefficients, frames]",
    .example = "transforms = mel(40, log=db), mfcc(13)",
    .infer = mfcc_infer,
    .apply = mfcc_apply,
};

/* ---- spec_augment ---- */

typedef struct spec_augment_options {
  int64_t time, freq, times, freqs;
  double value;
} spec_augment_options;

static const tn_option spec_augment_list[] = {
    TN_OPT(spec_augment_options, time, TN_OPT_INT, "40", ">= 0", "the most frames of a stripe"),
    TN_OPT(spec_augment_options, freq, TN_OPT_INT, "20", ">= 0", "the most bins of a stripe"),
    TN_OPT(spec_augment_options, times, TN_OPT_INT, "2", "[0, 1000]", "stripes of frames"),
    TN_OPT(spec_augment_options, freqs, TN_OPT_INT, "2", "[0, 1000]", "stripes of bins"),
    TN_OPT(spec_augment_options, value, TN_OPT_FLOAT, "0", NULL, "the number of a stripe"),
    TN_OPT_END};

static tn_status spec_augment_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                    tn_type *out) {
  (void)opts;
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return spectrogram_check(env, n, in);
}

/* A stripe of at most `most` of n places; all widths are equally probable. */
static int64_t spec_augment_draw(tn_rng *rng, int64_t most, int64_t n, int64_t *width) {
  *width = tn_rng_below(rng, (most < n ? most : n) + 1);
  return tn_rng_below(rng, n - *width + 1);
}

static void spec_augment_fill(float *out, picture p, window part, float value) {
  for (int64_t i = 0; i < p.planes; i++)
    for (int64_t y = part.top; y < part.top + part.height; y++)
      for (int64_t x = part.left; x < part.left + part.width; x++)
        out[(i * p.height + y) * p.width + x] = value;
}

/* All channels have the same stripes, and all fields of one size. */
static tn_status spec_augment_apply(tn_transform_call *c, const void *opts) {
  const spec_augment_options *o = opts;
  for (int32_t k = 0; k < c->n; k++) {
    tn_rng rng = tn_rng_at(c->key, 0);
    picture p = picture_of(&c->in_type[k]);
    memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
    for (int64_t i = 0; i < o->freqs + o->times; i++) {
      window part = {0, 0, p.height, p.width};
      if (i < o->freqs)
        part.top = spec_augment_draw(&rng, o->freq, p.height, &part.height);
      else
        part.left = spec_augment_draw(&rng, o->time, p.width, &part.width);
      spec_augment_fill(c->out[k], p, part, (float)o->value);
    }
  }
  return TN_OK;
}

const tn_transform spec_augment_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "spec_augment",
                    "overwrites stripes of frames and of bins at random (training only)",
                    spec_augment_options, spec_augment_list),
    .training_only = 1,
    .types = "f32[..., bins, frames]",
    .example = "transforms = mel(80, log=db), spec_augment(time=30, freq=15)",
    .infer = spec_augment_infer,
    .apply = spec_augment_apply,
};

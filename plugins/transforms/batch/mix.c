/* plugins/transforms/batch/mix.c: mixup (Zhang et al., ICLR 2018) and cutmix (Yun et al., ICCV 2019) of each
 * sample of a batch with the one before it, as in torchvision. The targets are mixed as the pictures are, so
 * a loss of the mixed target is lam loss(first) + (1 - lam) loss(second) for every loss that is linear in the
 * target. */
#include <math.h>
#include <string.h>

#include "plugins/transforms/transforms.h"

typedef struct mix_options {
  double alpha, p;
} mix_options;

static const tn_option options[] = {
    TN_OPT_WITH(mix_options, alpha, TN_OPT_FLOAT, TN_OPT_SCHEDULABLE, "1", "(0, 1000]",
                "the part of a sample is drawn from the beta distribution (alpha, alpha), once for a batch"),
    TN_OPT_WITH(mix_options, p, TN_OPT_FLOAT, TN_OPT_SCHEDULABLE, "1", "[0, 1]",
                "probability, for the whole batch"),
    TN_OPT_END};

static tn_status mix_check(tn_env *env, int32_t n, const tn_type *in, tn_type *out, int32_t first) {
  for (int32_t k = 0; k < n; k++) {
    out[k] = in[k];
    if (k >= first && in[k].dtype != TN_F32)
      return tn_fail(env, TN_EINVAL, NULL,
                     "field %d is %s, expected f32; put to_float or normalize in front for pictures, and "
                     "one_hot(classes) for labels",
                     (int)k, tn_dtype_name(in[k].dtype));
  }
  if (n >= 2) return TN_OK;
  return tn_fail(env, TN_EINVAL, NULL,
                 "it mixes pictures with their targets, expected both: <- image, label");
}

/* ---- random choices ---- */

/* The part of the own sample; 1: nothing is mixed. */
static double mix_part(const mix_options *o, tn_rng *rng) {
  int mixed = tn_rng_uniform(rng) < o->p;
  return mixed && o->alpha > 0 ? random_beta(rng, o->alpha) : 1;
}

/* ---- one field ---- */

VECTORIZED static void mix_rows(const float *restrict own, const float *restrict other, int64_t n, float part,
                                float *restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = own[i] * part + other[i] * (1.0f - part);
}

/* Each row of the batch with the one before it, the first with the last. */
static void mix_field(const tn_type *type, const float *in, double part, float *out) {
  int64_t rows = type->dims[0], n = rows > 0 ? tn_type_count(type) / rows : 0;
  for (int64_t r = 0; r < rows; r++)
    mix_rows(in + r * n, in + (r > 0 ? r - 1 : rows - 1) * n, n, (float)part, out + r * n);
}

static tn_status mixup_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  (void)opts;
  return mix_check(env, n, in, out, 0);
}

static tn_status mixup_apply(tn_transform_call *c, const void *opts) {
  tn_rng rng = tn_rng_at(c->key, 0);
  double part = mix_part(opts, &rng);
  for (int32_t k = 0; k < c->n; k++) mix_field(&c->in_type[k], c->in[k], part, c->out[k]);
  return TN_OK;
}

/* ---- cutmix ---- */

static tn_status cutmix_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  (void)opts;
  tn_status status = mix_check(env, n, in, out, 1);
  if (status != TN_OK || in[0].rank >= 3) return status;
  return tn_fail(env, TN_EINVAL, NULL, "field 0 has rank %d, expected a picture", (int)in[0].rank - 1);
}

static int64_t cutmix_clamp(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

/* A part of the picture with the area 1 - part, cut at the border. */
static window cutmix_window(picture p, double part, tn_rng *rng) {
  double r = 0.5 * sqrt(1 - part);
  int64_t x = tn_rng_below(rng, p.width), y = tn_rng_below(rng, p.height);
  int64_t wide = (int64_t)(r * (double)p.width), high = (int64_t)(r * (double)p.height);
  window w = {.top = cutmix_clamp(y - high, p.height), .left = cutmix_clamp(x - wide, p.width)};
  w.height = cutmix_clamp(y + high, p.height) - w.top;
  w.width = cutmix_clamp(x + wide, p.width) - w.left;
  return w;
}

static void cutmix_paste(const tn_type *type, const char *in, window w, char *out) {
  picture p = picture_of(type);
  int64_t rows = type->dims[0], planes = rows > 0 ? p.planes / rows : 0;
  size_t item = tn_dtype_size(type->dtype), bytes = (size_t)w.width * item;
  for (int64_t plane = 0; plane < p.planes; plane++) {
    int64_t from = plane >= planes ? plane - planes : plane + p.planes - planes;
    for (int64_t y = w.top; y < w.top + w.height; y++)
      memcpy(out + (size_t)((plane * p.height + y) * p.width + w.left) * item,
             in + (size_t)((from * p.height + y) * p.width + w.left) * item, bytes);
  }
}

static tn_status cutmix_apply(tn_transform_call *c, const void *opts) {
  tn_rng rng = tn_rng_at(c->key, 0);
  picture p = picture_of(&c->in_type[0]);
  double part = mix_part(opts, &rng);
  memcpy(c->out[0], c->in[0], tn_type_bytes(&c->in_type[0]));
  if (p.height > 0 && p.width > 0 && part < 1) {
    window w = cutmix_window(p, part, &rng);
    cutmix_paste(&c->in_type[0], c->in[0], w, c->out[0]);
    part = 1 - (double)(w.height * w.width) / (double)(p.height * p.width);
  }
  for (int32_t k = 1; k < c->n; k++) mix_field(&c->in_type[k], c->in[k], part, c->out[k]);
  return TN_OK;
}

const tn_transform mixup_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "mixup",
                    "mixes the samples of a batch and their targets (training only; <- image, label)",
                    mix_options, options),
    .granularity = TN_PER_BATCH,
    .training_only = 1,
    .types = "f32 fields; targets are those of one_hot",
    .example = "transforms = to_float\n    one_hot(10) <- label\n    mixup(0.2) <- image, label",
    .infer = mixup_infer,
    .apply = mixup_apply,
};

const tn_transform cutmix_transform = {
    .item = TN_ITEM(
        tn_transform, TN_TRANSFORM, "cutmix",
        "pastes a part of each picture of a batch into another, and mixes their targets (training only; "
        "<- image, label)",
        mix_options, options),
    .granularity = TN_PER_BATCH,
    .training_only = 1,
    .types = "a picture, then f32 fields; targets are those of one_hot",
    .example = "transforms = to_float\n    one_hot(10) <- label\n    cutmix(1, p=0.5) <- image, label",
    .infer = cutmix_infer,
    .apply = cutmix_apply,
};

/* A transform: a random square of an image is set to zero (DeVries and Taylor, 2017).
 * `transforms = to_float, cutout(8)`. */
#include <string.h>

#include <tenon/plugin/transform.h>

struct cutout {
  int64_t size;
};
static const tn_option options[] = {
    TN_OPT(struct cutout, size, TN_OPT_INT, "8", ">= 1", "side of the square"), TN_OPT_END};

static tn_status infer(tn_env *env, const void *given, int32_t n, const tn_type *in, tn_type *out) {
  (void)given;
  for (int32_t i = 0; i < n; i++) {
    if (in[i].rank != 3 || in[i].dtype != TN_F32)
      return tn_fail(env, TN_EINVAL, NULL, "expected f32 images (C, H, W), put to_float in front");
    out[i] = in[i];
  }
  return TN_OK;
}

static tn_status apply(tn_transform_call *c, const void *given) {
  const struct cutout *o = given;
  const tn_type *t = &c->in_type[0];
  tn_rng rng = tn_rng_at(c->key, 0);
  int64_t h = t->dims[1], w = t->dims[2], top = tn_rng_below(&rng, h), left = tn_rng_below(&rng, w);
  memcpy(c->out[0], c->in[0], tn_type_bytes(t));
  for (int64_t ch = 0; ch < t->dims[0]; ch++)
    for (int64_t y = top; y < h && y < top + o->size; y++)
      for (int64_t x = left; x < w && x < left + o->size; x++)
        ((float *)c->out[0])[(ch * h + y) * w + x] = 0.0f;
  return TN_OK;
}

static const tn_transform cutout = {.item = TN_ITEM(tn_transform, TN_TRANSFORM, "cutout",
                                                    "sets a random square to zero", struct cutout, options),
                                    .granularity = TN_PER_SAMPLE,
                                    .training_only = 1,
                                    .infer = infer,
                                    .apply = apply};

TN_PLUGIN(cutout, "1.0", "MIT", &cutout.item)

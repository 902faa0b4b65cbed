/* A transform: a random square of an image is set to zero (DeVries and Taylor, 2017).
 * `transforms = to_float, cutout(8)`. It can run on the device. */
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

/* The first row and column of a sample's square: the random choices, the same on host and device. */
static tn_status draw(tn_transform_call *c, const void *given, int32_t *first) {
  const tn_type *t = &c->in_type[0];
  tn_rng rng = tn_rng_at(c->key, 0);
  (void)given;
  first[0] = (int32_t)tn_rng_below(&rng, t->dims[1]);
  first[1] = (int32_t)tn_rng_below(&rng, t->dims[2]);
  return TN_OK;
}

static tn_status apply(tn_transform_call *c, const void *given) {
  const struct cutout *o = given;
  const tn_type *t = &c->in_type[0];
  int64_t h = t->dims[1], w = t->dims[2];
  int32_t first[2];
  draw(c, given, first);
  memcpy(c->out[0], c->in[0], tn_type_bytes(t));
  for (int64_t ch = 0; ch < t->dims[0]; ch++)
    for (int64_t y = first[0]; y < h && y < first[0] + o->size; y++)
      for (int64_t x = first[1]; x < w && x < first[1] + o->size; x++)
        ((float *)c->out[0])[(ch * h + y) * w + x] = 0.0f;
  return TN_OK;
}

/* Whether the index along an axis is in the square, (N, 1, H, 1) or (N, 1, 1, W). */
static tn_val inside(tn_build *b, tn_val x, tn_val draws, int32_t axis, int64_t size) {
  tn_type line = {TN_I32, 4, {1, 1, 1, 1}};
  const int64_t samples[4] = {tn_val_dim(b, x, 0), 1, 1, 1};
  line.dims[2 + axis] = tn_val_dim(b, x, 2 + axis);
  tn_val first = tn_reshape(b, tn_slice_axis(b, draws, 1, axis, axis + 1), 4, samples);
  tn_val index = tn_iota(b, &line, 2 + axis), end = tn_add(b, first, tn_scalar(b, TN_I32, (double)size));
  return tn_and(b, tn_ge(b, index, first), tn_lt(b, index, end));
}

/* The same for a batch on the device: value 0 is the batch, value 1 holds the draws of its samples. */
static tn_status build(tn_build *b, const void *given) {
  const struct cutout *o = given;
  tn_val x = tn_build_in(b, 0), draws = tn_build_in(b, 1);
  tn_val square = tn_and(b, inside(b, x, draws, 0, o->size), inside(b, x, draws, 1, o->size));
  tn_build_yield(b, 0, tn_where(b, square, tn_scalar(b, TN_F32, 0), x));
  return tn_build_status(b);
}

static const tn_transform cutout = {.item = TN_ITEM(tn_transform, TN_TRANSFORM, "cutout",
                                                    "sets a random square to zero", struct cutout, options),
                                    .granularity = TN_PER_SAMPLE,
                                    .training_only = 1,
                                    .infer = infer,
                                    .apply = apply,
                                    .build = build,
                                    .draws = 2,
                                    .draw = draw};

TN_PLUGIN(cutout, "1.0", "MIT", &cutout.item)

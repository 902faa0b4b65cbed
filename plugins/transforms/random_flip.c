/* plugins/transforms/random_flip.c: mirrors a picture with probability p. */
#include <string.h>

#include "plugins/transforms/transforms.h"

enum { HORIZONTAL = 0, VERTICAL = 1 };

typedef struct flip_options {
  double p;
  int32_t direction;
} flip_options;

static const tn_option options[] = {TN_OPT(flip_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability"),
                                    TN_OPT(flip_options, direction, TN_OPT_ENUM, "horizontal",
                                           "horizontal|vertical",
                                           "horizontal exchanges left and right, vertical top and bottom"),
                                    TN_OPT_END};

static tn_status random_flip_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                   tn_type *out) {
  (void)opts;
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return picture_check(env, n, in, 0);
}

static void mirror_row(const char *in, char *out, int64_t width, size_t item) {
  for (int64_t x = 0; x < width; x++)
    memcpy(out + (size_t)(width - 1 - x) * item, in + (size_t)x * item, item);
}

/* The usual case, eight bytes at a time. */
static void mirror_bytes(const uint8_t *in, uint8_t *out, int64_t width) {
  int64_t x = 0;
  for (; x + 8 <= width; x += 8) {
    uint64_t eight;
    memcpy(&eight, in + x, 8);
    eight = __builtin_bswap64(eight);
    memcpy(out + width - 8 - x, &eight, 8);
  }
  for (; x < width; x++) out[width - 1 - x] = in[x];
}

static void flip(const void *in, const tn_type *type, int32_t direction, void *out) {
  picture p = picture_of(type);
  size_t item = tn_dtype_size(type->dtype), row = (size_t)p.width * item;
  for (int64_t plane = 0; plane < p.planes; plane++) {
    for (int64_t y = 0; y < p.height; y++) {
      const char *from = (const char *)in + (size_t)(plane * p.height + y) * row;
      int64_t target = direction == VERTICAL ? p.height - 1 - y : y;
      char *to = (char *)out + (size_t)(plane * p.height + target) * row;
      if (direction == VERTICAL)
        memcpy(to, from, row);
      else if (item == 1)
        mirror_bytes((const uint8_t *)from, (uint8_t *)to, p.width);
      else
        mirror_row(from, to, p.width, item);
    }
  }
}

static int random_flip_choose(const tn_transform_call *c, const flip_options *o) {
  tn_rng rng = tn_rng_at(c->key, 0);
  return tn_rng_uniform(&rng) < o->p;
}

static tn_status random_flip_apply(tn_transform_call *c, const void *opts) {
  const flip_options *o = opts;
  int mirrored = random_flip_choose(c, o);
  for (int32_t k = 0; k < c->n; k++) {
    if (mirrored)
      flip(c->in[k], &c->in_type[k], o->direction, c->out[k]);
    else
      memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  }
  return TN_OK;
}

/* Whether the rows and the columns are in reverse order, as the op `crop` takes them. */
static tn_status random_flip_draw(tn_transform_call *c, const void *opts, int32_t *values) {
  const flip_options *o = opts;
  int mirrored = random_flip_choose(c, o);
  values[0] = o->direction == VERTICAL && mirrored;
  values[1] = o->direction == HORIZONTAL && mirrored;
  return TN_OK;
}

static tn_status random_flip_build(tn_build *b, const void *opts) {
  (void)opts;
  int32_t n = tn_build_n_in(b) - 1;
  tn_val mirror = tn_build_in(b, n);
  for (int32_t k = 0; k < n; k++) {
    tn_val x = tn_build_in(b, k);
    const int64_t size[] = {tn_val_dim(b, x, -2), tn_val_dim(b, x, -1)};
    tn_build_yield(b, k, tn_crop(b, x, 0, mirror, 2, size));
  }
  return tn_build_status(b);
}

const tn_transform random_flip_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_flip", "mirrors at random (training only)",
                    flip_options, options),
    .training_only = 1,
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = random_flip, to_float",
    .infer = random_flip_infer,
    .apply = random_flip_apply,
    .build = random_flip_build,
    .draws = 2,
    .draw = random_flip_draw,
};

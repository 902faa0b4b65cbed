/* plugins/transforms/spatial/placed.c: transforms that put a picture of any size into one of a given size and
 * keep its ratio: letterbox, and random sizes for detection. The size of a result is known before the random
 * choice, so the last two resize in the same step. */
#include <math.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct placed_options {
  tn_ints size;
  tn_floats range;
  double p;
  sampling how;
  int64_t mask_fill;
} placed_options;

#define SIZE_OPTION                                                                                          \
  TN_OPT(placed_options, size, TN_OPT_INTS, NULL, ">= 1", "height and width; one number for a square")
#define FILL_OPTION(value)                                                                                   \
  {                                                                                                          \
    "fill", TN_OPT_FLOATS, 0, (uint32_t)offsetof(placed_options, how.fill), sizeof(tn_floats), value, NULL,  \
        "pixels around the picture; one number, or one per channel"                                          \
  }
#define RANGE_OPTION(name, value, range_of, doc)                                                             \
  {                                                                                                          \
    name, TN_OPT_FLOATS, 0, (uint32_t)offsetof(placed_options, range), sizeof(tn_floats), value, range_of,   \
        doc                                                                                                  \
  }

static const tn_option letterbox_options[] = {SIZE_OPTION, FILL_OPTION("0"), MASK_FILL_OPTION(placed_options),
                                              TN_OPT_END};
static const tn_option jitter_options[] = {
    SIZE_OPTION,
    RANGE_OPTION("scale_range", "[0.1, 2]", "(0, 1000]",
                 "least and greatest factor of the size that letterbox takes"),
    FILL_OPTION("0"), MASK_FILL_OPTION(placed_options), TN_OPT_END};
static const tn_option zoom_options[] = {
    SIZE_OPTION,
    RANGE_OPTION("side_range", "[1, 4]", "[1, 1000]",
                 "least and greatest side of the whole, in sides of the picture"),
    TN_OPT(placed_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability"),
    FILL_OPTION("0"),
    MASK_FILL_OPTION(placed_options),
    TN_OPT_END};

static tn_status placed_infer(tn_env *env, const placed_options *o, const char *range, int32_t n,
                              const tn_type *in, tn_type *out) {
  int64_t height, width;
  TN_TRY(size_read(env, &o->size, &height, &width));
  if (range != NULL) TN_TRY(range_check(env, range, &o->range));
  TN_TRY(geometry_infer_sampled(env, &o->how, n, in, out, 1));
  geometry_set_size(n, out, height, width);
  return TN_OK;
}

static tn_status letterbox_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  return placed_infer(env, opts, NULL, n, in, out);
}

static tn_status scale_jitter_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                    tn_type *out) {
  return placed_infer(env, opts, "scale_range", n, in, out);
}

static tn_status random_zoom_out_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                       tn_type *out) {
  return placed_infer(env, opts, "side_range", n, in, out);
}

/* Sizes after a factor, at least 1. */
static int64_t placed_scaled(int64_t size, double by) { return (int64_t)fmax(1, rint((double)size * by)); }

/* Of a sample: the sizes, and the map of the whole picture to the whole result. */
static tn_status placed_open(tn_transform_call *c, const placed_options *o, picture *in, picture *out,
                             geometry *g) {
  *in = picture_of(&c->in_type[0]);
  *out = picture_of(&c->out_type[0]);
  TN_TRY(picture_check(&c->env, c->n, c->in_type, 1));
  if (in->height < 1 || in->width < 1)
    return tn_fail(c, TN_EINVAL, NULL, "a picture without pixels cannot be resized");
  *g = geometry_part((window){0, 0, in->height, in->width}, &c->out_type[0]);
  g->how = &o->how;
  g->mask_fill = o->mask_fill;
  return TN_OK;
}

static double placed_factor(picture in, picture out) {
  return fmin((double)out.height / (double)in.height, (double)out.width / (double)in.width);
}

static tn_status letterbox_apply(tn_transform_call *c, const void *opts) {
  picture in, out;
  geometry g;
  TN_TRY(placed_open(c, opts, &in, &out, &g));
  double by = placed_factor(in, out);
  g.to.height = placed_scaled(in.height, by);
  g.to.width = placed_scaled(in.width, by);
  g.to.top = (out.height - g.to.height) / 2;
  g.to.left = (out.width - g.to.width) / 2;
  return geometry_apply(c, &g);
}

/* One axis: where the scaled picture is larger than the result, a random part of it; else all of it, first.
 */
static void jitter_axis(double by, int64_t in, int64_t out, tn_rng *rng, int64_t *start, int64_t *size,
                        int64_t *placed) {
  int64_t scaled = placed_scaled(in, by);
  *placed = scaled < out ? scaled : out;
  *size = scaled < out ? in : (int64_t)fmin((double)in, fmax(1, rint((double)out / by)));
  *start = tn_rng_below(rng, in - *size + 1);
}

static tn_status scale_jitter_apply(tn_transform_call *c, const void *opts) {
  const placed_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  picture in, out;
  geometry g;
  TN_TRY(placed_open(c, o, &in, &out, &g));
  double by = placed_factor(in, out) * tn_rng_between(&rng, o->range.v[0], o->range.v[1]);
  jitter_axis(by, in.height, out.height, &rng, &g.from.top, &g.from.height, &g.to.height);
  jitter_axis(by, in.width, out.width, &rng, &g.from.left, &g.from.width, &g.to.width);
  return geometry_apply(c, &g);
}

static tn_status random_zoom_out_apply(tn_transform_call *c, const void *opts) {
  const placed_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  picture in, out;
  geometry g;
  TN_TRY(placed_open(c, o, &in, &out, &g));
  if (tn_rng_uniform(&rng) < o->p) {
    double by = 1 / tn_rng_between(&rng, o->range.v[0], o->range.v[1]);
    g.to.height = placed_scaled(out.height, by);
    g.to.width = placed_scaled(out.width, by);
    g.to.top = tn_rng_below(&rng, out.height - g.to.height + 1);
    g.to.left = tn_rng_below(&rng, out.width - g.to.width + 1);
  }
  return geometry_apply(c, &g);
}

#define PLACED(NAME, doc, list, line, in_training)                                                           \
  const tn_transform NAME##_transform = {                                                                    \
      .item = TN_ITEM(tn_transform, TN_TRANSFORM, #NAME, doc, placed_options, list),                         \
      .training_only = in_training,                                                                          \
      .types = "a picture of u8 or f32, then masks, boxes, points",                                          \
      .example = "transforms = " line ", to_float",                                                          \
      .infer = NAME##_infer,                                                                                 \
      .apply = NAME##_apply,                                                                                 \
  };
PLACED(letterbox, "a picture in the middle of one size, with its ratio kept", letterbox_options,
       "letterbox(640, fill=114)", 0)
PLACED(scale_jitter, "a picture in a random size, cut or filled up to one size (training only)",
       jitter_options, "scale_jitter(512)", 1)
PLACED(random_zoom_out, "a picture as a part of a larger one, resized to one size (training only)",
       zoom_options, "random_zoom_out(300)", 1)

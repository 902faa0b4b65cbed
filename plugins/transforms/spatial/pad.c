/* plugins/transforms/spatial/pad.c: pixels around a picture, as torchvision's Pad. */
#include "plugins/transforms/geometry/geometry.h"

typedef struct pad_options {
  tn_ints padding;
  sampling how;
  int32_t padding_mode;
  int64_t mask_fill;
} pad_options;

static const tn_option options[] = {
    TN_OPT(
        pad_options, padding, TN_OPT_INTS, NULL, "[0, 65536]",
        "pixels on all sides; two numbers: left and right, top and bottom; four: left, top, right, bottom"),
    {"fill", TN_OPT_FLOATS, 0, (uint32_t)offsetof(pad_options, how.fill), sizeof(tn_floats), "0", NULL,
     "the new pixels; one number, or one per channel"},
    TN_OPT(pad_options, padding_mode, TN_OPT_ENUM, "constant", "constant|edge|reflect|symmetric",
           "the new pixels: fill, the last pixel, or the picture mirrored, without and with its last pixel"),
    MASK_FILL_OPTION(pad_options),
    TN_OPT_END};

/* Left, top, right, bottom. */
static void pad_read(const tn_ints *list, int64_t side[4]) {
  for (int64_t i = 0; i < 4; i++) side[i] = list->v[i % list->n];
}

static tn_status pad_picture_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                   tn_type *out) {
  const pad_options *o = opts;
  int64_t side[4];
  if (o->padding.n != 1 && o->padding.n != 2 && o->padding.n != 4)
    return tn_fail(env, TN_EINVAL, "padding", "padding has %lld numbers, expected one, two or four",
                   (long long)o->padding.n);
  TN_TRY(geometry_infer_sampled(env, &o->how, n, in, out, 1));
  pad_read(&o->padding, side);
  int64_t high = in[0].dims[in[0].rank - 2], wide = in[0].dims[in[0].rank - 1];
  geometry_set_size(n, out, high < 0 ? -1 : high + side[1] + side[3],
                    wide < 0 ? -1 : wide + side[0] + side[2]);
  return TN_OK;
}

static tn_status pad_picture_apply(tn_transform_call *c, const void *opts) {
  const pad_options *o = opts;
  picture out = picture_of(&c->out_type[0]);
  int64_t side[4];
  pad_read(&o->padding, side);
  geometry g = geometry_part((window){-side[1], -side[0], out.height, out.width}, &c->out_type[0]);
  g.padding_mode = o->padding_mode;
  g.how = &o->how;
  g.mask_fill = o->mask_fill;
  return geometry_apply(c, &g);
}

const tn_transform pad_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "pad", "pixels around a picture", pad_options, options),
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = pad(4, padding_mode=reflect), random_crop(32), to_float",
    .infer = pad_picture_infer,
    .apply = pad_picture_apply,
};

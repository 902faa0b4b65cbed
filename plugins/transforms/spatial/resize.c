/* plugins/transforms/spatial/resize.c: resizes a picture. */
#include "plugins/transforms/geometry/geometry.h"

typedef struct resize_options {
  tn_ints size;
} resize_options;

static const tn_option options[] = {
    TN_OPT(resize_options, size, TN_OPT_INTS, NULL, ">= 1",
           "height and width; one number is the shorter side, and the ratio is kept"),
    TN_OPT_END};

/* The longer side is rounded down, as in torchvision. */
static void resize_keep_ratio(int64_t shorter, tn_type *type) {
  int64_t height = type->dims[type->rank - 2], width = type->dims[type->rank - 1];
  if (height < 0 || width < 0)
    picture_set_size(type, -1, -1);
  else if (height <= width)
    picture_set_size(type, shorter,
                     height > 0 ? (int64_t)((double)shorter * (double)width / (double)height) : 0);
  else
    picture_set_size(type, width > 0 ? (int64_t)((double)shorter * (double)height / (double)width) : 0,
                     shorter);
}

static void resize_set_size(const resize_options *o, tn_type *type) {
  if (o->size.n == 2)
    picture_set_size(type, o->size.v[0], o->size.v[1]);
  else
    resize_keep_ratio(o->size.v[0], type);
}

static tn_status resize_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const resize_options *o = opts;
  int64_t height, width;
  TN_TRY(size_read(env, &o->size, &height, &width));
  TN_TRY(geometry_infer(env, n, in, out, 0));
  TN_TRY(resample_check(env, n, in));
  for (int32_t k = 0; k < n; k++)
    if (field_kind(k, &in[k]) <= FIELD_MASK) resize_set_size(o, &out[k]);
  return TN_OK;
}

static tn_status resize_apply(tn_transform_call *c, const void *opts) {
  (void)opts;
  geometry g = {.kind = GEOMETRY_PART, .whole = 1};
  return geometry_apply(c, &g);
}

/* ---- on the device ---- */

static tn_val resize_build_places(tn_build *b, tn_val places, const tn_type *from, const tn_type *to) {
  int32_t h = from->rank - 2, w = from->rank - 1;
  double down = (double)to->dims[h] / (double)from->dims[h];
  double across = (double)to->dims[w] / (double)from->dims[w];
  tn_val scale = tn_iota(b, &(tn_type){TN_F32, 3, {1, 1, 2}}, 2);
  scale = tn_affine(b, scale, down - across, across);
  return geometry_build_places(b, places, scale, tn_scalar(b, TN_F32, 0), to->dims[h], to->dims[w]);
}

static tn_val resize_build_field(tn_build *b, const resize_options *o, int32_t k) {
  tn_val x = tn_build_in(b, k);
  int kind = geometry_build_field(b, k);
  tn_type from = *tn_val_type(b, kind <= FIELD_MASK ? x : tn_build_in(b, 0)), to = from;
  resize_set_size(o, &to);
  int64_t height = to.dims[to.rank - 2], width = to.dims[to.rank - 1];
  if (kind == FIELD_PICTURE) return resample_build(b, x, height, width);
  if (kind == FIELD_MASK) return geometry_build_nearest(b, x, height, width);
  return resize_build_places(b, x, &from, &to);
}

static tn_status resize_build(tn_build *b, const void *opts) {
  for (int32_t k = 0; k < tn_build_n_in(b); k++) tn_build_yield(b, k, resize_build_field(b, opts, k));
  return tn_build_status(b);
}

const tn_transform resize_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "resize", "resizes a picture, bilinear with antialiasing",
                    resize_options, options),
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = resize(256), center_crop(224), to_float",
    .infer = resize_infer,
    .apply = resize_apply,
    .build = resize_build,
};

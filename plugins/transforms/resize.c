/* plugins/transforms/resize.c: resizes a picture. */
#include "plugins/transforms/transforms.h"

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

static tn_status resize_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const resize_options *o = opts;
  int64_t height, width;
  TN_TRY(size_read(env, &o->size, &height, &width));
  TN_TRY(picture_check(env, n, in, 0));
  TN_TRY(resample_check(env, n, in));
  for (int32_t k = 0; k < n; k++) {
    out[k] = in[k];
    if (o->size.n == 2)
      picture_set_size(&out[k], height, width);
    else
      resize_keep_ratio(height, &out[k]);
  }
  return TN_OK;
}

static tn_status resize_apply(tn_transform_call *c, const void *opts) {
  (void)opts;
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    picture from = picture_of(&c->in_type[k]);
    status = resample(c, k, (window){0, 0, from.height, from.width});
  }
  return status;
}

static tn_status resize_build(tn_build *b, const void *opts) {
  const resize_options *o = opts;
  for (int32_t k = 0; k < tn_build_n_in(b); k++) {
    tn_type type = *tn_val_type(b, tn_build_in(b, k));
    if (o->size.n == 2)
      picture_set_size(&type, o->size.v[0], o->size.v[1]);
    else
      resize_keep_ratio(o->size.v[0], &type);
    tn_build_yield(b, k,
                   resample_build(b, tn_build_in(b, k), type.dims[type.rank - 2], type.dims[type.rank - 1]));
  }
  return tn_build_status(b);
}

const tn_transform resize_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "resize", "resizes a picture, bilinear with antialiasing",
                    resize_options, options),
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = resize(256), center_crop(224), to_float",
    .infer = resize_infer,
    .apply = resize_apply,
    .build = resize_build,
};

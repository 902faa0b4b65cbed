/* plugins/transforms/spatial/several_crops.c: five_crop, the corners and the middle of a picture, and
 * ten_crop, those of the mirrored picture as well. They are one more dimension in front of the others. */
#include <math.h>

#include "plugins/transforms/transforms.h"

typedef struct several_options {
  tn_ints size;
  int32_t vertical_flip; /* ten_crop only */
} several_options;

#define SIZE_OPTION                                                                                          \
  TN_OPT(several_options, size, TN_OPT_INTS, NULL, ">= 1", "height and width; one number for a square")
static const tn_option five_options[] = {SIZE_OPTION, TN_OPT_END};
static const tn_option ten_options[] = {SIZE_OPTION,
                                        TN_OPT(several_options, vertical_flip, TN_OPT_FLAG, "no", NULL,
                                               "mirrored top to bottom, not left to right"),
                                        TN_OPT_END};

enum { SEVERAL_PARTS = 5 };

static tn_status several_check_room(tn_env *env, const tn_type *type, int64_t height, int64_t width) {
  int64_t high = type->dims[type->rank - 2], wide = type->dims[type->rank - 1];
  if ((high < 0 || high >= height) && (wide < 0 || wide >= width)) return TN_OK;
  return tn_fail(env, TN_EINVAL, "size",
                 "a picture of %lld x %lld is too small for crops of %lld x %lld; resize it first",
                 (long long)high, (long long)wide, (long long)height, (long long)width);
}

static tn_status several_infer(tn_env *env, const several_options *o, int64_t parts, int32_t n,
                               const tn_type *in, tn_type *out) {
  int64_t height, width;
  TN_TRY(size_read(env, &o->size, &height, &width));
  TN_TRY(picture_check(env, n, in, 0));
  for (int32_t k = 0; k < n; k++) {
    if (field_kind(k, &in[k]) > FIELD_MASK || in[k].rank >= TN_MAX_RANK)
      return tn_fail(env, TN_EINVAL, NULL, "field %d is no picture with room for one more dimension", (int)k);
    TN_TRY(several_check_room(env, &in[k], height, width));
    out[k].dtype = in[k].dtype;
    out[k].rank = in[k].rank + 1;
    out[k].dims[0] = parts;
    for (int32_t d = 0; d < in[k].rank; d++) out[k].dims[d + 1] = in[k].dims[d];
    picture_set_size(&out[k], height, width);
  }
  return TN_OK;
}

static tn_status five_crop_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  return several_infer(env, opts, SEVERAL_PARTS, n, in, out);
}

static tn_status ten_crop_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  return several_infer(env, opts, 2 * SEVERAL_PARTS, n, in, out);
}

/* Left upper, right upper, left lower, right lower, middle. Half of an odd difference is rounded to even. */
static void several_copy(const void *in, const tn_type *type, const tn_type *result, char *out) {
  picture p = picture_of(type), part = picture_of(result);
  int64_t down = p.height - part.height, across = p.width - part.width;
  int64_t middle = lrint((double)down / 2), centre = lrint((double)across / 2);
  const int64_t tops[SEVERAL_PARTS] = {0, 0, down, down, middle};
  const int64_t lefts[SEVERAL_PARTS] = {0, across, 0, across, centre};
  size_t bytes = (size_t)(p.planes * part.height * part.width) * tn_dtype_size(type->dtype);
  for (int i = 0; i < SEVERAL_PARTS; i++)
    window_copy(in, type, (window){tops[i], lefts[i], part.height, part.width}, out + (size_t)i * bytes);
}

static tn_status several_apply(tn_transform_call *c, const void *opts) {
  const several_options *o = opts;
  for (int32_t k = 0; k < c->n; k++) {
    const tn_type *type = &c->in_type[k];
    size_t half = tn_type_bytes(&c->out_type[k]) / 2;
    if (c->out_type[k].dims[0] == 2 * SEVERAL_PARTS) {
      void *mirrored = tn_transform_scratch(c, tn_type_bytes(type) + 1);
      if (mirrored == NULL) return TN_ENOMEM;
      flip_apply(c->in[k], type, o->vertical_flip, mirrored);
      several_copy(mirrored, type, &c->out_type[k], (char *)c->out[k] + half);
    }
    several_copy(c->in[k], type, &c->out_type[k], c->out[k]);
  }
  return TN_OK;
}

const tn_transform five_crop_transform = {
    .item =
        TN_ITEM(tn_transform, TN_TRANSFORM, "five_crop",
                "the corners and the middle: [5, channels, height, width]", several_options, five_options),
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = five_crop(24), to_float",
    .infer = five_crop_infer,
    .apply = several_apply,
};

const tn_transform ten_crop_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "ten_crop",
                    "the corners and the middle, then those of the mirrored picture", several_options,
                    ten_options),
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = ten_crop(24), to_float",
    .infer = ten_crop_infer,
    .apply = several_apply,
};

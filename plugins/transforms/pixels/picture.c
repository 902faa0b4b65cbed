/* plugins/transforms/pixels/picture.c: sizes and windows of pictures. */
#include <string.h>

#include "plugins/transforms/transforms.h"

picture picture_of(const tn_type *type) {
  picture p = {1, type->dims[type->rank - 2], type->dims[type->rank - 1]};
  for (int32_t d = 0; d < type->rank - 2; d++) p.planes *= type->dims[d];
  return p;
}

int field_kind(int32_t k, const tn_type *type) {
  int64_t last = k > 0 && type->rank == 2 && type->dtype == TN_F32 ? type->dims[1] : 0;
  if (last == 4) return FIELD_BOXES;
  if (last == 2) return FIELD_POINTS;
  int32_t dtype = type->dtype;
  int is_real = dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F32 || dtype == TN_F64;
  return dtype == TN_U8 || is_real ? FIELD_PICTURE : FIELD_MASK;
}

tn_status picture_check(tn_env *env, int32_t n, const tn_type *types, int alike) {
  for (int32_t k = 0; k < n; k++) {
    const tn_type *t = &types[k], *first = &types[0];
    if (field_kind(k, t) >= FIELD_BOXES) continue;
    if (t->rank < 2)
      return tn_fail(
          env, TN_EINVAL, NULL,
          "field %d has rank %d, expected at least 2: height and width are the last dimensions of a picture; "
          "<- names the fields of all transforms in its line",
          (int)k, (int)t->rank);
    int same = t->dims[t->rank - 2] == first->dims[first->rank - 2] &&
               t->dims[t->rank - 1] == first->dims[first->rank - 1];
    if (alike && !same)
      return tn_fail(env, TN_EINVAL, NULL,
                     "field %d is %lld x %lld, but field 0 is %lld x %lld; expected one size", (int)k,
                     (long long)t->dims[t->rank - 2], (long long)t->dims[t->rank - 1],
                     (long long)first->dims[first->rank - 2], (long long)first->dims[first->rank - 1]);
  }
  return TN_OK;
}

int64_t picture_channels(const tn_type *type) { return type->rank >= 3 ? type->dims[type->rank - 3] : 1; }

tn_status picture_check_numbers(tn_env *env, int32_t n, const tn_type *types, int mask) {
  for (int32_t k = 0; k < n; k++)
    if ((field_kind(k, &types[k]) == FIELD_PICTURE || (k == 0 && !mask)) && types[k].dtype != TN_U8 &&
        types[k].dtype != TN_F32)
      return tn_fail(env, TN_EINVAL, NULL, "a field is %s, expected u8 or f32",
                     tn_dtype_name(types[k].dtype));
  return TN_OK;
}

void picture_set_size(tn_type *type, int64_t height, int64_t width) {
  type->dims[type->rank - 2] = height;
  type->dims[type->rank - 1] = width;
}

void window_copy(const void *in, const tn_type *type, window from, void *out) {
  picture p = picture_of(type);
  size_t item = tn_dtype_size(type->dtype), row = (size_t)from.width * item;
  int64_t left = from.left > 0 ? from.left : 0;
  int64_t right = from.left + from.width < p.width ? from.left + from.width : p.width;
  int64_t top = from.top > 0 ? from.top : 0;
  int64_t bottom = from.top + from.height < p.height ? from.top + from.height : p.height;
  int whole = right - left == from.width && bottom - top == from.height;
  if (!whole) memset(out, 0, (size_t)(p.planes * from.height) * row);
  if (left >= right || top >= bottom) return;
  char *to = (char *)out + (size_t)(top - from.top) * row + (size_t)(left - from.left) * item;
  const char *source = (const char *)in + (size_t)(top * p.width + left) * item;
  size_t bytes = (size_t)(right - left) * item, step = (size_t)p.width * item;
  for (int64_t plane = 0; plane < p.planes; plane++) {
    for (int64_t y = 0; y < bottom - top; y++) memcpy(to + (size_t)y * row, source + (size_t)y * step, bytes);
    to += (size_t)from.height * row;
    source += (size_t)p.height * step;
  }
}

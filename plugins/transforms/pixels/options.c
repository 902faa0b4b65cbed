/* plugins/transforms/pixels/options.c: options that several transforms share. */
#include "plugins/transforms/transforms.h"

tn_status size_read(const tn_env *env, const tn_ints *size, int64_t *height, int64_t *width) {
  if (size->n != 1 && size->n != 2)
    return tn_fail(env, TN_EINVAL, "size", "size has %lld numbers, expected one, or height and width",
                   (long long)size->n);
  *height = size->v[0];
  *width = size->v[size->n - 1];
  return TN_OK;
}

tn_status range_check(tn_env *env, const char *name, const tn_floats *range) {
  if (range->n == 2 && range->v[0] <= range->v[1]) return TN_OK;
  return tn_fail(env, TN_EINVAL, name, "%s must be two numbers, the smaller one first", name);
}

tn_status channel_check(tn_env *env, const char *name, const tn_floats *list, const tn_type *type) {
  int64_t channels = picture_channels(type);
  if (list->n == 1 || channels < 0 || (list->n > 0 && list->n == channels)) return TN_OK;
  return tn_fail(env, TN_EINVAL, name, "%s has %lld numbers for %lld channels, expected one, or one for each",
                 name, (long long)list->n, (long long)channels);
}

float channel_number(const tn_floats *list, int64_t plane) {
  return (float)list->v[list->n > 1 ? plane % list->n : 0];
}

tn_status sampling_check(tn_env *env, const sampling *how, int32_t n, const tn_type *types) {
  for (int32_t k = 0; k < n; k++) {
    if (field_kind(k, &types[k]) != FIELD_PICTURE) continue;
    TN_TRY(channel_check(env, "fill", &how->fill, &types[k]));
    for (int64_t i = 0; types[k].dtype == TN_U8 && i < how->fill.n; i++)
      if (!(how->fill.v[i] >= 0 && how->fill.v[i] <= 255))
        return tn_fail(env, TN_EINVAL, "fill", "fill is %g for a field of u8, expected 0 to 255",
                       how->fill.v[i]);
  }
  return TN_OK;
}

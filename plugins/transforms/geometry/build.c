/* plugins/transforms/geometry/build.c: masks and boxes on the device, with the values of the host. */
#include "plugins/transforms/geometry/geometry.h"

int geometry_build_field(tn_build *b, int32_t k) {
  tn_type sample = *tn_val_type(b, tn_build_in(b, k));
  sample.rank--;
  for (int32_t d = 0; d < sample.rank; d++) sample.dims[d] = sample.dims[d + 1];
  return field_kind(k, &sample);
}

tn_val geometry_build_draws(tn_build *b, tn_val draws) {
  const int64_t shape[3] = {tn_val_dim(b, draws, 0), 1, 2};
  const tn_val xy[2] = {tn_slice_axis(b, draws, 1, 1, 2), tn_slice_axis(b, draws, 1, 0, 1)};
  return tn_to_dtype(b, tn_reshape(b, tn_concat(b, 2, xy, 1), 3, shape), TN_F32);
}

/* Numbers between 0 and the border, which has a value for x and one for y. */
static tn_val geometry_build_cut(tn_build *b, tn_val x, int64_t height, int64_t width) {
  tn_val zero = tn_scalar(b, TN_F32, 0);
  const tn_val sides[2] = {
      tn_minimum(b, tn_maximum(b, tn_slice_axis(b, x, 2, 0, 1), zero), tn_scalar(b, TN_F32, (double)width)),
      tn_minimum(b, tn_maximum(b, tn_slice_axis(b, x, 2, 1, 2), zero), tn_scalar(b, TN_F32, (double)height))};
  return tn_concat(b, 2, sides, 2);
}

/* Whether both sides of the boxes are longer than 0, as (batch, n, 1). */
static tn_val geometry_build_has_area(tn_build *b, tn_val low, tn_val high) {
  tn_val longer = tn_gt(b, high, low);
  return tn_and(b, tn_slice_axis(b, longer, 2, 0, 1), tn_slice_axis(b, longer, 2, 1, 2));
}

tn_val geometry_build_places(tn_build *b, tn_val places, tn_val scale, tn_val shift, int64_t height,
                             int64_t width) {
  if (tn_val_dim(b, places, -1) == 2) return tn_add(b, tn_mul(b, places, scale), shift);
  tn_val first = tn_slice_axis(b, places, 2, 0, 2), last = tn_slice_axis(b, places, 2, 2, 4);
  tn_val is_box = geometry_build_has_area(b, first, last);
  first = tn_add(b, tn_mul(b, first, scale), shift);
  last = tn_add(b, tn_mul(b, last, scale), shift);
  tn_val low = geometry_build_cut(b, tn_minimum(b, first, last), height, width);
  tn_val high = geometry_build_cut(b, tn_maximum(b, first, last), height, width);
  is_box = tn_and(b, is_box, geometry_build_has_area(b, low, high));
  return tn_where(b, is_box, tn_concat(b, 2, (const tn_val[]){low, high}, 2), tn_scalar(b, TN_F32, 0));
}

/* The rows or columns of the nearest pixels, as move_nearest of move.c. */
static tn_val geometry_build_pick(tn_build *b, tn_val mask, int32_t axis, int64_t out) {
  int64_t in = tn_val_dim(b, mask, axis);
  if (in == out) return mask;
  tn_val i = tn_iota(b, &(tn_type){TN_F32, 1, {out}}, 0);
  i = tn_floor(b, tn_mul(b, i, tn_scalar(b, TN_F32, (double)((float)in / (float)out))));
  i = tn_to_dtype(b, tn_minimum(b, i, tn_scalar(b, TN_F32, (double)(in - 1))), TN_I32);
  return tn_index_select(b, mask, i, axis);
}

tn_val geometry_build_nearest(tn_build *b, tn_val mask, int64_t height, int64_t width) {
  int32_t rank = tn_val_type(b, mask)->rank;
  return geometry_build_pick(b, geometry_build_pick(b, mask, rank - 2, height), rank - 1, width);
}

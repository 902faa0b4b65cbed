/* plugins/transforms/geometry/geometry.c: checks of the fields, and the way of all. */
#include "plugins/transforms/geometry/geometry.h"

#include <string.h>

tn_status geometry_infer(tn_env *env, int32_t n, const tn_type *in, tn_type *out, int alike) {
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return picture_check(env, n, in, alike);
}

tn_status geometry_infer_sampled(tn_env *env, const sampling *how, int32_t n, const tn_type *in, tn_type *out,
                                 int alike) {
  TN_TRY(geometry_infer(env, n, in, out, alike));
  TN_TRY(picture_check_numbers(env, n, in, 1));
  return how != NULL ? sampling_check(env, how, n, in) : TN_OK;
}

void geometry_set_size(int32_t n, tn_type *types, int64_t height, int64_t width) {
  for (int32_t k = 0; k < n; k++)
    if (field_kind(k, &types[k]) <= FIELD_MASK) picture_set_size(&types[k], height, width);
}

geometry geometry_part(window from, const tn_type *out) {
  picture p = picture_of(out);
  return (geometry){.kind = GEOMETRY_PART, .from = from, .to = {0, 0, p.height, p.width}};
}

tn_status geometry_copy(tn_transform_call *c) {
  for (int32_t k = 0; k < c->n; k++) memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  return TN_OK;
}

tn_status geometry_apply(tn_transform_call *c, geometry *g) {
  picture p = picture_of(&c->in_type[0]);
  tn_status status = TN_OK;
  if (g->kind == GEOMETRY_AFFINE) g->places = projective_of_affine(&g->by, (double)p.height, (double)p.width);
  for (int32_t k = 0; status == TN_OK && k < c->n; k++)
    status = field_kind(k, &c->in_type[k]) <= FIELD_MASK ? move_pixels(c, g, k) : move_places(c, g, k);
  return status;
}

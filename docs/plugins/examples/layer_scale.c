/* A layer: a learned factor per channel, LayerScale (Touvron et al., ICCV 2021).
 * In a model: `gamma: layer_scale(1e-4)`. */
#include <stdio.h>

#include <tenon/plugin/layer.h>

struct scale {
  double init;
};
static const tn_option options[] = {
    TN_OPT(struct scale, init, TN_OPT_FLOAT, "1e-4", NULL, "value at the start"), TN_OPT_END};

static tn_status build(tn_build *b, const void *given) {
  const struct scale *o = given;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (x->rank < 2) return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected at least 2", x->rank);
  tn_type type = {TN_F32, 1, {x->dims[x->rank - 1]}};
  char init[64];
  snprintf(init, sizeof init, "constant(%.17g)", o->init);
  tn_build_yield(b, 0, tn_mul(b, tn_build_in(b, 0), tn_build_param(b, "weight", &type, init)));
  return TN_OK;
}

static const tn_layer_kind layer_scale = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "layer_scale",
                    "a learned factor for each element of the last dimension", struct scale, options),
    .min_in = 1,
    .max_in = 1,
    .build = build};

TN_PLUGIN(layer_scale, "1.0", "MIT", &layer_scale.item)

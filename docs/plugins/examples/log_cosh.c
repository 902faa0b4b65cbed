/* A loss: ln cosh of the error, which is half of its square near 0 and grows like its absolute value far
 * away. In a configuration: `[model] loss = log_cosh`. */
#include <tenon/plugin/layer.h>

/* ln cosh e = |e| + ln(1 + exp(-2 |e|)) - ln 2, whose exponential does not overflow. */
static tn_status build(tn_build *b, const void *options) {
  (void)options;
  tn_val x = tn_build_in(b, 0), target = tn_build_in(b, 1);
  if (!tn_type_same_dims(tn_val_type(b, x), tn_val_type(b, target)))
    return tn_fail(b, TN_EINVAL, NULL, "the value and the target have different shapes");
  tn_val error = tn_abs(b, tn_sub(b, x, tn_to_dtype(b, target, tn_val_type(b, x)->dtype)));
  tn_val small = tn_exp(b, tn_affine(b, error, -2, 0));
  tn_val bend = tn_log(b, tn_affine(b, small, 1, 1));
  tn_build_yield(b, 0, tn_affine(b, tn_add(b, error, bend), 1, -0.6931471805599453));
  return TN_OK;
}

static const tn_layer_kind log_cosh = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "log_cosh", "ln cosh of the error of each element"),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .build = build};

TN_PLUGIN(log_cosh, "1.0", "MIT", &log_cosh.item)

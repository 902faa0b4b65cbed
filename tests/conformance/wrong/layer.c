/* A layer: softsign of x / width times a learned factor. Its op has the right gradient for a width of 1, the
 * default. WRONG: the gradient rule forgets the width, which the layer sets to 4. */
#include <tenon/ops.h>
#include <tenon/plugin/layer.h>
#include <tenon/plugin/op.h>

struct width {
  double width;
};
static const tn_option options[] = {TN_OPT(struct width, width, TN_OPT_FLOAT, "1", "> 0", "of the bend"),
                                    TN_OPT_END};

/* x / (width + |x|) */
static tn_status decompose(tn_build *b, const void *attributes) {
  const struct width *o = attributes;
  tn_val x = tn_build_in(b, 0);
  tn_build_yield(b, 0, tn_div(b, x, tn_affine(b, tn_abs(b, x), 1, o->width)));
  return TN_OK;
}

/* width / (width + |x|)^2 */
static tn_status grad(tn_build *b, const void *attributes) {
  const struct width *o = attributes;
  tn_val x = tn_build_in(b, 0), bottom = tn_affine(b, tn_abs(b, x), 1, o->width);
  tn_val slope = tn_div(b, tn_build_out_grad(b, 0), tn_mul(b, bottom, bottom));
  tn_build_yield(b, 0, tn_affine(b, slope, WRONG ? 1 : o->width, 0));
  return TN_OK;
}

static const tn_op softsign = {
    .item = TN_ITEM(tn_op, TN_OP, "test_softsign", "x / (width + |x|)", struct width, options),
    .schema = "(x:T) -> (y:T); T in f32 f64",
    .op_class = TN_CLASS_POINTWISE,
    .decompose = decompose,
    .grad = grad};

static tn_status build(tn_build *b, const void *given) {
  (void)given;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (x->rank < 2) return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected at least 2", x->rank);
  tn_type type = {TN_F32, 1, {x->dims[x->rank - 1]}};
  tn_op_begin(b, "test_softsign");
  tn_op_arg(b, tn_build_in(b, 0));
  tn_op_set_float(b, "width", 4);
  tn_val bent = tn_op_end(b);
  tn_build_yield(b, 0, tn_mul(b, bent, tn_build_param(b, "weight", &type, "ones")));
  return TN_OK;
}

static const tn_layer_kind layer = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "test_bend", "softsign times a learned factor"),
    .min_in = 1,
    .max_in = 1,
    .build = build};
TN_PLUGIN(wrong, "1", "MIT", &softsign.item, &layer.item)

/* An op whose gradient rule lacks a factor. */
#include <tenon/ops.h>
#include <tenon/plugin/op.h>

static tn_status decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_mul(b, tn_build_in(b, 0), tn_build_in(b, 0)));
  return TN_OK;
}

static tn_status grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_build_in(b, 0)));
  return TN_OK;
}

static const tn_op square = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "wrong_square", "x x"),
                             .schema = "(x:T) -> (y:T); T in f32 f64",
                             .op_class = TN_CLASS_POINTWISE,
                             .decompose = decompose,
                             .grad = grad};
TN_PLUGIN(wrong, "1", "MIT", &square.item)

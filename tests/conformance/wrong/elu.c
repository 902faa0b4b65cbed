/* ELU with a gradient rule of its own. WRONG: for negative x it lacks the 1 in exp(x) = y + 1. */
#include <tenon/ops.h>
#include <tenon/plugin/op.h>

static tn_status decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val x = tn_build_in(b, 0), zero = tn_scalar(b, tn_val_type(b, x)->dtype, 0);
  tn_build_yield(b, 0, tn_where(b, tn_gt(b, x, zero), x, tn_affine(b, tn_exp(b, x), 1, -1)));
  return TN_OK;
}

static tn_status grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val x = tn_build_in(b, 0), zero = tn_scalar(b, tn_val_type(b, x)->dtype, 0);
  tn_val dy = tn_build_out_grad(b, 0), bent = tn_affine(b, tn_build_out(b, 0), 1, WRONG ? 0 : 1);
  tn_build_yield(b, 0, tn_where(b, tn_gt(b, x, zero), dy, tn_mul(b, dy, bent)));
  return TN_OK;
}

static const tn_op elu = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "test_elu", "x or exp(x) - 1"),
                          .schema = "(x:T) -> (y:T); T in f16 bf16 f32 f64",
                          .op_class = TN_CLASS_POINTWISE,
                          .decompose = decompose,
                          .grad = grad};
TN_PLUGIN(wrong, "1", "MIT", &elu.item)

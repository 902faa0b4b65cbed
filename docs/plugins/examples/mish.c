/* An op in one line and without a kernel (Misra, BMVC 2020): shapes, gradient and code for every
 * device follow from the formula. In a model: `mish`. */
#include <tenon/plugin/op.h>

static const tn_op mish = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "mish", "x tanh(ln(1 + exp(x)))"),
                           .schema = "(x:T) -> (y:T); T in f16 bf16 f32 f64",
                           .op_class = TN_CLASS_POINTWISE,
                           .formula = "y = x * tanh(log(1 + exp(x)))"};

TN_PLUGIN(mish, "1.0", "MIT", &mish.item)

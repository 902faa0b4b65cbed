/* An op in one line and without a kernel (Nag and Bhattacharyya, 2021): shapes, gradient and code for every
 * device follow from the formula. In a model: `serf`. */
#include <tenon/plugin/op.h>

static const tn_op serf = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "serf", "x erf(ln(1 + exp(x)))"),
                           .schema = "(x:T) -> (y:T); T in f16 bf16 f32 f64",
                           .op_class = TN_CLASS_POINTWISE,
                           .formula = "y = x * erf(log(1 + exp(x)))"};

TN_PLUGIN(serf, "1.0", "MIT", &serf.item)

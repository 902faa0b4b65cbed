/* The logarithm, which positive numbers have. WRONG: the op does not state it. */
#include <tenon/plugin/op.h>

static const tn_op logarithm = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "test_log", "the natural logarithm"),
                                .schema = "(x:T) -> (y:T); T in f32 f64",
                                .op_class = TN_CLASS_POINTWISE,
                                .formula = "y = log(x)",
                                .domain = WRONG ? NULL : "x > 0"};
TN_PLUGIN(wrong, "1", "MIT", &logarithm.item)

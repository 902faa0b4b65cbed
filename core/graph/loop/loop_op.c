/* core/graph/loop/loop_op.c: the descriptor of the op `loop`. */
#include "core/graph/loop/loop.h"

static const tn_option loop_options[] = {
    TN_OPT(tn_loop_attributes, body, TN_OPT_TEXT, NULL, NULL, "graph of a step"),
    TN_OPT(tn_loop_attributes, steps, TN_OPT_INT, NULL, "[1, 2147483647]", "steps"),
    TN_OPT(tn_loop_attributes, reverse, TN_OPT_FLAG, "no", NULL, "from the last step to the first"),
    TN_OPT(tn_loop_attributes, sequences, TN_OPT_INT, "0", "[0, 65535]",
           "operands with a part for each step"),
    TN_OPT(tn_loop_attributes, before, TN_OPT_INT, "0", "[0, 65535]",
           "pairs of operands: states of another loop"),
    TN_OPT(tn_loop_attributes, states, TN_OPT_INT, "0", "[0, 65535]", "values that go from step to step"),
    TN_OPT(tn_loop_attributes, stacked, TN_OPT_INT, "0", "[0, 65535]",
           "states whose values of all steps are results"),
    TN_OPT(tn_loop_attributes, outputs, TN_OPT_INT, "0", "[0, 65535]", "outputs of a step"),
    TN_OPT_END};

const tn_op tn_op_loop = {
    .item = TN_ITEM(tn_op, TN_OP, "loop", "a graph applied to each step of sequences", tn_loop_attributes,
                    loop_options),
    .schema = "(x*:any) -> (y:any)",
    .op_class = TN_CLASS_OTHER,
    .grad = tn_loop_gradient,
};

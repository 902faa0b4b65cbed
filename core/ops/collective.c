/* core/ops/collective.c: collectives: every rank runs the op at the same time, on its own operand. A
 * communicator (plugin/communicator.h) transports the elements. All ranks run the same graph, hence the
 * collectives in the same order. */
#include "core/ops/common.h"

static tn_status all_reduce_infer(tn_infer *n) {
  n->node.out[0] = *n->node.in[0];
  return TN_OK;
}

/* The differentiated function is the sum of the ranks' losses. Every rank's result depends on this rank's
 * operand, so dx is the sum of all dy. For a minimum or maximum, dx is 0 where x differs from the result. */
static tn_status all_reduce_grad(tn_build *b, const void *attributes) {
  const tn_all_reduce_attributes *a = attributes;
  tn_op_begin(b, "all_reduce");
  tn_op_arg(b, tn_build_out_grad(b, 0));
  tn_val dx = tn_op_end(b), x = tn_build_in(b, 0);
  if (a->reduction != TN_REDUCTION_SUM)
    dx = tn_where(b, tn_op2(b, "eq", x, tn_build_out(b, 0)), dx, tn_ops_zero(b, x));
  tn_build_yield(b, 0, dx);
  return TN_OK;
}

static const tn_option all_reduce_options[] = {TN_OPT(tn_all_reduce_attributes, reduction, TN_OPT_ENUM, "sum",
                                                      "sum|min|max", "how the ranks' elements are combined"),
                                               TN_OPT_END};

const tn_op tn_op_all_reduce = {
    .item = TN_ITEM(tn_op, TN_OP, "all_reduce", "sum or extreme over ranks, element by element",
                    tn_all_reduce_attributes, all_reduce_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_NUMBERS,
    .op_class = TN_CLASS_OTHER,
    .infer = all_reduce_infer,
    .grad = all_reduce_grad,
};

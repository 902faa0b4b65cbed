/* Collectives: the same op on every rank at once, each with its own operand. Who carries the elements
 * from rank to rank is a communicator (plugin/communicator.h); ranks run the same graph, so that every
 * rank's collectives meet in the same order. */
#include "core/ops/common.h"

static tn_status all_reduce_infer(tn_infer *n) {
  n->node.out[0] = *n->node.in[0];
  return TN_OK;
}

/* What is differentiated is the sum of the ranks' losses: every rank's result depends on this rank's
 * operand, so dx is the sum of their dy. An extreme passes it on where x is the extreme. */
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
                                                      "sum|min|max", "what becomes of the ranks' elements"),
                                               TN_OPT_END};

const tn_op tn_op_all_reduce = {
    .item = TN_ITEM(tn_op, TN_OP, "all_reduce", "sum or extreme over ranks, element by element",
                    tn_all_reduce_attributes, all_reduce_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_NUMBERS,
    .op_class = TN_CLASS_OTHER,
    .infer = all_reduce_infer,
    .grad = all_reduce_grad,
};

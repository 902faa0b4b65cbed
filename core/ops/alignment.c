/* core/ops/alignment.c: the sum over all alignments of a sequence of states with the steps of another
 * sequence, for connectionist temporal classification (Graves et al., ICML 2006) and forward sums. */
#include "core/ops/common.h"

enum { SCORE, SKIP, STEPS, STATES, DTOTAL };

/* *rows: the type of a number for each sequence. */
static tn_status alignment_check(tn_infer *n, tn_type *rows) {
  const tn_type *score = n->node.in[SCORE];
  TN_TRY(tn_ops_check_rank(n, "score", score, 3, "batch, steps, states"));
  const tn_type skip = {0, 2, {score->dims[0], score->dims[2]}};
  *rows = (tn_type){score->dtype, 1, {score->dims[0]}};
  TN_TRY(tn_ops_check_dims_of(n, "skip", n->node.in[SKIP], &skip));
  TN_TRY(tn_ops_check_dims_of(n, "steps", n->node.in[STEPS], rows));
  return tn_ops_check_dims_of(n, "states", n->node.in[STATES], rows);
}

static tn_status alignment_infer(tn_infer *n) { return alignment_check(n, &n->node.out[0]); }

static tn_status alignment_grad_infer(tn_infer *n) {
  tn_type rows;
  TN_TRY(alignment_check(n, &rows));
  n->node.out[0] = *n->node.in[SCORE];
  return tn_ops_check_dims_of(n, "dtotal", n->node.in[DTOTAL], &rows);
}

static tn_status alignment_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, SCORE,
                 tn_alignment_grad(b, tn_build_in(b, SCORE), tn_build_in(b, SKIP), tn_build_in(b, STEPS),
                                   tn_build_in(b, STATES), tn_build_out_grad(b, 0)));
  return TN_OK;
}

/* Three exponentials and a logarithm for a state and step, forward and backward. */
static void alignment_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 8 * tn_ops_count(n->in[SCORE]));
}

const tn_op tn_op_alignment = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "alignment",
                          "logarithm of the sum over all alignments of states with steps"),
    .schema = "(score:T, skip:bool, steps:i32, states:i32) -> (total:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_LOSS,
    .infer = alignment_infer,
    .grad = alignment_grad,
    .cost = alignment_cost,
    .domain = "steps [0, score.1]; states [0, score.2]",
    .notes = "score (batch, steps, states) has the logarithm of a factor for each state at each step. A path "
             "begins in state 0 or 1, stays in its state, goes to the next one or, where `skip` of the state "
             "behind "
             "that is true, past it, and ends in one of the last two. total is the logarithm of the sum over "
             "all paths of the products of their factors; -inf where there is none. `steps` and `states` are "
             "those "
             "of each sequence. A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, \"Connectionist temporal "
             "classification\", 2006.",
};

const tn_op tn_op_alignment_grad = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "alignment_grad", "gradient of alignment"),
    .schema = "(score:T, skip:bool, steps:i32, states:i32, dtotal:T) -> (dscore:T)" TN_OPS_FLOATS,
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_LOSS,
    .infer = alignment_grad_infer,
    .cost = alignment_cost,
    .domain = "steps [0, score.1]; states [0, score.2]",
    .notes =
        "dscore is dtotal times the share of the paths that are in this state at this step. Each path counts "
        "with the product of its factors. The gradient is 0 where the sequence has no path.",
};

/* core/ops/recurrence.c: the steps of a recurrent layer along time, as one op: LSTM (Hochreiter and
 * Schmidhuber, Neural Computation 1997, with the forget gate of Gers et al., 2000), GRU (Cho et al., EMNLP
 * 2014, in the form of PyTorch and cuDNN, with the reset gate behind the product) and the plain recurrence.
 *
 * `x` is the part of the gates that depends on the input, a matrix product of all steps before this op. The
 * op adds w h of the state and applies the cell. N sequences, T steps, H units, G gates: 4 of LSTM, 3 of GRU,
 * else 1. */
#include "core/ops/common.h"

enum { X, W, BIAS, H, C, LENGTH };

static int64_t recurrence_gates(const tn_recurrence_attributes *a) {
  return a->cell == TN_CELL_LSTM ? 4 : a->cell == TN_CELL_GRU ? 3 : 1;
}

/* Numbers for each unit and step that the gradient needs: the gates behind their functions and c; the gates
 * and w_n h + bias_n; nothing beside y. */
static int64_t recurrence_stored(const tn_recurrence_attributes *a) {
  return a->cell == TN_CELL_LSTM ? 5 : a->cell == TN_CELL_GRU ? 4 : 0;
}

/* ---- shapes ---- */

typedef struct recurrence_sizes {
  int64_t batch, steps, units, gates, stored, cells; /* cells: units of the state c */
} recurrence_sizes;

/* An operand that may be absent, and its dims. */
typedef struct recurrence_operand {
  const char *name;
  int32_t number;
  tn_type type;
} recurrence_operand;

static tn_type recurrence_type(int32_t dtype, int32_t rank, int64_t d0, int64_t d1, int64_t d2) {
  return (tn_type){dtype, rank, {d0, d1, d2}};
}

/* The sizes that w and `along`, which has batch and steps in front, say. */
static tn_status recurrence_read_sizes(tn_infer *n, const tn_type *w, const char *name, const tn_type *along,
                                       recurrence_sizes *s) {
  const tn_recurrence_attributes *a = n->node.attributes;
  TN_TRY(tn_ops_check_rank(n, "w", w, 2, "gates * units, units"));
  TN_TRY(tn_ops_check_rank(n, name, along, 3, "batch, steps, numbers of a step"));
  int64_t units = w->dims[1];
  *s = (recurrence_sizes){along->dims[0],
                          along->dims[1],
                          units,
                          recurrence_gates(a) * units,
                          recurrence_stored(a) * units,
                          a->cell == TN_CELL_LSTM ? units : 0};
  tn_type expected = recurrence_type(0, 2, s->gates, units, 0);
  return tn_ops_check_dims_of(n, "w", w, &expected);
}

static tn_status recurrence_check(tn_infer *n, const recurrence_operand *list, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (n->node.in[list[i].number] != NULL)
      TN_TRY(tn_ops_check_dims_of(n, list[i].name, n->node.in[list[i].number], &list[i].type));
  return TN_OK;
}

static tn_status recurrence_check_cell(tn_infer *n, const tn_type *c) {
  const tn_recurrence_attributes *a = n->node.attributes;
  if (c == NULL || a->cell == TN_CELL_LSTM) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "c is given, but only the cell lstm has such a state; leave it out");
}

static tn_status recurrence_infer(tn_infer *n) {
  const tn_type *x = n->node.in[X];
  recurrence_sizes s;
  TN_TRY(recurrence_read_sizes(n, n->node.in[W], "x", x, &s));
  TN_TRY(recurrence_check_cell(n, n->node.in[C]));
  const recurrence_operand operands[] = {{"x", X, recurrence_type(0, 3, s.batch, s.steps, s.gates)},
                                         {"bias", BIAS, recurrence_type(0, 1, s.gates, 0, 0)},
                                         {"h", H, recurrence_type(0, 2, s.batch, s.units, 0)},
                                         {"c", C, recurrence_type(0, 2, s.batch, s.units, 0)},
                                         {"length", LENGTH, recurrence_type(0, 1, s.batch, 0, 0)}};
  n->node.out[0] = recurrence_type(x->dtype, 3, s.batch, s.steps, s.units);
  n->node.out[1] = recurrence_type(x->dtype, 2, s.batch, s.units, 0);
  n->node.out[2] = recurrence_type(x->dtype, 2, s.batch, s.cells, 0);
  n->node.out[3] = recurrence_type(x->dtype, 3, s.batch, s.steps, s.stored);
  TN_TRY(recurrence_check(n, operands, 5));
  return tn_ops_check_count(n, &n->node.out[3]);
}

/* ---- gradient ---- */

enum { GRAD_W, GRAD_H, GRAD_C, GRAD_LENGTH, GRAD_Y, GRAD_STORED, GRAD_DY, GRAD_DLAST, GRAD_DCELL };

static tn_status recurrence_grad_infer(tn_infer *n) {
  const tn_type *w = n->node.in[GRAD_W], *y = n->node.in[GRAD_Y];
  recurrence_sizes s;
  TN_TRY(recurrence_read_sizes(n, w, "y", y, &s));
  TN_TRY(recurrence_check_cell(n, n->node.in[GRAD_C]));
  const tn_type outputs = recurrence_type(0, 3, s.batch, s.steps, s.units),
                state = recurrence_type(0, 2, s.batch, s.units, 0);
  const recurrence_operand operands[] = {
      {"h", GRAD_H, state},
      {"c", GRAD_C, state},
      {"length", GRAD_LENGTH, recurrence_type(0, 1, s.batch, 0, 0)},
      {"y", GRAD_Y, outputs},
      {"stored", GRAD_STORED, recurrence_type(0, 3, s.batch, s.steps, s.stored)},
      {"dy", GRAD_DY, outputs},
      {"dlast", GRAD_DLAST, state},
      {"dcell", GRAD_DCELL, recurrence_type(0, 2, s.batch, s.cells, 0)}};
  n->node.out[0] = recurrence_type(y->dtype, 3, s.batch, s.steps, s.gates);
  n->node.out[1] = *w;
  n->node.out[2] = recurrence_type(y->dtype, 1, s.gates, 0, 0);
  n->node.out[3] = recurrence_type(y->dtype, 2, s.batch, s.units, 0);
  n->node.out[4] = recurrence_type(y->dtype, 2, s.batch, s.cells, 0);
  TN_TRY(recurrence_check(n, operands, 8));
  return tn_ops_check_count(n, &n->node.out[0]);
}

/* The results of recurrence_grad in the order of the operands of recurrence. */
static tn_status recurrence_grad(tn_build *b, const void *attributes) {
  const tn_recurrence_attributes *a = attributes;
  tn_val d =
      tn_recurrence_grad(b, tn_build_in(b, W), tn_build_in(b, H), tn_build_in(b, C), tn_build_in(b, LENGTH),
                         tn_build_out(b, 0), tn_build_out(b, 3), tn_build_out_grad(b, 0),
                         tn_build_out_grad(b, 1), tn_build_out_grad(b, 2), a->cell, a->reverse);
  for (int32_t i = X; i <= C; i++)
    if (tn_build_wants_grad(b, i)) tn_build_yield(b, i, tn_op_result(b, d, i));
  return TN_OK;
}

/* ---- cost ---- */

/* A product of the state and w in every step, and some 8 operations a gate. */
static double recurrence_flops(const tn_type *y, const tn_type *w) {
  double rows = (double)y->dims[0] * (double)y->dims[1];
  return rows * (2 * tn_ops_count(w) + 8 * (double)w->dims[0]);
}
static void recurrence_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, recurrence_flops(&n->out[0], n->in[W]));
}
/* The product goes to the state and to w. */
static void recurrence_grad_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 2 * recurrence_flops(n->in[GRAD_Y], n->in[GRAD_W]));
}

static const tn_option recurrence_options[] = {
    TN_OPT(tn_recurrence_attributes, cell, TN_OPT_ENUM, "lstm", "lstm|gru|tanh|relu", "what a step computes"),
    TN_OPT(tn_recurrence_attributes, reverse, TN_OPT_FLAG, "no", NULL, "from the last step to the first"),
    TN_OPT_END};

const tn_op tn_op_recurrence = {
    .item = TN_ITEM(tn_op, TN_OP, "recurrence",
                    "the steps of an LSTM, a GRU or a plain recurrent layer along time",
                    tn_recurrence_attributes, recurrence_options),
    .schema = "(x:T, w:T, bias?:T, h?:T, c?:T, length?:i32) -> (y:T, last:T, cell:T, stored:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = recurrence_infer,
    .grad = recurrence_grad,
    .cost = recurrence_cost,
    .domain = "length [0, x.1]",
    .notes =
        "x is (batch, steps, gates * units), w (gates * units, units), h and c the states before the first "
        "step, "
        "which are zero unless given. Gates have PyTorch's order: i, f, g, o of lstm, r, z, n of gru. Of a "
        "sequence only the first `length` steps count: y is zero behind them. last is the state behind the "
        "last step, cell that of c, and stored what the gradient needs.",
};

const tn_op tn_op_recurrence_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "recurrence_grad", "gradient of recurrence", tn_recurrence_attributes,
                    recurrence_options),
    .schema = "(w:T, h?:T, c?:T, length?:i32, y:T, stored:T, dy?:T, dlast?:T, dcell?:T) -> (dx:T, dw:T, "
              "dbias:T, dh:T, "
              "dc:T)" TN_OPS_FLOATS,
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_MATMUL,
    .infer = recurrence_grad_infer,
    .cost = recurrence_grad_cost,
    .notes = "y and stored are those of recurrence; gradients of its results that are absent are zero.",
};

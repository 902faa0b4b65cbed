/* core/ops/matmul.c: the matrix product. Dimensions before the last two are batch dimensions and broadcast as
 * in NumPy. */
#include "core/ops/common.h"

/* ---- shapes ---- */

/* Rows and columns of op(m): its last two dimensions, swapped if transposed. */
typedef struct matrix_extent {
  int64_t rows, columns;
} matrix_extent;

static matrix_extent matmul_extent(const tn_type *m, int32_t transposed) {
  int64_t rows = m->dims[m->rank - 2], columns = m->dims[m->rank - 1];
  return transposed ? (matrix_extent){columns, rows} : (matrix_extent){rows, columns};
}

static tn_status matmul_check_matrix(tn_infer *n, const char *operand, const tn_type *m) {
  if (m->rank >= 2) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL,
                 "%s is %s, expected rank 2 or more: reshape a vector to a row or a column first", operand,
                 tn_ops_text(m).v);
}

/* The batch dimensions of the result. */
static tn_status matmul_broadcast_batch(tn_infer *n, const tn_type *a, const tn_type *b, tn_type *y) {
  y->rank = a->rank > b->rank ? a->rank : b->rank;
  for (int32_t i = 3; i <= y->rank; i++) {
    int64_t p = i <= a->rank ? a->dims[a->rank - i] : 1, q = i <= b->rank ? b->dims[b->rank - i] : 1;
    if (p != q && p != 1 && q != 1)
      return tn_fail(n, TN_EINVAL, NULL,
                     "a is %s and b is %s: batch dimensions %lld and %lld differ and neither is 1",
                     tn_ops_text(a).v, tn_ops_text(b).v, (long long)p, (long long)q);
    y->dims[y->rank - i] = p == 1 ? q : p;
  }
  return TN_OK;
}

static tn_status matmul_check_bias(tn_infer *n, const tn_type *bias, int64_t columns) {
  if (bias == NULL || (bias->rank == 1 && bias->dims[0] == columns)) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "bias is %s, expected [%lld], one number for each column of the result",
                 tn_ops_text(bias).v, (long long)columns);
}

static tn_status matmul_infer(tn_infer *n) {
  const tn_matmul_attributes *m = n->node.attributes;
  const tn_type *a = n->node.in[0], *b = n->node.in[1];
  tn_type *y = &n->node.out[0];
  tn_status status = matmul_check_matrix(n, "a", a);
  if (status == TN_OK) status = matmul_check_matrix(n, "b", b);
  if (status == TN_OK) status = matmul_broadcast_batch(n, a, b, y);
  if (status != TN_OK) return status;
  matrix_extent p = matmul_extent(a, m->transpose_a), q = matmul_extent(b, m->transpose_b);
  if (p.columns != q.rows)
    return tn_fail(n, TN_EINVAL, NULL, "a is %s%s and b is %s%s: the inner dimensions %lld and %lld differ",
                   tn_ops_text(a).v, m->transpose_a ? " transposed" : "", tn_ops_text(b).v,
                   m->transpose_b ? " transposed" : "", (long long)p.columns, (long long)q.rows);
  y->dims[y->rank - 2] = p.rows;
  y->dims[y->rank - 1] = q.columns;
  status = matmul_check_bias(n, n->node.in[2], q.columns);
  return status != TN_OK ? status : tn_ops_check_count(n, y);
}

/* ---- gradients ---- */

static tn_val matmul_emit(tn_build *b, const tn_matmul_attributes *m, tn_val x, tn_val y, int32_t transpose_x,
                          int32_t transpose_y) {
  return tn_matmul(b, x, y, 0, transpose_x, transpose_y, m->math);
}

/* With op(a) op(b) = y: d op(a) = dy op(b)^T, or its transpose if a is transposed. */
static void matmul_yield_da(tn_build *b, const tn_matmul_attributes *m) {
  tn_val w = tn_build_in(b, 1), dy = tn_build_out_grad(b, 0);
  tn_ops_yield_to(b, 0,
                  m->transpose_a ? matmul_emit(b, m, w, dy, m->transpose_b, 1)
                                 : matmul_emit(b, m, dy, w, 0, !m->transpose_b));
}

/* v as a matrix: all dimensions but the last are merged. */
static tn_val matmul_flatten_rows(tn_build *b, tn_val v) {
  tn_type t = tn_ops_type(b, v);
  int64_t dims[2] = {1, t.dims[t.rank - 1]};
  for (int32_t i = 0; i < t.rank - 1; i++) dims[0] *= t.dims[i];
  return t.rank == 2 ? v : tn_reshape(b, v, 2, dims);
}

/* A weight without batch dimensions gets one large product instead of a product for each batch entry and a
 * sum: the rows of all entries are contiguous in memory. */
static bool matmul_weight_is_shared(tn_build *b, const tn_matmul_attributes *m) {
  return tn_val_type(b, tn_build_in(b, 1))->rank == 2 && !m->transpose_a;
}

/* d op(b) = op(a)^T dy. */
static void matmul_yield_db(tn_build *b, const tn_matmul_attributes *m) {
  tn_val a = tn_build_in(b, 0), dy = tn_build_out_grad(b, 0);
  if (matmul_weight_is_shared(b, m)) {
    a = matmul_flatten_rows(b, a);
    dy = matmul_flatten_rows(b, dy);
  }
  tn_ops_yield_to(b, 1,
                  m->transpose_b ? matmul_emit(b, m, dy, a, 1, m->transpose_a)
                                 : matmul_emit(b, m, a, dy, !m->transpose_a, 0));
}

/* Uses the same rows as the weight gradient, so that one pass over dy can compute both. */
static void matmul_yield_dbias(tn_build *b, const tn_matmul_attributes *m) {
  tn_ops_yield_to(b, 2,
                  matmul_weight_is_shared(b, m) ? matmul_flatten_rows(b, tn_build_out_grad(b, 0))
                                                : tn_build_out_grad(b, 0));
}

static tn_status matmul_grad(tn_build *b, const void *attributes) {
  if (tn_build_wants_grad(b, 0)) matmul_yield_da(b, attributes);
  if (tn_build_wants_grad(b, 1)) matmul_yield_db(b, attributes);
  if (tn_build_wants_grad(b, 2)) matmul_yield_dbias(b, attributes);
  return TN_OK;
}

/* ---- cost ---- */

static void matmul_cost(const tn_node *n, tn_cost *cost) {
  const tn_matmul_attributes *m = n->attributes;
  double inner = (double)matmul_extent(n->in[0], m->transpose_a).columns, elements = tn_ops_count(&n->out[0]);
  tn_ops_cost(n, cost, 2 * inner * elements + (n->in[2] != NULL ? elements : 0));
}

static const tn_option matmul_options[] = {
    TN_OPT(tn_matmul_attributes, transpose_a, TN_OPT_FLAG, "no", NULL, "swap the last two dimensions of a"),
    TN_OPT(tn_matmul_attributes, transpose_b, TN_OPT_FLAG, "no", NULL, "swap the last two dimensions of b"),
    TN_OPS_MATH(tn_matmul_attributes), TN_OPT_END};

const tn_op tn_op_matmul = {
    .item = TN_ITEM(tn_op, TN_OP, "matmul",
                    "matrix product of the last two dimensions, plus a bias for each column",
                    tn_matmul_attributes, matmul_options),
    .schema = "(a:T, b:T, bias?:T) -> (y:T)" TN_OPS_PRODUCTS,
    .op_class = TN_CLASS_MATMUL,
    .infer = matmul_infer,
    .grad = matmul_grad,
    .cost = matmul_cost,
    .notes = "The dimensions before the last two broadcast.",
};

/* core/ops/embedding.c: rows of a table by id. An id outside the table is an error of the data: the result is
 * unspecified, but a kernel must not access memory outside the table. */
#include "core/ops/common.h"

/* Sets y to the dims of the ids, followed by the width of a row. */
static tn_status embedding_rows(tn_infer *n, const tn_type *ids, int64_t width, tn_type *y) {
  if (ids->rank >= TN_MAX_RANK)
    return tn_fail(n, TN_EINVAL, NULL, "ids is %s of rank %d, expected rank %d at most", tn_ops_text(ids).v,
                   (int)ids->rank, (int)TN_MAX_RANK - 1);
  int32_t dtype = y->dtype;
  *y = *ids;
  y->dtype = dtype;
  y->dims[y->rank++] = width;
  return tn_ops_check_count(n, y);
}

/* ---- embedding ---- */

static tn_status embedding_infer(tn_infer *n) {
  const tn_type *table = n->node.in[1];
  tn_status status = tn_ops_check_rank(n, "table", table, 2, "rows, width");
  return status != TN_OK ? status : embedding_rows(n, n->node.in[0], table->dims[1], &n->node.out[0]);
}

static tn_status embedding_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  if (!tn_build_wants_grad(b, 1)) return TN_OK;
  int64_t rows = tn_val_dim(b, tn_build_in(b, 1), 0);
  tn_build_yield(b, 1, tn_embedding_grad(b, tn_build_in(b, 0), tn_build_out_grad(b, 0), rows));
  return TN_OK;
}

static void embedding_cost(const tn_node *n, tn_cost *cost) {
  double rows = tn_ops_count(&n->out[0]) * (double)tn_dtype_size(n->out[0].dtype);
  cost->flops = 0;
  cost->bytes = 2 * rows + tn_ops_count(n->in[0]) * (double)tn_dtype_size(n->in[0]->dtype);
}

const tn_op tn_op_embedding = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "embedding", "the rows of a table with these ids"),
    .schema = "(ids:I, table:T) -> (y:T)" TN_OPS_FLOATS TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .infer = embedding_infer,
    .grad = embedding_grad,
    .cost = embedding_cost,
    .notes = "The result has the dims of ids, then the width of the table.",
};

/* ---- embedding_grad ---- */

static tn_status embedding_grad_infer(tn_infer *n) {
  const tn_embedding_grad_attributes *a = n->node.attributes;
  const tn_type *ids = n->node.in[0], *dy = n->node.in[1];
  tn_type expected = {dy->dtype, 0, {0}}, *dtable = &n->node.out[0];
  int64_t width = dy->rank > 0 ? dy->dims[dy->rank - 1] : 0;
  tn_status status = embedding_rows(n, ids, width, &expected);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "dy", dy, &expected);
  dtable->rank = 2;
  dtable->dims[0] = a->rows;
  dtable->dims[1] = width;
  return status != TN_OK ? status : tn_ops_check_count(n, dtable);
}

static tn_status embedding_grad_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  if (tn_build_wants_grad(b, 1))
    tn_build_yield(b, 1, tn_embedding(b, tn_build_in(b, 0), tn_build_out_grad(b, 0)));
  return TN_OK;
}

static void embedding_grad_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, tn_ops_count(n->in[1]));
}

static const tn_option embedding_grad_options[] = {
    TN_OPT(tn_embedding_grad_attributes, rows, TN_OPT_INT, NULL, ">= 0", "rows of the table"), TN_OPT_END};

const tn_op tn_op_embedding_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "embedding_grad", "gradient of embedding: rows of dy added up by their id",
                    tn_embedding_grad_attributes, embedding_grad_options),
    .schema = "(ids:I, dy:T) -> (dtable:T)" TN_OPS_FLOATS TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .infer = embedding_grad_infer,
    .grad = embedding_grad_grad,
    .cost = embedding_grad_cost,
};

/* core/ops/crop.c: a part of each picture of a batch, at a place of its own, mirrored or not. The gradient is
 * a crop of dy: the place of x relative to the part. */
#include "core/ops/common.h"

/* A start or a mirror, a pair for each sample. */
static tn_status crop_check_pairs(tn_infer *n, int32_t operand, const char *name) {
  if (n->node.n_in <= operand || n->node.in[operand] == NULL) return TN_OK;
  tn_type pairs = {n->node.in[operand]->dtype, 2, {n->node.in[0]->dims[0], 2}};
  return tn_ops_check_dims_of(n, name, n->node.in[operand], &pairs);
}

static tn_status crop_op_infer(tn_infer *n) {
  const tn_crop_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  tn_type *y = &n->node.out[0];
  if (x->rank < 3)
    return tn_fail(n, TN_EINVAL, NULL, "x is %s of rank %d, expected 3 at least: samples, ..., height, width",
                   tn_ops_text(x).v, (int)x->rank);
  TN_TRY(tn_ops_check_list(n, "size", &a->size, 2, 0));
  TN_TRY(crop_check_pairs(n, 1, "start"));
  TN_TRY(crop_check_pairs(n, 2, "mirror"));
  *y = *x;
  y->dims[x->rank - 2] = a->size.v[0];
  y->dims[x->rank - 1] = a->size.v[1];
  return tn_ops_check_count(n, y);
}

/* The sizes of y minus those of x, (1, 2). */
static tn_val crop_size_difference(tn_build *b, int32_t dtype, const tn_type *y, const tn_type *x) {
  tn_type one = {dtype, 2, {1, 1}};
  tn_val parts[2];
  for (int32_t i = 0; i < 2; i++) {
    int32_t d = x->rank - 2 + i;
    parts[i] = tn_full(b, &one, (double)(y->dims[d] - x->dims[d]));
  }
  return tn_concat(b, 2, parts, 1);
}

/* Row p of x is row p - start of the part, or, mirrored, row height - 1 - (p - start). */
static tn_val crop_grad_start(tn_build *b, tn_val start, tn_val mirror) {
  tn_val plain = start != 0 ? tn_neg(b, start) : 0;
  if (mirror == 0) return plain;
  tn_type y = tn_ops_type(b, tn_build_out(b, 0)), x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val behind = crop_size_difference(b, tn_val_type(b, mirror)->dtype, &y, &x),
         zero = tn_ops_zero(b, mirror);
  if (start != 0) behind = tn_add(b, behind, start);
  return tn_where(b, tn_ne(b, mirror, zero), behind, plain != 0 ? plain : zero);
}

static tn_status crop_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  if (!tn_build_wants_grad(b, 0)) return TN_OK;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val mirror = tn_build_in(b, 2), start = crop_grad_start(b, tn_build_in(b, 1), mirror);
  tn_build_yield(b, 0, tn_crop(b, tn_build_out_grad(b, 0), start, mirror, 2, x.dims + x.rank - 2));
  return TN_OK;
}

/* No flops; every element of the result is read and written once. */
static void crop_cost(const tn_node *n, tn_cost *cost) {
  cost->flops = 0;
  cost->bytes = 2 * tn_ops_count(&n->out[0]) * (double)tn_dtype_size(n->out[0].dtype);
}

static const tn_option crop_options[] = {
    TN_OPT(tn_crop_attributes, size, TN_OPT_INTS, NULL, NULL, "height and width of the part"), TN_OPT_END};

const tn_op tn_op_crop = {
    .item = TN_ITEM(tn_op, TN_OP, "crop",
                    "a part of each picture of a batch, at a place of its own, mirrored or not",
                    tn_crop_attributes, crop_options),
    .schema = "(x:T, start?:I, mirror?:I) -> (y:T)" TN_OPS_INDEX,
    .op_class = TN_CLASS_INDEX,
    .infer = crop_op_infer,
    .grad = crop_grad,
    .cost = crop_cost,
    .notes = "x is (N, ..., H, W), the result (N, ..., height, width). The part of sample n begins at row "
             "start[n, 0] and column start[n, 1]; outside of x it is 0. Its rows are in reverse order "
             "where mirror[n, 0] is not 0, its columns where mirror[n, 1] is not 0. An absent operand is "
             "0.",
};

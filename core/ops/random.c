/* core/ops/random.c: random numbers: pure functions of the random stream, the iteration and the element's
 * index (random.h), so that two equal ops give the same numbers. If the batch is split into blocks, over
 * ranks and micro-batches, the index is that of the global batch: it counts the elements of earlier blocks.
 * The ops are pointwise, since an element depends only on its index: a mask can be computed inside a fused
 * region, without memory. They are not differentiable. */
#include "core/ops/common.h"

/* Checks operands `iteration` and `block?`, the first of which is operand `first`. */
static tn_status random_check_counters(tn_infer *n, int32_t first) {
  const tn_type *block = n->node.n_in > first + 1 ? n->node.in[first + 1] : NULL;
  tn_status status = tn_ops_check_rank(n, "iteration", n->node.in[first], 0, "a scalar");
  return status != TN_OK || block == NULL ? status : tn_ops_check_rank(n, "block", block, 0, "a scalar");
}

/* ---- random_uniform, random_normal ---- */

static tn_status random_infer(tn_infer *n) {
  const tn_random_attributes *a = n->node.attributes;
  TN_TRY(random_check_counters(n, 0));
  if (!tn_dtype_is_float(a->dtype))
    return tn_fail(n, TN_EINVAL, "dtype", "dtype is %s, expected f16, bf16, f32 or f64",
                   tn_dtype_name(a->dtype));
  n->node.out[0].dtype = a->dtype;
  return tn_ops_check_dims(n, &a->dims, &n->node.out[0]);
}

static tn_status uniform_infer(tn_infer *n) {
  const tn_random_attributes *a = n->node.attributes;
  if (!(a->a <= a->b)) return tn_fail(n, TN_EINVAL, "b", "b is %g and a is %g, expected a <= b", a->b, a->a);
  return random_infer(n);
}

static tn_status normal_infer(tn_infer *n) {
  const tn_random_attributes *a = n->node.attributes;
  if (!(a->b >= 0))
    return tn_fail(n, TN_EINVAL, "b", "b, the standard deviation, is %g, expected >= 0", a->b);
  return random_infer(n);
}

#define RANDOM_OPTIONS(doc_a, doc_b)                                                                         \
  TN_OPT(tn_random_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions"),                                 \
      TN_OPT(tn_random_attributes, stream, TN_OPT_INT, "0", NULL, "number of the random stream"),            \
      TN_OPT(tn_random_attributes, a, TN_OPT_FLOAT, "0", NULL, doc_a),                                       \
      TN_OPT(tn_random_attributes, b, TN_OPT_FLOAT, "1", NULL, doc_b),                                       \
      TN_OPT(tn_random_attributes, dtype, TN_OPT_DTYPE, "f32", NULL, "element type"), TN_OPT_END

static const tn_option uniform_options[] = {RANDOM_OPTIONS("lowest value", "bound above")};
static const tn_option normal_options[] = {RANDOM_OPTIONS("mean", "standard deviation")};

const tn_op tn_op_random_uniform = {
    .item =
        TN_ITEM(tn_op, TN_OP, "random_uniform", "numbers from [a, b)", tn_random_attributes, uniform_options),
    .schema = "(iteration:i64, block?:i64) -> (y:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_POINTWISE,
    .infer = uniform_infer,
    .notes = "`iteration` is tn_build_counter(b, TN_ITERATION), `block` tn_build_counter(b, "
             "TN_BATCH_BLOCK), `stream` tn_build_random_stream(b, use). tenon/attributes.h defines the "
             "bits of each element.",
};

const tn_op tn_op_random_normal = {
    .item = TN_ITEM(tn_op, TN_OP, "random_normal", "normally distributed numbers with mean a and deviation b",
                    tn_random_attributes, normal_options),
    .schema = "(iteration:i64, block?:i64) -> (y:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_POINTWISE,
    .infer = normal_infer,
    .notes = "`iteration` is tn_build_counter(b, TN_ITERATION), `block` tn_build_counter(b, "
             "TN_BATCH_BLOCK), `stream` tn_build_random_stream(b, use). tenon/attributes.h defines the "
             "bits of each element.",
};

/* ---- dropout ---- */

static tn_status dropout_infer(tn_infer *n) {
  n->node.out[0] = *n->node.in[0];
  return random_check_counters(n, 1);
}

/* An element is kept if its number from [0, 1) is at least p. The numbers are f32 for every T, so that the
 * mask does not depend on the precision. */
static tn_status dropout_decompose(tn_build *b, const void *attributes) {
  const tn_dropout_attributes *a = attributes;
  tn_val x = tn_build_in(b, 0);
  tn_type type = tn_ops_type(b, x);
  type.dtype = TN_F32;
  tn_val u = tn_random_uniform(b, tn_build_in(b, 1), tn_build_in(b, 2), &type, a->stream, 0, 1);
  tn_val keep = tn_ge(b, u, tn_scalar(b, TN_F32, a->p));
  double scale = a->p < 1 ? 1 / (1 - a->p) : 0;
  tn_build_yield(b, 0, tn_where(b, keep, tn_affine(b, x, scale, 0), tn_ops_zero(b, x)));
  return TN_OK;
}

/* Applies the same mask and scale to dy: they are recomputed from the random stream, iteration and block. */
static tn_status dropout_grad(tn_build *b, const void *attributes) {
  const tn_dropout_attributes *a = attributes;
  tn_build_yield(
      b, 0, tn_dropout(b, tn_build_out_grad(b, 0), tn_build_in(b, 1), tn_build_in(b, 2), a->p, a->stream));
  return TN_OK;
}

static const tn_option dropout_options[] = {
    TN_OPT(tn_dropout_attributes, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability of a zero"),
    TN_OPT(tn_dropout_attributes, stream, TN_OPT_INT, "0", NULL, "number of the random stream"), TN_OPT_END};

const tn_op tn_op_dropout = {
    .item = TN_ITEM(tn_op, TN_OP, "dropout", "zero with probability p, else x / (1 - p)",
                    tn_dropout_attributes, dropout_options),
    .schema = "(x:T, iteration:i64, block?:i64) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .infer = dropout_infer,
    .decompose = dropout_decompose,
    .grad = dropout_grad,
    .notes = "`iteration` is tn_build_counter(b, TN_ITERATION), `block` tn_build_counter(b, "
             "TN_BATCH_BLOCK), `stream` tn_build_random_stream(b, use).",
};

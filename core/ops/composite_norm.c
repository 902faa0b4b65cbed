/* core/ops/composite_norm.c: rms_norm, group_norm and local_response_norm, which decompose into other ops.
 * Their gradients are those of the decompositions. Statistics are in the dtype of sums A: f32, f64 for f64.
 */
#include "core/ops/common.h"

/* ---- rms_norm ---- */

static tn_status rms_norm_infer(tn_infer *n) {
  const tn_norm_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  if (a->trailing > x->rank)
    return tn_fail(n, TN_EINVAL, "trailing", "trailing is %lld, but x is %s of rank %d",
                   (long long)a->trailing, tn_ops_text(x).v, (int)x->rank);
  tn_type row = {tn_ops_accumulator(x->dtype), (int32_t)a->trailing, {0}};
  memcpy(row.dims, x->dims + x->rank - row.rank, (size_t)row.rank * sizeof *row.dims);
  n->node.out[0] = *x;
  return tn_ops_check_operand(n, "weight", n->node.in[1], &row);
}

static tn_status rms_norm_decompose(tn_build *b, const void *attributes) {
  const tn_norm_attributes *a = attributes;
  tn_type type = tn_ops_type(b, tn_build_in(b, 0));
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  bool reduced[TN_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++) reduced[i] = i >= type.rank - a->trailing;
  tn_val square = tn_ops_reduce(b, "reduce_mean", tn_mul(b, x, x), reduced);
  tn_val y = tn_mul(b, x, tn_rsqrt(b, tn_affine(b, square, 1, a->epsilon)));
  if (tn_build_in(b, 1) != 0) y = tn_mul(b, y, tn_build_in(b, 1));
  tn_build_yield(b, 0, tn_to_dtype(b, y, type.dtype));
  return TN_OK;
}

/* A square, a mean, a product by the scale, and one by the weight. */
static void rms_norm_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, (3 + (n->in[1] != NULL)) * tn_ops_count(n->in[0]));
}

static const tn_option rms_norm_options[] = {
    TN_OPT(tn_norm_attributes, epsilon, TN_OPT_FLOAT, "1.1920929e-07", ">= 0", "added to the mean square"),
    TN_OPT(tn_norm_attributes, trailing, TN_OPT_INT, "1", ">= 1",
           "how many trailing dimensions are normalized"),
    TN_OPT_END};

const tn_op tn_op_rms_norm = {
    .item =
        TN_ITEM(tn_op, TN_OP, "rms_norm", "x / sqrt(mean(x^2) + epsilon) * weight over trailing dimensions",
                tn_norm_attributes, rms_norm_options),
    .schema = "(x:T, weight?:A) -> (y:T)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_NORM,
    .infer = rms_norm_infer,
    .decompose = rms_norm_decompose,
    .cost = rms_norm_cost,
    .notes = "The default of epsilon is PyTorch's, the spacing of f32 at 1. B. Zhang, R. Sennrich, \"Root "
             "mean square layer normalization\", NeurIPS 2019.",
};

/* ---- group_norm ---- */

static tn_status group_norm_infer(tn_infer *n) {
  const tn_norm_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  if (x->rank < 2)
    return tn_fail(n, TN_EINVAL, NULL, "x is %s of rank %d, expected at least 2: batch, channels, then space",
                   tn_ops_text(x).v, (int)x->rank);
  if (x->dims[1] % a->groups != 0)
    return tn_fail(n, TN_EINVAL, "groups", "groups is %lld, which does not divide the %lld channels of x",
                   (long long)a->groups, (long long)x->dims[1]);
  const tn_type channels = {tn_ops_accumulator(x->dtype), 1, {x->dims[1]}};
  n->node.out[0] = *x;
  TN_TRY(tn_ops_check_operand(n, "weight", n->node.in[1], &channels));
  return tn_ops_check_operand(n, "bias", n->node.in[2], &channels);
}

/* Each group of an element is a row of a layer_norm, for which every backend has a kernel. */
static tn_status group_norm_decompose(tn_build *b, const void *attributes) {
  const tn_norm_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  int64_t rows = x.dims[0] * a->groups, row = x.dims[1] / a->groups;
  for (int32_t i = 2; i < x.rank; i++) row *= x.dims[i];
  tn_val y = tn_reshape(b, tn_ops_wide(b, tn_build_in(b, 0)), 2, (int64_t[]){rows, row});
  y = tn_reshape(b, tn_layer_norm(b, y, 0, 0, a->epsilon, 1), x.rank, x.dims);
  if (tn_build_in(b, 1) != 0) y = tn_mul(b, y, tn_ops_channels(b, tn_build_in(b, 1), x.rank));
  if (tn_build_in(b, 2) != 0) y = tn_add(b, y, tn_ops_channels(b, tn_build_in(b, 2), x.rank));
  tn_build_yield(b, 0, tn_to_dtype(b, y, x.dtype));
  return TN_OK;
}

static void group_norm_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, (5 + (n->in[1] != NULL) + (n->in[2] != NULL)) * tn_ops_count(n->in[0]));
}

static const tn_option group_norm_options[] = {
    TN_OPT(tn_norm_attributes, epsilon, TN_OPT_FLOAT, "1e-5", ">= 0", "added to the variance"),
    TN_OPT(tn_norm_attributes, groups, TN_OPT_INT, "1", ">= 1",
           "into how many groups the channels are divided"),
    TN_OPT_END};

const tn_op tn_op_group_norm = {
    .item = TN_ITEM(tn_op, TN_OP, "group_norm",
                    "(x - mean) / sqrt(variance + epsilon) * weight + bias, by the statistics of each group "
                    "of channels of each element; biased variance",
                    tn_norm_attributes, group_norm_options),
    .schema = "(x:T, weight?:A, bias?:A) -> (y:T)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_NORM,
    .infer = group_norm_infer,
    .decompose = group_norm_decompose,
    .cost = group_norm_cost,
    .notes = "x is (N, C, ...), weight and bias are (C). With as many groups as channels it is instance "
             "normalization. Y. Wu, K. He, \"Group normalization\", ECCV 2018; D. Ulyanov, A. Vedaldi, V. "
             "Lempitsky, \"Instance normalization\", 2016.",
};

/* ---- local_response_norm ---- */

static tn_status local_response_norm_infer(tn_infer *n) {
  const tn_type *x = n->node.in[0];
  if (x->rank < 2)
    return tn_fail(n, TN_EINVAL, NULL,
                   "x is %s, expected at least two dimensions: batch, channels, then space",
                   tn_ops_text(x).v);
  n->node.out[0] = *x;
  return TN_OK;
}

/* The mean of `size` neighbours along dimension 1, with zeros beyond its ends; with an even size there is one
 * more before the channel than behind it. The pool takes the channels as the height of an image. */
static tn_val local_response_norm_mean(tn_build *b, tn_val x, int64_t size) {
  tn_type t = tn_ops_type(b, x);
  int64_t kernel[] = {size, 1}, padding[] = {size / 2, 0}, one[] = {1, 1}, space = 1;
  for (int32_t i = 2; i < t.rank; i++) space *= t.dims[i];
  tn_val image = tn_reshape(b, x, 4, (int64_t[]){t.dims[0], 1, t.dims[1], space});
  tn_val mean = tn_avg_pool2d(b, image, 2, kernel, 2, one, 2, padding, 0, 1);
  if (size % 2 == 0) mean = tn_slice_axis(b, mean, 2, 0, t.dims[1]);
  return tn_reshape(b, mean, t.rank, t.dims);
}

static tn_status local_response_norm_decompose(tn_build *b, const void *attributes) {
  const tn_local_response_norm_attributes *a = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  if (tn_type_count(tn_val_type(b, x)) == 0) { /* no window to pool over */
    tn_build_yield(b, 0, tn_build_in(b, 0));
    return TN_OK;
  }
  tn_val mean = local_response_norm_mean(b, tn_mul(b, x, x), a->size);
  tn_val power = tn_scalar(b, tn_val_type(b, x)->dtype, -a->beta);
  tn_val y = tn_mul(b, x, tn_pow(b, tn_affine(b, mean, a->alpha, a->k), power));
  tn_build_yield(b, 0, tn_to_dtype(b, y, tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

static void local_response_norm_cost(const tn_node *n, tn_cost *cost) {
  const tn_local_response_norm_attributes *a = n->attributes;
  tn_ops_cost(n, cost, (5 + (double)a->size) * tn_ops_count(n->in[0]));
}

static const tn_option local_response_norm_options[] = {
    TN_OPT(tn_local_response_norm_attributes, size, TN_OPT_INT, NULL, "[1, 65535]",
           "how many neighbouring channels are summed"),
    TN_OPT(tn_local_response_norm_attributes, alpha, TN_OPT_FLOAT, "1e-4", ">= 0",
           "factor of the mean of the squares"),
    TN_OPT(tn_local_response_norm_attributes, beta, TN_OPT_FLOAT, "0.75", NULL, "exponent"),
    TN_OPT(tn_local_response_norm_attributes, k, TN_OPT_FLOAT, "1", "> 0", "added to the mean"), TN_OPT_END};

const tn_op tn_op_local_response_norm = {
    .item = TN_ITEM(tn_op, TN_OP, "local_response_norm",
                    "x / (k + alpha mean(x^2))^beta, by the mean over neighbouring channels",
                    tn_local_response_norm_attributes, local_response_norm_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_NORM,
    .infer = local_response_norm_infer,
    .decompose = local_response_norm_decompose,
    .cost = local_response_norm_cost,
    .notes = "The mean divides by `size` where fewer channels exist, too, as PyTorch's. A. Krizhevsky, I. "
             "Sutskever, G. Hinton, \"ImageNet classification with deep convolutional neural networks\", "
             "NeurIPS 2012.",
};

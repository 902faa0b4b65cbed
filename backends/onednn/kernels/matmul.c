/* backends/onednn/kernels/matmul.c: products of matrices, alone and fused with the ops around them: the ReLU,
 * GELU or sum behind a linear layer, their gradients, and the gradient of the bias beside the gradient of the
 * weights. Columns that slices distribute to several results, as the queries, keys and values of attention,
 * are written to those results directly. The panels of weights are kept in inference, where packing them in
 * every launch would show (docs/decisions/0127-packed-weights.md). */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "backends/onednn/kernels/matmul.h"
#include "backends/onednn/onednn.h"
#include "backends/shared/constants.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

/* ---- query --------------------------------------------------------------------------------------- */

/* The kind follows from the op of the second node. */
static int32_t matmul_kind(const tn_match *match) {
  static const struct {
    const char *op;
    int32_t kind;
  } second[] = {{"maximum", TN_MATMUL_RELU}, {"gt", TN_MATMUL_RELU_GRAD}, {"matmul", TN_MATMUL_BIAS_GRAD},
                {"add", TN_MATMUL_ADD},      {"gelu", TN_MATMUL_GELU},    {"gelu_grad", TN_MATMUL_GELU_GRAD},
                {"slice", TN_MATMUL_SPLIT},  {"cast", TN_MATMUL_CAST}};
  for (size_t i = 0; match->n_nodes > 1 && i < sizeof second / sizeof *second; i++)
    if (strcmp(match->nodes[1].node->op, second[i].op) == 0) return second[i].kind;
  return TN_MATMUL_PLAIN;
}

/* The product among the nodes of a match. */
static const tn_match_node *matmul_product_node(const tn_match *match) {
  return &match->nodes[matmul_kind(match) == TN_MATMUL_BIAS_GRAD ? 1 : 0];
}

static int32_t matmul_flags(const tn_match *match) {
  int32_t kind = matmul_kind(match);
  if (kind == TN_MATMUL_BIAS_GRAD) return TN_GEMM_ROW_SUMS;
  if (kind == TN_MATMUL_CAST) return TN_GEMM_WIDE;
  return kind != TN_MATMUL_PLAIN || match->n_in > 2 ? TN_GEMM_EPILOGUE : 0;
}

/* Whether there may be a packed copy of b beside it. A model of a hundred matrices of the largest size that
 * is copied has copies in a tenth of the memory. */
static bool matmul_may_fold(const tn_match *match, const void *backend, const tn_device_properties *device) {
  const int64_t share = 1024;
  if (tn_onednn_options_of(backend).pack_weights == TN_PACK_OFF || match->constant == NULL ||
      !match->constant[1] || match->in[1]->rank != 2)
    return false;
  return device->memory_bytes == 0 || (int64_t)tn_type_bytes(match->in[1]) <= device->memory_bytes / share;
}

/* A split has a product for each result, with some of b's rows. */
static int64_t matmul_split_columns(const tn_match *match, tn_matmul_kernel *p) {
  for (int32_t i = 0; i < match->n_out; i++) {
    const tn_slice_attributes *s = match->nodes[1 + i].node->attributes;
    p->start[i] = s->starts.v[match->out[i]->rank - 1];
  }
  return match->n_out;
}

static void matmul_make(const tn_match *match, const void *backend, const tn_device_properties *device,
                        tn_matmul_kernel *p) {
  const tn_node *product = matmul_product_node(match)->node;
  const tn_matmul_attributes *t = product->attributes;
  const tn_type *a = match->in[0], *y = match->out[0];
  *p = (tn_matmul_kernel){.loops = TN_LOOPS_PICK_AT(tn_loops_gemm, tn_onednn_isa_of(backend)),
                          .kind = matmul_kind(match),
                          .batch = tn_matmul_batch_of(product)};
  if (p->kind == TN_MATMUL_GELU || p->kind == TN_MATMUL_GELU_GRAD)
    p->approximate = ((const tn_gelu_attributes *)match->nodes[1].node->attributes)->approximate;
  int64_t products = p->kind == TN_MATMUL_SPLIT ? matmul_split_columns(match, p) : p->batch.products;
  tn_gemm_partition_make(&p->partition, product->out[0].dtype, t->transpose_a, t->transpose_b, products,
                         p->batch.rows, y->dims[y->rank - 1], a->dims[a->rank - (t->transpose_a ? 2 : 1)],
                         matmul_flags(match) |
                             (matmul_may_fold(match, backend, device) ? TN_GEMM_CONSTANT : 0));
}

static tn_status matmul_check_product(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = matmul_product_node(match)->node->attributes;
  int32_t dtype = matmul_product_node(match)->node->out[0].dtype;
  if (dtype != TN_F32 && dtype != TN_BF16)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f32 or bf16", tn_dtype_name(dtype));
  if (t->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  return TN_OK;
}

/* The time to store the operand of GELU as a result of its own. */
static double matmul_preactivation_s(const tn_device_properties *device, const tn_match *match) {
  return matmul_kind(match) == TN_MATMUL_GELU && match->n_out > 1
             ? tn_seconds_of_bytes(device, (double)tn_type_bytes(match->out[0]))
             : 0;
}

/* Whether nothing is done to the sums but a cast. */
static bool matmul_is_alone(const tn_match *match) {
  int32_t kind = matmul_kind(match);
  return kind == TN_MATMUL_CAST || (kind == TN_MATMUL_PLAIN && (match->n_in < 3 || match->in[2] == NULL));
}

static tn_status matmul_offer(tn_query *q) {
  static const char *const names[] = {"straight", "dots", "packed", "gathered", "folded"};
  tn_matmul_kernel plan;
  matmul_make(q->match, q->backend, q->device, &plan);
  if (!tn_gemm_fits(&plan.partition, matmul_is_alone(q->match)))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "sums of %lld products of bf16 are too long to convert at once",
                   (long long)plan.partition.depth);
  return tn_offer(q, (tn_variant){.name = names[plan.partition.method],
                                  .workspace_bytes = tn_gemm_workspace_bytes(&plan.partition),
                                  .prepared_bytes = (int64_t)sizeof plan,
                                  .folded_bytes = tn_gemm_folded_bytes(&plan.partition),
                                  .cost_s = tn_gemm_partition_cost_s(&plan.partition, q->device) +
                                            matmul_preactivation_s(q->device, q->match)});
}

static tn_status matmul_check_zero(tn_query *q, int32_t operand) {
  if (tn_operand_is_zero(q->match, operand)) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "not a ReLU or its gradient: the other operand of the maximum, the comparison or the "
                 "selection is not zero");
}

static tn_status matmul_check_same_dims(tn_query *q, const tn_type *type, const tn_type *product) {
  if (tn_type_same_dims(type, product)) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "the op behind the product broadcasts it");
}

static tn_status matmul_check_f32(tn_query *q) {
  int32_t dtype = q->match->out[0]->dtype;
  if (dtype == TN_F32) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "elements are %s, and the op behind the product reads it rounded to them",
                 tn_dtype_name(dtype));
}

/* y = matmul(a, b, bias?); z = maximum(y, c) */
static tn_status matmul_check_relu(tn_query *q) {
  tn_status status = matmul_check_zero(q, 3);
  return status != TN_OK ? status
                         : matmul_check_same_dims(q, q->match->out[0], &q->match->nodes[0].node->out[0]);
}

/* y = matmul(a, b); g = gt(r, c); z = where(g, y, d) */
static tn_status matmul_check_relu_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_type *product = &match->nodes[0].node->out[0];
  TN_TRY(matmul_check_zero(q, 3));
  TN_TRY(matmul_check_zero(q, 4));
  TN_TRY(matmul_check_same_dims(q, match->in[2], product));
  TN_TRY(matmul_check_same_dims(q, match->out[0], product));
  if (match->in[2]->dtype != product->dtype)
    TN_TRY(tn_fail(q, TN_EUNSUPPORTED, NULL, "the operand of the comparison is %s, the product %s",
                   tn_dtype_name(match->in[2]->dtype), tn_dtype_name(product->dtype)));
  return TN_OK;
}

/* y = matmul(a, b, bias?); z = add(y, r), unless a is transposed: the gradient of weights is summed in parts.
 */
static tn_status matmul_check_add(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = match->nodes[0].node->attributes;
  tn_status status = matmul_check_f32(q);
  if (status == TN_OK) status = matmul_check_same_dims(q, match->in[3], &match->nodes[0].node->out[0]);
  if (status == TN_OK && t->transpose_a)
    status =
        tn_fail(q, TN_EUNSUPPORTED, NULL,
                "a product with a transposed first operand may be summed in parts, which has no epilogue");
  return status;
}

/* y = matmul(a, b); z = gelu_grad(y, x) */
static tn_status matmul_check_gelu_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_type *product = &match->nodes[0].node->out[0];
  tn_status status = matmul_check_f32(q);
  if (status == TN_OK) status = matmul_check_same_dims(q, match->in[2], product);
  return status != TN_OK ? status : matmul_check_same_dims(q, match->out[0], product);
}

static bool matmul_sums_rows(const tn_reduce_attributes *a) {
  return a->axes.n == 1 && (a->axes.v[0] == 0 || a->axes.v[0] == -2);
}

/* s = reduce_sum(d); w = matmul(d, x) -> w, s */
static tn_status matmul_check_bias_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = matmul_product_node(match)->node->attributes;
  if (match->in[0]->rank != 2 || match->in[1]->rank != 2 || !t->transpose_a ||
      !matmul_sums_rows(match->nodes[0].node->attributes))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "not the gradients of the weight and the bias of a linear layer");
  if (tn_type_count(match->out[0]) == 0) return tn_fail(q, TN_EUNSUPPORTED, NULL, "the weight is empty");
  return TN_OK;
}

/* Whether a slice takes columns alone, as many as the first slice. */
static bool matmul_takes_columns(const tn_match *match, int32_t result) {
  const tn_match_node *node = &match->nodes[1 + result];
  const tn_slice_attributes *a = node->node->attributes;
  const tn_type *from = &match->nodes[0].node->out[0], *to = &node->node->out[0];
  int32_t last = from->rank - 1;
  for (int32_t i = 0; i < last; i++)
    if (to->dims[i] != from->dims[i]) return false;
  return to->dims[last] == match->out[0]->dims[last] && (a->steps.n == 0 || a->steps.v[last] == 1);
}

/* y = matmul(x, w, bias?); a = slice(y); b = slice(y) -> a, b */
static tn_status matmul_check_split(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = match->nodes[0].node->attributes;
  if (t->transpose_a || !t->transpose_b || match->in[1]->rank != 2)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not the product of a linear layer, with its weight transposed");
  for (int32_t i = 0; i < match->n_out; i++)
    if (!matmul_takes_columns(match, i))
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "the slices are not columns of the product, as many in each");
  return TN_OK;
}

/* y = matmul(a, b); z = cast(y), of bf16 to f32: the sums are f32, and are not rounded. */
static tn_status matmul_check_cast(tn_query *q) {
  const tn_match *match = q->match;
  if (match->nodes[0].node->out[0].dtype == TN_BF16 && match->out[0]->dtype == TN_F32) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "a cast of %s to %s, expected bf16 to f32",
                 tn_dtype_name(match->nodes[0].node->out[0].dtype), tn_dtype_name(match->out[0]->dtype));
}

static tn_status onednn_matmul_query(tn_query *q) {
  static tn_status (*const checks[])(tn_query * q) = {[TN_MATMUL_RELU] = matmul_check_relu,
                                                      [TN_MATMUL_RELU_GRAD] = matmul_check_relu_grad,
                                                      [TN_MATMUL_BIAS_GRAD] = matmul_check_bias_grad,
                                                      [TN_MATMUL_ADD] = matmul_check_add,
                                                      [TN_MATMUL_GELU] = matmul_check_f32,
                                                      [TN_MATMUL_GELU_GRAD] = matmul_check_gelu_grad,
                                                      [TN_MATMUL_SPLIT] = matmul_check_split,
                                                      [TN_MATMUL_CAST] = matmul_check_cast};
  int32_t kind = matmul_kind(q->match);
  tn_status status = matmul_check_product(q);
  if (status == TN_OK && kind != TN_MATMUL_PLAIN) status = checks[kind](q);
  return status != TN_OK ? status : matmul_offer(q);
}

static tn_status onednn_matmul_prepare(tn_prepare *p, void **prepared) {
  tn_matmul_kernel *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  matmul_make(p->match, p->backend, p->device, made);
  *prepared = made;
  return TN_OK;
}

#define MATMUL(id, pattern, help)                                                                            \
  TN_DEFINE_KERNEL(onednn, id, "onednn_" #id, pattern, help, .query = onednn_matmul_query,                   \
                   .prepare = onednn_matmul_prepare, .release = tn_delete_prepared,                          \
                   .launch = tn_matmul_launch, .fold = tn_matmul_fold)

MATMUL(matmul, "y = matmul(a, b, bias?)", "vectorized product of matrices in place");
MATMUL(matmul_cast, "y = matmul(a, b); z = cast(y)", "a product of bf16 with results in f32");
MATMUL(matmul_relu, "y = matmul(a, b, bias?); z = maximum(y, c)", "a product and the ReLU behind it");
MATMUL(matmul_relu_grad, "y = matmul(a, b); g = gt(r, c); z = where(g, y, d)",
       "a product and the gradient of a ReLU behind it");
MATMUL(matmul_add, "y = matmul(a, b, bias?); z = add(y, r)", "a product and a sum behind it");
MATMUL(matmul_gelu, "y = matmul(a, b, bias?); z = gelu(y)", "a product and the GELU behind it");
MATMUL(matmul_kept_gelu, "y = matmul(a, b, bias?); z = gelu(y) -> y, z",
       "a product and the GELU behind it, with both as results");
MATMUL(matmul_gelu_grad, "y = matmul(a, b); z = gelu_grad(y, x)",
       "a product and the gradient of a GELU behind it");
MATMUL(matmul_bias_grad, "s = reduce_sum(d); w = matmul(d, x) -> w, s",
       "the gradients of a linear layer's weight and bias");
MATMUL(matmul_split_2, "y = matmul(x, w, bias?); a = slice(y); b = slice(y) -> a, b",
       "a linear layer with two results side by side");
MATMUL(matmul_split_3, "y = matmul(x, w, bias?); a = slice(y); b = slice(y); c = slice(y) -> a, b, c",
       "a linear layer with three results side by side");

/* backends/onednn/kernels/matmul.c: products of matrices, alone and fused with the ops around them: the ReLU,
 * GELU or sum behind a linear layer, their gradients, and the gradient of the bias beside the gradient of the
 * weights. Columns that slices distribute to several results, as the queries, keys and values of attention,
 * are written to those results directly. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "backends/onednn/kernels/gemm/gemm.h"
#include "backends/shared/constants.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/matmul_batch.h"
#include "tenon/attributes.h"

enum { RESULTS = 3 /* of a split, at most */ };

/* The ops that a kernel fuses with the product. */
enum { PLAIN, RELU, RELU_GRAD, BIAS_GRAD, ADD, GELU, GELU_GRAD, SPLIT, CAST };

typedef struct matmul_kernel {
  tn_gemm_partition partition;
  const tn_gemm_loops *loops;
  int32_t kind, approximate; /* GELU's attribute */
  tn_matmul_batch batch;
  int64_t start[RESULTS]; /* of a split: the first column of each */
} matmul_kernel;

/* ---- query --------------------------------------------------------------------------------------- */

/* The kind follows from the op of the second node. */
static int32_t matmul_kind(const tn_match *match) {
  static const struct {
    const char *op;
    int32_t kind;
  } second[] = {{"maximum", RELU}, {"gt", RELU_GRAD},        {"matmul", BIAS_GRAD}, {"add", ADD},
                {"gelu", GELU},    {"gelu_grad", GELU_GRAD}, {"slice", SPLIT},      {"cast", CAST}};
  for (size_t i = 0; match->n_nodes > 1 && i < sizeof second / sizeof *second; i++)
    if (strcmp(match->nodes[1].node->op, second[i].op) == 0) return second[i].kind;
  return PLAIN;
}

/* The product among the nodes of a match. */
static const tn_match_node *matmul_product_node(const tn_match *match) {
  return &match->nodes[matmul_kind(match) == BIAS_GRAD ? 1 : 0];
}

static int32_t matmul_flags(const tn_match *match) {
  int32_t kind = matmul_kind(match);
  if (kind == BIAS_GRAD) return TN_GEMM_ROW_SUMS;
  if (kind == CAST) return TN_GEMM_WIDE;
  return kind != PLAIN || match->n_in > 2 ? TN_GEMM_EPILOGUE : 0;
}

/* A split has a product for each result, with some of b's rows. */
static int64_t matmul_split_columns(const tn_match *match, matmul_kernel *p) {
  for (int32_t i = 0; i < match->n_out; i++) {
    const tn_slice_attributes *s = match->nodes[1 + i].node->attributes;
    p->start[i] = s->starts.v[match->out[i]->rank - 1];
  }
  return match->n_out;
}

static void matmul_make(const tn_match *match, const void *backend, matmul_kernel *p) {
  const tn_node *product = matmul_product_node(match)->node;
  const tn_matmul_attributes *t = product->attributes;
  const tn_type *a = match->in[0], *y = match->out[0];
  *p = (matmul_kernel){.loops = TN_LOOPS_PICK_AT(tn_loops_gemm, tn_onednn_isa_of(backend)),
                       .kind = matmul_kind(match),
                       .batch = tn_matmul_batch_of(product)};
  if (p->kind == GELU || p->kind == GELU_GRAD)
    p->approximate = ((const tn_gelu_attributes *)match->nodes[1].node->attributes)->approximate;
  int64_t products = p->kind == SPLIT ? matmul_split_columns(match, p) : p->batch.products;
  tn_gemm_partition_make(&p->partition, product->out[0].dtype, t->transpose_a, t->transpose_b, products,
                         p->batch.rows, y->dims[y->rank - 1], a->dims[a->rank - (t->transpose_a ? 2 : 1)],
                         matmul_flags(match));
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
  return matmul_kind(match) == GELU && match->n_out > 1
             ? tn_seconds_of_bytes(device, (double)tn_type_bytes(match->out[0]))
             : 0;
}

/* Whether nothing is done to the sums but a cast. */
static bool matmul_is_alone(const tn_match *match) {
  int32_t kind = matmul_kind(match);
  return kind == CAST || (kind == PLAIN && (match->n_in < 3 || match->in[2] == NULL));
}

static tn_status matmul_offer(tn_query *q) {
  static const char *const names[] = {"straight", "dots", "packed", "gathered"};
  matmul_kernel plan;
  matmul_make(q->match, q->backend, &plan);
  if (!tn_gemm_fits(&plan.partition, matmul_is_alone(q->match)))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "sums of %lld products of bf16 are too long to convert at once",
                   (long long)plan.partition.depth);
  return tn_offer(q, (tn_variant){.name = names[plan.partition.method],
                                  .workspace_bytes = tn_gemm_workspace_bytes(&plan.partition),
                                  .prepared_bytes = (int64_t)sizeof plan,
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
  static tn_status (*const checks[])(tn_query * q) = {[RELU] = matmul_check_relu,
                                                      [RELU_GRAD] = matmul_check_relu_grad,
                                                      [BIAS_GRAD] = matmul_check_bias_grad,
                                                      [ADD] = matmul_check_add,
                                                      [GELU] = matmul_check_f32,
                                                      [GELU_GRAD] = matmul_check_gelu_grad,
                                                      [SPLIT] = matmul_check_split,
                                                      [CAST] = matmul_check_cast};
  int32_t kind = matmul_kind(q->match);
  tn_status status = matmul_check_product(q);
  if (status == TN_OK && kind != PLAIN) status = checks[kind](q);
  return status != TN_OK ? status : matmul_offer(q);
}

static tn_status onednn_matmul_prepare(tn_prepare *p, void **prepared) {
  matmul_kernel *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  matmul_make(p->match, p->backend, made);
  *prepared = made;
  return TN_OK;
}

/* ---- launch -------------------------------------------------------------------------------------- */

typedef struct matmul_job {
  tn_launch *launch;
  const matmul_kernel *kernel;
  tn_gemm_epilogue epilogue;
} matmul_job;

static tn_gemm_epilogue matmul_epilogue(const matmul_kernel *p) {
  static const int32_t ops[] = {
      [RELU] = TN_EPILOGUE_RELU, [RELU_GRAD] = TN_EPILOGUE_RELU_GRAD, [ADD] = TN_EPILOGUE_ADD,
      [GELU] = TN_EPILOGUE_GELU, [GELU_GRAD] = TN_EPILOGUE_GELU_GRAD, [SPLIT] = TN_EPILOGUE_NONE,
      [CAST] = TN_EPILOGUE_NONE};
  return (tn_gemm_epilogue){.op = ops[p->kind], .approximate = p->approximate};
}

/* The operands of the columns of a result: rows of b, and elements of the bias. */
static void matmul_find_columns(const tn_launch *l, const matmul_kernel *p, int64_t result,
                                tn_gemm_matrices *x) {
  int64_t size = (int64_t)tn_dtype_size(p->partition.dtype), start = p->start[result] * size;
  const void *bias = l->n_in > 2 ? l->in[2].data : NULL;
  *x = (tn_gemm_matrices){.a = l->in[0].data,
                          .b = (const char *)l->in[1].data + start * p->partition.k,
                          .bias = bias == NULL ? NULL : (const char *)bias + start,
                          .c = l->out[result].data};
}

static void matmul_find_matrices(const tn_launch *l, const matmul_kernel *p, int64_t product,
                                 tn_gemm_matrices *x) {
  int64_t size = (int64_t)tn_dtype_size(p->partition.dtype), a, b;
  tn_matmul_batch_at(&p->batch, product, &a, &b);
  int64_t c = product * p->partition.m * p->partition.n * (p->kind == CAST ? (int64_t)sizeof(float) : size);
  int32_t last = p->kind == GELU ? l->n_out - 1 : 0;
  int32_t beside = p->kind == ADD ? 3 : p->kind == RELU_GRAD || p->kind == GELU_GRAD ? 2 : -1;
  x->a = (const char *)l->in[0].data + a * size;
  x->b = (const char *)l->in[1].data + b * size;
  x->c = (char *)l->out[last].data + c;
  x->preactivation = last > 0 ? (char *)l->out[0].data + c : NULL;
  x->bias = beside != 2 && l->n_in > 2 ? l->in[2].data : NULL;
  x->operand = beside >= 0 ? (const char *)l->in[beside].data + c : NULL;
}

/* The bias gradient of rows r->m0 .. of the weight: sums over k of the first operand. */
static void matmul_sum_bias(const matmul_job *j, const tn_gemm_extent *r) {
  const matmul_kernel *p = j->kernel;
  int64_t size = (int64_t)tn_dtype_size(p->partition.dtype);
  const void *from = (const char *)j->launch->in[0].data + r->m0 * size;
  void *to = (char *)j->launch->out[1].data + r->m0 * size;
  (p->partition.dtype == TN_BF16 ? p->loops->sum_rows_bf16 : p->loops->sum_rows)(from, p->partition.m,
                                                                                 p->partition.k, r->m, to);
}

static float *matmul_parts(const matmul_job *j) {
  return (float *)((char *)j->launch->workspace +
                   j->kernel->partition.chunks * j->kernel->partition.scratch_bytes);
}

static void matmul_run_chunk(void *arg, int64_t chunk) {
  const matmul_job *j = arg;
  const matmul_kernel *p = j->kernel;
  char *scratch = (char *)j->launch->workspace + chunk * p->partition.scratch_bytes;
  int64_t count, first = tn_gemm_chunk_items(&p->partition, chunk, &count);
  for (int64_t item = first; item < first + count; item++) {
    tn_gemm_extent range;
    tn_gemm_matrices x;
    int64_t product = tn_gemm_item_range(&p->partition, item, &range);
    (p->kind == SPLIT ? matmul_find_columns : matmul_find_matrices)(j->launch, p, product, &x);
    tn_gemm_run_range(&p->partition, p->loops, &x, &j->epilogue, &range, scratch, matmul_parts(j));
    if (p->kind == BIAS_GRAD && p->partition.method != TN_GEMM_GATHERED && range.n0 == 0)
      matmul_sum_bias(j, &range);
  }
}

static void matmul_join_chunk(void *arg, int64_t chunk) {
  const matmul_job *j = arg;
  const tn_launch *l = j->launch;
  void *sums = j->kernel->kind == BIAS_GRAD ? l->out[1].data : NULL;
  tn_gemm_join_chunk(&j->kernel->partition, j->kernel->loops, matmul_parts(j), chunk, l->out[0].data, sums);
}

/* A single chunk runs on the calling thread. */
static void matmul_run_all(matmul_job *j, int64_t chunks, void (*body)(void *arg, int64_t chunk)) {
  if (chunks == 1)
    body(j, 0);
  else if (chunks > 1)
    tn_parallel(j->launch, chunks, body, j);
}

static tn_status onednn_matmul_launch(tn_launch *l) {
  const matmul_kernel *p = l->prepared;
  matmul_job j = {l, p, matmul_epilogue(p)};
  matmul_run_all(&j, p->partition.chunks, matmul_run_chunk);
  matmul_run_all(&j, p->partition.joins, matmul_join_chunk);
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, matmul, "onednn_matmul", "y = matmul(a, b, bias?)",
                 "vectorized product of matrices in place",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_cast, "onednn_matmul_cast", "y = matmul(a, b); z = cast(y)",
                 "a product of bf16 with results in f32",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_relu, "onednn_matmul_relu", "y = matmul(a, b, bias?); z = maximum(y, c)",
                 "a product and the ReLU behind it",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_relu_grad, "onednn_matmul_relu_grad",
                 "y = matmul(a, b); g = gt(r, c); z = where(g, y, d)",
                 "a product and the gradient of a ReLU behind it",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_add, "onednn_matmul_add", "y = matmul(a, b, bias?); z = add(y, r)",
                 "a product and a sum behind it",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_gelu, "onednn_matmul_gelu", "y = matmul(a, b, bias?); z = gelu(y)",
                 "a product and the GELU behind it",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_kept_gelu, "onednn_matmul_kept_gelu",
                 "y = matmul(a, b, bias?); z = gelu(y) -> y, z",
                 "a product and the GELU behind it, with both as results",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_gelu_grad, "onednn_matmul_gelu_grad", "y = matmul(a, b); z = gelu_grad(y, x)",
                 "a product and the gradient of a GELU behind it",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_bias_grad, "onednn_matmul_bias_grad",
                 "s = reduce_sum(d); w = matmul(d, x) -> w, s",
                 "the gradients of a linear layer's weight and bias",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_split_2, "onednn_matmul_split_2",
                 "y = matmul(x, w, bias?); a = slice(y); b = slice(y) -> a, b",
                 "a linear layer with two results side by side",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, matmul_split_3, "onednn_matmul_split_3",
                 "y = matmul(x, w, bias?); a = slice(y); b = slice(y); c = slice(y) -> a, b, c",
                 "a linear layer with three results side by side",
                 TN_KERNEL_CALLBACKS_WITH(onednn_matmul, tn_delete_prepared));

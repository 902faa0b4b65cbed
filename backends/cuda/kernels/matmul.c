/* backends/cuda/kernels/matmul.c: products of matrices by cuBLASLt, alone and with the ops that its epilogues
 * compute: the ReLU, GELU or sum behind a linear layer, the gradient of a GELU, and the gradient of the bias
 * beside that of the weights. Products of f16 and bf16 also have results in f32, where the graph casts them:
 * then the sums are rounded once, to f32. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/device/matmul_bias.cuh"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/padded_rows.h"
#include "backends/cuda/products/product.h"
#include "backends/cuda/rates.h"
#include "backends/shared/constants.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/matmul_batch.h"
#include "tenon/attributes.h"

/* Algorithms that are offered, the best by cuBLASLt's heuristics first; autotune measures them. */
enum { MATMUL_RANKS = 3, MATMUL_OPERANDS = 8, MATMUL_THREADS = 256, MATMUL_BLOCKS = 4096 };

/* The ops around the product. */
enum { MATMUL_PLAIN, MATMUL_RELU, MATMUL_GELU, MATMUL_ADD, MATMUL_GELU_GRAD, MATMUL_BIAS_GRAD };

/* Numbers of the operands that the epilogue reads; -1: none. */
typedef struct matmul_roles {
  int32_t bias, beside; /* beside: a matrix like the result, which is added, or the operand of a GELU */
} matmul_roles;

typedef struct matmul_kernel {
  int32_t kind;
  matmul_roles roles;
  tn_cuda_product product;
  tn_matmul_batch batch; /* dimensions that one call does not cover: a call for each index */
  tn_cuda_product_plan plan;
  tn_cuda_function add_bias; /* where cuBLASLt adds none */
  bool adds_bias;
} matmul_kernel;

/* ---- the product of a match ---- */

/* The first node of an op; NULL: the match has no such op. */
static const tn_node *cuda_matmul_find(const tn_match *match, const char *op) {
  for (int32_t i = 0; i < match->n_nodes; i++)
    if (strcmp(match->nodes[i].node->op, op) == 0) return match->nodes[i].node;
  return NULL;
}

static int32_t cuda_matmul_kind(const tn_match *match) {
  static const struct {
    const char *op;
    int32_t kind;
  } others[] = {{"maximum", MATMUL_RELU},
                {"gelu", MATMUL_GELU},
                {"add", MATMUL_ADD},
                {"gelu_grad", MATMUL_GELU_GRAD},
                {"reduce_sum", MATMUL_BIAS_GRAD}};
  for (size_t i = 0; match->n_nodes > 1 && i < sizeof others / sizeof *others; i++)
    if (cuda_matmul_find(match, others[i].op) != NULL) return others[i].kind;
  return MATMUL_PLAIN;
}

static const tn_node *cuda_matmul_node(const tn_match *match) { return cuda_matmul_find(match, "matmul"); }

static bool cuda_matmul_has_cast(const tn_match *match) { return cuda_matmul_find(match, "cast") != NULL; }

/* The summands of a cast product: numbers for each column and a matrix like it, in either order. Query
 * refuses others: two of a kind are taken for one of each. */
static void cuda_matmul_find_summands(const tn_match *match, matmul_roles *roles) {
  for (int32_t i = 2; i < match->n_in; i++) {
    bool is_bias = roles->beside >= 0 || (match->in[i]->rank == 1 && roles->bias < 0);
    *(is_bias ? &roles->bias : &roles->beside) = i;
  }
}

static matmul_roles cuda_matmul_roles(const tn_match *match) {
  matmul_roles roles = {-1, -1};
  int32_t kind = cuda_matmul_kind(match);
  if (kind == MATMUL_ADD && cuda_matmul_has_cast(match)) {
    cuda_matmul_find_summands(match, &roles);
    return roles;
  }
  if (kind == MATMUL_GELU_GRAD) roles.beside = 2;
  if (kind == MATMUL_ADD) roles.beside = 3;
  if (kind != MATMUL_GELU_GRAD && match->n_in > 2 && match->in[2] != NULL) roles.bias = 2;
  return roles;
}

/* Merges dimension i into i + 1 where both operands allow it; dimensions of one index vanish. */
static void cuda_matmul_merge_batch(tn_matmul_batch *b) {
  int32_t n = 0;
  for (int32_t i = 0; i < b->rank; i++) {
    if (b->dims[i] == 1) continue;
    bool joins = n > 0 && b->a_step[n - 1] == b->a_step[i] * b->dims[i] &&
                 b->b_step[n - 1] == b->b_step[i] * b->dims[i];
    n += !joins;
    b->dims[n - 1] = joins ? b->dims[n - 1] * b->dims[i] : b->dims[i];
    b->a_step[n - 1] = b->a_step[i];
    b->b_step[n - 1] = b->b_step[i];
  }
  b->rank = n;
}

static cublasLtEpilogue_t cuda_matmul_epilogue(const tn_match *match) {
  bool bias = cuda_matmul_roles(match).bias >= 0 && match->out[0]->dtype != TN_F64;
  switch (cuda_matmul_kind(match)) {
  case MATMUL_RELU: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  case MATMUL_GELU:
    if (match->n_out > 1) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  case MATMUL_GELU_GRAD: return CUBLASLT_EPILOGUE_DGELU;
  case MATMUL_BIAS_GRAD: return CUBLASLT_EPILOGUE_BGRADB;
  default: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

/* One call covers the innermost dimension of the batch. An empty batch is a product without rows. */
static void cuda_matmul_fill_batch(const tn_node *node, tn_cuda_product *p, tn_matmul_batch *batch) {
  const tn_type *a = node->in[0];
  *batch = tn_matmul_batch_of(node);
  for (int32_t i = 0; i < batch->rank && p->row_a != a->dims[a->rank - 1]; i++)
    batch->a_step[i] = batch->a_step[i] / a->dims[a->rank - 1] * p->row_a;
  p->m = batch->products == 0 ? 0 : batch->rows;
  p->batch = 1;
  if (batch->products == 0) batch->rank = 0;
  cuda_matmul_merge_batch(batch);
  if (batch->rank == 0) return;
  batch->rank--;
  p->batch = batch->dims[batch->rank];
  p->step_a = batch->a_step[batch->rank];
  p->step_b = batch->b_step[batch->rank];
  p->step_c = p->m * p->n;
  p->step_d = p->m * p->row_d;
}

/* Whether the rows of the first operand, and of the result, are padded: number 0 to 3 of a product's layouts.
 */
enum { MATMUL_PADS_A = 1, MATMUL_PADS_D = 2, MATMUL_LAYOUTS = 4 };

static int64_t cuda_matmul_row(const tn_type *type, bool padded) {
  return padded ? tn_cuda_padded_columns(type) : type->dims[type->rank - 1];
}

static void cuda_matmul_fill(const tn_match *match, int32_t pads, tn_cuda_product *p,
                             tn_matmul_batch *batch) {
  const tn_node *node = cuda_matmul_node(match);
  const tn_matmul_attributes *t = node->attributes;
  const tn_type *a = node->in[0], *y = &node->out[0];
  *p = (tn_cuda_product){.dtype = y->dtype,
                         .wide = match->out[0]->dtype,
                         .tf32 = t->math == TN_MATH_TF32,
                         .transpose_a = t->transpose_a != 0,
                         .transpose_b = t->transpose_b != 0,
                         .reads_c =
                             cuda_matmul_kind(match) == MATMUL_ADD && cuda_matmul_roles(match).beside >= 0,
                         .n = y->dims[y->rank - 1],
                         .k = a->dims[a->rank - (t->transpose_a ? 2 : 1)],
                         .row_a = cuda_matmul_row(a, (pads & MATMUL_PADS_A) != 0),
                         .row_d = cuda_matmul_row(y, (pads & MATMUL_PADS_D) != 0),
                         .epilogue = cuda_matmul_epilogue(match)};
  cuda_matmul_fill_batch(node, p, batch);
}

/* ---- query ---- */

static tn_status cuda_matmul_check_same_dims(tn_query *q, const tn_type *type) {
  if (tn_type_same_dims(type, &cuda_matmul_node(q->match)->out[0])) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "the op behind the product broadcasts it");
}

static tn_status cuda_matmul_check_gelu(tn_query *q) {
  const tn_gelu_attributes *a = q->match->nodes[1].node->attributes;
  if (a->approximate) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, "approximate", "cuBLASLt computes GELU by tanh, the model by erf");
}

static tn_status cuda_matmul_check_bias_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = cuda_matmul_node(match)->attributes;
  const tn_reduce_attributes *sum = cuda_matmul_find(match, "reduce_sum")->attributes;
  bool rows = sum->axes.n == 1 && (sum->axes.v[0] == 0 || sum->axes.v[0] == -2);
  if (match->in[0]->rank == 2 && match->in[1]->rank == 2 && t->transpose_a && !t->transpose_b && rows)
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "not the gradients of the weight and the bias of a linear layer");
}

/* The sum has the dims of the product, and the bias is a number for each column. */
static tn_status cuda_matmul_check_summands(tn_query *q, const tn_cuda_product *p) {
  const matmul_roles roles = cuda_matmul_roles(q->match);
  tn_status status = cuda_matmul_check_same_dims(q, q->match->out[0]);
  if (status == TN_OK && roles.beside >= 0)
    status = cuda_matmul_check_same_dims(q, q->match->in[roles.beside]);
  if (status != TN_OK || roles.bias < 0) return status;
  const tn_type *bias = q->match->in[roles.bias];
  if (bias->rank == 1 && bias->dims[0] == p->n) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "a summand is neither like the product nor a number for each column");
}

static tn_status cuda_matmul_check_kind(tn_query *q, const tn_cuda_product *p, int32_t kind) {
  const tn_match *match = q->match;
  tn_status status = TN_OK;
  if (kind == MATMUL_RELU && !tn_operand_is_zero(match, 3))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not a ReLU: the other operand of the maximum is not zero");
  if (kind == MATMUL_RELU) return cuda_matmul_check_same_dims(q, match->out[0]);
  if (kind == MATMUL_ADD) return cuda_matmul_check_summands(q, p);
  if (kind == MATMUL_BIAS_GRAD) return cuda_matmul_check_bias_grad(q);
  if (kind == MATMUL_GELU || kind == MATMUL_GELU_GRAD) status = cuda_matmul_check_gelu(q);
  if (status == TN_OK && kind == MATMUL_GELU_GRAD) status = cuda_matmul_check_same_dims(q, match->in[2]);
  return status;
}

/* Rules of cuBLASLt's documentation for auxiliary matrices and gradients. */
static tn_status cuda_matmul_check_limits(tn_query *q, const tn_cuda_product *p, int32_t kind) {
  if ((p->epilogue & 128) != 0 && p->n % 8 != 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "rows of %lld elements, expected a multiple of 8",
                   (long long)p->n);
  if (kind == MATMUL_GELU_GRAD && p->k < 2) return tn_fail(q, TN_EUNSUPPORTED, NULL, "sums of one product");
  if (kind == MATMUL_BIAS_GRAD && p->m < 2) return tn_fail(q, TN_EUNSUPPORTED, NULL, "a bias of one element");
  return TN_OK;
}

/* cuBLASLt's results are like its operands, or f32 for operands of 16 bits. */
static tn_status cuda_matmul_check_cast(tn_query *q, const tn_cuda_product *p) {
  if (p->wide == p->dtype || (p->wide == TN_F32 && tn_dtype_size(p->dtype) == 2)) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "products of %s with results of %s, expected f32 of f16 or bf16",
                 tn_dtype_name(p->dtype), tn_dtype_name(p->wide));
}

static bool cuda_matmul_is_empty(const tn_cuda_product *p) { return p->m == 0 || p->n == 0 || p->k == 0; }

static tn_status cuda_matmul_check(tn_query *q, const tn_cuda_product *p, int32_t kind) {
  if (!tn_dtype_is_float(p->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16, f32 or f64",
                   tn_dtype_name(p->dtype));
  if (q->match->n_nodes == 1) return TN_OK;
  if (p->dtype == TN_F64) return tn_fail(q, TN_EUNSUPPORTED, NULL, "cuBLASLt has no epilogues for f64");
  if (cuda_matmul_is_empty(p)) return tn_fail(q, TN_EUNSUPPORTED, NULL, "an operand is empty");
  tn_status status = cuda_matmul_check_cast(q, p);
  if (status == TN_OK) status = cuda_matmul_check_limits(q, p, kind);
  return status == TN_OK ? cuda_matmul_check_kind(q, p, kind) : status;
}

/* Tiles of 128 x 128; smaller ones, with parts of the depth, where those are fewer than multiprocessors. */
static double cuda_matmul_tiles(const tn_cuda_product *p, double products, int32_t processors,
                                int64_t small) {
  enum { LARGE = 128, DEPTHS = 4 };
  double tiles = products * (double)((p->m + LARGE - 1) / LARGE) * (double)((p->n + LARGE - 1) / LARGE);
  if (tiles >= processors || tiles == 0) return tiles;
  tiles = products * (double)((p->m + small - 1) / small) * (double)((p->n + small - 1) / small);
  int64_t parts = (int64_t)(processors / tiles), most = p->k / (DEPTHS * small);
  if (parts > most) parts = most;
  return parts > 1 ? tiles * (double)parts : tiles;
}

/* Rows of operands and result begin at multiples of 16 bytes. */
static bool cuda_matmul_is_aligned(const tn_cuda_product *p) {
  int64_t row_b = p->transpose_b ? p->k : p->n;
  int64_t narrow = (int64_t)tn_dtype_size(p->dtype), wide = (int64_t)tn_dtype_size(p->wide);
  return (p->row_a * narrow | row_b * narrow | p->row_d * wide) % TN_CUDA_ROW_BYTES == 0;
}

static tn_cuda_kind cuda_matmul_rate_kind(const tn_cuda_product *p) {
  if (!p->tf32 && tn_dtype_size(p->dtype) != 2) return TN_CUDA_PLAIN_PRODUCT;
  return cuda_matmul_is_aligned(p) ? TN_CUDA_PRODUCT : TN_CUDA_UNALIGNED_PRODUCT;
}

static double cuda_matmul_cost_s(const tn_query *q, const tn_cuda_product *p, const tn_matmul_batch *batch) {
  enum { SMALL_TILE = 64, SMALL_PLAIN_TILE = 32 };
  const tn_device_properties *d = q->device;
  const tn_cuda_kind kind = cuda_matmul_rate_kind(p);
  int64_t small = kind == TN_CUDA_PLAIN_PRODUCT ? SMALL_PLAIN_TILE : SMALL_TILE;
  double products = (double)p->batch;
  double rate = p->tf32 ? 0.5 * d->matrix_flops_per_s[TN_F16] : d->matrix_flops_per_s[p->dtype];
  for (int32_t i = 0; i < batch->rank; i++) products *= (double)batch->dims[i];
  double flops = 2 * products * (double)p->m * (double)p->n * (double)p->k;
  double busy = tn_cuda_busy_share(cuda_matmul_tiles(p, products, d->processors, small), d->processors);
  return tn_cuda_estimate_s(d, kind, tn_match_bytes(q->match), flops, busy * rate);
}

static void cuda_matmul_offer(tn_query *q, int32_t pads, const tn_cuda_product *p, double cost_s,
                              int32_t rank) {
  static const char *const kinds[MATMUL_LAYOUTS] = {"", ", padded operand", ", padded result",
                                                    ", padded operand and result"};
  tn_operand_layout in[MATMUL_OPERANDS] = {{0}}, out[2] = {{0}};
  char name[64];
  if (pads & MATMUL_PADS_A) in[0] = tn_cuda_padded_rows(q->match->in[0]);
  if (pads & MATMUL_PADS_D) out[0] = tn_cuda_padded_rows(q->match->out[0]);
  snprintf(name, sizeof name, "cublaslt %d%s", (int)rank + 1, kinds[pads]);
  tn_offer(q, (tn_variant){.id = pads * MATMUL_RANKS + rank,
                           .name = name,
                           .in = pads != 0 ? in : NULL,
                           .out = pads != 0 ? out : NULL,
                           .workspace_bytes = cuda_matmul_is_empty(p) ? 0 : tn_cuda_product_workspace(p),
                           .prepared_bytes = sizeof(matmul_kernel),
                           .cost_s = cost_s * (1 + 0.02 * rank)});
}

/* The layouts that are offered beside row-major ones: gaps between rows, where rows without would not be
 * aligned. A result has none where an epilogue reads a second matrix like it or where a kernel adds the bias.
 */
static int32_t cuda_matmul_pads(const tn_match *match, const tn_cuda_product *p) {
  int32_t pads = 0;
  if (p->dtype == TN_F64 || cuda_matmul_is_empty(p)) return 0;
  if (tn_cuda_offers_padded_rows(match->in[0])) pads |= MATMUL_PADS_A;
  if (cuda_matmul_kind(match) == MATMUL_PLAIN && tn_cuda_offers_padded_rows(match->out[0]))
    pads |= MATMUL_PADS_D;
  return pads;
}

static tn_status cuda_matmul_query(tn_query *q) {
  tn_cuda_product p;
  tn_matmul_batch batch;
  cuda_matmul_fill(q->match, 0, &p, &batch);
  TN_TRY(cuda_matmul_check(q, &p, cuda_matmul_kind(q->match)));
  int32_t ranks = cuda_matmul_is_empty(&p) ? 1 : MATMUL_RANKS, most = cuda_matmul_pads(q->match, &p);
  for (int32_t pads = 0; pads < MATMUL_LAYOUTS; pads++) {
    if ((pads & ~most) != 0) continue;
    cuda_matmul_fill(q->match, pads, &p, &batch);
    double cost_s = cuda_matmul_cost_s(q, &p, &batch);
    for (int32_t i = 0; i < ranks; i++) cuda_matmul_offer(q, pads, &p, cost_s, i);
  }
  return TN_OK;
}

/* ---- prepare ---- */

static tn_status cuda_matmul_prepare(tn_prepare *p, void **made) {
  const tn_cuda_device *device = tn_cuda_device_of(p);
  matmul_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->kind = cuda_matmul_kind(p->match);
  keep->roles = cuda_matmul_roles(p->match);
  cuda_matmul_fill(p->match, p->variant / MATMUL_RANKS, &keep->product, &keep->batch);
  bool empty = cuda_matmul_is_empty(&keep->product);
  keep->adds_bias = empty || (keep->product.dtype == TN_F64 && keep->roles.bias >= 0);
  tn_status status = keep->adds_bias ? tn_cuda_request(p, &keep->add_bias, "matmul_bias.cu", "matmul_bias_%s",
                                                       tn_dtype_name(keep->product.dtype))
                                     : TN_OK;
  if (status != TN_OK || empty) return status;
  return tn_cuda_product_open(&p->env, device, &keep->product, p->variant % MATMUL_RANKS, &keep->plan);
}

static void cuda_matmul_release(tn_env *env, void *made) {
  matmul_kernel *k = made;
  tn_cuda_product_close(&k->plan);
  tn_cuda_withdraw(&k->add_bias);
  tn_delete(env, k);
}

/* ---- launch ---- */

static tn_status cuda_matmul_add_bias(tn_launch *l, const matmul_kernel *k) {
  const tn_view *y = &l->out[0];
  struct matmul_bias_args a = {.y = y->data,
                               .bias = l->n_in > 2 ? l->in[2].data : NULL,
                               .columns = k->product.n,
                               .rows = k->product.n > 0 ? tn_type_count(&y->type) / k->product.n : 0,
                               .empty = k->product.k == 0};
  tn_cuda_grid grid = tn_cuda_grid_of(a.rows * a.columns, MATMUL_THREADS, MATMUL_BLOCKS);
  return tn_cuda_launch(l, &k->add_bias, &grid, &a, sizeof a);
}

/* The operands of the products that begin at a, b and d, in elements. */
static tn_cuda_matrices cuda_matmul_matrices(const tn_launch *l, const matmul_kernel *k, int64_t a, int64_t b,
                                             int64_t d) {
  int64_t size = (int64_t)tn_dtype_size(k->product.dtype), wide = d * (int64_t)tn_dtype_size(k->product.wide);
  bool kept = k->kind == MATMUL_GELU && l->n_out > 1;
  const char *beside = k->roles.beside >= 0 ? l->in[k->roles.beside].data : NULL;
  tn_cuda_matrices x = {.a = (const char *)l->in[0].data + a * size,
                        .b = (const char *)l->in[1].data + b * size,
                        .d = (char *)l->out[kept ? 1 : 0].data + wide,
                        .workspace = l->workspace,
                        .workspace_bytes = l->workspace_bytes};
  if (k->product.reads_c) x.c = beside + wide;
  if (k->kind == MATMUL_GELU_GRAD) x.aux = beside + wide;
  if (kept) x.aux = (const char *)l->out[0].data + wide;
  if (k->kind == MATMUL_BIAS_GRAD) x.bias = l->out[1].data;
  if (k->roles.bias >= 0 && !k->adds_bias) x.bias = l->in[k->roles.bias].data;
  return x;
}

static tn_status cuda_matmul_run(tn_launch *l, const matmul_kernel *k) {
  int64_t calls = 1, products = k->product.batch * k->product.m * k->product.row_d;
  tn_status status = TN_OK;
  for (int32_t i = 0; i < k->batch.rank; i++) calls *= k->batch.dims[i];
  for (int64_t call = 0; call < calls && status == TN_OK; call++) {
    int64_t a, b;
    tn_matmul_batch_at(&k->batch, call, &a, &b);
    tn_cuda_matrices x = cuda_matmul_matrices(l, k, a, b, call * products);
    status = tn_cuda_product_run(&l->env, &k->plan, l->stream, &x);
  }
  return status;
}

static tn_status cuda_matmul_launch(tn_launch *l) {
  const matmul_kernel *k = l->prepared;
  tn_status status = cuda_matmul_is_empty(&k->product) ? TN_OK : cuda_matmul_run(l, k);
  if (status == TN_OK && k->adds_bias) status = cuda_matmul_add_bias(l, k);
  if (status == TN_OK) status = tn_cuda_clear_padding(&l->env, l->stream, &l->out[0]);
  return status == TN_OK ? tn_cuda_launched(l) : status;
}

TN_DEFINE_KERNEL(cuda, matmul, "cuda_matmul", "y = matmul(a, b, bias?)", "a product of matrices by cuBLASLt",
                 TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_relu, "cuda_matmul_relu", "y = matmul(a, b, bias?); z = maximum(y, c)",
                 "a product and the ReLU behind it", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_gelu, "cuda_matmul_gelu", "y = matmul(a, b, bias?); z = gelu(y)",
                 "a product and the GELU behind it", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_kept_gelu, "cuda_matmul_kept_gelu",
                 "y = matmul(a, b, bias?); z = gelu(y) -> y, z",
                 "a product and the GELU behind it, with both as results", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_add, "cuda_matmul_add", "y = matmul(a, b, bias?); z = add(y, r)",
                 "a product and a sum behind it", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_gelu_grad, "cuda_matmul_gelu_grad", "y = matmul(a, b); z = gelu_grad(y, x)",
                 "a product and the gradient of a GELU behind it", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_cast, "cuda_matmul_cast", "y = matmul(a, b); z = cast(y)",
                 "a product of f16 or bf16 with a result in f32", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_cast_add, "cuda_matmul_cast_add",
                 "y = matmul(a, b); z = cast(y); s = add(z, r)",
                 "a product of f16 or bf16 and a sum in f32 behind it", TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_cast_add_add, "cuda_matmul_cast_add_add",
                 "y = matmul(a, b); z = cast(y); s = add(z, r); t = add(s, u)",
                 "a product of f16 or bf16, its bias and a sum in f32 behind it",
                 TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_cast_bias_grad, "cuda_matmul_cast_bias_grad",
                 "f = cast(d); s = reduce_sum(f); y = matmul(d, x); w = cast(y) -> w, s",
                 "the gradients of a linear layer's weight and bias, in f32 from f16 or bf16",
                 TN_KERNEL_CALLBACKS(cuda_matmul));
TN_DEFINE_KERNEL(cuda, matmul_bias_grad, "cuda_matmul_bias_grad",
                 "s = reduce_sum(d); w = matmul(d, x) -> w, s",
                 "the gradients of a linear layer's weight and bias", TN_KERNEL_CALLBACKS(cuda_matmul));

/* backends/onednn/kernels/matmul.c: products of matrices, alone and with what stands around them in a model:
 * the ReLU, GELU or sum behind a linear layer, their gradient behind the gradient of its operand, and the
 * gradient of the bias beside that of the weights. The columns of a linear layer that go to several results,
 * as those of the queries, keys and values of attention do, are written where they are wanted. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/gemm/gemm.h"
#include "tenon/attributes.h"

enum {
  BF16_DEPTH = 2048, /* of a part: a chunk has its operands as f32, too */
  RESULTS = 3        /* that columns go to */
};

/* What a kernel is, beside a product. */
enum { PLAIN, RELU, RELU_GRAD, BIAS_GRAD, ADD, GELU, GELU_GRAD, SPLIT };

typedef struct batch {
  int32_t rank;
  int64_t dims[TN_MAX_RANK], a_step[TN_MAX_RANK], b_step[TN_MAX_RANK];
} batch;

typedef struct matmul_plan {
  tn_gemm_cut cut;
  const tn_gemm_loops *loops;
  int32_t what, approximate; /* GELU's attribute */
  batch batch;
  int64_t start[RESULTS]; /* of a split: the first column of each */
} matmul_plan;

/* ---- query --------------------------------------------------------------------------------------- */

static int64_t batch_count(const tn_type *type) {
  int64_t n = 1;
  for (int32_t i = 0; i < type->rank - 2; i++) n *= type->dims[i];
  return n;
}

/* Steps of the batch dimensions of an operand, right-aligned with those of the result. */
static void batch_steps(const tn_type *type, int32_t rank, int64_t *steps) {
  int64_t step = type->dims[type->rank - 1] * type->dims[type->rank - 2];
  for (int32_t i = 1; i <= rank; i++) {
    int32_t axis = type->rank - 2 - i;
    int64_t dim = axis >= 0 ? type->dims[axis] : 1;
    steps[rank - i] = dim == 1 ? 0 : step;
    step *= dim;
  }
}

/* The second node tells. */
static int32_t what_of(const tn_match *match) {
  static const struct {
    const char *op;
    int32_t what;
  } second[] = {{"maximum", RELU}, {"gt", RELU_GRAD},        {"matmul", BIAS_GRAD}, {"add", ADD},
                {"gelu", GELU},    {"gelu_grad", GELU_GRAD}, {"slice", SPLIT}};
  for (size_t i = 0; match->n_nodes > 1 && i < sizeof second / sizeof *second; i++)
    if (strcmp(match->nodes[1].node->op, second[i].op) == 0) return second[i].what;
  return PLAIN;
}

/* The product among the nodes of a match. */
static const tn_match_node *product_in(const tn_match *match) {
  return &match->nodes[what_of(match) == BIAS_GRAD ? 1 : 0];
}

/* What the product is cut for. */
static int32_t wants_of(const tn_match *match) {
  int32_t what = what_of(match);
  if (what == BIAS_GRAD) return TN_GEMM_SUMMED;
  return what != PLAIN || match->n_in > 2 ? TN_GEMM_ENDED : 0;
}

/* A product for each result, of some of b's rows. */
static int64_t split_columns(const tn_match *match, matmul_plan *p) {
  for (int32_t i = 0; i < match->n_out; i++) {
    const tn_slice_attributes *s = match->nodes[1 + i].node->attributes;
    p->start[i] = s->starts.v[match->out[i]->rank - 1];
  }
  return match->n_out;
}

/* One b for all: the rows of all a follow each other, so it is one product. */
static void make_plan(const tn_match *match, const void *backend, matmul_plan *p) {
  const tn_matmul_attributes *t = product_in(match)->node->attributes;
  const tn_type *a = match->in[0], *b = match->in[1], *y = match->out[0];
  int64_t products = batch_count(y), m = y->dims[y->rank - 2];
  *p = (matmul_plan){.loops = TN_LOOPS_PICK_AT(tn_loops_gemm, tn_onednn_isa_of(backend)),
                     .what = what_of(match),
                     .batch = {.rank = y->rank - 2}};
  if (batch_count(b) == 1 && batch_count(a) == products && !t->transpose_a) {
    m *= products;
    products = 1;
    p->batch.rank = 0;
  }
  for (int32_t i = 0; i < p->batch.rank; i++) p->batch.dims[i] = y->dims[i];
  if (p->what == GELU || p->what == GELU_GRAD)
    p->approximate = ((const tn_gelu_attributes *)match->nodes[1].node->attributes)->approximate;
  batch_steps(a, p->batch.rank, p->batch.a_step);
  batch_steps(b, p->batch.rank, p->batch.b_step);
  if (p->what == SPLIT) products = split_columns(match, p);
  tn_gemm_cut_make(&p->cut, y->dtype, t->transpose_a, t->transpose_b, products, m, y->dims[y->rank - 1],
                   a->dims[a->rank - (t->transpose_a ? 2 : 1)], wants_of(match));
}

static tn_status check_product(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = product_in(match)->node->attributes;
  int32_t dtype = match->out[0]->dtype;
  if (dtype != TN_F32 && dtype != TN_BF16)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f32 or bf16", tn_dtype_name(dtype));
  if (t->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  return TN_OK;
}

/* What it takes to write what GELU is taken of, which is in vain where nobody wants it. */
static double kept_s(const tn_match *match) {
  return what_of(match) == GELU && match->n_out > 1 ? (double)tn_type_bytes(match->out[0]) / 1e10 : 0;
}

static tn_status offer(tn_query *q) {
  static const char *const names[] = {"straight", "dots", "packed", "gathered"};
  matmul_plan plan;
  make_plan(q->match, q->backend, &plan);
  if (plan.cut.dtype == TN_BF16 && plan.cut.depth > BF16_DEPTH)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "sums of %lld products of bf16, expected at most %d at once",
                   (long long)plan.cut.depth, BF16_DEPTH);
  const tn_variant variant = {.struct_size = (uint32_t)sizeof variant,
                              .name = names[plan.cut.way],
                              .workspace_bytes = tn_gemm_cut_workspace(&plan.cut),
                              .prepared_bytes = (int64_t)sizeof plan,
                              .cost_s = tn_gemm_cut_cost_s(&plan.cut, q->device->threads) + kept_s(q->match),
                              .deterministic = 1,
                              .capturable = 1};
  tn_add_variant(q, &variant);
  return TN_OK;
}

static tn_status check_limit(tn_query *q, const tn_type *limit) {
  if (tn_type_count(limit) == 1 && limit->dtype == q->match->out[0]->dtype) return TN_OK;
  return tn_fail(
      q, TN_EUNSUPPORTED, NULL,
      "the other operand of the maximum or the comparison is no single number of the product's type");
}

static tn_status check_same_dims(tn_query *q, const tn_type *type, const tn_type *product) {
  if (tn_type_same_dims(type, product)) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "what follows the product is broadcast");
}

static tn_status check_f32(tn_query *q) {
  int32_t dtype = q->match->out[0]->dtype;
  if (dtype == TN_F32) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, of which what follows wants the rounded product",
                 tn_dtype_name(dtype));
}

/* y = matmul(a, b, bias?); z = maximum(y, c) */
static tn_status check_relu(tn_query *q) {
  tn_status status = check_limit(q, q->match->in[3]);
  return status != TN_OK ? status : check_same_dims(q, q->match->out[0], &q->match->nodes[0].node->out[0]);
}

/* y = matmul(a, b); g = gt(r, c); z = where(g, y, d) */
static tn_status check_relu_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_type *product = &match->nodes[0].node->out[0];
  tn_status status = check_limit(q, match->in[3]);
  if (status == TN_OK) status = check_limit(q, match->in[4]);
  if (status == TN_OK) status = check_same_dims(q, match->in[2], product);
  if (status == TN_OK) status = check_same_dims(q, match->out[0], product);
  if (status == TN_OK && match->in[2]->dtype != product->dtype)
    status = tn_fail(q, TN_EUNSUPPORTED, NULL, "what is compared is %s, the product %s",
                     tn_dtype_name(match->in[2]->dtype), tn_dtype_name(product->dtype));
  return status;
}

/* y = matmul(a, b, bias?); z = add(y, r). What is added to the gradient of weights is left alone: their
 * product is summed in parts. */
static tn_status check_add(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = match->nodes[0].node->attributes;
  tn_status status = check_f32(q);
  if (status == TN_OK) status = check_same_dims(q, match->in[3], &match->nodes[0].node->out[0]);
  if (status == TN_OK && t->transpose_a)
    status = tn_fail(q, TN_EUNSUPPORTED, NULL, "the product may be one that is summed in parts");
  return status;
}

/* y = matmul(a, b); z = gelu_grad(y, x) */
static tn_status check_gelu_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_type *product = &match->nodes[0].node->out[0];
  tn_status status = check_f32(q);
  if (status == TN_OK) status = check_same_dims(q, match->in[2], product);
  return status != TN_OK ? status : check_same_dims(q, match->out[0], product);
}

static bool sums_rows(const tn_reduce_attributes *a) {
  return a->axes.n == 1 && (a->axes.v[0] == 0 || a->axes.v[0] == -2);
}

/* s = reduce_sum(d); w = matmul(d, x) -> w, s: found from the product, of which d may have others */
static tn_status check_bias_grad(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = product_in(match)->node->attributes;
  if (match->in[0]->rank != 2 || match->in[1]->rank != 2 || !t->transpose_a ||
      !sums_rows(match->nodes[0].node->attributes))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not the gradients of a linear layer's weight and bias");
  if (tn_type_count(match->out[0]) == 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "the weight is empty, so there is no product to sum the bias beside");
  return TN_OK;
}

/* Whether a slice takes columns alone; all of them are as wide as the first. */
static bool takes_columns(const tn_match *match, int32_t result) {
  const tn_match_node *node = &match->nodes[1 + result];
  const tn_slice_attributes *a = node->node->attributes;
  const tn_type *from = &match->nodes[0].node->out[0], *to = &node->node->out[0];
  int32_t last = from->rank - 1;
  for (int32_t i = 0; i < last; i++)
    if (to->dims[i] != from->dims[i]) return false;
  return to->dims[last] == match->out[0]->dims[last] && (a->steps.n == 0 || a->steps.v[last] == 1);
}

/* y = matmul(x, w, bias?); a = slice(y); b = slice(y) -> a, b */
static tn_status check_split(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = match->nodes[0].node->attributes;
  if (t->transpose_a || !t->transpose_b || match->in[1]->rank != 2)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not the product of a linear layer, with its weight transposed");
  for (int32_t i = 0; i < match->n_out; i++)
    if (!takes_columns(match, i))
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "the slices are not columns of the product, as many in each");
  return TN_OK;
}

static tn_status query(tn_query *q) {
  static tn_status (*const checks[])(tn_query * q) = {
      [RELU] = check_relu, [RELU_GRAD] = check_relu_grad, [BIAS_GRAD] = check_bias_grad, [ADD] = check_add,
      [GELU] = check_f32,  [GELU_GRAD] = check_gelu_grad, [SPLIT] = check_split};
  int32_t what = what_of(q->match);
  tn_status status = check_product(q);
  if (status == TN_OK && what != PLAIN) status = checks[what](q);
  return status != TN_OK ? status : offer(q);
}

static tn_status prepare(tn_prepare *p, void **plan) {
  matmul_plan *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, made);
  *plan = made;
  return TN_OK;
}

static void release(tn_env *env, void *plan) { tn_delete(env, plan); }

/* ---- launch -------------------------------------------------------------------------------------- */

typedef struct job {
  tn_launch *launch;
  const matmul_plan *plan;
  tn_gemm_end end;
} job;

static float number_at(const tn_gemm_loops *loops, const tn_view *view) {
  float value;
  if (view->type.dtype == TN_F32) return *(const float *)view->data;
  loops->widen(view->data, &value, 1);
  return value;
}

static tn_gemm_end end_of(const tn_launch *l, const matmul_plan *p) {
  switch (p->what) {
  case RELU: return (tn_gemm_end){.what = TN_END_MAX, .limit = number_at(p->loops, &l->in[3])};
  case RELU_GRAD:
    return (tn_gemm_end){.what = TN_END_GATE,
                         .limit = number_at(p->loops, &l->in[3]),
                         .other = number_at(p->loops, &l->in[4])};
  case ADD: return (tn_gemm_end){.what = TN_END_ADD};
  case GELU: return (tn_gemm_end){.what = TN_END_GELU, .approximate = p->approximate};
  case GELU_GRAD: return (tn_gemm_end){.what = TN_END_GELU_GRAD, .approximate = p->approximate};
  default: return (tn_gemm_end){.bias = NULL};
  }
}

/* A result's columns: rows of b, and of the bias. */
static void find_columns(const tn_launch *l, const matmul_plan *p, int64_t result, tn_gemm_matrices *x) {
  int64_t size = (int64_t)tn_dtype_size(p->cut.dtype), start = p->start[result] * size;
  const void *bias = l->n_in > 2 ? l->in[2].data : NULL;
  *x = (tn_gemm_matrices){.a = l->in[0].data,
                          .b = (const char *)l->in[1].data + start * p->cut.k,
                          .bias = bias == NULL ? NULL : (const char *)bias + start,
                          .c = l->out[result].data};
}

static void find_matrices(const tn_launch *l, const matmul_plan *p, int64_t product, tn_gemm_matrices *x) {
  int64_t size = (int64_t)tn_dtype_size(p->cut.dtype), a = 0, b = 0, rest = product;
  for (int32_t i = p->batch.rank - 1; i >= 0; i--) {
    int64_t index = rest % p->batch.dims[i];
    rest /= p->batch.dims[i];
    a += index * p->batch.a_step[i];
    b += index * p->batch.b_step[i];
  }
  int64_t c = product * p->cut.m * p->cut.n * size;
  int32_t last = p->what == GELU ? l->n_out - 1 : 0;
  int32_t gate = p->what == ADD ? 3 : p->what == RELU_GRAD || p->what == GELU_GRAD ? 2 : -1;
  x->a = (const char *)l->in[0].data + a * size;
  x->b = (const char *)l->in[1].data + b * size;
  x->c = (char *)l->out[last].data + c;
  x->kept = last > 0 ? (char *)l->out[0].data + c : NULL;
  x->bias = gate != 2 && l->n_in > 2 ? l->in[2].data : NULL;
  x->gate = gate >= 0 ? (const char *)l->in[gate].data + c : NULL;
}

/* Of a linear layer, whose gradient is the first operand, lines of k. */
static void sum_bias(const job *j, const tn_gemm_range *r) {
  const matmul_plan *p = j->plan;
  int64_t size = (int64_t)tn_dtype_size(p->cut.dtype);
  const void *from = (const char *)j->launch->in[0].data + r->m0 * size;
  void *to = (char *)j->launch->out[1].data + r->m0 * size;
  (p->cut.dtype == TN_BF16 ? p->loops->sum_rows_bf16 : p->loops->sum_rows)(from, p->cut.m, p->cut.k, r->m,
                                                                           to);
}

static float *parts_of(const job *j) {
  return (float *)((char *)j->launch->workspace + j->plan->cut.chunks * j->plan->cut.scratch_bytes);
}

static void run_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const matmul_plan *p = j->plan;
  char *scratch = (char *)j->launch->workspace + chunk * p->cut.scratch_bytes;
  int64_t count, first = tn_gemm_cut_chunk(&p->cut, chunk, &count);
  for (int64_t item = first; item < first + count; item++) {
    tn_gemm_range range;
    tn_gemm_matrices x;
    int64_t product = tn_gemm_cut_item(&p->cut, item, &range);
    (p->what == SPLIT ? find_columns : find_matrices)(j->launch, p, product, &x);
    tn_gemm_cut_run(&p->cut, p->loops, &x, &j->end, &range, scratch, parts_of(j));
    if (p->what == BIAS_GRAD && p->cut.way != TN_GEMM_GATHER && range.n0 == 0) sum_bias(j, &range);
  }
}

static void join_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const tn_launch *l = j->launch;
  void *sums = j->plan->what == BIAS_GRAD ? l->out[1].data : NULL;
  tn_gemm_cut_join(&j->plan->cut, j->plan->loops, parts_of(j), chunk, l->out[0].data, sums);
}

/* Chunks of a product too small for a second thread run here. */
static void run_all(job *j, int64_t chunks, void (*body)(void *arg, int64_t chunk)) {
  if (chunks == 1)
    body(j, 0);
  else if (chunks > 1)
    tn_parallel(j->launch, chunks, body, j);
}

static tn_status launch(tn_launch *l) {
  const matmul_plan *p = l->plan;
  job j = {l, p, end_of(l, p)};
  run_all(&j, p->cut.chunks, run_chunk);
  run_all(&j, p->cut.joins, join_chunk);
  return TN_OK;
}

#define MATMUL(name, text, doc)                                                                              \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, doc),     \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = release,                                                    \
                                      .launch = launch}

MATMUL(matmul, "y = matmul(a, b, bias?)", "vectorized product of matrices as they lie");
MATMUL(matmul_relu, "y = matmul(a, b, bias?); z = maximum(y, c)", "a product and the ReLU behind it");
MATMUL(matmul_relu_grad, "y = matmul(a, b); g = gt(r, c); z = where(g, y, d)",
       "a product and the gradient of a ReLU behind it");
MATMUL(matmul_add, "y = matmul(a, b, bias?); z = add(y, r)", "a product and what is added to it");
MATMUL(matmul_gelu, "y = matmul(a, b, bias?); z = gelu(y)", "a product and the GELU behind it");
MATMUL(matmul_kept_gelu, "y = matmul(a, b, bias?); z = gelu(y) -> y, z",
       "a product and the GELU behind it, of which others want the product, too");
MATMUL(matmul_gelu_grad, "y = matmul(a, b); z = gelu_grad(y, x)",
       "a product and the gradient of a GELU behind it");
MATMUL(matmul_bias_grad, "s = reduce_sum(d); w = matmul(d, x) -> w, s",
       "the gradients of a linear layer's weight and bias");
MATMUL(matmul_split_2, "y = matmul(x, w, bias?); a = slice(y); b = slice(y) -> a, b",
       "a linear layer with two results side by side");
MATMUL(matmul_split_3, "y = matmul(x, w, bias?); a = slice(y); b = slice(y); c = slice(y) -> a, b, c",
       "a linear layer with three results side by side");

/* backends/cuda/cudnn/kernels/attention.c: attention and its gradient by cuDNN, in f16 and bf16, with the
 * slices in front of it and the concatenation behind it. ../../kernels/attention.c computes the other uses.
 */
#include "backends/cuda/cudnn/kernels/attention_graph.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

/* The variants of a gradient whose sums are ordered are numbered from here on. */
enum { ORDERED = TN_CUDNN_ENGINES, BOUNDARY = 256, ALIGNMENT = 16 };

/* The gradients of all scores, in 16 bits: 1.6 GB for 64 x 12 heads of 1024 tokens. */
static const int64_t most_ordered_workspace = (int64_t)2 << 30;

typedef struct cudnn_attention_kernel {
  tn_cudnn_plan plan;
  tn_cuda_attention_use of;
  int64_t engine_bytes; /* of workspace; SUMS and ACCUMULATED follow */
} cudnn_attention_kernel;

/* ---- sizes ---- */

static int64_t cudnn_attention_sums_bytes(const tn_cuda_attention_use *a) {
  int64_t bytes = a->batch * a->heads * a->queries * (int64_t)sizeof(float);
  return (bytes + BOUNDARY - 1) / BOUNDARY * BOUNDARY;
}

static int64_t cudnn_attention_accumulated_bytes(const tn_cuda_attention_use *a) {
  return a->batch * a->heads * a->queries * a->width * (int64_t)sizeof(float);
}

static double cudnn_attention_pairs(const tn_cuda_attention_use *a) {
  return (double)a->batch * (double)a->heads * (double)a->queries * (double)a->keys;
}

/* Attention has one product of queries and one of values, the gradient three and two. */
static double cudnn_attention_flops(const tn_cuda_attention_use *a) {
  double seen = cudnn_attention_pairs(a) * (a->causal ? 0.5 : 1);
  double width = (double)a->width, value_width = (double)a->value_width;
  return 2 * seen * (a->gradient ? 3 * width + 2 * value_width : width + value_width);
}

/* ---- query ---- */

static bool cudnn_attention_is_aligned(const tn_cuda_attention_use *a, const tn_cuda_heads *h) {
  int64_t all = h->first | h->batch | h->head | h->row;
  return h->number < 0 || all * (int64_t)tn_dtype_size(a->dtype) % ALIGNMENT == 0;
}

static tn_status cudnn_attention_check_places(tn_query *q, const tn_cuda_attention_use *a) {
  const tn_cuda_heads *const heads[] = {&a->q, &a->k, &a->v, &a->y, &a->dy, &a->dq, &a->dk, &a->dv};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
    if (!cudnn_attention_is_aligned(a, heads[i]))
      return tn_fail(q, TN_EUNSUPPORTED, "shape", "rows of a head do not begin at multiples of %d bytes",
                     ALIGNMENT);
  return TN_OK;
}

/* Uses that cuDNN accepts, but computes wrongly or without a stated result. */
static tn_status cudnn_attention_check_known(tn_query *q, const tn_cuda_attention_use *a) {
  if (a->causal && a->queries > a->keys)
    return tn_fail(q, TN_EUNSUPPORTED, "shape", "the first %lld queries see no keys",
                   (long long)(a->queries - a->keys));
  if (a->gradient && a->queries == 1 && a->keys == 1)
    return tn_fail(q, TN_EUNSUPPORTED, "shape", "there is one query and one key");
  int64_t version = tn_cudnn_version_of(q->backend);
  if (a->gradient && a->keys % 128 != 0 && version > 0 && version <= 91500)
    return tn_fail(q, TN_EUNSUPPORTED, "shape",
                   "cuDNN up to 9.15 needs a number of keys that is a multiple of 128, there are %lld",
                   (long long)a->keys);
  return TN_OK;
}

static tn_status cudnn_attention_check(tn_query *q, const tn_cuda_attention_use *a) {
  if (a->dtype != TN_F16 && a->dtype != TN_BF16)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16 or bf16",
                   tn_dtype_name(a->dtype));
  if (cudnn_attention_pairs(a) == 0 || a->width == 0 || a->value_width == 0)
    return tn_fail(q, TN_EUNSUPPORTED, "shape", "an operand is empty");
  tn_status status = cudnn_attention_check_known(q, a);
  return status == TN_OK ? cudnn_attention_check_places(q, a) : status;
}

static tn_cuda_kind cudnn_attention_rate_kind(const tn_cuda_attention_use *a) {
  if (a->width <= 64) return a->gradient ? TN_CUDA_ATTENTION_GRAD : TN_CUDA_ATTENTION;
  return a->gradient ? TN_CUDA_WIDE_ATTENTION_GRAD : TN_CUDA_WIDE_ATTENTION;
}

static tn_cudnn_offer cudnn_attention_offer(const tn_query *q, const tn_cuda_attention_use *a) {
  return (tn_cudnn_offer){.prepared_bytes = sizeof(cudnn_attention_kernel),
                          .dtype = a->dtype,
                          .kind = cudnn_attention_rate_kind(a),
                          .flops = cudnn_attention_flops(a),
                          .bytes = tn_match_bytes(q->match)};
}

/* dq is cleared, added to and read. */
static tn_status cudnn_attention_offer_varying(tn_query *q, const tn_cuda_attention_use *a) {
  tn_cudnn_graph g;
  tn_cudnn_offer offer = cudnn_attention_offer(q, a);
  int64_t accumulated = cudnn_attention_accumulated_bytes(a);
  offer.varies = true;
  offer.workspace_bytes = cudnn_attention_sums_bytes(a) + accumulated;
  offer.other_s = tn_cuda_traffic_s(q->device, TN_CUDA_STREAM, 4.0 * (double)accumulated);
  tn_cudnn_attention_grad_graph(a, false, &g);
  return tn_cudnn_offer_engines(q, &g, &offer);
}

/* The gradients of the scores are written and read. */
static tn_status cudnn_attention_offer_ordered(tn_query *q, const tn_cuda_attention_use *a) {
  tn_cudnn_graph g;
  tn_cudnn_offer offer = cudnn_attention_offer(q, a);
  offer.first_id = ORDERED;
  offer.form = "ordered";
  offer.workspace_bytes = cudnn_attention_sums_bytes(a);
  double scores = cudnn_attention_pairs(a) * (double)tn_dtype_size(a->dtype);
  offer.other_s = tn_cuda_traffic_s(q->device, TN_CUDA_STREAM, 2.0 * scores);
  tn_cudnn_attention_grad_graph(a, true, &g);
  g.most_workspace = most_ordered_workspace;
  return tn_cudnn_offer_engines(q, &g, &offer);
}

static tn_status cudnn_attention_offer_gradient(tn_query *q, const tn_cuda_attention_use *a) {
  tn_status varying = cudnn_attention_offer_varying(q, a);
  tn_status ordered = cudnn_attention_offer_ordered(q, a);
  return varying == TN_EUNSUPPORTED ? ordered : varying;
}

static tn_status cudnn_attention_query(tn_query *q) {
  tn_cuda_attention_use a;
  tn_cudnn_graph g;
  TN_TRY(tn_cuda_attention_use_of(&q->env, q->match, &a));
  TN_TRY(cudnn_attention_check(q, &a));
  if (a.gradient) return cudnn_attention_offer_gradient(q, &a);
  const tn_cudnn_offer offer = cudnn_attention_offer(q, &a);
  tn_cudnn_attention_graph(&a, &g);
  return tn_cudnn_offer_engines(q, &g, &offer);
}

/* ---- prepare ---- */

static tn_status cudnn_attention_request(tn_prepare *p, cudnn_attention_kernel *keep) {
  bool ordered = keep->of.gradient && p->variant >= ORDERED;
  tn_cudnn_graph g;
  if (keep->of.gradient)
    tn_cudnn_attention_grad_graph(&keep->of, ordered, &g);
  else
    tn_cudnn_attention_graph(&keep->of, &g);
  if (ordered) g.most_workspace = most_ordered_workspace;
  int32_t rank = ordered ? p->variant - ORDERED : p->variant;
  tn_cudnn_engines engines;
  tn_status status = tn_cudnn_find_engines(&p->env, p->backend, p->device, &g, false, &engines);
  if (status == TN_OK && rank < engines.n)
    keep->engine_bytes = tn_cudnn_engine_workspace(&engines.engine[rank]);
  return status == TN_OK ? tn_cudnn_request(p, &g, false, rank, &keep->plan) : status;
}

static tn_status cudnn_attention_prepare(tn_prepare *p, void **made) {
  cudnn_attention_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = tn_cuda_attention_use_of(&p->env, p->match, &keep->of);
  return status == TN_OK ? cudnn_attention_request(p, keep) : status;
}

static void cudnn_attention_release(tn_env *env, void *made) {
  cudnn_attention_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_delete(env, k);
}

/* ---- launch ---- */

static void *cudnn_attention_address(const tn_view *views, const tn_cuda_heads *h) {
  const tn_view *v = &views[h->number];
  return (char *)v->data + h->first * (int64_t)tn_dtype_size(v->type.dtype);
}

static void cudnn_attention_set_gradient(const tn_launch *l, const cudnn_attention_kernel *k,
                                         void *addresses[TN_CUDNN_ATTENTION_TENSORS]) {
  const tn_cuda_attention_use *a = &k->of;
  char *own = tn_cudnn_workspace(l) + k->engine_bytes;
  addresses[TN_CUDNN_ATTENTION_DY] = cudnn_attention_address(l->in, &a->dy);
  addresses[TN_CUDNN_ATTENTION_DQ] = cudnn_attention_address(l->out, &a->dq);
  addresses[TN_CUDNN_ATTENTION_DK] = cudnn_attention_address(l->out, &a->dk);
  addresses[TN_CUDNN_ATTENTION_DV] = cudnn_attention_address(l->out, &a->dv);
  addresses[TN_CUDNN_ATTENTION_SUMS] = own;
  addresses[TN_CUDNN_ATTENTION_ACCUMULATED] = own + cudnn_attention_sums_bytes(a);
}

static tn_status cudnn_attention_launch(tn_launch *l) {
  const cudnn_attention_kernel *k = l->prepared;
  const tn_cuda_attention_use *a = &k->of;
  void *addresses[TN_CUDNN_TENSORS] = {NULL};
  addresses[TN_CUDNN_ATTENTION_Q] = cudnn_attention_address(l->in, &a->q);
  addresses[TN_CUDNN_ATTENTION_K] = cudnn_attention_address(l->in, &a->k);
  addresses[TN_CUDNN_ATTENTION_V] = cudnn_attention_address(l->in, &a->v);
  addresses[TN_CUDNN_ATTENTION_Y] = cudnn_attention_address(a->gradient ? l->in : l->out, &a->y);
  addresses[TN_CUDNN_ATTENTION_LSE] = (a->gradient ? l->in : l->out)[a->lse].data;
  if (a->gradient) cudnn_attention_set_gradient(l, k, addresses);
  return tn_cudnn_run(l, &k->plan, addresses);
}

#define SLICES "&a = slice(x); &b = slice(x); &c = slice(x); "
#define CUDNN_ATTENTION(NAME, PATTERN, WHAT)                                                                 \
  TN_DEFINE_KERNEL(cuda, NAME, #NAME, PATTERN, WHAT, TN_KERNEL_CALLBACKS(cudnn_attention))

CUDNN_ATTENTION(cudnn_attention, "y, lse = attention(q, k, v)", "attention by cuDNN");
CUDNN_ATTENTION(cudnn_attention_split, SLICES "y, lse = attention(a, b, c)",
                "attention by cuDNN, on queries, keys and values in one tensor");
CUDNN_ATTENTION(cudnn_attention_grad, "dq, dk, dv = attention_grad(q, k, v, y, lse, dy)",
                "the gradient of attention by cuDNN");
CUDNN_ATTENTION(cudnn_attention_grad_joined,
                "dq, dk, dv = attention_grad(q, k, v, y, lse, dy); d = concat(dq, dk, dv)",
                "the gradient of attention by cuDNN, in one tensor");
CUDNN_ATTENTION(
    cudnn_attention_grad_split,
    SLICES "dq, dk, dv = attention_grad(a, b, c, y, lse, dy); d = concat(dq, dk, dv)",
    "the gradient of attention by cuDNN, on queries, keys and values in one tensor and into another");

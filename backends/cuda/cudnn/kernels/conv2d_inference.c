/* backends/cuda/cudnn/kernels/conv2d_inference.c: a convolution and the ops behind it in inference: a batch
 * norm with given statistics, a residual, a ReLU. The batch norm is folded into weights and bias once:
 *
 *     (conv(x, w) - mean) s + beta = conv(x, w s) + (beta - mean s),   s = gamma / sqrt(variance + epsilon)
 *
 * And convolutions with bias and ReLU, also of training. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cudnn/kernels/convolution.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/cuda/device/conv_fold.cuh"
#include "backends/cuda/modules/modules.h"
#include "backends/shared/constants.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum { FOLD_THREADS = 256, FOLD_OPERANDS = 8, FOLD_ALIGNMENT = 256 };

/* ---- the match ---- */

/* The operands by their numbers; -1: absent. */
typedef struct conv2d_behind_match {
  tn_cudnn_conv conv;
  const tn_type *result;
  int32_t x, w, bias, mean, variance, gamma, beta, added, zero;
  bool relu;
  double epsilon;
} conv2d_behind_match;

static int32_t conv2d_behind_operand(const tn_match *m, const tn_match_node *node, int32_t k) {
  if (k >= node->node->n_in || node->in[k] < 0 || node->in[k] >= m->n_in || m->in[node->in[k]] == NULL)
    return -1;
  return node->in[k];
}

static int32_t conv2d_behind_other_operand(const tn_match *m, const tn_match_node *node) {
  int32_t first = conv2d_behind_operand(m, node, 0);
  return first >= 0 ? first : conv2d_behind_operand(m, node, 1);
}

static void conv2d_behind_read_norm(const tn_match *m, const tn_match_node *n, conv2d_behind_match *f) {
  f->mean = conv2d_behind_operand(m, n, 1);
  f->variance = conv2d_behind_operand(m, n, 2);
  f->gamma = conv2d_behind_operand(m, n, 3);
  f->beta = conv2d_behind_operand(m, n, 4);
  f->epsilon = ((const tn_norm_attributes *)n->node->attributes)->epsilon;
}

static void conv2d_behind_read_node(const tn_match *m, const tn_match_node *n, conv2d_behind_match *f) {
  const char *op = n->node->op;
  if (strcmp(op, "conv2d") == 0) {
    f->conv = tn_cudnn_conv_of(n->node);
    f->x = conv2d_behind_operand(m, n, 0);
    f->w = conv2d_behind_operand(m, n, 1);
    f->bias = conv2d_behind_operand(m, n, 2);
  } else if (strcmp(op, "batch_norm_apply") == 0) {
    conv2d_behind_read_norm(m, n, f);
  } else if (strcmp(op, "add") == 0) {
    f->added = conv2d_behind_other_operand(m, n);
  } else {
    f->relu = true;
    if (strcmp(op, "maximum") == 0) f->zero = conv2d_behind_other_operand(m, n);
  }
}

static conv2d_behind_match conv2d_behind_read(const tn_match *m) {
  conv2d_behind_match f = {.result = m->out[0],
                           .x = -1,
                           .w = -1,
                           .bias = -1,
                           .mean = -1,
                           .variance = -1,
                           .gamma = -1,
                           .beta = -1,
                           .added = -1,
                           .zero = -1};
  for (int32_t i = 0; i < m->n_nodes; i++) conv2d_behind_read_node(m, &m->nodes[i], &f);
  return f;
}

static bool conv2d_behind_is_folded(const conv2d_behind_match *f) { return f->mean >= 0; }

static bool conv2d_behind_is_row(const tn_match *m, int32_t operand) {
  return operand < 0 || (m->constant[operand] && m->in[operand]->dtype == TN_F32);
}

static tn_status conv2d_behind_check_folded(tn_query *q, const conv2d_behind_match *f) {
  const tn_match *m = q->match;
  if (!m->constant[f->w] || !conv2d_behind_is_row(m, f->mean) || !conv2d_behind_is_row(m, f->variance) ||
      !conv2d_behind_is_row(m, f->gamma) || !conv2d_behind_is_row(m, f->beta))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "its weights and statistics may change, or the statistics are not f32: they are folded "
                   "for inference only");
  if (f->conv.w->dims[0] > INT32_MAX || tn_type_count(f->conv.w) / f->conv.w->dims[0] > INT32_MAX)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "weights have more than 2^31 channels, or elements of one");
  return TN_OK;
}

static tn_status conv2d_behind_check(tn_query *q, const conv2d_behind_match *f) {
  const tn_match *m = q->match;
  TN_TRY(tn_cudnn_conv_check(q, &f->conv));
  if (f->zero >= 0 && !tn_operand_is_zero(m, f->zero))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not a ReLU: the other operand of the maximum is not zero");
  if (!tn_type_equal(f->result, f->conv.y) || (f->added >= 0 && !tn_type_equal(m->in[f->added], f->conv.y)))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the op behind the convolution broadcasts it");
  return conv2d_behind_is_folded(f) ? conv2d_behind_check_folded(q, f) : TN_OK;
}

/* ---- the graph ---- */

enum { BEHIND_X = 0, BEHIND_W, BEHIND_Y, BEHIND_BIAS, BEHIND_ADDED };

/* An op that writes a virtual tensor, or the result if it is the last one. */
static int32_t conv2d_behind_add_op(tn_cudnn_graph *g, int32_t mode, int32_t from, int32_t with, bool last) {
  int32_t to = last ? BEHIND_Y : tn_cudnn_virtual_like(g, TN_F32, BEHIND_Y);
  tn_cudnn_pointwise(g, mode, from, with, to);
  return to;
}

/* cuDNN has engines that need no compilation for this order: residual, bias, ReLU. */
static void conv2d_behind_describe(const conv2d_behind_match *f, tn_cudnn_graph *g) {
  const tn_cudnn_window window = tn_cudnn_window_of(f->conv.attributes);
  bool bias = f->bias >= 0 || conv2d_behind_is_folded(f);
  *g = (tn_cudnn_graph){0};
  (void)tn_cudnn_image(g, f->conv.x);
  (void)tn_cudnn_image(g, f->conv.w);
  (void)tn_cudnn_image(g, f->conv.y);
  (void)tn_cudnn_channels(g, f->conv.x->dtype, f->conv.y->dims[1]);
  (void)tn_cudnn_image(g, f->conv.y);
  int32_t at = tn_cudnn_virtual_like(g, TN_F32, BEHIND_Y);
  tn_cudnn_convolve(g, TN_CUDNN_CONV_FORWARD, &window, BEHIND_X, BEHIND_W, at);
  if (f->added >= 0) at = conv2d_behind_add_op(g, CUDNN_POINTWISE_ADD, at, BEHIND_ADDED, false);
  if (bias) at = conv2d_behind_add_op(g, CUDNN_POINTWISE_ADD, at, BEHIND_BIAS, !f->relu);
  if (f->relu) (void)conv2d_behind_add_op(g, CUDNN_POINTWISE_RELU_FWD, at, TN_CUDNN_NONE, true);
}

/* ---- query ---- */

static int64_t conv2d_behind_weight_bytes(const conv2d_behind_match *f) {
  int64_t bytes = (int64_t)tn_dtype_size(f->conv.x->dtype) * tn_type_count(f->conv.w);
  return (bytes + FOLD_ALIGNMENT - 1) / FOLD_ALIGNMENT * FOLD_ALIGNMENT;
}

typedef struct conv2d_behind_kernel {
  tn_cudnn_plan plan;
  tn_cuda_function fold;
  conv2d_behind_match match; /* launches read its numbers; its types are not valid then */
  int64_t bias_offset;       /* in the folded memory */
  struct conv_fold_args args;
} conv2d_behind_kernel;

static tn_status conv2d_behind_query(tn_query *q) {
  const conv2d_behind_match f = conv2d_behind_read(q->match);
  const tn_operand_layout image = tn_cudnn_channels_last();
  tn_operand_layout in[FOLD_OPERANDS] = {{0}};
  const int32_t inplace[1][2] = {{f.added, 0}};
  bool folded = conv2d_behind_is_folded(&f);
  TN_TRY(conv2d_behind_check(q, &f));
  in[f.x] = image;
  if (!folded) in[f.w] = image;
  if (f.added >= 0) in[f.added] = image;
  tn_cudnn_offer offer = {.in = in,
                          .out = &image,
                          .prepared_bytes = sizeof(conv2d_behind_kernel),
                          .n_inplace = f.added >= 0,
                          .inplace = inplace,
                          .dtype = f.conv.x->dtype,
                          .flops = tn_cudnn_conv_flops(&f.conv),
                          .bytes = tn_match_bytes(q->match),
                          .exact = tn_cudnn_conv_is_exact(&f.conv)};
  if (folded)
    offer.folded_bytes =
        conv2d_behind_weight_bytes(&f) + (int64_t)tn_dtype_size(f.conv.x->dtype) * f.conv.y->dims[1];
  tn_cudnn_graph g;
  conv2d_behind_describe(&f, &g);
  return tn_cudnn_offer_engines(q, &g, &offer);
}

/* ---- prepare ---- */

static tn_status conv2d_behind_request_fold(tn_prepare *p, conv2d_behind_kernel *keep) {
  const conv2d_behind_match *f = &keep->match;
  const tn_type *w = f->conv.w;
  if (!conv2d_behind_is_folded(f)) return TN_OK;
  keep->bias_offset = conv2d_behind_weight_bytes(f);
  keep->args = (struct conv_fold_args){.outputs = w->dims[0],
                                       .inputs = w->dims[1],
                                       .pixels = w->dims[2] * w->dims[3],
                                       .epsilon = (float)f->epsilon};
  return tn_cuda_request(p, &keep->fold, "conv_fold.cu", "conv_fold_%s", tn_dtype_name(f->conv.x->dtype));
}

static tn_status conv2d_behind_prepare(tn_prepare *p, void **made) {
  tn_cudnn_graph g;
  conv2d_behind_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->match = conv2d_behind_read(p->match);
  conv2d_behind_describe(&keep->match, &g);
  tn_status status =
      tn_cudnn_request(p, &g, tn_cudnn_conv_is_exact(&keep->match.conv), p->variant, &keep->plan);
  return status == TN_OK ? conv2d_behind_request_fold(p, keep) : status;
}

static void conv2d_behind_release(tn_env *env, void *made) {
  conv2d_behind_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_cuda_withdraw(&k->fold);
  tn_delete(env, k);
}

/* ---- fold, launch ---- */

static void *conv2d_behind_data(const tn_launch *l, int32_t operand) {
  return operand < 0 ? NULL : l->in[operand].data;
}

static tn_status conv2d_behind_fold(tn_launch *l) {
  const conv2d_behind_kernel *k = l->prepared;
  const conv2d_behind_match *f = &k->match;
  struct conv_fold_args a = k->args;
  a.weight = conv2d_behind_data(l, f->w);
  a.mean = conv2d_behind_data(l, f->mean);
  a.variance = conv2d_behind_data(l, f->variance);
  a.gamma = conv2d_behind_data(l, f->gamma);
  a.beta = conv2d_behind_data(l, f->beta);
  a.to = l->folded;
  a.bias = (char *)l->folded + k->bias_offset;
  const tn_cuda_grid grid = {.blocks = {(uint32_t)a.outputs, 1, 1}, .threads = {FOLD_THREADS, 1, 1}};
  return tn_cuda_launch(l, &k->fold, &grid, &a, sizeof a);
}

static tn_status conv2d_behind_launch(tn_launch *l) {
  const conv2d_behind_kernel *k = l->prepared;
  const conv2d_behind_match *f = &k->match;
  bool folded = conv2d_behind_is_folded(f);
  void *addresses[TN_CUDNN_TENSORS] = {[BEHIND_X] = conv2d_behind_data(l, f->x),
                                       [BEHIND_W] = folded ? l->folded : conv2d_behind_data(l, f->w),
                                       [BEHIND_Y] = l->out[0].data,
                                       [BEHIND_BIAS] = folded ? (char *)l->folded + k->bias_offset
                                                              : conv2d_behind_data(l, f->bias),
                                       [BEHIND_ADDED] = conv2d_behind_data(l, f->added)};
  return tn_cudnn_run(l, &k->plan, addresses);
}

#define NORMED "c = conv2d(x, w); n = batch_norm_apply(c, mean, variance, gamma?, beta?)"

TN_DEFINE_KERNEL(cuda, cudnn_conv2d_relu, "cudnn_conv2d_relu", "c = conv2d(x, w, bias?); y = maximum(c, z)",
                 "a convolution and the ReLU behind it", TN_KERNEL_CALLBACKS(conv2d_behind));

#define FOLDED(id, behind, doc)                                                                              \
  TN_DEFINE_KERNEL(cuda, cudnn_conv2d_##id, "cudnn_conv2d_" #id, NORMED behind, doc,                         \
                   TN_KERNEL_CALLBACKS(conv2d_behind), .fold = conv2d_behind_fold)
FOLDED(norm, "", "a convolution with a batch norm folded into its weights");
FOLDED(norm_relu, "; y = relu(n)", "a convolution with a batch norm folded into its weights, and ReLU");
FOLDED(norm_add_relu, "; s = add(n, r); y = relu(s)",
       "a convolution with a batch norm folded into its weights, a residual and ReLU");

/* backends/cuda/cudnn/kernels/conv2d_prologue.c: a convolution with statistics, and the gradient of a
 * convolution's weight, that compute the batch norm and ReLU before the convolution while they read its
 * operand. The activation is not stored where all its readers do. cuDNN has both in f16, with the batch norm
 * as a factor and a summand in f16 for each channel, which a small kernel computes first. */
#include "backends/cuda/cudnn/kernels/norm_relu.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/cuda/cudnn/kernels/statistics.h"
#include "backends/cuda/device/norm_factors.cuh"
#include "backends/cuda/modules/modules.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

/* Of the convolution with statistics. */
enum { PROLOGUE_STATEMENTS = TN_CUDNN_NORM_NODES + 2, PROLOGUE_OPERANDS = TN_CUDNN_NORM_OPERANDS + 1 };
enum { PROLOGUE_THREADS = 128 };

/* Numbers of tensors. */
enum {
  PROLOGUE_X = 0,
  PROLOGUE_W,
  PROLOGUE_Y,
  PROLOGUE_FACTOR,
  PROLOGUE_SUMMAND,
  PROLOGUE_SUM, /* of a convolution with statistics */
  PROLOGUE_SQUARES
};

typedef struct conv2d_prologue_kernel {
  tn_cudnn_plan plan;
  tn_cuda_function factors;
  tn_cudnn_statistics statistics; /* of the convolution; the gradient of a weight has none */
  int32_t kind;
  int64_t inputs; /* channels */
  int64_t offset; /* of the kernel's own part of the workspace */
} conv2d_prologue_kernel;

static int32_t conv2d_prologue_add_relu(tn_cudnn_graph *g, int32_t dtype) {
  int32_t scaled = tn_cudnn_virtual_like(g, dtype, PROLOGUE_X);
  int32_t shifted = tn_cudnn_virtual_like(g, dtype, PROLOGUE_X);
  int32_t relu = tn_cudnn_virtual_like(g, dtype, PROLOGUE_X);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_MUL, PROLOGUE_X, PROLOGUE_FACTOR, scaled);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, scaled, PROLOGUE_SUMMAND, shifted);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_RELU_FWD, shifted, TN_CUDNN_NONE, relu);
  return relu;
}

static void conv2d_prologue_describe(const tn_cudnn_conv *c, tn_cudnn_graph *g) {
  const tn_cudnn_window window = tn_cudnn_window_of(c->attributes);
  bool forward = c->kind == TN_CUDNN_CONV_FORWARD;
  *g = (tn_cudnn_graph){0};
  (void)tn_cudnn_image(g, c->x);
  (void)tn_cudnn_image(g, c->w);
  (void)tn_cudnn_image(g, c->y);
  (void)tn_cudnn_channels(g, c->x->dtype, c->x->dims[1]);
  (void)tn_cudnn_channels(g, c->x->dtype, c->x->dims[1]);
  for (int32_t i = 0; i < 2 && forward; i++) (void)tn_cudnn_channels(g, TN_F32, c->y->dims[1]);
  int32_t relu = conv2d_prologue_add_relu(g, c->x->dtype);
  tn_cudnn_convolve(g, c->kind, &window, relu, PROLOGUE_W, PROLOGUE_Y);
  if (forward) tn_cudnn_gen_stats(g, PROLOGUE_Y, PROLOGUE_SUM, PROLOGUE_SQUARES);
}

/* ---- query ---- */

static tn_status conv2d_prologue_check(tn_query *q, const tn_cudnn_conv *c) {
  TN_TRY(tn_cudnn_norm_relu_check(q, c));
  if (c->x->dtype != TN_F16)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s: cuDNN has the prologue for f16 alone",
                   tn_dtype_name(c->x->dtype));
  return TN_OK;
}

/* The other operand is the weight, or dy; the first result y, or the gradient of the weight. */
static tn_status conv2d_prologue_query(tn_query *q) {
  const tn_match *m = q->match;
  const tn_cudnn_conv c = tn_cudnn_conv_of(m->nodes[TN_CUDNN_NORM_NODES].node);
  const tn_operand_layout image = tn_cudnn_channels_last();
  tn_operand_layout in[PROLOGUE_OPERANDS] = {{0}};
  bool forward = c.kind == TN_CUDNN_CONV_FORWARD;
  in[TN_CUDNN_NORM_X] = in[TN_CUDNN_NORM_OPERANDS] = image;
  const tn_cudnn_offer offer = {.in = in,
                                .out = &image,
                                .workspace_bytes = 2 * tn_cudnn_row_bytes(TN_F16, c.x->dims[1]) +
                                                   tn_cudnn_statistics_workspace(c.y->dims[1]),
                                .prepared_bytes = sizeof(conv2d_prologue_kernel),
                                .dtype = c.x->dtype,
                                .flops = tn_cudnn_conv_flops(&c),
                                .bytes = tn_match_bytes(m),
                                .other_s = q->device->launch_s};
  tn_cudnn_graph g;
  TN_TRY(conv2d_prologue_check(q, &c));
  conv2d_prologue_describe(&c, &g);
  if (forward) return tn_cudnn_statistics_offer(q, PROLOGUE_STATEMENTS, PROLOGUE_OPERANDS, &g, &offer);
  return tn_cudnn_offer_engines(q, &g, &offer);
}

/* ---- prepare ---- */

static tn_status conv2d_prologue_request(tn_prepare *p, const tn_cudnn_conv *c,
                                         conv2d_prologue_kernel *keep) {
  tn_cudnn_graph g;
  conv2d_prologue_describe(c, &g);
  tn_status status = tn_cudnn_request(p, &g, false, p->variant, &keep->plan);
  if (status == TN_OK) status = tn_cuda_request(p, &keep->factors, "norm_factors.cu", "norm_factors_f16");
  if (status == TN_OK && c->kind == TN_CUDNN_CONV_FORWARD)
    status = tn_cudnn_statistics_prepare(p, PROLOGUE_STATEMENTS, &keep->statistics);
  if (status == TN_OK) keep->offset = tn_cudnn_plan_workspace(&keep->plan);
  return status;
}

static tn_status conv2d_prologue_prepare(tn_prepare *p, void **made) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(p->match->nodes[TN_CUDNN_NORM_NODES].node);
  conv2d_prologue_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->kind = c.kind;
  keep->inputs = c.x->dims[1];
  return conv2d_prologue_request(p, &c, keep);
}

static void conv2d_prologue_release(tn_env *env, void *made) {
  conv2d_prologue_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_cuda_withdraw(&k->factors);
  tn_cudnn_statistics_release(&k->statistics);
  tn_delete(env, k);
}

/* ---- launch ---- */

/* The kernel's own part of the workspace: factor, summand, sum, sum of squares. */
static void conv2d_prologue_set_addresses(const tn_launch *l, const conv2d_prologue_kernel *k,
                                          void **addresses) {
  char *own = tn_cudnn_workspace(l) + k->offset;
  bool forward = k->kind == TN_CUDNN_CONV_FORWARD;
  addresses[PROLOGUE_X] = l->in[TN_CUDNN_NORM_X].data;
  addresses[forward ? PROLOGUE_W : PROLOGUE_Y] = l->in[TN_CUDNN_NORM_OPERANDS].data;
  addresses[forward ? PROLOGUE_Y : PROLOGUE_W] = l->out[forward ? k->statistics.y : 0].data;
  addresses[PROLOGUE_FACTOR] = own;
  addresses[PROLOGUE_SUMMAND] = own += tn_cudnn_row_bytes(TN_F16, k->inputs);
  if (!forward) return;
  addresses[PROLOGUE_SUM] = own += tn_cudnn_row_bytes(TN_F16, k->inputs);
  addresses[PROLOGUE_SQUARES] = own + tn_cudnn_statistics_workspace(k->statistics.channels) / 2;
}

static tn_status conv2d_prologue_launch_factors(tn_launch *l, const conv2d_prologue_kernel *k,
                                                void *const *addresses) {
  const struct norm_factors_args a = {.mean = l->in[TN_CUDNN_NORM_MEAN].data,
                                      .rstd = l->in[TN_CUDNN_NORM_RSTD].data,
                                      .gamma = l->in[TN_CUDNN_NORM_GAMMA].data,
                                      .beta = l->in[TN_CUDNN_NORM_BETA].data,
                                      .factor = addresses[PROLOGUE_FACTOR],
                                      .summand = addresses[PROLOGUE_SUMMAND],
                                      .channels = k->inputs};
  const tn_cuda_grid grid = tn_cuda_grid_of(k->inputs, PROLOGUE_THREADS, INT32_MAX);
  return tn_cuda_launch(l, &k->factors, &grid, &a, sizeof a);
}

static tn_status conv2d_prologue_launch(tn_launch *l) {
  const conv2d_prologue_kernel *k = l->prepared;
  void *addresses[TN_CUDNN_TENSORS] = {NULL};
  conv2d_prologue_set_addresses(l, k, addresses);
  tn_status status = conv2d_prologue_launch_factors(l, k, addresses);
  if (status == TN_OK) status = tn_cudnn_run(l, &k->plan, addresses);
  if (status != TN_OK || k->kind != TN_CUDNN_CONV_FORWARD) return status;
  return tn_cudnn_statistics_launch(l, &k->statistics, addresses[PROLOGUE_SUM]);
}

TN_DEFINE_KERNEL(cuda, cudnn_norm_relu_conv2d, "cudnn_norm_relu_conv2d",
                 TN_CUDNN_NORM_RELU "y = conv2d(r, k); s, v = moments(y) -> y, s, v",
                 "batch norm, ReLU, a convolution and the statistics of its channels",
                 TN_KERNEL_CALLBACKS(conv2d_prologue));
TN_DEFINE_KERNEL(cuda, cudnn_norm_relu_conv2d_epilogue, "cudnn_norm_relu_conv2d_epilogue",
                 TN_CUDNN_NORM_RELU "y = conv2d(r, k); s, v = moments(y); pointwise+",
                 "batch norm, ReLU, a convolution, the statistics of its channels and the region behind them",
                 TN_KERNEL_CALLBACKS(conv2d_prologue));
TN_DEFINE_KERNEL(cuda, cudnn_norm_relu_grad_weight, "cudnn_norm_relu_grad_weight",
                 TN_CUDNN_NORM_RELU "dk = conv2d_grad_weight(r, dy)",
                 "batch norm, ReLU, and the gradient of a convolution's weight",
                 TN_KERNEL_CALLBACKS(conv2d_prologue));

/* backends/cuda/cudnn/conv2d_norm_grad.c: the gradient of a convolution's input, the gradient of the ReLU
 * before the convolution, and the sums for the gradient of the batch norm before the ReLU, in one launch. The
 * ReLU's gate is computed again from the operand of the batch norm, which is read for the sums in any case.
 * cuDNN has it in f16 on sm_80 and sm_90. */
#include "backends/cuda/cudnn/norm_relu.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

/* Operands behind those of the batch norm; the node of the sums. */
enum { NORM_DY = TN_CUDNN_NORM_OPERANDS, NORM_W, NORM_OPERANDS, NODE_SUMS = TN_CUDNN_NORM_NODES + 3 };

/* Numbers of tensors. */
enum {
  GRAD_DX = 0, /* of the convolution; virtual */
  GRAD_W,
  GRAD_DY,
  GRAD_X,
  GRAD_H,
  GRAD_MEAN,
  GRAD_RSTD,
  GRAD_GAMMA,
  GRAD_BETA,
  GRAD_DGAMMA,
  GRAD_DBETA,
  GRAD_FACTORS, /* three, which no kernel reads */
  GRAD_IN_MEMORY = GRAD_FACTORS + 3
};

typedef struct conv2d_norm_grad_kernel {
  tn_cudnn_plan plan;
  int64_t channels, offset; /* of the factors in the workspace */
} conv2d_norm_grad_kernel;

static void conv2d_norm_grad_add_gate(tn_cudnn_graph *g) {
  static const int32_t modes[] = {CUDNN_POINTWISE_SUB, CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_MUL,
                                  CUDNN_POINTWISE_ADD};
  static const int32_t with[] = {GRAD_MEAN, GRAD_RSTD, GRAD_GAMMA, GRAD_BETA};
  int32_t from = GRAD_X;
  for (int32_t i = 0; i < 4; i++) {
    int32_t to = tn_cudnn_virtual_like(g, TN_F32, GRAD_DX);
    tn_cudnn_pointwise(g, modes[i], from, with[i], to);
    from = to;
  }
  tn_cudnn_pointwise_backward(g, CUDNN_POINTWISE_RELU_BWD, GRAD_DX, from, GRAD_H);
}

static void conv2d_norm_grad_describe(const tn_cudnn_conv *c, tn_cudnn_graph *g) {
  const tn_cudnn_window window = tn_cudnn_window_of(c->attributes);
  const tn_cudnn_bn_backward_tensors sums = {.mean = GRAD_MEAN,
                                             .inverse_deviation = GRAD_RSTD,
                                             .scale = GRAD_GAMMA,
                                             .x = GRAD_X,
                                             .dy = GRAD_H,
                                             .dscale = GRAD_DGAMMA,
                                             .dbias = GRAD_DBETA,
                                             .equivalent_dy_scale = GRAD_FACTORS,
                                             .equivalent_x_scale = GRAD_FACTORS + 1,
                                             .equivalent_bias = GRAD_FACTORS + 2};
  *g = (tn_cudnn_graph){0};
  int32_t dx = tn_cudnn_image(g, c->x);
  g->tensors[dx].is_virtual = true;
  g->tensors[dx].dtype = TN_F32;
  (void)tn_cudnn_image(g, c->w);
  (void)tn_cudnn_image(g, c->y);
  (void)tn_cudnn_image(g, c->x);
  (void)tn_cudnn_image(g, c->x);
  for (int32_t i = GRAD_MEAN; i < GRAD_IN_MEMORY; i++) (void)tn_cudnn_channels(g, TN_F32, c->x->dims[1]);
  tn_cudnn_convolve(g, TN_CUDNN_CONV_GRAD_INPUT, &window, GRAD_DX, GRAD_W, GRAD_DY);
  conv2d_norm_grad_add_gate(g);
  tn_cudnn_bn_backward_weights(g, &sums);
}

static tn_status conv2d_norm_grad_check(tn_query *q, const tn_cudnn_conv *c) {
  const tn_match *m = q->match;
  tn_status status = tn_cudnn_norm_relu_check(q, c);
  if (status != TN_OK) return status;
  if (!tn_type_equal(m->out[0], c->x))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the gradient has another type than the batch norm's operand");
  if (!tn_cudnn_reduces_to_channels(m->nodes[NODE_SUMS].node->attributes, 4))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sums are not those of channels");
  return TN_OK;
}

static tn_status conv2d_norm_grad_query(tn_query *q) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(q->match->nodes[TN_CUDNN_NORM_NODES].node);
  const tn_operand_layout image = tn_cudnn_channels_last(), out[3] = {image, {0}, {0}};
  tn_operand_layout in[NORM_OPERANDS] = {{0}};
  in[TN_CUDNN_NORM_X] = in[NORM_DY] = in[NORM_W] = image;
  const tn_cudnn_offer offer = {.in = in,
                                .out = out,
                                .workspace_bytes = 3 * tn_cudnn_row_bytes(TN_F32, c.x->dims[1]),
                                .prepared_bytes = sizeof(conv2d_norm_grad_kernel),
                                .dtype = c.x->dtype,
                                .flops = tn_cudnn_conv_flops(&c),
                                .bytes = tn_match_bytes(q->match)};
  tn_cudnn_graph g;
  tn_status status = conv2d_norm_grad_check(q, &c);
  if (status != TN_OK) return status;
  conv2d_norm_grad_describe(&c, &g);
  return tn_cudnn_offer_engines(q, &g, &offer);
}

static tn_status conv2d_norm_grad_prepare(tn_prepare *p, void **made) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(p->match->nodes[TN_CUDNN_NORM_NODES].node);
  tn_cudnn_graph g;
  conv2d_norm_grad_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *made = keep;
  keep->channels = c.x->dims[1];
  conv2d_norm_grad_describe(&c, &g);
  tn_status status = tn_cudnn_request(p, &g, false, p->variant, &keep->plan);
  if (status == TN_OK) keep->offset = tn_cudnn_plan_workspace(&keep->plan);
  return status;
}

static void conv2d_norm_grad_release(tn_env *env, void *made) {
  conv2d_norm_grad_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_delete(env, k);
}

static tn_status conv2d_norm_grad_launch(tn_launch *l) {
  const conv2d_norm_grad_kernel *k = l->prepared;
  void *addresses[TN_CUDNN_TENSORS] = {[GRAD_W] = l->in[NORM_W].data,
                                       [GRAD_DY] = l->in[NORM_DY].data,
                                       [GRAD_X] = l->in[TN_CUDNN_NORM_X].data,
                                       [GRAD_H] = l->out[0].data,
                                       [GRAD_MEAN] = l->in[TN_CUDNN_NORM_MEAN].data,
                                       [GRAD_RSTD] = l->in[TN_CUDNN_NORM_RSTD].data,
                                       [GRAD_GAMMA] = l->in[TN_CUDNN_NORM_GAMMA].data,
                                       [GRAD_BETA] = l->in[TN_CUDNN_NORM_BETA].data,
                                       [GRAD_DGAMMA] = l->out[2].data,
                                       [GRAD_DBETA] = l->out[1].data};
  for (int32_t i = 0; i < 3; i++)
    addresses[GRAD_FACTORS + i] =
        tn_cudnn_workspace(l) + k->offset + i * tn_cudnn_row_bytes(TN_F32, k->channels);
  return tn_cudnn_run(l, &k->plan, addresses);
}

TN_DEFINE_KERNEL(
    cuda, cudnn_conv2d_norm_grad, "cudnn_conv2d_norm_grad",
    TN_CUDNN_NORM_RELU "d = conv2d_grad_input(dy, k); g = gt(r, z); h = where(g, d, z); "
                       "s, q = norm_grad_sums(h, x, mean, rstd) -> h, s, q",
    "gradients of a convolution's input and of the ReLU before it, and the sums of the batch norm before "
    "that",
    TN_KERNEL_CALLBACKS(conv2d_norm_grad));

/* backends/cuda/cudnn/kernels/conv2d_norm_grad.c: the gradient of a convolution's input, the gradient of the
 * ReLU before the convolution, and the sums for the gradient of the batch norm before the ReLU, in one
 * launch. The ReLU's gate is computed again from the operand of the batch norm, which is read for the sums in
 * any case. cuDNN has it in f16 on sm_80 and sm_90. A small kernel behind it computes the region that reads
 * the sums, such as the coefficients of the batch norm's gradient. */
#include "backends/cuda/cudnn/kernels/channel_epilogue.h"
#include "backends/cuda/cudnn/kernels/norm_relu.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/cuda/device/channel_epilogue.cuh"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

/* Operands behind those of the batch norm; nodes behind its nodes and the convolution's. */
enum { NORM_DY = TN_CUDNN_NORM_OPERANDS, NORM_W, NORM_OPERANDS };
enum { NODE_H = TN_CUDNN_NORM_NODES + 2, NODE_SUMS, NORM_STATEMENTS };

/* Rows of the workspace: factors, and sums that only the region reads. */
enum { NORM_FACTORS = 3, NORM_ROWS = NORM_FACTORS + 2 };

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
  GRAD_IN_MEMORY = GRAD_FACTORS + NORM_FACTORS
};

typedef struct conv2d_norm_grad_kernel {
  tn_cudnn_plan plan;
  int64_t channels, offset; /* of the rows in the workspace */
  int32_t h, sums[2];       /* numbers of results of the match; -1: it has no memory */
  bool has_epilogue;
  tn_cuda_function finish; /* computes the epilogue */
  tn_cuda_epilogue epilogue;
} conv2d_norm_grad_kernel;

/* The argument of `finish`. */
typedef struct norm_grad_joined_args {
  struct channel_epilogue_args sums;
  uint64_t words[TN_CUDA_EPILOGUE_WORDS];
} norm_grad_joined_args;
_Static_assert(sizeof(norm_grad_joined_args) <= 4096, "CUDA's limit of arguments");

static const char conv2d_norm_grad_tail[] =
    "#include \"backends/cuda/device/channel_epilogue_kernels.cuh\"\n\nCHANNEL_EPILOGUE\n";

static tn_cudnn_statements conv2d_norm_grad_statements(const tn_match *m) {
  return (tn_cudnn_statements){m, NORM_STATEMENTS, NORM_OPERANDS, m->nodes[NODE_H].first_out};
}

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
  TN_TRY(tn_cudnn_norm_relu_check(q, c));
  if (!tn_type_equal(&m->nodes[NODE_H].node->out[0], c->x))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the gradient has another type than the batch norm's operand");
  if (tn_cudnn_result_of(m, m->nodes[NODE_H].first_out) < 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "only the sums of the gradient are read");
  if (!tn_cudnn_reduces_to_channels(m->nodes[NODE_SUMS].node->attributes, 4))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sums are not those of channels");
  return TN_OK;
}

static tn_status conv2d_norm_grad_query(tn_query *q) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(q->match->nodes[TN_CUDNN_NORM_NODES].node);
  const tn_cudnn_statements s = conv2d_norm_grad_statements(q->match);
  const tn_operand_layout image = tn_cudnn_channels_last();
  tn_operand_layout in[NORM_OPERANDS] = {{0}};
  in[TN_CUDNN_NORM_X] = in[NORM_DY] = in[NORM_W] = image;
  const tn_cudnn_offer offer = {.in = in,
                                .workspace_bytes = NORM_ROWS * tn_cudnn_row_bytes(TN_F32, c.x->dims[1]),
                                .prepared_bytes = sizeof(conv2d_norm_grad_kernel),
                                .dtype = c.x->dtype,
                                .flops = tn_cudnn_conv_flops(&c),
                                .bytes = tn_match_bytes(q->match),
                                .other_s = tn_cudnn_has_epilogue(&s) ? q->device->launch_s : 0};
  tn_cudnn_graph g;
  TN_TRY(conv2d_norm_grad_check(q, &c));
  conv2d_norm_grad_describe(&c, &g);
  return tn_cudnn_channel_offer(q, &s, conv2d_norm_grad_tail, &g, &offer);
}

/* ---- prepare ---- */

static void conv2d_norm_grad_find_results(const tn_match *m, conv2d_norm_grad_kernel *keep) {
  keep->h = tn_cudnn_result_of(m, m->nodes[NODE_H].first_out);
  for (int32_t i = 0; i < 2; i++) keep->sums[i] = tn_cudnn_result_of(m, m->nodes[NODE_SUMS].first_out + i);
}

static tn_status conv2d_norm_grad_prepare(tn_prepare *p, void **made) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(p->match->nodes[TN_CUDNN_NORM_NODES].node);
  const tn_cudnn_statements s = conv2d_norm_grad_statements(p->match);
  tn_cudnn_graph g;
  conv2d_norm_grad_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->channels = c.x->dims[1];
  keep->has_epilogue = tn_cudnn_has_epilogue(&s);
  conv2d_norm_grad_find_results(p->match, keep);
  conv2d_norm_grad_describe(&c, &g);
  TN_TRY(tn_cudnn_request(p, &g, false, p->variant, &keep->plan));
  keep->offset = tn_cudnn_plan_workspace(&keep->plan);
  if (!keep->has_epilogue) return TN_OK;
  return tn_cudnn_channel_request(p, &s, "sums and a region", conv2d_norm_grad_tail, &keep->finish,
                                  &keep->epilogue);
}

static void conv2d_norm_grad_release(tn_env *env, void *made) {
  conv2d_norm_grad_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_cuda_withdraw(&k->finish);
  tn_delete(env, k);
}

/* ---- launch ---- */

static char *conv2d_norm_grad_row(const tn_launch *l, const conv2d_norm_grad_kernel *k, int32_t i) {
  return tn_cudnn_workspace(l) + k->offset + i * tn_cudnn_row_bytes(TN_F32, k->channels);
}

static void *conv2d_norm_grad_sum(const tn_launch *l, const conv2d_norm_grad_kernel *k, int32_t i) {
  return k->sums[i] < 0 ? conv2d_norm_grad_row(l, k, NORM_FACTORS + i) : l->out[k->sums[i]].data;
}

static tn_status conv2d_norm_grad_finish(tn_launch *l, const conv2d_norm_grad_kernel *k) {
  norm_grad_joined_args a;
  a.sums = (struct channel_epilogue_args){.first = conv2d_norm_grad_sum(l, k, 0),
                                          .second = conv2d_norm_grad_sum(l, k, 1),
                                          .channels = k->channels};
  return tn_cudnn_channel_launch(l, &k->finish, &k->epilogue, k->channels, &a, sizeof a.sums);
}

static tn_status conv2d_norm_grad_launch(tn_launch *l) {
  const conv2d_norm_grad_kernel *k = l->prepared;
  void *addresses[TN_CUDNN_TENSORS] = {[GRAD_W] = l->in[NORM_W].data,
                                       [GRAD_DY] = l->in[NORM_DY].data,
                                       [GRAD_X] = l->in[TN_CUDNN_NORM_X].data,
                                       [GRAD_H] = l->out[k->h].data,
                                       [GRAD_MEAN] = l->in[TN_CUDNN_NORM_MEAN].data,
                                       [GRAD_RSTD] = l->in[TN_CUDNN_NORM_RSTD].data,
                                       [GRAD_GAMMA] = l->in[TN_CUDNN_NORM_GAMMA].data,
                                       [GRAD_BETA] = l->in[TN_CUDNN_NORM_BETA].data,
                                       [GRAD_DGAMMA] = conv2d_norm_grad_sum(l, k, 1),
                                       [GRAD_DBETA] = conv2d_norm_grad_sum(l, k, 0)};
  for (int32_t i = 0; i < NORM_FACTORS; i++) addresses[GRAD_FACTORS + i] = conv2d_norm_grad_row(l, k, i);
  tn_status status = tn_cudnn_run(l, &k->plan, addresses);
  return status == TN_OK && k->has_epilogue ? conv2d_norm_grad_finish(l, k) : status;
}

#define NORM_GRAD                                                                                            \
  TN_CUDNN_NORM_RELU "d = conv2d_grad_input(dy, k); g = gt(r, z); h = where(g, d, z); "                      \
                     "s, q = norm_grad_sums(h, x, mean, rstd)"
TN_DEFINE_KERNEL(
    cuda, cudnn_conv2d_norm_grad, "cudnn_conv2d_norm_grad", NORM_GRAD " -> h, s, q",
    "gradients of a convolution's input and of the ReLU before it, and the sums of the batch norm before "
    "that",
    TN_KERNEL_CALLBACKS(conv2d_norm_grad));
TN_DEFINE_KERNEL(
    cuda, cudnn_conv2d_norm_grad_epilogue, "cudnn_conv2d_norm_grad_epilogue", NORM_GRAD "; pointwise+",
    "gradients of a convolution's input and of the ReLU before it, the sums of the batch norm before that, "
    "and the region behind the sums",
    TN_KERNEL_CALLBACKS(conv2d_norm_grad));

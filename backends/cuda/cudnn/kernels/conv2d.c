/* backends/cuda/cudnn/kernels/conv2d.c: conv2d and its gradients by cuDNN, with channels innermost. Where
 * cuDNN has no engine, ../../kernels/conv2d.c computes them. */
#include "backends/cuda/cudnn/kernels/convolution.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

typedef struct cudnn_conv2d_kernel {
  tn_cudnn_plan plan;
  int32_t kind;
} cudnn_conv2d_kernel;

/* The numbers of tensors. */
enum { CONV_X = 0, CONV_W = 1, CONV_Y = 2, CONV_BIAS = 3, CONV_TENSORS = 5 };

/* The bias is added in f32, before the result is rounded. */
static void cudnn_conv2d_describe(const tn_cudnn_conv *c, const tn_type *bias, tn_cudnn_graph *g) {
  const tn_cudnn_window window = tn_cudnn_window_of(c->attributes);
  *g = (tn_cudnn_graph){0};
  int32_t x = tn_cudnn_image(g, c->x), w = tn_cudnn_image(g, c->w), y = tn_cudnn_image(g, c->y);
  if (bias == NULL) {
    tn_cudnn_convolve(g, c->kind, &window, x, w, y);
    return;
  }
  int32_t b = tn_cudnn_channels(g, bias->dtype, bias->dims[0]);
  int32_t sum = tn_cudnn_virtual_like(g, TN_F32, y);
  tn_cudnn_convolve(g, c->kind, &window, x, w, sum);
  tn_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, sum, b, y);
}

static const tn_type *cudnn_conv2d_bias(const tn_match *m) { return m->n_in > 2 ? m->in[2] : NULL; }

static tn_status cudnn_conv2d_query(tn_query *q) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(q->match->nodes[0].node);
  const tn_operand_layout image = tn_cudnn_channels_last(), in[3] = {image, image, {0}};
  const tn_cudnn_offer offer = {.in = in,
                                .out = &image,
                                .prepared_bytes = sizeof(cudnn_conv2d_kernel),
                                .dtype = c.x->dtype,
                                .flops = tn_cudnn_conv_flops(&c),
                                .bytes = tn_match_bytes(q->match),
                                .exact = tn_cudnn_conv_is_exact(&c)};
  tn_cudnn_graph g;
  TN_TRY(tn_cudnn_conv_check(q, &c));
  cudnn_conv2d_describe(&c, cudnn_conv2d_bias(q->match), &g);
  return tn_cudnn_offer_engines(q, &g, &offer);
}

static tn_status cudnn_conv2d_prepare(tn_prepare *p, void **made) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(p->match->nodes[0].node);
  tn_cudnn_graph g;
  cudnn_conv2d_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->kind = c.kind;
  cudnn_conv2d_describe(&c, cudnn_conv2d_bias(p->match), &g);
  return tn_cudnn_request(p, &g, tn_cudnn_conv_is_exact(&c), p->variant, &keep->plan);
}

static void cudnn_conv2d_release(tn_env *env, void *made) {
  cudnn_conv2d_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_delete(env, k);
}

/* The operands of the gradients are dy and w, or x and dy. */
static tn_status cudnn_conv2d_launch(tn_launch *l) {
  static const int32_t numbers[][3] = {[TN_CUDNN_CONV_FORWARD] = {CONV_X, CONV_W, CONV_Y},
                                       [TN_CUDNN_CONV_GRAD_INPUT] = {CONV_Y, CONV_W, CONV_X},
                                       [TN_CUDNN_CONV_GRAD_WEIGHT] = {CONV_X, CONV_Y, CONV_W}};
  const cudnn_conv2d_kernel *k = l->prepared;
  const int32_t *number = numbers[k->kind];
  void *addresses[CONV_TENSORS] = {NULL};
  addresses[number[0]] = l->in[0].data;
  addresses[number[1]] = l->in[1].data;
  addresses[number[2]] = l->out[0].data;
  if (l->n_in > 2) addresses[CONV_BIAS] = l->in[2].data;
  return tn_cudnn_run(l, &k->plan, addresses);
}

TN_DEFINE_KERNEL(cuda, cudnn_conv2d, "cudnn_conv2d", "y = conv2d(x, w, bias?)", "convolutions by cuDNN",
                 TN_KERNEL_CALLBACKS(cudnn_conv2d));
TN_DEFINE_KERNEL(cuda, cudnn_conv2d_grad_input, "cudnn_conv2d_grad_input", "dx = conv2d_grad_input(dy, w)",
                 "the gradient of a convolution's input by cuDNN", TN_KERNEL_CALLBACKS(cudnn_conv2d));
TN_DEFINE_KERNEL(cuda, cudnn_conv2d_grad_weight, "cudnn_conv2d_grad_weight", "dw = conv2d_grad_weight(x, dy)",
                 "the gradient of a convolution's weights by cuDNN", TN_KERNEL_CALLBACKS(cudnn_conv2d));

/* backends/cuda/cudnn/kernels/conv2d_moments.c: a convolution and the statistics of its result, which cuDNN
 * sums while it writes the result, with the region behind them. */
#include "backends/cuda/cudnn/kernels/convolution.h"
#include "backends/cuda/cudnn/plan.h"
#include "backends/cuda/cudnn/kernels/statistics.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum {
  STATS_X = 0,
  STATS_W,
  STATS_Y,
  STATS_SUM,
  STATS_SQUARES,
  STATS_TENSORS,
  STATS_STATEMENTS = 2,
  STATS_OPERANDS = 2
};

typedef struct conv2d_moments_kernel {
  tn_cudnn_plan plan;
  tn_cudnn_statistics statistics;
  int64_t offset; /* of the sums in the workspace */
} conv2d_moments_kernel;

static void conv2d_moments_describe(const tn_cudnn_conv *c, tn_cudnn_graph *g) {
  const tn_cudnn_window window = tn_cudnn_window_of(c->attributes);
  *g = (tn_cudnn_graph){0};
  int32_t x = tn_cudnn_image(g, c->x), w = tn_cudnn_image(g, c->w), y = tn_cudnn_image(g, c->y);
  int32_t sum = tn_cudnn_channels(g, TN_F32, c->y->dims[1]);
  int32_t squares = tn_cudnn_channels(g, TN_F32, c->y->dims[1]);
  tn_cudnn_convolve(g, c->kind, &window, x, w, y);
  tn_cudnn_gen_stats(g, y, sum, squares);
}

static tn_status conv2d_moments_query(tn_query *q) {
  const tn_match *m = q->match;
  const tn_cudnn_conv c = tn_cudnn_conv_of(m->nodes[0].node);
  const tn_operand_layout image = tn_cudnn_channels_last(), in[STATS_OPERANDS] = {image, image};
  const tn_cudnn_offer offer = {.in = in,
                                .workspace_bytes = tn_cudnn_statistics_workspace(c.y->dims[1]),
                                .prepared_bytes = sizeof(conv2d_moments_kernel),
                                .dtype = c.x->dtype,
                                .flops = tn_cudnn_conv_flops(&c),
                                .bytes = tn_match_bytes(m),
                                .exact = tn_cudnn_conv_is_exact(&c)};
  tn_cudnn_graph g;
  TN_TRY(tn_cudnn_conv_check(q, &c));
  conv2d_moments_describe(&c, &g);
  return tn_cudnn_statistics_offer(q, STATS_STATEMENTS, STATS_OPERANDS, &g, &offer);
}

static tn_status conv2d_moments_prepare(tn_prepare *p, void **made) {
  const tn_cudnn_conv c = tn_cudnn_conv_of(p->match->nodes[0].node);
  tn_cudnn_graph g;
  conv2d_moments_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  conv2d_moments_describe(&c, &g);
  TN_TRY(tn_cudnn_request(p, &g, tn_cudnn_conv_is_exact(&c), p->variant, &keep->plan));
  keep->offset = tn_cudnn_plan_workspace(&keep->plan);
  return tn_cudnn_statistics_prepare(p, STATS_STATEMENTS, &keep->statistics);
}

static void conv2d_moments_release(tn_env *env, void *made) {
  conv2d_moments_kernel *k = made;
  tn_cudnn_withdraw(env, &k->plan);
  tn_cudnn_statistics_release(&k->statistics);
  tn_delete(env, k);
}

static tn_status conv2d_moments_launch(tn_launch *l) {
  const conv2d_moments_kernel *k = l->prepared;
  char *sums = tn_cudnn_workspace(l) + k->offset;
  int64_t row = tn_cudnn_statistics_workspace(k->statistics.channels) / 2;
  void *addresses[STATS_TENSORS] = {l->in[0].data, l->in[1].data, l->out[k->statistics.y].data, sums,
                                    sums + row};
  tn_status status = tn_cudnn_run(l, &k->plan, addresses);
  return status == TN_OK ? tn_cudnn_statistics_launch(l, &k->statistics, sums) : status;
}

#define STATEMENTS "c = conv2d(x, w); m, v = moments(c)"
TN_DEFINE_KERNEL(cuda, cudnn_conv2d_moments, "cudnn_conv2d_moments", STATEMENTS " -> c, m, v",
                 "a convolution by cuDNN, and the statistics of its channels",
                 TN_KERNEL_CALLBACKS(conv2d_moments));
TN_DEFINE_KERNEL(cuda, cudnn_conv2d_moments_epilogue, "cudnn_conv2d_moments_epilogue",
                 STATEMENTS "; pointwise+",
                 "a convolution by cuDNN, the statistics of its channels, and the region behind them",
                 TN_KERNEL_CALLBACKS(conv2d_moments));

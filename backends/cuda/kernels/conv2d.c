/* backends/cuda/kernels/conv2d.c: conv2d and its gradients without libraries, as products in tiles or, where
 * a group has few channels, element by element (device/conv2d_kernels.cuh). */
#include <stdio.h>

#include "backends/cuda/device/conv2d.cuh"
#include "backends/cuda/kernels/image_layouts.h"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

enum { FORWARD = 0, INPUT = 1, WEIGHT = 2 };
enum {
  FEW_ROWS = 4,      /* rows of a product that are computed element by element */
  FEW_ELEMENTS = 64, /* of the gradient of the weight in a group */
  LEAST_SPLIT = 256, /* terms of a part of a sum */
  MOST_SPLITS = 256,
  FEW_PROCESSORS = 16 /* assumed where the device does not say */
};

typedef struct conv2d_plan {
  int32_t mode;
  bool direct;
  int64_t rows, columns, terms; /* of the products of a group, or of a phase */
  int64_t blocks;
  struct conv_args args;
} conv2d_plan;

typedef struct conv2d_kernel {
  tn_cuda_function product, combine;
  conv2d_plan plan;
} conv2d_kernel;

/* ---- shapes ---- */

static int32_t conv2d_gcd(int32_t a, int32_t b) { return b == 0 ? a : conv2d_gcd(b, a % b); }

static struct conv_strides conv2d_strides(const tn_type *t, int32_t how) {
  int64_t c = t->dims[1], h = t->dims[2], w = t->dims[3];
  if (how == TN_CUDA_ROW_MAJOR) return (struct conv_strides){c * h * w, h * w, w, 1};
  return (struct conv_strides){c * h * w, 1, w * c, c};
}

/* The types of x, the weight and y: two operands and the result. */
typedef struct conv2d_types {
  const tn_type *x, *weight, *y;
} conv2d_types;

static conv2d_types conv2d_types_of(const tn_match *m, int32_t mode) {
  if (mode == FORWARD) return (conv2d_types){m->in[0], m->in[1], m->out[0]};
  if (mode == INPUT) return (conv2d_types){m->out[0], m->in[1], m->in[0]};
  return (conv2d_types){m->in[0], m->out[0], m->in[1]};
}

static struct conv_axis conv2d_axis(const tn_conv2d_attributes *a, int32_t i, const conv2d_types *t,
                                    int32_t mode) {
  struct conv_axis axis = {.x = (int)t->x->dims[2 + i],
                           .y = (int)t->y->dims[2 + i],
                           .kernel = (int)t->weight->dims[2 + i],
                           .stride = (int)a->stride.v[i],
                           .padding = (int)a->padding.v[i],
                           .dilation = (int)a->dilation.v[i],
                           .phases = 1};
  axis.tap_step = axis.stride / conv2d_gcd(axis.stride, axis.dilation);
  if (mode == INPUT) axis.phases = axis.stride < axis.x ? axis.stride : axis.x;
  return axis;
}

/* Positions and numbers of terms are 32 bits wide on the device. */
static tn_status conv2d_check(tn_query *q, const conv2d_types *t) {
  const tn_conv2d_attributes *a = q->match->nodes[0].node->attributes;
  double pixels = (double)t->x->dims[0] * (double)t->y->dims[2] * (double)t->y->dims[3];
  double taps = (double)t->weight->dims[2] * (double)t->weight->dims[3];
  bool fits = pixels <= INT32_MAX && taps * (double)(t->weight->dims[0] + t->weight->dims[1]) <= INT32_MAX;
  for (int32_t i = 0; i < 2; i++) {
    double size = (double)t->x->dims[2 + i], steps = (double)t->y->dims[2 + i] * (double)a->stride.v[i];
    fits = fits && (size > steps ? size : steps) + (double)a->padding.v[i] +
                           (double)t->weight->dims[2 + i] * (double)a->dilation.v[i] +
                           (double)a->stride.v[i] <
                       CONV_PLACES;
  }
  if (fits) return TN_OK;
  return tn_fail(
      q, TN_EUNSUPPORTED, "shape",
      "images have more than 2^27 rows or columns, or sums and images more than 2^31 terms and pixels");
}

/* ---- the plan ---- */

static void conv2d_set_product(conv2d_plan *p) {
  const struct conv_args *a = &p->args;
  const struct conv_axis *h = &a->axis[0], *w = &a->axis[1];
  int64_t taps = (int64_t)h->kernel * w->kernel;
  p->rows = p->mode == INPUT ? a->c : a->o;
  if (p->mode == WEIGHT) {
    p->columns = a->c * taps;
    p->terms = a->batch * h->y * w->y;
  } else if (p->mode == FORWARD) {
    p->columns = a->batch * h->y * w->y;
    p->terms = a->c * taps;
  } else { /* the first phase has the most pixels */
    p->columns = a->batch * divide_up(h->x, h->stride) * divide_up(w->x, w->stride);
    p->terms = a->o * taps;
  }
}

/* Sums are split where there are too few blocks for two on each multiprocessor. */
static void conv2d_set_splits(conv2d_plan *p, int32_t processors) {
  struct conv_args *a = &p->args;
  int64_t wanted = divide_up(2 * (int64_t)(processors > 0 ? processors : FEW_PROCESSORS), p->blocks);
  int64_t most = p->terms / LEAST_SPLIT;
  int64_t splits = wanted < most ? wanted : most;
  if (splits > MOST_SPLITS) splits = MOST_SPLITS;
  if (splits < 1) splits = 1;
  int64_t split = round_up(divide_up(p->terms, splits), CONV_DEPTH);
  a->split = (int)split;
  a->splits = (int)(split > 0 ? divide_up(p->terms, split) : 1);
  p->blocks *= a->splits;
}

static void conv2d_set_blocks(conv2d_plan *p, int32_t processors) {
  struct conv_args *a = &p->args;
  bool few = p->mode == WEIGHT ? p->rows * p->columns <= FEW_ELEMENTS : p->rows <= FEW_ROWS;
  int64_t height = few ? 1 : CONV_SIZE, width = !few ? CONV_SIZE : p->mode == WEIGHT ? 1 : CONV_THREADS;
  p->direct = few;
  a->row_tiles = (unsigned)divide_up(p->rows, height);
  a->column_tiles = (unsigned)divide_up(p->columns, width);
  p->blocks = (int64_t)a->row_tiles * a->column_tiles * a->groups * a->axis[0].phases * a->axis[1].phases;
  a->splits = 1;
  if (p->mode == WEIGHT && p->blocks > 0) conv2d_set_splits(p, processors);
}

static conv2d_plan conv2d_plan_of(const tn_match *m, int32_t mode, int32_t how, int32_t processors) {
  const tn_conv2d_attributes *attributes = m->nodes[0].node->attributes;
  const conv2d_types t = conv2d_types_of(m, mode);
  conv2d_plan p = {.mode = mode};
  p.args = (struct conv_args){.x_stride = conv2d_strides(t.x, how),
                              .y_stride = conv2d_strides(t.y, how),
                              .weight_stride = conv2d_strides(t.weight, how),
                              .batch = t.x->dims[0],
                              .groups = (int)attributes->groups,
                              .c = (int)t.weight->dims[1],
                              .o = (int)(t.weight->dims[0] / attributes->groups),
                              .channels_inner = how == TN_CUDA_CHANNELS_LAST,
                              .count = tn_type_count(m->out[0])};
  for (int32_t i = 0; i < 2; i++) p.args.axis[i] = conv2d_axis(attributes, i, &t, mode);
  conv2d_set_product(&p);
  if (p.args.count > 0) conv2d_set_blocks(&p, processors);
  return p;
}

/* ---- query ---- */

static int64_t conv2d_sum_bytes(int32_t dtype) { return dtype == TN_F64 ? 8 : 4; }

static double cuda_conv2d_cost(const tn_query *q, const conv2d_plan *p) {
  double flops = 2 * (double)p->rows * (double)p->columns * (double)p->terms * p->args.groups;
  double rate = q->device->vector_flops_per_s * (q->match->in[0]->dtype == TN_F64 ? 0.5 : 1);
  return tn_cuda_estimate_s(q->device, TN_CUDA_OWN_PRODUCT, tn_match_bytes(q->match), flops, rate);
}

static void conv2d_offer_layout(tn_query *q, int32_t mode, int32_t how) {
  const conv2d_plan p = conv2d_plan_of(q->match, mode, how, q->device->processors);
  tn_operand_layout layout = tn_cuda_image_layout(how), in[3] = {layout, layout, {0}};
  int64_t sums = p.args.splits > 1 ? p.args.splits * p.args.count : 0;
  tn_offer(q, (tn_variant){.id = how,
                           .name = how == TN_CUDA_ROW_MAJOR ? "planes" : "channels last",
                           .in = in,
                           .out = &layout,
                           .workspace_bytes = sums * conv2d_sum_bytes(q->match->out[0]->dtype),
                           .prepared_bytes = sizeof(conv2d_kernel),
                           .cost_s = cuda_conv2d_cost(q, &p)});
}

static tn_status cuda_conv2d_offer(tn_query *q, int32_t mode) {
  const conv2d_types t = conv2d_types_of(q->match, mode);
  TN_TRY(conv2d_check(q, &t));
  conv2d_offer_layout(q, mode, TN_CUDA_ROW_MAJOR);
  conv2d_offer_layout(q, mode, TN_CUDA_CHANNELS_LAST);
  return TN_OK;
}

static tn_status cuda_conv2d_query(tn_query *q) { return cuda_conv2d_offer(q, FORWARD); }
static tn_status cuda_conv2d_input_query(tn_query *q) { return cuda_conv2d_offer(q, INPUT); }
static tn_status cuda_conv2d_weight_query(tn_query *q) { return cuda_conv2d_offer(q, WEIGHT); }

/* ---- prepare ---- */

static tn_status conv2d_request(tn_prepare *p, conv2d_kernel *keep) {
  static const char *const modes[] = {"forward", "input", "weight"};
  char file[TN_CUDA_FUNCTION_NAME];
  const conv2d_plan *plan = &keep->plan;
  snprintf(file, sizeof file, "conv2d_%s.cu", tn_dtype_name(p->match->in[0]->dtype));
  TN_TRY(tn_cuda_request(p, &keep->product, file, "conv_%s_%s", modes[plan->mode],
                         plan->direct                      ? "direct"
                         : p->variant == TN_CUDA_ROW_MAJOR ? "planes"
                                                           : "channels"));
  if (plan->args.splits > 1) TN_TRY(tn_cuda_request(p, &keep->combine, file, "conv_combine"));
  return TN_OK;
}

static tn_status conv2d_prepare_mode(tn_prepare *p, int32_t mode, void **made) {
  conv2d_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  keep->plan = conv2d_plan_of(p->match, mode, p->variant, p->device->processors);
  if (keep->plan.args.count == 0) return TN_OK;
  if (keep->plan.blocks > INT32_MAX)
    return tn_fail(p, TN_EUNSUPPORTED, "shape", "%lld blocks, expected less than 2^31",
                   (long long)keep->plan.blocks);
  return conv2d_request(p, keep);
}

static tn_status cuda_conv2d_prepare(tn_prepare *p, void **made) {
  return conv2d_prepare_mode(p, FORWARD, made);
}
static tn_status cuda_conv2d_input_prepare(tn_prepare *p, void **made) {
  return conv2d_prepare_mode(p, INPUT, made);
}
static tn_status cuda_conv2d_weight_prepare(tn_prepare *p, void **made) {
  return conv2d_prepare_mode(p, WEIGHT, made);
}

static void cuda_conv2d_release(tn_env *env, void *made) {
  conv2d_kernel *k = made;
  tn_cuda_withdraw(&k->product);
  tn_cuda_withdraw(&k->combine);
  tn_delete(env, k);
}

/* ---- launch ---- */

static void conv2d_set_operands(const tn_launch *l, int32_t mode, struct conv_args *a) {
  if (mode != WEIGHT) a->weight = l->in[1].data;
  if (mode == FORWARD && l->n_in > 2) a->bias = l->in[2].data;
  if (mode == INPUT)
    a->y = l->in[0].data;
  else
    a->x = l->in[0].data;
  if (mode == WEIGHT) a->y = l->in[1].data;
  a->to = l->out[0].data;
  a->parts = l->workspace;
}

static tn_status cuda_conv2d_launch(tn_launch *l) {
  const conv2d_kernel *k = l->prepared;
  struct conv_args a = k->plan.args;
  const tn_cuda_grid grid = {.blocks = {(uint32_t)k->plan.blocks, 1, 1}, .threads = {CONV_THREADS, 1, 1}};
  if (a.count == 0) return TN_OK;
  conv2d_set_operands(l, k->plan.mode, &a);
  tn_status status = tn_cuda_launch(l, &k->product, &grid, &a, sizeof a);
  if (status != TN_OK || a.splits == 1) return status;
  const tn_cuda_grid sums = tn_cuda_grid_of(a.count, CONV_THREADS, TN_CUDA_BLOCKS);
  return tn_cuda_launch(l, &k->combine, &sums, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, conv2d, "cuda_conv2d", "y = conv2d(x, w, bias?)",
                 "products of tiles that gather the patches", TN_KERNEL_CALLBACKS(cuda_conv2d));
TN_DEFINE_KERNEL(cuda, conv2d_grad_input, "cuda_conv2d_grad_input", "dx = conv2d_grad_input(dy, w)",
                 "products of tiles for each phase of the stride", .query = cuda_conv2d_input_query,
                 .prepare = cuda_conv2d_input_prepare, .release = cuda_conv2d_release,
                 .launch = cuda_conv2d_launch);
TN_DEFINE_KERNEL(cuda, conv2d_grad_weight, "cuda_conv2d_grad_weight", "dw = conv2d_grad_weight(x, dy)",
                 "products of tiles over the pixels of all images, in parts",
                 .query = cuda_conv2d_weight_query, .prepare = cuda_conv2d_weight_prepare,
                 .release = cuda_conv2d_release, .launch = cuda_conv2d_launch);

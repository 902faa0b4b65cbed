/* backends/onednn/kernels/conv_small/conv_small.c: query and prepare of small convolutions and their
 * gradients, whose channels do not fill the blocks of a library, such as those of LeNet. */
#include "backends/onednn/kernels/conv_small/conv_small.h"
#include "backends/shared/integer_math.h"

#include "backends/shared/constants.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum {
  FULL = 16,              /* channels of a block of the library's layouts */
  PLANES_BYTES = 1 << 18, /* of a picture, which stays in the second-level cache */
  DEPTH = 4096,           /* of a sum in f32 */
  FORK_MACS = 1 << 21,    /* a smaller convolution runs on one thread */
  CHUNK_MACS = 3 << 18,
  CHUNKS = 16,
  PICTURES = 12 /* of a gradient, whose planes are in the scratch at a time */
};

/* ---- geometry ------------------------------------------------------------------------------------ */

/* dx is a convolution of dy with the filters rotated by 180 degrees: it starts where the last tap of a filter
 * meets the first row of dy. */
static void conv_small_set_padding(tn_conv_small_shape *g, const tn_conv2d_attributes *a) {
  int64_t reach[2] = {(g->kh - 1) * g->dilation[0], (g->kw - 1) * g->dilation[1]};
  bool rotated = g->op == TN_SMALL_GRAD_INPUT;
  g->top = rotated ? reach[0] - a->padding.v[0] : a->padding.v[0];
  g->left = rotated ? reach[1] - a->padding.v[1] : a->padding.v[1];
  g->height = g->oh + reach[0];
  g->width = g->ow + reach[1];
}

static void conv_small_set_chunks(tn_conv_small_shape *g) {
  double macs = (double)g->pictures * (double)g->filters * (double)g->depth * (double)(g->oh * g->ow);
  int64_t wanted = macs < FORK_MACS ? 1 : macs / CHUNK_MACS >= CHUNKS ? CHUNKS : (int64_t)(macs / CHUNK_MACS);
  g->chunks = least(wanted + (wanted > 1) * (wanted % 2), g->pictures);
  g->block = least(PICTURES, divide_up(g->pictures, most(g->chunks, 1)));
}

static int64_t conv_small_lanes(int32_t isa) {
  return isa >= TN_ISA_AVX512 ? 16 : isa >= TN_ISA_AVX2 ? 8 : 4;
}

/* The share of used lanes where n items fill vectors. */
static double conv_small_fill(int64_t n, int64_t lanes) {
  return (double)n / (double)(divide_up(n, lanes) * lanes);
}

static void conv_small_set_lanes(tn_conv_small_shape *g, int64_t lanes) {
  bool wide = g->dilation[1] == 1 && conv_small_fill(g->filters, lanes) > conv_small_fill(g->ow, lanes);
  g->wide = wide ? divide_up(g->filters, lanes) * lanes : 0;
}

static tn_conv_small_shape conv_small_shape(const tn_match *m, int32_t isa, int32_t op) {
  const tn_conv2d_attributes *a = m->nodes[0].node->attributes;
  const tn_type *from = m->in[0], *w = op >= TN_SMALL_GRAD_WEIGHT ? m->out[0] : m->in[1],
                *to = op >= TN_SMALL_GRAD_WEIGHT ? m->in[1] : m->out[0];
  tn_conv_small_shape g = {.op = op,
                           .pictures = from->dims[0],
                           .channels = from->dims[1],
                           .filters = to->dims[1],
                           .h = from->dims[2],
                           .w = from->dims[3],
                           .oh = to->dims[2],
                           .ow = to->dims[3],
                           .kh = w->dims[2],
                           .kw = w->dims[3],
                           .dilation = {a->dilation.v[0], a->dilation.v[1]}};
  g.depth = g.channels * g.kh * g.kw;
  conv_small_set_padding(&g, a);
  conv_small_set_chunks(&g);
  conv_small_set_lanes(&g, conv_small_lanes(isa));
  return g;
}

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_status conv_small_check(tn_query *q, const tn_conv_small_shape *g) {
  const tn_conv2d_attributes *a = q->match->nodes[0].node->attributes;
  int32_t dtype = q->match->in[0]->dtype;
  if (dtype != TN_F32)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f32", tn_dtype_name(dtype));
  if (a->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  if (a->groups != 1 || a->stride.v[0] != 1 || a->stride.v[1] != 1)
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "%lld groups and stride %lld x %lld, expected one group and stride 1",
                   (long long)a->groups, (long long)a->stride.v[0], (long long)a->stride.v[1]);
  if (g->pictures * g->filters * g->depth * g->oh * g->ow == 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the convolution is empty");
#ifdef TN_HAVE_DNNL
  if (g->channels % FULL == 0 && g->filters % FULL == 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%lld and %lld channels fill the blocks of oneDNN",
                   (long long)g->channels, (long long)g->filters);
#endif
  if (tn_conv_small_planes(g) * (int64_t)sizeof(float) > PLANES_BYTES || g->depth > DEPTH)
    return tn_fail(
        q, TN_EUNSUPPORTED, NULL,
        "pictures of %lld x %lld with %lld channels are not small: more than %d KiB, or sums of more "
        "than %d products",
        (long long)g->height, (long long)g->width, (long long)g->channels, PLANES_BYTES / 1024, DEPTH);
  return TN_OK;
}

/* The rate is multiplications a second of one thread, without the unused lanes of the last vector of each
 * row. */
static double conv_small_cost_s(const tn_conv_small_shape *g, int32_t isa,
                                const tn_device_properties *device) {
  int64_t lanes = conv_small_lanes(isa);
  double rate = tn_thread_speed(device) * 3e9 * (double)lanes *
                (g->wide > 0 ? conv_small_fill(g->filters, lanes) : conv_small_fill(g->ow, lanes));
  double macs = (double)g->pictures * (double)g->filters * (double)g->depth * (double)(g->oh * g->ow);
  return device->launch_s + macs / (rate * (double)most(least(device->threads, g->chunks), 1));
}

static tn_status conv_small_offer(tn_query *q, int32_t op) {
  int32_t isa = tn_onednn_isa_of(q->backend);
  tn_conv_small_shape g = conv_small_shape(q->match, isa, op);
  TN_TRY(conv_small_check(q, &g));
  int64_t keep = (int64_t)sizeof(tn_conv_small_kernel) +
                 g.oh * divide_up(g.ow, 4) * (int64_t)sizeof(tn_conv_segment) +
                 g.depth * (int64_t)sizeof(int32_t);
  return tn_offer(
      q, (tn_variant){.name = g.wide > 0 ? "filters" : "rows",
                      .workspace_bytes =
                          (tn_conv_small_shared_floats(&g) + g.chunks * tn_conv_small_chunk_floats(&g)) * 4,
                      .prepared_bytes = keep,
                      .cost_s = conv_small_cost_s(&g, isa, q->device)});
}

static tn_status onednn_conv_small_query_forward(tn_query *q) {
  return conv_small_offer(q, TN_SMALL_FORWARD);
}
static tn_status onednn_conv_small_query_grad_input(tn_query *q) {
  return conv_small_offer(q, TN_SMALL_GRAD_INPUT);
}
static tn_status onednn_conv_small_query_grad_weight(tn_query *q) {
  return conv_small_offer(q, TN_SMALL_GRAD_WEIGHT);
}

/* y = conv2d(x, w, bias?); z = maximum(y, c) */
static tn_status onednn_conv_small_query_relu(tn_query *q) {
  const tn_match *m = q->match;
  if (!tn_operand_is_zero(m, 3) || !tn_type_same_dims(m->out[0], &m->nodes[0].node->out[0]))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the maximum is no ReLU: its other operand is not zero");
  return conv_small_offer(q, TN_SMALL_RELU);
}

/* w = conv2d_grad_weight(x, d); s = reduce_sum(d) -> w, s */
static tn_status onednn_conv_small_query_grad_bias(tn_query *q) {
  const tn_reduce_attributes *a = q->match->nodes[1].node->attributes;
  bool summed[4] = {false};
  for (int64_t i = 0; i < a->axes.n; i++) summed[(a->axes.v[i] + 4) % 4] = true;
  if (!summed[0] || summed[1] || !summed[2] || !summed[3])
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sum is not the gradient of a bias");
  return conv_small_offer(q, TN_SMALL_GRAD_BIAS);
}

static void onednn_conv_small_release(tn_env *env, void *plan) {
  tn_conv_small_kernel *p = plan;
  if (p == NULL) return;
  tn_delete(env, p->segments);
  tn_delete(env, p->offsets);
  tn_delete(env, p);
}

/* The taps whose rows meet rows of the picture, and not only padding, at row y of the planes. */
static void conv_small_find_taps(const tn_conv_small_shape *g, int64_t y, tn_conv_segment *s) {
  int64_t reach = g->dilation[0], first = 0, end = g->kh;
  while (first < end && y + first * reach < g->top) first++;
  while (end > first && y + (end - 1) * reach >= g->top + g->h) end--;
  s->first = (int32_t)(first * g->kw);
  s->end = (int32_t)(end * g->kw);
}

static void conv_small_fill_segments(tn_conv_small_kernel *p) {
  int64_t lanes = p->rows->lanes, n = 0;
  for (int64_t y = 0; y < p->s.oh; y++)
    for (int64_t x = 0; x < p->s.ow; x += lanes) {
      p->segments[n] = (tn_conv_segment){.x = (int32_t)(y * p->s.width + x),
                                         .y = (int32_t)(y * p->s.ow + x),
                                         .lanes = (int32_t)least(lanes, p->s.ow - x)};
      conv_small_find_taps(&p->s, y, &p->segments[n++]);
    }
}

static void conv_small_fill_offsets(tn_conv_small_kernel *p) {
  const tn_conv_small_shape *g = &p->s;
  for (int64_t i = 0; i < g->depth; i++) {
    int64_t column = i % g->kw, row = i / g->kw % g->kh, channel = i / g->kw / g->kh;
    p->offsets[i] =
        (int32_t)((channel * g->height + row * g->dilation[0]) * g->width + column * g->dilation[1]);
  }
}

static tn_status onednn_conv_small_prepare(tn_prepare *p, void **made, int32_t op) {
  tn_conv_small_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  int32_t isa = tn_onednn_isa_of(p->backend);
  kernel->s = conv_small_shape(p->match, isa, op);
  kernel->rows = TN_LOOPS_PICK_AT(tn_loops_conv_small, isa);
  kernel->lanes = TN_LOOPS_PICK_AT(tn_loops_conv_lanes, isa);
  kernel->transpose = TN_LOOPS_PICK_AT(tn_loops_transpose, isa);
  kernel->sums = TN_LOOPS_PICK_AT(tn_loops_gemm, isa);
  kernel->n_segments = kernel->s.oh * divide_up(kernel->s.ow, kernel->rows->lanes);
  kernel->segments = tn_new(p, (size_t)kernel->n_segments * sizeof *kernel->segments);
  kernel->offsets = tn_new(p, (size_t)kernel->s.depth * sizeof *kernel->offsets);
  if (kernel->segments == NULL || kernel->offsets == NULL) {
    onednn_conv_small_release(&p->env, kernel);
    return TN_ENOMEM;
  }
  conv_small_fill_segments(kernel);
  conv_small_fill_offsets(kernel);
  *made = kernel;
  return TN_OK;
}
static tn_status onednn_conv_small_prepare_forward(tn_prepare *p, void **made) {
  return onednn_conv_small_prepare(p, made, TN_SMALL_FORWARD);
}
static tn_status onednn_conv_small_prepare_relu(tn_prepare *p, void **made) {
  return onednn_conv_small_prepare(p, made, TN_SMALL_RELU);
}
static tn_status onednn_conv_small_prepare_grad_input(tn_prepare *p, void **made) {
  return onednn_conv_small_prepare(p, made, TN_SMALL_GRAD_INPUT);
}
static tn_status onednn_conv_small_prepare_grad_weight(tn_prepare *p, void **made) {
  return onednn_conv_small_prepare(p, made, TN_SMALL_GRAD_WEIGHT);
}
static tn_status onednn_conv_small_prepare_grad_bias(tn_prepare *p, void **made) {
  return onednn_conv_small_prepare(p, made, TN_SMALL_GRAD_BIAS);
}

TN_DEFINE_KERNEL(onednn, conv2d_small, "onednn_conv2d_small", "y = conv2d(x, w, bias?)",
                 "small convolution, vectorized along rows", .query = onednn_conv_small_query_forward,
                 .prepare = onednn_conv_small_prepare_forward, .release = onednn_conv_small_release,
                 .launch = tn_conv_small_launch);
TN_DEFINE_KERNEL(onednn, conv2d_small_relu, "onednn_conv2d_small_relu",
                 "y = conv2d(x, w, bias?); z = maximum(y, c)", "small convolution and the ReLU behind it",
                 .query = onednn_conv_small_query_relu, .prepare = onednn_conv_small_prepare_relu,
                 .release = onednn_conv_small_release, .launch = tn_conv_small_launch);
TN_DEFINE_KERNEL(onednn, conv2d_small_grad_input, "onednn_conv2d_small_grad_input",
                 "dx = conv2d_grad_input(dy, w)", "the gradient of a small convolution's input",
                 .query = onednn_conv_small_query_grad_input, .prepare = onednn_conv_small_prepare_grad_input,
                 .release = onednn_conv_small_release, .launch = tn_conv_small_launch);
TN_DEFINE_KERNEL(onednn, conv2d_small_grad_weight, "onednn_conv2d_small_grad_weight",
                 "dw = conv2d_grad_weight(x, dy)", "the gradient of a small convolution's weights",
                 .query = onednn_conv_small_query_grad_weight,
                 .prepare = onednn_conv_small_prepare_grad_weight, .release = onednn_conv_small_release,
                 .launch = tn_conv_small_launch_gradient);
TN_DEFINE_KERNEL(onednn, conv2d_small_grad_bias, "onednn_conv2d_small_grad_bias",
                 "w = conv2d_grad_weight(x, d); s = reduce_sum(d) -> w, s",
                 "the gradients of a small convolution's weights and bias",
                 .query = onednn_conv_small_query_grad_bias, .prepare = onednn_conv_small_prepare_grad_bias,
                 .release = onednn_conv_small_release, .launch = tn_conv_small_launch_gradient);

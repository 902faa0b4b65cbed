/* backends/onednn/kernels/conv_small/conv_small.c: small convolutions and their gradients, where no library's
 * blocks of channels fit: LeNet's, for one. */
#include "backends/onednn/kernels/conv_small/conv_small.h"
#include "backends/onednn/integer_math.h"

#include "backends/onednn/kernels/kernels.h"
#include "tenon/attributes.h"

enum {
  FULL = 16,              /* channels that fill a block of the library's layouts */
  PLANES_BYTES = 1 << 18, /* of a picture: it stays in the second-level cache */
  DEPTH = 4096,           /* of a sum in f32 */
  FORK_MACS = 1 << 21,    /* less is not worth a second thread */
  CHUNK_MACS = 3 << 18,
  CHUNKS = 16,
  PICTURES = 12 /* whose planes a gradient has at once */
};

/* ---- geometry ------------------------------------------------------------------------------------ */

/* dx is a convolution of dy with the filters turned around: it starts where the last tap of a filter meets
 * the first row that is there. */
static void set_padding(tn_small *g, const tn_conv2d_attributes *a) {
  int64_t reach[2] = {(g->kh - 1) * g->dilation[0], (g->kw - 1) * g->dilation[1]};
  bool turned = g->what == TN_SMALL_GRAD_INPUT;
  g->top = turned ? reach[0] - a->padding.v[0] : a->padding.v[0];
  g->left = turned ? reach[1] - a->padding.v[1] : a->padding.v[1];
  g->height = g->oh + reach[0];
  g->width = g->ow + reach[1];
}

static void set_chunks(tn_small *g) {
  double macs = (double)g->pictures * (double)g->filters * (double)g->depth * (double)(g->oh * g->ow);
  int64_t wanted = macs < FORK_MACS ? 1 : macs / CHUNK_MACS >= CHUNKS ? CHUNKS : (int64_t)(macs / CHUNK_MACS);
  g->chunks = least(wanted + (wanted > 1) * (wanted % 2), g->pictures);
  g->block = least(PICTURES, divide_up(g->pictures, most(g->chunks, 1)));
}

static int64_t lanes_of(int32_t isa) { return isa >= TN_ISA_AVX512 ? 16 : isa >= TN_ISA_AVX2 ? 8 : 4; }

/* The share of lanes in use when n things fill whole vectors. */
static double fill(int64_t n, int64_t lanes) { return (double)n / (double)(divide_up(n, lanes) * lanes); }

static void set_lanes(tn_small *g, int64_t lanes) {
  bool wide = g->dilation[1] == 1 && fill(g->filters, lanes) > fill(g->ow, lanes);
  g->wide = wide ? divide_up(g->filters, lanes) * lanes : 0;
}

static tn_small geometry_of(const tn_match *m, int32_t isa, int32_t what) {
  const tn_conv2d_attributes *a = m->nodes[0].node->attributes;
  const tn_type *from = m->in[0], *w = what >= TN_SMALL_GRAD_WEIGHT ? m->out[0] : m->in[1],
                *to = what >= TN_SMALL_GRAD_WEIGHT ? m->in[1] : m->out[0];
  tn_small g = {.what = what,
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
  set_padding(&g, a);
  set_chunks(&g);
  set_lanes(&g, lanes_of(isa));
  return g;
}

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_status check(tn_query *q, const tn_small *g) {
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
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "nothing to compute");
#ifdef TN_HAVE_DNNL
  if (g->channels % FULL == 0 && g->filters % FULL == 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%lld and %lld channels fill blocks, which oneDNN works on",
                   (long long)g->channels, (long long)g->filters);
#endif
  if (tn_small_planes(g) * (int64_t)sizeof(float) > PLANES_BYTES || g->depth > DEPTH)
    return tn_fail(
        q, TN_EUNSUPPORTED, NULL,
        "pictures of %lld x %lld with %lld channels are not small: more than %d KiB, or sums of more "
        "than %d products",
        (long long)g->height, (long long)g->width, (long long)g->channels, PLANES_BYTES / 1024, DEPTH);
  return TN_OK;
}

/* Multiplications a second of one thread, less what the last vector of each row wastes. */
static double cost_s(const tn_small *g, int32_t isa, int32_t threads) {
  int64_t lanes = lanes_of(isa);
  double rate = 3e9 * (double)lanes * (g->wide > 0 ? fill(g->filters, lanes) : fill(g->ow, lanes));
  double macs = (double)g->pictures * (double)g->filters * (double)g->depth * (double)(g->oh * g->ow);
  return 1e-6 + macs / (rate * (double)most(least(threads, g->chunks), 1));
}

static tn_status offer(tn_query *q, int32_t what) {
  int32_t isa = tn_onednn_isa_of(q->backend);
  tn_small g = geometry_of(q->match, isa, what);
  tn_status status = check(q, &g);
  if (status != TN_OK) return status;
  int64_t keep = (int64_t)sizeof(tn_small_plan) +
                 g.oh * divide_up(g.ow, 4) * (int64_t)sizeof(tn_conv_segment) +
                 g.depth * (int64_t)sizeof(int32_t);
  const tn_variant variant = {.struct_size = (uint32_t)sizeof variant,
                              .name = g.wide > 0 ? "filters" : "rows",
                              .workspace_bytes =
                                  (tn_small_shared_floats(&g) + g.chunks * tn_small_chunk_floats(&g)) * 4,
                              .prepared_bytes = keep,
                              .cost_s = cost_s(&g, isa, q->device->threads),
                              .deterministic = 1,
                              .capturable = 1};
  tn_add_variant(q, &variant);
  return TN_OK;
}

static tn_status query_forward(tn_query *q) { return offer(q, TN_SMALL_FORWARD); }
static tn_status query_grad_input(tn_query *q) { return offer(q, TN_SMALL_GRAD_INPUT); }
static tn_status query_grad_weight(tn_query *q) { return offer(q, TN_SMALL_GRAD_WEIGHT); }

/* y = conv2d(x, w, bias?); z = maximum(y, c) */
static tn_status query_relu(tn_query *q) {
  const tn_match *m = q->match;
  if (tn_type_count(m->in[3]) != 1 || m->in[3]->dtype != m->out[0]->dtype ||
      !tn_type_same_dims(m->out[0], &m->nodes[0].node->out[0]))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the other operand of the maximum is no single number");
  return offer(q, TN_SMALL_RELU);
}

/* w = conv2d_grad_weight(x, d); s = reduce_sum(d) -> w, s */
static tn_status query_grad_bias(tn_query *q) {
  const tn_reduce_attributes *a = q->match->nodes[1].node->attributes;
  bool summed[4] = {false};
  for (int64_t i = 0; i < a->axes.n; i++) summed[(a->axes.v[i] + 4) % 4] = true;
  if (!summed[0] || summed[1] || !summed[2] || !summed[3])
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sum is not the gradient of a bias");
  return offer(q, TN_SMALL_GRAD_BIAS);
}

static void release(tn_env *env, void *plan) {
  tn_small_plan *p = plan;
  if (p == NULL) return;
  tn_delete(env, p->segments);
  tn_delete(env, p->offsets);
  tn_delete(env, p);
}

/* The rows of a filter that meet rows of the picture when it is applied to row y of its planes. */
static void find_taps(const tn_small *g, int64_t y, tn_conv_segment *s) {
  int64_t reach = g->dilation[0], first = 0, end = g->kh;
  while (first < end && y + first * reach < g->top) first++;
  while (end > first && y + (end - 1) * reach >= g->top + g->h) end--;
  s->first = (int32_t)(first * g->kw);
  s->end = (int32_t)(end * g->kw);
}

static void fill_segments(tn_small_plan *p) {
  int64_t lanes = p->rows->lanes, n = 0;
  for (int64_t y = 0; y < p->s.oh; y++)
    for (int64_t x = 0; x < p->s.ow; x += lanes) {
      p->segments[n] = (tn_conv_segment){.x = (int32_t)(y * p->s.width + x),
                                         .y = (int32_t)(y * p->s.ow + x),
                                         .lanes = (int32_t)least(lanes, p->s.ow - x)};
      find_taps(&p->s, y, &p->segments[n++]);
    }
}

static void fill_offsets(tn_small_plan *p) {
  const tn_small *g = &p->s;
  for (int64_t i = 0; i < g->depth; i++) {
    int64_t column = i % g->kw, row = i / g->kw % g->kh, channel = i / g->kw / g->kh;
    p->offsets[i] =
        (int32_t)((channel * g->height + row * g->dilation[0]) * g->width + column * g->dilation[1]);
  }
}

static tn_status prepare(tn_prepare *p, void **plan, int32_t what) {
  tn_small_plan *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  int32_t isa = tn_onednn_isa_of(p->backend);
  made->s = geometry_of(p->match, isa, what);
  made->rows = TN_LOOPS_PICK_AT(tn_loops_conv_small, isa);
  made->lanes = TN_LOOPS_PICK_AT(tn_loops_conv_lanes, isa);
  made->turn = TN_LOOPS_PICK_AT(tn_loops_turn, isa);
  made->sums = TN_LOOPS_PICK_AT(tn_loops_gemm, isa);
  made->n_segments = made->s.oh * divide_up(made->s.ow, made->rows->lanes);
  made->segments = tn_new(p, (size_t)made->n_segments * sizeof *made->segments);
  made->offsets = tn_new(p, (size_t)made->s.depth * sizeof *made->offsets);
  if (made->segments == NULL || made->offsets == NULL) {
    release(&p->env, made);
    return TN_ENOMEM;
  }
  fill_segments(made);
  fill_offsets(made);
  *plan = made;
  return TN_OK;
}
static tn_status prepare_forward(tn_prepare *p, void **plan) { return prepare(p, plan, TN_SMALL_FORWARD); }
static tn_status prepare_relu(tn_prepare *p, void **plan) { return prepare(p, plan, TN_SMALL_RELU); }
static tn_status prepare_grad_input(tn_prepare *p, void **plan) {
  return prepare(p, plan, TN_SMALL_GRAD_INPUT);
}
static tn_status prepare_grad_weight(tn_prepare *p, void **plan) {
  return prepare(p, plan, TN_SMALL_GRAD_WEIGHT);
}
static tn_status prepare_grad_bias(tn_prepare *p, void **plan) {
  return prepare(p, plan, TN_SMALL_GRAD_BIAS);
}

#define CONV(name, text, way, run, doc)                                                                      \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, doc),     \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query_##way,                                                  \
                                      .prepare = prepare_##way,                                              \
                                      .release = release,                                                    \
                                      .launch = run}

CONV(conv2d_small, "y = conv2d(x, w, bias?)", forward, tn_small_launch,
     "small convolution, vectorized along rows");
CONV(conv2d_small_relu, "y = conv2d(x, w, bias?); z = maximum(y, c)", relu, tn_small_launch,
     "small convolution and the ReLU behind it");
CONV(conv2d_small_grad_input, "dx = conv2d_grad_input(dy, w)", grad_input, tn_small_launch,
     "the gradient of a small convolution's input");
CONV(conv2d_small_grad_weight, "dw = conv2d_grad_weight(x, dy)", grad_weight, tn_small_launch_gradient,
     "the gradient of a small convolution's weights");
CONV(conv2d_small_grad_bias, "w = conv2d_grad_weight(x, d); s = reduce_sum(d) -> w, s", grad_bias,
     tn_small_launch_gradient, "the gradients of a small convolution's weights and bias");

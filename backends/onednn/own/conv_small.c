/* backends/onednn/own/conv_small.c: small convolutions and their gradients, where no library's blocks of
 * channels fit: LeNet's, for one. */
#include "own/conv_small.h"

#include <string.h>

#include "kernels.h"
#include "tenon/attributes.h"

enum {
  PLANES_BYTES = 1 << 18, /* of a picture: it stays in the second-level cache */
  DEPTH = 4096,           /* of a sum in f32 */
  CHUNK_MACS = 1 << 20,   /* less is not worth a second thread */
  CHUNKS = 16,
  PICTURES = 12 /* whose planes a gradient has at once */
};

enum { FORWARD = 0, RELU = 1, GRAD_INPUT = 2, GRAD_WEIGHT = 3, GRAD_BIAS = 4 };

/* The operand that is padded, [pictures, channels, h, w], and the result or the other operand beside it,
 * [pictures, filters, oh, ow]. */
typedef struct geometry {
  int64_t pictures, channels, filters, h, w, oh, ow;
  int64_t kh, kw, top, left, height, width; /* of planes with their padding */
  int64_t dilation[2];
  int64_t depth;
  int64_t chunks, block; /* pictures of a gradient at once */
  int32_t what;
} geometry;

typedef struct conv_plan {
  geometry g;
  const tn_conv_small_loops *loops;
  tn_conv_segment *segments;
  int64_t n_segments;
  int32_t *offsets;
} conv_plan;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- geometry ------------------------------------------------------------------------------------ */

/* dx is a convolution of dy with the filters turned around: it starts where the last tap of a filter meets
 * the first row that is there. */
static void set_padding(geometry *g, const tn_conv2d_attributes *a) {
  int64_t reach[2] = {(g->kh - 1) * g->dilation[0], (g->kw - 1) * g->dilation[1]};
  bool turned = g->what == GRAD_INPUT;
  g->top = turned ? reach[0] - a->padding.v[0] : a->padding.v[0];
  g->left = turned ? reach[1] - a->padding.v[1] : a->padding.v[1];
  g->height = g->oh + reach[0];
  g->width = g->ow + reach[1];
}

static void set_chunks(geometry *g) {
  double macs = (double)g->pictures * (double)g->filters * (double)g->depth * (double)(g->oh * g->ow);
  int64_t wanted = macs < 2.0 * CHUNK_MACS ? 1 : (int64_t)(macs / CHUNK_MACS);
  g->chunks = least(least(wanted, CHUNKS), g->pictures);
  g->block = least(PICTURES, divide_up(g->pictures, most(g->chunks, 1)));
}

static geometry geometry_of(const tn_match *m, int32_t what) {
  const tn_conv2d_attributes *a = m->nodes[0].node.attributes;
  const tn_type *from = m->in[0], *w = what >= GRAD_WEIGHT ? m->out[0] : m->in[1],
                *to = what >= GRAD_WEIGHT ? m->in[1] : m->out[0];
  geometry g = {.what = what,
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
  return g;
}

static int64_t plane_floats(const geometry *g) { return g->channels * g->height * g->width; }

/* Scratch of a chunk: planes, and the chunk's own sums of a gradient. */
static int64_t chunk_floats(const geometry *g) {
  int64_t planes = plane_floats(g) * (g->what >= GRAD_WEIGHT ? g->block : 1) + TN_CONV_LANES;
  int64_t sums = g->what >= GRAD_WEIGHT ? g->filters * (g->depth + 1) : 0;
  return divide_up(planes + sums, 16) * 16;
}

static int64_t weight_floats(const geometry *g) {
  return g->what == GRAD_INPUT ? divide_up(g->filters * g->depth, 16) * 16 : 0;
}

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_status check(tn_query *q, const geometry *g) {
  const tn_conv2d_attributes *a = q->match->nodes[0].node.attributes;
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
  if (plane_floats(g) * (int64_t)sizeof(float) > PLANES_BYTES || g->depth > DEPTH)
    return tn_fail(
        q, TN_EUNSUPPORTED, NULL,
        "pictures of %lld x %lld with %lld channels are not small: more than %d KiB, or sums of more "
        "than %d products",
        (long long)g->height, (long long)g->width, (long long)g->channels, PLANES_BYTES / 1024, DEPTH);
  return TN_OK;
}

/* Multiplications a second of one thread, less what the last vector of each row wastes. */
static double cost_s(const geometry *g, int32_t isa, int32_t threads) {
  int64_t lanes = isa >= TN_ISA_AVX512 ? 16 : isa >= TN_ISA_AVX2 ? 8 : 4;
  double rate = 3e9 * (double)lanes * (double)g->ow / (double)(divide_up(g->ow, lanes) * lanes);
  double macs = (double)g->pictures * (double)g->filters * (double)g->depth * (double)(g->oh * g->ow);
  return 1e-6 + macs / (rate * (double)most(least(threads, g->chunks), 1));
}

static tn_status offer(tn_query *q, int32_t what) {
  geometry g = geometry_of(q->match, what);
  int32_t isa = tn_onednn_isa_of(q->backend);
  tn_status status = check(q, &g);
  if (status != TN_OK) return status;
  int64_t keep = (int64_t)sizeof(conv_plan) + g.oh * divide_up(g.ow, 4) * (int64_t)sizeof(tn_conv_segment) +
                 g.depth * (int64_t)sizeof(int32_t);
  const tn_variant variant = {.struct_size = (uint32_t)sizeof variant,
                              .name = "rows",
                              .workspace_bytes = (weight_floats(&g) + g.chunks * chunk_floats(&g)) * 4,
                              .keep_bytes = keep,
                              .cost_s = cost_s(&g, isa, q->device->threads),
                              .deterministic = 1,
                              .capturable = 1};
  tn_add_variant(q, &variant);
  return TN_OK;
}

static tn_status query_forward(tn_query *q) { return offer(q, FORWARD); }
static tn_status query_grad_input(tn_query *q) { return offer(q, GRAD_INPUT); }
static tn_status query_grad_weight(tn_query *q) { return offer(q, GRAD_WEIGHT); }

/* y = conv2d(x, w, bias?); z = maximum(y, c) */
static tn_status query_relu(tn_query *q) {
  const tn_match *m = q->match;
  if (tn_type_count(m->in[3]) != 1 || m->in[3]->dtype != m->out[0]->dtype ||
      !tn_type_same_dims(m->out[0], &m->nodes[0].node.out[0]))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the other operand of the maximum is no single number");
  return offer(q, RELU);
}

/* w = conv2d_grad_weight(x, d); s = reduce_sum(d) -> w, s */
static tn_status query_grad_bias(tn_query *q) {
  const tn_reduce_attributes *a = q->match->nodes[1].node.attributes;
  bool summed[4] = {false};
  for (int64_t i = 0; i < a->axes.n; i++) summed[(a->axes.v[i] + 4) % 4] = true;
  if (!summed[0] || summed[1] || !summed[2] || !summed[3])
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sum is not the gradient of a bias");
  return offer(q, GRAD_BIAS);
}

static void release(tn_env *env, void *plan) {
  conv_plan *p = plan;
  if (p == NULL) return;
  tn_delete(env, p->segments);
  tn_delete(env, p->offsets);
  tn_delete(env, p);
}

static void fill_segments(conv_plan *p) {
  int64_t lanes = p->loops->lanes, n = 0;
  for (int64_t y = 0; y < p->g.oh; y++)
    for (int64_t x = 0; x < p->g.ow; x += lanes)
      p->segments[n++] = (tn_conv_segment){(int32_t)(y * p->g.width + x), (int32_t)(y * p->g.ow + x),
                                           (int32_t)least(lanes, p->g.ow - x)};
}

static void fill_offsets(conv_plan *p) {
  const geometry *g = &p->g;
  for (int64_t i = 0; i < g->depth; i++) {
    int64_t column = i % g->kw, row = i / g->kw % g->kh, channel = i / g->kw / g->kh;
    p->offsets[i] =
        (int32_t)((channel * g->height + row * g->dilation[0]) * g->width + column * g->dilation[1]);
  }
}

static tn_status prepare(tn_prepare *p, void **plan, int32_t what) {
  conv_plan *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  made->g = geometry_of(p->match, what);
  made->loops = TN_LOOPS_PICK_AT(tn_loops_conv_small, tn_onednn_isa_of(p->backend));
  made->n_segments = made->g.oh * divide_up(made->g.ow, made->loops->lanes);
  made->segments = tn_new(p, (size_t)made->n_segments * sizeof *made->segments);
  made->offsets = tn_new(p, (size_t)made->g.depth * sizeof *made->offsets);
  if (made->segments == NULL || made->offsets == NULL) {
    release(&p->env, made);
    return TN_ENOMEM;
  }
  fill_segments(made);
  fill_offsets(made);
  *plan = made;
  return TN_OK;
}
static tn_status prepare_forward(tn_prepare *p, void **plan) { return prepare(p, plan, FORWARD); }
static tn_status prepare_relu(tn_prepare *p, void **plan) { return prepare(p, plan, RELU); }
static tn_status prepare_grad_input(tn_prepare *p, void **plan) { return prepare(p, plan, GRAD_INPUT); }
static tn_status prepare_grad_weight(tn_prepare *p, void **plan) { return prepare(p, plan, GRAD_WEIGHT); }
static tn_status prepare_grad_bias(tn_prepare *p, void **plan) { return prepare(p, plan, GRAD_BIAS); }

/* ---- launch -------------------------------------------------------------------------------------- */

typedef struct job {
  tn_launch *launch;
  const conv_plan *plan;
  const float *weight;
  float *chunks; /* scratch */
} job;

/* Copies a picture into the middle of its planes, or the middle of a picture that is larger. */
static void pad(const geometry *g, const float *from, float *to) {
  int64_t first = most(0, -g->left), n = least(g->w - first, g->width - most(0, g->left));
  memset(to, 0, (size_t)plane_floats(g) * sizeof *to);
  for (int64_t c = 0; c < g->channels && n > 0; c++)
    for (int64_t y = most(0, -g->top); y < least(g->h, g->height - g->top); y++)
      memcpy(to + (c * g->height + y + g->top) * g->width + most(0, g->left),
             from + (c * g->h + y) * g->w + first, (size_t)n * sizeof *to);
}

static void chunk_pictures(const geometry *g, int64_t chunk, int64_t *first, int64_t *n) {
  int64_t each = g->pictures / g->chunks, rest = g->pictures % g->chunks;
  *first = each * chunk + least(chunk, rest);
  *n = each + (chunk < rest);
}

static void run_pictures(void *arg, int64_t chunk) {
  const job *j = arg;
  const conv_plan *p = j->plan;
  const geometry *g = &p->g;
  const tn_launch *l = j->launch;
  float *planes = j->chunks + chunk * chunk_floats(g);
  int64_t first, n;
  tn_conv_picture c = {.planes = planes,
                       .weight = j->weight,
                       .offset = p->offsets,
                       .filters = g->filters,
                       .depth = g->depth,
                       .segments = p->segments,
                       .n_segments = p->n_segments,
                       .plane = g->oh * g->ow,
                       .bias = g->what <= RELU && l->n_in > 2 ? l->in[2].data : NULL,
                       .rectified = g->what == RELU};
  if (c.rectified) c.limit = *(const float *)l->in[3].data;
  memset(planes + plane_floats(g), 0, TN_CONV_LANES * sizeof *planes);
  chunk_pictures(g, chunk, &first, &n);
  for (int64_t i = first; i < first + n; i++) {
    pad(g, (const float *)l->in[0].data + i * g->channels * g->h * g->w, planes);
    c.result = (float *)l->out[0].data + i * g->filters * c.plane;
    p->loops->picture(&c);
  }
}

/* The filters as the gradient of the operand meets them: by channel, and turned around. */
static void turn_filters(const geometry *g, const float *from, float *to) {
  int64_t taps = g->kh * g->kw;
  for (int64_t c = 0; c < g->filters; c++)
    for (int64_t o = 0; o < g->channels; o++)
      for (int64_t t = 0; t < taps; t++)
        to[(c * g->channels + o) * taps + t] = from[(o * g->filters + c) * taps + taps - 1 - t];
}

static void run_all(tn_launch *l, const job *j, void (*body)(void *arg, int64_t chunk)) {
  if (j->plan->g.chunks == 1)
    body((void *)(uintptr_t)j, 0);
  else
    tn_parallel(l, j->plan->g.chunks, body, (void *)(uintptr_t)j);
}

static tn_status launch(tn_launch *l) {
  const conv_plan *p = l->plan;
  float *workspace = l->workspace;
  job j = {l, p, l->in[1].data, workspace + weight_floats(&p->g)};
  if (p->g.what == GRAD_INPUT) {
    turn_filters(&p->g, l->in[1].data, workspace);
    j.weight = workspace;
  }
  run_all(l, &j, run_pictures);
  return TN_OK;
}

/* The gradient of a chunk's pictures, in its scratch: filters x depth sums, then those of the bias. */
static void run_gradient(void *arg, int64_t chunk) {
  const job *j = arg;
  const conv_plan *p = j->plan;
  const geometry *g = &p->g;
  float *sums = j->chunks + chunk * chunk_floats(g), *planes = sums + g->filters * (g->depth + 1);
  float *bias = sums + g->filters * g->depth;
  int64_t plane = g->oh * g->ow, first, n;
  chunk_pictures(g, chunk, &first, &n);
  memset(bias, 0, (size_t)g->filters * sizeof *bias);
  for (int64_t done = 0; done < n; done += g->block) {
    int64_t now = least(g->block, n - done);
    const float *x = (const float *)j->launch->in[0].data + (first + done) * g->channels * g->h * g->w;
    const float *dy = (const float *)j->launch->in[1].data + (first + done) * g->filters * plane;
    for (int64_t i = 0; i < now; i++) pad(g, x + i * g->channels * g->h * g->w, planes + i * plane_floats(g));
    const tn_conv_gradient c = {planes,        dy,         now,      plane_floats(g), g->filters * plane,
                                p->offsets,    g->filters, g->depth, g->kw,           p->segments,
                                p->n_segments, plane,      sums,     done > 0};
    p->loops->gradient(&c);
    for (int64_t i = 0; i < now * g->filters && g->what == GRAD_BIAS; i++)
      bias[i % g->filters] += p->loops->sum(dy + i * plane, plane);
  }
}

/* Chunks are added up in their order, whoever made them. */
static void add_chunks(const job *j, int64_t at, int64_t n, float *to) {
  const geometry *g = &j->plan->g;
  memcpy(to, j->chunks + at, (size_t)n * sizeof *to);
  for (int64_t c = 1; c < g->chunks; c++) {
    const float *from = j->chunks + c * chunk_floats(g) + at;
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
  }
}

static tn_status launch_gradient(tn_launch *l) {
  const conv_plan *p = l->plan;
  const job j = {l, p, NULL, l->workspace};
  int64_t n = p->g.filters * p->g.depth;
  run_all(l, &j, run_gradient);
  add_chunks(&j, 0, n, l->out[0].data);
  if (p->g.what == GRAD_BIAS) add_chunks(&j, n, p->g.filters, l->out[1].data);
  return TN_OK;
}

#define CONV(name, text, way, run, doc)                                                                      \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, doc),     \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query_##way,                                                  \
                                      .prepare = prepare_##way,                                              \
                                      .release = release,                                                    \
                                      .launch = run}

CONV(conv2d_small, "y = conv2d(x, w, bias?)", forward, launch, "small convolution, vectorized along rows");
CONV(conv2d_small_relu, "y = conv2d(x, w, bias?); z = maximum(y, c)", relu, launch,
     "small convolution and the ReLU behind it");
CONV(conv2d_small_grad_input, "dx = conv2d_grad_input(dy, w)", grad_input, launch,
     "the gradient of a small convolution's input");
CONV(conv2d_small_grad_weight, "dw = conv2d_grad_weight(x, dy)", grad_weight, launch_gradient,
     "the gradient of a small convolution's weights");
CONV(conv2d_small_grad_bias, "w = conv2d_grad_weight(x, d); s = reduce_sum(d) -> w, s", grad_bias,
     launch_gradient, "the gradients of a small convolution's weights and bias");

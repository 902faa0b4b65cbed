/* backends/onednn/kernels/conv_small/run.c: launches of small convolutions: each chunk pads its pictures one
 * after the other in its scratch. */
#include <string.h>

#include "backends/onednn/kernels/conv_small/conv_small.h"
#include "backends/shared/integer_math.h"

typedef struct conv_small_job {
  tn_launch *launch;
  const tn_conv_small_kernel *kernel;
  const float *weight, *bias;
  float *chunks; /* scratch */
} conv_small_job;

static int64_t conv_small_round(int64_t floats) { return round_up(floats, 16); }

/* ---- scratch ------------------------------------------------------------------------------------- */

static int64_t conv_small_pixels(const tn_conv_small_shape *s) { return s->oh * s->ow; }
/* Planes of one picture, or of a block of them. */
static int64_t conv_small_planes_floats(const tn_conv_small_shape *s) {
  return conv_small_round(tn_conv_small_planes(s) * (tn_conv_small_is_gradient(s) ? s->block : 1) +
                          TN_CONV_LANES);
}
static int64_t conv_small_row(const tn_conv_small_shape *s) { return s->wide > 0 ? s->wide : s->filters; }
/* Sums of a gradient: of the weights, then of the bias. */
static int64_t conv_small_sums_floats(const tn_conv_small_shape *s) {
  return tn_conv_small_is_gradient(s) ? conv_small_round(conv_small_row(s) * (s->depth + 2)) : 0;
}
/* Pictures with a filter in each lane. */
static int64_t conv_small_transposed_floats(const tn_conv_small_shape *s) {
  return s->wide == 0 ? 0 : s->wide * conv_small_pixels(s) * (tn_conv_small_is_gradient(s) ? s->block : 1);
}

int64_t tn_conv_small_shared_floats(const tn_conv_small_shape *s) {
  if (tn_conv_small_is_gradient(s)) return 0;
  if (s->wide > 0)
    return conv_small_round(s->wide * (s->depth + 1)) +
           (s->op == TN_SMALL_GRAD_INPUT ? conv_small_round(s->filters * s->depth) : 0);
  return s->op == TN_SMALL_GRAD_INPUT ? conv_small_round(s->filters * s->depth) : 0;
}

int64_t tn_conv_small_chunk_floats(const tn_conv_small_shape *s) {
  return conv_small_sums_floats(s) + conv_small_planes_floats(s) +
         conv_small_round(conv_small_transposed_floats(s));
}

/* ---- pictures ------------------------------------------------------------------------------------ */

/* Copies a picture into the middle of its planes; of a larger picture, its middle. */
static void conv_small_pad(const tn_conv_small_shape *s, const float *from, float *to) {
  int64_t first = most(0, -s->left), start = most(0, s->left), n = least(s->w - first, s->width - start);
  memset(to, 0, (size_t)tn_conv_small_planes(s) * sizeof *to);
  for (int64_t c = 0; c < s->channels && n > 0; c++)
    for (int64_t y = most(0, -s->top); y < least(s->h, s->height - s->top); y++)
      memcpy(to + (c * s->height + y + s->top) * s->width + start, from + (c * s->h + y) * s->w + first,
             (size_t)n * sizeof *to);
}

static void conv_small_chunk_pictures(const tn_conv_small_shape *s, int64_t chunk, int64_t *first,
                                      int64_t *n) {
  int64_t each = s->pictures / s->chunks, rest = s->pictures % s->chunks;
  *first = each * chunk + least(chunk, rest);
  *n = each + (chunk < rest);
}

static void conv_small_by_rows(const conv_small_job *j, const float *planes, float *result) {
  const tn_conv_small_kernel *p = j->kernel;
  const tn_conv_small_shape *s = &p->s;
  const tn_conv_picture c = {.planes = planes,
                             .weight = j->weight,
                             .offset = p->offsets,
                             .filters = s->filters,
                             .depth = s->depth,
                             .taps = s->kh * s->kw,
                             .segments = p->segments,
                             .n_segments = p->n_segments,
                             .result = result,
                             .plane = conv_small_pixels(s),
                             .bias = j->bias,
                             .rectified = s->op == TN_SMALL_RELU};
  p->rows->picture(&c);
}

static tn_conv_lanes conv_small_filter_lanes(const tn_conv_small_kernel *p) {
  const tn_conv_small_shape *s = &p->s;
  return (tn_conv_lanes){.offset = p->offsets,
                         .depth = s->depth,
                         .run = s->kw,
                         .wide = s->wide,
                         .width = s->width,
                         .oh = s->oh,
                         .ow = s->ow};
}

static void conv_small_by_filters(const conv_small_job *j, const float *planes, float *transposed,
                                  float *result) {
  const tn_conv_small_kernel *p = j->kernel;
  const tn_conv_small_shape *s = &p->s;
  tn_conv_lanes c = conv_small_filter_lanes(p);
  c.planes = planes;
  c.weight = j->weight;
  c.bias = j->bias;
  c.rectified = s->op == TN_SMALL_RELU;
  c.result = transposed;
  p->lanes->picture(&c);
  p->transpose->of_4(transposed, s->wide, result, conv_small_pixels(s), conv_small_pixels(s), s->filters);
}

static void conv_small_chunk(void *arg, int64_t chunk) {
  const conv_small_job *j = arg;
  const tn_conv_small_shape *s = &j->kernel->s;
  float *planes = j->chunks + chunk * tn_conv_small_chunk_floats(s),
        *transposed = planes + conv_small_planes_floats(s);
  int64_t first, n;
  memset(planes + tn_conv_small_planes(s), 0, TN_CONV_LANES * sizeof *planes);
  conv_small_chunk_pictures(s, chunk, &first, &n);
  for (int64_t i = first; i < first + n; i++) {
    float *result = (float *)j->launch->out[0].data + i * s->filters * conv_small_pixels(s);
    conv_small_pad(s, (const float *)j->launch->in[0].data + i * s->channels * s->h * s->w, planes);
    if (s->wide > 0)
      conv_small_by_filters(j, planes, transposed, result);
    else
      conv_small_by_rows(j, planes, result);
  }
}

/* The filters of the gradient of the operand: by channel, and rotated by 180 degrees. */
static void conv_small_rotate_filters(const tn_conv_small_shape *s, const float *from, float *to) {
  int64_t taps = s->kh * s->kw;
  for (int64_t c = 0; c < s->filters; c++)
    for (int64_t o = 0; o < s->channels; o++)
      for (int64_t t = 0; t < taps; t++)
        to[(c * s->channels + o) * taps + t] = from[(o * s->filters + c) * taps + taps - 1 - t];
}

/* Transposes [filter][depth] to [depth][wide], with zeros behind the filters, and extends the bias to `wide`.
 */
static void conv_small_transpose_filters(conv_small_job *j, float *to) {
  const tn_conv_small_shape *s = &j->kernel->s;
  float *bias = to + s->wide * s->depth;
  memset(to, 0, (size_t)(s->wide * (s->depth + 1)) * sizeof *to);
  j->kernel->transpose->of_4(j->weight, s->depth, to, s->wide, s->filters, s->depth);
  if (j->bias != NULL) memcpy(bias, j->bias, (size_t)s->filters * sizeof *bias);
  j->weight = to;
  j->bias = bias;
}

static void conv_small_run_all(const conv_small_job *j, void (*body)(void *arg, int64_t chunk)) {
  void *arg = (void *)(uintptr_t)j;
  if (j->kernel->s.chunks == 1)
    body(arg, 0);
  else
    tn_parallel(j->launch, j->kernel->s.chunks, body, arg);
}

tn_status tn_conv_small_launch(tn_launch *l) {
  const tn_conv_small_kernel *p = l->prepared;
  const tn_conv_small_shape *s = &p->s;
  float *workspace = l->workspace,
        *transposed = workspace + (s->wide > 0 ? conv_small_round(s->wide * (s->depth + 1)) : 0);
  bool bias = s->op <= TN_SMALL_RELU && l->n_in > 2;
  conv_small_job j = {l, p, l->in[1].data, bias ? l->in[2].data : NULL,
                      workspace + tn_conv_small_shared_floats(s)};
  if (s->op == TN_SMALL_GRAD_INPUT) {
    conv_small_rotate_filters(s, j.weight, transposed);
    j.weight = transposed;
  }
  if (s->wide > 0) conv_small_transpose_filters(&j, workspace);
  conv_small_run_all(&j, conv_small_chunk);
  return TN_OK;
}

/* ---- gradients ----------------------------------------------------------------------------------- */

/* A block of padded pictures. add: the sums have terms of earlier blocks. */
typedef struct conv_small_block {
  const float *planes, *dy;
  float *transposed, *sums, *bias;
  int64_t n;
  bool add;
} conv_small_block;

static void conv_small_grad_by_rows(const tn_conv_small_kernel *p, const conv_small_block *b) {
  const tn_conv_small_shape *s = &p->s;
  const tn_conv_gradient c = {.planes = b->planes,
                              .dy = b->dy,
                              .pictures = b->n,
                              .planes_step = tn_conv_small_planes(s),
                              .dy_step = s->filters * conv_small_pixels(s),
                              .offset = p->offsets,
                              .filters = s->filters,
                              .depth = s->depth,
                              .run = s->kw,
                              .segments = p->segments,
                              .n_segments = p->n_segments,
                              .plane = conv_small_pixels(s),
                              .gradient = b->sums,
                              .add = b->add};
  p->rows->gradient(&c);
  for (int64_t i = 0; i < b->n * s->filters && s->op == TN_SMALL_GRAD_BIAS; i++)
    b->bias[i % s->filters] += p->rows->sum(b->dy + i * conv_small_pixels(s), conv_small_pixels(s));
}

static void conv_small_grad_by_filters(const tn_conv_small_kernel *p, const conv_small_block *b) {
  const tn_conv_small_shape *s = &p->s;
  tn_conv_lanes c = conv_small_filter_lanes(p);
  float *more = b->bias + s->wide;
  for (int64_t i = 0; i < b->n; i++)
    p->transpose->of_4(b->dy + i * s->filters * conv_small_pixels(s), conv_small_pixels(s),
                       b->transposed + i * s->wide * conv_small_pixels(s), s->wide, s->filters,
                       conv_small_pixels(s));
  c.planes = b->planes;
  c.planes_step = tn_conv_small_planes(s);
  c.pictures = b->n;
  c.dy = b->transposed;
  c.gradient = b->sums;
  c.add = b->add;
  p->lanes->gradient(&c);
  if (s->op != TN_SMALL_GRAD_BIAS) return;
  p->sums->sum_rows(b->transposed, s->wide, b->n * conv_small_pixels(s), s->filters, more);
  for (int64_t i = 0; i < s->filters; i++) b->bias[i] += more[i];
}

/* The gradients of the pictures of a chunk, in its scratch: of the weights, then of the bias. */
static void conv_small_grad_chunk(void *arg, int64_t chunk) {
  const conv_small_job *j = arg;
  const tn_conv_small_kernel *p = j->kernel;
  const tn_conv_small_shape *s = &p->s;
  float *sums = j->chunks + chunk * tn_conv_small_chunk_floats(s), *planes = sums + conv_small_sums_floats(s);
  conv_small_block b = {.planes = planes,
                        .transposed = planes + conv_small_planes_floats(s),
                        .sums = sums,
                        .bias = sums + conv_small_row(s) * s->depth};
  int64_t first, n;
  conv_small_chunk_pictures(s, chunk, &first, &n);
  memset(b.bias, 0, (size_t)conv_small_row(s) * sizeof *b.bias);
  for (int64_t done = 0; done < n; done += s->block) {
    const float *x = (const float *)j->launch->in[0].data + (first + done) * s->channels * s->h * s->w;
    b.dy = (const float *)j->launch->in[1].data + (first + done) * s->filters * conv_small_pixels(s);
    b.n = least(s->block, n - done);
    b.add = done > 0;
    for (int64_t i = 0; i < b.n; i++)
      conv_small_pad(s, x + i * s->channels * s->h * s->w, planes + i * tn_conv_small_planes(s));
    (s->wide > 0 ? conv_small_grad_by_filters : conv_small_grad_by_rows)(p, &b);
  }
}

/* Adds the sums of all chunks, in the order of the chunks, to those of the first. */
static const float *conv_small_add_chunks(const conv_small_job *j, int64_t n) {
  const tn_conv_small_shape *s = &j->kernel->s;
  float *to = j->chunks;
  for (int64_t c = 1; c < s->chunks; c++) {
    const float *from = j->chunks + c * tn_conv_small_chunk_floats(s);
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
  }
  return to;
}

tn_status tn_conv_small_launch_gradient(tn_launch *l) {
  const tn_conv_small_kernel *p = l->prepared;
  const tn_conv_small_shape *s = &p->s;
  const conv_small_job j = {.launch = l, .kernel = p, .chunks = l->workspace};
  conv_small_run_all(&j, conv_small_grad_chunk);
  const float *sums = conv_small_add_chunks(&j, conv_small_row(s) * (s->depth + 1));
  if (s->wide > 0)
    p->transpose->of_4(sums, s->wide, l->out[0].data, s->depth, s->depth, s->filters);
  else
    memcpy(l->out[0].data, sums, (size_t)(s->filters * s->depth) * sizeof *sums);
  if (s->op == TN_SMALL_GRAD_BIAS)
    memcpy(l->out[1].data, sums + conv_small_row(s) * s->depth, (size_t)s->filters * sizeof *sums);
  return TN_OK;
}

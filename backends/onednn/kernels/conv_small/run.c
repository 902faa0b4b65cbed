/* backends/onednn/kernels/conv_small/run.c: launches of small convolutions: pictures are padded one after the
 * other in a chunk's scratch. */
#include <string.h>

#include "backends/onednn/kernels/conv_small/conv_small.h"
#include "backends/onednn/integer_math.h"

typedef struct job {
  tn_launch *launch;
  const tn_small_plan *plan;
  const float *weight, *bias;
  float *chunks; /* scratch */
} job;

static int64_t to_lanes(int64_t floats) { return round_up(floats, 16); }

/* ---- scratch ------------------------------------------------------------------------------------- */

static int64_t pixels(const tn_small *s) { return s->oh * s->ow; }
/* Planes of one picture, or of a block of them. */
static int64_t planes_floats(const tn_small *s) {
  return to_lanes(tn_small_planes(s) * (tn_small_is_gradient(s) ? s->block : 1) + TN_CONV_LANES);
}
static int64_t row_of(const tn_small *s) { return s->wide > 0 ? s->wide : s->filters; }
/* Sums of a gradient: of the weights, then of the bias. */
static int64_t sums_floats(const tn_small *s) {
  return tn_small_is_gradient(s) ? to_lanes(row_of(s) * (s->depth + 2)) : 0;
}
/* Pictures with a filter in each lane. */
static int64_t turned_floats(const tn_small *s) {
  return s->wide == 0 ? 0 : s->wide * pixels(s) * (tn_small_is_gradient(s) ? s->block : 1);
}

int64_t tn_small_shared_floats(const tn_small *s) {
  if (tn_small_is_gradient(s)) return 0;
  if (s->wide > 0)
    return to_lanes(s->wide * (s->depth + 1)) +
           (s->what == TN_SMALL_GRAD_INPUT ? to_lanes(s->filters * s->depth) : 0);
  return s->what == TN_SMALL_GRAD_INPUT ? to_lanes(s->filters * s->depth) : 0;
}

int64_t tn_small_chunk_floats(const tn_small *s) {
  return sums_floats(s) + planes_floats(s) + to_lanes(turned_floats(s));
}

/* ---- pictures ------------------------------------------------------------------------------------ */

/* Copies a picture into the middle of its planes, or the middle of a picture that is larger. */
static void pad(const tn_small *s, const float *from, float *to) {
  int64_t first = most(0, -s->left), start = most(0, s->left), n = least(s->w - first, s->width - start);
  memset(to, 0, (size_t)tn_small_planes(s) * sizeof *to);
  for (int64_t c = 0; c < s->channels && n > 0; c++)
    for (int64_t y = most(0, -s->top); y < least(s->h, s->height - s->top); y++)
      memcpy(to + (c * s->height + y + s->top) * s->width + start, from + (c * s->h + y) * s->w + first,
             (size_t)n * sizeof *to);
}

static void chunk_pictures(const tn_small *s, int64_t chunk, int64_t *first, int64_t *n) {
  int64_t each = s->pictures / s->chunks, rest = s->pictures % s->chunks;
  *first = each * chunk + least(chunk, rest);
  *n = each + (chunk < rest);
}

static void by_rows(const job *j, const float *planes, float *result) {
  const tn_small_plan *p = j->plan;
  const tn_small *s = &p->s;
  bool relu = s->what == TN_SMALL_RELU;
  const tn_conv_picture c = {.planes = planes,
                             .weight = j->weight,
                             .offset = p->offsets,
                             .filters = s->filters,
                             .depth = s->depth,
                             .taps = s->kh * s->kw,
                             .segments = p->segments,
                             .n_segments = p->n_segments,
                             .result = result,
                             .plane = pixels(s),
                             .bias = j->bias,
                             .rectified = relu,
                             .limit = relu ? *(const float *)j->launch->in[3].data : 0};
  p->rows->picture(&c);
}

static tn_conv_lanes in_lanes(const tn_small_plan *p) {
  const tn_small *s = &p->s;
  return (tn_conv_lanes){.offset = p->offsets,
                         .depth = s->depth,
                         .run = s->kw,
                         .wide = s->wide,
                         .width = s->width,
                         .oh = s->oh,
                         .ow = s->ow};
}

static void by_lanes(const job *j, const float *planes, float *turned, float *result) {
  const tn_small_plan *p = j->plan;
  const tn_small *s = &p->s;
  tn_conv_lanes c = in_lanes(p);
  c.planes = planes;
  c.weight = j->weight;
  c.bias = j->bias;
  c.rectified = s->what == TN_SMALL_RELU;
  c.limit = c.rectified ? *(const float *)j->launch->in[3].data : 0;
  c.result = turned;
  p->lanes->picture(&c);
  p->turn->of_4(turned, s->wide, result, pixels(s), pixels(s), s->filters);
}

static void run_pictures(void *arg, int64_t chunk) {
  const job *j = arg;
  const tn_small *s = &j->plan->s;
  float *planes = j->chunks + chunk * tn_small_chunk_floats(s), *turned = planes + planes_floats(s);
  int64_t first, n;
  memset(planes + tn_small_planes(s), 0, TN_CONV_LANES * sizeof *planes);
  chunk_pictures(s, chunk, &first, &n);
  for (int64_t i = first; i < first + n; i++) {
    float *result = (float *)j->launch->out[0].data + i * s->filters * pixels(s);
    pad(s, (const float *)j->launch->in[0].data + i * s->channels * s->h * s->w, planes);
    if (s->wide > 0)
      by_lanes(j, planes, turned, result);
    else
      by_rows(j, planes, result);
  }
}

/* The filters as the gradient of the operand meets them: by channel, and turned around. */
static void turn_around(const tn_small *s, const float *from, float *to) {
  int64_t taps = s->kh * s->kw;
  for (int64_t c = 0; c < s->filters; c++)
    for (int64_t o = 0; o < s->channels; o++)
      for (int64_t t = 0; t < taps; t++)
        to[(c * s->channels + o) * taps + t] = from[(o * s->filters + c) * taps + taps - 1 - t];
}

/* [filter][depth] to [depth][wide], zero behind the filters, and the bias as long. */
static void spread(job *j, float *to) {
  const tn_small *s = &j->plan->s;
  float *bias = to + s->wide * s->depth;
  memset(to, 0, (size_t)(s->wide * (s->depth + 1)) * sizeof *to);
  j->plan->turn->of_4(j->weight, s->depth, to, s->wide, s->filters, s->depth);
  if (j->bias != NULL) memcpy(bias, j->bias, (size_t)s->filters * sizeof *bias);
  j->weight = to;
  j->bias = bias;
}

static void run_all(const job *j, void (*body)(void *arg, int64_t chunk)) {
  void *arg = (void *)(uintptr_t)j;
  if (j->plan->s.chunks == 1)
    body(arg, 0);
  else
    tn_parallel(j->launch, j->plan->s.chunks, body, arg);
}

tn_status tn_small_launch(tn_launch *l) {
  const tn_small_plan *p = l->plan;
  const tn_small *s = &p->s;
  float *workspace = l->workspace,
        *turned = workspace + (s->wide > 0 ? to_lanes(s->wide * (s->depth + 1)) : 0);
  bool bias = s->what <= TN_SMALL_RELU && l->n_in > 2;
  job j = {l, p, l->in[1].data, bias ? l->in[2].data : NULL, workspace + tn_small_shared_floats(s)};
  if (s->what == TN_SMALL_GRAD_INPUT) {
    turn_around(s, j.weight, turned);
    j.weight = turned;
  }
  if (s->wide > 0) spread(&j, workspace);
  run_all(&j, run_pictures);
  return TN_OK;
}

/* ---- gradients ----------------------------------------------------------------------------------- */

/* A block of pictures whose planes are there; `done`: pictures before have left sums. */
typedef struct block {
  const float *planes, *dy;
  float *turned, *sums, *bias;
  int64_t n;
  bool done;
} block;

static void gradient_by_rows(const tn_small_plan *p, const block *b) {
  const tn_small *s = &p->s;
  const tn_conv_gradient c = {.planes = b->planes,
                              .dy = b->dy,
                              .pictures = b->n,
                              .planes_step = tn_small_planes(s),
                              .dy_step = s->filters * pixels(s),
                              .offset = p->offsets,
                              .filters = s->filters,
                              .depth = s->depth,
                              .run = s->kw,
                              .segments = p->segments,
                              .n_segments = p->n_segments,
                              .plane = pixels(s),
                              .gradient = b->sums,
                              .add = b->done};
  p->rows->gradient(&c);
  for (int64_t i = 0; i < b->n * s->filters && s->what == TN_SMALL_GRAD_BIAS; i++)
    b->bias[i % s->filters] += p->rows->sum(b->dy + i * pixels(s), pixels(s));
}

static void gradient_by_lanes(const tn_small_plan *p, const block *b) {
  const tn_small *s = &p->s;
  tn_conv_lanes c = in_lanes(p);
  float *some = b->bias + s->wide;
  for (int64_t i = 0; i < b->n; i++)
    p->turn->of_4(b->dy + i * s->filters * pixels(s), pixels(s), b->turned + i * s->wide * pixels(s), s->wide,
                  s->filters, pixels(s));
  c.planes = b->planes;
  c.planes_step = tn_small_planes(s);
  c.pictures = b->n;
  c.dy = b->turned;
  c.gradient = b->sums;
  c.add = b->done;
  p->lanes->gradient(&c);
  if (s->what != TN_SMALL_GRAD_BIAS) return;
  p->sums->sum_rows(b->turned, s->wide, b->n * pixels(s), s->filters, some);
  for (int64_t i = 0; i < s->filters; i++) b->bias[i] += some[i];
}

/* The gradient of a chunk's pictures, in its scratch: the weights' and then the bias's. */
static void run_gradient(void *arg, int64_t chunk) {
  const job *j = arg;
  const tn_small_plan *p = j->plan;
  const tn_small *s = &p->s;
  float *sums = j->chunks + chunk * tn_small_chunk_floats(s), *planes = sums + sums_floats(s);
  block b = {.planes = planes,
             .turned = planes + planes_floats(s),
             .sums = sums,
             .bias = sums + row_of(s) * s->depth};
  int64_t first, n;
  chunk_pictures(s, chunk, &first, &n);
  memset(b.bias, 0, (size_t)row_of(s) * sizeof *b.bias);
  for (int64_t done = 0; done < n; done += s->block) {
    const float *x = (const float *)j->launch->in[0].data + (first + done) * s->channels * s->h * s->w;
    b.dy = (const float *)j->launch->in[1].data + (first + done) * s->filters * pixels(s);
    b.n = least(s->block, n - done);
    b.done = done > 0;
    for (int64_t i = 0; i < b.n; i++)
      pad(s, x + i * s->channels * s->h * s->w, planes + i * tn_small_planes(s));
    (s->wide > 0 ? gradient_by_lanes : gradient_by_rows)(p, &b);
  }
}

/* Adds the sums of all chunks to those of the first, in their order, whoever made them. */
static const float *add_chunks(const job *j, int64_t n) {
  const tn_small *s = &j->plan->s;
  float *to = j->chunks;
  for (int64_t c = 1; c < s->chunks; c++) {
    const float *from = j->chunks + c * tn_small_chunk_floats(s);
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
  }
  return to;
}

tn_status tn_small_launch_gradient(tn_launch *l) {
  const tn_small_plan *p = l->plan;
  const tn_small *s = &p->s;
  const job j = {.launch = l, .plan = p, .chunks = l->workspace};
  run_all(&j, run_gradient);
  const float *sums = add_chunks(&j, row_of(s) * (s->depth + 1));
  if (s->wide > 0)
    p->turn->of_4(sums, s->wide, l->out[0].data, s->depth, s->depth, s->filters);
  else
    memcpy(l->out[0].data, sums, (size_t)(s->filters * s->depth) * sizeof *sums);
  if (s->what == TN_SMALL_GRAD_BIAS)
    memcpy(l->out[1].data, sums + row_of(s) * s->depth, (size_t)s->filters * sizeof *sums);
  return TN_OK;
}

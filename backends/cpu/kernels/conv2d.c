/* backends/cpu/kernels/conv2d.c: conv2d and its gradient by the input, as products
 *
 *     result[m, pixel] = sum over (channel, tap) of weight[m, (channel, tap)] * source[(channel, tap), pixel]
 *
 * whose second operand is gathered from images while it is packed.
 *
 * For the gradient, the pixels of dx fall into stride x stride phases by their position modulo the
 * stride. To all pixels of a phase the same taps contribute, at consecutive places of dy: so each phase
 * is a product of its own, and no multiplication by the zeros "between" the elements of dy is done
 * (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, section 4). */
#include <stddef.h>

#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/conv_shape.h"
#include "backends/cpu/kernels/kernels.h"

typedef struct phase {
  tn_gemm_grid source, result; /* the phase's pixels, in the source and in the result */
  int64_t offset;              /* of the first pixel in the result */
  int64_t n_taps;
  const tn_gemm_tap *source_taps, *weight_taps;
  tn_gemm_plan gemm;
} phase;

typedef struct conv_plan {
  tn_conv_shape shape;
  const tn_gemm_isa *isa;
  int32_t gradient;
  int64_t channels; /* of the source, in a group */
  int64_t n_phases, workspace_bytes, prepared_bytes;
  phase *phases;
} conv_plan;

/* ---- planning -------------------------------------------------------------------------------------- */

/* A plan with room for phases and taps behind it. */
static conv_plan *new_plan(const void *handle, int64_t n_phases, int64_t n_taps) {
  size_t phases = sizeof(phase) * (size_t)n_phases, taps = sizeof(tn_gemm_tap) * 2 * (size_t)n_taps;
  conv_plan *p = tn_new(handle, sizeof *p + phases + taps);
  if (p == NULL) return NULL;
  p->n_phases = n_phases;
  p->prepared_bytes = (int64_t)(sizeof *p + phases + taps);
  p->phases = (phase *)(p + 1);
  return p;
}

static int64_t packed_bytes(const tn_gemm_plan *g) { return tn_gemm_packed_bytes(g->kind, g->m, g->k); }

/* Phases run one after the other in the same workspace: packed weights of all groups, then scratch. */
static void finish_phase(conv_plan *p, phase *f) {
  const tn_conv_shape *s = &p->shape;
  int64_t m = p->gradient ? s->c : s->o, k = p->channels * f->n_taps;
  tn_conv_flatten(&f->source, &f->result, f->source_taps, f->n_taps);
  tn_gemm_plan_make(&f->gemm, s->kind, s->groups, m, s->batch * f->source.height * f->source.width, k,
                    TN_GEMM_PACKED);
  int64_t bytes = s->groups * packed_bytes(&f->gemm) + tn_gemm_workspace(&f->gemm);
  if (p->workspace_bytes < bytes) p->workspace_bytes = bytes;
}

static conv_plan *plan_forward(const void *handle, const tn_conv_shape *s) {
  conv_plan *p = new_plan(handle, 1, s->kh * s->kw);
  if (p == NULL) return NULL;
  tn_gemm_tap *taps = (tn_gemm_tap *)(p->phases + 1);
  p->shape = *s;
  p->isa = tn_gemm_isa_at(0);
  p->channels = s->c;
  tn_conv_taps(s, taps);
  p->phases[0] = (phase){.source = tn_conv_grid_in_x(s),
                         .result = tn_conv_grid_in_y(s),
                         .n_taps = s->kh * s->kw,
                         .source_taps = taps};
  finish_phase(p, &p->phases[0]);
  return p;
}

/* Row i of phase `first` is row first + i * stride of dx. Tap r comes to it from row i + *from of dy, if
 * that is whole. */
static int32_t reaches(const tn_conv_shape *s, int32_t axis, int64_t first, int64_t r, int64_t *from) {
  int64_t distance = first + s->padding[axis] - r * s->dilation[axis];
  *from = distance / s->stride[axis];
  return distance % s->stride[axis] == 0;
}

/* The taps of the phase that begins at (y, x) of dx; returns how many. */
static int64_t phase_taps(const tn_conv_shape *s, int64_t y, int64_t x, tn_gemm_tap *source,
                          tn_gemm_tap *weight) {
  int64_t n = 0, row, column;
  for (int64_t r = 0; r < s->kh; r++)
    for (int64_t q = 0; q < s->kw; q++)
      if (reaches(s, 0, y, r, &row) && reaches(s, 1, x, q, &column)) {
        source[n] = (tn_gemm_tap){row, column, row * s->ow + column};
        weight[n++] = (tn_gemm_tap){r, q, r * s->kw + q};
      }
  return n;
}

static conv_plan *plan_gradient(const void *handle, const tn_conv_shape *s) {
  int64_t rows = tn_gemm_min(s->stride[0], s->h), columns = tn_gemm_min(s->stride[1], s->w);
  int64_t n_taps = s->kh * s->kw;
  conv_plan *p = new_plan(handle, rows * columns, n_taps);
  if (p == NULL) return NULL;
  tn_gemm_tap *source_taps = (tn_gemm_tap *)(p->phases + p->n_phases), *weight_taps = source_taps + n_taps;
  p->shape = *s;
  p->isa = tn_gemm_isa_at(0);
  p->gradient = 1;
  p->channels = s->o;
  for (int64_t i = 0; i < p->n_phases; i++) {
    phase *f = &p->phases[i];
    int64_t y = i / columns, x = i % columns;
    int64_t height = (s->h - y - 1) / s->stride[0] + 1, width = (s->w - x - 1) / s->stride[1] + 1;
    f->source = (tn_gemm_grid){height, width, 1, 1, s->oh, s->ow, s->groups * s->o * s->oh * s->ow};
    f->result =
        (tn_gemm_grid){height, width, s->stride[0], s->stride[1], s->h, s->w, s->groups * s->c * s->h * s->w};
    f->offset = y * s->w + x;
    f->source_taps = source_taps;
    f->weight_taps = weight_taps;
    f->n_taps = phase_taps(s, y, x, source_taps, weight_taps);
    source_taps += f->n_taps;
    weight_taps += f->n_taps;
    finish_phase(p, f);
  }
  return p;
}

static conv_plan *plan_conv2d(const void *handle, const tn_match *match) {
  tn_conv_shape s =
      tn_conv_shape_of(match->nodes[0].node->attributes, match->in[0], match->in[1], match->out[0]);
  return plan_forward(handle, &s);
}

static conv_plan *plan_grad_input(const void *handle, const tn_match *match) {
  tn_conv_shape s =
      tn_conv_shape_of(match->nodes[0].node->attributes, match->out[0], match->in[1], match->in[0]);
  return plan_gradient(handle, &s);
}

static double plan_cost_s(const conv_plan *p) {
  double cost = 0;
  for (int64_t i = 0; i < p->n_phases; i++) cost += tn_gemm_cost_s(&p->phases[i].gemm);
  return cost;
}

static tn_status conv2d_offer(tn_query *q, conv_plan *(*plan)(const void *handle, const tn_match *match)) {
  tn_status status = tn_gemm_check_dtype(q, q->match->out[0]->dtype);
  if (status != TN_OK) return status;
  conv_plan *p = plan(q, q->match);
  if (p == NULL) return TN_ENOMEM;
  const tn_variant variant = {.struct_size = (uint32_t)sizeof variant,
                              .name = "implicit im2col",
                              .workspace_bytes = p->workspace_bytes,
                              .prepared_bytes = p->prepared_bytes,
                              .cost_s = plan_cost_s(p),
                              .deterministic = 1,
                              .capturable = 1};
  tn_add_variant(q, &variant);
  tn_delete(q, p);
  return TN_OK;
}

static tn_status conv2d_query(tn_query *q) { return conv2d_offer(q, plan_conv2d); }
static tn_status grad_input_query(tn_query *q) { return conv2d_offer(q, plan_grad_input); }

static tn_status conv2d_prepare(tn_prepare *p, void **plan) {
  *plan = plan_conv2d(p, p->match);
  return *plan != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status grad_input_prepare(tn_prepare *p, void **plan) {
  *plan = plan_grad_input(p, p->match);
  return *plan != NULL ? TN_OK : TN_ENOMEM;
}

static void conv_release(tn_env *env, void *plan) { tn_delete(env, plan); }

/* ---- running --------------------------------------------------------------------------------------- */

typedef struct conv_run {
  const conv_plan *plan;
  const phase *phase;
  const char *source, *weight, *bias; /* bias: may be NULL */
  char *result, *packed;
} conv_run;

/* The weight of a group as operand A. Forward, its row is a row of the tensor. For the gradient, rows
 * are numbered by (output channel, tap) and run along the input channels. */
static tn_gemm_source weight_of(const conv_run *run, int64_t group) {
  const tn_conv_shape *s = &run->plan->shape;
  int64_t taps = s->kh * s->kw, size = (int64_t)tn_dtype_size(s->dtype);
  tn_gemm_source a = {.data = run->weight + group * s->o * s->c * taps * size, .row_step = s->c * taps};
  a.along_k = !run->plan->gradient;
  a.step = run->plan->gradient ? taps : 1;
  a.n_taps = run->plan->gradient ? run->phase->n_taps : 1;
  a.taps = run->phase->weight_taps;
  return a;
}

static char *packed_of(const conv_run *run, int64_t group) {
  return run->packed + group * packed_bytes(&run->phase->gemm);
}

static int64_t k_blocks(const tn_gemm_plan *g) { return (g->k + TN_GEMM_K - 1) / TN_GEMM_K; }

static void pack_chunk(void *arg, int64_t chunk) {
  const conv_run *run = arg;
  const tn_gemm_plan *g = &run->phase->gemm;
  int64_t group = chunk / k_blocks(g), k0 = chunk % k_blocks(g) * TN_GEMM_K;
  tn_gemm_source a = weight_of(run, group);
  run->plan->isa->pack[g->kind](&a, g->m, k0, tn_gemm_min(TN_GEMM_K, g->k - k0), packed_of(run, group));
}

static void conv2d_describe(const void *arg, int64_t group, int64_t split, tn_gemm *g) {
  const conv_run *run = arg;
  const phase *f = run->phase;
  const tn_gemm_plan *gemm = &f->gemm;
  int64_t size = (int64_t)tn_dtype_size(run->plan->shape.dtype);
  int64_t source_plane = f->source.plane_height * f->source.plane_width;
  int64_t result_plane = f->result.plane_height * f->result.plane_width;
  (void)split;
  g->packed_a = packed_of(run, group);
  g->b.data = run->source + group * run->plan->channels * source_plane * size;
  g->b.row_step = source_plane;
  g->b.n_taps = f->n_taps;
  g->b.taps = f->source_taps;
  g->b.grid = &f->source;
  g->c.data = run->result + (group * gemm->m * result_plane + f->offset) * size;
  g->c.row_step = result_plane;
  g->c.grid = &f->result;
  g->c.bias = run->bias != NULL ? run->bias + group * gemm->m * size : NULL;
  g->c.bias_i = 1;
}

static void run_phases(tn_launch *l, conv_run *run) {
  const conv_plan *p = run->plan;
  for (int64_t i = 0; i < p->n_phases; i++) {
    const tn_gemm_plan *g = &p->phases[i].gemm;
    run->phase = &p->phases[i];
    if (g->chunks == 0) continue;
    tn_parallel(l, p->shape.groups * k_blocks(g), pack_chunk, run);
    tn_gemm_run(l, p->isa, g, conv2d_describe, run, packed_of(run, p->shape.groups));
  }
}

static tn_status conv2d_launch(tn_launch *l) {
  conv_run run = {
      .plan = l->plan, .source = l->in[0].data, .weight = l->in[1].data, .result = l->out[0].data};
  run.packed = l->workspace;
  run.bias = l->n_in > 2 ? l->in[2].data : NULL;
  run_phases(l, &run);
  return TN_OK;
}

static tn_status grad_input_launch(tn_launch *l) {
  conv_run run = {
      .plan = l->plan, .source = l->in[0].data, .weight = l->in[1].data, .result = l->out[0].data};
  run.packed = l->workspace;
  run_phases(l, &run);
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, conv2d, "conv2d", "y = conv2d(x, w, bias?)",
                 "product with patches gathered while packing", .query = conv2d_query,
                 .prepare = conv2d_prepare, .release = conv_release, .launch = conv2d_launch);

TN_DEFINE_KERNEL(cpu, conv2d_grad_input, "conv2d_grad_input", "dx = conv2d_grad_input(dy, w)",
                 "a product for each phase of the stride", .query = grad_input_query,
                 .prepare = grad_input_prepare, .release = conv_release, .launch = grad_input_launch);

/* backends/cpu/kernels/conv/conv2d.c: conv2d and its gradient with respect to the input, as products
 *
 *     result[m, pixel] = sum over (channel, tap) of weight[m, (channel, tap)] * source[(channel, tap), pixel]
 *
 * The second operand is gathered from images while it is packed (implicit im2col).
 *
 * The gradient divides the pixels of dx into stride x stride phases by their position modulo the stride.
 * The same taps contribute to all pixels of a phase, from consecutive elements of dy, so each phase is a
 * product of its own. No product multiplies the zeros that a transposed convolution inserts between the
 * elements of dy (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
 * section 4). */
#include <stddef.h>

#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/conv/conv_shape.h"

typedef struct conv_phase {
  tn_gemm_grid source, result; /* the pixels of the phase in the source and in the result */
  int64_t offset;              /* of the first pixel in the result */
  int64_t n_taps;
  const tn_gemm_tap *source_taps, *weight_taps;
  tn_gemm_tiling gemm;
} conv_phase;

typedef struct conv_kernel {
  tn_conv_shape shape;
  const tn_gemm_isa *isa;
  int32_t gradient;
  int64_t channels; /* of the source, per group */
  int64_t n_phases, workspace_bytes, prepared_bytes;
  conv_phase *phases;
} conv_kernel;

/* ---- query and prepare
 * -------------------------------------------------------------------------------------- */

/* A prepared kernel with its phases and taps in the same allocation. */
static conv_kernel *conv_kernel_new(const void *handle, int64_t n_phases, int64_t n_taps) {
  size_t phases = sizeof(conv_phase) * (size_t)n_phases, taps = sizeof(tn_gemm_tap) * 2 * (size_t)n_taps;
  conv_kernel *p = tn_new(handle, sizeof *p + phases + taps);
  if (p == NULL) return NULL;
  p->n_phases = n_phases;
  p->prepared_bytes = (int64_t)(sizeof *p + phases + taps);
  p->phases = (conv_phase *)(p + 1);
  return p;
}

static int64_t conv_packed_bytes(const tn_gemm_tiling *g) {
  return tn_gemm_packed_bytes(g->kind, g->m, g->k);
}

/* All phases use the same workspace, one after the other: packed weights of all groups, then scratch. */
static void conv_finish_phase(conv_kernel *p, conv_phase *f) {
  const tn_conv_shape *s = &p->shape;
  int64_t m = p->gradient ? s->c : s->o, k = p->channels * f->n_taps;
  tn_conv_flatten(&f->source, &f->result, f->source_taps, f->n_taps);
  tn_gemm_tiling_make(&f->gemm, s->kind, s->groups, m, s->batch * f->source.height * f->source.width, k,
                      TN_GEMM_PACKED);
  int64_t bytes = s->groups * conv_packed_bytes(&f->gemm) + tn_gemm_workspace(&f->gemm);
  if (p->workspace_bytes < bytes) p->workspace_bytes = bytes;
}

static conv_kernel *conv_make_forward(const void *handle, const tn_conv_shape *s) {
  conv_kernel *p = conv_kernel_new(handle, 1, s->kh * s->kw);
  if (p == NULL) return NULL;
  tn_gemm_tap *taps = (tn_gemm_tap *)(p->phases + 1);
  p->shape = *s;
  p->isa = tn_gemm_isa_at(0);
  p->channels = s->c;
  tn_conv_taps(s, taps);
  p->phases[0] = (conv_phase){.source = tn_conv_grid_in_x(s),
                              .result = tn_conv_grid_in_y(s),
                              .n_taps = s->kh * s->kw,
                              .source_taps = taps};
  conv_finish_phase(p, &p->phases[0]);
  return p;
}

/* Row i of phase `first` is row first + i * stride of dx. Tap r reads row i + *from of dy for it; returns 0
 * if the tap does not contribute because the quotient is not an integer. */
static int32_t conv_tap_contributes(const tn_conv_shape *s, int32_t axis, int64_t first, int64_t r,
                                    int64_t *from) {
  int64_t distance = first + s->padding[axis] - r * s->dilation[axis];
  *from = distance / s->stride[axis];
  return distance % s->stride[axis] == 0;
}

/* Writes the taps of the phase that begins at (y, x) of dx; returns their number. */
static int64_t conv_phase_taps(const tn_conv_shape *s, int64_t y, int64_t x, tn_gemm_tap *source,
                               tn_gemm_tap *weight) {
  int64_t n = 0, row, column;
  for (int64_t r = 0; r < s->kh; r++)
    for (int64_t q = 0; q < s->kw; q++)
      if (conv_tap_contributes(s, 0, y, r, &row) && conv_tap_contributes(s, 1, x, q, &column)) {
        source[n] = (tn_gemm_tap){row, column, row * s->ow + column};
        weight[n++] = (tn_gemm_tap){r, q, r * s->kw + q};
      }
  return n;
}

static conv_kernel *conv_make_gradient(const void *handle, const tn_conv_shape *s) {
  int64_t rows = least(s->stride[0], s->h), columns = least(s->stride[1], s->w);
  int64_t n_taps = s->kh * s->kw;
  conv_kernel *p = conv_kernel_new(handle, rows * columns, n_taps);
  if (p == NULL) return NULL;
  tn_gemm_tap *source_taps = (tn_gemm_tap *)(p->phases + p->n_phases), *weight_taps = source_taps + n_taps;
  p->shape = *s;
  p->isa = tn_gemm_isa_at(0);
  p->gradient = 1;
  p->channels = s->o;
  for (int64_t i = 0; i < p->n_phases; i++) {
    conv_phase *f = &p->phases[i];
    int64_t y = i / columns, x = i % columns;
    int64_t height = (s->h - y - 1) / s->stride[0] + 1, width = (s->w - x - 1) / s->stride[1] + 1;
    f->source = (tn_gemm_grid){height, width, 1, 1, s->oh, s->ow, s->groups * s->o * s->oh * s->ow};
    f->result =
        (tn_gemm_grid){height, width, s->stride[0], s->stride[1], s->h, s->w, s->groups * s->c * s->h * s->w};
    f->offset = y * s->w + x;
    f->source_taps = source_taps;
    f->weight_taps = weight_taps;
    f->n_taps = conv_phase_taps(s, y, x, source_taps, weight_taps);
    source_taps += f->n_taps;
    weight_taps += f->n_taps;
    conv_finish_phase(p, f);
  }
  return p;
}

static conv_kernel *conv2d_make(const void *handle, const tn_match *match) {
  tn_conv_shape s =
      tn_conv_shape_of(match->nodes[0].node->attributes, match->in[0], match->in[1], match->out[0]);
  return conv_make_forward(handle, &s);
}

static conv_kernel *grad_input_make(const void *handle, const tn_match *match) {
  tn_conv_shape s =
      tn_conv_shape_of(match->nodes[0].node->attributes, match->out[0], match->in[1], match->in[0]);
  return conv_make_gradient(handle, &s);
}

static tn_status conv2d_offer(tn_query *q, conv_kernel *(*make)(const void *handle, const tn_match *match)) {
  TN_TRY(tn_gemm_check_dtype(q, q->match->out[0]->dtype));
  conv_kernel *p = make(q, q->match);
  if (p == NULL) return TN_ENOMEM;
  tn_offer(q, (tn_variant){.name = "implicit im2col",
                           .workspace_bytes = p->workspace_bytes,
                           .prepared_bytes = p->prepared_bytes});
  tn_delete(q, p);
  return TN_OK;
}

static tn_status conv2d_query(tn_query *q) { return conv2d_offer(q, conv2d_make); }
static tn_status grad_input_query(tn_query *q) { return conv2d_offer(q, grad_input_make); }

static tn_status conv2d_prepare(tn_prepare *p, void **prepared) {
  *prepared = conv2d_make(p, p->match);
  return *prepared != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status grad_input_prepare(tn_prepare *p, void **prepared) {
  *prepared = grad_input_make(p, p->match);
  return *prepared != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- running --------------------------------------------------------------------------------------- */

typedef struct conv_run {
  const conv_kernel *kernel;
  const conv_phase *phase;
  const char *source, *weight, *bias; /* bias: may be NULL */
  char *result, *packed;
} conv_run;

/* The weight of a group as operand A. Its rows are the rows of the tensor in conv2d; in the gradient, row
 * (output channel, tap) runs along the input channels. */
static tn_gemm_source conv_weight_of(const conv_run *run, int64_t group) {
  const tn_conv_shape *s = &run->kernel->shape;
  int64_t taps = s->kh * s->kw, size = (int64_t)tn_dtype_size(s->dtype);
  tn_gemm_source a = {.data = run->weight + group * s->o * s->c * taps * size, .row_step = s->c * taps};
  a.along_k = !run->kernel->gradient;
  a.step = run->kernel->gradient ? taps : 1;
  a.n_taps = run->kernel->gradient ? run->phase->n_taps : 1;
  a.taps = run->phase->weight_taps;
  return a;
}

static char *conv_packed_of(const conv_run *run, int64_t group) {
  return run->packed + group * conv_packed_bytes(&run->phase->gemm);
}

static int64_t conv_k_blocks(const tn_gemm_tiling *g) { return (g->k + TN_GEMM_K - 1) / TN_GEMM_K; }

static void conv_pack_chunk(void *arg, int64_t chunk) {
  const conv_run *run = arg;
  const tn_gemm_tiling *g = &run->phase->gemm;
  int64_t group = chunk / conv_k_blocks(g), k0 = chunk % conv_k_blocks(g) * TN_GEMM_K;
  tn_gemm_source a = conv_weight_of(run, group);
  run->kernel->isa->pack[g->kind](&a, g->m, k0, least(TN_GEMM_K, g->k - k0), conv_packed_of(run, group));
}

static void conv2d_describe(const void *arg, int64_t group, int64_t split, tn_gemm *g) {
  const conv_run *run = arg;
  const conv_phase *f = run->phase;
  const tn_gemm_tiling *gemm = &f->gemm;
  int64_t size = (int64_t)tn_dtype_size(run->kernel->shape.dtype);
  int64_t source_plane = f->source.plane_height * f->source.plane_width;
  int64_t result_plane = f->result.plane_height * f->result.plane_width;
  (void)split;
  g->packed_a = conv_packed_of(run, group);
  g->b.data = run->source + group * run->kernel->channels * source_plane * size;
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

static void conv_run_phases(tn_launch *l, conv_run *run) {
  const conv_kernel *p = run->kernel;
  for (int64_t i = 0; i < p->n_phases; i++) {
    const tn_gemm_tiling *g = &p->phases[i].gemm;
    run->phase = &p->phases[i];
    if (g->chunks == 0) continue;
    tn_parallel(l, p->shape.groups * conv_k_blocks(g), conv_pack_chunk, run);
    tn_gemm_run(l, p->isa, g, conv2d_describe, run, conv_packed_of(run, p->shape.groups));
  }
}

static tn_status conv2d_launch(tn_launch *l) {
  conv_run run = {
      .kernel = l->prepared, .source = l->in[0].data, .weight = l->in[1].data, .result = l->out[0].data};
  run.packed = l->workspace;
  run.bias = l->n_in > 2 ? l->in[2].data : NULL;
  conv_run_phases(l, &run);
  return TN_OK;
}

static tn_status grad_input_launch(tn_launch *l) {
  conv_run run = {
      .kernel = l->prepared, .source = l->in[0].data, .weight = l->in[1].data, .result = l->out[0].data};
  run.packed = l->workspace;
  conv_run_phases(l, &run);
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, conv2d, "conv2d", "y = conv2d(x, w, bias?)",
                 "matrix product that gathers the patches while packing", .query = conv2d_query,
                 .prepare = conv2d_prepare, .release = tn_delete_prepared, .launch = conv2d_launch);

TN_DEFINE_KERNEL(cpu, conv2d_grad_input, "conv2d_grad_input", "dx = conv2d_grad_input(dy, w)",
                 "one matrix product per phase of the stride", .query = grad_input_query,
                 .prepare = grad_input_prepare, .release = tn_delete_prepared, .launch = grad_input_launch);

/* backends/cpu/kernels/conv/conv2d_grad_weight.c: the gradient of conv2d with respect to the weight, as a
 * product
 *
 *     dw[o, (c, tap)] = sum over pixels of all images of dy[o, pixel] * x[(c, tap), pixel]
 *
 * dw is small and the sum is long, so the kernel may split the sum into parts. The shape alone determines
 * their number. The partial sums are stored in the type of the sums and added in order. */
#include <stddef.h>

#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/conv/conv_shape.h"
#include "backends/shared/half.h"

typedef struct grad_weight_kernel {
  tn_conv_shape shape;
  const tn_gemm_isa *isa;
  tn_gemm_grid in_x, in_y;
  tn_gemm_tiling gemm;
  int64_t prepared_bytes, parts_bytes; /* parts_bytes: of all partial sums; 0 for one part */
  tn_gemm_tap taps[];
} grad_weight_kernel;

/* ---- query and prepare
 * -------------------------------------------------------------------------------------- */

static int64_t grad_weight_elements(const grad_weight_kernel *p) {
  return p->gemm.products * p->gemm.m * p->gemm.n;
}

static grad_weight_kernel *grad_weight_make(const void *handle, const tn_match *match) {
  tn_conv_shape s =
      tn_conv_shape_of(match->nodes[0].node->attributes, match->in[0], match->out[0], match->in[1]);
  size_t bytes = sizeof(grad_weight_kernel) + sizeof(tn_gemm_tap) * (size_t)(s.kh * s.kw);
  grad_weight_kernel *p = tn_new(handle, bytes);
  if (p == NULL) return NULL;
  p->shape = s;
  p->isa = tn_gemm_isa_at(0);
  p->prepared_bytes = (int64_t)bytes;
  p->in_x = tn_conv_grid_in_x(&s);
  p->in_y = tn_conv_grid_in_y(&s);
  tn_conv_taps(&s, p->taps);
  tn_conv_flatten(&p->in_x, &p->in_y, p->taps, s.kh * s.kw);
  tn_gemm_tiling_make(&p->gemm, s.kind, s.groups, s.o, s.c * s.kh * s.kw, s.batch * s.oh * s.ow,
                      TN_GEMM_SPLIT);
  int64_t part = round_up(grad_weight_elements(p) * tn_gemm_wide_bytes(s.dtype), 64);
  p->parts_bytes = p->gemm.splits > 1 ? p->gemm.splits * part : 0;
  return p;
}

static tn_status grad_weight_query(tn_query *q) {
  TN_TRY(tn_gemm_check_dtype(q, q->match->out[0]->dtype));
  grad_weight_kernel *p = grad_weight_make(q, q->match);
  if (p == NULL) return TN_ENOMEM;
  tn_offer(q, (tn_variant){.name = "implicit im2col",
                           .workspace_bytes = p->parts_bytes + tn_gemm_workspace(&p->gemm),
                           .prepared_bytes = p->prepared_bytes});
  tn_delete(q, p);
  return TN_OK;
}

static tn_status grad_weight_prepare(tn_prepare *p, void **prepared) {
  *prepared = grad_weight_make(p, p->match);
  return *prepared != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- running --------------------------------------------------------------------------------------- */

static void grad_weight_describe(const void *arg, int64_t group, int64_t split, tn_gemm *g) {
  const tn_launch *l = arg;
  const grad_weight_kernel *p = l->prepared;
  const tn_conv_shape *s = &p->shape;
  int64_t size = (int64_t)tn_dtype_size(s->dtype), part = group * p->gemm.m * p->gemm.n;
  g->a.data = (const char *)l->in[1].data + group * s->o * s->oh * s->ow * size;
  g->a.row_step = s->oh * s->ow;
  g->a.grid = &p->in_y;
  g->b.data = (const char *)l->in[0].data + group * s->c * s->h * s->w * size;
  g->b.row_step = s->h * s->w;
  g->b.grid = &p->in_x;
  g->b.n_taps = s->kh * s->kw;
  g->b.taps = p->taps;
  g->a.along_k = g->b.along_k = 1;
  g->c.row_step = p->gemm.n;
  g->c.step = 1;
  g->c.wide = p->gemm.splits > 1;
  if (g->c.wide)
    g->c.data =
        (char *)l->workspace + (split * grad_weight_elements(p) + part) * tn_gemm_wide_bytes(s->dtype);
  else
    g->c.data = (char *)l->out[0].data + part * size;
}

enum { COMBINE_CHUNK = 4096 };

/* Adds the partial sums of grad_weight_elements first .. stop-1. */
#define DEFINE_COMBINE(name, element, wide, narrow)                                                          \
  static void name(const void *parts, int64_t count, int64_t splits, int64_t first, int64_t stop,            \
                   void *to) {                                                                               \
    for (int64_t i = first; i < stop; i++) {                                                                 \
      wide sum = ((const wide *)parts)[i];                                                                   \
      for (int64_t s = 1; s < splits; s++) sum += ((const wide *)parts)[s * count + i];                      \
      ((element *)to)[i] = narrow(sum);                                                                      \
    }                                                                                                        \
  }
#define IDENTITY(x) (x)
DEFINE_COMBINE(combine_f32, float, float, IDENTITY)
DEFINE_COMBINE(combine_f64, double, double, IDENTITY)
DEFINE_COMBINE(combine_f16, uint16_t, float, tn_f16_of_f32)
DEFINE_COMBINE(combine_bf16, uint16_t, float, tn_bf16_of_f32)

static void grad_weight_combine_chunk(void *arg, int64_t chunk) {
  static void (*const combine[TN_DTYPES])(const void *, int64_t, int64_t, int64_t, int64_t, void *) = {
      [TN_F16] = combine_f16, [TN_BF16] = combine_bf16, [TN_F32] = combine_f32, [TN_F64] = combine_f64};
  const tn_launch *l = arg;
  const grad_weight_kernel *p = l->prepared;
  int64_t first = chunk * COMBINE_CHUNK, stop = least(first + COMBINE_CHUNK, grad_weight_elements(p));
  combine[p->shape.dtype](l->workspace, grad_weight_elements(p), p->gemm.splits, first, stop, l->out[0].data);
}

static tn_status grad_weight_launch(tn_launch *l) {
  const grad_weight_kernel *p = l->prepared;
  tn_gemm_run(l, p->isa, &p->gemm, grad_weight_describe, l, (char *)l->workspace + p->parts_bytes);
  if (p->gemm.splits > 1)
    tn_parallel(l, (grad_weight_elements(p) + COMBINE_CHUNK - 1) / COMBINE_CHUNK, grad_weight_combine_chunk,
                l);
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, conv2d_grad_weight, "conv2d_grad_weight", "dw = conv2d_grad_weight(x, dy)",
                 "matrix product over the pixels of all images",
                 TN_KERNEL_CALLBACKS_WITH(grad_weight, tn_delete_prepared));

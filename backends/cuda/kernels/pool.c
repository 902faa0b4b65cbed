/* backends/cuda/kernels/pool.c: max_pool2d, avg_pool2d and their gradients, on row-major images or with
 * channels innermost (device/pool.cu). */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/image_layouts.h"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/kernels/pool.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

typedef struct pool_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct pool_args args;
} pool_kernel;

/* ---- query ---- */

static bool pool_is_gradient(const tn_match *m) { return strstr(m->nodes[0].node->op, "_grad") != NULL; }

/* x, or y, of the forward op. */
static const tn_type *pool_large(const tn_match *m) { return pool_is_gradient(m) ? m->out[0] : m->in[0]; }
static const tn_type *pool_small(const tn_match *m) { return pool_is_gradient(m) ? m->in[0] : m->out[0]; }

tn_status tn_cuda_pool_check(tn_query *q, const tn_match *m) {
  const tn_pool2d_attributes *a = m->nodes[0].node->attributes;
  const tn_type *x = pool_large(m);
  int64_t rows = x->dims[2] + 2 * a->padding.v[0] + a->kernel.v[0],
          columns = x->dims[3] + 2 * a->padding.v[1] + a->kernel.v[1];
  if (rows <= INT32_MAX / 2 && columns <= INT32_MAX / 2 && rows * columns <= INT32_MAX) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, "shape", "a plane has %lld x %lld elements, expected at most 2^31",
                 (long long)x->dims[2], (long long)x->dims[3]);
}

static tn_status cuda_pool_query(tn_query *q) {
  const tn_match *m = q->match;
  tn_status status = tn_cuda_pool_check(q, m);
  for (int32_t how = TN_CUDA_ROW_MAJOR; how <= TN_CUDA_CHANNELS_LAST && status == TN_OK; how++) {
    tn_operand_layout layout = tn_cuda_image_layout(how), all[2] = {layout, layout};
    tn_offer(q, (tn_variant){.id = how,
                             .name = how == TN_CUDA_ROW_MAJOR ? "planes" : "channels last",
                             .in = all,
                             .out = all,
                             .prepared_bytes = sizeof(pool_kernel),
                             .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(m))});
  }
  return status;
}

/* ---- prepare ---- */

static struct pool_axis cuda_pool_axis(const tn_pool2d_attributes *a, int32_t i, const tn_type *x,
                                       const tn_type *y) {
  const tn_ints *stride = a->stride.n > 0 ? &a->stride : &a->kernel;
  return (struct pool_axis){.in = (int)x->dims[2 + i],
                            .out = (int)y->dims[2 + i],
                            .kernel = (int)a->kernel.v[i],
                            .padding = (int)a->padding.v[i],
                            .stride = tn_cuda_divider(stride->v[i])};
}

void tn_cuda_pool_fill(const tn_match *m, int32_t how, struct pool_args *args) {
  const tn_pool2d_attributes *a = m->nodes[0].node->attributes;
  const tn_type *x = pool_large(m), *y = pool_small(m), *to = m->out[0];
  args->count = tn_type_count(to);
  args->lanes = tn_cuda_divider(how == TN_CUDA_CHANNELS_LAST ? to->dims[1] : 1);
  args->columns = tn_cuda_divider(to->dims[3]);
  args->rows = tn_cuda_divider(to->dims[2]);
  args->include_pad = a->include_pad;
  for (int32_t i = 0; i < 2; i++) args->axis[i] = cuda_pool_axis(a, i, x, y);
}

/* max_pool2d_grad and f16: "max_grad_pool_f16" */
static tn_status cuda_pool_prepare(tn_prepare *p, void **made) {
  const tn_match *m = p->match;
  pool_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  if (tn_type_count(m->out[0]) == 0) return TN_OK;
  tn_cuda_pool_fill(m, p->variant, &keep->args);
  keep->grid = tn_cuda_grid_of(keep->args.count, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  return tn_cuda_request(p, &keep->function, "pool.cu", "%.3s%s_pool_%s%s", m->nodes[0].node->op,
                         pool_is_gradient(m) ? "_grad" : "", tn_dtype_name(m->out[0]->dtype),
                         tn_cuda_long(keep->args.count));
}

static tn_status cuda_pool_launch(tn_launch *l) {
  const pool_kernel *k = l->prepared;
  struct pool_args a = k->args;
  if (a.count == 0) return TN_OK;
  a.from = l->in[0].data;
  a.to = l->out[0].data;
  a.index = l->n_out > 1 ? l->out[1].data : l->n_in > 1 ? l->in[1].data : NULL;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, max_pool2d, "cuda_max_pool2d", "y, index = max_pool2d(x)", "maxima of windows",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pool, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, max_pool2d_grad, "cuda_max_pool2d_grad", "dx = max_pool2d_grad(dy, index)",
                 "each element collects from its windows",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pool, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, avg_pool2d, "cuda_avg_pool2d", "y = avg_pool2d(x)", "means of windows",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pool, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, avg_pool2d_grad, "cuda_avg_pool2d_grad", "dx = avg_pool2d_grad(dy)",
                 "each element collects from its windows",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pool, tn_cuda_release_function));

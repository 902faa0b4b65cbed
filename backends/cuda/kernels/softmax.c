/* backends/cuda/kernels/softmax.c: softmax and log_softmax along any axis of row-major operands
 * (device/softmax.cu). */
#include <stdio.h>

#include "backends/cuda/device/rows.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

typedef struct softmax_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct softmax_args args;
} softmax_kernel;

enum { SOFTMAX_ROWS = 1024 /* of a column that is one thread's where there are enough columns */ };

static tn_status cuda_softmax_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  const tn_match *m = q->match;
  if (!tn_dtype_is_float(m->in[0]->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s does not support elements of type %s", m->nodes[0].node->op,
                   tn_dtype_name(m->in[0]->dtype));
  return tn_offer(q, (tn_variant){.name = "two passes",
                                  .prepared_bytes = sizeof(softmax_kernel),
                                  .n_inplace = 1,
                                  .inplace = inplace,
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(m))});
}

static void softmax_divide_rows(softmax_kernel *k, int64_t size) {
  struct softmax_args *a = &k->args;
  int64_t pack = 16 / size;
  a->vector = a->n % pack == 0;
  a->lanes = tn_cuda_row_lanes(a->rows, a->vector ? a->n / pack : a->n, ROWS_THREADS);
  k->grid = tn_cuda_task_grid(a->rows, ROWS_THREADS / a->lanes, ROWS_THREADS);
}

/* Threads share a column where there are too few columns for the GPU. */
static void softmax_divide_columns(softmax_kernel *k) {
  struct softmax_args *a = &k->args;
  int64_t threads = divide_up((int64_t)SOFTMAX_ROWS * ROWS_THREADS, at_least_1(a->rows));
  a->width = tn_cuda_power(a->rows, TN_CUDA_WARP);
  a->lanes = tn_cuda_power(least(threads, divide_up(a->n, 4)), ROWS_THREADS / a->width);
  k->grid = tn_cuda_task_grid(a->rows, ROWS_THREADS / a->lanes, ROWS_THREADS);
}

static tn_status cuda_softmax_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_type *x = n->in[0];
  int64_t axis = ((const tn_axis_attributes *)n->attributes)->axis;
  softmax_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  if (tn_type_count(x) == 0) return TN_OK;
  tn_cuda_rows_along(x, axis, &keep->args.rows, &keep->args.n, &keep->args.inner);
  if (keep->args.inner == 1)
    softmax_divide_rows(keep, (int64_t)tn_dtype_size(x->dtype));
  else
    softmax_divide_columns(keep);
  return tn_cuda_request(p, &keep->function, "softmax.cu", "%s_%s_%s", n->op,
                         keep->args.inner == 1 ? "rows" : "columns", tn_dtype_name(x->dtype));
}

static tn_status cuda_softmax_launch(tn_launch *l) {
  const softmax_kernel *k = l->prepared;
  struct softmax_args a = k->args;
  if (a.rows == 0) return TN_OK;
  a.x = l->in[0].data;
  a.y = l->out[0].data;
  if (!tn_cuda_is_aligned(a.x) || !tn_cuda_is_aligned(a.y)) a.vector = 0;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, softmax, "cuda_softmax", "y = softmax(x)", "softmax along any axis",
                 TN_KERNEL_CALLBACKS_WITH(cuda_softmax, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, log_softmax, "cuda_log_softmax", "y = log_softmax(x)",
                 "logarithm of softmax along any axis",
                 TN_KERNEL_CALLBACKS_WITH(cuda_softmax, tn_cuda_release_function));

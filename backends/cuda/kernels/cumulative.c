/* backends/cuda/kernels/cumulative.c: running sums, products and extremes along an axis
 * (device/cumulative.cu). */
#include "backends/cuda/device/gather.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { CUMULATIVE_SHORT = 8 /* elements of a row that is one thread's */ };

typedef struct cumulative_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct cumulative_args args;
} cumulative_kernel;

static tn_status cuda_cumulative_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  return tn_offer(q,
                  (tn_variant){.name = "one pass",
                               .prepared_bytes = sizeof(cumulative_kernel),
                               .n_inplace = 1,
                               .inplace = inplace,
                               .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(q->match))});
}

static tn_status cuda_cumulative_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_cumulative_attributes *c = n->attributes;
  const tn_type *x = n->in[0];
  cumulative_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  struct cumulative_args *a = &k->args;
  if (tn_type_count(x) == 0) return TN_OK;
  tn_cuda_rows_along(x, c->axis, &a->rows, &a->n, &a->inner);
  a->mode = c->mode;
  a->exclusive = c->exclusive;
  a->reverse = c->reverse;
  bool apart = a->inner > 1 || a->n <= CUMULATIVE_SHORT;
  k->grid = tn_cuda_task_grid(a->rows, apart ? CUMULATIVE_THREADS : 1, CUMULATIVE_THREADS);
  return tn_cuda_request(p, &k->function, "cumulative.cu", "cumulative_%s_%s", apart ? "apart" : "rows",
                         tn_dtype_name(x->dtype));
}

static tn_status cuda_cumulative_launch(tn_launch *l) {
  const cumulative_kernel *k = l->prepared;
  struct cumulative_args a = k->args;
  if (a.rows == 0) return TN_OK;
  a.x = l->in[0].data;
  a.y = l->out[0].data;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, cumulative, "cuda_cumulative", "y = cumulative(x)",
                 "running sums, products and extremes along an axis",
                 TN_KERNEL_CALLBACKS_WITH(cuda_cumulative, tn_cuda_release_function));

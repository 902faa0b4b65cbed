/* backends/cuda/kernels/crop.c: a part of each picture of a batch (device/crop.cu). */
#include <stdio.h>

#include "backends/cuda/device/movement.cuh"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

typedef struct crop_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct crop_args args;
} crop_kernel;

static tn_status cuda_crop_query(tn_query *q) {
  return tn_offer(q, (tn_variant){.name = "elements",
                                  .prepared_bytes = sizeof(crop_kernel),
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_STREAM,
                                                            2 * (double)tn_type_bytes(q->match->out[0]))});
}

static bool crop_operand_is_long(const tn_match *m, int32_t i) {
  return i < m->n_in && m->in[i] != NULL && m->in[i]->dtype == TN_I64;
}

static void crop_fill_args(const tn_match *m, struct crop_args *a) {
  const tn_type *x = m->in[0], *y = m->out[0];
  int64_t planes = 1;
  for (int32_t i = 1; i < x->rank - 2; i++) planes *= x->dims[i];
  a->count = tn_type_count(y);
  a->planes = tn_cuda_divider(planes);
  for (int32_t i = 0; i < 2; i++) {
    a->in[i] = x->dims[x->rank - 2 + i];
    a->out[i] = tn_cuda_divider(y->dims[y->rank - 2 + i]);
  }
  a->start_is_long = crop_operand_is_long(m, 1);
  a->mirror_is_long = crop_operand_is_long(m, 2);
}

static tn_status cuda_crop_prepare(tn_prepare *p, void **made) {
  crop_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  if (tn_type_count(p->match->out[0]) == 0) return TN_OK;
  crop_fill_args(p->match, &keep->args);
  keep->grid = tn_cuda_grid_of(keep->args.count, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  return tn_cuda_request(p, &keep->function, "crop.cu", "crop_%d%s",
                         (int)tn_dtype_size(p->match->in[0]->dtype), tn_cuda_long(keep->args.count));
}

static tn_status cuda_crop_launch(tn_launch *l) {
  const crop_kernel *k = l->prepared;
  struct crop_args a = k->args;
  if (a.count == 0) return TN_OK;
  a.to = l->out[0].data;
  a.from = l->in[0].data;
  a.start = l->n_in > 1 ? l->in[1].data : NULL;
  a.mirror = l->n_in > 2 ? l->in[2].data : NULL;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, crop, "cuda_crop", "y = crop(x, start?, mirror?)", "parts of pictures",
                 TN_KERNEL_CALLBACKS_WITH(cuda_crop, tn_cuda_release_function));

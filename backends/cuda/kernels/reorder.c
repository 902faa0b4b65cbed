/* backends/cuda/kernels/reorder.c: copies of bytes, and copies to another layout: without blocks a strided
 * copy (strided.h), with blocks element by element (device/reorder.cu). */
#include <stdio.h>

#include "backends/cuda/device/reorder.cuh"
#include "backends/cuda/kernels/strided.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/plugin/storage.h"

_Static_assert((int)REORDER_AXES >= (int)TN_STORAGE_AXES && (int)REORDER_DIMS >= (int)TN_MAX_RANK,
               "every layout fits");

enum { REORDER_THREADS = 256, REORDER_BLOCKS = 4096 };

/* ---- copy: the bytes of the storage, padding included ---- */

static tn_status cuda_copy_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  static const int32_t inplace[1][2] = {{0, 0}};
  return tn_offer(
      q, (tn_variant){.name = "bytes",
                      .in = &any,
                      .out = &any,
                      .n_inplace = 1,
                      .inplace = inplace,
                      .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_STREAM, tn_match_bytes(q->match))});
}

static tn_status cuda_copy_view(tn_launch *l) {
  const tn_view *x = &l->in[0];
  tn_storage s = tn_storage_of(&x->type, &x->layout);
  uint64_t bytes = (uint64_t)s.count * tn_dtype_size(x->type.dtype);
  if (x->data == l->out[0].data) return TN_OK;
  return tn_cuda_copy_bytes(&l->env, l->stream, TN_COPY_ON_DEVICE, l->out[0].data, x->data, bytes);
}

TN_DEFINE_KERNEL(cuda, copy, "cuda_copy", "y = copy(x)", "copies the bytes of a tensor",
                 .query = cuda_copy_query, .launch = cuda_copy_view);

/* ---- reorder ---- */

typedef struct reorder_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct reorder_args args;
  bool same, strided;
  tn_cuda_strided copy;
} reorder_kernel;

static tn_status cuda_reorder_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  return tn_offer(q,
                  (tn_variant){.name = "elements",
                               .in = &any,
                               .out = &any,
                               .prepared_bytes = sizeof(reorder_kernel),
                               .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(q->match))});
}

static int32_t reorder_fill_axes(const tn_storage *s, struct reorder_axis *axes) {
  for (int32_t i = 0; i < s->n; i++)
    axes[i] =
        (struct reorder_axis){s->axis[i].extent, s->axis[i].stride, s->axis[i].scale, s->axis[i].dim, 0};
  return s->n;
}

static void reorder_fill_args(struct reorder_args *a, const tn_type *type, const tn_storage *from,
                              const tn_storage *to) {
  a->count = to->count;
  a->rank = type->rank;
  for (int32_t d = 0; d < type->rank; d++) a->dims[d] = type->dims[d];
  a->n_to = reorder_fill_axes(to, a->to_axis);
  a->n_from = reorder_fill_axes(from, a->from_axis);
}

/* Without blocks, axis i of the result is a dimension, which has one stride in the operand. */
static tn_movement reorder_walk(const tn_storage *from, const tn_storage *to) {
  int64_t dims[TN_MAX_RANK], to_strides[TN_MAX_RANK], from_strides[TN_MAX_RANK];
  for (int32_t i = 0; i < to->n; i++) {
    dims[i] = to->axis[i].extent;
    to_strides[i] = to->axis[i].stride;
    from_strides[i] = tn_storage_offset(from, to->axis[i].dim, dims[i] > 1 ? 1 : 0);
  }
  return tn_movement_make(to->n, dims, to_strides, from_strides);
}

static tn_status reorder_prepare_elements(tn_prepare *p, const tn_storage *from, const tn_storage *to,
                                          reorder_kernel *keep) {
  const tn_type *x = p->match->in[0];
  reorder_fill_args(&keep->args, x, from, to);
  keep->grid = tn_cuda_grid_of(to->count, REORDER_THREADS, REORDER_BLOCKS);
  return tn_cuda_request(p, &keep->function, "reorder.cu", "reorder_%d", (int)tn_dtype_size(x->dtype));
}

static tn_status cuda_reorder_prepare(tn_prepare *p, void **made) {
  static const tn_layout unset = {0};
  const tn_type *x = p->match->in[0];
  const tn_layout *in = p->in_layout ? &p->in_layout[0] : &unset;
  const tn_layout *out = p->out_layout ? &p->out_layout[0] : &unset;
  reorder_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_storage from = tn_storage_of(x, in), to = tn_storage_of(x, out);
  keep->same = to.count == 0 || tn_storage_same(&from, &to);
  if (keep->same) return TN_OK;
  keep->strided = in->n_blocks == 0 && out->n_blocks == 0;
  if (!keep->strided) return reorder_prepare_elements(p, &from, &to, keep);
  tn_movement walk = reorder_walk(&from, &to);
  return tn_cuda_strided_prepare(p, (int32_t)tn_dtype_size(x->dtype), &walk, &keep->copy);
}

static void cuda_reorder_release(tn_env *env, void *made) {
  reorder_kernel *k = made;
  tn_cuda_withdraw(&k->function);
  tn_cuda_strided_release(&k->copy);
  tn_delete(env, k);
}

static tn_status cuda_reorder_launch(tn_launch *l) {
  const reorder_kernel *k = l->prepared;
  struct reorder_args a = k->args;
  if (k->same) return cuda_copy_view(l);
  if (k->strided) return tn_cuda_strided_launch(l, &k->copy, l->out[0].data, l->in[0].data);
  a.to = l->out[0].data;
  a.from = l->in[0].data;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, reorder, "cuda_reorder", "y = reorder(x)", "a tensor in another layout",
                 TN_KERNEL_CALLBACKS(cuda_reorder));

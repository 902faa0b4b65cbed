/* backends/cuda/kernels/gather.c: gather and scatter (device/gather.cu). An index outside the axis gives NaN,
 * or 0 of integers, and its update is left out; the reference fails. Half floats are updated in f32 in the
 * workspace.
 */
#include "backends/cuda/device/gather.cuh"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/index_walk.h"
#include "backends/shared/lane.h"
#include "tenon/attributes.h"

typedef struct gather_kernel {
  tn_cuda_function function, begin, end; /* begin, end: of scatter */
  tn_cuda_grid grid, elements;           /* elements: of begin and end */
  struct index_args args;
} gather_kernel;

static void gather_fill_args(const tn_node *n, const tn_type *wide, const tn_type *reach, int64_t axis,
                             struct index_args *a) {
  tn_index_walk w = tn_index_walk_make(wide, reach, axis, n->in[1]->rank != n->in[0]->rank);
  for (int32_t i = 0; i < w.rank; i++) {
    a->dims[i] = w.dims[i];
    a->strides[i] = w.strides[i];
    a->reach_strides[i] = w.reach_strides[i];
  }
  a->rank = w.rank;
  a->axis = w.axis;
  a->size = w.size;
  a->vector = w.vector;
  a->is_long = n->in[1]->dtype == TN_I64;
}

/* ---- gather ---- */

static tn_status cuda_gather_query(tn_query *q) {
  return tn_offer(q, (tn_variant){.name = "elements",
                                  .prepared_bytes = sizeof(gather_kernel),
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS,
                                                            2 * (double)tn_type_bytes(q->match->out[0]))});
}

static tn_status cuda_gather_prepare(tn_prepare *p, void **made) {
  static const unsigned long long nan[TN_DTYPES] = {
      [TN_F16] = 0x7e00, [TN_BF16] = 0x7fc0, [TN_F32] = 0x7fc00000, [TN_F64] = 0x7ff8000000000000};
  const tn_node *n = p->match->nodes[0].node;
  const tn_axis_attributes *a = n->attributes;
  gather_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  k->args.count = tn_type_count(&n->out[0]);
  if (k->args.count == 0) return TN_OK;
  gather_fill_args(n, n->in[0], &n->out[0], a->axis, &k->args);
  k->args.missing = nan[n->in[0]->dtype];
  k->grid = tn_cuda_grid_of(k->args.count, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  return tn_cuda_request(p, &k->function, "gather.cu", "gather_%d", (int)tn_dtype_size(n->in[0]->dtype));
}

static void cuda_gather_release(tn_env *env, void *made) {
  gather_kernel *k = made;
  tn_cuda_withdraw(&k->function);
  tn_cuda_withdraw(&k->begin);
  tn_cuda_withdraw(&k->end);
  tn_delete(env, k);
}

static tn_status cuda_gather_launch(tn_launch *l) {
  const gather_kernel *k = l->prepared;
  struct index_args a = k->args;
  if (a.count == 0) return TN_OK;
  a.x = l->in[0].data;
  a.index = l->in[1].data;
  a.y = l->out[0].data;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, gather, "cuda_gather", "y = gather(x, index)", "elements by their indices",
                 TN_KERNEL_CALLBACKS(cuda_gather));

/* ---- scatter ---- */

static int64_t scatter_workspace(const tn_type *y) {
  return tn_lane_is_stored(y->dtype) ? 0 : tn_type_count(y) * (int64_t)sizeof(float);
}

static tn_status cuda_scatter_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  const tn_match *m = q->match;
  double bytes = tn_match_bytes(m) + 2 * (double)scatter_workspace(m->out[0]);
  return tn_offer(
      q, (tn_variant){.name = "in order",
                      .prepared_bytes = sizeof(gather_kernel),
                      .workspace_bytes = scatter_workspace(m->out[0]),
                      .n_inplace = 1,
                      .inplace = inplace,
                      .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, bytes) + q->device->launch_s});
}

static tn_status cuda_scatter_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_scatter_attributes *a = n->attributes;
  const char *dtype = tn_dtype_name(n->in[0]->dtype);
  gather_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  int64_t elements = tn_type_count(&n->out[0]), updates = tn_type_count(n->in[2]);
  if (elements == 0) return TN_OK;
  gather_fill_args(n, n->in[0], n->in[2], a->axis, &k->args);
  k->args.mode = a->mode;
  k->args.count = updates > 0 ? updates / k->args.dims[k->args.axis] : 0;
  k->elements = tn_cuda_grid_of(elements, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  if (updates > 0) k->grid = tn_cuda_grid_of(k->args.count, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  TN_TRY(tn_cuda_request(p, &k->function, "gather.cu", "scatter_%s", dtype));
  TN_TRY(tn_cuda_request(p, &k->begin, "gather.cu", "scatter_begin_%s", dtype));
  return tn_cuda_request(p, &k->end, "gather.cu", "scatter_end_%s", dtype);
}

static tn_status cuda_scatter_launch(tn_launch *l) {
  const gather_kernel *k = l->prepared;
  const tn_type *type = &l->out[0].type;
  bool stored = tn_lane_is_stored(type->dtype);
  struct index_args a = k->args, all = k->args;
  all.count = tn_type_count(type);
  if (all.count == 0) return TN_OK;
  all.x = l->in[0].data;
  all.y = a.y = stored ? l->out[0].data : l->workspace;
  a.index = l->in[1].data;
  a.updates = l->in[2].data;
  tn_status status = all.x != all.y ? tn_cuda_launch(l, &k->begin, &k->elements, &all, sizeof all) : TN_OK;
  if (status == TN_OK && a.count > 0) status = tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
  all.x = l->workspace;
  all.y = l->out[0].data;
  return status != TN_OK || stored ? status : tn_cuda_launch(l, &k->end, &k->elements, &all, sizeof all);
}

TN_DEFINE_KERNEL(cuda, scatter, "cuda_scatter", "y = scatter(x, index, updates)",
                 "applies updates in their order along the axis",
                 TN_KERNEL_CALLBACKS_WITH(cuda_scatter, cuda_gather_release));

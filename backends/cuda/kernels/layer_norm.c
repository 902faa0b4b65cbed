/* backends/cuda/kernels/layer_norm.c: layer_norm of row-major operands (device/layer_norm.cu) and its
 * gradient, also with the gradient of a residual added to it (device/layer_norm_grad.cu). */
#include <stdio.h>
#include <stdbool.h>

#include "backends/cuda/device/rows.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/threads.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum {
  NORM_SHARED = 32 << 10, /* bytes for the sums of a block; beyond it they are in the workspace */
  NORM_BLOCKS = 512       /* of the gradient: each has sums of its own */
};

static int32_t cuda_norm_wide(const tn_match *m) { return m->in[0]->dtype == TN_F64 ? TN_F64 : TN_F32; }

static tn_status cuda_norm_check(tn_query *q, int32_t first) {
  const tn_match *m = q->match;
  if (!tn_dtype_is_float(m->in[0]->dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16, f32 or f64",
                   tn_dtype_name(m->in[0]->dtype));
  for (int32_t i = first; i < m->nodes[0].node->n_in; i++)
    if (m->in[i] != NULL && m->in[i]->dtype != cuda_norm_wide(m))
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "operand %d is %s for elements of %s, expected %s", (int)i,
                     tn_dtype_name(m->in[i]->dtype), tn_dtype_name(m->in[0]->dtype),
                     tn_dtype_name(cuda_norm_wide(m)));
  return TN_OK;
}

static void cuda_norm_count(const tn_type *x, int64_t trailing, long long *rows, long long *n) {
  *rows = *n = 1;
  for (int32_t i = 0; i < x->rank; i++) *(i < x->rank - trailing ? rows : n) *= x->dims[i];
}

/* ---- layer_norm ---- */

typedef struct norm_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct layer_norm_args args;
} norm_kernel;

static tn_status cuda_norm_query(tn_query *q) {
  static const int32_t inplace[1][2] = {{0, 0}};
  tn_status status = cuda_norm_check(q, 1);
  if (status != TN_OK) return status;
  tn_variant v = {.struct_size = sizeof v,
                  .name = "two passes",
                  .prepared_bytes = sizeof(norm_kernel),
                  .n_inplace = 1,
                  .inplace = inplace,
                  .cost_s = tn_cost_of_bytes(q->device, tn_match_bytes(q->match)),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status cuda_norm_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  const tn_norm_attributes *attributes = n->attributes;
  int64_t pack = 16 / (int64_t)tn_dtype_size(n->in[0]->dtype);
  char name[TN_CUDA_FUNCTION_NAME];
  norm_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *made = keep;
  struct layer_norm_args *a = &keep->args;
  cuda_norm_count(n->in[0], attributes->trailing, &a->rows, &a->n);
  a->epsilon = attributes->epsilon;
  a->vector = a->n % pack == 0;
  a->lanes = tn_cuda_row_lanes(a->rows, a->vector ? a->n / pack : a->n, ROWS_THREADS);
  keep->grid = tn_cuda_task_grid(a->rows, ROWS_THREADS / a->lanes, ROWS_THREADS);
  snprintf(name, sizeof name, "layer_norm_%s", tn_dtype_name(n->in[0]->dtype));
  return tn_cuda_request(p, &keep->function, "layer_norm.cu", name);
}

static void cuda_norm_release(tn_env *env, void *made) {
  norm_kernel *k = made;
  tn_cuda_withdraw(&k->function);
  tn_delete(env, k);
}

static tn_status cuda_norm_launch(tn_launch *l) {
  const norm_kernel *k = l->prepared;
  struct layer_norm_args a = k->args;
  a.x = l->in[0].data;
  a.weight = l->in[1].data;
  a.bias = l->in[2].data;
  a.y = l->out[0].data;
  a.mean = l->out[1].data;
  a.rstd = l->out[2].data;
  if (!tn_cuda_is_aligned(a.x) || !tn_cuda_is_aligned(a.y)) a.vector = 0;
  return tn_cuda_launch(l, &k->function, &k->grid, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, layer_norm, "cuda_layer_norm", "y, mean, rstd = layer_norm(x, weight?, bias?)",
                 "layer norm over trailing dimensions", TN_KERNEL_CALLBACKS(cuda_norm));

/* ---- layer_norm_grad ---- */

typedef struct norm_grad_kernel {
  tn_cuda_function rows, blocks;
  tn_cuda_grid rows_grid, blocks_grid;
  struct layer_norm_grad_args args;
} norm_grad_kernel;

static void cuda_norm_grad_make(const tn_match *m, norm_grad_kernel *k) {
  const tn_norm_attributes *attributes = m->nodes[0].node->attributes;
  struct layer_norm_grad_args *a = &k->args;
  int64_t wide = (int64_t)tn_dtype_size(cuda_norm_wide(m)),
          pack = 16 / (int64_t)tn_dtype_size(m->in[0]->dtype);
  *k = (norm_grad_kernel){0};
  cuda_norm_count(m->in[1], attributes->trailing, &a->rows, &a->n);
  a->vector = a->n % pack == 0;
  a->pack = a->vector ? (int)pack : 1;
  a->lanes = tn_cuda_row_lanes(a->rows, a->n / a->pack, ROWS_THREADS);
  if (ROWS_THREADS / a->lanes * 2 * a->n * wide > NORM_SHARED) {
    a->lanes = ROWS_THREADS;
    a->in_workspace = 2 * a->n * wide > NORM_SHARED;
  }
  int64_t groups = ROWS_THREADS / a->lanes;
  a->blocks = tn_cuda_least(tn_cuda_divide_up(a->rows, groups), NORM_BLOCKS);
  k->rows_grid = tn_cuda_task_grid(a->blocks, 1, ROWS_THREADS);
  if (!a->in_workspace) k->rows_grid.shared_bytes = (uint32_t)(groups * 2 * a->n * wide);
  k->blocks_grid = tn_cuda_task_grid(2 * a->n, TN_CUDA_WARP, ROWS_THREADS);
}

/* The residual has the type of the result, and no rounding comes between the gradient and the sum. */
static tn_status cuda_norm_check_sum(tn_query *q) {
  const tn_match *m = q->match;
  bool wide = m->in[0]->dtype == TN_F32 || m->in[0]->dtype == TN_F64;
  if (m->n_nodes == 1) return TN_OK;
  if (wide && tn_type_equal(m->in[5], m->out[0]) && tn_type_equal(m->in[5], m->in[0])) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "the sum behind the gradient broadcasts, or elements are not f32 or f64");
}

static tn_status cuda_norm_grad_query(tn_query *q) {
  static const int32_t inplace[2][2] = {{0, 0}, {5, 0}};
  const tn_match *m = q->match;
  norm_grad_kernel k;
  tn_status status = cuda_norm_check(q, 2);
  if (status == TN_OK) status = cuda_norm_check_sum(q);
  if (status != TN_OK) return status;
  cuda_norm_grad_make(m, &k);
  int64_t sums = k.args.blocks * 2 * k.args.n * (int64_t)tn_dtype_size(cuda_norm_wide(m));
  tn_variant v = {.struct_size = sizeof v,
                  .name = "two launches",
                  .workspace_bytes = sums,
                  .prepared_bytes = sizeof k,
                  .n_inplace = m->n_nodes,
                  .inplace = inplace,
                  .cost_s =
                      tn_cost_of_bytes(q->device, tn_match_bytes(m) + 2 * (double)sums) + q->device->launch_s,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status cuda_norm_grad_prepare(tn_prepare *p, void **made) {
  const tn_match *m = p->match;
  char name[TN_CUDA_FUNCTION_NAME];
  norm_grad_kernel *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  *made = keep;
  cuda_norm_grad_make(m, keep);
  snprintf(name, sizeof name, "layer_norm_grad_rows_%s", tn_dtype_name(m->in[0]->dtype));
  tn_status status = tn_cuda_request(p, &keep->rows, "layer_norm_grad.cu", name);
  if (status != TN_OK) return status;
  snprintf(name, sizeof name, "layer_norm_grad_blocks_%s", tn_dtype_name(cuda_norm_wide(m)));
  return tn_cuda_request(p, &keep->blocks, "layer_norm_grad.cu", name);
}

static void cuda_norm_grad_release(tn_env *env, void *made) {
  norm_grad_kernel *k = made;
  tn_cuda_withdraw(&k->rows);
  tn_cuda_withdraw(&k->blocks);
  tn_delete(env, k);
}

static tn_status cuda_norm_grad_launch(tn_launch *l) {
  const norm_grad_kernel *k = l->prepared;
  struct layer_norm_grad_args a = k->args;
  a.dy = l->in[0].data;
  a.x = l->in[1].data;
  a.mean = l->in[2].data;
  a.rstd = l->in[3].data;
  a.weight = l->in[4].data;
  a.more = l->n_in > 5 ? l->in[5].data : NULL;
  a.dx = l->out[0].data;
  a.dweight = l->out[1].data;
  a.dbias = l->out[2].data;
  a.sums = l->workspace;
  if (!tn_cuda_is_aligned(a.dy) || !tn_cuda_is_aligned(a.x) || !tn_cuda_is_aligned(a.more) ||
      !tn_cuda_is_aligned(a.dx)) {
    a.vector = 0;
    a.pack = 1;
  }
  tn_status status = tn_cuda_launch(l, &k->rows, &k->rows_grid, &a, sizeof a);
  return status == TN_OK ? tn_cuda_launch(l, &k->blocks, &k->blocks_grid, &a, sizeof a) : status;
}

TN_DEFINE_KERNEL(cuda, layer_norm_grad, "cuda_layer_norm_grad",
                 "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?)",
                 "all gradients of a layer norm in one pass over its rows",
                 TN_KERNEL_CALLBACKS(cuda_norm_grad));
TN_DEFINE_KERNEL(
    cuda, layer_norm_grad_add, "cuda_layer_norm_grad_add",
    "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?); s = add(dx, r) -> s, dweight, dbias",
    "all gradients of a layer norm, and the gradient of a residual added to them",
    TN_KERNEL_CALLBACKS(cuda_norm_grad));

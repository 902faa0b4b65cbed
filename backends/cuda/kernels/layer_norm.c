/* backends/cuda/kernels/layer_norm.c: layer_norm of row-major operands (device/layer_norm.cu) and its
 * gradient, also with the gradient of a residual added to it (device/layer_norm_grad.cu).
 *
 * In half precision the norm is f32 between products of 16 bits, and the casts are part of its launch: of the
 * result, of dy, and of the gradient that goes on to the products before the residual, where the sum of its
 * rows, the gradient of a bias, is computed with it. */
#include <stdio.h>
#include <stdbool.h>
#include <string.h>

#include "backends/cuda/device/rows.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

/* Of the gradient: blocks on a multiprocessor, which its registers have room for. Each has sums of its own.
 */
enum { NORM_BLOCKS = 3, NORM_PROCESSORS = 132 /* where the device does not say */ };

/* The first node of an op; NULL: the match has no such op. */
static const tn_node *cuda_norm_find(const tn_match *m, const char *op) {
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strcmp(m->nodes[i].node->op, op) == 0) return m->nodes[i].node;
  return NULL;
}

static const tn_node *cuda_norm_node(const tn_match *m) {
  const tn_node *n = cuda_norm_find(m, "layer_norm");
  return n != NULL ? n : cuda_norm_find(m, "layer_norm_grad");
}

static const tn_type *cuda_norm_x(const tn_match *m) { return m->in[m->n_in >= 5 ? 1 : 0]; }

static int32_t cuda_norm_wide(const tn_match *m) { return cuda_norm_x(m)->dtype == TN_F64 ? TN_F64 : TN_F32; }

static tn_status cuda_norm_check(tn_query *q, int32_t first) {
  const tn_match *m = q->match;
  int32_t dtype = cuda_norm_x(m)->dtype;
  if (!tn_dtype_is_float(dtype))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f16, bf16, f32 or f64",
                   tn_dtype_name(dtype));
  for (int32_t i = first; i < cuda_norm_node(m)->n_in; i++)
    if (m->in[i] != NULL && m->in[i]->dtype != cuda_norm_wide(m))
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "operand %d is %s for elements of %s, expected %s", (int)i,
                     tn_dtype_name(m->in[i]->dtype), tn_dtype_name(dtype), tn_dtype_name(cuda_norm_wide(m)));
  return TN_OK;
}

/* Casts are between f32 and the type of products. */
static tn_status cuda_norm_check_casts(tn_query *q, int32_t narrow) {
  const tn_match *m = q->match;
  if (cuda_norm_find(m, "cast") == NULL ||
      (cuda_norm_x(m)->dtype == TN_F32 && (narrow == TN_F16 || narrow == TN_BF16)))
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "a cast between %s and %s, expected f32 and f16 or bf16",
                 tn_dtype_name(cuda_norm_x(m)->dtype), tn_dtype_name(narrow));
}

/* "layer_norm_f32", or "layer_norm_f32_bf16" where operands or results are narrower than x. */
static void cuda_norm_name(const tn_match *m, const char *what, int32_t narrow,
                           char name[TN_CUDA_FUNCTION_NAME]) {
  int32_t dtype = cuda_norm_x(m)->dtype;
  if (narrow == dtype)
    snprintf(name, TN_CUDA_FUNCTION_NAME, "%s_%s", what, tn_dtype_name(dtype));
  else
    snprintf(name, TN_CUDA_FUNCTION_NAME, "%s_%s_%s", what, tn_dtype_name(dtype), tn_dtype_name(narrow));
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
  TN_TRY(cuda_norm_check(q, 1));
  TN_TRY(cuda_norm_check_casts(q, q->match->out[0]->dtype));
  return tn_offer(q,
                  (tn_variant){.name = "two passes",
                               .prepared_bytes = sizeof(norm_kernel),
                               .n_inplace = q->match->n_nodes == 1,
                               .inplace = inplace,
                               .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(q->match))});
}

static tn_status cuda_norm_prepare(tn_prepare *p, void **made) {
  const tn_node *n = cuda_norm_node(p->match);
  const tn_norm_attributes *attributes = n->attributes;
  int64_t pack = 16 / (int64_t)tn_dtype_size(n->in[0]->dtype);
  char name[TN_CUDA_FUNCTION_NAME];
  norm_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  struct layer_norm_args *a = &keep->args;
  cuda_norm_count(n->in[0], attributes->trailing, &a->rows, &a->n);
  a->epsilon = attributes->epsilon;
  a->vector = a->n % pack == 0;
  a->lanes = tn_cuda_row_lanes(a->rows, a->vector ? a->n / pack : a->n, ROWS_THREADS);
  keep->grid = tn_cuda_task_grid(a->rows, ROWS_THREADS / a->lanes, ROWS_THREADS);
  cuda_norm_name(p->match, "layer_norm", p->match->out[0]->dtype, name);
  return tn_cuda_request(p, &keep->function, "layer_norm.cu", "%s", name);
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
                 "layer norm over trailing dimensions",
                 TN_KERNEL_CALLBACKS_WITH(cuda_norm, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, layer_norm_cast, "cuda_layer_norm_cast",
                 "y, mean, rstd = layer_norm(x, weight?, bias?); c = cast(y) -> c, mean, rstd",
                 "layer norm of f32 with a result in f16 or bf16",
                 TN_KERNEL_CALLBACKS_WITH(cuda_norm, tn_cuda_release_function));

/* ---- layer_norm_grad ---- */

typedef struct norm_grad_kernel {
  bool adds;
  tn_cuda_function rows, blocks;
  tn_cuda_grid rows_grid, blocks_grid;
  struct layer_norm_grad_args args;
} norm_grad_kernel;

/* Bytes for the sums of a block; beyond it they are in the workspace. A block has 1 KiB that is not its own.
 */
static int64_t cuda_norm_most_shared(const tn_device_properties *d) {
  return tn_cuda_shared_bytes(d) / NORM_BLOCKS - (1 << 10);
}

static int64_t cuda_norm_most_blocks(const tn_device_properties *d) {
  return NORM_BLOCKS * (d->processors > 0 ? d->processors : NORM_PROCESSORS);
}

static void cuda_norm_grad_make(const tn_match *m, const tn_device_properties *d, norm_grad_kernel *k) {
  const tn_norm_attributes *attributes = cuda_norm_node(m)->attributes;
  struct layer_norm_grad_args *a = &k->args;
  int64_t wide = (int64_t)tn_dtype_size(cuda_norm_wide(m)),
          pack = 16 / (int64_t)tn_dtype_size(cuda_norm_x(m)->dtype);
  *k = (norm_grad_kernel){.adds = cuda_norm_find(m, "add") != NULL};
  a->sets = cuda_norm_find(m, "reduce_sum") != NULL ? 3 : 2;
  cuda_norm_count(m->in[1], attributes->trailing, &a->rows, &a->n);
  a->vector = a->n % pack == 0;
  a->pack = a->vector ? (int)pack : 1;
  a->lanes = tn_cuda_row_lanes(a->rows, a->n / a->pack, ROWS_THREADS);
  int64_t of_group = a->sets * a->n * wide, most_shared = cuda_norm_most_shared(d);
  while (a->lanes < TN_CUDA_WARP && ROWS_THREADS / a->lanes * of_group > most_shared) a->lanes *= 2;
  if (ROWS_THREADS / a->lanes * of_group > most_shared) a->lanes = ROWS_THREADS;
  a->in_workspace = of_group > most_shared;
  int64_t groups = ROWS_THREADS / a->lanes;
  a->blocks = least(divide_up(a->rows, groups), cuda_norm_most_blocks(d));
  k->rows_grid = tn_cuda_task_grid(a->blocks, 1, ROWS_THREADS);
  if (!a->in_workspace) k->rows_grid.shared_bytes = (uint32_t)(groups * of_group);
  k->blocks_grid = tn_cuda_task_grid(a->sets * a->n, TN_CUDA_WARP, ROWS_THREADS);
}

/* The residual has the type of the result, and no rounding comes between the gradient and the sum. */
static tn_status cuda_norm_check_sum(tn_query *q) {
  const tn_match *m = q->match;
  int32_t dtype = cuda_norm_x(m)->dtype;
  if (cuda_norm_find(m, "add") == NULL) return TN_OK;
  if ((dtype == TN_F32 || dtype == TN_F64) && tn_type_equal(m->in[5], m->out[0]) &&
      tn_type_equal(m->in[5], cuda_norm_x(m)))
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL,
                 "the sum behind the gradient broadcasts, or elements are not f32 or f64");
}

/* The copy has the type of dy, and the sums are over all rows. */
static tn_status cuda_norm_check_copy(tn_query *q, const struct layer_norm_grad_args *a) {
  const tn_match *m = q->match;
  const tn_node *sum = cuda_norm_find(m, "reduce_sum");
  if (m->n_out > 3 && m->out[3]->dtype != m->in[0]->dtype)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the gradient is cast to %s, its operand from %s",
                   tn_dtype_name(m->out[3]->dtype), tn_dtype_name(m->in[0]->dtype));
  if (sum == NULL) return TN_OK;
  const tn_reduce_attributes *r = sum->attributes;
  if (sum->in[0]->rank == 2 && sum->in[0]->dims[1] == a->n && r->axes.n == 1 &&
      (r->axes.v[0] == 0 || r->axes.v[0] == -2))
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "the sum behind the gradient is not over its rows");
}

static tn_status cuda_norm_grad_check(tn_query *q, norm_grad_kernel *k) {
  TN_TRY(cuda_norm_check(q, 2));
  TN_TRY(cuda_norm_check_casts(q, q->match->in[0]->dtype));
  TN_TRY(cuda_norm_check_sum(q));
  cuda_norm_grad_make(q->match, q->device, k);
  return cuda_norm_check_copy(q, &k->args);
}

static tn_status cuda_norm_grad_query(tn_query *q) {
  static const int32_t inplace[2][2] = {{5, 0}, {0, 0}};
  const tn_match *m = q->match;
  norm_grad_kernel k;
  TN_TRY(cuda_norm_grad_check(q, &k));
  bool same = cuda_norm_find(m, "cast") == NULL;
  int64_t sums = k.args.blocks * k.args.sets * k.args.n * (int64_t)tn_dtype_size(cuda_norm_wide(m));
  return tn_offer(q, (tn_variant){.name = "two launches",
                                  .workspace_bytes = sums,
                                  .prepared_bytes = sizeof k,
                                  .n_inplace = k.adds + same,
                                  .inplace = k.adds ? inplace : &inplace[1],
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS,
                                                            tn_match_bytes(m) + 2 * (double)sums) +
                                            q->device->launch_s});
}

static tn_status cuda_norm_grad_prepare(tn_prepare *p, void **made) {
  const tn_match *m = p->match;
  char name[TN_CUDA_FUNCTION_NAME];
  norm_grad_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  cuda_norm_grad_make(m, p->device, keep);
  cuda_norm_name(m, "layer_norm_grad_rows", m->in[0]->dtype, name);
  TN_TRY(tn_cuda_request(p, &keep->rows, "layer_norm_grad.cu", "%s", name));
  keep->rows.shared_bytes = keep->rows_grid.shared_bytes;
  return tn_cuda_request(p, &keep->blocks, "layer_norm_grad.cu", "layer_norm_grad_blocks_%s",
                         tn_dtype_name(cuda_norm_wide(m)));
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
  a.more = k->adds ? l->in[5].data : NULL;
  a.dx = l->out[0].data;
  a.dweight = l->out[1].data;
  a.dbias = l->out[2].data;
  a.copy = l->n_out > 3 ? l->out[3].data : NULL;
  a.dsum = l->n_out > 4 ? l->out[4].data : NULL;
  a.sums = l->workspace;
  if (!tn_cuda_is_aligned(a.dy) || !tn_cuda_is_aligned(a.x) || !tn_cuda_is_aligned(a.more) ||
      !tn_cuda_is_aligned(a.dx) || !tn_cuda_is_aligned(a.copy)) {
    a.vector = 0;
    a.pack = 1;
  }
  tn_status status = tn_cuda_launch(l, &k->rows, &k->rows_grid, &a, sizeof a);
  return status == TN_OK ? tn_cuda_launch(l, &k->blocks, &k->blocks_grid, &a, sizeof a) : status;
}

#define GRADIENT         "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?)"
#define GRADIENT_OF_CAST "f = cast(dy); dx, dweight, dbias = layer_norm_grad(f, x, mean, rstd, weight?)"
#define NORM_GRAD(NAME, PATTERN, WHAT)                                                                       \
  TN_DEFINE_KERNEL(cuda, NAME, "cuda_" #NAME, PATTERN, WHAT, TN_KERNEL_CALLBACKS(cuda_norm_grad))

NORM_GRAD(layer_norm_grad, GRADIENT, "all gradients of a layer norm in one pass over its rows");
NORM_GRAD(layer_norm_grad_add, GRADIENT "; s = add(dx, r) -> s, dweight, dbias",
          "all gradients of a layer norm, and the gradient of a residual added to them");
NORM_GRAD(layer_norm_grad_of_cast, GRADIENT_OF_CAST, "all gradients of a layer norm, dy in f16 or bf16");
NORM_GRAD(layer_norm_grad_add_of_cast, GRADIENT_OF_CAST "; s = add(dx, r) -> s, dweight, dbias",
          "all gradients of a layer norm, dy in f16 or bf16, and the gradient of a residual added to them");
NORM_GRAD(layer_norm_grad_cast, GRADIENT_OF_CAST "; c = cast(dx) -> dx, dweight, dbias, c",
          "all gradients of a layer norm, dy in f16 or bf16, dx also in its type");
NORM_GRAD(layer_norm_grad_add_cast, GRADIENT_OF_CAST "; s = add(dx, r); c = cast(s) -> s, dweight, dbias, c",
          "all gradients of a layer norm, dy in f16 or bf16, and the gradient of a residual added to them, "
          "also in its type");
NORM_GRAD(layer_norm_grad_cast_sum,
          GRADIENT_OF_CAST "; c = cast(dx); v = reshape(dx); t = reduce_sum(v) -> dx, dweight, dbias, c, t",
          "all gradients of a layer norm, dy in f16 or bf16, dx also in its type, and the sum of its rows");
NORM_GRAD(layer_norm_grad_add_cast_sum,
          GRADIENT_OF_CAST "; s = add(dx, r); c = cast(s); v = reshape(s); t = reduce_sum(v) "
                           "-> s, dweight, dbias, c, t",
          "all gradients of a layer norm, dy in f16 or bf16, and the gradient of a residual added to them, "
          "also in its type, and the sum of its rows");

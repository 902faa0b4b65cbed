/* backends/cuda/kernels/reduce.c: sums, extremes, argmax, moments and the sums of a normalization's gradient,
 * over any axes, of row-major operands, of images with channels innermost, and of one operand with padded
 * rows (device/reduce_kernels.cuh). */
#include <string.h>

#include "backends/cuda/kernels/image_layouts.h"
#include "backends/cuda/kernels/reduce.h"
#include "backends/cuda/padded_rows.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

/* The variant behind those of images (image_layouts.h): of one operand whose rows are padded. */
enum { TN_CUDA_PADDED_ROWS = TN_CUDA_CHANNELS_LAST + 1, CUDA_REDUCE_LAYOUTS };

static const tn_cuda_reduce_op cuda_reduce_ops[] = {
    {"reduce_sum", "sum_of", 1, false, false},     {"reduce_max", "largest_of", 1, false, true},
    {"reduce_min", "smallest_of", 1, false, true}, {"argmax", "argmax_of", 2, false, true},
    {"moments", "moments_run", 3, true, false},    {"norm_grad_sums", "grads_of", 2, true, false}};

const tn_cuda_reduce_op *tn_cuda_reduce_op_of(const char *op) {
  for (size_t i = 0; i < sizeof cuda_reduce_ops / sizeof *cuda_reduce_ops; i++)
    if (strcmp(cuda_reduce_ops[i].op, op) == 0) return &cuda_reduce_ops[i];
  return NULL;
}

static const tn_cuda_reduce_op *cuda_reduce_op(const tn_match *m) {
  return tn_cuda_reduce_op_of(m->nodes[0].node->op);
}

static void cuda_reduce_mark_axes(const tn_node *n, bool *reduced) {
  const tn_reduce_attributes *a = n->attributes;
  int32_t rank = n->in[0]->rank;
  if (strcmp(n->op, "argmax") == 0) {
    int64_t axis = ((const tn_axis_attributes *)n->attributes)->axis;
    reduced[axis < 0 ? axis + rank : axis] = true;
    return;
  }
  for (int32_t i = 0; i < rank; i++) reduced[i] = a->axes.n == 0;
  for (int64_t i = 0; i < a->axes.n; i++)
    reduced[a->axes.v[i] < 0 ? a->axes.v[i] + rank : a->axes.v[i]] = true;
}

static bool cuda_reduce_takes_padded_rows(const tn_match *m) {
  return m->n_nodes == 1 && m->n_in == 1 && tn_cuda_offers_padded_rows(m->in[0]);
}

bool tn_cuda_reduce_make(const tn_match *m, int32_t variant, tn_cuda_reduction *r) {
  const tn_node *n = m->nodes[0].node;
  const tn_type *x = n->in[0];
  bool reduced[TN_MAX_RANK] = {false}, padded = variant == TN_CUDA_PADDED_ROWS;
  tn_layout layout =
      variant == TN_CUDA_CHANNELS_LAST ? tn_cuda_image_layout(variant).layout : tn_layout_row_major(x->rank);
  if (variant == TN_CUDA_CHANNELS_LAST && x->rank != 4) return false;
  if (padded && !cuda_reduce_takes_padded_rows(m)) return false;
  cuda_reduce_mark_axes(n, reduced);
  const tn_cuda_run run = {.length = padded ? tn_cuda_padded_columns(x) : 0};
  return tn_cuda_reduction_make(r, x, layout.order, run, reduced);
}

tn_status tn_cuda_reduce_check(tn_query *q, const tn_cuda_reduction *r) {
  const tn_node *n = q->match->nodes[0].node;
  const tn_cuda_reduce_op *o = cuda_reduce_op(q->match);
  int32_t x = n->in[0]->dtype;
  if (x == TN_U8 || x == TN_BOOL || (o->floats && !tn_dtype_is_float(x)))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s does not support elements of type %s", n->op,
                   tn_dtype_name(x));
  if (o->extreme && r->args.count == 0 && r->args.results > 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s over no elements has no value", n->op);
  return TN_OK;
}

static tn_operand_layout cuda_reduce_layout(const tn_match *m, int32_t variant) {
  return variant == TN_CUDA_PADDED_ROWS ? tn_cuda_padded_rows(m->in[0]) : tn_cuda_image_layout(variant);
}

static tn_status cuda_reduce_query(tn_query *q) {
  static const char *const names[CUDA_REDUCE_LAYOUTS] = {"row-major", "channels last", "padded rows"};
  const tn_match *m = q->match;
  tn_cuda_reduction r;
  tn_cuda_reduce_make(m, TN_CUDA_ROW_MAJOR, &r);
  tn_status status = tn_cuda_reduce_check(q, &r);
  for (int32_t how = TN_CUDA_ROW_MAJOR; how < CUDA_REDUCE_LAYOUTS && status == TN_OK; how++) {
    if (!tn_cuda_reduce_make(m, how, &r)) continue;
    tn_operand_layout in[4] = {cuda_reduce_layout(m, how), {0}, {0}, {0}};
    if (m->n_in > 1) in[1] = in[0];
    tn_offer(q, (tn_variant){.id = how,
                             .name = names[how],
                             .in = in,
                             .workspace_bytes =
                                 tn_cuda_reduction_workspace(&r, m->in[0]->dtype, cuda_reduce_op(m)->words),
                             .prepared_bytes = sizeof r,
                             .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(m)) +
                                       tn_cuda_reduction_join_s(&r, q->device)});
  }
  return status;
}

static tn_status cuda_reduce_prepare(tn_prepare *p, void **made) {
  tn_cuda_reduction *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_cuda_reduce_make(p->match, p->variant, keep);
  return tn_cuda_reduction_request(p, keep, p->match->nodes[0].node->op, p->match->in[0]->dtype);
}

static tn_status cuda_reduce_launch(tn_launch *l) {
  const tn_cuda_reduction *r = l->prepared;
  struct reduce_args a = r->args;
  a.x = l->in[0].data;
  if (l->n_in > 1) {
    a.y = l->in[1].data;
    a.mean = l->in[2].data;
    a.rstd = l->in[3].data;
  }
  for (int32_t i = 0; i < l->n_out; i++) a.out[i] = l->out[i].data;
  return tn_cuda_reduction_launch(l, r, &a, sizeof a, true);
}

#define CALLBACKS                                                                                            \
  .query = cuda_reduce_query, .prepare = cuda_reduce_prepare, .release = tn_cuda_reduction_release,          \
  .launch = cuda_reduce_launch
TN_DEFINE_KERNEL(cuda, reduce_sum, "cuda_reduce_sum", "y = reduce_sum(x)", "sums over any axes", CALLBACKS);
TN_DEFINE_KERNEL(cuda, reduce_max, "cuda_reduce_max", "y = reduce_max(x)", "largest elements over any axes",
                 CALLBACKS);
TN_DEFINE_KERNEL(cuda, reduce_min, "cuda_reduce_min", "y = reduce_min(x)", "smallest elements over any axes",
                 CALLBACKS);
TN_DEFINE_KERNEL(cuda, argmax, "cuda_argmax", "y = argmax(x)", "index of the largest element along an axis",
                 CALLBACKS);
TN_DEFINE_KERNEL(cuda, moments, "cuda_moments", "mean, variance = moments(x)",
                 "means and variances, merged pairwise", CALLBACKS);
TN_DEFINE_KERNEL(cuda, norm_grad_sums, "cuda_norm_grad_sums", "s, d = norm_grad_sums(dy, x, mean, rstd)",
                 "the sums of a normalization's gradient", CALLBACKS);

/* backends/cuda/kernels/cross_entropy.c: the losses of rows of logits along any axis, as a reduction
 * (device/cross_entropy.cu). A target that is no class makes its loss NaN, which training finds as it finds
 * other losses that are not finite; the reference fails.
 *
 * The gradient needs no kernel: core/ops/loss.c builds it from exp, where, sub and mul of the logits, lse,
 * the targets and an iota, which are one pointwise region without a reduction. */
#include "backends/cuda/kernels/reduce_plan.h"
#include "backends/cuda/padded_rows.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { LOSS_WORDS = 3 };

/* Variants. */
enum { LOSS_ROW_MAJOR, LOSS_PADDED_ROWS, LOSS_LAYOUTS };

static void cuda_loss_make(const tn_match *m, int32_t variant, tn_cuda_reduction *r) {
  const tn_cross_entropy_attributes *a = m->nodes[0].node->attributes;
  const tn_type *x = m->in[0];
  int64_t axis = a->axis < 0 ? a->axis + x->rank : a->axis;
  tn_layout plain = tn_layout_row_major(x->rank);
  bool reduced[TN_MAX_RANK] = {false};
  reduced[axis] = true;
  tn_cuda_run run = {0};
  if (variant == LOSS_PADDED_ROWS) run = (tn_cuda_run){tn_cuda_padded_columns(x), true};
  tn_cuda_reduction_make(r, x, plain.order, run, reduced);
  r->args.class_stride = 1;
  for (int64_t i = axis + 1; i < x->rank; i++) r->args.class_stride *= x->dims[i];
  r->args.ignore = a->ignore;
  r->args.smoothing = a->smoothing;
  r->args.target_bytes = (int)tn_dtype_size(m->in[1]->dtype);
}

/* The padding lies behind the classes. */
static bool cuda_loss_takes_padded_rows(const tn_match *m) {
  const tn_cross_entropy_attributes *a = m->nodes[0].node->attributes;
  return (a->axis == -1 || a->axis == m->in[0]->rank - 1) && tn_cuda_offers_padded_rows(m->in[0]);
}

static tn_status cuda_loss_query(tn_query *q) {
  const tn_match *m = q->match;
  tn_cuda_reduction r;
  if (!tn_dtype_is_float(m->in[0]->dtype) || (m->in[1]->dtype != TN_I32 && m->in[1]->dtype != TN_I64))
    return tn_fail(q, TN_EUNSUPPORTED, NULL,
                   "the scores are %s and the targets %s, expected a float type and i32 or i64",
                   tn_dtype_name(m->in[0]->dtype), tn_dtype_name(m->in[1]->dtype));
  for (int32_t how = LOSS_ROW_MAJOR; how < LOSS_LAYOUTS; how++) {
    if (how == LOSS_PADDED_ROWS && !cuda_loss_takes_padded_rows(m)) continue;
    tn_operand_layout in[2] = {{0}};
    if (how == LOSS_PADDED_ROWS) in[0] = tn_cuda_padded_rows(m->in[0]);
    cuda_loss_make(m, how, &r);
    tn_offer(q, (tn_variant){.id = how,
                             .name = how == LOSS_ROW_MAJOR ? "one pass" : "one pass, padded rows",
                             .in = in,
                             .workspace_bytes = tn_cuda_reduction_workspace(&r, m->in[0]->dtype, LOSS_WORDS),
                             .prepared_bytes = sizeof r,
                             .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(m)) +
                                       tn_cuda_reduction_join_s(&r, q->device)});
  }
  return TN_OK;
}

static tn_status cuda_loss_prepare(tn_prepare *p, void **made) {
  tn_cuda_reduction *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  cuda_loss_make(p->match, p->variant, keep);
  return tn_cuda_reduction_request(p, keep, "cross_entropy", p->match->in[0]->dtype);
}

static tn_status cuda_loss_launch(tn_launch *l) {
  const tn_cuda_reduction *r = l->prepared;
  struct reduce_args a = r->args;
  a.x = l->in[0].data;
  a.target = l->in[1].data;
  a.out[0] = l->out[0].data;
  a.out[1] = l->out[1].data;
  return tn_cuda_reduction_launch(l, r, &a, sizeof a, true);
}

TN_DEFINE_KERNEL(cuda, cross_entropy, "cuda_cross_entropy", "loss, lse = cross_entropy(logits, target)",
                 "cross entropy of classes along any axis", .query = cuda_loss_query,
                 .prepare = cuda_loss_prepare, .release = tn_cuda_reduction_release,
                 .launch = cuda_loss_launch);

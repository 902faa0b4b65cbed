/* backends/cuda/kernels/reduce_epilogue.c: a reduction with its epilogue, the pointwise region that reads its
 * results: mean, variance and the running statistics of a batch norm, the coefficients of its gradient. The
 * thread that stores a result computes the region there. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/image_layouts.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/reduce.h"
#include "backends/cuda/pointwise/epilogue.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum { REDUCE_OPERANDS = 4, REDUCE_RESULTS = 2 };

/* The argument of the functions (REDUCE_WITH_EPILOGUE). */
typedef struct reduce_joined_args {
  struct reduce_args reduction;
  uint64_t words[TN_CUDA_EPILOGUE_WORDS];
} reduce_joined_args;
_Static_assert(sizeof(reduce_joined_args) <= 4096, "CUDA's limit of arguments");

/* Numbers of operands and results of the launch; -1: the result has no memory. */
typedef struct joined_kernel {
  tn_cuda_reduction reduction; /* first: tn_cuda_reduction_release */
  int32_t n_in, in[REDUCE_OPERANDS], out[REDUCE_RESULTS];
  tn_cuda_epilogue epilogue;
} joined_kernel;

/* A match, taken apart, with its region printed. */
typedef struct joined_match {
  tn_epilogue_part op;
  tn_cuda_epilogue_text text;
} joined_match;

/* ---- the match ---- */

static const tn_match_node *joined_op_node(const tn_match *m) {
  const tn_match_node *n = m->nodes;
  while (tn_cuda_reduce_op_of(n->node->op) == NULL) n++;
  return n;
}

static const tn_node *joined_op(const joined_match *j) { return j->op.match.nodes[0].node; }

static void joined_drop(const void *handle, joined_match *j) {
  if (j == NULL) return;
  tn_cuda_epilogue_drop(handle, &j->text);
  tn_epilogue_drop_part(handle, &j->op);
  tn_delete(handle, j);
}

static tn_status joined_print(const void *handle, joined_match *j) {
  const tn_node *op = joined_op(j);
  char tail[128];
  static const char *const elements[TN_DTYPES] = {[TN_I32] = "i32",   [TN_I64] = "i64", [TN_F16] = "f16",
                                                  [TN_BF16] = "bf16", [TN_F32] = "f32", [TN_F64] = "f64"};
  snprintf(tail, sizeof tail,
           "#include \"backends/cuda/device/reduce_kernels.cuh\"\n\nREDUCE_WITH_EPILOGUE(%s, %s)\n",
           tn_cuda_reduce_op_of(op->op)->accumulator, elements[op->in[0]->dtype]);
  return tn_cuda_epilogue_print(handle, &j->text, op->n_out, tail);
}

static tn_status joined_make(const void *handle, const tn_match *m, joined_match **made) {
  joined_match *j = tn_new(handle, sizeof *j);
  *made = j;
  if (j == NULL) return TN_ENOMEM;
  tn_epilogue parts;
  tn_status status = tn_epilogue_split(handle, m, joined_op_node(m), &parts);
  j->op = parts.op;
  j->text.region = parts.region;
  return status == TN_OK ? joined_print(handle, j) : status;
}

/* ---- query ---- */

static int32_t joined_pairs(const joined_match *j, int32_t (*pairs)[2]) {
  int32_t read[REDUCE_OPERANDS];
  for (int32_t i = 0; i < j->op.match.n_in; i++) read[i] = (int32_t)j->op.source[i].at;
  return tn_cuda_epilogue_pairs(&j->text, read, j->op.match.n_in, pairs);
}

/* The reduced operands lie as the variant says. False: the region reads them, too, in row-major order. */
static bool joined_rules(const joined_match *j, int32_t how, tn_operand_layout *rules) {
  const tn_epilogue_part *op = &j->op, *region = &j->text.region;
  int32_t reduced = op->match.n_in > 1 ? 2 : 1;
  for (int32_t i = 0; i < reduced; i++) rules[op->source[i].at] = tn_cuda_image_layout(how);
  for (int32_t i = 0; i < reduced && how != TN_CUDA_ROW_MAJOR; i++)
    for (int32_t k = joined_op(j)->n_out; k < region->match.n_in; k++)
      if (region->source[k].at == op->source[i].at) return false;
  return true;
}

static void joined_add(tn_query *q, const joined_match *j, const tn_cuda_reduction *r, int32_t how,
                       const tn_operand_layout *rules, int32_t (*pairs)[2]) {
  const tn_node *op = joined_op(j);
  tn_variant v = {.struct_size = sizeof v,
                  .id = how,
                  .name = how == TN_CUDA_ROW_MAJOR ? "row-major" : "channels last",
                  .in = rules,
                  .workspace_bytes =
                      tn_cuda_reduction_workspace(r, op->in[0]->dtype, tn_cuda_reduce_op_of(op->op)->words),
                  .prepared_bytes = sizeof(joined_kernel),
                  .n_inplace = joined_pairs(j, pairs),
                  .inplace = (const int32_t(*)[2])pairs,
                  .cost_s = tn_cost_of_bytes(q->device, tn_match_bytes(q->match)) +
                            (r->args.parts > 1 ? q->device->launch_s : 0),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
}

static tn_status joined_offer(tn_query *q, const joined_match *j, tn_operand_layout *rules,
                              int32_t (*pairs)[2]) {
  tn_query part = *q;
  tn_cuda_reduction r;
  part.match = &j->op.match;
  tn_cuda_reduce_make(part.match, TN_CUDA_ROW_MAJOR, &r);
  tn_status status = tn_cuda_reduce_check(&part, &r);
  if (status != TN_OK) return status;
  for (int32_t how = TN_CUDA_ROW_MAJOR; how <= TN_CUDA_CHANNELS_LAST; how++) {
    memset(rules, 0, (size_t)q->match->n_in * sizeof *rules);
    if (tn_cuda_reduce_make(part.match, how, &r) && joined_rules(j, how, rules))
      joined_add(q, j, &r, how, rules, pairs);
  }
  return TN_OK;
}

static tn_status cuda_joined_query(tn_query *q) {
  joined_match *j = NULL;
  tn_operand_layout *rules = tn_new(q, ((size_t)q->match->n_in + 1) * sizeof *rules);
  tn_status status = rules != NULL ? joined_make(q, q->match, &j) : TN_ENOMEM;
  int32_t(*pairs)[2] =
      status == TN_OK ? tn_new(q, ((size_t)j->text.printed.n_inplace + 1) * sizeof *pairs) : NULL;
  if (status == TN_OK) status = pairs != NULL ? joined_offer(q, j, rules, pairs) : TN_ENOMEM;
  tn_delete(q, pairs);
  tn_delete(q, rules);
  joined_drop(q, j);
  return status;
}

/* ---- prepare ---- */

static void joined_keep(joined_kernel *keep, const joined_match *j) {
  const tn_epilogue_part *op = &j->op;
  keep->n_in = op->match.n_in;
  for (int32_t i = 0; i < keep->n_in; i++) keep->in[i] = (int32_t)op->source[i].at;
  for (int32_t k = 0; k < op->match.n_out; k++) {
    const tn_epilogue_source *s = &op->source[op->match.n_in + k];
    keep->out[k] = s->place == TN_EPILOGUE_RESULT ? (int32_t)s->at : -1;
  }
  tn_cuda_epilogue_keep(&j->text, &keep->epilogue);
}

static tn_status cuda_joined_prepare(tn_prepare *p, void **made) {
  joined_kernel *keep = tn_new(p, sizeof *keep);
  joined_match *j = NULL;
  char title[96];
  *made = keep;
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = joined_make(p, p->match, &j);
  if (status == TN_OK) {
    tn_cuda_reduce_make(&j->op.match, p->variant, &keep->reduction);
    joined_keep(keep, j);
    snprintf(title, sizeof title, "%s and a region of %d ops", joined_op(j)->op,
             (int)j->text.region.match.n_nodes);
    status = tn_cuda_reduction_request_text(p, &keep->reduction, title, j->text.printed.text);
  }
  joined_drop(p, j);
  return status;
}

/* ---- launch ---- */

static void *joined_result(const tn_launch *l, int32_t result) {
  return result < 0 ? NULL : l->out[result].data;
}

static void joined_point(const tn_launch *l, const joined_kernel *k, reduce_joined_args *a) {
  const void *in[REDUCE_OPERANDS] = {NULL};
  for (int32_t i = 0; i < k->n_in; i++) in[i] = l->in[k->in[i]].data;
  a->reduction.x = in[0];
  a->reduction.y = in[1];
  a->reduction.mean = in[2];
  a->reduction.rstd = in[3];
  for (int32_t i = 0; i < REDUCE_RESULTS; i++) a->reduction.out[i] = joined_result(l, k->out[i]);
  tn_cuda_epilogue_point(&k->epilogue, l, a->words);
}

static tn_status cuda_joined_launch(tn_launch *l) {
  const joined_kernel *k = l->prepared;
  reduce_joined_args a = {.reduction = k->reduction.args};
  joined_point(l, k, &a);
  return tn_cuda_reduction_launch(l, &k->reduction, &a.reduction,
                                  sizeof a.reduction + (size_t)k->epilogue.n_words * sizeof *a.words);
}

#define DEFINE_EPILOGUE(id, pattern)                                                                         \
  TN_DEFINE_KERNEL(cuda, id, "cuda_" #id, pattern "; pointwise+",                                            \
                   "the op, and the region behind it on its results", .query = cuda_joined_query,            \
                   .prepare = cuda_joined_prepare, .release = tn_cuda_reduction_release,                     \
                   .launch = cuda_joined_launch)
DEFINE_EPILOGUE(reduce_sum_epilogue, "y = reduce_sum(x)");
DEFINE_EPILOGUE(moments_epilogue, "s, q = moments(x)");
DEFINE_EPILOGUE(norm_grad_sums_epilogue, "s, d = norm_grad_sums(dy, x, mean, rstd)");

/* backends/cuda/kernels/reduce_joined.c: a reduction with the pointwise regions around it: its prologue,
 * which makes what it reads, and its epilogue, which reads its results: mean, variance and the running
 * statistics of a batch norm, the coefficients of its gradient. The thread that reads an element of the
 * operand computes the prologue there, and the one that stores a result computes the epilogue there. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/image_layouts.h"
#include "backends/cuda/kernels/reduce.h"
#include "backends/cuda/pointwise/prologue.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum { REDUCE_OPERANDS = 4, REDUCE_RESULTS = 2 };

/* The argument of the functions (REDUCE_WITH_...): the words of the prologue, then those of the epilogue. */
typedef struct reduce_joined_args {
  struct reduce_args reduction;
  uint64_t words[TN_CUDA_EPILOGUE_WORDS];
} reduce_joined_args;
_Static_assert(sizeof(reduce_joined_args) <= 4096, "CUDA's limit of arguments");

/* Numbers of operands and results of the launch; -1: made by the prologue, or without memory. */
typedef struct joined_kernel {
  tn_cuda_reduction reduction; /* first: tn_cuda_reduction_release */
  int32_t n_in, in[REDUCE_OPERANDS], out[REDUCE_RESULTS];
  tn_cuda_prologue front;  /* without words, if there is no prologue */
  tn_cuda_epilogue behind; /* likewise */
} joined_kernel;

/* A match, taken apart, with its regions printed. */
typedef struct joined_match {
  bool has_front, has_behind;
  tn_epilogue_part op;
  tn_cuda_prologue_text front;
  tn_cuda_epilogue_text behind;
  tn_cuda_front takes; /* of the prologue, but for the width */
} joined_match;

/* ---- the match ---- */

static const tn_match_node *joined_op_node(const tn_match *m) {
  const tn_match_node *n = m->nodes;
  while (tn_cuda_reduce_op_of(n->node->op) == NULL) n++;
  return n;
}

static const tn_node *joined_op(const joined_match *j) { return j->op.match.nodes[0].node; }
/* How many operands are reduced. */
static int32_t joined_reduced(const joined_match *j) { return j->op.match.n_in > 1 ? 2 : 1; }

static void joined_drop(const void *handle, joined_match *j) {
  if (j == NULL) return;
  tn_cuda_epilogue_drop(handle, &j->behind);
  tn_cuda_prologue_drop(handle, &j->front);
  tn_epilogue_drop_part(handle, &j->op);
  tn_delete(handle, j);
}

static void joined_resolve(const tn_prologue *p, tn_epilogue_part *part) {
  for (int32_t i = 0; i < part->match.n_in + part->match.n_out; i++)
    part->source[i] = tn_prologue_source(p, part->source[i]);
}

/* The operands of the epilogue behind the op's results. */
static int32_t joined_first_behind(const joined_match *j) {
  return j->has_behind ? joined_op(j)->n_out : j->behind.region.match.n_in;
}

/* Whether the epilogue reads what the prologue makes. */
static bool joined_reads_front(const joined_match *j) {
  for (int32_t k = joined_first_behind(j); k < j->behind.region.match.n_in; k++)
    if (j->behind.region.source[k].place != TN_EPILOGUE_OPERAND) return true;
  return false;
}

/* Finds which operands of the op the prologue makes. */
static tn_status joined_take(const void *handle, joined_match *j) {
  for (int32_t i = 0; i < j->op.match.n_in; i++) {
    const tn_epilogue_source *s = &j->op.source[i];
    if (s->place != TN_EPILOGUE_INNER) continue;
    if (i >= joined_reduced(j) || j->takes.n == j->front.parts.n_taken)
      return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region in front makes another operand of %s",
                     joined_op(j)->op);
    j->takes.as_y[s->at] = i == 1;
    j->takes.n++;
  }
  if (!joined_reads_front(j)) return TN_OK;
  return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the epilogue reads what the region in front makes");
}

static tn_status joined_split(const void *handle, const tn_match *m, joined_match *j) {
  tn_prologue *p = &j->front.parts;
  tn_epilogue parts = {0};
  tn_status status =
      j->has_front ? tn_prologue_split(handle, m, (int32_t)(joined_op_node(m) - m->nodes), p) : TN_OK;
  const tn_match *rest = j->has_front ? &p->rest.match : m;
  if (status != TN_OK) return status;
  status = tn_epilogue_split(handle, rest, joined_op_node(rest), &parts);
  j->op = parts.op;
  j->behind.region = parts.region;
  j->has_behind = rest->n_nodes > 1;
  if (status != TN_OK || !j->has_front) return status;
  joined_resolve(p, &j->op);
  joined_resolve(p, &j->behind.region);
  return joined_take(handle, j);
}

static void joined_tail(const joined_match *j, const tn_cuda_reduction *r, char *tail, size_t size) {
  const tn_node *op = joined_op(j);
  static const char *const elements[TN_DTYPES] = {[TN_I32] = "i32",   [TN_I64] = "i64", [TN_F16] = "f16",
                                                  [TN_BF16] = "bf16", [TN_F32] = "f32", [TN_F64] = "f64"};
  snprintf(tail, size, "#include \"backends/cuda/device/reduce_kernels.cuh\"\n\nREDUCE_WITH_%s(%s, %s, %s)\n",
           !j->has_front   ? "EPILOGUE"
           : j->has_behind ? "BOTH"
                           : "PROLOGUE",
           r->args.columns > 0 ? "columns" : "runs", tn_cuda_reduce_op_of(op->op)->accumulator,
           elements[op->in[0]->dtype]);
}

/* Takes the match apart. */
static tn_status joined_make(const void *handle, const tn_match *m, bool has_front, joined_match **made) {
  joined_match *j = tn_new(handle, sizeof *j);
  *made = j;
  if (j == NULL) return TN_ENOMEM;
  j->has_front = has_front;
  return joined_split(handle, m, j);
}

static tn_status joined_print_front(const void *handle, joined_match *j, int32_t how,
                                    const tn_cuda_reduction *r, const char *tail) {
  const tn_operand_layout rule = tn_cuda_image_layout(how);
  j->takes.width = r->args.vector > 0 ? r->args.vector : 1;
  tn_status status = tn_cuda_prologue_print(handle, &j->front, how == TN_CUDA_ROW_MAJOR ? NULL : &rule.layout,
                                            &j->takes, tail);
  int32_t words = j->front.printed.n_words + j->behind.printed.n_words;
  if (status == TN_OK && words > TN_CUDA_EPILOGUE_WORDS)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the regions need %d words of arguments, at most %d",
                   (int)words, (int)TN_CUDA_EPILOGUE_WORDS);
  return status;
}

/* Prints the regions for a variant: the prologue, the epilogue, and the functions. */
static tn_status joined_print(const void *handle, joined_match *j, int32_t how, const tn_cuda_reduction *r) {
  char tail[128];
  tn_status status = TN_OK;
  joined_tail(j, r, tail, sizeof tail);
  tn_cuda_drop_printed(handle, &j->behind.printed);
  if (j->has_behind) status = tn_cuda_epilogue_print(handle, &j->behind, joined_op(j)->n_out, tail);
  if (status != TN_OK || !j->has_front) return status;
  return joined_print_front(handle, j, how, r, j->has_behind ? j->behind.printed.text : tail);
}

/* ---- query ---- */

/* Room for the rules and pairs of a variant. */
typedef struct joined_offer {
  tn_operand_layout *in, *out;
  int32_t (*pairs)[2], n_pairs;
  int32_t *read;
} joined_offer;

static int32_t joined_list_op(const joined_match *j, int32_t *read) {
  int32_t n = 0;
  for (int32_t i = 0; i < j->op.match.n_in; i++)
    if (j->op.source[i].place == TN_EPILOGUE_OPERAND) read[n++] = (int32_t)j->op.source[i].at;
  return n;
}

/* A result may lie where an operand of its region was that no other part reads. `moments` reads its first
 * element again in all threads, so its prologue overwrites nothing. */
static void joined_pairs(const joined_match *j, joined_offer *o) {
  const tn_epilogue_part *front = &j->front.parts.region, *behind = &j->behind.region;
  bool again = joined_reduced(j) == 1 && tn_cuda_reduce_op_of(joined_op(j)->op)->floats;
  int32_t n = joined_list_op(j, o->read);
  for (int32_t k = joined_first_behind(j); k < behind->match.n_in; k++)
    o->read[n++] = (int32_t)behind->source[k].at;
  o->n_pairs = j->has_front && !again ? tn_cuda_prologue_pairs(&j->front, o->read, n, o->pairs) : 0;
  n = joined_list_op(j, o->read);
  for (int32_t k = 0; k < front->match.n_in; k++) o->read[n++] = (int32_t)front->source[k].at;
  if (j->has_behind) o->n_pairs += tn_cuda_epilogue_pairs(&j->behind, o->read, n, o->pairs + o->n_pairs);
}

/* The reduced operands lie as the variant says, and so do those of the prologue. False: the epilogue reads
 * one of them, too, in row-major order. */
static bool joined_rules(const tn_match *m, const joined_match *j, int32_t how, joined_offer *o) {
  const tn_epilogue_part *op = &j->op, *behind = &j->behind.region;
  const tn_operand_layout rule = tn_cuda_image_layout(how);
  memset(o->in, 0, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *o->in);
  for (int32_t i = 0; i < joined_reduced(j); i++)
    if (op->source[i].place == TN_EPILOGUE_OPERAND) o->in[op->source[i].at] = rule;
  if (j->has_front) tn_cuda_prologue_rules(&j->front, &rule, o->in, o->out);
  for (int32_t k = joined_first_behind(j); k < behind->match.n_in; k++)
    if (o->in[behind->source[k].at].rule != TN_LAYOUT_ROW_MAJOR) return false;
  return true;
}

static void joined_add(tn_query *q, const joined_match *j, const tn_cuda_reduction *r, int32_t how,
                       joined_offer *o) {
  const tn_node *op = joined_op(j);
  joined_pairs(j, o);
  tn_offer(q,
           (tn_variant){.id = how,
                        .name = how == TN_CUDA_ROW_MAJOR ? "row-major" : "channels last",
                        .in = o->in,
                        .out = o->out,
                        .workspace_bytes = tn_cuda_reduction_workspace(r, op->in[0]->dtype,
                                                                       tn_cuda_reduce_op_of(op->op)->words),
                        .prepared_bytes = sizeof(joined_kernel),
                        .n_inplace = o->n_pairs,
                        .inplace = (const int32_t(*)[2])o->pairs,
                        .cost_s = tn_cuda_estimate_s(q->device, TN_CUDA_ROWS, tn_match_bytes(q->match),
                                                     j->front.printed.flops, q->device->vector_flops_per_s) +
                                  tn_cuda_reduction_join_s(r, q->device)});
}

/* Room for all variants. A result may have a pair with each operand of its region. */
static tn_status joined_new_offer(tn_query *q, const joined_match *j, joined_offer *o) {
  const tn_match *m = q->match, *front = &j->front.parts.region.match, *behind = &j->behind.region.match;
  size_t pairs = (size_t)front->n_in * (size_t)front->n_out + (size_t)behind->n_in * (size_t)behind->n_out;
  o->in = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out + 1) * sizeof *o->in);
  o->pairs = tn_new(q, (pairs + 1) * sizeof *o->pairs);
  o->read = tn_new(q, (size_t)(front->n_in + behind->n_in + REDUCE_OPERANDS) * sizeof *o->read);
  o->out = o->in == NULL ? NULL : o->in + m->n_in;
  return o->in == NULL || o->pairs == NULL || o->read == NULL ? TN_ENOMEM : TN_OK;
}

static void joined_drop_offer(tn_query *q, joined_offer *o) {
  tn_delete(q, o->in);
  tn_delete(q, o->pairs);
  tn_delete(q, o->read);
}

static tn_status joined_offer_all(tn_query *q, joined_match *j, joined_offer *o) {
  tn_query part = *q;
  tn_cuda_reduction r;
  part.match = &j->op.match;
  tn_cuda_reduce_make(part.match, TN_CUDA_ROW_MAJOR, &r);
  tn_status status = tn_cuda_reduce_check(&part, &r);
  for (int32_t how = TN_CUDA_ROW_MAJOR; how <= TN_CUDA_CHANNELS_LAST && status == TN_OK; how++) {
    if (!tn_cuda_reduce_make(part.match, how, &r)) continue;
    status = joined_print(q, j, how, &r);
    if (status == TN_OK && joined_rules(q->match, j, how, o)) joined_add(q, j, &r, how, o);
  }
  return status;
}

static tn_status joined_query(tn_query *q, bool has_front) {
  joined_match *j = NULL;
  joined_offer o = {0};
  tn_status status = joined_make(q, q->match, has_front, &j);
  if (status == TN_OK) status = joined_new_offer(q, j, &o);
  if (status == TN_OK) status = joined_offer_all(q, j, &o);
  joined_drop_offer(q, &o);
  joined_drop(q, j);
  return status;
}

static tn_status cuda_epilogue_query(tn_query *q) { return joined_query(q, false); }
static tn_status cuda_prologue_query(tn_query *q) { return joined_query(q, true); }

/* ---- prepare ---- */

static void joined_keep(joined_kernel *keep, const joined_match *j) {
  const tn_epilogue_part *op = &j->op;
  keep->n_in = op->match.n_in;
  for (int32_t i = 0; i < keep->n_in; i++)
    keep->in[i] = op->source[i].place == TN_EPILOGUE_OPERAND ? (int32_t)op->source[i].at : -1;
  for (int32_t k = 0; k < op->match.n_out; k++) {
    const tn_epilogue_source *s = &op->source[op->match.n_in + k];
    keep->out[k] = s->place == TN_EPILOGUE_RESULT ? (int32_t)s->at : -1;
  }
  if (j->has_front) tn_cuda_prologue_keep(&j->front, &keep->front);
  if (j->has_behind) tn_cuda_epilogue_keep(&j->behind, &keep->behind);
}

static tn_status joined_request(tn_prepare *p, joined_match *j, joined_kernel *keep) {
  char title[96];
  tn_cuda_reduce_make(&j->op.match, p->variant, &keep->reduction);
  TN_TRY(joined_print(p, j, p->variant, &keep->reduction));
  joined_keep(keep, j);
  snprintf(title, sizeof title, "%s and a region of %d ops", joined_op(j)->op, (int)p->match->n_nodes - 1);
  return tn_cuda_reduction_request_text(p, &keep->reduction, title,
                                        j->has_front ? j->front.printed.text : j->behind.printed.text);
}

static tn_status joined_prepare(tn_prepare *p, bool has_front, void **made) {
  joined_kernel *keep = tn_new(p, sizeof *keep);
  joined_match *j = NULL;
  *made = keep;
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = joined_make(p, p->match, has_front, &j);
  if (status == TN_OK) status = joined_request(p, j, keep);
  joined_drop(p, j);
  return status;
}

static tn_status cuda_epilogue_prepare(tn_prepare *p, void **made) { return joined_prepare(p, false, made); }
static tn_status cuda_prologue_prepare(tn_prepare *p, void **made) { return joined_prepare(p, true, made); }

/* ---- launch ---- */

/* Whether the packs of the prologue are aligned. */
static bool joined_point(const tn_launch *l, const joined_kernel *k, reduce_joined_args *a) {
  const void *in[REDUCE_OPERANDS] = {NULL};
  for (int32_t i = 0; i < k->n_in; i++)
    if (k->in[i] >= 0) in[i] = l->in[k->in[i]].data;
  a->reduction.x = in[0];
  a->reduction.y = in[1];
  a->reduction.mean = in[2];
  a->reduction.rstd = in[3];
  for (int32_t i = 0; i < REDUCE_RESULTS; i++)
    a->reduction.out[i] = k->out[i] < 0 ? NULL : l->out[k->out[i]].data;
  if (k->behind.n_words > 0) tn_cuda_epilogue_point(&k->behind, l, a->words + k->front.part.n_words);
  return k->front.part.n_words == 0 || tn_cuda_prologue_point(&k->front, l, a->words);
}

static tn_status cuda_joined_launch(tn_launch *l) {
  const joined_kernel *k = l->prepared;
  reduce_joined_args a = {.reduction = k->reduction.args};
  bool aligned = joined_point(l, k, &a);
  int32_t words = k->front.part.n_words + k->behind.n_words;
  return tn_cuda_reduction_launch(l, &k->reduction, &a.reduction,
                                  sizeof a.reduction + (size_t)words * sizeof *a.words, aligned);
}

#define DEFINE_JOINED(id, pattern, doc, kind)                                                                \
  TN_DEFINE_KERNEL(cuda, id, "cuda_" #id, pattern, doc, .query = cuda_##kind##_query,                        \
                   .prepare = cuda_##kind##_prepare, .release = tn_cuda_reduction_release,                   \
                   .launch = cuda_joined_launch)
#define DEFINE_ALL(op, statement)                                                                            \
  DEFINE_JOINED(op##_epilogue, statement "; pointwise+", "the op, and the region behind it on its results",  \
                epilogue);                                                                                   \
  DEFINE_JOINED(op##_prologue, "pointwise+; " statement,                                                     \
                "the op, and the region in front that makes what it reads", prologue);                       \
  DEFINE_JOINED(op##_prologue_epilogue, "pointwise+; " statement "; pointwise+",                             \
                "the op, and the regions in front of it and behind", prologue)
DEFINE_ALL(reduce_sum, "y = reduce_sum(x)");
DEFINE_ALL(moments, "s, q = moments(x)");
DEFINE_ALL(norm_grad_sums, "s, d = norm_grad_sums(dy, x, mean, rstd)");

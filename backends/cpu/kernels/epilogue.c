/* Kernels with an epilogue: the kernel of one op, and on its results the pointwise region that reads them, in
 * one launch. Both run as they do by themselves, one after the other, so the bits are those of two launches.
 * A result of the op that has no other reader lies in a result of the region where the region may overwrite
 * it, and otherwise in the workspace. */
#include "backends/shared/define_kernel.h"
#include "backends/shared/epilogue.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern const tn_kernel tn_kernel_cpu_conv2d_grad_input, tn_kernel_cpu_conv2d_grad_weight,
    tn_kernel_cpu_moments, tn_kernel_cpu_norm_grad_sums, tn_kernel_cpu_pointwise, tn_kernel_cpu_reduce_sum;

static const struct {
  const char *op;
  const tn_kernel *kernel;
} epilogue_ops[] = {{"reduce_sum", &tn_kernel_cpu_reduce_sum},
                    {"moments", &tn_kernel_cpu_moments},
                    {"norm_grad_sums", &tn_kernel_cpu_norm_grad_sums},
                    {"conv2d_grad_input", &tn_kernel_cpu_conv2d_grad_input},
                    {"conv2d_grad_weight", &tn_kernel_cpu_conv2d_grad_weight}};
enum {
  EPILOGUE_OPS = sizeof epilogue_ops / sizeof epilogue_ops[0],
  EPILOGUE_NAME = 64,
  EPILOGUE_SMALL = 64 << 10 /* bytes */
};

/* The op or the region, with a kernel of its own. An inner result of the op lies `source.at` bytes behind the
 * begin of the workspace. */
typedef struct epilogue_part {
  const tn_kernel *kernel;
  tn_epilogue_part *part;
  tn_view *view; /* operands, then results */
  void *prepared;
  /* the kernel's variant */
  char name[EPILOGUE_NAME];
  int32_t (*inplace)[2];
  int32_t n_inplace;
  int64_t workspace, workspace_bytes, prepared_bytes;
  double cost_s;
  bool offered, no_memory, deterministic, capturable;
} epilogue_part;

typedef struct epilogue_kernel {
  tn_epilogue parts;
  epilogue_part op, region;
  int64_t workspace_bytes;
} epilogue_kernel;

/* The node of the op: the one that is not the region's. */
static const tn_match_node *epilogue_op_node(const tn_match *m, const tn_kernel **kernel) {
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; k < EPILOGUE_OPS; k++)
      if (strcmp(m->nodes[i].node->op, epilogue_ops[k].op) == 0) {
        *kernel = epilogue_ops[k].kernel;
        return &m->nodes[i];
      }
  return NULL;
}

/* ---- the variants of the parts ---- */

/* Asks a kernel for its variant. The handle's table is the host's, but tn_add_variant comes here. */
typedef struct epilogue_query {
  tn_query query;
  tn_api api;
  epilogue_part *part;
} epilogue_query;

static bool epilogue_is_row_major(const tn_operand_layout *rules, int32_t n) {
  for (int32_t i = 0; rules != NULL && i < n; i++)
    if (rules[i].rule == TN_LAYOUT_FIXED) return false;
  return true;
}

/* The first variant that works on row-major memory. */
static void epilogue_add_variant(tn_query *q, const tn_variant *v) {
  epilogue_part *p = ((epilogue_query *)q)->part;
  if (p->offered || v->id != 0 || !epilogue_is_row_major(v->in, p->part->match.n_in) ||
      !epilogue_is_row_major(v->out, p->part->match.n_out))
    return;
  p->inplace = tn_new(q, ((size_t)v->n_inplace + 1) * sizeof *p->inplace);
  p->no_memory = p->inplace == NULL;
  if (p->no_memory) return;
  if (v->n_inplace > 0) memcpy(p->inplace, v->inplace, (size_t)v->n_inplace * sizeof *p->inplace);
  snprintf(p->name, sizeof p->name, "%s", v->name);
  p->n_inplace = v->n_inplace;
  p->workspace_bytes = v->workspace_bytes;
  p->prepared_bytes = v->prepared_bytes;
  p->cost_s = v->cost_s;
  p->deterministic = v->deterministic != 0;
  p->capturable = v->capturable != 0;
  p->offered = true;
}

static tn_status epilogue_ask(const tn_query *like, epilogue_part *p) {
  epilogue_query q = {.query = *like, .api = *like->env.api, .part = p};
  q.query.env.api = &q.api;
  q.query.match = &p->part->match;
  q.api.variant = epilogue_add_variant;
  tn_status status = p->kernel->query(&q.query);
  if (status != TN_OK || p->offered) return status;
  if (p->no_memory) return TN_ENOMEM;
  return tn_fail(like, TN_EUNSUPPORTED, NULL, "%s offers no row-major variant", p->kernel->item.name);
}

/* ---- memory ---- */

static bool epilogue_is_used_result(const epilogue_part *op, const epilogue_part *region, int32_t result) {
  for (int32_t k = 0; k < op->part->match.n_out; k++)
    if (op->part->source[op->part->match.n_in + k].place == TN_EPILOGUE_RESULT &&
        op->part->source[op->part->match.n_in + k].at ==
            region->part->source[region->part->match.n_in + result].at)
      return true;
  return false;
}

/* Whether a result of the region may also overwrite an operand of the launch, such as a state. */
static bool epilogue_may_replace_operand(const epilogue_part *region, int32_t result) {
  for (int32_t i = 0; i < region->n_inplace; i++)
    if (region->inplace[i][1] == result &&
        region->part->source[region->inplace[i][0]].place == TN_EPILOGUE_OPERAND)
      return true;
  return false;
}

/* The result of the launch in which the op's result k can lie until the region overwrites it; -1: none. That
 * result then overwrites no operand, which is worth it for large values only. */
static int64_t epilogue_shared_result(const epilogue_part *op, const epilogue_part *region, int32_t k) {
  bool large = tn_type_bytes(op->part->types[op->part->match.n_in + k]) > EPILOGUE_SMALL;
  for (int32_t i = 0; i < region->n_inplace; i++) {
    int32_t result = region->inplace[i][1];
    if (region->inplace[i][0] != k || epilogue_is_used_result(op, region, result)) continue;
    if (large || !epilogue_may_replace_operand(region, result))
      return region->part->source[region->part->match.n_in + result].at;
  }
  return -1;
}

static int64_t epilogue_take_workspace(epilogue_kernel *e, int64_t bytes) {
  int64_t at = e->workspace_bytes;
  e->workspace_bytes += (bytes + 63) / 64 * 64;
  return at;
}

static void epilogue_place_results(epilogue_kernel *e) {
  tn_epilogue_source *source = e->op.part->source + e->op.part->match.n_in;
  for (int32_t k = 0; k < e->op.part->match.n_out; k++) {
    int64_t shared =
        source[k].place == TN_EPILOGUE_RESULT ? -1 : epilogue_shared_result(&e->op, &e->region, k);
    if (shared >= 0)
      source[k] = (tn_epilogue_source){TN_EPILOGUE_RESULT, shared};
    else if (source[k].place == TN_EPILOGUE_INNER)
      source[k].at = epilogue_take_workspace(e, tn_type_bytes(e->op.part->match.out[k]));
  }
  for (int32_t k = 0; k < e->op.part->match.n_out; k++) e->region.part->source[k] = source[k];
  e->op.workspace = epilogue_take_workspace(e, e->op.workspace_bytes);
  e->region.workspace = epilogue_take_workspace(e, e->region.workspace_bytes);
}

/* ---- query ---- */

static void epilogue_drop_part(const void *handle, epilogue_part *p) {
  tn_delete(handle, p->view);
  tn_delete(handle, p->inplace);
}

static void epilogue_drop(const void *handle, epilogue_kernel *e) {
  if (e == NULL) return;
  epilogue_drop_part(handle, &e->op);
  epilogue_drop_part(handle, &e->region);
  tn_epilogue_drop(handle, &e->parts);
  tn_delete(handle, e);
}

static tn_status epilogue_fill(const tn_query *q, epilogue_kernel *e) {
  const tn_match_node *op = epilogue_op_node(q->match, &e->op.kernel);
  e->region.kernel = &tn_kernel_cpu_pointwise;
  e->op.part = &e->parts.op;
  e->region.part = &e->parts.region;
  tn_status status = tn_epilogue_split(q, q->match, op, &e->parts);
  if (status == TN_OK) status = epilogue_ask(q, &e->op);
  if (status == TN_OK) status = epilogue_ask(q, &e->region);
  if (status == TN_OK) epilogue_place_results(e);
  return status;
}

static tn_status epilogue_make(const tn_query *q, epilogue_kernel **made) {
  epilogue_kernel *e = tn_new(q, sizeof *e);
  *made = NULL;
  if (e == NULL) return TN_ENOMEM;
  tn_status status = epilogue_fill(q, e);
  if (status == TN_OK)
    *made = e;
  else
    epilogue_drop(q, e);
  return status;
}

/* Pairs of the region as pairs of the launch, but for results in which a result of the op lies. */
static int32_t epilogue_inplace(epilogue_kernel *e, int32_t (*pairs)[2]) {
  const epilogue_part *region = &e->region;
  int32_t n = 0;
  for (int32_t i = 0; i < region->n_inplace; i++) {
    const tn_epilogue_source *in = &region->part->source[region->inplace[i][0]];
    if (in->place != TN_EPILOGUE_OPERAND || epilogue_is_used_result(&e->op, region, region->inplace[i][1]))
      continue;
    pairs[n][0] = (int32_t)in->at;
    pairs[n++][1] = (int32_t)region->part->source[region->part->match.n_in + region->inplace[i][1]].at;
  }
  return n;
}

static tn_status epilogue_offer(tn_query *q, epilogue_kernel *e) {
  char name[2 * EPILOGUE_NAME + 4];
  int32_t(*pairs)[2] = tn_new(q, ((size_t)e->region.n_inplace + 1) * sizeof *pairs);
  if (pairs == NULL) return TN_ENOMEM;
  snprintf(name, sizeof name, "%s, %s", e->op.name, e->region.name);
  tn_variant v = {.struct_size = sizeof v,
                  .name = name,
                  .workspace_bytes = e->workspace_bytes,
                  .prepared_bytes = (int64_t)sizeof *e + e->op.prepared_bytes + e->region.prepared_bytes,
                  .n_inplace = epilogue_inplace(e, pairs),
                  .inplace = (const int32_t(*)[2])pairs,
                  .cost_s = e->op.cost_s + e->region.cost_s,
                  .deterministic = e->op.deterministic && e->region.deterministic,
                  .capturable = e->op.capturable && e->region.capturable};
  tn_add_variant(q, &v);
  tn_delete(q, pairs);
  return TN_OK;
}

static tn_status epilogue_query_both(tn_query *q) {
  epilogue_kernel *e = NULL;
  tn_status status = epilogue_make(q, &e);
  if (status == TN_OK) status = epilogue_offer(q, e);
  epilogue_drop(q, e);
  return status;
}

/* ---- prepare and launch ---- */

static tn_status epilogue_prepare_part(const tn_prepare *like, epilogue_part *p) {
  tn_prepare one = *like;
  one.match = &p->part->match;
  one.in_layout = one.out_layout = NULL;
  one.variant = 0;
  int32_t n = one.match->n_in + one.match->n_out;
  p->view = tn_new(like, (size_t)n * sizeof *p->view);
  if (p->view == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) p->view[i] = (tn_view){.type = *p->part->types[i]};
  return p->kernel->prepare(&one, &p->prepared);
}

static void epilogue_release(tn_env *env, void *made) {
  epilogue_kernel *e = made;
  if (e == NULL) return;
  if (e->op.prepared != NULL) e->op.kernel->release(env, e->op.prepared);
  if (e->region.prepared != NULL) e->region.kernel->release(env, e->region.prepared);
  epilogue_drop(env, e);
}

static tn_status epilogue_prepare(tn_prepare *p, void **made) {
  tn_query q = {
      .env = p->env, .struct_size = sizeof q, .match = p->match, .device = p->device, .backend = p->backend};
  epilogue_kernel *e = NULL;
  tn_status status = epilogue_make(&q, &e);
  if (status == TN_OK) status = epilogue_prepare_part(p, &e->op);
  if (status == TN_OK) status = epilogue_prepare_part(p, &e->region);
  if (status == TN_OK)
    *made = e;
  else
    epilogue_release(&p->env, e);
  return status;
}

static void *epilogue_address(const tn_launch *l, const tn_epilogue_source *s) {
  if (s->place == TN_EPILOGUE_INNER) return (char *)l->workspace + s->at;
  return s->place == TN_EPILOGUE_OPERAND ? l->in[s->at].data : l->out[s->at].data;
}

/* Launches a part. The handle belongs to the host, which keeps more behind it, so the part borrows it. */
static tn_status epilogue_launch_part(tn_launch *l, epilogue_part *p) {
  const tn_launch whole = *l;
  int32_t n = p->part->match.n_in + p->part->match.n_out;
  for (int32_t i = 0; i < n; i++) p->view[i].data = epilogue_address(l, &p->part->source[i]);
  l->in = p->view;
  l->out = p->view + p->part->match.n_in;
  l->n_in = p->part->match.n_in;
  l->n_out = p->part->match.n_out;
  l->prepared = p->prepared;
  l->workspace = (char *)whole.workspace + p->workspace;
  l->workspace_bytes = p->workspace_bytes;
  tn_status status = p->kernel->launch(l);
  *l = whole;
  return status;
}

static tn_status epilogue_launch(tn_launch *l) {
  epilogue_kernel *e = l->prepared;
  tn_status status = epilogue_launch_part(l, &e->op);
  return status == TN_OK ? epilogue_launch_part(l, &e->region) : status;
}

#define DEFINE_EPILOGUE(id, pattern)                                                                         \
  TN_DEFINE_KERNEL(cpu, id, #id, pattern "; pointwise+", "the op, and the region behind it on its results",  \
                   .query = epilogue_query_both, .prepare = epilogue_prepare, .release = epilogue_release,   \
                   .launch = epilogue_launch)
DEFINE_EPILOGUE(reduce_sum_epilogue, "y = reduce_sum(x)");
DEFINE_EPILOGUE(moments_epilogue, "s, q = moments(x)");
DEFINE_EPILOGUE(norm_grad_sums_epilogue, "s, d = norm_grad_sums(dy, x, mean, rstd)");
DEFINE_EPILOGUE(conv2d_grad_input_epilogue, "dx = conv2d_grad_input(dy, w)");
DEFINE_EPILOGUE(conv2d_grad_weight_epilogue, "dw = conv2d_grad_weight(x, dy)");

/* Kernels with an epilogue: the kernel of one op, and on its results the pointwise region that reads them, in
 * one launch. Both run as they do by themselves, one after the other, so the bits are those of two launches.
 * A result of the op that has no other reader lies in a result of the region where the region may overwrite
 * it, and otherwise in the workspace. */
#include "backends/cpu/kernels/kernels.h"
#include "backends/shared/define_kernel.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *op;
  const tn_kernel *kernel;
} epilogue_ops[] = {{"reduce_sum", &tn_cpu_reduce_sum},
                    {"moments", &tn_cpu_moments},
                    {"norm_grad_sums", &tn_cpu_norm_grad_sums},
                    {"conv2d_grad_input", &tn_cpu_conv2d_grad_input},
                    {"conv2d_grad_weight", &tn_cpu_conv2d_grad_weight}};
enum {
  EPILOGUE_OPS = sizeof epilogue_ops / sizeof epilogue_ops[0],
  EPILOGUE_NAME = 64,
  EPILOGUE_SMALL = 64 << 10 /* bytes */
};

/* Where the memory of an operand or result of a part lies. */
typedef enum epilogue_place { IN_OPERAND, IN_RESULT, IN_WORKSPACE } epilogue_place;
typedef struct epilogue_source {
  epilogue_place place;
  int64_t at; /* the operand or result of the launch, or a byte of the workspace */
} epilogue_source;

/* The op or the region: a match with a kernel of its own. Sources and views: operands, then results. */
typedef struct epilogue_part {
  const tn_kernel *kernel;
  tn_match match;
  const tn_type **types; /* of operands, then of results */
  int32_t *out_number;
  uint8_t *constant;
  const tn_node **constant_node;
  tn_match_node *nodes;
  int32_t *numbers; /* the operands of all nodes */
  epilogue_source *source;
  tn_view *view;
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
  epilogue_part op, region;
  int64_t workspace_bytes;
} epilogue_kernel;

/* ---- the parts as matches ---- */

/* Sizes that suffice for either part of a match. */
typedef struct epilogue_sizes {
  int32_t views, nodes, numbers;
} epilogue_sizes;

static epilogue_sizes epilogue_sizes_of(const tn_match *m) {
  epilogue_sizes s = {m->n_in, m->n_nodes, 0};
  for (int32_t i = 0; i < m->n_nodes; i++) {
    s.views += m->nodes[i].node->n_out + m->nodes[i].node->n_in;
    s.numbers += m->nodes[i].node->n_in;
  }
  return s;
}

static bool epilogue_allocate(const void *handle, epilogue_part *p, const tn_match *m) {
  epilogue_sizes s = epilogue_sizes_of(m);
  p->types = tn_new(handle, (size_t)s.views * sizeof *p->types);
  p->out_number = tn_new(handle, (size_t)s.views * sizeof *p->out_number);
  p->constant = tn_new(handle, (size_t)s.views);
  p->constant_node = tn_new(handle, (size_t)s.views * sizeof *p->constant_node);
  p->nodes = tn_new(handle, (size_t)s.nodes * sizeof *p->nodes);
  p->numbers = tn_new(handle, (size_t)s.numbers * sizeof *p->numbers + 1);
  p->source = tn_new(handle, (size_t)s.views * sizeof *p->source);
  p->view = tn_new(handle, (size_t)s.views * sizeof *p->view);
  return p->types && p->out_number && p->constant && p->constant_node && p->nodes && p->numbers &&
         p->source && p->view;
}

static void epilogue_drop_part(const void *handle, epilogue_part *p) {
  void *const blocks[] = {p->types,   p->out_number, p->constant, p->constant_node, p->nodes,
                          p->numbers, p->source,     p->view,     p->inplace};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) tn_delete(handle, blocks[i]);
}

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

static void epilogue_finish_match(epilogue_part *p, int32_t n_in, int32_t n_out, int32_t n_nodes) {
  p->match = (tn_match){.struct_size = sizeof p->match,
                        .n_in = n_in,
                        .n_out = n_out,
                        .n_nodes = n_nodes,
                        .in = p->types,
                        .out = p->types + n_in,
                        .out_number = p->out_number,
                        .nodes = p->nodes,
                        .constant = p->constant,
                        .constant_node = p->constant_node};
}

/* Whether the region is behind the op: what the op reads comes from outside. */
static bool epilogue_is_behind(const tn_match *m, const tn_match_node *op) {
  for (int32_t i = 0; i < op->node->n_in; i++)
    if (op->in[i] < 0 || op->in[i] >= m->n_in) return false;
  return true;
}

/* The op with all of its results. They have no memory yet. */
static void epilogue_split_op(const tn_match *m, const tn_match_node *op, epilogue_part *p) {
  const tn_node *n = op->node;
  for (int32_t i = 0; i < n->n_in; i++) {
    p->types[i] = n->in[i];
    p->numbers[i] = i;
    p->source[i] = (epilogue_source){IN_OPERAND, op->in[i]};
    p->constant[i] = m->constant[op->in[i]];
    p->constant_node[i] = m->constant_node[op->in[i]];
  }
  for (int32_t k = 0; k < n->n_out; k++) {
    p->types[n->n_in + k] = &n->out[k];
    p->out_number[k] = n->n_in + k;
  }
  p->nodes[0] = (tn_match_node){n, p->numbers, n->n_in};
  epilogue_finish_match(p, n->n_in, n->n_out, 1);
}

/* Adds an operand of the launch to those of the region, unless it is there; returns its number. */
static int32_t epilogue_region_operand(const tn_match *m, int32_t operand, epilogue_part *p, int32_t *n_in) {
  for (int32_t i = 0; i < *n_in; i++)
    if (p->source[i].place == IN_OPERAND && p->source[i].at == operand) return i;
  p->types[*n_in] = m->in[operand];
  p->constant[*n_in] = m->constant[operand];
  p->constant_node[*n_in] = m->constant_node[operand];
  p->source[*n_in] = (epilogue_source){IN_OPERAND, operand};
  return (*n_in)++;
}

/* The operands of the region: the op's results, then operands of the launch. */
static int32_t epilogue_list_operands(const tn_match *m, const tn_match_node *op, epilogue_part *p) {
  int32_t n_in = 0;
  for (; n_in < op->node->n_out; n_in++) {
    p->types[n_in] = &op->node->out[n_in];
    p->source[n_in] = (epilogue_source){IN_WORKSPACE, 0};
  }
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; &m->nodes[i] != op && k < m->nodes[i].node->n_in; k++)
      if (m->nodes[i].in[k] >= 0 && m->nodes[i].in[k] < m->n_in)
        epilogue_region_operand(m, m->nodes[i].in[k], p, &n_in);
  return n_in;
}

/* A number of the match as the region numbers it. Results of nodes behind the op's move down by its own. */
static int32_t epilogue_region_number(const tn_match *m, const tn_match_node *op, epilogue_part *p,
                                      int32_t n_in, int32_t number) {
  int32_t n_out = op->node->n_out;
  if (number < 0) return number;
  if (number < m->n_in) return epilogue_region_operand(m, number, p, &n_in);
  if (number >= op->first_out && number < op->first_out + n_out) return number - op->first_out;
  return n_in + number - m->n_in - (number > op->first_out ? n_out : 0);
}

static void epilogue_split_region(const tn_match *m, const tn_match_node *op, epilogue_part *p) {
  int32_t n_in = epilogue_list_operands(m, op, p), n_nodes = 0, n_out = 0, *numbers = p->numbers;
  for (int32_t i = 0; i < m->n_nodes; i++) {
    const tn_match_node *n = &m->nodes[i];
    if (n == op) continue;
    p->nodes[n_nodes++] =
        (tn_match_node){n->node, numbers, epilogue_region_number(m, op, p, n_in, n->first_out)};
    for (int32_t k = 0; k < n->node->n_in; k++) *numbers++ = epilogue_region_number(m, op, p, n_in, n->in[k]);
  }
  for (int32_t k = 0; k < m->n_out; k++) {
    int32_t number = epilogue_region_number(m, op, p, n_in, m->out_number[k]);
    if (number < op->node->n_out) continue; /* a result of the op */
    p->types[n_in + n_out] = m->out[k];
    p->source[n_in + n_out] = (epilogue_source){IN_RESULT, k};
    p->out_number[n_out++] = number;
  }
  epilogue_finish_match(p, n_in, n_out, n_nodes);
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
  if (p->offered || v->id != 0 || !epilogue_is_row_major(v->in, p->match.n_in) ||
      !epilogue_is_row_major(v->out, p->match.n_out))
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
  q.query.match = &p->match;
  q.api.variant = epilogue_add_variant;
  tn_status status = p->kernel->query(&q.query);
  if (status != TN_OK || p->offered) return status;
  if (p->no_memory) return TN_ENOMEM;
  return tn_fail(like, TN_EUNSUPPORTED, NULL, "%s offers no row-major variant", p->kernel->item.name);
}

/* ---- memory ---- */

static bool epilogue_is_used_result(const epilogue_part *op, const epilogue_part *region, int32_t result) {
  for (int32_t k = 0; k < op->match.n_out; k++)
    if (op->source[op->match.n_in + k].place == IN_RESULT &&
        op->source[op->match.n_in + k].at == region->source[region->match.n_in + result].at)
      return true;
  return false;
}

/* Whether a result of the region may also overwrite an operand of the launch, such as a state. */
static bool epilogue_may_replace_operand(const epilogue_part *region, int32_t result) {
  for (int32_t i = 0; i < region->n_inplace; i++)
    if (region->inplace[i][1] == result && region->source[region->inplace[i][0]].place == IN_OPERAND)
      return true;
  return false;
}

/* The result of the launch in which the op's result k can lie until the region overwrites it; -1: none. That
 * result then overwrites no operand, which is worth it for large values only. */
static int64_t epilogue_shared_result(const epilogue_part *op, const epilogue_part *region, int32_t k) {
  bool large = tn_type_bytes(op->types[op->match.n_in + k]) > EPILOGUE_SMALL;
  for (int32_t i = 0; i < region->n_inplace; i++) {
    int32_t result = region->inplace[i][1];
    if (region->inplace[i][0] != k || epilogue_is_used_result(op, region, result)) continue;
    if (large || !epilogue_may_replace_operand(region, result))
      return region->source[region->match.n_in + result].at;
  }
  return -1;
}

static int64_t epilogue_take_workspace(epilogue_kernel *e, int64_t bytes) {
  int64_t at = e->workspace_bytes;
  e->workspace_bytes += (bytes + 63) / 64 * 64;
  return at;
}

/* Results of the op that are results of the launch come first, since the others share those that remain. */
static void epilogue_place_results(const tn_match *m, const tn_match_node *op, epilogue_kernel *e) {
  epilogue_source *source = e->op.source + e->op.match.n_in;
  for (int32_t k = 0; k < op->node->n_out; k++) {
    source[k] = (epilogue_source){IN_WORKSPACE, -1};
    for (int32_t i = 0; i < m->n_out; i++)
      if (m->out_number[i] == op->first_out + k) source[k] = (epilogue_source){IN_RESULT, i};
  }
  for (int32_t k = 0; k < op->node->n_out; k++) {
    int64_t shared = source[k].place == IN_RESULT ? -1 : epilogue_shared_result(&e->op, &e->region, k);
    if (shared >= 0)
      source[k] = (epilogue_source){IN_RESULT, shared};
    else if (source[k].place == IN_WORKSPACE)
      source[k].at = epilogue_take_workspace(e, tn_type_bytes(&op->node->out[k]));
  }
  for (int32_t k = 0; k < op->node->n_out; k++) e->region.source[k] = source[k];
  e->op.workspace = epilogue_take_workspace(e, e->op.workspace_bytes);
  e->region.workspace = epilogue_take_workspace(e, e->region.workspace_bytes);
}

/* ---- query ---- */

static void epilogue_drop(const void *handle, epilogue_kernel *e) {
  if (e == NULL) return;
  epilogue_drop_part(handle, &e->op);
  epilogue_drop_part(handle, &e->region);
  tn_delete(handle, e);
}

static tn_status epilogue_fill(const tn_query *q, epilogue_kernel *e) {
  const tn_match_node *op = epilogue_op_node(q->match, &e->op.kernel);
  e->region.kernel = &tn_cpu_pointwise;
  if (!epilogue_is_behind(q->match, op))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "an operand of %s is absent or made in the region",
                   op->node->op);
  if (!epilogue_allocate(q, &e->op, q->match) || !epilogue_allocate(q, &e->region, q->match))
    return TN_ENOMEM;
  epilogue_split_op(q->match, op, &e->op);
  epilogue_split_region(q->match, op, &e->region);
  tn_status status = epilogue_ask(q, &e->op);
  if (status == TN_OK) status = epilogue_ask(q, &e->region);
  if (status == TN_OK) epilogue_place_results(q->match, op, e);
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
    const epilogue_source *in = &region->source[region->inplace[i][0]];
    if (in->place != IN_OPERAND || epilogue_is_used_result(&e->op, region, region->inplace[i][1])) continue;
    pairs[n][0] = (int32_t)in->at;
    pairs[n++][1] = (int32_t)region->source[region->match.n_in + region->inplace[i][1]].at;
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
  one.match = &p->match;
  one.in_layout = one.out_layout = NULL;
  one.variant = 0;
  for (int32_t i = 0; i < p->match.n_in + p->match.n_out; i++) p->view[i] = (tn_view){.type = *p->types[i]};
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

static void *epilogue_address(const tn_launch *l, const epilogue_source *s) {
  if (s->place == IN_WORKSPACE) return (char *)l->workspace + s->at;
  return s->place == IN_OPERAND ? l->in[s->at].data : l->out[s->at].data;
}

/* Launches a part. The handle belongs to the host, which keeps more behind it, so the part borrows it. */
static tn_status epilogue_launch_part(tn_launch *l, epilogue_part *p) {
  const tn_launch whole = *l;
  int32_t n = p->match.n_in + p->match.n_out;
  for (int32_t i = 0; i < n; i++) p->view[i].data = epilogue_address(l, &p->source[i]);
  l->in = p->view;
  l->out = p->view + p->match.n_in;
  l->n_in = p->match.n_in;
  l->n_out = p->match.n_out;
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

/* core/compile/round/extend_pattern.c: kernels that compute the nodes of a pattern and the region behind its
 * last node (`c = conv2d(x, w); s, q = moments(c); pointwise+`). */
#include <stdlib.h>
#include <string.h>

#include "core/compile/kernels/pattern.h"
#include "core/compile/round/cover_round.h"

/* A chosen group of several nodes, and a region that reads results of its last node. */
typedef struct extension {
  const tn_candidate *group;
  tn_round_region region;
  int32_t n_own;
  uint32_t own[TN_PATTERN_NODES + TN_REGION_NODES]; /* the group's own nodes, then the region's */
} extension;

static int32_t extended_nodes(const extension *e) { return e->group->n_nodes + e->region.n; }

static uint32_t extended_node(const extension *e, int32_t i) {
  return i < e->group->n_nodes ? e->group->nodes[i] : e->region.node[i - e->group->n_nodes];
}

static bool extension_takes(const extension *e, int32_t i) {
  return i >= e->group->n_nodes || tn_candidate_takes(e->group, i);
}

/* ---- the candidate ---- */

/* The place of the node that makes a value for the others; -1: the value is an operand. */
static int32_t place_of_maker(const tn_graph *g, const extension *e, tn_val v) {
  for (int32_t i = 0; v != 0 && i < extended_nodes(e); i++)
    if (extension_takes(e, i) && extended_node(e, i) == g->values.v[v].node) return i;
  return -1;
}

static int32_t place_of_operand(const tn_candidate *c, tn_val v) {
  for (int32_t i = 0; v != 0 && i < c->n_in; i++)
    if (c->in[i] == v) return i;
  return -1;
}

/* The operands of the group, then those of the region. */
static tn_status list_extended_operands(tn_round *r, const extension *e, tn_candidate *c) {
  tn_val *in = tn_arena_alloc(&r->arena, (size_t)(e->group->n_in + e->region.n_in) * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  c->in = in;
  c->n_in = e->group->n_in;
  memcpy(in, e->group->in, (size_t)c->n_in * sizeof *in);
  for (int32_t i = 0; i < e->region.n_in; i++) {
    tn_val v = e->region.in[i];
    if (place_of_maker(r->graph, e, v) < 0 && place_of_operand(c, v) < 0) in[c->n_in++] = v;
  }
  return TN_OK;
}

/* All values with users outside. The own nodes are the set of the contracted graph. */
static tn_status list_extended_results(tn_round *r, const extension *e, tn_candidate *c) {
  tn_matcher matcher = tn_round_matcher(r);
  size_t most = 0;
  for (int32_t i = 0; i < extended_nodes(e); i++)
    most += (size_t)r->graph->nodes.v[extended_node(e, i)].n_out;
  tn_val *out = tn_arena_alloc(&r->arena, most * sizeof *out);
  if (out == NULL) return TN_ENOMEM;
  c->out = out;
  for (int32_t i = 0; i < extended_nodes(e); i++) {
    const tn_gnode *node = &r->graph->nodes.v[extended_node(e, i)];
    for (tn_val v = node->first_out; v < node->first_out + (tn_val)node->n_out; v++)
      if (extension_takes(e, i) && tn_region_has_user_outside(&matcher, v)) out[c->n_out++] = v;
  }
  return TN_OK;
}

static void number_region_node(const tn_graph *g, const extension *e, const tn_candidate *c,
                               const int32_t *first, const tn_gnode *node, int32_t *numbers) {
  for (int32_t k = 0; k < node->n_in; k++) {
    int32_t maker = place_of_maker(g, e, node->in[k]);
    numbers[k] =
        maker >= 0 ? first[maker] + g->values.v[node->in[k]].result : place_of_operand(c, node->in[k]);
  }
}

/* The group's numbers stay, but for its results, which come behind more operands. */
static tn_status number_extended_operands(tn_round *r, const extension *e, tn_candidate *c) {
  int32_t first[TN_PATTERN_NODES + TN_REGION_NODES], n = c->n_in, total = 0, of_group = 0;
  for (int32_t i = 0; i < extended_nodes(e); i++) {
    const tn_gnode *node = &r->graph->nodes.v[extended_node(e, i)];
    first[i] = n;
    n += node->n_out;
    total += node->n_in;
    if (i < e->group->n_nodes) of_group += node->n_in;
  }
  int32_t *numbers = tn_arena_alloc(&r->arena, (size_t)total * sizeof *numbers);
  if (numbers == NULL) return TN_ENOMEM;
  c->numbers = numbers;
  for (int32_t i = 0; i < of_group; i++) {
    int32_t number = e->group->numbers[i];
    *numbers++ = number < e->group->n_in ? number : number + c->n_in - e->group->n_in;
  }
  for (int32_t i = 0; i < e->region.n; i++) {
    const tn_gnode *node = &r->graph->nodes.v[e->region.node[i]];
    number_region_node(r->graph, e, c, first, node, numbers);
    numbers += node->n_in;
  }
  return TN_OK;
}

/* Flags of the group's nodes, with false for those of the region; NULL stays NULL. */
static tn_status extend_flags(tn_round *r, const extension *e, const bool *flags, const bool **extended) {
  bool *copy = flags == NULL ? NULL : tn_arena_alloc(&r->arena, (size_t)extended_nodes(e) * sizeof *copy);
  if (flags != NULL && copy == NULL) return TN_ENOMEM;
  if (flags != NULL) memcpy(copy, flags, (size_t)e->group->n_nodes * sizeof *copy);
  *extended = copy;
  return TN_OK;
}

static tn_status make_extended_candidate(tn_round *r, const tn_catalog_kernel *kernel, const extension *e,
                                         tn_candidate *c) {
  uint32_t *nodes = tn_arena_alloc(&r->arena, (size_t)extended_nodes(e) * sizeof *nodes);
  if (nodes == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < extended_nodes(e); i++) nodes[i] = extended_node(e, i);
  *c = (tn_candidate){.kernel = kernel, .n_nodes = extended_nodes(e), .nodes = nodes};
  TN_TRY(extend_flags(r, e, e->group->shared, &c->shared));
  TN_TRY(extend_flags(r, e, e->group->swapped, &c->swapped));
  TN_TRY(list_extended_operands(r, e, c));
  TN_TRY(list_extended_results(r, e, c));
  return number_extended_operands(r, e, c);
}

/* ---- the extension ---- */

static tn_status try_extended_kernel(tn_round *r, const tn_catalog_kernel *kernel, const extension *e,
                                     bool *done) {
  tn_candidate candidate;
  if (!tn_pattern_extends(kernel->pattern, e->group->kernel->pattern) ||
      kernel->pattern->epilogue != e->region.kernel->pattern->op_class ||
      kernel->rank > e->group->kernel->rank || kernel->rank > e->region.kernel->rank)
    return TN_OK;
  TN_TRY(make_extended_candidate(r, kernel, e, &candidate));
  TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, &candidate));
  if (candidate.reason != NULL) return tn_round_reject(r, e->own, e->n_own, kernel, candidate.reason, true);
  *done = true;
  return tn_round_choose(r, &candidate);
}

/* The group is launched with the region behind it, so it reads nothing that the region makes. */
static bool is_group_in_front(const tn_round *r, const extension *e) {
  for (int32_t i = 0; i < e->group->n_in; i++)
    if (place_of_maker(r->graph, e, e->group->in[i]) >= 0) return false;
  return true;
}

static bool is_extension_legal(tn_round *r, extension *e) {
  e->n_own = 0;
  for (int32_t i = 0; i < extended_nodes(e); i++)
    if (extension_takes(e, i)) e->own[e->n_own++] = extended_node(e, i);
  tn_contracted_set_of(&r->contracted, e->own, e->n_own);
  return is_group_in_front(r, e) &&
         tn_round_region_has_space(r, tn_candidate_last_node(e->group), &e->region) &&
         tn_contracted_set_is_convex(&r->contracted, e->own, e->n_own);
}

static tn_status extend_by_region(tn_round *r, extension *e, bool *done) {
  int32_t n = 0;
  const tn_gnode *last = &r->graph->nodes.v[tn_candidate_last_node(e->group)];
  const tn_catalog_kernel *kernels = tn_catalog_find_epilogues(r->catalog, last->def, &n);
  if (!is_extension_legal(r, e)) return TN_OK;
  for (int32_t i = 0; i < n && !*done; i++) TN_TRY(try_extended_kernel(r, &kernels[i], e, done));
  return TN_OK;
}

static tn_status extend_group(tn_round *r, const tn_candidate *group) {
  const tn_gnode *last = &r->graph->nodes.v[tn_candidate_last_node(group)];
  int32_t n = 0, end = r->uses.start[last->first_out + last->n_out];
  bool done = false;
  tn_catalog_find_epilogues(r->catalog, last->def, &n);
  for (int32_t k = r->uses.start[last->first_out]; n > 0 && k < end && !done; k++) {
    extension e = {.group = group};
    if (!r->recomputed[k] && tn_round_find_region(r, r->uses.node[k], &e.region))
      TN_TRY(extend_by_region(r, &e, &done));
  }
  return TN_OK;
}

/* Whether the candidate is a group of several nodes, and not one that another replaced. */
static bool is_extensible(const tn_round *r, size_t index) {
  const tn_candidate *c = &r->chosen.v[index];
  return c->n_nodes > 1 && c->kernel->pattern->op_class < 0 && c->kernel->pattern->epilogue < 0 &&
         r->group[r->contracted.vertex[tn_candidate_last_node(c)]] == (int32_t)index;
}

tn_status tn_round_extend_patterns(tn_round *r) {
  for (size_t i = 0; r->catalog->epilogues.n > 0 && i < r->chosen.n; i++) {
    const tn_candidate group = r->chosen.v[i]; /* choosing moves the array */
    if (is_extensible(r, i)) TN_TRY(extend_group(r, &group));
  }
  return TN_OK;
}

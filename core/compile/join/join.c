/* core/compile/join/join.c: pass `join`: a region becomes the prologue of a statement that reads its result
 * (`pointwise+; s, d = norm_grad_sums(dy, x, mean, rstd)`).
 *
 * The pass comes after `layout` and `recompute`, which see region and statement as two groups: the statement
 * votes on layouts as it would alone, and a value that is recomputed in backward is no result of the region
 * any more when the region joins. The kernel must have a variant for the present layouts.
 *
 * The joined group takes the place of the region. Makers of the statement's other operands come before it, or
 * are moved there. So no operand of the region is kept longer than before. A result of the statement is made
 * earlier, so the pass leaves out a statement whose result would make a large pack live earlier. */
#include "core/compile/join/join.h"

#include <string.h>

#include "core/compile/layout/variant_layouts.h"
#include "core/compile/rematerialization/view_bases.h"
#include "core/compile/match/region.h"
#include "core/graph/input_state.h"
#include "core/graph/uses.h"

/* A pack may become live so many bytes earlier. */
enum { PACK_BYTES = 4 << 20 };

typedef struct join_pass {
  tn_cover *cover;
  tn_arena arena; /* tables */
  tn_val *base;   /* per value: as tn_find_view_bases */
  int32_t *maker; /* per value: the group that stores it, or -1 */
  bool *before;   /* per group: it has to run before the joined group */
} join_pass;

/* A region, a statement that reads its results, and what they have together. */
typedef struct join_pair {
  int32_t region, statement; /* groups */
  uint32_t op;               /* the statement's node */
  const tn_catalog_kernel *region_kernel, *statement_kernel;
  uint32_t *nodes; /* of the region, the statement, its epilogue */
  int32_t n_nodes;
  tn_val *out;
  int32_t n_out;
} join_pair;

/* ---- tables ---- */

static void join_list_makers(join_pass *p) {
  const tn_cover *cover = p->cover;
  for (size_t v = 0; v < cover->graph->values.n; v++) p->maker[v] = -1;
  for (size_t i = 0; i < cover->groups.n; i++)
    for (int32_t k = 0; k < cover->groups.v[i].n_out; k++) p->maker[cover->groups.v[i].out[k]] = (int32_t)i;
}

static tn_status join_create_tables(join_pass *p) {
  size_t n = p->cover->graph->values.n;
  p->base = tn_arena_alloc(&p->arena, n * sizeof *p->base);
  p->maker = tn_arena_alloc(&p->arena, n * sizeof *p->maker);
  p->before = tn_arena_alloc(&p->arena, p->cover->groups.n * sizeof *p->before);
  if (p->base == NULL || p->maker == NULL || p->before == NULL) return TN_ENOMEM;
  tn_find_view_bases(p->cover->graph, p->base);
  join_list_makers(p);
  return TN_OK;
}

/* ---- which groups are a pair ---- */

static const tn_catalog_kernel *join_kernel_of(const tn_catalog_kernel *v, size_t n, const tn_group *g) {
  for (size_t i = 0; i < n; i++)
    if (v[i].entry == g->entry) return &v[i];
  return NULL;
}

/* Groups that fall back, recompute nodes or talk to other ranks stay as they are. */
static bool join_may_change(const tn_group *g) {
  return g->fallback == NULL && g->shared == NULL && g->role == TN_STREAM_COMPUTE && g->after == 0;
}

static const tn_catalog_kernel *join_region_kernel(const join_pass *p, const tn_group *g) {
  const tn_catalog *c = p->cover->catalog;
  return join_may_change(g) ? join_kernel_of(c->regions.v, c->regions.n, g) : NULL;
}

/* The kernel of one statement, with an epilogue or without. */
static const tn_catalog_kernel *join_statement_kernel(const join_pass *p, const tn_group *g) {
  const tn_catalog *c = p->cover->catalog;
  if (c->prologues.n == 0 || !join_may_change(g)) return NULL;
  const tn_catalog_kernel *k = join_kernel_of(c->fixed.v, c->fixed.n, g);
  if (k == NULL) k = join_kernel_of(c->epilogues.v, c->epilogues.n, g);
  return k != NULL && k->pattern->n_nodes == 1 ? k : NULL;
}

static bool join_node_makes(const tn_graph *graph, const tn_group *g, tn_val v) {
  return v != 0 && tn_group_has_node(g, graph->values.v[v].node);
}

static uint32_t join_statement_node(const tn_graph *graph, const tn_group *g, const tn_catalog_kernel *k) {
  int32_t i = 0;
  while (graph->nodes.v[g->nodes[i]].def != k->defs[0]) i++;
  return g->nodes[i];
}

/* Whether one of the values is one of `made`, or a view of it. */
static bool join_is_read_by(const join_pass *p, const tn_val *values, int32_t n, const tn_val *made,
                            int32_t n_made) {
  for (int32_t k = 0; k < n; k++)
    for (int32_t i = 0; i < n_made; i++)
      if (values[k] != 0 && p->base[values[k]] == made[i]) return true;
  return false;
}

/* ---- the order of the groups ---- */

/* Marks the groups behind the region that make a value. False: the region makes it. */
static bool join_mark_makers(join_pass *p, const join_pair *pair, tn_val v) {
  const tn_graph *graph = p->cover->graph;
  const tn_gnode *node = tn_graph_maker(graph, v);
  tn_node_kind kind = tn_node_kind_of(node);
  int32_t maker = v == 0 ? -1 : p->maker[p->base[v]];
  if (maker == pair->region) return false;
  if (maker > pair->region) p->before[maker] = true;
  if (v == 0 || maker >= 0 || (kind != TN_NODE_VIEW && kind != TN_NODE_PACK)) return true;
  for (int32_t k = 0; k < node->n_in; k++)
    if (!join_mark_makers(p, pair, node->in[k])) return false;
  return true;
}

/* Marks the groups between the two that the statement waits for. False: one of them waits for the region, or
 * the statement reads a view of the region's result. */
static bool join_mark_waited(join_pass *p, const join_pair *pair) {
  memset(p->before, 0, p->cover->groups.n * sizeof *p->before);
  p->before[pair->statement] = true;
  for (int32_t i = pair->statement; i > pair->region; i--) {
    const tn_group *g = &p->cover->groups.v[i];
    for (int32_t k = 0; p->before[i] && k < g->n_in; k++) {
      bool direct = i == pair->statement && g->in[k] != 0 && p->maker[g->in[k]] == pair->region;
      if (!direct && !join_mark_makers(p, pair, g->in[k])) return false;
    }
  }
  p->before[pair->statement] = false;
  return true;
}

/* Whether a group in front of which the region would no longer run commits a state that the region reads. */
static bool join_overtakes_commit(const join_pass *p, const join_pair *pair) {
  const tn_graph *graph = p->cover->graph;
  const tn_group *region = &p->cover->groups.v[pair->region];
  for (int32_t k = 0; k < region->n_in; k++) {
    const tn_gnode *node = region->in[k] == 0 ? NULL : tn_graph_maker(graph, p->base[region->in[k]]);
    if (node == NULL || tn_node_kind_of(node) != TN_NODE_STATE) continue;
    const char *path = ((const tn_state_attributes *)node->attributes)->path;
    for (size_t i = 0; i < graph->commits.n; i++) {
      int32_t maker = p->maker[p->base[graph->commits.v[i].value]];
      if (maker >= 0 && p->before[maker] && tn_commit_may_overwrite(&graph->commits.v[i], path)) return true;
    }
  }
  return false;
}

/* Whether a large pack, such as that of all gradients, would be live from the region on, and not from the
 * statement on: the statement makes its first part. */
static bool join_opens_pack(const join_pass *p, const join_pair *pair, const tn_gnode *pack) {
  const tn_group *statement = &p->cover->groups.v[pair->statement];
  int32_t first = INT32_MAX;
  bool own = false;
  for (int32_t k = 0; k < pack->n_in; k++) {
    int32_t maker = p->maker[p->base[pack->in[k]]];
    own |= join_is_read_by(p, &pack->in[k], 1, statement->out, statement->n_out);
    if (maker >= 0 && maker < first) first = maker;
  }
  return own && first > pair->region + 1 &&
         tn_type_bytes(tn_graph_type(p->cover->graph, pack->first_out)) > PACK_BYTES;
}

static bool join_opens_packs(const join_pass *p, const join_pair *pair) {
  const tn_graph *graph = p->cover->graph;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_PACK && join_opens_pack(p, pair, node))
      return true;
  }
  return false;
}

/* The groups that the statement waits for, the joined group, the others. */
static tn_status join_reorder(join_pass *p, const join_pair *pair, const tn_group *joined) {
  tn_group *groups = p->cover->groups.v;
  int32_t n = pair->statement - pair->region, at = pair->region;
  tn_group *rest = tn_alloc(p->cover->env, (size_t)n * sizeof *rest);
  if (rest == NULL) return TN_ENOMEM;
  memcpy(rest, &groups[pair->region + 1], (size_t)n * sizeof *rest);
  for (int32_t i = 0; i < n; i++)
    if (p->before[pair->region + 1 + i]) groups[at++] = rest[i];
  groups[at++] = *joined;
  for (int32_t i = 0; i + 1 < n; i++)
    if (!p->before[pair->region + 1 + i]) groups[at++] = rest[i];
  memmove(&groups[pair->statement], &groups[pair->statement + 1],
          (p->cover->groups.n - (size_t)pair->statement - 1) * sizeof *groups);
  p->cover->groups.n--;
  tn_release(p->cover->env, rest);
  join_list_makers(p);
  return TN_OK;
}

/* ---- the candidate ---- */

/* Whether a result of the region has another reader than the statement. */
static bool join_is_read_outside(const join_pass *p, const join_pair *pair, tn_val v) {
  const tn_graph *graph = p->cover->graph;
  for (size_t i = 0; i < p->cover->groups.n; i++)
    if ((int32_t)i != pair->statement &&
        join_is_read_by(p, p->cover->groups.v[i].in, p->cover->groups.v[i].n_in, &v, 1))
      return true;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_PACK &&
        join_is_read_by(p, node->in, node->n_in, &v, 1))
      return true;
  }
  for (size_t i = 0; i < graph->commits.n; i++)
    if (p->base[graph->commits.v[i].value] == v) return true;
  for (size_t i = 0; i < graph->outputs.n; i++)
    if (p->base[graph->outputs.v[i].value] == v) return true;
  return false;
}

static void join_list_nodes(const join_pass *p, join_pair *pair) {
  const tn_group *region = &p->cover->groups.v[pair->region],
                 *statement = &p->cover->groups.v[pair->statement];
  memcpy(pair->nodes, region->nodes, (size_t)region->n_nodes * sizeof *pair->nodes);
  pair->n_nodes = region->n_nodes;
  pair->nodes[pair->n_nodes++] = pair->op;
  for (int32_t i = 0; i < statement->n_nodes; i++)
    if (statement->nodes[i] != pair->op) pair->nodes[pair->n_nodes++] = statement->nodes[i];
}

static void join_list_results(const join_pass *p, join_pair *pair) {
  const tn_group *region = &p->cover->groups.v[pair->region],
                 *statement = &p->cover->groups.v[pair->statement];
  for (int32_t k = 0; k < region->n_out; k++)
    if (join_is_read_outside(p, pair, region->out[k])) pair->out[pair->n_out++] = region->out[k];
  for (int32_t k = 0; k < statement->n_out; k++) pair->out[pair->n_out++] = statement->out[k];
}

static tn_status join_list(join_pass *p, join_pair *pair) {
  const tn_group *region = &p->cover->groups.v[pair->region],
                 *statement = &p->cover->groups.v[pair->statement];
  tn_arena *arena = &p->cover->arena;
  pair->nodes = tn_arena_alloc(arena, (size_t)(region->n_nodes + statement->n_nodes) * sizeof *pair->nodes);
  pair->out = tn_arena_alloc(arena, (size_t)(region->n_out + statement->n_out) * sizeof *pair->out);
  if (pair->nodes == NULL || pair->out == NULL) return TN_ENOMEM;
  join_list_nodes(p, pair);
  join_list_results(p, pair);
  return TN_OK;
}

static bool join_list_has(const tn_val *list, int32_t n, tn_val v) {
  for (int32_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

/* Whether the nodes read and make what the two groups do: a copy in another layout, made for a reorder, is no
 * operand and no result of a node. */
static bool join_has_same_border(const join_pass *p, const join_pair *pair, const tn_candidate *c) {
  const tn_group *region = &p->cover->groups.v[pair->region],
                 *statement = &p->cover->groups.v[pair->statement];
  for (int32_t k = 0; k < c->n_in; k++)
    if (!join_list_has(region->in, region->n_in, c->in[k]) &&
        !join_list_has(statement->in, statement->n_in, c->in[k]))
      return false;
  for (int32_t k = 0; k < c->n_out; k++)
    if (!join_node_makes(p->cover->graph, region, c->out[k]) &&
        !join_node_makes(p->cover->graph, statement, c->out[k]))
      return false;
  return true;
}

/* ---- the decision ---- */

/* The kernel has the statement, with an epilogue where the group has one, and its family is not worse. */
static bool join_fits(const tn_catalog_kernel *kernel, const join_pair *pair) {
  const tn_catalog_kernel *region = pair->region_kernel, *statement = pair->statement_kernel;
  return kernel->pattern->n_nodes == 1 && kernel->rank <= region->rank && kernel->rank <= statement->rank &&
         kernel->pattern->prologue == region->pattern->op_class &&
         kernel->pattern->epilogue == statement->pattern->epilogue;
}

/* Estimates are compared with estimates, and measurements with measurements. */
static bool join_pays(const join_pass *p, const join_pair *pair, const tn_group *joined, bool replayed) {
  const tn_choice *a = &p->cover->groups.v[pair->region].choice,
                  *b = &p->cover->groups.v[pair->statement].choice, *c = &joined->choice;
  if (replayed || p->cover->catalog->target.replay != NULL) return replayed;
  if (a->measured && b->measured && c->measured) return c->cost_s <= a->cost_s + b->cost_s;
  bool estimated = a->estimate_s > 0 && b->estimate_s > 0 && c->estimate_s > 0;
  return !estimated || c->estimate_s <= a->estimate_s + b->estimate_s;
}

static tn_status join_reject(join_pass *p, int32_t statement, const tn_catalog_kernel *kernel,
                             const char *reason) {
  tn_group *g = &p->cover->groups.v[statement];
  const char *name = kernel->entry->item->name;
  for (int32_t i = 0; i < g->n_rejected; i++)
    if (g->rejected[i].kernel == name) return TN_OK;
  tn_rejection *list = tn_arena_alloc(&p->cover->arena, (size_t)(g->n_rejected + 1) * sizeof *list);
  if (list == NULL) return TN_ENOMEM;
  if (g->n_rejected > 0) memcpy(list, g->rejected, (size_t)g->n_rejected * sizeof *list);
  list[g->n_rejected++] = (tn_rejection){name, reason};
  g->rejected = list;
  return TN_OK;
}

static tn_status join_by_kernel(join_pass *p, const join_pair *pair, const tn_catalog_kernel *kernel,
                                bool *done) {
  tn_cover *cover = p->cover;
  const tn_group *statement = &cover->groups.v[pair->statement];
  tn_candidate c;
  TN_TRY(tn_nodes_border(&cover->arena, cover->graph, kernel, pair->nodes, pair->n_nodes, pair->out,
                         pair->n_out, &c));
  if (!join_has_same_border(p, pair, &c)) return TN_OK;
  TN_TRY(tn_candidate_query(cover->env, &cover->arena, cover->graph, &cover->catalog->target, &c));
  if (c.reason != NULL) return join_reject(p, pair->statement, kernel, c.reason);
  tn_group joined = tn_candidate_group(&c);
  if (!tn_layout_choose_variant(cover->graph, &joined))
    return join_reject(p, pair->statement, kernel, "it has no variant for the layouts");
  if (!join_pays(p, pair, &joined, c.replayed))
    return join_reject(p, pair->statement, kernel, "it costs more than its parts");
  joined.rejected = statement->rejected;
  joined.n_rejected = statement->n_rejected;
  *done = true;
  return join_reorder(p, pair, &joined);
}

static tn_status join_pair_of(join_pass *p, join_pair *pair, bool *done) {
  const tn_graph *graph = p->cover->graph;
  const tn_group *statement = &p->cover->groups.v[pair->statement];
  pair->op = join_statement_node(graph, statement, pair->statement_kernel);
  int32_t n = 0;
  const tn_catalog_kernel *kernels =
      tn_catalog_find_prologues(p->cover->catalog, graph->nodes.v[pair->op].def, &n);
  if (n == 0 || !join_mark_waited(p, pair) || join_overtakes_commit(p, pair) || join_opens_packs(p, pair))
    return TN_OK;
  TN_TRY(join_list(p, pair));
  for (int32_t i = 0; i < n && !*done; i++)
    if (join_fits(&kernels[i], pair)) TN_TRY(join_by_kernel(p, pair, &kernels[i], done));
  return TN_OK;
}

/* Joins the statement with the first region that makes one of its node's operands and that a kernel takes. */
static tn_status join_statement(join_pass *p, int32_t index, bool *done) {
  const tn_group *g = &p->cover->groups.v[index];
  join_pair pair = {.statement = index, .statement_kernel = join_statement_kernel(p, g)};
  if (pair.statement_kernel == NULL) return TN_OK;
  const tn_gnode *node =
      &p->cover->graph->nodes.v[join_statement_node(p->cover->graph, g, pair.statement_kernel)];
  for (int32_t k = 0; k < node->n_in && !*done; k++) {
    pair.region = node->in[k] == 0 ? -1 : p->maker[node->in[k]];
    if (pair.region < 0 || pair.region == index) continue;
    pair.region_kernel = join_region_kernel(p, &p->cover->groups.v[pair.region]);
    if (pair.region_kernel != NULL) TN_TRY(join_pair_of(p, &pair, done));
  }
  return TN_OK;
}

tn_status tn_pass_join(tn_cover *cover) {
  join_pass p = {.cover = cover, .arena = tn_arena_new(cover->env)};
  tn_status status = join_create_tables(&p);
  for (int32_t i = 0; status == TN_OK && i < (int32_t)cover->groups.n; i++) {
    bool done = false;
    status = join_statement(&p, i, &done);
    if (done) i--; /* the group at this place is another one now */
  }
  if (status == TN_OK) tn_cover_number_groups(cover);
  tn_arena_free(&p.arena);
  return status;
}

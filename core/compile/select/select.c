/* core/compile/select/select.c: pass `select`: covers the graph by kernels.
 *
 * Rounds: in each, patterns of several nodes are matched, larger ones first; regions grow over what is
 * left; single nodes get single kernels. Composite ops that nobody took are then decomposed and the
 * next round starts anew, so that their parts can join their neighbours. A kernel for a whole op
 * therefore wins over the cover of its parts. */
#include "core/compile/select/assign.h"
#include "core/compile/select/collective_kernel.h"
#include "core/compile/select/lower.h"

#include <string.h>

/* Deeper nesting than this means an op that decomposes into itself. */
enum { ROUNDS = 32 };

/* ---- what has to be decomposed ---- */

/* Marks composites that no pattern names: asking kernels about them is in vain. */
static tn_status mark_unmentioned(const tn_catalog *catalog, const tn_graph *graph, bool **marked,
                                  bool *any) {
  bool *marks = tn_alloc(catalog->env, graph->nodes.n * sizeof *marks);
  if (marks == NULL) return TN_ENOMEM;
  *any = false;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    marks[i] = tn_node_kind_of(node) == TN_NODE_WORK && tn_op_is_composite(node->op) &&
               !tn_catalog_mentions(catalog, node->def, node->op);
    *any |= marks[i];
  }
  *marked = marks;
  return TN_OK;
}

/* Replaces *graph by its rewritten form. */
static tn_status replace(tn_graph **graph, const bool *marked) {
  tn_graph *next = NULL;
  TN_TRY(tn_lower_decompose(*graph, marked, &next));
  tn_graph_destroy(*graph);
  *graph = next;
  return TN_OK;
}

static tn_status endless(const tn_graph *graph) {
  return tn_failf(graph->env, TN_EINVAL,
                  "the decompositions do not end after %d rounds: an op's decomposition leads back to itself",
                  ROUNDS);
}

static tn_status decompose_unmentioned(const tn_catalog *catalog, tn_graph **graph) {
  for (int round = 0; round < ROUNDS; round++) {
    bool *marked = NULL, any = false;
    TN_TRY(mark_unmentioned(catalog, *graph, &marked, &any));
    tn_status status = any ? replace(graph, marked) : TN_OK;
    tn_release(catalog->env, marked);
    if (status != TN_OK || !any) return status;
  }
  return endless(*graph);
}

static tn_status cover_by(tn_selection *s, tn_catalog *catalog) {
  s->catalog = catalog;
  TN_TRY(tn_select_patterns(s));
  TN_TRY(tn_select_regions(s));
  return tn_select_singles(s);
}

/* A kernel that declines a whole op is not heard of again once the op is gone. */
static void log_declined(const tn_selection *s, uint32_t i) {
  const tn_gnode *node = &s->graph->nodes.v[i];
  for (const tn_note *n = s->notes[i]; n != NULL; n = n->next)
    tn_logf(s->env, TN_LOG_DEBUG, "%s (%s) is decomposed: kernel %s: %s", node->op->item.name, node->layer,
            n->rejection.kernel, n->rejection.reason);
}

/* Marks what lacks a kernel and can be decomposed. */
static tn_status mark_lacking(tn_selection *s, bool **marked, bool *any) {
  bool *marks = tn_arena_alloc(&s->arena, s->graph->nodes.n * sizeof *marks);
  if (marks == NULL) return TN_ENOMEM;
  *any = false;
  for (uint32_t i = 0; i < s->graph->nodes.n; i++) {
    marks[i] = s->lacking[i] && tn_op_is_composite(s->graph->nodes.v[i].op);
    *any |= marks[i];
    if (marks[i]) log_declined(s, i);
  }
  *marked = marks;
  return TN_OK;
}

tn_status tn_select_rounds(tn_selection *s, tn_env *env, tn_catalog *catalog, tn_graph **graph) {
  for (int round = 0; round < ROUNDS; round++) {
    bool *marked = NULL, any = false;
    tn_selection_finish(s);
    TN_TRY(decompose_unmentioned(catalog, graph));
    TN_TRY(tn_selection_start(s, env, catalog, *graph));
    TN_TRY(cover_by(s, catalog));
    if (s->n_lacking == 0) return TN_OK;
    TN_TRY(mark_lacking(s, &marked, &any));
    if (!any) return TN_OK;
    TN_TRY(replace(graph, marked));
  }
  return endless(*graph);
}

/* ---- the cover ---- */

/* What a kernel that declines would have lost anyway is nobody's concern: its family comes behind. */
static bool is_beside_the_point(const tn_note *note, const tn_candidate *c) {
  return note->declined && note->rank > c->kernel->rank;
}

static tn_status collect_rejections(tn_selection *s, const tn_candidate *c, tn_group *group) {
  size_t n = 0;
  for (int32_t i = 0; i < c->n_nodes; i++)
    for (const tn_note *note = s->notes[c->nodes[i]]; note != NULL; note = note->next) n++;
  if (n == 0) return TN_OK;
  group->rejected = tn_arena_alloc(&s->arena, n * sizeof *group->rejected);
  if (group->rejected == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n_nodes; i++)
    for (const tn_note *note = s->notes[c->nodes[i]]; note != NULL; note = note->next) {
      bool known = note->rejection.kernel == c->kernel->entry->item->name || is_beside_the_point(note, c);
      for (int32_t k = 0; k < group->n_rejected; k++)
        known |= group->rejected[k].kernel == note->rejection.kernel;
      if (!known) group->rejected[group->n_rejected++] = note->rejection;
    }
  return TN_OK;
}

static tn_status add_group(tn_selection *s, const tn_candidate *c, tn_cover *cover) {
  tn_group group = tn_group_of(c);
  group.fallback = s->fallback[c->nodes[0]];
  TN_TRY(collect_rejections(s, c, &group));
  for (int32_t i = 0; i < c->n_nodes; i++) s->graph->nodes.v[c->nodes[i]].group = (int32_t)cover->groups.n;
  return tn_vec_push(s->env, &cover->groups, group);
}

/* Groups in the order of the contracted graph. The cover takes graph and arena. */
static tn_status make_cover(tn_selection *s, tn_cover **cover) {
  tn_cover *made = tn_alloc(s->env, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  tn_status status = tn_vec_reserve(s->env, &made->groups, s->chosen.n);
  for (size_t p = 0; status == TN_OK && p < s->graph->nodes.n; p++) {
    int32_t unit = s->units.order[p];
    if (unit >= 0 && s->group[unit] >= 0) status = add_group(s, &s->chosen.v[s->group[unit]], made);
  }
  if (status != TN_OK) {
    tn_vec_free(s->env, &made->groups);
    tn_release(s->env, made);
    return status;
  }
  made->env = s->env;
  made->arena = s->arena;
  s->arena = tn_arena_new(s->env);
  made->graph = s->graph;
  *cover = made;
  return TN_OK;
}

tn_group tn_group_of(const tn_candidate *c) {
  return (tn_group){.entry = c->kernel->entry,
                    .kernel = c->kernel->kernel,
                    .family = c->kernel->family,
                    .nodes = c->nodes,
                    .n_nodes = c->n_nodes,
                    .n_in = c->n_in,
                    .n_out = c->n_out,
                    .in = c->in,
                    .out = c->out,
                    .match = c->match,
                    .choice = c->choice,
                    .variants = c->variants,
                    .n_variants = c->n_variants,
                    .cost = c->cost,
                    .role = tn_kernel_is_collective(c->kernel->kernel) ? TN_STREAM_COMM : TN_STREAM_COMPUTE};
}

/* Nodes that fall back were left over by the device's cover; now they are all that is left. */
static tn_status cover_fallback(tn_assignment *a) {
  tn_selection *s = &a->round;
  if (s->n_lacking == 0) return TN_OK;
  for (size_t i = 0; i < s->graph->nodes.n; i++) s->lacking[i] = false;
  s->n_lacking = 0;
  TN_TRY(cover_by(s, a->fallback));
  if (s->n_lacking == 0) return TN_OK;
  return tn_failf(a->env, TN_EINTERNAL, "a kernel of the fallback took an op and then did not");
}

tn_status tn_select_assigned(tn_assignment *a, tn_cover **cover) {
  TN_TRY(cover_fallback(a));
  TN_TRY(make_cover(&a->round, cover));
  (*cover)->catalog = a->catalog;
  (*cover)->fallback = a->fallback;
  a->graph = NULL;
  a->catalog = a->fallback = NULL;
  tn_assignment_free(a);
  return TN_OK;
}

tn_status tn_select_cover(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                          tn_cover **cover) {
  tn_assignment assignment;
  *cover = NULL;
  TN_TRY(tn_pass_assign(env, registry, target, graph, &assignment));
  tn_status status = tn_select_assigned(&assignment, cover);
  if (status != TN_OK) tn_assignment_free(&assignment);
  return status;
}

tn_status tn_pass_select(tn_env *env, tn_registry *registry, const tn_target *target, tn_graph *take_graph,
                         tn_cover **cover) {
  TN_TRY(tn_select_cover(env, registry, target, take_graph, cover));
  tn_graph_destroy(take_graph);
  return TN_OK;
}

void tn_cover_destroy(tn_cover *cover) {
  if (cover == NULL) return;
  tn_graph_destroy(cover->graph);
  tn_catalog_destroy(cover->catalog);
  tn_catalog_destroy(cover->fallback);
  tn_vec_free(cover->env, &cover->groups);
  tn_arena_free(&cover->arena);
  tn_release(cover->env, cover);
}

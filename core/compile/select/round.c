/* core/compile/select/round.c: the state of a round of select, and its three ways to cover a graph. */
#include "core/compile/select/region.h"
#include "core/compile/select/round.h"

#include <string.h>

tn_status tn_selection_start(tn_selection *s, tn_env *env, tn_catalog *catalog, tn_graph *graph) {
  size_t n = graph->nodes.n;
  *s = (tn_selection){.env = env, .catalog = catalog, .graph = graph, .arena = tn_arena_new(env)};
  s->taken = tn_arena_alloc(&s->arena, n * sizeof *s->taken);
  s->region_kernel = tn_arena_alloc(&s->arena, n * sizeof *s->region_kernel);
  s->alone = tn_arena_alloc(&s->arena, n * sizeof *s->alone);
  s->notes = tn_arena_alloc(&s->arena, n * sizeof *s->notes);
  s->group = tn_arena_alloc(&s->arena, n * sizeof *s->group);
  s->lacking = tn_arena_alloc(&s->arena, n * sizeof *s->lacking);
  s->fallback = tn_arena_alloc(&s->arena, n * sizeof *s->fallback);
  if (s->taken == NULL || s->region_kernel == NULL || s->alone == NULL || s->notes == NULL ||
      s->group == NULL || s->lacking == NULL || s->fallback == NULL)
    return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    tn_node_kind kind = tn_node_kind_of(&graph->nodes.v[i]);
    s->taken[i] = kind != TN_NODE_WORK && kind != TN_NODE_VIEW;
    s->group[i] = -1;
  }
  TN_TRY(tn_uses_create(&s->arena, graph, &s->uses));
  return tn_units_create(&s->arena, graph, &s->uses, &s->units);
}

void tn_selection_finish(tn_selection *s) {
  tn_vec_free(s->env, &s->chosen);
  tn_arena_free(&s->arena);
}

static tn_matcher matcher_of(tn_selection *s) {
  return (tn_matcher){s->graph, &s->uses, &s->units, s->taken, &s->arena};
}

static tn_status note_one(tn_selection *s, uint32_t node, const tn_catalog_kernel *kernel, const char *reason,
                          bool declined) {
  const char *name = kernel->entry->item->name;
  for (const tn_note *n = s->notes[node]; n != NULL; n = n->next)
    if (n->rejection.kernel == name) return TN_OK;
  tn_note *note = tn_arena_alloc(&s->arena, sizeof *note);
  if (note == NULL) return TN_ENOMEM;
  *note = (tn_note){s->notes[node], {name, reason}, kernel->rank, declined};
  s->notes[node] = note;
  return TN_OK;
}

tn_status tn_selection_note(tn_selection *s, const uint32_t *nodes, int32_t n,
                            const tn_catalog_kernel *kernel, const char *reason, bool declined) {
  for (int32_t i = 0; i < n; i++) TN_TRY(note_one(s, nodes[i], kernel, reason, declined));
  return TN_OK;
}

tn_status tn_selection_take(tn_selection *s, const tn_candidate *candidate) {
  for (int32_t i = 0; i < candidate->n_nodes; i++) s->taken[candidate->nodes[i]] = true;
  if (candidate->n_nodes > 1) {
    tn_units_set_start(&s->units);
    for (int32_t i = 0; i < candidate->n_nodes; i++) tn_units_set_add(&s->units, candidate->nodes[i]);
    tn_units_set_merge(&s->units, candidate->nodes, candidate->n_nodes);
  }
  s->group[s->units.unit[candidate->nodes[0]]] = (int32_t)s->chosen.n;
  return tn_vec_push(s->env, &s->chosen, *candidate);
}

bool tn_candidate_better(const tn_candidate *a, const tn_candidate *b) {
  if (a->replayed != b->replayed) return a->replayed;
  if (a->kernel->rank != b->kernel->rank) return a->kernel->rank < b->kernel->rank;
  return a->choice.cost_s < b->choice.cost_s;
}

static tn_status query(tn_selection *s, tn_candidate *candidate) {
  TN_TRY(tn_candidate_query(s->env, &s->arena, s->graph, &s->catalog->target, candidate));
  if (candidate->reason == NULL) return TN_OK;
  return tn_selection_note(s, candidate->nodes, candidate->n_nodes, candidate->kernel, candidate->reason,
                           true);
}

static tn_status note_loser(tn_selection *s, const tn_candidate *loser, const tn_candidate *winner) {
  const char *reason = loser->kernel->rank != winner->kernel->rank
                           ? tn_arena_printf(&s->arena, "family %s goes first", winner->kernel->family)
                           : tn_arena_printf(&s->arena, "%.3g ms against %.3g ms", loser->choice.cost_s * 1e3,
                                             winner->choice.cost_s * 1e3);
  if (reason == NULL) return TN_ENOMEM;
  return tn_selection_note(s, loser->nodes, loser->n_nodes, loser->kernel, reason, false);
}

/* Keeps the better of two; best->kernel is NULL while there is none. */
static tn_status contest(tn_selection *s, const tn_candidate *candidate, tn_candidate *best) {
  if (best->kernel == NULL) {
    *best = *candidate;
    return TN_OK;
  }
  bool better = tn_candidate_better(candidate, best);
  TN_TRY(note_loser(s, better ? best : candidate, better ? candidate : best));
  if (better) *best = *candidate;
  return TN_OK;
}

/* The best kernel whose pattern has `size` nodes, the last of them `node`. */
static tn_status best_at(tn_selection *s, uint32_t node, int32_t size, tn_candidate *best) {
  tn_matcher matcher = matcher_of(s);
  int32_t n = 0;
  const tn_catalog_kernel *kernels = tn_catalog_find(s->catalog, s->graph->nodes.v[node].def, &n);
  for (int32_t i = 0; i < n; i++) {
    tn_candidate candidate;
    const char *refusal = NULL;
    if (kernels[i].pattern->n_nodes != size) continue;
    TN_TRY(tn_match_at(&matcher, &kernels[i], node, &candidate, &refusal));
    if (refusal != NULL) TN_TRY(tn_selection_note(s, &node, 1, &kernels[i], refusal, true));
    if (candidate.kernel == NULL) continue;
    TN_TRY(query(s, &candidate));
    if (candidate.reason == NULL) TN_TRY(contest(s, &candidate, best));
  }
  return TN_OK;
}

static int32_t largest_pattern(const tn_catalog *catalog) {
  int32_t largest = 0;
  for (size_t i = 0; i < catalog->fixed.n; i++)
    if (catalog->fixed.v[i].pattern->n_nodes > largest) largest = catalog->fixed.v[i].pattern->n_nodes;
  return largest;
}

/* A pattern names the ops it was written for: so patterns of several nodes go before regions, which
 * take what is left. */
tn_status tn_select_patterns(tn_selection *s) {
  for (int32_t size = largest_pattern(s->catalog); size > 1; size--)
    for (uint32_t i = 0; i < s->graph->nodes.n; i++) {
      tn_candidate best = {0};
      if (s->taken[i]) continue;
      TN_TRY(best_at(s, i, size, &best));
      if (best.kernel != NULL) TN_TRY(tn_selection_take(s, &best));
    }
  return TN_OK;
}

/* ---- regions ---- */

static tn_status find_region_kernel(tn_selection *s, uint32_t node) {
  const tn_gnode *n = &s->graph->nodes.v[node];
  tn_matcher matcher = matcher_of(s);
  for (size_t i = 0; i < s->catalog->regions.n; i++) {
    const tn_catalog_kernel *kernel = &s->catalog->regions.v[i];
    tn_candidate candidate;
    if (kernel->pattern->op_class != (int32_t)n->op->op_class) continue;
    TN_TRY(tn_region_candidate(&matcher, kernel, &node, 1, &candidate));
    TN_TRY(query(s, &candidate));
    if (candidate.reason != NULL) continue;
    s->region_kernel[node] = kernel;
    s->alone[node] = candidate;
    return TN_OK;
  }
  return TN_OK;
}

/* A kernel may take each node and not all of them together (too many operands of its own count):
 * then the first half is tried. One node is left to tn_select_singles. */
static tn_status take_region(tn_selection *s, const tn_region_nodes *region) {
  tn_matcher matcher = matcher_of(s);
  for (int32_t n = region->n; n > 1; n /= 2) {
    tn_candidate candidate;
    TN_TRY(tn_region_candidate(&matcher, s->region_kernel[region->node[0]], region->node, n, &candidate));
    TN_TRY(tn_candidate_query(s->env, &s->arena, s->graph, &s->catalog->target, &candidate));
    if (candidate.reason == NULL) return tn_selection_take(s, &candidate);
  }
  return TN_OK;
}

/* Seeds are taken from the end of the graph: a value that only backward needs, though it could be
 * computed early, then joins its users and nothing has to be kept for it. */
tn_status tn_select_regions(tn_selection *s) {
  tn_matcher matcher = matcher_of(s);
  tn_region_nodes region;
  for (uint32_t i = 0; i < s->graph->nodes.n; i++)
    if (!s->taken[i] && tn_node_kind_of(&s->graph->nodes.v[i]) == TN_NODE_WORK)
      TN_TRY(find_region_kernel(s, i));
  for (uint32_t i = (uint32_t)s->graph->nodes.n; i-- > 0;) {
    if (s->taken[i] || s->region_kernel[i] == NULL) continue;
    tn_region_grow(&matcher, s->region_kernel, i, &region);
    TN_TRY(take_region(s, &region));
  }
  return TN_OK;
}

/* ---- single nodes ---- */

tn_status tn_select_singles(tn_selection *s) {
  for (uint32_t i = 0; i < s->graph->nodes.n; i++) {
    tn_candidate best = s->alone[i];
    if (s->taken[i] || tn_node_kind_of(&s->graph->nodes.v[i]) != TN_NODE_WORK) continue;
    TN_TRY(best_at(s, i, 1, &best));
    if (best.kernel != NULL) {
      TN_TRY(tn_selection_take(s, &best));
    } else {
      s->lacking[i] = true;
      s->n_lacking++;
    }
  }
  return TN_OK;
}

tn_status tn_selection_can(tn_selection *s, tn_catalog *catalog, uint32_t node, bool *can) {
  tn_catalog *before = s->catalog;
  tn_candidate best = {0};
  s->catalog = catalog;
  s->region_kernel[node] = NULL;
  tn_status status = find_region_kernel(s, node);
  if (status == TN_OK) status = best_at(s, node, 1, &best);
  *can = s->region_kernel[node] != NULL || best.kernel != NULL;
  s->catalog = before;
  return status;
}

/* ---- what nobody does ---- */

static void describe_operands(const tn_selection *s, const tn_gnode *node, tn_text *text) {
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < node->n_in; i++)
    tn_text_addf(text, "%s%s", i > 0 ? ", " : "",
                 node->in[i] == 0 ? "_" : tn_type_format(tn_graph_type(s->graph, node->in[i]), type));
}

static void describe_place(const tn_gnode *node, tn_text *text) {
  bool layer = node->layer != NULL && node->layer[0] != '\0',
       where = node->where != NULL && node->where[0] != '\0';
  if (layer || where)
    tn_text_addf(text, " (%s%s%s)", layer ? node->layer : "", layer && where ? ", " : "",
                 where ? node->where : "");
}

static void add_reasons(const tn_note *notes, tn_text *text) {
  if (notes == NULL) tn_text_add(text, "no installed kernel has a pattern for it");
  for (const tn_note *n = notes; n != NULL; n = n->next)
    tn_text_addf(text, "%s%s: %s", n == notes ? "" : "; ", n->rejection.kernel, n->rejection.reason);
}

tn_status tn_selection_reasons(tn_selection *s, uint32_t node, const char **reasons) {
  tn_text text = tn_text_new(s->env);
  add_reasons(s->notes[node], &text);
  char *joined = tn_text_take(&text);
  *reasons = joined == NULL ? NULL : tn_arena_strdup(&s->arena, joined);
  tn_release(s->env, joined);
  return *reasons == NULL ? TN_ENOMEM : TN_OK;
}

tn_status tn_selection_unsupported(tn_selection *s, uint32_t index, const char *reasons, const char *more) {
  const tn_gnode *node = &s->graph->nodes.v[index];
  tn_text text = tn_text_new(s->env);
  tn_text_addf(&text, "no kernel takes %s(", node->op->item.name);
  describe_operands(s, node, &text);
  tn_text_add(&text, ")");
  describe_place(node, &text);
  tn_text_add(&text, " on");
  for (int32_t i = 0; i < s->catalog->target.n_families; i++)
    tn_text_addf(&text, "%s %s", i > 0 ? "," : "", s->catalog->target.families[i]);
  tn_text_addf(&text, ", and the op has no decomposition; %s%s", reasons, more);
  char *message = tn_text_take(&text);
  if (message == NULL) return TN_ENOMEM;
  tn_failf(s->env, TN_EUNSUPPORTED, "%s", message);
  tn_release(s->env, message);
  return TN_EUNSUPPORTED;
}

/* core/compile/select/convexity.c: convexity and order of a contracted graph.
 *
 * Searches are cut off by position: in an order in which operands come first, nothing that stands
 * after the last member of a set leads back into it. Merging reorders the positions between the
 * set's ends only, as in Pearce and Kelly, "A dynamic topological sort algorithm for directed
 * acyclic graphs" (ACM JEA 11, 2007). */
#include "core/compile/select/convexity.h"

#include <string.h>

/* Units that one search may visit. A set whose convexity is harder to decide is not worth fusing: its
 * parts are so far apart that a value would be kept alive between them. */
enum { SEARCH_LIMIT = 2048 };

tn_status tn_units_create(tn_arena *arena, const tn_graph *graph, const tn_uses *uses, tn_units *units) {
  size_t n = graph->nodes.n;
  int32_t **tables[] = {&units->unit,  &units->member, &units->next, &units->position,
                        &units->order, &units->stack,  &units->moved};
  *units = (tn_units){.graph = graph, .uses = uses};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    *tables[i] = tn_arena_alloc(arena, n * sizeof(int32_t));
    if (*tables[i] == NULL) return TN_ENOMEM;
  }
  units->set = tn_arena_alloc(arena, n * sizeof(uint32_t));
  units->seen = tn_arena_alloc(arena, n * sizeof(uint32_t));
  if (units->set == NULL || units->seen == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    units->unit[i] = units->member[i] = units->position[i] = units->order[i] = (int32_t)i;
    units->next[i] = -1;
  }
  return TN_OK;
}

void tn_units_set_start(tn_units *u) {
  u->set_epoch++;
  u->set_first = INT32_MAX;
  u->set_last = -1;
}

void tn_units_set_add(tn_units *u, uint32_t node) {
  int32_t unit = u->unit[node], position = u->position[unit];
  u->set[unit] = u->set_epoch;
  if (position < u->set_first) u->set_first = position;
  if (position > u->set_last) u->set_last = position;
}

/* A search along users (forward) or makers through units outside the set, no further than `limit`. */
typedef struct search {
  tn_units *u;
  bool forward;
  int32_t limit, depth, visited;
} search;

/* A neighbour is met. Returns true if the search ends: the set is reached, or the limit. */
static bool meet(search *s, int32_t unit, bool set_counts) {
  tn_units *u = s->u;
  if (u->set[unit] == u->set_epoch) return set_counts;
  if (u->seen[unit] == u->seen_epoch) return false;
  if (s->forward ? u->position[unit] > s->limit : u->position[unit] < s->limit) return false;
  u->seen[unit] = u->seen_epoch;
  u->stack[s->depth++] = unit;
  return ++s->visited > SEARCH_LIMIT;
}

static bool meet_users(search *s, const tn_gnode *node, bool set_counts) {
  const tn_uses *uses = s->u->uses;
  int32_t end = uses->start[node->first_out + node->n_out];
  for (int32_t i = uses->start[node->first_out]; i < end; i++)
    if (meet(s, s->u->unit[uses->node[i]], set_counts)) return true;
  return false;
}

static bool meet_makers(search *s, const tn_gnode *node, bool set_counts) {
  const tn_graph *g = s->u->graph;
  for (int32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != 0 && meet(s, s->u->unit[g->values.v[node->in[i]].node], set_counts)) return true;
  return false;
}

/* `set_counts`: whether a direct edge to the set ends the search, as it does from outside. */
static bool meet_neighbours(search *s, int32_t unit, bool set_counts) {
  const tn_units *u = s->u;
  for (int32_t i = u->member[unit]; i >= 0; i = u->next[i]) {
    const tn_gnode *node = &u->graph->nodes.v[i];
    if (s->forward ? meet_users(s, node, set_counts) : meet_makers(s, node, set_counts)) return true;
  }
  return false;
}

static bool run_search(search *s) {
  while (s->depth > 0)
    if (meet_neighbours(s, s->u->stack[--s->depth], true)) return true;
  return false;
}

static search new_search(tn_units *u, bool forward, int32_t limit) {
  u->seen_epoch++;
  return (search){.u = u, .forward = forward, .limit = limit};
}

bool tn_units_set_convex(tn_units *u, const uint32_t *nodes, int32_t n) {
  search s = new_search(u, true, u->set_last);
  for (int32_t i = 0; i < n; i++)
    if (meet_neighbours(&s, u->unit[nodes[i]], false)) return false;
  return !run_search(&s);
}

/* The newcomer stands before or after; a path around leads from it into the set, or from the set into
 * it, through at least one unit outside. */
bool tn_units_set_admits(tn_units *u, uint32_t node) {
  search ahead = new_search(u, true, u->set_last);
  int32_t unit = u->unit[node];
  if (meet_neighbours(&ahead, unit, false) || run_search(&ahead)) return false;
  search back = new_search(u, false, u->set_first);
  return !meet_neighbours(&back, unit, false) && !run_search(&back);
}

static bool depends_on_moved(const tn_units *u, int32_t unit) {
  for (int32_t i = u->member[unit]; i >= 0; i = u->next[i]) {
    const tn_gnode *node = &u->graph->nodes.v[i];
    for (int32_t k = 0; k < node->n_in; k++) {
      if (node->in[k] == 0) continue;
      int32_t maker = u->unit[u->graph->values.v[node->in[k]].node];
      if (u->set[maker] == u->set_epoch || u->seen[maker] == u->seen_epoch) return true;
    }
  }
  return false;
}

static void place_at(tn_units *u, int32_t position, int32_t unit) {
  u->order[position] = unit;
  u->position[unit] = position;
}

/* Between the set's ends: first what does not depend on the set, then the set, then what does. */
static void reorder(tn_units *u, int32_t merged) {
  int32_t at = u->set_first, n_moved = 0;
  u->seen_epoch++;
  for (int32_t p = u->set_first; p <= u->set_last; p++) {
    int32_t unit = u->order[p];
    if (unit < 0 || u->set[unit] == u->set_epoch) continue;
    if (depends_on_moved(u, unit)) {
      u->seen[unit] = u->seen_epoch;
      u->moved[n_moved++] = unit;
    } else {
      place_at(u, at++, unit);
    }
  }
  place_at(u, at++, merged);
  for (int32_t i = 0; i < n_moved; i++) place_at(u, at++, u->moved[i]);
  while (at <= u->set_last) u->order[at++] = -1;
}

void tn_units_set_merge(tn_units *u, const uint32_t *nodes, int32_t n) {
  int32_t merged = u->unit[nodes[0]];
  reorder(u, merged);
  for (int32_t i = 0; i < n; i++) {
    u->unit[nodes[i]] = merged;
    u->next[nodes[i]] = i + 1 < n ? (int32_t)nodes[i + 1] : -1;
  }
  u->member[merged] = (int32_t)nodes[0];
}

/* core/compile/select/convexity.c: convexity in the contracted graph, and its topological order.
 *
 * A search stops at positions outside of the set's ends: no path leads back into the set from a later
 * position in topological order. Merging reorders only the positions between the set's ends, as in Pearce and
 * Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (ACM JEA 11, 2007). */
#include "core/compile/select/convexity.h"

#include <string.h>

/* Vertices that one search may visit. A set whose convexity takes longer to decide is not worth fusing: its
 * nodes are so far apart that a value would stay live between them. */
enum { SEARCH_LIMIT = 2048 };

tn_status tn_contracted_create(tn_arena *arena, const tn_graph *graph, const tn_uses *uses,
                               tn_contracted_graph *contracted) {
  size_t n = graph->nodes.n;
  int32_t **tables[] = {&contracted->vertex,    &contracted->first_member, &contracted->next_member,
                        &contracted->position,  &contracted->order,        &contracted->stack,
                        &contracted->dependents};
  *contracted = (tn_contracted_graph){.graph = graph, .uses = uses};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    *tables[i] = tn_arena_alloc(arena, n * sizeof(int32_t));
    if (*tables[i] == NULL) return TN_ENOMEM;
  }
  contracted->set = tn_arena_alloc(arena, n * sizeof(uint32_t));
  contracted->seen = tn_arena_alloc(arena, n * sizeof(uint32_t));
  if (contracted->set == NULL || contracted->seen == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    contracted->vertex[i] = contracted->first_member[i] = contracted->position[i] = contracted->order[i] =
        (int32_t)i;
    contracted->next_member[i] = -1;
  }
  return TN_OK;
}

void tn_contracted_set_start(tn_contracted_graph *c) {
  c->set_epoch++;
  c->set_first = INT32_MAX;
  c->set_last = -1;
}

void tn_contracted_set_add(tn_contracted_graph *c, uint32_t node) {
  int32_t vertex = c->vertex[node], position = c->position[vertex];
  c->set[vertex] = c->set_epoch;
  if (position < c->set_first) c->set_first = position;
  if (position > c->set_last) c->set_last = position;
}

/* A depth-first search along users (forward) or makers, through vertices outside of the set. */
typedef struct path_search {
  tn_contracted_graph *c;
  bool forward;
  int32_t limit; /* the last position that it visits */
  int32_t depth, visited;
} path_search;

/* Visits a neighbour later. Returns true if the search ends: at the set, or at SEARCH_LIMIT. */
static bool visit_vertex(path_search *s, int32_t vertex, bool set_counts) {
  tn_contracted_graph *c = s->c;
  if (c->set[vertex] == c->set_epoch) return set_counts;
  if (c->seen[vertex] == c->seen_epoch) return false;
  if (s->forward ? c->position[vertex] > s->limit : c->position[vertex] < s->limit) return false;
  c->seen[vertex] = c->seen_epoch;
  c->stack[s->depth++] = vertex;
  return ++s->visited > SEARCH_LIMIT;
}

static bool visit_users(path_search *s, const tn_gnode *node, bool set_counts) {
  const tn_uses *uses = s->c->uses;
  int32_t end = uses->start[node->first_out + node->n_out];
  for (int32_t i = uses->start[node->first_out]; i < end; i++)
    if (visit_vertex(s, s->c->vertex[uses->node[i]], set_counts)) return true;
  return false;
}

static bool visit_makers(path_search *s, const tn_gnode *node, bool set_counts) {
  const tn_graph *g = s->c->graph;
  for (int32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != 0 && visit_vertex(s, s->c->vertex[g->values.v[node->in[i]].node], set_counts))
      return true;
  return false;
}

/* `set_counts`: an edge into the set ends the search. That holds for edges from outside of the set. */
static bool visit_neighbours(path_search *s, int32_t vertex, bool set_counts) {
  const tn_contracted_graph *c = s->c;
  for (int32_t i = c->first_member[vertex]; i >= 0; i = c->next_member[i]) {
    const tn_gnode *node = &c->graph->nodes.v[i];
    if (s->forward ? visit_users(s, node, set_counts) : visit_makers(s, node, set_counts)) return true;
  }
  return false;
}

static bool reaches_set(path_search *s) {
  while (s->depth > 0)
    if (visit_neighbours(s, s->c->stack[--s->depth], true)) return true;
  return false;
}

static path_search new_path_search(tn_contracted_graph *c, bool forward, int32_t limit) {
  c->seen_epoch++;
  return (path_search){.c = c, .forward = forward, .limit = limit};
}

bool tn_contracted_set_is_convex(tn_contracted_graph *c, const uint32_t *nodes, int32_t n) {
  path_search s = new_path_search(c, true, c->set_last);
  for (int32_t i = 0; i < n; i++)
    if (visit_neighbours(&s, c->vertex[nodes[i]], false)) return false;
  return !reaches_set(&s);
}

/* The neighbour may come before or after the set. It breaks convexity if a path through a vertex outside
 * leads from it into the set, or from the set into it. */
bool tn_contracted_set_admits(tn_contracted_graph *c, uint32_t node) {
  path_search ahead = new_path_search(c, true, c->set_last);
  int32_t vertex = c->vertex[node];
  if (visit_neighbours(&ahead, vertex, false) || reaches_set(&ahead)) return false;
  path_search back = new_path_search(c, false, c->set_first);
  return !visit_neighbours(&back, vertex, false) && !reaches_set(&back);
}

static bool depends_on_set(const tn_contracted_graph *c, int32_t vertex) {
  for (int32_t i = c->first_member[vertex]; i >= 0; i = c->next_member[i]) {
    const tn_gnode *node = &c->graph->nodes.v[i];
    for (int32_t k = 0; k < node->n_in; k++) {
      if (node->in[k] == 0) continue;
      int32_t maker = c->vertex[c->graph->values.v[node->in[k]].node];
      if (c->set[maker] == c->set_epoch || c->seen[maker] == c->seen_epoch) return true;
    }
  }
  return false;
}

static void set_vertex_position(tn_contracted_graph *c, int32_t position, int32_t vertex) {
  c->order[position] = vertex;
  c->position[vertex] = position;
}

/* The new order between the set's ends: vertices that do not depend on the set, the set, vertices that do. */
static void reorder_between_ends(tn_contracted_graph *c, int32_t merged) {
  int32_t at = c->set_first, n_dependents = 0;
  c->seen_epoch++;
  for (int32_t p = c->set_first; p <= c->set_last; p++) {
    int32_t vertex = c->order[p];
    if (vertex < 0 || c->set[vertex] == c->set_epoch) continue;
    if (depends_on_set(c, vertex)) {
      c->seen[vertex] = c->seen_epoch;
      c->dependents[n_dependents++] = vertex;
    } else {
      set_vertex_position(c, at++, vertex);
    }
  }
  set_vertex_position(c, at++, merged);
  for (int32_t i = 0; i < n_dependents; i++) set_vertex_position(c, at++, c->dependents[i]);
  while (at <= c->set_last) c->order[at++] = -1;
}

void tn_contracted_set_merge(tn_contracted_graph *c, const uint32_t *nodes, int32_t n) {
  int32_t merged = c->vertex[nodes[0]];
  reorder_between_ends(c, merged);
  for (int32_t i = 0; i < n; i++) {
    c->vertex[nodes[i]] = merged;
    c->next_member[nodes[i]] = i + 1 < n ? (int32_t)nodes[i + 1] : -1;
  }
  c->first_member[merged] = (int32_t)nodes[0];
}

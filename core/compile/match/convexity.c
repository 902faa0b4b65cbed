/* core/compile/match/convexity.c: convexity in the contracted graph, and its topological order.
 *
 * A search stops at positions outside of the set's ends: no path leads back into the set from a later
 * position in topological order. Merging moves only the set and the vertices between its ends that depend on
 * it, the affected region of Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic
 * graphs" (ACM JEA 11, 2007). Others keep their positions: positions are far apart, so that a vertex can move
 * between two others (order maintenance after Dietz and Sleator, STOC 1987). */
#include "core/compile/match/convexity.h"

#include <stdlib.h>

/* Vertices that one search may visit. A set whose convexity takes longer to decide is not worth fusing: its
 * nodes are so far apart that a value would stay live between them. */
enum { SEARCH_LIMIT = 2048 };

/* Between the positions of neighbours in the list when they are numbered. */
static const int64_t POSITION_STEP = (int64_t)1 << 32;

static void number_positions(tn_contracted_graph *c) {
  int64_t position = 0;
  for (int32_t v = tn_contracted_first(c); v != c->end; v = c->next[v])
    c->position[v] = position += POSITION_STEP;
  c->position[c->end] = position + POSITION_STEP;
}

static void unlink_vertex(tn_contracted_graph *c, int32_t vertex) {
  c->next[c->previous[vertex]] = c->next[vertex];
  c->previous[c->next[vertex]] = c->previous[vertex];
}

static void link_vertex_after(tn_contracted_graph *c, int32_t before, int32_t vertex) {
  c->next[vertex] = c->next[before];
  c->previous[vertex] = before;
  c->previous[c->next[vertex]] = vertex;
  c->next[before] = vertex;
}

tn_status tn_contracted_create(tn_arena *arena, const tn_graph *graph, const tn_uses *uses,
                               tn_contracted_graph *contracted) {
  size_t n = graph->nodes.n;
  int32_t **tables[] = {&contracted->vertex, &contracted->first_member, &contracted->next_member,
                        &contracted->next,   &contracted->previous,     &contracted->stack};
  *contracted = (tn_contracted_graph){.graph = graph, .uses = uses, .end = (int32_t)n};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    *tables[i] = tn_arena_alloc(arena, (n + 1) * sizeof(int32_t));
    if (*tables[i] == NULL) return TN_ENOMEM;
  }
  contracted->position = tn_arena_alloc(arena, (n + 1) * sizeof *contracted->position);
  contracted->set = tn_arena_alloc(arena, n * sizeof(uint32_t));
  contracted->seen = tn_arena_alloc(arena, n * sizeof(uint32_t));
  if (contracted->position == NULL || contracted->set == NULL || contracted->seen == NULL) return TN_ENOMEM;
  contracted->next[n] = contracted->previous[n] = contracted->end;
  for (int32_t i = 0; i < contracted->end; i++) {
    contracted->vertex[i] = contracted->first_member[i] = i;
    contracted->next_member[i] = -1;
    link_vertex_after(contracted, contracted->previous[contracted->end], i);
  }
  number_positions(contracted);
  return TN_OK;
}

void tn_contracted_set_start(tn_contracted_graph *c) {
  c->set_epoch++;
  c->set_first = INT64_MAX;
  c->set_last = -1;
}

void tn_contracted_set_add(tn_contracted_graph *c, uint32_t node) {
  int32_t vertex = c->vertex[node];
  int64_t position = c->position[vertex];
  c->set[vertex] = c->set_epoch;
  if (position < c->set_first) c->set_first = position;
  if (position <= c->set_last) return;
  c->set_last = position;
  c->set_tail = vertex;
}

void tn_contracted_set_of(tn_contracted_graph *c, const uint32_t *nodes, int32_t n) {
  tn_contracted_set_start(c);
  for (int32_t i = 0; i < n; i++) tn_contracted_set_add(c, nodes[i]);
}

/* A depth-first search along users (forward) or makers, through vertices outside of the set. */
typedef struct path_search {
  tn_contracted_graph *c;
  bool forward;
  int64_t limit; /* the last position that it visits */
  int32_t most;  /* how many vertices it may visit */
  int32_t depth, visited;
} path_search;

/* Visits a neighbour later. Returns true if the search ends: at the set, or after `most` vertices. */
static bool visit_vertex(path_search *s, int32_t vertex, bool set_counts) {
  tn_contracted_graph *c = s->c;
  if (c->set[vertex] == c->set_epoch) return set_counts;
  if (c->seen[vertex] == c->seen_epoch) return false;
  if (s->forward ? c->position[vertex] > s->limit : c->position[vertex] < s->limit) return false;
  c->seen[vertex] = c->seen_epoch;
  c->stack[s->depth++] = vertex;
  return ++s->visited > s->most;
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

static path_search new_path_search(tn_contracted_graph *c, bool forward, int64_t limit) {
  c->seen_epoch++;
  return (path_search){.c = c, .forward = forward, .limit = limit, .most = SEARCH_LIMIT};
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

/* ---- the merge ---- */

/* Lists in c->stack the vertices between the set's ends that depend on the set: breadth first, so that none
 * leaves the list. */
static int32_t list_dependents(tn_contracted_graph *c, const uint32_t *nodes, int32_t n) {
  path_search s = new_path_search(c, true, c->set_last);
  s.most = INT32_MAX;
  for (int32_t i = 0; i < n; i++) visit_neighbours(&s, c->vertex[nodes[i]], false);
  for (int32_t i = 0; i < s.depth; i++) visit_neighbours(&s, c->stack[i], false);
  return s.depth;
}

static int compare_vertices_by_position(const void *left, const void *right, void *contracted) {
  const tn_contracted_graph *c = contracted;
  int64_t a = c->position[*(const int32_t *)left], b = c->position[*(const int32_t *)right];
  return (a > b) - (a < b);
}

/* Unlinks the set's vertices but the last, whose place in the list is that of the merged vertex. */
static void unlink_set(tn_contracted_graph *c, int32_t merged, const uint32_t *nodes, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    int32_t vertex = c->vertex[nodes[i]];
    if (vertex != c->set_tail && c->first_member[vertex] == (int32_t)nodes[i]) unlink_vertex(c, vertex);
  }
  if (merged == c->set_tail) return;
  link_vertex_after(c, c->set_tail, merged);
  unlink_vertex(c, c->set_tail);
  c->position[merged] = c->position[c->set_tail];
}

/* Moves vertices behind `before`, with positions up to that of the vertex that comes next. */
static void move_vertices_after(tn_contracted_graph *c, int32_t before, const int32_t *vertices, int32_t n) {
  for (int32_t i = 0; i < n; i++) unlink_vertex(c, vertices[i]);
  int64_t position = c->position[before], step = (c->position[c->next[before]] - position) / (n + 1);
  for (int32_t i = 0; i < n; i++) {
    link_vertex_after(c, before, vertices[i]);
    before = vertices[i];
    c->position[before] = position += step;
  }
  if (step == 0) number_positions(c);
}

/* The new order between the set's ends: vertices that do not depend on the set, the set, vertices that do. */
void tn_contracted_set_merge(tn_contracted_graph *c, const uint32_t *nodes, int32_t n) {
  int32_t merged = c->vertex[nodes[0]], n_dependents = list_dependents(c, nodes, n);
  qsort_r(c->stack, (size_t)n_dependents, sizeof *c->stack, compare_vertices_by_position, c);
  unlink_set(c, merged, nodes, n);
  move_vertices_after(c, merged, c->stack, n_dependents);
  for (int32_t i = 0; i < n; i++) {
    c->vertex[nodes[i]] = merged;
    c->next_member[nodes[i]] = i + 1 < n ? (int32_t)nodes[i + 1] : -1;
  }
  c->first_member[merged] = (int32_t)nodes[0];
}

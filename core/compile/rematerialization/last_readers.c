/* core/compile/rematerialization/last_readers.c: keeps the last two readers of every value up to date while
 * groups change.
 *
 * A constant may have thousands of readers that stop reading it one by one. The readings of a value are a
 * skew heap (Sleator and Tarjan, "Self-adjusting heaps", SIAM J. Computing 15, 1986): the last reader is on
 * top, and merging two heaps takes logarithmic amortized time. A reading of a group that no longer reads the
 * value is removed when it comes to the top. */
#include "core/compile/rematerialization/last_readers.h"

#include "core/compile/rematerialization/view_bases.h"
#include "core/graph/uses.h"

bool tn_last_readers_group_reads(const tn_last_readers *r, const tn_group *g, tn_val base) {
  for (int32_t i = 0; i < g->n_in; i++)
    if (r->base[g->in[i]] == base) return true;
  return false;
}

/* Readers are added in order at first; a group that recomputes a value becomes a reader of its operands
 * later. */
static void add_reader(tn_last_readers *r, tn_val base, int32_t group) {
  if (group > r->last[base]) {
    r->before[base] = r->last[base];
    r->last[base] = group;
  } else if (group < r->last[base] && group > r->before[base]) {
    r->before[base] = group;
  }
}

/* Merges two heaps: along their right spines, and with the children swapped, so that the spine stays short.
 */
static tn_reading *merge_readings(tn_reading *a, tn_reading *b) {
  tn_reading *top = NULL, **at = &top;
  while (a != NULL && b != NULL) {
    tn_reading *later = a->group >= b->group ? a : b, *rest = later->right;
    b = later == a ? b : a;
    a = rest;
    later->right = later->left;
    *at = later;
    at = &later->left;
  }
  *at = a != NULL ? a : b;
  return top;
}

static tn_status add_reading(tn_last_readers *r, tn_val v, int32_t group) {
  tn_reading *made = tn_arena_alloc(&r->arena, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  *made = (tn_reading){.group = group};
  r->readings[r->base[v]] = merge_readings(made, r->readings[r->base[v]]);
  add_reader(r, r->base[v], group);
  return TN_OK;
}

static tn_status list_all_readings(tn_last_readers *r) {
  const tn_graph *graph = r->cover->graph;
  for (size_t v = 0; v < graph->values.n; v++) r->maker[v] = r->last[v] = r->before[v] = -1;
  for (size_t i = 0; i < r->cover->groups.n; i++) {
    const tn_group *g = &r->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_out; k++) r->maker[g->out[k]] = r->last[g->out[k]] = (int32_t)i;
    for (int32_t k = 0; k < g->n_in; k++) TN_TRY(add_reading(r, g->in[k], (int32_t)i));
  }
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->group >= 0 || tn_node_kind_of(node) != TN_NODE_PACK) continue;
    for (int32_t k = 0; k < node->n_in; k++) add_reader(r, r->base[node->in[k]], INT32_MAX);
  }
  for (size_t i = 0; i < graph->commits.n; i++) add_reader(r, r->base[graph->commits.v[i].value], INT32_MAX);
  for (size_t i = 0; i < graph->outputs.n; i++) add_reader(r, r->base[graph->outputs.v[i].value], INT32_MAX);
  return TN_OK;
}

tn_status tn_last_readers_create(tn_last_readers *r, tn_cover *cover) {
  size_t n = cover->graph->values.n;
  *r = (tn_last_readers){.cover = cover, .arena = tn_arena_new(cover->env)};
  r->base = tn_alloc(cover->env, n * sizeof *r->base);
  r->maker = tn_alloc(cover->env, n * sizeof *r->maker);
  r->last = tn_alloc(cover->env, n * sizeof *r->last);
  r->before = tn_alloc(cover->env, n * sizeof *r->before);
  r->readings = tn_alloc(cover->env, n * sizeof *r->readings);
  r->dead = tn_alloc(cover->env, cover->groups.n * sizeof *r->dead);
  if (r->base == NULL || r->maker == NULL || r->last == NULL || r->before == NULL || r->readings == NULL ||
      r->dead == NULL)
    return TN_ENOMEM;
  tn_find_view_bases(cover->graph, r->base);
  return list_all_readings(r);
}

void tn_last_readers_free(tn_last_readers *r) {
  tn_release(r->cover->env, r->base);
  tn_release(r->cover->env, r->maker);
  tn_release(r->cover->env, r->last);
  tn_release(r->cover->env, r->before);
  tn_release(r->cover->env, r->readings);
  tn_arena_free(&r->arena);
  tn_release(r->cover->env, r->dead);
}

static bool is_reading(const tn_last_readers *r, const tn_reading *reading, tn_val base) {
  return !r->dead[reading->group] &&
         tn_last_readers_group_reads(r, &r->cover->groups.v[reading->group], base);
}

/* Removes from the top of a heap the readings by groups that no longer read the value, and those of the group
 * `counted`. Then adds the reader on top. */
static void add_top_reader(tn_last_readers *r, tn_reading **heap, tn_val base, int32_t counted) {
  while (*heap != NULL && ((*heap)->group == counted || !is_reading(r, *heap, base)))
    *heap = merge_readings((*heap)->left, (*heap)->right);
  if (*heap != NULL) add_reader(r, base, (*heap)->group);
}

/* The last two readers of a value after a group has stopped reading it: the second is the top of one of the
 * heaps below the first. */
static void find_last_reader(tn_last_readers *r, tn_val base) {
  if (r->last[base] == INT32_MAX) return;
  r->last[base] = r->maker[base];
  r->before[base] = -1;
  add_top_reader(r, &r->readings[base], base, -1);
  tn_reading *top = r->readings[base];
  if (top == NULL) return;
  add_top_reader(r, &top->left, base, top->group);
  add_top_reader(r, &top->right, base, top->group);
}

tn_status tn_last_readers_update(tn_last_readers *r, const tn_group *old, int32_t index) {
  const tn_group *g = &r->cover->groups.v[index];
  for (int32_t i = 0; i < old->n_in; i++)
    if (r->dead[index] || !tn_last_readers_group_reads(r, g, r->base[old->in[i]]))
      find_last_reader(r, r->base[old->in[i]]);
  for (int32_t i = 0; i < g->n_in && !r->dead[index]; i++)
    if (!tn_last_readers_group_reads(r, old, r->base[g->in[i]])) TN_TRY(add_reading(r, g->in[i], index));
  return TN_OK;
}

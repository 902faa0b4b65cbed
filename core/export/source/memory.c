/* core/export/source/memory.c: the place of each value: first fit, by the lifetimes of values in the order of
 * the graph. Views lie where their operand lies. */
#include <string.h>

#include "core/export/source/source.h"
#include "core/graph/input_state.h"

typedef struct memory_block {
  int64_t from, to, last; /* bytes, and the last node that reads it */
} memory_block;

typedef struct memory_work {
  source_program *p;
  tn_val *base;                /* by value: the value whose bytes it has */
  int64_t *last;               /* by value: the last node that reads its bytes */
  TN_VEC(memory_block) blocks; /* in use, in ascending order */
} memory_work;

bool source_is_view(const source_program *p, const tn_gnode *node) {
  static const char *const views[] = {"reshape", "copy", "reorder"};
  if (node->n_in > 0 && p->folded != NULL && p->folded[node->in[0]] == node->first_out) return true;
  for (size_t i = 0; i < sizeof views / sizeof *views; i++)
    if (strcmp(node->op->item.name, views[i]) == 0) return true;
  return false;
}

/* ---- lifetimes ---- */

static void memory_find_bases(const source_program *p, tn_val *base) {
  const tn_graph *g = p->graph;
  for (size_t v = 0; v < g->values.n; v++) base[v] = (tn_val)v;
  for (size_t i = 0; i < g->nodes.n; i++)
    if (source_is_view(p, &g->nodes.v[i])) base[g->nodes.v[i].first_out] = base[g->nodes.v[i].in[0]];
}

static void memory_read(memory_work *w, tn_val v, int64_t node) {
  int64_t *last = &w->last[w->base[v]];
  if (node > *last) *last = node;
}

/* The node that reads the operands of node i: itself, or that in whose loop it is computed. */
static int64_t memory_reader(const source_program *p, size_t i) {
  const tn_gnode *node = &p->graph->nodes.v[i];
  int32_t root = node->n_out > 0 ? p->root[node->first_out] : -1;
  return root >= 0 ? root : (int64_t)i;
}

/* Outputs are read behind the last node. */
static void memory_find_ends(memory_work *w) {
  const tn_graph *g = w->p->graph;
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    for (int32_t k = 0; k < node->n_out; k++) memory_read(w, node->first_out + (tn_val)k, (int64_t)i);
    for (int32_t k = 0; k < node->n_in; k++)
      if (node->in[k] != 0) memory_read(w, node->in[k], memory_reader(w->p, i));
  }
  for (size_t i = 0; i < g->outputs.n; i++) w->last[w->base[g->outputs.v[i].value]] = (int64_t)g->nodes.n;
}

/* ---- places ---- */

static void memory_release(memory_work *w, int64_t node) {
  size_t n = 0;
  for (size_t i = 0; i < w->blocks.n; i++)
    if (w->blocks.v[i].last >= node) w->blocks.v[n++] = w->blocks.v[i];
  w->blocks.n = n;
}

static tn_status memory_insert(memory_work *w, size_t at, memory_block block) {
  TN_TRY(tn_vec_push(w->p->env, &w->blocks, block));
  memmove(&w->blocks.v[at + 1], &w->blocks.v[at], (w->blocks.n - 1 - at) * sizeof block);
  w->blocks.v[at] = block;
  return TN_OK;
}

static tn_status memory_take(memory_work *w, tn_val v) {
  int64_t bytes = source_room((int64_t)tn_type_bytes(tn_graph_type(w->p->graph, v))), from = 0;
  size_t at = 0;
  while (at < w->blocks.n && w->blocks.v[at].from - from < bytes) from = w->blocks.v[at++].to;
  w->p->offset[v] = from;
  if (from + bytes > w->p->arena_bytes) w->p->arena_bytes = from + bytes;
  return memory_insert(w, at, (memory_block){from, from + bytes, w->last[v]});
}

static const char *memory_pointer(source_program *p, tn_val v) {
  return tn_arena_printf(&p->arena, "(%s *)(void *)(arena + %lld)",
                         source_type(tn_graph_type(p->graph, v)->dtype), (long long)p->offset[v]);
}

static tn_status memory_place_results(memory_work *w, size_t i) {
  source_program *p = w->p;
  const tn_gnode *node = &p->graph->nodes.v[i];
  memory_release(w, (int64_t)i);
  for (int32_t k = 0; k < node->n_out; k++) {
    tn_val v = node->first_out + (tn_val)k;
    TN_TRY(memory_take(w, v));
    p->place[v] = memory_pointer(p, v);
    if (p->place[v] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status memory_place_node(memory_work *w, size_t i) {
  source_program *p = w->p;
  const tn_gnode *node = &p->graph->nodes.v[i];
  if (node->op == &tn_op_state || (node->n_out > 0 && p->root[node->first_out] >= 0)) return TN_OK;
  if (node->op == &tn_op_input)
    p->place[node->first_out] = ((const tn_input_attributes *)node->attributes)->name;
  else if (source_is_view(p, node))
    p->place[node->first_out] = source_parameter_of(p, "", node->in[0]).pointer;
  else
    return memory_place_results(w, i);
  return node->n_out == 0 || p->place[node->first_out] != NULL ? TN_OK : TN_ENOMEM;
}

tn_status source_place_values(source_program *p) {
  size_t n = p->graph->values.n;
  memory_work w = {.p = p,
                   .base = tn_arena_alloc(&p->arena, n * sizeof *w.base),
                   .last = tn_arena_alloc(&p->arena, n * sizeof *w.last)};
  p->place = tn_arena_alloc(&p->arena, n * sizeof *p->place);
  p->offset = tn_arena_alloc(&p->arena, n * sizeof *p->offset);
  if (w.base == NULL || w.last == NULL || p->place == NULL || p->offset == NULL) return TN_ENOMEM;
  memory_find_bases(p, w.base);
  memory_find_ends(&w);
  tn_status status = TN_OK;
  for (size_t i = 0; i < p->graph->nodes.n && status == TN_OK; i++) status = memory_place_node(&w, i);
  tn_vec_free(p->env, &w.blocks);
  return status;
}

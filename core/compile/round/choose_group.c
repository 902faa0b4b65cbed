/* core/compile/round/choose_group.c: makes a candidate of a round a group. */
#include "core/compile/round/cover_round.h"

/* The nodes that a candidate takes, in the arena. */
static tn_status list_own_nodes(tn_round *r, const tn_candidate *c, const uint32_t **own, int32_t *n) {
  uint32_t *nodes = tn_arena_alloc(&r->arena, (size_t)c->n_nodes * sizeof *nodes);
  if (nodes == NULL) return TN_ENOMEM;
  *n = 0;
  for (int32_t i = 0; i < c->n_nodes; i++)
    if (tn_candidate_takes(c, i)) nodes[(*n)++] = c->nodes[i];
  *own = nodes;
  return TN_OK;
}

static void note_inner_values(tn_round *r, const tn_candidate *c, const uint32_t *own, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    const tn_gnode *node = &r->graph->nodes.v[own[i]];
    for (int32_t k = 0; k < node->n_out; k++) r->inner[node->first_out + (tn_val)k] = true;
  }
  for (int32_t i = 0; i < c->n_out; i++) r->inner[c->out[i]] = false;
}

tn_status tn_round_choose(tn_round *r, const tn_candidate *candidate) {
  const uint32_t *own = NULL;
  int32_t n = 0;
  TN_TRY(list_own_nodes(r, candidate, &own, &n));
  for (int32_t i = 0; i < n; i++) r->taken[own[i]] = true;
  if (n > 1) {
    tn_contracted_set_of(&r->contracted, own, n);
    tn_contracted_set_merge(&r->contracted, own, n);
  }
  note_inner_values(r, candidate, own, n);
  tn_round_note_recomputed(r, candidate);
  r->group[r->contracted.vertex[own[0]]] = (int32_t)r->chosen.n;
  return tn_vec_push(r->env, &r->chosen, *candidate);
}

/* Groups of the device are not regions of the round that covers the nodes that fall back. */
static bool is_region_kernel(const tn_round *r, const tn_catalog_kernel *kernel) {
  for (size_t i = 0; i < r->catalog->regions.n; i++)
    if (&r->catalog->regions.v[i] == kernel) return true;
  return false;
}

bool tn_round_find_region(const tn_round *r, uint32_t node, tn_round_region *region) {
  int32_t group = r->taken[node] ? r->group[r->contracted.vertex[node]] : -1;
  if (group < 0 && (r->taken[node] || r->region_kernel[node] == NULL)) return false;
  const tn_candidate *c = group >= 0 ? &r->chosen.v[group] : &r->region_single[node];
  *region =
      (tn_round_region){.kernel = c->kernel, .node = c->nodes, .in = c->in, .n = c->n_nodes, .n_in = c->n_in};
  return is_region_kernel(r, c->kernel);
}

/* core/compile/select/choose_group.c: makes a candidate of a round a group. */
#include "core/compile/select/cover_round.h"

tn_status tn_round_choose(tn_round *r, const tn_candidate *candidate) {
  for (int32_t i = 0; i < candidate->n_nodes; i++) r->taken[candidate->nodes[i]] = true;
  if (candidate->n_nodes > 1) {
    tn_contracted_set_start(&r->contracted);
    for (int32_t i = 0; i < candidate->n_nodes; i++)
      tn_contracted_set_add(&r->contracted, candidate->nodes[i]);
    tn_contracted_set_merge(&r->contracted, candidate->nodes, candidate->n_nodes);
  }
  r->group[r->contracted.vertex[candidate->nodes[0]]] = (int32_t)r->chosen.n;
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
  region->n = 1;
  region->node[0] = node;
  region->kernel = r->region_kernel[node];
  if (group >= 0) {
    const tn_candidate *c = &r->chosen.v[group];
    region->kernel = c->kernel;
    region->n = is_region_kernel(r, c->kernel) ? c->n_nodes : 0;
    for (int32_t i = 0; i < region->n; i++) region->node[i] = c->nodes[i];
  }
  return (group >= 0 || !r->taken[node]) && region->n > 0 && is_region_kernel(r, region->kernel);
}

bool tn_round_is_convex(tn_round *r, const uint32_t *nodes, int32_t n) {
  tn_contracted_set_start(&r->contracted);
  for (int32_t i = 0; i < n; i++) tn_contracted_set_add(&r->contracted, nodes[i]);
  return tn_contracted_set_is_convex(&r->contracted, nodes, n);
}

/* core/compile/select/cover.c: the numbering of a cover's groups, and its end. */
#include "core/compile/select/cover.h"

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/loop_kernel.h"

void tn_cover_number_groups(tn_cover *cover) {
  tn_graph *graph = cover->graph;
  for (size_t i = 0; i < graph->nodes.n; i++) graph->nodes.v[i].group = -1;
  for (size_t i = cover->groups.n; i-- > 0;)
    for (int32_t k = 0; k < cover->groups.v[i].n_nodes; k++)
      if (!tn_group_shares(&cover->groups.v[i], k))
        graph->nodes.v[cover->groups.v[i].nodes[k]].group = (int32_t)i;
}

void tn_cover_destroy(tn_cover *cover) {
  if (cover == NULL) return;
  tn_graph_destroy(cover->graph);
  tn_catalog_destroy(cover->catalog);
  tn_catalog_destroy(cover->fallback);
  tn_vec_free(cover->env, &cover->groups);
  tn_vec_free(cover->env, &cover->constants);
  tn_loop_bodies_destroy(cover->loops);
  tn_arena_free(&cover->arena);
  tn_release(cover->env, cover);
}

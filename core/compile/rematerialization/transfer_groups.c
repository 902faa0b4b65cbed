/* core/compile/rematerialization/transfer_groups.c: groups of copies between the device and the host. */
#include "core/compile/rematerialization/transfer_groups.h"

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/describe_match.h"
#include "core/compile/layout/layout.h"

static tn_status add_copy_node(tn_cover *cover, tn_val value, const char *layer, tn_val *copy) {
  tn_graph *graph = cover->graph;
  const tn_op_def *def = NULL;
  TN_TRY(tn_op_table_find(graph->ops, cover->env, "copy", &def));
  TN_TRY(tn_graph_add(graph, def, NULL, &value, 1, layer, "", copy));
  graph->values.v[*copy].layout = graph->values.v[value].layout;
  return TN_OK;
}

static tn_status describe_transfer(tn_cover *cover, const tn_catalog_kernel *kernel, uint32_t node,
                                   tn_val value, tn_val copy, tn_candidate *c) {
  tn_match *match = NULL;
  static const int32_t first = 0;
  *c = (tn_candidate){.kernel = kernel,
                      .n_nodes = 1,
                      .n_in = 1,
                      .n_out = 1,
                      .nodes = tn_arena_copy(&cover->arena, &node, sizeof node),
                      .numbers = &first,
                      .in = tn_arena_copy(&cover->arena, &value, sizeof value),
                      .out = tn_arena_copy(&cover->arena, &copy, sizeof copy)};
  if (c->nodes == NULL || c->in == NULL || c->out == NULL) return TN_ENOMEM;
  TN_TRY(tn_describe_match(&cover->arena, cover->graph, &cover->catalog->target, c, &match));
  c->match = match;
  return TN_OK;
}

static tn_status choose_transfer(tn_cover *cover, const tn_layout *layout, int64_t bytes, tn_choice *choice) {
  tn_layout *layouts = tn_arena_alloc(&cover->arena, 2 * sizeof *layouts);
  if (layouts == NULL) return TN_ENOMEM;
  layouts[0] = layouts[1] = *layout;
  double cost_s = tn_transfer_s(&cover->catalog->target.properties, bytes);
  *choice = (tn_choice){.name = "",
                        .in_layout = layouts,
                        .out_layout = layouts + 1,
                        .cost_s = cost_s,
                        .estimate_s = cost_s,
                        .deterministic = true,
                        .capturable = true};
  return TN_OK;
}

tn_status tn_make_transfer_group(tn_cover *cover, int32_t transfer, tn_val value, const char *layer,
                                 tn_group *group, tn_val *copy) {
  static const int32_t roles[TN_TRANSFER_KERNELS] = {TN_STREAM_COPY_OUT, TN_STREAM_COPY_IN};
  const tn_entry *entry = &tn_transfer_entries[transfer];
  const tn_catalog_kernel kernel = {entry, &tn_transfer_kernels[transfer], "", 0, NULL, NULL};
  tn_candidate c;
  TN_TRY(add_copy_node(cover, value, layer, copy));
  const tn_gvalue *made = &cover->graph->values.v[*copy];
  int64_t bytes = tn_layout_bytes(&made->type, &made->layout);
  TN_TRY(describe_transfer(cover, &kernel, made->node, value, *copy, &c));
  *group = (tn_group){.entry = entry,
                      .kernel = kernel.kernel,
                      .family = "",
                      .nodes = c.nodes,
                      .n_nodes = 1,
                      .n_in = 1,
                      .n_out = 1,
                      .in = c.in,
                      .out = c.out,
                      .match = c.match,
                      .cost = {.bytes = (double)bytes},
                      .role = roles[transfer]};
  return choose_transfer(cover, &made->layout, bytes, &group->choice);
}

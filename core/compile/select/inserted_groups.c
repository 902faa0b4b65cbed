/* core/compile/select/inserted_groups.c: nodes for copies, reorders and zeros, and kernels for them. */
#include "core/compile/select/inserted_groups.h"

#include "core/compile/kernels/query.h"
#include "core/compile/round/placed_nodes.h"
#include "tenon/ops.h"

/* A candidate of one node, with all of its operands and results. */
static tn_status make_single_candidate(tn_cover *cover, uint32_t index, tn_candidate *c) {
  const tn_gnode *node = &cover->graph->nodes.v[index];
  uint32_t *nodes = tn_arena_copy(&cover->arena, &index, sizeof index);
  int32_t *numbers = tn_arena_alloc(&cover->arena, (size_t)node->n_in * sizeof *numbers);
  tn_val *in = tn_arena_copy(&cover->arena, node->in, (size_t)node->n_in * sizeof *in);
  tn_val *out = tn_arena_alloc(&cover->arena, (size_t)node->n_out * sizeof *out);
  if (nodes == NULL || numbers == NULL || in == NULL || out == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_in; i++) numbers[i] = in[i] == 0 ? -1 : i;
  for (int32_t i = 0; i < node->n_out; i++) out[i] = node->first_out + i;
  *c = (tn_candidate){.n_nodes = 1,
                      .nodes = nodes,
                      .numbers = numbers,
                      .n_in = node->n_in,
                      .in = in,
                      .n_out = node->n_out,
                      .out = out};
  return TN_OK;
}

static tn_status try_single_kernel(tn_cover *cover, const tn_catalog *catalog,
                                   const tn_catalog_kernel *kernel, tn_candidate *c, bool *accepted) {
  c->kernel = kernel;
  TN_TRY(tn_candidate_query(cover->env, &cover->arena, cover->graph, &catalog->target, c));
  *accepted = c->reason == NULL;
  return TN_OK;
}

/* The first kernel that accepts the node: kernels with a pattern of the op alone, then region kernels. */
static tn_status find_single_kernel(tn_cover *cover, const tn_catalog *catalog, uint32_t index,
                                    tn_candidate *c) {
  const tn_gnode *node = &cover->graph->nodes.v[index];
  bool accepted = false;
  int32_t n = 0;
  const tn_catalog_kernel *fixed = tn_catalog_find(catalog, node->def, &n);
  for (int32_t i = 0; i < n && !accepted; i++)
    if (fixed[i].pattern->n_nodes == 1) TN_TRY(try_single_kernel(cover, catalog, &fixed[i], c, &accepted));
  for (size_t i = 0; i < catalog->regions.n && !accepted; i++)
    if (catalog->regions.v[i].pattern->op_class == (int32_t)node->op->op_class)
      TN_TRY(try_single_kernel(cover, catalog, &catalog->regions.v[i], c, &accepted));
  if (accepted) return TN_OK;
  return tn_failf(cover->env, TN_EUNSUPPORTED,
                  "no kernel takes %s, which the memory plan needs; every backend must have one",
                  node->op->item.name);
}

static tn_status make_single_group(tn_cover *cover, const tn_catalog *catalog, tn_val made, tn_group *group) {
  uint32_t index = cover->graph->values.v[made].node;
  tn_candidate candidate = {0};
  TN_TRY(make_single_candidate(cover, index, &candidate));
  TN_TRY(find_single_kernel(cover, catalog, index, &candidate));
  *group = tn_candidate_group(&candidate);
  return TN_OK;
}

static tn_status make_op1_group(tn_cover *cover, const tn_catalog *catalog, const char *op, tn_val value,
                                tn_group *group) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(cover->graph, &builder));
  tn_val made = tn_op1(tn_builder_handle(builder), op, value);
  tn_status status = tn_build_status(tn_builder_handle(builder));
  tn_builder_destroy(builder);
  return status == TN_OK ? make_single_group(cover, catalog, made, group) : status;
}

tn_status tn_make_copy_group(tn_cover *cover, tn_val value, tn_group *group) {
  return make_op1_group(cover, cover->catalog, "copy", value, group);
}

tn_status tn_make_host_copy_group(tn_cover *cover, tn_val value, tn_group *group) {
  TN_TRY(make_op1_group(cover, cover->fallback, "copy", value, group));
  group->fallback = tn_placed_reason;
  group->placed = true;
  return TN_OK;
}

tn_status tn_make_reorder_group(tn_cover *cover, tn_val value, tn_group *group) {
  return make_op1_group(cover, cover->catalog, "reorder", value, group);
}

tn_status tn_make_zeros_group(tn_cover *cover, int32_t dtype, int64_t count, tn_group *group) {
  tn_builder *builder = NULL;
  tn_type type = {dtype, 1, {count}};
  TN_TRY(tn_builder_create(cover->graph, &builder));
  tn_val made = tn_full(tn_builder_handle(builder), &type, 0);
  tn_status status = tn_build_status(tn_builder_handle(builder));
  tn_builder_destroy(builder);
  return status == TN_OK ? make_single_group(cover, cover->catalog, made, group) : status;
}

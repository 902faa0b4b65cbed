/* core/step/update/state_blocks.c: the shape in which an optimizer sees a part whose states have 8 bits: rows
 * of a block each. A part of many rows is updated by a loop over groups of rows, so that the values between
 * the launches of an update, of which there are several for each element, need the memory of one group. */
#include "core/base/text/text.h"
#include "core/graph/loop/loop.h"
#include "core/graph/uses.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

enum { MOST_ROWS = 2048 }; /* of a group: half a million elements */

struct tn_block_loop {
  tn_loop_parts parts;
  uint32_t first; /* node of the body */
  int64_t rows;   /* of a group */
};

/* The groups of so many rows. Groups of equal size are a little longer than the part. */
static int64_t state_blocks_steps(int64_t rows) { return (rows + MOST_ROWS - 1) / MOST_ROWS; }

int64_t tn_updater_padded_blocks(int64_t count, int32_t shards) {
  int64_t rows = count / TN_STATE_BLOCK / shards, steps = state_blocks_steps(rows);
  return steps > 1 ? (rows + steps - 1) / steps * steps * TN_STATE_BLOCK * shards : count;
}

/* `cautious` counts elements of whole parameters, which a loop does not see. */
tn_status tn_updater_begin_blocks(tn_updater *u) {
  int64_t rows = u->part->held / TN_STATE_BLOCK, steps = state_blocks_steps(rows);
  u->loop = NULL;
  if (!u->part->blocks || steps < 2 || u->settings->optimizer.cautious) return TN_OK;
  u->loop = tn_arena_alloc(u->arena, sizeof *u->loop);
  if (u->loop == NULL) return TN_ENOMEM;
  *u->loop = (struct tn_block_loop){.parts = {.from = u->graph, .steps = steps},
                                    .first = (uint32_t)u->graph->nodes.n,
                                    .rows = rows / steps};
  return TN_OK;
}

/* The first group stands for each one in the body. */
static tn_val state_blocks_add_sequence(tn_updater *u, tn_val flat, int64_t width) {
  tn_build *b = u->b;
  struct tn_block_loop *loop = u->loop;
  tn_val all = tn_reshape(b, flat, 3, (int64_t[]){loop->parts.steps, loop->rows, width});
  tn_val group = tn_reshape(b, tn_slice_axis(b, all, 0, 0, 1), 2, (int64_t[]){loop->rows, width});
  const tn_loop_value sequence = {.inner = group, .outer = all};
  if (tn_build_status(b) != TN_OK) return 0;
  tn_status status = tn_vec_push(u->env, &loop->parts.sequences, sequence);
  if (status != TN_OK) tn_builder_fail(b, status);
  return group;
}

tn_val tn_updater_shape(tn_updater *u, tn_val flat) {
  const tn_type *type = flat != 0 ? tn_val_type(u->b, flat) : NULL;
  if (u->one != NULL || !u->part->blocks || type == NULL || type->rank == 0) return flat;
  int64_t rows = u->part->held / TN_STATE_BLOCK, width = tn_type_count(type) / rows;
  if (u->loop != NULL) return state_blocks_add_sequence(u, flat, width);
  return tn_reshape(u->b, flat, 2, (int64_t[]){rows, width});
}

tn_val tn_updater_flatten(const tn_updater *u, tn_val shaped) {
  int64_t count = tn_type_count(tn_val_type(u->b, shaped));
  if (u->one != NULL || !u->part->blocks) return shaped;
  return tn_reshape(u->b, shaped, 1, &count);
}

/* Casts of the vector of all gradients, and its products with a number, become part of the loop. */
tn_val tn_updater_shape_gradient(tn_updater *u, tn_val flat) {
  const tn_gnode *node = tn_graph_maker(u->graph, flat);
  if (u->loop == NULL || tn_build_status(u->b) != TN_OK || node->n_in == 0) return tn_updater_shape(u, flat);
  const char *name = node->op->item.name;
  tn_val x = node->in[0], factor = node->n_in > 1 ? node->in[1] : 0;
  bool scaled = tn_text_equal(name, "mul") && tn_val_type(u->b, factor)->rank == 0;
  if (tn_text_equal(name, "cast"))
    return tn_to_dtype(u->b, tn_updater_shape_gradient(u, x), tn_val_type(u->b, flat)->dtype);
  return scaled ? tn_mul(u->b, tn_updater_shape_gradient(u, x), factor) : tn_updater_shape(u, flat);
}

bool tn_updater_has_chosen(const tn_updater *u, const tn_gcommit *commit) {
  const tn_gnode *node = tn_graph_maker(u->graph, commit->value);
  while (node != NULL && tn_node_kind_of(node) == TN_NODE_VIEW) node = tn_graph_maker(u->graph, node->in[0]);
  return node != NULL && tn_is_loop(node);
}

/* The values of all groups in place of those of the body. */
static tn_status state_blocks_run(tn_updater *u, int32_t n, const tn_val *old, tn_val *values) {
  tn_loop_parts *parts = &u->loop->parts;
  for (int32_t i = 0; i < n; i++) {
    tn_val chosen = u->applied != 0 ? tn_where(u->b, u->applied, values[i], old[i]) : values[i];
    TN_TRY(tn_build_status(u->b));
    TN_TRY(tn_vec_push(u->env, &parts->outputs, chosen));
  }
  TN_TRY(tn_loop_capture(parts, u->loop->first));
  tn_val first = tn_loop_emit(u->b, parts);
  for (int32_t i = 0; i < n; i++) values[i] = tn_op_result(u->b, first, i);
  return tn_build_status(u->b);
}

tn_status tn_updater_end_blocks(tn_updater *u, int32_t n, const tn_val *old, tn_val *values) {
  tn_status status = tn_build_status(u->b);
  if (u->loop != NULL) {
    if (status == TN_OK) status = state_blocks_run(u, n, old, values);
    tn_loop_parts_free(u->env, &u->loop->parts);
    u->loop = NULL;
  }
  for (int32_t i = 0; status == TN_OK && i < n; i++) values[i] = tn_updater_flatten(u, values[i]);
  return status;
}

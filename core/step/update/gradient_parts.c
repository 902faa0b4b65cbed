/* core/step/update/gradient_parts.c: divides the parameters by the dtype of their gradients, and by the
 * epoch from which on they are trained (docs/decisions/0057-thawing.md).
 *
 * The gradients of a part are one vector of one dtype, so that a gradient in low precision is written once
 * and cast where the update reads it. A cast of its own would be a launch for each parameter. */
#include "core/graph/uses.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

static const int32_t part_dtypes[] = {TN_F16, TN_BF16, TN_F32};

/* Whether a gradient stays in 16 bits, because its cast to f32 may be a launch of its own: that of a
 * convolution. A `matmul` writes f32 from operands of 16 bits, and a cast behind ops that are no products is
 * part of their launch. */
static bool gradient_parts_keep(const tn_graph *g, tn_val gradient) {
  const tn_gnode *node = tn_graph_maker(g, gradient);
  if (tn_dtype_size(tn_graph_type(g, gradient)->dtype) >= tn_dtype_size(TN_F32)) return false;
  while (tn_node_kind_of(node) == TN_NODE_VIEW) node = tn_graph_maker(g, node->in[0]);
  return node->op->op_class == TN_CLASS_MATMUL && !tn_text_equal(node->op->item.name, "matmul");
}

/* Whether the states of a parameter are rows of its part's region that have 8 bits for an element. */
static bool gradient_parts_have_blocks(const tn_updater *u, const tn_trained_parameter *param) {
  return u->settings->optimizer.state_dtype == TN_STATES_INT8 &&
         u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE &&
         tn_type_count(&param->state->type) >= TN_STATE_LEAST;
}

static bool gradient_parts_has(const tn_updater *u, const tn_gradient_part *part,
                               const tn_trained_parameter *param) {
  return param->until == part->until && tn_val_type(u->b, param->gradient)->dtype == part->dtype &&
         gradient_parts_have_blocks(u, param) == part->blocks;
}

/* Appends the parameters of a part to `sorted`: those whose gradients have its dtype, that are frozen until
 * its epoch and whose states have its form. */
static tn_status gradient_parts_add(tn_updater *u, tn_gradient_part part, tn_trained_parameter *sorted,
                                    int32_t *n) {
  part.first = *n;
  part.bucket = -1;
  for (int32_t i = 0; i < u->n_params; i++)
    if (gradient_parts_has(u, &part, &u->params[i])) sorted[(*n)++] = u->params[i];
  part.n = *n - part.first;
  if (u->buckets) return tn_updater_divide_part(u, &part, sorted);
  if (u->sorted) tn_updater_sort_part(&part, sorted);
  if (part.n > 0) u->parts[u->n_parts++] = part;
  return TN_OK;
}

/* The next later epoch until which parameters are frozen; -1: none. Those that thaw later come behind, so
 * that the parts of a step are the first ones of a step that trains more. */
static int64_t gradient_parts_next(const tn_updater *u, int64_t until) {
  int64_t next = -1;
  for (int32_t i = 0; i < u->n_params; i++)
    if (u->params[i].until > until && (next < 0 || u->params[i].until < next)) next = u->params[i].until;
  return next;
}

tn_status tn_updater_divide(tn_updater *u) {
  tn_trained_parameter *sorted = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *sorted));
  int32_t n = 0;
  u->parts = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *u->parts));
  if (sorted == NULL || u->parts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < u->n_params; i++)
    if (!gradient_parts_keep(u->graph, u->params[i].gradient))
      u->params[i].gradient = tn_to_dtype(u->b, u->params[i].gradient, TN_F32);
  TN_TRY(tn_build_status(u->b));
  if (u->sorted) TN_TRY(tn_updater_find_kinds(u));
  for (int64_t until = 0; until >= 0; until = gradient_parts_next(u, until))
    for (size_t k = 0; k < 2 * sizeof part_dtypes / sizeof *part_dtypes; k++) {
      tn_gradient_part part = {.until = until, .dtype = part_dtypes[k / 2], .blocks = k % 2 != 0};
      TN_TRY(gradient_parts_add(u, part, sorted, &n));
    }
  u->params = sorted;
  return TN_OK;
}

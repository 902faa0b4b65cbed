/* core/step/update/cautious.c: [optimizer] cautious (Liang et al., "Cautious optimizers", 2024): elements of
 * a step that do not agree with the gradient are 0, and the others of the parameter grow by as much. */
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

#define LEAST 1e-3 /* part of the elements for which the others are scaled */

/* 1 / the part of the elements that agree. */
static tn_val cautious_factor(tn_build *b, tn_val agrees) {
  tn_val part = tn_reduce_mean(b, agrees, 0, NULL, 0);
  return tn_reciprocal(b, tn_maximum(b, part, tn_scalar(b, TN_F32, LEAST)));
}

/* The factor of each element of a part's vector, from that of its parameter. */
static tn_val cautious_spread(tn_updater *u, const tn_val *factors) {
  const tn_gradient_part *part = u->part;
  int64_t *starts = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *starts));
  int64_t *index = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *index));
  if (starts == NULL || index == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  for (int32_t i = 0; i < part->n; i++) {
    starts[i] = i == 0 ? 0 : u->params[part->first + i].offset;
    index[i] = i;
  }
  return tn_spread(u->b, tn_stack(u->b, part->n, factors, 0), part->n, starts, part->n, index, part->count);
}

/* With a divided optimizer all ranks see all of the vector, and each keeps its piece of the factors. */
static tn_val cautious_factors(tn_updater *u, tn_val agrees) {
  tn_build *b = u->b;
  tn_val *factors = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->part->n, sizeof *factors));
  if (factors == NULL) {
    tn_builder_fail(b, TN_ENOMEM);
    return 0;
  }
  tn_val whole = u->shards > 1 ? tn_all_gather(b, tn_to_dtype(b, agrees, TN_U8), u->shards) : agrees;
  for (int32_t i = 0; i < u->part->n; i++) {
    const tn_trained_parameter *param = &u->params[u->part->first + i];
    factors[i] = cautious_factor(b, tn_to_dtype(b, tn_updater_slice(u, param, whole), TN_F32));
  }
  tn_val spread = cautious_spread(u, factors);
  return u->shards > 1 ? tn_reduce_scatter(b, spread, u->shards, TN_REDUCTION_MAX) : spread;
}

tn_val tn_updater_step_cautiously(tn_updater *u, const tn_val results[TN_UPDATE_RESULTS]) {
  tn_build *b = u->b;
  tn_val kept = results[1], step = results[2], gradient = results[3];
  tn_val agrees = tn_gt(b, tn_mul(b, step, gradient), tn_scalar(b, TN_F32, 0));
  agrees = tn_to_dtype(b, agrees, TN_F32);
  tn_val factors = u->one ? cautious_factor(b, agrees)
                          : tn_updater_shape(u, cautious_factors(u, tn_updater_flatten(u, agrees)));
  return tn_sub(b, kept, tn_mul(b, step, tn_mul(b, agrees, factors)));
}

/* core/step/update/pruning.c: [prune] in the update: pruned weights have no gradient, and stay zero. */
#include "core/step/update/pruning.h"

#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* The mask of the part, or of the one parameter: 1 where a weight is pruned. 0: none is. */
static tn_val pruning_mask(tn_updater *u, const tn_trained_parameter *one, const tn_type *type) {
  const tn_trained_parameter *before = u->one;
  if (one != NULL && !tn_prune_matches(&u->settings->prune, one->state->path, &one->state->type)) return 0;
  u->one = one;
  tn_val mask = one != NULL ? tn_updater_parameter_state(u->b, u, "pruned", type, "zeros")
                            : tn_updater_flat_state(u->b, u, "pruned", type, "zeros");
  u->one = before;
  return mask;
}

static tn_val pruning_clear(tn_updater *u, tn_val mask, tn_val value) {
  tn_val zero = tn_scalar(u->b, tn_val_type(u->b, value)->dtype, 0);
  tn_val pruned = tn_gt(u->b, mask, tn_scalar(u->b, TN_F32, 0));
  return tn_where(u->b, pruned, zero, value);
}

tn_val tn_updater_prune(tn_updater *u, tn_val next) {
  if (!u->settings->prune.given) return next;
  const tn_type type = *tn_val_type(u->b, next);
  tn_val mask = pruning_mask(u, u->one, &type);
  return mask != 0 ? pruning_clear(u, mask, next) : next;
}

/* The gradient of a parameter, in its shape. */
static tn_val pruning_gradient(tn_updater *u, const tn_gradient_part *part, int32_t i) {
  const tn_trained_parameter *param = &u->params[part->first + i];
  tn_val gradient = tn_updater_slice(u, param, part->gradient);
  tn_val mask = pruning_mask(u, param, &param->state->type);
  return mask != 0 ? pruning_clear(u, mask, gradient) : gradient;
}

/* Of an optimizer for one parameter at a time. */
static tn_status pruning_of_parameters(tn_updater *u, tn_gradient_part *part) {
  tn_val *values = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n + 1, sizeof *values));
  if (values == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < part->n; i++) values[i] = pruning_gradient(u, part, i);
  part->gradient = tn_updater_pack(u, part, values);
  return TN_OK;
}

tn_status tn_updater_prune_gradients(tn_updater *u) {
  bool flat = u->settings->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE;
  for (int32_t k = 0; k < u->n_parts && u->settings->prune.given; k++) {
    tn_gradient_part *part = &u->parts[k];
    const tn_type type = *tn_val_type(u->b, part->gradient);
    u->part = part;
    if (!flat) TN_TRY(pruning_of_parameters(u, part));
    if (flat) part->gradient = pruning_clear(u, pruning_mask(u, NULL, &type), part->gradient);
  }
  return tn_build_status(u->b);
}

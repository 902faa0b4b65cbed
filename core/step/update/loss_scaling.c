/* core/step/update/loss_scaling.c: loss scaling by the precision policy, and skipped updates.
 *
 * The gradients of a scaled loss are scaled; after reduction and packing they are divided by the scale. The
 * predicate of every commit of the update is whether all scaled gradients are finite, so that the division
 * joins the launch of the optimizer. The scale's own state is always committed. A channel of a running
 * statistic keeps its old value if the new one is not finite. */
#include "core/base/text/text.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* State of a policy belongs to the run, not to the model or a parameter. */
static tn_val loss_scaling_state(tn_build *b, void *context, const char *name, const tn_type *type,
                                 const char *init) {
  tn_updater *u = context;
  const char *path = tn_updater_own(u, TN_PRECISION_STATE, name);
  tn_val state = path ? tn_graph_state(u->graph, path, type, TN_STATE_HOST, init, "") : 0;
  if (!state) tn_builder_fail(b, path ? u->graph->env->record->code : TN_ENOMEM);
  return state;
}

static tn_status loss_scaling_call_policy(tn_updater *u, tn_status (*callback)(tn_build *, const void *),
                                          tn_build_frame frame) {
  frame.prefix = frame.where = "";
  frame.training = true;
  frame.context = u;
  frame.state = loss_scaling_state;
  tn_builder_push(u->b, &frame);
  tn_status status = callback(u->b, u->settings->precision_options);
  if (status != TN_OK) tn_builder_fail(u->b, status);
  status = tn_build_status(u->b);
  tn_builder_pop(u->b);
  return tn_wrap(u->env, status, "precision policy '%s'", u->settings->precision->item.name);
}

tn_status tn_updater_scale(tn_updater *u) {
  const tn_precision *policy = u->settings->precision;
  char text[TN_TYPE_TEXT];
  u->scale = 0;
  if (policy == NULL || !policy->scale) return TN_OK;
  TN_TRY(loss_scaling_call_policy(u, policy->scale, (tn_build_frame){.yielded = &u->scale, .n_yield = 1}));
  const tn_type *type = u->scale ? tn_graph_type(u->graph, u->scale) : NULL;
  if (type == NULL || (type->dtype == TN_F32 && type->rank == 0)) return TN_OK;
  return tn_failf(u->env, TN_EINVAL, "precision policy '%s': the scale is %s, expected f32[]",
                  policy->item.name, tn_type_format(type, text));
}

/* Sums in f16 overflow from 65520 on, also where the loss is not scaled. */
static bool loss_scaling_reduces_in_f16(const tn_updater *u) {
  return u->graph->ranks > 1 && u->settings->distributed.reduce_dtype == TN_REDUCE_F16;
}

static bool loss_scaling_guards(const tn_updater *u) {
  return u->scale || loss_scaling_reduces_in_f16(u) || tn_updater_clips(u) ||
         u->settings->optimizer.check_finite;
}

/* `value` where it is finite, elsewhere what the state holds. An elementwise choice is part of the pointwise
 * region that makes the value; one predicate for the whole tensor would be a reduction of its own. */
static tn_status loss_scaling_guard_commit(tn_updater *u, size_t commit) {
  tn_val value = u->graph->commits.v[commit].value;
  const tn_gstate *found = tn_graph_find_state(u->graph, u->graph->commits.v[commit].path);
  if (found == NULL || !tn_dtype_is_float(tn_graph_type(u->graph, value)->dtype)) return TN_OK;
  /* a copy: the call below may move the table of states */
  tn_gstate s = *found;
  tn_val old = tn_graph_state(u->graph, s.path, &s.type, s.what, s.init, s.where);
  if (!old) return u->env->record->code;
  u->graph->commits.v[commit].value = tn_where(u->b, tn_is_finite(u->b, value), value, old);
  return tn_build_status(u->b);
}

tn_status tn_updater_guard_statistics(tn_updater *u) {
  for (size_t i = 0; loss_scaling_guards(u) && i < u->graph->commits.n; i++)
    TN_TRY(loss_scaling_guard_commit(u, i));
  return tn_build_status(u->b);
}

/* Adds the outputs `skipped` and `loss_scale`. */
static tn_status loss_scaling_add_outputs(tn_updater *u) {
  tn_val skipped = tn_to_dtype(u->b, tn_not(u->b, u->applied), TN_F32);
  TN_TRY(tn_build_status(u->b));
  TN_TRY(tn_graph_output(u->graph, TN_OUTPUT_SKIPPED, skipped));
  return u->scale ? tn_graph_output(u->graph, TN_OUTPUT_LOSS_SCALE, u->scale) : TN_OK;
}

static tn_val loss_scaling_all_finite(tn_updater *u) {
  tn_val all = 0;
  for (int32_t i = 0; i < u->n_parts; i++) {
    tn_val finite = tn_all_finite(u->b, u->parts[i].gradient);
    all = i == 0 ? finite : tn_and(u->b, all, finite);
  }
  if (u->shards == 1) return all;
  /* each rank has seen its own part; integers, since NCCL has no minimum of floats in which NaN wins */
  tn_val least = tn_updater_over_shards(u, tn_to_dtype(u->b, all, TN_I32), TN_REDUCTION_MIN);
  return tn_gt(u->b, least, tn_scalar(u->b, TN_I32, 0.0));
}

tn_status tn_updater_guard(tn_updater *u) {
  const tn_precision *policy = u->settings->precision;
  u->applied = 0;
  if (!loss_scaling_guards(u)) return TN_OK;
  u->applied = loss_scaling_all_finite(u);
  if (u->ascent_norm) u->applied = tn_and(u->b, u->applied, tn_is_finite(u->b, u->ascent_norm));
  if (u->scale) {
    /* with a scale of 0 or near it, finite gradients do not stay finite */
    u->unscale = tn_reciprocal(u->b, u->scale);
    u->applied = tn_and(u->b, u->applied, tn_is_finite(u->b, u->unscale));
  }
  TN_TRY(tn_build_status(u->b));
  TN_TRY(loss_scaling_add_outputs(u));
  if (!u->scale || !policy->update) return TN_OK;
  return loss_scaling_call_policy(u, policy->update, (tn_build_frame){.in = &u->applied, .n_in = 1});
}

void tn_updater_unscale(tn_updater *u) {
  for (int32_t i = 0; i < u->n_parts; i++) {
    tn_val scaled = tn_to_dtype(u->b, u->parts[i].gradient, TN_F32);
    u->parts[i].gradient = u->scale ? tn_mul(u->b, scaled, u->unscale) : scaled;
  }
}

/* core/step/update/clip.c: limits of the gradients: of each number, of each parameter, of each output unit
 * and of all of them. Limits of parameters and units see each gradient in its shape. */
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

typedef struct clip_limits {
  double value, layer, adaptive; /* 0: none */
} clip_limits;

/* Of the parameters of a [group.NAME], counted from 1; 0: of the others. */
static clip_limits clip_limits_of(const tn_settings *s, int32_t setting) {
  const tn_optimizer_section *all = &s->optimizer;
  const tn_group_setting *group = setting > 0 ? &s->groups[setting - 1] : NULL;
  if (group == NULL) return (clip_limits){all->clip_value, all->clip_layer, all->clip_adaptive};
  return (clip_limits){group->clip_value, group->clip_layer, group->clip_adaptive};
}

/* Whether gradients are limited parameter by parameter. */
static bool clip_sees_parameters(const tn_settings *s) {
  for (int32_t i = 0; i <= s->n_groups; i++) {
    clip_limits limits = clip_limits_of(s, i);
    if (limits.layer > 0 || limits.adaptive > 0 || limits.value != s->optimizer.clip_value) return true;
  }
  return false;
}

bool tn_updater_clips(const tn_updater *u) {
  const tn_optimizer_section *s = &u->settings->optimizer;
  return s->clip > 0 || s->clip_value > 0 || clip_sees_parameters(u->settings);
}

bool tn_updater_sees_parameters(const tn_settings *s) {
  return s->optimizer_kind->granularity != TN_UPDATE_ELEMENTWISE || clip_sees_parameters(s);
}

/* ---- of all gradients ---- */

/* Adds the sum of the squares to `all`; 0: to nothing. */
static tn_val clip_add_squares(tn_build *b, tn_val all, tn_val flat) {
  tn_val sum = tn_reduce_sum(b, tn_mul(b, flat, flat), 0, NULL, 0);
  return all ? tn_add(b, all, sum) : sum;
}

/* With [optimizer] place = auto a part on the device is summed bucket by bucket, as on the host: the norm has
 * the same bits in both places. */
static tn_val clip_add_part(tn_updater *u, tn_val all, const tn_gradient_part *part) {
  const tn_trained_parameter *params = u->params + part->first;
  if (u->buckets || !u->sorted) return clip_add_squares(u->b, all, part->gradient);
  for (int32_t i = 0, end; i < part->n; i = end) {
    end = i + tn_updater_bucket_length(u, params + i, part->n - i);
    int64_t stop = end < part->n ? params[end].offset : part->count;
    tn_val bucket = tn_slice_axis(u->b, part->gradient, 0, params[i].offset, stop);
    all = clip_add_squares(u->b, all, bucket);
  }
  return all;
}

/* The sum of the squares of all gradients. */
static tn_val clip_squares(tn_updater *u) {
  tn_val all = 0;
  for (int32_t i = 0; i < u->n_parts; i++) all = clip_add_part(u, all, &u->parts[i]);
  return tn_updater_over_shards(u, all, TN_REDUCTION_SUM);
}

/* min(1, most / (norm + 1e-6)), as PyTorch's clip_grad_norm_. */
static tn_val clip_factor(tn_build *b, tn_val norm, double most) {
  tn_val ratio = tn_div(b, tn_scalar(b, TN_F32, most), tn_affine(b, norm, 1.0, 1e-6));
  return tn_minimum(b, ratio, tn_scalar(b, TN_F32, 1.0));
}

static void clip_all(tn_updater *u, double most) {
  tn_build *b = u->b;
  tn_val norm = tn_sqrt(b, clip_squares(u));
  tn_val factor = clip_factor(b, norm, most);
  if (tn_build_status(b) == TN_OK && tn_graph_output(u->graph, "grad_norm", norm) != TN_OK)
    tn_builder_fail(b, TN_ENOMEM);
  for (int32_t i = 0; i < u->n_parts; i++) u->parts[i].gradient = tn_mul(b, u->parts[i].gradient, factor);
}

/* min(max(g, -limit), limit), PyTorch's clip_grad_value_. */
static tn_val clip_values(tn_build *b, tn_val gradient, double limit) {
  tn_val raised = tn_maximum(b, gradient, tn_scalar(b, TN_F32, -limit));
  return tn_minimum(b, raised, tn_scalar(b, TN_F32, limit));
}

/* ---- of parameters and units ---- */

static tn_val clip_norm(tn_build *b, tn_val x, int32_t n_axes, const int64_t *axes) {
  return tn_sqrt(b, tn_reduce_sum(b, tn_mul(b, x, x), n_axes, axes, n_axes > 0));
}

/* The norm of each output unit: index i of dimension 0. A vector is one unit. */
static tn_val clip_unit_norms(tn_build *b, tn_val x) {
  int32_t rank = tn_val_type(b, x)->rank, n = rank > 1 ? rank - 1 : 0;
  int64_t axes[TN_MAX_RANK];
  for (int32_t i = 0; i < n; i++) axes[i] = i + 1;
  return clip_norm(b, x, n, axes);
}

/* Adaptive gradient clipping (Brock et al., "High-performance large-scale image recognition without
 * normalization", ICML 2021): the norm of a unit's gradient is at most a part of that of its weights. */
static tn_val clip_adaptively(tn_build *b, tn_val gradient, tn_val param, double part, double epsilon) {
  tn_val weights = tn_maximum(b, clip_unit_norms(b, param), tn_scalar(b, TN_F32, epsilon));
  tn_val most = tn_affine(b, weights, part, 0), norm = clip_unit_norms(b, gradient);
  tn_val factor = tn_div(b, most, tn_maximum(b, norm, tn_scalar(b, TN_F32, 1e-6)));
  factor = tn_where(b, tn_lt(b, norm, most), tn_scalar(b, TN_F32, 1.0), factor);
  return tn_mul(b, gradient, factor);
}

static tn_val clip_parameter(tn_updater *u, const tn_trained_parameter *param, tn_val gradient) {
  tn_build *b = u->b;
  const tn_gstate *state = param->state;
  clip_limits limits = clip_limits_of(u->settings, u->groups[param->group].setting);
  if (limits.value > 0) gradient = clip_values(b, gradient, limits.value);
  if (limits.layer > 0)
    gradient = tn_mul(b, gradient, clip_factor(b, clip_norm(b, gradient, 0, NULL), limits.layer));
  if (limits.adaptive <= 0) return gradient;
  tn_val now = tn_graph_state(u->graph, state->path, &state->type, state->what, state->init, state->where);
  if (!now) tn_builder_fail(b, u->env->record->code);
  return clip_adaptively(b, gradient, now, limits.adaptive, u->settings->optimizer.clip_epsilon);
}

/* With a divided optimizer a rank has a piece of the gradients, in which parameters begin and end anywhere.
 * All ranks limit all of them, and each keeps its piece. */
static tn_status clip_part(tn_updater *u, tn_gradient_part *part) {
  tn_val *clipped = tn_arena_alloc(u->arena, tn_size_mul((size_t)part->n, sizeof *clipped));
  tn_val whole = u->shards > 1 ? tn_all_gather(u->b, part->gradient, u->shards) : part->gradient;
  if (clipped == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < part->n; i++) {
    const tn_trained_parameter *param = &u->params[part->first + i];
    clipped[i] = clip_parameter(u, param, tn_updater_slice(u, param, whole));
  }
  whole = tn_updater_pack(u, part, clipped);
  part->gradient = u->shards > 1 ? tn_reduce_scatter(u->b, whole, u->shards, TN_REDUCTION_MAX) : whole;
  return tn_build_status(u->b);
}

tn_status tn_updater_clip(tn_updater *u) {
  const tn_optimizer_section *s = &u->settings->optimizer;
  bool each = clip_sees_parameters(u->settings);
  for (int32_t i = 0; i < u->n_parts; i++)
    if (each)
      TN_TRY(clip_part(u, &u->parts[i]));
    else if (s->clip_value > 0)
      u->parts[i].gradient = clip_values(u->b, u->parts[i].gradient, s->clip_value);
  if (s->clip > 0) clip_all(u, s->clip);
  return tn_build_status(u->b);
}

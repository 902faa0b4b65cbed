/* core/step/update/sharpness.c: [optimizer] sharpness: sharpness-aware minimization (Foret et al., "SAM",
 * ICLR 2021), and its form in which a perturbation has the scale of its parameter (Kwon et al., "ASAM", ICML
 * 2021).
 *
 * The gradients g of the first pass give the perturbation e = rho t^2 g / |t g|, t = 1, or |w| + eta of ASAM,
 * with the norm over all trained parameters. The second pass is a copy of the nodes of the first that depend
 * on a trained parameter, with w + e in its place. So both passes have the same batch and the same random
 * numbers, and what depends on no parameter is computed once. Outputs and commits of the model are those of
 * the first pass. */
#include "core/graph/input_state.h"
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

#define LEAST 1e-12 /* added to the norm */

/* ---- the perturbed parameters ---- */

static tn_val sharpness_parameter(tn_updater *u, const tn_gstate *s) {
  tn_val now = tn_graph_state(u->graph, s->path, &s->type, s->what, s->init, s->where);
  if (!now) tn_builder_fail(u->b, u->env->record->code);
  return now;
}

/* |w| + eta; 0: 1. */
static tn_val sharpness_scale(tn_updater *u, tn_val param) {
  const tn_optimizer_section *s = &u->settings->optimizer;
  return s->sharpness_adaptive ? tn_affine(u->b, tn_abs(u->b, param), 1, s->sharpness_eta) : 0;
}

/* The sum of the squares of a parameter's gradient, in the scale of the parameter. */
static tn_val sharpness_squares(tn_updater *u, int32_t i, tn_val gradient) {
  tn_val scale = sharpness_scale(u, sharpness_parameter(u, u->params[i].state));
  if (scale) gradient = tn_mul(u->b, gradient, scale);
  return tn_reduce_sum(u->b, tn_mul(u->b, gradient, gradient), 0, NULL, 0);
}

/* Sets the norm of the unscaled gradients, which `guard` reads, and returns rho / norm, by which the scaled
 * gradients are multiplied. */
static tn_val sharpness_factor(tn_updater *u, const tn_val *gradients) {
  tn_build *b = u->b;
  tn_val squares = 0, rho = tn_scalar(b, TN_F32, u->settings->optimizer.sharpness);
  for (int32_t i = 0; i < u->n_params; i++) {
    tn_val own = sharpness_squares(u, i, gradients[i]);
    squares = squares ? tn_add(b, squares, own) : own;
  }
  tn_val unscale = u->scale ? tn_reciprocal(b, u->scale) : 0;
  u->ascent_norm = tn_sqrt(b, squares);
  if (unscale) u->ascent_norm = tn_mul(b, u->ascent_norm, unscale);
  tn_val factor = tn_div(b, rho, tn_affine(b, u->ascent_norm, 1, LEAST));
  return unscale ? tn_mul(b, factor, unscale) : factor;
}

static tn_val sharpness_perturbed(tn_updater *u, tn_val param, tn_val gradient, tn_val factor) {
  tn_val scale = sharpness_scale(u, param);
  if (scale) gradient = tn_mul(u->b, tn_mul(u->b, scale, scale), gradient);
  return tn_add(u->b, param, tn_mul(u->b, gradient, factor));
}

/* Puts the perturbed parameter in the place of the parameter and of its low-precision copies. */
static tn_status sharpness_place(tn_updater *u, const tn_gstate *s, tn_val perturbed, tn_val *map) {
  static const int32_t low[] = {TN_F16, TN_BF16};
  const tn_gstate *own = tn_graph_find_state(u->graph, s->path);
  map[own->value] = perturbed;
  for (size_t k = 0; k < sizeof low / sizeof *low; k++) {
    const char *path = tn_low_precision_path(u->arena, s->path, low[k]);
    if (path == NULL) return TN_ENOMEM;
    const tn_gstate *copy = tn_graph_find_state(u->graph, path);
    if (copy != NULL && copy->value != 0) map[copy->value] = tn_to_dtype(u->b, perturbed, low[k]);
  }
  return tn_build_status(u->b);
}

static tn_status sharpness_perturb(tn_updater *u, const tn_val *gradients, tn_val *map) {
  tn_val factor = sharpness_factor(u, gradients);
  for (int32_t i = 0; i < u->n_params; i++) {
    const tn_gstate *s = u->params[i].state;
    tn_val perturbed = sharpness_perturbed(u, sharpness_parameter(u, s), gradients[i], factor);
    TN_TRY(tn_build_status(u->b));
    TN_TRY(sharpness_place(u, s, perturbed, map));
  }
  return TN_OK;
}

/* ---- the second pass ---- */

/* The nodes that the gradients depend on. */
static void sharpness_mark(const tn_updater *u, size_t n, bool *needed) {
  const tn_graph *g = u->graph;
  for (int32_t i = 0; i < u->n_params; i++) needed[g->values.v[u->params[i].gradient].node] = true;
  for (size_t i = n; i-- > 0;)
    for (int32_t k = 0; needed[i] && k < g->nodes.v[i].n_in; k++)
      if (g->nodes.v[i].in[k] != 0) needed[g->values.v[g->nodes.v[i].in[k]].node] = true;
}

/* Appends a copy of a node with the operands of the second pass, if it has any. */
static tn_status sharpness_repeat_node(tn_updater *u, tn_gnode node, tn_val *map) {
  bool depends = false;
  tn_val first, *in = tn_arena_alloc(u->arena, tn_size_mul((size_t)node.n_in + 1, sizeof *in));
  if (in == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node.n_in; k++) {
    depends = depends || map[node.in[k]] != 0;
    in[k] = map[node.in[k]] != 0 ? map[node.in[k]] : node.in[k];
  }
  if (!depends) return TN_OK;
  TN_TRY(tn_graph_add(u->graph, node.def, node.attributes, in, node.n_in, node.layer, node.where, &first));
  for (int32_t k = 0; k < node.n_out; k++) map[node.first_out + (tn_val)k] = first + (tn_val)k;
  return TN_OK;
}

/* `n` nodes are the first pass. */
static tn_status sharpness_repeat(tn_updater *u, size_t n, tn_val *map) {
  bool *needed = tn_arena_alloc(u->arena, n + 1);
  if (needed == NULL) return TN_ENOMEM;
  sharpness_mark(u, n, needed);
  for (size_t i = 0; i < n; i++)
    if (needed[i] && !tn_op_is_input_or_state(u->graph->nodes.v[i].op))
      TN_TRY(sharpness_repeat_node(u, u->graph->nodes.v[i], map));
  for (int32_t i = 0; i < u->n_params; i++)
    if (map[u->params[i].gradient] != 0) u->params[i].gradient = map[u->params[i].gradient];
  return TN_OK;
}

tn_status tn_updater_sharpen(tn_updater *u) {
  if (u->settings->optimizer.sharpness <= 0) return TN_OK;
  size_t n = u->graph->nodes.n;
  /* with those of the parameters, which the first pass may read in low precision alone */
  size_t values = u->graph->values.n + (size_t)u->n_params;
  tn_val *map = tn_arena_alloc(u->arena, tn_size_mul(values, sizeof *map));
  tn_val *gradients = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params, sizeof *gradients));
  if (map == NULL || gradients == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < u->n_params; i++) sharpness_parameter(u, u->params[i].state);
  TN_TRY(tn_build_status(u->b));
  TN_TRY(tn_updater_sum_gradients(u, gradients));
  TN_TRY(sharpness_perturb(u, gradients, map));
  return sharpness_repeat(u, n, map);
}

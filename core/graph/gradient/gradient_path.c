/* core/graph/gradient/gradient_path.c: the values through which gradients flow. */
#include "core/graph/gradient/gradient.h"

static bool path_is_float(const tn_graph *g, tn_val v) {
  return tn_dtype_is_float(tn_graph_type(g, v)->dtype);
}

static bool path_is_differentiable(const tn_gnode *node) { return (node->op->flags & TN_OP_NONDIFF) == 0; }

static tn_status path_check_end(const tn_graph *g, tn_val end) {
  char type[TN_TYPE_TEXT];
  if (end == 0 || end >= g->values.n)
    return tn_failf(g->env, TN_EINVAL, "differentiate: the loss is value %u, which is not of this graph",
                    end);
  if (path_is_float(g, end)) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "differentiate: the loss is %s, expected a float scalar such as f32[]",
                  tn_type_format(tn_graph_type(g, end), type));
}

static tn_status path_check(const tn_graph *g, const tn_gradient_ends *ends, const tn_val *wrt, int32_t n) {
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < ends->n; i++) TN_TRY(path_check_end(g, ends->v[i]));
  for (int32_t i = 0; i < n; i++) {
    if (wrt[i] == 0 || wrt[i] >= g->values.n)
      return tn_failf(g->env, TN_EINVAL, "differentiate: value %u is not of this graph", wrt[i]);
    if (!path_is_float(g, wrt[i]))
      return tn_failf(g->env, TN_EINVAL,
                      "differentiate: a gradient with respect to %s is asked for, expected floats",
                      tn_type_format(tn_graph_type(g, wrt[i]), type));
  }
  return TN_OK;
}

/* Forward: the values that depend on wrt. */
static void path_mark_dependents(const tn_graph *g, bool *depends) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    bool any = false;
    for (int32_t k = 0; k < node->n_in; k++) any |= depends[node->in[k]];
    if (!any || !path_is_differentiable(node)) continue;
    for (int32_t k = 0; k < node->n_out; k++)
      if (path_is_float(g, node->first_out + (tn_val)k)) depends[node->first_out + (tn_val)k] = true;
  }
}

/* Backward: of those, the values that an end depends on. */
static void path_mark_needed(const tn_graph *g, const bool *depends, const tn_gradient_ends *ends,
                             bool *needed) {
  for (int32_t i = 0; i < ends->n; i++) needed[ends->v[i]] = depends[ends->v[i]];
  for (size_t i = tn_gradient_last_node(g, ends) + 1; i-- > 0;) {
    const tn_gnode *node = &g->nodes.v[i];
    if (!tn_gradient_passes(node, needed)) continue;
    for (int32_t k = 0; k < node->n_in; k++)
      if (depends[node->in[k]]) needed[node->in[k]] = true;
  }
}

tn_status tn_gradient_path(const tn_graph *g, const tn_gradient_ends *ends, const tn_val *wrt, int32_t n,
                           bool **on_path) {
  *on_path = NULL;
  TN_TRY(path_check(g, ends, wrt, n));
  bool *depends = tn_alloc(g->env, g->values.n), *needed = tn_alloc(g->env, g->values.n);
  tn_status status = depends != NULL && needed != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) {
    for (int32_t i = 0; i < n; i++) depends[wrt[i]] = true;
    path_mark_dependents(g, depends);
    path_mark_needed(g, depends, ends, needed);
    *on_path = needed;
  } else {
    tn_release(g->env, needed);
  }
  tn_release(g->env, depends);
  return status;
}

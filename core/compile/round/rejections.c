/* core/compile/round/rejections.c: the reasons why kernels were not chosen, and the error for an op without
 * a kernel. */
#include "core/compile/round/cover_round.h"

static tn_status reject_node(tn_round *r, uint32_t node, const tn_catalog_kernel *kernel, const char *reason,
                             bool declined) {
  const char *name = kernel->entry->item->name;
  for (const tn_round_rejection *one = r->rejections[node]; one != NULL; one = one->next)
    if (one->rejection.kernel == name) return TN_OK;
  tn_round_rejection *made = tn_arena_alloc(&r->arena, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  *made = (tn_round_rejection){r->rejections[node], {name, reason}, kernel->rank, declined};
  r->rejections[node] = made;
  return TN_OK;
}

tn_status tn_round_reject(tn_round *r, const uint32_t *nodes, int32_t n, const tn_catalog_kernel *kernel,
                          const char *reason, bool declined) {
  for (int32_t i = 0; i < n; i++) TN_TRY(reject_node(r, nodes[i], kernel, reason, declined));
  return TN_OK;
}

tn_status tn_round_reject_worse(tn_round *r, const tn_candidate *worse, const tn_candidate *better) {
  const char *reason = worse->kernel->rank != better->kernel->rank
                           ? tn_arena_printf(&r->arena, "family %s goes first", better->kernel->family)
                           : tn_arena_printf(&r->arena, "%.3g ms against %.3g ms",
                                             tn_candidate_cost_beside(worse, better) * 1e3,
                                             tn_candidate_cost_beside(better, worse) * 1e3);
  if (reason == NULL) return TN_ENOMEM;
  return tn_round_reject(r, worse->nodes, worse->n_nodes, worse->kernel, reason, false);
}

tn_status tn_round_reasons(tn_round *r, uint32_t node, const char **reasons) {
  tn_text text = tn_text_new(r->env);
  const tn_round_rejection *first = r->rejections[node];
  if (first == NULL) tn_text_add(&text, "no installed kernel has a pattern for it");
  for (const tn_round_rejection *one = first; one != NULL; one = one->next)
    tn_text_addf(&text, "%s%s: %s", one == first ? "" : "; ", one->rejection.kernel, one->rejection.reason);
  char *joined = tn_text_take(&text);
  *reasons = joined == NULL ? NULL : tn_arena_strdup(&r->arena, joined);
  tn_release(r->env, joined);
  return *reasons == NULL ? TN_ENOMEM : TN_OK;
}

/* ---- an op without a kernel ---- */

static void describe_operand_types(const tn_round *r, const tn_gnode *node, tn_text *text) {
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < node->n_in; i++)
    tn_text_addf(text, "%s%s", i > 0 ? ", " : "",
                 node->in[i] == 0 ? "_" : tn_type_format(tn_graph_type(r->graph, node->in[i]), type));
}

static void describe_layer(const tn_gnode *node, tn_text *text) {
  bool layer = node->layer != NULL && node->layer[0] != '\0',
       where = node->where != NULL && node->where[0] != '\0';
  if (layer || where)
    tn_text_addf(text, " (%s%s%s)", layer ? node->layer : "", layer && where ? ", " : "",
                 where ? node->where : "");
}

tn_status tn_round_fail_unsupported(tn_round *r, uint32_t index, const char *reasons, const char *more) {
  const tn_gnode *node = &r->graph->nodes.v[index];
  tn_text text = tn_text_new(r->env);
  tn_text_addf(&text, "no kernel takes %s(", node->op->item.name);
  describe_operand_types(r, node, &text);
  tn_text_add(&text, ")");
  describe_layer(node, &text);
  tn_text_add(&text, " on");
  for (int32_t i = 0; i < r->catalog->target.n_families; i++)
    tn_text_addf(&text, "%s %s", i > 0 ? "," : "", r->catalog->target.families[i]);
  tn_text_addf(&text, ", and the op has no decomposition; %s%s", reasons, more);
  char *message = tn_text_take(&text);
  if (message == NULL) return TN_ENOMEM;
  tn_failf(r->env, TN_EUNSUPPORTED, "%s", message);
  tn_release(r->env, message);
  return TN_EUNSUPPORTED;
}

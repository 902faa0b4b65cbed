/* core/graph/rewrite/common_subexpressions.c: eliminates common subexpressions by value numbering (Cocke,
 * "Global common subexpression elimination", 1970; in SSA form one walk suffices). */
#include "core/config/options/options.h"
#include "core/graph/op/attributes.h"
#include "core/graph/hash_index.h"
#include "core/graph/input_state.h"

static bool merge_is_commutative(const tn_gnode *node) {
  return (node->op->flags & TN_OP_COMMUTATIVE) != 0 && node->n_in >= 2;
}

/* Operand i; the first two of a commutative op are sorted. `map` NULL: the node is in the new graph. */
static tn_val merge_operand(const tn_gnode *node, const tn_val *map, int32_t i) {
  tn_val v[2];
  if (i > 1 || !merge_is_commutative(node)) return map != NULL ? map[node->in[i]] : node->in[i];
  for (int32_t k = 0; k < 2; k++) v[k] = map != NULL ? map[node->in[k]] : node->in[k];
  return (i == 0) == (v[0] < v[1]) ? v[0] : v[1];
}

static uint64_t merge_hash_node(const tn_gnode *node, const tn_val *map) {
  uint64_t hash = tn_hash_text(TN_HASH_START, node->op->item.name);
  for (int32_t i = 0; i < node->n_in; i++) {
    tn_val v = merge_operand(node, map, i);
    hash = tn_hash_bytes(hash, &v, sizeof v);
  }
  return tn_attributes_hash(hash, &node->op->item, node->attributes);
}

static bool merge_is_same(const tn_gnode *node, const tn_val *map, const tn_gnode *other) {
  if (node->def != other->def || node->n_in != other->n_in) return false;
  for (int32_t i = 0; i < node->n_in; i++)
    if (merge_operand(node, map, i) != merge_operand(other, NULL, i)) return false;
  return tn_options_equal(&node->op->item, node->attributes, other->attributes);
}

/* `context` is an index of the nodes of the new graph. */
static tn_status merge_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  tn_hash_index *known = context;
  const tn_graph *to = tn_builder_graph(r->b);
  if (tn_op_is_input_or_state(node->op) || (node->op->flags & TN_OP_EFFECT) != 0)
    return tn_rewrite_copy(r, node);
  uint64_t hash = merge_hash_node(node, r->map);
  size_t probe = 0;
  for (int64_t i; (i = tn_hash_index_next(known, hash, &probe)) != TN_HASH_INDEX_NONE;) {
    const tn_gnode *other = &to->nodes.v[i];
    if (!merge_is_same(node, r->map, other)) continue;
    for (int32_t k = 0; k < node->n_out; k++)
      r->map[node->first_out + (tn_val)k] = other->first_out + (tn_val)k;
    return TN_OK;
  }
  TN_TRY(tn_rewrite_copy(r, node));
  return tn_hash_index_add(known, hash, (uint32_t)to->nodes.n - 1);
}

tn_status tn_graph_merge(const tn_graph *from, tn_graph **out) {
  tn_hash_index known = tn_hash_index_new(from->env);
  tn_status status = tn_graph_rewrite(from, merge_node, &known, out);
  tn_hash_index_free(&known);
  return status;
}

/* core/step/graphs/chunk_rules.c: how the results of ops are divided where their operands are. */
#include <stdio.h>

#include "core/step/graphs/chunk.h"
#include "tenon/attributes.h"

/* ---- shapes ---- */

const int64_t *tn_chunk_lead(const tn_chunk_region *region, tn_chunk_form form, int32_t *n) {
  *n = form == TN_CHUNK_FLAT ? 1 : region->n_lead;
  return form == TN_CHUNK_FLAT ? &region->rows : region->lead;
}

/* Whether the first dimensions are those of the form, and others are behind them or not. */
static bool rules_begins_with(const tn_chunk_region *region, const tn_type *type, tn_chunk_form form) {
  int32_t n;
  const int64_t *lead = tn_chunk_lead(region, form, &n);
  bool begins = type->rank >= n;
  for (int32_t i = 0; begins && i < n; i++) begins = type->dims[i] == lead[i];
  return begins;
}

static bool rules_form_of(const tn_chunk_region *region, const tn_type *type, tn_chunk_form *form) {
  bool rows = rules_begins_with(region, type, TN_CHUNK_ROWS);
  *form = rows ? TN_CHUNK_ROWS : TN_CHUNK_FLAT;
  return rows || rules_begins_with(region, type, TN_CHUNK_FLAT);
}

bool tn_chunk_is_large(const tn_chunk_region *region, const tn_type *type) {
  tn_chunk_form form;
  return tn_type_count(type) >= region->rows * region->classes && rules_form_of(region, type, &form);
}

bool tn_chunk_is_made_twice(const tn_gnode *node) {
  return tn_text_equal(node->op->item.name, "full") || tn_text_equal(node->op->item.name, "iota");
}

bool tn_chunk_is_loss(const tn_gnode *node) {
  const char *op = node->op->item.name;
  return tn_text_equal(op, "cross_entropy") || tn_text_equal(op, "log_softmax");
}

static bool rules_refuse(tn_chunk_region *region, const tn_gnode *node, const char *how) {
  if (region->why[0] == '\0')
    snprintf(region->why, sizeof region->why, "%s '%s'%s%s %s", node->op->item.name,
             region->g->values.v[node->first_out].name != NULL ? region->g->values.v[node->first_out].name
                                                               : "",
             node->layer[0] != '\0' ? " in " : "", node->layer, how);
  return false;
}

/* ---- operands from outside ---- */

/* An operand of a node whose result has `rank` dimensions and is divided in this form, by broadcasting. */
static tn_chunk_form rules_align(const tn_chunk_region *region, const tn_type *type, int32_t rank,
                                 tn_chunk_form form) {
  int32_t n, shift = rank - type->rank, equal = 0, ones = 0;
  const int64_t *lead = tn_chunk_lead(region, form, &n);
  for (int32_t i = 0; i < n; i++) {
    int64_t dim = i < shift ? 1 : type->dims[i - shift];
    equal += dim == lead[i];
    ones += dim == 1;
  }
  if (ones == n) return TN_CHUNK_CONSTANT;
  return equal == n && shift == 0 ? form : TN_CHUNK_SPREAD;
}

static bool rules_is_inside(const tn_chunk_region *region, tn_val v) {
  return region->inside[region->g->values.v[v].node];
}

static tn_chunk_form rules_result_form(const tn_chunk_region *region, const tn_gnode *node) {
  return (tn_chunk_form)region->form[node->first_out];
}

static bool rules_is(const tn_gnode *node, const char *op) { return tn_text_equal(node->op->item.name, op); }

tn_chunk_form tn_chunk_operand_form(const tn_chunk_region *region, const tn_gnode *node, int32_t k) {
  tn_val v = node->in[k];
  const tn_type *type = tn_graph_type(region->g, v);
  tn_chunk_form form = rules_result_form(region, node);
  if (rules_is_inside(region, v)) return (tn_chunk_form)region->form[v];
  if (form == TN_CHUNK_SUM) return region->n_lead == 1 ? TN_CHUNK_ROWS : TN_CHUNK_FLAT;
  if (form == TN_CHUNK_CONSTANT) return TN_CHUNK_CONSTANT;
  if (rules_is(node, "matmul")) return k == 0 ? form : TN_CHUNK_CONSTANT;
  if (rules_is(node, "cross_entropy")) return form;
  return rules_align(region, type, tn_graph_type(region->g, node->first_out)->rank, form);
}

/* An operand that has to be broadcast first must be small then. */
static bool rules_operands_fit(tn_chunk_region *region, const tn_gnode *node) {
  for (int32_t k = 0; k < node->n_in; k++) {
    if (node->in[k] == 0 || tn_chunk_operand_form(region, node, k) != TN_CHUNK_SPREAD) continue;
    if (tn_type_count(tn_graph_type(region->g, node->in[k])) > region->rows)
      return rules_refuse(region, node, "reads a value that belongs to some of the rows only");
  }
  return true;
}

/* ---- ops ---- */

static bool rules_set(tn_chunk_region *region, const tn_gnode *node, tn_chunk_form form) {
  for (int32_t i = 0; i < node->n_out; i++) region->form[node->first_out + (tn_val)i] = (uint8_t)form;
  return rules_operands_fit(region, node);
}

/* The form of the operands of the region; false: they differ, or one is a sum. */
static bool rules_common_form(tn_chunk_region *region, const tn_gnode *node, tn_chunk_form *form) {
  *form = TN_CHUNK_CONSTANT;
  for (int32_t k = 0; k < node->n_in; k++) {
    if (node->in[k] == 0 || !rules_is_inside(region, node->in[k])) continue;
    tn_chunk_form own = (tn_chunk_form)region->form[node->in[k]];
    if (own == TN_CHUNK_CONSTANT) continue;
    if (own == TN_CHUNK_SUM) return rules_refuse(region, node, "reads a sum over all rows");
    if (*form != TN_CHUNK_CONSTANT && *form != own)
      return rules_refuse(region, node, "reads values of different shapes");
    *form = own;
  }
  return true;
}

/* Operands of the region have the rank of the result, so that their rows are its rows. A node that was only
 * taken in for its size, such as a comparison of classes and targets, has the form of its result. */
static bool rules_pointwise(tn_chunk_region *region, const tn_gnode *node) {
  tn_chunk_form form;
  const tn_type *type = tn_graph_type(region->g, node->first_out);
  if (!rules_common_form(region, node, &form)) return false;
  if (form == TN_CHUNK_CONSTANT && tn_chunk_is_large(region, type)) rules_form_of(region, type, &form);
  if (form != TN_CHUNK_CONSTANT && !rules_begins_with(region, type, form))
    return rules_refuse(region, node, "spreads rows over other dimensions");
  for (int32_t k = 0; k < node->n_in; k++)
    if (node->in[k] != 0 && rules_is_inside(region, node->in[k]) &&
        region->form[node->in[k]] != TN_CHUNK_CONSTANT &&
        tn_graph_type(region->g, node->in[k])->rank != type->rank)
      return rules_refuse(region, node, "reads rows in another place");
  return rules_set(region, node, form);
}

static bool rules_is_lead(const tn_chunk_region *region, tn_chunk_form form, int64_t axis, int32_t rank) {
  int32_t n;
  tn_chunk_lead(region, form, &n);
  return (axis < 0 ? axis + rank : axis) < n;
}

static bool rules_along(tn_chunk_region *region, const tn_gnode *node, int64_t axis) {
  tn_chunk_form form;
  if (!rules_common_form(region, node, &form)) return false;
  if (rules_is_lead(region, form, axis, tn_graph_type(region->g, node->in[0])->rank))
    return rules_refuse(region, node, "mixes rows");
  return rules_set(region, node, form);
}

/* Sums over all rows are sums of the chunks' sums. */
static bool rules_reduce(tn_chunk_region *region, const tn_gnode *node) {
  const tn_reduce_attributes *a = node->attributes;
  int32_t n_lead, over = 0, rank = tn_graph_type(region->g, node->in[0])->rank;
  int64_t n = a->axes.n > 0 ? a->axes.n : rank;
  tn_chunk_form form;
  if (!rules_common_form(region, node, &form)) return false;
  for (int64_t i = 0; i < n; i++) over += rules_is_lead(region, form, a->axes.n > 0 ? a->axes.v[i] : i, rank);
  tn_chunk_lead(region, form, &n_lead);
  if (over == 0) return rules_set(region, node, form);
  if (over < n_lead || !rules_is(node, "reduce_sum")) return rules_refuse(region, node, "mixes rows");
  return rules_set(region, node, TN_CHUNK_SUM);
}

/* The product of rows and a matrix, or of all rows with all rows: the gradient of the matrix. */
static bool rules_matmul(tn_chunk_region *region, const tn_gnode *node) {
  const tn_matmul_attributes *a = node->attributes;
  const tn_type *x = tn_graph_type(region->g, node->in[0]), *y = tn_graph_type(region->g, node->in[1]);
  tn_chunk_form form;
  int32_t n;
  bool bias = node->n_in > 2 && node->in[2] != 0;
  if (a->transpose_a && !a->transpose_b && !bias && x->rank == 2 && y->rank == 2 &&
      x->dims[0] == region->rows)
    return rules_set(region, node, TN_CHUNK_SUM);
  if (!rules_form_of(region, x, &form) || a->transpose_a || rules_is_inside(region, node->in[1]) ||
      y->rank != 2)
    return rules_refuse(region, node, "is no product of rows and a matrix");
  tn_chunk_lead(region, form, &n);
  if (x->rank != n + 1) return rules_refuse(region, node, "mixes rows");
  return rules_set(region, node, form);
}

/* Dimensions behind the rows may change; those of the rows may become one. */
static bool rules_reshape(tn_chunk_region *region, const tn_gnode *node) {
  const tn_type *type = tn_graph_type(region->g, node->first_out);
  tn_chunk_form from, to;
  if (!rules_common_form(region, node, &from)) return false;
  if (from == TN_CHUNK_CONSTANT) return rules_set(region, node, from);
  if (!rules_form_of(region, type, &to)) return rules_refuse(region, node, "mixes rows");
  return rules_set(region, node, to);
}

/* Numbers that an op without operands makes: those of each chunk, unless they count rows. */
static bool rules_made(tn_chunk_region *region, const tn_gnode *node) {
  const tn_type *type = tn_graph_type(region->g, node->first_out);
  tn_chunk_form form;
  if (!tn_chunk_is_large(region, type)) return rules_set(region, node, TN_CHUNK_CONSTANT);
  rules_form_of(region, type, &form);
  if (rules_is(node, "iota") &&
      rules_is_lead(region, form, ((const tn_iota_attributes *)node->attributes)->axis, type->rank))
    return rules_refuse(region, node, "counts rows");
  return rules_set(region, node, form);
}

bool tn_chunk_rule(tn_chunk_region *region, const tn_gnode *node) {
  if (tn_chunk_is_made_twice(node)) return rules_made(region, node);
  if (node->op->op_class == TN_CLASS_POINTWISE)
    return node->n_in == 0 || rules_is(node, "spread")
               ? rules_refuse(region, node, "makes numbers for all rows")
               : rules_pointwise(region, node);
  if (rules_is(node, "reshape")) return rules_reshape(region, node);
  if (rules_is(node, "matmul")) return rules_matmul(region, node);
  if (rules_is(node, "cross_entropy"))
    return rules_along(region, node, ((const tn_cross_entropy_attributes *)node->attributes)->axis);
  if (rules_is(node, "softmax") || rules_is(node, "log_softmax") || rules_is(node, "argmax"))
    return rules_along(region, node, ((const tn_axis_attributes *)node->attributes)->axis);
  if (tn_text_starts(node->op->item.name, "reduce_") && node->op->op_class == TN_CLASS_REDUCE)
    return rules_reduce(region, node);
  return rules_refuse(region, node, "is an op that pass chunk cannot divide");
}

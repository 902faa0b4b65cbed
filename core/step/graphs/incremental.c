/* core/step/graphs/incremental.c: pass `incremental`: decoding with a cache of keys and values (Shazeer,
 * "Fast transformer decoding", 2019).
 *
 * The pass follows the dimension of tokens through the graph. A value without it depends on no token and is
 * computed as before; of a value with it only the rows of the new tokens are computed. Ops that treat tokens
 * one by one stay as they are, but for attributes that hold the number of tokens. Causal attention becomes
 * cached_attention. Where a value without the dimension meets one with it, as the table of positions does,
 * the rows of the new tokens are taken. Every other op that mixes tokens is refused. */
#include "core/step/graphs/incremental.h"

#include <string.h>

#include "core/graph/input_state.h"
#include "core/graph/op/attributes.h"
#include "core/graph/op/schema.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

enum { NO_AXIS = -1, MIXES = -2, OPERANDS = 8 };

typedef struct incremental_pass {
  int64_t window, tokens;
  int32_t *axis; /* of each old value: the dimension of tokens, or NO_AXIS */
  tn_val position, indices;
  int32_t caches;
} incremental_pass;

/* One node: its operands in the old graph and in the new one. */
typedef struct incremental_node {
  incremental_pass *p;
  tn_rewrite *r;
  const tn_gnode *node;
  tn_val in[OPERANDS]; /* in the new graph */
} incremental_node;

static const tn_type *incremental_type(const incremental_node *n, int32_t i) {
  return tn_graph_type(n->r->from, n->node->in[i]);
}

static int32_t incremental_axis(const incremental_node *n, int32_t i) {
  return n->node->in[i] != 0 ? n->p->axis[n->node->in[i]] : NO_AXIS;
}

/* ---- emitting ---- */

static tn_val incremental_position(incremental_pass *p, tn_rewrite *r) {
  const tn_type scalar = {TN_I64, 0, {0}};
  if (p->position == 0) p->position = tn_graph_input(tn_builder_graph(r->b), TN_POSITION_INPUT, &scalar);
  return p->position;
}

/* The numbers of the new tokens. */
static tn_val incremental_indices(incremental_pass *p, tn_rewrite *r) {
  const tn_type type = {TN_I64, 1, {p->tokens}};
  if (p->indices == 0) p->indices = tn_add(r->b, tn_iota(r->b, &type, 0), incremental_position(p, r));
  return p->indices;
}

/* Operand i, which has no dimension of tokens: its rows for the new tokens along `at`. */
static tn_status incremental_take_rows(incremental_node *n, int32_t i, int32_t at) {
  tn_build *b = n->r->b;
  tn_type type = *incremental_type(n, i);
  int64_t before = 1, row = 1;
  for (int32_t k = 0; k < at; k++) before *= type.dims[k];
  for (int32_t k = at + 1; k < type.rank; k++) row *= type.dims[k];
  if (before != 1 || !tn_dtype_is_float(type.dtype)) return TN_EUNSUPPORTED;
  tn_val table = tn_reshape(b, n->in[i], 2, (int64_t[]){n->p->window, row});
  type.dims[at] = n->p->tokens;
  n->in[i] = tn_reshape(b, tn_embedding(b, incremental_indices(n->p, n->r), table), type.rank, type.dims);
  return tn_build_status(b);
}

/* The node with other attributes; NULL: with its own. */
static tn_status incremental_add(incremental_node *n, const void *attributes) {
  tn_graph *to = tn_builder_graph(n->r->b);
  const tn_gnode *node = n->node;
  tn_val first;
  attributes =
      tn_attributes_copy(&to->arena, &node->op->item, attributes != NULL ? attributes : node->attributes);
  if (attributes == NULL) return TN_ENOMEM;
  TN_TRY(tn_graph_add(to, node->def, attributes, n->in, node->n_in, node->layer, node->where, &first));
  for (int32_t i = 0; i < node->n_out; i++) n->r->map[node->first_out + (tn_val)i] = first + (tn_val)i;
  return TN_OK;
}

/* ---- rules: each gives the dimension of tokens of the results, or MIXES, and adds the node ---- */

typedef tn_status (*incremental_rule)(incremental_node *n, int32_t *axis);

/* Operands broadcast against each other: the last dimensions belong together. */
static tn_status incremental_pointwise(incremental_node *n, int32_t *axis) {
  int32_t rank = n->r->from->values.v[n->node->first_out].type.rank;
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (incremental_axis(n, i) < 0) continue;
    int32_t aligned = incremental_axis(n, i) + rank - incremental_type(n, i)->rank;
    if (*axis >= 0 && aligned != *axis) return TN_EUNSUPPORTED;
    *axis = aligned;
  }
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (n->node->in[i] == 0 || incremental_axis(n, i) >= 0) continue;
    int32_t at = *axis - (rank - incremental_type(n, i)->rank);
    if (at >= 0 && incremental_type(n, i)->dims[at] != 1) TN_TRY(incremental_take_rows(n, i, at));
  }
  return incremental_add(n, NULL);
}

/* Operand 0 has the tokens, in a dimension that is not one of the `last`, over which the op computes. */
static tn_status incremental_rows(incremental_node *n, int32_t *axis, int32_t last) {
  for (int32_t i = 1; i < n->node->n_in; i++)
    if (incremental_axis(n, i) >= 0) return TN_EUNSUPPORTED;
  *axis = incremental_axis(n, 0);
  if (*axis >= incremental_type(n, 0)->rank - last) return TN_EUNSUPPORTED;
  return incremental_add(n, NULL);
}

static tn_status incremental_embedding(incremental_node *n, int32_t *axis) {
  return incremental_rows(n, axis, 0);
}

static tn_status incremental_layer_norm(incremental_node *n, int32_t *axis) {
  const tn_norm_attributes *a = n->node->attributes;
  return incremental_rows(n, axis, (int32_t)a->trailing);
}

static tn_status incremental_softmax(incremental_node *n, int32_t *axis) {
  const tn_axis_attributes *a = n->node->attributes;
  int32_t rank = incremental_type(n, 0)->rank;
  int64_t over = a->axis < 0 ? a->axis + rank : a->axis;
  if (over == incremental_axis(n, 0)) return TN_EUNSUPPORTED;
  return incremental_rows(n, axis, 0);
}

/* The rows of the first operand, or a dimension of batches that the second does not have. */
static tn_status incremental_matmul(incremental_node *n, int32_t *axis) {
  const tn_matmul_attributes *a = n->node->attributes;
  const tn_type *x = incremental_type(n, 0), *y = incremental_type(n, 1);
  int32_t at = incremental_axis(n, 0), rank = n->r->from->values.v[n->node->first_out].type.rank;
  if (at < 0 || incremental_axis(n, 1) >= 0) return TN_EUNSUPPORTED;
  if (at >= x->rank - 2) {
    if (at != x->rank - (a->transpose_a ? 1 : 2)) return TN_EUNSUPPORTED;
    *axis = rank - 2;
    return incremental_add(n, NULL);
  }
  *axis = at + rank - x->rank;
  int32_t other = *axis - (rank - y->rank);
  return other >= 0 && y->dims[other] != 1 ? TN_EUNSUPPORTED : incremental_add(n, NULL);
}

/* The dimension of the result that holds the tokens: as many elements lie in front of it. */
static int32_t incremental_find_dim(const tn_type *x, int32_t at, const tn_type *y) {
  int64_t before = 1, passed = 1;
  for (int32_t i = 0; i < at; i++) before *= x->dims[i];
  for (int32_t i = 0; i < y->rank; i++) {
    if (passed == before && y->dims[i] == x->dims[at]) return i;
    passed *= y->dims[i];
  }
  return MIXES;
}

static tn_status incremental_reshape(incremental_node *n, int32_t *axis) {
  tn_type y = n->r->from->values.v[n->node->first_out].type;
  *axis = incremental_find_dim(incremental_type(n, 0), incremental_axis(n, 0), &y);
  if (*axis < 0) return TN_EUNSUPPORTED;
  y.dims[*axis] = n->p->tokens;
  const tn_reshape_attributes a = {{y.rank, y.dims}};
  return incremental_add(n, &a);
}

static tn_status incremental_broadcast(incremental_node *n, int32_t *axis) {
  tn_type y = n->r->from->values.v[n->node->first_out].type;
  *axis = incremental_axis(n, 0) + y.rank - incremental_type(n, 0)->rank;
  y.dims[*axis] = n->p->tokens;
  const tn_broadcast_attributes a = {{y.rank, y.dims}};
  return incremental_add(n, &a);
}

static tn_status incremental_transpose(incremental_node *n, int32_t *axis) {
  const tn_transpose_attributes *a = n->node->attributes;
  for (int32_t i = 0; i < (int32_t)a->order.n; i++)
    if (a->order.v[i] == incremental_axis(n, 0)) *axis = i;
  return incremental_add(n, NULL);
}

static tn_status incremental_slice(incremental_node *n, int32_t *axis) {
  tn_slice_attributes a = *(const tn_slice_attributes *)n->node->attributes;
  int64_t stops[TN_MAX_RANK];
  int32_t at = *axis = incremental_axis(n, 0);
  bool whole = a.starts.v[at] == 0 && a.stops.v[at] == n->p->window && (a.steps.n == 0 || a.steps.v[at] == 1);
  if (!whole) return TN_EUNSUPPORTED;
  memcpy(stops, a.stops.v, (size_t)a.stops.n * sizeof *stops);
  stops[at] = n->p->tokens;
  a.stops.v = stops;
  return incremental_add(n, &a);
}

static tn_status incremental_concat(incremental_node *n, int32_t *axis) {
  const tn_axis_attributes *a = n->node->attributes;
  int32_t rank = incremental_type(n, 0)->rank;
  int64_t joined = a->axis < 0 ? a->axis + rank : a->axis;
  for (int32_t i = 0; i < n->node->n_in; i++)
    if (incremental_axis(n, i) >= 0) *axis = incremental_axis(n, i);
  if (joined == *axis) return TN_EUNSUPPORTED;
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (incremental_axis(n, i) < 0) TN_TRY(incremental_take_rows(n, i, *axis));
    if (incremental_axis(n, i) >= 0 && incremental_axis(n, i) != *axis) return TN_EUNSUPPORTED;
  }
  return incremental_add(n, NULL);
}

static tn_status incremental_reduce(incremental_node *n, int32_t *axis) {
  const tn_reduce_attributes *a = n->node->attributes;
  int32_t at = incremental_axis(n, 0), rank = incremental_type(n, 0)->rank, removed = 0;
  bool keeps = a->keep && !tn_text_equal(n->node->op->item.name, "moments");
  if (a->axes.n == 0) return TN_EUNSUPPORTED;
  for (int64_t i = 0; i < a->axes.n; i++) {
    int64_t over = a->axes.v[i] < 0 ? a->axes.v[i] + rank : a->axes.v[i];
    if (over == at) return TN_EUNSUPPORTED;
    removed += over < at && !keeps;
  }
  *axis = at - removed;
  return incremental_add(n, NULL);
}

static tn_val incremental_cache(incremental_node *n, const tn_type *rows, int32_t dim, const char *name,
                                const char **path) {
  tn_graph *to = tn_builder_graph(n->r->b);
  tn_type type = *rows;
  type.dims[dim] = n->p->window;
  *path = tn_arena_printf(&to->arena, "%s.cached_%s.%d", n->node->layer, name, n->p->caches);
  return *path != NULL ? tn_graph_state(to, *path, &type, TN_STATE_SCRATCH, "", n->node->where) : 0;
}

/* Adds cached_attention with the attributes of the attention: its options are some of those. */
static tn_status incremental_add_cached(incremental_node *n, const tn_val in[6], tn_val *first) {
  tn_graph *to = tn_builder_graph(n->r->b);
  const tn_op_def *def;
  TN_TRY(tn_op_table_find(to->ops, to->env, "cached_attention", &def));
  const void *attributes = tn_attributes_copy(&to->arena, &def->op->item, n->node->attributes);
  if (attributes == NULL) return TN_ENOMEM;
  return tn_graph_add(to, def, attributes, in, 6, n->node->layer, n->node->where, first);
}

/* Keys and values of earlier tokens come from the caches. */
static tn_status incremental_cached_attention(incremental_node *n) {
  tn_graph *to = tn_builder_graph(n->r->b);
  const tn_attention_attributes *a = n->node->attributes;
  const char *keys, *values;
  int32_t dim = a->heads > 0 ? 1 : 2;
  tn_val in[6] = {n->in[0], n->in[1], n->in[2], 0, 0, incremental_position(n->p, n->r)}, y;
  tn_type k = *tn_graph_type(to, n->in[1]), v = *tn_graph_type(to, n->in[2]);
  in[3] = incremental_cache(n, &k, dim, "keys", &keys);
  in[4] = incremental_cache(n, &v, dim, "values", &values);
  n->p->caches++;
  if (in[3] == 0 || in[4] == 0) return to->env->record->code;
  TN_TRY(incremental_add_cached(n, in, &y));
  n->r->map[n->node->first_out] = y;
  TN_TRY(tn_graph_commit(to, keys, y + 1, 0));
  return tn_graph_commit(to, values, y + 2, 0);
}

/* Queries of tokens that attend to something which has no tokens are independent of each other. */
static tn_status incremental_attention(incremental_node *n, int32_t *axis) {
  const tn_attention_attributes *a = n->node->attributes;
  int32_t dim = a->heads > 0 ? 1 : 2;
  bool fixed = incremental_axis(n, 1) < 0 && incremental_axis(n, 2) < 0;
  *axis = dim;
  if (incremental_axis(n, 0) != dim) return TN_EUNSUPPORTED;
  if (fixed && !a->causal) return incremental_add(n, NULL);
  if (!a->causal || incremental_axis(n, 1) != dim || incremental_axis(n, 2) != dim) return TN_EUNSUPPORTED;
  return incremental_cached_attention(n);
}

/* The new tokens have their positions in the window. */
static tn_status incremental_rotary(incremental_node *n, int32_t *axis) {
  tn_graph *to = tn_builder_graph(n->r->b);
  const tn_gnode *node = n->node;
  *axis = incremental_axis(n, 0);
  if (*axis != 1 || (node->n_in > 1 && node->in[1] != 0)) return TN_EUNSUPPORTED;
  const tn_val in[] = {n->in[0], incremental_position(n->p, n->r)};
  const void *attributes = tn_attributes_copy(&to->arena, &node->op->item, node->attributes);
  if (attributes == NULL) return TN_ENOMEM;
  return tn_graph_add(to, node->def, attributes, in, 2, node->layer, node->where,
                      &n->r->map[node->first_out]);
}

static const struct {
  const char *op;
  incremental_rule rule;
} incremental_rules[] = {{"embedding", incremental_embedding}, {"layer_norm", incremental_layer_norm},
                         {"softmax", incremental_softmax},     {"log_softmax", incremental_softmax},
                         {"matmul", incremental_matmul},       {"reshape", incremental_reshape},
                         {"broadcast", incremental_broadcast}, {"transpose", incremental_transpose},
                         {"slice", incremental_slice},         {"concat", incremental_concat},
                         {"reduce_sum", incremental_reduce},   {"reduce_max", incremental_reduce},
                         {"reduce_min", incremental_reduce},   {"moments", incremental_reduce},
                         {"attention", incremental_attention}, {"copy", incremental_embedding},
                         {"cast", incremental_pointwise},      {"rms_norm", incremental_layer_norm},
                         {"rotary", incremental_rotary}};

static incremental_rule incremental_find_rule(const tn_op *op) {
  for (size_t i = 0; i < sizeof incremental_rules / sizeof *incremental_rules; i++)
    if (tn_text_equal(incremental_rules[i].op, op->item.name)) return incremental_rules[i].rule;
  return op->op_class == TN_CLASS_POINTWISE && op->infer == NULL ? incremental_pointwise : NULL;
}

/* ---- the walk ---- */

static tn_status incremental_refuse(const incremental_node *n) {
  const tn_gnode *node = n->node;
  return tn_failf(n->r->from->env, TN_EUNSUPPORTED,
                  "%s%slayer %s: its %s mixes tokens, so that the model cannot be computed token by token; "
                  "expected causal attention, and else layers that treat every token by itself",
                  node->where, *node->where ? ": " : "", node->layer, node->op->item.name);
}

static tn_status incremental_input(incremental_node *n) {
  const tn_input_attributes *a = n->node->attributes;
  tn_type type = a->type;
  type.dims[1] = n->p->tokens;
  tn_val v = tn_graph_input(tn_builder_graph(n->r->b), a->name, &type);
  n->r->map[n->node->first_out] = v;
  n->p->axis[n->node->first_out] = 1;
  return v != 0 ? TN_OK : TN_ENOMEM;
}

static bool incremental_has_tokens(const incremental_node *n) {
  for (int32_t i = 0; i < n->node->n_in; i++)
    if (incremental_axis(n, i) >= 0) return true;
  return false;
}

static tn_status incremental_visit(tn_rewrite *r, const tn_gnode *node, void *context) {
  incremental_node n = {.p = context, .r = r, .node = node};
  int32_t axis = NO_AXIS;
  if (node->op == &tn_op_input) return incremental_input(&n);
  if (!incremental_has_tokens(&n)) return tn_rewrite_copy(r, node);
  incremental_rule rule = incremental_find_rule(node->op);
  if (rule == NULL || node->n_in > OPERANDS) return incremental_refuse(&n);
  for (int32_t i = 0; i < node->n_in; i++) n.in[i] = node->in[i] != 0 ? r->map[node->in[i]] : 0;
  tn_status status = rule(&n, &axis);
  for (int32_t i = 0; i < node->n_out; i++) n.p->axis[node->first_out + (tn_val)i] = axis;
  return status == TN_EUNSUPPORTED ? incremental_refuse(&n) : status;
}

/* The window is the second dimension of the only input, which has numbers of tokens. */
static tn_status incremental_find_window(const tn_graph *g, int64_t *window) {
  const tn_type *type = g->inputs.n == 1 ? tn_graph_type(g, g->inputs.v[0]) : NULL;
  char text[TN_TYPE_TEXT];
  if (type == NULL)
    return tn_failf(g->env, TN_EUNSUPPORTED,
                    "the model has %zu inputs, expected one: the tokens, such as `tokens: i32[64]`",
                    g->inputs.n);
  if (type->rank < 2 || tn_dtype_is_float(type->dtype))
    return tn_failf(g->env, TN_EUNSUPPORTED,
                    "the model's input is %s with the batch, expected numbers of tokens, such as i32[1, 64]",
                    tn_type_format(type, text));
  *window = type->dims[1];
  return TN_OK;
}

/* Each output has a row for each token. */
static tn_status incremental_check_outputs(const incremental_pass *p, const tn_graph *g) {
  for (size_t i = 0; i < g->outputs.n; i++)
    if (p->axis[g->outputs.v[i].value] != 1)
      return tn_failf(g->env, TN_EUNSUPPORTED,
                      "the model's %s does not have a row for each token, which generating needs",
                      g->outputs.v[i].name);
  return TN_OK;
}

tn_status tn_incremental_graph(int64_t tokens, tn_graph **graph, int64_t *window) {
  tn_graph *from = *graph, *to = NULL;
  TN_TRY(incremental_find_window(from, window));
  incremental_pass p = {.window = *window, .tokens = tokens < *window ? tokens : *window};
  p.axis = tn_alloc(from->env, tn_size_mul(from->values.n, sizeof *p.axis));
  if (p.axis == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < from->values.n; i++) p.axis[i] = NO_AXIS;
  tn_status status = tn_graph_rewrite(from, incremental_visit, &p, &to);
  if (status == TN_OK) status = incremental_check_outputs(&p, from);
  tn_release(from->env, p.axis);
  if (status != TN_OK) {
    tn_graph_destroy(to);
    return status;
  }
  tn_graph_destroy(from);
  *graph = to;
  return TN_OK;
}

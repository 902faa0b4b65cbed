/* core/step/graphs/precision.c: pass `precision`: the policy decides the dtype of every float operand; the
 * pass inserts the casts. Operands that share a dtype letter of the schema get the widest dtype that was
 * decided for one of them. Values that become state or outputs are cast back to their old dtype. The bias of
 * a product that is widened for a residual is added behind the cast, from its parameter: a product of 16 bits
 * and the sums in f32 behind it are one launch on devices whose products have f32 results.
 *
 * The body of a loop is a graph of its own, to which the policy applies in the same way; operands and results
 * of the loop keep their dtypes.
 *
 * A parameter in another dtype is a low-precision copy (low_precision_copies.h), cast once per update instead
 * of once per use. */
#include <math.h>
#include <string.h>

#include "core/config/options/options.h"
#include "core/graph/loop/loop.h"
#include "core/graph/op/attributes.h"
#include "core/graph/op/schema.h"
#include "core/graph/input_state.h"
#include "core/graph/uses.h"
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/graphs/training_graph.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

typedef struct tn_precision_pass {
  const tn_settings *settings;
  tn_val begin, end;  /* the policy is asked for the makers of the values from `begin` to `end` - 1 */
  tn_val *cast;       /* [value * TN_DTYPES + dtype]: an earlier cast; 0: there is no cast yet */
  const bool *leaves; /* per old value: it is an output or committed */
  tn_uses uses;       /* of the old graph */
} tn_precision_pass;

/* The dtypes that the operands of a node shall have. */
typedef struct tn_operand_types {
  int32_t *dtype; /* TN_ANY if the operand is not a float */
  bool *optional; /* the operand is a constant for which the policy returned TN_ANY */
  bool tf32;      /* the policy allows rounding the operands of a product to TF32 */
} tn_operand_types;

static int32_t precision_call_policy(const tn_settings *s, const tn_gnode *node, int32_t index,
                                     int32_t dtype) {
  tn_precision_site site = {sizeof site, node->op->item.name, node->op->op_class, false, index, dtype};
  return s->precision->decide(s->precision_options, &site);
}

static bool precision_is_float_operand(const tn_graph *g, const tn_gnode *node, int32_t i) {
  return node->in[i] != 0 && tn_dtype_is_float(tn_graph_type(g, node->in[i])->dtype);
}

/* The body of a loop is rewritten in any case. */
static bool precision_changes_node(const tn_settings *s, const tn_graph *g, const tn_gnode *node) {
  if (tn_is_loop(node)) return true;
  for (int32_t i = 0; i < node->n_in; i++) {
    int32_t dtype = precision_is_float_operand(g, node, i) ? tn_graph_type(g, node->in[i])->dtype : TN_ANY;
    if (dtype != TN_ANY && precision_call_policy(s, node, i, dtype) != dtype) return true;
  }
  return false;
}

/* Whether the policy changes any operand of the graph. */
static bool precision_changes_graph(const tn_settings *s, const tn_graph *g, tn_val begin, tn_val end) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    if (node->first_out >= begin && node->first_out < end && precision_changes_node(s, g, node)) return true;
  }
  return false;
}

/* ---- what an operand is to be ---- */

/* The wider of two float dtypes. f16 and bf16 give f32, since neither represents the other. */
static int32_t precision_widest(int32_t a, int32_t b) {
  if (a == TN_ANY || a == b) return b;
  if (b == TN_ANY) return a;
  if (a < TN_F32 && b < TN_F32) return TN_F32;
  return a > b ? a : b;
}

static tn_status precision_check_decision(const tn_rewrite *r, const tn_gnode *node, int32_t i,
                                          int32_t dtype) {
  if (dtype == TN_ANY || tn_dtype_is_float(dtype)) return TN_OK;
  if (dtype == TN_PRECISION_TF32 && tn_graph_type(r->from, node->in[i])->dtype == TN_F32) return TN_OK;
  return tn_failf(r->from->env, TN_EINVAL,
                  "operand %d of %s gets %s (%d), expected f16, bf16, f32, f64, tf32 (of an "
                  "f32 operand), or any for no change",
                  i, node->op->item.name, tn_dtype_name(dtype), dtype);
}

/* The value of a constant of any shape. */
static bool precision_is_constant(const tn_graph *g, tn_val v, double *value) {
  if (!tn_graph_is(g, v, "full")) return false;
  *value = ((const tn_full_attributes *)tn_graph_maker(g, v)->attributes)->value;
  return true;
}

/* Whether a dtype represents a value as a normal number. */
static bool precision_represents(int32_t dtype, double value) {
  double size = fabs(value);
  if (value == 0 || !isfinite(value)) return true;
  if (dtype == TN_F16) return size <= 65504.0 && size >= 0x1p-14;
  return dtype == TN_F64 || (size <= 3.3895e38 && size >= 0x1p-126);
}

/* The policy's decision for operand i, before the letters of the schema are tied. */
static tn_status precision_ask_policy(const tn_rewrite *r, const tn_precision_pass *p, const tn_gnode *node,
                                      int32_t i, tn_operand_types *w) {
  double value;
  w->dtype[i] = TN_ANY;
  if (!precision_is_float_operand(r->from, node, i)) return TN_OK;
  int32_t dtype = tn_graph_type(r->from, node->in[i])->dtype;
  if (node->first_out < p->begin || node->first_out >= p->end) return w->dtype[i] = dtype, TN_OK;
  int32_t decided = precision_call_policy(p->settings, node, i, dtype);
  TN_TRY(precision_check_decision(r, node, i, decided));
  w->tf32 |= decided == TN_PRECISION_TF32;
  w->optional[i] = decided == TN_ANY && precision_is_constant(r->from, node->in[i], &value);
  if (decided == TN_PRECISION_TF32) decided = TN_F32;
  w->dtype[i] = decided != TN_ANY ? decided : tn_val_type(r->b, r->map[node->in[i]])->dtype;
  return TN_OK;
}

/* The dtype of each letter of the schema. A constant widens it only if the dtype does not represent the
 * constant's value. */
static void precision_tie_letters(const tn_rewrite *r, const tn_gnode *node, const tn_operand_types *w,
                                  int32_t tied[TN_SCHEMA_LETTERS]) {
  for (int32_t pass = 0; pass < 2; pass++)
    for (int32_t i = 0; i < node->n_in; i++) {
      char letter = tn_op_def_operand(node->def, i)->letter;
      int32_t *of = letter ? &tied[letter - 'A'] : NULL;
      double value;
      if (of == NULL || w->dtype[i] == TN_ANY || w->optional[i] != pass) continue;
      if (pass && *of && precision_is_constant(r->from, node->in[i], &value) &&
          precision_represents(*of, value))
        continue;
      *of = precision_widest(*of, w->dtype[i]);
    }
}

/* The dtype, if the schema allows it for operand i; otherwise the old one. */
static int32_t precision_allowed(const tn_rewrite *r, const tn_gnode *node, int32_t i, int32_t dtype) {
  const tn_operand_def *def = tn_op_def_operand(node->def, i);
  int32_t old = tn_graph_type(r->from, node->in[i])->dtype;
  if (def->letter) return node->def->dtypes[def->letter - 'A'] >> dtype & 1 ? dtype : old;
  return def->dtype == TN_ANY || def->dtype == dtype ? dtype : old;
}

static tn_status precision_choose_types(const tn_rewrite *r, const tn_precision_pass *p, const tn_gnode *node,
                                        tn_operand_types *w) {
  int32_t tied[TN_SCHEMA_LETTERS] = {0};
  for (int32_t i = 0; i < node->n_in; i++) TN_TRY(precision_ask_policy(r, p, node, i, w));
  precision_tie_letters(r, node, w, tied);
  for (int32_t i = 0; i < node->n_in; i++) {
    char letter = tn_op_def_operand(node->def, i)->letter;
    if (w->dtype[i] == TN_ANY) continue;
    if (letter) w->dtype[i] = tied[letter - 'A'];
    w->dtype[i] = precision_allowed(r, node, i, w->dtype[i]);
  }
  return TN_OK;
}

/* ---- casts ---- */

/* The value of `dtype` that `v` was widened from; 0: `v` is not such a cast. */
static tn_val precision_widened_from(const tn_graph *g, tn_val v, int32_t dtype) {
  if (!tn_graph_is(g, v, "cast") || tn_dtype_size(dtype) >= tn_dtype_size(tn_graph_type(g, v)->dtype))
    return 0;
  tn_val narrow = tn_graph_maker(g, v)->in[0];
  return tn_graph_type(g, narrow)->dtype == dtype ? narrow : 0;
}

static bool precision_is_parameter(const tn_graph *g, tn_val v) {
  const tn_gnode *node = tn_graph_maker(g, v);
  return node->op == &tn_op_state &&
         ((const tn_state_attributes *)node->attributes)->what + 1 == TN_STATE_PARAM;
}

static tn_val precision_cast(tn_rewrite *r, tn_precision_pass *p, tn_val old, int32_t dtype);

/* The view of a cast, for the narrow cast of a view: products read an activation as it is in forward, and as
 * a matrix of all rows in backward, and share one cast. */
static tn_val precision_view_cast(tn_rewrite *r, tn_precision_pass *p, const tn_gnode *view, int32_t dtype) {
  tn_val base = view->in[0], old = view->first_out, base_now = r->map[base], now = r->map[old];
  r->map[base] = precision_cast(r, p, base, dtype);
  tn_status status = tn_build_status(r->b);
  if (status == TN_OK) status = tn_rewrite_copy(r, view);
  tn_val made = r->map[old];
  r->map[base] = base_now;
  r->map[old] = now;
  if (status != TN_OK) tn_builder_fail(r->b, status);
  return status == TN_OK ? made : 0;
}

static tn_val precision_make_cast(tn_rewrite *r, tn_precision_pass *p, tn_val old, int32_t dtype) {
  tn_val now = r->map[old], narrow = precision_widened_from(tn_builder_graph(r->b), now, dtype);
  const tn_gnode *maker = tn_graph_maker(r->from, old);
  double value;
  if (narrow) return narrow;
  tn_type type = *tn_graph_type(r->from, old);
  bool low = tn_dtype_size(dtype) < tn_dtype_size(type.dtype);
  if (low && tn_node_kind_of(maker) == TN_NODE_VIEW && maker->first_out == old)
    return precision_view_cast(r, p, maker, dtype);
  if (low && precision_is_parameter(r->from, old)) {
    tn_val copy = tn_low_precision_read(tn_builder_graph(r->b), r->from, old, dtype);
    if (!copy) tn_builder_fail(r->b, r->from->env->record->code);
    return copy;
  }
  type.dtype = dtype;
  return precision_is_constant(r->from, old, &value) ? tn_full(r->b, &type, value)
                                                     : tn_to_dtype(r->b, now, dtype);
}

static tn_val precision_cast(tn_rewrite *r, tn_precision_pass *p, tn_val old, int32_t dtype) {
  tn_val now = r->map[old], *known = &p->cast[(size_t)old * TN_DTYPES + (size_t)dtype];
  if (tn_val_type(r->b, now)->dtype == dtype) return now;
  if (!*known) *known = precision_make_cast(r, p, old, dtype);
  return *known;
}

/* Casts values that become outputs or state back to their old dtype. */
static void precision_restore_results(tn_rewrite *r, const tn_precision_pass *p, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val old = node->first_out + (tn_val)i;
    int32_t dtype = tn_graph_type(r->from, old)->dtype;
    if (p->leaves[old] && tn_dtype_is_float(dtype)) r->map[old] = tn_to_dtype(r->b, r->map[old], dtype);
  }
}

/* Sets `math = tf32` of a node whose op has that attribute. */
static tn_status precision_allow_tf32(tn_graph *to, tn_gnode *node) {
  const tn_option *math = tn_options_find(&node->op->item, "math");
  if (math == NULL || math->type != TN_OPT_ENUM) return TN_OK;
  char *attributes = tn_attributes_copy(&to->arena, &node->op->item, node->attributes);
  if (attributes == NULL) return TN_ENOMEM;
  *(int32_t *)(void *)(attributes + math->offset) = TN_MATH_TF32;
  node->attributes = attributes;
  return TN_OK;
}

/* tn_rewrite_copy reads operands through the map, so the map holds the casts during the copy. */
static tn_status precision_copy_node(tn_rewrite *r, tn_precision_pass *p, tn_gnode node,
                                     const tn_operand_types *w, tn_val *saved) {
  if (w->tf32) TN_TRY(precision_allow_tf32(tn_builder_graph(r->b), &node));
  for (int32_t i = 0; i < node.n_in; i++) saved[i] = r->map[node.in[i]];
  for (int32_t i = 0; i < node.n_in; i++)
    if (w->dtype[i] != TN_ANY) r->map[node.in[i]] = precision_cast(r, p, node.in[i], w->dtype[i]);
  tn_status status = tn_build_status(r->b);
  if (status == TN_OK) status = tn_rewrite_copy(r, &node);
  for (int32_t i = node.n_in; i-- > 0;) r->map[node.in[i]] = saved[i];
  precision_restore_results(r, p, &node);
  return status == TN_OK ? tn_build_status(r->b) : status;
}

/* ---- biases in front of a residual ---- */

/* The node that alone uses a value; NULL: there is no such node. Dead nodes do not count. */
static const tn_gnode *precision_only_user(const tn_rewrite *r, const tn_precision_pass *p, tn_val old) {
  const tn_gnode *only = NULL;
  if (p->uses.outside[old] != 0) return NULL;
  for (int32_t i = p->uses.start[old]; i < p->uses.start[old + 1]; i++) {
    uint32_t user = p->uses.node[i];
    if (!r->live[user]) continue;
    if (only != NULL) return NULL;
    only = &r->from->nodes.v[user];
  }
  return only;
}

/* Whether a sum of the old graph reads its operand i in f32, as far as this operand decides. */
static bool precision_is_read_in_f32(const tn_rewrite *r, const tn_precision_pass *p, const tn_gnode *sum,
                                     int32_t i) {
  tn_val old = sum->in[i];
  bool decides = sum->first_out >= p->begin && sum->first_out < p->end;
  int32_t dtype = tn_graph_type(r->from, old)->dtype;
  if (decides) dtype = precision_call_policy(p->settings, sum, i, dtype);
  if (dtype == TN_ANY && r->map[old] != 0) dtype = tn_val_type(r->b, r->map[old])->dtype;
  return dtype == TN_F32;
}

/* Whether a product in 16 bits has a bias in f32, and its result is used once: in f32, in a sum with a value
 * of the same dims that precedes it. */
static bool precision_widens_bias(const tn_rewrite *r, const tn_precision_pass *p, const tn_gnode *node,
                                  const tn_operand_types *w) {
  if (!tn_graph_is(r->from, node->first_out, "matmul") || node->n_in < 3 || node->in[2] == 0) return false;
  const tn_gnode *sum = precision_only_user(r, p, node->first_out);
  if (tn_dtype_size(w->dtype[2]) != 2 || tn_val_type(r->b, r->map[node->in[2]])->dtype != TN_F32)
    return false;
  if (sum == NULL || !tn_graph_is(r->from, sum->first_out, "add")) return false;
  int32_t side = sum->in[0] == node->first_out ? 0 : 1;
  const tn_type *residual = tn_graph_type(r->from, sum->in[1 - side]);
  return r->map[sum->in[1 - side]] != 0 &&
         tn_type_same_dims(residual, tn_graph_type(r->from, node->first_out)) &&
         (precision_is_read_in_f32(r, p, sum, side) || precision_is_read_in_f32(r, p, sum, 1 - side));
}

/* y = cast(matmul(a, b)) + bias */
static tn_status precision_widen_bias(tn_rewrite *r, tn_precision_pass *p, const tn_gnode *node,
                                      const tn_operand_types *w, tn_val *saved) {
  tn_gnode plain = *node;
  tn_val in[] = {node->in[0], node->in[1]};
  plain.in = in;
  plain.n_in = 2;
  TN_TRY(precision_copy_node(r, p, plain, w, saved));
  tn_val wide = tn_to_dtype(r->b, r->map[node->first_out], TN_F32);
  r->map[node->first_out] = tn_add(r->b, wide, r->map[node->in[2]]);
  return tn_build_status(r->b);
}

/* ---- loops ---- */

static tn_status precision_rewrite_body(tn_rewrite *r, const tn_precision_pass *p, const tn_gnode *node,
                                        const tn_val *in, tn_graph **body) {
  tn_loop_parts parts = {0};
  bool decides = node->first_out >= p->begin && node->first_out < p->end;
  if (decides) TN_TRY(tn_pass_precision(r->from->env, p->settings, 1, (tn_val)(*body)->values.n, body));
  tn_status status = tn_loop_parts_of(r->b, *body, node->attributes, in, node->n_in, &parts);
  tn_val first = status == TN_OK ? tn_loop_emit(r->b, &parts) : 0;
  for (int32_t i = 0; i < node->n_out; i++) r->map[node->first_out + (tn_val)i] = first + (tn_val)i;
  tn_loop_parts_free(r->from->env, &parts);
  return status == TN_OK ? tn_build_status(r->b) : status;
}

static tn_status precision_rewrite_loop(tn_rewrite *r, tn_precision_pass *p, const tn_gnode *node) {
  tn_graph *body = NULL;
  tn_env *env = r->from->env;
  tn_val *in = tn_alloc(env, tn_size_mul((size_t)node->n_in, sizeof *in));
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_in; i++) {
    bool is_float = precision_is_float_operand(r->from, node, i);
    in[i] = is_float ? precision_cast(r, p, node->in[i], tn_graph_type(r->from, node->in[i])->dtype)
                     : r->map[node->in[i]];
  }
  tn_status status = tn_build_status(r->b);
  if (status == TN_OK) status = tn_loop_parse(env, r->from->ops, node->attributes, &body);
  if (status == TN_OK) status = precision_rewrite_body(r, p, node, in, &body);
  tn_graph_destroy(body);
  tn_release(env, in);
  return status;
}

/* ---- the pass ---- */

static tn_status precision_rewrite_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  tn_precision_pass *p = context;
  const void *handle = r->from->env;
  size_t n = (size_t)node->n_in;
  if (tn_is_loop(node)) return precision_rewrite_loop(r, p, node);
  if (n == 0) return tn_rewrite_copy(r, node);
  tn_operand_types w = {tn_alloc(handle, tn_size_mul(n, sizeof *w.dtype)),
                        tn_alloc(handle, tn_size_mul(n, sizeof *w.optional)), false};
  tn_val *saved = tn_alloc(handle, tn_size_mul(n, sizeof *saved));
  tn_status status = w.dtype && w.optional && saved ? precision_choose_types(r, p, node, &w) : TN_ENOMEM;
  if (status == TN_OK)
    status = precision_widens_bias(r, p, node, &w) ? precision_widen_bias(r, p, node, &w, saved)
                                                   : precision_copy_node(r, p, *node, &w, saved);
  tn_release(handle, w.dtype);
  tn_release(handle, w.optional);
  tn_release(handle, saved);
  return status;
}

static void precision_mark_leaving(const tn_graph *g, size_t n_outputs, bool *leaves) {
  for (size_t i = 0; i < n_outputs; i++) leaves[g->outputs.v[i].value] = true;
  for (size_t i = 0; i < g->commits.n; i++) leaves[g->commits.v[i].value] = true;
}

/* The outputs from number `n_outputs` on keep the dtypes in which they are computed. */
static tn_status precision_rewrite_graph(tn_env *env, const tn_settings *settings, tn_val begin, tn_val end,
                                         size_t n_outputs, tn_graph **graph) {
  tn_graph *from = *graph, *to = NULL;
  if (settings->precision == NULL || !precision_changes_graph(settings, from, begin, end)) return TN_OK;
  tn_arena arena = tn_arena_new(env);
  size_t n = from->values.n;
  bool *leaves = tn_arena_alloc(&arena, n);
  tn_precision_pass p = {.settings = settings,
                         .begin = begin,
                         .end = end,
                         .cast = tn_arena_alloc(&arena, tn_size_mul(n, TN_DTYPES * sizeof *p.cast)),
                         .leaves = leaves};
  tn_status status = leaves && p.cast ? tn_uses_create(&arena, from, &p.uses) : TN_ENOMEM;
  if (status == TN_OK) {
    precision_mark_leaving(from, n_outputs, leaves);
    status = tn_graph_rewrite(from, precision_rewrite_node, &p, &to);
  }
  tn_arena_free(&arena);
  if (status != TN_OK) return tn_wrap(env, status, "precision policy '%s'", settings->precision->item.name);
  tn_graph_destroy(from);
  *graph = to;
  return TN_OK;
}

tn_status tn_pass_precision(tn_env *env, const tn_settings *settings, tn_val begin, tn_val end,
                            tn_graph **graph) {
  return precision_rewrite_graph(env, settings, begin, end, (*graph)->outputs.n, graph);
}

tn_status tn_training_add_outputs(const tn_training_graph *t) {
  tn_graph *graph = t->model->graph;
  if (t->scale) TN_TRY(tn_graph_output(graph, "scale of the loss", t->scale));
  for (int32_t i = 0; i < t->n_params; i++)
    TN_TRY(tn_graph_output(graph, tn_arena_printf(t->arena, "gradient of %s", t->params[i].state->path),
                           t->params[i].gradient));
  return TN_OK;
}

void tn_training_take_outputs(tn_training_graph *t, size_t first) {
  tn_graph *graph = t->model->graph;
  size_t gradients = first + (t->scale != 0);
  if (t->scale) t->scale = graph->outputs.v[first].value;
  for (int32_t i = 0; i < t->n_params; i++)
    t->params[i].gradient = graph->outputs.v[gradients + (size_t)i].value;
  graph->outputs.n = first;
}

tn_status tn_training_precision(tn_training_graph *t) {
  size_t first = t->model->graph->outputs.n;
  TN_TRY(tn_training_add_outputs(t));
  TN_TRY(precision_rewrite_graph(t->env, t->settings, t->model->first_value,
                                 (tn_val)t->model->graph->values.n, first + (t->scale != 0),
                                 &t->model->graph));
  tn_training_take_outputs(t, first);
  return TN_OK;
}

/* core/train/graphs/precision.c: pass `precision`: the policy decides in which type every float operand of
 * every op arrives; casts are nodes. Operands that a schema ties to one dtype get the widest of what
 * was decided for them. What leaves the graph, into state or outputs, has its old type again.
 *
 * A parameter in another type is derived state (derived.h), cast once an update, not once a use. */
#include <math.h>
#include <string.h>

#include "core/config/options/options.h"
#include "core/graph/op/attributes.h"
#include "core/graph/op/schema.h"
#include "core/graph/input_state.h"
#include "core/train/graphs/low_precision_copies.h"
#include "core/train/graphs/training_graph.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

typedef struct tn_precise {
  const tn_settings *settings;
  size_t end;         /* the first node that the policy is not asked about */
  tn_val *cast;       /* [value * TN_DTYPES + dtype]: made before; 0: not yet */
  const bool *leaves; /* per old value: an output, a commit or a predicate */
} tn_precise;

/* What the operands of a node are to be. */
typedef struct tn_wanted {
  int32_t *dtype; /* TN_ANY where an operand is no float */
  bool *yields;   /* constants about which the policy has no opinion */
  bool tf32;      /* of a product: operands may be rounded */
} tn_wanted;

static int32_t decide(const tn_settings *s, const tn_gnode *node, int32_t index, int32_t dtype) {
  tn_precision_site site = {sizeof site, node->op->item.name, node->op->op_class, false, index, dtype};
  return s->precision->decide(s->precision_options, &site);
}

static bool is_float_operand(const tn_graph *g, const tn_gnode *node, int32_t i) {
  return node->in[i] != 0 && tn_dtype_is_float(tn_graph_type(g, node->in[i])->dtype);
}

static bool changes_node(const tn_settings *s, const tn_graph *g, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_in; i++) {
    int32_t dtype = is_float_operand(g, node, i) ? tn_graph_type(g, node->in[i])->dtype : TN_ANY;
    if (dtype != TN_ANY && decide(s, node, i, dtype) != dtype) return true;
  }
  return false;
}

/* Whether the policy wants anything else than the graph has. */
static bool changes(const tn_settings *s, const tn_graph *g, size_t end) {
  for (size_t i = 0; i < g->nodes.n && i < end; i++)
    if (changes_node(s, g, &g->nodes.v[i])) return true;
  return false;
}

/* ---- what an operand is to be ---- */

/* The wider of two float types; f16 and bf16, of which neither holds the other, meet in f32. */
static int32_t widest(int32_t a, int32_t b) {
  if (a == TN_ANY || a == b) return b;
  if (b == TN_ANY) return a;
  if (a < TN_F32 && b < TN_F32) return TN_F32;
  return a > b ? a : b;
}

static tn_status check_decision(const tn_rewrite *r, const tn_gnode *node, int32_t i, int32_t dtype) {
  if (dtype == TN_ANY || tn_dtype_is_float(dtype)) return TN_OK;
  if (dtype == TN_PRECISION_TF32 && tn_graph_type(r->from, node->in[i])->dtype == TN_F32) return TN_OK;
  return tn_failf(
      r->from->env, TN_EINVAL,
      "operand %d of %s shall be %s (%d), expected f16, bf16, f32, f64, tf32 (of an f32 operand), "
      "or any to leave it",
      i, node->op->item.name, tn_dtype_name(dtype), dtype);
}

/* The value of a constant, of any shape. */
static bool is_constant(const tn_graph *g, tn_val v, double *value) {
  if (!tn_graph_is(g, v, "full")) return false;
  *value = ((const tn_full_attributes *)tn_graph_maker(g, v)->attributes)->value;
  return true;
}

/* Whether a type holds a number with the digits that it has for ordinary ones. */
static bool holds(int32_t dtype, double value) {
  double size = fabs(value);
  if (value == 0 || !isfinite(value)) return true;
  if (dtype == TN_F16) return size <= 65504.0 && size >= 0x1p-14;
  return dtype == TN_F64 || (size <= 3.3895e38 && size >= 0x1p-126);
}

/* What the policy says of operand i, before its neighbours have their say. */
static tn_status ask(const tn_rewrite *r, const tn_precise *p, const tn_gnode *node, int32_t i,
                     tn_wanted *w) {
  double value;
  w->dtype[i] = TN_ANY;
  if (!is_float_operand(r->from, node, i)) return TN_OK;
  int32_t dtype = tn_graph_type(r->from, node->in[i])->dtype;
  if ((size_t)(node - r->from->nodes.v) >= p->end) return w->dtype[i] = dtype, TN_OK;
  int32_t said = decide(p->settings, node, i, dtype);
  TN_TRY(check_decision(r, node, i, said));
  w->tf32 |= said == TN_PRECISION_TF32;
  w->yields[i] = said == TN_ANY && is_constant(r->from, node->in[i], &value);
  if (said == TN_PRECISION_TF32) said = TN_F32;
  w->dtype[i] = said != TN_ANY ? said : tn_val_type(r->b, r->map[node->in[i]])->dtype;
  return TN_OK;
}

/* The types that letters of the schema stand for: constants only widen what does not hold them. */
static void tie(const tn_rewrite *r, const tn_gnode *node, const tn_wanted *w,
                int32_t tied[TN_SCHEMA_LETTERS]) {
  for (int32_t yielding = 0; yielding < 2; yielding++)
    for (int32_t i = 0; i < node->n_in; i++) {
      char letter = tn_op_def_operand(node->def, i)->letter;
      int32_t *of = letter ? &tied[letter - 'A'] : NULL;
      double value;
      if (!of || w->dtype[i] == TN_ANY || w->yields[i] != yielding) continue;
      if (yielding && *of && is_constant(r->from, node->in[i], &value) && holds(*of, value)) continue;
      *of = widest(*of, w->dtype[i]);
    }
}

/* A type that the schema has there; otherwise the old one. */
static int32_t allowed(const tn_rewrite *r, const tn_gnode *node, int32_t i, int32_t dtype) {
  const tn_operand_def *def = tn_op_def_operand(node->def, i);
  int32_t old = tn_graph_type(r->from, node->in[i])->dtype;
  if (def->letter) return node->def->dtypes[def->letter - 'A'] >> dtype & 1 ? dtype : old;
  return def->dtype == TN_ANY || def->dtype == dtype ? dtype : old;
}

static tn_status settle(const tn_rewrite *r, const tn_precise *p, const tn_gnode *node, tn_wanted *w) {
  int32_t tied[TN_SCHEMA_LETTERS] = {0};
  for (int32_t i = 0; i < node->n_in; i++) TN_TRY(ask(r, p, node, i, w));
  tie(r, node, w, tied);
  for (int32_t i = 0; i < node->n_in; i++) {
    char letter = tn_op_def_operand(node->def, i)->letter;
    if (w->dtype[i] == TN_ANY) continue;
    if (letter) w->dtype[i] = tied[letter - 'A'];
    w->dtype[i] = allowed(r, node, i, w->dtype[i]);
  }
  return TN_OK;
}

/* ---- casts ---- */

/* What `v` was widened from, if that was of `dtype`; 0: it was not. */
static tn_val widened_from(const tn_graph *g, tn_val v, int32_t dtype) {
  if (!tn_graph_is(g, v, "cast") || tn_dtype_size(dtype) >= tn_dtype_size(tn_graph_type(g, v)->dtype))
    return 0;
  tn_val narrow = tn_graph_maker(g, v)->in[0];
  return tn_graph_type(g, narrow)->dtype == dtype ? narrow : 0;
}

static bool is_param(const tn_graph *g, tn_val v) {
  const tn_gnode *node = tn_graph_maker(g, v);
  return node->op == &tn_op_state &&
         ((const tn_state_attributes *)node->attributes)->what + 1 == TN_STATE_PARAM;
}

static tn_val make_cast(tn_rewrite *r, tn_val old, int32_t dtype) {
  tn_val now = r->map[old], narrow = widened_from(tn_builder_graph(r->b), now, dtype);
  double value;
  if (narrow) return narrow;
  tn_type type = *tn_graph_type(r->from, old);
  bool low = tn_dtype_size(dtype) < tn_dtype_size(type.dtype);
  if (low && is_param(r->from, old)) {
    tn_val copy = tn_derived_read(tn_builder_graph(r->b), r->from, old, dtype);
    if (!copy) tn_builder_fail(r->b, r->from->env->record->code);
    return copy;
  }
  type.dtype = dtype;
  return is_constant(r->from, old, &value) ? tn_full(r->b, &type, value) : tn_cast(r->b, now, dtype);
}

static tn_val cast_to(tn_rewrite *r, tn_precise *p, tn_val old, int32_t dtype) {
  tn_val now = r->map[old], *known = &p->cast[(size_t)old * TN_DTYPES + (size_t)dtype];
  if (tn_val_type(r->b, now)->dtype == dtype) return now;
  if (!*known) *known = make_cast(r, old, dtype);
  return *known;
}

/* Values that leave keep the type that their state or reader expects. */
static void restore_results(tn_rewrite *r, const tn_precise *p, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val old = node->first_out + (tn_val)i;
    int32_t dtype = tn_graph_type(r->from, old)->dtype;
    if (p->leaves[old] && tn_dtype_is_float(dtype)) r->map[old] = tn_cast(r->b, r->map[old], dtype);
  }
}

/* The attributes of a node with `math = tf32`, if its op knows that. */
static tn_status allow_tf32(tn_graph *to, tn_gnode *node) {
  const tn_option *math = tn_options_find(&node->op->item, "math");
  if (!math || math->type != TN_OPT_ENUM) return TN_OK;
  char *attributes = tn_attributes_copy(&to->arena, &node->op->item, node->attributes);
  if (!attributes) return TN_ENOMEM;
  *(int32_t *)(void *)(attributes + math->offset) = TN_MATH_TF32;
  node->attributes = attributes;
  return TN_OK;
}

/* The copy reads its operands through the map, so the casts stand there while it is made. */
static tn_status copy_node(tn_rewrite *r, tn_precise *p, tn_gnode node, const tn_wanted *w, tn_val *kept) {
  if (w->tf32) TN_TRY(allow_tf32(tn_builder_graph(r->b), &node));
  for (int32_t i = 0; i < node.n_in; i++) kept[i] = r->map[node.in[i]];
  for (int32_t i = 0; i < node.n_in; i++)
    if (w->dtype[i] != TN_ANY) r->map[node.in[i]] = cast_to(r, p, node.in[i], w->dtype[i]);
  tn_status status = tn_build_status(r->b);
  if (status == TN_OK) status = tn_rewrite_copy(r, &node);
  for (int32_t i = node.n_in; i-- > 0;) r->map[node.in[i]] = kept[i];
  restore_results(r, p, &node);
  return status == TN_OK ? tn_build_status(r->b) : status;
}

static tn_status rewrite_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  tn_precise *p = context;
  const void *handle = r->from->env;
  size_t n = (size_t)node->n_in;
  if (n == 0) return tn_rewrite_copy(r, node);
  tn_wanted w = {tn_alloc(handle, tn_size_mul(n, sizeof *w.dtype)),
                 tn_alloc(handle, tn_size_mul(n, sizeof *w.yields)), false};
  tn_val *kept = tn_alloc(handle, tn_size_mul(n, sizeof *kept));
  tn_status status = w.dtype && w.yields && kept ? settle(r, p, node, &w) : TN_ENOMEM;
  if (status == TN_OK) status = copy_node(r, p, *node, &w, kept);
  tn_release(handle, w.dtype);
  tn_release(handle, w.yields);
  tn_release(handle, kept);
  return status;
}

static void mark_leaving(const tn_graph *g, bool *leaves) {
  for (size_t i = 0; i < g->outputs.n; i++) leaves[g->outputs.v[i].value] = true;
  for (size_t i = 0; i < g->commits.n; i++) leaves[g->commits.v[i].value] = true;
}

tn_status tn_pass_precision(tn_env *env, const tn_settings *settings, size_t end, tn_graph **graph) {
  tn_graph *from = *graph, *to = NULL;
  if (!changes(settings, from, end)) return TN_OK;
  bool *leaves = tn_alloc(env, from->values.n);
  tn_precise p = {settings, end, tn_alloc(env, tn_size_mul(from->values.n, TN_DTYPES * sizeof *p.cast)),
                  leaves};
  tn_status status = leaves && p.cast ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) {
    mark_leaving(from, leaves);
    status = tn_graph_rewrite(from, rewrite_node, &p, &to);
  }
  tn_release(env, leaves);
  tn_release(env, p.cast);
  if (status != TN_OK) return tn_wrap(env, status, "precision policy '%s'", settings->precision->item.name);
  tn_graph_destroy(from);
  *graph = to;
  return TN_OK;
}

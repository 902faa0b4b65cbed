/* core/train/precision.c: pass `precision`: the policy decides in which type every float operand of
 * every op arrives; casts are nodes. Operands that a schema ties to one dtype get the widest of what
 * was decided for them. What leaves the graph, into state or outputs, has its old type again. */
#include "core/graph/schema.h"
#include "core/train/update.h"

#include <string.h>

#include "tenon/ops.h"

typedef struct tn_precise {
  const tn_settings *settings;
  tn_val *cast;       /* [value * TN_DTYPES + dtype]: made before; 0: not yet */
  const bool *leaves; /* per old value: an output, a commit or a predicate */
} tn_precise;

static int32_t decide(const tn_settings *s, const tn_gnode *node, bool is_result, int32_t index,
                      int32_t dtype) {
  tn_precision_site site = {sizeof site, node->op->item.name, node->op->klass, is_result, index, dtype};
  return s->precision->decide(s->precision_options, &site);
}

static bool is_float_operand(const tn_graph *g, const tn_gnode *node, int32_t i) {
  return node->in[i] != 0 && tn_dtype_is_float(tn_graph_type(g, node->in[i])->dtype);
}

static bool changes_node(const tn_settings *s, const tn_graph *g, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_in; i++) {
    int32_t dtype = is_float_operand(g, node, i) ? tn_graph_type(g, node->in[i])->dtype : TN_ANY;
    if (dtype != TN_ANY && decide(s, node, false, i, dtype) != dtype) return true;
  }
  return false;
}

/* Whether the policy wants anything else than the graph has. */
static bool changes(const tn_settings *s, const tn_graph *g) {
  for (size_t i = 0; i < g->nodes.n; i++)
    if (changes_node(s, g, &g->nodes.v[i])) return true;
  return false;
}

/* The wider of two float types; f16 and bf16, of which neither holds the other, meet in f32. */
static int32_t widest(int32_t a, int32_t b) {
  if (a == TN_ANY || a == b) return b;
  if (b == TN_ANY) return a;
  if (a < TN_F32 && b < TN_F32) return TN_F32;
  return a > b ? a : b;
}

static tn_status check_decision(const tn_rewrite *r, const tn_gnode *node, int32_t i, int32_t dtype) {
  if (dtype == TN_ANY || tn_dtype_is_float(dtype)) return TN_OK;
  return tn_failf(r->from->env, TN_EINVAL,
                  "operand %d of %s shall be %s (%d), expected f16, bf16, f32, f64, or any to leave it", i,
                  node->op->item.name, tn_dtype_name(dtype), dtype);
}

/* What each operand of a node is to be: `wanted` per operand, TN_ANY where it is no float. */
static tn_status settle(const tn_rewrite *r, const tn_settings *s, const tn_gnode *node, int32_t *wanted) {
  int32_t tied[TN_SCHEMA_LETTERS] = {0};
  for (int32_t i = 0; i < node->n_in; i++) {
    const tn_operand_def *def = tn_op_def_operand(node->def, i);
    wanted[i] = TN_ANY;
    if (!is_float_operand(r->from, node, i)) continue;
    wanted[i] = decide(s, node, false, i, tn_graph_type(r->from, node->in[i])->dtype);
    TN_TRY(check_decision(r, node, i, wanted[i]));
    if (wanted[i] == TN_ANY) wanted[i] = tn_type_of(r->b, r->map[node->in[i]])->dtype;
    if (def->letter) tied[def->letter - 'A'] = widest(tied[def->letter - 'A'], wanted[i]);
  }
  for (int32_t i = 0; i < node->n_in; i++) {
    char letter = tn_op_def_operand(node->def, i)->letter;
    if (wanted[i] != TN_ANY && letter) wanted[i] = tied[letter - 'A'];
  }
  return TN_OK;
}

static tn_val cast_to(tn_rewrite *r, tn_precise *p, tn_val old, int32_t dtype) {
  tn_val now = r->map[old], *known = &p->cast[(size_t)old * TN_DTYPES + (size_t)dtype];
  if (tn_type_of(r->b, now)->dtype == dtype) return now;
  if (!*known) *known = tn_cast(r->b, now, dtype);
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

static tn_status rewrite_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  tn_precise *p = context;
  const void *handle = r->from->env;
  if (node->n_in == 0) return tn_rewrite_copy(r, node);
  int32_t *wanted = tn_alloc(handle, tn_size_mul((size_t)node->n_in, sizeof *wanted));
  tn_val *kept = tn_alloc(handle, tn_size_mul((size_t)node->n_in, sizeof *kept));
  tn_status status = wanted && kept ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = settle(r, p->settings, node, wanted);
  if (status == TN_OK) {
    /* the copy reads its operands through the map, so the casts stand there while it is made */
    for (int32_t i = 0; i < node->n_in; i++) kept[i] = r->map[node->in[i]];
    for (int32_t i = 0; i < node->n_in; i++)
      if (wanted[i] != TN_ANY) r->map[node->in[i]] = cast_to(r, p, node->in[i], wanted[i]);
    status = tn_rewrite_copy(r, node);
    for (int32_t i = node->n_in; i-- > 0;) r->map[node->in[i]] = kept[i];
    restore_results(r, p, node);
  }
  tn_release(handle, wanted);
  tn_release(handle, kept);
  return status == TN_OK ? tn_build_status(r->b) : status;
}

static void mark_leaving(const tn_graph *g, bool *leaves) {
  for (size_t i = 0; i < g->outputs.n; i++) leaves[g->outputs.v[i].value] = true;
  for (size_t i = 0; i < g->commits.n; i++) leaves[g->commits.v[i].value] = true;
}

tn_status tn_pass_precision(tn_env *env, const tn_settings *settings, tn_graph **graph) {
  tn_graph *from = *graph, *to = NULL;
  if (!changes(settings, from)) return TN_OK;
  bool *leaves = tn_alloc(env, from->values.n);
  tn_precise p = {settings, tn_alloc(env, tn_size_mul(from->values.n, TN_DTYPES * sizeof *p.cast)), leaves};
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

/* core/conformance/reference/reference.c: evaluates a graph of primitives node by node. */
#include "core/conformance/reference/reference.h"

#include <string.h>

#include "core/graph/input_state.h"
#include "core/graph/rewrite/widen.h"
#include "tenon/random.h"

enum { STREAM_ROUNDING = 3 }; /* beside those of a draw (cases.h) */

struct tn_reference {
  tn_graph *graph; /* primitives only */
  double **data;   /* by value */
  bool rounds;     /* results are rounded to their dtype */
  int32_t wider;   /* floats narrower than this dtype are disturbed, where `disturbs` is not 0 */
  uint64_t disturbs;
  tn_rng rng; /* of a run that disturbs */
  tn_env *env;
};

/* ---- lowering ---- */

static tn_status reference_lower_node(tn_rewrite *r, const tn_gnode *node, void *changed) {
  if (!tn_op_is_composite(node->op) && !tn_node_widens(r->from, node->def, node->in, node->n_in))
    return tn_rewrite_copy(r, node);
  tn_val in[TN_REFERENCE_OPERANDS], out[TN_REFERENCE_RESULTS];
  for (int32_t i = 0; i < node->n_in; i++) in[i] = node->in[i] == 0 ? 0 : r->map[node->in[i]];
  TN_TRY(tn_decompose(r->b, node->def, node->attributes, in, node->n_in, node->n_out, out));
  for (int32_t i = 0; i < node->n_out; i++) r->map[node->first_out + i] = out[i];
  *(bool *)changed = true;
  return TN_OK;
}

/* A decomposition may contain composite ops, so this repeats until only primitives are left. */
static tn_status lower_all(const tn_graph *graph, tn_graph **lowered) {
  bool changed = false;
  tn_graph *now = NULL;
  TN_TRY(tn_graph_rewrite(graph, reference_lower_node, &changed, &now));
  while (changed) {
    tn_graph *next = NULL;
    changed = false;
    tn_status status = tn_graph_rewrite(now, reference_lower_node, &changed, &next);
    tn_graph_destroy(now);
    if (status != TN_OK) return status;
    now = next;
  }
  *lowered = now;
  return TN_OK;
}

/* ---- life ---- */

tn_status tn_reference_create(const tn_graph *graph, tn_reference **made) {
  tn_reference *r = tn_alloc(graph->env, sizeof *r);
  *made = NULL;
  if (r == NULL) return TN_ENOMEM;
  r->env = graph->env;
  tn_status status = lower_all(graph, &r->graph);
  if (status == TN_OK) {
    r->data = tn_alloc(r->env, r->graph->values.n * sizeof *r->data);
    if (r->data == NULL) status = TN_ENOMEM;
  }
  for (size_t v = 1; status == TN_OK && v < r->graph->values.n; v++) {
    size_t count = (size_t)tn_type_count(&r->graph->values.v[v].type);
    r->data[v] = tn_alloc(r->env, (count + 1) * sizeof(double));
    if (r->data[v] == NULL) status = TN_ENOMEM;
  }
  if (status != TN_OK)
    tn_reference_destroy(r);
  else
    *made = r;
  return status;
}

void tn_reference_destroy(tn_reference *r) {
  if (r == NULL) return;
  for (size_t v = 1; r->data != NULL && v < r->graph->values.n; v++) tn_release(r->env, r->data[v]);
  tn_release(r->env, r->data);
  tn_graph_destroy(r->graph);
  tn_release(r->env, r);
}

double *tn_reference_input(tn_reference *r, const char *name) {
  for (size_t i = 0; i < r->graph->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(r->graph, r->graph->inputs.v[i])->attributes;
    if (strcmp(a->name, name) == 0) return r->data[r->graph->inputs.v[i]];
  }
  return NULL;
}

const double *tn_reference_output(const tn_reference *r, const char *name, tn_type *type) {
  tn_val v = tn_graph_find_output(r->graph, name);
  if (v == 0) return NULL;
  if (type != NULL) *type = *tn_graph_type(r->graph, v);
  return r->data[v];
}

/* ---- running ---- */

static const tn_reference_op *find_reference_op(const char *name) {
  const tn_reference_op *const tables[] = {tn_reference_pointwise_ops, tn_reference_reduce_ops,
                                           tn_reference_product_ops,   tn_reference_movement_ops,
                                           tn_reference_index_ops,     tn_reference_recurrence_ops,
                                           tn_reference_alignment_ops};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const tn_reference_op *op = tables[t]; op->name != NULL; op++)
      if (strcmp(op->name, name) == 0) return op;
  return NULL;
}

static void round_results(const tn_reference_call *c) {
  for (int32_t i = 0; i < c->n_out; i++)
    for (int64_t k = 0; k < tn_type_count(c->out[i]); k++)
      c->y[i][k] = tn_reference_round(c->out[i]->dtype, c->y[i][k]);
}

/* ---- roundings drawn anew ---- */

/* One rounding, relative to the number; 0: no float. */
static double reference_epsilon(int32_t dtype) {
  return dtype == TN_BF16 ? 0x1p-8 : dtype == TN_F16 ? 0x1p-11 : dtype == TN_F32 ? 0x1p-24 : 0;
}

static bool reference_is_narrower(int32_t dtype, int32_t than) {
  return reference_epsilon(dtype) > 0 && tn_dtype_size(dtype) < tn_dtype_size(than);
}

void tn_reference_disturb(tn_reference *r, int32_t dtype, uint64_t seed) {
  r->wider = dtype;
  r->disturbs = seed;
}

bool tn_reference_is_narrow(const tn_reference *r, int32_t dtype) {
  for (size_t v = 1; v < r->graph->values.n; v++)
    if (reference_is_narrower(r->graph->values.v[v].type.dtype, dtype)) return true;
  return false;
}

static void disturb_results(tn_reference *r, const tn_reference_call *c) {
  for (int32_t i = 0; i < c->n_out; i++) {
    int32_t dtype = c->out[i]->dtype;
    if (!reference_is_narrower(dtype, r->wider)) continue;
    for (int64_t k = 0; k < tn_type_count(c->out[i]); k++)
      c->y[i][k] *= 1 + reference_epsilon(dtype) * tn_rng_between(&r->rng, -1, 1);
  }
}

static tn_status reference_run_node(tn_reference *r, const tn_gnode *node) {
  const char *name = node->op->item.name;
  if (strcmp(name, "input") == 0) return TN_OK;
  const tn_reference_op *op = find_reference_op(name);
  if (op == NULL || node->n_in > TN_REFERENCE_OPERANDS || node->n_out > TN_REFERENCE_RESULTS)
    return tn_failf(r->env, TN_EINTERNAL, "the reference lacks the primitive %s", name);
  tn_reference_call c = {.attributes = node->attributes, .n_in = node->n_in, .n_out = node->n_out};
  for (int32_t i = 0; i < node->n_in; i++) {
    c.in[i] = node->in[i] == 0 ? NULL : tn_graph_type(r->graph, node->in[i]);
    c.x[i] = r->data[node->in[i]];
  }
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = node->first_out + (tn_val)i;
    c.out[i] = tn_graph_type(r->graph, v);
    c.y[i] = r->data[v];
    memset(c.y[i], 0, (size_t)tn_type_count(c.out[i]) * sizeof(double));
  }
  op->run(&c);
  if (r->rounds) round_results(&c);
  if (r->disturbs != 0) disturb_results(r, &c);
  return TN_OK;
}

void tn_reference_round_results(tn_reference *r, bool on) { r->rounds = on; }

tn_status tn_reference_run(tn_reference *r) {
  r->rng = tn_rng_at(r->disturbs, STREAM_ROUNDING);
  for (size_t i = 0; i < r->graph->nodes.n; i++) TN_TRY(reference_run_node(r, &r->graph->nodes.v[i]));
  return TN_OK;
}

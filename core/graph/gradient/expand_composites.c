/* core/graph/gradient/expand_composites.c: replaces composite ops without a gradient rule by their
 * decompositions, which can be differentiated. The list of nodes is rebuilt with each decomposition in front
 * of the op that it replaces; values keep their numbers, so numbers held elsewhere stay valid. */
#include "core/graph/build/builder.h"
#include "core/graph/gradient/gradient.h"
#include "core/graph/input_state.h"

/* Decompositions may contain composites; deeper nesting than this is taken for recursion. */
enum { MAX_ROUNDS = 64 };

typedef struct expansion {
  tn_build *b;
  tn_graph *g;
  const bool *on_path; /* for the values of the graph at the start of the round */
  tn_val *map;         /* for the same values: their replacements */
  bool any;
} expansion;

static bool expand_is_needed(const expansion *e, const tn_gnode *node) {
  return !tn_op_has_gradient(node->op) && tn_gradient_passes(node, e->on_path);
}

static tn_status expand_no_gradient(const expansion *e, const tn_gnode *node) {
  const char *where = node->where[0] != '\0' ? node->where : node->layer;
  return tn_failf(e->g->env, TN_EINVAL,
                  "%s%s%s lies between the loss and a parameter, but has neither gradient nor decomposition: "
                  "give it one, "
                  "or mark it TN_OP_NONDIFF",
                  where, where[0] != '\0' ? ": " : "", node->op->item.name);
}

/* Replaces the operands by their map entries. */
static tn_status expand_remap(const expansion *e, tn_gnode *node) {
  bool changes = false;
  for (int32_t i = 0; i < node->n_in; i++) changes |= e->map[node->in[i]] != node->in[i];
  if (!changes) return TN_OK;
  tn_val *in = tn_arena_alloc(&e->g->arena, (size_t)node->n_in * sizeof *in);
  if (in == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_in; i++) in[i] = e->map[node->in[i]];
  node->in = in;
  return TN_OK;
}

/* Emits the decomposition of a node and maps its results. */
static tn_status expand_replace(expansion *e, const tn_gnode *node) {
  tn_graph *g = e->g;
  if (!tn_op_is_composite(node->op)) return expand_no_gradient(e, node);
  const tn_build_frame *outer = tn_builder_frame(e->b);
  tn_build_frame frame = {
      .prefix = node->layer, .where = node->where, .training = outer->training, .seed = outer->seed};
  e->any = true;
  tn_builder_push(e->b, &frame);
  tn_status status = tn_decompose(e->b, node->def, node->attributes, node->in, node->n_in, node->n_out,
                                  &e->map[node->first_out]);
  tn_builder_pop(e->b);
  for (int32_t i = 0; i < node->n_out && status == TN_OK; i++) {
    tn_val old = node->first_out + (tn_val)i, now = e->map[old];
    const char *name = g->values.v[old].name;
    g->values.v[old].name = NULL;
    if (g->values.v[now].name == NULL) g->values.v[now].name = name;
  }
  return status;
}

static tn_status expand_append(tn_graph *g, const tn_gnode *node) {
  TN_TRY(tn_vec_push(g->env, &g->nodes, *node));
  for (int32_t i = 0; i < node->n_out; i++)
    g->values.v[node->first_out + (tn_val)i].node = (uint32_t)g->nodes.n - 1;
  return TN_OK;
}

/* Inputs and states come first, since a decomposition may use any of them. */
static tn_status expand_nodes(expansion *e, const tn_gnode *old, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (tn_op_is_input_or_state(old[i].op)) TN_TRY(expand_append(e->g, &old[i]));
  for (size_t i = 0; i < n; i++) {
    tn_gnode node = old[i];
    if (tn_op_is_input_or_state(node.op)) continue;
    TN_TRY(expand_remap(e, &node));
    if (expand_is_needed(e, &node)) TN_TRY(expand_replace(e, &node));
    TN_TRY(expand_append(e->g, &node));
  }
  for (size_t i = 0; i < e->g->commits.n; i++) {
    e->g->commits.v[i].value = e->map[e->g->commits.v[i].value];
    e->g->commits.v[i].predicate = e->map[e->g->commits.v[i].predicate];
  }
  for (size_t i = 0; i < e->g->outputs.n; i++) e->g->outputs.v[i].value = e->map[e->g->outputs.v[i].value];
  return TN_OK;
}

/* After a failure the graph can only be destroyed: the failure is sticky in its builder. */
static tn_status expand_round(expansion *e) {
  tn_graph *g = e->g;
  size_t n = g->nodes.n;
  bool needed = false;
  for (size_t i = 0; i < n; i++) needed |= expand_is_needed(e, &g->nodes.v[i]);
  if (!needed) return TN_OK;
  tn_gnode *old = g->nodes.v;
  g->nodes.v = NULL;
  g->nodes.n = g->nodes.cap = 0;
  tn_status status = expand_nodes(e, old, n);
  tn_release(g->env, old);
  return status;
}

static tn_status expand_once(tn_build *b, const tn_gradient_ends *ends, tn_val *wrt, int32_t n, bool *again) {
  tn_graph *g = tn_builder_graph(b);
  bool *on_path = NULL;
  size_t n_values = g->values.n;
  TN_TRY(tn_gradient_path(g, ends, wrt, n, &on_path));
  tn_val *map = tn_alloc(g->env, tn_size_mul(n_values, sizeof *map));
  expansion e = {.b = b, .g = g, .on_path = on_path, .map = map};
  tn_status status = map != NULL ? TN_OK : TN_ENOMEM;
  for (size_t v = 0; v < n_values && status == TN_OK; v++) map[v] = (tn_val)v;
  if (status == TN_OK) status = expand_round(&e);
  for (int32_t i = 0; i < ends->n && status == TN_OK; i++) ends->v[i] = map[ends->v[i]];
  for (int32_t i = 0; i < n && status == TN_OK; i++) wrt[i] = map[wrt[i]];
  *again = e.any;
  tn_release(g->env, map);
  tn_release(g->env, on_path);
  return status;
}

tn_status tn_expand_between(tn_build *b, const tn_gradient_ends *ends, tn_val *wrt, int32_t n) {
  tn_status status = tn_build_status(b);
  bool again = true;
  for (int32_t round = 0; again && status == TN_OK; round++) {
    if (round == MAX_ROUNDS)
      status =
          tn_failf(b, TN_EINVAL, "differentiate: decompositions nest over %d deep, one must contain itself",
                   MAX_ROUNDS);
    else
      status = expand_once(b, ends, wrt, n, &again);
  }
  tn_builder_fail(b, status);
  return status;
}

tn_status tn_expand_for_gradient(tn_build *b, tn_val *loss, tn_val *wrt, int32_t n) {
  const tn_gradient_ends ends = {loss, 1};
  return tn_expand_between(b, &ends, wrt, n);
}

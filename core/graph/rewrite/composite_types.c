/* core/graph/rewrite/composite_types.c: types of results from decompositions. */
#include "core/graph/rewrite/composite_types.h"

#include <stdio.h>

#include "core/graph/build/builder.h"

enum { DEEPEST = 64 };

/* An input for each operand that is present. */
static tn_status composite_add_inputs(tn_graph *g, const tn_type *const *in, int32_t n_in, tn_val *values) {
  char name[16];
  for (int32_t i = 0; i < n_in; i++) {
    snprintf(name, sizeof name, "%d", i);
    values[i] = in[i] != NULL ? tn_graph_input(g, name, in[i]) : 0;
    if (in[i] != NULL && values[i] == 0) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status composite_emit(tn_graph *g, const tn_op_def *def, const void *attributes, tn_val *values,
                                int32_t n_in) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(g, &builder));
  tn_build *b = tn_builder_handle(builder);
  const tn_build_frame frame = {.in = values,
                                .n_in = n_in,
                                .yielded = values + n_in,
                                .n_yield = def->n_results,
                                .prefix = "",
                                .where = ""};
  tn_builder_push(b, &frame);
  tn_status status = def->op->decompose(b, attributes);
  if (tn_build_status(b) != TN_OK) status = tn_build_status(b);
  tn_builder_pop(b);
  if (status == TN_OK) status = tn_build_status(b);
  tn_builder_destroy(builder);
  return tn_wrap(g->env, status, "%s", def->op->item.name);
}

static tn_status composite_read(const tn_graph *g, const tn_op_def *def, const tn_val *yielded,
                                tn_type *out) {
  for (int32_t i = 0; i < def->n_results; i++) {
    if (yielded[i] == 0)
      return tn_failf(g->env, TN_EINTERNAL, "%s: the decomposition does not yield result %s",
                      def->op->item.name, def->results[i].name);
    out[i] = *tn_graph_type(g, yielded[i]);
  }
  return TN_OK;
}

tn_status tn_composite_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                             const tn_type *const *in, int32_t n_in, tn_type *out) {
  tn_env own = *env;
  tn_graph *g = NULL;
  if (*def->nesting >= DEEPEST)
    return tn_failf(env, TN_EINVAL, "decompositions nest over %d deep, one must contain itself", DEEPEST);
  tn_val *values = tn_alloc(env, (size_t)(n_in + def->n_results) * sizeof *values);
  tn_status status = values == NULL ? TN_ENOMEM : tn_graph_create(&own, def->ops, &g);
  if (status == TN_OK) status = composite_add_inputs(g, in, n_in, values);
  ++*def->nesting;
  if (status == TN_OK) status = composite_emit(g, def, attributes, values, n_in);
  --*def->nesting;
  if (status == TN_OK) status = composite_read(g, def, values + n_in, out);
  tn_graph_destroy(g);
  tn_release(env, values);
  return status;
}

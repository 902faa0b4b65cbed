/* core/graph/rewrite/decompose.c: emits the decomposition of a composite op. */
#include "core/graph/build/builder.h"
#include "core/graph/build/emit_formula.h"
#include "core/graph/rewrite/widen.h"

static tn_status decompose_emit(tn_build *b, const tn_op_def *def, const void *attributes, const tn_val *in,
                                int32_t n_in) {
  if (tn_node_widens(tn_builder_graph(b), def, in, n_in)) return tn_widen(b, def, attributes, in, n_in);
  if (def->formula.text != NULL) return tn_formula_emit(b, &def->formula, attributes);
  if (def->op->decompose != NULL) return def->op->decompose(b, attributes);
  return tn_failf(b, TN_EINVAL, "the op is primitive: it has no decomposition");
}

static tn_status decompose_check_yields(tn_build *b, const tn_op_def *def, const tn_val *out) {
  for (int32_t i = 0; i < def->n_results; i++)
    if (out[i] == 0) return tn_failf(b, TN_EINTERNAL, "result %s was not yielded", def->results[i].name);
  return TN_OK;
}

/* The results must have the types that the op infers. */
static tn_status decompose_check_results(tn_build *b, const tn_op_def *def, const void *attributes,
                                         const tn_val *in, int32_t n_in, const tn_val *out) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_graph *g = tn_builder_graph(b);
  TN_TRY(decompose_check_yields(b, def, out));
  if (tn_op_infers_by_decomposition(def->op)) return TN_OK;
  tn_type *expected = tn_alloc(b, (size_t)def->n_results * sizeof *expected);
  if (expected == NULL) return TN_ENOMEM;
  tn_status status = tn_graph_infer(g, def, attributes, in, n_in, expected);
  for (int32_t i = 0; i < def->n_results && status == TN_OK; i++)
    if (!tn_type_equal(tn_graph_type(g, out[i]), &expected[i]))
      status = tn_failf(b, TN_EINTERNAL, "result %s was yielded as %s, expected %s", def->results[i].name,
                        tn_type_format(tn_graph_type(g, out[i]), one), tn_type_format(&expected[i], other));
  tn_release(b, expected);
  return status;
}

tn_status tn_decompose(tn_build *b, const tn_op_def *def, const void *attributes, const tn_val *in,
                       int32_t n_in, int32_t n_out, tn_val *out) {
  const tn_build_frame *outer = tn_builder_frame(b);
  tn_build_frame frame = {.in = in,
                          .n_in = n_in,
                          .yielded = out,
                          .n_yield = n_out,
                          .prefix = outer->prefix,
                          .where = outer->where,
                          .training = outer->training,
                          .seed = outer->seed};
  for (int32_t i = 0; i < n_out; i++) out[i] = 0;
  TN_TRY(tn_build_status(b));
  tn_builder_push(b, &frame);
  tn_status status = decompose_emit(b, def, attributes, in, n_in);
  if (tn_build_status(b) != TN_OK) status = tn_build_status(b);
  if (status == TN_OK) status = decompose_check_results(b, def, attributes, in, n_in, out);
  tn_builder_wrap(b, status, "decomposition", def->op->item.name);
  tn_builder_pop(b);
  return status != TN_OK ? status : tn_build_status(b);
}

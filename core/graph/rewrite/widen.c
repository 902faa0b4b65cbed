/* core/graph/rewrite/widen.c: the decomposition of an op whose schema says that it is computed in a wider
 * dtype
 * ("u8 i8 as i32"): its operands are cast, and results of the same letter are cast back. */
#include "core/graph/rewrite/widen.h"

#include "core/graph/op/attributes.h"
#include "tenon/ops.h"

static const tn_type *widen_type(const tn_graph *g, tn_val v) { return v != 0 ? g->types.v[v] : NULL; }

bool tn_node_widens(const tn_graph *g, const tn_op_def *def, const tn_val *in, int32_t n_in) {
  for (int32_t i = 0; i < n_in; i++)
    if (tn_op_def_widens(def, i, widen_type(g, in[i]))) return true;
  return false;
}

/* The dtype of operands of a letter, if the op is not computed in it; else TN_ANY. */
static int32_t widen_narrow(const tn_graph *g, const tn_op_def *def, const tn_val *in, int32_t n_in,
                            char letter) {
  for (int32_t i = 0; i < n_in; i++)
    if (tn_op_def_operand(def, i)->letter == letter && tn_op_def_widens(def, i, widen_type(g, in[i])))
      return widen_type(g, in[i])->dtype;
  return TN_ANY;
}

/* A result in the dtype of the operands. Sums of bytes in a float type wrap as those of whole numbers do. */
static tn_val widen_back(tn_build *b, tn_val v, int32_t narrow) {
  bool wraps = tn_dtype_is_float(tn_val_type(b, v)->dtype) && !tn_dtype_is_float(narrow);
  return tn_to_dtype(b, wraps ? tn_to_dtype(b, v, TN_I64) : v, narrow);
}

static tn_status widen_emit(tn_build *b, const tn_op_def *def, const void *attributes, const tn_val *in,
                            int32_t n_in, tn_val *wide) {
  tn_graph *g = tn_builder_graph(b);
  const tn_build_frame *frame = tn_builder_frame(b);
  tn_val first = 0;
  const void *copy = tn_attributes_copy(&g->arena, &def->op->item, attributes);
  if (copy == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n_in; i++)
    wide[i] = in[i] != 0 ? tn_to_dtype(b, in[i], tn_op_def_wide(def, i, tn_graph_type(g, in[i])->dtype)) : 0;
  TN_TRY(tn_build_status(b));
  TN_TRY(tn_graph_add(g, def, copy, wide, n_in, frame->prefix, frame->where, &first));
  for (int32_t i = 0; i < def->n_results; i++) {
    char letter = def->results[i].letter;
    int32_t narrow = letter != 0 ? widen_narrow(g, def, in, n_in, letter) : TN_ANY;
    tn_val v = first + (tn_val)i;
    tn_build_yield(b, i, narrow != TN_ANY ? widen_back(b, v, narrow) : v);
  }
  return TN_OK;
}

tn_status tn_widen(tn_build *b, const tn_op_def *def, const void *attributes, const tn_val *in,
                   int32_t n_in) {
  tn_val *wide = tn_alloc(b, (size_t)n_in * sizeof *wide);
  tn_status status = wide != NULL ? widen_emit(b, def, attributes, in, n_in, wide) : TN_ENOMEM;
  tn_release(b, wide);
  return status;
}

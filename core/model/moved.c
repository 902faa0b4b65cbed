/* core/model/moved.c: options that move with the steps of a training. */
#include "core/model/assemble.h"
#include "tenon/ops.h"

static const tn_moved_option *moved_find(const tn_model_request *request, const char *item,
                                         const char *option) {
  for (int32_t i = 0; request->training && i < request->n_moved; i++) {
    const tn_moved_option *m = &request->moved[i];
    bool same = item == NULL ? m->item == NULL : m->item != NULL && tn_text_equal(m->item, item);
    if (same && tn_text_equal(m->option, option)) return m;
  }
  return NULL;
}

tn_val tn_moved_value(tn_build *b, const tn_model_request *request, const char *item, const char *option,
                      double value) {
  const tn_moved_option *m = moved_find(request, item, option);
  tn_type scalar = {.dtype = TN_F32};
  if (m == NULL) return 0;
  tn_graph *graph = tn_builder_graph(b);
  tn_val factor = tn_graph_input(graph, m->input, &scalar);
  if (factor == 0) tn_builder_fail(b, graph->env->record->code);
  return tn_affine(b, factor, value - m->toward, m->toward);
}

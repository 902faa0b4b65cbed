/* core/export/onnx/fold.c: weights of convolutions that have a batch norm in them (core/export/fold.h). */
#include <string.h>

#include "core/export/onnx/nodes.h"

enum { NORM_X, CONV_KERNEL = 1 };

tn_status export_fold_find(export_graph *x) {
  x->folded = x->fold ? tn_export_fold_find(&x->arena, x->graph, x->reads)
                      : tn_arena_alloc(&x->arena, x->graph->values.n * sizeof *x->folded);
  return x->folded != NULL ? TN_OK : TN_ENOMEM;
}

bool export_fold_takes(const export_use *u) {
  return u->x->folded[u->node->in[NORM_X]] == u->node->first_out;
}

/* "conv1.bias" beside "conv1.weight". */
static const char *fold_bias_path(const export_use *u, const tn_export_norm *norm, const char *kernel) {
  static const char weight[] = "weight";
  size_t n = strlen(kernel), end = sizeof weight - 1;
  if (norm->kernel_bias != NULL) return norm->kernel_bias;
  bool plain = n > end && strcmp(kernel + n - end, weight) == 0;
  return tn_arena_printf(&u->x->arena, plain ? "%.*sbias" : "%.*s.bias", (int)(plain ? n - end : n), kernel);
}

const char *export_fold_weight(const export_use *u, bool is_shift) {
  export_graph *x = u->x;
  tn_val by = x->folded[u->node->first_out];
  if (by == 0) return NULL;
  const tn_export_norm *norm = tn_export_fold_norm(&x->arena, x->graph, u->node, by);
  if (norm == NULL) return NULL;
  const char *kernel = tn_export_kernel_path(x->graph, u->node);
  if (!is_shift && tn_export_state_path(x->graph, u->node, CONV_KERNEL) == NULL)
    return NULL; /* it is rounded */
  export_weight w = {
      .path = kernel, .type = *export_type(u, CONV_KERNEL), .norm = norm, .is_shift = is_shift};
  if (is_shift) {
    w.path = fold_bias_path(u, norm, kernel);
    w.type = (tn_type){.dtype = TN_F32, .rank = 1, .dims = {norm->channels}};
  }
  return w.path != NULL ? export_weight_name(x, &w) : NULL;
}

/* core/export/onnx/fold.c: batch norm by given statistics in the weights of the convolution in front of it:
 * w f and (bias - mean) f + shift, with f = weight / sqrt(variance + epsilon) of each channel. */
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "core/graph/input_state.h"
#include "tenon/attributes.h"

enum { NORM_X, NORM_MEAN, NORM_VARIANCE, NORM_WEIGHT, NORM_BIAS };
enum { CONV_KERNEL = 1, CONV_BIAS = 2 };

static bool fold_is_conv(const tn_gnode *node) {
  const char *op = node->op->item.name;
  return strcmp(op, "conv1d") == 0 || strcmp(op, "conv2d") == 0 || strcmp(op, "conv3d") == 0;
}

/* The path of a state of f32; NULL: operand i has another maker, or is absent. */
static const char *fold_path(const tn_graph *g, const tn_gnode *node, int32_t i) {
  if (i >= node->n_in || node->in[i] == 0) return NULL;
  const tn_gnode *maker = tn_graph_maker(g, node->in[i]);
  const tn_state_attributes *a = maker->attributes;
  return maker->op == &tn_op_state && a->type.dtype == TN_F32 ? a->path : NULL;
}

/* Whether operands from `first` on are states, or absent. */
static bool fold_has_states(const tn_graph *g, const tn_gnode *node, int32_t first) {
  for (int32_t i = first; i < node->n_in; i++)
    if (node->in[i] != 0 && fold_path(g, node, i) == NULL) return false;
  return true;
}

static bool fold_fits(const export_graph *x, const tn_gnode *norm) {
  const tn_graph *g = x->graph;
  if (strcmp(norm->op->item.name, "batch_norm_apply") != 0 || x->reads[norm->in[NORM_X]] != 1) return false;
  const tn_gnode *conv = tn_graph_maker(g, norm->in[NORM_X]);
  return fold_is_conv(conv) && fold_has_states(g, norm, NORM_MEAN) && fold_has_states(g, conv, CONV_KERNEL);
}

tn_status export_fold_find(export_graph *x) {
  const tn_graph *g = x->graph;
  x->folded = tn_arena_alloc(&x->arena, g->values.n * sizeof *x->folded);
  if (x->folded == NULL) return TN_ENOMEM;
  for (size_t i = 0; x->fold && i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    if (x->reads[node->first_out] > 0 && fold_fits(x, node)) x->folded[node->in[NORM_X]] = node->first_out;
  }
  return TN_OK;
}

bool export_fold_takes(const export_use *u) {
  return u->x->folded[u->node->in[NORM_X]] == u->node->first_out;
}

static export_norm *fold_norm(const export_use *u, const tn_gnode *node) {
  const tn_graph *g = u->x->graph;
  const tn_norm_attributes *a = node->attributes;
  export_norm *norm = tn_arena_alloc(&u->x->arena, sizeof *norm);
  if (norm == NULL) return NULL;
  *norm = (export_norm){.mean = fold_path(g, node, NORM_MEAN),
                        .variance = fold_path(g, node, NORM_VARIANCE),
                        .weight = fold_path(g, node, NORM_WEIGHT),
                        .bias = fold_path(g, node, NORM_BIAS),
                        .kernel_bias = fold_path(g, u->node, CONV_BIAS),
                        .epsilon = a->epsilon,
                        .channels = export_type(u, CONV_KERNEL)->dims[0]};
  return norm;
}

/* "conv1.bias" beside "conv1.weight". */
static const char *fold_bias_path(const export_use *u, const export_norm *norm, const char *kernel) {
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
  export_norm *norm = fold_norm(u, tn_graph_maker(x->graph, by));
  if (norm == NULL) return NULL;
  const char *kernel = fold_path(x->graph, u->node, CONV_KERNEL);
  export_weight w = {
      .path = kernel, .type = *export_type(u, CONV_KERNEL), .norm = norm, .is_shift = is_shift};
  if (is_shift) {
    w.path = fold_bias_path(u, norm, kernel);
    w.type = (tn_type){.dtype = TN_F32, .rank = 1, .dims = {norm->channels}};
  }
  return w.path != NULL ? export_weight_name(x, &w) : NULL;
}

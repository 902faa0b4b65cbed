/* core/model/lines/adapt.c: adapters of low rank beside the layers that [adapt] names (core/base/adapters.h):
 * y + s up(down(x)), where down and up are linear layers, or convolutions of the layer's kernel and of
 * kernel 1. In an embedding, down is a table. */
#include <string.h>

#include "core/graph/op/attributes.h"
#include "core/model/assemble.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

typedef struct adapt_layer {
  const tn_adapter *adapter;
  const tn_gnode *node; /* the op that reads the layer's weight */
  tn_type weight;
} adapt_layer;

/* PyTorch's initial values of linear layers and convolutions: uniform within 1 / sqrt(fan in). */
static const char adapt_down_init[] = "kaiming_uniform(a=2.23606797749979)";

static tn_val adapt_dropout(tn_build *b, const tn_adapter *adapter, tn_val x) {
  if (!tn_build_training(b) || adapter->dropout == 0) return x;
  return tn_dropout(b, x, tn_build_counter(b, TN_ITERATION), tn_build_counter(b, TN_BATCH_BLOCK),
                    adapter->dropout, (int64_t)tn_build_random_stream(b, "lora"));
}

static tn_val adapt_linear(tn_build *b, const adapt_layer *l) {
  const int64_t rank = l->adapter->rank;
  const tn_type down = {TN_F32, 2, {rank, l->weight.dims[1]}}, up = {TN_F32, 2, {l->weight.dims[0], rank}};
  tn_val x = adapt_dropout(b, l->adapter, l->node->in[0]);
  tn_val a = tn_build_param(b, TN_ADAPTER_DOWN, &down, adapt_down_init);
  tn_val c = tn_build_param(b, TN_ADAPTER_UP, &up, "zeros");
  return tn_matmul(b, tn_matmul(b, x, a, 0, 0, 1, TN_MATH_FULL), c, 0, 0, 1, TN_MATH_FULL);
}

static tn_val adapt_embedding(tn_build *b, const adapt_layer *l) {
  const int64_t rank = l->adapter->rank;
  const tn_type down = {TN_F32, 2, {rank, l->weight.dims[0]}}, up = {TN_F32, 2, {l->weight.dims[1], rank}};
  tn_val a = tn_build_param(b, TN_ADAPTER_EMBEDDING_DOWN, &down, "zeros");
  tn_val c = tn_build_param(b, TN_ADAPTER_EMBEDDING_UP, &up, "normal(0, 1)");
  tn_val rows = tn_embedding(b, l->node->in[0], tn_transpose(b, a, 2, (int64_t[]){1, 0}));
  return tn_matmul(b, rows, c, 0, 0, 1, TN_MATH_FULL);
}

/* The convolution of the layer with another weight, without a bias. */
static tn_val adapt_same_conv(tn_build *b, const adapt_layer *l, tn_val x, tn_val weight) {
  tn_graph *graph = tn_builder_graph(b);
  const void *attributes = tn_attributes_copy(&graph->arena, &l->node->op->item, l->node->attributes);
  const tn_val in[] = {x, weight};
  tn_val y = 0;
  if (tn_build_status(b) != TN_OK) return 0;
  tn_status status = attributes != NULL ? tn_graph_add(graph, l->node->def, attributes, in, 2, l->node->layer,
                                                       l->node->where, &y)
                                        : TN_ENOMEM;
  if (status != TN_OK) tn_builder_fail(b, status);
  return y;
}

static tn_val adapt_conv(tn_build *b, const adapt_layer *l) {
  tn_type down = l->weight, up = l->weight;
  down.dims[0] = up.dims[1] = l->adapter->rank;
  for (int32_t i = 2; i < up.rank; i++) up.dims[i] = 1;
  const tn_conv2d_attributes *a = l->node->attributes;
  if (a->groups > 1) {
    tn_builder_fail(b, tn_failf(b, TN_EINVAL,
                                "[%s] match: a convolution of %lld groups has no adapter, expected 1 group",
                                l->adapter->section, (long long)a->groups));
    return 0;
  }
  tn_val x = adapt_dropout(b, l->adapter, l->node->in[0]);
  x = adapt_same_conv(b, l, x, tn_build_param(b, TN_ADAPTER_DOWN, &down, adapt_down_init));
  tn_op_begin(b, l->node->op->item.name);
  tn_op_arg(b, x);
  tn_op_arg(b, tn_build_param(b, TN_ADAPTER_UP, &up, "zeros"));
  return tn_op_end(b);
}

typedef struct adapt_rule {
  const char *op;
  tn_val (*emit)(tn_build *b, const adapt_layer *l);
} adapt_rule;
static const adapt_rule adapt_rules[] = {{"matmul", adapt_linear},
                                         {"embedding", adapt_embedding},
                                         {"conv1d", adapt_conv},
                                         {"conv2d", adapt_conv},
                                         {"conv3d", adapt_conv}};

static const adapt_rule *adapt_find_rule(const tn_gnode *node) {
  for (size_t i = 0; i < sizeof adapt_rules / sizeof *adapt_rules; i++)
    if (tn_text_equal(adapt_rules[i].op, node->op->item.name)) return &adapt_rules[i];
  return NULL;
}

/* Whether the node computes y from a weight of (units, inputs), as a linear layer has it. */
static bool adapt_reads_rows(const tn_gnode *node) {
  if (!tn_text_equal(node->op->item.name, "matmul")) return true;
  const tn_matmul_attributes *a = node->attributes;
  return a->transpose_b && !a->transpose_a;
}

/* The op that makes the layer's output of the layer's weight; false: the layer has another form. */
static bool adapt_find_op(const tn_model_scope *scope, const tn_use *use, tn_val y, adapt_layer *l) {
  const tn_graph *graph = tn_builder_graph(scope->assembly->b);
  l->node = tn_graph_maker(graph, y);
  if (adapt_find_rule(l->node) == NULL || l->node->n_in < 2 || !adapt_reads_rows(l->node)) return false;
  const char *path = tn_arena_printf(&scope->assembly->arena, "%s.weight", use->path);
  const tn_gstate *weight = path != NULL ? tn_graph_find_state(graph, path) : NULL;
  if (weight == NULL || weight->value != l->node->in[1]) return false;
  l->weight = weight->type;
  return true;
}

tn_status tn_layer_adapt(const tn_model_scope *scope, const tn_use *use, tn_results *results) {
  const tn_assembly *a = scope->assembly;
  adapt_layer l = {.adapter = a->request->adapters != NULL ? tn_adapters_find(a->request->adapters, use->path)
                                                           : NULL};
  if (l.adapter == NULL || results->v[0] == 0 || !adapt_find_op(scope, use, results->v[0], &l)) return TN_OK;
  const tn_gnode node = *l.node; /* adding nodes moves the others */
  const adapt_rule *rule = adapt_find_rule(&node);
  l.node = &node;
  tn_val more = tn_affine(a->b, rule->emit(a->b, &l), l.adapter->scale, 0);
  results->v[0] = tn_add(a->b, results->v[0], more);
  return tn_build_status(a->b);
}

tn_status tn_layer_check_adapted_tie(const tn_model_scope *scope, const char *parameter) {
  const tn_assembly *a = scope->assembly;
  static const char *const parts[] = {TN_ADAPTER_DOWN, TN_ADAPTER_EMBEDDING_DOWN};
  size_t n = strlen(parameter), k = strlen(".weight");
  if (a->request->adapters == NULL || !tn_text_ends(parameter, ".weight")) return TN_OK;
  for (int i = 0; i < 2; i++) {
    const char *path = tn_arena_printf(&scope->assembly->arena, "%.*s.%s", (int)(n - k), parameter, parts[i]);
    if (path == NULL) return TN_ENOMEM;
    if (tn_graph_find_state(tn_builder_graph(a->b), path) != NULL)
      return tn_failf(a->env, TN_EINVAL,
                      "it shares %s, which has an adapter that cannot be merged then; expected [adapt] match "
                      "without that layer",
                      parameter);
  }
  return TN_OK;
}

/* core/model/lines/adapt.c: adapters of low rank beside the layers that [adapt] names (core/base/adapters.h):
 * y + s up(down(x)), where down and up are linear layers, or convolutions of the layer's kernel and of
 * kernel 1. In an embedding, down is a table. With type = dora the units of both weights together are scaled
 * to norms that are trained. */
#include <string.h>

#include "core/graph/op/attributes.h"
#include "core/model/assemble.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

typedef struct adapt_layer {
  const tn_adapter *adapter;
  const tn_gnode *node; /* the op that reads the layer's weight */
  tn_type weight;
  tn_val x;        /* what the adapter reads: the layer's input, with dropout in training */
  tn_val down, up; /* A and B */
} adapt_layer;

/* PyTorch's initial values of linear layers and convolutions: uniform within 1 / sqrt(fan in). */
static const char adapt_down_init[] = "kaiming_uniform(a=2.23606797749979)";

static bool adapt_drops(tn_build *b, const adapt_layer *l) {
  return tn_build_training(b) && l->adapter->dropout > 0;
}

static tn_val adapt_dropout(tn_build *b, const adapt_layer *l) {
  if (!adapt_drops(b, l)) return l->x;
  return tn_dropout(b, l->x, tn_build_counter(b, TN_ITERATION), tn_build_counter(b, TN_BATCH_BLOCK),
                    l->adapter->dropout, (int64_t)tn_build_random_stream(b, "lora"));
}

/* ---- up(down(x)) ---- */

static tn_val adapt_linear(tn_build *b, adapt_layer *l) {
  const int64_t rank = l->adapter->rank;
  const tn_type down = {TN_F32, 2, {rank, l->weight.dims[1]}}, up = {TN_F32, 2, {l->weight.dims[0], rank}};
  l->x = adapt_dropout(b, l);
  l->down = tn_build_param(b, TN_ADAPTER_DOWN, &down, adapt_down_init);
  l->up = tn_build_param(b, TN_ADAPTER_UP, &up, "zeros");
  return tn_matmul(b, tn_matmul(b, l->x, l->down, 0, 0, 1, TN_MATH_FULL), l->up, 0, 0, 1, TN_MATH_FULL);
}

static tn_val adapt_embedding(tn_build *b, adapt_layer *l) {
  const int64_t rank = l->adapter->rank;
  const tn_type down = {TN_F32, 2, {rank, l->weight.dims[0]}}, up = {TN_F32, 2, {l->weight.dims[1], rank}};
  l->down = tn_build_param(b, TN_ADAPTER_EMBEDDING_DOWN, &down, "zeros");
  l->up = tn_build_param(b, TN_ADAPTER_EMBEDDING_UP, &up, "normal(0, 1)");
  tn_val rows = tn_embedding(b, l->x, tn_transpose(b, l->down, 2, (int64_t[]){1, 0}));
  return tn_matmul(b, rows, l->up, 0, 0, 1, TN_MATH_FULL);
}

/* The op of the layer with this input and another weight, without a bias. */
static tn_val adapt_same_op(tn_build *b, const adapt_layer *l, tn_val weight) {
  tn_graph *graph = tn_builder_graph(b);
  const void *attributes = tn_attributes_copy(&graph->arena, &l->node->op->item, l->node->attributes);
  const tn_val in[] = {l->x, weight};
  tn_val y = 0;
  if (tn_build_status(b) != TN_OK) return 0;
  tn_status status = attributes != NULL ? tn_graph_add(graph, l->node->def, attributes, in, 2, l->node->layer,
                                                       l->node->where, &y)
                                        : TN_ENOMEM;
  if (status != TN_OK) tn_builder_fail(b, status);
  return y;
}

static tn_val adapt_conv(tn_build *b, adapt_layer *l) {
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
  l->x = adapt_dropout(b, l);
  l->down = tn_build_param(b, TN_ADAPTER_DOWN, &down, adapt_down_init);
  tn_val x = adapt_same_op(b, l, l->down);
  l->up = tn_build_param(b, TN_ADAPTER_UP, &up, "zeros");
  tn_op_begin(b, l->node->op->item.name);
  tn_op_arg(b, x);
  tn_op_arg(b, l->up);
  return tn_op_end(b);
}

typedef struct adapt_rule {
  const char *op;
  tn_val (*emit)(tn_build *b, adapt_layer *l);
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

/* ---- norms of units ---- */

static bool adapt_is_embedding(const adapt_layer *l) {
  return tn_text_equal(l->node->op->item.name, "embedding");
}

/* A value as (rows, all other elements of a row). */
static tn_val adapt_matrix(tn_build *b, tn_val x) {
  const tn_type *type = tn_val_type(b, x);
  const int64_t dims[] = {type->dims[0], tn_type_count(type) / type->dims[0]};
  return tn_reshape(b, x, 2, dims);
}

static tn_val adapt_row_sums(tn_build *b, tn_val x, tn_val y) {
  const int64_t elements = 1;
  return tn_reduce_sum(b, tn_mul(b, x, y), 1, &elements, 0);
}

/* The norm of each unit of W + s B A: of its square, |W|^2 + 2 s B (W A^T) + s^2 B (A A^T) B^T, each part is
 * smaller than W, so that W + s B A is not computed. */
static tn_val adapt_norms(tn_build *b, const adapt_layer *l) {
  double scale = l->adapter->scale;
  tn_val w = l->node->in[1], a = adapt_matrix(b, l->down), c = adapt_matrix(b, l->up);
  w = adapt_is_embedding(l) ? tn_transpose(b, w, 2, (int64_t[]){1, 0}) : adapt_matrix(b, w);
  tn_val mixed = adapt_row_sums(b, tn_matmul(b, w, a, 0, 0, 1, TN_MATH_FULL), c);
  tn_val square = tn_matmul(b, a, a, 0, 0, 1, TN_MATH_FULL); /* symmetric */
  tn_val own = adapt_row_sums(b, tn_matmul(b, c, square, 0, 0, 0, TN_MATH_FULL), c);
  tn_val more = tn_add(b, tn_affine(b, mixed, 2 * scale, 0), tn_affine(b, own, scale * scale, 0));
  return tn_sqrt(b, tn_add(b, adapt_row_sums(b, w, w), more));
}

/* The trained norm of each unit as a part of its norm, which counts as a constant (Liu et al., section 4.3);
 * in convolutions along the channels. */
static tn_val adapt_factors(tn_build *b, const adapt_layer *l) {
  int64_t units = l->weight.dims[adapt_is_embedding(l) ? 1 : 0];
  tn_type type = {TN_F32, l->weight.rank > 2 ? l->weight.rank : 1, {units}};
  for (int32_t i = 0; i < type.rank && type.rank > 1; i++) type.dims[i] = i == 1 ? units : 1;
  tn_val magnitude = tn_build_param(b, TN_ADAPTER_MAGNITUDE, &type, "ones");
  tn_val norms = tn_reshape(b, tn_detach(b, adapt_norms(b, l)), type.rank, type.dims);
  return tn_div(b, magnitude, norms);
}

static tn_val adapt_bias(tn_build *b, const adapt_layer *l) {
  tn_val bias = l->node->n_in > 2 ? l->node->in[2] : 0;
  if (bias == 0 || l->weight.rank == 2) return bias;
  int64_t dims[TN_MAX_RANK];
  for (int32_t i = 0; i < l->weight.rank; i++) dims[i] = i == 1 ? l->weight.dims[0] : 1;
  return tn_reshape(b, bias, l->weight.rank, dims);
}

/* The factor times W x + s B A x, and the bias. With dropout, as PEFT has it, the scaled part alone reads the
 * input that is left: y + factor (W x' + s B A x') - W x'. */
static tn_val adapt_scaled(tn_build *b, const adapt_layer *l, tn_val y, tn_val more) {
  tn_val bias = adapt_bias(b, l), factors = adapt_factors(b, l);
  bool drops = l->x != l->node->in[0];
  tn_val own = drops || bias != 0 ? adapt_same_op(b, l, l->node->in[1]) : y;
  tn_val scaled = tn_mul(b, tn_add(b, own, more), factors);
  if (drops) return tn_add(b, y, tn_sub(b, scaled, own));
  return bias != 0 ? tn_add(b, scaled, bias) : scaled;
}

/* ---- layers ---- */

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
  l.x = node.in[0];
  tn_val more = tn_affine(a->b, rule->emit(a->b, &l), l.adapter->scale, 0);
  TN_TRY(tn_build_status(a->b));
  results->v[0] = l.adapter->type == TN_ADAPT_DORA ? adapt_scaled(a->b, &l, results->v[0], more)
                                                   : tn_add(a->b, results->v[0], more);
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

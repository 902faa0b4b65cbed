/* core/export/onnx/nodes.c: nodes, constants, weights and their names, as messages of onnx.proto. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/element.h"
#include "core/export/onnx/nodes.h"
#include "core/graph/input_state.h"
#include "core/onnx/file/onnx_file.h"

enum { MOST_KEY_BYTES = 64 };

int32_t export_dtype(int32_t dtype) {
  static const int32_t types[TN_DTYPES] = {
      [TN_BOOL] = TN_ONNX_BOOL,     [TN_U8] = TN_ONNX_UINT8,  [TN_I8] = TN_ONNX_INT8,
      [TN_I32] = TN_ONNX_INT32,     [TN_I64] = TN_ONNX_INT64, [TN_F16] = TN_ONNX_FLOAT16,
      [TN_BF16] = TN_ONNX_BFLOAT16, [TN_F32] = TN_ONNX_FLOAT, [TN_F64] = TN_ONNX_DOUBLE};
  return types[dtype];
}

/* ---- names ---- */

const char *export_new_name(export_graph *x, const char *stem) {
  const char *name = tn_arena_strdup(&x->arena, stem);
  for (int64_t i = 1; name != NULL && tn_name_index_find(&x->taken, name) != TN_NAME_INDEX_NONE; i++)
    name = tn_arena_printf(&x->arena, "%s_%lld", stem, (long long)i);
  return name != NULL && tn_name_index_add(&x->taken, name) == TN_OK ? name : NULL;
}

const char *export_stem(const export_use *u, const char *op) {
  const char *layer = u->node->layer, *stem = NULL;
  if (layer == NULL || *layer == '\0') return op;
  stem = tn_arena_printf(&u->x->arena, "%s/%s", layer, op);
  return stem != NULL ? stem : op;
}

/* ---- attributes ---- */

enum {
  ATTRIBUTE_NAME = 1,
  ATTRIBUTE_F = 2,
  ATTRIBUTE_I = 3,
  ATTRIBUTE_S = 4,
  ATTRIBUTE_T = 5,
  ATTRIBUTE_INTS = 8,
  ATTRIBUTE_STRINGS = 9,
  ATTRIBUTE_TYPE = 20
};
enum { OF_FLOAT = 1, OF_INT = 2, OF_STRING = 3, OF_TENSOR = 4, OF_INTS = 7, OF_STRINGS = 8 };

static tn_text attribute_start(const tn_text *node, const char *name, int32_t type) {
  tn_text a = tn_text_new(node->handle);
  tn_proto_put_text(&a, ATTRIBUTE_NAME, name);
  tn_proto_put_number(&a, ATTRIBUTE_TYPE, type);
  return a;
}

void export_put_int(tn_text *node, const char *name, int64_t value) {
  tn_text a = attribute_start(node, name, OF_INT);
  tn_proto_put_number(&a, ATTRIBUTE_I, value);
  tn_proto_put_message(node, ONNX_NODE_ATTRIBUTE, &a);
}

void export_put_float(tn_text *node, const char *name, double value) {
  tn_text a = attribute_start(node, name, OF_FLOAT);
  tn_proto_put_float(&a, ATTRIBUTE_F, (float)value);
  tn_proto_put_message(node, ONNX_NODE_ATTRIBUTE, &a);
}

void export_put_word(tn_text *node, const char *name, const char *word, size_t n) {
  tn_text a = attribute_start(node, name, OF_STRING);
  tn_proto_put_bytes(&a, ATTRIBUTE_S, word, n);
  tn_proto_put_message(node, ONNX_NODE_ATTRIBUTE, &a);
}

void export_put_words(tn_text *node, const char *name, const char *word, size_t n) {
  tn_text a = attribute_start(node, name, OF_STRINGS);
  tn_proto_put_bytes(&a, ATTRIBUTE_STRINGS, word, n);
  tn_proto_put_message(node, ONNX_NODE_ATTRIBUTE, &a);
}

void export_put_ints(tn_text *node, const char *name, const int64_t *v, int64_t n) {
  tn_text a = attribute_start(node, name, OF_INTS);
  for (int64_t i = 0; i < n; i++) tn_proto_put_number(&a, ATTRIBUTE_INTS, v[i]);
  tn_proto_put_message(node, ONNX_NODE_ATTRIBUTE, &a);
}

tn_status export_put_node(export_graph *x, tn_text *node, const char *name, const char *op,
                          const char *const *out, int32_t n_out) {
  for (int32_t i = 0; i < n_out; i++) tn_proto_put_text(node, ONNX_NODE_OUTPUT, out[i]);
  tn_proto_put_text(node, ONNX_NODE_NAME, name);
  tn_proto_put_text(node, ONNX_NODE_OP, op);
  tn_proto_put_message(&x->nodes, ONNX_GRAPH_NODE, node);
  x->n_nodes++;
  return x->nodes.failed ? TN_ENOMEM : TN_OK;
}

/* ---- constants ---- */

/* The same text for constants that are one; NULL: the constant is large, or memory is out. */
static const char *constant_key(export_graph *x, const tn_type *type, const unsigned char *bytes) {
  char text[TN_TYPE_TEXT], hex[2 * MOST_KEY_BYTES + 1] = "";
  size_t n = tn_type_bytes(type);
  if (n > MOST_KEY_BYTES) return NULL;
  for (size_t i = 0; i < n; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
  return tn_arena_printf(&x->arena, "%s %s", tn_type_format(type, text), hex);
}

static const char *constant_write(export_graph *x, const tn_type *type, const void *bytes) {
  const char *name = export_new_name(x, "constant");
  tn_text node = tn_text_new(x->env), tensor = tn_text_new(x->env), a;
  for (int32_t i = 0; i < type->rank; i++) tn_proto_put_number(&tensor, ONNX_TENSOR_DIM, type->dims[i]);
  tn_proto_put_number(&tensor, ONNX_TENSOR_TYPE, export_dtype(type->dtype));
  tn_proto_put_bytes(&tensor, ONNX_TENSOR_RAW, bytes, tn_type_bytes(type));
  a = attribute_start(&node, "value", OF_TENSOR);
  tn_proto_put_message(&a, ATTRIBUTE_T, &tensor);
  tn_proto_put_message(&node, ONNX_NODE_ATTRIBUTE, &a);
  if (name == NULL) return tn_text_free(&node), NULL;
  return export_put_node(x, &node, name, "Constant", &name, 1) == TN_OK ? name : NULL;
}

const char *export_constant(export_graph *x, const tn_type *type, const void *bytes) {
  const char *key = constant_key(x, type, bytes);
  int64_t known = key != NULL ? tn_name_index_find(&x->keys, key) : TN_NAME_INDEX_NONE;
  if (known != TN_NAME_INDEX_NONE) return x->constants.v[known];
  const char *name = constant_write(x, type, bytes);
  if (name == NULL || key == NULL) return name;
  bool kept = tn_name_index_add(&x->keys, key) == TN_OK && tn_vec_push(x->env, &x->constants, name) == TN_OK;
  return kept ? name : NULL;
}

const char *export_number(export_graph *x, int32_t dtype, double value) {
  const tn_type type = {.dtype = dtype};
  char bytes[8] = {0};
  double low, high;
  if (dtype == TN_BOOL) value = value != 0;
  if (!tn_dtype_is_float(dtype)) {
    tn_element_range(dtype, &low, &high);
    value = trunc(fmin(fmax(value, low), high));
  }
  tn_element_store(dtype, bytes, 0, value);
  return export_constant(x, &type, bytes);
}

const char *export_list(export_graph *x, const int64_t *v, int64_t n) {
  const tn_type type = {.dtype = TN_I64, .rank = 1, .dims = {n}};
  return export_constant(x, &type, v);
}

/* ---- sizes ---- */

static const char *node_of(export_graph *x, const char *op, const char *stem, const char *const *in,
                           int32_t n, int64_t axis) {
  tn_text node = tn_text_new(x->env);
  const char *name = export_new_name(x, stem);
  if (name == NULL) return NULL;
  for (int32_t i = 0; i < n; i++) {
    if (in[i] == NULL) return tn_text_free(&node), NULL;
    tn_proto_put_text(&node, ONNX_NODE_INPUT, in[i]);
  }
  if (axis >= 0) export_put_int(&node, "axis", axis);
  return export_put_node(x, &node, name, op, &name, 1) == TN_OK ? name : NULL;
}

/* The first dimension of the first input whose first dimension is the batch. */
static const char *node_batch(export_graph *x) {
  const tn_graph *g = x->graph;
  const char *input = NULL;
  if (x->batch_name != NULL) return x->batch_name;
  for (size_t i = 0; i < g->inputs.n && input == NULL; i++) {
    const tn_type *type = tn_graph_type(g, g->inputs.v[i]);
    if (type->rank > 0 && type->dims[0] == x->batch && x->names[g->inputs.v[i]] != NULL)
      input = x->names[g->inputs.v[i]];
  }
  if (input == NULL)
    return tn_failf(x->env, TN_EUNSUPPORTED, "a size depends on the batch, which no input has"), NULL;
  const char *shape = node_of(x, "Shape", "batch/shape", &input, 1, -1);
  const char *gather[] = {shape, export_list(x, (int64_t[]){0}, 1)};
  return x->batch_name = node_of(x, "Gather", "batch/size", gather, 2, 0);
}

/* One size that depends on the batch. */
static const char *node_size(export_graph *x, int64_t size) {
  const char *factors[] = {node_batch(x), NULL};
  if (size == x->batch || factors[0] == NULL) return factors[0];
  factors[1] = export_list(x, (int64_t[]){size / x->batch}, 1);
  return node_of(x, "Mul", "batch/multiple", factors, 2, -1);
}

const char *export_sizes(const export_use *u, const int64_t *v, int64_t n) {
  export_graph *x = u->x;
  const char *parts[TN_MAX_RANK];
  int32_t n_parts = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = i;
    while (end < n && !export_is_batch(x, v[end])) end++;
    parts[n_parts++] = end > i ? export_list(x, v + i, end - i) : node_size(x, v[end++]);
    if (parts[n_parts - 1] == NULL) return NULL;
    i = end;
  }
  if (n == 0) return export_list(x, NULL, 0);
  return n_parts == 1 ? parts[0] : node_of(x, "Concat", export_stem(u, "sizes"), parts, n_parts, 0);
}

/* ---- weights ---- */

static bool weight_is_narrow(const export_graph *x, int32_t dtype) {
  return tn_dtype_is_float(dtype) && x->precision != TN_F32;
}

/* The value that nodes read: the initializer, or its cast to the state's type. */
static const char *weight_cast(export_graph *x, const export_weight *w, int32_t dtype) {
  tn_text node = tn_text_new(x->env);
  const char *stem = tn_arena_printf(&x->arena, "%s/cast", w->name);
  const char *name = stem != NULL ? export_new_name(x, stem) : NULL;
  if (name == NULL) return NULL;
  tn_proto_put_text(&node, ONNX_NODE_INPUT, w->name);
  export_put_int(&node, "to", export_dtype(dtype));
  return export_put_node(x, &node, name, "Cast", &name, 1) == TN_OK ? name : NULL;
}

const char *export_weight_name(export_graph *x, const export_weight *weight) {
  export_weight w = *weight;
  int32_t dtype = w.stored = w.type.dtype;
  const char *stem = w.scale == NULL ? w.path : tn_arena_printf(&x->arena, "%s_quantized", w.path);
  w.name = stem != NULL ? export_new_name(x, stem) : NULL;
  if (w.name == NULL) return NULL;
  if (weight_is_narrow(x, dtype)) w.type.dtype = x->precision;
  if (w.scale != NULL) w.type.dtype = TN_I8;
  if (tn_vec_push(x->env, &x->weights, w) != TN_OK) return NULL;
  return w.type.dtype != dtype && w.scale == NULL ? weight_cast(x, &w, dtype) : w.name;
}

static const char *weight_of_state(export_graph *x, const tn_gnode *maker) {
  const tn_state_attributes *a = maker->attributes;
  return export_weight_name(x, &(export_weight){.path = a->path, .type = a->type});
}

const char *export_operand(const export_use *u, int32_t i) {
  export_graph *x = u->x;
  if (!export_has(u, i)) return "";
  tn_val v = u->node->in[i];
  const tn_gnode *maker = tn_graph_maker(x->graph, v);
  if (x->names[v] == NULL && maker->op == &tn_op_state) x->names[v] = weight_of_state(x, maker);
  return x->names[v];
}

const char *export_transposed(const export_use *u, int32_t i) {
  export_graph *x = u->x;
  tn_val v = u->node->in[i];
  const tn_gnode *maker = tn_graph_maker(x->graph, v);
  const tn_state_attributes *a = maker->attributes;
  if (maker->op != &tn_op_state || x->reads[v] != 1 || a->type.rank != 2) return NULL;
  export_weight w = {.path = a->path, .type = a->type, .transposed = true};
  w.type.dims[0] = a->type.dims[1];
  w.type.dims[1] = a->type.dims[0];
  return x->names[v] = export_weight_name(x, &w);
}

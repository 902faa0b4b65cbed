/* core/export/onnx/nodes.h: from a graph to nodes of ONNX (https://onnx.ai/onnx/repo-docs/IR.html,
 * onnx.proto). Private to core/export/onnx.
 *
 *   write.c        the call: expresses the graph, then writes the file and the contents of weights beside it
 *   weight_data.c  contents of weights
 *   express.c      decomposes ops that have no row, walks the nodes, collects those that cannot be expressed
 *   rows/          a row for each op, in families: a template, or a function
 *   expression.c   templates as nodes
 *   nodes.c        nodes, constants, weights and their names
 *   fold.c         weights of convolutions that have a batch norm in them
 *
 * The graph is that of a model with a batch of a large prime, of which no other size is a multiple, so a size
 * that depends on the batch can be told from the others. */
#pragma once

#include "core/export/fold.h"
#include "core/formats/protobuf_writer.h"
#include "core/graph/graph.h"

/* Fields of messages of onnx.proto. */
enum {
  ONNX_MODEL_IR_VERSION = 1,
  ONNX_MODEL_PRODUCER = 2,
  ONNX_MODEL_PRODUCER_VERSION = 3,
  ONNX_MODEL_GRAPH = 7,
  ONNX_MODEL_OPSET = 8,
  ONNX_MODEL_METADATA = 14,
  ONNX_GRAPH_NODE = 1,
  ONNX_GRAPH_NAME = 2,
  ONNX_GRAPH_INITIALIZER = 5,
  ONNX_GRAPH_INPUT = 11,
  ONNX_GRAPH_OUTPUT = 12,
  ONNX_NODE_INPUT = 1,
  ONNX_NODE_OUTPUT = 2,
  ONNX_NODE_NAME = 3,
  ONNX_NODE_OP = 4,
  ONNX_NODE_ATTRIBUTE = 5,
  ONNX_TENSOR_DIM = 1,
  ONNX_TENSOR_TYPE = 2,
  ONNX_TENSOR_NAME = 8,
  ONNX_TENSOR_RAW = 9,
  ONNX_TENSOR_EXTERNAL = 13,
  ONNX_TENSOR_LOCATION = 14
};

/* An initializer, from a state of the model. */
typedef struct export_weight {
  const char *name, *path;
  tn_type type;               /* in the file */
  int32_t stored;             /* the dtype of the state */
  bool transposed;            /* the state's two dimensions are exchanged */
  const tn_export_norm *norm; /* that is folded into it; NULL: none */
  bool is_shift;              /* the bias that comes of folding; it has no state of its own */
  const float *scale;         /* of slices: whole numbers, weight / scale; NULL: others */
  int32_t scale_axis;         /* the dimension of these slices in the file */
} export_weight;

/* The slice along an axis that element i belongs to. */
static inline int64_t export_slice_of(const tn_type *type, int32_t axis, int64_t i) {
  for (int32_t k = type->rank - 1; k > axis; k--) i /= type->dims[k];
  return i % type->dims[axis];
}

/* An op that cannot be expressed, once for each reason. */
typedef struct export_missing {
  const char *op, *reason;
  int64_t count;
} export_missing;

typedef struct export_graph {
  tn_env *env;
  tn_arena arena;
  tn_graph *graph;
  int64_t batch; /* the prime */
  int32_t opset;
  int32_t precision; /* dtype of floating weights in the file */
  bool fold;
  tn_export_read *read; /* of states */
  void *context;
  const int32_t *reads;           /* by value: by how many operands and outputs it is read */
  tn_val *folded;                 /* by value: the convolution whose batch norm makes it; 0: none */
  const char **names;             /* by value: in the file; NULL: not yet */
  tn_text nodes;                  /* the fields of GraphProto */
  tn_name_index taken;            /* names of values */
  tn_name_index keys;             /* of constants, */
  TN_VEC(const char *) constants; /* and their names */
  TN_VEC(export_weight) weights;
  TN_VEC(export_missing) missing;
  const char *batch_name; /* i64[1], the batch; NULL: nothing has read it */
  int64_t n_nodes;
} export_graph;

typedef struct export_row export_row;

/* A node of the graph that a row expresses. */
typedef struct export_use {
  export_graph *x;
  const tn_gnode *node;
  const export_row *row;
} export_use;

/* How an op is written. */
struct export_row {
  const char *op;
  const char *call;                       /* expression.c has the syntax; NULL: `emit` */
  tn_status (*emit)(const export_use *u); /* TN_EUNSUPPORTED with a reason: it cannot be expressed */
  bool (*takes)(
      const export_use *u); /* NULL: every use. An op that is not taken is decomposed, if it can be */
  int32_t since;            /* the least opset; 0: any */
  int32_t results;          /* how many of the results it computes, in front; 0: one */
};

/* ---- rows/rows.c ---- */

/* The row of a node; NULL: none takes it, and *least is the least opset in which one would; 0: none would. */
const export_row *export_row_of(export_graph *x, const tn_gnode *node, int32_t *least);

extern const export_row export_rows_pointwise[], export_rows_activations[], export_rows_reductions[],
    export_rows_shape[], export_rows_fill[], export_rows_index[], export_rows_products[],
    export_rows_windows[], export_rows_norms[], export_rows_quantize[],
    export_rows_recurrence[]; /* each ends with a row without a name */

/* ---- rows/products.c ---- */

/* Whether a matmul reads its operand 1 transposed, and is not written as Gemm, which has that as an
 * attribute. */
bool export_product_swaps(const export_use *u);

/* ---- express.c ---- */

/* Decomposes ops without a row and writes the nodes. Lists the ops that cannot be expressed in `missing`. */
tn_status export_express(export_graph *x);

/* ---- nodes.c ---- */

int32_t export_dtype(int32_t dtype); /* TensorProto.DataType */
/* A name that no value has yet, made of `stem`; NULL: out of memory. */
const char *export_new_name(export_graph *x, const char *stem);
/* The place of a node in messages and names: its layer, or its op. */
const char *export_stem(const export_use *u, const char *op);

/* An attribute of a node. */
void export_put_int(tn_text *node, const char *name, int64_t value);
void export_put_float(tn_text *node, const char *name, double value);
void export_put_word(tn_text *node, const char *name, const char *word, size_t n);
/* A list of one word. */
void export_put_words(tn_text *node, const char *name, const char *word, size_t n);
void export_put_ints(tn_text *node, const char *name, const int64_t *v, int64_t n);
/* Ends a node with inputs and attributes: writes its name, op and outputs. */
tn_status export_put_node(export_graph *x, tn_text *node, const char *name, const char *op,
                          const char *const *out, int32_t n_out);

/* Names of values in the file; NULL where memory is out, or the weight is refused. */
const char *export_operand(const export_use *u, int32_t i); /* "" where absent */
const char *export_constant(export_graph *x, const tn_type *type, const void *bytes);
/* A scalar; a whole one is the nearest of its type. */
const char *export_number(export_graph *x, int32_t dtype, double value);
const char *export_list(export_graph *x, const int64_t *v, int64_t n); /* i64[n] */
/* A vector of sizes, of which some may depend on the batch. */
const char *export_sizes(const export_use *u, const int64_t *v, int64_t n);
/* A matrix of the state that operand i reads, with its dimensions exchanged; NULL without a message: operand
 * i is no state, or is read by others. */
const char *export_transposed(const export_use *u, int32_t i);
/* The initializer of a state. */
const char *export_weight_name(export_graph *x, const export_weight *weight);

static inline bool export_has(const export_use *u, int32_t i) {
  return i < u->node->n_in && u->node->in[i] != 0;
}
static inline const tn_type *export_type(const export_use *u, int32_t i) {
  return tn_graph_type(u->x->graph, u->node->in[i]);
}
static inline const tn_type *export_result(const export_use *u, int32_t k) {
  return tn_graph_type(u->x->graph, u->node->first_out + (tn_val)k);
}
/* Whether a size depends on the batch. */
static inline bool export_is_batch(const export_graph *x, int64_t size) {
  return size != 0 && size % x->batch == 0;
}

/* ---- expression.c ---- */

/* Writes the nodes of a template, whose results become those of the op. */
tn_status export_yield(const export_use *u, const char *format, ...) TN_PRINTF(2, 3);

/* ---- fold.c ---- */

/* Finds the batch norms that become part of the convolution in front of them. */
tn_status export_fold_find(export_graph *x);
/* Whether the node is such a batch norm: then its result is the convolution's. */
bool export_fold_takes(const export_use *u);
/* The kernel, or the bias, with the norm of such a convolution; NULL without a message: nothing is folded, or
 * the kernel is rounded, and the norm is in its scales. */
const char *export_fold_weight(const export_use *u, bool is_shift);

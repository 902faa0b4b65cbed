/* core/onnx/import.h: from nodes of ONNX to lines of the model language. Private to core/onnx.
 *
 *   import.c      walks the nodes
 *   inputs.c      inputs and outputs of the graph
 *   rows/         a row for each operator, in families: a template, or a function
 *   values.c      the values of the graph: lines, weights, known numbers; attributes of nodes
 *   lines.c       adding of lines
 *   operands.c    operands as texts, and layers with parameters
 *   missing.c     the operators that cannot be expressed
 *   weights.c     parameters, and how they follow from tensors of the file
 *   ties.c        parameters that several layers share
 *   texts.c       numbers and lists as the model language writes them
 *   fold.c        operators whose operands are known: arithmetic of shapes
 *   names.c       names of lines and paths of parameters
 *   modules.c     the modules around a node, as the exporter notes them
 *   scopes.c      the module that a node stands in
 *   prune.c       leaves out lines that no output needs
 *   blocks/       parts that repeat, as sections of their own
 *   write.c       the configuration and its weights
 *
 * Every line is added to a growing model, which tells the types of its results. The batch of that model is
 * ONNX_BATCH, a prime that no real size is a multiple of, so a size that depends on the batch can be told
 * from the others. A graph whose first dimension is no batch is imported whole: the batch is one sample,
 * which has all dimensions of the inputs. */
#pragma once

#include "core/model/growing.h"
#include "core/onnx/onnx.h"
#include "core/onnx/file/onnx_file.h"

#include <stdarg.h>

enum {
  ONNX_BATCH = 7919,
  ONNX_MOST_KNOWN = 4096, /* elements of a weight that are looked at, of a value that follows from them */
  ONNX_MOST_COMPUTED = 1 << 17, /* elements of a constant, or of a value that follows from constants, */
  ONNX_MOST_COMPUTED_IN_ALL = 1 << 25, /* and of all such values */
  ONNX_MOST_OPERANDS = 64,
  ONNX_MOST_TABLES = 4,
  ONNX_MOST_LAYER_WEIGHTS = 8
};

/* A value of the graph. One of `line`, `tensor` and `known` is set, or several of them; `lost` where its node
 * could not be expressed. */
typedef struct onnx_value {
  const char *name;             /* in the file */
  const char *line;             /* the name of the line; NULL: no line has computed it yet */
  const tn_onnx_tensor *tensor; /* of the file */
  const double *known;          /* its elements, where they are few and depend on no input but by the batch */
  tn_type type;                 /* with the batch; floats are f32 */
  int32_t uses;
  int64_t user;   /* the last node that uses it */
  bool is_weight; /* the tensor is an initializer, and no constant of a node */
  bool is_output, lost;
  bool zero;            /* all elements are 0, for any batch */
  const char *lazy;     /* an expression, which becomes a line when the first one reads the value */
  const char *turned;   /* the line of which the value is the transpose of [1, 0, 2] */
  const double *places; /* by element of a sample; NULL: not known (places.c) */
  double stride;        /* of places, from sample to sample */
  int32_t data_type;    /* of the file; 0: unknown, where another line computed it */
} onnx_value;

/* A line: `names = expression` or `names: call <- operands`. */
typedef struct onnx_line {
  const char *names; /* "a" or "a, b" */
  const char *call;
  bool computes; /* `call` is an expression with its operands in it */
  bool has_weights;
  const char **operands;
  int32_t n_operands, n_names;
  const char *value; /* of it, where `names` is a pattern, "layer{i}"; NULL: its name */
  const char *scope; /* the module around it: "layer1.0", "" the model; NULL: it is not known */
} onnx_line;

/* [model], or a block: lines with the names of their own section. */
typedef struct onnx_section {
  const char *name;          /* of the block; NULL: the model */
  const char *args, *inputs; /* lists; NULL: none, and the one input that `in` is */
  const char *input;         /* the value that the first line reads without an arrow */
  const char **outputs;      /* names of lines */
  int32_t n_outputs;
  onnx_line *lines;
  int32_t n_lines;
} onnx_section;

/* A parameter of a line, and the tensor that it starts from. */
enum { ONNX_EVENNESS_UNKNOWN, ONNX_EVEN, ONNX_UNEVEN };
typedef struct onnx_weight {
  const char *path;
  const tn_onnx_tensor *tensor;
  const char *call; /* of its layer; NULL: no other layer shares it */
  int32_t evenness; /* EVEN: all elements are one number */
  int64_t next;     /* another one of the same tensor's name, -1 */
} onnx_weight;

/* A parameter of a layer, and the earlier one that it shares; NULL: it is its own. */
typedef struct onnx_tie {
  const char *name; /* in the layer: weight */
  const onnx_weight *weight;
} onnx_tie;

/* An input of the model; its type is without the batch. */
typedef struct onnx_input {
  const char *name;
  tn_type type;
} onnx_input;

/* An operator that cannot be expressed, once for each reason. */
typedef struct onnx_missing {
  const char *op, *reason;
  int64_t count;
} onnx_missing;

struct onnx_use;

typedef struct onnx_import {
  tn_env *env;
  tn_onnx_file *file;
  tn_arena arena;
  tn_growing *model;
  tn_registry *registry; /* of layers and ops, whose names no block may have; NULL: it is not known */
  tn_name_index names;   /* of values */
  TN_VEC(onnx_value) values;
  TN_VEC(onnx_line) lines;
  TN_VEC(onnx_weight) weights;
  tn_name_index tied;               /* names of tensors of parameters, */
  TN_VEC(int64_t) first_tied;       /* and the last parameter of each */
  int64_t tables[ONNX_MOST_TABLES]; /* parameters of embeddings */
  int32_t n_tables, n_compared;
  TN_VEC(onnx_missing) missing;
  TN_VEC(onnx_input) inputs;
  TN_VEC(const char *) outputs;       /* names of lines */
  TN_VEC(const tn_onnx_node *) nodes; /* of the graph, then those of bodies in the order of their running */
  TN_VEC(bool) done;                  /* by node: another node's row has expressed it, too */
  int32_t depth;                      /* of bodies */
  tn_name_index modules;              /* scopes, as far as the exporter notes what they are, */
  TN_VEC(const char *) kinds;         /* and the names of their classes */
  const char *scope;                  /* of the node that is being expressed; NULL: unknown */
  tn_name_index stems;                /* names of lines that were taken, */
  TN_VEC(int32_t) numbers;            /* and the last number behind each */
  tn_name_index joins;                /* operands of Concat, */
  TN_VEC(const char *) joined;        /* and the line that joins them */
  int64_t computed;                   /* elements of all values that fold.c computed */
  const char *input;                  /* the line of the first input */
  int64_t batch;                      /* of the file; 0: it is not fixed */
  bool whole;                         /* the batch is one sample, which has all dimensions of the inputs */
  /* For rows that have other nodes in the place of theirs: express the nodes with these numbers, and one by
   * the row of its operator. */
  tn_status (*steps)(struct onnx_import *m, int64_t first, int64_t end);
  tn_status (*express)(const struct onnx_use *n);
} onnx_import;

/* A parameter of a layer, and the tensor that it starts from. */
typedef struct onnx_layer_weight {
  const char *name;             /* in the layer: weight */
  const char *from;             /* the tensor's value */
  bool transposed;              /* the last two dimensions are exchanged */
  const tn_onnx_tensor *tensor; /* takes the place of the value's tensor; NULL: the value's */
} onnx_layer_weight;

/* A node that a row expresses. */
typedef struct onnx_use {
  onnx_import *m;
  const tn_onnx_node *node;
  int64_t number;
} onnx_use;

/* ---- places.c ---- */

/* Finds `places` of the node's first result. Where memory is out, they are not known. */
void onnx_keep_places(const onnx_use *n);
/* Whether the operand `index` counts all elements of the operand `list` in their order, so that a Gather is a
 * reshape. */
bool onnx_is_whole_list(const onnx_use *n, int32_t list, int32_t index);

/* ---- texts.c ---- */

/* Texts in the arena; "" where memory is out, which the line then tells. */
const char *onnx_print(const onnx_use *n, const char *format, ...) TN_PRINTF(2, 3);
const char *onnx_print_all(const onnx_use *n, const char *format, va_list args);
/* "[1, 2]", or "1" where all are equal and `one` asks for it. */
const char *onnx_list_text(const onnx_use *n, const int64_t *list, int32_t count, bool one);
/* The shortest decimal text of a number of 32 bits. */
const char *onnx_float_text(const onnx_use *n, double value);
/* The number that this text has: 0.9 for the nearest number of 32 bits. */
double onnx_decimal(const onnx_use *n, double value);

/* ---- names.c ---- */

/* A new name of a line, after the node's name. */
const char *onnx_name(const onnx_use *n);
/* A name that the model language takes, after a text such as "/layer1/layer1.0/relu". */
const char *onnx_tidy(onnx_import *m, const char *text);
/* Whether the language gives the first part of a name a meaning of its own. */
bool onnx_is_taken(const char *name);
/* The path of a layer with these weights. */
const char *onnx_path(const onnx_use *n, const onnx_layer_weight *weights, int32_t n_weights);
/* How many characters at the beginning of a text are a name of a line; 0: none. */
size_t onnx_name_length(const char *text);
/* The name itself, or with a number behind it, so that no line has it. */
const char *onnx_unused(onnx_import *m, const char *name);

/* ---- modules.c ---- */

/* A module around a node: "layer1.0" and "torchvision.models.resnet.Bottleneck", not terminated. */
typedef struct onnx_module {
  const char *path, *kind;
  size_t path_length, kind_length;
} onnx_module;

/* Reads the module that begins at `at` in a node's notes; the beginning of the next, NULL: it was the last.
 */
const char *onnx_module_read(const char *at, onnx_module *part);
/* The module of a node and its operation, "layer1.0" and "add_1", where the exporter noted them. */
bool onnx_read_modules(onnx_import *m, const tn_onnx_node *node, const char **module, const char **operation);

/* ---- scopes.c ---- */

/* The module that a node stands in, as a path of lines; "" the model. NULL: unknown. */
const char *onnx_scope(onnx_import *m, const tn_onnx_node *node);
/* Remembers what the modules around a node are. */
tn_status onnx_note_modules(onnx_import *m, const tn_onnx_node *node);
/* The name of a module's class, "Bottleneck"; NULL: unknown. */
const char *onnx_kind_of(const onnx_import *m, const char *scope);

/* ---- values.c ---- */

/* The status of the failure that a call has recorded. */
static inline tn_status onnx_failed(const onnx_use *n) {
  tn_status code = n->m->env->record->code;
  return code != TN_OK ? code : tn_failf(n->m->env, TN_EUNSUPPORTED, "its operands cannot be expressed");
}
/* TN_EUNSUPPORTED with the reason, for a row. */
#define ONNX_REFUSE(n, ...) tn_failf((n)->m->env, TN_EUNSUPPORTED, __VA_ARGS__)

/* The value with a name of the file, or NULL. Adding a value moves the others. */
onnx_value *onnx_find(const onnx_import *m, const char *name);
tn_status onnx_add_value(onnx_import *m, const onnx_value *value);
/* Reads the elements of a small tensor into value->known. */
tn_status onnx_look(onnx_import *m, onnx_value *value);
/* Operand i; NULL: it is absent. */
const onnx_value *onnx_operand(const onnx_use *n, int32_t i);
bool onnx_has(const onnx_use *n, int32_t i);
/* Whether another node, or the caller of the model, reads result k. */
static inline bool onnx_wants(const onnx_use *n, int32_t k) {
  return k < n->node->n_out && n->node->out[k][0] != '\0' && onnx_find(n->m, n->node->out[k]) != NULL;
}
static inline const tn_type *onnx_type(const onnx_use *n, int32_t i) { return &onnx_operand(n, i)->type; }
/* The elements of an operand, `count` of them; NULL: they depend on the inputs of the model, or are many. */
const double *onnx_peek(const onnx_use *n, int32_t i, int64_t *count);
/* The same for an operand that a row needs; NULL with the reason recorded. */
const double *onnx_known(const onnx_use *n, int32_t i, int64_t *count);
/* The text of operand i in a line: a name, or a number where all elements are one number and `number` allows
 * it. NULL: a failure. Weights become lines. */
const char *onnx_text_of(const onnx_use *n, int32_t i, bool number);
/* The node's result k is this line's value of that name, or these elements. */
tn_status onnx_bind(const onnx_use *n, int32_t k, const char *line);
tn_status onnx_bind_known(const onnx_use *n, int32_t k, const tn_type *type, const double *known);
/* The node's first result is this expression, which needs a line only if another one reads it. */
tn_status onnx_bind_lazy(const onnx_use *n, const char *expression, const tn_type *type, const char *turned);
/* The node's first result is operand i itself. */
tn_status onnx_pass(const onnx_use *n, int32_t i);

/* Whether known numbers are equal (a step of 0), or those of a range (operands.c). */
bool onnx_is_even(const onnx_value *value, double *step);

/* Adds the line `NAME: call <- operands`, all of the node's operands if `operands` is NULL, and binds the
 * node's results to it. `call` has printf's format. */
tn_status onnx_emit(const onnx_use *n, const char *const *operands, int32_t n_operands, const char *call, ...)
    TN_PRINTF(4, 5);
/* The same for operands that are texts already, and a call that is kept. */
tn_status onnx_emit_texts(const onnx_use *n, const char *const *operands, int32_t n_operands,
                          const char *call);
/* The same for a line that computes; texts of operands are in the expression. */
tn_status onnx_compute(const onnx_use *n, const char *expression, ...) TN_PRINTF(2, 3);
/* A line between that computes: its value's name, NULL: a failure. */
const char *onnx_let(const onnx_use *n, const char *expression, ...) TN_PRINTF(2, 3);
/* A line between: its value's name is returned, NULL: a failure. */
const char *onnx_between(const onnx_use *n, const char *const *operands, int32_t n_operands, const char *call,
                         ...) TN_PRINTF(4, 5);

/* A layer with parameters on operand `input`. Its value is that of the first result of `result`: of the node
 * itself, or of a later one that the layer computes, too. */
tn_status onnx_layer(const onnx_use *n, int32_t input, const onnx_use *result,
                     const onnx_layer_weight *weights, int32_t n_weights, const char *call);
/* Adds the line `names: call <- operands` of a layer with parameters; "a, b" are names of two results. */
tn_status onnx_add_layer(onnx_import *m, const char *names, int32_t n_names, const char *const *operands,
                         int32_t n_operands, const char *call);
/* Whether an operand is a tensor of floats in the file, with this number of dimensions (-1: any), that a
 * layer can have as a parameter. */
bool onnx_is_weight(const onnx_use *n, int32_t i, int32_t rank);

/* Counts a use of a value by a node. */
tn_status onnx_count(onnx_import *m, const char *name, int64_t user);
/* Adds a node behind the others, and counts the values that it uses. */
tn_status onnx_add_node(onnx_import *m, const tn_onnx_node *node);

/* Finds the node that alone uses the first result; false: there are several, or it has another operator. */
bool onnx_next(const onnx_use *n, const char *op, onnx_use *next);

/* Attributes; the default where the node has none. */
const tn_onnx_attribute *onnx_attribute(const onnx_use *n, const char *name);
int64_t onnx_whole(const onnx_use *n, const char *name, int64_t otherwise);
double onnx_number(const onnx_use *n, const char *name, double otherwise);
const char *onnx_word(const onnx_use *n, const char *name, const char *otherwise);
/* A list of whole numbers: operand i where the node has it, else the attribute; *count is -1 where it has
 * neither. */
tn_status onnx_wholes(const onnx_use *n, const char *name, int32_t i, const int64_t **list, int32_t *count);

/* An axis counted from the front; -1: the rank has no such axis. */
static inline int32_t onnx_axis(int64_t axis, int32_t rank) {
  return axis < -rank || axis >= rank ? -1 : (int32_t)(axis < 0 ? axis + rank : axis);
}
/* A known number as a whole one; those beyond the range are its ends, NaN is 0. */
static inline int64_t onnx_to_whole(double x) {
  return x >= 0x1p62 ? INT64_MAX : x <= -0x1p62 ? INT64_MIN : x == x ? (int64_t)x : 0;
}
/* The Tenon type of a value: floats are f32, since the precision policy chooses another. TN_ANY: none. */
int32_t onnx_value_dtype(int32_t data_type);

/* The number and type of ConstantOfShape. */
tn_status onnx_filled(const onnx_use *n, double *number, int32_t *dtype);
/* Whether a size depends on the batch. */
static inline bool onnx_is_batch(const onnx_import *m, int64_t size) {
  return !m->whole && size > 0 && size % ONNX_BATCH == 0;
}
/* "dim(image, 0)" for the batch, else the number. */
const char *onnx_size_text(const onnx_use *n, int64_t size);

/* The name of the line of a value, which gets one where it has none; NULL: a failure. */
const char *onnx_line_of(const onnx_use *n, const char *name);
/* Adds the line `name = expression` (lines.c). */
tn_status onnx_add_line(onnx_import *m, const char *name, const char *expression);

/* ---- inputs.c ---- */

/* Adds the inputs and the tensors of the file. */
tn_status onnx_begin(onnx_import *m, const tn_onnx_request *request);
/* Whether the inputs can have a batch as their first dimension, and whether they can be taken whole. */
bool onnx_can_be_batched(const onnx_import *m);
bool onnx_can_be_whole(const onnx_import *m);
/* Gives each output of the graph a line. */
tn_status onnx_end(onnx_import *m);

/* ---- missing.c ---- */

/* Counts an operator that cannot be expressed. */
tn_status onnx_miss(onnx_import *m, const char *op, const char *reason);
/* TN_EUNSUPPORTED with all of them. */
tn_status onnx_tell_missing(onnx_import *m);

/* ---- weights.c ---- */

/* A parameter at `path` with the elements of a tensor. */
tn_status onnx_add_weight(onnx_import *m, const char *path, const tn_onnx_tensor *tensor);
/* The tensor of a layer's parameter; NULL: memory is out. */
const tn_onnx_tensor *onnx_weight_tensor(onnx_import *m, const onnx_layer_weight *weight);
/* A tensor with these elements, which it keeps; NULL: memory is out. */
const tn_onnx_tensor *onnx_make_tensor(onnx_import *m, const char *name, const tn_type *type,
                                       const double *elements);
/* Computes elements of f32 from those of another tensor. */
typedef void (*onnx_shaping)(const void *how, const tn_type *from_type, const float *from, float *to);
/* A tensor of f32 that follows from another one and has its name; NULL: memory is out. */
const tn_onnx_tensor *onnx_derive(onnx_import *m, const tn_onnx_tensor *from, const tn_type *type,
                                  onnx_shaping shape, const void *how);
/* The tensor with its last two dimensions exchanged. */
const tn_onnx_tensor *onnx_transposed(onnx_import *m, const tn_onnx_tensor *from);
/* A line for these elements, which are not trained; NULL: a failure. */
const char *onnx_buffer(const onnx_use *n, const char *name, const tn_type *type, const double *elements);
/* The TensorProto.DataType of an operand; 0: unknown. */
int32_t onnx_data_type(const onnx_use *n, int32_t i);
/* The node's first result is a tensor. */
tn_status onnx_bind_tensor(const onnx_use *n, const tn_onnx_tensor *tensor, bool is_weight);

/* Whether both have the same elements by their origin. */
bool onnx_same_tensor(const tn_onnx_tensor *x, const tn_onnx_tensor *y);

/* ---- ties.c ---- */

/* Finds the earlier parameter that a layer's parameter is: one of the same tensor, or of an embedding's table
 * with the same numbers. */
tn_status onnx_find_tie(onnx_import *m, const char *call, const tn_onnx_tensor *tensor, onnx_tie *tie);
/* Remembers the last parameter, of a layer with this call, so that later layers can share it. */
tn_status onnx_note_weight(onnx_import *m, const char *call);
/* The call with its ties, "linear(10, weight=@wte.weight)", or "@fc" where all parameters are those of fc. */
const char *onnx_tied_call(onnx_import *m, const char *call, const onnx_tie *ties, int32_t n);

/* ---- fold.c ---- */

/* Computes the results of a node whose operands are known. *folded: whether it did. */
tn_status onnx_fold(const onnx_use *n, bool *folded);
/* Whether known operands suffice for an operator that has no row, such as Shape. */
bool onnx_folds(const char *op);

/* ---- rows/ ---- */

/* The dimensions that Reshape, Flatten, Squeeze and Unsqueeze give to operand 0 (rows/shape.c). */
tn_status onnx_new_dims(const onnx_use *n, int64_t dims[TN_MAX_RANK], int32_t *rank);
/* The convolution of these operands by the node's attributes and a kernel of the shape of operand i:
 * "op.conv2d(x, w, stride=2)"; NULL: a failure. */
const char *onnx_conv_text(const onnx_use *n, int32_t i, const char *operands);
/* Dimensions as op.reshape takes them: "[-1, 4]" where the first depends on the batch. NULL: a failure. */
const char *onnx_dims_text(const onnx_use *n, const int64_t *dims, int32_t rank);

typedef struct onnx_row {
  const char *op;
  tn_status (*emit)(const onnx_use *n); /* NULL: the template */
  /* "leaky_relu(slope={alpha=0.01})": the attribute and its default stand between braces; all operands are
   * the line's. */
  const char *call;
  int32_t operands; /* that a node must have; 0: one */
  bool optional;    /* all operands may be absent */
} onnx_row;

extern const onnx_row onnx_pointwise_rows[], onnx_shape_rows[], onnx_concat_rows[], onnx_window_rows[],
    onnx_product_rows[], onnx_norm_rows[], onnx_reduction_rows[], onnx_index_rows[], onnx_loss_rows[],
    onnx_attention_rows[], onnx_recurrent_rows[], onnx_quantized_rows[], onnx_resize_rows[];
extern const onnx_row onnx_flow_rows[], onnx_contrib_rows[], onnx_function_row;
/* The row of a node's operator, or NULL. */
const onnx_row *onnx_row_of(const onnx_import *m, const tn_onnx_node *node);
/* The function of the file that a node calls, or NULL (values.c). */
const tn_onnx_function *onnx_function_of(const onnx_import *m, const tn_onnx_node *node);
/* A layer on the value of a line, as onnx_layer on an operand. */
tn_status onnx_layer_on(const onnx_use *n, const char *line, const onnx_use *result,
                        const onnx_layer_weight *weights, int32_t n_weights, const char *call);
tn_status onnx_row_apply(const onnx_row *row, const onnx_use *n);

/* ---- prune.c ---- */

tn_status onnx_prune(onnx_import *m);

/* ---- blocks/ ---- */

/* The lines as sections, the model first: parts that repeat are blocks. */
tn_status onnx_find_blocks(onnx_import *m, onnx_section **sections, int32_t *n);

/* ---- write.c ---- */

tn_status onnx_write_weights(onnx_import *m, const char *path);
/* The contents of a weight, as the configuration has it. */
tn_status onnx_read_weight(onnx_import *m, const onnx_weight *w, float *to);
/* The configuration; the caller releases it. `weights` NULL: without a file of weights. */
tn_status onnx_write_text(onnx_import *m, const onnx_section *sections, int32_t n, const char *weights,
                          char **text);

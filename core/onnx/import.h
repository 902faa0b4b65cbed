/* core/onnx/import.h: from nodes of ONNX to lines of the model language. Private to core/onnx.
 *
 *   import.c      walks the nodes and collects the operators that cannot be expressed
 *   rows/         a row for each operator, in families: a template, or a function
 *   values.c      the values of the graph: lines, weights, known numbers; emitting of lines
 *   texts.c       numbers and lists as the model language writes them
 *   fold.c        operators whose operands are known: arithmetic of shapes
 *   names.c       names of lines and paths of parameters
 *   write.c       the configuration and its weights
 *
 * Every line is added to a growing model, which tells the types of its results. The batch of that model is
 * ONNX_BATCH, a prime that no real size is a multiple of, so a size that depends on the batch can be told
 * from the others. */
#pragma once

#include "core/model/growing.h"
#include "core/onnx/onnx_file.h"

enum { ONNX_BATCH = 7919, ONNX_MOST_KNOWN = 4096, ONNX_MOST_OPERANDS = 64 };

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
} onnx_value;

/* A line: `names = expression` or `names: call <- operands`. */
typedef struct onnx_line {
  const char *names; /* "a" or "a, b" */
  const char *call;
  bool computes; /* `call` is an expression with its operands in it */
  bool has_weights;
  const char **operands;
  int32_t n_operands, n_names;
} onnx_line;

/* A parameter of a line, and the tensor that it starts from. */
typedef struct onnx_weight {
  const char *path;
  const tn_onnx_tensor *tensor;
  bool transposed; /* the last two dimensions are exchanged */
} onnx_weight;

/* An operator that cannot be expressed, once for each reason. */
typedef struct onnx_missing {
  const char *op, *reason;
  int64_t count;
} onnx_missing;

typedef struct onnx_import {
  tn_env *env;
  tn_onnx_file *file;
  tn_arena arena;
  tn_growing *model;
  tn_name_index names; /* of values */
  TN_VEC(onnx_value) values;
  TN_VEC(onnx_line) lines;
  TN_VEC(onnx_weight) weights;
  TN_VEC(onnx_missing) missing;
  TN_VEC(bool) done;       /* by node: another node's row has expressed it, too */
  tn_name_index stems;     /* names of lines that were taken, */
  TN_VEC(int32_t) numbers; /* and the last number behind each */
  const char *input;       /* the line of the first input */
  int64_t batch;           /* of the file; 0: it is not fixed */
} onnx_import;

/* A parameter of a layer, and the tensor that it starts from. */
typedef struct onnx_layer_weight {
  const char *name; /* in the layer: weight */
  const char *from; /* the tensor's value */
  bool transposed;
} onnx_layer_weight;

/* A node that a row expresses. */
typedef struct onnx_use {
  onnx_import *m;
  const tn_onnx_node *node;
  int64_t number;
} onnx_use;

/* ---- texts.c ---- */

/* Texts in the arena; "" where memory is out, which the line then tells. */
const char *onnx_print(const onnx_use *n, const char *format, ...) TN_PRINTF(2, 3);
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
/* The path of a layer with these weights. */
const char *onnx_path(const onnx_use *n, const onnx_layer_weight *weights, int32_t n_weights);
/* The name itself, or with a number behind it, so that no line has it. */
const char *onnx_unused(onnx_import *m, const char *name);

/* ---- values.c ---- */

/* The status of the failure that a call has recorded. */
static inline tn_status onnx_failed(const onnx_use *n) { return n->m->env->record->code; }
/* TN_EUNSUPPORTED with the reason, for a row. */
#define ONNX_REFUSE(n, ...) tn_failf((n)->m->env, TN_EUNSUPPORTED, __VA_ARGS__)

/* The value with a name of the file, or NULL. Adding a value moves the others. */
onnx_value *onnx_find(const onnx_import *m, const char *name);
tn_status onnx_add_value(onnx_import *m, const onnx_value *value);
/* Operand i; NULL: it is absent. */
const onnx_value *onnx_operand(const onnx_use *n, int32_t i);
bool onnx_has(const onnx_use *n, int32_t i);
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
/* The node's first result is operand i itself. */
tn_status onnx_pass(const onnx_use *n, int32_t i);

/* Adds the line `NAME: call <- operands`, all of the node's operands if `operands` is NULL, and binds the
 * node's results to it. `call` has printf's format. */
tn_status onnx_emit(const onnx_use *n, const char *const *operands, int32_t n_operands, const char *call, ...)
    TN_PRINTF(4, 5);
/* The same for a line that computes; texts of operands are in the expression. */
tn_status onnx_compute(const onnx_use *n, const char *expression, ...) TN_PRINTF(2, 3);
/* A line between: its value's name is returned, NULL: a failure. */
const char *onnx_between(const onnx_use *n, const char *const *operands, int32_t n_operands, const char *call,
                         ...) TN_PRINTF(4, 5);

/* A layer with parameters on operand `input`. Its value is that of the first result of `result`: of the node
 * itself, or of a later one that the layer computes, too. */
tn_status onnx_layer(const onnx_use *n, int32_t input, const onnx_use *result,
                     const onnx_layer_weight *weights, int32_t n_weights, const char *call);
/* Whether an operand is a tensor of floats in the file, with this number of dimensions (-1: any), that a
 * layer can have as a parameter. */
bool onnx_is_weight(const onnx_use *n, int32_t i, int32_t rank);

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
/* "dim(image, 0)" for the batch, else the number. */
const char *onnx_size_text(const onnx_use *n, int64_t size);

/* ---- fold.c ---- */

/* Computes the results of a node whose operands are known. *folded: whether it did. */
tn_status onnx_fold(const onnx_use *n, bool *folded);
/* Whether known operands suffice for an operator that has no row, such as Shape. */
bool onnx_folds(const char *op);

/* ---- rows/ ---- */

typedef struct onnx_row {
  const char *op;
  tn_status (*emit)(const onnx_use *n); /* NULL: the template */
  /* "leaky_relu(slope={alpha=0.01})": the attribute and its default stand between braces; all operands are
   * the line's. */
  const char *call;
  int32_t operands; /* that a node must have; 0: one */
} onnx_row;

extern const onnx_row onnx_pointwise_rows[], onnx_shape_rows[], onnx_window_rows[], onnx_product_rows[],
    onnx_norm_rows[], onnx_reduction_rows[];
/* The row of an operator of the main domain, or NULL. */
const onnx_row *onnx_row_of(const char *op);
tn_status onnx_row_apply(const onnx_row *row, const onnx_use *n);

/* ---- write.c ---- */

tn_status onnx_write_weights(onnx_import *m, const char *path);
/* The configuration; the caller releases it. */
tn_status onnx_write_text(onnx_import *m, const char *weights, char **text);

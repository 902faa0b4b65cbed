/* core/model/assemble.h: the types that core/model shares while it builds a graph. Private to core/model. */
#pragma once

#include "core/model/model.h"
#include "tenon/plugin/layer.h"

enum { TN_MAX_YIELDS = 64, TN_MAX_BLOCK_DEPTH = 32, TN_MAX_BLOCK_ARGS = 1000 };

/* Limits of a model after its blocks and repeats are expanded, which a few nested repeats could exceed
 * without end. Lines and items that apply nothing count as layers, too. */
enum { TN_MAX_LAYERS = 100000, TN_MAX_LINE_BYTES = 128 << 20 };

/* The parsed value of a key, since a block may be applied many times. */
typedef struct tn_parsed_key {
  const tn_key *key;
  tn_line *lines;
  int32_t n;
} tn_parsed_key;

/* A layer or block that was applied under an absolute path, the target of "@name". */
typedef struct tn_module {
  const char *path;
  const tn_item_call *call;
  const struct tn_model_scope *scope; /* evaluates the arguments of the call */
} tn_module;

/* The first layer that maps the last of four dimensions alone, as `linear` does where `flatten` is missing.
 */
typedef struct tn_spread_layer {
  const char *where, *layer, *name; /* where is NULL until such a layer is met */
  tn_type in, out;
} tn_spread_layer;

typedef struct tn_assembly {
  tn_env *env;
  const tn_model_request *request;
  tn_arena arena;
  tn_builder *builder;
  tn_build *b;
  TN_VEC(tn_module) modules;
  tn_name_index module_paths; /* of modules */
  TN_VEC(tn_parsed_key) parsed;
  tn_hash_index parsed_keys;     /* of parsed, by the address of the key */
  const tn_signature *signature; /* NULL for a model function */
  struct tn_model_scope *data;   /* the model's scope */
  bool reads_targets;            /* a line of the layers reads a target */
  TN_VEC(tn_section *) blocks;   /* the sections of blocks */
  tn_name_index block_names;     /* of blocks */
  int64_t layers;                /* expanded so far */
  int32_t depth;                 /* nesting depth of blocks */
  int32_t sharing;               /* nesting depth of "@name", inside of which paths may repeat */
  /* Mistakes are collected: value 0 stands for the unknown result of a line that is wrong. */
  tn_spread_layer spread;
  bool lost;        /* a line was wrong; "@name" may mean a layer of it */
  bool lost_names;  /* a line was wrong whose names are not known, as in "a{i}: ..." */
  bool met_unknown; /* the line being built has evaluated something of unknown value */
} tn_assembly;

/* The names visible to a list of lines: those of the model or of one block. */
typedef struct tn_model_scope {
  tn_assembly *assembly;
  const struct tn_model_scope *data; /* the model's scope, for "data.word" */
  const char *prefix;                /* path prefix of every name; "" for the model */
  const char *own_prefix; /* path prefix of ops and unnamed layers: `prefix`, but in a flat block the path of
                             its use */
  tn_name_index names;
  TN_VEC(tn_val) values;  /* by number of the name */
  const char **arg_names; /* arguments of a block, and numbers of lines such as `head = width // heads` */
  tn_value *arg_values;
  int32_t n_args, n_numbers; /* n_numbers: those of lines, behind the arguments */
  bool has_in;               /* `in` names a value, `in`, which is 0 behind a line that is wrong */
  tn_val in, last;
  const struct tn_model_scope *outer; /* of a block: the scope of its call, */
  const char *outer_where;            /* and the line of the call; */
  tn_section *section;                /* the block's own section */
  bool unnamed; /* this block or an enclosing one has no name, so layers inside cannot have parameters */
} tn_model_scope;

/* The results of a layer or block. */
typedef struct tn_results {
  tn_val v[TN_MAX_YIELDS];
  int32_t n;
} tn_results;

/* error_context.c: puts "WHERE: WHAT: " in front of the text of a failure, once. A text that already
 * begins with WHERE, or with WHAT or the first word of WHAT, loses that part first; a position deeper in
 * the model stays behind WHERE. `what` may be "". */
tn_status tn_error_add_context(tn_env *env, tn_status status, const char *where, const char *what);
/* Skips "HEAD: " at the start of the text, where HEAD is the first n bytes of `head`. */
const char *tn_error_text_behind(const char *text, const char *head, size_t n);
/* "net.ini:14", or "--set model.layers", allocated in the assembly's arena; NULL: out of memory. */
const char *tn_line_where(tn_assembly *assembly, const tn_line *line);
/* Finds a layer in the registry. An unknown name is an error of the configuration, TN_EINVAL. */
tn_status tn_find_layer(const tn_assembly *assembly, const char *name, const tn_layer_kind **kind);

/* lines.c: notes a mistake of a line in the ini, with the blocks around it as context, and makes the builder
 * usable again. Returns TN_OK if the lines after it can be looked at. */
tn_status tn_scope_note(const tn_model_scope *scope, tn_status status);

/* field.c: the value of an input or target of the model; `type` is without the batch. Failures, with their
 * message, stick in the builder, and the value is 0. */
tn_val tn_model_field(const tn_assembly *assembly, const char *name, const tn_type *type);
/* The weights of the samples, f32[batch]; 0: out of memory. */
tn_val tn_model_sample_weight(const tn_assembly *assembly);

/* modules.c: the modules of the model by their paths. tn_module_find gives NULL for an unknown path. A result
 * is valid until the next module is added. Of several modules of a path, which shared blocks may make, the
 * first is found. */
tn_status tn_module_add(tn_assembly *assembly, const tn_module *module);
const tn_module *tn_module_find(const tn_assembly *assembly, const char *path);

/* scope.c: the names of a scope. */
tn_model_scope tn_scope_new(tn_assembly *assembly);
void tn_scope_free(tn_model_scope *scope);
tn_status tn_scope_bind(tn_model_scope *scope, const char *name, tn_val value, const char *where);
tn_status tn_scope_resolve(const tn_model_scope *scope, const char *ref, tn_val *value);
tn_status tn_scope_evaluate(const tn_model_scope *scope, const tn_expr *expr, tn_value *value);
tn_status tn_scope_holds(const tn_model_scope *scope, const tn_expr *condition, bool *holds);
const char *tn_scope_path(const tn_model_scope *scope, const char *name);
/* A path that no parameter has, and that differs among the uses of a flat block. */
const char *tn_scope_own_path(const tn_model_scope *scope, const char *name);
bool tn_scope_has(const tn_model_scope *scope, const char *ref);
tn_scope tn_scope_names(const tn_model_scope *scope);
/* Adds a number, word or list. */
tn_status tn_scope_define(tn_model_scope *scope, const char *name, const tn_value *value);
/* The index of an argument of the block, or of a number that a line has named; -1: neither. */
int32_t tn_scope_find_argument(const tn_model_scope *scope, const char *name);
/* TN_EINVAL if the name is that of an argument or number. */
tn_status tn_scope_refuse_argument(const tn_model_scope *scope, const char *name);

/* outputs.c: the outputs of the model of a configuration; scope->last is then the value that losses read. */
tn_status tn_model_outputs_build(tn_model_scope *scope, tn_section *section);

/* part.c: x[1:, None, 0], by a slice and a reshape. `x` is known. */
tn_status tn_part_emit(const tn_model_scope *scope, tn_val x, const tn_index *index, int32_t n, tn_val *y);

/* operation.c: operations on values. The ops belong to a place: a line of a scope, with the path of its ops.
 */
typedef struct tn_value_place {
  const tn_model_scope *scope;
  const char *path, *where;
} tn_value_place;
/* `op`: TN_BIN_..., TN_UN_... or TN_CHOOSE. */
tn_status tn_value_operate(const tn_value_place *at, int32_t op, const tn_value *given, int32_t n,
                           tn_value *value);
/* TN_EINVAL: the element type does not hold the number. */
tn_status tn_value_check_number(const tn_value_place *at, const tn_value *number, int32_t dtype);
/* The value as a tensor, with its pending factor applied; a number becomes one of `dtype`. */
tn_status tn_value_settle(const tn_value_place *at, const tn_value *value, int32_t dtype, tn_val *tensor);
tn_build_frame tn_value_frame(const tn_value_place *at);
int32_t tn_value_dtype(const tn_value_place *at, const tn_value *value);
/* "yes", "no" and the words that mean the same. */
bool tn_value_is_word(const char *name);
tn_value tn_value_of_number(double number);
static inline tn_value tn_value_of_tensor(tn_val v) {
  return (tn_value){.kind = TN_VALUE_TENSOR, .tensor = v, .number = 1};
}
/* Whether it stands behind a line that is wrong. */
static inline bool tn_value_is_unknown(const tn_value *value) {
  return value->kind == TN_VALUE_TENSOR && value->tensor == 0;
}

/* value.c: whether the value is a list of values of the graph: [a, b]. */
bool tn_value_lists_values(const tn_value *value);
/* value.c: evaluates an expression that may compute with values; `path` is that of its ops. A TENSOR has
 * results: all of a call, else one. */
tn_status tn_scope_compute(const tn_model_scope *scope, const tn_expr *expr, const char *path,
                           const char *where, tn_value *value, tn_results *results);
/* A number as a scalar of `dtype`. */
tn_status tn_scope_number(const tn_model_scope *scope, const tn_value *number, int32_t dtype,
                          const char *path, const char *where, tn_val *tensor);

/* callee.c: what a call names: one of `block`, `layer` and `op`, or gradient(y, x). max_in -1: no limit. */
typedef struct tn_callee {
  const char *name; /* of the op */
  tn_section *block;
  const tn_layer_kind *layer;
  const tn_op_def *op;
  bool is_gradient;
  int32_t min_in, max_in;
} tn_callee;
tn_status tn_callee_find(tn_assembly *assembly, const char *name, tn_callee *callee);
bool tn_callee_exists(const tn_assembly *assembly, const char *name);
/* The call itself, or, where it has the name of an argument that is the name of a layer, that layer's. */
tn_status tn_callee_meant(const tn_model_scope *scope, const tn_item_call *call, const tn_item_call **meant);

/* lines.c: builds the graph of a list of lines in a scope; scope->last is the value of the last line. */
tn_status tn_scope_run(tn_model_scope *scope, const tn_line *lines, int32_t n);
/* The inputs of a line: the values behind its arrow, or the previous value. `path` is that of their ops. */
tn_status tn_line_inputs(const tn_model_scope *scope, const tn_line *line, const char *path,
                         const char *where, tn_results *in);

/* layer.c: applies one call of a layer or block under an absolute path. `scope` evaluates the arguments. */
typedef struct tn_use {
  const tn_item_call *call;
  const char *path; /* absolute; prefix of the parameters' paths */
  bool named;       /* false: `path` is generated and the layer must not have parameters */
  bool inside;      /* the call is a part of an expression */
  bool implicit; /* the input is the value of the line before, which a source such as `full` does not take */
  const char *where;
  const tn_val *in; /* 0: unknown, behind a line that is wrong */
  int32_t n_in;
  const char *text; /* the line, if the call is all that it has; else NULL */
} tn_use;
/* Whether an input comes from a line that is wrong, which is told. */
bool tn_use_is_unknown(const tn_use *use);
tn_status tn_use_apply(const tn_model_scope *scope, const tn_use *use, tn_results *results);
tn_status tn_use_layer(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind,
                       tn_results *results);

/* quantize.c: whether [quantize] names the layer; NULL: it names none. */
bool tn_quantizes(const tn_quantize *quantize, const char *layer);
/* Rounds the input and the weight of a product or convolution of such a layer, of whose operands they are the
 * first two. In the layer's frame. */
void tn_layer_quantize(tn_build *b, const tn_quantize *quantize, const tn_op *op, const void *attributes,
                       tn_val *in, int32_t n);
/* adapt.c: adds the layer's adapter to its first output where [adapt] names the layer, inside of its frame.
 */
tn_status tn_layer_adapt(const tn_model_scope *scope, const tn_use *use, tn_results *results);
/* TN_EINVAL: another layer would read the weight of a layer with an adapter. */
tn_status tn_layer_check_adapted_tie(const tn_model_scope *scope, const char *parameter);

/* habits.c: refuses a call whose arguments are those of PyTorch: the size of the input first. */
tn_status tn_habits_check(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind);
/* Remembers the assembly's first tn_spread_layer. */
void tn_habits_watch(const tn_model_scope *scope, const tn_use *use, const tn_results *results);
/* The failure of a loss on `output`, or in its place that of the layer in front of which `flatten` is
 * missing. */
tn_status tn_habits_explain_loss(const tn_model_scope *scope, const tn_type *output, tn_status status);

/* block_text.c: the sections of blocks, and their keys as lines, each of which is parsed once. */
tn_status tn_blocks_find(tn_assembly *assembly);
void tn_blocks_free(tn_assembly *assembly);
/* NULL: there is no such block. */
tn_section *tn_block_section(const tn_assembly *assembly, const char *name);
/* The lines of the section's key, which exists. */
tn_status tn_block_lines(tn_assembly *assembly, tn_key *key, tn_line **lines, int32_t *n);
/* The value of a key as one line of the model language, with `lead` in front and `tail` behind. The line has
 * no items if the key is absent or empty. */
tn_status tn_block_line(tn_assembly *assembly, tn_section *section, const char *name, const char *lead,
                        const char *tail, tn_line *line);

/* block.c: blocks of the configuration. */
tn_status tn_use_block(const tn_model_scope *scope, const tn_use *use, tn_section *section,
                       tn_results *results);

/* scan.c: `scan(cell)`, a block along the steps of a sequence. Blocks, layers and ops of that name go first.
 */
tn_status tn_use_scan(const tn_model_scope *scope, const tn_use *use, tn_results *results);
/* gradient_call.c: gradient(y, x) */
tn_status tn_use_gradient(const tn_model_scope *scope, const tn_use *use, tn_results *results);

/* objective.c: builds the losses and metrics of [model]. */
tn_status tn_objective_build(tn_model_scope *scope, tn_section *section, const tn_signature *signature,
                             tn_model *model);

/* total_loss.c: builds the total loss and the outputs of the measures. Sums and weights are f32 scalars,
 * one per measure, of this rank's batch. */
typedef struct tn_measure_sums {
  tn_val *sum, *weight;
  tn_val *more; /* "NAME.sums" or "NAME.rows"; 0: the measure has none */
} tn_measure_sums;
tn_status tn_total_loss_build(tn_build *b, const tn_model_request *request, tn_model *model,
                              tn_measure_sums *sums);
/* moved.c: the value of an option that is configured as `value`; 0: it does not move. `item` as in
 * tn_moved_option. */
tn_val tn_moved_value(tn_build *b, const tn_model_request *request, const char *item, const char *option,
                      double value);

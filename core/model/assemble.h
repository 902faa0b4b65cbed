/* core/model/assemble.h: private to core/model: the state of building one graph. */
#ifndef TN_CORE_MODEL_ASSEMBLE_H
#define TN_CORE_MODEL_ASSEMBLE_H

#include "core/model/model.h"
#include "tenon/plugin/layer.h"

enum { TN_MAX_YIELDS = 64, TN_MAX_BLOCK_DEPTH = 32 };

/* A use of a layer or block under an absolute path, for "@name". */
typedef struct tn_module {
  const char *path;
  const tn_item_call *call;
  const struct tn_model_scope *scope; /* whose arguments its expressions use */
} tn_module;

typedef struct tn_assembly {
  tn_env *env;
  const tn_model_request *request;
  tn_arena arena;
  tn_builder *builder;
  tn_build *b;
  TN_VEC(tn_module) modules;
  int32_t depth;   /* of blocks */
  int32_t sharing; /* inside so many uses of "@name", which may name parameters again */
} tn_assembly;

typedef struct tn_named_value {
  const char *name;
  tn_val value;
} tn_named_value;

/* The names that one list of lines can see: the model's, or a block's. */
typedef struct tn_model_scope {
  tn_assembly *assembly;
  const struct tn_model_scope *data; /* the model's own scope, for "data.word" */
  const char *prefix;                /* path in front of every name; "" at the top */
  TN_VEC(tn_named_value) values;
  const char **arg_names; /* a block's arguments */
  tn_value *arg_values;
  int32_t n_args;
  tn_val in, last;
  bool unnamed; /* a block, or one around it, has no name, and so nothing inside may have parameters */
} tn_model_scope;

/* The values that an item yields. */
typedef struct tn_results {
  tn_val v[TN_MAX_YIELDS];
  int32_t n;
} tn_results;

/* place.c: puts "WHERE: WHAT: " in front of a failure's text, once: what builders say begins with the
 * place already, and what has failed at a deeper place keeps that behind this one. `what` may be "". Of
 * WHAT, or its first word, the text's own is dropped. */
tn_status tn_place_error(tn_env *env, tn_status status, const char *where, const char *what);
/* "net.ini:14", or "--set model.layers". In the assembly's arena; NULL: no memory. */
const char *tn_line_where(tn_assembly *assembly, const tn_line *line);
/* A layer of the registry. A name that nobody has is a mistake in the configuration, TN_EINVAL. */
tn_status tn_find_layer(const tn_assembly *assembly, const char *name, const tn_layer_kind **kind);

/* lines.c: runs lines in a scope; scope->last is the value of the last one. */
tn_status tn_scope_run(tn_model_scope *scope, const tn_line *lines, int32_t n);
tn_status tn_scope_bind(tn_model_scope *scope, const char *name, tn_val value, const char *where);
tn_status tn_scope_resolve(const tn_model_scope *scope, const char *ref, tn_val *value);
tn_status tn_scope_evaluate(const tn_model_scope *scope, const tn_expr *expr, tn_value *value);
const char *tn_scope_path(const tn_model_scope *scope, const char *name);
/* The inputs of a line: its refs, or the previous value. */
tn_status tn_line_inputs(const tn_model_scope *scope, const tn_line *line, tn_val *in, int32_t *n);

/* layer.c: applies one call (layer or block) under an absolute path. `scope` evaluates arguments. */
typedef struct tn_use {
  const tn_item_call *call;
  const char *path; /* absolute; of the parameters */
  bool named;       /* false: `path` is made up and parameters are refused */
  const char *where;
  const tn_val *in;
  int32_t n_in;
} tn_use;
tn_status tn_use_apply(const tn_model_scope *scope, const tn_use *use, tn_results *results);
tn_status tn_use_layer(const tn_model_scope *scope, const tn_use *use, const tn_layer_kind *kind,
                       tn_results *results);

/* block.c */
tn_section *tn_block_section(const tn_assembly *assembly, const char *name);
tn_status tn_use_block(const tn_model_scope *scope, const tn_use *use, tn_section *section,
                       tn_results *results);

/* objective.c: losses and metrics of [model] in the model's scope. */
tn_status tn_objective_build(tn_model_scope *scope, tn_section *section, const tn_signature *signature,
                             tn_model *model);

/* total.c: the total and the outputs of a model's measures. Sums and weights are f32 scalars, one per
 * measure, of this rank's batch. */
typedef struct tn_sums {
  tn_val *sum, *weight;
} tn_sums;
tn_status tn_total_build(tn_build *b, bool training, tn_model *model, tn_sums *sums);

#endif

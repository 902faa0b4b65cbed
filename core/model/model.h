/* core/model/model.h: from the lines of a configuration to a graph: blocks, repeats, conditions,
 * named inputs, shared parameters, losses and metrics. */
#ifndef TN_CORE_MODEL_MODEL_H
#define TN_CORE_MODEL_MODEL_H

#include "core/config/options/options.h"
#include "core/config/language/syntax.h"
#include "core/graph/graph.h"

/* A named, typed field of a model's signature, without batch. */
typedef struct tn_signature_field {
  const char *name;
  tn_type type;
} tn_signature_field;

/* What `inputs` and `targets` in [model] fix, so that a plan opens no data. Without `targets` there
 * is one, `label: i32[]`. */
typedef struct tn_signature {
  tn_signature_field *inputs, *targets;
  int32_t n_inputs, n_targets;
} tn_signature;
tn_status tn_signature_read(tn_env *env, tn_arena *arena, tn_ini *ini, tn_signature *signature);

/* The sum of the weights of each loss, f32[losses], over the ranks and micro-batches of an update: what a
 * weighing program leaves for the training programs, where there is more than one micro-batch. */
#define TN_LOSS_WEIGHTS_STATE "run.loss_weights"

/* One loss or metric of the built graph; outputs "NAME.sum" and "NAME.weight" are f32 scalars, over all
 * ranks. */
typedef struct tn_measure {
  const char *name;
  double weight; /* losses: factor in the total */
  bool is_loss;
} tn_measure;

/* What a graph is built for. */
typedef struct tn_model_request {
  tn_ini *ini;
  tn_registry *registry;
  struct tn_op_table *ops;
  int64_t batch; /* of one rank and micro-batch */
  /* How the global batch is cut; 0 as 1. The sum of all ranks' and micro-batches' losses is what one
   * rank alone would have of the whole. */
  int32_t ranks, micro_batches;
  uint64_t seed;
  bool training; /* layers behave as in training */
  bool measured; /* with losses and metrics: needs the targets */
  /* Emits the model in place of [model] (tenon/model.h); NULL: the configuration has it. */
  tn_status (*emit)(tn_build *b, void *user);
  void *user;
} tn_model_request;

typedef struct tn_model {
  tn_graph *graph;      /* owned. Inputs by field name, [batch, ...], and "sample.weight" f32[batch] */
  tn_arena arena;       /* of what follows */
  tn_measure *measures; /* losses first; outputs of the graph beside "loss" and "output" */
  int32_t n_measures;
  tn_val loss_weights; /* f32[losses], of this rank and micro-batch, where there are several of the latter */
} tn_model;

/* Builds the graph: output "output" is the last layer's value; if measured, "loss" is the total,
 * sum over losses of weight * sum(value * weight) / sum(weight), where the last sum is over the global
 * batch, and every measure has its outputs.
 * Errors carry the line of the layer that failed, and of the blocks around it. */
tn_status tn_model_build(tn_env *env, const tn_model_request *request, tn_model *model);
void tn_model_free(tn_model *model);

/* Turns a measured graph of several micro-batches into the program that weighs one of them: it adds the
 * weights of its losses, over all ranks, to TN_LOSS_WEIGHTS_STATE, which the first one starts anew. All
 * else, and what only that needs, is dropped. */
tn_status tn_model_weigh(tn_env *env, tn_model *model);

/* Emits what an initializer says for a tensor of `type` (build.h lists them); the stream makes its
 * random numbers its own. */
tn_val tn_initializer_emit(tn_build *b, const char *init, const tn_type *type, uint64_t stream);

#endif

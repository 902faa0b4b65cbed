/* core/model/model.h: builds the graph of a configuration's model: blocks, repeats, conditions, named
 * inputs, shared parameters, losses and metrics. */
#pragma once

#include "core/base/adapters.h"
#include "core/base/quantize.h"
#include "core/config/options/options.h"
#include "core/config/language/syntax.h"
#include "core/graph/graph.h"

/* An input or target of the model; the type is without the batch dimension. */
typedef struct tn_signature_field {
  const char *name;
  tn_type type; /* -1: the dimension that varies */
} tn_signature_field;

/* The `inputs` and `targets` of [model]; with them the graph can be planned without opening the data.
 * `targets` is `label: i32[]` by default. */
typedef struct tn_signature {
  tn_signature_field *inputs, *targets;
  int32_t n_inputs, n_targets;
  const char *word; /* n, in x: f32[n, 80], the dimension that varies between batches; NULL: none does */
  bool sizes;       /* [model] sizes: it varies between epochs, and may stand several times in a type */
} tn_signature;
/* The word of the dimensions that have [model] sizes. */
#define TN_SIZE_NAME "size"
tn_status tn_signature_read(tn_env *env, tn_arena *arena, tn_ini *ini, tn_signature *signature);
/* Gives the dimension that varies a size. */
void tn_signature_size(tn_signature *signature, int64_t length);
/* The place of the first dimension that varies in a type; -1: none does. */
int32_t tn_signature_axis(const tn_type *type);

/* State f32[losses]: the sum of the weights of each loss over the ranks and micro-batches of an update.
 * With several micro-batches the weighing program computes it before the training programs read it. */
#define TN_LOSS_WEIGHTS_STATE "run.loss_weights"

/* Behind the name of a loss: the parameter of its learned weight (total_loss.c). */
#define TN_LOG_VARIANCE ".log_variance"

/* A loss or metric of the graph; its outputs "NAME.sum" and "NAME.weight" are f32 scalars, summed over all
 * ranks. With of_sums there is "NAME.sums", f64 of the type `row`, likewise; with of_rows, outside of
 * training, "NAME.rows", f32[samples of all ranks, numbers of `row` + 1], where the last number of a sample
 * is its weight. */
typedef struct tn_measure {
  const char *name;
  double weight; /* losses: factor in the total loss */
  bool learned;  /* losses: training weighs it by the state NAME.log_variance, too */
  bool is_loss;
  const char *phase; /* [phase NAME] of the loss; metrics belong to the last one. NULL: there are no phases */
  bool falls;        /* better when small */
  uint32_t of_mean;  /* TN_OF_MEAN_... */
  double (*of_sums)(const double *sums, const tn_type *row); /* at most one of both */
  tn_status (*of_rows)(const void *handle, const float *rows, int64_t n, const tn_type *row, double *value);
  tn_type row; /* of the statistics of a sample */
} tn_measure;

/* Of the sections of phases, in front of their names. */
#define TN_PHASE_SECTION "phase "

typedef struct tn_model_request tn_model_request;

/* Inputs of the model that the graph computes from other inputs: fields whose last transforms the device
 * applies. */
typedef struct tn_prepared_input {
  const char *name;  /* of the field */
  const char *where; /* of its source, for messages */
  tn_val value;      /* written by emit */
} tn_prepared_input;
typedef struct tn_prepared_inputs {
  tn_prepared_input *v;
  int32_t n;
  /* Emits the inputs of request->prepared, before the model, and writes their values. */
  tn_status (*emit)(tn_build *b, const tn_model_request *request);
  const void *context;
} tn_prepared_inputs;

/* An option of a layer or loss, or the weight of a loss, that moves with the steps: input `input`, an f32
 * scalar, is its factor: the value is toward + (its own value - toward) * factor. In training alone. */
typedef struct tn_moved_option {
  const char *item; /* of the layer or loss; NULL: the weight of the loss named `option` */
  const char *option;
  double toward;
  const char *input;
} tn_moved_option;

/* The parameters of a build. */
struct tn_model_request {
  tn_ini *ini;
  tn_registry *registry;
  struct tn_op_table *ops;
  int64_t batch;  /* of one rank and micro-batch */
  int64_t length; /* of the dimension that varies between batches; 0: none does */
  /* The global batch is split over ranks and micro-batches (0 means 1). The losses of all parts add up to
   * the loss that one rank computes for the whole batch. */
  int32_t ranks, micro_batches;
  bool accumulates; /* of a micro-batch that is not the last one of its update */
  uint64_t seed;
  const tn_moved_option *moved;
  int32_t n_moved;
  const tn_freeze *freeze; /* the parameters and buffers that training keeps in `epoch`; NULL: none */
  int64_t epoch;
  const tn_quantize *quantize; /* of operands of layers; NULL: none */
  const tn_adapters *adapters; /* of layers; NULL: none */
  bool training;               /* layers behave as in training */
  bool measured;               /* with losses and metrics, which need the targets */
  const char *phase; /* the total and the outputs are those of this [phase NAME]; NULL: of all measures */
  const tn_prepared_inputs *prepared; /* NULL: all inputs are fields of the batch */
  /* Emits the model in place of [model] (tenon/model.h); NULL: the model is read from the configuration. */
  tn_status (*emit)(tn_build *b, void *user);
  void *user;
};

typedef struct tn_model {
  tn_graph *graph; /* owned; inputs are named like the fields, [batch, ...], and "sample.weight" f32[batch] */
  tn_arena arena;  /* owns the fields below */
  tn_measure *measures; /* losses first */
  int32_t n_measures;
  tn_val loss_weights; /* f32[losses], of this rank and micro-batch; 0 with one micro-batch */
  tn_val first_value;  /* values with smaller numbers prepare inputs */
} tn_model;

/* Builds the graph. Its outputs are those that [model] outputs names, or "output", the value of the last
 * layer. If `measured`, every measure has its outputs, and output "loss" is the total: the sum over losses of
 * weight * sum(value * weight) / sum(weight), with the last sum over the global batch. Messages contain the
 * line of the failed layer and of the enclosing blocks. Mistakes of [model] are noted in the ini and told;
 * those that were noted before do not keep the graph from being built. */
tn_status tn_model_build(tn_env *env, const tn_model_request *request, tn_model *model);
void tn_model_free(tn_model *model);

/* Turns a measured graph with several micro-batches into the weighing program of one micro-batch: it adds
 * the weights of the losses, over all ranks, to TN_LOSS_WEIGHTS_STATE, which the first micro-batch resets.
 * All other outputs and commits are removed. */
tn_status tn_model_weigh(tn_env *env, tn_model *model);

/* Emits the value of an initializer for a tensor of `type` (build.h lists the initializers). `stream`
 * selects the random stream. */
tn_val tn_initializer_emit(tn_build *b, const char *init, const tn_type *type, uint64_t stream);
/* Name, doc and arguments of initializer i, counted from 0, and a use of it, "normal(0, 0.02)"; NULL: there
 * are no more. `example` may be NULL. */
const tn_item *tn_initializer_item(int32_t i, const char **example);

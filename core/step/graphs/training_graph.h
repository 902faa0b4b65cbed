/* core/step/graphs/training_graph.h: the passes that turn a model's graph into a training step: gradients,
 * precision, update of the flat parameters. */
#pragma once

#include "core/compile/state_map.h"
#include "core/model/model.h"
#include "core/run/settings/settings.h"

/* A value that differs by group or step. The host writes its values into the control block before every step:
 * input "control.NAME", or "control.PHASE.NAME", an f32 scalar or, of an option of the optimizer, one f32 per
 * group. */
typedef struct tn_scheduled_option {
  const char *name; /* of the option, "dropout.p" of a layer */
  const char *input;
  int32_t n;      /* values: those of the groups, or 1 */
  int32_t ahead;  /* 1: the value of the next step */
  bool is_factor; /* the factor of the schedule in place of a value */
  /* Of lr, with lr_batch: the samples of an update that the values are meant for, with its rule, TN_LR_...;
   * in a run whose updates differ the value follows those of each. 0: it does not. */
  int64_t samples;
  int32_t rule;
  double *values;                        /* as configured */
  const tn_schedule_setting **schedules; /* NULL: the value stays */
} tn_scheduled_option;

/* Where the gradients are cut into buckets, with [distributed] bucket = auto. */
typedef struct tn_bucket_cuts {
  bool each;          /* before every gradient */
  const char **first; /* the parameters with which buckets begin */
  int32_t n;
} tn_bucket_cuts;

/* A bucket of an update over several ranks. */
typedef struct tn_reduced_bucket {
  const char *first; /* its first parameter */
  int32_t part;      /* only parameters of one part can share a bucket; counted from 0 */
} tn_reduced_bucket;

typedef struct tn_update_info {
  int32_t n_groups; /* the default group and those of the settings */
  tn_scheduled_option *scheduled;
  int32_t n_scheduled;
  tn_reduced_bucket *buckets; /* in the order of the regions */
  int32_t n_buckets;
} tn_update_info;

/* The parameters of a program with the numbers of [run] watch, in the order of its outputs
 * (core/step/update/watch.c). */
typedef struct tn_watched_parameters {
  const char **paths;
  int32_t n;
} tn_watched_parameters;

/* A trained parameter with its gradient. */
typedef struct tn_trained_parameter {
  const tn_gstate *state; /* without its value */
  tn_val gradient;
  int64_t until;  /* the last epoch in which it is frozen; 0: none */
  int64_t offset; /* elements from the start of the region; set by the update */
  int32_t group;  /* set by the update */
  int64_t kind;   /* with a sharded optimizer: parameters of other kinds are in other buckets */
} tn_trained_parameter;

/* The data that the passes of a training step share. */
typedef struct tn_training_graph {
  tn_env *env;
  tn_arena *arena; /* of the members below, and of tn_update_info */
  const tn_settings *settings;
  const tn_bucket_cuts *cuts; /* NULL: of the size of the settings */
  int64_t epoch;     /* the first one for which the step is made: it decides which parameters are frozen */
  bool host;         /* parameters and optimizer state are in memory of the host and updated there */
  bool either_place; /* the update has the same bits with `host` and without */
  uint64_t seed;
  tn_model *model; /* built with training and measured; the passes append to its graph, or replace it */
  tn_state_map *map;
  tn_trained_parameter *params; /* in the order in which their gradients become ready */
  int32_t n_params;
  tn_val scale;                   /* of the loss, an f32 scalar; 0: the loss is not scaled */
  tn_watched_parameters *watched; /* where the update lists what it watches; NULL: nothing */
} tn_training_graph;

/* Outputs of a step whose update may be skipped, both f32 scalars, `skipped` 0 or 1; and the prefix of the
 * state in which a precision policy keeps its scale. */
#define TN_OUTPUT_LOSS_SCALE "loss_scale"
#define TN_OUTPUT_SKIPPED    "skipped"
#define TN_PRECISION_STATE   "precision"

/* check_patterns.c: notes in the ini each pattern of [group.NAME] freeze that matches no parameter or buffer
 * of a model's graph, each [group.NAME] without a parameter, and with [phase NAME] parameters that no phase
 * trains, or two. */
tn_status tn_patterns_check(tn_env *env, tn_ini *ini, const tn_settings *settings, const tn_graph *graph);

/* With [phase NAME]: removes the commits of running statistics that belong to other phases. A statistic that
 * no phase matches belongs to the last one. */
void tn_drop_commits_of_others(tn_training_graph *t);

/* Pass `gradients`: appends the scale of the loss and the gradients of the parameters that the loss depends
 * on, but for those that are frozen in the epoch, and lists them. */
tn_status tn_gradients_emit(tn_training_graph *t);

/* Pass `precision` of a training step, between gradients and update. The gradients keep the dtypes in which
 * they are computed. */
tn_status tn_training_precision(tn_training_graph *t);

/* While a pass replaces the graph, the values that the update reads are outputs, behind those of the model:
 * first the scale, if there is one, then the gradients. `first`: the number of outputs before. */
tn_status tn_training_add_outputs(const tn_training_graph *t);
void tn_training_take_outputs(tn_training_graph *t, size_t first);

/* Pass `chunk`: where a loss of classes reads the product of rows and a matrix, [run] chunk_logits replaces
 * both, and their gradients, by a loop over chunks of rows. Replaces *graph, unless it has no such product.
 * `must`: with chunk_logits = yes or a number, a graph without one is refused. */
tn_status tn_pass_chunk(tn_env *env, const tn_settings *settings, bool must, tn_graph **graph);
/* The same for a training step, between precision and update. */
tn_status tn_training_chunk(tn_training_graph *t);

/* Pass `update`: appends reduction over ranks, clipping, the optimizer and commits, which the policy does not
 * see: they are f32. Gives the trained parameters whose gradients have one dtype, and which are trained from
 * the same epoch on, contiguous locations in the map, in the order in which the gradients become ready, and
 * the optimizer state regions of the same offsets. Of several steps, the one that trains all parameters comes
 * first. */
tn_status tn_update_emit(tn_training_graph *t, tn_update_info *info);

/* The same for every micro-batch but the last: adds the gradients to those of earlier micro-batches. */
tn_status tn_accumulate_emit(tn_training_graph *t);

/* Pass `precision`: asks the policy for the dtype of every float operand of the nodes that make the values
 * from number `begin` to `end` - 1, and inserts casts. Other nodes keep the dtypes of their operands:
 * transforms of the data, which give the values of the host. Replaces *graph, unless the policy changes no
 * operand. */
tn_status tn_pass_precision(tn_env *env, const tn_settings *settings, tn_val begin, tn_val end,
                            tn_graph **graph);

/* The graph that averages running statistics (buffers of float type) over ranks, but for those that are
 * frozen in the epoch. NULL for one rank, and for a model without such buffers. */
tn_status tn_average_statistics_graph(tn_env *env, struct tn_op_table *ops, int32_t ranks,
                                      const tn_state_map *map, const tn_freeze *freeze, int64_t epoch,
                                      tn_graph **graph);

/* The graph of the init program, which commits every state's initializer. */
tn_status tn_init_graph(tn_env *env, struct tn_op_table *ops, uint64_t seed, const tn_state_map *map,
                        tn_graph **graph);

/* core/train/graphs/training_graph.h: the stages between a model's graph and a training step: gradients,
 * precision, and the update of the flat parameters. */
#ifndef TN_CORE_TRAIN_GRAPHS_TRAINING_GRAPH_H
#define TN_CORE_TRAIN_GRAPHS_TRAINING_GRAPH_H

#include "core/compile/state_map.h"
#include "core/model/model.h"
#include "core/train/settings/settings.h"

/* A value that the host writes into the control block before every step: an option that differs by
 * group or step. Input "control.NAME": a scalar, or one f32 per group. */
typedef struct tn_control {
  const char *name; /* of the option */
  double *values;   /* per group, as configured */
} tn_control;

typedef struct tn_update_plan {
  int32_t n_groups; /* 1 + those of the settings that match something */
  tn_control *controls;
  int32_t n_controls;
  size_t first_node; /* of the update, behind the model and its gradient */
} tn_update_plan;

/* Outputs of a step whose update may be skipped: f32 scalars, the second 0 or 1; and the prefix of the
 * state in which a precision policy keeps its scale. */
#define TN_OUTPUT_LOSS_SCALE "loss_scale"
#define TN_OUTPUT_SKIPPED    "skipped"
#define TN_PRECISION_STATE   "precision"

/* Appends to a model's graph (built with training and measured): d loss / d parameters, clipping, the
 * optimizer, commits. Places the trained parameters in `map`, contiguous in the order in which their
 * gradients become ready, and the optimizer's slots beside them. Everything of the plan lies in
 * `arena`. */
tn_status tn_update_emit(tn_env *env, tn_arena *arena, const tn_settings *settings, uint64_t seed,
                         tn_model *model, tn_state_map *map, tn_update_plan *plan);

/* The same for every micro-batch but the last, whose program is the step: gradients are added to those of
 * the micro-batches before. The plan has first_node alone. */
tn_status tn_gather_emit(tn_env *env, tn_arena *arena, const tn_settings *settings, uint64_t seed,
                         tn_model *model, tn_state_map *map, tn_update_plan *plan);

/* Pass `precision`: asks the policy about every float operand of the nodes before number `end`, and
 * inserts casts; later nodes get their operands as they had them. A policy that changes nothing leaves
 * the graph alone. Takes *graph and replaces it. */
tn_status tn_pass_precision(tn_env *env, const tn_settings *settings, size_t end, tn_graph **graph);

/* The graph of the program that averages running statistics over ranks: every buffer of float type. NULL
 * where there are none, or one rank. */
tn_status tn_average_graph(tn_env *env, struct tn_op_table *ops, int32_t ranks, const tn_state_map *map,
                           tn_graph **graph);

/* The graph of the init program: every state's initializer, committed. */
tn_status tn_init_graph(tn_env *env, struct tn_op_table *ops, uint64_t seed, const tn_state_map *map,
                        tn_graph **graph);

#endif

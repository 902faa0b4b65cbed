/* core/train/graphs/update_stages.h: the state of an update under construction, and its stages, private to
 * this folder:
 *
 * gradients.c          differentiate            gradients of the trained parameters
 * reduce_gradients.c   reduce, accumulate       one flat vector, over ranks and micro-batches
 * parameter_groups.c   group, option            [group.NAME], values of scheduled options
 * optimizer_state.c    allocate, state          locations of parameters and optimizer state
 * loss_scaling.c       scale, guard, unscale    loss scaling, and which updates are applied
 * update.c             clip, optimizer, commits and the order of the stages */
#ifndef TN_CORE_TRAIN_GRAPHS_UPDATE_STAGES_H
#define TN_CORE_TRAIN_GRAPHS_UPDATE_STAGES_H

#include "core/train/graphs/training_graph.h"

/* A trained parameter with its gradient. */
typedef struct tn_trained_parameter {
  const tn_gstate *state;
  tn_val gradient;
  int64_t offset; /* elements from the start of the region */
  int32_t group;
} tn_trained_parameter;

typedef struct tn_updater {
  tn_env *env;
  tn_arena *arena;
  const tn_settings *settings;
  tn_graph *graph;
  tn_build *b;
  tn_state_map *map;
  tn_update_info *info;
  tn_trained_parameter *params; /* in the order in which their gradients become ready */
  int32_t n_params;
  int64_t count;                   /* elements of the flat region */
  const tn_trained_parameter *one; /* optimizers for one parameter at a time: the current parameter */
  tn_val scale;                    /* of the loss, an f32 scalar; 0: the loss is not scaled */
  tn_val unscale;                  /* 1 / scale, set by `guard` */
  tn_val applied;                  /* predicate of every commit of the update; 0: they have no predicate */
} tn_updater;

/* The region of the trained parameters, the one in which micro-batches accumulate gradients, and the one of
 * the parameters of [optimizer] freeze. */
#define TN_PARAM_REGION    "param.f32"
#define TN_GRADIENT_REGION "grad.f32"
#define TN_FROZEN_REGION   "frozen.f32"

/* Differentiates the loss, and lists the parameters that it depends on. `seed` is the gradient of the loss; 0
 * stands for 1. */
tn_status tn_updater_differentiate(tn_updater *u, tn_val loss, tn_val seed);
/* All gradients as one vector, summed over ranks and micro-batches. */
tn_val tn_updater_reduce(tn_updater *u);
/* For all micro-batches but the last: accumulates the gradients instead. */
tn_status tn_updater_accumulate(tn_updater *u);

/* Asks the precision policy for the scale of the loss. */
tn_status tn_updater_scale(tn_updater *u);
/* Loss scaling, clipping, check_finite and reductions in f16 make the update conditional: it is applied if
 * the reduced, still scaled gradients are finite, and the inverse of the scale is. Then lets the policy
 * update its scale. */
tn_status tn_updater_guard(tn_updater *u, tn_val scaled);
/* After `guard`: the gradients divided by the scale. */
tn_val tn_updater_unscale(tn_updater *u, tn_val scaled);
/* Under the same conditions, each element of the commits so far (those of the model) keeps its old value if
 * the new one is not finite. */
tn_status tn_updater_guard_statistics(tn_updater *u);

/* Assigns each parameter to the first [group.NAME] that matches, or to group 0, and allocates the scheduled
 * options. */
tn_status tn_updater_group(tn_updater *u);
/* Frame callback: the value of a scheduled option for the current parameters. */
tn_val tn_updater_option(tn_build *b, void *updater, const char *name);

/* Gives the parameters contiguous locations in the flat region. */
tn_status tn_updater_allocate(tn_updater *u);
/* Frame callbacks: tn_build_state of an elementwise optimizer, and of one for one parameter at a time. */
tn_val tn_updater_flat_state(tn_build *b, void *updater, const char *name, const tn_type *type,
                             const char *init);
tn_val tn_updater_parameter_state(tn_build *b, void *updater, const char *name, const tn_type *type,
                                  const char *init);

#endif

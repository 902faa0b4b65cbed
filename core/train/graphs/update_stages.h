/* core/train/graphs/update_stages.h: private to update*.c and scaling.c: an update in the making, and its
 * stages in the order in which they are emitted.
 *
 *   update_gradients.c  differentiate             gradients of the trained parameters
 *   update_reduce.c     reduce, gather            one flat vector of them, over ranks and micro-batches
 *   update_groups.c     group, option             [group.NAME], values of options from the control block
 *   update_slots.c      place, slots              where parameters and the optimizer's slots lie
 *   scaling.c           scale, unscale, guard     loss scaling, and which steps are applied
 *   update.c            clip, optimizer, commits  and the order of all */
#ifndef TN_CORE_TRAIN_GRAPHS_UPDATE_STAGES_H
#define TN_CORE_TRAIN_GRAPHS_UPDATE_STAGES_H

#include "core/train/graphs/training_graph.h"

/* A trained parameter: where it lies and which group it is in. */
typedef struct tn_trained {
  const tn_gstate *state;
  tn_val gradient;
  int64_t offset; /* in elements of the region */
  int32_t group;
} tn_trained;

typedef struct tn_updater {
  tn_env *env;
  tn_arena *arena;
  const tn_settings *settings;
  tn_graph *graph;
  tn_build *b;
  tn_state_map *map;
  tn_update_plan *plan;
  tn_trained *params; /* in the order in which their gradients become ready */
  int32_t n_params;
  int64_t count;         /* elements of the flat region */
  const tn_trained *one; /* per-parameter optimizers: the parameter at hand */
  tn_val scale;          /* of the loss, f32 scalar; 0: not scaled */
  tn_val applied;        /* predicate of every commit of the update; 0: always */
} tn_updater;

/* Region "param.f32" and the path that stands for all of it; the region in which micro-batches add up. */
#define TN_PARAM_REGION    "param.f32"
#define TN_GRADIENT_REGION "grad.f32"

/* Differentiates, and lists the parameters that the loss depends on. `seed`: the gradient of the loss
 * itself, 0 for 1. */
tn_status tn_updater_differentiate(tn_updater *u, tn_val loss, tn_val seed);
/* All gradients as one vector, summed over ranks and micro-batches. */
tn_val tn_updater_reduce(tn_updater *u);
/* In place of that, for all micro-batches but the last: adds the gradients to those of the ones before. */
tn_status tn_updater_gather(tn_updater *u);

/* Asks the precision policy for the scale of the loss. */
tn_status tn_updater_scale(tn_updater *u);
/* The gradients as they were without a scale. */
tn_val tn_updater_unscale(tn_updater *u, tn_val flat);
/* Where scaling, clipping or check_finite asks for it: the step is applied only if the gradients, reduced
 * and unscaled, are finite. Lets the policy change its scale. */
tn_status tn_updater_guard(tn_updater *u, tn_val flat);
/* Then, too, the model's own commits, which are all that there are so far, are skipped each by itself if
 * they are not finite. */
tn_status tn_updater_guard_statistics(tn_updater *u);

/* Group 0 is what no [group.NAME] matches; the first that matches wins. Makes room for the controls. */
tn_status tn_updater_group(tn_updater *u);
/* For frames: the value of a scheduled option for the parameters at hand. */
tn_val tn_updater_option(tn_build *b, void *updater, const char *name);

/* Places the parameters in the flat region, one after the other. */
tn_status tn_updater_place(tn_updater *u);
/* For frames: tn_build_state inside an elementwise optimizer, and inside one that sees one parameter at a
 * time. */
tn_val tn_updater_flat_slot(tn_build *b, void *updater, const char *name, const tn_type *type,
                            const char *init);
tn_val tn_updater_slot_of_one(tn_build *b, void *updater, const char *name, const tn_type *type,
                              const char *init);

#endif

/* core/step/update/update_stages.h: the state of an update under construction, and its stages, private to
 * this folder:
 *
 * gradients.c          differentiate            gradients of the trained parameters
 * sharpness.c          sharpen                  [optimizer] sharpness: gradients at perturbed parameters
 * gradient_parts.c     divide                   the parameters with gradients of one dtype, trained from one
 *                                               epoch
 * shard_parts.c        divide                   with an optimizer that is sharded or on the host: a part for
 *                                               each bucket
 * reduce_gradients.c   reduce, accumulate       one flat vector a part, over ranks and micro-batches
 * parameter_groups.c   group, option            [group.NAME], values of scheduled options
 * layer_depths.c       find_depths              [optimizer] layer_decay: the layers of the parameters
 * optimizer_state.c    allocate, state          locations of parameters and optimizer state
 * loss_scaling.c       scale, guard, unscale    loss scaling, and which updates are applied
 * state_dtypes.c       kept states              [optimizer] state_dtype: states in 16 or 8 bits
 * state_blocks.c         begin, end              blocks of states in 8 bits
 * dynamic_map.c        encode, decode           the 256 numbers of states in 8 bits
 * averages.c           average                  averages of parameters and statistics
 * clip.c               clip                     limits of the gradients
 * pruning.c            prune                    [prune]
 * cautious.c           step_cautiously          [optimizer] cautious
 * lookahead.c          look_ahead               [optimizer] lookahead
 * watch.c              watch                    the numbers of [run] watch
 * update.c             optimizer, commits and the order of the stages */
#pragma once

#include "core/step/graphs/training_graph.h"

/* The parameters whose gradients have the same dtype, and which are trained from the same epoch on. They are
 * one region, so that the gradients are one vector of that dtype, which the update casts where it reads it,
 * and a step that does not train them leaves their state alone. */
typedef struct tn_gradient_part {
  int64_t until;    /* the last epoch in which they are frozen; 0: none */
  int32_t dtype;    /* in which the gradients are computed */
  bool blocks;      /* states in 8 bits: rows of TN_STATE_BLOCK elements, where each parameter begins one */
  int32_t first, n; /* parameters */
  int32_t bucket;  /* of an updater that divides by buckets, a part is one, and this is its number; else -1 */
  int64_t count;   /* elements of the region, set by `allocate` */
  int64_t held;    /* those that this rank updates: all, or its share of a sharded optimizer */
  tn_val gradient; /* of those, as one vector: set by `reduce`, f32 from `unscale` on */
} tn_gradient_part;

/* Parameters whose scheduled options have the same values. */
typedef struct tn_update_group {
  int32_t setting; /* 0: [optimizer]; n: the n-th of the settings' groups */
  double lr;       /* factor of the learning rate */
  bool decays;     /* whether it has weight decay */
} tn_update_group;

/* A state of the optimizer that is kept in another form than the optimizer sees. */
typedef struct tn_kept_state {
  tn_val shown, next;               /* as the optimizer sees it: f32, before and after the update */
  tn_val old, old_maxima;           /* as it is kept, before the update, in the shape of the optimizer */
  const char *name, *path, *maxima; /* the paths of the state, and of the greatest magnitudes of its blocks */
  int32_t dtype, values;            /* of the state; TN_VALUES_... */
  struct tn_kept_state *before;
} tn_kept_state;

typedef struct tn_updater {
  tn_env *env;
  tn_arena *arena;
  const tn_settings *settings;
  const tn_bucket_cuts *cuts; /* tn_training_graph.cuts */
  int64_t epoch;              /* tn_training_graph.epoch */
  tn_graph *graph;
  tn_build *b;
  tn_state_map *map;
  tn_update_info *info;
  tn_trained_parameter *params; /* part by part, each in the order in which its gradients become ready */
  int32_t n_params;
  tn_gradient_part *parts;
  int32_t n_parts;
  bool row_major; /* `reduce` packs row-major gradients, because not all that reads them is elementwise */
  tn_update_group *groups; /* info->n_groups: those of the settings first, in their order */
  int32_t shards;          /* the ranks that share the update; 1: each updates all parameters */
  bool host;               /* tn_training_graph.host */
  bool buckets;            /* a part for each bucket: the optimizer is sharded, or on the host */
  bool sorted; /* parameters of a part are in the order of the buckets that it has, or would have on the host
                */
  const tn_gradient_part *part;    /* the current part */
  const tn_trained_parameter *one; /* optimizers for one parameter at a time: the current parameter */
  struct tn_block_loop *loop;      /* of the current part's blocks; NULL: none */
  tn_kept_state *kept;             /* of the optimizer's call under way, the last one first */
  tn_val scale;                    /* of the loss, an f32 scalar; 0: the loss is not scaled */
  tn_val unscale;                  /* 1 / scale, set by `guard` */
  tn_val ascent_norm; /* [optimizer] sharpness: of the gradients of the first pass; 0: there is one pass */
  tn_val applied;     /* predicate of every commit of the update; 0: they have no predicate */
  tn_watched_parameters *watched;    /* tn_training_graph.watched */
  tn_val *watch_sums, *watch_counts; /* [n_params * TN_WATCH_SUMS], [n_params * 2]; watch.h */
} tn_updater;

/* The name of the regions of trained parameters (tn_updater_region), the region in which micro-batches
 * accumulate gradients, and the one of the parameters that are never trained. */
#define TN_PARAM_REGION    "param"
#define TN_GRADIENT_REGION "grad.f32"
#define TN_FROZEN_REGION   "frozen.f32"

/* In front of the names of states that are one number for all parameters. */
#define TN_OPTIMIZER_SCALARS "optimizer"

/* Differentiates the loss, and lists the parameters that it depends on. `seed` is the gradient of the loss; 0
 * stands for 1. */
tn_status tn_updater_differentiate(tn_updater *u, tn_val loss, tn_val seed);
/* [optimizer] sharpness: appends a second pass, and gives the parameters its gradients. */
tn_status tn_updater_sharpen(tn_updater *u);
/* The gradients of all parameters in their shapes, in f32, summed over ranks. */
tn_status tn_updater_sum_gradients(tn_updater *u, tn_val *sums);
/* Decides which gradients stay in low precision, casts the others to f32, and sorts the parameters. After
 * `group`. */
tn_status tn_updater_divide(tn_updater *u);
/* With tn_updater.sorted: notes which parameters may share a bucket, before they are sorted; then sorts the
 * parameters of a part, or divides it into parts of one bucket each. The parameters are in `sorted`. */
tn_status tn_updater_find_kinds(tn_updater *u);
void tn_updater_sort_part(const tn_gradient_part *part, tn_trained_parameter *sorted);
tn_status tn_updater_divide_part(tn_updater *u, const tn_gradient_part *part, tn_trained_parameter *sorted);
/* The number of parameters from the first of `n` on that are one bucket, or would be one on the host. */
int32_t tn_updater_bucket_length(const tn_updater *u, const tn_trained_parameter *params, int32_t n);
/* The sum, minimum or maximum (TN_REDUCTION_...) of an f32 scalar over the ranks that share the update. */
tn_val tn_updater_over_shards(tn_updater *u, tn_val value, int32_t reduction);
/* Whether a bucket that has so many bytes ends before a parameter of its part. */
bool tn_updater_ends_bucket(const tn_updater *u, int64_t bytes, const tn_trained_parameter *next);
/* The gradients of each part as one vector, summed over ranks and micro-batches. */
tn_status tn_updater_reduce(tn_updater *u);
/* For all micro-batches but the last: accumulates the gradients instead. */
tn_status tn_updater_accumulate(tn_updater *u);

/* Asks the precision policy for the scale of the loss. */
tn_status tn_updater_scale(tn_updater *u);
/* Loss scaling, clipping, check_finite and reductions in f16 make the update conditional: it is applied if
 * the reduced, still scaled gradients are finite, and the inverse of the scale is. Then lets the policy
 * update its scale. */
tn_status tn_updater_guard(tn_updater *u);
/* After `guard`: casts the gradients of each part to f32, and divides them by the scale. */
void tn_updater_unscale(tn_updater *u);
/* Under the same conditions, each element of the commits so far (those of the model) keeps its old value if
 * the new one is not finite. */
tn_status tn_updater_guard_statistics(tn_updater *u);

/* Assigns each parameter to the first [group.NAME] that matches, or to group 0, divides groups by layer_decay
 * and no_decay, and allocates the scheduled options. */
tn_status tn_updater_group(tn_updater *u);
/* The options of the optimizer for a group. */
const void *tn_updater_group_options(const tn_updater *u, int32_t group);
/* The depths of the parameters: the place of each one's layer among those of the model, counted from 0, in an
 * array of the arena, and the greatest of all. */
tn_status tn_updater_find_depths(tn_updater *u, int64_t **depths, int64_t *last);
/* After `unscale`: limits the gradients, by [optimizer] clip_value, clip_layer, clip_adaptive and clip, in
 * this order. */
tn_status tn_updater_clip(tn_updater *u);
/* Whether gradients have limits. */
bool tn_updater_clips(const tn_updater *u);
/* Whether something reads the gradient of each parameter in its shape. */
bool tn_updater_sees_parameters(const tn_settings *settings);
/* A parameter's elements of its part's vector, in its shape. */
tn_val tn_updater_slice(const tn_updater *u, const tn_trained_parameter *param, tn_val flat);
/* Packs a value for each parameter of a part, in its shape, into one vector, which the optimizer takes. */
tn_val tn_updater_pack(tn_updater *u, const tn_gradient_part *part, const tn_val *values);
/* Of an optimizer, in its frame: the new parameter, and for [optimizer] cautious the parameter without the
 * step, the step, and the gradient that it follows (core/graph/build/emit_optimizer.h). */
enum { TN_UPDATE_RESULTS = 4 };
/* [optimizer] cautious: the new parameter by the elements of the step that agree with the gradient. */
tn_val tn_updater_step_cautiously(tn_updater *u, const tn_val results[TN_UPDATE_RESULTS]);
/* [prune]: after `unscale`, the gradients of pruned weights are zero; behind the optimizer, the new parameter
 * with these weights zero. */
tn_status tn_updater_prune_gradients(tn_updater *u);
tn_val tn_updater_prune(tn_updater *u, tn_val next);
/* [optimizer] lookahead: the new parameter, or in every so many updates the slow one. */
tn_val tn_updater_look_ahead(tn_updater *u, tn_val next);
/* [run] watch, where u->watched asks for it: after `divide`; after `unscale`; after the update of a part, or
 * of one parameter of an optimizer that takes them one at a time; and at the end. */
tn_status tn_updater_watch(tn_updater *u);
tn_status tn_updater_watch_gradients(tn_updater *u);
void tn_updater_watch_region(tn_updater *u, const tn_gradient_part *part, tn_val now, tn_val next);
void tn_updater_watch_parameter(tn_updater *u, const tn_trained_parameter *param, tn_val now, tn_val next);
tn_status tn_updater_watch_outputs(tn_updater *u);
/* [optimizer] state_dtype. Frame callback: tn_build_state of an optimizer. */
tn_val tn_updater_kept_state(tn_build *b, void *updater, const char *name, const tn_type *type,
                             const char *init);
/* A state of a wrapper, which is always f32. */
tn_val tn_updater_exact_state(tn_updater *u, const char *name, const tn_type *type);
/* Notes the next value of a kept state; false: the state is not kept. */
bool tn_updater_keep(tn_updater *u, tn_val shown, tn_val next);
/* After the optimizer's call, in its frame: commits the kept states, and ends the part's blocks; *next is the
 * new value of `param` as the optimizer made it, and becomes that of the part. */
tn_status tn_updater_store_states(tn_updater *u, tn_val param, tn_val *next);
/* The elements of a region with blocks, which are a whole number of loops' groups. (state_blocks.c) */
int64_t tn_updater_padded_blocks(int64_t count, int32_t shards);
/* Between both, the optimizer sees the current part in blocks, or in groups of them: the body of a loop,
 * which chooses between the old and the new values where the update is conditional. */
tn_status tn_updater_begin_blocks(tn_updater *u);
tn_status tn_updater_end_blocks(tn_updater *u, int32_t n, const tn_val *old, tn_val *values);
/* Whether a loop has chosen the value of a commit. */
bool tn_updater_has_chosen(const tn_updater *u, const tn_gcommit *commit);
/* The gradient of the part in the optimizer's shape: its factors are part of the loop. */
tn_val tn_updater_shape_gradient(tn_updater *u, tn_val flat);
/* The current part's vector, which has a number for each element or for each block, in the shape in which the
 * optimizer sees it; and back, where there is no loop. */
tn_val tn_updater_shape(tn_updater *u, tn_val flat);
tn_val tn_updater_flatten(const tn_updater *u, tn_val shaped);
/* The numbers that codes stand for: -1 to 1, or 0 to 1 if they are positive, f32. And the codes, u8, of the
 * numbers nearest to magnitudes between 0 and 1 with signs. (dynamic_map.c) */
tn_val tn_dynamic_map_decode(tn_build *b, tn_val codes, bool positive);
tn_val tn_dynamic_map_encode(tn_build *b, tn_val magnitude, tn_val sign, bool positive);
/* Frame callback: the value of a scheduled option for the current parameters; 0: it is a number. */
tn_val tn_updater_option(tn_build *b, void *updater, const char *name);

/* Bytes of a bucket of f32 of an update on the host, where the settings give none: the update of one begins
 * when its gradients are there, and the last one runs when the device has nothing left to do. */
enum { TN_HOST_BUCKET = 32 << 20 };

/* Elements of a block of a state in 8 bits, and of the smallest parameter with such states. */
enum { TN_STATE_BLOCK = 256, TN_STATE_LEAST = 4096 };
/* Gives the parameters of each part contiguous locations in a region. */
tn_status tn_updater_allocate(tn_updater *u);
/* "PREFIX.NAME", or "PREFIX.PHASE.NAME" of a [phase NAME]: what each phase has for itself. NULL: out of
 * memory. */
const char *tn_updater_own(const tn_updater *u, const char *prefix, const char *name);
/* The name of the part's region of parameters or optimizer state, "param.f32", "param.f32.bf16" if the
 * gradients are bf16, "param.f32.int8" if states have 8 bits, "param.f32.bf16.4" if they are trained from
 * epoch 4 on, and "param.f32.bf16.4.b2" if they are bucket 2 where buckets are parts, and "param.f32/critic"
 * of [phase critic]; in the updater's arena. NULL: out of memory. */
const char *tn_updater_region(const tn_updater *u, const tn_gradient_part *part, const char *name);
/* The path of the counter of the part's updates, TN_UPDATES_STATE, "run.updates.4", or of a [phase NAME],
 * whose parts may be NULL, "run.updates.critic"; NULL: out of memory. */
const char *tn_updater_counter(const tn_updater *u, const tn_gradient_part *part);
/* The state of an elementwise optimizer, a number for each element of the part, or for each block; and that
 * of an optimizer for one parameter at a time. */
tn_val tn_updater_flat_state(tn_build *b, void *updater, const char *name, const tn_type *type,
                             const char *init);
tn_val tn_updater_parameter_state(tn_build *b, void *updater, const char *name, const tn_type *type,
                                  const char *init);

/* With [optimizer] ema: the average of the current parameters, whose next values these are, and of the
 * running statistics that the commits so far change. With swa_from they only get locations. */
tn_status tn_updater_average(tn_updater *u, tn_val next);
tn_status tn_updater_average_statistics(tn_updater *u);

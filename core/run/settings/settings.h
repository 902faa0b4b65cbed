/* core/run/settings/settings.h: the sections that Tenon itself defines, as structs. A table of options
 * describes each of them, as for plugins. A section that chooses an item ([optimizer], [data]) also holds
 * that item's options. */
#pragma once

#include <math.h>
#include <string.h>

#include "core/config/ini/ini.h"
#include "core/base/file/file.h"
#include "core/config/options/options.h"
#include "core/config/sections/sections.h"
#include "core/config/language/syntax.h"
#include "core/data/loader.h"
#include "core/exec/device/pin_threads.h"
#include "core/plugin/parts.h"
#include "core/plugin/registry.h"
#include "core/base/adapters.h"
#include "core/base/freeze.h"
#include "core/base/quantize.h"
#include "core/compile/kernels/interconnect.h"
#include "tenon/plugin/observer.h"
#include "tenon/plugin/optimizer.h"
#include "tenon/plugin/precision.h"
#include "tenon/plugin/schedule.h"

typedef struct tn_run_section {
  const char *name;
  int64_t seed, epochs, max_steps, pause_after;
  const char *limit_train, *limit_valid;
  int64_t overfit;
  double max_time;
  int32_t fast_dev_run;
  int64_t threads;
  const char *pin;
  int64_t memory_limit;
  int32_t offload; /* TN_OFFLOAD_... */
  const char *offload_folder;
  const char *steps_per_launch, *chunk_logits;
  const char *output;
  const char *observers;
  int64_t save_every, valid_every, keep_last, keep_best, profile;
  int64_t watch;
  const char *watch_groups;
  int32_t watch_histograms;
  int64_t samples;
  const char *sample_fields;
  int64_t sample_tokens;
  const char *keep_every, *target;
  const char *best;
  int32_t best_mode; /* TN_BEST_... */
  int64_t patience;
  double min_delta;
  int32_t deterministic, report;
} tn_run_section;
enum { TN_BEST_AUTO = 0, TN_BEST_MIN = 1, TN_BEST_MAX = 2 };
enum { TN_OFFLOAD_AUTO = 0, TN_OFFLOAD_NO = 1 };

/* The most steps of one launch. */
enum { TN_MAX_STEPS_PER_LAUNCH = 16 };

typedef struct tn_backend_section {
  const char *use;
  int32_t fallback, capture, autotune;
  const char *tune_folder, *without;
} tn_backend_section;
enum { TN_AUTOTUNE_YES = 0, TN_AUTOTUNE_CACHED = 1, TN_AUTOTUNE_NO = 2 };

typedef struct tn_data_section {
  const char *source;
  int64_t batch, workers, prefetch, epoch;
  const char *fold;
  const char *transforms, *device_transforms, *cache;
  int32_t shuffle, balance, last, corrupt;
} tn_data_section;
enum { TN_LAST_DROP = 0, TN_LAST_PAD = 1 };
enum { TN_CORRUPT_ERROR = 0, TN_CORRUPT_SKIP = 1 };
enum { TN_CACHE_AUTO = -1 };

typedef struct tn_optimizer_section {
  const char *type;
  double clip, clip_value, clip_layer, clip_adaptive, clip_epsilon;
  double layer_decay;
  int32_t no_decay;
  int64_t accumulate;
  int32_t check_finite;
  int32_t cautious;
  int64_t lookahead;
  double lookahead_alpha;
  double sharpness, sharpness_eta;
  int32_t sharpness_adaptive;
  int32_t state_dtype; /* TN_STATES_... */
  int32_t place;       /* TN_OPTIMIZER_... */
  double ema;
  int64_t swa_from;
  int64_t lr_batch;
  int32_t lr_rule;
} tn_optimizer_section;
enum { TN_OPTIMIZER_ON_DEVICE = 0, TN_OPTIMIZER_ON_HOST = 1, TN_OPTIMIZER_PLACE_AUTO = 2 };
enum { TN_STATES_F32 = 0, TN_STATES_BF16 = 1, TN_STATES_INT8 = 2 };
enum { TN_LR_LINEAR = 0, TN_LR_SQRT = 1 };

/* [optimizer] lr_rule: the factor of lr for an update with `ratio` times the samples (Goyal et al.,
 * "Accurate, large minibatch SGD", 2017; the root: Krizhevsky, "One weird trick", 2014). */
static inline double tn_lr_by_batch(double ratio, int32_t rule) {
  return rule == TN_LR_SQRT ? sqrt(ratio) : ratio;
}

/* Whether a state of the optimizer is the average of the parameter. */
static inline bool tn_optimizer_has_average(const tn_optimizer *kind) {
  const tn_optimizer_state *state = kind != NULL ? kind->states : NULL;
  while (state != NULL && state->name != NULL && strcmp(state->name, "average") != 0) state++;
  return state != NULL && state->name != NULL;
}

typedef struct tn_schedule_section {
  const char *type;
  int64_t warmup;
  int32_t warmup_unit, warmup_shape; /* TN_UNIT_..., TN_WARMUP_... */
  const char *warmup_start;
  double toward;
  const char *metric;
  int32_t metric_mode; /* TN_METRIC_... */
} tn_schedule_section;
enum { TN_METRIC_AUTO = 0, TN_METRIC_MIN = 1, TN_METRIC_MAX = 2 };
enum { TN_WARMUP_LINEAR = 0, TN_WARMUP_CONSTANT = 1, TN_WARMUP_EXPONENTIAL = 2, TN_WARMUP_COSINE = 3 };

/* The target of a schedule: an option of the optimizer, [optimizer] ema, an option of a layer or loss of the
 * model, the weight of a loss, an option of a transform, [optimizer] accumulate, or the size among
 * [model] sizes. */
typedef enum tn_schedule_target {
  TN_SCHEDULES_OPTIMIZER,
  TN_SCHEDULES_EMA,
  TN_SCHEDULES_LAYER,
  TN_SCHEDULES_LOSS,
  TN_SCHEDULES_TRANSFORM,
  TN_SCHEDULES_ACCUMULATE,
  TN_SCHEDULES_SIZE
} tn_schedule_target;

/* A field of a transform's options that a schedule moves. */
typedef struct tn_moved_field {
  const tn_option *option;
  void *options; /* of the transform */
  double value;  /* as configured */
} tn_moved_field;

/* The schedule of an option: its section, and the item with its options. */
typedef struct tn_schedule_setting {
  const char *name; /* of the section: "schedule", "schedule.weight_decay.head" */
  tn_schedule_target target;
  const tn_item *item; /* of LAYER and TRANSFORM */
  const char *option;  /* of LOSS: the name of the loss */
  const char *group;   /* the name of the only group that it is for; NULL: all */
  tn_schedule_section section;
  double warmup_start;    /* of section; < 0: auto */
  tn_moved_field *fields; /* of TRANSFORM */
  int32_t n_fields;
  const tn_schedule *kind;
  const void *options;
} tn_schedule_setting;

/* [distributed] reduce_dtype */
enum { TN_REDUCE_F32 = 0, TN_REDUCE_BF16 = 1, TN_REDUCE_F16 = 2 };
/* [distributed] bucket */
enum { TN_BUCKET_AUTO = 0 };
/* [distributed] hang */
enum { TN_HANG_NEVER = 0, TN_HANG_AUTO = -1 };
/* [distributed] shard */
enum { TN_SHARD_NO = 0, TN_SHARD_OPTIMIZER = 1 };

typedef struct tn_distributed_section {
  const char *communicator, *devices, *processes;
  double timeout;
  const char *hang;
  double straggler;
  const char *bucket;
  int32_t reduce_dtype; /* TN_REDUCE_... */
  int32_t shard;        /* TN_SHARD_... */
  const char *link, *host_link;
  int64_t host_ranks;
} tn_distributed_section;

typedef struct tn_weights_section {
  const char *file, *prefix, *rename, *skip, *transpose, *base;
  int32_t map; /* TN_MAP_... */
} tn_weights_section;
enum { TN_MAP_AUTO = 0, TN_MAP_YES = 1, TN_MAP_NO = 2 };

/* A parameter group: patterns, and its own copy of the optimizer's options. */
typedef struct tn_group_setting {
  const char *name;
  const char *match; /* as written */
  tn_words patterns;
  const void *options;
  const char *freeze; /* as written */
  int64_t until;      /* the last epoch in which it is frozen (core/base/freeze.h) */
  double lr_scale;
  int64_t depth; /* for layer_decay; TN_DEPTH_AUTO */
  bool decays;   /* it has a weight_decay of its own, which no_decay does not change */
  double clip_value, clip_layer, clip_adaptive; /* its own, or those of [optimizer] */
  const char *where;
} tn_group_setting;
enum { TN_DEPTH_AUTO = -1 };

/* A phase is the training of some parameters by programs of its own: those of epochs with the same frozen
 * parameters, or those of a [phase NAME], which takes its turn in every step. */
enum { TN_MAX_PHASES = 8 };

/* [phase NAME]: the parameters that it trains, in every Nth step, by an optimizer of its own. */
typedef struct tn_turn_setting {
  const char *name, *where;
  const char *match; /* as written */
  tn_words patterns;
  int64_t every;
  tn_optimizer_section optimizer; /* its own keys, and the others of [optimizer] */
  const tn_optimizer *optimizer_kind;
  const void *optimizer_options;
} tn_turn_setting;

/* Whether a phase takes its turn in a step, counted from 1. */
static inline bool tn_turn_is_due(const tn_turn_setting *turn, int64_t step) {
  return step % turn->every == 0;
}
/* Sizes of the dimension that varies between batches, each with programs of its own. */
enum { TN_MAX_LENGTHS = 8 };

/* [run] chunk_logits: where it saves much memory, everywhere, nowhere. */
enum { TN_CHUNK_LOGITS_AUTO = 0, TN_CHUNK_LOGITS_YES = -1, TN_CHUNK_LOGITS_NO = -2 };

/* One split's data: the section, and the source with its options. */
typedef struct tn_data_setting {
  bool given;
  tn_data_section section;
  bool batch_auto; /* training finds the batch (core/step/programs/find_batch.h); until then section.batch is
                      the default */
  const tn_source *source;
  const void *options;
  tn_transform_use *transforms;
  int32_t n_transforms;
  tn_transform_use *sized[TN_MAX_LENGTHS]; /* the same at each of [model] sizes but the largest */
  int32_t device_transforms;               /* how many of the last ones; TN_DEVICE_TRANSFORMS_AUTO */
  int64_t cache;                           /* bytes; TN_CACHE_AUTO */
  tn_data_fold fold;                       /* of both splits; 0 parts: the source is not divided */
  const char *where;
} tn_data_setting;

/* [run] keep_every: one of the three, or 0. */
typedef struct tn_keep_every {
  int64_t epochs, steps;
  double seconds;
} tn_keep_every;

/* [sweep]: what `tenon sweep` runs. Its keys with a point, such as optimizer.lr, are read by core/sweep. */
typedef struct tn_sweep_section {
  int32_t method; /* TN_SWEEP_... */
  int64_t runs, jobs, folds, seed, factor, min_epochs;
} tn_sweep_section;
enum { TN_SWEEP_AUTO = 0, TN_SWEEP_GRID = 1, TN_SWEEP_RANDOM = 2, TN_SWEEP_HALVING = 3, TN_SWEEP_ASHA = 4 };

/* [prune]: weights of small magnitude that become zero. */
typedef struct tn_prune_section {
  double sparsity, initial;
  const char *match, *pattern;
  int64_t first, last, every;
  int32_t unit, scope;
} tn_prune_section;
enum { TN_PRUNE_STEPS = 0, TN_PRUNE_EPOCHS = 1 };
enum { TN_PRUNE_LAYER = 0, TN_PRUNE_GLOBAL = 1 };
typedef struct tn_prune_setting {
  bool given;
  const char *where;
  tn_prune_section section;
  tn_words match;
  int32_t keep, of; /* pattern: so many of so many neighbours stay; 0: any do */
} tn_prune_setting;
/* Whether a parameter of this path and type is pruned. */
bool tn_prune_matches(const tn_prune_setting *setting, const char *path, const tn_type *type);

typedef struct tn_settings {
  const char *model_where; /* location of [model] or its loss, for messages */
  tn_run_section run;
  tn_pin pin;               /* of run */
  int32_t steps_per_launch; /* of run; 0: auto */
  int64_t chunk_logits;     /* of run: rows of a chunk, or TN_CHUNK_LOGITS_... */
  const char *chunk_logits_where;
  tn_epoch_limit limit[2]; /* of run; TN_SPLIT_TRAIN, TN_SPLIT_VALID */
  tn_backend_section backend;
  tn_data_setting data[2]; /* TN_SPLIT_TRAIN, TN_SPLIT_VALID */
  tn_part_settings parts;  /* [source NAME] */
  tn_optimizer_section optimizer;
  const tn_optimizer *optimizer_kind;
  const void *optimizer_options;
  tn_group_setting *groups; /* without the default group, and without those that are frozen for ever */
  int32_t n_groups;
  tn_group_setting *frozen; /* the groups with freeze = yes, which have no options, and those with a number */
  int32_t n_frozen;
  /* Of all groups, those with freeze = yes first; n is 0 where none is frozen. */
  tn_freeze freeze;
  tn_prune_setting prune;
  tn_quantize quantize;
  tn_adapters adapters;          /* of [adapt] and [adapt.NAME] */
  int64_t phases[TN_MAX_PHASES]; /* the first epoch of each, counted from 1 */
  int32_t n_phases;              /* at least 1 */
  tn_turn_setting *turns;        /* [phase NAME], in the order of the file; these are the phases, then */
  int32_t n_turns;
  bool turns_wrong;                /* one of them has a mistake, which is noted */
  const tn_turn_setting *turn;     /* the one that tn_settings_of_turn has put in; NULL: none */
  int64_t lengths[TN_MAX_LENGTHS]; /* of [model] lengths or sizes, in ascending order */
  int32_t n_lengths;               /* 0: no dimension varies */
  bool sizes; /* they are sizes: the dimensions `size` vary between epochs, and have the largest in evaluation
               */
  tn_schedule_setting *schedule;  /* [schedule], of lr */
  tn_schedule_setting *schedules; /* [schedule.OPTION], [schedule.OPTION.GROUP], [schedule.ITEM.OPTION] */
  int32_t n_schedules;
  tn_distributed_section distributed;
  int64_t bucket;               /* of distributed: bytes, or TN_BUCKET_AUTO */
  double hang;                  /* of distributed: seconds, or TN_HANG_... */
  bool reduces_alone;           /* a single rank reduces its gradients too (tn_run_bench) */
  tn_interconnect interconnect; /* of distributed: its links */
  tn_weights_section weights;
  tn_sweep_section sweep;
  tn_keep_every keep_every;  /* of run */
  tn_words watch_patterns;   /* of run; none for blocks and parameters */
  const char *target_metric; /* of run; NULL: no target */
  double target_value;
  const tn_precision *precision;
  const void *precision_options;
} tn_settings;

/* Reads every section but [model] and [block ...]. Texts are allocated in the ini's arena. */
/* Mistakes are noted in the ini (tn_ini_tell), and settings that they concern are unset. */
tn_status tn_settings_read(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *settings);
/* After the model was built: an unused section or key is an error with the nearest name; an unused block is a
 * warning. */
tn_status tn_settings_check_sections(tn_env *env, tn_registry *registry, tn_ini *ini);

/* "file.ini:14" of a key; without the key, of its section; without the section, the file. */
const char *tn_settings_where(tn_ini *ini, const char *section, const char *key);

/* The schedule of an option of the optimizer for a group, "" for the default group: that of
 * [schedule.OPTION.GROUP], else of [schedule.OPTION], else, of lr, [schedule]; or NULL. */
const tn_schedule_setting *tn_settings_schedule(const tn_settings *settings, const char *option,
                                                const char *group);

/* The first schedule of a target, or NULL. */
const tn_schedule_setting *tn_settings_schedule_of(const tn_settings *settings, tn_schedule_target target);

/* Loads the plugins of [plugins] load. The key holds absolute paths afterwards. */
tn_status tn_settings_load_plugins(tn_env *env, tn_registry *registry, tn_ini *ini);

/* The last epoch in which a group with such a `freeze` is frozen, 0 for no; false: it is no such value. */
bool tn_settings_frozen_until(const char *freeze, int64_t *until);
/* The phase of an epoch, counted from 1; and the last epoch of a phase. */
int32_t tn_settings_phase(const tn_settings *settings, int64_t epoch);
/* The longest of [model] lengths, or 0. */
static inline int64_t tn_settings_longest(const tn_settings *settings) {
  return settings->n_lengths > 0 ? settings->lengths[settings->n_lengths - 1] : 0;
}
/* "sizes", "lengths": the key of [model]. */
static inline const char *tn_settings_lengths_key(const tn_settings *settings) {
  return settings->sizes ? "sizes" : "lengths";
}
/* Among how many of so many ranks the optimizer's state is divided; 1: every rank has all of it. */
static inline int32_t tn_settings_shards(const tn_settings *settings, int32_t ranks) {
  return settings->distributed.shard == TN_SHARD_OPTIMIZER ? ranks : 1;
}
/* The settings of the update of a phase: with [phase NAME], its optimizer. */
tn_settings tn_settings_of_turn(const tn_settings *settings, int32_t phase);
/* The phase of [phase NAME], counted from 0, that trains a parameter, or owns a running statistic; -1: none.
 */
int32_t tn_settings_find_turn(const tn_settings *settings, const char *path);
int64_t tn_settings_phase_end(const tn_settings *settings, int32_t phase);

/* The options of an item from its section [KIND.NAME], or their defaults. */
tn_status tn_settings_item_options(tn_env *env, tn_ini *ini, const char *kind, const tn_item *item,
                                   const void **options);

/* Appends the configuration as INI text, with every key that it does not give at its default: those of the
 * host's sections, of the chosen items, and of `backend` (NULL: of backends with a section). It reads back to
 * the same settings. */
tn_status tn_settings_print_resolved(tn_env *env, tn_registry *registry, const tn_ini *given,
                                     const tn_settings *settings, const char *backend, tn_text *text);

/* The item of a name. TN_EINVAL: no item has this name. TN_EUNAVAILABLE: its plugin cannot be opened. */
/* calls.c: the list of a key, or NULL, at each of [model] sizes. */
tn_status tn_settings_read_transforms(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                      tn_key *key, const tn_settings *settings, tn_data_setting *data);
tn_status tn_settings_find_item(tn_env *env, tn_registry *registry, uint32_t kind, const char *name,
                                const tn_item **item);

/* The tables of all sections, for `tenon config`; NULL-terminated. */
extern const tn_item *const tn_settings_tables[];

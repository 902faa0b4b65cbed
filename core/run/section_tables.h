/* core/run/section_tables.h: the option tables of the sections that Tenon itself defines, private
 * to core/train. */
#pragma once

#include "core/run/settings/settings.h"

/* Sections that only name an item, or that other rooms read. */
typedef struct tn_policy_section {
  const char *policy;
} tn_policy_section;

typedef struct tn_plugins_section {
  const char *load;
} tn_plugins_section;

typedef struct tn_model_section {
  const char *inputs, *targets, *lengths, *sizes, *layers, *outputs, *loss, *metrics;
} tn_model_section;

typedef struct tn_block_section {
  const char *args, *inputs, *layers, *outputs;
  int32_t flat;
} tn_block_section;

typedef struct tn_match_section {
  const char *match;
  const char *freeze;
  double lr_scale;
  int64_t depth;
  double clip_value, clip_layer, clip_adaptive; /* below 0: those of [optimizer] */
} tn_match_section;

typedef struct tn_phase_section {
  const char *match, *loss, *optimizer;
  int64_t every;
} tn_phase_section;

typedef struct tn_adapt_section {
  int32_t type;
  const char *match;
  int64_t rank;
  double alpha, dropout;
  int32_t rslora;
  const char *train;
} tn_adapt_section;

typedef struct tn_quantize_section {
  const char *match;
  int64_t input_bits, weight_bits;
  int32_t observer;
  double averaging;
  int64_t observe;
} tn_quantize_section;

typedef struct tn_source_section {
  const char *source;
} tn_source_section;

extern const tn_item tn_table_run, tn_table_backend, tn_table_data, tn_table_optimizer, tn_table_schedule,
    tn_table_distributed, tn_table_weights, tn_table_precision, tn_table_plugins, tn_table_model,
    tn_table_block, tn_table_group, tn_table_phase, tn_table_prune, tn_table_quantize, tn_table_adapt,
    tn_table_source, tn_table_sweep;

/* items.c: keeps a mistake and goes on. Sections whose reader failed are not looked at again. */
tn_status tn_settings_note(tn_env *env, tn_ini *ini, const char *section, tn_status status);
/* choices.c: the item that a key of a section chooses; messages name the key. */
tn_status tn_settings_find_chosen(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                  const char *key, uint32_t kind, const char *name, const tn_item **item);
/* A section whose `key` chooses an item, and which holds the options of both. */
typedef struct tn_item_choice {
  const tn_item *table;
  const char *section, *key;
  uint32_t kind;
  void *into;          /* table->options_bytes */
  const tn_item *item; /* out */
  const void *options; /* out */
} tn_item_choice;
tn_status tn_settings_read_choice(tn_env *env, tn_registry *registry, tn_ini *ini, tn_item_choice *c);

/* calls.c: the items and the file that calls are read with. */
typedef struct tn_call_reading {
  tn_env *env;
  tn_registry *registry;
  tn_ini *ini;
  const struct tn_scope *names; /* that arguments may use; NULL: none */
} tn_call_reading;
typedef struct tn_item_use {
  const tn_item *item;
  const void *options; /* in the ini's arena */
} tn_item_use;
/* `color_jitter(0.4)`: an item of a kind and its options. */
tn_status tn_settings_read_call(const tn_call_reading *r, uint32_t kind, const char *name,
                                const tn_call_arg *args, int32_t n_args, tn_item_use *use);
/* Sets the options of a section's item that are lists of items, in front of tn_section_fill. */
tn_status tn_settings_read_lists(const tn_call_reading *r, tn_section *section, tn_options *options);
/* schedules.c: [schedule] and [schedule.OPTION]. After the groups. */
tn_status tn_settings_read_schedules(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s);
/* accumulate.c: [schedule.accumulate]: that there is something to change, and the section, when it is read.
 */
tn_status tn_settings_schedule_accumulate(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                          tn_schedule_setting *schedule);
tn_status tn_settings_check_accumulate(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                       const tn_schedule_setting *schedule);
/* After the data: finds the transforms of training that schedules move. */
tn_status tn_settings_find_moved(tn_env *env, tn_ini *ini, tn_settings *s);

/* Removes the options of items that an overridden `name` key chose, unless the table or the chosen item has
 * an option of that name. */
tn_status tn_settings_remove_replaced(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                      const char *name, uint32_t kind, const tn_item *table,
                                      const tn_item *chosen);

/* Reads a section with one table into the table's struct. */
tn_status tn_settings_read_section(tn_env *env, tn_ini *ini, const tn_item *table, void *into);
/* idle_keys.c: keys without effect are errors: in [data.valid], of its own transforms, and in [group.NAME].
 */
tn_status tn_settings_check_validation_keys(tn_env *env, tn_ini *ini, const tn_section *valid);
tn_status tn_settings_check_validation_transforms(tn_env *env, const tn_section *section,
                                                  const tn_data_setting *data);
/* [data] balance without shuffle. */
tn_status tn_settings_check_balance(tn_env *env, tn_ini *ini, const tn_section *base, const tn_section *own,
                                    const tn_data_setting *data);
tn_status tn_settings_check_group_keys(tn_env *env, tn_ini *ini, const tn_section *group,
                                       const tn_optimizer *optimizer);
/* The same for a group that is never trained. */
tn_status tn_settings_check_frozen_keys(tn_env *env, tn_ini *ini, const tn_section *group,
                                        const tn_optimizer *optimizer);
/* [optimizer] lr_rule without lr_batch, also of a [phase NAME]. */
tn_status tn_settings_check_lr_rule(tn_env *env, tn_ini *ini, const tn_settings *s);
/* groups.c: [group.NAME], and the keys of [optimizer] that concern them. After [optimizer]. */
tn_status tn_settings_read_groups(tn_env *env, tn_ini *ini, tn_settings *settings);
/* phases.c: the parameters that are frozen, and the phases of the run, from the groups. */
tn_status tn_settings_find_phases(tn_env *env, tn_ini *ini, tn_settings *s);
/* turns.c: [phase NAME], after the other sections. */
tn_status tn_settings_read_turns(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s);
/* adapters.c: [adapt] and [adapt.NAME], after the groups. */
tn_status tn_settings_read_adapters(tn_env *env, tn_ini *ini, tn_settings *s);
/* prune.c: [prune], after [distributed]. */
tn_status tn_settings_read_prune(tn_env *env, tn_ini *ini, tn_settings *s);
/* quantize.c: [quantize], after [adapt]. */
tn_status tn_settings_read_quantize(tn_env *env, tn_ini *ini, tn_settings *s);
/* limits.c: [run] limit_train, limit_valid, overfit. */
tn_status tn_settings_read_limits(tn_env *env, tn_ini *ini, tn_settings *settings);
/* keep.c: [run] keep_every and target. */
tn_status tn_settings_read_keep(tn_env *env, tn_ini *ini, tn_settings *settings);
/* sweep.c: [sweep], without its keys with a point. */
tn_status tn_settings_read_sweep(tn_env *env, tn_ini *ini, tn_settings *settings);
/* fold.c: [data] fold, which holds for both splits; after their sections were read. */
tn_status tn_settings_read_fold(tn_env *env, tn_ini *ini, tn_settings *settings);
/* lengths.c: [model] lengths and sizes; and [schedule.size], which chooses among several. */
tn_status tn_settings_schedule_size(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                    tn_schedule_setting *schedule);
tn_status tn_settings_read_lengths(tn_env *env, tn_ini *ini, tn_settings *settings);
/* read_links.c: [distributed] link, host_link, bucket and hang. */
tn_status tn_settings_read_links(tn_env *env, tn_ini *ini, tn_settings *settings);
/* parts.c: [source NAME]. */
tn_status tn_settings_read_parts(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *settings);
/* load_plugins.c: whether an optional plugin of [plugins] load is missing. */
bool tn_settings_plugin_missing(tn_registry *registry, tn_ini *ini);

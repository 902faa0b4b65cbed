/* core/train/settings/section_tables.h: private to core/train: the tables of the host's own sections, an item
 * each. */
#ifndef TN_CORE_TRAIN_SETTINGS_SECTION_TABLES_H
#define TN_CORE_TRAIN_SETTINGS_SECTION_TABLES_H

#include "core/train/settings/settings.h"

/* Sections that only name something, or that somebody else reads. */
typedef struct tn_policy_section {
  const char *policy;
} tn_policy_section;

typedef struct tn_plugins_section {
  const char *load;
} tn_plugins_section;

typedef struct tn_model_section {
  const char *inputs, *targets, *layers, *loss, *metrics;
} tn_model_section;

typedef struct tn_block_section {
  const char *args, *inputs, *layers, *outputs;
} tn_block_section;

typedef struct tn_match_section {
  const char *match;
} tn_match_section;

extern const tn_item tn_table_run, tn_table_backend, tn_table_data, tn_table_optimizer, tn_table_schedule,
    tn_table_distributed, tn_table_weights, tn_table_precision, tn_table_plugins, tn_table_model,
    tn_table_block, tn_table_group;

/* Removes the options of items that the key `name` chose before it was overridden, and that neither the
 * table nor the chosen item knows. */
tn_status tn_settings_leave_replaced(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                     const char *name, uint32_t kind, const tn_item *table,
                                     const tn_item *chosen);

/* A section that is described by one table alone, into the table's struct. */
tn_status tn_settings_plain(tn_env *env, tn_ini *ini, const tn_item *table, void *into);
/* plugins.c: whether [plugins] names a plugin that may be absent, and is. */
bool tn_settings_lack_plugin(tn_registry *registry, tn_ini *ini);

#endif

/* core/train/settings/unused_keys.c: the last look at sections and keys that nobody has read. */
#include <string.h>

#include "core/train/settings/section_tables.h"

static void mark_used(tn_section *section) {
  section->used = true;
  for (int32_t k = 0; k < section->n_keys; k++) section->keys[k].used = true;
}

/* [observer.NAME], [backend.NAME] and [communicator.NAME] of an item that this run does not open: it must
 * exist, and take these options, all the same. */
static tn_status check_item_section(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                    const char *kind, uint32_t number) {
  const tn_item *item = NULL;
  const void *options;
  const char *where = tn_key_where(ini, section, NULL);
  tn_status status = tn_settings_find(env, registry, number, section->name + strlen(kind) + 1, &item);
  if (status == TN_OK) return tn_settings_item(env, ini, kind, item, &options);
  if (status != TN_EINVAL || !tn_settings_lack_plugin(registry, ini))
    return tn_wrap(env, status, "%s: [%s]", where, section->name);
  tn_logf(env, TN_LOG_WARN, "%s: [%s] is not read: a plugin that may be absent is", where, section->name);
  mark_used(section);
  return TN_OK;
}

/* An unused block is a loose end, not a mistake. */
static tn_status look_at_unused(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section) {
  if (tn_text_starts(section->name, "backend."))
    return check_item_section(env, registry, ini, section, "backend", TN_BACKEND);
  if (tn_text_starts(section->name, "observer."))
    return check_item_section(env, registry, ini, section, "observer", TN_OBSERVER);
  if (tn_text_starts(section->name, "communicator."))
    return check_item_section(env, registry, ini, section, "communicator", TN_COMMUNICATOR);
  if (!tn_text_starts(section->name, "block ")) return TN_OK;
  tn_logf(env, TN_LOG_WARN, "%s: [%s] is not used", tn_key_where(ini, section, NULL), section->name);
  mark_used(section);
  return TN_OK;
}

tn_status tn_settings_check_sections(tn_env *env, tn_registry *registry, tn_ini *ini) {
  const tn_schema_section known[] = {
#define KNOWN(pattern, table)                                                                                \
  {                                                                                                          \
    pattern, (const tn_item *const[]) { &table, NULL }                                                       \
  }
      KNOWN("run", tn_table_run),
      KNOWN("backend", tn_table_backend),
      KNOWN("data", tn_table_data),
      KNOWN("data.train", tn_table_data),
      KNOWN("data.valid", tn_table_data),
      KNOWN("optimizer", tn_table_optimizer),
      KNOWN("schedule", tn_table_schedule),
      KNOWN("distributed", tn_table_distributed),
      KNOWN("weights", tn_table_weights),
      KNOWN("precision", tn_table_precision),
      KNOWN("plugins", tn_table_plugins),
      KNOWN("group.*", tn_table_group),
      KNOWN("model", tn_table_model),
      KNOWN("block *", tn_table_block),
      {"backend.*", NULL},
      {"observer.*", NULL},
      {"communicator.*", NULL}};
#undef KNOWN
  for (int32_t i = 0; i < ini->n_sections; i++)
    if (!ini->sections[i].used) TN_TRY(look_at_unused(env, registry, ini, &ini->sections[i]));
  return tn_schema_check(env, ini, known, sizeof known / sizeof *known);
}

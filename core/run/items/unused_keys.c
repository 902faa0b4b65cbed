/* core/run/items/unused_keys.c: checks the sections and keys that were not read. */
#include <string.h>

#include "core/run/section_tables.h"

/* Reads [observer.NAME], [backend.NAME] or [communicator.NAME] of an item that this run does not open, so
 * that errors in it are reported. */
static tn_status unused_keys_check_item(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                        const char *kind, uint32_t number) {
  const tn_item *item = NULL;
  const void *options;
  const char *where = tn_key_where(ini, section, NULL);
  tn_status status = tn_settings_find_item(env, registry, number, section->name + strlen(kind) + 1, &item);
  if (status == TN_OK) return tn_settings_item_options(env, ini, kind, item, &options);
  if (status != TN_EINVAL || !tn_settings_plugin_missing(registry, ini))
    return tn_wrap(env, status, "%s: [%s]", where, section->name);
  tn_logf(env, TN_LOG_WARN, "%s: [%s] is ignored: an optional plugin is missing", where, section->name);
  tn_section_mark_used(section);
  return TN_OK;
}

/* An unused block is a warning. */
static tn_status unused_keys_check_section(tn_env *env, tn_registry *registry, tn_ini *ini,
                                           tn_section *section) {
  if (tn_text_starts(section->name, "backend."))
    return unused_keys_check_item(env, registry, ini, section, "backend", TN_BACKEND);
  if (tn_text_starts(section->name, "observer."))
    return unused_keys_check_item(env, registry, ini, section, "observer", TN_OBSERVER);
  if (tn_text_starts(section->name, "communicator."))
    return unused_keys_check_item(env, registry, ini, section, "communicator", TN_COMMUNICATOR);
  if (!tn_text_starts(section->name, "block ")) return TN_OK;
  if (ini->mistakes.n == 0) /* behind a line of the model that is wrong, blocks are not looked at */
    tn_logf(env, TN_LOG_WARN, "%s: [%s] is not used", tn_key_where(ini, section, NULL), section->name);
  tn_section_mark_used(section);
  return TN_OK;
}

static tn_status unused_keys_note(tn_env *env, tn_ini *ini, tn_section *section, tn_status status) {
  if (status == TN_EINVAL) tn_section_mark_used(section);
  return tn_ini_note(env, ini, status);
}

tn_status tn_settings_check_sections(tn_env *env, tn_registry *registry, tn_ini *ini) {
  const tn_section_pattern known[] = {
#define KNOWN(pattern, table)                                                                                \
  {                                                                                                          \
    pattern, (const tn_item *const[]) { &table, NULL }                                                       \
  }
      KNOWN("run", tn_table_run),
      KNOWN("backend", tn_table_backend),
      KNOWN("data", tn_table_data),
      KNOWN("data.train", tn_table_data),
      KNOWN("data.valid", tn_table_data),
      KNOWN("source *", tn_table_source),
      KNOWN("optimizer", tn_table_optimizer),
      KNOWN("schedule", tn_table_schedule),
      KNOWN("schedule.*", tn_table_schedule),
      KNOWN("distributed", tn_table_distributed),
      KNOWN("weights", tn_table_weights),
      KNOWN("precision", tn_table_precision),
      KNOWN("plugins", tn_table_plugins),
      KNOWN("sweep", tn_table_sweep),
      KNOWN("group.*", tn_table_group),
      KNOWN("phase *", tn_table_phase),
      KNOWN("adapt", tn_table_adapt),
      KNOWN("adapt.*", tn_table_adapt),
      KNOWN("model", tn_table_model),
      KNOWN("block *", tn_table_block),
      {"backend.*", NULL},
      {"observer.*", NULL},
      {"communicator.*", NULL}};
#undef KNOWN
  for (int32_t i = 0; i < ini->n_sections; i++)
    if (!ini->sections[i].used)
      TN_TRY(unused_keys_note(env, ini, &ini->sections[i],
                              unused_keys_check_section(env, registry, ini, &ini->sections[i])));
  return tn_sections_check(env, ini, known, sizeof known / sizeof *known);
}

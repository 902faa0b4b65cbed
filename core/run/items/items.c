/* core/run/items/items.c: finds items by name, and reads the options of one section or item. */
#include <string.h>

#include "core/run/section_tables.h"

const char *tn_settings_where(tn_ini *ini, const char *section, const char *key) {
  tn_section *found = tn_ini_section(ini, section);
  return found ? tn_key_where(ini, found, tn_section_key(found, key)) : ini->path;
}

tn_status tn_settings_note(tn_env *env, tn_ini *ini, const char *section, tn_status status) {
  if (status == TN_EINVAL) tn_section_mark_used(tn_ini_section(ini, section));
  return tn_ini_note(env, ini, status);
}

tn_status tn_settings_read_section(tn_env *env, tn_ini *ini, const tn_item *table, void *into) {
  tn_options options;
  tn_section *section = tn_ini_section(ini, table->name);
  TN_TRY(tn_options_start(env, &ini->arena, table, &options));
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&options}, 1));
  TN_TRY(tn_section_finish(env, ini, section, table->name, &options));
  memcpy(into, options.data, table->options_bytes);
  return TN_OK;
}

tn_status tn_settings_find_item(tn_env *env, tn_registry *registry, uint32_t kind, const char *name,
                                const tn_item **item) {
  const tn_entry *entry = NULL;
  tn_status status = tn_registry_find(registry, env, kind, name, &entry);
  if (status == TN_EUNAVAILABLE && !tn_registry_has(registry, kind, name))
    return tn_failf(env, TN_EINVAL, "%s", tn_error_text(env));
  if (status == TN_OK) *item = entry->item;
  return status;
}

tn_status tn_settings_item_options(tn_env *env, tn_ini *ini, const char *kind, const tn_item *item,
                                   const void **data) {
  tn_options options;
  const char *name = tn_arena_printf(&ini->arena, "%s.%s", kind, item->name);
  if (name == NULL) return TN_ENOMEM;
  tn_section *section = tn_ini_section(ini, name);
  TN_TRY(tn_options_start(env, &ini->arena, item, &options));
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&options}, 1));
  *data = options.data;
  TN_TRY(tn_section_finish(env, ini, section, name, &options));
  return tn_ini_tell(env, ini);
}

/* core/run/items/choices.c: sections whose key chooses an item, and which hold the options of both. */
#include <string.h>

#include "core/run/section_tables.h"

/* The name of the chosen item: the value of the key, or the table's default. */
static const char *choices_name(tn_section *section, const tn_item *table, const char *key) {
  tn_key *found = section ? tn_section_key(section, key) : NULL;
  return found ? found->value : tn_options_find(table, key)->default_text;
}

tn_status tn_settings_find_chosen(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                  const char *key, uint32_t kind, const char *name, const tn_item **item) {
  tn_key *at = section ? tn_section_key(section, key) : NULL;
  tn_status status = tn_settings_find_item(env, registry, kind, name, item);
  if (status != TN_OK && at)
    return tn_wrap(env, status, "%s: [%s] %s", tn_key_where(ini, section, at), section->name, key);
  return status;
}

tn_status tn_settings_read_choice(tn_env *env, tn_registry *registry, tn_ini *ini, tn_item_choice *c) {
  tn_options host, item;
  tn_section *section = tn_ini_section(ini, c->section);
  tn_status status = tn_settings_find_chosen(env, registry, ini, section, c->key, c->kind,
                                             choices_name(section, c->table, c->key), &c->item);
  if (status != TN_OK) return tn_settings_note(env, ini, c->section, status);
  TN_TRY(tn_settings_remove_replaced(env, registry, ini, section, c->key, c->kind, c->table, c->item));
  TN_TRY(tn_options_start(env, &ini->arena, c->table, &host));
  TN_TRY(tn_options_start(env, &ini->arena, c->item, &item));
  TN_TRY(tn_settings_read_lists(&(tn_call_reading){env, registry, ini, NULL}, section, &item));
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&host, &item}, 2));
  TN_TRY(tn_section_finish(env, ini, section, c->section, &host));
  TN_TRY(tn_section_finish(env, ini, section, c->section, &item));
  memcpy(c->into, host.data, c->table->options_bytes);
  c->options = item.data;
  return TN_OK;
}

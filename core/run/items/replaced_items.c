/* core/run/items/replaced_items.c: removes the options of replaced items. `--set
 * schedule.type=constant`, or a file that includes another one, replaces the schedule of the included file.
 * The options of the replaced schedule then belong to no item, so they are removed with it. */
#include "core/run/section_tables.h"

/* A choice that was replaced by another one. */
typedef struct tn_replaced_choice {
  const tn_key *key;   /* the key that made the choice */
  const tn_item *item; /* NULL: there is no item of that name */
} tn_replaced_choice;

static bool replaced_owns_key(const tn_replaced_choice *r, const tn_key *key, const tn_item *table,
                              const tn_item *chosen) {
  if (r->item == NULL || !tn_text_equal(key->file, r->key->file)) return false;
  if (tn_options_find(table, key->name) || tn_options_find(chosen, key->name)) return false;
  return tn_options_find(r->item, key->name) != NULL;
}

static void replaced_remove_options(tn_env *env, tn_ini *ini, tn_section *section,
                                    const tn_replaced_choice *r, const tn_key *choice, const tn_item *table,
                                    const tn_item *chosen) {
  for (int32_t k = section->n_keys; k-- > 0;) {
    tn_key *key = &section->keys[k];
    if (!replaced_owns_key(r, key, table, chosen)) continue;
    tn_logf(env, TN_LOG_INFO, "%s: [%s] %s is ignored: it belongs to '%s', and %s chooses '%s'",
            tn_key_where(ini, section, key), section->name, key->name, r->item->name,
            tn_key_where(ini, section, choice), chosen->name);
    tn_section_remove_key(section, key);
  }
}

/* A name without an item has no options to remove. */
static tn_status replaced_find(tn_env *env, tn_registry *registry, uint32_t kind, tn_replaced_choice *r) {
  if (!tn_registry_has(registry, kind, r->key->value)) return TN_OK;
  tn_status status = tn_settings_find_item(env, registry, kind, r->key->value, &r->item);
  return status == TN_EUNAVAILABLE || status == TN_EINVAL ? TN_OK : status;
}

tn_status tn_settings_remove_replaced(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                      const char *name, uint32_t kind, const tn_item *table,
                                      const tn_item *chosen) {
  const tn_key *found = section ? tn_section_key(section, name) : NULL;
  if (found == NULL || found->before == NULL) return TN_OK;
  tn_key choice = *found; /* removing keys moves the others */
  for (const tn_key *before = choice.before; before; before = before->before) {
    tn_replaced_choice replaced = {before, NULL};
    TN_TRY(replaced_find(env, registry, kind, &replaced));
    replaced_remove_options(env, ini, section, &replaced, &choice, table, chosen);
  }
  return TN_OK;
}

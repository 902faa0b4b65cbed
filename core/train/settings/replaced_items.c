/* core/train/settings/replaced_items.c: what a replaced choice leaves behind. `--set schedule.type =
 * constant`, or a file that includes another and says so, leaves the options of the schedule that stood there
 * without an owner. Whoever replaces the choice need not know them, so they go with it. */
#include "core/train/settings/section_tables.h"

/* A choice that another one took the place of. */
typedef struct tn_replaced {
  const tn_key *key;   /* that chose it */
  const tn_item *item; /* NULL: there is none of that name */
} tn_replaced;

static bool is_its_own(const tn_replaced *r, const tn_key *key, const tn_item *table, const tn_item *chosen) {
  if (!r->item || !tn_text_equal(key->file, r->key->file)) return false;
  if (tn_options_find(table, key->name) || tn_options_find(chosen, key->name)) return false;
  return tn_options_find(r->item, key->name) != NULL;
}

static void remove_options(tn_env *env, tn_ini *ini, tn_section *section, const tn_replaced *r,
                           const tn_key *choice, const tn_item *table, const tn_item *chosen) {
  for (int32_t k = section->n_keys; k-- > 0;) {
    tn_key *key = &section->keys[k];
    if (!is_its_own(r, key, table, chosen)) continue;
    tn_logf(env, TN_LOG_INFO, "%s: [%s] %s is left out: it belongs to '%s', and %s chooses '%s'",
            tn_key_where(ini, section, key), section->name, key->name, r->item->name,
            tn_key_where(ini, section, choice), chosen->name);
    tn_section_remove_key(section, key);
  }
}

/* A choice that could never have been made has no options to leave. */
static tn_status find_replaced(tn_env *env, tn_registry *registry, uint32_t kind, tn_replaced *r) {
  if (!tn_registry_has(registry, kind, r->key->value)) return TN_OK;
  tn_status status = tn_settings_find(env, registry, kind, r->key->value, &r->item);
  return status == TN_EUNAVAILABLE || status == TN_EINVAL ? TN_OK : status;
}

tn_status tn_settings_leave_replaced(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                     const char *name, uint32_t kind, const tn_item *table,
                                     const tn_item *chosen) {
  const tn_key *found = section ? tn_section_key(section, name) : NULL;
  if (!found || !found->before) return TN_OK;
  tn_key choice = *found; /* keys move while others are removed */
  for (const tn_key *before = choice.before; before; before = before->before) {
    tn_replaced replaced = {before, NULL};
    TN_TRY(find_replaced(env, registry, kind, &replaced));
    remove_options(env, ini, section, &replaced, &choice, table, chosen);
  }
  return TN_OK;
}

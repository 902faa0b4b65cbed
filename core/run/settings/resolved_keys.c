/* core/run/settings/resolved_keys.c: a configuration with every key that it does not give, at its default.
 */
#include <string.h>

#include "core/run/section_tables.h"

typedef struct resolved_keys {
  tn_env *env;
  tn_registry *registry;
  const tn_ini *given;
  const tn_settings *settings;
  tn_ini full; /* a copy of `given`, which gets the other keys */
} resolved_keys;

static bool resolved_has(const tn_ini *ini, const char *section, const char *key) {
  const tn_section *found = tn_ini_section(ini, section);
  return found != NULL && tn_section_key(found, key) != NULL;
}

/* Sets the options that are not there to their defaults. One without a default is not given and not needed.
 */
static tn_status resolved_add(resolved_keys *r, const char *section, const tn_item *item) {
  for (int64_t i = 0; item != NULL && tn_options_at(item, i) != NULL; i++) {
    const tn_option *o = tn_options_at(item, i);
    if (o->default_text == NULL || resolved_has(&r->full, section, o->name)) continue;
    const char *text = tn_arena_printf(&r->full.arena, "%s.%s=%s", section, o->name, o->default_text);
    if (text == NULL) return TN_ENOMEM;
    TN_TRY(tn_ini_set(r->env, &r->full, text));
  }
  return TN_OK;
}

/* The options of the sources. Both splits read [data], so that options of a source that only one of them has
 * stand in its own section. */
static tn_status resolved_add_data(resolved_keys *r) {
  const tn_data_setting *train = &r->settings->data[TN_SPLIT_TRAIN],
                        *valid = &r->settings->data[TN_SPLIT_VALID];
  bool base = tn_ini_section(r->given, "data") != NULL, same = train->source == valid->source;
  if (!train->given && !valid->given) return TN_OK;
  TN_TRY(resolved_add(r, base ? "data" : train->given ? "data.train" : "data.valid", &tn_table_data));
  if (base && (same || !train->given || !valid->given))
    return resolved_add(r, "data", train->given ? &train->source->item : &valid->source->item);
  if (train->given) TN_TRY(resolved_add(r, "data.train", &train->source->item));
  return valid->given ? resolved_add(r, "data.valid", &valid->source->item) : TN_OK;
}

/* [observer.NAME], [backend.NAME], [communicator.NAME] */
static tn_status resolved_add_item(resolved_keys *r, const char *kind, uint32_t number, const char *name) {
  const tn_item *item = NULL;
  const char *section = tn_arena_printf(&r->full.arena, "%s.%s", kind, name);
  if (section == NULL) return TN_ENOMEM;
  if (!tn_registry_has(r->registry, number, name)) return TN_OK; /* of an optional plugin that is missing */
  TN_TRY(tn_settings_find_item(r->env, r->registry, number, name, &item));
  return resolved_add(r, section, item);
}

/* [schedule.OPTION] */
static tn_status resolved_add_schedule(resolved_keys *r, const char *section) {
  const tn_settings *s = r->settings;
  for (int32_t i = 0; i < s->n_schedules; i++) {
    if (!tn_text_equal(s->schedules[i].name, section)) continue;
    TN_TRY(resolved_add(r, section, &tn_table_schedule));
    return resolved_add(r, section, &s->schedules[i].kind->item);
  }
  return TN_OK;
}

/* [source NAME] */
static tn_status resolved_add_part(resolved_keys *r, const char *section) {
  const tn_part_settings *parts = &r->settings->parts;
  for (int32_t i = 0; i < parts->n; i++)
    if (tn_text_equal(parts->v[i].name, section + strlen("source ")))
      return resolved_add(r, section, &parts->v[i].source->item);
  return TN_OK;
}

static tn_status resolved_add_items(resolved_keys *r) {
  static const struct {
    const char *kind;
    uint32_t number;
  } kinds[] = {{"backend", TN_BACKEND}, {"observer", TN_OBSERVER}, {"communicator", TN_COMMUNICATOR}};
  for (int32_t i = 0; i < r->given->n_sections; i++) {
    const char *section = r->given->sections[i].name;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      size_t n = strlen(kinds[k].kind);
      if (tn_text_starts(section, kinds[k].kind) && section[n] == '.')
        TN_TRY(resolved_add_item(r, kinds[k].kind, kinds[k].number, section + n + 1));
    }
    if (tn_text_starts(section, "schedule.")) TN_TRY(resolved_add_schedule(r, section));
    if (tn_text_starts(section, "source ")) TN_TRY(resolved_add_part(r, section));
    if (tn_text_equal(section, "adapt") || tn_text_starts(section, "adapt."))
      TN_TRY(resolved_add(r, section, &tn_table_adapt));
    if (tn_text_starts(section, "group.")) TN_TRY(resolved_add(r, section, &tn_table_group));
    if (tn_text_starts(section, "phase ")) TN_TRY(resolved_add(r, section, &tn_table_phase));
  }
  return TN_OK;
}

static tn_status resolved_add_all(resolved_keys *r) {
  const tn_settings *s = r->settings;
  const struct {
    const tn_item *table, *chosen;
  } sections[] = {{&tn_table_run, NULL},
                  {&tn_table_optimizer, &s->optimizer_kind->item},
                  {&tn_table_schedule, &s->schedule->kind->item},
                  {&tn_table_precision, &s->precision->item},
                  {&tn_table_backend, NULL},
                  {&tn_table_distributed, NULL},
                  {&tn_table_weights, NULL},
                  {tn_ini_section(r->given, "model") ? &tn_table_model : NULL, NULL}};
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
    if (sections[i].table == NULL) continue;
    TN_TRY(resolved_add(r, sections[i].table->name, sections[i].table));
    TN_TRY(resolved_add(r, sections[i].table->name, sections[i].chosen));
  }
  TN_TRY(resolved_add_data(r));
  return resolved_add_items(r);
}

tn_status tn_settings_print_resolved(tn_env *env, tn_registry *registry, const tn_ini *given,
                                     const tn_settings *settings, const char *backend, tn_text *text) {
  tn_text copy = tn_text_new(env);
  resolved_keys r = {.env = env, .registry = registry, .given = given, .settings = settings};
  tn_text_add(&copy, "");
  tn_status status = tn_ini_print(env, given, &copy);
  if (status == TN_OK)
    status = copy.failed ? TN_ENOMEM : tn_ini_parse(env, copy.v, "config.ini", given->folder, &r.full);
  tn_text_free(&copy);
  if (status == TN_OK) status = resolved_add_all(&r);
  if (status == TN_OK && backend != NULL) status = resolved_add_item(&r, "backend", TN_BACKEND, backend);
  if (status == TN_OK) status = tn_ini_print(env, &r.full, text);
  tn_ini_free(&r.full);
  return status;
}

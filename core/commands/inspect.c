/* core/commands/inspect.c: descriptors and configuration keys as JSON, printed from the tables that
 * also fill the option structs. */
#include "tenon/inspect.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/model/model.h"
#include "core/plugin/context.h"
#include "core/plugin/kinds.h"
#include "core/run/result.h"
#include "core/run/settings/settings.h"
#include "tenon/plugin/layer.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/schedule.h"
#include "tenon/plugin/source.h"
#include "tenon/plugin/transform.h"

static const char *inspect_type_name(uint32_t type) {
  static const char *const names[] = {"none", "flag", "int",        "float",    "text",     "path",
                                      "enum", "ints", "floats",     "size",     "duration", "dtype",
                                      "init", "code", "transforms", "schedules"};
  return type < sizeof names / sizeof *names ? names[type] : "?";
}

static json_t *inspect_option_json(const tn_option *o) {
  bool scheduled = (o->flags & (TN_OPT_SCHEDULED | TN_OPT_SCHEDULABLE)) != 0;
  return json_pack("{s:o, s:s, s:o, s:o, s:o, s:b}", "name", tn_json_text(o->name), "type",
                   inspect_type_name(o->type), "default", tn_json_text_or_null(o->default_text), "range",
                   tn_json_text_or_null(o->range), "doc", tn_json_text_or_null(o->doc), "scheduled",
                   (int)scheduled);
}

static json_t *inspect_options_json(const tn_item *item) {
  json_t *list = json_array();
  for (int64_t i = 0; tn_options_at(item, i); i++)
    json_array_append_new(list, inspect_option_json(tn_options_at(item, i)));
  return list;
}

/* A member that is left out where the text is NULL. */
static void inspect_set_text(json_t *json, const char *key, const char *text) {
  if (text) json_object_set_new(json, key, tn_json_text(text));
}

static void inspect_set_op(json_t *json, const tn_op *op) {
  inspect_set_text(json, "notes", op->notes);
  inspect_set_text(json, "schema", op->schema);
  inspect_set_text(json, "formula", op->formula);
  inspect_set_text(json, "gradient", op->gradient);
  inspect_set_text(json, "aliases", op->aliases);
  inspect_set_text(json, "domain", op->domain);
  json_object_set_new(json, "decomposes", json_boolean(op->decompose || op->formula));
}

static void inspect_set_layer(json_t *json, const tn_layer_kind *layer) {
  static const char *const roles[] = {"layer", "loss", "metric"};
  inspect_set_text(json, "role", roles[layer->role]);
  json_object_set_new(json, "min_in", json_integer(layer->min_in));
  json_object_set_new(json, "max_in", json_integer(layer->max_in));
  inspect_set_text(json, "types", layer->types);
  inspect_set_text(json, "example", layer->example);
}

static void inspect_set_transform(json_t *json, const tn_transform *transform) {
  json_object_set_new(json, "training_only", json_boolean(transform->training_only));
  inspect_set_text(json, "types", transform->types);
  inspect_set_text(json, "example", transform->example);
}

/* The members that items of one kind have. */
static void inspect_set_members(json_t *json, const tn_item *item) {
  switch (item->kind) {
  case TN_OP: inspect_set_op(json, (const tn_op *)item); break;
  case TN_KERNEL:
    inspect_set_text(json, "family", ((const tn_kernel *)item)->family);
    inspect_set_text(json, "pattern", ((const tn_kernel *)item)->pattern);
    break;
  case TN_LAYER: inspect_set_layer(json, (const tn_layer_kind *)item); break;
  case TN_TRANSFORM: inspect_set_transform(json, (const tn_transform *)item); break;
  case TN_SOURCE:
    inspect_set_text(json, "types", ((const tn_source *)item)->types);
    inspect_set_text(json, "example", ((const tn_source *)item)->example);
    break;
  case TN_SCHEDULE: inspect_set_text(json, "example", ((const tn_schedule *)item)->example); break;
  default: break;
  }
}

static json_t *inspect_entry_json(const tn_entry *entry) {
  const tn_item *item = entry->item;
  json_t *json =
      json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "kind", tn_kind_name(item->kind), "name", item->name, "doc",
                tn_json_text_or_null(item->doc), "plugin", tn_json_text_or_null(entry->plugin), "version",
                tn_json_text_or_null(entry->version), "file", tn_json_text_or_null(entry->file));
  inspect_set_members(json, item);
  json_object_set_new(json, "options", inspect_options_json(item));
  return json;
}

static void inspect_add_initializers(const char *name, json_t *items) {
  const tn_item *item = NULL;
  const char *example = NULL;
  for (int32_t i = 0; (item = tn_initializer_item(i, &example)) != NULL; i++) {
    if (name != NULL && !tn_text_equal(item->name, name)) continue;
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "kind", "initializer", "name", item->name, "doc",
                  item->doc, "plugin", "core", "version", tn_version(), "file", "", "example", example);
    json_object_set_new(json, "options", inspect_options_json(item));
    json_array_append_new(items, json);
  }
}

/* Takes over the keys. */
static json_t *inspect_table_json(const tn_item *table, json_t *keys) {
  return json_pack("{s:s, s:s, s:o}", "section", table->name, "doc", table->doc, "keys", keys);
}

static json_t *inspect_sections_json(void) {
  json_t *sections = json_array();
  for (int32_t i = 0; tn_settings_tables[i]; i++)
    json_array_append_new(
        sections, inspect_table_json(tn_settings_tables[i], inspect_options_json(tn_settings_tables[i])));
  return sections;
}

static tn_status inspect_take_json(const void *handle, json_t *json, char **text) {
  char *dump = json ? json_dumps(json, JSON_PRESERVE_ORDER) : NULL;
  json_decref(json);
  *text = dump ? tn_strdup(handle, dump) : NULL;
  free(dump);
  return *text ? TN_OK : tn_failf(handle, TN_ENOMEM, "no memory for the result");
}

static tn_status inspect_add_kind(tn_context *context, uint32_t kind, const char *name, json_t *items) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  TN_TRY(tn_registry_list(context->registry, context, kind, &entries, &n));
  for (int32_t i = 0; i < n; i++)
    if (name == NULL || tn_text_equal(entries[i].item->name, name))
      json_array_append_new(items, inspect_entry_json(&entries[i]));
  return TN_OK;
}

/* Fails with the nearest name of any kind. */
static tn_status inspect_fail_unknown(tn_context *context, const char *name) {
  TN_VEC(const char *) names = {0};
  for (uint32_t kind = 1; kind < TN_KINDS; kind++) {
    const tn_entry *entries = NULL;
    int32_t n = 0;
    TN_TRY(tn_registry_list(context->registry, context, kind, &entries, &n));
    for (int32_t i = 0; i < n; i++)
      if (tn_vec_push(context, &names, entries[i].item->name) != TN_OK) break;
  }
  for (int32_t i = 0; tn_initializer_item(i, NULL) != NULL; i++)
    if (tn_vec_push(context, &names, tn_initializer_item(i, NULL)->name) != TN_OK) break;
  const char *nearest = tn_text_nearest(name, names.v, names.n);
  tn_vec_free(context, &names);
  return tn_failf(context, TN_EINVAL, "nothing called '%s' is installed%s%s%s", name,
                  nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

tn_status tn_inspect(tn_context *context, const char *name, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  json_t *items = json_array();
  tn_status status = TN_OK;
  *json = NULL;
  for (uint32_t kind = 1; status == TN_OK && kind < TN_KINDS; kind++)
    status = inspect_add_kind(context, kind, name, items);
  inspect_add_initializers(name, items);
  if (status == TN_OK && name && json_array_size(items) == 0) status = inspect_fail_unknown(context, name);
  if (status != TN_OK) {
    json_decref(items);
    return status;
  }
  json_t *result = json_pack("{s:o}", "items", items);
  if (name == NULL) json_object_set_new(result, "sections", inspect_sections_json());
  return inspect_take_json(context, result, json);
}

/* The table of a section: "data.valid" has that of [data], "group.slow" that of [group.*]. */
static const tn_item *inspect_find_table(const char *section, size_t length) {
  size_t base = strcspn(section, ". ");
  if (base < length && (strncmp(section, "data", base) == 0 || strncmp(section, "group", base) == 0 ||
                        strncmp(section, "block", base) == 0 || strncmp(section, "phase", base) == 0))
    length = base;
  for (int32_t i = 0; tn_settings_tables[i]; i++)
    if (strlen(tn_settings_tables[i]->name) == length &&
        strncmp(tn_settings_tables[i]->name, section, length) == 0)
      return tn_settings_tables[i];
  return NULL;
}

/* The section of a key that was given without one, as in "epochs"; NULL: none has it. */
static const tn_item *inspect_table_of_key(const char *key) {
  for (int32_t i = 0; tn_settings_tables[i]; i++)
    if (tn_options_find(tn_settings_tables[i], key)) return tn_settings_tables[i];
  return NULL;
}

static tn_status inspect_fail_no_section(tn_context *context, const char *key, int length) {
  const tn_item *of_key = inspect_table_of_key(key);
  if (of_key)
    return tn_failf(context, TN_EINVAL, "there is no section [%s], did you mean %s.%s?", key, of_key->name,
                    key);
  tn_text names = tn_text_new(context);
  for (int32_t i = 0; tn_settings_tables[i]; i++)
    tn_text_addf(&names, "%s%s", i ? ", " : "", tn_settings_tables[i]->name);
  tn_status status = tn_failf(context, TN_EINVAL, "there is no section [%.*s]; there are %s", length, key,
                              names.v ? names.v : "none");
  tn_text_free(&names);
  return status;
}

/* The kind of the item that a section chooses; TN_KINDS: none. */
static uint32_t inspect_kind_of_section(const char *section) {
  static const struct {
    const char *section;
    uint32_t kind;
  } kinds[] = {{"optimizer", TN_OPTIMIZER}, {"group", TN_OPTIMIZER},     {"phase", TN_OPTIMIZER},
               {"schedule", TN_SCHEDULE},   {"precision", TN_PRECISION}, {"data", TN_SOURCE}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strncmp(section, kinds[i].section, strlen(kinds[i].section)) == 0) return kinds[i].kind;
  return TN_KINDS;
}

/* Adds the option of that name of every item that the section may choose, "one_cycle: ..." as its doc. */
static tn_status inspect_add_item_options(tn_context *context, const char *section, const char *name,
                                          json_t *keys) {
  uint32_t kind = inspect_kind_of_section(section);
  const tn_entry *entries = NULL;
  int32_t n = 0;
  if (kind == TN_KINDS) return TN_OK;
  TN_TRY(tn_registry_list(context->registry, context, kind, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    const tn_item *item = entries[i].item;
    const tn_option *option = tn_options_find(item, name);
    if (option == NULL) continue;
    json_t *json = inspect_option_json(option);
    json_object_set_new(json, "doc", json_sprintf("%s: %s", item->name, option->doc));
    json_array_append_new(keys, json);
  }
  return TN_OK;
}

/* Leaves the key of that name in `keys`, or puts those of items there. */
static tn_status inspect_choose_key(tn_context *context, const tn_item *table, const char *name,
                                    json_t *keys) {
  for (size_t i = json_array_size(keys); i-- > 0;)
    if (!tn_text_equal(json_string_value(json_object_get(json_array_get(keys, i), "name")), name))
      json_array_remove(keys, i);
  if (json_array_size(keys) == 0) TN_TRY(inspect_add_item_options(context, table->name, name, keys));
  if (json_array_size(keys) > 0) return TN_OK;
  return tn_failf(
      context, TN_EINVAL,
      "[%s] has no key '%s', and none of the items that it may choose; `tenon inspect` lists them",
      table->name, name);
}

tn_status tn_explain(tn_context *context, const char *key, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, key, "key");
  bool split = tn_text_equal(key, "data.train") || tn_text_equal(key, "data.valid");
  const char *dot = split ? NULL : strrchr(key, '.');
  size_t length = dot ? (size_t)(dot - key) : strlen(key);
  const tn_item *table = inspect_find_table(key, length);
  if (table == NULL) return inspect_fail_no_section(context, key, (int)length);
  json_t *keys = inspect_options_json(table);
  tn_status status = dot ? inspect_choose_key(context, table, dot + 1, keys) : TN_OK;
  if (status != TN_OK) {
    json_decref(keys);
    return status;
  }
  return inspect_take_json(context, inspect_table_json(table, keys), json);
}

/* core/train/settings/load_plugins.c: [plugins] load. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/settings/section_tables.h"

/* The word as tn_registry_load takes it: a bare name as it is, a path absolute. */
static char *plugin_path(tn_env *env, tn_ini *ini, const tn_key *key, const char *word) {
  char whole[PATH_MAX];
  if (!tn_registry_is_path(word)) return tn_strdup(env, word);
  char *path = tn_path_join(env, key->line > 0 ? ini->folder : ".", word);
  if (!path || !realpath(path, whole)) return path;
  tn_release(env, path);
  return tn_strdup(env, whole);
}

/* Cuts off the `?` of a plugin that may be absent. */
static bool is_optional(char *word) {
  size_t length = strlen(word);
  bool optional = word[length - 1] == '?';
  if (optional) word[length - 1] = '\0';
  return optional;
}

static bool is_there(tn_registry *registry, const char *path) {
  return tn_registry_is_path(path) ? tn_file_exists(path) : tn_registry_holds(registry, path);
}

/* Loads one word of [plugins] load and adds what it stands for to `kept`. */
static tn_status load_plugin(tn_env *env, tn_registry *registry, tn_ini *ini, const tn_key *key, char *word,
                             tn_text *kept) {
  bool optional = is_optional(word);
  char *path = plugin_path(env, ini, key, word);
  if (!path) return TN_ENOMEM;
  tn_text_addf(kept, "%s%s%s", kept->n > 0 ? ", " : "", path, optional ? "?" : "");
  tn_status status = !optional || is_there(registry, path) ? tn_registry_load(registry, env, path) : TN_OK;
  tn_release(env, path);
  return status;
}

tn_status tn_settings_load_plugins(tn_env *env, tn_registry *registry, tn_ini *ini) {
  tn_plugins_section plugins;
  tn_words words;
  tn_section *section = tn_ini_section(ini, "plugins");
  tn_key *key = section ? tn_section_key(section, "load") : NULL;
  TN_TRY(tn_settings_plain(env, ini, &tn_table_plugins, &plugins));
  if (!key) return TN_OK;
  tn_text kept = tn_text_new(env);
  tn_status status = tn_words_split(&ini->arena, plugins.load, &words);
  for (int32_t i = 0; status == TN_OK && i < words.n; i++)
    status = load_plugin(env, registry, ini, key, (char *)(uintptr_t)words.v[i], &kept);
  if (status == TN_OK && words.n > 0) {
    key->value = kept.failed ? NULL : tn_arena_strdup(&ini->arena, kept.v);
    key->n_value_lines = 1;
    if (!key->value) status = TN_ENOMEM;
  }
  tn_text_free(&kept);
  if (status != TN_OK) return tn_wrap(env, status, "%s: [plugins] load", tn_key_where(ini, section, key));
  return TN_OK;
}

bool tn_settings_lack_plugin(tn_registry *registry, tn_ini *ini) {
  const tn_section *section = tn_ini_section(ini, "plugins");
  const tn_key *key = section ? tn_section_key(section, "load") : NULL;
  tn_words words;
  if (!key || tn_words_split(&ini->arena, key->value, &words) != TN_OK) return false;
  for (int32_t i = 0; i < words.n; i++) {
    char *name = (char *)(uintptr_t)words.v[i];
    if (!is_optional(name)) continue;
    if (!is_there(registry, name)) return true;
  }
  return false;
}

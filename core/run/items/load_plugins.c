/* core/run/items/load_plugins.c: loads the plugins of [plugins] load. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/section_tables.h"

/* The argument of tn_registry_load for a word: a bare name unchanged, a path made absolute. */
static char *plugins_path(tn_env *env, tn_ini *ini, const tn_key *key, const char *word) {
  char resolved[PATH_MAX];
  if (!tn_registry_is_path(word)) return tn_strdup(env, word);
  char *path = tn_path_join(env, key->line > 0 ? ini->folder : ".", word);
  if (path == NULL || realpath(path, resolved) == NULL) return path;
  tn_release(env, path);
  return tn_strdup(env, resolved);
}

/* Removes the `?` that marks an optional plugin. */
static bool plugins_cut_optional(char *word) {
  size_t length = strlen(word);
  bool optional = word[length - 1] == '?';
  if (optional) word[length - 1] = '\0';
  return optional;
}

static bool plugins_exists(tn_registry *registry, const char *path) {
  return tn_registry_is_path(path) ? tn_file_exists(path) : tn_registry_holds(registry, path);
}

/* A file that is not trusted may ask for plugins of the plugin folders, and for those that the user has
 * named. */
static tn_status plugins_check_trust(tn_env *env, tn_registry *registry, const tn_ini *ini, const tn_key *key,
                                     const char *path) {
  if (!ini->untrusted || key->line == 0 || !tn_registry_is_path(path)) return TN_OK;
  if (tn_registry_has_loaded(registry, env, path)) return TN_OK;
  return tn_failf(env, TN_EUNAVAILABLE,
                  "%s is code, and the folder may be another user's; name it with --plugin, or give --trust",
                  path);
}

/* Loads one word of [plugins] load, and appends its absolute form to `absolute`. */
static tn_status plugins_load_one(tn_env *env, tn_registry *registry, tn_ini *ini, const tn_key *key,
                                  char *word, tn_text *absolute) {
  bool optional = plugins_cut_optional(word);
  char *path = plugins_path(env, ini, key, word);
  if (path == NULL) return TN_ENOMEM;
  tn_text_addf(absolute, "%s%s%s", absolute->n > 0 ? ", " : "", path, optional ? "?" : "");
  bool wanted = !optional || plugins_exists(registry, path);
  tn_status status = wanted ? plugins_check_trust(env, registry, ini, key, path) : TN_OK;
  if (wanted && status == TN_OK) status = tn_registry_load(registry, env, path);
  tn_release(env, path);
  return status;
}

tn_status tn_settings_load_plugins(tn_env *env, tn_registry *registry, tn_ini *ini) {
  tn_plugins_section plugins;
  tn_words words;
  tn_section *section = tn_ini_section(ini, "plugins");
  tn_key *key = section ? tn_section_key(section, "load") : NULL;
  TN_TRY(tn_settings_read_section(env, ini, &tn_table_plugins, &plugins));
  if (key == NULL) return TN_OK;
  tn_text absolute = tn_text_new(env);
  tn_status status = tn_words_split(&ini->arena, plugins.load, &words);
  for (int32_t i = 0; status == TN_OK && i < words.n; i++)
    status = plugins_load_one(env, registry, ini, key, (char *)(uintptr_t)words.v[i], &absolute);
  if (status == TN_OK && words.n > 0) {
    key->value = absolute.failed ? NULL : tn_arena_strdup(&ini->arena, absolute.v);
    key->n_value_lines = 1;
    if (key->value == NULL) status = TN_ENOMEM;
  }
  tn_text_free(&absolute);
  if (status != TN_OK) return tn_wrap(env, status, "%s: [plugins] load", tn_key_where(ini, section, key));
  return TN_OK;
}

bool tn_settings_plugin_missing(tn_registry *registry, tn_ini *ini) {
  const tn_section *section = tn_ini_section(ini, "plugins");
  const tn_key *key = section ? tn_section_key(section, "load") : NULL;
  tn_words words;
  if (key == NULL || tn_words_split(&ini->arena, key->value, &words) != TN_OK) return false;
  for (int32_t i = 0; i < words.n; i++) {
    char *name = (char *)(uintptr_t)words.v[i];
    if (!plugins_cut_optional(name)) continue;
    if (!plugins_exists(registry, name)) return true;
  }
  return false;
}

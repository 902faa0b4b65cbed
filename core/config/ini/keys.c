/* core/config/ini/keys.c: lookup, addition and removal of sections and keys. */
#include <string.h>

#include "core/config/ini/parse.h"

tn_section *tn_ini_section(const tn_ini *ini, const char *name) {
  for (int32_t i = 0; i < ini->n_sections; i++)
    if (strcmp(ini->sections[i].name, name) == 0) return &ini->sections[i];
  return NULL;
}

tn_key *tn_section_key(const tn_section *section, const char *name) {
  for (int32_t i = 0; i < section->n_keys; i++)
    if (strcmp(section->keys[i].name, name) == 0) return &section->keys[i];
  return NULL;
}

void tn_section_remove_key(tn_section *section, tn_key *key) {
  size_t behind = (size_t)(section->keys + section->n_keys - key - 1);
  memmove(key, key + 1, behind * sizeof(*key));
  section->n_keys--;
}

void tn_section_mark_used(tn_section *section) {
  if (section == NULL) return;
  section->used = true;
  for (int32_t i = 0; i < section->n_keys; i++) section->keys[i].used = true;
}

const char *tn_key_where(tn_ini *ini, const tn_section *section, const tn_key *key) {
  const char *file = key != NULL ? key->file : section->file;
  int32_t line = key != NULL ? key->line : section->line;
  const char *where;
  if (line > 0)
    where = tn_arena_printf(&ini->arena, "%s:%d", file, line);
  else if (key != NULL)
    where = key->file;
  else
    where = tn_arena_printf(&ini->arena, "%s %s", file, section->name);
  return where != NULL ? where : file;
}

tn_section *tn_ini_add_section(tn_arena *arena, tn_section **sections, int32_t *n) {
  tn_section *grown = tn_arena_grow(arena, *sections, (size_t)*n, sizeof(*grown));
  if (grown == NULL) return NULL;
  *sections = grown;
  memset(&grown[*n], 0, sizeof(*grown));
  return &grown[(*n)++];
}

tn_key *tn_ini_add_key(tn_arena *arena, tn_section *section) {
  tn_key *grown = tn_arena_grow(arena, section->keys, (size_t)section->n_keys, sizeof(*grown));
  if (grown == NULL) return NULL;
  section->keys = grown;
  memset(&grown[section->n_keys], 0, sizeof(*grown));
  return &grown[section->n_keys++];
}

tn_status tn_ini_put_key(tn_arena *arena, tn_section *section, const tn_key *key) {
  tn_key *at = tn_section_key(section, key->name), *before = NULL;
  if (at != NULL && (before = tn_arena_copy(arena, at, sizeof(*at))) == NULL) return TN_ENOMEM;
  if (at == NULL && (at = tn_ini_add_key(arena, section)) == NULL) return TN_ENOMEM;
  *at = *key;
  at->before = before;
  return TN_OK;
}

/* core/model/lines/block_text.c: the [block NAME] sections of a configuration, and their keys as lines of the
 * model language. */
#include "core/model/assemble.h"

#include <string.h>

tn_status tn_blocks_find(tn_assembly *a) {
  const tn_ini *ini = a->request->ini;
  a->block_names = tn_name_index_new(a->env);
  a->parsed_keys = tn_hash_index_new(a->env);
  for (int32_t i = 0; i < ini->n_sections; i++) {
    tn_section *section = &ini->sections[i];
    if (!tn_text_starts(section->name, "block ")) continue;
    TN_TRY(tn_vec_push(a->env, &a->blocks, section));
    TN_TRY(tn_name_index_add(&a->block_names, section->name + strlen("block ")));
  }
  return TN_OK;
}

void tn_blocks_free(tn_assembly *a) {
  tn_name_index_free(&a->block_names);
  tn_hash_index_free(&a->parsed_keys);
  tn_vec_free(a->env, &a->blocks);
  tn_vec_free(a->env, &a->parsed);
}

tn_section *tn_block_section(const tn_assembly *a, const char *name) {
  int64_t i = tn_name_index_find(&a->block_names, name);
  return i != TN_NAME_INDEX_NONE ? a->blocks.v[i] : NULL;
}

/* ---- parsed keys ---- */

static uint64_t block_key_hash(const tn_key *key) { return tn_hash_bytes(TN_HASH_START, &key, sizeof key); }

static const tn_parsed_key *block_find_parsed(const tn_assembly *a, const tn_key *key) {
  size_t probe = 0;
  uint64_t hash = block_key_hash(key);
  for (int64_t i; (i = tn_hash_index_next(&a->parsed_keys, hash, &probe)) != TN_HASH_INDEX_NONE;)
    if (a->parsed.v[i].key == key) return &a->parsed.v[i];
  return NULL;
}

static tn_status block_keep_parsed(tn_assembly *a, const tn_parsed_key *parsed) {
  TN_TRY(tn_vec_reserve(a->env, &a->parsed, a->parsed.n + 1));
  TN_TRY(tn_hash_index_add(&a->parsed_keys, block_key_hash(parsed->key), (uint32_t)a->parsed.n));
  a->parsed.v[a->parsed.n++] = *parsed;
  return TN_OK;
}

tn_status tn_block_lines(tn_assembly *a, tn_key *key, tn_line **lines, int32_t *n) {
  const tn_parsed_key *known = block_find_parsed(a, key);
  tn_parsed_key parsed = {.key = key};
  key->used = true;
  if (known == NULL) {
    TN_TRY(tn_syntax_lines(a->env, &a->arena, key, a->request->ini, &parsed.lines, &parsed.n));
    TN_TRY(block_keep_parsed(a, &parsed));
    known = &parsed;
  }
  *lines = known->lines;
  *n = known->n;
  return TN_OK;
}

static tn_status block_parse_line(tn_assembly *a, const tn_section *section, const tn_key *key,
                                  const char *lead, const char *tail, tn_line *line) {
  const char *text = tn_arena_printf(&a->arena, "%s%s%s", lead, key->value, tail);
  if (text == NULL) return TN_ENOMEM;
  tn_status status = tn_syntax_line(a->env, &a->arena, text, key->file, key->line, line);
  if (status == TN_OK) return TN_OK;
  const char *what = tn_arena_printf(&a->arena, "[%s] %s", section->name, key->name);
  return tn_error_add_context(a->env, status, tn_key_where(a->request->ini, section, key),
                              what != NULL ? what : key->name);
}

tn_status tn_block_line(tn_assembly *a, tn_section *section, const char *name, const char *lead,
                        const char *tail, tn_line *line) {
  tn_key *key = tn_section_key(section, name);
  *line = (tn_line){.n_items = 0};
  if (key == NULL) return TN_OK;
  key->used = true;
  if (*key->value == '\0') return TN_OK;
  const tn_parsed_key *known = block_find_parsed(a, key);
  tn_parsed_key parsed = {.key = key, .n = 1};
  if (known == NULL) {
    parsed.lines = tn_arena_alloc(&a->arena, sizeof *line);
    if (parsed.lines == NULL) return TN_ENOMEM;
    TN_TRY(block_parse_line(a, section, key, lead, tail, parsed.lines));
    TN_TRY(block_keep_parsed(a, &parsed));
    known = &parsed;
  }
  *line = known->lines[0];
  return TN_OK;
}

/* core/config/ini/parse.h: parsing of one text by inih, and building of sections. Private to the ini files
 * of this room. */
#pragma once

#include "core/config/ini/lines.h"

/* One file before its includes are merged. */
typedef struct tn_ini_part {
  tn_section *sections;
  int32_t n_sections;
  tn_key include; /* `include = ...` before the first section; name NULL: none */
} tn_ini_part;

/* Parses one text into the arena, and adds it to `size`. `file` appears in messages and in the keys. */
tn_status tn_ini_parse_part(const void *handle, tn_arena *arena, tn_ini_size *size, const char *file,
                            const char *text, size_t count, tn_ini_part *part);

/* Append an empty section or key; NULL: out of memory. */
tn_section *tn_ini_add_section(tn_arena *arena, tn_section **sections, int32_t *n);
tn_key *tn_ini_add_key(tn_arena *arena, tn_section *section);
/* Adds a key, or replaces the key of the same name, which becomes the new key's `before`. */
tn_status tn_ini_put_key(tn_arena *arena, tn_section *section, const tn_key *key);

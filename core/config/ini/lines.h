/* core/config/ini/lines.h: INI text cut into headers and keys with their continuation lines. Private to
 * the ini files of this room. */
#ifndef TN_CORE_CONFIG_INI_LINES_H
#define TN_CORE_CONFIG_INI_LINES_H

#include "core/base/vec.h"
#include "core/config/ini/ini.h"

/* What inih keeps of a section's name; a longer one would be cut without a word. Keys likewise. */
enum { TN_INI_NAME_LIMIT = 49 };

typedef struct tn_ini_lines {
  const void *handle;
  tn_arena *arena;
  const char *file;     /* for messages */
  const char *at, *end; /* what is left of the text */
  int32_t line;         /* number of the line last taken */
} tn_ini_lines;

enum { TN_INI_END, TN_INI_SECTION, TN_INI_KEY };
typedef struct tn_ini_entry {
  int32_t what, line;
  const char *name;  /* of the section or key; checked */
  const char *value; /* of the key, as tn_key has it */
  const int32_t *value_lines;
  int32_t n_value_lines;
} tn_ini_entry;

tn_ini_lines tn_ini_lines_of(const void *handle, tn_arena *arena, const char *file, const char *text,
                             size_t count);
/* The next header or key with everything checked, or TN_INI_END. Errors name file and line. */
tn_status tn_ini_lines_next(tn_ini_lines *lines, tn_ini_entry *entry);

/* Names of sections, white space folded, and of keys. `place` stands in front of messages. */
tn_status tn_ini_section_name(const void *handle, tn_arena *arena, const char *place, const char *text,
                              const char **name);
tn_status tn_ini_key_name(const void *handle, const char *place, const char *name);

/* Why a line cannot stand in a value so that it reads back: a comment would begin in it, or it looks
 * like a header and would stand alone, which it does not behind `key =`. NULL: it can. */
const char *tn_ini_line_flaw(const char *line, bool alone);

/* The lines of a value as they come in, and where they stand; the texts are in the arena. */
typedef struct tn_value_lines {
  TN_VEC(const char *) text;
  TN_VEC(int32_t) number;
} tn_value_lines;
tn_status tn_value_lines_add(const void *handle, tn_value_lines *lines, const char *text, int32_t number);
void tn_value_lines_free(const void *handle, tn_value_lines *lines);

/* Joins them to the value of an entry: blank lines and the indentation that all share go away. */
tn_status tn_value_lines_join(const void *handle, tn_arena *arena, const tn_value_lines *lines,
                              tn_ini_entry *entry);

#endif

/* core/config/ini/lines.h: INI text split into headers and keys with their continuation lines. Private to
 * the ini files of this room and to sections.c. */
#pragma once

#include "core/base/vec.h"
#include "core/config/ini/ini.h"

/* inih truncates longer names of sections and keys silently, so they are rejected. */
enum { TN_INI_NAME_LIMIT = 49 };

static inline bool tn_ini_is_blank(char c) { return c == ' ' || c == '\t'; }

typedef struct tn_ini_lines {
  const void *handle;
  tn_arena *arena;
  const char *file;     /* for messages */
  const char *at, *end; /* the rest of the text */
  int32_t line;         /* number of the line last read */
  tn_ini_size *size;    /* of the configuration so far */
  bool skipping;        /* the last header was wrong */
} tn_ini_lines;

enum { TN_INI_END, TN_INI_SECTION, TN_INI_KEY };
typedef struct tn_ini_entry {
  int32_t kind, line;
  const char *name;  /* of the section or key; valid */
  const char *value; /* of the key, as in tn_key */
  const int32_t *value_lines;
  int32_t n_value_lines;
} tn_ini_entry;

tn_ini_lines tn_ini_lines_of(const void *handle, tn_arena *arena, tn_ini_size *size, const char *file,
                             const char *text, size_t count);
/* Reads and validates the next header or key, or TN_INI_END. Messages contain file and line. */
tn_status tn_ini_lines_next(tn_ini_lines *lines, tn_ini_entry *entry);
/* Skips the blank and indented lines after an entry that is wrong. */
void tn_ini_lines_skip_value(tn_ini_lines *lines);

/* Validates the name of a section, with runs of blanks reduced to one, and of a key. `where` is put in
 * front of messages. */
tn_status tn_ini_section_name(const void *handle, tn_arena *arena, const char *where, const char *text,
                              const char **name);
tn_status tn_ini_key_name(const void *handle, const char *where, const char *name);

/* TN_EINVAL at a file's line if a configuration has more than `most` of something, which `what` names. */
tn_status tn_ini_check_limit(const void *handle, const char *file, int32_t line, int64_t count, int64_t most,
                             const char *what);

/* The reason why a line of a value would not read back: a part of it would be a comment, or, for a line of
 * its own (`alone`), it looks like a section header. NULL if it reads back. */
const char *tn_ini_line_flaw(const char *line, bool alone);

/* The lines of a value with their line numbers; the texts are in the arena. */
typedef struct tn_value_lines {
  TN_VEC(const char *) text;
  TN_VEC(int32_t) number;
} tn_value_lines;
tn_status tn_value_lines_add(const void *handle, tn_value_lines *lines, const char *text, int32_t number);
void tn_value_lines_free(const void *handle, tn_value_lines *lines);

/* Joins the lines to the value of an entry, without blank lines and common indentation. */
tn_status tn_value_lines_join(const void *handle, tn_arena *arena, const tn_value_lines *lines,
                              tn_ini_entry *entry);

/* core/config/ini/ini.h: INI text to sections with line numbers. inih does the parsing; a reader in
 * front of it counts lines and indentation, strips comments, and refuses what inih would get wrong
 * silently (docs/decisions). Values are text; typing is the schema's business. */
#ifndef TN_CORE_CONFIG_INI_INI_H
#define TN_CORE_CONFIG_INI_INI_H

#include "core/base/arena.h"
#include "core/base/text.h"

typedef struct tn_key {
  const struct tn_key *before; /* what it overrides: of an included file, or before --set; NULL: nothing */
  const char *name;
  const char *value;          /* lines joined by '\n', without comments and common indentation */
  const char *file;           /* as named by the user, for messages; "--set section.key" for overrides */
  int32_t line;               /* of the key; 0 for overrides */
  const int32_t *value_lines; /* line number of each '\n'-separated line of value */
  int32_t n_value_lines;
  bool used; /* set by whoever reads it; unused keys are errors in the end */
} tn_key;

typedef struct tn_section {
  const char *name; /* "data.train" or "block bottleneck", white space folded */
  const char *file;
  int32_t line;
  tn_key *keys;
  int32_t n_keys;
  bool used;
} tn_section;

typedef struct tn_ini {
  tn_arena arena;
  const char *path; /* the main file; "" for text */
  const char *folder;
  tn_section *sections;
  int32_t n_sections;
} tn_ini;

/* Reads a file with its includes (`include = other.ini`, before the first section, relative to the
 * file; the including file overrides; cycles are errors), expands ${VAR} from the environment (an
 * unset one is an error, $$ is a dollar). Duplicate keys and sections within one file are errors. */
tn_status tn_ini_read(const void *handle, const char *path, tn_ini *ini);
/* The same from text; `name` stands for the file in messages, `folder` for its place. */
tn_status tn_ini_parse(const void *handle, const char *text, const char *name, const char *folder,
                       tn_ini *ini);
void tn_ini_free(tn_ini *ini);

/* Applies "section.key=value" (split at the last dot before the first '='). Makes the section and
 * key where they do not exist. */
tn_status tn_ini_set(const void *handle, tn_ini *ini, const char *assignment);

tn_section *tn_ini_section(const tn_ini *ini, const char *name); /* NULL: none */
tn_key *tn_section_key(const tn_section *section, const char *name);
void tn_section_remove_key(tn_section *section, tn_key *key);

/* "file.ini:14", or "--set section.key". In the ini's arena. */
const char *tn_key_where(tn_ini *ini, const tn_section *section, const tn_key *key);

/* Everything as INI text that reads back to the same: the resolved copy that a run keeps. */
tn_status tn_ini_print(const void *handle, const tn_ini *ini, tn_text *text);

#endif

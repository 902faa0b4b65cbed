/* core/config/ini/ini.h: INI text as sections and keys with line numbers. inih parses; a reader in front
 * of it counts lines and indentation, strips comments, and rejects input that inih would accept silently
 * with a wrong meaning (docs/decisions). Values are text; core/config/options gives them types. */
#pragma once

#include "core/base/arena.h"
#include "core/base/text/text.h"
#include "core/config/ini/mistakes.h"

typedef struct tn_key {
  const struct tn_key
      *before; /* the overridden key, of an included file or before --set; NULL: no earlier value */
  const char *name;
  const char *value;          /* lines joined by '\n', without comments and without the common indentation */
  const char *file;           /* for messages, as the user wrote it; "--set section.key" for overrides */
  int32_t line;               /* line number of the key; 0 for overrides */
  const int32_t *value_lines; /* line number of each '\n'-separated line of value */
  int32_t n_value_lines;
  bool used;  /* set when the key is read; unused keys are errors at the end */
  bool apart; /* no option: its section has another reader for it */
} tn_key;

typedef struct tn_section {
  const char *name; /* "data.train" or "block bottleneck", with runs of blanks reduced to one */
  const char *file;
  int32_t line;
  tn_key *keys;
  int32_t n_keys;
  bool used;
  bool mistaken; /* a key of it was wrong: keys that it lacks are not looked for */
} tn_section;

/* The size of a configuration over all of its files. A file that is included twice counts twice. */
typedef struct tn_ini_size {
  int64_t files, bytes, lines, names; /* names: of sections and keys */
} tn_ini_size;

typedef struct tn_ini {
  tn_arena arena;
  const char *path; /* the main file; "" for a configuration from text */
  const char *folder;
  tn_section *sections;
  int32_t n_sections;
  tn_ini_size size;
  tn_mistakes mistakes; /* found by the readers of sections and of the model */
  /* Option tables of sections, with the sections' names, for messages about keys that are in the wrong one;
   * NULL-terminated. NULL: they are unknown. */
  const struct tn_item *const *homes;
  bool untrusted; /* code that the file names, TN_OPT_CODE and plugins, is not loaded */
} tn_ini;

/* Limits of tn_ini_size, which small files that include each other could exceed without end. A model of many
 * layers is a value of many lines, so names are few. */
enum {
  TN_INI_MOST_FILES = 1000,
  TN_INI_MOST_BYTES = 16 << 20,
  TN_INI_MOST_LINES = 200000,
  TN_INI_MOST_NAMES = 10000
};

/* Reads a file with its includes. `include = other.ini` stands before the first section and is relative to
 * the file; keys of the including file override; cycles are errors. ${VAR} expands from the environment
 * (an unset variable is an error), $$ is a dollar. More than a limit above is an error. Repeated keys and
 * sections within one file are errors. */
tn_status tn_ini_read(const void *handle, const char *path, tn_ini *ini);
/* Parses text. `name` replaces the file name in messages, `folder` is the base of relative paths. */
tn_status tn_ini_parse(const void *handle, const char *text, const char *name, const char *folder,
                       tn_ini *ini);
void tn_ini_free(tn_ini *ini);

/* tn_mistakes_note and tn_mistakes_tell for the mistakes of this configuration. */
tn_status tn_ini_note(const void *handle, tn_ini *ini, tn_status status);
tn_status tn_ini_tell(const void *handle, const tn_ini *ini);
/* Marks a section and its keys as used: a reader that failed has looked at them. */
void tn_section_mark_used(tn_section *section);

/* Applies "section.key=value" (split at the last dot before the first '='). Creates the section and the
 * key if they do not exist. */
tn_status tn_ini_set(const void *handle, tn_ini *ini, const char *assignment);

tn_section *tn_ini_section(const tn_ini *ini, const char *name); /* NULL: none */
tn_key *tn_section_key(const tn_section *section, const char *name);
void tn_section_remove_key(tn_section *section, tn_key *key);

/* "file.ini:14", or "--set section.key", allocated in the ini's arena. */
const char *tn_key_where(tn_ini *ini, const tn_section *section, const tn_key *key);

/* Prints the whole configuration as INI text that reads back to the same sections and keys. A run keeps it
 * as its resolved configuration. */
tn_status tn_ini_print(const void *handle, const tn_ini *ini, tn_text *text);

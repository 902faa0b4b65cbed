/* core/config/sections/sections.h: sections read by tables of options, and the last look at what nobody read.
 * The tables are those of items: the host's own sections have some, as plugins have. */
#ifndef TN_CORE_CONFIG_SECTIONS_SECTIONS_H
#define TN_CORE_CONFIG_SECTIONS_SECTIONS_H

#include "core/config/ini/ini.h"
#include "core/config/options/options.h"

/* Fills options from the keys of a section (NULL: none) and marks it and them as used. A key goes to
 * the first of `into` that knows its name; one that no table knows is an error. An option that was
 * given before stays as it is: fill from the most special section first, [data.train], then [data].
 * Paths are relative to the file that names them, and the key then holds the absolute path, so that
 * the configuration printed into a run folder means the same there. Errors begin with
 * "file.ini:14: [section] key: ". */
tn_status tn_schema_fill(const void *handle, tn_ini *ini, tn_section *section, tn_options *const *into,
                         int32_t n);

/* tn_options_finish, with the section's place in front of the error; `name` serves where the section
 * (NULL) is absent. */
tn_status tn_schema_finish(const void *handle, tn_ini *ini, const tn_section *section, const char *name,
                           tn_options *options);

/* What may stand in the sections that match a pattern ("run", "group.*"). */
typedef struct tn_schema_section {
  const char *pattern;
  const tn_item *const *tables; /* NULL-ended; NULL: the keys are somebody else's business */
} tn_schema_section;

/* When everything has been read: a section or key that is not marked as used is an error that names the
 * nearest of the known ones. */
tn_status tn_schema_check(const void *handle, tn_ini *ini, const tn_schema_section *known, int32_t n);

#endif

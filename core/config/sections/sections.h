/* core/config/sections/sections.h: filling options from sections, and the final check for unused keys.
 * Sections of the host and of plugins are described alike, by the option tables of items. */
#pragma once

#include "core/config/ini/ini.h"
#include "core/config/options/options.h"

/* Fills options from the keys of a section (NULL: no keys) and marks the section and its keys as used.
 * Each key goes to the first entry of `into` that has an option of its name; a key without such an entry
 * is an error. An option that was already set keeps its value, so fill from the most specific section
 * first: [data.train], then [data]. Paths are relative to the file that contains the key. The key is
 * updated to the absolute path, so that the configuration printed into a run folder keeps its meaning.
 * Mistakes in keys are noted in
 * the ini, and their texts begin with "file.ini:14: [section] key: "; a failure is something else. */
tn_status tn_section_fill(const void *handle, tn_ini *ini, tn_section *section, tn_options *const *into,
                          int32_t n);

/* Calls tn_options_finish and adds file, line and section to its message; `name` is the section's name for
 * a section that is absent (NULL). */
tn_status tn_section_finish(const void *handle, tn_ini *ini, const tn_section *section, const char *name,
                            tn_options *options);

/* The options that sections matching a pattern ("run", "group.*") may have. */
typedef struct tn_section_pattern {
  const char *pattern;
  const tn_item *const *tables; /* NULL-terminated; NULL: the keys are not checked */
} tn_section_pattern;

/* Call this after all readers have run: an unused section or key is an error whose message gives the
 * nearest known name. Fails with all mistakes that were noted. */
tn_status tn_sections_check(const void *handle, tn_ini *ini, const tn_section_pattern *known, int32_t n);

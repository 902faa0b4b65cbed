/* core/config/options/habits.h: what options of other frameworks are called here. */
#pragma once

#include <stddef.h>

#include "core/config/options/options.h"

/* The own name of an option that PyTorch or Keras calls `foreign`, if it is one of n names; NULL: not known.
 */
const char *tn_option_habit(const char *foreign, const char *const *names, size_t n);

/* The name of the option in the first of the tables (NULL-terminated, or NULL) that has one of that name, or
 * of the name that it has here; *section is the table's name. NULL: none has. */
const char *tn_option_home(const char *name, const tn_item *const *tables, const char **section);

/* The own name of a section that other configurations call `foreign`; NULL: not known. */
const char *tn_section_habit(const char *foreign);

/* The reason to leave an option of that name out, as "the size of the input is known"; NULL: not known. */
const char *tn_option_needless(const char *foreign);

/* For an option that is written as several options, or elsewhere: "write beta1 = 0.9 and beta2 = 0.999". */
const char *tn_option_elsewhere(const char *foreign);

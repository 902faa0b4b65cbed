/* core/config/options/habits.h: what options of other frameworks are called here. */
#ifndef TN_CORE_CONFIG_OPTIONS_HABITS_H
#define TN_CORE_CONFIG_OPTIONS_HABITS_H

#include <stddef.h>

/* The own name of an option that PyTorch or Keras calls `foreign`, if it is one of n names; NULL: not known.
 */
const char *tn_option_habit(const char *foreign, const char *const *names, size_t n);

/* The reason to leave an option of that name out, as "the size of the input is known"; NULL: not known. */
const char *tn_option_needless(const char *foreign);

/* For an option that is written as several options, or elsewhere: "write beta1 = 0.9 and beta2 = 0.999". */
const char *tn_option_elsewhere(const char *foreign);

#endif

/* core/compile/select/tuner.h: who knows how long a variant of a kernel takes. The compiler asks about
 * variants that want their operands alike, so that only time is between them; core/exec measures (tune.h). */
#ifndef TN_CORE_COMPILE_SELECT_TUNER_H
#define TN_CORE_COMPILE_SELECT_TUNER_H

#include "core/compile/cover.h"

typedef struct tn_tuner tn_tuner;
struct tn_tuner {
  /* Writes *seconds and returns true; false: it cannot tell, and estimates stand. */
  bool (*time)(tn_tuner *tuner, const tn_entry *entry, const tn_match *match, const tn_choice *choice,
               double *seconds);
};

#endif

/* core/compile/kernels/tuner.h: the interface through which the compiler measures variants of a kernel. It is
 * called for variants with equal layout rules, which differ only in time; core/exec implements it
 * (core/exec/tune/measure.h). */
#ifndef TN_CORE_COMPILE_KERNELS_TUNER_H
#define TN_CORE_COMPILE_KERNELS_TUNER_H

#include "core/compile/kernels/group.h"

typedef struct tn_tuner tn_tuner;
struct tn_tuner {
  /* Measures a launch; false: it cannot, and the estimates are used. */
  bool (*time)(tn_tuner *tuner, const tn_entry *entry, const tn_match *match, const tn_choice *choice,
               double *seconds);
};

#endif

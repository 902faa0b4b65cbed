/* core/compile/kernels/tuner.h: the interface through which the compiler measures variants of a kernel. It is
 * called for variants with equal layout rules, which differ only in time, and for a kernel of several nodes
 * and those that would compute the nodes without it; core/exec implements it (core/exec/tune/measure.h). */
#pragma once

#include "core/compile/kernels/group.h"

/* A kernel for a match, some variants of which are measured. */
typedef struct tn_tuning {
  const tn_entry *entry;
  const tn_match *match;
  const char *nodes;   /* the ops with attributes and operand numbers: "conv2d(0, 1; stride=2)+relu(2)" */
  const uint8_t *cold; /* per operand: a state or a view of one. The other launches of a step push weights out
                          of the caches */
  tn_match_key key;    /* of the match */
} tn_tuning;

typedef struct tn_tuner tn_tuner;
struct tn_tuner {
  /* Measures a launch; *seconds is 0 where it cannot, and the estimates are used. A variant that declines
   * when it is prepared is noted (answers.h), and the others are measured in the next call. A failure: the
   * device is of no use any more; the message goes to `env`. */
  tn_status (*time)(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                    double *seconds);
  /* The time of a launch in the replay of a capture, which compares with the sum of those of several
   * launches. *seconds is 0 where no time is known: the launch is not captured, or its times differ by too
   * much. NULL: the device cannot capture launches, or has no clock. */
  tn_status (*time_replay)(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                           double *seconds);
  /* Whether the device has failed while an earlier process measured the variant, which the tuner then logs
   * once. It is not measured. */
  bool (*has_faulted)(tn_tuner *tuner, const tn_tuning *tuning, const tn_choice *choice);
  bool (*knows_faults)(tn_tuner *tuner); /* false: no variant has */
};

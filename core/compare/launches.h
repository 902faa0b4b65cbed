/* core/compare/launches.h: the findings about every launch of the tested backend. */
#pragma once

#include "core/base/vec.h"
#include "core/compare/judge.h"
#include "core/exec/watch/launch_watch.h"

/* The worst of one launch over all watched steps. */
typedef struct tn_compared_launch {
  const tn_program *program;
  int32_t index;      /* of the step in the program */
  int64_t at_step;    /* of training, from 1 */
  int32_t repetition; /* 1; or the later launch with the same operands that departs */
  bool unsteady;      /* that one has other bits, although the kernel is declared deterministic */
  char skipped[160];  /* why the launch was not compared; "": it was */
  tn_judgement judged;
} tn_compared_launch;

typedef struct tn_compared_launches {
  const tn_judge *judge;
  const char *file; /* written for the first launch that departs; NULL: none */
  int32_t launches; /* of each step with the same operands */
  int64_t at_step;
  TN_VEC(tn_compared_launch) list; /* in the order of the programs */
  bool departed;                   /* `first` is set */
  tn_compared_launch first;        /* the first launch that departs, as it was then */
  bool written;                    /* the file is */
} tn_compared_launches;

/* tn_launch_watcher.seen with a tn_compared_launches. */
tn_status tn_compared_launches_see(void *context, tn_env *env, const tn_watched_launch *launch);

/* Whether the launch departs on either backend. */
static inline bool tn_compared_departs(const tn_compared_launch *one) {
  return one->unsteady || one->judged.verdict >= TN_JUDGED_DEPARTS;
}

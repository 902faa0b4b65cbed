/* core/train/loop/update_sizes.h: how many batches the updates of a run have, [schedule.accumulate]. The
 * count of an update is a function of the position of its first batch in the data, so that it depends neither
 * on the updates before it nor on where a run was resumed. */
#pragma once

#include "core/base/vec.h"
#include "core/step/values/schedule_values.h"

typedef struct tn_update_sizes {
  const tn_schedule_setting *schedule; /* NULL: all updates have [optimizer] accumulate batches */
  const char *where;                   /* of the schedule, for messages */
  int64_t most;                        /* [optimizer] accumulate */
  int64_t epochs, batches;             /* of the run; of an epoch, in front of padding */
  int64_t batch;                       /* samples of a batch, over all ranks */
  bool pads;                           /* the last update of an epoch is padded; else it is left out */
  TN_VEC(tn_schedule_point) points;    /* of the planned steps */
} tn_update_sizes;

/* The updates of an epoch up to here. */
typedef struct tn_update_walk {
  int64_t epoch, updates, batches; /* counted from 0; batches of the updates */
  int64_t last;                    /* the first batch of the last one of them */
} tn_update_walk;

/* The batches of the next update; 0: the epoch is over. */
int64_t tn_update_sizes_next(const tn_update_sizes *sizes, const tn_update_walk *walk);
/* Walks over it; false: the epoch is over. */
bool tn_update_sizes_step(const tn_update_sizes *sizes, tn_update_walk *walk);
/* Walks over an epoch up to an update, or to the first one that would end behind so many batches. */
tn_update_walk tn_update_sizes_walk(const tn_update_sizes *sizes, int64_t epoch, int64_t updates,
                                    int64_t batches);

/* A position that is known: the epoch that begins with a step, and the step before which the run ends at the
 * latest. */
typedef struct tn_update_anchor {
  int64_t epoch, step, most_steps;
} tn_update_anchor;
/* Counts the steps of the run, and sets the points of schedules. TN_EINVAL: the schedule asks for more
 * batches than [optimizer] accumulate, an epoch has fewer than an update, or there are too many steps. */
tn_status tn_update_sizes_plan(const tn_env *env, tn_update_sizes *sizes, const tn_update_anchor *anchor,
                               int64_t *steps);
void tn_update_sizes_free(const tn_env *env, tn_update_sizes *sizes);

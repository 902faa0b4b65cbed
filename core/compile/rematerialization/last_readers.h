/* core/compile/rematerialization/last_readers.h: liveness of values in a cover: the groups that make and read
 * each value. The order of the groups stands for the order of the launches, which is not known yet.
 *
 * All tables are per value, and count readers of a view as readers of the value that owns the memory
 * (view_bases.h). */
#pragma once

#include "core/compile/select/cover.h"

/* A group that reads a value, or has read it: a node of the value's heap, the later groups above. */
typedef struct tn_reading {
  struct tn_reading *left, *right;
  int32_t group;
} tn_reading;

typedef struct tn_last_readers {
  tn_cover *cover;
  tn_val *base;
  int32_t *maker;        /* the group that stores the value, or -1 */
  int32_t *last;         /* the last group that reads it, its maker if none does; INT32_MAX: a pack, commit
                          * or output reads it */
  int32_t *before;       /* the last reader but one; its maker if there is only one */
  tn_reading **readings; /* groups that read it, and some that no longer do */
  bool *dead;            /* per group: it has been removed */
  tn_arena arena;
} tn_last_readers;

/* *readers must be freed also after a failure. */
tn_status tn_last_readers_create(tn_last_readers *readers, tn_cover *cover);
void tn_last_readers_free(tn_last_readers *readers);

bool tn_last_readers_group_reads(const tn_last_readers *readers, const tn_group *group, tn_val base);
/* Updates the tables after the group at `index`, formerly *old, was changed or marked as dead. */
tn_status tn_last_readers_update(tn_last_readers *readers, const tn_group *old, int32_t index);

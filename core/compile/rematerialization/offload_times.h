/* core/compile/rematerialization/offload_times.h: predicts the copies of offloaded values beside the groups,
 * in the order of the cover. The memory plan predicts them again in the order of the launches
 * (memory/place_transfers.c). */
#pragma once

#include "core/compile/rematerialization/clone_groups.h"

typedef struct tn_offload_times {
  const tn_rematerialization *r;
  double
      *begin_s; /* per group: when it begins, if nothing waits for a copy; clones run before their readers */
  double *fetch_s;   /* per group: the copies that must have come back before it */
  double *gone_s;    /* per value: when its copy on the host is complete */
  int32_t *last;     /* per value: its last reader in forward, or its maker; of idle ones */
  double price;      /* of a second of the link, whether compute waits or not. The caller's choice */
  int32_t *by_maker; /* indices of idle values, by their makers */
  double midpoint_s; /* the end of forward */
  double cost_s;     /* of clones, of waits for copies, and of the memory traffic of the copies */
} tn_offload_times;

tn_status tn_offload_times_create(const tn_rematerialization *r, tn_arena *arena, tn_offload_times *times);

/* Predicts for the present choice, after tn_rematerialization_update. */
void tn_offload_times_update(tn_offload_times *times);

/* Whether an offloaded value is on the host alone at a time. behind: that of a step behind the midpoint,
 * which has waited for all copies to the host. */
bool tn_offload_times_away(const tn_offload_times *times, tn_val value, double time_s, bool behind);

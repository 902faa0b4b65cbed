/* backends/sim/race/shadow.h: the recorded accesses of a block, and the check of a new access against them:
 * vector clocks as in FastTrack (Flanagan and Freund, PLDI 2009), on ranges of bytes. */
#pragma once

#include "backends/sim/sim.h"

/* An access at time `when` of clock entry `clock_index`. No access: when = 0. */
typedef struct tn_sim_access {
  uint64_t when, number; /* number: in the order of enqueuing */
  uint64_t bytes;        /* of a copy */
  const char *name;      /* valid as long as the device */
  int32_t clock_index;
  bool write;
} tn_sim_access;

tn_sim_shadow *tn_sim_shadow_create(uint64_t bytes);
void tn_sim_shadow_destroy(tn_sim_shadow *shadow);

/* Records an access to a range of the block, made at `clock`. conflict->when != 0: that access conflicts and
 * is not ordered before `clock`; the new one is not recorded. False: no memory. */
bool tn_sim_shadow_access(tn_sim_shadow *shadow, uint64_t offset, uint64_t bytes, bool write,
                          const tn_sim_clock *clock, const tn_sim_access *access, tn_sim_access *conflict);

/* Whether all accesses are ordered before `clock`; else *open is one that is not. */
bool tn_sim_shadow_settled(const tn_sim_shadow *shadow, const tn_sim_clock *clock, tn_sim_access *open);

/* backends/sim/race/shadow.h: the memory of a block's accesses, and the question whether a new one may happen
 * beside an old one. Vector clocks as in FastTrack (Flanagan and Freund, PLDI 2009), by ranges of bytes. */
#ifndef TN_BACKENDS_SIM_RACE_SHADOW_H
#define TN_BACKENDS_SIM_RACE_SHADOW_H

#include "backends/sim/sim.h"

/* An access: `when` of `who` in vector clocks. No access: when = 0. */
typedef struct tn_sim_access {
  uint64_t when, number; /* number: in the order of enqueuing */
  uint64_t bytes;        /* of a copy */
  const char *name;      /* lives with the device */
  int32_t who, what;
  bool write;
} tn_sim_access;

tn_sim_shadow *tn_sim_shadow_create(uint64_t bytes);
void tn_sim_shadow_destroy(tn_sim_shadow *shadow);

/* Notes an access to a range inside the block that someone makes whose clock is `clock`. conflict->when != 0:
 * it conflicts with that access, of which `clock` does not know, and is not noted. False: no memory. */
bool tn_sim_shadow_access(tn_sim_shadow *shadow, uint64_t offset, uint64_t bytes, bool write,
                          const tn_sim_clock *clock, const tn_sim_access *access, tn_sim_access *conflict);

/* Whether `clock` knows of all accesses; else one that it does not know of. */
bool tn_sim_shadow_settled(const tn_sim_shadow *shadow, const tn_sim_clock *clock, tn_sim_access *open);

#endif

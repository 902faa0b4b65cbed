/* core/compile/kernels/target.h: the device that a graph is compiled for. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"
#include "core/base/text/word_list.h"
#include "core/compile/kernels/interconnect.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/communicator.h"

typedef struct tn_target {
  tn_device_properties properties; /* complete; kernels read them in `query` */
  /* Families whose kernels run on the device, best first: extensions before their family, the family before
   * those that it accepts. */
  const char *const *families;
  void *const *selves; /* per family: the result of its backend's open, NULL if it is not open. NULL: no
                          family is open */
  int32_t n_families;
  int32_t n_own; /* the first n_own families are the device's own, the others are those that it accepts */
  int64_t guard_bytes; /* unused bytes around every buffer of the arena, a multiple of 64. A check that finds
                          them changed has found a write out of bounds. 0: no guard */
  /* `takes` of the backend decides about kernels of accepted families. NULL: all of them are accepted. */
  const tn_backend *backend;
  void *self; /* of the backend */
  /* The target of ops for which this one has no kernel. NULL: such an op is an error. */
  const struct tn_target *fallback;
  bool fallback_refused;      /* such an op is an error that says whether the fallback has a kernel */
  struct tn_answers *answers; /* remembers the answers of kernels (answers.h). NULL: every query is asked */
  struct tn_tuner *tuner;     /* measures variants (tuner.h). NULL: estimates decide */
  const tn_communicator *communicator; /* executes collectives. NULL: there is one rank */
  tn_interconnect interconnect;        /* over which it does so; ranks 0: there is one */
  bool constant_state;                 /* for inference: states without a commit never change between runs */
  tn_words without;                    /* names of kernels that are left out */
  bool deterministic;                  /* variants whose bits differ from run to run are left out */
  const struct tn_recorded_choices
      *replay;         /* choices of an earlier compilation (recorded_choices.h). NULL: none */
  const char *program; /* whose choices are repeated: the program that is compiled; tn_compile sets it */
  struct tn_loop_bodies *loops; /* of the cover that is made (loop_kernel.h); tn_compile sets it */
  const struct tn_state_map
      *states; /* some may lie in memory of the host (round/placed_nodes.h); tn_compile sets it */
} tn_target;

/* Replaces unknown rates by orders of magnitude of one core of a processor for each thread, which rank
 * kernels by their operations and bytes. */
void tn_properties_complete(tn_device_properties *properties);

/* The result of the open of a family's backend; NULL if it is not open. */
void *tn_target_self(const tn_target *target, const char *family);

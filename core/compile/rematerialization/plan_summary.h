/* core/compile/rematerialization/plan_summary.h: the memory plan of a choice of values that are
 * rematerialized or offloaded, as far as the search of memory_limit.c needs it. */
#pragma once

#include "core/compile/memory/memory_plan.h"
#include "core/compile/rematerialization/clone_groups.h"

/* The memory plan of a set of discarded values, as far as the search needs it. */
typedef struct tn_plan_summary {
  int64_t arena_bytes, bound_bytes;
  double excess; /* the live bytes above those that are enough, summed over the steps */
  int32_t peak;  /* the step with the most live bytes; where these are enough, and the arena is not, of the
                    steps of the highest value */
  double peak_s; /* when it begins, if nothing waits */
  double step_s; /* of a run, with its waits for copies */
  int32_t *step; /* per group before rematerialization: its step */
  bool *idle;    /* per value: live at the peak, between its uses in forward and those in backward */
  bool *leaving; /* per offloaded value: at the peak it awaits the end of its copy to the host alone */
  bool *back;    /* per offloaded value: its copy has come back at the peak, and nothing has read it */
  bool *remade;  /* per discarded value: it has been made again, and its memory is live at the peak */
} tn_plan_summary;

typedef struct tn_plan_trial {
  tn_env *env;
  const tn_state_map *map;
  const tn_slot_layout *slot;
  const tn_forward_backward *fb;
  tn_rematerialization *rematerialization; /* with the choice */
  tn_packing_goal packing;                 /* of the arena */
} tn_plan_trial;

tn_status tn_plan_summary_create(const tn_forward_backward *fb, tn_arena *arena, tn_plan_summary *summary);

/* Rewrites the cover for the choice, plans its memory and summarizes the plan. Groups that the plan adds stay
 * in the cover. */
tn_status tn_plan_try(const tn_plan_trial *trial, tn_plan_summary *summary);

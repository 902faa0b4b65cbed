/* tests/integration/sim/story.h: an executor on a device that runs as late as it may, with a program made by
 * hand, and what a host does with them; so that any wait or copy can be left out and missed. */
#ifndef TN_TESTS_SIM_STORY_H
#define TN_TESTS_SIM_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/exec/executor.h"
#include "core/exec/caller_memory.h"
#include "backends/sim/sim.h"

enum { STORY_N = 4, STORY_SLOTS = 2, STORY_RESULTS = 64 };

/* y = x + 1 (compute)   z = y + y (comm)   s = s + z in place (compute)   out = s + z (comm), all of STORY_N
 * floats; s is state. */
typedef struct story_program {
  tn_gnode nodes[4];
  uint32_t numbers[4];
  tn_graph graph;
  tn_cover cover;
  tn_group groups[4];
  tn_operand in[4][2], out[4][1];
  tn_step steps[4];
  tn_segment segments[3];
  tn_transfer fetched, returned;
  tn_binding input, output;
  tn_program program;
} story_program;

/* z on the fallback: y is copied out and z in; or, without a copy out, z = x + 1 there, and out = s + y. */
void story_program_cut(story_program *p, bool fetches);
/* Nothing but the slot's ends: y = x + 1, out = y + x. */
void story_program_shorten(story_program *p);

typedef struct story {
  tn_env env;
  tn_error_record record;
  const tn_item *items[3];
  tn_plugin plugin;
  tn_registry *registry;
  tn_state_map *map;
  tn_device *device;
  tn_executor *executor;
  tn_outside *outside;
  story_program hand;
  const char *drop, *order;
  bool uncaptured;
  float results[STORY_RESULTS], own[STORY_N], read[STORY_N];
  int32_t n;
  tn_status status;
  char said[2048];
  int64_t seen[TN_SIM_FAULTS]; /* before the end, which waits for all streams */
} story;

/* What kind of story: how its program differs, what happens, and whether all streams are asked in the end. */
typedef struct tale {
  void (*change)(story_program *p); /* NULL: nothing */
  const tn_backend *helper;         /* what falls back does so there; NULL: nothing does */
  bool (*begin)(story *s);          /* makes executor or outside */
  bool (*tell)(story *s);
  bool leaves_early;
} tale;

/* Goes on only while all is well; the first failure ends the story. */
bool story_well(story *s, tn_status status);
bool story_executor(story *s); /* for tale.begin */

void story_put(story *s, int32_t slot, float value);
bool story_run(story *s, int32_t slot);
bool story_get(story *s, int32_t slot); /* waits, and notes what came out */
bool story_read_state(story *s);
/* The buffer is the host's own again when the call returns. */
bool story_write_state(story *s, float value);

/* The caller's (free). */
story *story_live(const tale *t, const char *order, const char *drop, bool uncaptured);
bool story_same(const story *a, const story *b);
/* Every order tells the same, captured or not. */
void story_every_order(const tale *t);
/* Leaves out one after the other of a kind, up to the last that happened before the end; each must be missed
 * but those in `idle`, which is as in "await:3 await:7 ", ones that others make needless. */
void story_leave_out(const tale *t, const char *kind, int32_t which, bool uncaptured, const char *idle);
void story_leave_out_twice(const tale *t, const char *kind, int32_t which);

#endif

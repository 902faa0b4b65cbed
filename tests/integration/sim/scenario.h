/* tests/integration/sim/scenario.h: scenarios of a host that uses an executor on a simulated device, with a
 * program made by hand. The device runs work as late as allowed, so that a dropped wait or copy changes the
 * result. */
#pragma once

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
#include "backends/sim/callbacks.h"
#include "backends/sim/sim.h"

enum { SCENARIO_N = 4, SCENARIO_SLOTS = 2, SCENARIO_RESULTS = 64 };

/* y = x + 1 (compute)   z = y + y (comm)   s = s + z in place (compute)   out = s + z (comm), all of
 * SCENARIO_N floats; s is state. */
typedef struct scenario_program {
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
} scenario_program;

/* z is computed on the fallback: y is copied out and z in. fetches = false: z = x + 1 and out = s + y, so
 * nothing is copied out. */
void scenario_program_use_fallback(scenario_program *p, bool fetches);
/* Only inputs and outputs, no state: y = x + 1, out = y + x. */
void scenario_program_shorten(scenario_program *p);

typedef struct scenario {
  tn_env env;
  tn_error_record record;
  const tn_item *items[6];
  tn_plugin plugin;
  tn_registry *registry;
  tn_state_map *map;
  tn_device *device;
  tn_executor *executor;
  tn_caller_program *caller_program;
  scenario_program hand;
  const char *drop, *order;
  bool uncaptured;
  float results[SCENARIO_RESULTS], written[SCENARIO_N], read[SCENARIO_N];
  int32_t n;
  tn_status status;
  char message[2048];
  char captures[512];          /* the warning about launches that are not captured */
  int64_t seen[TN_SIM_FAULTS]; /* events per kind of fault, before the final waits */
} scenario;

/* The steps of a scenario. */
typedef struct scenario_kind {
  void (*change)(scenario_program *p); /* changes the program; may be NULL */
  const tn_backend *fallback;          /* of the device; may be NULL */
  bool (*setup)(scenario *s);          /* creates executor or caller_program */
  bool (*act)(scenario *s);
  bool ends_early; /* no wait for the streams before the end */
} scenario_kind;

/* Keeps the first failure and its message; false once a call has failed. */
bool scenario_ok(scenario *s, tn_status status);
bool scenario_create_executor(scenario *s); /* for scenario_kind.setup */

void scenario_fill(scenario *s, int32_t slot, float value);
bool scenario_run(scenario *s, int32_t slot);
bool scenario_run_both(scenario *s);              /* both slots, enqueued together */
bool scenario_collect(scenario *s, int32_t slot); /* waits, and appends the output to results */
bool scenario_read_state(scenario *s);
/* Overwrites its buffer after the call, which must have read it. */
bool scenario_write_state(scenario *s, float value);

/* Plays a scenario with the sim options order and drop. The caller frees the result (free). */
scenario *scenario_play(const scenario_kind *t, const char *order, const char *drop, bool uncaptured);
bool scenario_equal(const scenario *a, const scenario *b);
/* All orders give the same results, with and without capture. */
void scenario_check_orders(const scenario_kind *t);
/* Plays the scenario once for each event of a kind, with that event dropped. Every drop must be detected,
 * except those in `idle`, such as "await:3 await:7 ", which other events make redundant. */
void scenario_check_drops(const scenario_kind *t, const char *kind, int32_t which, bool uncaptured,
                          const char *idle);
void scenario_check_drops_both(const scenario_kind *t, const char *kind, int32_t which);

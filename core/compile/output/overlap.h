/* core/compile/output/overlap.h: when the steps of a program are predicted to run, with collectives and
 * copies of offloaded values beside the others. */
#pragma once

#include <jansson.h>

#include "core/compile/program.h"

/* Seconds from the start of a run of the program. */
typedef struct tn_step_times {
  double ready_s, begin_s, end_s; /* a collective or a copy is ready when the compute steps before it have
                                     ended, and begins when the one before it on its stream has */
  double exposed_s; /* of these: how long the compute steps, or the end of the run, wait for it */
} tn_step_times;

typedef struct tn_overlap {
  double step_s;          /* the whole run */
  double compute_s;       /* of the compute steps */
  double communication_s; /* of the collectives */
  double exposed_s;       /* of these: during which no compute step runs */
  double copy_s;          /* of the copies of offloaded values */
  double copy_exposed_s;  /* of these, in the same way */
  double host_s;          /* of the steps that are placed on the host */
  double host_exposed_s;  /* of these, in the same way. step_s = compute_s + exposed_s + copy_exposed_s +
                             host_exposed_s */
} tn_overlap;

/* Follows the steps in launch order, at their estimated or measured times. Each stream runs its steps in
 * their order. `times`: one for each of program->n_steps; NULL: not asked
 * for. */
tn_overlap tn_overlap_predict(const tn_program *program, tn_step_times *times);

/* {copy_ms, exposed_ms, host_ms, host_exposed_ms, unlimited_ms, step_ms, values: [{name, bytes,
 * offload_begin_ms, offload_end_ms, fetch_begin_ms, fetch_end_ms, exposed_ms}], streamed: {copies, bytes,
 * copy_ms, exposed_ms}} of the offloaded values, in the order of their copies, and of the weights that are
 * streamed in a run. unlimited_ms: without rematerialization and waits for copies and for the host.
 * host_ms: of launches that are placed on the host, whose copies are no values of the list. The caller's
 * reference. */
tn_status tn_offload_report(const tn_program *program, json_t **report);

/* {step_ms, compute_ms, communication_ms, exposed_ms, exposed_percent, collectives: [{name, bytes, gradients,
 * ready_ms, begin_ms, end_ms, exposed_ms}]}. bytes are those of the whole vector; gradients: how many a
 * bucket of gradients has, 0 for other collectives. The caller's reference. */
tn_status tn_overlap_report(const tn_program *program, json_t **report);

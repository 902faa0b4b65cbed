/* core/compile/output/overlap.h: when the steps of a program are predicted to run, with collectives beside
 * the others. */
#pragma once

#include <jansson.h>

#include "core/compile/program.h"

/* Seconds from the start of a run of the program. */
typedef struct tn_step_times {
  double ready_s, begin_s, end_s; /* a collective is ready when the steps before it have ended, and begins
                                     when the one before it has */
  double exposed_s; /* of a collective: how long the other steps, or the end of the run, wait for it */
} tn_step_times;

typedef struct tn_overlap {
  double step_s;          /* the whole run */
  double compute_s;       /* of the steps that are no collectives */
  double communication_s; /* of the collectives */
  double exposed_s;       /* of these: during which no other step runs. step_s = compute_s + exposed_s */
} tn_overlap;

/* Follows the steps in launch order, at their estimated or measured times. Collectives run in their order on
 * a stream of their own, all others in theirs. `times`: one for each of program->n_steps; NULL: not asked
 * for. */
tn_overlap tn_overlap_predict(const tn_program *program, tn_step_times *times);

/* {step_ms, compute_ms, communication_ms, exposed_ms, exposed_percent, collectives: [{name, bytes, gradients,
 * ready_ms, begin_ms, end_ms, exposed_ms}]}. bytes are those of the whole vector; gradients: how many a
 * bucket of gradients has, 0 for other collectives. The caller's reference. */
tn_status tn_overlap_report(const tn_program *program, json_t **report);

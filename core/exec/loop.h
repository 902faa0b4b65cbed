/* core/exec/loop.h: loops: the launches of a body, repeated for each step. Private to core/exec. */
#pragma once

#include "core/exec/bound_program.h"

/* The prepared kernels of a loop's body, and the roles of their operands. */
typedef struct tn_bound_loop tn_bound_loop;

/* The launches of a loop, with the addresses of one slot. A device that computes later than it is asked to
 * gets launches of its own for each step. */
typedef struct tn_loop_run tn_loop_run;

/* Prepares the body of a step whose kernel is that of loops, for the device that runs the step. Messages stay
 * in its env. The kernels get the numbers from *use on, which becomes the next one. */
tn_status tn_loop_prepare(tn_executor *e, tn_device *device, const tn_step *step, int32_t *use,
                          tn_bound_loop **loop);
/* The kernel of this number has declined after it was prepared, with a message in the device's env: releases
 * it. true: it is one of the loop's, and the device does not offer it again. */
bool tn_loop_note_decline(tn_executor *e, tn_bound_loop *loop, int32_t use);
void tn_loop_release(tn_executor *e, tn_bound_loop *loop); /* accepts NULL */

tn_status tn_loop_run_create(tn_executor *e, const tn_bound_loop *loop, void *stream, tn_loop_run **run);
void tn_loop_run_destroy(tn_executor *e, tn_loop_run *run); /* accepts NULL */

/* The launch of a loop; l->prepared is a tn_loop_run. */
tn_status tn_loop_launch(tn_launch *l);

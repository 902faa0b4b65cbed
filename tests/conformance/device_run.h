/* tests/conformance/device_run.h: a graph compiled and run on a device as a training step is, with
 * operands and results as doubles. */
#ifndef TN_TESTS_CONFORMANCE_DEVICE_RUN_H
#define TN_TESTS_CONFORMANCE_DEVICE_RUN_H

#include "core/exec/executor.h"
#include "fixture.h"

/* The first device of a backend, whose plugin file is opened first. */
tn_status device_open(fixture *f, const char *backend, const char *file, tn_device **device);

typedef struct device_run device_run;

/* Takes the graph, on failure too. */
tn_status device_run_create(fixture *f, tn_device *device, tn_graph *take_graph, device_run **made);
void device_run_destroy(device_run *r);

const tn_program *device_run_program(const device_run *r);
/* Writes an input; one that the program does not read is passed over. */
void device_run_input(device_run *r, const char *name, const double *values);
tn_status device_run_go(device_run *r);
/* An output's elements, or NULL if there is none; the caller's (tn_release). */
double *device_run_output(device_run *r, const char *name, tn_type *type);

#endif

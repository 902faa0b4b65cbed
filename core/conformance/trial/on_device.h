/* core/conformance/trial/on_device.h: a graph compiled and run on a device like a training step, with inputs
 * and outputs as doubles. */
#pragma once

#include "core/exec/executor.h"

typedef struct tn_on_device tn_on_device;

/* Takes ownership of the graph, also on failure. The rest is borrowed until tn_on_device_destroy. */
tn_status tn_on_device_create(tn_env *env, tn_registry *registry, tn_device *device, tn_graph *take_graph,
                              tn_on_device **made);
/* Accepts NULL. */
void tn_on_device_destroy(tn_on_device *r);

const tn_program *tn_on_device_program(const tn_on_device *r);
tn_executor *tn_on_device_executor(tn_on_device *r);
/* Whether every kernel is declared deterministic. */
bool tn_on_device_is_deterministic(const tn_on_device *r);
/* The memory of an input; NULL: the program does not read it. */
void *tn_on_device_operand(tn_on_device *r, const char *name);
/* Writes an input, unless the program does not read it. Values are elements of its dtype. */
void tn_on_device_input(tn_on_device *r, const char *name, const double *values);
/* Runs once and waits. */
tn_status tn_on_device_run(tn_on_device *r);
/* The elements of an output, which the caller frees (tn_release). NULL: no such output, or out of memory. */
double *tn_on_device_output(tn_on_device *r, const char *name, tn_type *type);

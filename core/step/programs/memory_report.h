/* core/step/programs/memory_report.h: the memory of a run by its use, from the plan: a table whose rows sum
 * to the bytes that the executor asks of the backend, and the launch at which the most of them are in use. */
#pragma once

#include <jansson.h>

#include "core/step/programs/programs.h"

enum {
  TN_USE_PARAMETERS,
  TN_USE_COPIES, /* low-precision copies of parameters, and gathered ones */
  TN_USE_GRADIENTS,
  TN_USE_OPTIMIZER,
  TN_USE_AVERAGES,
  TN_USE_BUFFERS, /* running statistics, counters */
  TN_USE_ACTIVATIONS,
  TN_USE_WORKSPACES,
  TN_USE_STREAMED,      /* weights on the device that were fetched for a launch */
  TN_USE_FRAGMENTATION, /* of the arena: bytes that no value needs at its peak */
  TN_USE_CONSTANTS,
  TN_USE_INPUTS,
  TN_USE_OUTPUTS,
  TN_USE_STAGING,   /* of the host: the input ring and the outputs again */
  TN_USE_FALLBACKS, /* of the host: operands of launches on the fallback backend */
  TN_USE_LIBRARIES, /* beside the executor's bytes: objects of kernels and libraries */
  TN_USE_GRAPH,     /* beside the executor's bytes: captured launches */
  TN_USES
};

/* A value or state that is in memory at the peak. */
typedef struct tn_memory_holder {
  const char *name; /* "conv2d of layer1.0.conv1: f32[8, 64, 56, 56]", "fc.weight" */
  int32_t row;      /* TN_USE_... */
  int64_t bytes;
  int32_t first, last; /* launches at which it is live; -1 and -1: in the whole run */
} tn_memory_holder;

enum { TN_MEMORY_HOLDERS = 10 };

typedef struct tn_memory_report {
  int64_t rows[TN_USES];     /* bytes; TN_USE_GRAPH -1: unknown, or in the row of the libraries */
  int64_t executor_bytes;    /* the sum of the rows before TN_USE_LIBRARIES */
  int64_t total_bytes;       /* of all known rows */
  int64_t offloaded_bytes;   /* in the host's memory, in place of the device's */
  int64_t placed_bytes;      /* of these: [optimizer] place */
  int64_t streamed_bytes;    /* of these: weights that are streamed, [run] offload */
  bool measured;             /* the row of the libraries: the device has been asked */
  const tn_program *program; /* the one with the largest arena, which all programs share */
  int32_t peak;              /* its launch; -1: before the first */
  tn_memory_holder holders[TN_MEMORY_HOLDERS]; /* the largest first */
  int32_t n_holders;
} tn_memory_report;

/* By the plan, of an executor with so many slots; direct: the device computes in the host's memory. Texts in
 * `arena`. */
tn_status tn_memory_report_make(const tn_program_set *set, int32_t slots, bool direct, tn_arena *arena,
                                tn_memory_report *report);
/* Asks an open device for the bytes of its libraries, captures included, if it knows them. */
void tn_memory_report_measure(tn_device *device, tn_memory_report *report);
/* {rows: [{name, bytes, host}], executor_bytes, total_bytes, offloaded_bytes, placed_bytes, streamed_bytes,
 * libraries_measured, peak: {program, launch, launches, name, bytes, values: [{name, use, bytes, first,
 * last}]}, by_launch: {activations, gradients, workspaces, streamed}, lines}. The caller's reference. */
tn_status tn_memory_report_json(const tn_program_set *set, const tn_memory_report *report, json_t **json);
/* Makes it and adds it to an object as "memory_table". measured: the device that is asked; NULL: none. */
tn_status tn_memory_report_add(const tn_program_set *set, int32_t slots, bool direct, tn_device *measured,
                               json_t *json);
/* "parameters 1.2 MiB, activations 30.5 MiB, ...; the largest at the peak: 8.00 MiB conv2d of conv1, ...".
 * "": no memory. */
const char *tn_memory_report_line(const tn_memory_report *report, tn_arena *arena);

/* The program with the largest arena; the programs of a run share one. */
const tn_program *tn_largest_program(const tn_program_set *set);

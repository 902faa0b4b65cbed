/* core/bench/bench.h: a benchmark in progress, and the functions that its files share. */
#pragma once

#include "core/compile/output/overlap.h"
#include "core/distributed/ranks/ranks.h"
#include "core/step/profile/step_profile.h"
#include "core/run/result.h"

/* One launch of a program in a step. */
typedef struct tn_bench_pass {
  int32_t which; /* TN_PROGRAM_... */
  int32_t slot;  /* of its micro-batch */
  bool again;    /* the slot's inputs are on the device already */
} tn_bench_pass;

/* The parts of a step on a device with memory of its own: the least of the rounds. */
typedef struct tn_bench_parts {
  double host_ms;   /* in which the host enqueues it */
  double device_ms; /* a step whose inputs are on the device already */
  double copy_ms;   /* of a batch to the device, by itself */
  int64_t copy_bytes;
} tn_bench_parts;

/* The benchmark of one rank. */
typedef struct tn_bench {
  tn_run *run;
  struct tn_bench_ranks *all;
  tn_bench_options options;
  int64_t batch; /* of a micro-batch on this rank */
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  int32_t which; /* TN_PROGRAM_STEP, or TN_PROGRAM_PREDICT */
  int32_t micro_batches, n_passes;
  tn_bench_pass *passes; /* in the set's arena */
  /* Slots come in groups: of the steps of one launch, or of the micro-batches of one step. While the device
   * computes on one group, the inputs of the other are copied. */
  int32_t steps_per_launch, group, groups;
  int32_t steps; /* of a round: whole launches */
  bool has_parts;
  tn_bench_parts parts;
  double first_step_s;
  double *round_ms;
  _Atomic(struct tn_comm *) comm; /* NULL: there is no communicator */
  tn_overlap measured;            /* of several ranks, or of a rehearsal: the mean of some steps */
} tn_bench;

/* The ranks of a benchmark. */
typedef struct tn_bench_ranks {
  tn_run *run;              /* of the first */
  tn_bench_options options; /* with defaults */
  tn_run *runs;             /* of the others; the first is unused */
  tn_bench *benches;
  int32_t n;
  tn_process_place place;
  tn_link *link; /* NULL: there is one process */
  tn_rank_set *ranks;
  const tn_communicator *communicator; /* NULL: there is one rank, for which none was asked */
  const void *comm_options;
  tn_overlap *measured; /* of each rank of all processes, with rank 0 alone; NULL: there is no communicator */
} tn_bench_ranks;

/* bench_ranks.c: `run` and `options` are set. Opens devices, joins the other processes, and compiles; then
 * measures on all ranks. close follows in any case. */
tn_status tn_bench_ranks_open(tn_bench_ranks *all);
tn_status tn_bench_ranks_run(tn_bench_ranks *all);
/* Frees what `all` holds, and `all`, unless a thread has been left that may use it. Returns `status`, or
 * TN_ECOMM where another process has failed behind its last step. */
tn_status tn_bench_ranks_close(tn_bench_ranks *all, tn_status status);

/* bench_rank.c: compiles the programs of a rank; measures them, on the rank's thread. */
tn_status tn_bench_prepare(tn_bench *b);
tn_status tn_bench_measure(tn_bench *b);

/* bench_overlap.c: runs so many steps under a profile. On all ranks at once. */
tn_status tn_bench_overlap(tn_bench *b, int32_t steps, tn_overlap *mean);
/* Adds devices, rehearsed (the name of the device), and where there is a communicator: ranks, processes,
 * communicator, and overlap: {predicted, measured, worst}, each {step_ms, compute_ms, communication_ms,
 * exposed_ms, exposed_percent}: measured on rank 0, worst on the rank that waits longest. */
void tn_bench_overlap_report(const tn_bench_ranks *all, json_t *result);

static inline int32_t tn_bench_slots(const tn_bench *b) { return b->group * b->groups; }

/* bench_rounds.c: for tn_programs_open, of a tn_bench: decides on the groups, and returns the number of
 * slots. */
int32_t tn_bench_count_slots(void *bench);
/* Runs the timed rounds, and those of the parts of a step. On all ranks at once. */
tn_status tn_bench_rounds(tn_bench *b);
/* Adds steps_per_launch, host_ms, device_ms, copy_ms, copy_bytes, where there are any. */
void tn_bench_parts_report(const tn_bench *b, json_t *result);

/* Lists the passes of a step in the order of training. */
tn_status tn_bench_list_passes(tn_bench *b);
/* Runs one step, all micro-batches and the update, and waits for it. */
tn_status tn_bench_step(tn_bench *b);
/* Launches the passes of a step on the slots from `slot` on, without waiting. `again`: their inputs are on
 * the device already. */
tn_status tn_bench_launch(tn_bench *b, int32_t slot, bool again);
/* Sorts times and returns [min, median, max]; NULL: out of memory. */
json_t *tn_bench_spread(double *ms, int32_t n);

/* Peak resident memory of the process, VmHWM of /proc/self/status, in MiB; 0 on systems without that file. */
double tn_peak_rss_mib(void);
/* bench_load.c: TN_BENCH_LOAD; options that are 0 get their defaults. */
tn_status tn_bench_load(tn_run *run, const tn_bench_options *options, char **json);

/* bench_trace.c: where the run has a trace to write, repeats `step` under a profile, writes the trace and
 * adds its path to the result. */
tn_status tn_bench_trace(const tn_profiled *what, tn_status (*step)(void *context), void *context,
                         json_t *result);

/* ---- bench_launches.c ---- */

/* Runs rounds * steps more steps, launch by launch, and adds to `result`:
 *   launches: [{name, op, kernel, backend, dtype, layout, flops, bytes, ms: [min, median, max]}] in launch
 * order; bytes counts each operand and result once. With several micro-batches also program and runs, the
 *       number of runs in a step; flops, bytes and ms are then those of all runs together.
 *   launched_ms: the sum of the medians
 *   between_ms: the median time of a step outside its launches
 *   launched_step_ms: [min, median, max] of these steps */
tn_status tn_bench_launches(tn_bench *b, json_t *result);

/* core/exec/bound_program.h: private to core/exec. A bound program is a compiled program whose operands have
 * addresses: one table of launches for each program and input slot, so a run looks nothing up.
 *
 * The files, each of which calls only those above it:
 *   flight_recorder.c     the last collectives of a rank, and its host's wait
 *   memory.c              device memory of an executor, addresses, error messages
 *   collective.c          collectives as steps; waits that ask the communicator
 *   regions.c             the regions of state, and the arena
 *   transfer.c            copies of offloaded values as steps
 *   profile.c             the times of launches and copies
 *   constant_folding.c    values that kernels compute once from parameters
 *   fallback_segments.c   copies and events around segments that run on the fallback
 *   launch.c              the launches of a part
 *   capture.c             parts recorded once and replayed
 *   loop.c                loops: a body's launches, repeated for each step
 *   prepared_steps.c      preparing kernels, and those that decline
 *   bound_program.c       binding addresses, making events
 *   run.c                 one run of a program on a slot
 *   state_io.c            state between device and host
 *   executor.c            creating and destroying an executor
 *   caller_memory.c       programs on memory of the caller
 *   nonfinite/            the search for the first value that is not finite
 *   watch/                operands and results of every launch, on the host */
#pragma once

#include "core/compile/capture_parts.h"
#include "core/exec/executor.h"
#include "core/plugin/handles.h"

/* The end of a step on another stream than the compute stream. Where the device is synchronous and the
 * communicator is not, the host awaits the number of a collective. */
typedef struct tn_awaited_end {
  void *event;     /* recorded at its end; NULL: no step awaits it */
  uint64_t number; /* of a collective, in the last run: the communicator's count (tn_comm.begun); else 0 */
} tn_awaited_end;

/* A step with the addresses of one slot. */
typedef struct tn_bound_step {
  tn_launch_host host;
  tn_status (*launch)(tn_launch *l);
  bool foreign; /* the kernel belongs to a family that the backend accepts, so backend->enqueue launches it */
  const tn_step *step;
  void *handoff;  /* event of a step on another stream: it awaits the compute stream's work so far; NULL: it
                     need not */
  void *followed; /* event of a step that this one follows (tn_step.follows); NULL: none */
  const tn_awaited_end *awaited[TN_STREAMS]; /* per role, of a step that this one awaits, or NULL */
  bool awaits;                               /* there are such steps */
  tn_awaited_end *end; /* that this step, on another stream, records; NULL: no step awaits it */
} tn_bound_step;

/* The events around a segment of a program. */
typedef struct tn_bound_segment {
  int32_t first_part, n_parts;              /* of tn_bound_program.parts */
  const tn_awaited_end *joined[TN_STREAMS]; /* device segment: that the compute stream awaits, or NULL */
  void *read;     /* placed segment: its operands are on the host; NULL: it has none of the device */
  void *ready;    /* fallback segment: all work before it is done */
  void *fetched;  /* fallback segment: its operands are on the host; NULL: it has none on the device */
  void *returned; /* fallback segment: its results are on the device; NULL: it has none to copy */
} tn_bound_segment;

typedef struct tn_bound_program {
  const tn_program *program;
  int32_t uses;               /* prepared kernels: a step's has its number, those of loops follow */
  void **prepared;            /* per step, those of constants included: the prepared kernel */
  tn_bound_step **slots;      /* per slot: all steps */
  tn_view *views;             /* of all launches */
  struct tn_loop_run **loops; /* per slot, then per step: of a loop (loop.h) */
  void **events;              /* per step: its handoff, or NULL */
  tn_awaited_end *ends;       /* per step */
  tn_bound_segment *segments;
  tn_capture_part *parts;
  int32_t n_parts;
  void **part_ends;       /* per part: event at its end on the compute stream; NULL: no step awaits it */
  void **captures;        /* per slot and part; NULL: its launches are enqueued one by one */
  bool capture_tried;     /* tn_captures_record has run */
  void **chains;          /* per group of chain_runs slots: their runs as one capture, or NULL */
  int32_t chain_runs;     /* 0: none were recorded */
  void *constants;        /* values that are computed once, or NULL */
  bool constants_made;    /* they have been */
  void *folded;           /* values that kernels folded from state; NULL: there are no such kernels */
  int64_t folded_version; /* tn_executor.state_version of that state */
  /* Its collectives in the order of launches, for the flight recorder: those of part i are
   * calls[first_call[i]] to calls[first_call[i + 1] - 1]. */
  const struct tn_flight_call **calls;
  int32_t *first_call;
  int32_t most_steps; /* the most slots of one run so far; 0: it has not run */
} tn_bound_program;

/* The memory of one input slot: inputs and outputs of a run. On a host-addressable device the host's
 * addresses equal the device's. */
typedef struct tn_slot_memory {
  void *input, *output; /* device */
  void *host_input, *host_output;
  int64_t filled; /* bytes of the input that the last copy brought */
  int32_t
      end; /* the slot whose events mark the end of the last run: the last one that was launched with it */
  uint64_t collectives;              /* that the device had begun with the last run (flight_recorder.h) */
  void *staged, *computed, *arrived; /* events of the last run: inputs copied, computed, outputs copied */
} tn_slot_memory;

/* Callbacks around the runs of an executor. While it has one, every launch is waited for, and nothing is
 * replayed. */
typedef struct tn_run_observer {
  void *context;
  /* Before the first launch; inputs are in host memory. Messages go to the executor's env. */
  tn_status (*begin)(void *context, const tn_bound_program *bound, int32_t slot);
  /* Before and after a step, with no work under way; launching may be NULL. Messages go to the device's env.
   */
  tn_status (*launching)(void *context, tn_bound_step *step);
  tn_status (*launched)(void *context, tn_bound_step *step);
  /* The program has ended. Messages go to the executor's env. */
  tn_status (*end)(void *context, const tn_bound_program *bound);
} tn_run_observer;

struct tn_executor {
  tn_env *env; /* messages and host memory */
  tn_device *device;
  const tn_state_map *map;
  bool host_addressable; /* the device computes in host memory, so slots need no copies */
  bool caller_memory;    /* inputs and outputs are memory of the caller (caller_memory.h) */
  tn_bound_program *programs;
  int32_t n_programs;
  tn_slot_memory *slots;
  int32_t n_slots;
  void *slot_inputs, *slot_outputs, *host_inputs, *host_outputs; /* of all slots, one after another */
  void **regions;
  int32_t n_regions;
  void *arena, *host; /* host: operands and results of fallback segments */
  void *offload;      /* host memory of offloaded values */
  int64_t arena_bytes, slot_bytes, output_bytes, host_bytes, offload_bytes;
  void *fetched; /* event at the end of the last copy that a placed group's result had to the device; NULL:
                    there was none */
  int64_t state_version; /* incremented with each change of state */
  bool capture;
  struct tn_executor_times *times;  /* of profile.c; NULL: profiling is off */
  const tn_run_observer *observer;  /* or NULL */
  const tn_divided_states *divided; /* or NULL */
};

/* The device that runs a step: the executor's, or its fallback. */
static inline tn_device *tn_device_of(const tn_executor *e, const tn_step *step) {
  return step->group->fallback != NULL ? e->device->fallback : e->device;
}

/* ---- memory.c ---- */

/* Moves the device's message to the executor's env; returns status. */
tn_status tn_executor_fail(tn_executor *e, tn_status status);
/* Prefixes the message in the device's env with the step: "op 'conv2d' of layer 'conv1' (file.ini:14)". */
tn_status tn_executor_wrap_step(tn_executor *e, const tn_bound_program *bound, const tn_step *step,
                                tn_status status);

/* Device or staging memory. A failure names the size and is in the executor's env. */
tn_status tn_executor_allocate(tn_executor *e, int32_t kind, int64_t bytes, void **address);
tn_status tn_executor_allocate_zeroed(tn_executor *e, int64_t bytes, void **address);
/* Enqueues zeros on the compute stream. Accepts NULL. */
tn_status tn_executor_zero(tn_executor *e, void *address, int64_t bytes);
void tn_executor_free(tn_executor *e, int32_t kind, void *address, int64_t bytes);

/* The address of a location of a program for one slot; NULL for a location without memory. host: the address
 * for a step on the fallback. */
void *tn_executor_address(const tn_executor *e, const tn_bound_program *bound, const tn_location *location,
                          int32_t slot, bool host);

/* ---- regions.c ---- */

/* Allocates the regions of the map, filled with zeros. */
tn_status tn_executor_create_regions(tn_executor *e, tn_program *const *programs, int32_t n);
/* Allocates the arena, of e->arena_bytes. */
tn_status tn_executor_create_arena(tn_executor *e, tn_program *const *programs, int32_t n);
/* Frees both. */
void tn_executor_free_regions(tn_executor *e);

/* ---- profile.c ---- */

typedef struct tn_executor_times tn_executor_times;

/* Work that is about to be enqueued on a stream, and what its span says beside the times. */
typedef struct tn_timed_work {
  tn_span span;
  tn_device *device; /* the executor's, or its fallback */
  void *stream;
} tn_timed_work;

/* Work on the executor's stream of a role (TN_STREAM_...). */
tn_timed_work tn_profile_work(const tn_executor *e, int32_t kind, int32_t role);
/* Before and after enqueueing the work; without a profile they do nothing. Work is not nested. Messages stay
 * in the env of the work's device, or of the executor's. */
tn_status tn_profile_from(tn_executor *e, tn_timed_work *work);
tn_status tn_profile_to(tn_executor *e, tn_timed_work *work);
/* Makes the compute stream await the end of a step on another one. */
tn_status tn_await_end(tn_executor *e, const tn_awaited_end *end);
/* The host has enqueued a program, from start_s until now. */
void tn_profile_run(const tn_executor *e, const tn_bound_program *bound, double start_s);
/* Before a run: reads times if many are unread. Messages stay in the device's env. */
tn_status tn_profile_make_room(tn_executor *e);

/* ---- transfer.c ---- */

/* Prepares a step that copies an offloaded value; tn_release of the executor's env frees it. */
tn_status tn_transfer_prepare(tn_executor *e, const tn_step *step, void **prepared);
tn_status tn_transfer_launch(tn_launch *l);

/* ---- constant_folding.c ---- */

/* Allocates memory for the folded values of a program. */
tn_status tn_folded_create(tn_executor *e, tn_bound_program *bound);
void tn_folded_destroy(tn_executor *e, tn_bound_program *bound);
/* Enqueues the fold of every kernel that has one. */
tn_status tn_folded_compute(tn_executor *e, tn_bound_program *bound, int32_t slot);

/* ---- fallback_segments.c ---- */

tn_status tn_bound_segments_create(tn_executor *e, tn_bound_program *bound);
void tn_bound_segments_destroy(tn_executor *e, tn_bound_program *bound);
/* Before the steps of a fallback segment: copies their operands to the host and waits for the device. */
tn_status tn_fallback_begin(tn_executor *e, const tn_bound_program *bound, int32_t segment, int32_t slot);
/* After them: waits for the fallback and enqueues the copies of their results to the device. */
tn_status tn_fallback_end(tn_executor *e, const tn_bound_program *bound, int32_t segment, int32_t slot);

/* ---- launch.c ---- */

/* The launch of a step on its device, without addresses of workspace and folded values. `views`: of its
 * operands, then of its results. */
tn_launch_host tn_step_launch(const tn_device *device, const tn_step *step, tn_view *views, void *prepared,
                              void *stream);

/* Launches the steps of a part, each on its device. Of a device segment, everything is enqueued and nothing
 * waited for, so a capture can record it. */
tn_status tn_launch_part(tn_executor *e, tn_bound_program *bound, int32_t part, int32_t slot);

/* Launches the steps of constants. */
tn_status tn_launch_constants(tn_executor *e, tn_bound_program *bound, int32_t slot);

/* ---- capture.c ---- */

/* Records the captured parts of a program for every slot, and logs the launches that are not captured. The
 * program has run once, so kernels have done the work of their first launch. */
tn_status tn_captures_record(tn_executor *e, tn_bound_program *bound);
void tn_captures_destroy(tn_executor *e, tn_bound_program *bound);
/* The capture of n runs on slots from `slot` on, which the first call with several runs records for all
 * groups of n slots. *capture is NULL where they cannot be one capture. */
tn_status tn_captures_find_chain(tn_executor *e, tn_bound_program *bound, int32_t slot, int32_t n,
                                 void **capture);
/* NULL: the part has no capture. */
void *tn_captures_find(const tn_bound_program *bound, int32_t part, int32_t slot);

/* ---- prepared_steps.c ---- */

/* Prepares the kernels of all steps, into bound->prepared. TN_EUNSUPPORTED: kernels have declined, and are
 * noted. */
tn_status tn_prepared_steps_create(tn_executor *e, tn_bound_program *bound);
void tn_prepared_steps_destroy(tn_executor *e, tn_bound_program *bound);

/* ---- bound_program.c ---- */

/* Prepares the kernels of a program and binds its launches for every slot. Messages go to e->env.
 * tn_bound_program_free also frees a program whose binding failed. */
tn_status tn_bound_program_init(tn_executor *e, const tn_program *program, tn_bound_program *bound);
void tn_bound_program_free(tn_executor *e, tn_bound_program *bound);

/* ---- run.c ---- */

/* Enqueues the launches of a program on a slot; the slot's event `computed` records their end. Messages stay
 * in the device's env. */
tn_status tn_launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot);

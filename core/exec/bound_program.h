/* core/exec/bound_program.h: the executor's inside: programs whose every address is known. A table of
 * launches stands ready for each program and slot, so that running one looks nothing up. */
#ifndef TN_CORE_EXEC_BOUND_PROGRAM_H
#define TN_CORE_EXEC_BOUND_PROGRAM_H

#include "core/exec/executor.h"
#include "core/plugin/handles.h"

/* One launch, ready to go. */
typedef struct tn_bound_step {
  tn_launch_host host;
  tn_status (*launch)(tn_launch *l);
  bool foreign; /* of a family that the backend accepts: the backend enqueues it */
  const tn_step *step;
  void *handoff; /* event: a collective awaits what is on the compute stream so far; NULL: it need not */
  void *awaited; /* the end of a collective, which this step awaits; NULL: none */
  void *end;     /* records the end of this one, a collective; NULL: nobody awaits it */
} tn_bound_step;

/* The events around a segment of a program. */
typedef struct tn_bound_segment {
  void *joined;   /* the device's: the end of a collective, which the compute stream awaits; NULL: none */
  void *ready;    /* a cut's: all before it is done, */
  void *fetched;  /* and copied out; NULL: nothing is */
  void *returned; /* results are copied in; NULL: none are */
} tn_bound_segment;

typedef struct tn_bound_program {
  const tn_program *program;
  void **plans;          /* per step: what prepare made */
  tn_bound_step **slots; /* per slot: n_steps of them */
  tn_view *views;        /* of all launches */
  void **events;         /* per step: its hand-off, or NULL */
  void **ends;           /* per step: the event that records its end, or NULL */
  tn_bound_segment *segments;
  void **captures;        /* per slot and segment; NULL: launched one by one */
  bool captured;          /* or found not to be fit for it */
  tn_interval *intervals; /* profile: of the last run, per step; NULL: off */
  void *folded;           /* what kernels fold of state; NULL: nothing */
  int64_t folded_from;    /* tn_executor.state_version of what they folded */
} tn_bound_program;

/* A slot: where inputs come from and outputs go. On a host-addressable device the host's end is the
 * device's. */
typedef struct tn_slot_memory {
  void *input, *output; /* device */
  void *host_input, *host_output;
  int64_t filled;                    /* bytes of the input that were copied in last */
  void *staged, *computed, *arrived; /* events of the last run: copied in, computed, copied out */
} tn_slot_memory;

struct tn_executor {
  tn_env *env; /* messages and host memory */
  tn_device *device;
  const tn_state_map *map;
  bool near;    /* host-addressable: no copies */
  bool outside; /* inputs and outputs are the caller's memory (outside.h) */
  tn_bound_program *programs;
  int32_t n_programs;
  tn_slot_memory *slots;
  int32_t n_slots;
  void **regions;
  int32_t n_regions;
  void *arena, *host; /* host: of what falls back */
  int64_t arena_bytes, slot_bytes, output_bytes, host_bytes;
  int64_t bytes;         /* asked for and not given back */
  int64_t state_version; /* counts what changes state */
  bool profile, capture;
  struct tn_finite *finite; /* looks at every launch; NULL: nobody does */
};

/* Moves the device's message to the executor's env; returns status. */
tn_status tn_executor_fail(tn_executor *e, tn_status status);

/* Prepares the kernels of a program and binds its launches for every slot. Messages go to e->env. What was
 * made before a failure is freed by tn_unbind. */
tn_status tn_bind(tn_executor *e, const tn_program *program, tn_bound_program *bound);
void tn_unbind(tn_executor *e, tn_bound_program *bound);

/* Memory for what the program's kernels fold, and the fold of each where state has changed since. */
tn_status tn_bind_folded(tn_executor *e, tn_bound_program *bound);
void tn_unbind_folded(tn_executor *e, tn_bound_program *bound);
tn_status tn_fold_program(tn_executor *e, tn_bound_program *bound, int32_t slot);

/* Device memory that the executor accounts for. */
tn_status tn_executor_take(tn_executor *e, int32_t kind, int64_t bytes, void **address);
void tn_executor_give(tn_executor *e, int32_t kind, void *address, int64_t bytes);

/* Enqueues the launches of a program on a slot; the slot's `computed` records their end. Messages stay in
 * the device's env. */
tn_status tn_launch_program(tn_executor *e, tn_bound_program *bound, int32_t slot);

/* Puts "op 'conv2d' of layer 'conv1' (file.ini:14)" in front of a step's message in the device's env. */
tn_status tn_wrap_step(tn_executor *e, const tn_bound_program *bound, const tn_step *step, tn_status status);

/* Where a place lies for one slot. host: as a step that falls back sees it. NULL: nowhere. */
void *tn_address_of(const tn_executor *e, const tn_place *place, int32_t slot, bool host);

/* The device that does a step: the executor's, or its fallback. */
static inline tn_device *tn_device_of(const tn_executor *e, const tn_step *step) {
  return step->group->fallback != NULL ? e->device->fallback : e->device;
}

/* Enqueues the launches of a segment of the device, nothing else. */
tn_status tn_launch_segment(tn_executor *e, tn_bound_program *bound, int32_t segment, int32_t slot);

/* ---- capture.c ---- */

/* Records the segments of a program for every slot, where the backend and their kernels can. The program has
 * run once, so kernels have made what they make at their first launch. */
tn_status tn_capture_program(tn_executor *e, tn_bound_program *bound);
void tn_uncapture(tn_executor *e, tn_bound_program *bound);
void *tn_capture_of(const tn_bound_program *bound, int32_t segment, int32_t slot);

/* ---- segment.c ---- */

tn_status tn_bind_segments(tn_executor *e, tn_bound_program *bound);
void tn_unbind_segments(tn_executor *e, tn_bound_program *bound);
/* Around the steps of a cut. The first waits, once, for the device. */
tn_status tn_cut_enter(tn_executor *e, const tn_bound_program *bound, int32_t segment, int32_t slot);
tn_status tn_cut_leave(tn_executor *e, const tn_bound_program *bound, int32_t segment, int32_t slot);

#endif

/* core/exec/executor.h: an executor runs compiled programs over one state on one device. It owns their
 * memory, launches them, and reads and writes the state. One thread launches; all addresses are bound before
 * step 1. */
#pragma once

#include "core/base/timeline.h"
#include "core/compile/program.h"
#include "core/exec/device/device.h"

typedef struct tn_executor tn_executor;

/* Allocates the regions of `map` (zero-filled), one arena of the largest program's size, `slots` input slots
 * and output buffers of the largest sizes (with staging buffers on the host unless the device is
 * host-addressable), and host memory for fallback segments. Prepares every kernel. Programs and map are
 * borrowed and must outlive the executor. */
tn_status tn_executor_create(tn_env *env, tn_device *device, const tn_state_map *map,
                             tn_program *const *programs, int32_t n_programs, int32_t slots,
                             tn_executor **executor);
/* The same for one program whose inputs and outputs are memory of the caller: none is allocated for them, and
 * each run names their addresses (caller_memory.h). The program is never captured. */
tn_status tn_executor_create_on_caller_memory(tn_env *env, tn_device *device, const tn_state_map *map,
                                              tn_program *program, int32_t slots, tn_executor **executor);
void tn_executor_destroy(tn_executor *executor);
/* Waits for all enqueued work of the device, whose failures it ignores. */
void tn_executor_drain(tn_executor *executor);

/* The address to which the loader writes an input of a program for a slot: host memory, row-major, of the
 * input's type. NULL: the program has no such input. Valid between tn_executor_slot_wait and tn_executor_run
 * of the slot. */
void *tn_executor_input(tn_executor *executor, int32_t program, int32_t slot, const char *name);

/* Waits until the slot's last run has read its inputs and its outputs have arrived. */
tn_status tn_executor_slot_wait(tn_executor *executor, int32_t slot);

/* Enqueues a program on a slot: copy in, launches, copy out. After the first run of a program its launches
 * are captured for every slot, where the backend and all its kernels allow it and the device's request does
 * not forbid it. Later runs allocate nothing and take no lock. */
tn_status tn_executor_run(tn_executor *executor, int32_t program, int32_t slot);

/* Enqueues n runs of a program on slots slot .. slot + n - 1, whose inputs and outputs are copied with one
 * copy each way. A program that is one captured segment is replayed with one call where all calls have the
 * same n and slot is a multiple of it. The results are those of n calls of tn_executor_run. */
tn_status tn_executor_run_several(tn_executor *executor, int32_t program, int32_t slot, int32_t n);

/* tn_executor_run with the inputs of the slot's last run, of a program with the same input layout and at
 * least as many bytes. Nothing is copied in. */
tn_status tn_executor_run_again(tn_executor *executor, int32_t program, int32_t slot);
/* The same for n slots, as tn_executor_run_several. No run is watched or profiled. */
tn_status tn_executor_run_several_again(tn_executor *executor, int32_t program, int32_t slot, int32_t n);

/* Copies the inputs of a slot to the device as a run does, and waits for the copy. Nothing is computed. In
 * memory that the host shares with the device there is nothing to copy. */
tn_status tn_executor_stage(tn_executor *executor, int32_t program, int32_t slot);

/* An output of the last run on a slot, after tn_executor_slot_wait: host memory. */
const void *tn_executor_output(tn_executor *executor, int32_t program, int32_t slot, const char *name);

/* State by path, row-major, logical elements; waits for the device. A region that is divided among ranks is
 * the rank's part; a state in it is read and written by tn_divided_states. */
tn_status tn_executor_read(tn_executor *executor, const char *path, void *to, size_t bytes);
tn_status tn_executor_write(tn_executor *executor, const char *path, const void *from, size_t bytes);
/* Bytes of a region on this rank, from an offset on, in the layouts of its states. */
tn_status tn_executor_read_region(tn_executor *executor, int32_t region, size_t offset, void *to,
                                  size_t bytes);
tn_status tn_executor_write_region(tn_executor *executor, int32_t region, size_t offset, const void *from,
                                   size_t bytes);

/* Copies a region of rank 0 to all ranks by the device's communicator, which all ranks call for.
 * TN_EUNSUPPORTED: it has no such collective. */
tn_status tn_executor_broadcast_region(tn_executor *executor, int32_t region);

/* How states in divided regions are read and written, with the help of the other ranks: all elements of the
 * state, in its layout. Messages go to the executor's env. */
typedef struct tn_divided_states {
  tn_status (*read)(void *context, const tn_placement *state, void *to);
  tn_status (*write)(void *context, const tn_placement *state, const void *from);
  void *context;
} tn_divided_states;

/* Until the next call; NULL: they cannot be read or written. */
void tn_executor_attach_divided(tn_executor *executor, const tn_divided_states *divided);

/* Profiling: adds a span to the timeline for each launch, copy, wait for a collective, and run, until the
 * next call; NULL: no more. Nothing is captured or replayed. Where the backend has event_seconds, work is
 * timed by events on its stream, by the device's clock, and overlaps as without a profile; otherwise every
 * launch and copy is waited for. The timeline outlives the profile. */
tn_status tn_executor_profile(tn_executor *executor, tn_timeline *timeline);
/* Waits for the device, and adds the spans of all runs so far. */
tn_status tn_executor_profile_read(tn_executor *executor);
/* Whether times of the device are those of its own clock. */
bool tn_executor_has_clock(const tn_executor *executor);

/* The bytes that such an executor asks of the backend. */
int64_t tn_executor_planned_bytes(const tn_state_map *map, tn_program *const *programs, int32_t n_programs,
                                  int32_t slots, bool host_addressable);

/* core/exec/executor.h: compiled programs over one state, on one device: memory, launches, reading
 * and writing state. One thread launches; addresses are bound once, before step 1. */
#ifndef TN_CORE_EXEC_EXECUTOR_H
#define TN_CORE_EXEC_EXECUTOR_H

#include "core/compile/program.h"
#include "core/exec/device/device.h"

typedef struct tn_executor tn_executor;

/* Allocates the regions of `map` (zero-filled), one arena of the largest program's size, `slots`
 * input slots of the largest slot size (host-addressable staging where the device is not), and a ring
 * of `slots` output buffers, host memory for what falls back; prepares every kernel. Programs and map are
 * borrowed and must outlive the executor. */
tn_status tn_executor_create(tn_env *env, tn_device *device, const tn_state_map *map,
                             tn_program *const *programs, int32_t n_programs, int32_t slots,
                             tn_executor **executor);
/* The same for one program whose inputs and outputs lie in memory of the caller's: none is allocated for
 * them, and outside.h says at each run where they lie. Nothing is captured. */
tn_status tn_executor_create_outside(tn_env *env, tn_device *device, const tn_state_map *map,
                                     tn_program *program, int32_t slots, tn_executor **executor);
void tn_executor_destroy(tn_executor *executor);

/* Where the loader writes an input of a program for a slot: host memory, row-major, of the input's
 * type. NULL: no such input. Only between tn_executor_slot_wait and tn_executor_run of that slot. */
void *tn_executor_input(tn_executor *executor, int32_t program, int32_t slot, const char *name);

/* Waits until a slot's previous run has consumed its inputs, and its outputs have arrived. */
tn_status tn_executor_slot_wait(tn_executor *executor, int32_t slot);

/* Enqueues a program on a slot: copy in, launches, copy out. After a program's first run its launches are
 * captured for every slot, where the backend and all its kernels can, unless the device's request says
 * otherwise; from then on it allocates nothing and takes no lock. */
tn_status tn_executor_run(tn_executor *executor, int32_t program, int32_t slot);

/* The same with the inputs that the slot has from the last run, of a program whose slot is laid out alike and
 * not smaller: nothing is copied in. */
tn_status tn_executor_run_again(tn_executor *executor, int32_t program, int32_t slot);

/* An output of the last run on a slot, after tn_executor_slot_wait: host memory. */
const void *tn_executor_output(tn_executor *executor, int32_t program, int32_t slot, const char *name);

/* State by path, row-major, logical elements; waits for the device. */
tn_status tn_executor_read(tn_executor *executor, const char *path, void *to, size_t bytes);
tn_status tn_executor_write(tn_executor *executor, const char *path, const void *from, size_t bytes);

/* Profiling: each launch is waited for by itself, so that its time is its own, and nothing is captured. A
 * step takes longer for it where launches would have overlapped. */
tn_status tn_executor_profile(tn_executor *executor, bool on);
/* When each step of a program's last run was launched and was done, in seconds of tn_clock_s; zeros before
 * the first run. NULL: profiling is off. Valid until profiling is turned on or off. */
typedef struct tn_interval {
  double start_s, end_s;
} tn_interval;
const tn_interval *tn_executor_intervals(const tn_executor *executor, int32_t program);

/* Bytes that the backend was asked for on behalf of this executor, now and at most; and the same
 * from the plans alone. */
int64_t tn_executor_planned_bytes(const tn_state_map *map, tn_program *const *programs, int32_t n_programs,
                                  int32_t slots, bool host_addressable);
int64_t tn_executor_measured_bytes(const tn_executor *executor);

#endif

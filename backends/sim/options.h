/* backends/sim/options.h: the options of the backend, and faults on request: operations that fail, or that
 * are skipped, so that a test of the host sees them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/sim/engine/task.h"

enum { TN_SIM_EAGER = 0, TN_SIM_LAZY = 1, TN_SIM_RANDOM = 2 };

typedef struct tn_sim_options {
  int64_t devices, threads, memory, seed, queue;
  int32_t order, check, rehearse;
  double jitter, link;
  const char *fail, *drop, *lacks, *slow;
} tn_sim_options;

/* engine/faults.c. The operations whose n-th call fails (FAIL) or is skipped (DROP). */
enum {
  TN_SIM_FAIL_ALLOCATION,
  TN_SIM_FAIL_LAUNCH,
  TN_SIM_FAIL_KERNEL,
  TN_SIM_FAIL_COPY,
  TN_SIM_FAIL_DEVICE,
  TN_SIM_FAIL_STALL,
  TN_SIM_FAIL_HANG,
  TN_SIM_FAIL_CAPTURE,
  TN_SIM_DROP_AWAIT,
  TN_SIM_DROP_WAIT,
  TN_SIM_DROP_REST,
  TN_SIM_DROP_RECORD,
  TN_SIM_DROP_COPY,
  TN_SIM_DROP_ZERO,
  TN_SIM_FAULTS
};
typedef struct tn_sim_faults {
  int64_t at[TN_SIM_FAULTS]; /* 0: never */
  int32_t on[TN_SIM_FAULTS]; /* index of the device; -1: each device */
  int32_t slow;              /* index of the device whose kernels take `factor` times as long; -1: none */
  double factor;
} tn_sim_faults;

tn_status tn_sim_faults_read(tn_env *env, const tn_sim_options *options, tn_sim_faults *faults);
/* Counts one operation of a kind; true: it is the one that fails or is skipped. */
bool tn_sim_fault(tn_sim_device *device, int32_t which);

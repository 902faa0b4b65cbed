/* core/compile/kernels/transfer_kernel.h: the kernels that copy offloaded values, which are part of the host
 * and not of a backend: its `copy` does the work, on the streams of copies. No catalog contains them; pass
 * `rematerialize` makes their groups. */
#pragma once

#include "core/plugin/registry.h"
#include "tenon/plugin/kernel.h"

#include <stdbool.h>

/* To the host, and back. */
enum { TN_TRANSFER_OFFLOAD = 0, TN_TRANSFER_FETCH = 1, TN_TRANSFER_KERNELS = 2 };
/* Variants of offloads: the copy ends beside compute steps, or the one behind the value's last reader in
 * forward waits for it. Of fetches: so early that the copy ends when its reader begins, or directly before
 * the reader, which waits. */
enum { TN_OFFLOAD_BESIDE = 0, TN_OFFLOAD_AWAITED = 1 };
enum { TN_FETCH_EARLY = 0, TN_FETCH_LATE = 1 };
extern const tn_kernel tn_transfer_kernels[TN_TRANSFER_KERNELS];
extern const tn_entry tn_transfer_entries[TN_TRANSFER_KERNELS];

/* TN_TRANSFER_OFFLOAD or TN_TRANSFER_FETCH; -1: another kernel. */
static inline int32_t tn_kernel_transfer(const tn_kernel *kernel) {
  for (int32_t i = 0; i < TN_TRANSFER_KERNELS; i++)
    if (kernel == &tn_transfer_kernels[i]) return i;
  return -1;
}
static inline bool tn_kernel_is_transfer(const tn_kernel *kernel) { return tn_kernel_transfer(kernel) >= 0; }

/* Seconds of a copy over the link of a device; of an order of magnitude where its rate is unknown. */
double tn_transfer_s(const tn_device_properties *device, int64_t bytes);

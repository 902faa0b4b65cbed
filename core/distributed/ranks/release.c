/* core/distributed/ranks/release.c: releases the devices of the ranks of a process. */
#include "core/distributed/ranks/release.h"

void tn_ranks_release_devices(tn_rank_handles (*of)(const void *context, int32_t local), const void *context,
                              int32_t n) {
  for (int32_t r = 0; r < n; r++) tn_executor_destroy(of(context, r).executor);
  for (int32_t r = 0; r < n; r++) tn_comm_close(of(context, r).comm);
  for (int32_t r = 0; r < n; r++) tn_device_destroy(of(context, r).device);
}

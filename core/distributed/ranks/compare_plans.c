/* core/distributed/ranks/compare_plans.c: checks that all ranks have compiled the same programs. */
#include <inttypes.h>
#include <stdbool.h>

#include "core/distributed/ranks/ranks.h"

/* A rank whose hash is right waits in a second gathering, where it receives the failure of the other rank. */
static tn_status ranks_compare_hashes(tn_rank_set *ranks, tn_env *env, int32_t rank, const uint64_t *all) {
  bool equal = true;
  for (int32_t r = 1; r < tn_ranks_count(ranks); r++) equal = equal && all[r] == all[0];
  if (equal) return TN_OK;
  if (all[rank] == all[0]) return tn_ranks_all_gather(ranks, env, rank, "hashes of the plans", NULL, 0, NULL);
  return tn_failf(env, TN_ECOMM,
                  "the plan of rank %d has hash %016" PRIx64 ", that of rank 0 %016" PRIx64
                  "; all ranks must have the same devices, plugins and configuration",
                  (int)rank, all[rank], all[0]);
}

tn_status tn_ranks_compare_plans(tn_rank_set *ranks, tn_env *env, int32_t rank, uint64_t hash) {
  uint64_t *all = tn_alloc(env, tn_size_mul((size_t)tn_ranks_count(ranks), sizeof *all));
  if (all == NULL) return TN_ENOMEM;
  tn_status status = tn_ranks_all_gather(ranks, env, rank, "hashes of the plans", &hash, sizeof hash, all);
  if (status == TN_OK) status = ranks_compare_hashes(ranks, env, rank, all);
  tn_release(env, all);
  return status;
}

/* backends/sim/communicator/communicator.c: the communicator `sim`: collectives between simulated devices of
 * one process.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/sim/communicator/group.h"
#include "backends/sim/communicator/reduce.h"

/* What rank 0 sends to the others. */
typedef struct identity {
  tn_sim_group *group;
  uint64_t process;
} identity;

static tn_status check_call(const tn_sim_part *p, tn_env *env, const tn_collective *what, int64_t *to_count) {
  int32_t ranks = p->group->ranks;
  bool reduces = what->kind == TN_ALL_REDUCE || what->kind == TN_REDUCE_SCATTER;
  if (what->kind < TN_ALL_REDUCE || what->kind > TN_ALL_GATHER)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: there is no collective %d", (int)what->kind);
  if (what->count < 0 || (what->kind == TN_REDUCE_SCATTER && what->count % ranks != 0))
    return tn_fail(env, TN_EINVAL, NULL, "sim: %s of %lld elements over %d ranks",
                   tn_sim_collective_name(what->kind), (long long)what->count, (int)ranks);
  if (reduces && !tn_sim_can_reduce(what->dtype))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: %s of %s", tn_sim_collective_name(what->kind),
                   tn_dtype_name(what->dtype));
  if (what->kind == TN_BROADCAST && (what->root < 0 || what->root >= ranks))
    return tn_fail(env, TN_EINVAL, NULL, "sim: broadcast from rank %d of %d", (int)what->root, (int)ranks);
  *to_count = what->kind == TN_ALL_GATHER       ? what->count * ranks
              : what->kind == TN_REDUCE_SCATTER ? what->count / ranks
                                                : what->count;
  return TN_OK;
}

static tn_status communicator_run(tn_env *env, void *communicator, const tn_collective *what, void *stream) {
  tn_sim_part *p = communicator;
  int64_t to_count = 0;
  tn_status status = check_call(p, env, what, &to_count);
  if (status != TN_OK || what->count == 0) return status;
  return tn_sim_collective_push(p, env, what, to_count, stream);
}

static tn_status communicator_status(tn_env *env, void *communicator) {
  return tn_sim_group_status(((tn_sim_part *)communicator)->group, env);
}

static void communicator_abort(tn_env *env, void *communicator) {
  (void)env;
  tn_sim_part *p = communicator;
  char text[64];
  snprintf(text, sizeof text, "rank %d has given up", (int)p->rank);
  tn_sim_group_fail(p->group, text);
}

/* ---- coming and going ---- */

static tn_status identify(tn_env *env, const void *options, void *bytes) {
  (void)options;
  identity id = {NULL, (uint64_t)getpid()};
  tn_status status = tn_sim_group_new(env, &id.group);
  if (status == TN_OK) memcpy(bytes, &id, sizeof id);
  return status;
}

static tn_status communicator_open(tn_env *env, const void *options, void *device, int32_t rank,
                                   int32_t ranks, const void *bytes, double timeout_s, void **communicator) {
  identity id;
  tn_sim_part *part = NULL;
  (void)options;
  *communicator = NULL;
  memcpy(&id, bytes, sizeof id);
  if (id.process != (uint64_t)getpid())
    return tn_fail(env, TN_ECOMM, NULL, "sim: the identity was made by another process, %llu",
                   (unsigned long long)id.process);
  if (rank < 0 || rank >= ranks || ranks > TN_SIM_RANKS)
    return tn_fail(env, TN_EINVAL, NULL, "sim: rank %d of %d, expected one of at most %d", (int)rank,
                   (int)ranks, TN_SIM_RANKS);
  tn_status status = tn_sim_group_enter(id.group, env, device, rank, ranks, timeout_s, &part);
  *communicator = part;
  return status;
}

static void communicator_close(tn_env *env, void *communicator) { tn_sim_group_leave(communicator, env); }

const tn_communicator tn_sim_communicator = {
    .item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "sim", "collectives between simulated devices"),
    .families = "sim",
    .identity_bytes = sizeof(identity),
    .identify = identify,
    .open = communicator_open,
    .close = communicator_close,
    .run = communicator_run,
    .status = communicator_status,
    .abort = communicator_abort,
};

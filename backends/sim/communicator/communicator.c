/* backends/sim/communicator/communicator.c: the communicator `sim`: collectives between simulated devices of
 * one process.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/sim/communicator/group.h"
#include "backends/shared/reduce.h"

/* The bytes that rank 0 sends to the others. */
typedef struct identity {
  tn_sim_group *group;
  uint64_t process;
} identity;

static tn_status communicator_check_call(tn_env *env, const tn_sim_part *p, const tn_collective *call,
                                         int64_t *to_count) {
  int32_t ranks = p->group->ranks;
  bool reduces = call->kind == TN_ALL_REDUCE || call->kind == TN_REDUCE_SCATTER;
  if (call->kind < TN_ALL_REDUCE || call->kind > TN_ALL_GATHER)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: there is no collective %d", (int)call->kind);
  if (call->count < 0 || (call->kind == TN_REDUCE_SCATTER && call->count % ranks != 0))
    return tn_fail(env, TN_EINVAL, NULL, "sim: %s of %lld elements over %d ranks",
                   tn_collective_name(call->kind), (long long)call->count, (int)ranks);
  if (reduces && !tn_can_reduce(call->dtype, call->reduction))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: %s, %s of %s", tn_collective_name(call->kind),
                   tn_reduction_name(call->reduction), tn_dtype_name(call->dtype));
  if (call->kind == TN_BROADCAST && (call->root < 0 || call->root >= ranks))
    return tn_fail(env, TN_EINVAL, NULL, "sim: broadcast from rank %d of %d", (int)call->root, (int)ranks);
  *to_count = call->kind == TN_ALL_GATHER       ? call->count * ranks
              : call->kind == TN_REDUCE_SCATTER ? call->count / ranks
                                                : call->count;
  return TN_OK;
}

static tn_status communicator_refuse_device(tn_env *env) {
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: the device has no interface " TN_SIM_NATIVE);
}

static tn_status communicator_run(tn_env *env, void *communicator, const tn_collective *call, void *stream) {
  tn_sim_part *p = communicator;
  int64_t to_count = 0;
  tn_status status = communicator_check_call(env, p, call, &to_count);
  if (status != TN_OK || call->count == 0) return status;
  const tn_sim_native *native = p->device->native(env, p->device, stream, TN_SIM_NATIVE);
  if (native == NULL) return communicator_refuse_device(env);
  return tn_sim_collective_push(env, p, call, to_count, native);
}

static tn_status communicator_status(tn_env *env, void *communicator) {
  return tn_sim_group_status(env, ((tn_sim_part *)communicator)->group);
}

static tn_status communicator_position(tn_env *env, void *communicator, tn_comm_position *position) {
  tn_sim_part *p = communicator;
  (void)env;
  pthread_mutex_lock(&p->group->lock);
  position->number = atomic_load(&p->reached[TN_SIM_ARRIVED]);
  position->inside = position->number > atomic_load(&p->reached[TN_SIM_FINISHED]);
  snprintf(position->name, sizeof position->name, "%s", p->name);
  pthread_mutex_unlock(&p->group->lock);
  return TN_OK;
}

static void communicator_abort(tn_env *env, void *communicator) {
  const tn_sim_part *p = communicator;
  (void)env;
  tn_sim_group_abort(p->group, p->rank);
}

/* ---- open, close ---- */

static tn_status communicator_identify(tn_env *env, const void *options, const tn_comm_place *place,
                                       void *bytes) {
  (void)options, (void)place;
  identity id = {NULL, (uint64_t)getpid()};
  tn_status status = tn_sim_group_new(env, &id.group);
  if (status == TN_OK) memcpy(bytes, &id, sizeof id);
  return status;
}

static tn_status communicator_open(tn_env *env, const void *options, const tn_comm_device *device,
                                   const tn_comm_place *place, const void *bytes, void **communicator) {
  const tn_sim_group_options *o = options;
  identity id;
  tn_sim_part *part = NULL;
  *communicator = NULL;
  memcpy(&id, bytes, sizeof id);
  if (id.process != (uint64_t)getpid())
    return tn_fail(env, TN_ECOMM, NULL, "sim: the identity was made by another process, %llu",
                   (unsigned long long)id.process);
  if (place->rank < 0 || place->rank >= place->ranks || place->ranks > TN_SIM_RANKS)
    return tn_fail(env, TN_EINVAL, NULL, "sim: rank %d of %d, expected one of at most %d", (int)place->rank,
                   (int)place->ranks, TN_SIM_RANKS);
  const tn_sim_part from = {.rank = place->rank,
                            .timeout_s = place->timeout_s,
                            .place = place,
                            .silent = o->failure == TN_SIM_FAILS_STATUS,
                            .device = device,
                            .native = device->native(env, device, NULL, TN_SIM_NATIVE)};
  if (from.native == NULL) return communicator_refuse_device(env);
  tn_status status = tn_sim_group_enter(env, id.group, &from, place->ranks, &part);
  *communicator = part;
  return status;
}

static void communicator_close(tn_env *env, void *communicator) { tn_sim_group_leave(env, communicator); }

static const tn_option communicator_options[] = {
    TN_OPT(
        tn_sim_group_options, failure, TN_OPT_ENUM, "stream", "stream|status",
        "where a failed collective shows: as failed work of its stream, or, as with NCCL, in the status of "
        "the communicator alone: it waits until it is given up, and ends with an undefined result"),
    TN_OPT_END};

const tn_communicator tn_sim_communicator = {
    .item = TN_ITEM(tn_communicator, TN_COMMUNICATOR, "sim", "collectives between simulated devices",
                    tn_sim_group_options, communicator_options),
    .families = "sim",
    .identity_bytes = sizeof(identity),
    .identify = communicator_identify,
    .open = communicator_open,
    .close = communicator_close,
    .run = communicator_run,
    .status = communicator_status,
    .abort = communicator_abort,
    .capturable = 1,
    .position = communicator_position,
};

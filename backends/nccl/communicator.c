/* backends/nccl/communicator.c: the communicator `nccl`: collectives of NVIDIA's NCCL between GPUs of one
 * process, of several, and of several machines. NCCL's communicators do not block, so that open has a limit
 * and a rank can give up while it connects. */
#include "backends/nccl/communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/nccl/rank.h"

/* close waits this long for the end of NCCL's communicator, and then leaves it. */
static const double join_s = 10;

/* The bytes that rank 0 sends to the others. */
typedef struct identity {
  ncclUniqueId id;
  tn_nccl_group *group; /* of process 0 */
} identity;

static tn_status nccl_identify(tn_env *env, const void *options, const tn_comm_place *place, void *bytes) {
  const tn_nccl_options *o = options;
  tn_nccl_library library;
  identity made = {.group = NULL};
  TN_TRY(tn_nccl_library_open(env, o->libraries, &library));
  ncclResult_t code = library.ncclGetUniqueId(&made.id);
  if (code != ncclSuccess)
    return tn_fail(
        env, TN_ECOMM, NULL,
        "nccl: ncclGetUniqueId: %s (%s); it listens on a network interface of this host, which the "
        "environment variable NCCL_SOCKET_IFNAME names",
        library.ncclGetErrorString(code), library.ncclGetLastError(NULL));
  tn_status status = tn_nccl_group_new(env, place, false, &made.group);
  memcpy(bytes, &made, sizeof made);
  return status;
}

/* ---- failure ---- */

static tn_status nccl_fail_waiting(tn_env *env, tn_nccl_rank *r, double waited_s) {
  char text[TN_NCCL_TEXT], name[TN_NCCL_NAME + 16], which[TN_NCCL_TEXT / 2];
  uint32_t word = tn_nccl_follow_word(&r->follow);
  tn_nccl_follow_name(&r->follow, word, name, sizeof name);
  tn_nccl_group_explain_wait(r->group, word, which, sizeof which);
  snprintf(text, sizeof text, "rank %d on device %d has waited in %s for %.1f s, at most %g s: %s",
           (int)r->rank, (int)r->device->index, name, waited_s, r->timeout_s, which);
  tn_nccl_group_fail(r->group, text);
  return tn_nccl_group_status(env, r->group);
}

static tn_status nccl_fail_state(tn_env *env, const tn_nccl_rank *r, ncclResult_t state) {
  char text[TN_NCCL_TEXT];
  const char *last = r->library.ncclGetLastError(r->comm);
  snprintf(text, sizeof text,
           "rank %d on device %d: NCCL reports: %s (%.*s); the environment variable NCCL_DEBUG=INFO makes it "
           "print more",
           (int)r->rank, (int)r->device->index, r->library.ncclGetErrorString(state),
           last != NULL ? (int)strcspn(last, "\n") : 0, last != NULL ? last : "");
  tn_nccl_group_fail(r->group, text);
  return tn_nccl_group_status(env, r->group);
}

static tn_status nccl_fail_busy(tn_env *env, tn_nccl_rank *r, double busy_s) {
  char text[TN_NCCL_TEXT];
  snprintf(text, sizeof text,
           "rank %d on device %d: a call of NCCL has not returned for %.1f s, at most %g s: it connects the "
           "ranks, "
           "of which one has not come",
           (int)r->rank, (int)r->device->index, busy_s, r->timeout_s);
  tn_nccl_group_fail(r->group, text);
  return tn_nccl_group_status(env, r->group);
}

/* Whether NCCL has failed. Another thread may be in a call that waits for other ranks, and has the lock. */
static ncclResult_t nccl_ask(tn_nccl_rank *r) {
  ncclResult_t state = ncclSuccess, code = ncclSuccess;
  if (pthread_mutex_trylock(&r->lock) != 0) return ncclInProgress;
  if (!atomic_load(&r->given_up)) code = r->library.ncclCommGetAsyncError(r->comm, &state);
  pthread_mutex_unlock(&r->lock);
  return code != ncclSuccess ? code : state;
}

static tn_status nccl_status(tn_env *env, void *communicator) {
  tn_nccl_rank *r = communicator;
  tn_status failed = tn_nccl_group_status(env, r->group);
  if (failed != TN_OK || atomic_load(&r->given_up)) return failed;
  ncclResult_t state = nccl_ask(r);
  if (state != ncclSuccess && state != ncclInProgress) return nccl_fail_state(env, r, state);
  double waited_s = tn_nccl_follow_waited(&r->follow, tn_monotonic_s()), busy_s = tn_nccl_rank_busy_s(r);
  if (waited_s > r->timeout_s) return nccl_fail_waiting(env, r, waited_s);
  if (busy_s <= r->timeout_s) return TN_OK;
  bool follows = (tn_nccl_follow_word(&r->follow) & 1) != 0;
  return follows ? nccl_fail_waiting(env, r, busy_s) : nccl_fail_busy(env, r, busy_s);
}

static tn_status nccl_position(tn_env *env, void *communicator, tn_comm_position *position) {
  tn_nccl_rank *r = communicator;
  return tn_nccl_follow_position(env, &r->follow, position);
}

static void nccl_abort(tn_env *env, void *communicator) {
  tn_nccl_rank *r = communicator;
  char text[64];
  (void)env;
  snprintf(text, sizeof text, "rank %d has given up", (int)r->rank);
  tn_nccl_group_fail(r->group, text);
  tn_nccl_rank_give_up(r);
}

/* ---- close ---- */

/* All work is done; finalizing ends NCCL's own, and frees what the ranks share. */
static void nccl_finish(tn_nccl_rank *r) {
  ncclResult_t code = ncclInProgress;
  if (tn_nccl_rank_begin(r)) {
    code = r->library.ncclCommFinalize(r->comm);
    tn_nccl_rank_end(r);
    code = tn_nccl_rank_await(r, code, r->timeout_s);
  }
  if (code == ncclSuccess)
    tn_nccl_rank_destroy(r);
  else
    tn_nccl_rank_give_up(r);
}

/* A thread that still ends the communicator keeps the object. The last end of a process leaves the context of
 * another device current from 2.22 on. */
static void nccl_free(tn_env *env, tn_nccl_rank *r) {
  bool joined = tn_nccl_rank_join(r, join_s);
  tn_nccl_group_leave(env, r->group, r->rank);
  if (!joined) {
    tn_env_log(env, TN_LOG_WARN, "nccl: rank %d: %s has not returned and is left", (int)r->rank,
               r->destroys ? "ncclCommDestroy" : "ncclCommAbort");
    return;
  }
  if (r->driver.cuCtxSetCurrent != NULL) (void)r->driver.cuCtxSetCurrent(r->context);
  tn_nccl_blocks_free(env, r);
  tn_nccl_follow_close(&r->follow);
  pthread_mutex_destroy(&r->end_lock);
  pthread_mutex_destroy(&r->lock);
  tn_delete(env, r);
}

static void nccl_close(tn_env *env, void *communicator) {
  tn_nccl_rank *r = communicator;
  (void)r->driver.cuCtxSetCurrent(r->context);
  if (!atomic_load(&r->given_up)) nccl_finish(r);
  nccl_free(env, r);
}

/* ---- open ---- */

static tn_status nccl_fail_open(tn_env *env, tn_nccl_rank *r) {
  char which[TN_NCCL_TEXT / 2];
  tn_status failed = tn_nccl_group_status(env, r->group);
  if (failed != TN_OK) return failed;
  tn_nccl_group_explain_open(r->group, which, sizeof which);
  return tn_fail(
      env, TN_ECOMM, NULL,
      "nccl: rank %d on device %d: ncclCommInitRankConfig has waited for all %d ranks for %g s: %s; "
      "see [distributed] timeout, and the environment variables NCCL_SOCKET_IFNAME, for the network, "
      "and NCCL_DEBUG=INFO, for what NCCL does",
      (int)r->rank, (int)r->device->index, (int)r->ranks, r->timeout_s, which);
}

/* Two ranks on one device are refused by NCCL, which knows the devices of all processes. */
static tn_status nccl_fail_init(tn_env *env, tn_nccl_rank *r, ncclResult_t code) {
  char call[TN_NCCL_TEXT / 2], devices[TN_NCCL_TEXT / 4];
  tn_nccl_group_list_devices(r->group, devices, sizeof devices);
  snprintf(call, sizeof call, "ncclCommInitRankConfig (%s; each rank needs a device of its own)", devices);
  return tn_nccl_check(env, r, code, call);
}

/* It overrides the configuration of a communicator. NCCL puts the settings of its files into the environment.
 */
static tn_status nccl_check_blocking(tn_env *env) {
  const char *text = getenv("NCCL_COMM_BLOCKING");
  if (text == NULL || strtol(text, NULL, 0) != 1) return TN_OK;
  return tn_fail(
      env, TN_EINVAL, NULL,
      "nccl: the environment variable NCCL_COMM_BLOCKING is 1, with which NCCL waits for other ranks "
      "without a limit; unset it, also in the files that NCCL reads (/etc/nccl.conf, ~/.nccl.conf, "
      "NCCL_CONF_FILE)");
}

static tn_status nccl_init(tn_env *env, tn_nccl_rank *r, const ncclUniqueId *id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = NULL;
  tn_status failed = tn_nccl_group_status(env, r->group); /* another rank has given up waiting for this one */
  if (failed != TN_OK) return failed;
  config.blocking = 0;
  ncclResult_t code = r->library.ncclCommInitRankConfig(&comm, r->ranks, *id, r->rank, &config);
  pthread_mutex_lock(&r->lock);
  r->comm = comm;
  pthread_mutex_unlock(&r->lock);
  if (comm != NULL) code = tn_nccl_rank_await(r, code, r->timeout_s);
  if (code == ncclInProgress) return nccl_fail_open(env, r);
  if (code != ncclSuccess) return nccl_fail_init(env, r, code);
  r->opened = true;
  return nccl_check_blocking(env); /* NCCL has read its files */
}

static tn_status nccl_join(tn_env *env, const tn_nccl_options *o, tn_nccl_rank *r, const ncclUniqueId *id) {
  const tn_cuda *native = r->device->native(env, r->device, NULL, TN_CUDA_INTERFACE);
  if (native == NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "nccl: the device has no interface " TN_CUDA_INTERFACE);
  r->context = native->context;
  r->memory = o->memory;
  tn_status status = nccl_check_blocking(env);
  if (status == TN_OK) status = tn_nccl_library_open(env, o->libraries, &r->library);
  if (status == TN_OK) status = tn_nccl_memory_check(env, &r->library, o->memory);
  if (status == TN_OK) status = tn_nccl_driver_find(env, native, &r->driver);
  if (status == TN_OK) status = tn_nccl_enter(env, r);
  if (status == TN_OK && o->follow) status = tn_nccl_follow_open(env, &r->driver, &r->follow);
  return status == TN_OK ? nccl_init(env, r, id) : status;
}

/* The ranks of this process that wait for this one need not wait for the timeout. */
static tn_status nccl_open_failed(tn_env *env, tn_nccl_rank *r, tn_status status) {
  char text[80];
  snprintf(text, sizeof text, "rank %d has failed to join", (int)r->rank);
  tn_nccl_group_fail(r->group, text);
  tn_nccl_rank_give_up(r);
  nccl_free(env, r);
  return status;
}

static tn_status nccl_open(tn_env *env, const void *options, const tn_comm_device *device,
                           const tn_comm_place *place, const void *bytes, void **communicator) {
  identity given;
  *communicator = NULL;
  memcpy(&given, bytes, sizeof given);
  tn_nccl_rank *r = tn_new(env, sizeof *r);
  if (r == NULL) return TN_ENOMEM;
  r->device = device;
  r->rank = place->rank;
  r->ranks = place->ranks;
  r->place = place;
  r->timeout_s = place->timeout_s;
  r->group = given.group;
  if (place->process != 0 && tn_nccl_group_new(env, place, true, &r->group) != TN_OK)
    return tn_delete(env, r), TN_ENOMEM;
  pthread_mutex_init(&r->lock, NULL);
  pthread_mutex_init(&r->end_lock, NULL);
  tn_nccl_follow_init(&r->follow);
  tn_nccl_group_enter(r->group, r->rank, device->index, &r->follow);
  tn_status status = nccl_join(env, options, r, &given.id);
  if (status != TN_OK) return nccl_open_failed(env, r, status);
  tn_nccl_group_complete(r->group);
  *communicator = r;
  return TN_OK;
}

/* ---- the item ---- */

static tn_status nccl_library(tn_env *env, const void *options, tn_comm_library *library) {
  const tn_nccl_options *o = options;
  tn_nccl_library l;
  TN_TRY(tn_nccl_library_open(env, o->libraries, &l));
  snprintf(library->name, sizeof library->name, "NCCL");
  snprintf(library->version, sizeof library->version, "%s", l.version_text);
  snprintf(library->path, sizeof library->path, "%s", l.path);
  return TN_OK;
}

static const tn_option nccl_options[] = {
    TN_OPT(tn_nccl_options, libraries, TN_OPT_CODE, "", NULL,
           "folders, separated by ':', where libnccl.so.2 is looked for first"),
    TN_OPT(
        tn_nccl_options, follow, TN_OPT_FLAG, "yes", NULL,
        "let the device note which collective it is in, by two small writes each, so that a rank that does "
        "not come is named"),
    TN_OPT(
        tn_nccl_options, memory, TN_OPT_ENUM, "device", "device|registered|symmetric",
        "memory that collectives work in: the device's own; memory of NCCL that is registered (2.19), which "
        "switches and networks of GPUs read directly; or that is also a symmetric window (2.29.7)"),
    TN_OPT_END};

const tn_communicator tn_nccl_communicator = {
    .item = TN_ITEM(tn_communicator, TN_COMMUNICATOR, "nccl", "collectives between NVIDIA GPUs, by NCCL",
                    tn_nccl_options, nccl_options),
    .families = "cuda",
    .identity_bytes = sizeof(identity),
    .identify = nccl_identify,
    .open = nccl_open,
    .close = nccl_close,
    .run = tn_nccl_run,
    .status = nccl_status,
    .abort = nccl_abort,
    .capturable = 1,
    .library = nccl_library,
    .memory_new = tn_nccl_memory_new,
    .memory_delete = tn_nccl_memory_delete,
    .attach = tn_nccl_attach,
    .detach = tn_nccl_detach,
    .position = nccl_position,
};

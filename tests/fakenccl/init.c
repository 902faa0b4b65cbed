/* tests/fakenccl/init.c: ids and the making of communicators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakenccl/fakenccl.h"
#include "backends/shared/clock.h"

FAKENCCL_API ncclResult_t ncclGetVersion(int *version) {
  FAKENCCL_TRY(fakenccl_enter(__func__, NULL));
  if (version == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the version");
  *version = fakenccl_version();
  return ncclSuccess;
}

FAKENCCL_API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  FAKENCCL_TRY(fakenccl_enter(__func__, NULL));
  if (id == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the id");
  const char *why = fakenccl_clique_new(id);
  return why == NULL ? ncclSuccess : fakenccl_refuse(ncclSystemError, "%s", why);
}

/* ---- entering ---- */

/* FNV-1a of NCCL_HOSTID: ranks of two ids are on two hosts. */
static uint64_t init_host(void) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (const char *at = getenv("NCCL_HOSTID"); at != NULL && *at != '\0'; at++)
    hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
  return hash;
}

static ncclResult_t init_claim(fakenccl_comm *comm) {
  fakenccl_shared *s = comm->clique->shared;
  uint32_t none = 0, zero = 0, ranks = (uint32_t)comm->ranks;
  if (!atomic_compare_exchange_strong(&s->ranks, &none, ranks) && none != ranks) {
    fakenccl_comm_fail_all(comm, ncclInvalidUsage, "rank %d comes to a communicator of %d ranks with %d",
                           comm->rank, (int)none, comm->ranks);
    return fakenccl_refuse(ncclInvalidUsage, "mismatch in the number of ranks: %d and %d", comm->ranks,
                           (int)none);
  }
  fakenccl_member *me = &s->members[comm->rank];
  if (!atomic_compare_exchange_strong(&me->claimed, &zero, 1)) {
    if (atomic_load(&s->present) == ranks)
      return fakenccl_refuse(ncclInvalidUsage, "the id has served another communicator already");
    fakenccl_comm_fail_all(comm, ncclInvalidUsage, "rank %d of %d ranks has already checked in", comm->rank,
                           comm->ranks);
    return fakenccl_refuse(ncclInvalidUsage, "rank %d of %d ranks has already checked in", comm->rank,
                           comm->ranks);
  }
  comm->me = me;
  return ncclSuccess;
}

static ncclResult_t init_enter(fakenccl_comm *comm, const ncclUniqueId *id) {
  CUuuid uuid;
  uint64_t host = init_host();
  FAKENCCL_TRY(fakenccl_cuda(fakenccl_driver_get()->f_cuDeviceGetUuid_v2(&uuid, comm->device), "the device"));
  const char *why = fakenccl_clique_open(id, &comm->clique);
  if (why != NULL) return fakenccl_refuse(ncclSystemError, "%s", why);
  comm->nonce = comm->clique->nonce;
  FAKENCCL_TRY(init_claim(comm));
  fakenccl_clique_hold(comm->clique, comm->rank, comm->device);
  comm->me->process = getpid();
  memcpy(comm->me->device, &host, sizeof host);
  memcpy(comm->me->device + sizeof host, &uuid, sizeof uuid);
  atomic_fetch_add(&comm->clique->shared->present, 1);
  return ncclSuccess;
}

/* ---- waiting ---- */

/* The other rank with the device of this one; -1: none. */
static int init_find_duplicate(const fakenccl_comm *comm) {
  const fakenccl_member *members = comm->clique->shared->members;
  for (int r = 0; r < comm->ranks; r++)
    if (r != comm->rank && memcmp(members[r].device, comm->me->device, sizeof comm->me->device) == 0)
      return r;
  return -1;
}

void fakenccl_init_poll(fakenccl_comm *comm) {
  const fakenccl_shared *s = comm->clique->shared;
  if (atomic_load(&s->error) != 0) {
    comm->state = FAKENCCL_BROKEN;
    return;
  }
  if (atomic_load(&s->present) < (uint32_t)comm->ranks || tn_monotonic_s() < comm->ready_at) return;
  int other = init_find_duplicate(comm);
  comm->state = other < 0 ? FAKENCCL_READY : FAKENCCL_BROKEN;
  if (other < 0) return;
  fakenccl_comm_fail(comm, ncclInvalidUsage,
                     "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x", comm->rank, other,
                     (1 + comm->me->device[sizeof comm->me->device - 1]) << 12);
  fakenccl_log("%s", comm->text);
}

static ncclResult_t init_run(fakenccl_job *job) {
  fakenccl_comm *comm = job->comm;
  if (job->goes_on) return ncclSuccess;
  pthread_mutex_lock(&comm->lock);
  ncclResult_t status = comm->state >= FAKENCCL_ABORTED ? ncclInvalidUsage : fakenccl_comm_status(comm);
  pthread_mutex_unlock(&comm->lock);
  return status;
}

fakenccl_job fakenccl_init_job(fakenccl_comm *comm) {
  return (fakenccl_job){.comm = comm, .poll = init_run, .goes_on = !comm->blocking};
}

/* ---- making ---- */

static ncclResult_t init_find_context(fakenccl_comm *comm) {
  const fakenccl_driver *d = fakenccl_driver_get();
  FAKENCCL_TRY(fakenccl_cuda(d->f_cuCtxGetCurrent(&comm->context), "the current context"));
  if (comm->context == NULL)
    return fakenccl_refuse(ncclInvalidUsage, "the thread has no current context; NCCL would take device 0");
  return fakenccl_cuda(d->f_cuCtxGetDevice(&comm->device), "the current device");
}

ncclResult_t fakenccl_init_check_config(const ncclConfig_t *config) {
  if (config == NULL) return ncclSuccess;
  if (config->magic != 0xcafebeef || config->size < offsetof(ncclConfig_t, cgaClusterSize))
    return fakenccl_refuse(ncclInvalidArgument, "the configuration is not one of NCCL_CONFIG_INITIALIZER");
  if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 && config->blocking != 1)
    return fakenccl_refuse(ncclInvalidArgument, "Invalid config blocking attribute value %d",
                           config->blocking);
  return ncclSuccess;
}

static void init_set(fakenccl_comm *comm, int ranks, int rank, const ncclConfig_t *config) {
  comm->rank = rank;
  comm->ranks = ranks;
  comm->process = getpid();
  const char *blocking = getenv("NCCL_COMM_BLOCKING"); /* overrides the configuration */
  comm->blocking =
      blocking != NULL ? strtol(blocking, NULL, 0) != 0 : config == NULL || config->blocking != 0;
  pthread_mutex_init(&comm->lock, NULL);
  fakenccl_faults_read(&comm->faults, rank);
  comm->polls = comm->blocking ? 0 : comm->faults.progress;
}

ncclResult_t fakenccl_init_new(ncclComm_t *place, int ranks, const ncclUniqueId *id, int rank,
                               const ncclConfig_t *config) {
  fakenccl_comm *comm = calloc(1, sizeof *comm);
  if (comm == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
  init_set(comm, ranks, rank, config);
  fakenccl_async_make(comm);
  ncclResult_t result = init_find_context(comm);
  if (result == ncclSuccess) result = init_enter(comm, id);
  if (result != ncclSuccess) {
    if (comm->clique != NULL) fakenccl_clique_close(comm->clique);
    free(comm);
    return result;
  }
  fakenccl_comm_add(comm);
  if (comm->faults.delay_us > 0)
    comm->ready_at =
        tn_monotonic_s() + 1e-6 * (double)(fakenccl_draw(&comm->chance) % (comm->faults.delay_us + 1));
  __atomic_store_n(place, comm, __ATOMIC_RELEASE); /* another thread may abort it */
  return ncclSuccess;
}

static ncclResult_t init_rank(ncclComm_t *place, int ranks, const ncclUniqueId *id, int rank,
                              const ncclConfig_t *config) {
  if (place == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the communicator");
  *place = NULL;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return fakenccl_refuse(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, ranks);
  if (ranks > FAKENCCL_RANKS)
    return fakenccl_refuse(ncclInternalError, "the double has at most %d ranks", FAKENCCL_RANKS);
  FAKENCCL_TRY(fakenccl_init_check_config(config));
  FAKENCCL_TRY(fakenccl_init_new(place, ranks, id, rank, config));
  fakenccl_job job = fakenccl_init_job(*place);
  return fakenccl_group_add_job(&job);
}

/* A call that is refused makes the group fail. */
static ncclResult_t init_result(ncclResult_t result) {
  bool failed = result != ncclSuccess && result != ncclInProgress;
  return failed ? fakenccl_group_fail(result) : result;
}

FAKENCCL_API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                                 ncclConfig_t *config) {
  ncclResult_t result = fakenccl_enter(__func__, NULL);
  return init_result(result == ncclSuccess ? init_rank(comm, ranks, &id, rank, config) : result);
}

FAKENCCL_API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  ncclResult_t result = fakenccl_enter(__func__, NULL);
  return init_result(result == ncclSuccess ? init_rank(comm, ranks, &id, rank, NULL) : result);
}

/* ---- all ranks of a process ---- */

/* On a device's primary context, which the communicator retains. */
static ncclResult_t init_on_device(ncclComm_t *place, int ranks, const ncclUniqueId *id, int rank,
                                   int device) {
  const fakenccl_driver *d = fakenccl_driver_get();
  CUcontext context;
  FAKENCCL_TRY(fakenccl_cuda(d->f_cuDevicePrimaryCtxRetain(&context, device), "the device"));
  d->f_cuCtxPushCurrent_v2(context);
  ncclResult_t result = fakenccl_init_new(place, ranks, id, rank, NULL);
  d->f_cuCtxPopCurrent_v2(NULL);
  if (result == ncclSuccess)
    (*place)->retained = true;
  else
    d->f_cuDevicePrimaryCtxRelease_v2(device);
  return result;
}

static ncclResult_t init_all(ncclComm_t *comms, int n, const int *devices) {
  ncclUniqueId id;
  const char *why = fakenccl_clique_new(&id);
  if (why != NULL) return fakenccl_refuse(ncclSystemError, "%s", why);
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < n; i++) comms[i] = NULL;
  for (int i = 0; i < n && result == ncclSuccess; i++)
    result = init_on_device(&comms[i], n, &id, i, devices != NULL ? devices[i] : i);
  for (int i = 0; i < n && result == ncclSuccess; i++) {
    fakenccl_job job = fakenccl_init_job(comms[i]);
    do result = job.poll(&job);
    while (result == ncclInProgress);
  }
  for (int i = 0; i < n && result != ncclSuccess; i++) {
    if (comms[i] != NULL) ncclCommAbort(comms[i]);
    comms[i] = NULL;
  }
  return result;
}

FAKENCCL_API ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
  int count = 0;
  FAKENCCL_TRY(fakenccl_enter(__func__, NULL));
  FAKENCCL_TRY(fakenccl_cuda(fakenccl_driver_get()->f_cuDeviceGetCount(&count), "the devices"));
  if (comms == NULL || n < 1 || n > count)
    return fakenccl_refuse(ncclInvalidArgument, "%d communicators on %d devices", n, count);
  for (int i = 0; devices != NULL && i < n; i++)
    for (int j = 0; j < i; j++)
      if (devices[i] == devices[j])
        return fakenccl_refuse(ncclInvalidUsage, "device %d is listed twice", devices[i]);
  return init_all(comms, n, devices);
}

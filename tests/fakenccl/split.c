/* tests/fakenccl/split.c: communicators of some ranks of another one. All ranks tell their colors and keys;
 * the first rank of each color makes an id, by which the others of that color enter as in init. */
#include "tests/fakenccl/fakenccl.h"

enum { TOLD, NAMED, ENTERED };

typedef struct part {
  int ranks, rank, leader; /* of the new communicator; the leader's rank in the old one */
} part;

static bool split_is_before(const fakenccl_member *members, int n, int a, int b) {
  int first = members[a].key[n], second = members[b].key[n];
  return first != second ? first < second : a < b;
}

/* Ranks of a color in the order of keys, then of ranks. */
static part split_find(const fakenccl_comm *comm, uint64_t number) {
  const fakenccl_member *members = comm->clique->shared->members;
  int n = (int)(number % 2), color = comm->me->color[n];
  part p = {.leader = comm->rank};
  for (int r = 0; r < comm->ranks; r++) {
    if (members[r].color[n] != color) continue;
    p.ranks++;
    p.rank += split_is_before(members, n, r, comm->rank);
    if (split_is_before(members, n, r, p.leader)) p.leader = r;
  }
  return p;
}

static ncclResult_t split_name(fakenccl_comm *comm, uint64_t number) {
  const char *why = fakenccl_clique_new(&comm->me->id[number % 2]);
  if (why != NULL) return fakenccl_refuse(ncclSystemError, "%s", why);
  atomic_store(&comm->me->named, number);
  return ncclSuccess;
}

/* All ranks have told their colors. */
static ncclResult_t split_run_told(fakenccl_job *job) {
  fakenccl_comm *comm = job->comm;
  for (int r = 0; r < comm->ranks; r++)
    if (atomic_load(&comm->clique->shared->members[r].splits) < job->number) return ncclInProgress;
  if (comm->me->color[job->number % 2] == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  job->stage = NAMED;
  return split_find(comm, job->number).leader == comm->rank ? split_name(comm, job->number) : ncclSuccess;
}

static ncclResult_t split_enter(fakenccl_job *job, const ncclConfig_t *config) {
  const fakenccl_driver *d = fakenccl_driver_get();
  part p = split_find(job->comm, job->number);
  fakenccl_member *leader = &job->comm->clique->shared->members[p.leader];
  if (atomic_load(&leader->named) < job->number) return ncclInProgress;
  ncclUniqueId id = leader->id[job->number % 2];
  job->stage = ENTERED;
  d->f_cuCtxPushCurrent_v2(job->comm->context);
  ncclResult_t result = fakenccl_init_new(job->place, p.ranks, &id, p.rank, config);
  d->f_cuCtxPopCurrent_v2(NULL);
  return result;
}

/* With the lock of the old communicator. Without a color the job ends in its first stage. */
static ncclResult_t split_run_early(fakenccl_job *job) {
  if (job->comm->state != FAKENCCL_READY) return ncclInvalidUsage;
  if (job->stage == TOLD) FAKENCCL_TRY(split_run_told(job));
  return job->stage == NAMED ? split_enter(job, &job->config) : ncclSuccess;
}

static ncclResult_t split_run(fakenccl_job *job) {
  if (job->stage != ENTERED) {
    pthread_mutex_lock(&job->comm->lock);
    ncclResult_t result = split_run_early(job);
    pthread_mutex_unlock(&job->comm->lock);
    if (result != ncclSuccess || job->stage != ENTERED) return result;
  }
  fakenccl_job init = fakenccl_init_job(*job->place);
  job->goes_on = init.goes_on;
  return init.poll(&init);
}

static ncclResult_t split_begin(fakenccl_comm *comm, int color, int key, ncclComm_t *place,
                                const ncclConfig_t *config) {
  static const ncclConfig_t none = NCCL_CONFIG_INITIALIZER;
  FAKENCCL_TRY(fakenccl_comm_check_ready(comm));
  if (place == NULL) return fakenccl_refuse(ncclInvalidArgument, "no place for the communicator");
  *place = NULL;
  FAKENCCL_TRY(fakenccl_init_check_config(config));
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
    return fakenccl_refuse(ncclInvalidArgument, "rank %d: color %d", comm->rank, color);
  fakenccl_job job = {.comm = comm, .poll = split_run, .place = place, .config = none};
  job.config.blocking =
      config != NULL && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking : comm->blocking;
  pthread_mutex_lock(&comm->lock);
  job.number = ++comm->splits;
  comm->me->color[job.number % 2] = color;
  comm->me->key[job.number % 2] = key;
  atomic_store(&comm->me->splits, job.number);
  pthread_mutex_unlock(&comm->lock);
  return fakenccl_group_add_job(&job);
}

FAKENCCL_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *place,
                                        ncclConfig_t *config) {
  ncclResult_t result = fakenccl_enter(__func__, comm);
  if (result == ncclSuccess) result = split_begin(comm, color, key, place, config);
  return result == ncclSuccess || result == ncclInProgress ? result : fakenccl_group_fail(result);
}

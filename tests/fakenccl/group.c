/* tests/fakenccl/group.c: groups of calls. The calls of a group on one communicator become one piece of work
 * on its stream; where they have several streams, all of them wait for each other before and after it. A call
 * outside of a group is a group of one. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakenccl/fakenccl.h"

typedef struct entry {
  fakenccl_comm *comm;
  CUstream stream;
  bool captured;
  bool taken; /* into a batch */
  fakenccl_op op;
} entry;

/* Of a thread. */
typedef struct group {
  int depth;
  ncclResult_t error;
  entry *entries;
  size_t n, capacity;
  fakenccl_job jobs[FAKENCCL_RANKS];
  int n_jobs;
} group;

static _Thread_local group here;

bool fakenccl_group_is_open(void) { return here.depth > 0; }

ncclResult_t fakenccl_group_fail(ncclResult_t code) {
  if (here.depth > 0 && here.error == ncclSuccess) here.error = code;
  return code;
}

static void group_clear(void) {
  free(here.entries);
  memset(&here, 0, sizeof here);
}

/* ---- work ---- */

static const char *group_work_name(const fakenccl_batch *b) {
  return b->n > 1 ? "a group of calls of NCCL" : fakenccl_kind_name(b->ops[0].what.kind);
}

/* The event of a stream. It is recorded on that stream alone, so that its records end in their order. */
static ncclResult_t group_find_event(fakenccl_comm *c, CUstream stream, CUevent *event) {
  fakenccl_mark *m = c->marks;
  while (m != NULL && m->stream != stream) m = m->next;
  if (m == NULL) {
    m = calloc(1, sizeof *m);
    if (m == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
    *m = (fakenccl_mark){c->marks, stream, NULL};
    c->marks = m;
  }
  *event = m->event;
  if (m->event != NULL) return ncclSuccess;
  CUresult code = fakenccl_driver_get()->f_cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING);
  *event = m->event;
  return fakenccl_cuda(code, "an event");
}

/* `later` waits for what `sooner` has now. */
static ncclResult_t group_order(fakenccl_comm *c, CUstream sooner, CUstream later) {
  const fakenccl_driver *d = fakenccl_driver_get();
  CUevent event = NULL;
  FAKENCCL_TRY(group_find_event(c, sooner, &event));
  FAKENCCL_TRY(fakenccl_cuda(d->f_cuEventRecord(event, sooner), "the streams of the group"));
  return fakenccl_cuda(d->f_cuStreamWaitEvent(later, event, 0), "the streams of the group");
}

/* Before the work its stream waits for the others of the communicator; after it they wait for its stream. */
static ncclResult_t group_join(fakenccl_comm *c, CUstream stream, bool before) {
  for (size_t i = 0; i < here.n; i++) {
    CUstream other = here.entries[i].stream;
    if (here.entries[i].comm != c || other == stream) continue;
    FAKENCCL_TRY(before ? group_order(c, other, stream) : group_order(c, stream, other));
  }
  return ncclSuccess;
}

static void group_keep(fakenccl_batch *b) {
  fakenccl_comm *c = b->comm;
  pthread_mutex_lock(&c->lock);
  b->next = c->batches;
  c->batches = b;
  if (b->captured)
    c->captured++;
  else
    b->ticket = ++c->issued;
  c->polls = c->blocking ? 0 : c->faults.progress;
  pthread_mutex_unlock(&c->lock);
}

static ncclResult_t group_enqueue(fakenccl_batch *b) {
  const fakenccl_driver *d = fakenccl_driver_get();
  fakenccl_comm *c = b->comm;
  CUstream stream = b->stream;
  FAKENCCL_TRY(group_join(c, stream, true));
  group_keep(b);
  CUresult code = d->f_fakecuda_enqueue_waiting(stream, group_work_name(b), fakenccl_batch_run,
                                                fakenccl_batch_release, b);
  if (code != CUDA_SUCCESS) {
    fakenccl_batch_drop(b);
    return fakenccl_cuda(code, "the collective could not be enqueued");
  }
  return group_join(c, stream, false); /* b may have run */
}

/* The calls of one communicator, in their order. NULL: no memory. */
static fakenccl_batch *group_make_batch(const entry *first) {
  int n = 0;
  for (size_t i = 0; i < here.n; i++) n += here.entries[i].comm == first->comm;
  fakenccl_batch *b = calloc(1, sizeof *b + (size_t)n * sizeof *b->ops);
  if (b == NULL) return NULL;
  b->comm = first->comm;
  b->stream = first->stream;
  b->captured = first->captured;
  b->symmetric = true;
  for (size_t i = 0; i < here.n; i++) {
    entry *e = &here.entries[i];
    if (e->comm != first->comm) continue;
    e->taken = true;
    e->op.what.place = b->n;
    e->op.what.places = n;
    b->symmetric = b->symmetric && fakenccl_is_in_window(b->comm, e->op.from) &&
                   fakenccl_is_in_window(b->comm, e->op.to);
    b->ops[b->n++] = e->op;
  }
  return b;
}

static ncclResult_t group_launch(void) {
  const fakenccl_driver *d = fakenccl_driver_get();
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < here.n && result == ncclSuccess; i++) {
    if (here.entries[i].taken) continue;
    fakenccl_batch *b = group_make_batch(&here.entries[i]);
    if (b == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
    FAKENCCL_TRY(fakenccl_cuda(d->f_cuCtxPushCurrent_v2(b->comm->context), "the context of a communicator"));
    result = group_enqueue(b);
    d->f_cuCtxPopCurrent_v2(NULL);
  }
  return result;
}

/* ---- rules ---- */

static ncclResult_t group_check(void) {
  if (here.n > 0 && here.n_jobs > 0)
    return fakenccl_refuse(ncclInvalidUsage, "a group has collectives and also inits, splits or windows");
  for (size_t i = 1; i < here.n; i++) {
    const entry *a = &here.entries[0], *b = &here.entries[i];
    if (a->captured != b->captured)
      return fakenccl_refuse(ncclInvalidUsage,
                             "either none or all communicators in a group can be captured in a graph");
    if (a->comm->blocking != b->comm->blocking)
      return fakenccl_refuse(ncclInvalidArgument,
                             "blocking and nonblocking communicators are not allowed in the same group");
  }
  return ncclSuccess;
}

/* Goes through the jobs until all have ended. The first failure is the group's. */
static ncclResult_t group_run_jobs(void) {
  ncclResult_t result = ncclSuccess;
  for (bool waits = true; waits;) {
    waits = false;
    for (int i = 0; i < here.n_jobs; i++) {
      fakenccl_job *job = &here.jobs[i];
      if (job->result == ncclInProgress) job->result = job->poll(job);
      waits = waits || job->result == ncclInProgress;
      if (result == ncclSuccess && job->result != ncclInProgress) result = job->result;
    }
    if (waits) fakenccl_pause();
  }
  for (int i = 0; i < here.n_jobs; i++)
    if (here.jobs[i].goes_on) {
      fakenccl_async_leave(here.jobs[i].comm);
      if (result == ncclSuccess) result = ncclInProgress;
    }
  return result;
}

static ncclResult_t group_in_progress(void) {
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < here.n; i++) {
    fakenccl_comm *c = here.entries[i].comm;
    if (c->blocking || c->faults.progress == 0) continue;
    fakenccl_async_leave(c);
    result = ncclInProgress;
  }
  return result;
}

/* ---- connecting: 2.22 does it in the caller, when the first collective of a kind has come on all ranks ----
 */

enum { FIRST_CONNECTING = 22200, FIRST_PARALLEL = 22300 };

static bool group_all_connect(fakenccl_comm *c, uint32_t kind, bool *aborted) {
  bool all = true;
  pthread_mutex_lock(&c->lock);
  *aborted = c->state >= FAKENCCL_ABORTED;
  for (int r = 0; r < c->ranks && !*aborted; r++)
    all = all && (atomic_load(&c->clique->shared->members[r].connects) & kind) != 0;
  pthread_mutex_unlock(&c->lock);
  return all;
}

static ncclResult_t group_connect(void) {
  bool aborted = false;
  if (fakenccl_version() < FIRST_CONNECTING || fakenccl_version() >= FIRST_PARALLEL) return ncclSuccess;
  for (size_t i = 0; i < here.n; i++)
    atomic_fetch_or(&here.entries[i].comm->me->connects, 1u << here.entries[i].op.what.kind);
  for (size_t i = 0; i < here.n; i++)
    while (!group_all_connect(here.entries[i].comm, 1u << here.entries[i].op.what.kind, &aborted) && !aborted)
      fakenccl_pause();
  return aborted ? ncclInternalError : ncclSuccess;
}

/* ---- launches that come late: another thread makes them when the call has returned ---- */

enum { FIRST_LATE = 22300 }; /* before, plain collectives are launched by the caller */

typedef struct late {
  fakenccl_comm *comm;
  double rest_s;
  group given;
} late;

static bool group_is_late(void) {
  const fakenccl_comm *c = here.n > 0 ? here.entries[0].comm : NULL;
  for (size_t i = 1; i < here.n; i++)
    if (here.entries[i].comm != c) return false;
  return c != NULL && !c->blocking && c->faults.delay_us + c->faults.late_us > 0 &&
         fakenccl_version() >= FIRST_LATE;
}

static void *group_launch_late(void *arg) {
  late *l = arg;
  ncclResult_t result = ncclSuccess;
  here = l->given;
  if (fakenccl_async_rest(l->comm, l->rest_s)) result = group_launch();
  group_clear();
  fakenccl_async_end(l->comm, result);
  free(l);
  return NULL;
}

static ncclResult_t group_launch_later(void) {
  fakenccl_comm *c = here.entries[0].comm;
  late *l = calloc(1, sizeof *l);
  if (l == NULL) return fakenccl_refuse(ncclSystemError, "no memory");
  pthread_mutex_lock(&c->lock);
  uint64_t random = c->faults.delay_us > 0 ? fakenccl_draw(&c->chance) % (c->faults.delay_us + 1) : 0;
  pthread_mutex_unlock(&c->lock);
  *l = (late){.comm = c, .rest_s = 1e-6 * (double)(c->faults.late_us + random), .given = here};
  fakenccl_async_leave(c);
  if (!fakenccl_async_work(c, group_launch_late, l))
    return free(l), fakenccl_refuse(ncclSystemError, "no thread");
  memset(&here, 0, sizeof here);
  return ncclInProgress;
}

static ncclResult_t group_run(void) {
  ncclResult_t result = here.error;
  if (result == ncclSuccess) result = group_check();
  if (result == ncclSuccess) result = group_connect();
  if (result == ncclSuccess && group_is_late()) {
    result = group_launch_later();
    if (result == ncclInProgress) return result;
  }
  if (result == ncclSuccess) result = group_launch();
  if (result == ncclSuccess) result = here.n_jobs > 0 ? group_run_jobs() : group_in_progress();
  group_clear();
  return result;
}

/* ---- calls ---- */

static bool group_grow(void) {
  if (here.n < here.capacity) return true;
  size_t capacity = here.capacity > 0 ? 2 * here.capacity : 16;
  entry *larger = realloc(here.entries, capacity * sizeof *larger);
  if (larger == NULL) return false;
  here.entries = larger;
  here.capacity = capacity;
  return true;
}

ncclResult_t fakenccl_group_add(fakenccl_comm *comm, CUstream stream, const fakenccl_op *op) {
  CUstreamCaptureStatus capture;
  FAKENCCL_TRY(fakenccl_cuda(fakenccl_driver_get()->f_cuStreamIsCapturing(stream, &capture), "the stream"));
  fakenccl_async_start_group();
  if (!group_grow()) return fakenccl_refuse(ncclSystemError, "no memory");
  here.entries[here.n++] = (entry){
      .comm = comm, .stream = stream, .captured = capture != CU_STREAM_CAPTURE_STATUS_NONE, .op = *op};
  return here.depth > 0 ? ncclSuccess : group_run();
}

ncclResult_t fakenccl_group_add_job(const fakenccl_job *job) {
  fakenccl_async_start_group();
  if (here.n_jobs == FAKENCCL_RANKS)
    return fakenccl_refuse(ncclInternalError, "a group has more than %d inits", FAKENCCL_RANKS);
  here.jobs[here.n_jobs] = *job;
  here.jobs[here.n_jobs++].result = ncclInProgress;
  return here.depth > 0 ? ncclSuccess : group_run();
}

/* The header declares both without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

FAKENCCL_API ncclResult_t ncclGroupStart(void) {
  FAKENCCL_TRY(fakenccl_enter(__func__, NULL));
  fakenccl_async_start_group();
  here.depth++;
  return ncclSuccess;
}

FAKENCCL_API ncclResult_t ncclGroupEnd(void) {
  ncclResult_t asked = fakenccl_enter(__func__, NULL);
  if (here.depth == 0) return fakenccl_refuse(ncclInvalidUsage, "no group was started on this thread");
  if (asked != ncclSuccess) fakenccl_group_fail(asked);
  if (--here.depth > 0) return ncclSuccess;
  return group_run();
}

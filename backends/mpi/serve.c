/* backends/mpi/serve.c: the collectives of a rank, one after another, as work on a stream. MPI makes progress
 * only while it is called, so the thread tests the collective that is under way until it has ended. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "backends/mpi/objects.h"

enum {
  WORK_NS = 2000,   /* a test that takes longer has moved data */
  ACTIVE_US = 100,  /* how long the thread goes on testing after that, while the rank computes */
  SPIN_US = 5000,   /* and while the host waits for the collective */
  PAUSE_NS = 50000, /* between two tests otherwise */
  IDLE_SOON_MS = 1, /* between two looks at MPI while there is no collective: soon after the last */
  IDLE_MS = 10,     /* and later */
  IDLE_SOON_TIMES = 20,
  FAREWELL_MS = 200 /* for a last message to the other ranks */
};

void tn_mpi_fail(tn_mpi_rank *r, bool silent, const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&r->lock);
  if (!r->failed) {
    vsnprintf(r->failure, sizeof r->failure, format, args);
    r->silent = silent;
  }
  r->failed = true;
  pthread_cond_broadcast(&r->answered);
  pthread_cond_broadcast(&r->asked);
  pthread_mutex_unlock(&r->lock);
  va_end(args);
}

static void serve_sleep(long ns) { nanosleep(&(struct timespec){0, ns}, NULL); }

/* ---- messages of ranks that give up ---- */

static void serve_hear(tn_mpi_rank *r) {
  MPI_Status from;
  int heard = 0;
  if (MPI_Test(&r->hears, &heard, &from) != MPI_SUCCESS)
    tn_mpi_fail(r, false, "rank %d cannot hear the others", (int)r->rank);
  else if (heard)
    tn_mpi_fail(r, true, "rank %d: %.280s", from.MPI_SOURCE, r->heard);
}

/* The message is short, so MPI takes it as a whole; a little later it has left. */
static void serve_tell(tn_mpi_rank *r) {
  int there;
  for (int32_t to = 0; to < r->ranks; to++) {
    MPI_Request request;
    if (to == r->rank) continue;
    if (MPI_Isend(r->failure, TN_MPI_TEXT, MPI_CHAR, to, 0, r->control, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
  for (int i = 0; i < FAREWELL_MS; i++) {
    MPI_Iprobe(MPI_ANY_SOURCE, 1, r->control, &there, MPI_STATUS_IGNORE);
    serve_sleep(1000000);
  }
}

/* Looks at everything but the collective; false: the rank has failed. */
static bool serve_look(tn_mpi_rank *r) {
  serve_hear(r);
  pthread_mutex_lock(&r->lock);
  r->seen_s = tn_monotonic_s();
  bool gives_up = r->aborting, failed = r->failed;
  pthread_mutex_unlock(&r->lock);
  if (gives_up && !failed) tn_mpi_fail(r, false, "rank %d has given up", (int)r->rank);
  return !gives_up && !failed;
}

/* ---- collectives ---- */

/* Data moves in many small steps, each of which two ranks take at the same time. So the thread goes on
 * without a pause while there is something to do, and otherwise leaves the processor to the rank's
 * computation. */
static void serve_pause(tn_mpi_rank *r, double idle_s) {
  bool waited_for = atomic_load(&r->waiting) > 0;
  if (idle_s < 1e-6 * (waited_for ? SPIN_US : ACTIVE_US))
    sched_yield();
  else
    serve_sleep(PAUSE_NS);
}

static void serve_end(tn_mpi_rank *r) {
  pthread_mutex_lock(&r->lock);
  r->ended++;
  pthread_cond_broadcast(&r->answered);
  pthread_mutex_unlock(&r->lock);
}

static void serve_failed(tn_mpi_rank *r, const tn_mpi_entry *entry, int error) {
  char text[MPI_MAX_ERROR_STRING] = "?";
  int n;
  MPI_Error_string(error, text, &n);
  tn_mpi_fail(r, false, "collective %llu, '%s': %.180s", (unsigned long long)r->ended + 1, entry->name, text);
}

static void serve_late(tn_mpi_rank *r, const tn_mpi_entry *entry) {
  tn_mpi_fail(
      r, false,
      "collective %llu, '%s', has not ended within %g s on rank %d: a rank did not come to it (MPI does "
      "not say which)",
      (unsigned long long)r->ended + 1, entry->name, r->timeout_s, (int)r->rank);
}

static void serve_collective(tn_mpi_rank *r, const tn_mpi_entry *entry) {
  double since = tn_monotonic_s(), active = since;
  tn_mpi_calls_start(&r->calls, &entry->collective);
  for (;;) {
    bool done, moved;
    double before = tn_monotonic_s();
    int error = tn_mpi_calls_advance(&r->calls, &moved, &done);
    double now = tn_monotonic_s();
    if (error != MPI_SUCCESS) return serve_failed(r, entry, error);
    if (done) return serve_end(r);
    if (!serve_look(r)) return;
    if (now - since > r->timeout_s) return serve_late(r, entry);
    if (moved || now - before > 1e-9 * WORK_NS) active = now;
    serve_pause(r, now - active);
  }
}

/* Waits for a collective. MPI is called meanwhile, for what others still await of the last collective, and
 * for their messages. */
static void serve_idle(tn_mpi_rank *r, int times) {
  struct timespec until = tn_monotonic_in(1e-3 * (times < IDLE_SOON_TIMES ? IDLE_SOON_MS : IDLE_MS));
  pthread_mutex_lock(&r->lock);
  if (r->begun == r->ended && !r->closing && !r->aborting)
    pthread_cond_timedwait(&r->asked, &r->lock, &until);
  pthread_mutex_unlock(&r->lock);
}

/* The next collective, or NULL. */
static const tn_mpi_entry *serve_next(tn_mpi_rank *r, bool *closing) {
  pthread_mutex_lock(&r->lock);
  const tn_mpi_entry *entry = r->ended < r->begun ? &r->ring[r->ended % TN_MPI_RING] : NULL;
  *closing = r->closing;
  pthread_mutex_unlock(&r->lock);
  return entry;
}

void tn_mpi_serve(tn_mpi_rank *r) {
  bool closing = false;
  for (int idle = 0; serve_look(r); idle++) {
    const tn_mpi_entry *entry = serve_next(r, &closing);
    if (entry == NULL && closing) return;
    if (entry == NULL) {
      serve_idle(r, idle);
      continue;
    }
    serve_collective(r, entry);
    idle = 0;
  }
  if (!r->silent) serve_tell(r);
}

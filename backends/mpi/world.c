/* backends/mpi/world.c: MPI's beginning and end in this process. MPI can be begun once in a process, so
 * its state is that of the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/mpi/objects.h"

static struct {
  bool begun, mine;         /* mine: MPI_Init was called here */
  int level;                /* of threads, where it is mine */
  bool copied;              /* `all` is there */
  MPI_Comm all;             /* of all processes */
  char broken[TN_MPI_TEXT]; /* why MPI is not used again; "": it is */
  tn_mpi_rank *kept;        /* ranks whose memory MPI may still use */
} mpi_world;

/* Open MPI's mpirun; MPICH's and Intel's; Slurm's. */
bool tn_mpi_launched(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i]) != NULL) return true;
  return false;
}

/* ---- failures ---- */

static tn_status world_refuse(tn_mpi_rank *r, tn_status code, const char *text) {
  tn_mpi_fail(r, true, "%s", text);
  return code;
}

static tn_status world_check(tn_mpi_rank *r, int error, const char *call) {
  char text[MPI_MAX_ERROR_STRING] = "?";
  int n;
  if (error == MPI_SUCCESS) return TN_OK;
  MPI_Error_string(error, text, &n);
  tn_mpi_fail(r, true, "%s: %.200s", call, text);
  return TN_ECOMM;
}

/* Waits for a call until a time. */
static tn_status world_wait(tn_mpi_rank *r, MPI_Request *request, double until_s, const char *what) {
  int ended = 0;
  for (;;) {
    tn_status status = world_check(r, MPI_Test(request, &ended, MPI_STATUS_IGNORE), "MPI_Test");
    if (status != TN_OK || ended) return status;
    if (tn_monotonic_s() > until_s) {
      tn_mpi_fail(r, true, "some of the %d ranks did not come to %s within %g s (MPI does not say which)",
                  (int)r->ranks, what, r->timeout_s);
      return TN_ECOMM;
    }
    usleep(200);
  }
}

/* ---- MPI itself ---- */

static bool world_is_over(void) {
  int over = 0;
  return MPI_Finalized(&over) == MPI_SUCCESS && over;
}

/* MPI that the program has begun. */
static tn_status world_take(tn_mpi_rank *r) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    return world_refuse(r, TN_EUNSUPPORTED,
                        "the program has begun MPI without MPI_THREAD_MULTIPLE, which a thread of this "
                        "communicator needs; begin it by MPI_Init_thread");
  mpi_world.begun = true;
  mpi_world.level = level;
  return TN_OK;
}

static tn_status world_init(tn_mpi_rank *r) {
  int there = 0;
  MPI_Initialized(&there);
  if (there) return world_take(r);
  TN_MPI_TRY(world_check(r, MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &mpi_world.level),
                         "MPI_Init_thread"));
  mpi_world.begun = mpi_world.mine = true;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return TN_OK;
}

/* The thread that calls MPI is the one that has begun it, so MPI_THREAD_FUNNELED is enough. */
static tn_status world_begin(tn_mpi_rank *r) {
  if (world_is_over())
    return world_refuse(r, TN_EUNSUPPORTED, "MPI has been ended in this process, and cannot be begun again");
  if (!mpi_world.begun) TN_MPI_TRY(world_init(r));
  if (mpi_world.level > MPI_THREAD_SINGLE) return TN_OK;
  return world_refuse(r, TN_EUNSUPPORTED,
                      "this MPI allows one thread alone in a process (MPI_THREAD_SINGLE), and a rank has "
                      "several; use an MPI that was built with threads");
}

static tn_status world_check_size(tn_mpi_rank *r, int size) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int n;
  if (size == r->ranks) return TN_OK;
  MPI_Get_library_version(version, &n);
  version[strcspn(version, ",\n")] = '\0';
  tn_mpi_fail(
      r, true,
      "MPI's world has %d process%s, but the run has %d ranks: start one process for each rank, by the "
      "mpirun of %.60s",
      size, size == 1 ? "" : "es", (int)r->ranks, version);
  return TN_EUNSUPPORTED;
}

/* ---- a run ---- */

/* MPI may use the memory of the rank until its requests have ended. They cannot be ended: a collective has
 * no MPI_Cancel. */
static void world_keep(tn_mpi_rank *r) {
  r->kept = true;
  r->next_kept = mpi_world.kept;
  mpi_world.kept = r;
}

static tn_status world_exchange(tn_mpi_rank *r) {
  tn_mpi_card *mine = &r->cards[r->ranks];
  MPI_Request request;
  *mine = (tn_mpi_card){r->identity, r->rank, r->ranks};
  TN_MPI_TRY(world_check(r,
                         MPI_Iallgather(mine, (int)sizeof *mine, MPI_BYTE, r->cards, (int)sizeof *mine,
                                        MPI_BYTE, r->control, &request),
                         "MPI_Iallgather"));
  tn_status status = world_wait(r, &request, r->opened_s + r->timeout_s, "the exchange of identities");
  if (status != TN_OK) world_keep(r);
  return status;
}

static tn_status world_compare(tn_mpi_rank *r) {
  const tn_mpi_card *cards = r->cards;
  for (int32_t i = 0; i < r->ranks; i++) {
    bool same = memcmp(&cards[i].identity, &r->identity, sizeof r->identity) == 0;
    if (same && cards[i].rank == i && cards[i].ranks == r->ranks) continue;
    tn_mpi_fail(
        r, true,
        "process %d of MPI is rank %lld of %lld of %s run, expected rank %d of %d of this one: all ranks "
        "of a run are started by one mpirun, and each once",
        (int)i, (long long)cards[i].rank, (long long)cards[i].ranks, same ? "this" : "another", (int)i,
        (int)r->ranks);
    return TN_ECOMM;
  }
  return TN_OK;
}

/* Communicators of this run alone: one of its collectives, one of the ranks' messages. */
static tn_status world_split(tn_mpi_rank *r) {
  MPI_Request request;
  if (!mpi_world.copied) {
    TN_MPI_TRY(world_check(r, MPI_Comm_idup(MPI_COMM_WORLD, &mpi_world.all, &request), "MPI_Comm_idup"));
    TN_MPI_TRY(world_wait(r, &request, r->opened_s + r->timeout_s, "the beginning of MPI"));
    MPI_Comm_set_errhandler(mpi_world.all, MPI_ERRORS_RETURN);
    mpi_world.copied = true;
  }
  TN_MPI_TRY(world_check(r, MPI_Ibarrier(mpi_world.all, &request), "MPI_Ibarrier"));
  TN_MPI_TRY(world_wait(r, &request, r->opened_s + r->timeout_s, "the beginning of the run"));
  TN_MPI_TRY(world_check(r, MPI_Comm_split(mpi_world.all, 0, r->rank, &r->comm), "MPI_Comm_split"));
  return world_check(r, MPI_Comm_dup(r->comm, &r->control), "MPI_Comm_dup");
}

static tn_status world_hear(tn_mpi_rank *r) {
  return world_check(r, MPI_Irecv(r->heard, TN_MPI_TEXT, MPI_CHAR, MPI_ANY_SOURCE, 0, r->control, &r->hears),
                     "MPI_Irecv");
}

static tn_status world_enter(tn_mpi_rank *r) {
  int size = 0;
  TN_MPI_TRY(world_begin(r));
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  TN_MPI_TRY(world_check_size(r, size));
  TN_MPI_TRY(world_split(r));
  TN_MPI_TRY(world_exchange(r));
  TN_MPI_TRY(world_compare(r));
  if (!tn_mpi_calls_new(&r->calls, r->comm, r->rank, r->ranks, r->options.piece))
    return world_refuse(r, TN_ENOMEM, "no memory for collectives");
  return world_hear(r);
}

static void world_break(const char *why) {
  if (mpi_world.broken[0] == '\0') snprintf(mpi_world.broken, sizeof mpi_world.broken, "%s", why);
}

tn_status tn_mpi_world_join(tn_mpi_rank *r) {
  r->comm = r->control = MPI_COMM_NULL;
  r->hears = MPI_REQUEST_NULL;
  if (mpi_world.broken[0] != '\0') {
    tn_mpi_fail(r, true, "a run of this process has failed before (%.200s), and MPI cannot be begun again",
                mpi_world.broken);
    return TN_EUNSUPPORTED;
  }
  tn_status status = world_enter(r);
  if (status != TN_OK) tn_mpi_calls_delete(&r->calls);
  if (status == TN_ECOMM || status == TN_ENOMEM) world_break(r->failure);
  return status;
}

/* Ends the communicators of the ranks, which have all run their collectives to the end. */
static bool world_part(tn_mpi_rank *r) {
  enum { LIMIT_S = 10 };
  MPI_Request request;
  double until = tn_monotonic_s() + (r->timeout_s < LIMIT_S ? r->timeout_s : LIMIT_S);
  bool together = MPI_Ibarrier(r->control, &request) == MPI_SUCCESS &&
                  world_wait(r, &request, until, "the end of the run") == TN_OK;
  if (!together) return false;
  MPI_Cancel(&r->hears);
  MPI_Wait(&r->hears, MPI_STATUS_IGNORE);
  return MPI_Comm_free(&r->control) == MPI_SUCCESS && MPI_Comm_free(&r->comm) == MPI_SUCCESS;
}

/* After a failure MPI may still write to pieces of collectives and to `heard`, and read `failure`. */
void tn_mpi_world_leave(tn_mpi_rank *r) {
  bool broken = r->failed || !world_part(r);
  if (!broken) return tn_mpi_calls_delete(&r->calls);
  world_break(r->failed ? r->failure : "its ranks did not end together");
  world_keep(r);
}

void tn_mpi_world_end(void) {
  if (!mpi_world.begun || !mpi_world.mine || mpi_world.broken[0] != '\0' || world_is_over()) return;
  if (mpi_world.copied) MPI_Comm_free(&mpi_world.all);
  MPI_Finalize();
}

/* tests/unit/backends/mpi/fake.c: the functions of MPI that the communicator calls. A request is a number: 1,
 * it has ended; 2, it never ends. */
#include "tests/unit/backends/mpi/fake.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

fake_mpi fake;

static int begin(MPI_Request *request, const char *call) {
  bool pends = fake.pending != NULL && strcmp(fake.pending, call) == 0;
  fake.calls++;
  *request = (MPI_Request)(uintptr_t)(pends ? 2 : 1);
  return MPI_SUCCESS;
}

static int done(void) {
  fake.calls++;
  return MPI_SUCCESS;
}

/* ---- beginning and end ---- */

int MPI_Initialized(int *flag) { return *flag = fake.initialized || fake.inits > 0, MPI_SUCCESS; }
int MPI_Finalized(int *flag) { return *flag = fake.finalized || fake.finalizes > 0, MPI_SUCCESS; }
int MPI_Query_thread(int *level) { return *level = fake.level, MPI_SUCCESS; }
int MPI_Finalize(void) {
  fake.finalizes++;
  return MPI_SUCCESS;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level) {
  (void)argc, (void)argv, (void)wanted;
  fake.inits++;
  *level = fake.level;
  return MPI_SUCCESS;
}

int MPI_Get_library_version(char *text, int *n) { return *n = sprintf(text, "Fake MPI 1"), MPI_SUCCESS; }
int MPI_Error_string(int error, char *text, int *n) {
  return *n = sprintf(text, "error %d", error), MPI_SUCCESS;
}

/* ---- communicators ---- */

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  return (void)comm, (void)handler, done();
}
int MPI_Comm_size(MPI_Comm comm, int *n) { return (void)comm, *n = fake.ranks, done(); }
int MPI_Comm_free(MPI_Comm *comm) { return *comm = MPI_COMM_NULL, done(); }
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) { return *copy = comm, done(); }

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *copy, MPI_Request *request) {
  *copy = comm;
  return begin(request, __func__);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part) {
  (void)color, (void)key;
  return *part = comm, done();
}

/* ---- requests ---- */

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status) {
  (void)status;
  *ended = *request != (MPI_Request)(uintptr_t)2;
  return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) { return (void)request, (void)status, done(); }
int MPI_Cancel(MPI_Request *request) { return (void)request, done(); }
int MPI_Request_free(MPI_Request *request) { return (void)request, done(); }

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) { return (void)comm, begin(request, __func__); }

/* Every rank has the card of this one, with its own number, which is the 64 bits behind the first 16 bytes.
 */
int MPI_Iallgather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype to_type,
                   MPI_Comm comm, MPI_Request *request) {
  (void)type, (void)m, (void)to_type, (void)comm;
  fake.sent = from;
  fake.received = to;
  for (int64_t r = 0; r < fake.ranks; r++) {
    char *card = (char *)to + r * n;
    memcpy(card, from, (size_t)n);
    memcpy(card + 16, &r, sizeof r);
  }
  return begin(request, __func__);
}

/* No rank gives up. */
int MPI_Irecv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
  (void)n, (void)type, (void)from, (void)tag, (void)comm;
  fake.heard = to;
  *request = (MPI_Request)(uintptr_t)2;
  return done();
}

int MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  (void)n, (void)type, (void)to, (void)tag, (void)comm;
  fake.told = from;
  return begin(request, __func__);
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  (void)from, (void)tag, (void)comm, (void)status;
  return *flag = 0, done();
}

int MPI_Ialltoallv(const void *from, const int *n, const int *at, MPI_Datatype type, void *to, const int *m,
                   const int *to_at, MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request) {
  (void)from, (void)n, (void)at, (void)type, (void)to, (void)m, (void)to_at, (void)to_type, (void)comm;
  return begin(request, __func__);
}

int MPI_Iallgatherv(const void *from, int n, MPI_Datatype type, void *to, const int *m, const int *to_at,
                    MPI_Datatype to_type, MPI_Comm comm, MPI_Request *request) {
  (void)from, (void)n, (void)type, (void)to, (void)m, (void)to_at, (void)to_type, (void)comm;
  return begin(request, __func__);
}

int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request) {
  (void)data, (void)n, (void)type, (void)root, (void)comm;
  return begin(request, __func__);
}

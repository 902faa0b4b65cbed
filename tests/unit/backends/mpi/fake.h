/* tests/unit/backends/mpi/fake.h: an MPI of one process, of whose world the test says the size. Requests end
 * at once, unless the test says otherwise. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fake_mpi {
  int ranks;
  bool initialized, finalized; /* before the communicator comes */
  int level;                   /* of threads, that MPI_Init_thread and MPI_Query_thread give */
  const char *pending;         /* the call whose requests never end: "MPI_Iallgather" */
  _Atomic(int) inits, finalizes, calls;
  /* What MPI may still use: of the last calls whose requests have not ended. */
  const void *sent, *received; /* MPI_Iallgather */
  const void *heard, *told;    /* MPI_Irecv; MPI_Isend */
} fake_mpi;

extern fake_mpi fake;

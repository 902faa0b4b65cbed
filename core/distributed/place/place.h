/* core/distributed/place/place.h: the place of this process among those of a run, by the variables that a
 * launcher has set. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

enum { TN_PLACE_HOST = 256, TN_PLACE_TOKEN = 128, TN_MOST_PROCESSES = 16384 };

typedef struct tn_process_place {
  const char *launcher;       /* "torchrun", for messages; NULL: none, the process is alone */
  int32_t process, processes; /* 0 of 1: alone */
  int32_t local, locals;      /* among the processes of this host; 0 of 1 where the launcher does not say */
  char master[TN_PLACE_HOST]; /* name or address of process 0's host */
  int32_t port;               /* of process 0: the first that it tries to listen on */
  int32_t tasks; /* of a Slurm allocation, where no launcher has started this process; 0: it is in none */
  char token[TN_PLACE_TOKEN]; /* a text that only the processes of this job know; "": none is known */
  bool guessable;             /* the token is the name of the job, or none */
} tn_process_place;

/* Looks up a variable of the environment; NULL: it is not set. */
typedef const char *(*tn_variable_fn)(void *context, const char *name);

/* The variables of, in this order: `tenon launch` (TENON_...), torchrun (RANK, WORLD_SIZE, MASTER_ADDR ...),
 * Open MPI's mpirun (OMPI_...), MPICH's and Intel's (PMI_...), Slurm's srun (SLURM_...). MASTER_ADDR,
 * MASTER_PORT and TENON_TOKEN have precedence over what the others say. `variable` NULL: getenv. TN_EINVAL: a
 * variable has no usable value, or does not fit the others; the message names it. */
tn_status tn_process_place_read(const void *handle, tn_variable_fn variable, void *context,
                                tn_process_place *place);

/* slurm_nodes.c: the first name of a list such as "node[003-007,12],gpu1", at most `size` - 1 bytes; false:
 * the text is not such a list. */
bool tn_slurm_first_node(const char *list, char *name, size_t size);
/* The tasks of the node with this number, from a list such as "2(x3),1"; -1: the text is not such a list. */
int32_t tn_slurm_tasks_of_node(const char *list, int32_t node);

/* tests/integration/processes/group.h: a training by four processes and its launcher, for disturb.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { GROUP_SIZE = 4, GROUP_OPTIONS = 8 };

/* A way to train, with bits of its own. */
typedef struct group_variant {
  const char *name, *file;
  const char *options[GROUP_OPTIONS];
  bool mpi;      /* started by mpirun, which restarts nothing */
  bool averages; /* it has statistics that are averaged over ranks */
} group_variant;

typedef struct group {
  const char *tenon;
  const group_variant *variant;
  char output[32], words[32]; /* the folder of the run; the file of stdout and stderr */
  bool restarts;              /* the launcher starts again after a failure */
  pid_t launcher;
  pid_t pids[GROUP_SIZE]; /* of the present attempt, by number */
  bool ended;             /* the launcher; `status` is that of waitpid */
  int status;
} group;

/* Starts the launcher, with --resume auto. */
void group_start(group *g);
/* Whether the launcher has ended. */
bool group_has_ended(group *g);
/* Waits for four processes, other than those of the attempt before. False: the launcher has ended, or
 * they have not come for 90 s. */
bool group_find(group *g);
/* Processes of the attempt that have not ended. */
int group_count(const group *g);
bool group_is_alive(pid_t pid);
/* Ends everything that is left. */
void group_kill(group *g);

/* The text that the processes and the launcher have printed from byte `from` on. The caller frees it. */
char *group_words(const group *g, size_t from);
size_t group_words_bytes(const group *g);
/* Bytes of a file of the run, or 0. */
size_t group_file_bytes(const group *g, const char *file);

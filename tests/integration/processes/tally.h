/* tests/integration/processes/tally.h: the disturbances of disturb.c, and the table of their outcomes. */
#pragma once

#include <stdbool.h>

enum {
  KILL_ONE,      /* SIGKILL to one process */
  KILL_TWO,      /* to two at once */
  KILL_STOP,     /* SIGSTOP to one process, SIGKILL to another within 2 s */
  STOP,          /* SIGSTOP for ever */
  STOP_LONG,     /* SIGSTOP, and SIGCONT beyond the limit of silence */
  HANG,          /* the thread of a rank hangs in a live process */
  PAUSE,         /* SIGSTOP, and SIGCONT before it */
  ASK_TERM,      /* SIGTERM to one process */
  ASK_USR1,      /* SIGUSR1 to one process */
  LAUNCHER_TERM, /* SIGTERM to the launcher */
  LAUNCHER_KILL, /* SIGKILL to the launcher */
  KINDS
};

enum { AT_START, AT_TRAINING, AT_WRITING, AT_END, PHASES };

/* Faults of a disturbance. */
enum {
  UNNAMED = 1,    /* no line names the process within 30 s */
  WRONG_NAME = 2, /* a line names another one, or one where nothing had failed */
  SLOW = 4,       /* some processes had not ended after 30 s */
  WRONG_CODE = 8, /* exit code of the launcher */
  ENDED = 16,     /* a pause ended the run */
  /* No faults of Tenon: */
  MPIRUN_HANGS = 32,     /* mpirun has not ended */
  MPIRUN_COMPLAINS = 64, /* mpirun has ended with an error behind the end of the training */
};

typedef struct disturbance {
  int kind, phase, misses;
  bool mpi;
  double named_s, ended_s; /* from the signal on; below 0: not measured */
} disturbance;

/* Of all trainings. */
typedef struct tally {
  disturbance *all;
  int n;
  int trainings, unequal, starts; /* starts: of the launcher, and by it */
} tally;

const char *tally_kind(int kind);
/* Prints the table. Returns the number of misses. */
int tally_print(tally *t);

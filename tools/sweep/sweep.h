/* tools/sweep/sweep.h: `tenon sweep`: trains the runs of a sweep in processes of their own, some at a time.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "tools/cli/cli.h"

/* Each rung has at least twice the epochs of the one before. */
enum { SWEEP_RUNGS = 64, SWEEP_PATH = 4096 };

/* A run of one configuration, seed and fold. */
typedef struct sweep_run {
  const char *name;
  const json_t *set;         /* texts "section.key=value" */
  pid_t pid;                 /* 0: no process trains it now */
  int wanted, rungs;         /* how many rungs it is to reach, and has reached */
  double score[SWEEP_RUNGS]; /* at each rung that it has reached; NaN: none */
  bool ended;                /* it trains no more: it was finished, ended early, or has failed */
} sweep_run;

typedef struct sweep {
  tn_context *context;
  const cli_args *args;
  json_t *begun; /* of tn_run_begin_sweep */
  const char *folder, *metric;
  char program[SWEEP_PATH];
  bool smaller, halves, asynchronous;
  int factor, jobs, threads;
  long long rungs[SWEEP_RUNGS]; /* epochs */
  int n_rungs;
  sweep_run *runs; /* those of a configuration lie together */
  int n, n_configurations, repeats;
  const char *common[CLI_MAX_LIST]; /* texts of --set with one value, for all runs */
  int n_common;
  const char *swept[CLI_MAX_LIST]; /* those with several */
  int n_swept;
  sigset_t signals; /* that stop the sweep */
  bool stopped;
  int running, ended, failed; /* processes now, and those that this command has seen end */
  int code;                   /* of the last run that failed */
  double page_s, page_took_s; /* when the page was written last, and how long that took */
} sweep;

/* rungs.c: the run that is to be started next: of all that are not there yet, one with the highest rung to
 * reach; NULL: none can start before another has ended. */
sweep_run *sweep_next(sweep *s);

/* read.c: reads the result of tn_run_begin_sweep, and what an earlier sweep in the folder has reached.
 * Returns CLI_OK, or a code with a message. */
int sweep_read(sweep *s);
int sweep_read_earlier(sweep *s);
/* Whether the value of --set "section.key=value" is a list or a range. */
bool sweep_is_list(const char *assignment);

/* child.c: starts the process of a run, up to the rung that it is to reach. Returns CLI_OK, or a code with a
 * message. */
int sweep_start(sweep *s, sweep_run *run);
/* Takes the end of the process, as waitpid has it, and says on stderr how the run came out. */
void sweep_take_end(sweep *s, sweep_run *run, int status);

/* print.c: prints a result of tn_list_sweep: a line for each configuration, the best first. */
void sweep_print(const json_t *result);

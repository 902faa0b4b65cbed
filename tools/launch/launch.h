/* tools/launch/launch.h: the processes of `tenon launch`. */
#ifndef TENON_TOOLS_LAUNCH_H
#define TENON_TOOLS_LAUNCH_H

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "tools/cli.h"

enum { LAUNCH_HOSTS = 256, LAUNCH_MOST = 4096, LAUNCH_LINE = 4096 };

typedef struct launch_host {
  char name[256]; /* "": this one */
  int processes;
} launch_host;

typedef struct launch_process {
  pid_t pid;
  const launch_host *host;
  int local;   /* number among the processes of its host */
  int output;  /* read end of its stdout and stderr; -1: they are the launcher's, or closed */
  int pending; /* bytes of `line` */
  char line[LAUNCH_LINE];
  bool ended;
  int code;         /* its exit code, as one of the run */
  double stopped_s; /* when it was stopped, as by SIGSTOP; 0: it runs */
} launch_process;

typedef struct launch {
  const cli_args *args;
  launch_host hosts[LAUNCH_HOSTS];
  int n_hosts;
  launch_process *processes;
  struct pollfd *polls; /* of their outputs */
  int n;
  sigset_t signals; /* those that are passed on */
  int passed;       /* the last that was passed on to the processes */
  bool stopped;     /* the launcher was asked to stop them */
  bool failed;      /* in this attempt, a process has failed */
  bool urged;       /* and the others were asked to end */
  char master[256], token[33];
  int port;
  int attempt; /* 0: the first */
} launch;

/* hosts.c: reads "a:4,b:2,c" into the hosts of the launch; `most` processes on one host where a host has no
 * number. Returns CLI_OK, or CLI_USAGE with a message. */
int launch_read_hosts(launch *l, const char *text, int processes);

/* spawn.c: starts process number i. Returns CLI_OK, or CLI_UNAVAILABLE with a message. */
int launch_spawn(launch *l, int i);

/* output.c: passes on the lines that process number i has printed, each as "[3] line" on stderr. `last`: also
 * an unfinished one. */
void launch_pass_output(launch *l, int i, bool last);

/* follow.c: sends a signal to the processes that have not ended. */
void launch_send(const launch *l, int number);
/* Returns when all processes have ended: passes on what they print, and each signal whose number `asked`
 * gets, which becomes 0; ends those that go on after another one has failed, or that stay stopped. */
void launch_follow(launch *l, volatile sig_atomic_t *asked);

#endif

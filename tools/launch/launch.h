/* tools/launch/launch.h: the processes of `tenon launch`. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include "tools/cli/cli.h"
#include "tools/launch/frame.h"

enum { LAUNCH_HOSTS = 256, LAUNCH_MOST = 4096, LAUNCH_LINE = 4096, LAUNCH_VARIABLES = 5 };

/* Lines that a process, or ssh, prints. */
typedef struct launch_lines {
  int fd;      /* its read end, which does not block; -1: closed */
  int pending; /* bytes of `line` */
  char line[LAUNCH_LINE];
} launch_lines;

typedef struct launch_host {
  char name[256]; /* "": this one */
  int processes;
  int first; /* the number of its first process */
  /* of another host, in the present attempt */
  pid_t ssh;            /* 0: it has ended */
  int to, from;         /* its stdin and stdout; -1: closed */
  launch_lines said;    /* its stderr */
  frame_reader *frames; /* that come from it */
  bool greeted;         /* the remote part runs there */
  int dismissed;        /* the launcher has ended ssh: the code of processes that had not; 0: it has not */
  bool unreached;       /* ssh did not reach the host */
  bool lost;            /* the connection has ended before the processes had */
} launch_host;

typedef struct launch_process {
  pid_t pid; /* on its host; 0: not known */
  launch_host *host;
  int local;           /* number among the processes of its host */
  launch_lines output; /* its stdout and stderr; those of a local process 0 are the launcher's */
  bool ended;
  int code;         /* its exit code, as one of the run */
  double stopped_s; /* when it was stopped, as by SIGSTOP; 0: it runs */
  double killed_s;  /* when SIGKILL was sent; 0: it was not */
  /* of another host, as it reports them */
  bool remote_stopped, remote_ended;
  int remote_status; /* as waitpid has it */
} launch_process;

typedef struct launch {
  const cli_args *args;
  const char *program; /* the path of this one */
  launch_host hosts[LAUNCH_HOSTS];
  int n_hosts;
  launch_process *processes;
  struct pollfd *polls; /* of outputs, and two of each host */
  int n;
  sigset_t signals;  /* those that are passed on */
  int passed;        /* the last that was passed on to the processes */
  bool stopped;      /* the launcher was asked to stop them */
  bool failed;       /* in this attempt, a process has failed */
  bool urged;        /* and the others were asked to end */
  bool first_is_out; /* the first host of --hosts was left out */
  char
      crashed[256]; /* the host of the process that was the first to end by a signal in this attempt, or "" */
  char master[256], token[33];
  int port;
  int attempt; /* 0: the first */
} launch;

/* hosts.c: reads "a:4,b:2,c" into the hosts of the launch; `processes` on this host where there are no hosts.
 * Returns CLI_OK, or CLI_USAGE with a message. */
int launch_read_hosts(launch *l, const char *text, long long processes);
/* Where process 0 listens. Returns CLI_OK, or CLI_USAGE with a message. */
int launch_find_master(launch *l);
/* Leaves out hosts that were not reached in an attempt, and one that failed first in two, unless none would
 * be left; says so. `before`: the crashed host of the attempt before. */
void launch_drop_hosts(launch *l, const char *before);

/* job.c: the words of the program that processes run, `argv`, ended by NULL, with room for LAUNCH_WORDS. */
enum { LAUNCH_WORDS = 2 * CLI_MAX_LIST + 32 };
void launch_arguments(const launch *l, const char **argv);
/* The variables of all processes of a host as "NAME=VALUE", ended by NULL. */
typedef struct launch_variables {
  char text[LAUNCH_VARIABLES][320];
  const char *list[LAUNCH_VARIABLES + 1];
} launch_variables;
void launch_set_variables(const launch *l, const launch_host *host, launch_variables *v);

/* spawn.c: one process. */
typedef struct launch_start {
  const char *const *argv, *const *variables; /* ended by NULL */
  int number, local;       /* TENON_PROCESS and TENON_LOCAL_PROCESS; number -1: it has no such variables */
  int in, out, err;        /* its stdin, stdout and stderr; -1: no input, and those of this process */
  const sigset_t *signals; /* those that have handlers here, and none there, or NULL */
} launch_start;
/* Starts it, in a process group of its own; SIGTERM ends it where this process ends. Returns -1 with errno.
 */
pid_t launch_fork(const launch_start *start);
/* A pipe whose ends are closed in other programs; `ours` does not block. False: errno. */
/* "; see `ulimit -n`" where too many files are open; else "". */
const char *launch_remedy(int error);
bool launch_pipe(int ends[2], int ours);
/* Allows this process, but not those that it starts, as many files as the system does. */
void launch_allow_files(void);

/* output.c: passes on the lines that have come, each as "[label] line" on stderr. `last`: also an unfinished
 * one, and closes the end. */
void launch_pass_lines(launch_lines *s, const char *label, bool last);
/* The same of bytes that were read already. */
void launch_pass_bytes(launch_lines *s, const char *label, const char *bytes, size_t n);

/* connect.c: starts ssh to a host of several processes. Returns CLI_OK, or CLI_UNAVAILABLE with a message. */
int launch_connect(launch *l, launch_host *host);
/* Reads the reports and words of a host, and the end of ssh, into its processes. */
void launch_hear(launch *l, launch_host *host);
/* Sends a signal to a process of another host. One that is not started there gets none: its ssh is ended. */
void launch_signal_remote(launch *l, int i, int number);
/* Ends ssh by a signal. Processes that have not ended by then end with `code`, if there was none before. */
void launch_dismiss(launch_host *host, int number, int code);
/* Waits for ssh when all processes of the host have ended. */
void launch_close(launch *l, launch_host *host);

/* follow.c: sends a signal to the processes that have not ended. */
void launch_send(launch *l, int number);
/* Returns when all processes have ended: passes on what they print, and each signal whose number `asked`
 * gets, which becomes 0; ends those that go on after another one has failed, or that stay stopped. */
void launch_follow(launch *l, volatile sig_atomic_t *asked);

/* remote.c: `tenon launch-remote`, which ssh runs on another host: starts the processes that the frames on
 * stdin name, passes on signals, and reports on stdout. Returns an exit code. */
int launch_serve(void);

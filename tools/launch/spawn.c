/* tools/launch/spawn.c: starts one process on this host. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/launch/launch.h"

/* ---- files ---- */

static struct rlimit spawn_files; /* the limits of this process at its start */

void launch_allow_files(void) {
  if (getrlimit(RLIMIT_NOFILE, &spawn_files) != 0) return;
  struct rlimit most = {spawn_files.rlim_max, spawn_files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &most);
}

const char *launch_remedy(int error) {
  return error == EMFILE || error == ENFILE   ? "; see `ulimit -n`"
         : error == EAGAIN || error == ENOMEM ? "; see `ulimit -u`, and the memory of this host"
                                              : "";
}

bool launch_pipe(int ends[2], int ours) {
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  fcntl(ends[ours], F_SETFL, O_NONBLOCK);
  return true;
}

/* ---- in the new process ---- */

/* The handlers of this program are not those of the new one, where a signal that came would be lost. */
static void spawn_take_signals(const launch_start *s, const sigset_t *before) {
  for (int number = 1; s->signals != NULL && number < NSIG; number++)
    if (sigismember(s->signals, number) == 1) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, before, NULL);
}

static void spawn_take_files(const launch_start *s) {
  int nothing = s->in < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
  if (s->in >= 0 || nothing >= 0) dup2(s->in >= 0 ? s->in : nothing, STDIN_FILENO);
  if (s->out >= 0) dup2(s->out, STDOUT_FILENO);
  if (s->err >= 0) dup2(s->err, STDERR_FILENO);
  if (spawn_files.rlim_max > 0) setrlimit(RLIMIT_NOFILE, &spawn_files);
}

static void spawn_set_number(const char *name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

static void spawn_set_variables(const launch_start *s) {
  for (int i = 0; s->variables != NULL && s->variables[i] != NULL; i++)
    putenv((char *)(uintptr_t)s->variables[i]);
  if (s->number < 0) return;
  spawn_set_number("TENON_PROCESS", s->number);
  spawn_set_number("TENON_LOCAL_PROCESS", s->local);
}

static void spawn_become(const launch_start *s, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(CLI_COMM);
  spawn_take_files(s);
  spawn_set_variables(s);
  execvp(s->argv[0], (char *const *)(const void *)s->argv);
  if (s->number >= 0)
    fprintf(stderr, "tenon: process %d cannot be started: %s: %s\n", s->number, s->argv[0], strerror(errno));
  else
    fprintf(stderr, "tenon: %s cannot be started: %s\n", s->argv[0], strerror(errno));
  _exit(CLI_UNAVAILABLE);
}

/* A group of its own: an interrupt at the terminal reaches the launcher alone, which passes it on. Both
 * processes set it, so that a signal to the group finds it at once. */
pid_t launch_fork(const launch_start *s) {
  pid_t parent = getpid();
  sigset_t before, all;
  sigfillset(&all);
  fflush(NULL);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_t pid = fork();
  int error = errno;
  if (pid == 0) setpgid(0, 0);
  if (pid == 0) spawn_take_signals(s, &before);
  if (pid == 0) spawn_become(s, parent);
  if (pid > 0) setpgid(pid, pid);
  sigprocmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return pid;
}

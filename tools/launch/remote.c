/* tools/launch/remote.c: `tenon launch-remote`: the launcher's part on another host, started there by ssh. It
 * starts the processes of the host, passes on the signals that come by stdin, and reports on stdout
 * (frame.h). Where stdin ends, the launcher or the connection has gone: the processes get SIGTERM, and
 * SIGKILL later. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch/launch.h"
#include "tools/cli/clock.h"

enum { LOOK_MS = 100, FIRST_PATIENCE = 5, PARTS = 16 };

typedef struct remote_process {
  pid_t pid;
  int outputs[2]; /* read ends of its stdout and stderr; one pipe but for process 0 */
  bool ended, reported;
  bool asked; /* it has got a signal that stops a training; a second one would end it without a checkpoint */
  int status;
} remote_process;

typedef struct remote {
  frame_reader frames;
  char *argv[LAUNCH_WORDS + 1], *variables[64 + 1];
  int n_argv, n_variables;
  int first, n, seconds;
  remote_process *processes;
  struct pollfd *polls;
  bool started;
  bool gone; /* the launcher */
  double gone_s;
  bool full; /* stdout takes nothing now */
} remote;

/* ---- stdout ---- */

static bool remote_may_write(remote *r) {
  struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
  r->full = !r->gone && poll(&ready, 1, 0) == 0;
  return !r->full;
}

static void remote_go(remote *r) {
  if (!r->gone) r->gone_s = cli_clock_s();
  r->gone = true;
}

static void remote_report(remote *r, char kind, int process, const void *bytes, size_t n) {
  if (!r->gone && !frame_write(STDOUT_FILENO, kind, process, bytes, n)) remote_go(r);
}

static void remote_report_number(remote *r, char kind, int process, int number) {
  char text[16];
  remote_report(r, kind, process, text, (size_t)snprintf(text, sizeof text, "%d", number) + 1);
}

/* ---- starting ---- */

/* Process 0 of the training has two pipes. */
static bool remote_open_pipes(remote_process *p, bool two, int ends[2]) {
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  bool opened = launch_pipe(out, 0) && (!two || launch_pipe(err, 0));
  p->outputs[0] = out[0];
  p->outputs[1] = err[0];
  ends[0] = out[1];
  ends[1] = two ? err[1] : out[1];
  return opened;
}

static void remote_start_one(remote *r, int i) {
  remote_process *p = &r->processes[i];
  int ends[2] = {-1, -1};
  bool two = r->first + i == 0, opened = remote_open_pipes(p, two, ends);
  launch_start start = {.argv = (const char *const *)(const void *)r->argv,
                        .variables = (const char *const *)(const void *)r->variables,
                        .number = r->first + i,
                        .local = i,
                        .in = -1,
                        .out = ends[0],
                        .err = ends[1]};
  p->pid = opened ? launch_fork(&start) : -1;
  if (p->pid < 0)
    fprintf(stderr, "tenon: process %d: %s%s\n", r->first + i, strerror(errno), launch_remedy(errno));
  if (two && ends[1] >= 0) close(ends[1]);
  if (ends[0] >= 0) close(ends[0]);
  p->ended = p->pid < 0;
  p->status = CLI_UNAVAILABLE << 8;
  if (p->pid > 0) remote_report_number(r, FRAME_PID, i, (int)p->pid);
}

static bool remote_start(remote *r, const char *text) {
  bool read = sscanf(text, "%d %d %d", &r->first, &r->n, &r->seconds) == 3 && !r->started && r->n_argv > 0 &&
              r->first >= 0 && r->n > 0 && r->n <= LAUNCH_MOST;
  if (!read) return false;
  r->processes = calloc((size_t)r->n, sizeof *r->processes);
  r->polls = calloc(2 * (size_t)r->n + 2, sizeof *r->polls);
  if (r->processes == NULL || r->polls == NULL) return false;
  r->started = true;
  for (int i = 0; i < r->n; i++) remote_start_one(r, i);
  return true;
}

/* ---- frames of the launcher ---- */

static bool remote_enter(const char *folder) {
  if (chdir(folder) == 0) return setenv("PWD", folder, 1) == 0;
  fprintf(stderr, "tenon: the folder %s is not on this host: %s\n", folder, strerror(errno));
  return false;
}

static bool remote_keep(char **list, int *n, int most, const char *text) {
  if (*n == most || (list[*n] = strdup(text)) == NULL) return false;
  list[++*n] = NULL;
  return true;
}

static void remote_signal_one(remote_process *p, int number) {
  if (p->ended || p->pid <= 0) return;
  p->asked = true;
  kill(number == SIGKILL ? -p->pid : p->pid, number);
}

static bool remote_signal(remote *r, int process, int number) {
  if (number == 0 || !r->started || (process != FRAME_ALL && process >= r->n)) return false;
  for (int i = 0; i < r->n; i++)
    if (process == FRAME_ALL || process == i) remote_signal_one(&r->processes[i], number);
  return true;
}

static bool remote_take(remote *r, const frame *f) {
  const char *text = frame_text(f);
  switch (f->kind) {
  case FRAME_FOLDER: return remote_enter(text);
  case FRAME_VARIABLE: return remote_keep(r->variables, &r->n_variables, 64, text);
  case FRAME_ARGUMENT: return remote_keep(r->argv, &r->n_argv, LAUNCH_WORDS, text);
  case FRAME_START: return remote_start(r, text);
  case FRAME_SIGNAL: return remote_signal(r, f->process, frame_signal_number(text));
  default: return false;
  }
}

/* False: the job cannot be started, or the frames make no sense. */
static bool remote_read(remote *r) {
  frame f;
  int found = 0;
  bool taken = true;
  ssize_t n = frame_fill(&r->frames, STDIN_FILENO);
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) remote_go(r);
  while (taken && (found = frame_next(&r->frames, &f)) == 1) taken = remote_take(r, &f);
  return taken && found == 0;
}

/* ---- the processes ---- */

/* Some of the bytes that have come; closes the end where there are no more. */
static void remote_pass_output(remote *r, int i, int k) {
  remote_process *p = &r->processes[i];
  char bytes[FRAME_OUTPUT];
  ssize_t n = 1;
  errno = 0;
  for (int part = 0; part < PARTS && n > 0 && p->outputs[k] >= 0 && remote_may_write(r); part++) {
    n = read(p->outputs[k], bytes, sizeof bytes);
    if (n > 0)
      remote_report(r, r->first + i == 0 && k == 0 ? FRAME_STDOUT : FRAME_STDERR, i, bytes, (size_t)n);
  }
  bool nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
  if (p->outputs[k] < 0 || n > 0 || (nothing && !p->ended)) return;
  close(p->outputs[k]);
  p->outputs[k] = -1;
}

static void remote_reap(remote *r, int i) {
  remote_process *p = &r->processes[i];
  int status = 0;
  while (!p->ended && remote_may_write(r) &&
         waitpid(p->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == p->pid) {
    p->ended = WIFEXITED(status) || WIFSIGNALED(status);
    if (p->ended)
      p->status = status;
    else
      remote_report(r, WIFSTOPPED(status) ? FRAME_STOPPED : FRAME_CONTINUED, i, NULL, 0);
  }
}

/* Behind the last output. */
static void remote_report_end(remote *r, int i) {
  remote_process *p = &r->processes[i];
  if (!p->ended || p->reported || p->outputs[0] >= 0 || p->outputs[1] >= 0 || !remote_may_write(r)) return;
  if (WIFEXITED(p->status))
    remote_report_number(r, FRAME_EXITED, i, WEXITSTATUS(p->status));
  else
    remote_report_number(r, FRAME_KILLED, i, WTERMSIG(p->status));
  p->reported = true;
}

/* The launcher has gone. Process 0 may be writing a checkpoint. */
static void remote_end_orphan(remote *r, int i) {
  remote_process *p = &r->processes[i];
  int patience = r->first + i == 0 ? FIRST_PATIENCE * r->seconds : r->seconds;
  if (!p->asked) remote_signal_one(p, SIGTERM);
  if (cli_clock_s() - r->gone_s > patience) remote_signal_one(p, SIGKILL);
}

/* ---- the loop ---- */

static void remote_wait(remote *r) {
  nfds_t n = 0;
  if (!r->gone) r->polls[n++] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
  if (r->full) r->polls[n++] = (struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT};
  for (int i = 0; i < r->n && !r->full; i++)
    for (int k = 0; k < 2; k++)
      if (r->processes[i].outputs[k] >= 0)
        r->polls[n++] = (struct pollfd){.fd = r->processes[i].outputs[k], .events = POLLIN};
  poll(r->polls, n, LOOK_MS);
  if (r->gone || (r->polls[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
  if (!remote_read(r)) remote_go(r);
}

static bool remote_look(remote *r) {
  bool runs = false;
  for (int i = 0; i < r->n; i++) {
    remote_reap(r, i);
    for (int k = 0; k < 2; k++) remote_pass_output(r, i, k);
    remote_report_end(r, i);
    if (r->gone) remote_end_orphan(r, i);
    runs = runs || !r->processes[i].reported;
  }
  return runs;
}

int launch_serve(void) {
  static remote r;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  launch_allow_files();
  printf(FRAME_GREETING "%s\n", tn_version());
  fflush(stdout);
  while (!r.started && !r.gone)
    if (!remote_read(&r)) return CLI_UNAVAILABLE;
  while (remote_look(&r)) remote_wait(&r);
  free(r.processes);
  free(r.polls);
  for (int i = 0; i < r.n_argv; i++) free(r.argv[i]);
  for (int i = 0; i < r.n_variables; i++) free(r.variables[i]);
  return CLI_OK;
}

/* tools/launch/follow.c: waits for the processes of an attempt. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/launch/launch.h"
#include "tools/cli/clock.h"

/* Processes notice a failure at once where they are connected, and miss one that is stopped after 20 s. Those
 * that still wait for each other at the start notice nothing, so they are asked to end.
 *
 * Process 0 may be writing a checkpoint, so it gets KILL_FIRST_S; where it does not write one, its own watch
 * ends it earlier (core/distributed/ranks/watch.c). */
enum {
  NOTICE_S = 4,
  NOTICE_STOP_S = 10,
  KILL_S = 25,
  KILL_FIRST_S = 300,
  STOPPED_S = 21,
  AWAY_S = 5,
  LOOK_MS = 100
};

/* ssh is killed where a process of another host has not ended so long after SIGKILL. */
enum { KILL_SSH_S = 5 };

/* Only SIGKILL goes to the whole group: a training asks its own children to end. */
static void follow_send_one(launch *l, int i, int number) {
  launch_process *p = &l->processes[i];
  if (p->ended) return;
  if (number == SIGKILL && p->killed_s == 0) p->killed_s = cli_clock_s();
  if (p->host->name[0] != '\0')
    launch_signal_remote(l, i, number);
  else if (p->pid > 0)
    kill(number == SIGKILL ? -p->pid : p->pid, number);
}

void launch_send(launch *l, int number) {
  for (int i = 0; i < l->n; i++) follow_send_one(l, i, number);
}

/* "process 2 (id 8124 on host b)"; the id is that of its host. */
static void follow_tell(const launch *l, int i, const char *what) {
  const launch_process *p = &l->processes[i];
  char id[32] = "not known";
  if (p->pid > 0) snprintf(id, sizeof id, "%lld", (long long)p->pid);
  fprintf(stderr, "tenon: process %d (id %s%s%s) %s\n", i, id, p->host->name[0] ? " on host " : "",
          p->host->name, what);
}

/* ---- news of a process ---- */

static void follow_tell_signal(const launch *l, int i, int number) {
  char text[128];
  snprintf(text, sizeof text, "%s by signal %d (%s)",
           l->urged ? "has not ended by itself, and was ended" : "was ended", number, strsignal(number));
  follow_tell(l, i, text);
}

enum { BY_SIGNAL = 128 }; /* exit codes of shells and of ssh from here on: their program ended by a signal */

/* 75 of a process that the launcher has asked after a failure is no stop. A signal that came before the
 * process had a handler for it is one, if all processes got it. */
static int follow_code(const launch *l, int status) {
  int code = WIFEXITED(status) && WEXITSTATUS(status) < BY_SIGNAL ? WEXITSTATUS(status) : CLI_COMM;
  if (WIFSIGNALED(status) && l->stopped && WTERMSIG(status) == l->passed) code = CLI_STOPPED;
  return code == CLI_STOPPED && l->urged ? CLI_COMM : code;
}

static void follow_pass_output(launch *l, int i, bool last) {
  char label[16];
  snprintf(label, sizeof label, "%d", i);
  launch_pass_lines(&l->processes[i].output, label, last);
}

/* A process that the launcher has asked to end is not told as one that has failed. */
static void follow_end_of(launch *l, int i, int status) {
  launch_process *p = &l->processes[i];
  p->ended = true;
  p->code = follow_code(l, status);
  follow_pass_output(l, i, true);
  if (!WIFSIGNALED(status) || p->code == CLI_STOPPED) return;
  if (!l->urged && l->crashed[0] == '\0')
    snprintf(l->crashed, sizeof l->crashed, "%s", p->host->name[0] != '\0' ? p->host->name : "localhost");
  if (!l->urged || WTERMSIG(status) != SIGTERM) follow_tell_signal(l, i, WTERMSIG(status));
}

static void follow_set_stopped(launch_process *p, bool stopped) {
  if (!stopped)
    p->stopped_s = 0;
  else if (p->stopped_s == 0)
    p->stopped_s = cli_clock_s();
}

static void follow_reap_remote(launch *l, int i) {
  launch_process *p = &l->processes[i];
  follow_set_stopped(p, p->remote_stopped && p->killed_s == 0);
  if (!p->ended && p->remote_ended) follow_end_of(l, i, p->remote_status);
}

static void follow_reap(launch *l, int i) {
  launch_process *p = &l->processes[i];
  int status = 0;
  pid_t found = 0;
  while (!p->ended && (found = waitpid(p->pid, &status, WNOHANG | WUNTRACED | WCONTINUED)) == p->pid) {
    if (WIFSTOPPED(status) || WIFCONTINUED(status))
      follow_set_stopped(p, WIFSTOPPED(status));
    else
      follow_end_of(l, i, status);
  }
  if (found < 0 && errno == ECHILD && !p->ended) follow_end_of(l, i, CLI_COMM << 8);
}

static nfds_t follow_add_poll(launch *l, nfds_t n, int fd) {
  if (fd >= 0) l->polls[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
  return n;
}

static void follow_look(launch *l) {
  nfds_t n = 0;
  for (int i = 0; i < l->n; i++) n = follow_add_poll(l, n, l->processes[i].output.fd);
  for (int h = 0; h < l->n_hosts; h++) {
    n = follow_add_poll(l, n, l->hosts[h].from);
    n = follow_add_poll(l, n, l->hosts[h].said.fd);
  }
  poll(l->polls, n, LOOK_MS);
  for (int h = 0; h < l->n_hosts; h++) launch_hear(l, &l->hosts[h]);
  for (int i = 0; i < l->n; i++) {
    if (l->processes[i].host->name[0] != '\0') {
      follow_reap_remote(l, i);
      continue;
    }
    follow_pass_output(l, i, false);
    follow_reap(l, i);
  }
}

static int follow_count(const launch *l, bool (*is)(const launch_process *p)) {
  int n = 0;
  for (int i = 0; i < l->n; i++) n += is(&l->processes[i]);
  return n;
}

static bool follow_runs(const launch_process *p) { return !p->ended; }

static bool follow_is_stopped(const launch_process *p) { return !p->ended && p->stopped_s > 0; }

static bool follow_has_ended_early(const launch_process *p) { return p->ended && p->code == CLI_STOPPED; }

static bool follow_has_failed(const launch_process *p) {
  return p->ended && p->code != CLI_STOPPED && p->code != CLI_OK;
}

/* ---- processes that go on ---- */

typedef struct follower {
  launch *l;
  double now_s, looked_s;
  double ended_s; /* when a process had failed or stopped, and others went on; 0: none has */
  bool asked;
} follower;

/* A process that is stopped does not end by itself: not when the others have ended after a failure, and not
 * when they have missed it. A single one keeps none waiting. */
static void follow_end_stopped(const follower *f) {
  const launch *l = f->l;
  bool alone = l->failed && follow_count(l, follow_runs) == follow_count(l, follow_is_stopped);
  for (int i = 0; i < l->n; i++) {
    launch_process *p = &l->processes[i];
    if (l->n == 1 || !follow_is_stopped(p) || (!alone && f->now_s - p->stopped_s < STOPPED_S)) continue;
    follow_tell(l, i, "is stopped, as by SIGSTOP, and does not go on; it is killed");
    p->stopped_s = 0;
    follow_send_one(f->l, i, SIGKILL);
  }
}

/* Those that go on although they were asked to end, and ssh's that do not report the end of a killed one. */
static void follow_kill(const follower *f) {
  launch *l = f->l;
  for (int i = 0; i < l->n; i++) {
    launch_process *p = &l->processes[i];
    if (p->ended) continue;
    if (p->killed_s == 0 && f->ended_s > 0 && f->now_s - f->ended_s > (i == 0 ? KILL_FIRST_S : KILL_S))
      follow_send_one(l, i, SIGKILL);
    if (p->killed_s > 0 && f->now_s - p->killed_s > KILL_SSH_S) launch_dismiss(p->host, SIGKILL, CLI_COMM);
  }
}

/* SIGTERM ends a process that waits for others at the start; elsewhere it does no harm in a run that has
 * failed. Where the launcher has passed on a signal it is not sent: a second one would end a process that
 * writes a checkpoint. */
static void follow_urge(follower *f) {
  launch *l = f->l;
  double seconds = f->now_s - f->ended_s;
  if (!f->asked && seconds > (l->failed ? NOTICE_S : NOTICE_STOP_S)) {
    if (!l->stopped) launch_send(l, SIGTERM);
    f->asked = true;
    l->urged = l->failed;
  }
}

/* A launcher that was stopped itself, as by a scheduler that suspends a job, counts no time from before. */
static void follow_forget_times(follower *f) {
  for (int i = 0; i < f->l->n; i++)
    if (f->l->processes[i].stopped_s > 0) f->l->processes[i].stopped_s = f->now_s;
  if (f->ended_s > 0) f->ended_s = f->now_s;
}

static void follow_check(follower *f) {
  launch *l = f->l;
  f->now_s = cli_clock_s();
  if (f->now_s - f->looked_s > AWAY_S) follow_forget_times(f);
  f->looked_s = f->now_s;
  bool stopped = follow_count(l, follow_has_ended_early) > 0;
  l->failed = l->failed || (!stopped && follow_count(l, follow_has_failed) > 0);
  if (f->ended_s == 0 && (l->failed || stopped)) f->ended_s = f->now_s;
  follow_end_stopped(f);
  if (f->ended_s > 0) follow_urge(f);
  follow_kill(f);
}

void launch_follow(launch *l, volatile sig_atomic_t *asked) {
  follower f = {.l = l, .looked_s = cli_clock_s()};
  l->failed = l->urged = false;
  l->crashed[0] = '\0';
  while (follow_count(l, follow_runs) > 0) {
    follow_look(l);
    if (*asked != 0) {
      l->passed = *asked;
      *asked = 0;
      l->stopped = true;
      launch_send(l, l->passed);
    }
    follow_check(&f);
  }
  for (int h = 0; h < l->n_hosts; h++) launch_close(l, &l->hosts[h]);
}

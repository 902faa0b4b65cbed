/* tools/launch/follow.c: waits for the processes of an attempt. */
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/launch/launch.h"

/* Processes notice a failure at once where they are connected, and miss one that is stopped after 20 s. Those
 * that still wait for each other at the start notice nothing, so they are asked to end. */
enum { NOTICE_S = 4, NOTICE_STOP_S = 10, KILL_S = 25, STOPPED_S = 21, AWAY_S = 5, LOOK_MS = 100 };

void launch_send(const launch *l, int number) {
  for (int i = 0; i < l->n; i++)
    if (!l->processes[i].ended) kill(l->processes[i].pid, number);
}

static double follow_clock_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "process 2 (id 8124 on host b)" */
static void follow_tell(const launch *l, int i, const char *what) {
  const launch_process *p = &l->processes[i];
  fprintf(stderr, "tenon: process %d (id %lld%s%s) %s\n", i, (long long)p->pid,
          p->host->name[0] ? " on host " : "", p->host->name, what);
}

/* ---- news of a process ---- */

static void follow_tell_signal(const launch *l, int i, int number) {
  char text[128];
  snprintf(text, sizeof text, "%s by signal %d (%s)",
           l->urged ? "has not ended by itself, and was ended" : "was ended", number, strsignal(number));
  follow_tell(l, i, text);
}

/* 75 of a process that the launcher has asked after a failure is no stop. A signal that came before the
 * process had a handler for it is one, if all processes got it. */
static int follow_code(const launch *l, int status) {
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_COMM;
  if (WIFSIGNALED(status) && l->stopped && WTERMSIG(status) == l->passed) code = CLI_STOPPED;
  return code == CLI_STOPPED && l->urged ? CLI_COMM : code;
}

/* A process that the launcher has asked to end is not told as one that has failed. */
static void follow_end_of(launch *l, int i, int status) {
  launch_process *p = &l->processes[i];
  p->ended = true;
  p->code = follow_code(l, status);
  launch_pass_output(l, i, true);
  if (!WIFSIGNALED(status) || p->code == CLI_STOPPED) return;
  if (!l->urged || WTERMSIG(status) != SIGTERM) follow_tell_signal(l, i, WTERMSIG(status));
}

static void follow_reap(launch *l, int i) {
  launch_process *p = &l->processes[i];
  int status;
  while (!p->ended && waitpid(p->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == p->pid) {
    if (WIFSTOPPED(status))
      p->stopped_s = follow_clock_s();
    else if (WIFCONTINUED(status))
      p->stopped_s = 0;
    else
      follow_end_of(l, i, status);
  }
}

static void follow_look(launch *l) {
  nfds_t n = 0;
  for (int i = 0; i < l->n; i++)
    if (l->processes[i].output >= 0)
      l->polls[n++] = (struct pollfd){.fd = l->processes[i].output, .events = POLLIN};
  poll(l->polls, n, LOOK_MS);
  for (int i = 0; i < l->n; i++) launch_pass_output(l, i, false);
  for (int i = 0; i < l->n; i++) follow_reap(l, i);
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
  bool asked, killed;
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
    kill(p->pid, SIGKILL);
  }
}

/* SIGTERM ends a process that waits for others at the start; elsewhere it does no harm in a run that has
 * failed. */
static void follow_urge(follower *f) {
  launch *l = f->l;
  double seconds = f->now_s - f->ended_s;
  if (!f->asked && seconds > (l->failed ? NOTICE_S : NOTICE_STOP_S)) {
    launch_send(l, SIGTERM);
    f->asked = true;
    l->urged = l->failed;
  }
  if (!f->killed && seconds > KILL_S) {
    launch_send(l, SIGKILL);
    f->killed = true;
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
  f->now_s = follow_clock_s();
  if (f->now_s - f->looked_s > AWAY_S) follow_forget_times(f);
  f->looked_s = f->now_s;
  bool stopped = follow_count(l, follow_has_ended_early) > 0;
  l->failed = l->failed || (!stopped && follow_count(l, follow_has_failed) > 0);
  if (f->ended_s == 0 && (l->failed || stopped)) f->ended_s = f->now_s;
  follow_end_stopped(f);
  if (f->ended_s > 0) follow_urge(f);
}

void launch_follow(launch *l, volatile sig_atomic_t *asked) {
  follower f = {.l = l, .looked_s = follow_clock_s()};
  l->failed = l->urged = false;
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
}

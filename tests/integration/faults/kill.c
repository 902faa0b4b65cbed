/* kill TENON [SIGNALS [SEED [BACKEND]]]: trains, sends signals to the program at moments drawn from the seed
 * and resumes it, until the training is complete. Half of the signals are SIGKILL, the others SIGINT, SIGTERM
 * or SIGHUP, some of them twice in a row. Compares the result with an uninterrupted training: weights,
 * moments, best weights, and the lines of both metric files. Most kills interrupt the writing of a
 * checkpoint. Workers and threads change with every process. */
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { STOPPED = 75 }; /* the exit code of a training that a signal stopped, after it has saved */

typedef struct tally {
  int signals, kills, in_writing, trainings;
} tally;

/* Waits for the process. Returns whether its training is complete: it is not after the signal `sent` (0:
 * none), which ends the process where no handler is installed yet. Any other end is fatal. */
static int completed(pid_t child, int sent) {
  int status;
  size_t n;
  if (waitpid(child, &status, 0) != child) victim_die("waitpid: %s", strerror(errno));
  if (sent && WIFSIGNALED(status) && WTERMSIG(status) == sent) return 0;
  if (sent && WIFEXITED(status) && WEXITSTATUS(status) == STOPPED) return 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    victim_die("status %d: %s", status, victim_read_file(victim_stderr(0), &n));
  return 1;
}

/* Whether a kill interrupted the writing or the removal of a checkpoint. */
static int was_writing(const char *output) {
  static const char *const names[] = {"last", "best"};
  for (int i = 0; i < 2; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/victim/checkpoints/%s.new", output, names[i]);
    if (victim_file_exists(path)) return 1;
  }
  return 0;
}

/* Sends a signal at a moment within `span_s`, and one time in four a second one while the first is handled.
 */
static int interrupt(pid_t child, double span_s) {
  static const int signals[] = {SIGKILL, SIGKILL, SIGKILL, SIGINT, SIGTERM, SIGHUP};
  int sent = signals[victim_draw() % 6];
  victim_sleep_s(span_s * (double)(victim_draw() % 10000) / 10000.0);
  kill(child, sent);
  if (sent != SIGKILL && victim_draw() % 4 == 0) {
    victim_sleep_s(0.01 * (double)(victim_draw() % 1000) / 1000.0);
    kill(child, sent);
  }
  return sent;
}

/* One training from start to end, interrupted until `most` signals have been sent in all. */
static void train(const char *output, double span_s, int most, tally *t) {
  for (;;) {
    pid_t child = victim_start(output, (int)(victim_draw() % 6), 0);
    int sent = t->signals < most ? interrupt(child, span_s) : 0;
    if (completed(child, sent)) break;
    t->signals++;
    t->kills += sent == SIGKILL;
    t->in_writing += sent == SIGKILL && was_writing(output);
  }
  t->trainings++;
}

int main(int argc, char **argv) {
  char path[256], output[32];
  tally t = {0};
  if (argc < 2) return 2;
  int most = argc > 2 ? atoi(argv[2]) : 300;
  const char *backend = argc > 4 ? argv[4] : "auto";
  victim_set_up("kill", argv[1], argc > 3 ? strtoull(argv[3], NULL, 10) : 1, backend);
  double whole_s = victim_train_whole();
  while (t.signals < most) {
    snprintf(output, sizeof output, "run%d", t.trainings);
    train(output, 0.8 * whole_s, most, &t);
    victim_run_folder(0, path, sizeof path);
    victim_compare(path, "whole/victim");
    victim_remove(output);
  }
  if (most >= 50 && 2 * t.in_writing <= t.kills)
    victim_die("only %d of %d kills fell into writing a checkpoint", t.in_writing, t.kills);
  victim_tear_down();
  printf(
      "case ok: %s: %d SIGKILL (%d while a checkpoint was written) and %d other signals in %d trainings of "
      "%.2f s, bits as without\n",
      backend, t.kills, t.in_writing, t.signals - t.kills, t.trainings, whole_s);
  return 0;
}

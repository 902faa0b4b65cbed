/* pair TENON [PAIRS [SEED [BACKEND]]]: starts two trainings in one run folder at a time, and kills one of
 * them at a moment drawn from the seed in half of the pairs, until the training is complete. One process
 * trains; the other says which process holds the folder, and changes nothing. Compares the result with that
 * of a process that was alone. */
#include "victim.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { UNAVAILABLE = 69 }; /* the exit code of a training whose folder another process holds */

typedef struct tally {
  int pairs, refused, killed, trainings;
} tally;

/* Counts the end of a process. Returns whether it completed the training. */
static int completed(int place, int status, tally *t) {
  size_t n;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 1;
  char *text = victim_read_file(victim_stderr(place), &n);
  int refused =
      WIFEXITED(status) && WEXITSTATUS(status) == UNAVAILABLE && strstr(text, "is in use by ") != NULL;
  int killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (!refused && !killed) victim_die("status %d: %s", status, text);
  t->refused += refused;
  t->killed += killed;
  free(text);
  return 0;
}

/* Returns the place of a process that completed the training, or -1. */
static int train_pair(const char *output, double span_s, int kill_one, tally *t) {
  pid_t child[2];
  int status, complete = -1;
  for (int i = 0; i < 2; i++) {
    child[i] = victim_start(output, (int)(victim_draw() % 6), i);
    if (i == 0 && victim_draw() % 2) victim_sleep_s(span_s * (double)(victim_draw() % 100) / 100.0);
  }
  if (kill_one) {
    victim_sleep_s(span_s * (double)(victim_draw() % 10000) / 10000.0);
    kill(child[victim_draw() % 2], SIGKILL);
  }
  for (int i = 0; i < 2; i++) {
    if (waitpid(child[i], &status, 0) != child[i]) victim_die("waitpid: %s", strerror(errno));
    if (completed(i, status, t)) complete = i;
  }
  t->pairs++;
  return complete;
}

/* Two processes make one run, never a second beside it. */
static void expect_one_run(const char *output) {
  DIR *folder = opendir(output);
  if (folder == NULL) victim_die("%s: %s", output, strerror(errno));
  for (struct dirent *e; (e = readdir(folder)) != NULL;)
    if (e->d_name[0] != '.' && strcmp(e->d_name, "victim") != 0)
      victim_die("%s/%s was made", output, e->d_name);
  closedir(folder);
}

int main(int argc, char **argv) {
  char path[256], output[32];
  tally t = {0};
  if (argc < 2) return 2;
  int most = argc > 2 ? atoi(argv[2]) : 100;
  const char *backend = argc > 4 ? argv[4] : "auto";
  victim_set_up("pair", argv[1], argc > 3 ? strtoull(argv[3], NULL, 10) : 1, backend);
  double whole_s = victim_train_whole();
  while (t.pairs < most) {
    int place;
    snprintf(output, sizeof output, "run%d", t.trainings);
    do place = train_pair(output, 0.8 * whole_s, t.pairs < most && victim_draw() % 2, &t);
    while (place < 0);
    expect_one_run(output);
    victim_run_folder(place, path, sizeof path);
    victim_compare(path, "whole/victim");
    victim_remove(output);
    t.trainings++;
  }
  if (t.refused == 0) victim_die("no process of %d pairs was refused", t.pairs);
  victim_tear_down();
  printf("case ok: %s: %d pairs, %d processes refused, %d killed, in %d trainings, bits as alone\n", backend,
         t.pairs, t.refused, t.killed, t.trainings);
  return 0;
}

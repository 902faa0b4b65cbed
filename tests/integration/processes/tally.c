/* tests/integration/processes/tally.c: see tally.h. */
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const kinds[KINDS] = {
    "SIGKILL to one process",
    "SIGKILL to two at once",
    "SIGSTOP to one, SIGKILL to another within 2 s",
    "SIGSTOP to one process",
    "SIGSTOP to one, SIGCONT after 23 to 27 s",
    "a thread of one process hangs",
    "SIGSTOP to one, SIGCONT after 0.05 to 15 s",
    "SIGTERM to one process",
    "SIGUSR1 to one process",
    "SIGTERM to the launcher",
    "SIGKILL to the launcher",
};

const char *tally_kind(int kind) { return kinds[kind]; }

static int tally_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* "0.31 / 2.40": the median and the largest; "-" where nothing was measured. */
static void tally_times(double *seconds, int n, char text[32]) {
  snprintf(text, 32, "-");
  if (n == 0) return;
  qsort(seconds, (size_t)n, sizeof *seconds, tally_order);
  snprintf(text, 32, "%.2f / %.2f", seconds[n / 2], seconds[n - 1]);
}

static int tally_count_misses(const tally *t, int kind, int miss) {
  int n = 0;
  for (int i = 0; i < t->n; i++) n += t->all[i].kind == kind && (t->all[i].misses & miss) != 0;
  return n;
}

static void tally_print_kind(const tally *t, int kind, double *seconds) {
  int n = 0, phases[PHASES] = {0}, named = 0, ended = 0;
  char name_s[32], end_s[32];
  for (int i = 0; i < t->n; i++) {
    if (t->all[i].kind != kind) continue;
    n++;
    phases[t->all[i].phase]++;
    if (t->all[i].named_s >= 0) seconds[named++] = t->all[i].named_s;
  }
  if (n == 0) return;
  tally_times(seconds, named, name_s);
  for (int i = 0; i < t->n; i++)
    if (t->all[i].kind == kind && t->all[i].ended_s >= 0) seconds[ended++] = t->all[i].ended_s;
  tally_times(seconds, ended, end_s);
  printf("| %s | %d | %d, %d, %d, %d | %s | %s | %d | %d | %d | %d |\n", kinds[kind], n, phases[AT_START],
         phases[AT_TRAINING], phases[AT_WRITING], phases[AT_END], name_s, end_s,
         tally_count_misses(t, kind, UNNAMED), tally_count_misses(t, kind, WRONG_NAME | ENDED),
         tally_count_misses(t, kind, SLOW), tally_count_misses(t, kind, WRONG_CODE));
}

int tally_print(tally *t) {
  double *seconds = malloc(sizeof *seconds * (size_t)(t->n + 1));
  int misses = t->unequal, mpi = 0, hangs = 0, complaints = 0;
  if (seconds == NULL) return 1;
  printf("| | count | at the start, in training, in writing, at the end | s until named | s until all have "
         "ended | not named | wrong names | longer than 30 s | wrong exit codes |\n");
  printf("|---|---|---|---|---|---|---|---|---|\n");
  for (int kind = 0; kind < KINDS; kind++) tally_print_kind(t, kind, seconds);
  for (int i = 0; i < t->n; i++) {
    misses += (t->all[i].misses & ~(MPIRUN_HANGS | MPIRUN_COMPLAINS)) != 0;
    hangs += (t->all[i].misses & MPIRUN_HANGS) != 0;
    complaints += (t->all[i].misses & MPIRUN_COMPLAINS) != 0;
    mpi += t->all[i].mpi;
  }
  printf("%d disturbances (%d of them under mpirun) in %d trainings that were started %d times; %d ends "
         "with other bits or metrics\n",
         t->n, mpi, t->trainings, t->starts, t->unequal);
  if (hangs > 0)
    printf("mpirun itself hung %d times for 30 s, with no process left but the disturbed one\n", hangs);
  if (complaints > 0)
    printf("mpirun itself ended with an error %d times, since a process was stopped behind the end of the "
           "training\n",
           complaints);
  free(seconds);
  return misses;
}

/* tests/bench/weights.c: milliseconds (of the clock, and of the processor) of opening a session for inference
 * and of its weights, in rounds, each with the model's own values, with weights that have no record beside
 * them, and with those of a checkpoint, which are compared with their checksum. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tenon/session.h"

enum { WAYS = 3, MOST_ROUNDS = 1000 };

/* The second does not count the time that other processes take. */
enum { OF_CLOCK, OF_PROCESSOR, CLOCKS };

static double clock_ms(int which) {
  struct timespec t;
  clock_gettime(which == OF_CLOCK ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

static int measure(tn_run *run, const char *weights, double ms[CLOCKS][MOST_ROUNDS], int round) {
  tn_session *session;
  const tn_session_options options = {.struct_size = sizeof options, .infer = 1, .weights = weights};
  double start[CLOCKS] = {clock_ms(OF_CLOCK), clock_ms(OF_PROCESSOR)};
  if (tn_session_open(run, &options, &session) != TN_OK) return fail(run);
  for (int c = 0; c < CLOCKS; c++) ms[c][round] = clock_ms(c) - start[c];
  tn_session_close(session);
  return 0;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(double ms[WAYS][CLOCKS][MOST_ROUNDS], int clock, int rounds) {
  static const char *const names[WAYS] = {"no weights", "without a record", "compared"};
  printf("milliseconds of the %s, the smallest of %d rounds (median):\n",
         clock == OF_CLOCK ? "clock" : "processor", rounds);
  for (int w = 0; w < WAYS; w++) {
    qsort(ms[w][clock], (size_t)rounds, sizeof(double), compare);
    printf("  %-17s %7.1f to open a session (%.1f)\n", names[w], ms[w][clock][0], ms[w][clock][rounds / 2]);
  }
  double none = ms[0][clock][0], plain = ms[1][clock][0], compared = ms[2][clock][0];
  printf("  weights alone: %.1f, compared %.1f, ratio %.3f; of the whole opening %.3f\n", plain - none,
         compared - none, (compared - none) / (plain - none), compared / plain);
}

int main(int argc, char **argv) {
  static double ms[WAYS][CLOCKS][MOST_ROUNDS];
  tn_context *context;
  tn_run *run;
  int rounds = argc == 5 ? atoi(argv[4]) : 0;
  if (rounds < 1 || rounds > MOST_ROUNDS) {
    fprintf(stderr, "usage: bench_weights INI WITHOUT_RECORD COMPARED ROUNDS\n");
    return 2;
  }
  const char *const weights[WAYS] = {"", argv[2], argv[3]};
  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_run_open(context, argv[1], NULL, &run) != TN_OK) return fail(context);
  for (int i = 0; i < rounds; i++)
    for (int w = 0; w < WAYS; w++)
      if (measure(run, weights[w], ms[w], i) != 0) return 1;
  for (int c = 0; c < CLOCKS; c++) print(ms, c, rounds);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}

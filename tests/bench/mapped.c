/* tests/bench/mapped.c: a process that opens a session on weights, for mapped.sh:
 *   save INI FILE           writes the weights that the configuration initializes
 *   time INI BACKEND MAP    prints the milliseconds from tn_session_open to its return
 *   predict INI BACKEND MAP prints the output for one sample
 *   hold INI BACKEND MAP    predicts once, prints "ready", and waits for the end of its input */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tenon/session.h"

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void check(tn_status status, const void *handle) {
  if (status == TN_OK) return;
  fprintf(stderr, "mapped: %s\n", tn_error_text(handle));
  exit(1);
}

static void predict(tn_session *session, float out[1000]) {
  int32_t tokens[16];
  for (int i = 0; i < 16; i++) tokens[i] = 15000 * i + 7;
  check(tn_session_bind(session, "tokens", tokens, sizeof tokens), session);
  check(tn_session_bind(session, "output", out, 1000 * sizeof *out), session);
  check(tn_session_infer(session, 1), session);
}

int main(int argc, char **argv) {
  char use[64], map[64];
  const char *set[] = {use, map};
  float out[1000];
  if (argc < 4) return 2;
  int saves = strcmp(argv[1], "save") == 0;
  snprintf(use, sizeof use, "backend.use=%s", saves ? "cpu" : argv[3]);
  snprintf(map, sizeof map, "weights.map=%s", saves || argc < 5 ? "no" : argv[4]);
  tn_context *context = NULL;
  tn_run *run = NULL;
  tn_session *session = NULL;
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 2};
  const tn_session_options wanted = {.struct_size = sizeof wanted, .infer = 1, .weights = saves ? "" : NULL};
  if (tn_context_open(NULL, &context) != TN_OK) return 1;
  check(tn_run_open(context, argv[2], &options, &run), context);
  double start = now_ms();
  check(tn_session_open(run, &wanted, &session), run);
  if (strcmp(argv[1], "time") == 0) printf("%.1f\n", now_ms() - start);
  if (saves) check(tn_session_save(session, argv[3]), session);
  if (strcmp(argv[1], "predict") == 0 || strcmp(argv[1], "hold") == 0) predict(session, out);
  if (strcmp(argv[1], "predict") == 0)
    for (int i = 0; i < 1000; i++) printf("%a\n", (double)out[i]);
  if (strcmp(argv[1], "hold") == 0) {
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF) continue;
  }
  tn_session_close(session);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}

/* tests/integration/cli/side_by_side.c: a process for each case, whose output goes to a file until it ends.
 */
#include "side_by_side.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CASES = 32 };

typedef struct one_case {
  const char *name;
  pid_t pid;
  FILE *words;
} one_case;

static one_case begun[MOST_CASES];
static int n_begun;

/* Never returns. A test that is ended takes its cases with it. */
static void case_become(const struct CMUnitTest *test, FILE *words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (dup2(fileno(words), STDOUT_FILENO) < 0 || dup2(fileno(words), STDERR_FILENO) < 0) _exit(127);
  exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL));
}

static void case_start(const struct CMUnitTest *test, one_case *one) {
  *one = (one_case){.name = test->name, .pid = -1, .words = tmpfile()};
  if (one->words == NULL) return;
  fflush(NULL);
  one->pid = fork();
  if (one->pid == 0) case_become(test, one->words);
}

static void case_print(FILE *words) {
  char text[4096];
  rewind(words);
  for (size_t n; (n = fread(text, 1, sizeof text, words)) > 0;) fwrite(text, 1, n, stdout);
  fclose(words);
}

/* Whether it passed. */
static int case_finish(const one_case *one) {
  int status = -1;
  bool ended = one->pid > 0 && waitpid(one->pid, &status, 0) == one->pid;
  if (one->words != NULL) case_print(one->words);
  if (ended && status == 0) return 1;
  printf("%s: %s\n", one->name, ended ? "failed" : "could not be started");
  return 0;
}

void program_begin_side_by_side(const struct CMUnitTest *cases, int n) {
  if (n > MOST_CASES) {
    fprintf(stderr, "%d cases side by side, at most %d\n", n, MOST_CASES);
    exit(1);
  }
  for (n_begun = 0; n_begun < n; n_begun++) case_start(&cases[n_begun], &begun[n_begun]);
}

int program_end_side_by_side(void) {
  int failed = 0;
  for (int i = 0; i < n_begun; i++) failed += !case_finish(&begun[i]);
  n_begun = 0;
  return failed;
}

/* tests/integration/processes/launched.c: see launched.h. */
#include "launched.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 400 };

const char launched_ini[] = LAUNCHED_INI("name = model\nmax_steps = 60\n", "1h");

/* PWD is that of the temporary folder, by which launched_process knows the processes of this test. */
int launched_open(void **state) {
  static const char *const stand_in[] = {"STAND_IN_SLOW", "STAND_IN_LOG", "STAND_IN_REFUSES"};
  for (size_t i = 0; i < sizeof stand_in / sizeof *stand_in; i++) unsetenv(stand_in[i]);
  int failed = program_open(state);
  char folder[4096];
  setenv("PWD", getcwd(folder, sizeof folder), 1);
  file_write("model.ini", launched_ini);
  return failed;
}

/* ---- processes ---- */

pid_t launched_process(int number) {
  char command[512], text[64] = "";
  snprintf(command, sizeof command,
           "grep -lzx 'TENON_PROCESS=%d' /proc/[0-9]*/environ 2>/dev/null | xargs -r grep -lzx 'PWD=%s' "
           "2>/dev/null | cut -d/ -f3 | head -1",
           number, getenv("PWD") ? getenv("PWD") : "");
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  if (fgets(text, sizeof text, pipe) == NULL) text[0] = '\0';
  pclose(pipe);
  return (pid_t)atoi(text);
}

pid_t launched_await(int number) {
  pid_t pid;
  program_await((pid = launched_process(number)) != 0);
  return pid;
}

void launched_await_end(int number) { program_await(launched_process(number) == 0); }

/* ---- results ---- */

void launched_says(const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
}

/* The losses of the steps in metrics.jsonl. */
static int read_losses(const char *path, double *losses, int most) {
  char *text = file_read(path, NULL);
  int n = 0;
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    json_t *one = json_loads(line, 0, NULL);
    assert_non_null(one);
    if (strcmp(json_string_value(json_object_get(one, "event")), "step") == 0 && n < most)
      losses[n++] = json_number_value(json_object_get(json_object_get(one, "train"), "loss"));
    json_decref(one);
  }
  return n;
}

void launched_compare(const char *one, const char *several, int steps) {
  double a[STEPS], b[STEPS];
  assert_true(steps <= STEPS);
  assert_int_equal(read_losses(one, a, steps), steps);
  assert_int_equal(read_losses(several, b, steps), steps);
  for (int i = 0; i < steps; i++)
    if (!(fabs(a[i] - b[i]) <= 1e-5 * (1 + fabs(a[i]))))
      fail_msg("step %d: %.9g and %.9g", i + 1, a[i], b[i]);
}

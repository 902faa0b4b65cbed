/* tools/sweep/child.c: the process that trains a run: `tenon train FILE.ini --resume auto`, so that one that
 * was interrupted, or goes on to a higher rung, begins at its checkpoint. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch/launch.h"
#include "tools/sweep/sweep.h"

enum { CHILD_WORDS = 4 * CLI_MAX_LIST + 64, CHILD_TEXT = 128 };

/* ---- the start ---- */

typedef struct child_line {
  const char *words[CHILD_WORDS];
  int n;
  char name[CHILD_TEXT], pause[CHILD_TEXT], threads[CHILD_TEXT];
} child_line;

static void child_add(child_line *line, const char *option, const char *value) {
  if (line->n + 3 > CHILD_WORDS || value == NULL) return;
  if (option != NULL) line->words[line->n++] = option;
  line->words[line->n++] = value;
}

static void child_make_line(const sweep *s, const sweep_run *run, child_line *line) {
  const cli_args *a = s->args;
  snprintf(line->name, CHILD_TEXT, "run.name=%s", run->name);
  snprintf(line->pause, CHILD_TEXT, "run.pause_after=%lld", s->rungs[run->wanted - 1]);
  snprintf(line->threads, CHILD_TEXT, "run.threads=%d", s->threads);
  child_add(line, s->program, "train");
  child_add(line, NULL, a->words[0]);
  child_add(line, "--quiet", "--json");
  for (int i = 0; i < a->n_plugins; i++) child_add(line, "--plugin", a->plugins[i]);
  for (int i = 0; i < s->n_common; i++) child_add(line, "--set", s->common[i]);
  for (size_t i = 0; i < json_array_size(run->set); i++)
    child_add(line, "--set", json_string_value(json_array_get(run->set, i)));
  child_add(line, "--set", line->name);
  if (s->halves) child_add(line, "--set", line->pause);
  if (s->threads > 0) child_add(line, "--set", line->threads);
  child_add(line, "--weights", a->weights);
  child_add(line, "--output", s->folder);
  child_add(line, "--resume", "auto");
  line->words[line->n] = NULL;
}

/* SWEEP/NAME.json has what the process prints, SWEEP/NAME.log what it and those before it say. */
static int child_open(const sweep *s, const sweep_run *run, const char *ending, int flags) {
  char path[SWEEP_PATH];
  snprintf(path, sizeof path, "%s/%s.%s", s->folder, run->name, ending);
  return open(path, flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}

int sweep_start(sweep *s, sweep_run *run) {
  child_line line = {.n = 0};
  child_make_line(s, run, &line);
  int out = child_open(s, run, "json", O_TRUNC), log = child_open(s, run, "log", O_APPEND);
  launch_start start = {line.words, NULL, -1, 0, -1, out, log, &s->signals};
  if (out >= 0 && log >= 0) run->pid = launch_fork(&start);
  int error = errno;
  bool started = out >= 0 && log >= 0 && run->pid > 0;
  if (out >= 0) close(out);
  if (log >= 0) close(log);
  if (!started) run->pid = 0;
  s->running += started;
  return started ? CLI_OK
                 : cli_refuse(s->args, CLI_UNAVAILABLE, "run %s: %s%s", run->name, strerror(error),
                              launch_remedy(error));
}

/* ---- the end ---- */

/* The JSON that it has printed; NULL: none. */
static json_t *child_result(const sweep *s, const sweep_run *run) {
  char path[SWEEP_PATH];
  snprintf(path, sizeof path, "%s/%s.json", s->folder, run->name);
  return json_load_file(path, JSON_DISABLE_EOF_CHECK, NULL);
}

/* The metric of validation, or of training where there is no validation. */
static double child_score(const sweep *s, const json_t *result) {
  const json_t *valid = json_object_get(result, "valid");
  return cli_number(json_object_size(valid) > 0 ? valid : json_object_get(result, "train"), s->metric);
}

/* One that ended before its last rung, by [run] patience, keeps its score at the others. */
static void child_reach(sweep *s, sweep_run *run, const json_t *result) {
  double score = child_score(s, result);
  const char *status = cli_text(result, "status");
  bool paused = status != NULL && strcmp(status, "paused") == 0;
  int reached = paused ? run->wanted : s->n_rungs;
  for (; run->rungs < reached; run->rungs++) run->score[run->rungs] = score;
  run->ended = !paused;
}

/* "lr=0.01 weight_decay=0" */
static void child_print_values(const sweep_run *run) {
  for (size_t i = 0; i < json_array_size(run->set); i++)
    fprintf(stderr, " %s", json_string_value(json_array_get(run->set, i)));
}

static void child_print_failure(const sweep *s, const sweep_run *run, const json_t *result) {
  const json_t *errors = json_object_get(result, "errors");
  const char *text = json_string_value(json_array_get(errors, 0)), *reason = cli_text(result, "reason");
  fprintf(stderr, ": failed: %s (%s/%s.log)\n",
          text                ? text
          : reason && *reason ? reason
                              : "see the log",
          s->folder, run->name);
}

static void child_print_end(const sweep *s, const sweep_run *run, int code, const json_t *result) {
  const char *status = cli_text(result, "status");
  fprintf(stderr, "tenon: %s", run->name);
  child_print_values(run);
  if (code != CLI_OK && code != CLI_STOPPED) {
    child_print_failure(s, run, result);
    return;
  }
  fprintf(stderr, ": %s after epoch %lld, %s %.5g, %.1f s\n", status ? status : "stopped",
          cli_integer(result, "epochs"), s->metric, child_score(s, result), cli_number(result, "seconds"));
}

void sweep_take_end(sweep *s, sweep_run *run, int status) {
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  json_t *result = child_result(s, run);
  run->pid = 0;
  s->running--;
  s->ended++;
  if (code == CLI_OK)
    child_reach(s, run, result);
  else
    run->ended = true;
  if (code != CLI_OK && code != CLI_STOPPED) {
    s->failed++;
    s->code = code;
  }
  if (!s->args->quiet) child_print_end(s, run, code, result);
  json_decref(result);
}

/* tools/sweep/read.c: the runs of a sweep, and what they have reached before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/folders.h"
#include "tools/sweep/sweep.h"

bool sweep_is_list(const char *assignment) {
  const char *text = strchr(assignment, '=');
  int depth = 0;
  bool quoted = false;
  for (; text != NULL && *text != '\0'; text++) {
    if (*text == '"') quoted = !quoted;
    if (quoted) continue;
    depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
    if (depth <= 0 && (*text == ',' || *text == '\n')) return true;
    bool digit = text[-1] >= '0' && text[-1] <= '9';
    if (depth <= 0 && digit && text[0] == '.' && text[1] == '.') return true;
  }
  return strstr(assignment, "=log ") != NULL;
}

/* ---- sweep.json ---- */

static void read_rungs(sweep *s, const json_t *rungs) {
  s->n_rungs = (int)json_array_size(rungs);
  if (s->n_rungs > SWEEP_RUNGS) s->n_rungs = SWEEP_RUNGS;
  for (int k = 0; k < s->n_rungs; k++) s->rungs[k] = json_integer_value(json_array_get(rungs, (size_t)k));
}

int sweep_read(sweep *s) {
  const json_t *drawn = json_object_get(s->begun, "sweep"), *runs = json_object_get(drawn, "runs");
  const char *method = cli_text(drawn, "method");
  s->folder = cli_text(s->begun, "folder");
  s->metric = cli_text(drawn, "metric");
  s->smaller = json_is_true(json_object_get(drawn, "smaller_is_better"));
  s->asynchronous = strcmp(method, "asha") == 0;
  s->halves = s->asynchronous || strcmp(method, "halving") == 0;
  s->factor = (int)cli_integer(drawn, "factor");
  s->jobs = (int)cli_integer(s->begun, "jobs");
  s->threads = (int)cli_integer(s->begun, "threads");
  read_rungs(s, json_object_get(drawn, "rungs"));
  s->n = (int)json_array_size(runs);
  s->n_configurations = (int)json_array_size(json_object_get(drawn, "configurations"));
  s->repeats = s->n / s->n_configurations;
  s->runs = calloc((size_t)s->n, sizeof *s->runs);
  if (s->runs == NULL) return cli_refuse(s->args, CLI_UNAVAILABLE, "no memory for %d runs", s->n);
  for (int i = 0; i < s->n; i++) {
    const json_t *one = json_array_get(runs, (size_t)i);
    s->runs[i] = (sweep_run){.name = cli_text(one, "name"), .set = json_object_get(one, "set"), .wanted = 1};
  }
  return CLI_OK;
}

/* ---- an earlier sweep ---- */

/* The score after so many epochs; of a resumed epoch the last one counts. */
static double read_score(const json_t *scores, long long epoch) {
  double score = NAN;
  for (size_t i = 0; i < json_array_size(scores); i++) {
    const json_t *pair = json_array_get(scores, i);
    if (json_integer_value(json_array_get(pair, 0)) <= epoch)
      score = json_number_value(json_array_get(pair, 1));
  }
  return score;
}

static bool read_is_done(const char *status) {
  static const char *const done[] = {"finished", "patience", "max_time", "observer", "target"};
  for (size_t i = 0; i < sizeof done / sizeof *done; i++)
    if (strcmp(status, done[i]) == 0) return true;
  return false;
}

/* A run that has failed, or was stopped, goes on. */
static void read_run(const sweep *s, const json_t *one, sweep_run *run) {
  const json_t *scores = json_object_get(one, "scores");
  run->ended = read_is_done(cli_text(one, "status"));
  for (int k = 0; k < s->n_rungs; k++) {
    if (!run->ended && cli_integer(one, "epochs") < s->rungs[k]) break;
    run->score[k] = read_score(scores, s->rungs[k]);
    run->rungs = k + 1;
  }
}

int sweep_read_earlier(sweep *s) {
  char *text = NULL;
  tn_status status = tn_list_sweep(s->context, s->folder, &text);
  if (status != TN_OK) return cli_fail(s->args, s->context, status);
  json_t *result = json_loads(text, 0, NULL);
  const json_t *runs = json_object_get(result, "runs");
  for (int i = 0; i < s->n; i++) read_run(s, json_array_get(runs, (size_t)i), &s->runs[i]);
  json_decref(result);
  tn_string_free(s->context, text);
  return CLI_OK;
}

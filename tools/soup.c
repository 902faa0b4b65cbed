/* tools/soup.c: `tenon checkpoint average`: uniform and greedy soups (Wortsman et al., "Model soups", ICML
 * 2022), and running statistics of the mean weights. */
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/folders.h"
#include "tools/soup.h"

enum { SOUP_PATH = 4096, SOUP_SETS = 64 };

typedef struct soup {
  tn_context *context;
  const cli_args *args;
  const char *const *paths; /* the weights, n of them */
  int n;
  char config[SOUP_PATH]; /* config.ini of the run of the first weights; "": it is not in a run folder */
  char folder[SOUP_PATH]; /* for files that are not the result; removed at the end; "": not made */
  char metric[256];
  bool falls;
} soup;

/* ---- the run ---- */

/* The configuration of a run folder, of a checkpoint in it, or of a file of that checkpoint. */
static void soup_find_config(soup *s) {
  static const char *const places[] = {"", "/../..", "/../../.."};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    struct stat info;
    snprintf(s->config, sizeof s->config, "%s%s/config.ini", s->paths[0], places[i]);
    if (stat(s->config, &info) == 0) return;
  }
  s->config[0] = '\0';
}

static int soup_open_run(soup *s, const char *weights, const char *const *set, int n_set, tn_run **run) {
  cli_args args = *s->args;
  args.words[0] = s->config;
  args.weights = weights;
  args.output = args.resume = NULL;
  args.untrusted = !args.trust;
  args.quiet = true;
  memcpy(args.set, set, sizeof *set * (size_t)n_set);
  args.n_set = n_set;
  return cli_open_run(s->context, &args, run);
}

static int soup_need_config(const soup *s, const char *what) {
  if (s->config[0] != '\0') return CLI_OK;
  return cli_refuse(s->args, CLI_DATA, "%s: is not in a run folder, and %s needs its config.ini", s->paths[0],
                    what);
}

/* ---- files beside the result ---- */

static int soup_make_folder(soup *s) {
  snprintf(s->folder, sizeof s->folder, "%s.XXXXXX", s->args->output);
  if (mkdtemp(s->folder) != NULL) return CLI_OK;
  int code = cli_refuse(s->args, CLI_IO, "%s: no folder can be made beside it", s->args->output);
  s->folder[0] = '\0';
  return code;
}

static int soup_remove(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static void soup_remove_folder(soup *s) {
  if (s->folder[0] != '\0') nftw(s->folder, soup_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static int soup_average(soup *s, const char *const *paths, int n, const char *to, char **json) {
  tn_status status = tn_average_tensors(s->context, paths, n, to, json);
  return status == TN_OK ? CLI_OK : cli_fail(s->args, s->context, status);
}

/* ---- running statistics ---- */

/* Each group with options of its own would train. */
static int soup_add_groups(tn_run *run, char texts[][300], const char **set, int n) {
  char *ini = NULL;
  if (tn_run_config(run, &ini) != TN_OK) return n;
  for (const char *at = strstr(ini, "\n[group."); at != NULL && n < SOUP_SETS;
       at = strstr(at + 1, "\n[group.")) {
    const char *end = strchr(at + 2, ']'), *next = strstr(at + 1, "\n["),
               *frozen = strstr(at, "\nfreeze = yes");
    if (end == NULL || end - at > 200 || (frozen != NULL && (next == NULL || frozen < next))) continue;
    snprintf(texts[n], 300, "%.*s.lr=0", (int)(end - at - 2), at + 2);
    set[n] = texts[n];
    n++;
  }
  tn_string_free(run, ini);
  return n;
}

/* One epoch of training with a learning rate of 0 moves the running statistics alone. */
static int soup_train_statistics(soup *s, const char *weights) {
  char texts[SOUP_SETS][300], output[SOUP_PATH + 16], *json = NULL;
  const char *set[SOUP_SETS] = {"optimizer.type=sgd",
                                "optimizer.lr=0",
                                "optimizer.ema=0",
                                "optimizer.swa_from=0",
                                "schedule.type=constant",
                                "schedule.warmup=0",
                                "schedule.metric=",
                                "run.epochs=1",
                                "run.max_steps=0",
                                "run.max_time=0",
                                "run.patience=0",
                                "run.pause_after=0",
                                "run.target=",
                                "run.keep_last=0",
                                "run.keep_best=0",
                                "run.keep_every=",
                                "run.report=no",
                                "run.profile=0",
                                "run.name=statistics",
                                "run.observers=-jsonl,-progress",
                                "weights.prefix=",
                                "weights.rename=",
                                "weights.skip=",
                                "weights.transpose="};
  int n = 0;
  tn_run *run = NULL;
  while (set[n] != NULL) n++;
  int code = soup_open_run(s, weights, set, 0, &run);
  if (code == CLI_OK) n = soup_add_groups(run, texts, set, n);
  tn_run_close(run);
  snprintf(output, sizeof output, "run.output=%s", s->folder);
  set[n++] = output;
  run = NULL;
  if (code == CLI_OK) code = soup_open_run(s, weights, set, n, &run);
  tn_status status = code == CLI_OK ? tn_run_train(run, &json) : TN_OK;
  if (status != TN_OK) code = cli_fail(s->args, run, status);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

/* Makes the result of weights whose running statistics are means. */
static int soup_renew(soup *s, const char *weights) {
  char trained[SOUP_PATH + 64], *json = NULL;
  int code = soup_train_statistics(s, weights);
  if (code != CLI_OK) return code;
  snprintf(trained, sizeof trained, "%s/statistics/checkpoints/last/model.safetensors", s->folder);
  tn_status status = tn_convert_tensors(s->context, trained, s->args->output, NULL, &json);
  tn_string_free(s->context, json);
  return status == TN_OK ? CLI_OK : cli_fail(s->args, s->context, status);
}

static int soup_finish(soup *s, const char *const *paths, int n, json_t **result) {
  char mean[SOUP_PATH + 32], *json = NULL;
  bool renews = s->config[0] != '\0' && !s->args->keep_statistics && n > 1;
  snprintf(mean, sizeof mean, "%s/mean.safetensors", s->folder);
  int code = soup_average(s, paths, n, mean, &json);
  if (code != CLI_OK) return code;
  *result = cli_load_plain(json);
  tn_string_free(s->context, json);
  renews = renews && json_is_true(json_object_get(*result, "statistics"));
  json_object_set_new(*result, "to", cli_json_text(s->args->output));
  json_object_set_new(*result, "renewed", json_boolean(renews));
  if (renews) return soup_renew(s, mean);
  tn_status status = tn_convert_tensors(s->context, mean, s->args->output, NULL, &json);
  tn_string_free(s->context, status == TN_OK ? json : NULL);
  return status == TN_OK ? CLI_OK : cli_fail(s->args, s->context, status);
}

/* ---- the greedy soup ---- */

static int soup_find_metric(soup *s) {
  char *json = NULL;
  tn_run *run = NULL;
  int code = soup_open_run(s, NULL, NULL, 0, &run);
  tn_status status = code == CLI_OK ? tn_run_plan(run, NULL, &json, NULL) : TN_OK;
  if (status != TN_OK) code = cli_fail(s->args, run, status);
  json_t *plan = json != NULL ? json_loads(json, 0, NULL) : NULL;
  snprintf(s->metric, sizeof s->metric, "%s", plan != NULL ? cli_text(plan, "best") : "");
  s->falls = json_is_true(json_object_get(plan, "best_falls"));
  json_decref(plan);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

/* The metric of validation with some weights. */
static int soup_evaluate(soup *s, const char *weights, double *value) {
  static const char *const set[] = {
      "weights.prefix=", "weights.rename=", "weights.skip=", "weights.transpose="};
  char *json = NULL;
  tn_run *run = NULL;
  int code = soup_open_run(s, weights, set, 4, &run);
  tn_status status = code == CLI_OK ? tn_run_eval(run, &json) : TN_OK;
  if (status != TN_OK) code = cli_fail(s->args, run, status);
  json_t *result = json != NULL ? json_loads(json, 0, NULL) : NULL;
  *value = cli_number(result, s->metric);
  json_decref(result);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

static bool soup_is_better(const soup *s, double a, double b) { return s->falls ? a < b : a > b; }

/* Sorts the weights by their own values, the best first. */
static int soup_rank(soup *s, const char **paths, double *values) {
  for (int i = 0; i < s->n; i++) {
    double value;
    int code = soup_evaluate(s, s->paths[i], &value), k = i;
    if (code != CLI_OK) return code;
    for (; k > 0 && soup_is_better(s, value, values[k - 1]); k--) {
      paths[k] = paths[k - 1];
      values[k] = values[k - 1];
    }
    paths[k] = s->paths[i];
    values[k] = value;
  }
  return CLI_OK;
}

/* Weights stay in the mean where they do not make it worse. */
static int soup_choose(soup *s, const char **paths, double best, const char **chosen, int *n) {
  char trial[SOUP_PATH + 64];
  chosen[0] = paths[0];
  *n = 1;
  for (int i = 1; i < s->n; i++) {
    char *json = NULL;
    double value;
    snprintf(trial, sizeof trial, "%s/%d.safetensors", s->folder, i);
    chosen[*n] = paths[i];
    int code = soup_average(s, chosen, *n + 1, trial, &json);
    tn_string_free(s->context, json);
    if (code == CLI_OK) code = soup_evaluate(s, trial, &value);
    if (code != CLI_OK) return code;
    if (soup_is_better(s, best, value)) continue;
    best = value;
    (*n)++;
  }
  return CLI_OK;
}

static int soup_make_greedy(soup *s, json_t **result) {
  const char *paths[CLI_MAX_WORDS], *chosen[CLI_MAX_WORDS];
  double values[CLI_MAX_WORDS];
  int n = 0;
  int code = soup_need_config(s, "--greedy");
  if (code == CLI_OK) code = soup_find_metric(s);
  if (code == CLI_OK) code = soup_rank(s, paths, values);
  if (code == CLI_OK) code = soup_choose(s, paths, values[0], chosen, &n);
  if (code == CLI_OK) code = soup_finish(s, chosen, n, result);
  if (code == CLI_OK) json_object_set_new(*result, "metric", json_string(s->metric));
  if (code == CLI_OK) json_object_set_new(*result, "best_alone", json_real(values[0]));
  return code;
}

/* ---- the command ---- */

static void soup_print(const json_t *result) {
  const json_t *from = json_object_get(result, "from");
  for (size_t i = 0; i < json_array_size(from); i++)
    printf("%s\n", json_string_value(json_array_get(from, i)));
  printf("%s: the mean of %zu weights, %lld tensors%s\n", cli_text(result, "to"), json_array_size(from),
         cli_integer(result, "tensors"),
         json_is_true(json_object_get(result, "renewed"))
             ? "; running statistics by an epoch of the training data"
             : "");
}

int soup_command(tn_context *context, const cli_args *args) {
  soup s = {.context = context, .args = args, .paths = args->words + 1, .n = args->n_words - 1};
  json_t *result = NULL;
  struct stat info;
  if (args->output == NULL)
    return cli_refuse(args, CLI_USAGE, "average: expected -o FILE.safetensors, the file to write");
  if (stat(args->output, &info) == 0)
    return cli_refuse(args, CLI_DATA, "%s: exists, and is not overwritten; remove it, or name another",
                      args->output);
  soup_find_config(&s);
  int code = soup_make_folder(&s);
  if (code == CLI_OK)
    code = args->greedy ? soup_make_greedy(&s, &result) : soup_finish(&s, s.paths, s.n, &result);
  soup_remove_folder(&s);
  char *text = code == CLI_OK && args->json ? json_dumps(result, JSON_PRESERVE_ORDER) : NULL;
  if (text != NULL) printf("%s\n", text);
  if (code == CLI_OK && !args->json) soup_print(result);
  free(text);
  json_decref(result);
  return code;
}

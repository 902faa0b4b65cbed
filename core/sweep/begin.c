/* core/sweep/begin.c: tn_run_begin_sweep: draws the runs of a sweep and records them in its folder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/run/result.h"
#include "core/sweep/draw.h"
#include "core/sweep/jobs.h"
#include "tenon/folders.h"

enum { MOST_FOLDERS = 100000, FILE_LIMIT = 64 << 20 };

/* ---- sweep.json ---- */

static bool begin_halves(const tn_sweep_draw *d) {
  return d->method == TN_SWEEP_HALVING || d->method == TN_SWEEP_ASHA;
}

/* The epochs after which configurations are compared: min_epochs, and factor times as many, up to all. */
static json_t *begin_rungs(const tn_run *run, const tn_sweep_draw *d) {
  const tn_sweep_section *s = &run->settings.sweep;
  json_t *rungs = json_array();
  for (int64_t r = s->min_epochs; begin_halves(d) && r < run->settings.run.epochs; r *= s->factor)
    json_array_append_new(rungs, json_integer(r));
  json_array_append_new(rungs, json_integer(run->settings.run.epochs));
  return rungs;
}

/* {"name": "03-2", "configuration": 2, "seed": "1", "fold": 2, "set": [...]} */
static json_t *begin_run(const tn_sweep_draw *d, int64_t configuration, int64_t repeat, int digits) {
  int64_t folds = d->folds > 0 ? d->folds : 1, fold = repeat % folds;
  const char *seed = d->seeds.n > 0 ? d->seeds.v[repeat / folds] : NULL;
  json_t *set = json_array();
  for (int32_t k = 0; k < d->n_options; k++)
    json_array_append_new(
        set, json_sprintf("%s=%s", d->options[k].key, d->values[configuration * d->n_options + k]));
  if (seed != NULL) json_array_append_new(set, json_sprintf("run.seed=%s", seed));
  if (d->folds > 0)
    json_array_append_new(set, json_sprintf("data.fold=%lld/%lld", (long long)fold + 1, (long long)d->folds));
  json_t *name = d->repeats == 1 ? json_sprintf("%0*lld", digits, (long long)configuration + 1)
                                 : json_sprintf("%0*lld-%lld", digits, (long long)configuration + 1,
                                                (long long)repeat + 1);
  json_t *one =
      json_pack("{s:o, s:I, s:o}", "name", name, "configuration", (json_int_t)configuration, "set", set);
  if (seed != NULL) json_object_set_new(one, "seed", tn_json_text(seed));
  if (d->folds > 0) json_object_set_new(one, "fold", json_integer(fold + 1));
  return one;
}

static void begin_add_runs(const tn_sweep_draw *d, json_t *sweep) {
  json_t *options = json_array(), *configurations = json_array(), *runs = json_array();
  int digits = snprintf(NULL, 0, "%lld", (long long)d->configurations);
  for (int32_t k = 0; k < d->n_options; k++) json_array_append_new(options, tn_json_text(d->options[k].key));
  for (int64_t i = 0; i < d->configurations; i++) {
    json_t *values = json_array();
    for (int32_t k = 0; k < d->n_options; k++)
      json_array_append_new(values, tn_json_text(d->values[i * d->n_options + k]));
    json_array_append_new(configurations, values);
    for (int64_t r = 0; r < d->repeats; r++) json_array_append_new(runs, begin_run(d, i, r, digits));
  }
  json_object_set_new(sweep, "options", options);
  json_object_set_new(sweep, "configurations", configurations);
  json_object_set_new(sweep, "runs", runs);
}

/* The word of [sweep] method. */
static json_t *begin_method(const tn_sweep_draw *d) {
  int32_t i = 0;
  size_t n = 0;
  while (!tn_text_equal(tn_settings_tables[i]->name, "sweep")) i++;
  const char *word =
      tn_alternatives_at(tn_options_find(tn_settings_tables[i], "method")->range, d->method, &n);
  return json_stringn(word, n);
}

static json_t *begin_describe(const tn_run *run, const json_t *plan, const tn_sweep_draw *d) {
  json_t *sweep = json_pack("{s:i, s:o, s:o, s:I, s:I}", "version", 1, "file", tn_json_text(run->ini.path),
                            "method", begin_method(d), "factor", (json_int_t)run->settings.sweep.factor,
                            "folds", (json_int_t)d->folds);
  json_t *set = json_array();
  for (int32_t i = 0; i < run->set.n; i++) json_array_append_new(set, tn_json_text(run->set.v[i]));
  json_object_set_new(sweep, "set", set);
  json_object_set(sweep, "metric", json_object_get(plan, "best"));
  json_object_set(sweep, "smaller_is_better", json_object_get(plan, "best_falls"));
  json_object_set_new(sweep, "rungs", begin_rungs(run, d));
  begin_add_runs(d, sweep);
  return sweep;
}

/* ---- the folder ---- */

static const char *begin_parent(const tn_run *run) {
  return run->output != NULL ? run->output : run->settings.run.output;
}

/* OUTPUT/NAME-sweep, OUTPUT/NAME-sweep-2 ... */
static const char *begin_path(tn_run *run, int32_t i) {
  const char *parent = begin_parent(run), *name = run->settings.run.name;
  return i == 1 ? tn_arena_printf(&run->arena, "%s/%s-sweep", parent, name)
                : tn_arena_printf(&run->arena, "%s/%s-sweep-%d", parent, name, (int)i);
}

static tn_status begin_make_folder(tn_run *run, const char **folder) {
  TN_TRY(tn_folder_make(&run->env, begin_parent(run)));
  for (int32_t i = 1; i <= MOST_FOLDERS; i++) {
    if ((*folder = begin_path(run, i)) == NULL) return TN_ENOMEM;
    if (mkdir(*folder, 0777) == 0) return TN_OK;
    if (errno != EEXIST) return tn_file_fail(&run->env, *folder, "made");
  }
  return tn_failf(&run->env, TN_EIO, "%s: too many sweeps called '%s'", begin_parent(run),
                  run->settings.run.name);
}

static bool begin_is_sweep(tn_run *run, const char *folder) {
  const char *file = tn_arena_printf(&run->arena, "%s/" TN_SWEEP_FILE, folder);
  return file != NULL && tn_file_exists(file);
}

/* The folder that --resume names; of "auto" the one with the greatest number, or NULL. */
static tn_status begin_find_folder(tn_run *run, const char **folder) {
  *folder = NULL;
  if (!tn_text_equal(run->resume, "auto")) {
    *folder = run->resume;
    if (begin_is_sweep(run, run->resume)) return TN_OK;
    return tn_failf(&run->env, TN_EINVAL, "%s: no sweep to resume, expected a folder with " TN_SWEEP_FILE,
                    run->resume);
  }
  for (int32_t i = 1; i <= MOST_FOLDERS; i++) {
    const char *path = begin_path(run, i);
    if (path == NULL) return TN_ENOMEM;
    if (!tn_file_exists(path)) break;
    if (begin_is_sweep(run, path)) *folder = path;
  }
  return TN_OK;
}

static tn_status begin_write(tn_run *run, const char *folder, const json_t *sweep) {
  const char *path = tn_arena_printf(&run->arena, "%s/" TN_SWEEP_FILE, folder);
  char *text = json_dumps(sweep, JSON_PRESERVE_ORDER | JSON_INDENT(1));
  tn_status status =
      path != NULL && text != NULL ? tn_file_write_atomic(&run->env, path, text, strlen(text)) : TN_ENOMEM;
  free(text);
  return status;
}

/* A sweep goes on with the same runs. */
static tn_status begin_check(tn_run *run, const char *folder, const json_t *sweep) {
  const char *path = tn_arena_printf(&run->arena, "%s/" TN_SWEEP_FILE, folder);
  char *text = NULL;
  size_t n = 0;
  if (path == NULL) return TN_ENOMEM;
  TN_TRY(tn_file_read(&run->env, path, FILE_LIMIT, &text, &n));
  json_t *before = json_loadb(text, n, 0, NULL);
  tn_release(&run->env, text);
  bool same = json_equal(before, sweep);
  json_decref(before);
  return same ? TN_OK
              : tn_failf(&run->env, TN_EINVAL,
                         "%s: has other runs than this command describes, expected the same file, [sweep] "
                         "and --set; "
                         "begin another sweep without --resume",
                         path);
}

static tn_status begin_open_folder(tn_run *run, const json_t *sweep, const char **folder, bool *resumed) {
  *folder = NULL;
  if (*begin_parent(run) == '\0')
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: [run] output is empty, and a sweep compares the folders of its runs",
                    tn_settings_where(&run->ini, "run", "output"));
  if (run->resume != NULL) TN_TRY(begin_find_folder(run, folder));
  *resumed = *folder != NULL;
  if (*resumed) return begin_check(run, *folder, sweep);
  TN_TRY(begin_make_folder(run, folder));
  return begin_write(run, *folder, sweep);
}

/* ---- the call ---- */

static tn_status begin_check_rungs(tn_run *run, const tn_sweep_draw *d) {
  const tn_sweep_section *s = &run->settings.sweep;
  if (!begin_halves(d) || s->min_epochs < run->settings.run.epochs) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: [sweep] min_epochs = %lld with [run] epochs = %lld: nothing is left to halve, expected fewer "
      "min_epochs than epochs",
      tn_settings_where(&run->ini, "sweep", "min_epochs"), (long long)s->min_epochs,
      (long long)run->settings.run.epochs);
}

/* The plan of the configuration itself: mistakes in it are told before anything runs. */
static tn_status begin_plan(tn_run *run, json_t **plan) {
  const char *resume = run->resume;
  char *text = NULL;
  run->resume = NULL; /* the sweep's folder has no plan */
  tn_status status = tn_run_plan(run, NULL, &text, NULL);
  run->resume = resume;
  *plan = text != NULL ? json_loads(text, 0, NULL) : NULL;
  tn_release(&run->env, text);
  return status == TN_OK && *plan == NULL ? TN_ENOMEM : status;
}

tn_status tn_run_begin_sweep(tn_run *run, const tn_sweep_options *given, char **json) {
  tn_sweep_options options;
  tn_sweep_draw draw;
  json_t *plan = NULL, *sweep = NULL;
  const char *folder = NULL;
  bool resumed = false;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_sweep_options, set, given, &options));
  if (options.n_set > 0) TN_NEED(run, options.set, "options.set");
  TN_TRY(tn_sweep_draw_runs(run, options.set, options.n_set, &draw));
  TN_TRY(begin_check_rungs(run, &draw));
  tn_status status = begin_plan(run, &plan);
  if (status == TN_OK && (sweep = begin_describe(run, plan, &draw)) == NULL) status = TN_ENOMEM;
  if (status == TN_OK) status = begin_open_folder(run, sweep, &folder, &resumed);
  if (status == TN_OK) {
    tn_sweep_jobs jobs = tn_sweep_choose_jobs(run, plan, draw.configurations * draw.repeats);
    status = tn_json_take(run,
                          json_pack("{s:o, s:b, s:i, s:i, s:O}", "folder", tn_json_text(folder), "resumed",
                                    (int)resumed, "jobs", (int)jobs.jobs, "threads", (int)jobs.threads,
                                    "sweep", sweep),
                          json);
  }
  json_decref(plan);
  json_decref(sweep);
  return status;
}

/* core/records/folders/write_report.c: tn_write_report: one page about runs that needs no other file. The
 * page is report.html with the numbers of the runs inside; its script draws them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/records/folders/metric_series.h"
#include "core/records/folders/read_history.h"
#include "core/records/folders/read_samples.h"
#include "core/records/folders/run_records.h"
#include "core/records/folders/sweep_results.h"
#include "core/records/folders/write_report.h"
#include "tenon/folders.h"

static const char report_page[] = /* report.html */
#include "report_page.inc"
    ;

enum { FILE_LIMIT = 64 << 20 };
static const char report_mark[] = "@DATA@", refresh_mark[] = "@REFRESH@";

static bool report_has_key(const tn_ini *ini, const char *section, const char *key) {
  const tn_section *found = ini != NULL ? tn_ini_section(ini, section) : NULL;
  return found != NULL && tn_section_key(found, key) != NULL;
}

/* [["run.name", "digits"], ...], without the keys of `but` (NULL: all). */
static json_t *report_config(const tn_ini *ini, const tn_ini *but) {
  json_t *list = json_array();
  for (int32_t s = 0; s < ini->n_sections; s++)
    for (int32_t k = 0; k < ini->sections[s].n_keys; k++) {
      const tn_key *key = &ini->sections[s].keys[k];
      char name[256];
      if (report_has_key(but, ini->sections[s].name, key->name)) continue;
      snprintf(name, sizeof name, "%s.%s", ini->sections[s].name, key->name);
      json_t *pair = json_pack("[s, s]", name, key->value);
      if (pair != NULL) json_array_append_new(list, pair); /* a value that is not UTF-8 is left out */
    }
  return list;
}

/* A file of JSON that another command leaves in the run folder; null where there is none. */
static tn_status report_file(const void *handle, const char *folder, const char *name, json_t **json) {
  char *path = tn_path_join(handle, folder, name), *text = NULL;
  size_t n = 0;
  *json = NULL;
  if (path == NULL) return TN_ENOMEM;
  tn_status status = tn_file_exists(path) ? tn_file_read(handle, path, FILE_LIMIT, &text, &n) : TN_OK;
  if (text != NULL) *json = json_loadb(text, n, 0, NULL);
  if (*json == NULL) *json = json_null();
  tn_release(handle, text);
  tn_release(handle, path);
  return status;
}

/* The table of memory by its use, from plan.json; null: plan.json lacks it. */
static tn_status report_memory(const void *handle, const char *folder, json_t **table) {
  json_t *plan = NULL;
  *table = NULL;
  TN_TRY(report_file(handle, folder, "plan.json", &plan));
  json_t *found = json_object_get(plan, "memory_table");
  if (found != NULL) json_object_del(found, "lines"); /* the page has the rows */
  *table = found != NULL ? json_incref(found) : json_null();
  json_decref(plan);
  return TN_OK;
}

/* The keys of resolved.ini that config.ini has not: those at their defaults. A run of an earlier version has
 * none. */
static tn_status report_defaults(const void *handle, tn_arena *arena, const char *folder, const tn_ini *given,
                                 json_t **defaults) {
  tn_ini full = {0};
  const char *path = tn_arena_printf(arena, "%s/resolved.ini", folder);
  *defaults = json_array();
  if (path == NULL) return TN_ENOMEM;
  if (!tn_file_exists(path)) return TN_OK;
  tn_status status = tn_ini_read(handle, path, &full);
  if (status == TN_OK) {
    json_decref(*defaults);
    *defaults = report_config(&full, given);
  }
  tn_ini_free(&full);
  return status;
}

static tn_status report_describe_run(const void *handle, tn_arena *arena, const char *folder, json_t *runs) {
  tn_ini ini = {0};
  tn_metric_lines lines = {0};
  json_t *facts = NULL, *series = NULL, *evaluation = NULL, *profile = NULL, *defaults = NULL,
         *trainings = NULL, *memory = NULL, *samples = NULL;
  const char *config = tn_arena_printf(arena, "%s/config.ini", folder);
  tn_status status = config != NULL ? tn_ini_read(handle, config, &ini) : TN_ENOMEM;
  if (status == TN_OK) status = tn_describe_run_folder(handle, arena, folder, &facts);
  if (status == TN_OK) status = tn_metric_series_read(handle, folder, &series);
  if (status == TN_OK) status = tn_metric_lines_read(handle, folder, &lines);
  if (status == TN_OK) status = report_file(handle, folder, "evaluation.json", &evaluation);
  if (status == TN_OK) status = report_file(handle, folder, "profile.json", &profile);
  if (status == TN_OK) status = report_memory(handle, folder, &memory);
  if (status == TN_OK) status = report_defaults(handle, arena, folder, &ini, &defaults);
  if (status == TN_OK) status = tn_history_read(handle, folder, &trainings);
  if (status == TN_OK) status = tn_run_samples_read(handle, folder, &samples);
  if (status == TN_OK) {
    json_object_del(profile, "launches"); /* the page shows their sums */
    json_t *run =
        json_pack("{s:O, s:O, s:o, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:O}", "name",
                  json_object_get(facts, "name"), "facts", facts, "config", report_config(&ini, NULL),
                  "defaults", defaults, "trainings", trainings, "steps", series, "epochs", lines.epochs,
                  "evaluation", evaluation, "profile", profile, "memory", memory, "samples", samples);
    if (run == NULL || json_array_append_new(runs, run) != 0) status = TN_ENOMEM;
  }
  json_decref(facts);
  json_decref(series);
  json_decref(evaluation);
  json_decref(defaults);
  json_decref(trainings);
  json_decref(profile);
  json_decref(memory);
  json_decref(samples);
  tn_metric_lines_free(&lines);
  tn_ini_free(&ini);
  return status;
}

/* In JSON `<` stands in texts alone; as an escape it cannot end the script element. */
static void report_print_numbers(tn_text *page, const char *numbers) {
  for (size_t n; *numbers != '\0'; numbers += n) {
    n = strcspn(numbers, "<");
    tn_text_addn(page, numbers, n);
    if (numbers[n] == '<') tn_text_add(page, "\\u003c"), n++;
  }
}

/* While a run goes on, the browser loads the page again every ten seconds. */
static void report_print(tn_text *page, const char *numbers, bool live) {
  const char *refresh = strstr(report_page, refresh_mark), *mark = strstr(report_page, report_mark);
  tn_text_addn(page, report_page, (size_t)(refresh - report_page));
  if (live) tn_text_add(page, "<meta http-equiv=\"refresh\" content=\"10\">");
  refresh += sizeof refresh_mark - 1;
  tn_text_addn(page, refresh, (size_t)(mark - refresh));
  report_print_numbers(page, numbers);
  tn_text_add(page, mark + sizeof report_mark - 1);
}

static bool report_is_live(const json_t *runs) {
  bool live = false;
  for (size_t i = 0; i < json_array_size(runs); i++) {
    const json_t *facts = json_object_get(json_array_get(runs, i), "facts");
    live = live || tn_text_equal(json_string_value(json_object_get(facts, "status")), "running");
  }
  return live;
}

static json_t *report_numbers(json_t *runs, const json_t *sweep) {
  char written[32];
  time_t now = time(NULL);
  struct tm local;
  strftime(written, sizeof written, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
  json_t *numbers = json_pack("{s:O, s:s, s:s}", "runs", runs, "written", written, "version", tn_version());
  if (sweep != NULL) json_object_set(numbers, "sweep", (json_t *)(uintptr_t)sweep);
  return numbers;
}

static tn_status report_write_page(const void *handle, json_t *runs, const json_t *sweep, const char *path) {
  json_t *numbers = report_numbers(runs, sweep);
  char *printed = numbers != NULL ? json_dumps(numbers, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
  tn_text page = tn_text_new(handle);
  if (printed != NULL) report_print(&page, printed, report_is_live(runs));
  bool failed = printed == NULL || page.failed;
  tn_status status = failed ? tn_failf(handle, TN_ENOMEM, "%s: no memory for the page", path)
                            : tn_file_write_atomic(handle, path, page.v, page.n);
  tn_text_free(&page);
  free(printed);
  json_decref(numbers);
  return status;
}

/* The path without slashes at its end, which completion in a shell adds. */
static const char *report_trim(tn_arena *arena, const char *path) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  return tn_arena_printf(arena, "%.*s", (int)n, path);
}

/* The runs of a sweep that have begun. */
static tn_status report_describe_sweep(const void *handle, tn_arena *arena, const char *folder, json_t *list,
                                       json_t **sweep) {
  json_decref(*sweep);
  TN_TRY(tn_sweep_results(handle, arena, folder, sweep));
  const json_t *runs = json_object_get(*sweep, "runs");
  for (size_t i = 0; i < json_array_size(runs); i++) {
    const json_t *run = json_array_get(runs, i);
    if (tn_text_equal(json_string_value(json_object_get(run, "status")), "waiting")) continue;
    const char *path =
        tn_arena_printf(arena, "%s/%s", folder, json_string_value(json_object_get(run, "name")));
    if (path == NULL) return TN_ENOMEM;
    TN_TRY(report_describe_run(handle, arena, path, list));
  }
  return TN_OK;
}

static tn_status report_describe(const void *handle, tn_arena *arena, const char *folder, json_t *list,
                                 json_t **sweep) {
  if (folder == NULL) return TN_ENOMEM;
  return tn_is_sweep_folder(handle, folder) ? report_describe_sweep(handle, arena, folder, list, sweep)
                                            : report_describe_run(handle, arena, folder, list);
}

tn_status tn_report_write(const void *handle, const char *const *runs, int32_t n, const char *path) {
  tn_arena arena = tn_arena_new(handle);
  json_t *list = json_array(), *sweep = NULL;
  tn_status status = list != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = report_describe(handle, &arena, report_trim(&arena, runs[i]), list, &sweep);
  if (status == TN_OK) status = report_write_page(handle, list, sweep, path);
  json_decref(list);
  json_decref(sweep);
  tn_arena_free(&arena);
  return status;
}

tn_status tn_write_report(tn_context *context, const char *const *runs, int32_t n, const char *path) {
  TN_ENTER(context);
  TN_NEED(context, runs, "runs");
  TN_NEED(context, path, "path");
  if (n < 1) return tn_failf(context, TN_EINVAL, "%d runs, expected 1 or more", (int)n);
  for (int32_t i = 0; i < n; i++)
    if (runs[i] == NULL) return tn_failf(context, TN_EINVAL, "run %d is NULL", (int)i);
  return tn_report_write(context, runs, n, path);
}

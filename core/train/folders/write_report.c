/* core/train/folders/write_report.c: tn_write_report: one page about runs that needs no other file. The page
 * is report.html with the numbers of the runs inside; its script draws them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/train/folders/metric_series.h"
#include "core/train/folders/run_records.h"
#include "tenon/folders.h"

extern const char tn_report_page[]; /* report.html */

enum { EVALUATION_LIMIT = 64 << 20 };
static const char report_mark[] = "@DATA@";

/* [["run.name", "digits"], ...] */
static json_t *report_config(const tn_ini *ini) {
  json_t *list = json_array();
  for (int32_t s = 0; s < ini->n_sections; s++)
    for (int32_t k = 0; k < ini->sections[s].n_keys; k++) {
      const tn_key *key = &ini->sections[s].keys[k];
      char name[256];
      snprintf(name, sizeof name, "%s.%s", ini->sections[s].name, key->name);
      json_t *pair = json_pack("[s, s]", name, key->value);
      if (pair != NULL) json_array_append_new(list, pair); /* a value that is not UTF-8 is left out */
    }
  return list;
}

/* The file that `tenon eval` leaves in the run folder; null where there is none. */
static tn_status report_evaluation(tn_context *context, const char *folder, json_t **evaluation) {
  char *path = tn_path_join(context, folder, "evaluation.json"), *text = NULL;
  size_t n = 0;
  *evaluation = NULL;
  if (path == NULL) return TN_ENOMEM;
  tn_status status = tn_file_exists(path) ? tn_file_read(context, path, EVALUATION_LIMIT, &text, &n) : TN_OK;
  if (text != NULL) *evaluation = json_loadb(text, n, 0, NULL);
  if (*evaluation == NULL) *evaluation = json_null();
  tn_release(context, text);
  tn_release(context, path);
  return status;
}

static tn_status report_describe_run(tn_context *context, tn_arena *arena, const char *folder, json_t *runs) {
  tn_ini ini = {0};
  tn_metric_lines lines = {0};
  json_t *facts = NULL, *series = NULL, *evaluation = NULL;
  const char *config = tn_arena_printf(arena, "%s/config.ini", folder);
  tn_status status = config != NULL ? tn_ini_read(context, config, &ini) : TN_ENOMEM;
  if (status == TN_OK) status = tn_describe_run_folder(context, arena, folder, &facts);
  if (status == TN_OK) status = tn_metric_series_read(context, folder, &series);
  if (status == TN_OK) status = tn_metric_lines_read(context, folder, &lines);
  if (status == TN_OK) status = report_evaluation(context, folder, &evaluation);
  if (status == TN_OK) {
    json_t *run = json_pack("{s:O, s:O, s:o, s:O, s:O, s:O}", "name", json_object_get(facts, "name"), "facts",
                            facts, "config", report_config(&ini), "steps", series, "epochs", lines.epochs,
                            "evaluation", evaluation);
    if (run == NULL || json_array_append_new(runs, run) != 0) status = TN_ENOMEM;
  }
  json_decref(facts);
  json_decref(series);
  json_decref(evaluation);
  tn_metric_lines_free(&lines);
  tn_ini_free(&ini);
  return status;
}

/* The page with the numbers in place of the mark. In JSON `<` stands in texts alone; as an escape it cannot
 * end the script element. */
static void report_print(tn_text *page, const char *numbers) {
  const char *mark = strstr(tn_report_page, report_mark);
  tn_text_addn(page, tn_report_page, (size_t)(mark - tn_report_page));
  for (size_t n; *numbers != '\0'; numbers += n) {
    n = strcspn(numbers, "<");
    tn_text_addn(page, numbers, n);
    if (numbers[n] == '<') tn_text_add(page, "\\u003c"), n++;
  }
  tn_text_add(page, mark + sizeof report_mark - 1);
}

static json_t *report_numbers(json_t *runs) {
  char written[32];
  time_t now = time(NULL);
  struct tm local;
  strftime(written, sizeof written, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
  return json_pack("{s:O, s:s, s:s}", "runs", runs, "written", written, "version", tn_version());
}

static tn_status report_write_page(tn_context *context, json_t *runs, const char *path) {
  json_t *numbers = report_numbers(runs);
  char *printed = numbers != NULL ? json_dumps(numbers, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
  tn_text page = tn_text_new(context);
  if (printed != NULL) report_print(&page, printed);
  bool failed = printed == NULL || page.failed;
  tn_status status = failed ? tn_failf(context, TN_ENOMEM, "%s: no memory for the page", path)
                            : tn_file_write_atomic(context, path, page.v, page.n);
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

tn_status tn_write_report(tn_context *context, const char *const *runs, int32_t n, const char *path) {
  TN_ENTER(context);
  TN_NEED(context, runs, "runs");
  TN_NEED(context, path, "path");
  if (n < 1) return tn_failf(context, TN_EINVAL, "%d runs, expected 1 or more", (int)n);
  tn_arena arena = tn_arena_new(context);
  json_t *list = json_array();
  tn_status status = list != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; status == TN_OK && i < n; i++) {
    if (runs[i] == NULL) status = tn_failf(context, TN_EINVAL, "run %d is NULL", (int)i);
    const char *folder = status == TN_OK ? report_trim(&arena, runs[i]) : NULL;
    if (status == TN_OK)
      status = folder != NULL ? report_describe_run(context, &arena, folder, list) : TN_ENOMEM;
  }
  if (status == TN_OK) status = report_write_page(context, list, path);
  json_decref(list);
  tn_arena_free(&arena);
  return status;
}

/* core/records/folders/sweep_results.c: tn_list_sweep: how the runs of a sweep came out, and the mean and
 * standard deviation of each configuration over its seeds and folds. */
#include "core/records/folders/sweep_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/records/folders/run_records.h"
#include "core/run/result.h"
#include "tenon/folders.h"

enum { SWEEP_LIMIT = 64 << 20 };

bool tn_is_sweep_folder(const void *handle, const char *folder) {
  char *path = tn_path_join(handle, folder, TN_SWEEP_FILE);
  bool there = path != NULL && tn_file_exists(path);
  tn_release(handle, path);
  return there;
}

/* A list of so many texts; n < 0: of any number. */
static bool sweep_is_texts(const json_t *list, int64_t n) {
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!json_is_string(json_array_get(list, i))) return false;
  return json_is_array(list) && (n < 0 || json_array_size(list) == (size_t)n);
}

static bool sweep_is_run(const json_t *run) {
  const char *name = json_string_value(json_object_get(run, "name"));
  return name != NULL && *name != '.' && strchr(name, '/') == NULL &&
         json_is_integer(json_object_get(run, "configuration")) &&
         sweep_is_texts(json_object_get(run, "set"), -1);
}

/* The members that a sweep has, each of its kind. */
static bool sweep_is_whole(const json_t *sweep) {
  const json_t *runs = json_object_get(sweep, "runs"), *options = json_object_get(sweep, "options"),
               *configurations = json_object_get(sweep, "configurations");
  bool whole = json_is_array(runs) && sweep_is_texts(options, -1) && json_is_array(configurations) &&
               json_is_array(json_object_get(sweep, "rungs")) &&
               json_is_string(json_object_get(sweep, "metric")) &&
               json_is_string(json_object_get(sweep, "method")) &&
               json_is_boolean(json_object_get(sweep, "smaller_is_better"));
  for (size_t i = 0; whole && i < json_array_size(runs); i++) whole = sweep_is_run(json_array_get(runs, i));
  for (size_t i = 0; whole && i < json_array_size(configurations); i++)
    whole = sweep_is_texts(json_array_get(configurations, i), (int64_t)json_array_size(options));
  return whole;
}

static tn_status sweep_read(const void *handle, tn_arena *arena, const char *folder, json_t **sweep) {
  const char *path = tn_arena_printf(arena, "%s/" TN_SWEEP_FILE, folder);
  char *text = NULL;
  size_t n = 0;
  json_error_t error;
  if (path == NULL) return TN_ENOMEM;
  if (!tn_file_exists(path))
    return tn_failf(handle, TN_EINVAL, "%s: is not the folder of a sweep, expected one with " TN_SWEEP_FILE,
                    folder);
  TN_TRY(tn_file_read(handle, path, SWEEP_LIMIT, &text, &n));
  *sweep = json_loadb(text, n, 0, &error);
  tn_release(handle, text);
  bool right = sweep_is_whole(*sweep);
  return right ? TN_OK
               : tn_failf(handle, TN_EINVAL, "%s: is damaged (%s); nothing was changed", path,
                          *sweep == NULL ? error.text : "it lacks members of a sweep");
}

/* ---- one run ---- */

/* The metric of validation, or of training where there is no validation. */
static json_t *sweep_score(const json_t *epoch, const char *metric) {
  const json_t *valid = json_object_get(epoch, "valid");
  json_t *value = json_object_get(valid != NULL ? valid : json_object_get(epoch, "train"), metric);
  return json_is_number(value) ? value : NULL;
}

/* [[epoch, score], ...] */
static tn_status sweep_add_scores(const void *handle, const char *path, const char *metric, json_t *run) {
  tn_metric_lines lines;
  json_t *scores = json_array();
  tn_status status = tn_metric_lines_read(handle, path, &lines);
  for (size_t i = 0; status == TN_OK && i < json_array_size(lines.epochs); i++) {
    const json_t *epoch = json_array_get(lines.epochs, i);
    json_t *score = sweep_score(epoch, metric);
    json_t *number = json_object_get(epoch, "epoch");
    if (score != NULL) json_array_append_new(scores, json_pack("[O, O]", number, score));
  }
  if (json_array_size(lines.epochs) > 0) {
    const json_t *last = json_array_get(lines.epochs, json_array_size(lines.epochs) - 1);
    json_object_set(run, "seconds", json_object_get(last, "seconds"));
  }
  tn_metric_lines_free(&lines);
  json_object_set_new(run, "scores", scores);
  return status;
}

/* The best score, or NaN. */
static double sweep_best(const json_t *run, bool smaller) {
  const json_t *scores = json_object_get(run, "scores");
  double best = NAN;
  for (size_t i = 0; i < json_array_size(scores); i++) {
    double score = json_number_value(json_array_get(json_array_get(scores, i), 1));
    if (isnan(best) || (smaller ? score < best : score > best)) best = score;
  }
  return best;
}

static tn_status sweep_describe_run(const void *handle, tn_arena *arena, const char *folder,
                                    const json_t *sweep, json_t *run) {
  const char *name = json_string_value(json_object_get(run, "name"));
  const char *path = tn_arena_printf(arena, "%s/%s", folder, name != NULL ? name : "?"),
             *config = tn_arena_printf(arena, "%s/%s/config.ini", folder, name != NULL ? name : "?");
  json_t *facts = NULL;
  if (path == NULL || config == NULL) return TN_ENOMEM;
  json_object_set_new(run, "status", json_string("waiting"));
  json_object_set_new(run, "epochs", json_integer(0));
  json_object_set_new(run, "best", json_null());
  json_object_set_new(run, "scores", json_array());
  if (!tn_file_exists(config)) return TN_OK;
  tn_status status = tn_describe_run_folder(handle, arena, path, &facts);
  if (status == TN_OK)
    status = sweep_add_scores(handle, path, json_string_value(json_object_get(sweep, "metric")), run);
  if (status == TN_OK) {
    json_object_set(run, "status", json_object_get(facts, "status"));
    json_object_set(run, "epochs", json_object_get(facts, "epochs"));
    json_object_set(run, "ended", json_object_get(facts, "ended"));
    json_object_set_new(
        run, "best",
        tn_json_real(sweep_best(run, json_is_true(json_object_get(sweep, "smaller_is_better")))));
  }
  json_decref(facts);
  return status;
}

/* ---- configurations ---- */

typedef struct sweep_row {
  int64_t number;             /* from 0 */
  json_t *runs;               /* names */
  double sum, squares, shift; /* of the best scores less the first of them */
  int64_t scored, epochs;
  double seconds;
} sweep_row;

static void sweep_count_run(sweep_row *row, const json_t *run) {
  const json_t *best = json_object_get(run, "best");
  int64_t epochs = json_integer_value(json_object_get(run, "epochs"));
  json_array_append(row->runs, json_object_get(run, "name"));
  row->seconds += json_number_value(json_object_get(run, "seconds"));
  if (epochs > row->epochs) row->epochs = epochs;
  if (!json_is_number(best)) return;
  if (row->scored == 0) row->shift = json_number_value(best);
  double value = json_number_value(best) - row->shift;
  row->sum += value;
  row->squares += value * value;
  row->scored++;
}

static double sweep_mean(const sweep_row *row) {
  return row->scored > 0 ? row->shift + row->sum / (double)row->scored : (double)NAN;
}

/* The standard deviation of the sample; NaN for one run. */
static double sweep_deviation(const sweep_row *row) {
  double n = (double)row->scored;
  return n > 1 ? sqrt(fmax(0, (row->squares - row->sum * row->sum / n) / (n - 1))) : (double)NAN;
}

/* The best first; those without a score last. */
static bool sweep_is_better(const sweep_row *a, const sweep_row *b, bool smaller) {
  double x = sweep_mean(a), y = sweep_mean(b);
  if (isnan(x) || isnan(y)) return !isnan(x) && isnan(y);
  return smaller ? x < y : x > y;
}

static void sweep_sort(sweep_row *rows, size_t n, bool smaller) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && sweep_is_better(&rows[k], &rows[k - 1], smaller); k--) {
      sweep_row swapped = rows[k];
      rows[k] = rows[k - 1];
      rows[k - 1] = swapped;
    }
}

static json_t *sweep_print_row(const sweep_row *row, json_t *values) {
  return json_pack("{s:I, s:O, s:o, s:o, s:I, s:I, s:f, s:O}", "configuration", (json_int_t)row->number + 1,
                   "values", values, "mean", tn_json_real(sweep_mean(row)), "std",
                   tn_json_real(sweep_deviation(row)), "scored", (json_int_t)row->scored, "epochs",
                   (json_int_t)row->epochs, "seconds", row->seconds, "runs", row->runs);
}

static tn_status sweep_add_rows(tn_arena *arena, const json_t *sweep, json_t *result) {
  json_t *configurations = json_object_get(sweep, "configurations"), *runs = json_object_get(result, "runs"),
         *table = json_array();
  size_t n = json_array_size(configurations);
  sweep_row *rows = tn_arena_alloc(arena, tn_size_mul(n + 1, sizeof *rows));
  if (rows == NULL || table == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) rows[i] = (sweep_row){.number = (int64_t)i, .runs = json_array()};
  for (size_t i = 0; i < json_array_size(runs); i++) {
    json_int_t of = json_integer_value(json_object_get(json_array_get(runs, i), "configuration"));
    if (of >= 0 && (size_t)of < n) sweep_count_run(&rows[of], json_array_get(runs, i));
  }
  sweep_sort(rows, n, json_is_true(json_object_get(sweep, "smaller_is_better")));
  for (size_t i = 0; i < n; i++) {
    json_array_append_new(table,
                          sweep_print_row(&rows[i], json_array_get(configurations, (size_t)rows[i].number)));
    json_decref(rows[i].runs);
  }
  json_object_set_new(result, "ranking", table);
  return TN_OK;
}

/* ---- the whole ---- */

tn_status tn_sweep_results(const void *handle, tn_arena *arena, const char *folder, json_t **json) {
  json_t *sweep = NULL;
  *json = NULL;
  tn_status status = sweep_read(handle, arena, folder, &sweep);
  json_t *runs = json_object_get(sweep, "runs");
  for (size_t i = 0; status == TN_OK && i < json_array_size(runs); i++)
    status = sweep_describe_run(handle, arena, folder, sweep, json_array_get(runs, i));
  if (status == TN_OK)
    *json =
        json_pack("{s:o, s:O, s:O, s:O, s:O, s:O, s:O}", "folder", tn_json_text(folder), "method",
                  json_object_get(sweep, "method"), "metric", json_object_get(sweep, "metric"),
                  "smaller_is_better", json_object_get(sweep, "smaller_is_better"), "options",
                  json_object_get(sweep, "options"), "rungs", json_object_get(sweep, "rungs"), "runs", runs);
  if (status == TN_OK) status = *json != NULL ? sweep_add_rows(arena, sweep, *json) : TN_ENOMEM;
  json_decref(sweep);
  return status;
}

tn_status tn_list_sweep(tn_context *context, const char *folder, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, folder, "folder");
  tn_arena arena = tn_arena_new(context);
  json_t *result = NULL;
  tn_status status = tn_sweep_results(context, &arena, folder, &result);
  tn_arena_free(&arena);
  if (status == TN_OK) return tn_json_take(context, result, json);
  json_decref(result);
  return status;
}

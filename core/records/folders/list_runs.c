/* core/records/folders/list_runs.c: tn_list_runs: the runs and the sweeps of a folder. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/records/folders/run_records.h"
#include "core/records/folders/sweep_results.h"
#include "core/run/result.h"
#include "tenon/folders.h"

/* A run that cannot be read is listed with the reason, so that one damaged run hides no other. */
static tn_status list_runs_add(tn_context *context, tn_arena *arena, const char *folder, const char *name,
                               json_t *list, json_t *sweeps) {
  json_t *one = NULL;
  const char *path = tn_arena_printf(arena, "%s/%s", folder, name);
  if (path == NULL) return TN_ENOMEM;
  if (name[0] != '.' && tn_is_sweep_folder(context, path)) json_array_append_new(sweeps, tn_json_text(path));
  const char *config = tn_arena_printf(arena, "%s/config.ini", path);
  if (config == NULL) return TN_ENOMEM;
  if (name[0] == '.' || !tn_file_exists(config)) return TN_OK;
  tn_status status = tn_describe_run_folder(context, arena, path, &one);
  if (status != TN_OK) json_object_set_new(one, "reason", tn_json_text(tn_error_text(context)));
  if (status != TN_OK) json_object_set_new(one, "status", json_string("unknown"));
  tn_error_clear(context);
  json_array_append_new(list, one);
  return status == TN_ENOMEM ? status : TN_OK;
}

static int list_runs_compare(const void *x, const void *y) {
  const json_t *const *a = x, *const *b = y;
  json_int_t s = json_integer_value(json_object_get(*a, "started"));
  json_int_t t = json_integer_value(json_object_get(*b, "started"));
  if (s != t) return s > t ? -1 : 1;
  return -strcmp(json_string_value(json_object_get(*a, "name")),
                 json_string_value(json_object_get(*b, "name")));
}

/* The same runs, the newest first. */
static json_t *list_runs_sort(tn_arena *arena, const json_t *list) {
  size_t n = json_array_size(list);
  json_t **runs = tn_arena_alloc(arena, tn_size_mul(n + 1, sizeof(json_t *))), *sorted = json_array();
  for (size_t i = 0; runs != NULL && i < n; i++) runs[i] = json_array_get(list, i);
  if (runs != NULL) qsort(runs, n, sizeof(json_t *), list_runs_compare);
  for (size_t i = 0; runs != NULL && i < n; i++) json_array_append(sorted, runs[i]);
  return sorted;
}

static tn_status list_runs_read(tn_context *context, tn_arena *arena, const char *folder, json_t *list,
                                json_t *sweeps) {
  DIR *runs = opendir(folder);
  if (runs == NULL) return tn_file_fail(context, folder, "opened");
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(runs));)
    status = list_runs_add(context, arena, folder, entry->d_name, list, sweeps);
  closedir(runs);
  return status;
}

tn_status tn_list_runs(tn_context *context, const char *folder, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, folder, "folder");
  tn_arena arena = tn_arena_new(context);
  json_t *list = json_array(), *sweeps = json_array(), *sweep = NULL;
  tn_status status = list_runs_read(context, &arena, folder, list, sweeps);
  if (status == TN_OK && tn_is_sweep_folder(context, folder))
    status = tn_sweep_results(context, &arena, folder, &sweep);
  json_t *result = status == TN_OK ? json_pack("{s:o, s:o, s:O}", "folder", tn_json_text(folder), "runs",
                                               list_runs_sort(&arena, list), "sweeps", sweeps)
                                   : NULL;
  if (sweep != NULL) json_object_set(result, "sweep", sweep);
  json_decref(list);
  json_decref(sweeps);
  json_decref(sweep);
  tn_arena_free(&arena);
  return status == TN_OK ? tn_json_take(context, result, json) : status;
}

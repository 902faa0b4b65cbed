/* core/records/folders/list_checkpoints.c: tn_list_checkpoints. */
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/records/folders/run_records.h"
#include "core/run/result.h"
#include "tenon/folders.h"

/* The metrics at the end of the epoch in which the checkpoint was saved; {}: it was saved in mid-epoch. */
static json_t *list_checkpoints_metrics(const tn_metric_lines *lines, const tn_progress *p) {
  json_t *metrics = json_object();
  for (size_t i = 0; p->ended && i < json_array_size(lines->epochs); i++) {
    const json_t *line = json_array_get(lines->epochs, i);
    if (json_integer_value(json_object_get(line, "step")) != p->step) continue;
    json_object_set(metrics, "train", json_object_get(line, "train"));
    json_object_set(metrics, "valid", json_object_get(line, "valid"));
  }
  return metrics;
}

static json_t *list_checkpoints_one(const tn_found_checkpoint *c, const tn_metric_lines *lines) {
  const tn_progress *p = &c->record.progress;
  json_t *json =
      json_pack("{s:o, s:o, s:I, s:I}", "name", tn_json_text(c->name), "path", tn_json_text(c->path), "bytes",
                (json_int_t)c->bytes, "saved", (json_int_t)c->saved);
  if (c->reason != NULL) {
    json_object_set_new(json, "reason", tn_json_text(c->reason));
    return json;
  }
  json_object_set_new(json, "step", json_integer(p->step));
  json_object_set_new(json, "epoch", json_integer(p->epoch));
  json_object_set_new(json, "batch", json_integer(p->batch));
  json_object_set_new(json, "best", tn_json_real(p->best));
  json_object_set_new(json, "metrics", list_checkpoints_metrics(lines, p));
  return json;
}

/* A folder without checkpoints/ may be the wrong one. */
static tn_status list_checkpoints_check(const void *handle, tn_arena *arena, const char *run) {
  struct stat info;
  const char *parent = tn_arena_printf(arena, "%s/checkpoints", run);
  const char *config = tn_arena_printf(arena, "%s/config.ini", run);
  if (parent == NULL || config == NULL) return TN_ENOMEM;
  if (stat(run, &info) != 0) return tn_file_fail(handle, run, "examined");
  if (tn_file_exists(parent) || tn_file_exists(config)) return TN_OK;
  return tn_failf(handle, TN_EINVAL,
                  "%s: is no run folder: it has neither checkpoints nor config.ini; `tenon runs` lists runs",
                  run);
}

static tn_status list_checkpoints_read(tn_context *context, tn_arena *arena, const char *run, json_t *list) {
  tn_found_checkpoints found;
  tn_metric_lines lines;
  TN_TRY(list_checkpoints_check(context, arena, run));
  TN_TRY(tn_find_checkpoints(arena, run, &found));
  tn_status status = tn_metric_lines_read(context, run, &lines);
  for (int32_t i = 0; status == TN_OK && i < found.n; i++)
    json_array_append_new(list, list_checkpoints_one(&found.v[i], &lines));
  tn_metric_lines_free(&lines);
  return status;
}

tn_status tn_list_checkpoints(tn_context *context, const char *run, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, run, "run");
  tn_arena arena = tn_arena_new(context);
  json_t *list = json_array();
  tn_status status = list_checkpoints_read(context, &arena, run, list);
  json_t *result = json_pack("{s:o, s:o}", "run", tn_json_text(run), "checkpoints", list);
  tn_arena_free(&arena);
  if (status == TN_OK) return tn_json_take(context, result, json);
  json_decref(result);
  return status;
}

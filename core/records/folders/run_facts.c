/* core/records/folders/run_facts.c: the facts about a run, from config.ini, plan.json, metrics.jsonl,
 * history.jsonl, the checkpoints and the lock. A file that is missing or damaged leaves its fields null. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/base/file/file.h"
#include "core/base/text/word_list.h"
#include "core/records/folders/read_history.h"
#include "core/records/folders/run_records.h"
#include "core/records/runs/run_lock.h"
#include "core/records/runs/run_order.h"
#include "core/run/result.h"
#include "core/run/settings/settings.h"

enum { RUN_FACTS_PLAN_LIMIT = 256 * 1024 * 1024 };

typedef struct listed_run {
  const void *handle;
  tn_arena *arena;
  const char *path;
  tn_ini ini;
  json_t *json;
} listed_run;

/* ---- the configuration ---- */

/* The value of a key, or its default; "": it has none. */
static const char *run_facts_value(const listed_run *r, const char *section, const char *key) {
  const tn_section *found = tn_ini_section(&r->ini, section);
  const tn_key *k = found ? tn_section_key(found, key) : NULL;
  if (k != NULL) return k->value;
  for (int32_t i = 0; tn_settings_tables[i]; i++) {
    const tn_option *o = tn_text_equal(tn_settings_tables[i]->name, section)
                             ? tn_options_find(tn_settings_tables[i], key)
                             : NULL;
    if (o != NULL && o->default_text != NULL) return o->default_text;
  }
  return "";
}

static int64_t run_facts_number(const listed_run *r, const char *section, const char *key) {
  int64_t value = 0;
  return tn_text_to_int(run_facts_value(r, section, key), &value) ? value : 0;
}

/* The metric of the best checkpoint: [run] best, else the first metric, else the loss. */
static const char *run_facts_best_name(const listed_run *r) {
  const char *best = run_facts_value(r, "run", "best");
  tn_words metrics = {0};
  if (*best) return best;
  const char *text = run_facts_value(r, "model", "metrics");
  if (tn_words_split(r->arena, text, &metrics) != TN_OK || metrics.n == 0) return "loss";
  return metrics.v[0];
}

static void run_facts_add_settings(listed_run *r) {
  json_object_set_new(r->json, "backend", tn_json_text(run_facts_value(r, "backend", "use")));
  json_object_set_new(r->json, "precision", tn_json_text(run_facts_value(r, "precision", "policy")));
  json_object_set_new(r->json, "planned_epochs", json_integer(run_facts_number(r, "run", "epochs")));
  json_object_set_new(r->json, "planned_steps", json_integer(run_facts_number(r, "run", "max_steps")));
}

/* ---- plan.json ---- */

/* The backend that trained, and the number of parameters. */
static void run_facts_add_plan(listed_run *r) {
  const char *path = tn_arena_printf(r->arena, "%s/plan.json", r->path);
  char *text = NULL;
  size_t n = 0;
  json_object_set_new(r->json, "parameters", json_null());
  if (path == NULL || !tn_file_exists(path)) return;
  if (tn_file_read(r->handle, path, RUN_FACTS_PLAN_LIMIT, &text, &n) != TN_OK) return;
  json_t *plan = json_loadb(text, n, 0, NULL);
  tn_release(r->handle, text);
  json_t *backend = json_object_get(json_object_get(plan, "made_for"), "backend");
  json_t *parameters = json_object_get(plan, "parameters"), *peak = json_object_get(plan, "peak_bytes");
  if (json_is_integer(peak)) json_object_set(r->json, "peak_bytes", peak);
  if (json_is_string(backend)) json_object_set(r->json, "backend", backend);
  if (json_is_integer(parameters)) json_object_set(r->json, "parameters", parameters);
  json_decref(plan);
}

/* ---- how far it came ---- */

static double run_facts_metric(const json_t *line, const char *group, const char *name) {
  const json_t *value = json_object_get(json_object_get(line, group), name);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The best value is that of the newest checkpoint; before the first one, and without validation, there is
 * none. */
static void run_facts_add_progress(listed_run *r, const tn_found_checkpoints *found,
                                   const tn_metric_lines *lines) {
  static const tn_progress none = {.best = NAN};
  bool saved = found->n > 0 && found->v[0].reason == NULL;
  const tn_progress *p = saved ? &found->v[0].record.progress : &none;
  const json_t *last = lines->last;
  int64_t step = json_integer_value(json_object_get(last, "step"));
  json_object_set_new(r->json, "epochs", json_integer(p->epoch));
  json_object_set_new(r->json, "steps", json_integer(step > p->step ? step : p->step));
  json_object_set_new(r->json, "saved_steps", json_integer(p->step));
  json_object_set_new(r->json, "waited", json_integer(p->waited));
  json_object_set_new(r->json, "best_metric", tn_json_text(run_facts_best_name(r)));
  json_object_set_new(r->json, "best", tn_json_real(p->best));
  json_object_set_new(r->json, "loss", tn_json_real(run_facts_metric(last, "train", "loss")));
}

/* Adds the newest training by history.jsonl: its file, and how it ended. */
static tn_status run_facts_add_history(listed_run *r) {
  json_t *trainings = NULL;
  tn_status status = tn_history_read(r->handle, r->path, &trainings);
  size_t n = json_array_size(trainings);
  const json_t *first = json_array_get(trainings, 0);
  int64_t began_ms = tn_run_order_of_time(json_string_value(json_object_get(first, "time")));
  if (began_ms > 0) json_object_set_new(r->json, "started", json_integer(began_ms / 1000));
  const json_t *last = json_array_get(trainings, n - 1);
  json_t *file = json_object_get(last, "file"), *end = json_object_get(last, "end");
  json_object_set_new(r->json, "trainings", json_integer((json_int_t)n));
  json_object_set(r->json, "file", file != NULL ? file : json_null());
  json_t *text = json_object_get(end, "reason"), *how = json_object_get(end, "status");
  json_object_set(r->json, "ended", json_is_string(text) ? text : json_null());
  if (json_is_string(how)) json_object_set(r->json, "status", how);
  json_decref(trainings);
  return status;
}

/* The last training says how it ended. One that was killed, and runs without a history, are judged by their
 * last checkpoint. */
static const char *run_facts_status(const listed_run *r) {
  char holder[TN_LOCK_TEXT];
  const char *ended = json_string_value(json_object_get(r->json, "status"));
  if (tn_run_lock_is_held(r->handle, r->path, holder)) {
    json_object_set_new(r->json, "holder", tn_json_text(holder));
    json_object_set_new(r->json, "ended", json_null());
    return "running";
  }
  if (ended != NULL) return ended;
  int64_t epochs = json_integer_value(json_object_get(r->json, "planned_epochs"));
  int64_t steps = json_integer_value(json_object_get(r->json, "planned_steps"));
  bool all = json_integer_value(json_object_get(r->json, "epochs")) >= epochs;
  bool limit = steps > 0 && json_integer_value(json_object_get(r->json, "saved_steps")) >= steps;
  int64_t patience = run_facts_number(r, "run", "patience");
  bool early = patience > 0 && json_integer_value(json_object_get(r->json, "waited")) >= patience;
  return all || limit || early ? "finished" : "interrupted";
}

/* Without a history: when the folder was made; where the file system does not say, when config.ini was
 * written.
 */
static int64_t run_facts_started(const char *folder, const char *config) {
  struct statx info;
  bool asked = statx(AT_FDCWD, folder, 0, STATX_BTIME, &info) == 0;
  if (asked && (info.stx_mask & STATX_BTIME) != 0) return (int64_t)info.stx_btime.tv_sec;
  struct stat file;
  return stat(config, &file) == 0 ? (int64_t)file.st_mtime : 0;
}

/* The row is that of another checkpoint. A training that goes on may be writing the one that has a reason. */
static void run_facts_warn(const listed_run *r, const tn_found_checkpoints *found, const char *status) {
  if (tn_text_equal(status, "running")) return;
  for (int32_t i = 0; i < found->n; i++)
    if (found->v[i].reason != NULL && strchr(found->v[i].name, '.') == NULL)
      tn_logf(r->handle, TN_LOG_WARN, "%s: checkpoint '%s' cannot be used: %s", r->path, found->v[i].name,
              found->v[i].reason);
}

static tn_status run_facts_fill(listed_run *r) {
  tn_found_checkpoints found;
  tn_metric_lines lines;
  run_facts_add_settings(r);
  run_facts_add_plan(r);
  TN_TRY(tn_find_checkpoints(r->arena, r->path, &found));
  tn_status status = tn_metric_lines_read(r->handle, r->path, &lines);
  if (status == TN_OK) run_facts_add_progress(r, &found, &lines);
  if (status == TN_OK) status = run_facts_add_history(r);
  tn_metric_lines_free(&lines);
  if (status != TN_OK) return status;
  const char *how = run_facts_status(r);
  run_facts_warn(r, &found, how);
  json_object_set_new(r->json, "status", json_string(how));
  return TN_OK;
}

tn_status tn_describe_run_folder(const void *handle, tn_arena *arena, const char *path, json_t **json) {
  listed_run r = {.handle = handle, .arena = arena, .path = path};
  const char *config = tn_arena_printf(arena, "%s/config.ini", path), *name = strrchr(path, '/');
  *json = NULL;
  if (config == NULL) return TN_ENOMEM;
  r.json = *json =
      json_pack("{s:o, s:o, s:o, s:I}", "name", tn_json_text(name != NULL && name[1] ? name + 1 : path),
                "path", tn_json_text(path), "config", tn_json_text(config), "started",
                (json_int_t)run_facts_started(path, config));
  tn_status status = *json != NULL ? tn_ini_read(handle, config, &r.ini) : TN_ENOMEM;
  if (status == TN_OK) status = run_facts_fill(&r);
  tn_ini_free(&r.ini);
  return status;
}

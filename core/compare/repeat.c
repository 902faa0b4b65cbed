/* core/compare/repeat.c: tn_run_repeat_launch: one launch of an earlier comparison, alone. */
#include <string.h>

#include "core/compare/group_graph.h"
#include "core/compare/report.h"
#include "core/compare/solo_launch.h"
#include "core/distributed/ranks/devices.h"

typedef struct repetition {
  tn_run *run, *reference;
  tn_device *tested, *trusted;
  tn_launch_file file;
  tn_solo_launch *solo;
  tn_judgement judged;
  int64_t launch; /* which one is judged, from 1 */
  bool unsteady;
} repetition;

static tn_status repeat_open(repetition *r, const char *path) {
  tn_env *env = &r->run->env;
  TN_TRY(tn_launch_file_read(env, r->run->ops, path, &r->file));
  TN_TRY(tn_run_open_device(r->run, &r->tested));
  tn_status status = tn_run_open_device(r->reference, &r->trusted);
  if (status != TN_OK) {
    tn_error_move(env, &r->reference->env);
    return status;
  }
  return tn_wrap(env, tn_solo_launch_create(env, r->run->registry, r->tested, &r->file, &r->solo), "%s",
                 path);
}

static tn_status repeat_judge(repetition *r, const void *const *found) {
  const tn_judge judge = {&r->run->env, r->run->registry, r->trusted};
  const tn_launch_file *f = &r->file;
  return tn_judge_results(&judge, f->graph, (const void *const *)f->in, f->n_in, found, f->n_out, &r->judged);
}

static bool repeat_same(const repetition *r, const void *const *first, const void *const *now) {
  char name[TN_GROUP_NAME];
  for (int32_t k = 0; k < r->file.n_out; k++) {
    tn_val v = tn_graph_find_output(r->file.graph, tn_group_graph_out(k, name));
    if (memcmp(first[k], now[k], tn_type_bytes(tn_graph_type(r->file.graph, v))) != 0) return false;
  }
  return true;
}

/* Judges the first launch, and then the first one whose results have other bits. */
static tn_status repeat_launches(repetition *r) {
  const void *const *found,
      **first = tn_arena_alloc(&r->file.memory, ((size_t)r->file.n_out + 1) * sizeof *first);
  if (first == NULL) return TN_ENOMEM;
  TN_TRY(tn_solo_launch_run(r->solo, &found));
  memcpy(first, found, (size_t)r->file.n_out * sizeof *first);
  TN_TRY(repeat_judge(r, found));
  for (r->launch = 1; r->launch < r->file.launches && r->judged.verdict < TN_JUDGED_DEPARTS;) {
    TN_TRY(tn_solo_launch_run(r->solo, &found));
    r->launch++;
    if (repeat_same(r, first, found)) continue;
    r->unsteady = tn_solo_launch_is_deterministic(r->solo);
    TN_TRY(repeat_judge(r, found));
    if (r->unsteady) break;
  }
  return TN_OK;
}

static tn_status repeat_report(repetition *r, char **json) {
  const tn_launch_file *f = &r->file;
  bool agree = !r->unsteady && r->judged.verdict < TN_JUDGED_DEPARTS;
  json_t *report = json_pack("{s:b, s:[s, s], s:s, s:s, s:s, s:s, s:I, s:b}", "agree", agree, "backends",
                             tn_device_name(r->trusted), tn_device_name(r->tested), "name", f->name, "kernel",
                             f->kernel, "plugin", f->plugin, "variant", f->variant_name, "repetition",
                             (json_int_t)r->launch, "unsteady", (int)r->unsteady);
  json_t *judged = tn_compared_judgement(&r->judged);
  if (report != NULL) json_object_update(report, judged);
  if (r->unsteady && r->judged.verdict < TN_JUDGED_DEPARTS)
    json_object_set_new(report, "verdict", json_string(tn_unsteady_verdict));
  json_decref(judged);
  return tn_json_take(r->run, report, json);
}

tn_status tn_run_repeat_launch(tn_run *run, tn_run *reference, const char *file, char **json) {
  repetition r = {.run = run, .reference = reference};
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, reference, "reference");
  TN_NEED(run, file, "file");
  if (run == reference) return tn_failf(run, TN_EINVAL, "a run cannot be compared with itself; open two");
  tn_status status = repeat_open(&r, file);
  if (status == TN_OK) status = repeat_launches(&r);
  if (status == TN_OK) status = repeat_report(&r, json);
  tn_solo_launch_destroy(r.solo);
  tn_launch_file_free(&r.file);
  tn_device_destroy(r.tested);
  tn_device_destroy(r.trusted);
  return status;
}

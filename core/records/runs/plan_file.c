/* core/records/runs/plan_file.c: plan.json: the choices that a resumed run reads, and the plan that a
 * new run writes. */
#include "core/records/runs/plan_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/compile/output/plan_json.h"
#include "core/records/runs/resumed_batch.h"
#include "core/records/runs/run_differences.h"
#include "core/records/runs/run_folder.h"
#include "core/step/programs/plan_report.h"
#include "core/run/result.h"

enum { TN_PLAN_LIMIT = 256 * 1024 * 1024 };

/* ---- reading ---- */

static const char *plan_file_text(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static tn_status plan_file_read_kernels(tn_run *run, const json_t *list, tn_recorded_choices *choices) {
  size_t n = json_array_size(list);
  choices->kernels = tn_arena_alloc(&run->arena, tn_size_mul(n, sizeof *choices->kernels));
  if (choices->kernels == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const json_t *one = json_array_get(list, i);
    tn_recorded_kernel *kernel = &choices->kernels[choices->n_kernels++];
    kernel->kernel = tn_arena_strdup(&run->arena, plan_file_text(one, "kernel"));
    kernel->plugin = tn_arena_strdup(&run->arena, plan_file_text(one, "plugin"));
    if (kernel->kernel == NULL || kernel->plugin == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* Those of the bodies of loops included. */
static size_t plan_file_count_launches(const json_t *programs) {
  size_t n = 0;
  for (size_t i = 0; i < json_array_size(programs); i++) {
    const json_t *program = json_array_get(programs, i);
    n += json_array_size(json_object_get(program, "launches"));
    n += plan_file_count_launches(json_object_get(program, "bodies"));
  }
  return n;
}

static tn_status plan_file_read_choice(tn_run *run, const json_t *launch, const char *program,
                                       tn_recorded_choices *choices) {
  tn_recorded_choice *choice = &choices->choices[choices->n_choices++];
  choice->key = strtoull(plan_file_text(launch, "key"), NULL, 16);
  choice->program = program;
  choice->kernel = tn_arena_strdup(&run->arena, plan_file_text(launch, "kernel"));
  choice->variant = (int32_t)json_integer_value(json_object_get(launch, "id"));
  choice->cost_s = json_number_value(json_object_get(launch, "cost_s"));
  return choice->kernel ? TN_OK : TN_ENOMEM;
}

static tn_status plan_file_read_programs(tn_run *run, const json_t *programs, tn_recorded_choices *choices) {
  for (size_t i = 0; i < json_array_size(programs); i++) {
    const json_t *program = json_array_get(programs, i), *launches = json_object_get(program, "launches");
    const char *name = tn_arena_strdup(&run->arena, plan_file_text(program, "name"));
    if (name == NULL) return TN_ENOMEM;
    for (size_t k = 0; k < json_array_size(launches); k++)
      TN_TRY(plan_file_read_choice(run, json_array_get(launches, k), name, choices));
    TN_TRY(plan_file_read_programs(run, json_object_get(program, "bodies"), choices));
  }
  return TN_OK;
}

static tn_status plan_file_read_choices(tn_run *run, const json_t *programs, tn_recorded_choices *choices) {
  choices->choices =
      tn_arena_alloc(&run->arena, tn_size_mul(plan_file_count_launches(programs), sizeof *choices->choices));
  if (choices->choices == NULL) return TN_ENOMEM;
  TN_TRY(plan_file_read_programs(run, programs, choices));
  tn_recorded_sort(choices);
  return TN_OK;
}

/* The states with another layout than row-major. */
static tn_status plan_file_read_states(tn_run *run, const json_t *list, tn_recorded_choices *choices) {
  choices->states = tn_arena_alloc(&run->arena, tn_size_mul(json_array_size(list), sizeof *choices->states));
  if (choices->states == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    if (!*plan_file_text(one, "layout")) continue;
    tn_recorded_state *state = &choices->states[choices->n_states++];
    state->path = tn_arena_strdup(&run->arena, plan_file_text(one, "path"));
    state->layout = tn_arena_strdup(&run->arena, plan_file_text(one, "layout"));
    if (state->path == NULL || state->layout == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status plan_file_read_buckets(tn_run *run, const json_t *list, tn_recorded_choices *choices) {
  size_t n = json_array_size(list);
  choices->buckets = tn_arena_alloc(&run->arena, tn_size_mul(n, sizeof *choices->buckets));
  if (choices->buckets == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const char *first = json_string_value(json_array_get(list, i));
    if (first == NULL) continue;
    choices->buckets[choices->n_buckets] = tn_arena_strdup(&run->arena, first);
    if (choices->buckets[choices->n_buckets++] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* A plan has programs with launches, and kernels with names. */
static bool plan_file_is_plan(const json_t *json) {
  const json_t *programs = json_object_get(json, "programs"), *kernels = json_object_get(json, "kernels");
  for (size_t i = 0; i < json_array_size(programs); i++)
    if (!json_is_array(json_object_get(json_array_get(programs, i), "launches"))) return false;
  for (size_t i = 0; i < json_array_size(kernels); i++)
    if (!json_is_string(json_object_get(json_array_get(kernels, i), "kernel"))) return false;
  return json_array_size(programs) > 0 && json_array_size(kernels) > 0;
}

/* *json is the caller's (json_decref), on failure too. */
static tn_status plan_file_parse(tn_run *run, const char *path, const char *text, size_t n, json_t **json) {
  json_error_t error;
  *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
  if (*json == NULL) return tn_failf(&run->env, TN_EINVAL, "%s:%d: %s", path, error.line, error.text);
  if (plan_file_is_plan(*json)) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL, "%s: not the plan of a run: it has no programs or no kernels", path);
}

static tn_status plan_file_read_json(tn_run *run, const char *path, json_t **json) {
  char *text = NULL;
  size_t n = 0;
  *json = NULL;
  TN_TRY(tn_file_read(&run->env, path, TN_PLAN_LIMIT, &text, &n));
  tn_status status = plan_file_parse(run, path, text, n, json);
  tn_release(&run->env, text);
  return status;
}

/* A resumed run goes on without its plan: the choices are made anew. Only a lack of memory is an error. */
static tn_status plan_file_warn(tn_run *run, tn_status status) {
  if (status == TN_OK || status == TN_ENOMEM) return status;
  tn_logf(&run->env, TN_LOG_WARN,
          "%s; the run goes on with a new plan: if kernels or plugins have changed since its start, the "
          "results may differ in their last bits from those of an uninterrupted run",
          tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return TN_OK;
}

static tn_status plan_file_take_choices(tn_run *run, const json_t *json) {
  tn_recorded_choices *choices = tn_arena_alloc(&run->arena, sizeof *choices);
  if (choices == NULL) return TN_ENOMEM;
  TN_TRY(plan_file_read_kernels(run, json_object_get(json, "kernels"), choices));
  TN_TRY(plan_file_read_choices(run, json_object_get(json, "programs"), choices));
  TN_TRY(plan_file_read_states(run, json_object_get(json, "states"), choices));
  TN_TRY(plan_file_read_buckets(run, json_object_get(json, "buckets"), choices));
  run->recorded_choices = choices;
  return TN_OK;
}

static tn_status plan_file_resolve_folder(tn_run *run) {
  char *folder = NULL;
  TN_TRY(tn_run_folder_find(run, &folder));
  run->resume = folder ? tn_arena_strdup(&run->arena, folder) : NULL;
  bool lost = folder && run->resume == NULL;
  tn_release(&run->env, folder);
  return lost ? TN_ENOMEM : TN_OK;
}

/* The choices are repeated where nothing that the compiler depends on has changed. */
static tn_status plan_file_read_folder(tn_run *run, const tn_device *device) {
  json_t *json = NULL;
  bool same = false;
  char *path = tn_arena_printf(&run->arena, "%s/plan.json", run->resume);
  if (path == NULL) return TN_ENOMEM;
  TN_TRY(tn_take_resumed_batch(run, run->resume));
  tn_status status = plan_file_read_json(run, path, &json);
  run->plan_read = status == TN_OK;
  status = plan_file_warn(run, status);
  if (status == TN_OK) status = tn_run_compare(run, device, run->resume, run->plan_read ? json : NULL, &same);
  if (status == TN_OK && same) status = plan_file_take_choices(run, json);
  json_decref(json);
  return status;
}

tn_status tn_plan_file_read(tn_run *run, const tn_device *device, const tn_recorded_choices **choices) {
  *choices = run->recorded_choices;
  if (run->resume == NULL) return TN_OK;
  if (!run->compared) {
    TN_TRY(plan_file_resolve_folder(run));
    if (run->resume != NULL) TN_TRY(plan_file_read_folder(run, device));
    run->compared = true;
  }
  *choices = run->recorded_choices;
  return TN_OK;
}

tn_status tn_plan_file_take(tn_run *run, const char *text, size_t bytes) {
  json_t *json = NULL;
  tn_status status = plan_file_parse(run, "the plan of process 0", text, bytes, &json);
  if (status == TN_OK) status = plan_file_take_choices(run, json);
  json_decref(json);
  run->compared = true;
  return status;
}

/* ---- comparing ---- */

static const json_t *plan_file_find_program(const json_t *programs, const char *name) {
  for (size_t i = 0; i < json_array_size(programs); i++)
    if (strcmp(plan_file_text(json_array_get(programs, i), "name"), name) == 0)
      return json_array_get(programs, i);
  return NULL;
}

static tn_status plan_file_report_difference(tn_run *run, const char *path, const tn_program *program,
                                             const json_t *then) {
  json_t *now = NULL;
  tn_text text = tn_text_new(&run->env);
  TN_TRY(tn_program_record(program, &now));
  tn_plan_describe_differences(then, now, &text);
  /* what a user has changed is said by a remark (run_differences.h) */
  if (!text.failed)
    tn_logf(&run->env, run->recorded_choices ? TN_LOG_WARN : TN_LOG_INFO,
            "%s: program %s has another plan than before (hash %s, now %s): %s; the results may differ in "
            "their last bits from those of an uninterrupted run",
            path, program->name, plan_file_text(then, "hash"), plan_file_text(now, "hash"), text.v);
  json_decref(now);
  tn_status status = text.failed ? TN_ENOMEM : TN_OK;
  tn_text_free(&text);
  return status;
}

static tn_status plan_file_compare(tn_run *run, const char *path, const tn_program_set *set,
                                   const json_t *recorded, bool *same) {
  *same = true;
  for (int32_t i = 0; i < set->n; i++) {
    const tn_program *program = set->list[i];
    const json_t *then = plan_file_find_program(json_object_get(recorded, "programs"), program->name);
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, program->hash);
    if (then && strcmp(plan_file_text(then, "hash"), hash) == 0) continue;
    *same = false;
    if (then) TN_TRY(plan_file_report_difference(run, path, program, then));
  }
  return TN_OK;
}

/* An invalid plan.json already gave a warning when it was read. */
static tn_status plan_file_matches(tn_run *run, const char *folder, const tn_program_set *set, bool *same) {
  char *path = tn_path_join(&run->env, folder, "plan.json");
  json_t *recorded = NULL;
  *same = false;
  if (path == NULL) return TN_ENOMEM;
  tn_status status = run->plan_read ? plan_file_read_json(run, path, &recorded) : TN_OK;
  if (status == TN_OK && recorded) status = plan_file_compare(run, path, set, recorded, same);
  json_decref(recorded);
  tn_release(&run->env, path);
  return status;
}

/* ---- writing ---- */

static tn_status plan_file_record_programs(tn_run *run, const tn_program_set *set, json_t *plan) {
  json_t *programs = json_array(), *kernels = NULL;
  tn_status status = programs ? TN_OK : tn_failf(&run->env, TN_ENOMEM, "no memory for the plan");
  for (int32_t i = 0; status == TN_OK && i < set->n; i++) {
    json_t *one = NULL;
    status = tn_program_record(set->list[i], &one);
    if (status == TN_OK && json_array_append_new(programs, one) != 0) status = TN_ENOMEM;
  }
  if (status == TN_OK) status = tn_program_record_kernels(set->list[0], &kernels);
  if (status != TN_OK) {
    json_decref(programs);
    return status;
  }
  json_object_set_new(plan, "kernels", kernels);
  json_object_set_new(plan, "programs", programs);
  return TN_OK;
}

tn_status tn_plan_file_print(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                             char **text) {
  json_t *plan = NULL;
  *text = NULL;
  TN_TRY(tn_plan_report(run, device, set, slots, &plan));
  tn_status status = plan_file_record_programs(run, set, plan);
  if (json_object_set_new(plan, "made_for", tn_run_made_for(device)) != 0 && status == TN_OK)
    status = tn_failf(&run->env, TN_ENOMEM, "no memory for the plan");
  if (status != TN_OK) {
    json_decref(plan);
    return status;
  }
  return tn_json_take(run, plan, text);
}

static tn_status plan_file_write(tn_run *run, const tn_device *device, const tn_program_set *set,
                                 int32_t slots, const char *folder) {
  char *text = NULL;
  TN_TRY(tn_plan_file_print(run, device, set, slots, &text));
  char *path = tn_path_join(&run->env, folder, "plan.json");
  tn_status status = path ? tn_file_write_atomic(&run->env, path, text, strlen(text)) : TN_ENOMEM;
  tn_release(&run->env, path);
  tn_release(&run->env, text);
  return status;
}

tn_status tn_plan_file_keep(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                            const char *folder) {
  bool same = false;
  if (run->resume) TN_TRY(plan_file_matches(run, folder, set, &same));
  return same && run->recorded_choices ? TN_OK : plan_file_write(run, device, set, slots, folder);
}

/* core/train/programs/plan_file.c: what a resumed run takes over of the plan that it began with. */
#include "core/train/programs/plan_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/compile/output/record.h"
#include "core/compile/select/recorded_choices.h"
#include "core/train/result.h"

enum { TN_PLAN_LIMIT = 256 * 1024 * 1024 };

/* ---- reading ---- */

static const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static tn_status read_kernels(tn_run *run, const json_t *list, tn_replay *replay) {
  size_t n = json_array_size(list);
  replay->kernels = tn_arena_alloc(&run->arena, tn_size_mul(n, sizeof *replay->kernels));
  if (!replay->kernels) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const json_t *one = json_array_get(list, i);
    tn_replay_kernel *kernel = &replay->kernels[replay->n_kernels++];
    kernel->kernel = tn_arena_strdup(&run->arena, text_at(one, "kernel"));
    kernel->plugin = tn_arena_strdup(&run->arena, text_at(one, "plugin"));
    if (!kernel->kernel || !kernel->plugin) return TN_ENOMEM;
  }
  return TN_OK;
}

static size_t count_launches(const json_t *programs) {
  size_t n = 0;
  for (size_t i = 0; i < json_array_size(programs); i++)
    n += json_array_size(json_object_get(json_array_get(programs, i), "launches"));
  return n;
}

static tn_status read_choice(tn_run *run, const json_t *launch, tn_replay *replay) {
  tn_replay_choice *choice = &replay->choices[replay->n_choices++];
  choice->key = strtoull(text_at(launch, "key"), NULL, 16);
  choice->kernel = tn_arena_strdup(&run->arena, text_at(launch, "kernel"));
  choice->variant = (int32_t)json_integer_value(json_object_get(launch, "id"));
  return choice->kernel ? TN_OK : TN_ENOMEM;
}

static tn_status read_choices(tn_run *run, const json_t *programs, tn_replay *replay) {
  replay->choices =
      tn_arena_alloc(&run->arena, tn_size_mul(count_launches(programs), sizeof *replay->choices));
  if (!replay->choices) return TN_ENOMEM;
  for (size_t i = 0; i < json_array_size(programs); i++) {
    const json_t *launches = json_object_get(json_array_get(programs, i), "launches");
    for (size_t k = 0; k < json_array_size(launches); k++)
      TN_TRY(read_choice(run, json_array_get(launches, k), replay));
  }
  tn_replay_sort(replay);
  return TN_OK;
}

/* The states that were not row-major. */
static tn_status read_states(tn_run *run, const json_t *list, tn_replay *replay) {
  replay->states = tn_arena_alloc(&run->arena, tn_size_mul(json_array_size(list), sizeof *replay->states));
  if (!replay->states) return TN_ENOMEM;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    if (!*text_at(one, "layout")) continue;
    tn_replay_state *state = &replay->states[replay->n_states++];
    state->path = tn_arena_strdup(&run->arena, text_at(one, "path"));
    state->layout = tn_arena_strdup(&run->arena, text_at(one, "layout"));
    if (!state->path || !state->layout) return TN_ENOMEM;
  }
  return TN_OK;
}

/* Programs with launches, and kernels with names. */
static bool is_plan(const json_t *json) {
  const json_t *programs = json_object_get(json, "programs"), *kernels = json_object_get(json, "kernels");
  for (size_t i = 0; i < json_array_size(programs); i++)
    if (!json_is_array(json_object_get(json_array_get(programs, i), "launches"))) return false;
  for (size_t i = 0; i < json_array_size(kernels); i++)
    if (!json_is_string(json_object_get(json_array_get(kernels, i), "kernel"))) return false;
  return json_array_size(programs) > 0 && json_array_size(kernels) > 0;
}

/* What was read is the caller's, on failure too. */
static tn_status read_json(tn_run *run, const char *path, json_t **json) {
  json_error_t error;
  char *text = NULL;
  size_t n = 0;
  *json = NULL;
  TN_TRY(tn_file_read(&run->env, path, TN_PLAN_LIMIT, &text, &n));
  *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
  tn_release(&run->env, text);
  if (*json == NULL) return tn_failf(&run->env, TN_EINVAL, "%s:%d: %s", path, error.line, error.text);
  if (is_plan(*json)) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL, "%s: this is no plan of a run: it has no programs or no kernels",
                  path);
}

/* Memory that runs out is an error; anything else only costs the promise of equal bits. */
static tn_status warn(tn_run *run, tn_status status) {
  if (status == TN_OK || status == TN_ENOMEM) return status;
  tn_logf(&run->env, TN_LOG_WARN,
          "%s; the run goes on with a plan made anew: if kernels or plugins have changed since it began, its "
          "results may differ in their last bits from those of an uninterrupted run",
          tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return TN_OK;
}

static tn_status read_plan(tn_run *run, const char *path, tn_replay *replay) {
  json_t *json = NULL;
  tn_status status = read_json(run, path, &json);
  if (status == TN_OK) status = read_kernels(run, json_object_get(json, "kernels"), replay);
  if (status == TN_OK) status = read_choices(run, json_object_get(json, "programs"), replay);
  if (status == TN_OK) status = read_states(run, json_object_get(json, "states"), replay);
  json_decref(json);
  return status;
}

static tn_status settle_folder(tn_run *run) {
  char *folder = NULL;
  TN_TRY(tn_run_folder_resume(run, &folder));
  run->resume = folder ? tn_arena_strdup(&run->arena, folder) : NULL;
  bool lost = folder && !run->resume;
  tn_release(&run->env, folder);
  return lost ? TN_ENOMEM : TN_OK;
}

tn_status tn_replay_open(tn_run *run) {
  if (!run->resume || run->replay) return TN_OK;
  TN_TRY(settle_folder(run));
  if (!run->resume) return TN_OK;
  tn_replay *replay = tn_arena_alloc(&run->arena, sizeof *replay);
  char *path = tn_arena_printf(&run->arena, "%s/plan.json", run->resume);
  if (!replay || !path) return TN_ENOMEM;
  tn_status status = read_plan(run, path, replay);
  if (status == TN_OK) run->replay = replay;
  return warn(run, status);
}

/* ---- comparing ---- */

static void describe_kernel(const json_t *launch, tn_text *text) {
  tn_text_addf(text, "kernel %s", text_at(launch, "kernel"));
  if (*text_at(launch, "variant")) tn_text_addf(text, " \"%s\"", text_at(launch, "variant"));
  tn_text_addf(text, " of plugin %s %s", text_at(launch, "plugin"), text_at(launch, "version"));
}

static void describe_launch(const json_t *launch, tn_text *text) {
  const char *layer = text_at(launch, "layer");
  tn_text_addf(text, "%s%s%s", text_at(launch, "op"), *layer ? " of " : "", layer);
}

static bool same_at(const json_t *a, const json_t *b, const char *key) {
  return json_equal(json_object_get(a, key), json_object_get(b, key)) != 0;
}

/* What differs between two launches at the same place in a program; false: nothing. */
static bool describe_difference(const json_t *then, const json_t *now, size_t index, tn_text *text) {
  static const char *const choice[] = {"kernel", "plugin", "version", "variant", "id"};
  if (!same_at(then, now, "op") || !same_at(then, now, "layer")) {
    tn_text_addf(text, "launch %zu was ", index);
    describe_launch(then, text);
    tn_text_add(text, " by ");
    describe_kernel(then, text);
    tn_text_add(text, " and is ");
    describe_launch(now, text);
    tn_text_add(text, " by ");
    describe_kernel(now, text);
    return true;
  }
  for (size_t i = 0; i < sizeof choice / sizeof *choice; i++) {
    if (same_at(then, now, choice[i])) continue;
    tn_text_addf(text, "launch %zu, ", index);
    describe_launch(now, text);
    tn_text_add(text, ", was done by ");
    describe_kernel(then, text);
    tn_text_add(text, " and is by ");
    describe_kernel(now, text);
    return true;
  }
  if (same_at(then, now, "reads") && same_at(then, now, "writes") && same_at(then, now, "workspace"))
    return false;
  tn_text_addf(text, "launch %zu, ", index);
  describe_launch(now, text);
  tn_text_add(text, ", has other shapes, layouts or places in memory");
  return true;
}

/* "image: f32[8, 3] is image: f32[16, 3] now"; false: the inputs are the same. */
static bool describe_inputs(const json_t *then, const json_t *now, tn_text *text) {
  const json_t *old = json_object_get(then, "inputs"), *new = json_object_get(now, "inputs");
  if (json_equal(old, new)) return false;
  for (size_t i = 0; i < json_array_size(old) && i < json_array_size(new); i++) {
    const char *a = json_string_value(json_array_get(old, i)), *b = json_string_value(json_array_get(new, i));
    if (!a || !b || strcmp(a, b) == 0) continue;
    tn_text_addf(text, "input %s is %s now", a, b);
    return true;
  }
  tn_text_addf(text, "it had %zu inputs and has %zu", json_array_size(old), json_array_size(new));
  return true;
}

/* The first difference between two records of a program. */
static void describe_differences(const json_t *then, const json_t *now, tn_text *text) {
  if (describe_inputs(then, now, text)) return;
  const json_t *old = json_object_get(then, "launches"), *new = json_object_get(now, "launches");
  size_t n = json_array_size(old) < json_array_size(new) ? json_array_size(old) : json_array_size(new);
  for (size_t i = 0; i < n; i++)
    if (describe_difference(json_array_get(old, i), json_array_get(new, i), i, text)) return;
  if (json_array_size(old) != json_array_size(new))
    tn_text_addf(text, "it had %zu launches and has %zu", json_array_size(old), json_array_size(new));
  else
    tn_text_add(text, "an attribute of an op is another one");
}

static const json_t *find_program(const json_t *programs, const char *name) {
  for (size_t i = 0; i < json_array_size(programs); i++)
    if (strcmp(text_at(json_array_get(programs, i), "name"), name) == 0) return json_array_get(programs, i);
  return NULL;
}

static tn_status report_difference(tn_run *run, const char *path, const tn_program *program,
                                   const json_t *then) {
  json_t *now = NULL;
  tn_text text = tn_text_new(&run->env);
  TN_TRY(tn_program_record(program, &now));
  describe_differences(then, now, &text);
  if (!text.failed)
    tn_logf(&run->env, TN_LOG_WARN,
            "%s: program %s has another plan than before (hash %s, now %s): %s; the results may differ in "
            "their last bits from those of an uninterrupted run",
            path, program->name, text_at(then, "hash"), text_at(now, "hash"), text.v);
  json_decref(now);
  tn_status status = text.failed ? TN_ENOMEM : TN_OK;
  tn_text_free(&text);
  return status;
}

static tn_status compare(tn_run *run, const char *path, const tn_program_set *set, const json_t *recorded,
                         bool *same) {
  *same = true;
  for (int32_t i = 0; i < set->n; i++) {
    const tn_program *program = set->list[i];
    const json_t *then = find_program(json_object_get(recorded, "programs"), program->name);
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, program->hash);
    if (then && strcmp(text_at(then, "hash"), hash) == 0) continue;
    *same = false;
    if (then) TN_TRY(report_difference(run, path, program, then));
  }
  return TN_OK;
}

/* What cannot be read was reported when it was opened. */
static tn_status is_same(tn_run *run, const char *folder, const tn_program_set *set, bool *same) {
  char *path = tn_path_join(&run->env, folder, "plan.json");
  json_t *recorded = NULL;
  *same = false;
  if (!path) return TN_ENOMEM;
  tn_status status = run->replay ? read_json(run, path, &recorded) : TN_OK;
  if (status == TN_OK && recorded) status = compare(run, path, set, recorded, same);
  json_decref(recorded);
  tn_release(&run->env, path);
  return status;
}

/* ---- writing ---- */

static tn_status record_programs(tn_run *run, const tn_program_set *set, json_t *plan) {
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

static tn_status write_plan(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                            const char *folder) {
  json_t *plan = NULL;
  char *text = NULL;
  TN_TRY(tn_plan_report(run, device, set, slots, &plan));
  tn_status status = record_programs(run, set, plan);
  if (status != TN_OK) {
    json_decref(plan);
    return status;
  }
  TN_TRY(tn_json_take(run, plan, &text));
  char *path = tn_path_join(&run->env, folder, "plan.json");
  status = path ? tn_file_write_atomic(&run->env, path, text, strlen(text)) : TN_ENOMEM;
  tn_release(&run->env, path);
  tn_release(&run->env, text);
  return status;
}

tn_status tn_plan_keep(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                       const char *folder) {
  bool same = false;
  if (run->resume) TN_TRY(is_same(run, folder, set, &same));
  return same ? TN_OK : write_plan(run, device, set, slots, folder);
}

#include "core/records/runs/weights_file.h"

#include <sys/stat.h>

#include "core/base/text/text.h"
#include "core/onnx/onnx.h"
#include "core/records/learnt/learnt.h"
#include "core/records/checkpoints/weights_folder.h"
#include "core/records/runs/run_differences.h"
#include "core/records/runs/run_folder.h"

/* ---- a file or a folder ---- */

typedef struct weights_loading {
  tn_run *run;
  tn_executor *executor;
  const tn_state_map *map;
  tn_weights_source source;
  tn_weights_counts *counts;
} weights_loading;

static tn_status weights_use(void *context, const char *path) {
  weights_loading *l = context;
  l->source.path = path;
  return tn_weights_load(l->run, l->executor, l->map, &l->source, l->counts);
}

static bool weights_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* *path is NULL where a folder has no weights. */
static tn_status weights_load_place(weights_loading *l, const char *given, char **path) {
  const void *env = &l->run->env;
  *path = NULL;
  if (weights_is_folder(given)) return tn_weights_use_folder(env, given, weights_use, l, path);
  TN_TRY(tn_weights_use_file(env, given, weights_use, l));
  *path = tn_strdup(env, given);
  return *path != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_weights_load_from(tn_run *run, tn_executor *executor, const tn_state_map *map, const char *given,
                               const tn_weights_source *source, tn_weights_counts *counts, char **path) {
  weights_loading l = {run, executor, map, *source, counts};
  TN_TRY(weights_load_place(&l, given, path));
  if (*path != NULL) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: is a folder without weights; expected a run folder, the folder of a checkpoint, or a "
                  ".safetensors file",
                  given);
}

/* The newest run of this configuration's name; NULL: no run has it. */
static tn_status weights_find_newest(tn_run *run, char **folder) {
  const char *resume = run->resume;
  *folder = NULL;
  run->resume = "auto";
  tn_status status = tn_run_folder_find(run, folder);
  run->resume = resume;
  return status;
}

/* ---- the file of the configuration ---- */

/* Keys that are for a file. */
static tn_status weights_check_idle(tn_run *run) {
  const tn_weights_section *w = &run->settings.weights;
  const char *key = *w->prefix      ? "prefix"
                    : *w->skip      ? "skip"
                    : *w->rename    ? "rename"
                    : *w->transpose ? "transpose"
                    : *w->base      ? "base"
                                    : NULL;
  if (key == NULL) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [weights] %s has no effect without file; set it, or give --weights FILE",
                  tn_settings_where(&run->ini, "weights", key), key);
}

/* A line for the user: how much of the model comes from the file. */
static tn_status weights_remark(tn_run *run, const char *file, const tn_weights_counts *counts) {
  if (counts->skipped > 0)
    return tn_run_remark(run, "weights %s: %d of %d tensors; %d skipped keep the model's values", file,
                         (int)counts->read, (int)(counts->read + counts->skipped), (int)counts->skipped);
  return tn_run_remark(run, "weights %s", file);
}

/* Keeps the path that is in use, and releases it. */
static tn_status weights_keep_path(tn_run *run, char *file) {
  run->weights_file = tn_arena_strdup(&run->arena, file);
  tn_release(&run->env, file);
  return run->weights_file != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status weights_load_given(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                    const char *given) {
  const tn_weights_section *w = &run->settings.weights;
  const tn_weights_source source = {.prefix = w->prefix,
                                    .rename = w->rename,
                                    .skip = w->skip,
                                    .transpose = w->transpose,
                                    .kinds = TN_STATES_OF_MODEL,
                                    .advice = "[weights] prefix, rename or skip may help"};
  tn_weights_counts counts;
  char *file;
  TN_TRY(tn_weights_load_from(run, executor, map, given, &source, &counts, &file));
  TN_TRY(weights_keep_path(run, file));
  return weights_remark(run, run->weights_file, &counts);
}

/* The weights of an earlier run of this configuration; *found: whether such a run has weights. */
static tn_status weights_load_own(tn_run *run, tn_executor *executor, const tn_state_map *map, bool *found) {
  weights_loading l = {.run = run,
                       .executor = executor,
                       .map = map,
                       .source = {.prefix = "",
                                  .rename = "",
                                  .skip = run->settings.weights.skip,
                                  .transpose = "",
                                  .kinds = TN_STATES_OF_MODEL,
                                  .advice = "was the run trained with another [model]?"}};
  char *folder, *file = NULL;
  TN_TRY(weights_find_newest(run, &folder));
  tn_status status = folder != NULL ? weights_load_place(&l, folder, &file) : TN_OK;
  tn_release(&run->env, folder);
  *found = file != NULL;
  if (file == NULL) return status;
  tn_logf(&run->env, TN_LOG_INFO, "weights of %s", file);
  return weights_keep_path(run, file);
}

/* "net.ini:14" of [weights] file. */
static const char *weights_where(tn_run *run) {
  tn_section *section = tn_ini_section(&run->ini, "weights");
  return tn_key_where(&run->ini, section, tn_section_key(section, "file"));
}

/* ---- the weights of an opened .onnx file ---- */

static tn_status weights_write_imported(tn_run *run, tn_executor *executor, const tn_placement *state) {
  size_t bytes = tn_type_bytes(&state->type);
  float *data = tn_alloc(&run->env, bytes + 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_onnx_model_read(run->imported, state->path, data, tn_type_count(&state->type));
  if (status == TN_OK) status = tn_executor_write(executor, state->path, data, bytes);
  tn_release(&run->env, data);
  return status;
}

/* Parameters and running statistics of an imported model are f32. */
static tn_status weights_load_imported(tn_run *run, tn_executor *executor, const tn_state_map *map) {
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    bool of_model = (1u << state->what & TN_STATES_OF_MODEL) != 0 && state->path[0] != '@';
    if (of_model) TN_TRY(weights_write_imported(run, executor, state));
  }
  run->weights_file = run->ini.path;
  return TN_OK;
}

static tn_status weights_refuse_adapters(tn_run *run) {
  const tn_adapter *first = &run->settings.adapters.v[0];
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: [%s] without weights: adapters are trained beside weights that stay as they are; expected "
      "[weights] file = FILE, or --weights FILE",
      first->where, first->section);
}

tn_status tn_weights_load_configured(tn_run *run, tn_executor *executor, const tn_state_map *map) {
  const char *given = run->settings.weights.file;
  if (run->imported != NULL && !*given) return weights_load_imported(run, executor, map);
  if (!*given && run->settings.adapters.n > 0) return weights_refuse_adapters(run);
  if (!*given) return weights_check_idle(run);
  return tn_wrap(&run->env, weights_load_given(run, executor, map, given), "%s", weights_where(run));
}

static bool weights_has_parameters(const tn_state_map *map) {
  for (size_t i = 0; i < map->states.n; i++)
    if (map->states.v[i].what == TN_STATE_PARAM) return true;
  return false;
}

tn_status tn_weights_load_required(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                   const char *command) {
  bool found;
  if (*run->settings.weights.file || run->imported != NULL || !weights_has_parameters(map))
    return tn_weights_load_configured(run, executor, map);
  TN_TRY(weights_load_own(run, executor, map, &found));
  if (found) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: there are no weights to %s with; expected a file (--weights, [weights] file, "
                  "tn_session_options.weights), or a run called '%s' with a checkpoint",
                  run->ini.path, command, run->settings.run.name);
}

/* ---- the learnt state of their data ---- */

static tn_status weights_take_notes(void *context, const char *path) {
  tn_run *run = context;
  tn_safetensors *file = NULL;
  TN_TRY(tn_safetensors_open(&run->env, path, &file));
  tn_status status = tn_learnt_of_weights(run, file, path);
  tn_safetensors_close(file);
  return status;
}

static bool weights_data_learn(const tn_run *run) {
  for (int32_t split = 0; split < 2; split++) {
    const tn_data_setting *data = &run->settings.data[split];
    if (data->given && data->source->learnt != NULL) return true;
  }
  return false;
}

tn_status tn_weights_read_learnt(tn_run *run, const char *folder) {
  char *newest = NULL, *file = NULL;
  run->learnt = NULL;
  if (!weights_data_learn(run)) return TN_OK;
  const char *place = folder != NULL ? folder : run->settings.weights.file;
  if (!*place) {
    TN_TRY(weights_find_newest(run, &newest));
    place = newest;
  }
  tn_status status = TN_OK;
  if (place != NULL && weights_is_folder(place))
    status = tn_weights_use_folder(&run->env, place, weights_take_notes, run, &file);
  else if (place != NULL)
    status = tn_weights_use_file(&run->env, place, weights_take_notes, run);
  tn_release(&run->env, newest);
  tn_release(&run->env, file);
  return place == run->settings.weights.file ? tn_wrap(&run->env, status, "%s", weights_where(run)) : status;
}

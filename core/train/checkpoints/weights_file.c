#include "core/train/checkpoints/weights_file.h"

#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/train/checkpoints/checkpoint_files.h"
#include "core/train/checkpoints/run_differences.h"
#include "core/train/checkpoints/run_folder.h"

/* Below a folder, the best first. */
static const char *const weights_places[] = {"model.safetensors", "checkpoints/best/model.safetensors",
                                             "checkpoints/last/model.safetensors", "best/model.safetensors",
                                             "last/model.safetensors"};

/* A file that is not as it was written is passed over. */
static tn_status weights_look_at(tn_run *run, const char *path, const char **damage, bool *found) {
  *found = false;
  if (!tn_file_exists(path)) return TN_OK;
  tn_status status = tn_checkpoint_file_check(&run->env, path);
  *found = status == TN_OK;
  if (status != TN_EINVAL) return status;
  if (*damage == NULL) *damage = tn_arena_strdup(&run->arena, tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return *damage != NULL ? TN_OK : TN_ENOMEM;
}

/* *path is NULL where the folder has no weights. */
static tn_status weights_find_in(tn_run *run, const char *folder, char **path) {
  const char *damage = NULL;
  bool found = false;
  for (size_t i = 0; i < sizeof weights_places / sizeof *weights_places; i++) {
    *path = tn_path_join(&run->env, folder, weights_places[i]);
    tn_status status = *path != NULL ? weights_look_at(run, *path, &damage, &found) : TN_ENOMEM;
    if (found && damage != NULL)
      tn_logf(&run->env, TN_LOG_WARN, "%s; the weights are those of %s", damage, *path);
    if (found) return TN_OK;
    tn_release(&run->env, *path);
    *path = NULL;
    if (status != TN_OK) return status;
  }
  return damage != NULL ? tn_failf(&run->env, TN_EINVAL, "%s", damage) : TN_OK;
}

static tn_status weights_find_newest(tn_run *run, char **path) {
  const char *resume = run->resume;
  char *folder = NULL;
  run->resume = "auto";
  tn_status status = tn_run_folder_find(run, &folder);
  run->resume = resume;
  if (status == TN_OK && folder != NULL) status = weights_find_in(run, folder, path);
  tn_release(&run->env, folder);
  return status;
}

tn_status tn_weights_find(tn_run *run, const char *given, char **path) {
  struct stat info;
  *path = NULL;
  if (*given == '\0') return weights_find_newest(run, path);
  if (stat(given, &info) != 0 || !S_ISDIR(info.st_mode)) {
    TN_TRY(tn_checkpoint_file_check(&run->env, given));
    *path = tn_strdup(&run->env, given);
    return *path != NULL ? TN_OK : TN_ENOMEM;
  }
  TN_TRY(weights_find_in(run, given, path));
  if (*path != NULL) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: is a folder without weights; expected a run folder, the folder of a checkpoint, or a "
                  ".safetensors file",
                  given);
}

/* ---- the file of the configuration ---- */

/* Keys that are for a file. */
static tn_status weights_check_idle(tn_run *run) {
  const tn_weights_section *w = &run->settings.weights;
  const char *key = *w->prefix      ? "prefix"
                    : *w->skip      ? "skip"
                    : *w->rename    ? "rename"
                    : *w->transpose ? "transpose"
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

static tn_status weights_keep_path(tn_run *run, const char *file) {
  run->weights_file = tn_arena_strdup(&run->arena, file);
  return run->weights_file != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status weights_load_given(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                    const char *file) {
  const tn_weights_section *w = &run->settings.weights;
  tn_weights_source source = {file,
                              w->prefix,
                              w->rename,
                              w->skip,
                              w->transpose,
                              TN_STATES_OF_MODEL,
                              "[weights] prefix, rename or skip may help",
                              false};
  tn_weights_counts counts;
  TN_TRY(tn_weights_load(run, executor, map, &source, &counts));
  TN_TRY(weights_keep_path(run, file));
  return weights_remark(run, file, &counts);
}

/* The weights of an earlier run of this configuration. */
static tn_status weights_load_own(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                  const char *file) {
  tn_weights_source source = {file,
                              "",
                              "",
                              run->settings.weights.skip,
                              "",
                              TN_STATES_OF_MODEL,
                              "was the run trained with another [model]?",
                              false};
  tn_logf(&run->env, TN_LOG_INFO, "weights of %s", file);
  TN_TRY(tn_weights_load(run, executor, map, &source, NULL));
  return weights_keep_path(run, file);
}

tn_status tn_weights_load_configured(tn_run *run, tn_executor *executor, const tn_state_map *map) {
  const char *given = run->settings.weights.file;
  char *file = NULL;
  if (!*given) return weights_check_idle(run);
  tn_section *section = tn_ini_section(&run->ini, "weights");
  const char *where = tn_key_where(&run->ini, section, tn_section_key(section, "file"));
  tn_status status = tn_weights_find(run, given, &file);
  if (status == TN_OK) status = weights_load_given(run, executor, map, file);
  tn_release(&run->env, file);
  return tn_wrap(&run->env, status, "%s", where);
}

static bool weights_has_parameters(const tn_state_map *map) {
  for (size_t i = 0; i < map->states.n; i++)
    if (map->states.v[i].what == TN_STATE_PARAM) return true;
  return false;
}

tn_status tn_weights_load_required(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                   const char *command) {
  char *file = NULL;
  if (*run->settings.weights.file || !weights_has_parameters(map))
    return tn_weights_load_configured(run, executor, map);
  TN_TRY(tn_weights_find(run, "", &file));
  if (file == NULL)
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: there are no weights to %s with; expected a file (--weights, [weights] file, "
                    "tn_session_options.weights), or a run called '%s' with a checkpoint",
                    run->ini.path, command, run->settings.run.name);
  tn_status status = weights_load_own(run, executor, map, file);
  tn_release(&run->env, file);
  return status;
}

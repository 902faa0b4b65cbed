/* core/train/session/state.c: a session's parameters: initial weights, files, and memory of the application.
 */
#include "core/train/checkpoints/run_folder.h"
#include "core/train/checkpoints/weights.h"
#include "core/train/session/session.h"

/* Moves a message from the run's env to the session's, where callers read it. */
static tn_status session_take_error(tn_session *s, tn_status status) {
  if (status != TN_OK && *tn_error_text(s->run) != '\0') tn_error_move(s, s->run);
  return status;
}

static tn_status session_load_file(tn_session *s, const char *path, const char *prefix) {
  tn_weights_source source = {path, prefix, s->run->settings.weights.ignore, TN_STATES_OF_MODEL,
                              "[weights] ignore may help"};
  return tn_weights_load(s->run, s->executor, s->set.map, &source);
}

/* *path is the model file of a checkpoint, the caller's; NULL: the run folder has no checkpoint of this name.
 */
static tn_status session_find_checkpoint(tn_run *run, const char *folder, const char *name, char **path) {
  tn_text text = tn_text_new(&run->env);
  tn_text_addf(&text, "%s/checkpoints/%s/model.safetensors", folder, name);
  *path = tn_text_take(&text);
  if (*path == NULL) return TN_ENOMEM;
  if (tn_file_exists(*path)) return TN_OK;
  tn_release(&run->env, *path);
  *path = NULL;
  return TN_OK;
}

/* Loads the newest run of this name: its best checkpoint, or else its last. */
static tn_status session_load_newest(tn_session *s) {
  tn_run *run = s->run;
  const char *resume = run->resume;
  char *folder = NULL, *path = NULL;
  run->resume = "auto";
  tn_status status = tn_run_folder_find(run, &folder);
  run->resume = resume;
  if (status == TN_OK && folder != NULL) status = session_find_checkpoint(run, folder, "best", &path);
  if (status == TN_OK && folder != NULL && path == NULL)
    status = session_find_checkpoint(run, folder, "last", &path);
  if (status == TN_OK && path != NULL) status = session_load_file(s, path, "");
  if (status == TN_OK && path == NULL)
    status = tn_failf(&run->env, TN_EINVAL,
                      "there are no weights: expected tn_session_options.weights, [weights] file, or a run "
                      "called '%s' with a checkpoint",
                      run->settings.run.name);
  tn_release(&run->env, path);
  tn_release(&run->env, folder);
  return status;
}

tn_status tn_session_start_weights(tn_session *s, const char *weights) {
  bool has_parameters = false;
  const tn_state_map *map = s->set.map;
  for (size_t i = 0; i < map->states.n; i++)
    has_parameters = has_parameters || map->states.v[i].what == TN_STATE_PARAM;
  if (weights != NULL) return *weights != '\0' ? session_load_file(s, weights, "") : TN_OK;
  if (*s->run->settings.weights.file != '\0' || !has_parameters)
    return tn_weights_load_configured(s->run, s->executor, map);
  return session_load_newest(s);
}

tn_status tn_session_save(tn_session *s, const char *path) {
  tn_file_sum sum;
  TN_ENTER(s);
  TN_NEED(s, path, "path");
  return session_take_error(s,
                            tn_weights_save(s->run, s->executor, s->set.map, TN_STATES_OF_MODEL, path, &sum));
}

tn_status tn_session_load(tn_session *s, const char *path) {
  TN_ENTER(s);
  TN_NEED(s, path, "path");
  return session_take_error(s, session_load_file(s, path, ""));
}

tn_status tn_session_read(tn_session *s, const char *path, void *to, size_t bytes) {
  TN_ENTER(s);
  TN_NEED(s, path, "path");
  if (bytes > 0) TN_NEED(s, to, "to");
  return tn_executor_read(s->executor, path, to, bytes);
}

tn_status tn_session_write(tn_session *s, const char *path, const void *from, size_t bytes) {
  TN_ENTER(s);
  TN_NEED(s, path, "path");
  if (bytes > 0) TN_NEED(s, from, "from");
  TN_TRY(tn_executor_write(s->executor, path, from, bytes));
  return tn_programs_refresh(&s->set, s->executor);
}

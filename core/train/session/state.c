/* core/train/session/state.c: a session's parameters: where they start, files, and the application's memory.
 */
#include "core/train/session/session.h"

/* Files speak through the run's handle; the session's callers look into the session's. */
static tn_status told(tn_session *s, tn_status status) {
  if (status != TN_OK && *tn_error_text(s->run) != '\0') tn_error_move(s, s->run);
  return status;
}

static tn_status load_file(tn_session *s, const char *path, const char *prefix) {
  tn_weights_source source = {path, prefix, s->run->settings.weights.ignore, TN_STATES_OF_MODEL};
  return tn_weights_load(s->run, s->executor, s->set.map, &source);
}

/* The parameters in a checkpoint of a run folder; NULL: it has none of that name. The caller's. */
static tn_status find_model(tn_run *run, const char *folder, const char *name, char **path) {
  tn_text text = tn_text_new(&run->env);
  tn_text_addf(&text, "%s/checkpoints/%s/model.safetensors", folder, name);
  *path = tn_text_take(&text);
  if (*path == NULL) return TN_ENOMEM;
  if (tn_file_exists(*path)) return TN_OK;
  tn_release(&run->env, *path);
  *path = NULL;
  return TN_OK;
}

/* What the newest run of this name has saved: its best, else its last. */
static tn_status load_newest(tn_session *s) {
  tn_run *run = s->run;
  const char *resume = run->resume;
  char *folder = NULL, *path = NULL;
  run->resume = "auto";
  tn_status status = tn_run_folder_resume(run, &folder);
  run->resume = resume;
  if (status == TN_OK && folder != NULL) status = find_model(run, folder, "best", &path);
  if (status == TN_OK && folder != NULL && path == NULL) status = find_model(run, folder, "last", &path);
  if (status == TN_OK && path != NULL) status = load_file(s, path, "");
  if (status == TN_OK && path == NULL)
    status =
        tn_failf(&run->env, TN_EINVAL,
                 "there are no weights to work with: expected tn_session_options.weights, [weights] file, or "
                 "a run called '%s' that has saved some",
                 run->settings.run.name);
  tn_release(&run->env, path);
  tn_release(&run->env, folder);
  return status;
}

tn_status tn_serve_start_weights(tn_session *s, const char *weights) {
  bool learns = false;
  const tn_state_map *map = s->set.map;
  for (size_t i = 0; i < map->states.n; i++) learns = learns || map->states.v[i].what == TN_STATE_PARAM;
  if (weights != NULL) return *weights != '\0' ? load_file(s, weights, "") : TN_OK;
  if (*s->run->settings.weights.file != '\0' || !learns)
    return tn_weights_load_configured(s->run, s->executor, map);
  return load_newest(s);
}

tn_status tn_session_save(tn_session *s, const char *path) {
  tn_file_sum sum;
  return told(s, tn_weights_save(s->run, s->executor, s->set.map, TN_STATES_OF_MODEL, path, &sum));
}

tn_status tn_session_load(tn_session *s, const char *path) { return told(s, load_file(s, path, "")); }

tn_status tn_session_read(tn_session *s, const char *path, void *to, size_t bytes) {
  return tn_executor_read(s->executor, path, to, bytes);
}

tn_status tn_session_write(tn_session *s, const char *path, const void *from, size_t bytes) {
  TN_TRY(tn_executor_write(s->executor, path, from, bytes));
  return tn_programs_refresh(&s->set, s->executor);
}

/* core/infer/session/state.c: a session's parameters: initial weights, files, and memory of the application.
 */
#include "core/records/runs/weights_file.h"
#include "core/infer/session/session.h"

/* Moves a message from the run's env to the session's, where callers read it. */
static tn_status session_take_error(tn_session *s, tn_status status) {
  if (status != TN_OK && *tn_error_text(s->run) != '\0') tn_error_move(s, s->run);
  return status;
}

/* Loads a file, or what a folder stands for. */
static tn_status session_load_from(tn_session *s, const char *given, bool keep) {
  const tn_weights_source source = {.prefix = "",
                                    .rename = "",
                                    .skip = s->run->settings.weights.skip,
                                    .transpose = "",
                                    .kinds = TN_STATES_OF_MODEL,
                                    .advice = "[weights] skip may help",
                                    .keep = keep};
  char *path;
  TN_TRY(tn_weights_load_from(s->run, s->executor, s->set.map, given, &source, NULL, &path));
  tn_release(&s->run->env, path);
  return TN_OK;
}

tn_status tn_session_follow_weights(tn_session *s) {
  TN_TRY(tn_programs_update_mean(&s->set, s->executor, 0));
  return tn_programs_refresh(&s->set, s->executor);
}

tn_status tn_session_start_weights(tn_session *s, const char *weights) {
  if (weights == NULL) return tn_weights_load_required(s->run, s->executor, s->set.map, "infer");
  return *weights != '\0' ? session_load_from(s, weights, false) : TN_OK;
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
  TN_TRY(session_take_error(s, session_load_from(s, path, true)));
  return tn_session_follow_weights(s);
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

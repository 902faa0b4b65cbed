/* core/train/checkpoint.c: FOLDER/checkpoints/NAME holds model.safetensors, optimizer.safetensors and
 * state.json. It is written beside under a temporary name, synced, and exchanged with the old one in one
 * step of the file system, so that at every moment a whole checkpoint has the name. */
#include "core/train/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TN_STATE_FORMAT = 1, TN_PLAN_TEXT = 24 };

static char *join3(tn_run *run, const char *a, const char *b, const char *c) {
  tn_text text = tn_text_new(&run->env);
  tn_text_addf(&text, "%s/%s/%s", a, b, c);
  return tn_text_take(&text);
}

/* Removes a folder of plain files; a missing one is fine. */
static tn_status remove_folder(tn_run *run, const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return errno == ENOENT ? TN_OK : tn_failf(&run->env, TN_EIO, "%s: %s", path, strerror(errno));
  for (struct dirent *entry; (entry = readdir(folder));)
    if (!tn_text_equal(entry->d_name, ".") && !tn_text_equal(entry->d_name, ".."))
      unlinkat(dirfd(folder), entry->d_name, 0);
  closedir(folder);
  return rmdir(path) == 0 ? TN_OK
                          : tn_failf(&run->env, TN_EIO, "%s: cannot be removed: %s", path, strerror(errno));
}

static const char *print_plan(const tn_program_set *set, char text[TN_PLAN_TEXT]) {
  const tn_program *step = set->programs[TN_PROGRAM_STEP];
  snprintf(text, TN_PLAN_TEXT, "%016llx", (unsigned long long)(step ? step->hash : 0));
  return text;
}

static tn_status write_progress(tn_run *run, const tn_program_set *set, const tn_progress *p,
                                const char *path) {
  char plan[TN_PLAN_TEXT];
  json_t *json =
      json_pack("{s:i, s:I, s:I, s:I, s:f, s:o, s:I, s:s}", "format", TN_STATE_FORMAT, "step",
                (json_int_t)p->step, "epoch", (json_int_t)p->epoch, "batch", (json_int_t)p->batch, "seconds",
                p->seconds, "best", isfinite(p->best) ? json_real(p->best) : json_null(), "seed",
                (json_int_t)run->settings.run.seed, "plan", print_plan(set, plan));
  char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
  json_decref(json);
  if (!text) return tn_failf(&run->env, TN_ENOMEM, "no memory for %s", path);
  tn_status status = tn_file_write_atomic(&run->env, path, text, strlen(text));
  free(text);
  return status;
}

static tn_status write_files(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const tn_progress *progress, const char *folder) {
  static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json"};
  tn_status status = tn_folder_make(&run->env, folder);
  for (int i = 0; status == TN_OK && i < 3; i++) {
    char *path = tn_path_join(&run->env, folder, names[i]);
    if (!path) return TN_ENOMEM;
    if (i == 0)
      status = tn_weights_save(run, executor, set->map, TN_STATES_OF_MODEL, path);
    else if (i == 1)
      status = tn_weights_save(run, executor, set->map, TN_STATES_OF_OPTIMIZER, path);
    else
      status = write_progress(run, set, progress, path);
    tn_release(&run->env, path);
  }
  return status == TN_OK ? tn_folder_sync(&run->env, folder) : status;
}

/* Gives `fresh` the name `path`. Where there is one already the two change places, and what then has
 * the temporary name is the old one. */
static tn_status publish(tn_run *run, const char *fresh, const char *path) {
  if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return TN_OK;
  if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_EXCHANGE) == 0) return remove_folder(run, fresh);
  if (errno != EINVAL && errno != ENOSYS)
    return tn_failf(&run->env, TN_EIO, "%s: cannot be renamed to %s: %s", fresh, path, strerror(errno));
  /* a file system without exchange: the old one stays under .old until the new one has the name, and
   * loading looks there too */
  tn_text name = tn_text_new(&run->env);
  tn_text_addf(&name, "%s.old", path);
  tn_status status = name.failed ? TN_ENOMEM : remove_folder(run, name.v);
  if (status == TN_OK && rename(path, name.v) != 0 && errno != ENOENT)
    status = tn_failf(&run->env, TN_EIO, "%s: %s", path, strerror(errno));
  if (status == TN_OK && rename(fresh, path) != 0)
    status = tn_failf(&run->env, TN_EIO, "%s: cannot be renamed to %s: %s", fresh, path, strerror(errno));
  if (status == TN_OK) status = remove_folder(run, name.v);
  tn_text_free(&name);
  return status;
}

tn_status tn_checkpoint_save(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, const tn_progress *progress) {
  char *path = join3(run, folder, "checkpoints", name), *all = tn_path_join(&run->env, folder, "checkpoints");
  tn_text fresh = tn_text_new(&run->env);
  if (path) tn_text_addf(&fresh, "%s.new", path);
  tn_status status = path && all && !fresh.failed ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = tn_folder_make(&run->env, all);
  if (status == TN_OK) status = remove_folder(run, fresh.v); /* of a run that was killed while writing */
  if (status == TN_OK) status = write_files(run, executor, set, progress, fresh.v);
  if (status == TN_OK) status = publish(run, fresh.v, path);
  if (status == TN_OK) status = tn_folder_sync(&run->env, all);
  tn_text_free(&fresh);
  tn_release(&run->env, path);
  tn_release(&run->env, all);
  return status == TN_OK ? TN_OK : tn_wrap(&run->env, status, "checkpoint '%s'", name);
}

/* ---- loading ---- */

static bool read_number(const json_t *json, const char *name, int64_t *value) {
  const json_t *number = json_object_get(json, name);
  if (!json_is_integer(number) || json_integer_value(number) < 0) return false;
  *value = json_integer_value(number);
  return true;
}

/* What may differ and changes the run: said, not refused. */
static void compare_runs(tn_run *run, const tn_program_set *set, const json_t *json, const char *path) {
  int64_t seed = run->settings.run.seed;
  char plan[TN_PLAN_TEXT];
  const char *saved = json_string_value(json_object_get(json, "plan"));
  if (!read_number(json, "seed", &seed) || seed != run->settings.run.seed)
    tn_logf(&run->env, TN_LOG_WARN,
            "%s: was made with seed %lld, this run has %lld: its order of samples will differ", path,
            (long long)seed, (long long)run->settings.run.seed);
  if (!tn_text_equal(saved, print_plan(set, plan)))
    tn_logf(&run->env, TN_LOG_WARN, "%s: was made by plan %s, this run has %s: bits may differ", path,
            saved ? saved : "?", plan);
}

static tn_status read_progress(tn_run *run, const tn_program_set *set, const char *path, tn_progress *p) {
  json_error_t error;
  char *text = NULL;
  size_t count = 0;
  TN_TRY(tn_file_read(&run->env, path, 1 << 20, &text, &count));
  json_t *json = json_loadb(text, count, JSON_REJECT_DUPLICATES, &error);
  tn_release(&run->env, text);
  if (!json) return tn_failf(&run->env, TN_EINVAL, "%s:%d: %s", path, error.line, error.text);
  bool fine = read_number(json, "step", &p->step) && read_number(json, "epoch", &p->epoch) &&
              read_number(json, "batch", &p->batch);
  const json_t *best = json_object_get(json, "best");
  p->best = json_is_number(best) ? json_number_value(best) : NAN;
  p->seconds = json_number_value(json_object_get(json, "seconds"));
  int64_t format = 0;
  bool known = read_number(json, "format", &format) && format == TN_STATE_FORMAT;
  if (fine && known) compare_runs(run, set, json, path);
  json_decref(json);
  if (!known)
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: has format %lld, expected %d; it was written by another version", path,
                    (long long)format, TN_STATE_FORMAT);
  return fine ? TN_OK
              : tn_failf(&run->env, TN_EINVAL, "%s: step, epoch or batch is missing or no number", path);
}

static tn_status load_files(tn_run *run, tn_executor *executor, const tn_program_set *set, const char *folder,
                            tn_progress *progress) {
  static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "state.json"};
  tn_status status = TN_OK;
  for (int i = 0; status == TN_OK && i < 3; i++) {
    char *path = tn_path_join(&run->env, folder, names[i]);
    if (!path) return TN_ENOMEM;
    tn_weights_source source = {path, "", "", i == 0 ? TN_STATES_OF_MODEL : TN_STATES_OF_OPTIMIZER};
    status =
        i < 2 ? tn_weights_load(run, executor, set->map, &source) : read_progress(run, set, path, progress);
    tn_release(&run->env, path);
  }
  return status;
}

tn_status tn_checkpoint_load(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, tn_progress *progress) {
  char *path = join3(run, folder, "checkpoints", name);
  tn_text old = tn_text_new(&run->env);
  if (path) tn_text_addf(&old, "%s.old", path);
  tn_status status = path && !old.failed ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) {
    bool moved = !tn_file_exists(path) && tn_file_exists(old.v);
    status = load_files(run, executor, set, moved ? old.v : path, progress);
  }
  tn_text_free(&old);
  tn_release(&run->env, path);
  return status == TN_OK ? TN_OK : tn_wrap(&run->env, status, "checkpoint '%s'", name);
}

/* core/train/checkpoints/checkpoint.c: a checkpoint is written beside under a temporary name, synced, and
 * exchanged with the old one in one step of the file system, so that at every moment a whole one is there
 * (docs/decisions/0009-checkpoints.md). */
#include "core/train/checkpoints/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const tn_checkpoint_files[TN_CHECKPOINT_FILES] = {"model.safetensors", "optimizer.safetensors",
                                                              "state.json"};

/* ---- folders ---- */

tn_status tn_checkpoint_set_aside(tn_run *run, const char *path, const char *word, const char **aside) {
  for (int32_t i = 1; i < 10000; i++) {
    *aside = i == 1 ? tn_arena_printf(&run->arena, "%s.%s", path, word)
                    : tn_arena_printf(&run->arena, "%s.%s-%d", path, word, i);
    if (!*aside) return TN_ENOMEM;
    if (tn_file_exists(*aside)) continue;
    return rename(path, *aside) == 0 ? TN_OK : tn_file_fail(&run->env, path, "renamed");
  }
  return tn_failf(&run->env, TN_EIO, "%s: too many folders beside it are called %s", path, word);
}

/* Whether a file of a checkpoint's folder is ours: one of the three, or what a crash left of writing one. */
static bool is_ours(const char *name) {
  size_t n = strlen(name);
  for (int i = 0; i < TN_CHECKPOINT_FILES; i++) {
    if (tn_text_equal(name, tn_checkpoint_files[i])) return true;
    if (tn_text_starts(name, tn_checkpoint_files[i]) && n > 4 && tn_text_equal(name + n - 4, ".tmp"))
      return true;
  }
  return false;
}

static tn_status remove_ours(tn_run *run, const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return errno == ENOENT ? TN_OK : tn_file_fail(&run->env, path, "opened");
  tn_status status = TN_OK;
  if (unlinkat(dirfd(folder), tn_checkpoint_files[TN_CHECKPOINT_STATE], 0) != 0 && errno != ENOENT)
    status = tn_file_fail(&run->env, path, "emptied");
  for (struct dirent *entry; status == TN_OK && (entry = readdir(folder));)
    if (is_ours(entry->d_name) && unlinkat(dirfd(folder), entry->d_name, 0) != 0 && errno != ENOENT)
      status = tn_file_fail(&run->env, path, "emptied");
  closedir(folder);
  return status;
}

tn_status tn_checkpoint_remove(tn_run *run, const char *path) {
  const char *aside = NULL;
  TN_TRY(remove_ours(run, path));
  if (rmdir(path) == 0 || errno == ENOENT) return TN_OK;
  if (errno != ENOTEMPTY && errno != EEXIST) return tn_file_fail(&run->env, path, "removed");
  TN_TRY(tn_checkpoint_set_aside(run, path, "kept", &aside));
  tn_logf(&run->env, TN_LOG_WARN, "%s: holds files that are not Tenon's; they are kept in %s", path, aside);
  return TN_OK;
}

/* The new one stands; a remainder of the old one is a nuisance, no failure. */
static void remove_replaced(tn_run *run, const char *path) {
  if (tn_checkpoint_remove(run, path) == TN_OK) return;
  tn_logf(&run->env, TN_LOG_WARN, "%s (of a checkpoint that was replaced)", tn_error_text(&run->env));
  tn_error_clear(&run->env);
}

static tn_status sync_folder_of(tn_run *run, const char *path) {
  char *folder = tn_path_folder(&run->env, path);
  tn_status status = folder ? tn_folder_sync(&run->env, folder) : TN_ENOMEM;
  tn_release(&run->env, folder);
  return status;
}

/* For file systems without exchange: the old one is called PATH.old until the new one has the name, and
 * resuming looks there, too. */
static tn_status publish_in_two(tn_run *run, const char *fresh, const char *path) {
  tn_text old = tn_text_new(&run->env);
  tn_text_addf(&old, "%s.old", path);
  tn_status status = old.failed ? TN_ENOMEM : tn_checkpoint_remove(run, old.v);
  if (status == TN_OK && rename(path, old.v) != 0 && errno != ENOENT)
    status = tn_file_fail(&run->env, path, "renamed");
  if (status == TN_OK && rename(fresh, path) != 0) status = tn_file_fail(&run->env, fresh, "put in place");
  if (status == TN_OK) status = sync_folder_of(run, path);
  if (status == TN_OK) remove_replaced(run, old.v);
  tn_text_free(&old);
  return status;
}

tn_status tn_checkpoint_publish(tn_run *run, const char *fresh, const char *path) {
  if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return sync_folder_of(run, path);
  if (errno == EEXIST && renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
    TN_TRY(sync_folder_of(run, path)); /* before the old one goes */
    remove_replaced(run, fresh);
    return TN_OK;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return publish_in_two(run, fresh, path);
  return tn_file_fail(&run->env, fresh, "put in place");
}

/* ---- saving ---- */

void tn_record_plan(const tn_program_set *set, char text[TN_PLAN_TEXT]) {
  const tn_program *step = set->programs[TN_PROGRAM_STEP];
  snprintf(text, TN_PLAN_TEXT, "%016llx", (unsigned long long)(step ? step->hash : 0));
}

static tn_status write_one(tn_run *run, tn_executor *executor, const tn_program_set *set, int file,
                           const char *path, tn_record *record) {
  if (file == TN_CHECKPOINT_STATE) return tn_record_write(run, record, path);
  uint32_t kinds = file == TN_CHECKPOINT_MODEL ? TN_STATES_OF_MODEL : TN_STATES_OF_OPTIMIZER;
  return tn_weights_save(run, executor, set->map, kinds, path, &record->files[file]);
}

static tn_status write_files(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const tn_progress *progress, const char *folder) {
  tn_record record = {.progress = *progress, .seed = run->settings.run.seed};
  tn_record_plan(set, record.plan);
  if (mkdir(folder, 0777) != 0) return tn_file_fail(&run->env, folder, "made");
  tn_status status = TN_OK;
  for (int i = 0; status == TN_OK && i < TN_CHECKPOINT_FILES; i++) {
    char *path = tn_path_join(&run->env, folder, tn_checkpoint_files[i]);
    status = path ? write_one(run, executor, set, i, path, &record) : TN_ENOMEM;
    tn_release(&run->env, path);
  }
  return status;
}

/* FOLDER/checkpoints, whose name is on disk when it was made here. */
static tn_status make_home(tn_run *run, const char *home) {
  if (tn_file_exists(home)) return TN_OK;
  TN_TRY(tn_folder_make(&run->env, home));
  return sync_folder_of(run, home);
}

static tn_status save_at(tn_run *run, tn_executor *executor, const tn_program_set *set, const char *path,
                         const tn_progress *progress) {
  tn_text fresh = tn_text_new(&run->env);
  tn_text_addf(&fresh, "%s.new", path);
  tn_status status = fresh.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK)
    status = tn_checkpoint_remove(run, fresh.v); /* of a run that was killed while writing */
  if (status == TN_OK) status = write_files(run, executor, set, progress, fresh.v);
  if (status == TN_OK) status = tn_checkpoint_publish(run, fresh.v, path);
  tn_text_free(&fresh);
  return status;
}

tn_status tn_checkpoint_save(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, const tn_progress *progress) {
  char *home = tn_path_join(&run->env, folder, "checkpoints");
  char *path = home ? tn_path_join(&run->env, home, name) : NULL;
  tn_status status = path ? make_home(run, home) : TN_ENOMEM;
  if (status == TN_OK) status = save_at(run, executor, set, path, progress);
  tn_release(&run->env, path);
  tn_release(&run->env, home);
  return status == TN_OK ? TN_OK : tn_wrap(&run->env, status, "checkpoint '%s' was not written", name);
}

/* core/records/checkpoints/checkpoint.c: writes a checkpoint into a temporary folder, syncs it, and exchanges
 * it with the old one by one call of the file system, so that a complete checkpoint exists at every moment
 * (docs/decisions/0009-checkpoints.md). */
#include "core/records/checkpoints/adapter_files.h"
#include "core/records/checkpoints/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders ---- */

tn_status tn_checkpoint_rename_aside(tn_run *run, const char *path, const char *word, const char **aside) {
  for (int32_t i = 1; i < 10000; i++) {
    *aside = i == 1 ? tn_arena_printf(&run->arena, "%s.%s", path, word)
                    : tn_arena_printf(&run->arena, "%s.%s-%d", path, word, i);
    if (*aside == NULL) return TN_ENOMEM;
    struct stat info;
    if (lstat(*aside, &info) == 0) continue; /* a link to nothing has the name, too */
    return rename(path, *aside) == 0 ? TN_OK : tn_file_fail(&run->env, path, "renamed");
  }
  return tn_failf(&run->env, TN_EIO, "%s: too many folders beside it are called %s", path, word);
}

/* Whether `name` is that of a file, or of the temporary file of an interrupted write. */
static bool checkpoint_is_file(const char *name, const char *file) {
  return tn_text_equal(name, file) || (tn_text_starts(name, file) && tn_text_ends(name, ".tmp"));
}

/* Whether a file of a checkpoint's folder is Tenon's: one of the three, or of those for PEFT. */
static bool checkpoint_owns_file(const char *name) {
  for (int i = 0; i < TN_CHECKPOINT_FILES; i++)
    if (checkpoint_is_file(name, tn_checkpoint_files[i])) return true;
  return checkpoint_is_file(name, tn_peft_files[0]) || checkpoint_is_file(name, tn_peft_files[1]);
}

static tn_status checkpoint_remove_files(tn_run *run, int fd, const char *path) {
  DIR *folder = fdopendir(fd);
  if (folder == NULL) {
    tn_status status = tn_file_fail(&run->env, path, "opened");
    close(fd);
    return status;
  }
  tn_status status = TN_OK;
  if (unlinkat(fd, tn_checkpoint_files[TN_CHECKPOINT_STATE], 0) != 0 && errno != ENOENT)
    status = tn_file_fail(&run->env, path, "emptied");
  for (struct dirent *entry; status == TN_OK && (entry = readdir(folder));)
    if (checkpoint_owns_file(entry->d_name) && unlinkat(fd, entry->d_name, 0) != 0 && errno != ENOENT)
      status = tn_file_fail(&run->env, path, "emptied");
  closedir(folder);
  return status;
}

static tn_status checkpoint_keep_aside(tn_run *run, const char *path, const char *what) {
  const char *aside = NULL;
  TN_TRY(tn_checkpoint_rename_aside(run, path, "kept", &aside));
  tn_logf(&run->env, TN_LOG_WARN, "%s: %s; they are kept in %s", path, what, aside);
  return TN_OK;
}

/* A symbolic link is removed itself, never what it points to. A file of this name is not Tenon's. */
static tn_status checkpoint_remove_other(tn_run *run, const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0) return errno == ENOENT ? TN_OK : tn_file_fail(&run->env, path, "examined");
  if (!S_ISLNK(info.st_mode))
    return checkpoint_keep_aside(run, path, "is a file, not a folder with files of a checkpoint");
  return unlink(path) == 0 || errno == ENOENT ? TN_OK : tn_file_fail(&run->env, path, "removed");
}

/* state.json is removed first, so that an interrupted removal leaves no valid checkpoint. */
tn_status tn_checkpoint_remove(tn_run *run, const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) return checkpoint_remove_other(run, path);
  if (fd < 0) return errno == ENOENT ? TN_OK : tn_file_fail(&run->env, path, "opened");
  TN_TRY(checkpoint_remove_files(run, fd, path));
  if (rmdir(path) == 0 || errno == ENOENT) return TN_OK;
  if (errno != ENOTEMPTY && errno != EEXIST) return tn_file_fail(&run->env, path, "removed");
  return checkpoint_keep_aside(run, path, "holds files that are not Tenon's");
}

/* The new checkpoint is complete; a failure to remove the old one is only a warning. */
static void checkpoint_remove_replaced(tn_run *run, const char *path) {
  if (tn_checkpoint_remove(run, path) == TN_OK) return;
  tn_logf(&run->env, TN_LOG_WARN, "%s (of a checkpoint that was replaced)", tn_error_text(&run->env));
  tn_error_clear(&run->env);
}

static tn_status checkpoint_sync_parent(tn_run *run, const char *path) {
  char *folder = tn_path_folder(&run->env, path);
  tn_status status = folder ? tn_folder_sync(&run->env, folder) : TN_ENOMEM;
  tn_release(&run->env, folder);
  return status;
}

/* For file systems without exchange: the old checkpoint is called PATH.old until the new one has the name.
 * Resuming examines PATH.old, too. */
static tn_status checkpoint_publish_by_renames(tn_run *run, const char *temporary, const char *path) {
  tn_text old = tn_text_new(&run->env);
  tn_text_addf(&old, "%s.old", path);
  tn_status status = old.failed ? TN_ENOMEM : tn_checkpoint_remove(run, old.v);
  if (status == TN_OK && rename(path, old.v) != 0 && errno != ENOENT)
    status = tn_file_fail(&run->env, path, "renamed");
  if (status == TN_OK && rename(temporary, path) != 0)
    status = tn_file_fail(&run->env, temporary, "put in place");
  if (status == TN_OK) status = checkpoint_sync_parent(run, path);
  if (status == TN_OK) checkpoint_remove_replaced(run, old.v);
  tn_text_free(&old);
  return status;
}

tn_status tn_checkpoint_publish(tn_run *run, const char *temporary, const char *path) {
  if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
    return checkpoint_sync_parent(run, path);
  if (errno == EEXIST && renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
    TN_TRY(checkpoint_sync_parent(run, path)); /* before the old one is removed */
    checkpoint_remove_replaced(run, temporary);
    return TN_OK;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)
    return checkpoint_publish_by_renames(run, temporary, path);
  return tn_file_fail(&run->env, temporary, "put in place");
}

/* ---- saving ---- */

tn_status tn_checkpoint_check_parent(tn_run *run, const char *parent) {
  struct stat info;
  if (lstat(parent, &info) != 0 || !S_ISLNK(info.st_mode)) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: is a symbolic link, and saving would replace the checkpoints that it leads to; "
                  "remove it, or let the whole run folder be a link",
                  parent);
}

void tn_plan_hash_text(const tn_program_set *set, char text[TN_PLAN_TEXT]) {
  const tn_program *step = set->programs[TN_PROGRAM_STEP];
  snprintf(text, TN_PLAN_TEXT, "%016llx", (unsigned long long)(step ? step->hash : 0));
}

static tn_status checkpoint_write_file(tn_run *run, tn_executor *executor, const tn_program_set *set,
                                       int file, const char *path, tn_state_record *record) {
  if (file == TN_CHECKPOINT_STATE) return tn_state_record_write(run, record, path);
  uint32_t kinds = file == TN_CHECKPOINT_MODEL ? TN_STATES_OF_MODEL : TN_STATES_OF_OPTIMIZER;
  return tn_weights_save(run, executor, set->map, kinds, path, &record->files[file]);
}

void tn_schedule_text(const tn_run *run, char text[TN_SCHEDULE_TEXT]) {
  const tn_schedule_setting *schedule = run->settings.schedule;
  const tn_schedule *kind = schedule != NULL ? schedule->kind : NULL;
  snprintf(text, TN_SCHEDULE_TEXT, "%s", kind != NULL && kind->epoch != NULL ? kind->item.name : "");
}

static tn_status checkpoint_write_files(tn_run *run, tn_executor *executor, const tn_program_set *set,
                                        const tn_progress *progress, const char *folder) {
  tn_state_record record = {.progress = *progress, .seed = run->settings.run.seed};
  tn_plan_hash_text(set, record.plan);
  tn_schedule_text(run, record.schedule);
  if (mkdir(folder, 0777) != 0) return tn_file_fail(&run->env, folder, "made");
  tn_status status = tn_peft_files_write(run, executor, set->map, folder);
  for (int i = 0; status == TN_OK && i < TN_CHECKPOINT_FILES; i++) {
    char *path = tn_path_join(&run->env, folder, tn_checkpoint_files[i]);
    status = path ? checkpoint_write_file(run, executor, set, i, path, &record) : TN_ENOMEM;
    tn_release(&run->env, path);
  }
  return status;
}

/* Creates FOLDER/checkpoints and syncs its name to disk. */
static tn_status checkpoint_create_parent(tn_run *run, const char *parent) {
  TN_TRY(tn_checkpoint_check_parent(run, parent));
  if (tn_file_exists(parent)) return TN_OK;
  TN_TRY(tn_folder_make(&run->env, parent));
  return checkpoint_sync_parent(run, parent);
}

static tn_status checkpoint_save_at(tn_run *run, tn_executor *executor, const tn_program_set *set,
                                    const char *path, const tn_progress *progress) {
  tn_text temporary = tn_text_new(&run->env);
  tn_text_addf(&temporary, "%s.new", path);
  tn_status status = temporary.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK)
    status = tn_checkpoint_remove(run, temporary.v); /* left by a run that was killed while writing */
  if (status == TN_OK) status = checkpoint_write_files(run, executor, set, progress, temporary.v);
  if (status == TN_OK) status = tn_checkpoint_publish(run, temporary.v, path);
  tn_text_free(&temporary);
  return status;
}

tn_status tn_checkpoint_save(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, const tn_progress *progress) {
  char *parent = tn_path_join(&run->env, folder, "checkpoints");
  char *path = parent ? tn_path_join(&run->env, parent, name) : NULL;
  tn_status status = path ? checkpoint_create_parent(run, parent) : TN_ENOMEM;
  if (status == TN_OK) status = checkpoint_save_at(run, executor, set, path, progress);
  tn_release(&run->env, path);
  tn_release(&run->env, parent);
  return status == TN_OK ? TN_OK : tn_wrap(&run->env, status, "checkpoint '%s' was not written", name);
}

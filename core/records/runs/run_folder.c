/* core/records/runs/run_folder.c: run folders: OUTPUT/NAME, or NAME-2, NAME-3 where that exists. */
#include "core/records/runs/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/records/checkpoints/checkpoint.h"
#include "core/records/runs/run_lock.h"
#include "core/records/runs/run_order.h"

enum { TN_FOLDER_TRIES = 100000 };

static const char *run_folder_parent(const tn_run *run) {
  return run->output ? run->output : run->settings.run.output;
}

/* The path of attempt number `i`, from 1. */
static char *run_folder_path(tn_run *run, int32_t i) {
  const char *name = run->settings.run.name;
  char suffix[16] = "";
  if (i > 1) snprintf(suffix, sizeof suffix, "-%d", i);
  tn_text text = tn_text_new(&run->env);
  tn_text_addf(&text, "%s/%s%s", run_folder_parent(run), name, suffix);
  return tn_text_take(&text);
}

static tn_status run_folder_check_name(tn_run *run) {
  const char *name = run->settings.run.name;
  if (*name && strchr(name, '/') == NULL && !tn_text_equal(name, ".") && !tn_text_equal(name, ".."))
    return TN_OK;
  tn_section *section = tn_ini_section(&run->ini, "run");
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [run] name: '%s' cannot be a folder's name, expected one without '/'",
                  tn_key_where(&run->ini, section, tn_section_key(section, "name")), name);
}

/* ---- an earlier run ---- */

static int64_t run_folder_ms(const struct stat *info) {
  return (int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000;
}

/* Whether FOLDER has a checkpoint; *changed_ms is the last modification of any. Interrupted and incomplete
 * checkpoints count, so that resuming reports them. */
static bool run_folder_is_saved(tn_run *run, const char *folder, int64_t *changed_ms) {
  static const char *const names[] = {"last",
                                      "best",
                                      "last/state.json",
                                      "last.new/state.json",
                                      "last.old/state.json",
                                      "best/state.json",
                                      "best.new/state.json",
                                      "best.old/state.json"};
  struct stat info;
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    tn_text path = tn_text_new(&run->env);
    tn_text_addf(&path, "%s/checkpoints/%s", folder, names[i]);
    bool there = !path.failed && stat(path.v, &info) == 0;
    tn_text_free(&path);
    if (there && (!found || run_folder_ms(&info) > *changed_ms)) *changed_ms = run_folder_ms(&info);
    found = found || there;
  }
  return found;
}

static bool run_folder_has_config(tn_run *run, const char *folder, struct stat *info) {
  char *config = tn_path_join(&run->env, folder, "config.ini");
  bool there = config != NULL && stat(config, info) == 0 && S_ISREG(info->st_mode);
  tn_release(&run->env, config);
  return there;
}

/* Whether a folder holds nothing but the lock and a configuration that is being written. */
static bool run_folder_is_new(const char *folder, struct stat *info) {
  DIR *list = opendir(folder);
  if (list == NULL) return false;
  bool is_new = fstat(dirfd(list), info) == 0;
  for (struct dirent *entry; is_new && (entry = readdir(list));)
    is_new = tn_text_equal(entry->d_name, ".") || tn_text_equal(entry->d_name, "..") ||
             tn_text_equal(entry->d_name, TN_LOCK_NAME) || tn_text_starts(entry->d_name, "config.ini.");
  closedir(list);
  return is_new;
}

/* Whether a folder without a checkpoint is a run's: it has config.ini, or was made and holds nothing yet.
 * Another process may write config.ini while the folder is listed, so its absence is looked at again.
 * *changed_ms is the time of its configuration. */
static bool run_folder_begun(tn_run *run, const char *folder, int64_t *changed_ms) {
  struct stat info;
  bool begun = run_folder_has_config(run, folder, &info) || run_folder_is_new(folder, &info) ||
               run_folder_has_config(run, folder, &info);
  if (begun) *changed_ms = run_folder_ms(&info);
  return begun;
}

/* An earlier run, and whether it has a checkpoint. */
typedef struct run_folder_found {
  char *path;    /* NULL: none; the caller's */
  int64_t order; /* run_order.h; where the folder has no record, the time of its files */
  bool saved;
} run_folder_found;

/* Records of the same moment are of earlier versions: then the folder with the greater number is the later.
 */
static bool run_folder_is_later(const run_folder_found *a, const run_folder_found *b) {
  if (b->path == NULL) return true;
  return a->order > b->order || (a->order == b->order && strverscmp(a->path, b->path) > 0);
}

static tn_status run_folder_consider(tn_run *run, const char *name, bool with_begun,
                                     run_folder_found *newest) {
  run_folder_found one = {.path = tn_path_join(&run->env, run_folder_parent(run), name)};
  if (one.path == NULL) return TN_ENOMEM;
  one.saved = run_folder_is_saved(run, one.path, &one.order);
  bool counts = one.saved || (with_begun && run_folder_begun(run, one.path, &one.order));
  int64_t recorded = counts ? tn_run_order_read(&run->env, one.path) : 0;
  if (recorded > 0) one.order = recorded;
  bool later = counts && run_folder_is_later(&one, newest);
  tn_release(&run->env, later ? newest->path : one.path);
  if (later) *newest = one;
  return TN_OK;
}

/* The folder of the run that trained last, of those with a checkpoint; `with_begun`: or without one. */
static tn_status run_folder_find_newest(tn_run *run, bool with_begun, run_folder_found *newest) {
  DIR *output = opendir(run_folder_parent(run));
  if (output == NULL)
    return errno == ENOENT ? TN_OK : tn_file_fail(&run->env, run_folder_parent(run), "read");
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(output));)
    if (tn_run_order_is_named(entry->d_name, run->settings.run.name))
      status = run_folder_consider(run, entry->d_name, with_begun, newest);
  closedir(output);
  return status;
}

static tn_status run_folder_search(tn_run *run, bool with_begun, run_folder_found *found) {
  TN_TRY(run_folder_check_name(run));
  if (!tn_text_equal(run->resume, "auto")) {
    found->saved = run_folder_is_saved(run, run->resume, &found->order);
    if (!found->saved && !tn_file_exists(run->resume) && errno != ENOENT)
      return tn_file_fail(&run->env, run->resume, "examined");
    if (!found->saved)
      return tn_failf(&run->env, TN_EINVAL,
                      "%s: no checkpoint to resume from, expected a run folder with checkpoints/last",
                      run->resume);
    found->path = tn_strdup(&run->env, run->resume);
    return found->path ? TN_OK : TN_ENOMEM;
  }
  TN_TRY(run_folder_find_newest(run, with_begun, found));
  if (found->path == NULL)
    tn_logf(&run->env, TN_LOG_INFO, "no run called '%s' to resume in %s: starting a new one",
            run->settings.run.name, run_folder_parent(run));
  return TN_OK;
}

tn_status tn_run_folder_find(tn_run *run, char **folder) {
  run_folder_found found = {NULL};
  tn_status status = run_folder_search(run, false, &found);
  *folder = found.path;
  return status;
}

/* ---- claiming ---- */

static tn_status run_folder_check_links(tn_run *run, const char *folder) {
  char *parent = tn_path_join(&run->env, folder, "checkpoints");
  tn_status status = parent ? tn_checkpoint_check_parent(run, parent) : TN_ENOMEM;
  tn_release(&run->env, parent);
  return status;
}

/* The run may have ended, or have written its first checkpoint, before the lock was taken. */
static tn_status run_folder_enter(tn_run *run, const char *folder) {
  int64_t changed_ms;
  TN_TRY(tn_run_lock_take(run, folder));
  TN_TRY(run_folder_check_links(run, folder));
  bool saved = run_folder_is_saved(run, folder, &changed_ms);
  run->resume = saved ? folder : NULL;
  run->begun = saved ? NULL : folder;
  if (!saved)
    tn_logf(&run->env, TN_LOG_WARN,
            "%s: ended before its first checkpoint: the run starts again in this folder", folder);
  return TN_OK;
}

/* Locks the folder that was found, if there is one, and releases its path. */
static tn_status run_folder_enter_found(tn_run *run, run_folder_found *found) {
  const char *folder = found->path ? tn_arena_strdup(&run->arena, found->path) : NULL;
  bool lost = found->path != NULL && folder == NULL;
  tn_release(&run->env, found->path);
  if (lost) return TN_ENOMEM;
  run->resume = NULL;
  return folder != NULL ? run_folder_enter(run, folder) : TN_OK;
}

tn_status tn_run_folder_claim(tn_run *run) {
  run_folder_found found = {NULL};
  if (run->resume == NULL || run->settings.run.fast_dev_run) return TN_OK;
  TN_TRY(run_folder_search(run, true, &found));
  return run_folder_enter_found(run, &found);
}

/* ---- a new run ---- */

static tn_status run_folder_fill(tn_run *run, const char *folder) {
  TN_TRY(tn_run_config_keep(run, folder));
  return tn_folder_sync(&run->env, run_folder_parent(run));
}

/* Makes and locks the folder. *taken: it exists, or a process that resumes found it first. */
static tn_status run_folder_make(tn_run *run, const char *path, bool *taken) {
  *taken = false;
  /* mkdir is atomic, so two runs that start at once get two folders */
  if (mkdir(path, 0777) != 0) {
    *taken = errno == EEXIST;
    return *taken ? TN_OK : tn_file_fail(&run->env, path, "made");
  }
  tn_status status = tn_run_lock_take(run, path);
  *taken = status == TN_EUNAVAILABLE;
  if (*taken) tn_error_clear(&run->env);
  return *taken ? TN_OK : status;
}

/* Two processes that resume "auto" and start at once find no run. The one that makes its folder later takes
 * part in the run of the other: it is refused, or starts that run where the other ended before a checkpoint.
 */
static tn_status run_folder_join(tn_run *run) {
  run_folder_found found = {NULL};
  TN_TRY(run_folder_find_newest(run, true, &found));
  TN_TRY(run_folder_enter_found(run, &found));
  if (run->resume == NULL) return TN_OK;
  const char *folder = run->resume;
  run->resume = NULL;
  return tn_failf(
      &run->env, TN_EUNAVAILABLE,
      "%s: another process began and ended this run while this one compiled; repeat the command to "
      "resume it",
      folder);
}

/* Where `path` is taken, *folder is the run that this one joins, or stays NULL: the next number is tried. */
static tn_status run_folder_try(tn_run *run, const char *path, char **folder) {
  bool taken;
  TN_TRY(run_folder_make(run, path, &taken));
  if (taken && run->resume_asked) TN_TRY(run_folder_join(run));
  if (taken && run->begun == NULL) return TN_OK;
  *folder = tn_strdup(&run->env, taken ? run->begun : path);
  return *folder ? TN_OK : TN_ENOMEM;
}

static tn_status run_folder_make_next(tn_run *run, char **folder) {
  TN_TRY(tn_folder_make(&run->env, run_folder_parent(run)));
  for (int32_t i = 1; i <= TN_FOLDER_TRIES; i++) {
    char *path = run_folder_path(run, i);
    if (path == NULL) return TN_ENOMEM;
    tn_status status = run_folder_try(run, path, folder);
    tn_release(&run->env, path);
    if (status != TN_OK || *folder != NULL) return status;
  }
  return tn_failf(&run->env, TN_EIO, "%s: too many runs called '%s'", run_folder_parent(run),
                  run->settings.run.name);
}

tn_status tn_run_folder_create(tn_run *run, char **folder) {
  *folder = NULL;
  if (*run_folder_parent(run) == '\0' || run->settings.run.fast_dev_run) return TN_OK;
  TN_TRY(run_folder_check_name(run));
  if (run->begun != NULL) {
    *folder = tn_strdup(&run->env, run->begun);
    if (*folder == NULL) return TN_ENOMEM;
  } else {
    TN_TRY(run_folder_make_next(run, folder));
  }
  return run_folder_fill(run, *folder);
}

int64_t tn_run_folder_order(const tn_run *run, const char *folder) {
  return tn_run_order_next(&run->env, folder, run_folder_parent(run), run->settings.run.name);
}

void tn_run_folder_leave(tn_run *run) {
  tn_run_lock_release(run);
  run->begun = NULL;
}

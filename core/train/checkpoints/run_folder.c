/* core/train/checkpoints/run_folder.c: run folders: OUTPUT/NAME, or NAME-2, NAME-3 where that exists. */
#include "core/train/checkpoints/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

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

static tn_status run_folder_write_config(tn_run *run, const char *folder) {
  tn_text text = tn_text_new(&run->env);
  char *path = tn_path_join(&run->env, folder, "config.ini");
  tn_status status = path ? tn_ini_print(&run->env, &run->ini, &text) : TN_ENOMEM;
  if (status == TN_OK)
    status = text.failed ? TN_ENOMEM : tn_file_write_atomic(&run->env, path, text.v ? text.v : "", text.n);
  tn_text_free(&text);
  tn_release(&run->env, path);
  return status;
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

tn_status tn_run_folder_create(tn_run *run, char **folder) {
  *folder = NULL;
  if (*run_folder_parent(run) == '\0' || run->settings.run.fast_dev_run) return TN_OK;
  TN_TRY(run_folder_check_name(run));
  TN_TRY(tn_folder_make(&run->env, run_folder_parent(run)));
  for (int32_t i = 1; i <= TN_FOLDER_TRIES; i++) {
    char *path = run_folder_path(run, i);
    if (path == NULL) return TN_ENOMEM;
    /* mkdir is atomic, so two runs that start at once get two folders */
    if (mkdir(path, 0777) == 0) {
      tn_status status = run_folder_write_config(run, path);
      if (status == TN_OK) status = tn_folder_sync(&run->env, run_folder_parent(run));
      *folder = path;
      return status;
    }
    int reason = errno;
    if (reason != EEXIST) tn_file_fail(&run->env, path, "made");
    tn_release(&run->env, path);
    if (reason != EEXIST) return TN_EIO;
  }
  return tn_failf(&run->env, TN_EIO, "%s: too many runs called '%s'", run_folder_parent(run),
                  run->settings.run.name);
}

static bool run_folder_is_later(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* The last modification of any checkpoint of FOLDER; false: it has no checkpoint. Interrupted and incomplete
 * checkpoints count, so that resuming reports them. */
static bool run_folder_last_saved(tn_run *run, const char *folder, struct timespec *when) {
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
    if (there && (!found || run_folder_is_later(&info.st_mtim, when))) *when = info.st_mtim;
    found = found || there;
  }
  return found;
}

/* Whether a file name is NAME or NAME-2, NAME-3 ... */
static bool run_folder_has_run_name(const char *file, const char *name) {
  size_t n = strlen(name);
  int64_t number;
  if (strncmp(file, name, n) != 0) return false;
  return file[n] == '\0' || (file[n] == '-' && tn_text_to_int(file + n + 1, &number) && number > 1);
}

/* The folder with the newest checkpoint; NULL if no folder has one. */
static tn_status run_folder_find_newest(tn_run *run, char **folder) {
  struct timespec best = {0, 0}, when;
  DIR *output = opendir(run_folder_parent(run));
  if (output == NULL)
    return errno == ENOENT ? TN_OK : tn_file_fail(&run->env, run_folder_parent(run), "read");
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(output));) {
    if (!run_folder_has_run_name(entry->d_name, run->settings.run.name)) continue;
    char *path = tn_path_join(&run->env, run_folder_parent(run), entry->d_name);
    if (path == NULL) status = TN_ENOMEM;
    bool later = path && run_folder_last_saved(run, path, &when) && run_folder_is_later(&when, &best);
    if (later) best = when;
    tn_release(&run->env, later ? *folder : path);
    if (later) *folder = path;
  }
  closedir(output);
  return status;
}

tn_status tn_run_folder_find(tn_run *run, char **folder) {
  *folder = NULL;
  TN_TRY(run_folder_check_name(run));
  if (!tn_text_equal(run->resume, "auto")) {
    struct timespec when;
    if (!run_folder_last_saved(run, run->resume, &when))
      return tn_failf(&run->env, TN_EINVAL,
                      "%s: no checkpoint to resume from, expected a run folder with checkpoints/last",
                      run->resume);
    *folder = tn_strdup(&run->env, run->resume);
    return *folder ? TN_OK : TN_ENOMEM;
  }
  TN_TRY(run_folder_find_newest(run, folder));
  if (*folder == NULL)
    tn_logf(&run->env, TN_LOG_INFO, "no run called '%s' to resume in %s: starting a new one",
            run->settings.run.name, run_folder_parent(run));
  return TN_OK;
}

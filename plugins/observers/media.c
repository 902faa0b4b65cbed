/* plugins/observers/media.c: pictures and texts as files: below a folder, and the observer `media`, which
 * writes those of [run] samples to the run folder. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/observers/whole_file.h"

static const char media_samples[] = "samples", media_step[] = "step-";

/* ---- paths ---- */

static const char *media_ending(const tn_media *medium) {
  return medium->kind == TN_MEDIA_PNG ? "png" : "md";
}

/* n characters of a name, without those that lead to another folder. */
static void media_add_name(char *path, size_t size, const char *name, size_t n) {
  size_t at = strlen(path);
  for (size_t i = 0; i < n && at + 1 < size; i++) {
    unsigned char c = (unsigned char)name[i];
    path[at++] = (char)(isalnum(c) || c == '-' || c == '_' || (c == '.' && i > 0) ? c : '_');
  }
  path[at] = '\0';
}

void media_path(const tn_event *event, const tn_media *medium, char *path, size_t size) {
  const char *slash = strchr(medium->name, '/'), *name = slash != NULL ? slash + 1 : medium->name;
  path[0] = '\0';
  if (slash != NULL) media_add_name(path, size, medium->name, (size_t)(slash - medium->name));
  size_t at = strlen(path);
  snprintf(path + at, size - at, "%s%s%08lld/", at > 0 ? "/" : "", media_step, (long long)event->step);
  media_add_name(path, size, name, strlen(name));
  at = strlen(path);
  snprintf(path + at, size - at, ".%s", media_ending(medium));
}

/* ---- writing ---- */

static int media_write_one(const char *folder, const tn_event *event, const tn_media *medium, char *path) {
  char name[512];
  media_path(event, medium, name, sizeof name);
  if (snprintf(path, WHOLE_FILE_PATH, "%s/%s", folder, name) >= WHOLE_FILE_PATH)
    return errno = ENAMETOOLONG, 0;
  char *slash = strrchr(path, '/');
  *slash = '\0';
  if (!whole_file_make_folder(path)) return 0;
  *slash = '/';
  return whole_file_write(path, medium->data, medium->bytes);
}

void media_write(tn_env *env, const char *folder, const tn_event *event) {
  char path[WHOLE_FILE_PATH];
  for (int32_t i = 0; i < event->n_media; i++)
    if (!media_write_one(folder, event, &event->media[i], path)) {
      tn_env_log(env, TN_LOG_WARN, "%s: cannot be written: %s; training continues", path, strerror(errno));
      return; /* one line for all files of the event */
    }
}

/* ---- steps of an earlier process ---- */

static void media_remove_step(const char *folder) {
  char path[WHOLE_FILE_PATH];
  DIR *dir = opendir(folder);
  for (struct dirent *one; dir != NULL && (one = readdir(dir)) != NULL;)
    if (one->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, one->d_name) < (int)sizeof path)
      (void)unlink(path);
  if (dir != NULL) closedir(dir);
  (void)rmdir(folder);
}

void media_cut(const char *folder, const tn_run_info *run) {
  char path[WHOLE_FILE_PATH], step_path[WHOLE_FILE_PATH];
  if (snprintf(path, sizeof path, "%s/%s", folder, media_samples) >= (int)sizeof path) return;
  DIR *dir = opendir(path);
  for (struct dirent *one; dir != NULL && (one = readdir(dir)) != NULL;) {
    long long step;
    if (sscanf(one->d_name, "step-%lld", &step) != 1) continue;
    if (step < run->first_step || (step == run->first_step && run->epoch_ended)) continue;
    if (snprintf(step_path, sizeof step_path, "%s/%s", path, one->d_name) < (int)sizeof step_path)
      media_remove_step(step_path);
  }
  if (dir != NULL) closedir(dir);
}

/* ---- the observer ---- */

typedef struct media_files {
  char folder[WHOLE_FILE_PATH]; /* "": nothing is written */
} media_files;

static void media_close(tn_env *env, void *self) { tn_delete(env, self); }

static tn_status media_open(tn_env *env, const void *options, const tn_run_info *run, void **self) {
  media_files *m = tn_new(env, sizeof *m);
  (void)options;
  *self = NULL;
  if (m == NULL) return TN_ENOMEM;
  snprintf(m->folder, sizeof m->folder, "%s", run->folder);
  if (*m->folder != '\0') media_cut(m->folder, run);
  *self = m;
  return TN_OK;
}

static tn_status media_on_event(tn_env *env, void *self, const tn_event *event) {
  const media_files *m = self;
  if (event->kind == TN_EVENT_SAMPLES && *m->folder != '\0') media_write(env, m->folder, event);
  return TN_OK;
}

const tn_observer observer_media = {
    .item = TN_ITEM_PLAIN(tn_observer, TN_OBSERVER, "media",
                          "the pictures and texts of [run] samples in the run folder"),
    .always = 1,
    .open = media_open,
    .event = media_on_event,
    .close = media_close};

/* core/plugin/folder.c: the shared objects of a plugin folder. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/plugin/index.h"

typedef struct scan {
  const void *handle;
  tn_arena *arena;
  const char *folder;
  tn_plugin_files *files;
} scan;

static tn_status folder_no_memory(const scan *s) {
  return tn_failf(s->handle, TN_ENOMEM, "out of memory while %s was searched for plugins", s->folder);
}

static tn_status folder_fail_path(const void *handle, const char *path, const char *what) {
  char reason[128];
  const char *text = strerror_r(errno, reason, sizeof(reason));
  return tn_failf(handle, TN_EIO, "%s: %s: %s", path, what, text);
}

tn_status tn_plugin_file_stat(const void *handle, tn_plugin_file *file) {
  struct stat st;
  if (stat(file->path, &st) != 0) return folder_fail_path(handle, file->path, "cannot be looked at");
  file->device = st.st_dev;
  file->inode = st.st_ino;
  file->bytes = (int64_t)st.st_size;
  file->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  return TN_OK;
}

/* A dangling link stands for a plugin that was removed: it is skipped. */
static tn_status folder_add_file(const scan *s, const char *relative) {
  tn_plugin_file file = {.path = tn_arena_printf(s->arena, "%s/%s", s->folder, relative),
                         .relative = tn_arena_strdup(s->arena, relative)};
  if (file.path == NULL || file.relative == NULL) return folder_no_memory(s);
  if (!tn_file_exists(file.path)) return TN_OK;
  TN_TRY(tn_plugin_file_stat(s->handle, &file));
  return tn_vec_push(s->handle, s->files, file);
}

static tn_status folder_scan_level(const scan *s, const char *below, int depth);

static tn_status folder_visit(const scan *s, const char *below, const char *name, int depth) {
  if (name[0] == '.') return TN_OK;
  const char *relative = tn_arena_printf(s->arena, "%s%s%s", below, below[0] != '\0' ? "/" : "", name);
  if (relative == NULL) return folder_no_memory(s);
  if (tn_text_ends(name, ".so")) return folder_add_file(s, relative);
  return depth > 0 ? folder_scan_level(s, relative, depth - 1) : TN_OK;
}

/* Files in the folder, and below it folders that cannot be read, are skipped. */
static tn_status folder_scan_level(const scan *s, const char *below, int depth) {
  const char *path = tn_arena_printf(s->arena, "%s/%s", s->folder, below);
  if (path == NULL) return folder_no_memory(s);
  DIR *open = opendir(path);
  if (open == NULL && below[0] == '\0')
    return folder_fail_path(s->handle, path, "cannot be searched for plugins");
  if (open == NULL) return TN_OK;
  tn_status status = TN_OK;
  for (struct dirent *entry = readdir(open); entry != NULL && status == TN_OK; entry = readdir(open))
    status = folder_visit(s, below, entry->d_name, depth);
  closedir(open);
  return status;
}

static int folder_by_path(const void *a, const void *b) {
  return strcmp(((const tn_plugin_file *)a)->relative, ((const tn_plugin_file *)b)->relative);
}

tn_status tn_folder_scan(const void *handle, tn_arena *arena, const char *folder, tn_plugin_files *files) {
  scan s = {handle, arena, folder, files};
  size_t first = files->n;
  TN_TRY(folder_scan_level(&s, "", 1));
  /* Folders list their files in any order; which of two plugins comes first must not depend on it. */
  if (files->n > first) qsort(files->v + first, files->n - first, sizeof(*files->v), folder_by_path);
  return TN_OK;
}

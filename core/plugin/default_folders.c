/* core/plugin/default_folders.c: the default plugin folders, from the path of this library. The environment
 * and the current folder are ignored, since another user may control them. */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/plugin/context.h"

/* From the deepest file of a build tree (a test's program) up to its root. */
enum { BUILD_TREE_DEPTH = 5 };

static bool is_private_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & S_IWOTH) == 0;
}

static tn_status default_folder_has(const void *handle, const char *folder, const char *name, bool *there) {
  char *path = tn_path_join(handle, folder, name);
  if (path == NULL) return TN_ENOMEM;
  *there = tn_file_exists(path);
  tn_release(handle, path);
  return TN_OK;
}

static tn_status default_is_build_root(const void *handle, const char *folder, bool *is) {
  TN_TRY(default_folder_has(handle, folder, "meson-private", is));
  return *is ? default_folder_has(handle, folder, "build.ninja", is) : TN_OK;
}

/* The file that this code is mapped from, as the kernel names it. */
static bool default_mapped_file(char path[PATH_MAX]) {
  char line[PATH_MAX + 128];
  const uintptr_t here = (uintptr_t)&tn_default_folders;
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t from, to;
    found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 && from <= here && here < to;
  }
  if (maps != NULL) fclose(maps);
  const char *name = found ? strchr(line, '/') : NULL;
  if (name != NULL) snprintf(path, PATH_MAX, "%.*s", (int)strcspn(name, "\n"), name);
  return name != NULL;
}

/* The folder of the shared object, or of the program, that contains this function. dladdr names a library by
 * the path that the loader opened, which is relative where LD_LIBRARY_PATH is, and a program by the first
 * word of its command line. Such a path leads elsewhere from another current folder. */
static tn_status default_library_folder(const void *handle, char **folder) {
  Dl_info info;
  char mapped[PATH_MAX] = "/proc/self/maps", real[PATH_MAX];
  bool known = dladdr((const void *)tn_default_folders, &info) != 0 && info.dli_fname != NULL &&
               info.dli_fname[0] == '/';
  const char *file = known ? info.dli_fname : mapped;
  *folder = NULL;
  if ((!known && !default_mapped_file(mapped)) || realpath(file, real) == NULL)
    return tn_failf(handle, TN_EUNAVAILABLE,
                    "%s: the folder of Tenon's library cannot be found, so name a plugin folder", file);
  *folder = tn_path_folder(handle, real);
  return *folder != NULL ? TN_OK : TN_ENOMEM;
}

/* Replaces *folder by the root of the build tree that contains it, or by "" where there is no such tree. A
 * world-writable folder ends the search, since another user may have made the files in it. */
static tn_status default_find_build_tree(const void *handle, char **folder) {
  for (int i = 0; i < BUILD_TREE_DEPTH && is_private_folder(*folder); i++) {
    bool found;
    TN_TRY(default_is_build_root(handle, *folder, &found));
    if (found) return TN_OK;
    char *above = tn_path_folder(handle, *folder);
    if (above == NULL) return TN_ENOMEM;
    tn_release(handle, *folder);
    *folder = above;
  }
  (*folder)[0] = '\0';
  return TN_OK;
}

static tn_status default_add_below(const void *handle, tn_registry *registry, const char *root,
                                   const char *name) {
  char *path = tn_path_join(handle, root, name);
  if (path == NULL) return TN_ENOMEM;
  tn_status status = TN_OK;
  if (tn_file_exists(path)) status = tn_registry_add_folder(registry, handle, path);
  tn_release(handle, path);
  return status;
}

static tn_status default_add_build_tree(const void *handle, tn_registry *registry, const char *root) {
  TN_TRY(default_add_below(handle, registry, root, "backends"));
  return default_add_below(handle, registry, root, "plugins");
}

/* The folder beside the library comes first, so an installation may be moved. */
static tn_status default_add_installed(const void *handle, tn_registry *registry, const char *folder) {
  bool found;
  TN_TRY(default_folder_has(handle, folder, "tenon/plugins", &found));
  if (found) return default_add_below(handle, registry, folder, "tenon/plugins");
  return default_add_below(handle, registry, "", TN_PLUGIN_FOLDER);
}

tn_status tn_default_folders(const void *handle, tn_registry *registry) {
  char *folder, *root;
  TN_TRY(default_library_folder(handle, &folder));
  root = tn_strdup(handle, folder);
  tn_status status = root != NULL ? default_find_build_tree(handle, &root) : TN_ENOMEM;
  if (status == TN_OK && root[0] != '\0') status = default_add_build_tree(handle, registry, root);
  if (status == TN_OK && root[0] == '\0') status = default_add_installed(handle, registry, folder);
  tn_release(handle, root);
  tn_release(handle, folder);
  return status;
}

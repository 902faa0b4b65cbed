/* plugins/sources/image/file_list.c: lists folders and sorts their entries, so that the index of a sample
 * does not depend on the file system. */
#include "plugins/sources/image/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tenon/file_names.h"

/* Allocates a larger block, copies `used` bytes to it and frees the old one. */
static void *file_list_grow(const tn_env *env, void *block, size_t used, size_t size) {
  void *larger = tn_new(env, size);
  if (larger == NULL) return NULL;
  if (used > 0) memcpy(larger, block, used);
  tn_delete(env, block);
  return larger;
}

static tn_status file_list_add_name(const tn_env *env, name_list *list, const char *name) {
  size_t bytes = strlen(name) + 1;
  if (list->used + bytes > list->size) {
    size_t size = 2 * (list->size + bytes) + 1024;
    char *larger = file_list_grow(env, list->bytes, list->used, size);
    if (larger == NULL) return TN_ENOMEM;
    list->bytes = larger;
    list->size = size;
  }
  if (list->count == list->room) {
    int64_t room = 2 * list->room + 64;
    size_t *larger =
        file_list_grow(env, list->start, (size_t)list->count * sizeof(size_t), (size_t)room * sizeof(size_t));
    if (larger == NULL) return TN_ENOMEM;
    list->start = larger;
    list->room = room;
  }
  memcpy(list->bytes + list->used, name, bytes);
  list->start[list->count++] = list->used;
  list->used += bytes;
  return TN_OK;
}

void image_names_free(const tn_env *env, name_list *list) {
  tn_delete(env, list->bytes);
  tn_delete(env, list->start);
  *list = (name_list){0};
}

static int file_list_compare(const void *a, const void *b, void *bytes) {
  return strcmp((const char *)bytes + *(const size_t *)a, (const char *)bytes + *(const size_t *)b);
}

static void sort_names(name_list *list, int64_t from) {
  if (list->count - from > 1)
    qsort_r(list->start + from, (size_t)(list->count - from), sizeof(size_t), file_list_compare, list->bytes);
}

static int64_t find_name(const name_list *list, const char *name) {
  int64_t low = 0, high = list->count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(name_at(list, middle), name);
    if (order == 0) return middle;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

static int file_list_is_folder(const char *parent, const struct dirent *entry) {
  if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) return entry->d_type == DT_DIR;
  char path[PATH_MAX];
  struct stat info;
  int n = snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
  return n > 0 && (size_t)n < sizeof(path) && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int is_image(const char *parent, const struct dirent *entry) {
  return tn_name_is_picture(entry->d_name) && !file_list_is_folder(parent, entry);
}

static int is_sound(const char *parent, const struct dirent *entry) {
  return tn_name_is_sound(entry->d_name) && !file_list_is_folder(parent, entry);
}

/* Hidden entries, such as .DS_Store and ._photo.jpg of macOS, and those of Windows. */
static int is_of_system(const char *name) {
  return name[0] == '.' || strcasecmp(name, "Thumbs.db") == 0 || strcasecmp(name, "desktop.ini") == 0;
}

/* The folder itself, and the one that it is in. */
static int is_link_of_folder(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* Adds the names in a folder that `wanted` accepts, sorted, and counts the others. */
static tn_status list_folder(const tn_env *env, const char *path,
                             int (*wanted)(const char *parent, const struct dirent *entry), name_list *names,
                             other_entries *others) {
  DIR *folder = opendir(path);
  if (folder == NULL)
    return tn_fail(env, TN_EIO, "folder", "%s: cannot open the folder: %s", path, strerror(errno));
  tn_status status = TN_OK;
  int64_t from = names->count;
  const struct dirent *entry;
  errno = 0;
  while (status == TN_OK && (entry = readdir(folder)) != NULL) {
    if (is_link_of_folder(entry->d_name)) continue;
    if (is_of_system(entry->d_name)) {
      if (others->of_system++ == 0)
        snprintf(others->system_name, sizeof others->system_name, "%s", entry->d_name);
    } else if (tn_env_stopping(env))
      status = tn_fail(env, TN_ESTOPPED, NULL, "stopped while the folder %s was read", path);
    else if (wanted(path, entry))
      status = file_list_add_name(env, names, entry->d_name);
    else if (others->count++ == 0)
      snprintf(others->name, sizeof others->name, "%s", entry->d_name);
    errno = 0;
  }
  if (status == TN_OK && errno != 0)
    status = tn_fail(env, TN_EIO, "folder", "%s: cannot read the folder: %s", path, strerror(errno));
  closedir(folder);
  sort_names(names, from);
  return status;
}

static tn_status list_class(const tn_env *env, image_list *list, int64_t k) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof(path), "%s/%s", list->root, name_at(&list->classes, k));
  if (n < 0 || (size_t)n >= sizeof(path))
    return tn_fail(env, TN_EINVAL, "folder", "%s: the path is too long", list->root);
  struct stat info;
  list->first[k + 1] = list->files.count;
  /* Validation may lack a class of training. */
  if (stat(path, &info) != 0 && errno == ENOENT) return TN_OK;
  if (list->others.count == 0) list->others.class = k;
  TN_TRY(list_folder(env, path, list->is_of_sounds ? is_sound : is_image, &list->files, &list->others));
  list->first[k + 1] = list->files.count;
  if (list->first[k + 1] > list->first[k]) return TN_OK;
  if (list->is_of_sounds)
    return tn_fail(env, TN_EINVAL, "folder", "%s: has no sounds: " TN_SOUND_ENDINGS " files", path);
  return tn_fail(
      env, TN_EINVAL, "folder",
      "%s: has no " TN_PICTURE_ENDINGS " files; where they are in further folders, set nested = yes", path);
}

/* ---- classes ---- */

enum { DEEPEST = 64 }; /* folders in folders: a link may lead back */

static tn_status file_list_join(const tn_env *env, const char *folder, const char *name,
                                char path[PATH_MAX]) {
  int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
  if (n >= 0 && n < PATH_MAX) return TN_OK;
  return tn_fail(env, TN_EINVAL, "folder", "%s/%s: the path is too long", folder, name);
}

/* Adds the folders in root/within that have pictures, by their path from root. */
static tn_status file_list_add_nested(const tn_env *env, const char *root, const char *within, int depth,
                                      name_list *classes) {
  char path[PATH_MAX], inner[PATH_MAX];
  name_list folders = {0}, pictures = {0};
  other_entries others = {0};
  if (depth == DEEPEST)
    return tn_fail(env, TN_EINVAL, "folder", "%s/%s: folders lie deeper than %d", root, within, (int)DEEPEST);
  TN_TRY(file_list_join(env, root, within, path));
  tn_status status = list_folder(env, path, is_image, &pictures, &others);
  if (status == TN_OK && pictures.count > 0 && within[0] != '\0')
    status = file_list_add_name(env, classes, within);
  if (status == TN_OK) status = list_folder(env, path, file_list_is_folder, &folders, &others);
  for (int64_t i = 0; status == TN_OK && i < folders.count; i++) {
    const char *name = name_at(&folders, i);
    if (within[0] != '\0') status = file_list_join(env, within, name, inner);
    if (status == TN_OK)
      status = file_list_add_nested(env, root, within[0] != '\0' ? inner : name, depth + 1, classes);
  }
  image_names_free(env, &folders);
  image_names_free(env, &pictures);
  return status;
}

/* The class folders of a part, sorted. */
static tn_status file_list_find_classes(const tn_env *env, const char *root, int nested, name_list *classes) {
  other_entries others = {0};
  if (!nested) return list_folder(env, root, file_list_is_folder, classes, &others);
  tn_status status = file_list_add_nested(env, root, "", 0, classes);
  sort_names(classes, 0);
  return status;
}

/* Fails if a class folder is missing from the reference, where the classes get their numbers. */
static tn_status check_classes(const tn_env *env, const char *root, const char *reference, int nested,
                               const name_list *classes) {
  name_list found = {0};
  tn_status status = file_list_find_classes(env, root, nested, &found);
  for (int64_t i = 0; status == TN_OK && i < found.count; i++)
    if (find_name(classes, name_at(&found, i)) < 0)
      status = tn_fail(env, TN_EINVAL, "folder", "%s: has a class '%s' that does not exist in %s", root,
                       name_at(&found, i), reference);
  image_names_free(env, &found);
  return status;
}

tn_status image_list_read(const tn_env *env, const char *root, const char *reference, int nested,
                          image_list *list) {
  list->root = tn_new(env, strlen(root) + 1);
  if (list->root == NULL) return TN_ENOMEM;
  strcpy(list->root, root);
  tn_status status = file_list_find_classes(env, reference, nested, &list->classes);
  if (status != TN_OK) return status;
  if (list->classes.count == 0)
    return tn_fail(env, TN_EINVAL, "folder", "%s: holds no class folders", reference);
  if (strcmp(root, reference) != 0) status = check_classes(env, root, reference, nested, &list->classes);
  if (status != TN_OK) return status;
  list->first = tn_new(env, ((size_t)list->classes.count + 1) * sizeof(int64_t));
  if (list->first == NULL) return TN_ENOMEM;
  for (int64_t k = 0; status == TN_OK && k < list->classes.count; k++) status = list_class(env, list, k);
  return status;
}

void image_list_free(const tn_env *env, image_list *list) {
  image_names_free(env, &list->classes);
  image_names_free(env, &list->files);
  tn_delete(env, list->first);
  tn_delete(env, list->root);
  *list = (image_list){0};
}

int64_t image_list_class(const image_list *list, int64_t file) {
  int64_t low = 0, high = list->classes.count - 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (list->first[middle + 1] > file)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

tn_status image_list_path(const void *handle, const image_list *list, int64_t file, size_t size, char *path) {
  const char *folder = name_at(&list->classes, image_list_class(list, file)),
             *name = name_at(&list->files, file);
  int n = snprintf(path, size, "%s/%s/%s", list->root, folder, name);
  if (n >= 0 && (size_t)n < size) return TN_OK;
  return tn_fail(handle, TN_EINVAL, "folder", "%s/%s/%s: the path is too long", list->root, folder, name);
}

/* ---- a part of each class ---- */

/* How many of the first i of n files are chosen, if m of all are. */
static int64_t file_list_chosen_before(int64_t i, int64_t n, int64_t m) { return i * m / n; }

static int64_t file_list_keep_of_class(image_list *list, int64_t from, int64_t n, int64_t m, int chosen,
                                       int64_t to) {
  for (int64_t i = 0; i < n; i++) {
    int is_chosen = file_list_chosen_before(i + 1, n, m) > file_list_chosen_before(i, n, m);
    if (is_chosen == !!chosen) list->files.start[to++] = list->files.start[from + i];
  }
  return to;
}

void image_list_keep_part(image_list *list, double share, int chosen) {
  int64_t kept = 0, from = 0;
  for (int64_t k = 0; k < list->classes.count; k++) {
    int64_t end = list->first[k + 1], n = end - from, m = (int64_t)((double)n * share + 0.5);
    if (m < 1 && n > 1) m = 1;
    if (m >= n && n > 0) m = n - 1;
    list->first[k] = kept;
    if (n > 0) kept = file_list_keep_of_class(list, from, n, m, chosen, kept);
    from = end;
  }
  list->first[list->classes.count] = kept;
  list->files.count = kept;
}

/* ---- files that the user names ---- */

static tn_status file_list_add_folder(const tn_env *env, int32_t sounds, name_list *list, const char *path,
                                      int depth);

static tn_status file_list_add_entries(const tn_env *env, int32_t sounds, name_list *list, const char *path,
                                       const name_list *names, int depth) {
  char entry[PATH_MAX];
  size_t length = strlen(path);
  const char *separator = length > 0 && path[length - 1] == '/' ? "" : "/";
  tn_status status = TN_OK;
  for (int64_t i = 0; status == TN_OK && i < names->count; i++) {
    int n = snprintf(entry, sizeof entry, "%s%s%s", path, separator, name_at(names, i));
    if (n < 0 || (size_t)n >= sizeof entry)
      return tn_fail(env, TN_EINVAL, NULL, "%s/%s: the path is too long", path, name_at(names, i));
    status = depth > 0 ? file_list_add_folder(env, sounds, list, entry, depth)
                       : file_list_add_name(env, list, entry);
  }
  return status;
}

/* The files of the folder, then those of its folders. */
static tn_status file_list_add_folder(const tn_env *env, int32_t sounds, name_list *list, const char *path,
                                      int depth) {
  name_list files = {0}, folders = {0};
  other_entries others = {0};
  if (depth == DEEPEST)
    return tn_fail(env, TN_EINVAL, NULL, "%s: folders lie deeper than %d", path, (int)DEEPEST);
  tn_status status = list_folder(env, path, sounds ? is_sound : is_image, &files, &others);
  if (status == TN_OK) status = list_folder(env, path, file_list_is_folder, &folders, &others);
  if (status == TN_OK) status = file_list_add_entries(env, sounds, list, path, &files, 0);
  if (status == TN_OK) status = file_list_add_entries(env, sounds, list, path, &folders, depth + 1);
  image_names_free(env, &files);
  image_names_free(env, &folders);
  return status;
}

tn_status image_names_add(const tn_env *env, int32_t sounds, const char *path, name_list *list) {
  struct stat info;
  int64_t before = list->count;
  if (stat(path, &info) != 0) return tn_fail(env, TN_EIO, NULL, "%s: %s", path, strerror(errno));
  if (!S_ISDIR(info.st_mode)) return file_list_add_name(env, list, path);
  tn_status status = file_list_add_folder(env, sounds, list, path, 1);
  if (status != TN_OK || list->count > before) return status;
  return tn_fail(env, TN_EINVAL, NULL, "%s: has no %s files", path,
                 sounds ? TN_SOUND_ENDINGS : TN_PICTURE_ENDINGS);
}

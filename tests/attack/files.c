/* tests/attack/files.c: files and folders of the scratch folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/attack.h"

enum { PATH_BYTES = 4096, MOST_BYTES = 64 << 20 };

attack_bytes attack_read(const char *path) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  bool readable = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  size_t room = readable ? (size_t)st.st_size : 0;
  if (room > MOST_BYTES) room = MOST_BYTES;
  attack_bytes bytes = {calloc(1, room + 1), 0};
  if (bytes.v == NULL) attack_die("out of memory");
  ssize_t n = 0;
  while (readable && bytes.n < room && (n = read(fd, bytes.v + bytes.n, room - bytes.n)) > 0)
    bytes.n += (size_t)n;
  if (fd >= 0) close(fd);
  return bytes;
}

void attack_write(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
    attack_die("%s: %s", path, strerror(errno));
}

void attack_write_text(const char *path, const char *text) { attack_write(path, text, strlen(text)); }

bool attack_exists(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

bool attack_same_files(const char *a, const char *b) {
  attack_bytes x = attack_read(a), y = attack_read(b);
  bool same = x.n == y.n && memcmp(x.v, y.v, x.n) == 0 && access(a, F_OK) == access(b, F_OK);
  free(x.v);
  free(y.v);
  return same;
}

void attack_folder(const char *path) {
  char part[PATH_BYTES];
  snprintf(part, sizeof part, "%s", path);
  for (char *p = part + 1; *p != '\0'; p++) {
    if (*p != '/') continue;
    *p = '\0';
    mkdir(part, 0755);
    *p = '/';
  }
  if (mkdir(part, 0755) != 0 && errno != EEXIST) attack_die("%s: %s", path, strerror(errno));
}

static int files_remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

void attack_remove(const char *path) { nftw(path, files_remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* ---- lists and copies ---- */

static void files_add(attack_paths *paths, const char *path) {
  char **grown = realloc(paths->v, sizeof *grown * (size_t)(paths->n + 1));
  if (grown == NULL) attack_die("out of memory");
  paths->v = grown;
  paths->v[paths->n] = strdup(path);
  if (paths->v[paths->n++] == NULL) attack_die("out of memory");
}

static void files_list_in(attack_paths *paths, const char *root, const char *below) {
  char folder[PATH_BYTES], path[PATH_BYTES];
  struct stat st;
  snprintf(folder, sizeof folder, "%s/%s", root, below);
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(path, sizeof path, "%s%s%s", below, *below != '\0' ? "/" : "", entry->d_name);
    files_add(paths, path);
    if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
      files_list_in(paths, root, path);
  }
  if (dir != NULL) closedir(dir);
}

static int files_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

attack_paths attack_list(const char *folder) {
  attack_paths paths = {NULL, 0};
  files_list_in(&paths, folder, "");
  if (paths.n > 0) qsort(paths.v, (size_t)paths.n, sizeof *paths.v, files_order);
  return paths;
}

void attack_free_paths(attack_paths *paths) {
  for (int i = 0; i < paths->n; i++) free(paths->v[i]);
  free(paths->v);
  *paths = (attack_paths){NULL, 0};
}

/* The program reads which folder is the newest. */
static void files_copy_times(const char *from, const char *to) {
  struct stat st;
  if (lstat(from, &st) != 0) attack_die("%s: %s", from, strerror(errno));
  struct timespec times[2] = {st.st_atim, st.st_mtim};
  utimensat(AT_FDCWD, to, times, 0);
}

static void files_copy_one(const char *from, const char *to) {
  struct stat st;
  if (lstat(from, &st) != 0) attack_die("%s: %s", from, strerror(errno));
  if (S_ISDIR(st.st_mode)) {
    mkdir(to, st.st_mode & 0777);
    return;
  }
  attack_bytes bytes = attack_read(from);
  attack_write(to, bytes.v, bytes.n);
  free(bytes.v);
}

/* Folders come before their files in the list, and get their times last. */
void attack_copy(const char *from, const char *to) {
  char source[PATH_BYTES], target[PATH_BYTES];
  attack_paths paths = attack_list(from);
  attack_folder(to);
  for (int i = 0; i < 2 * paths.n; i++) {
    int k = i < paths.n ? i : 2 * paths.n - 1 - i;
    snprintf(source, sizeof source, "%s/%s", from, paths.v[k]);
    snprintf(target, sizeof target, "%s/%s", to, paths.v[k]);
    (i < paths.n ? files_copy_one : files_copy_times)(source, target);
  }
  files_copy_times(from, to);
  attack_free_paths(&paths);
}

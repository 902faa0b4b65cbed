/* tests/support/folder.h: a temporary folder and files in it. */
#pragma once

#include "tests/support/check_status.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct folder {
  char path[128];
  char shown[512]; /* the last path that folder_path made */
} folder;

static inline void folder_make(folder *f) {
  snprintf(f->path, sizeof(f->path), "/tmp/tenon-test-XXXXXX");
  assert_non_null(mkdtemp(f->path));
}

static inline const char *folder_path(folder *f, const char *name) {
  snprintf(f->shown, sizeof(f->shown), "%s/%s", f->path, name);
  return f->shown;
}

static inline void folder_write(folder *f, const char *name, const void *bytes, size_t n) {
  FILE *file = fopen(folder_path(f, name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

static inline int folder_remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st;
  (void)what;
  (void)at;
  return remove(path);
}

static inline void folder_remove(folder *f) { nftw(f->path, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS); }

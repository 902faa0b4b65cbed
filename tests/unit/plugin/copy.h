/* tests/unit/plugin/copy.h: the shared objects of made/, copied to where a test wants them. */
#pragma once

#include "core/base/file/file.h"
#include "tests/support/folder.h"

/* Copies one of the made plugins. */
static inline void folder_copy(folder *f, const test_env *b, const char *made, const char *name) {
  char from[512], *bytes;
  size_t n;
  snprintf(from, sizeof(from), "%s/%s.so", MADE_FOLDER, made);
  assert_ok(b, tn_file_read(b, from, 1 << 26, &bytes, &n));
  folder_write(f, name, bytes, n);
  tn_release(b, bytes);
}

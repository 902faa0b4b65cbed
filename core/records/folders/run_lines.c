#include "core/records/folders/run_lines.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file/file.h"

enum { PIECE = 1 << 16 };

typedef void (*run_lines_take)(void *context, const tn_text *line);

/* Adds a piece of the file to the line, and takes the lines that end in it. */
static void run_lines_split(const char *piece, size_t n, tn_text *line, run_lines_take take, void *context) {
  for (size_t at = 0; at < n && !line->failed;) {
    const char *end = memchr(piece + at, '\n', n - at);
    size_t length = end ? (size_t)(end - piece) - at : n - at;
    tn_text_addn(line, piece + at, length);
    at += length + (end != NULL);
    if (end == NULL || line->failed) continue;
    take(context, line);
    line->n = 0;
  }
}

static tn_status run_lines_read(const void *handle, int fd, const char *path, run_lines_take take,
                                void *context) {
  char *piece = tn_alloc(handle, PIECE);
  tn_text line = tn_text_new(handle);
  ssize_t n = piece ? 1 : 0;
  while (n > 0 && !line.failed && (n = read(fd, piece, PIECE)) > 0)
    run_lines_split(piece, (size_t)n, &line, take, context);
  tn_status status = piece == NULL || line.failed ? TN_ENOMEM
                     : n < 0                      ? tn_file_fail(handle, path, "read")
                                                  : TN_OK;
  tn_text_free(&line);
  tn_release(handle, piece);
  return status;
}

tn_status tn_run_lines_scan(const void *handle, const char *folder, const char *name, run_lines_take take,
                            void *context) {
  tn_open_file file;
  char *path = tn_path_join(handle, folder, name);
  if (path == NULL) return tn_failf(handle, TN_ENOMEM, "no memory for %s of %s", name, folder);
  bool there = tn_file_exists(path);
  tn_status status = there ? tn_file_open(handle, path, O_RDONLY, &file) : TN_OK;
  if (there && status == TN_OK) {
    status = run_lines_read(handle, file.fd, path, take, context);
    close(file.fd);
  }
  tn_release(handle, path);
  return status;
}

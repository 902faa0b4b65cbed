/* core/base/file.h: whole files in and out. */
#ifndef TN_CORE_BASE_FILE_H
#define TN_CORE_BASE_FILE_H

#include <stdbool.h>

#include "core/base/checksum.h"

/* Reads a whole file; *bytes is NUL-ended beyond *count and the caller's (tn_release).
 * TN_EIO with path and reason; TN_EINVAL if larger than `limit`. */
tn_status tn_file_read(const void *handle, const char *path, size_t limit, char **bytes, size_t *count);

/* A file that appears whole or not at all: written under a temporary name in the same folder,
 * fsynced, renamed over `path`, the folder fsynced. */
tn_status tn_file_write_atomic(const void *handle, const char *path, const void *bytes, size_t count);

/* The pieces of the above, for writers that stream. tn_file_abandon removes the temporary. */
typedef struct tn_new_file {
  int fd;
  char *path, *temporary;
  tn_checksum *sum; /* of what is appended, where the caller wants it; NULL: nobody does */
} tn_new_file;
tn_status tn_file_begin(const void *handle, const char *path, tn_new_file *file);
tn_status tn_file_append(const void *handle, tn_new_file *file, const void *bytes, size_t count);
tn_status tn_file_commit(const void *handle, tn_new_file *file);
void tn_file_abandon(const void *handle, tn_new_file *file);

/* Records "PATH: cannot be WHAT: REASON; REMEDY" for errno as it is, with TN_EIO. */
tn_status tn_file_fail(const void *handle, const char *path, const char *what);

/* mkdir -p. */
tn_status tn_folder_make(const void *handle, const char *path);
tn_status tn_folder_sync(const void *handle, const char *path);
bool tn_file_exists(const char *path);

/* "a/b" from "a" and "b"; `name` itself when absolute. Caller's (tn_release). */
char *tn_path_join(const void *handle, const char *folder, const char *name);
/* The folder part of a path ("." when none). Caller's. */
char *tn_path_folder(const void *handle, const char *path);

#endif

/* core/base/file/file.h: reading and writing of whole files. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/base/file/checksum.h"

/* The same open file with a descriptor above 2, closed in a new program: where an application has closed its
 * standard streams, a file or socket would get the number of one, and with it the text that is printed there.
 * -1 stays as it is; -1 with errno also where there is no other descriptor. */
int tn_descriptor_move_up(int fd);

/* Opens a regular file with O_CLOEXEC and `flags` of open(2); with O_NOFOLLOW a symbolic link is not
 * followed. Never waits. TN_EINVAL: it is a folder, FIFO, socket, device or such a link. TN_EIO with path and
 * reason. The caller closes fd; -1 on failure. */
typedef struct tn_open_file {
  int fd;
  uint64_t bytes; /* its size when it was opened */
} tn_open_file;
tn_status tn_file_open(const void *handle, const char *path, int flags, tn_open_file *file);

/* Reads a whole regular file. *bytes ends in a NUL behind *count bytes and belongs to the caller
 * (tn_release). TN_EIO with path and reason; TN_EINVAL if it is another kind of file, or larger than `limit`.
 */
tn_status tn_file_read(const void *handle, const char *path, size_t limit, char **bytes, size_t *count);

/* Writes a file atomically: under a temporary name in the same folder, fsync, rename to `path`, fsync of
 * the folder. A symbolic link of this name is replaced, and the file that it points to is unchanged.
 * TN_EINVAL: a folder, device, FIFO or socket has the name, or a link to one. */
tn_status tn_file_write_atomic(const void *handle, const char *path, const void *bytes, size_t count);

/* Whether tn_file_write_atomic can begin such a file: it is made under its temporary name, and removed. For
 * work whose result is written at the end. */
tn_status tn_file_check_new(const void *handle, const char *path);

/* The steps of tn_file_write_atomic, for writers that stream. tn_file_abandon removes the temporary file. */
typedef struct tn_new_file {
  int fd;
  char *path, *temporary;
  tn_checksum *sum; /* of the appended bytes; NULL: no checksum */
} tn_new_file;
tn_status tn_file_begin(const void *handle, const char *path, tn_new_file *file);
tn_status tn_file_append(const void *handle, tn_new_file *file, const void *bytes, size_t count);
tn_status tn_file_commit(const void *handle, tn_new_file *file);
void tn_file_abandon(const void *handle, tn_new_file *file);

/* Between the two calls the limit of file sizes (`ulimit -f`) is EFBIG alone: its signal, SIGXFSZ, would end
 * an application that does not handle it. `exceeded`: a call of this thread has failed with EFBIG. errno
 * stays. */
typedef struct tn_file_limit {
  sigset_t before;
} tn_file_limit;
void tn_file_limit_begin(tn_file_limit *limit);
void tn_file_limit_end(const tn_file_limit *limit, bool exceeded);

/* write(2) between these two. */
ssize_t tn_file_write(int fd, const void *bytes, size_t count);

/* Records "PATH: cannot be ACTION: REASON; REMEDY" for the current errno, with TN_EIO. `what` is the
 * action, such as "read". */
tn_status tn_file_fail(const void *handle, const char *path, const char *what);

/* mkdir -p. */
tn_status tn_folder_make(const void *handle, const char *path);
/* Makes a folder that only the user can write to (mode 0700), and its parents, unless it exists. TN_EIO: it
 * cannot be made (errno has the reason), belongs to another user, or can be written by others (errno is 0).
 */
tn_status tn_folder_make_private(const void *handle, const char *path);
tn_status tn_folder_sync(const void *handle, const char *path);
/* False: it is not there, or cannot be looked at, for the reason in errno. */
bool tn_file_exists(const char *path);

/* "a/b" from "a" and "b"; `name` itself when absolute. The caller releases it (tn_release). */
char *tn_path_join(const void *handle, const char *folder, const char *name);
/* The folder part of a path, "." if the path has no folder. The caller releases it. */
char *tn_path_folder(const void *handle, const char *path);

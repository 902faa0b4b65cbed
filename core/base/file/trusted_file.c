/* core/base/file/trusted_file.c: see trusted_file.h. */
#include "core/base/file/trusted_file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file/file.h"

static tn_status trusted_fail_path(const void *handle, const char *path, const char *what) {
  char reason[128];
  tn_status code = errno == ENOENT || errno == ENOTDIR ? TN_EUNAVAILABLE : TN_EIO;
  const char *text = strerror_r(errno, reason, sizeof(reason));
  return tn_failf(handle, code, "%s: %s: %s", path, what, text);
}

/* A file that everybody may write or replace would let any user run code in this process. Other users cannot
 * replace a file that passes the checks, so dlopen loads the file that was checked. */
static tn_status trusted_refuse_writable(const void *handle, const char *path, const char *which,
                                         const char *writable) {
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "%s: refused, since everybody may write the %s %s; run: chmod o-w '%s'", path, which,
                  writable, writable);
}

/* The owner of a file or of its folder could change the code that root runs. */
static tn_status trusted_check_owner(const void *handle, const char *path, const char *which,
                                     const char *owned, const struct stat *st) {
  if (geteuid() != 0 || st->st_uid == 0) return TN_OK;
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "%s: refused, since this process runs as root and user %ld owns the %s %s; run: chown root "
                  "'%s'",
                  path, (long)st->st_uid, which, owned, owned);
}

/* The folders above that of the file. A sticky one, such as /tmp, lets others add entries, but not replace
 * these. */
static tn_status trusted_check_ancestors(const void *handle, const char *path, const char *folder) {
  char *at = tn_strdup(handle, folder);
  struct stat st;
  if (at == NULL) return TN_ENOMEM;
  tn_status status = TN_OK;
  for (char *end; status == TN_OK && (end = strrchr(at, '/')) != NULL && at[1] != '\0';) {
    end[end == at] = '\0';
    if (stat(at, &st) != 0)
      status = trusted_fail_path(handle, at, "cannot be looked at");
    else if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
      status = trusted_refuse_writable(handle, path, "folder", at);
  }
  tn_release(handle, at);
  return status;
}

static tn_status trusted_check_folder_mode(const void *handle, const char *path, const char *folder) {
  struct stat st;
  if (stat(folder, &st) != 0) return trusted_fail_path(handle, folder, "cannot be looked at");
  if (!S_ISDIR(st.st_mode)) return tn_failf(handle, TN_EUNAVAILABLE, "%s: not a folder", folder);
  if ((st.st_mode & S_IWOTH) != 0) return trusted_refuse_writable(handle, path, "folder", folder);
  TN_TRY(trusted_check_owner(handle, path, "folder", folder, &st));
  return trusted_check_ancestors(handle, path, folder);
}

static tn_status trusted_check_file_mode(const void *handle, const char *what, const char *path,
                                         const char *real) {
  struct stat st;
  if (stat(real, &st) != 0) return trusted_fail_path(handle, path, "cannot be looked at");
  if (!S_ISREG(st.st_mode))
    return tn_failf(handle, TN_EUNAVAILABLE, "%s: not a regular file; name the %s's shared object", path,
                    what);
  if ((st.st_mode & S_IWOTH) != 0) return trusted_refuse_writable(handle, path, "file", real);
  TN_TRY(trusted_check_owner(handle, path, "file", real, &st));
  char *folder = tn_path_folder(handle, real);
  if (folder == NULL) return TN_ENOMEM;
  tn_status status = trusted_check_folder_mode(handle, path, folder);
  tn_release(handle, folder);
  return status;
}

static tn_status trusted_resolve(const void *handle, const char *path, const char *what, const char *kind,
                                 char **real) {
  char whole[PATH_MAX], missing[128];
  snprintf(missing, sizeof missing, "no such %s%s can be opened", what, kind);
  if (realpath(path, whole) == NULL) return trusted_fail_path(handle, path, missing);
  *real = tn_strdup(handle, whole);
  return *real != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status trusted_keep_if_ok(const void *handle, tn_status status, char **real) {
  if (status == TN_OK) return TN_OK;
  tn_release(handle, *real);
  *real = NULL;
  return status;
}

tn_status tn_trusted_file(const void *handle, const char *what, const char *path, char **real) {
  *real = NULL;
  TN_TRY(trusted_resolve(handle, path, what, "", real));
  return trusted_keep_if_ok(handle, trusted_check_file_mode(handle, what, path, *real), real);
}

tn_status tn_trusted_folder(const void *handle, const char *what, const char *path, char **real) {
  *real = NULL;
  TN_TRY(trusted_resolve(handle, path, what, " folder", real));
  return trusted_keep_if_ok(handle, trusted_check_folder_mode(handle, path, *real), real);
}

/* ---- folders of libraries ---- */

/* Shared objects, NAME.so and NAME.so.1, and code for devices, NAME.images. */
static bool trusted_is_code(const char *name) {
  const char *so = strstr(name, ".so");
  return (so != NULL && (so[3] == '\0' || so[3] == '.')) || strstr(name, ".images") != NULL;
}

static tn_status trusted_check_entry(const void *handle, const char *folder, const char *name) {
  struct stat st;
  char *path = tn_path_join(handle, folder, name), *real = NULL;
  if (path == NULL) return TN_ENOMEM;
  bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
  tn_status status = is_file ? tn_trusted_file(handle, "library", path, &real) : TN_OK;
  tn_release(handle, real);
  tn_release(handle, path);
  return status;
}

tn_status tn_trusted_libraries(const void *handle, const char *folder) {
  char *real;
  TN_TRY(tn_trusted_folder(handle, "library", folder, &real));
  DIR *list = opendir(real);
  tn_status status = list != NULL ? TN_OK : tn_file_fail(handle, folder, "opened");
  for (struct dirent *entry; status == TN_OK && (entry = readdir(list)) != NULL;)
    if (trusted_is_code(entry->d_name)) status = trusted_check_entry(handle, real, entry->d_name);
  if (list != NULL) closedir(list);
  tn_release(handle, real);
  return status;
}

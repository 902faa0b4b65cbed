/* core/plugin/loader.c: checks of plugin files, and dlopen. */
#include "core/plugin/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"

static tn_status loader_fail_path(const void *handle, const char *path, const char *what) {
  char reason[128];
  tn_status code = errno == ENOENT || errno == ENOTDIR ? TN_EUNAVAILABLE : TN_EIO;
  const char *text = strerror_r(errno, reason, sizeof(reason));
  return tn_failf(handle, code, "%s: %s: %s", path, what, text);
}

/* A file that everybody may write or replace would let any user run code in this process. Other users cannot
 * replace a file that passes the checks, so dlopen loads the file that was checked. */
static tn_status loader_refuse_writable(const void *handle, const char *path, const char *which,
                                        const char *writable) {
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "%s: refused, since everybody may write the %s %s; run: chmod o-w '%s'", path, which,
                  writable, writable);
}

/* The owner of a file or of its folder could change the code that root runs. */
static tn_status loader_check_owner(const void *handle, const char *path, const char *which,
                                    const char *owned, const struct stat *st) {
  if (geteuid() != 0 || st->st_uid == 0) return TN_OK;
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "%s: refused, since this process runs as root and user %ld owns the %s %s; run: chown root "
                  "'%s'",
                  path, (long)st->st_uid, which, owned, owned);
}

/* The folders above that of the plugin. A sticky one, such as /tmp, lets others add entries, but not replace
 * these. */
static tn_status loader_check_ancestors(const void *handle, const char *path, const char *folder) {
  char *at = tn_strdup(handle, folder);
  struct stat st;
  if (at == NULL) return TN_ENOMEM;
  tn_status status = TN_OK;
  for (char *end; status == TN_OK && (end = strrchr(at, '/')) != NULL && at[1] != '\0';) {
    end[end == at] = '\0';
    if (stat(at, &st) != 0)
      status = loader_fail_path(handle, at, "cannot be looked at");
    else if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
      status = loader_refuse_writable(handle, path, "folder", at);
  }
  tn_release(handle, at);
  return status;
}

static tn_status loader_check_folder_mode(const void *handle, const char *path, const char *folder) {
  struct stat st;
  if (stat(folder, &st) != 0) return loader_fail_path(handle, folder, "cannot be looked at");
  if (!S_ISDIR(st.st_mode)) return tn_failf(handle, TN_EUNAVAILABLE, "%s: not a folder", folder);
  if ((st.st_mode & S_IWOTH) != 0) return loader_refuse_writable(handle, path, "folder", folder);
  TN_TRY(loader_check_owner(handle, path, "folder", folder, &st));
  return loader_check_ancestors(handle, path, folder);
}

static tn_status loader_check_file_mode(const void *handle, const char *path, const char *real) {
  struct stat st;
  if (stat(real, &st) != 0) return loader_fail_path(handle, path, "cannot be looked at");
  if (!S_ISREG(st.st_mode))
    return tn_failf(handle, TN_EUNAVAILABLE, "%s: not a regular file; name the plugin's shared object", path);
  if ((st.st_mode & S_IWOTH) != 0) return loader_refuse_writable(handle, path, "file", real);
  TN_TRY(loader_check_owner(handle, path, "file", real, &st));
  char *folder = tn_path_folder(handle, real);
  if (folder == NULL) return TN_ENOMEM;
  tn_status status = loader_check_folder_mode(handle, path, folder);
  tn_release(handle, folder);
  return status;
}

static tn_status loader_resolve(const void *handle, const char *path, const char *what, char **real) {
  char whole[PATH_MAX];
  if (realpath(path, whole) == NULL) return loader_fail_path(handle, path, what);
  *real = tn_strdup(handle, whole);
  return *real != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status loader_keep_if_ok(const void *handle, tn_status status, char **real) {
  if (status == TN_OK) return TN_OK;
  tn_release(handle, *real);
  *real = NULL;
  return status;
}

tn_status tn_plugin_check_file(const void *handle, const char *path, char **real) {
  *real = NULL;
  TN_TRY(loader_resolve(handle, path, "no such plugin can be opened", real));
  return loader_keep_if_ok(handle, loader_check_file_mode(handle, path, *real), real);
}

tn_status tn_plugin_check_folder(const void *handle, const char *path, char **real) {
  *real = NULL;
  TN_TRY(loader_resolve(handle, path, "no such plugin folder can be opened", real));
  return loader_keep_if_ok(handle, loader_check_folder_mode(handle, path, *real), real);
}

/* The linker's reason, without the path in front of it, which the message has already. */
static tn_status loader_fail_open(const void *handle, const char *real, const char *reason) {
  size_t n = strlen(real);
  if (reason == NULL) reason = "the dynamic linker gives no reason";
  if (strncmp(reason, real, n) == 0 && reason[n] == ':') reason += n + 1 + strspn(reason + n + 1, " ");
  return tn_failf(handle, TN_EUNAVAILABLE, "%s: cannot be opened: %s", real, reason);
}

tn_status tn_plugin_open(const void *handle, const char *real, const tn_plugin **plugin) {
  *plugin = NULL;
  TN_TRY(tn_plugin_check_elf(handle, real));
  /* RTLD_NOW: a missing symbol is an error here, not during a run. RTLD_LOCAL: plugins do not see each
   * other's symbols. */
  void *object = dlopen(real, RTLD_NOW | RTLD_LOCAL);
  if (object == NULL) return loader_fail_open(handle, real, dlerror());
  void *symbol = dlsym(object, TN_PLUGIN_SYMBOL);
  if (symbol == NULL)
    return tn_failf(handle, TN_EABI, "%s: not a Tenon plugin: the dynamic linker finds no %s in it", real,
                    TN_PLUGIN_SYMBOL);
  const tn_plugin *(*entry)(void);
  memcpy(&entry, &symbol, sizeof(entry)); /* ISO C has no cast from object to function pointers */
  *plugin = entry();
  return TN_OK;
}

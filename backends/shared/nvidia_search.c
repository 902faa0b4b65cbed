/* backends/shared/nvidia_search.c: see nvidia_search.h. */
#include "backends/shared/nvidia_search.h"

#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <glob.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Looking for one library. */
typedef struct library_search {
  const tn_nvidia_wanted *wanted;
  void *handle;
  char *path;
  char error[256]; /* of the loader about a file that exists, or of the system about one that cannot be opened
                    */
} library_search;

/* The file that the loader has opened. */
static void search_keep_path(library_search *s, const char *asked) {
  struct link_map *map = NULL;
  const char *name = asked;
  if (dlinfo(s->handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && *map->l_name) name = map->l_name;
  snprintf(s->path, TN_NVIDIA_PATH, "%s", name);
}

/* A constructor of the library may change the floating-point environment, in which the host goes on to
 * compute: in objects linked with -ffast-math GCC's flushes denormals. */
static bool search_open(library_search *s, const char *path) {
  fenv_t environment;
  fegetenv(&environment);
  s->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  fesetenv(&environment);
  if (s->handle != NULL) search_keep_path(s, path);
  return s->handle != NULL;
}

/* A file of a folder; one that exists but does not load leaves the loader's text. */
static bool search_folder(library_search *s, const char *folder) {
  char path[TN_NVIDIA_PATH];
  for (int32_t i = 0; i < TN_NVIDIA_NAMES && s->wanted->names[i] != NULL; i++) {
    int n = snprintf(path, sizeof path, "%s/%s", folder, s->wanted->names[i]);
    if (n < 0 || n >= (int)sizeof path) continue;
    FILE *file = fopen(path, "re");
    if (file == NULL && errno != ENOENT && errno != ENOTDIR)
      snprintf(s->error, sizeof s->error, "%.200s: %s", path, strerror(errno));
    if (file == NULL) continue;
    fclose(file);
    if (search_open(s, path)) return true;
    snprintf(s->error, sizeof s->error, "%s", dlerror());
  }
  return false;
}

static bool search_list(library_search *s, const char *folders) {
  while (*folders != '\0') {
    char folder[TN_NVIDIA_PATH];
    size_t n = strcspn(folders, ":");
    snprintf(folder, sizeof folder, "%.*s", (int)(n < TN_NVIDIA_PATH ? n : 0), folders);
    if (*folder && search_folder(s, folder)) return true;
    folders += n + (folders[n] == ':');
  }
  return false;
}

/* The loader takes a name with a slash as a path from the working folder. */
static bool search_system(library_search *s) {
  for (int32_t i = 0; i < TN_NVIDIA_NAMES && s->wanted->names[i] != NULL; i++)
    if (strchr(s->wanted->names[i], '/') == NULL && search_open(s, s->wanted->names[i])) return true;
  return false;
}

static bool search_pattern(library_search *s, const char *root, const char *rest) {
  char pattern[TN_NVIDIA_PATH];
  glob_t found;
  bool done = false;
  int n = snprintf(pattern, sizeof pattern, "%s%s", root, rest);
  if (n < 0 || n >= (int)sizeof pattern || glob(pattern, 0, NULL, &found) != 0) return false;
  for (size_t i = 0; i < found.gl_pathc && !done; i++) done = search_folder(s, found.gl_pathv[i]);
  globfree(&found);
  return done;
}

static bool search_environment(library_search *s, const char *variable, const char *rest) {
  const char *root = getenv(variable);
  return root != NULL && *root && search_pattern(s, root, rest);
}

static bool search_toolkit(library_search *s) {
  static const char *const folders[] = {"/lib64", "/targets/*/lib"};
  for (size_t i = 0; i < 2; i++)
    if (search_environment(s, "CUDA_PATH", folders[i]) || search_environment(s, "CUDA_HOME", folders[i]) ||
        search_pattern(s, "/usr/local/cuda", folders[i]))
      return true;
  return false;
}

/* PyPI's packages: nvidia/cu13/lib, nvidia/cublas/lib, nvidia/cuda_nvrtc/lib. */
static const char python_packages[] = "/lib/python3*/site-packages/nvidia/*/lib";

/* The first python3 in PATH, as execvp finds it. */
static bool search_find_python(char path[TN_NVIDIA_PATH]) {
  const char *folders = getenv("PATH");
  while (folders != NULL && *folders != '\0') {
    size_t n = strcspn(folders, ":");
    int length = snprintf(path, TN_NVIDIA_PATH, "%.*s/python3", (int)(n < TN_NVIDIA_PATH ? n : 0), folders);
    if (*path == '/' && length > 0 && length < TN_NVIDIA_PATH && access(path, X_OK) == 0) return true;
    folders += n + (folders[n] == ':');
  }
  return false;
}

/* PREFIX of PREFIX/bin/python3. */
static bool search_prefix(library_search *s, char *program) {
  for (int32_t up = 0; up < 2; up++) {
    char *slash = strrchr(program, '/');
    if (slash == NULL) return false;
    *slash = '\0';
  }
  return search_pattern(s, program, python_packages);
}

/* The environment that python3 belongs to: a virtual environment has a link to another Python, whose packages
 * come after its own. */
static bool search_program(library_search *s) {
  char program[TN_NVIDIA_PATH], *behind = NULL;
  if (!search_find_python(program)) return false;
  behind = realpath(program, NULL);
  bool found = search_prefix(s, program) || (behind != NULL && search_prefix(s, behind));
  free(behind);
  return found;
}

static bool search_python(library_search *s) {
  return search_environment(s, "VIRTUAL_ENV", python_packages) ||
         search_environment(s, "CONDA_PREFIX", python_packages) || search_program(s) ||
         search_environment(s, "HOME", "/.local/lib/python3*/site-packages/nvidia/*/lib") ||
         search_pattern(s, "/usr/local", python_packages) ||
         search_pattern(s, "/usr/local", "/lib/python3*/dist-packages/nvidia/*/lib");
}

static void search_explain(const library_search *s, const char *folders, char why[TN_NVIDIA_WHY]) {
  char names[256] = "";
  for (int32_t i = 0; i < TN_NVIDIA_NAMES && s->wanted->names[i] != NULL; i++)
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? " or " : "",
             s->wanted->names[i]);
  if (*s->error) {
    snprintf(why, TN_NVIDIA_WHY, "%s cannot be loaded: %s; %s", s->wanted->title, s->error,
             s->wanted->remedy);
    return;
  }
  snprintf(
      why, TN_NVIDIA_WHY,
      "%s is not found: no %s in %s%sthe places of the loader, CUDA_PATH, CUDA_HOME, /usr/local/cuda, or "
      "Python's nvidia packages; %s",
      s->wanted->title, names, folders, *folders ? ", " : "", s->wanted->remedy);
}

bool tn_nvidia_search_library(const char *folders, const tn_nvidia_wanted *wanted, void **handle,
                              char path[TN_NVIDIA_PATH], char why[TN_NVIDIA_WHY]) {
  library_search s = {.wanted = wanted, .path = path};
  *handle = NULL;
  if (!search_list(&s, folders) && !search_system(&s) && !search_toolkit(&s) && !search_python(&s)) {
    search_explain(&s, folders, why);
    return false;
  }
  *handle = s.handle;
  return true;
}

tn_status tn_nvidia_find_library(tn_env *env, const char *folders, const tn_nvidia_wanted *wanted,
                                 void **handle, char path[TN_NVIDIA_PATH]) {
  char why[TN_NVIDIA_WHY];
  if (tn_nvidia_search_library(folders, wanted, handle, path, why)) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "%s", why);
}

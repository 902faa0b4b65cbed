#include "tests/fakecuda/nvrtc/cache.h"
#include "tests/fakecuda/nvrtc/compiler.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t prepared_lock = PTHREAD_MUTEX_INITIALIZER;

/* Writes PATH, then PATH.gch; each appears at once, so that other processes may use them. */
static bool prepared_make(const char *standard, const char *folder, const char *path) {
  char begun[PATH_MAX], compiled[PATH_MAX + 8];
  int n = snprintf(begun, sizeof begun, "%s.%d", path, (int)getpid());
  if (n < 0 || (size_t)n >= sizeof begun - 8) return false;
  if (nvrtc_write_file(begun, nvrtc_host_text, strlen(nvrtc_host_text)) != 0 || rename(begun, path) != 0)
    return false;
  strcat(begun, ".gch");
  snprintf(compiled, sizeof compiled, "%s.gch", path);
  nvrtc_args args;
  if (!nvrtc_args_begin(&args, "c++-header", standard)) return false;
  nvrtc_args_add_code(&args);
  nvrtc_args_add(&args, "-w");
  nvrtc_args_add(&args, path);
  nvrtc_args_add(&args, "-o");
  nvrtc_args_add(&args, begun);
  int status = nvrtc_run(folder, &args, "/dev/null", "/dev/null", "/dev/null");
  nvrtc_args_end(&args);
  if (status == 0 && rename(begun, compiled) == 0) return true;
  unlink(begun);
  return false;
}

bool nvrtc_prepared_header(const char *standard, char path[], size_t room) {
  const char *given = getenv("FAKECUDA_CACHE");
  char folder[PATH_MAX], compiled[PATH_MAX + 8];
  if (!given || !*given || !realpath(given, folder)) return false;
  nvrtc_key key = nvrtc_cache_key_of_host(standard);
  int n = snprintf(path, room, "%s/host-%016" PRIx64 "%016" PRIx64 ".h", folder, key.words[0], key.words[1]);
  if (n < 0 || (size_t)n >= room || (size_t)n >= PATH_MAX) return false;
  snprintf(compiled, sizeof compiled, "%s.gch", path);
  pthread_mutex_lock(&prepared_lock);
  bool ready = access(compiled, R_OK) == 0 || prepared_make(standard, folder, path);
  pthread_mutex_unlock(&prepared_lock);
  return ready;
}

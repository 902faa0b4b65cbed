#include "tests/fakecuda/nvrtc/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

const char *nvrtc_compiler(void) {
  const char *given = getenv("FAKECUDA_CXX");
  return given && *given ? given : "g++";
}

void nvrtc_args_add(nvrtc_args *args, const char *word) {
  if (args->count < NVRTC_ARGS - 1) args->words[args->count++] = word;
  args->words[args->count] = NULL;
}

bool nvrtc_args_begin(nvrtc_args *args, const char *language, const char *standard) {
  *args = (nvrtc_args){.compiler = strdup(nvrtc_compiler())};
  if (!args->compiler) return false;
  char *rest;
  for (char *word = strtok_r(args->compiler, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    nvrtc_args_add(args, word);
  const char *const words[] = {"-x", language, "-Wp,-undef", "-nostdinc", "-nostdinc++", "-fsigned-char"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) nvrtc_args_add(args, words[i]);
  nvrtc_args_add(args, standard);
  return true;
}

void nvrtc_args_end(nvrtc_args *args) { free(args->compiler); }

const char *nvrtc_fma(void) {
#if defined __x86_64__ && defined __GNUC__
  if (__builtin_cpu_supports("fma")) return "-mfma";
#endif
  return "";
}

/* An image with symbols of the kind of GNU unique would share its shared memory with all images of the
 * process. */
void nvrtc_args_add_code(nvrtc_args *args) {
  static const char *const words[] = {"-O1",
                                      "-fPIC",
                                      "-ffp-contract=off",
                                      "-fno-exceptions",
                                      "-fno-rtti",
                                      "-fno-gnu-unique",
                                      "-fno-math-errno",
                                      "-fno-strict-aliasing",
                                      "-fwrapv",
                                      "-fno-asynchronous-unwind-tables",
                                      "-fno-stack-protector",
                                      "-fno-threadsafe-statics",
                                      "-Wno-unknown-pragmas",
                                      "-Wno-attributes"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) nvrtc_args_add(args, words[i]);
  const char *fma = nvrtc_fma();
  if (*fma != '\0') nvrtc_args_add(args, fma);
}

int nvrtc_run(const char *folder, const nvrtc_args *args, const char *input, const char *output,
              const char *errors) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  pid_t child;
  int code = posix_spawn_file_actions_addchdir_np(&actions, folder);
  if (!code) code = posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
  if (!code) code = posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!code) code = posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!code)
    code = posix_spawnp(&child, args->words[0], &actions, NULL, (char *const *)(void *)args->words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code) {
    errno = code;
    return -1;
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

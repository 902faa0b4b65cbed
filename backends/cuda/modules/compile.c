/* backends/cuda/modules/compile.c: see compile.h. */
#include "backends/cuda/modules/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/modules/device_text.h"

enum { MOST_ARCHS = 64, MOST_HEADERS = 64, MOST_FLAGS = 16 };

static tn_cuda_hash compile_hash_headers(void) {
  tn_cuda_hash h = tn_cuda_hash_new();
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++)
    if (strcmp(strrchr(t->path, '.'), ".cu") != 0) tn_cuda_hash_add(&h, t->text, strlen(t->text) + 1);
  for (const char *const *flag = tn_cuda_flags; *flag != NULL; flag++)
    tn_cuda_hash_add(&h, *flag, strlen(*flag) + 1);
  return h;
}

tn_status tn_cuda_compiler_open(tn_env *env, const tn_cuda_libraries *libraries, int32_t arch,
                                tn_cuda_compiler *compiler) {
  int n = 0, archs[MOST_ARCHS], best = 0;
  *compiler = (tn_cuda_compiler){.libraries = libraries, .headers = compile_hash_headers()};
  tn_status status = TN_RTC(env, libraries, nvrtcGetNumSupportedArchs, &n);
  if (status == TN_OK && n > MOST_ARCHS)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "NVRTC supports %d architectures", n);
  if (status == TN_OK) status = TN_RTC(env, libraries, nvrtcGetSupportedArchs, archs);
  if (status != TN_OK) return status;
  for (int i = 0; i < n; i++)
    if (archs[i] <= arch && archs[i] > best) best = archs[i];
  if (best == 0)
    return tn_fail(env, TN_EUNAVAILABLE, NULL,
                   "NVRTC %d.%d (%s) has no support for compute capability %d.%d; install an older CUDA",
                   libraries->nvrtc_version / 1000, libraries->nvrtc_version % 1000 / 10,
                   libraries->path[TN_CUDA_LIBRARY_NVRTC], arch / 10, arch % 10);
  snprintf(compiler->arch, sizeof compiler->arch, "%s_%d", best == arch ? "sm" : "compute", best);
  return TN_OK;
}

static bool compile_check(const tn_cuda_compiler *c, nvrtcResult code, const char *call,
                          char error[TN_CUDA_ERROR_TEXT]) {
  if (code != NVRTC_SUCCESS)
    snprintf(error, TN_CUDA_ERROR_TEXT, "%s: %s", call, c->libraries->nvrtc.nvrtcGetErrorString(code));
  return code == NVRTC_SUCCESS;
}

/* The line of a log with the first error; without one, the first line. */
static const char *compile_find_error(const char *log, int *length) {
  const char *at = strstr(log, "error"), *line = log;
  for (const char *next = log; at != NULL && (next = strchr(next, '\n')) != NULL && next < at;) line = ++next;
  *length = (int)strcspn(line, "\n");
  return line;
}

/* Behind the code of a failure comes the first error of the log, and the log in the next lines. */
static void compile_read_log(const tn_cuda_compiler *c, nvrtcProgram program,
                             char error[TN_CUDA_ERROR_TEXT]) {
  size_t bytes = 0, n = strlen(error);
  int length;
  if (c->libraries->nvrtc.nvrtcGetProgramLogSize(program, &bytes) != NVRTC_SUCCESS || bytes < 2) return;
  char *log = malloc(bytes + 1);
  if (log != NULL && c->libraries->nvrtc.nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS) {
    log[bytes] = '\0';
    const char *line = compile_find_error(log, &length);
    if (n > 0) snprintf(error + n, TN_CUDA_ERROR_TEXT - n, ": %.*s\n", length, line);
    n = strlen(error);
    snprintf(error + n, TN_CUDA_ERROR_TEXT - n, "%s", log);
  }
  free(log);
}

static bool compile_take_image(const tn_cuda_compiler *c, nvrtcProgram program, tn_cuda_image *image,
                               char error[TN_CUDA_ERROR_TEXT]) {
  const tn_cuda_nvrtc *n = &c->libraries->nvrtc;
  bool binary = strncmp(c->arch, "sm_", 3) == 0;
  nvrtcResult code =
      binary ? n->nvrtcGetCUBINSize(program, &image->n) : n->nvrtcGetPTXSize(program, &image->n);
  if (!compile_check(c, code, binary ? "nvrtcGetCUBINSize" : "nvrtcGetPTXSize", error)) return false;
  image->bytes = malloc(image->n);
  if (image->bytes == NULL) {
    snprintf(error, TN_CUDA_ERROR_TEXT, "no memory for %zu bytes of code", image->n);
    return false;
  }
  code = binary ? n->nvrtcGetCUBIN(program, image->bytes) : n->nvrtcGetPTX(program, image->bytes);
  if (compile_check(c, code, binary ? "nvrtcGetCUBIN" : "nvrtcGetPTX", error)) return true;
  free(image->bytes);
  *image = (tn_cuda_image){NULL, 0};
  return false;
}

static tn_cuda_compiled compile_run(const tn_cuda_compiler *c, nvrtcProgram program,
                                    char error[TN_CUDA_ERROR_TEXT]) {
  char arch[64];
  const char *options[MOST_FLAGS + 1] = {arch};
  int n = 1;
  snprintf(arch, sizeof arch, "--gpu-architecture=%s", c->arch);
  for (const char *const *flag = tn_cuda_flags; *flag != NULL && n <= MOST_FLAGS; flag++)
    options[n++] = *flag;
  nvrtcResult code = c->libraries->nvrtc.nvrtcCompileProgram(program, n, options);
  bool done = compile_check(c, code, "nvrtcCompileProgram", error);
  compile_read_log(c, program, error);
  if (done) return TN_CUDA_COMPILED;
  return code == NVRTC_ERROR_OUT_OF_MEMORY ? TN_CUDA_FAILED : TN_CUDA_REFUSED;
}

tn_cuda_compiled tn_cuda_compile(const tn_cuda_compiler *compiler, const char *title, const char *text,
                                 tn_cuda_image *image, char error[TN_CUDA_ERROR_TEXT]) {
  const char *names[MOST_HEADERS], *texts[MOST_HEADERS];
  nvrtcProgram program = NULL;
  int n = 0;
  *image = (tn_cuda_image){NULL, 0};
  *error = '\0';
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL && n < MOST_HEADERS; t++)
    if (strcmp(strrchr(t->path, '.'), ".cu") != 0) names[n] = t->path, texts[n++] = t->text;
  nvrtcResult code = compiler->libraries->nvrtc.nvrtcCreateProgram(&program, text, title, n, texts, names);
  if (!compile_check(compiler, code, "nvrtcCreateProgram", error)) return TN_CUDA_FAILED;
  tn_cuda_compiled done = compile_run(compiler, program, error);
  if (done == TN_CUDA_COMPILED && !compile_take_image(compiler, program, image, error)) done = TN_CUDA_FAILED;
  (void)compiler->libraries->nvrtc.nvrtcDestroyProgram(&program);
  return done;
}

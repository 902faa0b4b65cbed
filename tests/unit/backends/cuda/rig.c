/* tests/unit/backends/cuda/rig.c: see rig.h. */
#include "tests/unit/backends/cuda/rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char cuda_rig_text[4096];

static tn_status rig_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)handle, (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(cuda_rig_text, sizeof cuda_rig_text, format, args);
  va_end(args);
  return code;
}

static void rig_log(const void *handle, int32_t level, const char *format, ...) {
  (void)handle, (void)level;
  va_list args;
  va_start(args, format);
  vsnprintf(cuda_rig_text, sizeof cuda_rig_text, format, args);
  va_end(args);
}

static void *rig_alloc(const void *handle, size_t bytes) {
  (void)handle;
  return calloc(1, bytes);
}

static void rig_free(const void *handle, void *block) {
  (void)handle;
  free(block);
}

static const tn_api rig_table = {
    .struct_size = sizeof rig_table, .fail = rig_fail, .log = rig_log, .alloc = rig_alloc, .free = rig_free};

tn_env cuda_rig_env(void) {
  cuda_rig_text[0] = '\0';
  return (tn_env){.api = &rig_table};
}

/* backends/sim/engine/host_table.c: the table of host functions for kernels and tasks on an engine. The
 * host's handles belong to the host's thread, and its tn_parallel takes the host's launches only. So the
 * engine has a table of its own; the device's report is the error record of its handles. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/sim/sim.h"

static tn_sim_device *host_table_device(const void *handle) {
  char *report = (char *)((const tn_env *)handle)->record;
  return (tn_sim_device *)(void *)(report - offsetof(tn_sim_device, report));
}

tn_env tn_sim_engine_env(tn_sim_device *device) {
  return (tn_env){&device->backend->api, (tn_error_record *)(void *)&device->report};
}

static tn_status engine_fail(const void *handle, tn_status code, const char *option, const char *format,
                             ...) {
  tn_sim_failure *report = &host_table_device(handle)->report;
  (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(report->text, sizeof report->text, format, args);
  va_end(args);
  return code > TN_OK ? code : TN_EINTERNAL;
}

static void engine_log(const void *handle, int32_t level, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  tn_env_log(&host_table_device(handle)->env, level, "%s", line);
}

/* From the C library: a failure of the host's allocator would be recorded in the host's handle. */
static void *engine_alloc(const void *handle, size_t bytes) {
  return (void)handle, calloc(1, bytes > 0 ? bytes : 1);
}

static void engine_free(const void *handle, void *block) { (void)handle, free(block); }

static void engine_parallel(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  tn_team_run(host_table_device(l)->team, chunks, body, arg);
}

void tn_sim_engine_table(const tn_api *host, tn_api *api) {
  *api = *host;
  api->struct_size = sizeof *api; /* of this copy, not of the host's */
  api->fail = engine_fail;
  api->log = engine_log;
  api->alloc = engine_alloc;
  api->free = engine_free;
  api->parallel = engine_parallel;
}

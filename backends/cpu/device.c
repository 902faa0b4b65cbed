/* backends/cpu/device.c: the device of the family `cpu`: the processors that this process may use, as a team
 * of threads. Memory, streams and events are the host's defaults. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

typedef struct cpu_backend {
  int32_t threads;
  tn_ints pin;
} cpu_backend;

static tn_status cpu_backend_open(tn_env *env, const void *options, void **backend) {
  const tn_cpu_options *o = options;
  cpu_backend *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->threads =
      o->threads > 0 ? (int32_t)o->threads : tn_cpu_granted_processors("/proc/self/cgroup", "/sys/fs/cgroup");
  b->pin = o->pin;
  *backend = b;
  return TN_OK;
}

static void cpu_backend_close(tn_env *env, void *backend) { tn_delete(env, backend); }

/* "model name : ..." of the first processor in /proc/cpuinfo; else "cpu". */
static void cpu_read_name(char *name, size_t size) {
  char line[256], *colon;
  snprintf(name, size, "cpu");
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "model name", 10) != 0 || (colon = strchr(line, ':')) == NULL) continue;
    colon += 1 + strspn(colon + 1, " \t");
    colon[strcspn(colon, "\n")] = '\0';
    if (*colon != '\0') snprintf(name, size, "%s", colon);
    break;
  }
  fclose(file);
}

static int64_t cpu_memory_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}

static tn_status cpu_backend_properties(tn_env *env, void *backend, int32_t index,
                                        tn_device_properties *properties) {
  const cpu_backend *b = backend;
  (void)env, (void)index;
  *properties = (tn_device_properties){.struct_size = (uint32_t)sizeof *properties,
                                       .host_addressable = 1,
                                       .threads = b->threads,
                                       .memory_bytes = cpu_memory_bytes()};
  cpu_read_name(properties->name, sizeof properties->name);
  return TN_OK;
}

static tn_status cpu_device_open(tn_env *env, void *backend, int32_t index, void **device) {
  const cpu_backend *b = backend;
  tn_cpu_team *team = NULL;
  (void)index;
  tn_status status = tn_cpu_team_create(env, b->threads, &b->pin, &team);
  *device = team;
  return status;
}

static void cpu_device_close(tn_env *env, void *device) {
  (void)env;
  tn_cpu_team_destroy(device);
}

static void cpu_device_parallel(tn_env *env, void *device, int64_t chunks,
                                void (*body)(void *arg, int64_t chunk), void *arg) {
  (void)env;
  tn_cpu_team_run(device, chunks, body, arg);
}

static const tn_option options[] = {
    TN_OPT(tn_cpu_options, threads, TN_OPT_INT, "0", "[0, 1024]", "threads of the device; 0: all processors"),
    TN_OPT(tn_cpu_options, pin, TN_OPT_INTS, "[]", ">= 0", "the processors of the threads, in their order"),
    TN_OPT_END};

const tn_backend tn_cpu_backend = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "cpu", "the reference: portable C on the host's processors",
                    tn_cpu_options, options),
    .open = cpu_backend_open,
    .close = cpu_backend_close,
    .properties = cpu_backend_properties,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .parallel = cpu_device_parallel,
    .preference = 10,
};

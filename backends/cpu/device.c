/* backends/cpu/device.c: the device of the family `cpu`: the processors that this process may use. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

typedef struct cpu_backend {
  int32_t threads;
  tn_ints pin;
  const char *cache;
  int32_t bandwidth;
  char text[128]; /* of the properties */
} cpu_backend;

typedef struct cpu_device {
  tn_cpu_team *team;
} cpu_device;

/* The processors of the affinity mask; all that are online where there is no mask. */
static int32_t cpu_count_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < 65536 ? (int32_t)online : 1;
}

/* The CPU quota of a container may be less than its processors: cgroup v2 has "QUOTA PERIOD" in microseconds,
 * or "max PERIOD". Threads beyond the quota would spin while others are throttled. */
static int32_t cpu_limit_by_quota(int32_t processors) {
  long long quota = 0, period = 0;
  FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == NULL) return processors;
  if (fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0) {
    long long quota_processors = (quota + period - 1) / period;
    if (quota_processors < processors) processors = (int32_t)quota_processors;
  }
  fclose(file);
  return processors;
}

static tn_status cpu_backend_open(tn_env *env, const void *options, void **backend) {
  const tn_cpu_options *o = options;
  cpu_backend *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->threads = o->threads > 0 ? (int32_t)o->threads : cpu_limit_by_quota(cpu_count_processors());
  b->pin = o->pin;
  b->cache = o->cache != NULL ? o->cache : "";
  b->bandwidth = o->bandwidth;
  *backend = b;
  return TN_OK;
}

static void cpu_backend_close(tn_env *env, void *backend) { tn_delete(env, backend); }

static tn_status cpu_backend_count(tn_env *env, void *backend, int32_t *count) {
  (void)backend, (void)env;
  *count = 1;
  return TN_OK;
}

static tn_status cpu_backend_properties(tn_env *env, void *backend, int32_t index,
                                        tn_device_properties *properties) {
  cpu_backend *b = backend;
  if (index != 0)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "cpu: device %d asked for; there is only 0", index);
  tn_cpu_properties_fill(b->threads, b->text, sizeof b->text, properties);
  double measured =
      b->bandwidth == TN_CPU_MEASURED ? tn_cpu_bandwidth(env, b->cache, properties->name, b->threads) : 0;
  if (measured > 0) properties->bytes_per_s = measured;
  return TN_OK;
}

static void cpu_device_close(tn_env *env, void *device) {
  cpu_device *d = device;
  if (d == NULL) return;
  tn_cpu_team_destroy(d->team);
  tn_delete(env, d);
}

static tn_status cpu_device_open(tn_env *env, void *backend, int32_t index, void **device) {
  const cpu_backend *b = backend;
  *device = NULL;
  if (index != 0)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "cpu: device %d asked for; there is only 0", index);
  cpu_device *d = tn_new(env, sizeof *d);
  if (d == NULL) return TN_ENOMEM;
  tn_status status = tn_cpu_team_create(env, b->threads, &b->pin, &d->team);
  if (status != TN_OK) {
    cpu_device_close(env, d);
    return status;
  }
  *device = d;
  return TN_OK;
}

static void cpu_device_parallel(tn_env *env, void *device, int64_t chunks,
                                void (*body)(void *arg, int64_t chunk), void *arg) {
  (void)env;
  const cpu_device *d = device;
  tn_cpu_team_run(d->team, chunks, body, arg);
}

static const tn_option options[] = {
    TN_OPT(tn_cpu_options, threads, TN_OPT_INT, "0", "[0, 1024]", "threads of the device; 0: all processors"),
    TN_OPT(tn_cpu_options, pin, TN_OPT_INTS, "[]", ">= 0", "the processors of the threads, in their order"),
    TN_OPT(tn_cpu_options, cache, TN_OPT_TEXT, "", NULL, "folder for measured rates"),
    TN_OPT(tn_cpu_options, bandwidth, TN_OPT_ENUM, "estimated", "estimated|measured",
           "the rate of memory in estimates; measured: once for a processor and a number of threads"),
    TN_OPT_END};

const tn_backend tn_cpu_backend = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "cpu", "the reference: portable C on the host's processors",
                    tn_cpu_options, options),
    .open = cpu_backend_open,
    .close = cpu_backend_close,
    .count = cpu_backend_count,
    .properties = cpu_backend_properties,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .memory_new = tn_cpu_memory_new,
    .memory_delete = tn_cpu_memory_delete,
    .stream_new = tn_cpu_stream_new,
    .stream_delete = tn_cpu_stream_delete,
    .stream_wait = tn_cpu_stream_wait,
    .event_new = tn_cpu_event_new,
    .event_delete = tn_cpu_event_delete,
    .event_record = tn_cpu_event_record,
    .event_await = tn_cpu_event_await,
    .event_wait = tn_cpu_event_wait,
    .copy = tn_cpu_stream_copy,
    .fill_zero = tn_cpu_fill_zero,
    .parallel = cpu_device_parallel,
    .event_seconds = tn_cpu_event_seconds,
};

/* backends/cpu/device.c: the device of the family `cpu`: the processors that this process may use, as a team
 * of threads. Memory, streams and events are the host's defaults. */
#include "backends/cpu/cpu.h"
#include "backends/shared/team.h"

typedef struct cpu_backend {
  int32_t threads;
  tn_ints pin;
  const char *cache;
  int32_t bandwidth;
  char text[128]; /* of the properties */
} cpu_backend;

static tn_status cpu_backend_open(tn_env *env, const void *options, void **backend) {
  const tn_cpu_options *o = options;
  cpu_backend *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->threads = (int32_t)o->threads;
  b->pin = o->pin;
  b->cache = o->cache != NULL ? o->cache : "";
  b->bandwidth = o->bandwidth;
  *backend = b;
  return TN_OK;
}

static void cpu_backend_close(tn_env *env, void *backend) { tn_delete(env, backend); }

static tn_status cpu_backend_properties(tn_env *env, void *backend, int32_t index,
                                        tn_device_properties *properties) {
  cpu_backend *b = backend;
  (void)index;
  tn_cpu_properties_fill(b->threads, b->text, sizeof b->text, properties);
  double measured =
      b->bandwidth == TN_CPU_MEASURED ? tn_cpu_bandwidth(env, b->cache, properties->name, b->threads) : 0;
  if (measured > 0) properties->bytes_per_s = measured;
  return TN_OK;
}

static tn_status cpu_device_open(tn_env *env, void *backend, int32_t index, void **device) {
  const cpu_backend *b = backend;
  tn_team *team = NULL;
  (void)index;
  tn_status status = tn_team_create(env, "cpu", b->threads, &b->pin, &team);
  *device = team;
  return status;
}

static void cpu_device_close(tn_env *env, void *device) {
  (void)env;
  tn_team_destroy(device);
}

static void cpu_device_parallel(tn_env *env, void *device, int64_t chunks,
                                void (*body)(void *arg, int64_t chunk), void *arg) {
  (void)env;
  tn_team_run(device, chunks, body, arg);
}

static const tn_option options[] = {
    TN_OPT(tn_cpu_options, threads, TN_OPT_INT, "0", "[0, 1024]",
           "threads of the device; 0: all processors that the process may use"),
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
    .properties = cpu_backend_properties,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .parallel = cpu_device_parallel,
    .preference = 10,
};

/* backends/sim/device.c: options, the backend object, and devices. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/callbacks.h"
#include "backends/sim/sim.h"

enum { MOST_DEVICES = 64 };

static tn_status sim_backend_open(tn_env *env, const void *options, void **backend) {
  *backend = NULL;
  tn_sim_backend_object *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->env = *env;
  b->options = *(const tn_sim_options *)options;
  if (b->options.rehearse) b->options.check = 0;
  tn_sim_engine_table(env->api, &b->api);
  tn_status status = tn_sim_faults_read(env, &b->options, &b->faults);
  if (status == TN_OK)
    *backend = b;
  else
    tn_delete(env, b);
  return status;
}

static void sim_backend_close(tn_env *env, void *backend) { tn_delete(env, backend); }

/* A rehearsal has as many as a communicator serves: they cost nothing. */
static int32_t sim_count(const tn_sim_backend_object *b) {
  return b->options.rehearse ? MOST_DEVICES : (int32_t)b->options.devices;
}

static tn_status sim_backend_count(tn_env *env, void *backend, int32_t *count) {
  (void)env;
  *count = sim_count((const tn_sim_backend_object *)backend);
  return TN_OK;
}

static tn_status sim_check_index(tn_env *env, const tn_sim_backend_object *b, int32_t index) {
  if (index >= 0 && index < sim_count(b)) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, "devices", "sim: device %d asked for; there are %d", index,
                 sim_count(b));
}

static tn_status sim_backend_properties(tn_env *env, void *backend, int32_t index,
                                        tn_device_properties *properties) {
  const tn_sim_backend_object *b = backend;
  TN_TRY(sim_check_index(env, b, index));
  *properties = (tn_device_properties){.struct_size = (uint32_t)sizeof *properties,
                                       .host_addressable = 0,
                                       .threads = (int32_t)b->options.threads,
                                       .processors = (int32_t)b->options.threads,
                                       .memory_bytes = b->options.memory, /* 0: the host's */
                                       .free_bytes = b->options.memory,   /* devices do not share it */
                                       .bytes_per_s = 1e10,
                                       .vector_flops_per_s = 2e10 * (double)b->options.threads,
                                       .launch_s = 1e-5,
                                       .link_bytes_per_s = b->options.link,
                                       .details = "{\"simulated\": true}"};
  snprintf(properties->name, sizeof properties->name, "simulated device %d", index);
  return TN_OK;
}

/* Whether a comma-separated list has a word. */
static bool sim_has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  while (*list != '\0') {
    list += strspn(list, ", ");
    size_t n = strcspn(list, ", ");
    if (n == length && strncmp(list, word, n) == 0) return true;
    list += n;
  }
  return false;
}

/* Declines the ops of option `lacks`, as a device without their kernels would. */
static tn_status sim_backend_takes(tn_env *env, void *backend, const tn_kernel *kernel,
                                   const tn_match *match) {
  const tn_sim_backend_object *b = backend;
  (void)kernel;
  for (int32_t i = 0; i < match->n_nodes; i++)
    if (sim_has_word(b->options.lacks, match->nodes[i].node->op))
      return tn_fail(env, TN_EUNSUPPORTED, "lacks", "[backend.sim] lacks names %s", match->nodes[i].node->op);
  return TN_OK;
}

/* ---- devices ---- */

static void sim_device_close(tn_env *env, void *device) {
  tn_sim_device *d = device;
  if (d == NULL) return;
  if (d->running) {
    atomic_store(&d->stop, true);
    tn_sim_signal_raise(&d->work);
    pthread_join(d->engine, NULL);
    tn_env_log(
        env, TN_LOG_DEBUG,
        "sim: device %d: %lld copies to it, %lld of them beside computing; %lld launches, %lld replays",
        d->index, (long long)d->copies_in, (long long)d->copies_beside, (long long)d->launches,
        (long long)d->replays);
  }
  tn_team_destroy(d->team);
  tn_sim_memory_close(d);
  tn_sim_names_delete(d);
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++) tn_delete(env, d->streams[i].ring.items);
  tn_sim_capture_delete(env, d->capturing);
  free(d->views);
  pthread_mutex_destroy(&d->lock);
  tn_delete(env, d);
}

/* The engine blocks all signals, so the host's threads handle them. */
static tn_status sim_start_engine(tn_env *env, tn_sim_device *d) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&d->engine, NULL, tn_sim_engine, d);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  d->running = error == 0;
  if (error == 0) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "sim: the thread of device %d did not start (%s)", d->index,
                 strerror(error));
}

static tn_status sim_device_open(tn_env *env, void *backend, int32_t index, void **device) {
  tn_sim_backend_object *b = backend;
  static const tn_ints unbound = {0, NULL};
  *device = NULL;
  TN_TRY(sim_check_index(env, b, index));
  tn_sim_device *d = tn_new(env, sizeof *d);
  if (d == NULL) return TN_ENOMEM;
  d->env = *env;
  d->backend = b;
  d->index = index;
  tn_sim_native_init(&d->native, d, NULL);
  d->chance = (uint64_t)b->options.seed * 0x9E37 + (uint64_t)index;
  pthread_mutex_init(&d->lock, NULL);
  tn_status status = tn_team_create(env, "sim", (int32_t)b->options.threads, &unbound, &d->team);
  if (status == TN_OK) status = sim_start_engine(env, d);
  if (status == TN_OK)
    *device = d;
  else
    sim_device_close(env, d);
  return status;
}

static const tn_option options[] = {
    TN_OPT(tn_sim_options, devices, TN_OPT_INT, "1", "[1, 64]", "number of devices"),
    TN_OPT(tn_sim_options, threads, TN_OPT_INT, "1", "[1, 256]", "threads of each device"),
    TN_OPT(tn_sim_options, memory, TN_OPT_SIZE, "0", ">= 0", "memory of each device; 0: as the host has"),
    TN_OPT(tn_sim_options, order, TN_OPT_ENUM, "random", "eager|lazy|random",
           "which stream's work comes first: the oldest, only what the host waits for, or any"),
    TN_OPT(tn_sim_options, seed, TN_OPT_INT, "0", ">= 0", "of the random order"),
    TN_OPT(tn_sim_options, check, TN_OPT_FLAG, "yes", NULL, "find accesses to memory that nothing orders"),
    TN_OPT(tn_sim_options, rehearse, TN_OPT_FLAG, "no", NULL,
           "compute nothing: kernels and collectives take their predicted times, in a time of their own"),
    TN_OPT(tn_sim_options, jitter, TN_OPT_FLOAT, "0", "[0, 1)",
           "of a rehearsal: each kernel takes up to this part less or more than predicted, drawn by seed and "
           "device"),
    TN_OPT(tn_sim_options, link, TN_OPT_FLOAT, "0", ">= 0",
           "bytes a second of the link to the host, by which a run under memory_limit offloads values; a "
           "rehearsal's copies take that long; 0: unknown, and copies take no time"),
    TN_OPT(tn_sim_options, queue, TN_OPT_INT, "1024", "[2, 65536]", "pieces of work that a stream holds"),
    TN_OPT(
        tn_sim_options, fail, TN_OPT_TEXT, "", NULL,
        "operations that fail: KIND:N or KIND:N@DEVICE, ... with allocation, launch, kernel, copy, device, "
        "capture; "
        "stall: from the N-th kernel on the device computes nothing until its communicator is given up; "
        "hang: it never does again"),
    TN_OPT(tn_sim_options, drop, TN_OPT_TEXT, "", NULL,
           "operations to skip: KIND:N, ... with await, wait, rest, record, copy, zero"),
    TN_OPT(tn_sim_options, lacks, TN_OPT_TEXT, "", NULL,
           "ops that the devices cannot do, comma-separated; they fall back, or are refused"),
    TN_OPT(tn_sim_options, slow, TN_OPT_TEXT, "", NULL,
           "DEVICE:FACTOR: the kernels of that device take so many times as long, such as 1:3"),
    TN_OPT_END};

const tn_backend tn_sim_backend = {
    .item =
        TN_ITEM(tn_backend, TN_BACKEND, "sim",
                "devices that live on the host's processors and behave like GPUs", tn_sim_options, options),
    .accepts = "cpu",
    .open = sim_backend_open,
    .close = sim_backend_close,
    .count = sim_backend_count,
    .properties = sim_backend_properties,
    .device_open = sim_device_open,
    .device_close = sim_device_close,
    .memory_new = tn_sim_memory_new,
    .memory_delete = tn_sim_memory_delete,
    .stream_new = tn_sim_stream_new,
    .stream_delete = tn_sim_stream_delete,
    .stream_wait = tn_sim_stream_wait,
    .event_new = tn_sim_event_new,
    .event_delete = tn_sim_event_delete,
    .event_record = tn_sim_event_record,
    .event_await = tn_sim_event_await,
    .event_wait = tn_sim_event_wait,
    .event_done = tn_sim_event_done,
    .copy = tn_sim_copy,
    .fill_zero = tn_sim_fill_zero,
    .takes = sim_backend_takes,
    .enqueue = tn_sim_enqueue,
    .capture = tn_sim_capture_work,
    .capture_launch = tn_sim_capture_launch,
    .capture_delete = tn_sim_capture_delete,
    .native = tn_sim_native_handle,
    .event_seconds = tn_sim_event_seconds,
    .memory_info = tn_sim_memory_info,
};

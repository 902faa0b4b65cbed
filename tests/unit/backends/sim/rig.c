/* tests/unit/backends/sim/rig.c: the host's part, as small as it can be. */
#include "tests/unit/backends/sim/rig.h"

char rig_text[2048];
_Atomic(int) rig_allocations;

static tn_status keep_text(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)handle, (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(rig_text, sizeof rig_text, format, args);
  va_end(args);
  return code;
}

static void keep_log(const void *handle, int32_t level, const char *format, ...) {
  (void)handle, (void)level;
  va_list args;
  va_start(args, format);
  vsnprintf(rig_text, sizeof rig_text, format, args);
  va_end(args);
}

static void *zeroed(const void *handle, size_t bytes) {
  (void)handle;
  rig_allocations++;
  return calloc(1, bytes);
}

static void release(const void *handle, void *block) {
  (void)handle;
  free(block);
}

static const tn_api table = {
    .struct_size = sizeof table, .fail = keep_text, .log = keep_log, .alloc = zeroed, .free = release};

rig *rig_open(tn_sim_options options) {
  rig *r = calloc(1, sizeof *r);
  rig_text[0] = '\0';
  if (options.devices == 0) options.devices = 1;
  if (options.threads == 0) options.threads = 1;
  if (options.queue == 0) options.queue = 64;
  if (options.fail == NULL) options.fail = "";
  if (options.drop == NULL) options.drop = "";
  if (options.slow == NULL) options.slow = "";
  options.check = 1;
  r->env.api = &table;
  r->b = &tn_sim_backend;
  OK(r->b->open(&r->env, &options, &r->self));
  OK(r->b->device_open(&r->env, r->self, 0, &r->device));
  for (int32_t role = 0; role < TN_STREAMS; role++)
    OK(r->b->stream_new(&r->env, r->device, role, &r->streams[role]));
  r->compute = r->streams[TN_STREAM_COMPUTE];
  r->in = r->streams[TN_STREAM_COPY_IN];
  r->out = r->streams[TN_STREAM_COPY_OUT];
  return r;
}

static void wait_all(rig *r) {
  for (int32_t role = 0; role < TN_STREAMS; role++) r->b->stream_wait(&r->env, r->streams[role]);
}

void rig_close(rig *r) {
  wait_all(r);
  for (int32_t role = 0; role < TN_STREAMS; role++) r->b->stream_delete(&r->env, r->streams[role]);
  r->b->device_close(&r->env, r->device);
  r->b->close(&r->env, r->self);
  free(r);
}

float *rig_device(rig *r) {
  void *address;
  OK(r->b->memory_new(&r->env, r->device, TN_MEMORY_DEVICE, BYTES, &address));
  OK(r->b->fill_zero(&r->env, r->compute, address, BYTES));
  OK(r->b->stream_wait(&r->env, r->compute));
  return address;
}

float *rig_staging(rig *r) {
  void *address;
  OK(r->b->memory_new(&r->env, r->device, TN_MEMORY_STAGING, BYTES, &address));
  return address;
}

void rig_free(rig *r, int32_t kind, void *address) {
  r->b->memory_delete(&r->env, r->device, kind, address, BYTES);
}

void *rig_event(rig *r) {
  void *event;
  OK(r->b->event_new(&r->env, r->device, &event));
  return event;
}

void rig_record_await(rig *r, void *event, void *from, void *to) {
  OK(r->b->event_record(&r->env, event, from));
  OK(r->b->event_await(&r->env, event, to));
}

float rig_first(rig *r, float *device) {
  float value;
  wait_all(r);
  OK(r->b->copy(&r->env, r->out, TN_COPY_TO_HOST, &value, device, sizeof value));
  OK(r->b->stream_wait(&r->env, r->out));
  return value;
}

tn_status rig_add_launch(tn_launch *l) {
  const float *in = l->in[0].data;
  float *out = l->out[0].data, amount = *(const float *)l->prepared;
  for (int32_t i = 0; i < FLOATS; i++) out[i] = in[i] + amount;
  return TN_OK;
}

void rig_add_make(rig_add *add, const char *name, float *in, float *out, float amount) {
  tn_type type = {TN_F32, 1, {FLOATS}};
  *add = (rig_add){
      .in = {type, tn_layout_row_major(1), in}, .out = {type, tn_layout_row_major(1), out}, .amount = amount};
  add->launch = (tn_launch){
      .n_in = 1, .n_out = 1, .in = &add->in, .out = &add->out, .prepared = &add->amount, .name = name};
}

tn_status rig_add_enqueue(rig *r, rig_add *add, void *stream) {
  return r->b->enqueue(&r->env, stream, rig_add_launch, &add->launch);
}

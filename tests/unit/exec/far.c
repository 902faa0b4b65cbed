#include "tests/unit/exec/far.h"

#include <stdlib.h>
#include <string.h>

typedef struct backend {
  far_report *report;
  far_options options;
  bool late; /* far, not near */
} backend;

typedef struct event event;
typedef struct stream stream;

typedef struct work {
  struct work *next;
  void (*body)(void *arg);
  void *arg;
  event *record, *await;
  int64_t ticket; /* of the event */
} work;

struct event {
  backend *owner;
  stream *where; /* of the last record */
  int64_t recorded, done;
};

struct stream {
  backend *owner;
  work *first, **end;
};

static const uintptr_t AWAY = (uintptr_t)1 << 56; /* beyond the addresses of a process */

void *far_real(void *address) {
  uintptr_t a = (uintptr_t)address;
  return (void *)(a >= AWAY ? a - AWAY : a);
}

static tn_status open_as(const void *options, bool late, void **self) {
  const far_options *o = options;
  backend *b = calloc(1, sizeof(*b));
  *b = (backend){(far_report *)(uintptr_t)o->report, *o, late};
  b->report->opened++;
  b->report->threads = o->threads;
  *self = b;
  return TN_OK;
}

static tn_status far_open(tn_env *env, const void *options, void **self) {
  (void)env;
  return open_as(options, true, self);
}

static tn_status near_open(tn_env *env, const void *options, void **self) {
  (void)env;
  return open_as(options, false, self);
}

static void far_close(tn_env *env, void *self) {
  (void)env;
  ((backend *)self)->report->closed++;
  free(self);
}

static tn_status far_count(tn_env *env, void *self, int32_t *count) {
  *count = ((backend *)self)->options.absent ? 0 : 2;
  return *count > 0 ? TN_OK : tn_fail(env, TN_EUNAVAILABLE, NULL, "it is far away");
}

static tn_status far_properties(tn_env *env, void *self, int32_t index, tn_device_properties *properties) {
  (void)env, (void)index;
  properties->host_addressable = !((backend *)self)->late;
  properties->threads = 3;
  return TN_OK;
}

static tn_status far_device_open(tn_env *env, void *self, int32_t index, void **device) {
  (void)env, (void)index;
  ((backend *)self)->report->devices++;
  *device = self;
  return TN_OK;
}

static void far_device_close(tn_env *env, void *device) {
  (void)env;
  ((backend *)device)->report->devices--;
}

static tn_status far_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  backend *b = device;
  if (b->report->refuse_memory > 0 && --b->report->refuse_memory == 0)
    return tn_fail(env, TN_ENOMEM, NULL, "%llu bytes are too many", (unsigned long long)bytes);
  char *real = malloc(bytes);
  memset(real, 0xA5, bytes);
  b->report->blocks++;
  *address = b->late && kind == TN_MEMORY_DEVICE ? (void *)((uintptr_t)real + AWAY) : real;
  return TN_OK;
}

static void far_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)kind, (void)bytes, (void)env;
  ((backend *)device)->report->blocks--;
  free(far_real(address));
}

static tn_status far_stream_new(tn_env *env, void *device, int32_t role, void **out) {
  (void)env, (void)role;
  stream *s = calloc(1, sizeof(*s));
  s->owner = device;
  s->end = &s->first;
  s->owner->report->streams++;
  *out = s;
  return TN_OK;
}

static void far_stream_delete(tn_env *env, void *self) {
  (void)env;
  ((stream *)self)->owner->report->streams--;
  free(self);
}

static void run_until(event *e, int64_t ticket);

/* Runs the oldest work on a stream, after the work on other streams that it awaits. */
static void step(stream *s) {
  work *w = s->first;
  if (w->await != NULL) run_until(w->await, w->ticket);
  s->first = w->next;
  if (s->first == NULL) s->end = &s->first;
  if (w->body != NULL) w->body(w->arg);
  if (w->record != NULL) w->record->done = w->ticket;
  free(w->arg);
  free(w);
}

static void run_until(event *e, int64_t ticket) {
  while (e->done < ticket) step(e->where);
}

static void push(stream *s, work item) {
  work *w = malloc(sizeof(*w));
  *w = item;
  *s->end = w;
  s->end = &w->next;
  while (!s->owner->late && s->first != NULL) step(s);
}

void far_enqueue(void *self, void (*body)(void *arg), void *arg) {
  push(self, (work){.body = body, .arg = arg});
}

static tn_status far_stream_wait(tn_env *env, void *self) {
  stream *s = self;
  while (s->first != NULL) step(s);
  return s->owner->report->broken ? tn_fail(env, TN_EDEVICE, NULL, "the device is broken") : TN_OK;
}

static tn_status far_event_new(tn_env *env, void *device, void **out) {
  (void)env;
  event *e = calloc(1, sizeof(*e));
  e->owner = device;
  e->owner->report->events++;
  *out = e;
  return TN_OK;
}

static void far_event_delete(tn_env *env, void *self) {
  (void)env;
  ((event *)self)->owner->report->events--;
  free(self);
}

static tn_status far_event_record(tn_env *env, void *self, void *on) {
  (void)env;
  event *e = self;
  e->where = on;
  push(on, (work){.record = e, .ticket = ++e->recorded});
  return TN_OK;
}

static tn_status far_event_await(tn_env *env, void *self, void *on) {
  (void)env;
  event *e = self;
  push(on, (work){.await = e, .ticket = e->recorded});
  return TN_OK;
}

static tn_status far_event_wait(tn_env *env, void *self) {
  (void)env;
  run_until(self, ((event *)self)->recorded);
  return TN_OK;
}

static tn_status near_event_seconds(tn_env *env, void *from, void *to, double *seconds) {
  far_report *report = ((event *)to)->owner->report;
  if (((event *)from)->done == 0 || ((event *)to)->done == 0)
    return tn_fail(env, TN_EDEVICE, NULL, "an event was never recorded");
  *seconds = report->n_seconds > 0 ? report->seconds[report->answered++ % report->n_seconds] : 1e-9;
  return TN_OK;
}

typedef struct transfer {
  void *to;
  const void *from;
  uint64_t bytes;
} transfer;

static void do_transfer(void *arg) {
  const transfer *t = arg;
  if (t->from != NULL)
    memcpy(t->to, t->from, t->bytes);
  else
    memset(t->to, 0, t->bytes);
}

static tn_status far_copy(tn_env *env, void *on, int32_t direction, void *to, const void *from,
                          uint64_t bytes) {
  bool to_far = (uintptr_t)to >= AWAY, from_far = (uintptr_t)from >= AWAY;
  if (((stream *)on)->owner->late &&
      (to_far != (direction != TN_COPY_TO_HOST) || from_far != (direction != TN_COPY_TO_DEVICE)))
    return tn_fail(env, TN_EDEVICE, NULL, "an address lies on the wrong side");
  transfer *t = malloc(sizeof(*t));
  *t = (transfer){far_real(to), far_real((void *)(uintptr_t)from), bytes};
  far_enqueue(on, do_transfer, t);
  return TN_OK;
}

static tn_status far_fill_zero(tn_env *env, void *on, void *address, uint64_t bytes) {
  (void)env;
  transfer *t = malloc(sizeof(*t));
  *t = (transfer){far_real(address), NULL, bytes};
  far_enqueue(on, do_transfer, t);
  return TN_OK;
}

static void far_parallel(tn_env *env, void *device, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                         void *arg) {
  (void)env;
  ((backend *)device)->report->parallel++;
  for (int64_t i = 0; i < chunks; i++) body(arg, i);
}

static tn_status far_finish_prepare(tn_env *env, void *device, int32_t *declined) {
  far_report *r = ((backend *)device)->report;
  if (r->n_declines == 0) return TN_OK;
  *declined = r->declines[--r->n_declines];
  return tn_fail(env, r->decline_code, NULL, "no code");
}

static const tn_option options[] = {
    TN_OPT(far_options, threads, TN_OPT_INT, "0", ">= 0", "threads"),
    TN_OPT(far_options, report, TN_OPT_INT, "0", NULL, "address of the report"),
    TN_OPT(far_options, absent, TN_OPT_FLAG, "no", NULL, "there is no device"), TN_OPT_END};

/* Accepted kernels are never launched here. */
static tn_status far_take(tn_env *env, void *self, tn_status (*body)(tn_launch *l), tn_launch *l) {
  (void)self, (void)env;
  return body(l);
}

#define FAMILY(NAME, OPEN, SECONDS)                                                                          \
  {                                                                                                          \
    .item = TN_ITEM(tn_backend, TN_BACKEND, NAME, "for tests", far_options, options),                        \
    .accepts = "quick, slow ,", .open = OPEN, .close = far_close, .count = far_count,                        \
    .properties = far_properties, .device_open = far_device_open, .device_close = far_device_close,          \
    .memory_new = far_memory_new, .memory_delete = far_memory_delete, .stream_new = far_stream_new,          \
    .stream_delete = far_stream_delete, .stream_wait = far_stream_wait, .event_new = far_event_new,          \
    .event_delete = far_event_delete, .event_record = far_event_record, .event_await = far_event_await,      \
    .event_wait = far_event_wait, .copy = far_copy, .fill_zero = far_fill_zero, .enqueue = far_take,         \
    .parallel = far_parallel, .event_seconds = SECONDS, .finish_prepare = far_finish_prepare                 \
  }

const tn_backend far_backend = FAMILY("far", far_open, NULL);
const tn_backend near_backend = FAMILY("near", near_open, near_event_seconds);
const tn_backend quick_backend = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "quick", "for tests", far_options, options),
    .extends = "near",
    .open = near_open,
    .close = far_close,
};

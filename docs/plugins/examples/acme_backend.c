/* A backend: asynchronous devices with memory of their own. A stream is a ring of work and a thread that does
 * it; the host puts work into the ring and returns, without locks and allocations. The streams' threads run
 * the kernels of the cpu, and one kernel of the backend. `[backend] use = acme`. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/plugin/backend.h>

#define FAR (UINT64_C(1) << 62) /* set in device addresses: the host faults when it dereferences one */
enum { RING = 256, TEXT = 512 };

/* ---- types ---- */

struct acme {
  int64_t devices, memory;
};

struct backend {
  struct acme options;
  tn_api api; /* table for kernels on a stream's thread */
};

struct device {
  const struct backend *backend;
  uint64_t bytes;         /* of device memory in use */
  pthread_mutex_t lock;   /* of events' `done`, and of the failure's text */
  pthread_cond_t changed; /* an event is done */
  atomic_bool failed;     /* `text` has the reason */
  char text[TEXT];
  struct capture *capture; /* the current capture; NULL: work goes to the streams */
};

enum { COPY, ZERO, LAUNCH, RECORD, AWAIT, REPLAY, STOP };

struct work {
  int what;
  void *to; /* copy, zero */
  const void *from;
  uint64_t bytes;
  tn_status (*body)(tn_launch *l); /* launch */
  tn_launch *l;
  struct event *event; /* record, await */
  uint64_t ticket;
  const struct capture *capture; /* replay */
};

struct event {
  struct device *device;
  uint64_t recorded, done; /* tickets: the host's last one, and the last one that a stream has reached */
  bool captured;           /* last recorded while work was captured */
};

struct stream {
  struct device *device;
  pthread_t thread;
  sem_t room, filled;
  struct work ring[RING];
  uint64_t put, taken; /* the host's, and the thread's */
  struct event end;
};

struct capture {
  struct work *work;
  size_t n, room;
};

static void *near(const void *address) { return (void *)((uintptr_t)address & ~(uintptr_t)FAR); }

/* ---- on a stream's thread ---- */

/* Records the first failure. No stream does work after it. */
static void break_device(struct device *d, const char *what, const char *why) {
  pthread_mutex_lock(&d->lock);
  if (!d->failed) snprintf(d->text, sizeof d->text, "acme: '%s': %s", what, why);
  d->failed = true;
  pthread_mutex_unlock(&d->lock);
}

/* The kernel gets a copy of its launch, with host addresses and a handle of this thread. */
static void run_launch(struct device *d, const struct work *w) {
  char text[TEXT] = "it failed and did not say why";
  size_t n_in = (size_t)w->l->n_in, n_out = (size_t)w->l->n_out;
  tn_view *views = calloc(n_in + n_out + 1, sizeof *views);
  if (!views) {
    break_device(d, w->l->name, "no memory for its operands");
    return;
  }
  if (n_in > 0) memcpy(views, w->l->in, n_in * sizeof *views);
  if (n_out > 0) memcpy(views + n_in, w->l->out, n_out * sizeof *views);
  for (size_t i = 0; i < n_in + n_out; i++) views[i].data = near(views[i].data);
  tn_launch here = *w->l;
  here.env = (tn_env){&d->backend->api, (tn_error_record *)(void *)text};
  here.struct_size = sizeof here; /* of this copy, not of the host's */
  here.in = views;
  here.out = views + n_in;
  here.workspace = near(w->l->workspace);
  here.folded = near(w->l->folded);
  if (w->body(&here) != TN_OK) break_device(d, w->l->name, text);
  free(views);
}

static void tell(struct event *e, uint64_t ticket) {
  pthread_mutex_lock(&e->device->lock);
  e->done = ticket;
  pthread_cond_broadcast(&e->device->changed);
  pthread_mutex_unlock(&e->device->lock);
}

static void reach(struct event *e, uint64_t ticket) {
  pthread_mutex_lock(&e->device->lock);
  while (e->done < ticket) pthread_cond_wait(&e->device->changed, &e->device->lock);
  pthread_mutex_unlock(&e->device->lock);
}

/* Records complete also on a failed device, so that waits end. */
static void run(struct device *d, const struct work *w) {
  if (w->what == RECORD) tell(w->event, w->ticket);
  if (atomic_load(&d->failed)) return;
  switch (w->what) {
  case COPY: memmove(near(w->to), near(w->from), w->bytes); break;
  case ZERO: memset(near(w->to), 0, w->bytes); break;
  case LAUNCH: run_launch(d, w); break;
  case AWAIT: reach(w->event, w->ticket); break;
  case REPLAY:
    for (size_t i = 0; i < w->capture->n; i++) run(d, &w->capture->work[i]);
  }
}

static void await(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0) continue; /* interrupted by a signal */
}

static void *work_on(void *arg) {
  struct stream *s = arg;
  for (;;) {
    await(&s->filled);
    const struct work *w = &s->ring[s->taken++ % RING];
    if (w->what == STOP) return NULL;
    run(s->device, w);
    sem_post(&s->room);
  }
}

/* ---- the table for kernels on a stream's thread ---- */

static tn_status worker_fail(const void *handle, tn_status code, const char *option, const char *format,
                             ...) {
  va_list args;
  va_start(args, format);
  vsnprintf((char *)(void *)((const tn_env *)handle)->record, TEXT, format, args);
  va_end(args);
  return (void)option, code;
}
static void worker_log(const void *handle, int32_t level, const char *format, ...) {
  (void)handle, (void)level, (void)format;
}
static void worker_parallel(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  (void)l;
  for (int64_t chunk = 0; chunk < chunks; chunk++) body(arg, chunk);
}

/* ---- enqueuing ---- */

static void put(struct stream *s, const struct work *work) {
  await(&s->room);
  s->ring[s->put++ % RING] = *work;
  sem_post(&s->filled);
}

static tn_status keep(struct capture *c, tn_env *env, const struct work *work) {
  if (c->n == c->room) {
    size_t room = c->room ? 2 * c->room : 64;
    struct work *more = realloc(c->work, room * sizeof *more);
    if (!more) return tn_fail(env, TN_ENOMEM, NULL, "acme: no memory for %zu pieces of captured work", room);
    c->work = more;
    c->room = room;
  }
  c->work[c->n++] = *work;
  return TN_OK;
}

static tn_status check(const struct device *d, tn_env *env) {
  return atomic_load(&d->failed) ? tn_fail(env, TN_EDEVICE, NULL, "%s", d->text) : TN_OK;
}

static tn_status push(struct stream *s, tn_env *env, const struct work *work) {
  tn_status status = check(s->device, env);
  if (status != TN_OK) return status;
  if (s->device->capture) return keep(s->device->capture, env, work);
  return put(s, work), TN_OK;
}

static tn_status copy(tn_env *env, void *stream, int32_t way, void *to, const void *from, uint64_t bytes) {
  (void)way; /* the addresses show it */
  return push(stream, env, &(struct work){.what = COPY, .to = to, .from = from, .bytes = bytes});
}

static tn_status fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  return push(stream, env, &(struct work){.what = ZERO, .to = address, .bytes = bytes});
}

static tn_status enqueue(tn_env *env, void *stream, tn_status (*body)(tn_launch *l), tn_launch *l) {
  return push(stream, env, &(struct work){.what = LAUNCH, .body = body, .l = l});
}

/* ---- events ---- */

static tn_status new_event(tn_env *env, void *device, void **event) {
  struct event *e = *event = tn_new(env, sizeof *e);
  if (!e) return TN_ENOMEM;
  e->device = device;
  return TN_OK;
}

static tn_status record(tn_env *env, void *event, void *stream) {
  struct event *e = event;
  struct stream *s = stream;
  e->captured = s->device->capture != NULL;
  if (e->captured) return check(s->device, env); /* one stream replays, in order */
  tn_status status = push(s, env, &(struct work){.what = RECORD, .event = e, .ticket = e->recorded + 1});
  e->recorded += status == TN_OK;
  return status;
}

static tn_status refuse(tn_env *env) {
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "acme: events cannot cross the border of captured work");
}

static tn_status await_event(tn_env *env, void *event, void *stream) {
  struct event *e = event;
  struct stream *s = stream;
  bool captures = s->device->capture != NULL, never = e->recorded == 0 && !e->captured;
  if (!never && captures != e->captured) return refuse(env);
  if (never || captures) return check(s->device, env);
  return push(s, env, &(struct work){.what = AWAIT, .event = e, .ticket = e->recorded});
}

static tn_status wait_event(tn_env *env, void *event) {
  struct event *e = event;
  if (e->captured) return refuse(env);
  reach(e, e->recorded);
  return check(e->device, env);
}

/* ---- streams ---- */

/* Waits also for a failed device, since the host frees memory after it. */
static tn_status wait_stream(tn_env *env, void *stream) {
  struct stream *s = stream;
  if (s->device->capture) return tn_fail(env, TN_EUNSUPPORTED, NULL, "acme: captured work runs only later");
  put(s, &(struct work){.what = RECORD, .event = &s->end, .ticket = ++s->end.recorded});
  reach(&s->end, s->end.recorded);
  return check(s->device, env);
}

/* The thread blocks all signals, so the application's threads handle them. */
static int start(struct stream *s) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&s->thread, NULL, work_on, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static tn_status new_stream(tn_env *env, void *device, int32_t role, void **stream) {
  (void)role; /* all alike */
  struct stream *s = *stream = tn_new(env, sizeof *s);
  if (!s) return TN_ENOMEM;
  s->device = s->end.device = device;
  sem_init(&s->room, 0, RING);
  sem_init(&s->filled, 0, 0);
  int error = start(s);
  if (error == 0) return TN_OK;
  *stream = NULL;
  tn_delete(env, s);
  return tn_fail(env, TN_EUNAVAILABLE, NULL, "acme: a stream's thread did not start (%s)", strerror(error));
}

static void delete_stream(tn_env *env, void *stream) {
  struct stream *s = stream;
  put(s, &(struct work){.what = STOP});
  pthread_join(s->thread, NULL);
  sem_destroy(&s->room);
  sem_destroy(&s->filled);
  tn_delete(env, s);
}

/* ---- capture: one stream replays all work, in the order of enqueuing, which the events allow ---- */

static tn_status capture(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg), void *arg,
                         void **captured) {
  struct device *d = device;
  (void)stream;
  *captured = d->capture = tn_new(env, sizeof *d->capture);
  tn_status status = d->capture ? work(arg) : TN_ENOMEM;
  d->capture = NULL;
  return status;
}

static tn_status launch_capture(tn_env *env, void *capture, void *stream) {
  return push(stream, env, &(struct work){.what = REPLAY, .capture = capture});
}

static void delete_capture(tn_env *env, void *capture) {
  struct capture *c = capture;
  free(c->work);
  tn_delete(env, c);
}

/* ---- memory ---- */

static tn_status new_memory(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  struct device *d = device;
  uint64_t limit = (uint64_t)d->backend->options.memory, far = kind == TN_MEMORY_DEVICE ? FAR : 0;
  if (far && limit > 0 && (d->bytes > limit || bytes > limit - d->bytes))
    return tn_fail(env, TN_ENOMEM, "memory", "acme: %llu bytes are asked for, %llu of %llu are in use",
                   (unsigned long long)bytes, (unsigned long long)d->bytes, (unsigned long long)limit);
  void *real = bytes < FAR ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  if (!real)
    return tn_fail(env, TN_ENOMEM, NULL, "acme: no memory for %llu bytes", (unsigned long long)bytes);
  if (far) d->bytes += bytes;
  *address = (void *)((uintptr_t)real | far);
  return TN_OK;
}

static void delete_memory(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  struct device *d = device;
  (void)env;
  if (kind == TN_MEMORY_DEVICE) d->bytes -= bytes;
  free(near(address));
}

/* ---- devices, and the backend itself ---- */

static tn_status open_acme(tn_env *env, const void *options, void **self) {
  struct backend *b = *self = tn_new(env, sizeof *b);
  if (!b) return TN_ENOMEM;
  b->options = *(const struct acme *)options;
  b->api = *env->api;
  b->api.struct_size = sizeof b->api; /* of this copy, not of the host's */
  b->api.fail = worker_fail;
  b->api.log = worker_log;
  b->api.parallel = worker_parallel;
  return TN_OK;
}

static void close_acme(tn_env *env, void *self) { tn_delete(env, self); }

static tn_status count(tn_env *env, void *self, int32_t *n) {
  (void)env;
  *n = (int32_t)((const struct backend *)self)->options.devices;
  return TN_OK;
}

static tn_status properties(tn_env *env, void *self, int32_t index, tn_device_properties *p) {
  (void)env;
  *p = (tn_device_properties){
      .struct_size = sizeof *p, .threads = 1, .memory_bytes = ((const struct backend *)self)->options.memory};
  snprintf(p->name, sizeof p->name, "acme %d", index);
  return TN_OK;
}

static tn_status open_device(tn_env *env, void *self, int32_t index, void **device) {
  struct device *d = *device = tn_new(env, sizeof *d);
  (void)index; /* all alike */
  if (!d) return TN_ENOMEM;
  d->backend = self;
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->changed, NULL);
  return TN_OK;
}

static void close_device(tn_env *env, void *device) {
  struct device *d = device;
  pthread_cond_destroy(&d->changed);
  pthread_mutex_destroy(&d->lock);
  tn_delete(env, d);
}

/* Its vector unit has no f64; its scalar unit has. */
static tn_status check_types(const void *handle, const tn_match *match) {
  for (int32_t i = 0; i < match->n_in; i++)
    if (match->in[i] && match->in[i]->dtype == TN_F64 && match->in[i]->rank > 0)
      return tn_fail(handle, TN_EUNSUPPORTED, NULL, "acme has f64 for scalars only");
  return TN_OK;
}

static tn_status takes(tn_env *env, void *self, const tn_kernel *kernel, const tn_match *match) {
  return (void)self, (void)kernel, check_types(env, match);
}

static const tn_option options[] = {
    TN_OPT(struct acme, devices, TN_OPT_INT, "1", "[1, 16]", "number of devices"),
    TN_OPT(struct acme, memory, TN_OPT_SIZE, "0", ">= 0", "memory of each device; 0: as much as there is"),
    TN_OPT_END};

static const tn_backend acme = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "acme", "asynchronous, memory of its own", struct acme, options),
    .accepts = "cpu",
    .open = open_acme,
    .close = close_acme,
    .count = count,
    .properties = properties,
    .device_open = open_device,
    .device_close = close_device,
    .memory_new = new_memory,
    .memory_delete = delete_memory,
    .stream_new = new_stream,
    .stream_delete = delete_stream,
    .stream_wait = wait_stream,
    .event_new = new_event,
    .event_delete = close_acme,
    .event_record = record,
    .event_await = await_event,
    .event_wait = wait_event,
    .copy = copy,
    .fill_zero = fill_zero,
    .takes = takes,
    .enqueue = enqueue,
    .capture = capture,
    .capture_launch = launch_capture,
    .capture_delete = delete_capture};

/* ---- a kernel of its own ---- */

static tn_status query_copy(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "engine", .deterministic = 1, .capturable = 1};
  tn_status status = check_types(q, q->match);
  if (status == TN_OK) tn_add_variant(q, &v);
  return status;
}

/* Runs on the host's thread, with device addresses, and enqueues. */
static tn_status launch_copy(tn_launch *l) {
  uint64_t bytes = tn_dtype_size(l->in[0].type.dtype);
  for (int32_t i = 0; i < l->in[0].type.rank; i++) bytes *= (uint64_t)l->in[0].type.dims[i];
  if (bytes == 0) return TN_OK;
  return copy(&l->env, l->stream, TN_COPY_ON_DEVICE, l->out[0].data, l->in[0].data, bytes);
}

static const tn_kernel acme_copy = {.item =
                                        TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "acme_copy", "the copy engine"),
                                    .family = "acme",
                                    .pattern = "y = copy(x)",
                                    .query = query_copy,
                                    .launch = launch_copy};

TN_PLUGIN(acme_backend, "1.0", "MIT", &acme.item, &acme_copy.item)

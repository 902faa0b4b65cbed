/* core/exec/tune/measurement.c: the time of a launch. */
#include "core/exec/tune/measurement.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/system/system.h"
#include "core/compile/layout/layout.h"
#include "core/exec/device/pin_threads.h"
#include "core/exec/tune/operand_data.h"
#include "core/plugin/handles.h"

enum { MOST_VIEWS = 64, MOST_COPIES = 16, MOST_LAUNCHES = 64, DATA_BYTES = 1 << 18 };
enum { LEAST_ROUNDS = 3, MOST_ROUNDS = 5, MOST_ATTEMPTS = 3 };
static const double ROUND_S = 5e-4;         /* a round has as many launches as take so long */
static const double ENOUGH_S = 0.02;        /* no more rounds than LEAST_ROUNDS after this time */
static const double STEADY_SPREAD = 0.2;    /* the largest spread of a figure that is kept */
static const int64_t CACHE_BYTES = 1 << 25; /* where the device does not say */

/* The launch with one copy of the cold operands. */
typedef struct launch_copy {
  tn_launch_host host;
  tn_view views[MOST_VIEWS];
  void *folded;
} launch_copy;

/* Memory for a measurement. It is not counted as memory of the run. */
typedef struct measurement {
  tn_device *device;
  const tn_kernel *kernel;
  const tn_tuning *tuning;
  const tn_choice *choice;
  int64_t bytes[MOST_VIEWS];
  launch_copy *copies; /* the first one has the operands that all share */
  int32_t n_copies, next;
  void *workspace, *prepared, *data;
  void *began, *ended; /* events; NULL: the backend has no event_seconds */
  void *capture;       /* the launches of a round; NULL: they are enqueued one by one */
  tn_pinned pinned;
} measurement;

/* ---- memory ---- */

static tn_status measurement_allocate(measurement *b, int64_t bytes, void **address) {
  tn_device *d = b->device;
  *address = NULL;
  return bytes == 0 ? TN_OK
                    : d->backend->memory_new(&d->env, d->device, TN_MEMORY_DEVICE, (uint64_t)bytes, address);
}

static void measurement_free(measurement *b, int64_t bytes, void *address) {
  tn_device *d = b->device;
  if (address != NULL)
    d->backend->memory_delete(&d->env, d->device, TN_MEMORY_DEVICE, address, (uint64_t)bytes);
}

/* Copies random numbers to the first bytes of an operand and doubles them on the device: a copy of pageable
 * memory is slow. Waits, since the next operand uses the same buffer. */
static tn_status fill_operand(measurement *b, int32_t dtype, void *address, int64_t bytes) {
  tn_device *d = b->device;
  void *stream = d->streams[TN_STREAM_COMPUTE];
  int64_t piece = bytes < DATA_BYTES ? bytes : DATA_BYTES;
  tn_operand_data(dtype, b->data, (size_t)piece);
  TN_TRY(d->backend->copy(&d->env, stream, TN_COPY_TO_DEVICE, address, b->data, (uint64_t)piece));
  for (int64_t at = piece, n; at < bytes; at += n) {
    n = bytes - at < at ? bytes - at : at;
    TN_TRY(d->backend->copy(&d->env, stream, TN_COPY_ON_DEVICE, (char *)address + at, address, (uint64_t)n));
  }
  return d->backend->stream_wait(&d->env, stream);
}

static bool is_cold_operand(const measurement *b, int32_t i) {
  return i < b->tuning->match->n_in && b->tuning->cold != NULL && b->tuning->cold[i];
}

static tn_layout operand_layout(const tn_operand_layout *rules, int32_t i, int32_t rank) {
  bool given = rules != NULL && rules[i].layout.set &&
               (rules[i].rule == TN_LAYOUT_FIXED || rules[i].rule == TN_LAYOUT_PREFERRED);
  return given ? rules[i].layout : tn_layout_row_major(rank);
}

/* Types, layouts and sizes of operands and results; sums the bytes of cold ones. */
static int64_t describe_operands(measurement *b, tn_view *views) {
  const tn_match *m = b->tuning->match;
  int64_t cold = b->choice->folded_bytes;
  for (int32_t i = 0; i < m->n_in + m->n_out; i++) {
    bool in = i < m->n_in;
    int32_t k = in ? i : i - m->n_in;
    const tn_type *type = in ? m->in[k] : m->out[k];
    if (type == NULL) continue;
    tn_layout layout = operand_layout(in ? b->choice->in_rule : b->choice->out_rule, k, type->rank);
    b->bytes[i] = tn_layout_bytes(type, &layout);
    views[i] = (tn_view){*type, layout, NULL};
    if (is_cold_operand(b, i)) cold += b->bytes[i];
  }
  return cold;
}

/* As many as hold twice the bytes of the caches together. */
static int32_t count_copies(const measurement *b, int64_t cold_bytes) {
  int64_t cache = b->device->target.properties.cache_bytes;
  int64_t n = cold_bytes > 0 ? 2 * (cache > 0 ? cache : CACHE_BYTES) / cold_bytes + 1 : 1;
  return (int32_t)(n < MOST_COPIES ? n : MOST_COPIES);
}

static tn_status allocate_copy(measurement *b, int32_t copy) {
  const tn_match *m = b->tuning->match;
  launch_copy *c = &b->copies[copy];
  if (copy > 0) memcpy(c->views, b->copies[0].views, sizeof c->views);
  for (int32_t i = 0; i < m->n_in + m->n_out; i++) {
    if (copy > 0 && !is_cold_operand(b, i)) continue;
    c->views[i].data = NULL;
    TN_TRY(measurement_allocate(b, b->bytes[i], &c->views[i].data));
    if (i < m->n_in && b->bytes[i] > 0)
      TN_TRY(fill_operand(b, c->views[i].type.dtype, c->views[i].data, b->bytes[i]));
  }
  return measurement_allocate(b, b->choice->folded_bytes, &c->folded);
}

static tn_status allocate_operands(measurement *b) {
  tn_env *env = &b->device->env;
  tn_view views[MOST_VIEWS] = {{{0}}};
  int32_t n = count_copies(b, describe_operands(b, views));
  b->data = tn_alloc(env, DATA_BYTES);
  b->copies = tn_alloc(env, (size_t)n * sizeof *b->copies);
  if (b->data == NULL || b->copies == NULL) return TN_ENOMEM;
  memcpy(b->copies[0].views, views, sizeof views);
  for (b->n_copies = 0; b->n_copies < n;) {
    b->n_copies++; /* measurement_end also frees a copy that is half allocated */
    TN_TRY(allocate_copy(b, b->n_copies - 1));
  }
  return measurement_allocate(b, b->choice->workspace_bytes, &b->workspace);
}

static void free_copy(measurement *b, int32_t copy) {
  const tn_match *m = b->tuning->match;
  launch_copy *c = &b->copies[copy];
  for (int32_t i = 0; i < m->n_in + m->n_out; i++)
    if (copy == 0 || (is_cold_operand(b, i) && c->views[i].data != b->copies[0].views[i].data))
      measurement_free(b, b->bytes[i], c->views[i].data);
  measurement_free(b, b->choice->folded_bytes, c->folded);
}

/* ---- one launch ---- */

static tn_status measurement_prepare(measurement *b, tn_measured *measured) {
  const tn_match *m = b->tuning->match;
  const tn_view *views = b->copies[0].views;
  tn_layout in[MOST_VIEWS], out[MOST_VIEWS];
  for (int32_t i = 0; i < m->n_in; i++) in[i] = views[i].layout;
  for (int32_t i = 0; i < m->n_out; i++) out[i] = views[m->n_in + i].layout;
  int32_t use;
  tn_status status = tn_device_prepare(b->device, b->kernel, m, b->choice, in, out, 0, &b->prepared);
  measured->late = status == TN_OK;
  if (status == TN_OK) status = tn_device_finish_prepare(b->device, &use);
  measured->declined = status == TN_EUNSUPPORTED;
  return status;
}

static void fill_launch(const measurement *b, launch_copy *c) {
  tn_device *d = b->device;
  const tn_match *m = b->tuning->match;
  c->host.pub = (tn_launch){.env = d->env,
                            .struct_size = sizeof(tn_launch),
                            .n_in = m->n_in,
                            .n_out = m->n_out,
                            .in = c->views,
                            .out = c->views + m->n_in,
                            .prepared = b->prepared,
                            .workspace = b->workspace,
                            .workspace_bytes = b->choice->workspace_bytes,
                            .stream = d->streams[TN_STREAM_COMPUTE],
                            .name = b->kernel->item.name,
                            .folded = c->folded,
                            .folded_bytes = b->choice->folded_bytes};
  c->host.parallel = d->backend->parallel;
  c->host.device = d->device;
}

static tn_status enqueue_launch(measurement *b, tn_status (*launch)(tn_launch *l), int32_t copy) {
  tn_device *d = b->device;
  return tn_device_enqueue(d, tn_device_is_foreign(d, b->kernel->family), launch, &b->copies[copy].host.pub);
}

static tn_status enqueue_next(measurement *b) {
  int32_t copy = b->next;
  b->next = (copy + 1) % b->n_copies;
  return enqueue_launch(b, b->kernel->launch, copy);
}

/* ---- rounds ---- */

static tn_status measurement_make_events(measurement *b) {
  tn_device *d = b->device;
  if (d->backend->event_seconds == NULL) return TN_OK;
  TN_TRY(d->backend->event_new(&d->env, d->device, &b->began));
  return d->backend->event_new(&d->env, d->device, &b->ended);
}

typedef struct captured_round {
  measurement *b;
  int32_t n;
  tn_status launched;    /* what the first launch that failed returned ... */
  tn_error_record cause; /* ... and its message */
} captured_round;

static tn_status enqueue_round(measurement *b, int32_t n) {
  for (int32_t i = 0; i < n; i++) TN_TRY(enqueue_next(b));
  return TN_OK;
}

static tn_status enqueue_captured_round(void *arg) {
  captured_round *round = arg;
  round->launched = enqueue_round(round->b, round->n);
  round->cause = round->b->device->record;
  return round->launched;
}

/* The run replays captures, in which a launch costs the host nothing and the device less. Launches that are
 * enqueued one by one are as long as the host's call, so all short kernels would look alike. A launch that is
 * not capturable, or that the backend refuses to capture, is timed by itself all the same. A captured round
 * has a launch for each copy at least, since every replay is the same. Messages after that of a launch follow
 * from it. */
static tn_status capture_round(measurement *b, int32_t *n) {
  tn_device *d = b->device;
  if (b->ended == NULL || !tn_device_captures(d) || !b->choice->capturable) return TN_OK;
  captured_round round = {.b = b, .n = *n > b->n_copies ? *n : b->n_copies};
  tn_status status = d->backend->capture(&d->env, d->device, d->streams[TN_STREAM_COMPUTE],
                                         enqueue_captured_round, &round, &b->capture);
  if (status == TN_OK) {
    *n = round.n;
    return TN_OK;
  }
  if (b->capture != NULL) d->backend->capture_delete(&d->env, b->capture);
  b->capture = NULL;
  if (status == TN_EUNSUPPORTED) {
    tn_error_clear(&d->env);
    return TN_OK;
  }
  if (round.launched != TN_OK) d->record = round.cause;
  return round.launched != TN_OK ? round.launched : status;
}

static tn_status launch_round(measurement *b, int32_t n) {
  tn_device *d = b->device;
  return b->capture != NULL ? d->backend->capture_launch(&d->env, b->capture, d->streams[TN_STREAM_COMPUTE])
                            : enqueue_round(b, n);
}

/* The time of n launches. */
static tn_status time_round(measurement *b, int32_t n, double *seconds) {
  tn_device *d = b->device;
  const tn_backend *backend = d->backend;
  void *stream = d->streams[TN_STREAM_COMPUTE];
  bool by_events = b->ended != NULL;
  double start_s = tn_clock_s();
  if (by_events) TN_TRY(backend->event_record(&d->env, b->began, stream));
  TN_TRY(launch_round(b, n));
  if (by_events) TN_TRY(backend->event_record(&d->env, b->ended, stream));
  TN_TRY(backend->stream_wait(&d->env, stream));
  *seconds = tn_clock_s() - start_s;
  return by_events ? backend->event_seconds(&d->env, b->began, b->ended, seconds) : TN_OK;
}

static int measurement_compare_times(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* Rounds of n launches each. */
static tn_status time_rounds(measurement *b, int32_t n, tn_measured *measured) {
  double rounds_s[MOST_ROUNDS], all_s = 0;
  int32_t rounds = 0;
  while (rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || all_s < ENOUGH_S)) {
    TN_TRY(time_round(b, n, &rounds_s[rounds]));
    all_s += rounds_s[rounds++];
  }
  qsort(rounds_s, (size_t)rounds, sizeof *rounds_s, measurement_compare_times);
  measured->seconds = rounds_s[0] / n;
  measured->spread = rounds_s[0] > 0 ? rounds_s[rounds / 2] / rounds_s[0] - 1 : 0;
  measured->steady = measured->spread <= STEADY_SPREAD;
  return TN_OK;
}

/* Before the rounds each copy is folded, and two launches run: a kernel may allocate at its first one, and
 * the second one tells how many are a round. The first replay of a captured round may prepare it. */
static tn_status time_launches(measurement *b, tn_measured *measured) {
  double once_s = 0;
  for (int32_t i = 0; i < b->n_copies; i++) {
    fill_launch(b, &b->copies[i]);
    if (b->choice->folded_bytes > 0) TN_TRY(enqueue_launch(b, b->kernel->fold, i));
  }
  TN_TRY(enqueue_next(b));
  TN_TRY(b->device->backend->stream_wait(&b->device->env, b->device->streams[TN_STREAM_COMPUTE]));
  TN_TRY(time_round(b, 1, &once_s));
  double wanted = once_s > 0 ? ROUND_S / once_s + 1 : MOST_LAUNCHES;
  int32_t n = wanted < MOST_LAUNCHES ? (int32_t)wanted : MOST_LAUNCHES;
  TN_TRY(capture_round(b, &n));
  if (b->capture != NULL) TN_TRY(time_round(b, n, &once_s));
  measured->replayed = b->capture != NULL;
  for (int32_t attempt = 0; attempt < MOST_ATTEMPTS && !measured->steady; attempt++) {
    double before_s = measured->seconds;
    TN_TRY(time_rounds(b, n, measured));
    if (attempt > 0 && before_s < measured->seconds && !measured->steady) measured->seconds = before_s;
  }
  return TN_OK;
}

static void measurement_end(measurement *b) {
  tn_env *env = &b->device->env;
  const tn_backend *backend = b->device->backend;
  if (b->capture != NULL)
    backend->capture_delete(env, b->capture); /* it has launches of the prepared kernel */
  if (b->prepared != NULL && b->kernel->release != NULL) b->kernel->release(env, b->prepared);
  if (b->began != NULL) backend->event_delete(env, b->began);
  if (b->ended != NULL) backend->event_delete(env, b->ended);
  for (int32_t i = b->n_copies; i-- > 0;) free_copy(b, i);
  measurement_free(b, b->choice->workspace_bytes, b->workspace);
  tn_release(env, b->copies);
  tn_release(env, b->data);
}

/* A fault in a kernel is met by every later call. The message stays that of the first one. */
static bool measurement_broke_device(tn_device *d) {
  const tn_error_record cause = d->record;
  bool broken = d->backend->stream_wait(&d->env, d->streams[TN_STREAM_COMPUTE]) != TN_OK;
  d->record = cause;
  return broken;
}

tn_status tn_measure_launch(tn_device *device, const tn_tuning *tuning, const tn_choice *choice,
                            tn_measured *measured) {
  const tn_match *m = tuning->match;
  *measured = (tn_measured){0};
  TN_TRY(tn_device_check_process(device));
  if (m->n_in + m->n_out > MOST_VIEWS)
    return tn_failf(&device->env, TN_EUNSUPPORTED, "it has more than %d operands and results", MOST_VIEWS);
  measurement *b = tn_alloc(&device->env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  *b = (measurement){
      .device = device, .kernel = (const tn_kernel *)tuning->entry->item, .tuning = tuning, .choice = choice};
  tn_status status = allocate_operands(b);
  measured->tried = status == TN_OK;
  if (status == TN_OK) status = measurement_prepare(b, measured);
  if (status == TN_OK) status = measurement_make_events(b);
  tn_pin_enter(&b->pinned, device);
  if (status == TN_OK) status = time_launches(b, measured);
  tn_pin_leave(&b->pinned);
  measured->broken = status != TN_OK && measurement_broke_device(device);
  measurement_end(b);
  tn_release(&device->env, b);
  return status;
}

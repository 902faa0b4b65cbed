/* core/exec/fallback_segments.c: the boundaries of a program's segments. Before and after a fallback segment,
 * device and host exchange values. Events order the copies, and the host waits once per fallback segment. A
 * segment of groups that are placed on the host waits for its operands alone, so that the device goes on. */
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"

/* ---- binding ---- */

static tn_status segment_event(tn_executor *e, bool needed, void **event) {
  if (!needed) return TN_OK;
  return e->device->backend->event_new(&e->device->env, e->device->device, event);
}

/* The step of a stream that the end of a device segment awaits, unless a captured part awaits it. */
static const tn_awaited_end *segment_joined(const tn_bound_program *bound, const tn_segment *s,
                                            const tn_bound_segment *b, int32_t role) {
  if (s->awaits.of[role] < 0) return NULL;
  for (int32_t i = b->first_part; i < b->first_part + b->n_parts; i++)
    if (bound->parts[i].joins.of[role] >= s->awaits.of[role]) return NULL;
  return &bound->ends[s->awaits.of[role]];
}

static void segment_bind_parts(const tn_bound_program *bound, int32_t segment, tn_bound_segment *b) {
  while (b->first_part < bound->n_parts && bound->parts[b->first_part].segment < segment) b->first_part++;
  while (b->first_part + b->n_parts < bound->n_parts &&
         bound->parts[b->first_part + b->n_parts].segment == segment)
    b->n_parts++;
}

static tn_status segment_bind(tn_executor *e, const tn_bound_program *bound, int32_t segment,
                              tn_bound_segment *b) {
  const tn_segment *s = &bound->program->segments[segment];
  segment_bind_parts(bound, segment, b);
  if (!s->fallback) {
    for (int32_t role = 0; role < TN_STREAMS; role++) b->joined[role] = segment_joined(bound, s, b, role);
    return TN_OK;
  }
  if (s->placed) {
    b->read = s->reads >= 0 ? bound->ends[s->reads].event : NULL;
    return TN_OK;
  }
  TN_TRY(segment_event(e, true, &b->ready));
  TN_TRY(segment_event(e, s->n_out > 0, &b->fetched));
  return segment_event(e, s->n_in > 0, &b->returned);
}

tn_status tn_bound_segments_create(tn_executor *e, tn_bound_program *bound) {
  const tn_program *program = bound->program;
  bound->segments = tn_alloc(e->env, tn_size_mul((size_t)program->n_segments, sizeof(tn_bound_segment)));
  if (bound->segments == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < program->n_segments; i++) {
    tn_status status = segment_bind(e, bound, i, &bound->segments[i]);
    if (status != TN_OK) return tn_executor_fail(e, status);
  }
  return TN_OK;
}

void tn_bound_segments_destroy(tn_executor *e, tn_bound_program *bound) {
  for (int32_t i = 0; bound->segments != NULL && i < bound->program->n_segments; i++) {
    tn_bound_segment *b = &bound->segments[i];
    void *events[] = {b->ready, b->fetched, b->returned};
    for (size_t k = 0; k < sizeof(events) / sizeof(events[0]); k++)
      if (events[k] != NULL) e->device->backend->event_delete(&e->device->env, events[k]);
  }
  tn_release(e->env, bound->segments);
}

/* ---- running ---- */

static tn_status fetch_operands(tn_executor *e, const tn_bound_program *bound, const tn_segment *s,
                                int32_t slot, void *stream) {
  for (int32_t i = 0; i < s->n_out; i++) {
    const tn_transfer *t = &s->out[i];
    tn_timed_work work = tn_profile_work(e, TN_SPAN_COPY_OUT, TN_STREAM_COPY_OUT);
    work.span.number = t->bytes;
    TN_TRY(tn_profile_from(e, &work));
    TN_TRY(e->device->backend->copy(&e->device->env, stream, TN_COPY_TO_HOST, (char *)e->host + t->host,
                                    tn_executor_address(e, bound, &t->device, slot, false),
                                    (uint64_t)t->bytes));
    TN_TRY(tn_profile_to(e, &work));
  }
  return TN_OK;
}

static tn_status return_results(tn_executor *e, const tn_bound_program *bound, const tn_segment *s,
                                int32_t slot, void *stream) {
  for (int32_t i = 0; i < s->n_in; i++) {
    const tn_transfer *t = &s->in[i];
    tn_timed_work work = tn_profile_work(e, TN_SPAN_COPY_IN, TN_STREAM_COPY_IN);
    work.span.number = t->bytes;
    TN_TRY(tn_profile_from(e, &work));
    TN_TRY(e->device->backend->copy(&e->device->env, stream, TN_COPY_TO_DEVICE,
                                    tn_executor_address(e, bound, &t->device, slot, false),
                                    (char *)e->host + t->host, (uint64_t)t->bytes));
    TN_TRY(tn_profile_to(e, &work));
  }
  return TN_OK;
}

/* Of a placed segment. The last fetch of an earlier run reads memory that the segment may write; a copy to
 * the host in this run comes after it. */
static tn_status begin_placed(tn_executor *e, const tn_bound_segment *b) {
  void *event = b->read != NULL ? b->read : e->fetched;
  return event != NULL ? tn_device_wait_event(e->device, event) : TN_OK;
}

tn_status tn_fallback_begin(tn_executor *e, const tn_bound_program *bound, int32_t segment, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  const tn_segment *s = &bound->program->segments[segment];
  const tn_bound_segment *b = &bound->segments[segment];
  tn_env *env = &e->device->env;
  if (s->placed) return begin_placed(e, b);
  void *compute = e->device->streams[TN_STREAM_COMPUTE], *stream = e->device->streams[TN_STREAM_COPY_OUT];
  TN_TRY(backend->event_record(env, b->ready, compute));
  if (b->fetched == NULL) return tn_device_wait_event(e->device, b->ready);
  TN_TRY(backend->event_await(env, b->ready, stream));
  TN_TRY(fetch_operands(e, bound, s, slot, stream));
  TN_TRY(backend->event_record(env, b->fetched, stream));
  return tn_device_wait_event(e->device, b->fetched);
}

/* The device has been idle since tn_fallback_begin, so the copies need not await it; a placed segment has
 * none. The fallback's stream may run asynchronously, so its results are waited for. */
tn_status tn_fallback_end(tn_executor *e, const tn_bound_program *bound, int32_t segment, int32_t slot) {
  const tn_backend *backend = e->device->backend;
  const tn_bound_segment *b = &bound->segments[segment];
  tn_device *fallback = e->device->fallback;
  tn_env *env = &e->device->env;
  void *stream = e->device->streams[TN_STREAM_COPY_IN];
  tn_status status = fallback->backend->stream_wait(&fallback->env, fallback->streams[TN_STREAM_COMPUTE]);
  if (status != TN_OK) return tn_error_move(env, &fallback->env);
  if (b->returned == NULL) return TN_OK;
  TN_TRY(return_results(e, bound, &bound->program->segments[segment], slot, stream));
  TN_TRY(backend->event_record(env, b->returned, stream));
  return backend->event_await(env, b->returned, e->device->streams[TN_STREAM_COMPUTE]);
}

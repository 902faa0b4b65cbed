/* core/exec/watch/launch_watch.c: copies of the operands and results of launches. */
#include "core/exec/watch/launch_watch.h"

#include <string.h>

#include "core/compile/kernels/collective_kernel.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"
#include "core/exec/stored_copy.h"

/* A value in its layout on the host, and row-major. */
typedef struct watched_value {
  tn_view *view;
  void *stored, *plain; /* NULL: the value is absent or empty */
  int64_t bytes;        /* of stored */
} watched_value;

struct tn_launch_watch {
  tn_executor *executor;
  tn_run_observer observer; /* of the executor */
  tn_launch_watcher watcher;
  int32_t launches;
  const tn_bound_program *bound; /* of the run */
  tn_arena memory;               /* of one launch */
  watched_value *in, *out;
};

/* ---- copies ---- */

/* Whether the step's operands lie in memory of the host. */
static bool watch_on_host(const tn_launch_watch *w, const tn_bound_step *b) {
  return w->executor->host_addressable || tn_device_of(w->executor, b->step) != w->executor->device;
}

static tn_status watch_copy(const tn_launch_watch *w, const tn_bound_step *b, const watched_value *v,
                            int32_t direction) {
  tn_device *device = tn_device_of(w->executor, b->step);
  bool fetch = direction == TN_COPY_TO_HOST;
  void *to = fetch ? v->stored : v->view->data;
  const void *from = fetch ? v->view->data : v->stored;
  if (v->stored == NULL) return TN_OK;
  if (watch_on_host(w, b)) return memcpy(to, from, (size_t)v->bytes), TN_OK;
  void *stream = b->host.pub.stream;
  TN_TRY(device->backend->copy(&device->env, stream, direction, to, from, (uint64_t)v->bytes));
  return tn_device_wait_stream(device, stream);
}

static tn_status watch_copy_all(const tn_launch_watch *w, const tn_bound_step *b, watched_value *values,
                                int32_t n, int32_t direction) {
  for (int32_t i = 0; i < n; i++) TN_TRY(watch_copy(w, b, &values[i], direction));
  return TN_OK;
}

static bool watch_is_plain(const tn_layout *layout, int32_t rank) {
  return !layout->set || tn_layout_is_row_major(layout, rank);
}

/* A row-major value needs no copy. */
static tn_status watch_allocate_value(tn_launch_watch *w, watched_value *v) {
  const tn_view *view = v->view;
  v->bytes = view->data != NULL ? tn_layout_bytes(&view->type, &view->layout) : 0;
  if (v->bytes == 0) return TN_OK;
  v->stored = v->plain = tn_arena_alloc(&w->memory, (size_t)v->bytes);
  if (!watch_is_plain(&view->layout, view->type.rank))
    v->plain = tn_arena_alloc(&w->memory, tn_type_bytes(&view->type));
  return v->stored != NULL && v->plain != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status watch_allocate(tn_launch_watch *w, tn_view *views, int32_t n, watched_value **made) {
  watched_value *values = *made = tn_arena_alloc(&w->memory, (size_t)n * sizeof *values + 1);
  if (values == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    values[i].view = &views[i];
    TN_TRY(watch_allocate_value(w, &values[i]));
  }
  return TN_OK;
}

static const void *const *watch_plain(tn_launch_watch *w, const watched_value *values, int32_t n) {
  const void **list = tn_arena_alloc(&w->memory, (size_t)n * sizeof *list + 1);
  for (int32_t i = 0; list != NULL && i < n; i++) {
    const watched_value *v = &values[i];
    list[i] = v->plain;
    if (v->plain != v->stored) tn_stored_copy(&v->view->type, &v->view->layout, v->stored, v->plain, false);
  }
  return list;
}

/* ---- repetitions ---- */

static tn_status watch_launch_again(tn_launch_watch *w, tn_bound_step *b) {
  tn_device *device = tn_device_of(w->executor, b->step);
  TN_TRY(watch_copy_all(w, b, w->in, b->step->n_in, TN_COPY_TO_DEVICE));
  TN_TRY(tn_device_enqueue(device, b->foreign, b->launch, &b->host.pub));
  return tn_device_wait_stream(device, b->host.pub.stream);
}

/* Compares elements, since padding may hold anything. */
static bool watch_same_results(const watched_value *first, const watched_value *late, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (first[i].plain != NULL &&
        memcmp(first[i].plain, late[i].plain, tn_type_bytes(&first[i].view->type)) != 0)
      return false;
  return true;
}

/* Launches until the results differ from the first ones; the first ones are put back. */
static tn_status watch_repeat(tn_launch_watch *w, tn_bound_step *b, tn_watched_launch *seen) {
  watched_value *late = NULL;
  int32_t n = b->step->n_out;
  if (w->launches < 2) return TN_OK;
  TN_TRY(watch_allocate(w, b->host.pub.out, n, &late));
  for (int32_t i = 2; i <= w->launches && seen->differs == 0; i++) {
    TN_TRY(watch_launch_again(w, b));
    TN_TRY(watch_copy_all(w, b, late, n, TN_COPY_TO_HOST));
    const void *const *list = watch_plain(w, late, n);
    if (list == NULL) return TN_ENOMEM;
    if (watch_same_results(w->out, late, n)) continue;
    seen->differs = i;
    seen->late = list;
  }
  return watch_copy_all(w, b, w->out, n, TN_COPY_TO_DEVICE);
}

/* ---- the observer ---- */

static tn_status watch_begin(void *context, const tn_bound_program *bound, int32_t slot) {
  tn_launch_watch *w = context;
  (void)slot;
  w->bound = bound;
  return TN_OK;
}

static bool watch_skips(const tn_bound_step *b) { return tn_kernel_is_collective(b->step->group->kernel); }

static tn_status watch_fail(tn_launch_watch *w, tn_env *env, tn_status status) {
  if (status == TN_ENOMEM) tn_error_move(env, w->executor->env);
  return status;
}

static tn_status watch_launching(void *context, tn_bound_step *b) {
  tn_launch_watch *w = context;
  if (watch_skips(b)) return TN_OK;
  tn_env *env = &tn_device_of(w->executor, b->step)->env;
  w->memory = tn_arena_new(w->executor->env);
  tn_status status = watch_allocate(w, b->host.pub.in, b->step->n_in, &w->in);
  if (status == TN_OK) status = watch_allocate(w, b->host.pub.out, b->step->n_out, &w->out);
  if (status != TN_OK) return watch_fail(w, env, status);
  return watch_copy_all(w, b, w->in, b->step->n_in, TN_COPY_TO_HOST);
}

static tn_status watch_show(tn_launch_watch *w, tn_bound_step *b) {
  const tn_step *step = b->step;
  tn_watched_launch seen = {
      .program = w->bound->program, .step = step, .index = (int32_t)(step - w->bound->program->steps)};
  TN_TRY(watch_copy_all(w, b, w->out, step->n_out, TN_COPY_TO_HOST));
  seen.in = watch_plain(w, w->in, step->n_in);
  seen.out = watch_plain(w, w->out, step->n_out);
  if (seen.in == NULL || seen.out == NULL) return TN_ENOMEM;
  TN_TRY(watch_repeat(w, b, &seen));
  return w->watcher.seen(w->watcher.context, &tn_device_of(w->executor, step)->env, &seen);
}

static tn_status watch_launched(void *context, tn_bound_step *b) {
  tn_launch_watch *w = context;
  if (watch_skips(b)) return TN_OK;
  tn_status status = watch_show(w, b);
  tn_arena_free(&w->memory);
  return watch_fail(w, &tn_device_of(w->executor, b->step)->env, status);
}

static tn_status watch_end(void *context, const tn_bound_program *bound) {
  (void)context, (void)bound;
  return TN_OK;
}

/* ---- life ---- */

tn_status tn_launch_watch_create(tn_executor *executor, int32_t launches, const tn_launch_watcher *watcher,
                                 tn_launch_watch **watch) {
  tn_launch_watch *w = *watch = tn_alloc(executor->env, sizeof *w);
  if (w == NULL) return TN_ENOMEM;
  w->executor = executor;
  w->watcher = *watcher;
  w->launches = launches;
  w->memory = tn_arena_new(executor->env);
  w->observer = (tn_run_observer){w, watch_begin, watch_launching, watch_launched, watch_end};
  executor->observer = &w->observer;
  return TN_OK;
}

void tn_launch_watch_destroy(tn_launch_watch *w) {
  if (w == NULL) return;
  w->executor->observer = NULL;
  tn_arena_free(&w->memory);
  tn_release(w->executor->env, w);
}

/* ---- the memory ---- */

static int64_t watch_operands_bytes(const tn_operand *operands, const tn_val *values, int32_t n) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < n; i++) {
    const tn_operand *o = &operands[i];
    if (values[i] == 0) continue;
    bytes += tn_layout_bytes(&o->type, &o->layout);
    if (!watch_is_plain(&o->layout, o->type.rank)) bytes += (int64_t)tn_type_bytes(&o->type);
  }
  return bytes;
}

int64_t tn_launch_watch_bytes(const tn_program *program, int32_t launches) {
  int64_t most = 0;
  for (int32_t i = 0; i < tn_program_all_steps(program); i++) {
    const tn_step *step = &program->steps[i];
    int64_t bytes = watch_operands_bytes(step->in, step->group->in, step->n_in) +
                    (launches > 1 ? 2 : 1) * watch_operands_bytes(step->out, step->group->out, step->n_out);
    most = bytes > most ? bytes : most;
  }
  return most;
}

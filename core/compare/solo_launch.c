/* core/compare/solo_launch.c: one kernel, launched alone. */
#include "core/compare/solo_launch.h"

#include <string.h>

#include "core/compare/group_graph.h"
#include "core/compile/kernels/recorded_choices.h"
#include "core/compile/select/select.h"
#include "core/exec/collective.h"
#include "core/exec/device/pin_threads.h"
#include "core/exec/stored_copy.h"
#include "core/plugin/handles.h"

/* A value of the group. */
typedef struct solo_value {
  int32_t place; /* in the file; -1: the operand is absent */
  int64_t bytes; /* on the device */
  void *stored;  /* on the host, in its layout */
  bool borrowed; /* the device memory is that of an operand */
} solo_value;

struct tn_solo_launch {
  tn_env *env;
  tn_device *device;
  const tn_launch_file *file;
  tn_recorded_kernel kernel;
  tn_recorded_choice recorded;
  tn_recorded_choices replay;
  tn_target target; /* of the device, for which this kernel alone is installed */
  tn_cover *cover;
  const tn_group *group;
  const tn_choice *choice;
  tn_arena memory;
  tn_launch_host host;
  tn_view *views; /* operands, then results */
  tn_layout *layouts;
  solo_value *values;
  void *prepared, *workspace, *folded;
  const void **results; /* per result of the file: row-major */
};

/* ---- the kernel ---- */

static void solo_restrict_target(tn_solo_launch *s) {
  const tn_launch_file *f = s->file;
  s->kernel = (tn_recorded_kernel){f->kernel, f->plugin};
  s->recorded = (tn_recorded_choice){f->key, f->kernel, (int32_t)f->variant, NULL};
  s->replay = (tn_recorded_choices){&s->kernel, &s->recorded, NULL, 1, 1, 0};
  s->target = s->device->target;
  s->target.replay = &s->replay;
  s->target.tuner = NULL;
  s->target.fallback = NULL;
}

static tn_status solo_select(tn_solo_launch *s, tn_registry *registry) {
  tn_assignment assignment;
  TN_TRY(tn_pass_assign(s->env, registry, &s->target, s->file->graph, &assignment));
  tn_status status = tn_pass_select(&assignment, &s->cover);
  if (status != TN_OK) tn_assignment_free(&assignment);
  return status;
}

static tn_status solo_find_kernel(tn_solo_launch *s, tn_registry *registry) {
  const tn_launch_file *f = s->file;
  solo_restrict_target(s);
  tn_status status = solo_select(s, registry);
  if (status != TN_OK)
    return tn_wrap(s->env, status, "kernel '%s' of plugin '%s' does not take the ops of the file", f->kernel,
                   f->plugin);
  if (s->cover->groups.n != 1)
    return tn_failf(s->env, TN_EUNSUPPORTED,
                    "kernel '%s' takes the ops of the file in %zu launches, not in one", f->kernel,
                    s->cover->groups.n);
  s->group = &s->cover->groups.v[0];
  for (int32_t i = 0; i < s->group->n_variants; i++)
    if (s->group->variants[i].id == f->variant) s->choice = &s->group->variants[i];
  if (s->choice != NULL) return TN_OK;
  return tn_failf(s->env, TN_EUNSUPPORTED, "kernel '%s' has no variant %lld '%s' for the ops of the file",
                  f->kernel, (long long)f->variant, f->variant_name);
}

/* ---- operands and results ---- */

static int32_t solo_result_place(const tn_solo_launch *s, tn_val v) {
  char name[TN_GROUP_NAME];
  for (int32_t k = 0; k < s->file->n_out; k++)
    if (tn_graph_find_output(s->cover->graph, tn_group_graph_out(k, name)) == v) return k;
  return -1;
}

static tn_status solo_describe(tn_solo_launch *s, int32_t i) {
  const tn_group *g = s->group;
  bool in = i < g->n_in;
  tn_val v = tn_group_value(g, i);
  solo_value *value = &s->values[i];
  value->place = in ? tn_group_graph_operand(s->cover->graph, v) : solo_result_place(s, v);
  if (v == 0) return TN_OK;
  if (value->place < 0 || (in && value->place >= s->file->n_in))
    return tn_failf(s->env, TN_EUNSUPPORTED, "kernel '%s' takes the ops of the file with other operands",
                    s->file->kernel);
  const tn_type *type = tn_graph_type(s->cover->graph, v);
  s->layouts[i] = in ? s->file->in_layout[value->place] : s->file->out_layout[value->place];
  s->views[i] = (tn_view){*type, s->layouts[i], NULL};
  value->bytes = tn_layout_bytes(type, &s->layouts[i]);
  value->stored = tn_arena_alloc(&s->memory, (size_t)value->bytes + 1);
  return value->stored != NULL ? TN_OK : TN_ENOMEM;
}

/* The view of an operand of the file; NULL: none. */
static tn_view *solo_operand_view(tn_solo_launch *s, int64_t place) {
  for (int32_t i = 0; i < s->group->n_in && place >= 0; i++)
    if (s->values[i].place == place) return &s->views[i];
  return NULL;
}

/* A result that overwrote an operand does so again. */
static tn_status solo_place(tn_solo_launch *s, int32_t i) {
  solo_value *value = &s->values[i];
  if (i >= s->group->n_in && value->place >= 0) {
    const tn_view *operand = solo_operand_view(s, s->file->in_place[value->place]);
    value->borrowed = operand != NULL;
    if (operand != NULL) s->views[i].data = operand->data;
  }
  return value->borrowed ? TN_OK
                         : tn_device_memory(s->device, TN_MEMORY_DEVICE, value->bytes, &s->views[i].data);
}

static tn_status solo_allocate(tn_solo_launch *s) {
  size_t n = (size_t)(s->group->n_in + s->group->n_out) + 1;
  s->views = tn_arena_alloc(&s->memory, n * sizeof *s->views);
  s->layouts = tn_arena_alloc(&s->memory, n * sizeof *s->layouts);
  s->values = tn_arena_alloc(&s->memory, n * sizeof *s->values);
  s->results = tn_arena_alloc(&s->memory, ((size_t)s->file->n_out + 1) * sizeof *s->results);
  if (!s->views || !s->layouts || !s->values || !s->results) return TN_ENOMEM;
  for (int32_t i = 0; i < s->group->n_in + s->group->n_out; i++) TN_TRY(solo_describe(s, i));
  return TN_OK;
}

static tn_status solo_prepare(tn_solo_launch *s) {
  const tn_group *g = s->group;
  tn_device *d = s->device;
  int32_t use;
  for (int32_t i = 0; i < g->n_in + g->n_out; i++) TN_TRY(solo_place(s, i));
  TN_TRY(tn_device_memory(d, TN_MEMORY_DEVICE, s->choice->workspace_bytes, &s->workspace));
  TN_TRY(tn_device_memory(d, TN_MEMORY_DEVICE, s->choice->folded_bytes, &s->folded));
  TN_TRY(tn_device_prepare(d, g->kernel, g->match, s->choice, s->layouts, s->layouts + g->n_in, 0,
                           &s->prepared));
  TN_TRY(tn_device_finish_prepare(d, &use));
  s->host.pub = (tn_launch){.env = d->env,
                            .struct_size = sizeof(tn_launch),
                            .n_in = g->n_in,
                            .n_out = g->n_out,
                            .in = s->views,
                            .out = s->views + g->n_in,
                            .prepared = s->prepared,
                            .workspace = s->workspace,
                            .workspace_bytes = s->choice->workspace_bytes,
                            .stream = d->streams[TN_STREAM_COMPUTE],
                            .name = s->file->name,
                            .folded = s->folded,
                            .folded_bytes = s->choice->folded_bytes};
  s->host.parallel = d->backend->parallel;
  s->host.device = d->device;
  return TN_OK;
}

/* ---- one launch ---- */

static tn_status solo_copy(tn_solo_launch *s, int32_t i, int32_t direction) {
  tn_device *d = s->device;
  solo_value *v = &s->values[i];
  void *data = s->views[i].data;
  if (data == NULL || v->bytes == 0) return TN_OK;
  void *to = direction == TN_COPY_TO_HOST ? v->stored : data,
       *from = direction == TN_COPY_TO_HOST ? data : v->stored;
  if (d->target.properties.host_addressable) return memcpy(to, from, (size_t)v->bytes), TN_OK;
  void *stream = d->streams[TN_STREAM_COMPUTE];
  TN_TRY(d->backend->copy(&d->env, stream, direction, to, from, (uint64_t)v->bytes));
  return tn_device_wait_stream(d, stream);
}

static tn_status solo_send_operands(tn_solo_launch *s) {
  for (int32_t i = 0; i < s->group->n_in; i++) {
    solo_value *v = &s->values[i];
    if (v->stored == NULL) continue;
    memset(v->stored, 0, (size_t)v->bytes); /* padding is zero */
    tn_stored_copy(&s->views[i].type, &s->views[i].layout, v->stored, s->file->in[v->place], true);
    TN_TRY(solo_copy(s, i, TN_COPY_TO_DEVICE));
  }
  return TN_OK;
}

static tn_status solo_enqueue(tn_solo_launch *s) {
  const tn_kernel *k = s->group->kernel;
  bool foreign = tn_device_is_foreign(s->device, k->family);
  if (s->choice->folded_bytes > 0) TN_TRY(tn_device_enqueue(s->device, foreign, k->fold, &s->host.pub));
  return tn_device_enqueue(s->device, foreign, k->launch, &s->host.pub);
}

static tn_status solo_launch(tn_solo_launch *s) {
  tn_pinned pinned;
  TN_TRY(solo_send_operands(s));
  tn_pin_enter(&pinned, s->device);
  tn_status status = solo_enqueue(s);
  tn_pin_leave(&pinned);
  if (status == TN_OK) status = tn_device_wait_stream(s->device, s->device->streams[TN_STREAM_COMPUTE]);
  for (int32_t i = s->group->n_in; status == TN_OK && i < s->group->n_in + s->group->n_out; i++)
    status = solo_copy(s, i, TN_COPY_TO_HOST);
  return status;
}

static tn_status solo_read_result(tn_solo_launch *s, int32_t i) {
  const tn_view *view = &s->views[i];
  void *plain = tn_arena_alloc(&s->memory, tn_type_bytes(&view->type) + 1);
  if (plain == NULL) return TN_ENOMEM;
  tn_stored_copy(&view->type, &view->layout, s->values[i].stored, plain, false);
  s->results[s->values[i].place] = plain;
  return TN_OK;
}

tn_status tn_solo_launch_run(tn_solo_launch *s, const void *const **out) {
  tn_status status = solo_launch(s);
  if (status != TN_OK) {
    tn_error_move(s->env, &s->device->env);
    return status;
  }
  for (int32_t i = s->group->n_in; i < s->group->n_in + s->group->n_out; i++) TN_TRY(solo_read_result(s, i));
  *out = s->results;
  return TN_OK;
}

bool tn_solo_launch_is_deterministic(const tn_solo_launch *s) { return s->choice->deterministic; }

/* ---- life ---- */

tn_status tn_solo_launch_create(tn_env *env, tn_registry *registry, tn_device *device,
                                const tn_launch_file *file, tn_solo_launch **solo) {
  tn_solo_launch *s = tn_alloc(env, sizeof *s);
  *solo = NULL;
  if (s == NULL) return TN_ENOMEM;
  s->env = env;
  s->device = device;
  s->file = file;
  s->memory = tn_arena_new(env);
  tn_status status = solo_find_kernel(s, registry);
  if (status == TN_OK) status = solo_allocate(s);
  if (status == TN_OK && (status = solo_prepare(s)) != TN_OK) tn_error_move(env, &device->env);
  if (status == TN_OK)
    *solo = s;
  else
    tn_solo_launch_destroy(s);
  return status;
}

void tn_solo_launch_destroy(tn_solo_launch *s) {
  if (s == NULL) return;
  tn_device *d = s->device;
  if (s->prepared != NULL && s->group->kernel->release != NULL)
    s->group->kernel->release(&d->env, s->prepared);
  for (int32_t i = 0; s->values != NULL && i < s->group->n_in + s->group->n_out; i++)
    if (!s->values[i].borrowed)
      tn_device_memory_free(d, TN_MEMORY_DEVICE, s->views[i].data, s->values[i].bytes);
  if (s->choice != NULL) {
    tn_device_memory_free(d, TN_MEMORY_DEVICE, s->workspace, s->choice->workspace_bytes);
    tn_device_memory_free(d, TN_MEMORY_DEVICE, s->folded, s->choice->folded_bytes);
  }
  tn_cover_destroy(s->cover);
  tn_arena_free(&s->memory);
  tn_release(s->env, s);
}

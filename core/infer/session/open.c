/* core/infer/session/open.c: opens a session: programs, memory, weights, and fields. Steps allocate nothing.
 */
#include "core/infer/session/session.h"

#include <string.h>

#include "core/records/checkpoints/mapped_weights.h"
#include "core/records/runs/plan_file.h"
#include "core/distributed/ranks/devices.h"

static const int32_t program_of[TN_SESSION_PROGRAMS] = {TN_PROGRAM_STEP, TN_PROGRAM_EVAL, TN_PROGRAM_PREDICT};
static const char sample_weight[] = "sample.weight";

/* ---- fields ---- */

/* The control block is not visible to the application. */
static bool session_is_control_block(const char *name) {
  return tn_text_equal(name, TN_ITERATION_INPUT) || tn_text_equal(name, TN_BLOCK_INPUT) ||
         tn_text_starts(name, "control.");
}

static tn_bound_field *session_add_field(tn_session *s, const tn_binding *binding, int32_t role) {
  for (int32_t i = 0; i < s->n_fields; i++)
    if (s->fields[i].role == role && tn_text_equal(s->fields[i].name, binding->name)) return &s->fields[i];
  tn_bound_field *f = &s->fields[s->n_fields++];
  bool rows = binding->type.rank > 0 && binding->type.dims[0] == s->batch;
  *f = (tn_bound_field){
      .name = binding->name, .role = role, .type = binding->type, .bytes = tn_type_bytes(&binding->type)};
  f->row = rows ? f->bytes / (size_t)s->batch : 0;
  return f;
}

static void session_add_fields(tn_session *s, int32_t which) {
  tn_session_program *one = &s->programs[which];
  const tn_program *p = one->program;
  for (int32_t i = 0; p != NULL && i < p->n_inputs; i++) {
    if (session_is_control_block(p->inputs[i].name)) continue;
    tn_bound_field *f = session_add_field(s, &p->inputs[i], TN_SESSION_INPUT);
    f->address[which] = tn_executor_input(s->executor, one->index, 0, f->name);
    if (!tn_text_equal(f->name, sample_weight)) continue;
    one->sample_weight = (float *)(void *)f->address[which];
    s->weight = f;
  }
  for (int32_t i = 0; p != NULL && i < p->n_outputs; i++) {
    tn_bound_field *f = session_add_field(s, &p->outputs[i], TN_SESSION_OUTPUT);
    f->address[which] = (char *)(uintptr_t)tn_executor_output(s->executor, one->index, 0, p->outputs[i].name);
  }
}

static tn_status session_find_fields(tn_session *s) {
  size_t most = 1;
  for (int32_t i = 0; i < TN_SESSION_PROGRAMS; i++)
    if (s->programs[i].program != NULL)
      most += (size_t)s->programs[i].program->n_inputs + (size_t)s->programs[i].program->n_outputs;
  s->fields = tn_arena_alloc(&s->arena, tn_size_mul(most, sizeof *s->fields));
  if (s->fields == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < TN_SESSION_PROGRAMS; i++) session_add_fields(s, i);
  return TN_OK;
}

/* ---- programs ---- */

/* A session trains with one batch per step on one device. */
static tn_status session_check_settings(const tn_session *s, const tn_session_options *o) {
  const tn_settings *settings = &s->run->settings;
  if (o->batch < 0 || o->steps < 0 || o->steps_per_epoch < 0)
    return tn_failf(s->run, TN_EINVAL,
                    "tn_session_options: batch, steps and steps_per_epoch must be 0 or more");
  if (!o->train) return TN_OK;
  if (settings->optimizer.accumulate > 1)
    return tn_failf(
        s->run, TN_EINVAL,
        "[optimizer] accumulate = %lld: a session updates after each batch; open it with a larger one",
        (long long)settings->optimizer.accumulate);
  if (settings->optimizer.swa_from > 0)
    return tn_failf(
        s->run, TN_EINVAL,
        "[optimizer] swa_from = %lld: a session has no epochs whose ends could be averaged; ema works "
        "in sessions, too",
        (long long)settings->optimizer.swa_from);
  if (settings->n_turns > 0)
    return tn_failf(s->run, TN_EINVAL,
                    "%s: [phase %s]: a session trains with one loss and one optimizer; tn_run_train takes "
                    "phases",
                    settings->turns[0].where, settings->turns[0].name);
  for (int32_t i = 0; i < settings->n_groups; i++)
    if (settings->groups[i].until > 0)
      return tn_failf(
          s->run, TN_EINVAL,
          "%s: [group.%s] freeze = %s: a session has no epochs in which a group could thaw; yes and "
          "no work in sessions, too",
          settings->groups[i].where, settings->groups[i].name, settings->groups[i].freeze);
  if (!tn_text_equal(settings->distributed.devices, "1"))
    return tn_failf(s->run, TN_EINVAL,
                    "[distributed] devices = %s: a session trains on one device; tn_run_train uses several",
                    settings->distributed.devices);
  return TN_OK;
}

static void session_read_options(tn_session *s, const tn_session_options *o) {
  const tn_settings *settings = &s->run->settings;
  const tn_data_setting *data = &settings->data[o->train ? TN_SPLIT_TRAIN : TN_SPLIT_VALID];
  s->batch = o->batch > 0 ? o->batch : (o->train || o->eval) && data->given ? data->section.batch : 1;
  s->steps = o->steps > 0 ? o->steps : settings->run.max_steps > 0 ? settings->run.max_steps : INT64_MAX;
  s->steps_per_epoch = o->steps_per_epoch > 0 ? o->steps_per_epoch : s->steps;
}

static tn_status session_build_programs(tn_session *s, const tn_session_options *o,
                                        const bool wanted[TN_SESSION_PROGRAMS]) {
  tn_program_request request = {{0}};
  for (int32_t i = 0; i < TN_SESSION_PROGRAMS; i++)
    if (wanted[i]) request.batch[program_of[i]] = s->batch;
  TN_TRY(tn_run_open_device(s->run, &s->device));
  if (wanted[TN_SESSION_TRAIN]) TN_TRY(tn_plan_file_read(s->run, s->device, &request.choices));
  if (!wanted[TN_SESSION_TRAIN])
    TN_TRY(o->weights != NULL ? tn_mapped_weights_open(s->run, s->device, o->weights, "", "", &s->mapped)
                              : tn_mapped_weights_open_configured(s->run, s->device, &s->mapped));
  request.mapped = tn_mapped_weights_states(s->mapped);
  s->built = true;
  request.slots = 1;
  request.model_outputs = true;
  return tn_programs_open(s->run, &s->env, s->device, &request, &s->set, &s->executor);
}

static tn_status session_bind_programs(tn_session *s) {
  tn_arena *arena = &s->set.arena;
  for (int32_t i = 0; i < TN_SESSION_PROGRAMS; i++) {
    tn_session_program *one = &s->programs[i];
    one->program = s->set.programs[program_of[i]];
    one->index = s->set.index[program_of[i]];
    if (one->program == NULL) continue;
    TN_TRY(tn_control_block_bind(arena, s->executor, one->index, 1, &s->set.update, &one->control_block));
    if (i != TN_SESSION_INFER)
      TN_TRY(tn_measure_outputs_bind(arena, s->executor, one->index, 1, &s->set, &one->outputs));
  }
  TN_TRY(tn_metric_sums_init(arena, &s->set, &s->sums));
  return session_find_fields(s);
}

static tn_status session_prepare(tn_session *s, const tn_session_options *o) {
  bool wanted[TN_SESSION_PROGRAMS] = {o->train, o->eval, o->infer || (!o->train && !o->eval)};
  TN_TRY(session_check_settings(s, o));
  session_read_options(s, o);
  TN_TRY(session_build_programs(s, o, wanted));
  TN_TRY(session_bind_programs(s));
  TN_TRY(tn_executor_run(s->executor, s->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(s->executor, 0));
  TN_TRY(tn_session_start_weights(
      s, o->weights == NULL && o->train && *s->run->settings.weights.file == '\0' ? "" : o->weights));
  return tn_session_follow_weights(s);
}

/* ---- life ---- */

tn_status tn_session_open(tn_run *run, const tn_session_options *given, tn_session **out) {
  tn_session_options options;
  TN_ENTER(run);
  TN_NEED(run, out, "session");
  *out = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_session_options, train, given, &options));
  tn_session *s = tn_alloc(run, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  tn_error_record_init(&s->env, &s->record, &run->env);
  s->run = run;
  s->arena = tn_arena_new(&s->env);
  tn_status status = session_prepare(s, &options);
  if (status == TN_OK) {
    *out = s;
    return TN_OK;
  }
  if (*tn_error_text(s) != '\0') tn_error_move(run, s);
  tn_session_close(s);
  return status;
}

void tn_session_close(tn_session *s) {
  if (s == NULL) return;
  TN_THREAD_STATE;
  tn_run *run = s->run;
  tn_executor_destroy(s->executor);
  if (s->built) tn_programs_free(run, &s->set);
  tn_mapped_weights_close(s->mapped);
  tn_device_destroy(s->device);
  tn_arena_free(&s->arena);
  tn_release(run, s);
}

/* ---- fields for the application ---- */

tn_status tn_session_describe(tn_session *s, int32_t index, tn_session_field *field) {
  TN_ENTER(s);
  TN_NEED(s, field, "field");
  uint32_t room = field->struct_size;
  if (room < offsetof(tn_session_field, role))
    return tn_failf(s, TN_EINVAL, "tn_session_field.struct_size is %u; set it to sizeof(tn_session_field)",
                    room);
  if (index < 0 || index >= s->n_fields) return TN_EOF;
  const tn_bound_field *f = &s->fields[index];
  tn_session_field all = {.struct_size = room, .role = f->role, .name = f->name, .type = f->type};
  memcpy(field, &all, room < sizeof all ? room : sizeof all);
  return TN_OK;
}

static tn_status session_fail_unknown_field(tn_session *s, const char *name) {
  const char *nearest = NULL;
  const char **names = tn_alloc(s, tn_size_mul((size_t)s->n_fields + 1, sizeof *names));
  if (names == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < s->n_fields; i++) names[i] = s->fields[i].name;
  nearest = tn_text_nearest(name, names, (size_t)s->n_fields);
  tn_release(s, names);
  return tn_failf(s, TN_EINVAL, "the session has no field '%s'%s%s%s", name,
                  nearest != NULL ? ", did you mean '" : "; tn_session_describe lists them",
                  nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

static tn_bound_field *session_find_field(tn_session *s, const char *name) {
  for (int32_t i = 0; i < s->n_fields; i++)
    if (tn_text_equal(s->fields[i].name, name)) return &s->fields[i];
  return NULL;
}

/* "output" stands for the first output of a model whose outputs have other names. */
static tn_bound_field *session_find_output(tn_session *s, const char *name) {
  const tn_binding *first = NULL;
  if (!tn_text_equal(name, "output")) return NULL;
  for (int32_t i = TN_SESSION_PROGRAMS; i-- > 0 && first == NULL;)
    if (s->programs[i].program != NULL) first = tn_program_main_output(s->programs[i].program);
  return first != NULL ? session_find_field(s, first->name) : NULL;
}

tn_status tn_session_bind(tn_session *s, const char *name, void *data, size_t bytes) {
  char type[TN_TYPE_TEXT];
  TN_ENTER(s);
  TN_NEED(s, name, "field");
  tn_bound_field *f = session_find_field(s, name);
  if (f == NULL) f = session_find_output(s, name);
  if (f == NULL) return session_fail_unknown_field(s, name);
  if (data != NULL && bytes != f->bytes)
    return tn_failf(s, TN_EINVAL, "'%s': a buffer of %zu bytes, expected %zu for %s", name, bytes, f->bytes,
                    tn_type_format(&f->type, type));
  f->bound = data;
  return TN_OK;
}

/* core/train/checkpoints/weights.c: reads state from safetensors and writes it, by path. */
#include "core/train/checkpoints/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/formats/safetensors.h"
#include "core/train/checkpoints/class_names.h"

static bool weights_has_kind(const tn_placement *state, uint32_t kinds) {
  return (kinds & (1u << state->what)) != 0 && state->path[0] != '@';
}

/* Parameters, buffers and optimizer state must be finite, in files and in checkpoints. State of the host may
 * have any value. */
static tn_status weights_check_finite(tn_run *run, const tn_placement *state, const void *data) {
  bool matters = state->what != TN_STATE_HOST && state->type.dtype == TN_F32;
  int64_t n = matters ? tn_type_count(&state->type) : 0;
  for (int64_t i = 0; i < n; i++) {
    float value = ((const float *)data)[i];
    if (!isfinite(value))
      return tn_failf(&run->env, TN_ENONFINITE, "element %lld of '%s' is %g", (long long)i, state->path,
                      (double)value);
  }
  return TN_OK;
}

/* ---- reading ---- */

typedef struct tn_weights_reader {
  tn_run *run;
  tn_executor *executor;
  const tn_safetensors *file;
  const char *path, *prefix, *advice;
  tn_words ignore;
} tn_weights_reader;

static bool weights_ignores(const tn_weights_reader *w, const char *name) {
  static const char *const counters[] = {"*.num_batches_tracked"};
  const tn_words always = {(const char **)(uintptr_t)counters, 1};
  return tn_words_match(&w->ignore, name) || tn_words_match(&always, name);
}

static void weights_print_dims(tn_text *text, const tn_type *type) {
  for (int32_t i = 0; i < type->rank; i++)
    tn_text_addf(text, "%s%lld", i ? ", " : "", (long long)type->dims[i]);
  tn_text_add(text, "]");
}

/* The tensor has another type than the state: an error, or with `ignore` a message. */
static tn_status weights_skip_type(tn_weights_reader *w, const tn_placement *state,
                                   const tn_safetensor *tensor) {
  tn_env *env = &w->run->env;
  tn_text types = tn_text_new(env);
  tn_status status = TN_OK;
  tn_text_addf(&types, "%s[", tensor->stored);
  weights_print_dims(&types, &tensor->type);
  tn_text_addf(&types, ", the model's %s[", tn_dtype_name(state->type.dtype));
  weights_print_dims(&types, &state->type);
  if (weights_ignores(w, state->path))
    tn_logf(env, TN_LOG_INFO, "%s: '%s' is %s: the model keeps its own", w->path, tensor->name,
            types.v ? types.v : "");
  else
    status = tn_failf(env, TN_EINVAL, "%s: '%s' is %s; %s", w->path, tensor->name, types.v ? types.v : "",
                      w->advice);
  tn_text_free(&types);
  return status;
}

static tn_status weights_read_state(tn_weights_reader *w, const tn_placement *state,
                                    const tn_safetensor *tensor) {
  tn_env *env = &w->run->env;
  if (!tn_type_equal(&tensor->type, &state->type)) return weights_skip_type(w, state, tensor);
  size_t bytes = tn_type_bytes(&state->type);
  void *data = tn_alloc(env, bytes ? bytes : 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_safetensors_read(w->file, env, tensor, data, bytes);
  if (status == TN_OK) status = tn_wrap(env, weights_check_finite(w->run, state, data), "%s", w->path);
  if (status == TN_OK) status = tn_executor_write(w->executor, state->path, data, bytes);
  tn_release(env, data);
  return status;
}

static tn_status weights_read_named(tn_weights_reader *w, const tn_placement *state) {
  tn_env *env = &w->run->env;
  tn_text name = tn_text_new(env);
  tn_text_addf(&name, "%s%s", w->prefix, state->path);
  const tn_safetensor *tensor = name.v ? tn_safetensors_find(w->file, name.v) : NULL;
  tn_status status = name.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK && tensor)
    status = weights_read_state(w, state, tensor);
  else if (status == TN_OK && !weights_ignores(w, state->path))
    status = tn_failf(env, TN_EINVAL, "%s: has no '%s', which the model has; %s", w->path, name.v, w->advice);
  tn_text_free(&name);
  return status;
}

/* Every name of the file must be a state of the model or match `ignore`. */
static tn_status weights_check_unread(tn_weights_reader *w, const tn_state_map *map, uint32_t kinds) {
  size_t skip = strlen(w->prefix);
  for (int32_t i = 0; i < tn_safetensors_count(w->file); i++) {
    const char *name = tn_safetensors_at(w->file, i)->name;
    if (!tn_text_starts(name, w->prefix) || weights_ignores(w, name + skip)) continue;
    const tn_placement *state = tn_state_map_find(map, name + skip);
    if (state == NULL || !weights_has_kind(state, kinds))
      return tn_failf(&w->run->env, TN_EINVAL, "%s: has '%s', which the model does not have; %s", w->path,
                      name, w->advice);
  }
  return TN_OK;
}

tn_status tn_weights_load(tn_run *run, tn_executor *executor, const tn_state_map *map,
                          const tn_weights_source *source) {
  tn_safetensors *file = NULL;
  tn_words ignore;
  TN_TRY(tn_words_split(&run->arena, source->ignore, &ignore));
  TN_TRY(tn_safetensors_open(&run->env, source->path, &file));
  tn_weights_reader w = {run, executor, file, source->path, source->prefix, source->advice, ignore};
  tn_class_names_of_weights(run, file);
  tn_status status = weights_check_unread(&w, map, source->kinds);
  for (size_t i = 0; status == TN_OK && i < map->states.n; i++)
    if (weights_has_kind(&map->states.v[i], source->kinds))
      status = weights_read_named(&w, &map->states.v[i]);
  tn_safetensors_close(file);
  return status;
}

/* ---- writing ---- */

static int weights_compare_paths(const void *x, const void *y) {
  const tn_placement *const *a = x, *const *b = y;
  return strcmp((*a)->path, (*b)->path);
}

static tn_status weights_append_state(tn_run *run, tn_executor *executor, const tn_placement *state,
                                      tn_safetensors_writer *writer) {
  size_t bytes = tn_type_bytes(&state->type);
  void *data = tn_alloc(&run->env, bytes ? bytes : 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_executor_read(executor, state->path, data, bytes);
  if (status == TN_OK) status = weights_check_finite(run, state, data);
  if (status == TN_OK) status = tn_safetensors_append(writer, data, bytes);
  tn_release(&run->env, data);
  return status;
}

static tn_status weights_write_states(tn_run *run, tn_executor *executor, const tn_placement *const *states,
                                      int32_t n, const char *path, tn_file_sum *sum) {
  const tn_safetensor_note notes[] = {{"format", "tenon"}, {TN_CLASS_NAMES_NOTE, run->class_names}};
  tn_safetensors_writer *writer = NULL;
  tn_safetensor_named *named = tn_alloc(&run->env, tn_size_mul((size_t)n + 1, sizeof *named));
  if (named == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) named[i] = (tn_safetensor_named){states[i]->path, states[i]->type};
  tn_status status =
      tn_safetensors_begin(&run->env, path, named, n, notes, run->class_names != NULL ? 2 : 1, &writer);
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = weights_append_state(run, executor, states[i], writer);
  if (status == TN_OK) tn_safetensors_sum(writer, &sum->bytes, &sum->crc);
  if (status == TN_OK)
    status = tn_safetensors_commit(writer);
  else
    tn_safetensors_abandon(writer);
  tn_release(&run->env, named);
  return status;
}

tn_status tn_weights_save(tn_run *run, tn_executor *executor, const tn_state_map *map, uint32_t kinds,
                          const char *path, tn_file_sum *sum) {
  const tn_placement **states = tn_alloc(&run->env, tn_size_mul(map->states.n + 1, sizeof *states));
  int32_t n = 0;
  if (states == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < map->states.n; i++)
    if (weights_has_kind(&map->states.v[i], kinds)) states[n++] = &map->states.v[i];
  qsort(states, (size_t)n, sizeof *states, weights_compare_paths);
  tn_status status = weights_write_states(run, executor, states, n, path, sum);
  tn_release(&run->env, states);
  return status;
}

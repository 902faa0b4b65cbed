/* core/records/checkpoints/weights.c: reads state from safetensors and writes it, by path. */
#include "core/records/checkpoints/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/formats/safetensors.h"
#include "core/records/checkpoints/checkpoint_files.h"
#include "core/records/checkpoints/class_names.h"
#include "core/records/checkpoints/learnt.h"
#include "core/records/checkpoints/stored_states.h"
#include "core/records/checkpoints/target_units.h"
#include "core/records/checkpoints/weights_names.h"

/* Parameters, buffers and optimizer state must be finite, in files and in checkpoints. State of the host may
 * have any value. */
static tn_status weights_check_finite(tn_run *run, const tn_stored_state *stored, const void *data) {
  const tn_placement *state = stored->state;
  bool matters = state->what != TN_STATE_HOST && state->type.dtype == TN_F32;
  int64_t n = matters ? tn_type_count(&state->type) : 0;
  for (int64_t i = 0; i < n; i++) {
    float value = ((const float *)data)[i];
    if (!isfinite(value))
      return tn_failf(&run->env, TN_ENONFINITE, "element %lld of '%s' is %g", (long long)i, stored->name,
                      (double)value);
  }
  return TN_OK;
}

/* ---- what a file lacks and has too much ---- */

enum { LISTED = 6 }; /* names of a kind that a message lists */

typedef struct tn_weights_reader {
  tn_run *run;
  tn_executor *executor;
  tn_safetensors *file;
  const tn_weights_source *source;
  tn_weights_names names;
  tn_stored_states states; /* that are asked for */
  tn_words skip, transpose;
  tn_weights_counts counts;
  tn_text missing, unexpected, other; /* names, with commas */
  int32_t n_missing, n_unexpected, n_other;
} tn_weights_reader;

static bool weights_skips(const tn_weights_reader *w, const char *name) {
  static const char *const counters[] = {"*.num_batches_tracked"};
  const tn_words always = {(const char **)(uintptr_t)counters, 1};
  return tn_words_match(&w->skip, name) || tn_words_match(&always, name);
}

static void weights_print_dims(tn_text *text, const tn_type *type) {
  for (int32_t i = 0; i < type->rank; i++)
    tn_text_addf(text, "%s%lld", i ? ", " : "", (long long)type->dims[i]);
  tn_text_add(text, "]");
}

/* Whether to list one more name. */
static bool weights_list_name(tn_text *text, int32_t *n, const char *prefix, const char *name) {
  if (++*n > LISTED) return false;
  tn_text_addf(text, "%s'%s%s'", *n > 1 ? ", " : "", prefix, name);
  return true;
}

static void weights_list_type(tn_weights_reader *w, const tn_placement *state, const tn_safetensor *tensor) {
  if (!weights_list_name(&w->other, &w->n_other, "", tensor->name)) return;
  tn_text_addf(&w->other, " is %s[", tensor->stored);
  weights_print_dims(&w->other, &tensor->type);
  tn_text_addf(&w->other, ", the model's %s[", tn_dtype_name(state->type.dtype));
  weights_print_dims(&w->other, &state->type);
}

static void weights_add_list(tn_text *text, const char *before, const tn_text *names, int32_t n,
                             const char *after) {
  if (n == 0) return;
  tn_text_addf(text, "%s%s", before, names->v != NULL ? names->v : "");
  if (n > LISTED) tn_text_addf(text, " and %d more", (int)(n - LISTED));
  tn_text_addf(text, "%s; ", after);
}

/* One error with everything that does not fit. */
static tn_status weights_check_fit(tn_weights_reader *w) {
  if (w->n_missing + w->n_unexpected + w->n_other == 0) return TN_OK;
  tn_text text = tn_text_new(&w->run->env);
  weights_add_list(&text, "", &w->other, w->n_other, "");
  weights_add_list(&text, "has ", &w->unexpected, w->n_unexpected, ", which the model does not have");
  weights_add_list(&text, "has no ", &w->missing, w->n_missing, ", which the model has");
  tn_status status = tn_failf(&w->run->env, TN_EINVAL, "%s: %s%s", w->source->path,
                              text.v != NULL ? text.v : "", w->source->advice);
  tn_text_free(&text);
  return status;
}

/* ---- reading ---- */

static bool weights_is_transposed(const tn_weights_reader *w, const tn_placement *state,
                                  const tn_safetensor *tensor) {
  const tn_type *a = &state->type, *b = &tensor->type;
  return tn_words_match(&w->transpose, state->path) && a->dtype == b->dtype && a->rank == 2 && b->rank == 2 &&
         a->dims[0] == b->dims[1] && a->dims[1] == b->dims[0];
}

/* Sorts the states into those that are read, skipped, missing or of another type. */
static bool weights_wants(tn_weights_reader *w, const tn_stored_state *stored) {
  const tn_placement *state = stored->state;
  const tn_safetensor *tensor = tn_weights_names_find(&w->names, stored->name);
  bool fits = tensor != NULL &&
              (tn_words_match(&w->transpose, stored->name) ? weights_is_transposed(w, state, tensor)
                                                           : tn_type_equal(&tensor->type, &state->type));
  bool skipped = !fits && weights_skips(w, stored->name);
  w->counts.read += fits;
  w->counts.skipped += skipped;
  if (fits || skipped) return fits;
  if (tensor != NULL)
    weights_list_type(w, state, tensor);
  else
    weights_list_name(&w->missing, &w->n_missing, w->source->prefix, stored->name);
  return false;
}

/* Every name of the file must be a state of the model or match `skip`. */
static void weights_check_unread(tn_weights_reader *w) {
  for (int32_t i = 0; i < w->names.n; i++) {
    const char *name = w->names.v[i].name;
    if (!tn_stored_states_have(&w->states, name) && !weights_skips(w, name))
      weights_list_name(&w->unexpected, &w->n_unexpected, "", w->names.v[i].tensor->name);
  }
}

/* (rows, columns) of `from` as (columns, rows). */
static void weights_transpose(const tn_type *to_type, const char *from, char *to) {
  size_t rows = (size_t)to_type->dims[1], columns = (size_t)to_type->dims[0];
  size_t bytes = tn_dtype_size(to_type->dtype);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++)
      memcpy(to + (c * rows + r) * bytes, from + (r * columns + c) * bytes, bytes);
}

static tn_status weights_read_data(tn_weights_reader *w, const tn_stored_state *stored, char *data) {
  const tn_placement *state = stored->state;
  const tn_safetensor *tensor = tn_weights_names_find(&w->names, stored->name);
  size_t bytes = tn_type_bytes(&state->type);
  if (!tn_words_match(&w->transpose, stored->name))
    return tn_safetensors_read(w->file, &w->run->env, tensor, data, bytes);
  char *untransposed = tn_alloc(&w->run->env, bytes + 1);
  if (untransposed == NULL) return TN_ENOMEM;
  tn_status status = tn_safetensors_read(w->file, &w->run->env, tensor, untransposed, bytes);
  if (status == TN_OK) weights_transpose(&state->type, untransposed, data);
  tn_release(&w->run->env, untransposed);
  return status;
}

static tn_status weights_read_state(tn_weights_reader *w, const tn_stored_state *stored) {
  const tn_placement *state = stored->state;
  tn_env *env = &w->run->env;
  TN_TRY(tn_check_stop(env));
  size_t bytes = tn_type_bytes(&state->type);
  char *data = tn_alloc(env, bytes + 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = weights_read_data(w, stored, data);
  if (status == TN_OK)
    status = tn_wrap(env, weights_check_finite(w->run, stored, data), "%s", w->source->path);
  if (status == TN_OK) status = tn_executor_write(w->executor, state->path, data, bytes);
  tn_release(env, data);
  return status;
}

/* Nothing is written to the device before all names are known to fit. */
static tn_status weights_read_file(tn_weights_reader *w, const tn_state_map *map) {
  const tn_weights_source *s = w->source;
  tn_run *run = w->run;
  size_t n = 0;
  const tn_stored_state **wanted =
      tn_arena_alloc(&run->arena, tn_size_mul(map->states.n + 1, sizeof *wanted));
  if (wanted == NULL) return TN_ENOMEM;
  TN_TRY(tn_weights_names_make(&run->env, &run->arena, w->file, s->path, s->prefix, s->rename, &w->names));
  TN_TRY(tn_stored_states_list(&run->arena, map, s->kinds, s->averages, &w->states));
  for (int32_t i = 0; i < w->states.n; i++)
    if (weights_wants(w, &w->states.v[i])) wanted[n++] = &w->states.v[i];
  weights_check_unread(w);
  TN_TRY(weights_check_fit(w));
  for (size_t i = 0; i < n; i++) TN_TRY(weights_read_state(w, wanted[i]));
  return TN_OK;
}

/* The file is summed while it is in the cache, and compared at the end: a second pass over it would take
 * about a quarter of the time of loading. */
static tn_status weights_read_compared(tn_weights_reader *w, const tn_state_map *map) {
  tn_env *env = &w->run->env;
  const char *path = w->source->path;
  tn_file_sum recorded;
  uint64_t bytes;
  uint32_t crc;
  bool compare;
  if (w->source->keep) {
    TN_TRY(tn_checkpoint_file_check(env, path));
    return weights_read_file(w, map);
  }
  TN_TRY(tn_checkpoint_file_sum(env, path, &recorded, &compare));
  if (compare) TN_TRY(tn_safetensors_sum_reads(w->file, env));
  TN_TRY(weights_read_file(w, map));
  if (!compare) return TN_OK;
  TN_TRY(tn_safetensors_sum_rest(w->file, env, &bytes, &crc));
  return tn_file_sum_compare(env, path, &recorded, bytes, crc);
}

tn_status tn_weights_load(tn_run *run, tn_executor *executor, const tn_state_map *map,
                          const tn_weights_source *source, tn_weights_counts *counts) {
  tn_safetensors *file = NULL;
  tn_words skip, transpose;
  TN_TRY(tn_words_split(&run->arena, source->skip, &skip));
  TN_TRY(tn_words_split(&run->arena, source->transpose, &transpose));
  TN_TRY(tn_safetensors_open(&run->env, source->path, &file));
  tn_weights_reader w = {.run = run,
                         .executor = executor,
                         .file = file,
                         .source = source,
                         .skip = skip,
                         .transpose = transpose,
                         .missing = tn_text_new(&run->env),
                         .unexpected = tn_text_new(&run->env),
                         .other = tn_text_new(&run->env)};
  tn_status status = weights_read_compared(&w, map);
  if (status == TN_OK) tn_class_names_of_weights(run, file);
  if (status == TN_OK) status = tn_learnt_of_weights(run, file, source->path);
  if (status == TN_OK) status = tn_target_units_of_weights(run, file);
  if (counts != NULL) *counts = w.counts;
  tn_text_free(&w.missing);
  tn_text_free(&w.unexpected);
  tn_text_free(&w.other);
  tn_safetensors_close(file);
  return status;
}

/* ---- writing ---- */

static tn_status weights_append_state(tn_run *run, tn_executor *executor, const tn_stored_state *stored,
                                      tn_safetensors_writer *writer) {
  const tn_placement *state = stored->state;
  size_t bytes = tn_type_bytes(&state->type);
  void *data = tn_alloc(&run->env, bytes ? bytes : 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_executor_read(executor, state->path, data, bytes);
  if (status == TN_OK) status = weights_check_finite(run, stored, data);
  if (status == TN_OK) status = tn_safetensors_append(writer, data, bytes);
  tn_release(&run->env, data);
  return status;
}

enum { MOST_NOTES = 4 };

/* The notes of a file; returns how many there are. */
static int32_t weights_list_notes(const tn_run *run, tn_safetensor_note notes[MOST_NOTES]) {
  int32_t n = 0;
  notes[n++] = (tn_safetensor_note){"format", "tenon"};
  if (run->class_names != NULL) notes[n++] = (tn_safetensor_note){TN_CLASS_NAMES_NOTE, run->class_names};
  if (run->target_units != NULL) notes[n++] = (tn_safetensor_note){TN_TARGET_UNITS_NOTE, run->target_units};
  if (run->learnt != NULL) notes[n++] = (tn_safetensor_note){TN_LEARNT_NOTE, run->learnt};
  return n;
}

static tn_status weights_write_states(tn_run *run, tn_executor *executor, const tn_stored_states *states,
                                      const char *path, tn_file_sum *sum) {
  int32_t n = states->n;
  tn_safetensor_note notes[MOST_NOTES];
  int32_t n_notes = weights_list_notes(run, notes);
  tn_safetensors_writer *writer = NULL;
  tn_safetensor_named *named = tn_alloc(&run->env, tn_size_mul((size_t)n + 1, sizeof *named));
  if (named == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    named[i] = (tn_safetensor_named){states->by_name[i].name, states->by_name[i].state->type};
  tn_status status = tn_safetensors_begin(&run->env, path, named, n, notes, n_notes, &writer);
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = weights_append_state(run, executor, &states->by_name[i], writer);
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
  tn_arena arena = tn_arena_new(&run->env);
  tn_stored_states states;
  tn_status status = tn_stored_states_list(&arena, map, kinds, true, &states);
  if (status == TN_OK) status = weights_write_states(run, executor, &states, path, sum);
  tn_arena_free(&arena);
  return status;
}

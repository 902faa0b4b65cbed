/* core/records/checkpoints/weights.c: reads state from safetensors, by path. */
#include "core/records/checkpoints/weights.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/element.h"
#include "core/formats/safetensors.h"
#include "core/records/checkpoints/adapter_begin.h"
#include "core/records/checkpoints/adapter_merge.h"
#include "core/records/checkpoints/checkpoint_files.h"
#include "core/records/learnt/class_names.h"
#include "core/records/learnt/learnt.h"
#include "core/records/checkpoints/stored_states.h"
#include "core/records/learnt/target_units.h"
#include "core/records/checkpoints/weights_names.h"

/* ---- what a file lacks and has too much ---- */

enum { LISTED = 6 }; /* names of a kind that a message lists */

typedef struct tn_weights_reader {
  tn_run *run;
  tn_executor *executor;
  tn_safetensors *file;
  const tn_weights_source *source;
  const tn_adapter_note *note;
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
  bool floats = tn_dtype_is_float(a->dtype) && tn_dtype_is_float(b->dtype);
  return tn_words_match(&w->transpose, state->path) && (floats || a->dtype == b->dtype) && a->rank == 2 &&
         b->rank == 2 && a->dims[0] == b->dims[1] && a->dims[1] == b->dims[0];
}

/* Floats of another width are converted. */
static bool weights_is_same_type(const tn_placement *state, const tn_safetensor *tensor) {
  bool floats = tn_dtype_is_float(state->type.dtype) && tn_dtype_is_float(tensor->type.dtype);
  return (floats || state->type.dtype == tensor->type.dtype) &&
         tn_type_same_dims(&tensor->type, &state->type);
}

/* States that the file need not have: of a base those of adapters, and of adapters those of the base; ranges
 * of [quantize], where the file is of a training without it. */
static bool weights_may_miss(const tn_weights_reader *w, const tn_stored_state *stored) {
  const tn_settings *s = &w->run->settings;
  if (!(w->source->kinds & TN_STATES_OF_MODEL)) return false;
  if (s->quantize.given && tn_quantize_layer(stored->name) > 0) return true;
  if (s->adapters.n == 0) return false;
  return w->note->adapters ? tn_frozen_until(&s->freeze, stored->name) == TN_FROZEN_FOREVER
                           : tn_adapter_owns(stored->name);
}

/* Sorts the states into those that are read, skipped, missing or of another type. */
static bool weights_wants(tn_weights_reader *w, const tn_stored_state *stored) {
  const tn_placement *state = stored->state;
  const tn_safetensor *tensor = tn_weights_names_find(&w->names, stored->name);
  bool fits =
      tensor != NULL && (tn_words_match(&w->transpose, stored->name) ? weights_is_transposed(w, state, tensor)
                                                                     : weights_is_same_type(state, tensor));
  if (tensor == NULL && weights_may_miss(w, stored)) return false;
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
    if (w->note->adapters && tn_adapter_owns(name)) continue; /* merged, where the model has no adapters */
    bool idle =
        tn_text_ends(name, TN_LOG_VARIANCE); /* a learned weight of a loss, which training alone has */
    if (!idle && !tn_stored_states_have(&w->states, name) && !weights_skips(w, name))
      weights_list_name(&w->unexpected, &w->n_unexpected, "", w->names.v[i].tensor->name);
  }
}

/* Reads the tensor with elements of `dtype`. */
static tn_status weights_read_elements(tn_weights_reader *w, const tn_safetensor *tensor, int32_t dtype,
                                       char *data, size_t bytes) {
  tn_env *env = &w->run->env;
  if (tensor->type.dtype == dtype) return tn_safetensors_read(w->file, env, tensor, data, bytes);
  char *stored = tn_alloc(env, (size_t)tensor->bytes + 1);
  if (stored == NULL) return TN_ENOMEM;
  tn_status status = tn_safetensors_read(w->file, env, tensor, stored, (size_t)tensor->bytes);
  int64_t n = status == TN_OK ? tn_type_count(&tensor->type) : 0;
  for (int64_t i = 0; i < n; i++)
    tn_element_store(dtype, data, i, tn_element_load(tensor->type.dtype, stored, i));
  tn_release(env, stored);
  return status;
}

static tn_status weights_read_data(tn_weights_reader *w, const tn_stored_state *stored, char *data) {
  const tn_placement *state = stored->state;
  const tn_safetensor *tensor = tn_weights_names_find(&w->names, stored->name);
  size_t bytes = tn_type_bytes(&state->type);
  if (!tn_words_match(&w->transpose, stored->name))
    return weights_read_elements(w, tensor, state->type.dtype, data, bytes);
  char *untransposed = tn_alloc(&w->run->env, bytes + 1);
  if (untransposed == NULL) return TN_ENOMEM;
  tn_status status = weights_read_elements(w, tensor, state->type.dtype, untransposed, bytes);
  if (status == TN_OK)
    tn_elements_transpose(tn_dtype_size(state->type.dtype), state->type.dims[1], state->type.dims[0],
                          untransposed, data);
  tn_release(&w->run->env, untransposed);
  return status;
}

/* Its memory is the file (mapped_weights.h). The weights of a model in use are written into its memory. */
static bool weights_is_mapped(const tn_weights_reader *w, const tn_state_map *map,
                              const tn_placement *state) {
  const tn_region *region = &map->regions.v[state->region];
  return region->mapped != NULL && !w->source->keep && tn_text_equal(region->file, w->source->path);
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
    status = tn_wrap(env, tn_stored_state_check_finite(&w->run->env, stored, data), "%s", w->source->path);
  if (status == TN_OK) status = tn_executor_write(w->executor, state->path, data, bytes);
  tn_release(env, data);
  return status;
}

/* ---- adapters ---- */

static tn_status weights_merge_adapter(tn_weights_reader *w, const tn_state_map *map,
                                       const tn_stored_adapter *adapter) {
  tn_env *env = &w->run->env;
  const char *path = tn_arena_printf(&w->run->arena, "%s.weight", adapter->layer);
  const tn_placement *state = path != NULL ? tn_state_map_find(map, path) : NULL;
  if (path == NULL) return TN_ENOMEM;
  if (state == NULL || state->type.dtype != TN_F32)
    return tn_failf(env, TN_EINVAL, "%s: has an adapter of '%s', but the model has no f32 parameter '%s'",
                    w->source->path, adapter->layer, path);
  size_t bytes = tn_type_bytes(&state->type);
  float *weight = tn_alloc(env, bytes + 1);
  tn_status status = weight != NULL ? tn_executor_read(w->executor, path, weight, bytes) : TN_ENOMEM;
  if (status == TN_OK)
    status = tn_stored_adapter_merge(env, w->file, w->source->path, adapter, &state->type, weight);
  if (status == TN_OK) status = tn_executor_write(w->executor, path, weight, bytes);
  tn_release(env, weight);
  return status;
}

/* A model that is not trained has no adapters: they become part of its weights. */
static tn_status weights_merge_adapters(tn_weights_reader *w, const tn_state_map *map) {
  tn_run *run = w->run;
  tn_stored_adapters list;
  TN_TRY(tn_stored_adapters_list(&run->arena, &w->names, w->source->path, w->note, &run->settings.adapters,
                                 &list));
  for (int32_t i = 0; i < list.n; i++) TN_TRY(weights_merge_adapter(w, map, &list.v[i]));
  return TN_OK;
}

/* ---- a file ---- */

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
  for (size_t i = 0; i < n; i++)
    if (!weights_is_mapped(w, map, wanted[i]->state)) TN_TRY(weights_read_state(w, wanted[i]));
  return w->note->adapters && !tn_adapters_are_trained(map) ? weights_merge_adapters(w, map) : TN_OK;
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

static tn_status weights_read_open_file(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                        const tn_weights_source *source, tn_safetensors *file,
                                        const tn_adapter_note *note, tn_weights_counts *counts) {
  tn_words skip, transpose;
  TN_TRY(tn_words_split(&run->arena, source->skip, &skip));
  TN_TRY(tn_words_split(&run->arena, source->transpose, &transpose));
  tn_weights_reader w = {.run = run,
                         .executor = executor,
                         .file = file,
                         .source = source,
                         .note = note,
                         .skip = skip,
                         .transpose = transpose,
                         .missing = tn_text_new(&run->env),
                         .unexpected = tn_text_new(&run->env),
                         .other = tn_text_new(&run->env)};
  tn_status status = weights_read_compared(&w, map);
  if (counts != NULL) *counts = w.counts;
  tn_text_free(&w.missing);
  tn_text_free(&w.unexpected);
  tn_text_free(&w.other);
  return status;
}

/* The weights to which the adapters belong, by [weights] base, or else by the note of their file. */
static tn_status weights_load_base(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                   const tn_weights_source *adapters, const tn_adapter_note *note) {
  const tn_weights_section *w = &run->settings.weights;
  const char *path = *w->base ? w->base : tn_adapter_note_text(note, "base");
  bool noted = note->json != NULL;
  if (run->settings.adapters.n == 0)
    return tn_failf(
        &run->env, TN_EINVAL,
        "%s: holds adapters alone, and the configuration has no [adapt]; expected that of the run "
        "that trained them, or a merged file (tenon checkpoint merge)",
        adapters->path);
  if (*path == '\0' || !tn_file_exists(path))
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: holds adapters, and the weights that they belong to%s%s are not there; give their "
                    "place, as in [weights] base = gpt2.safetensors",
                    adapters->path, *path ? ", " : "", path);
  const tn_weights_source base = {.path = path,
                                  .prefix = noted ? tn_adapter_note_text(note, "prefix") : w->prefix,
                                  .rename = noted ? tn_adapter_note_text(note, "rename") : w->rename,
                                  .skip = w->skip,
                                  .transpose = noted ? tn_adapter_note_text(note, "transpose") : w->transpose,
                                  .kinds = adapters->kinds & TN_STATES_OF_MODEL,
                                  .advice = "these are the weights below the adapters",
                                  .is_base = true,
                                  .keep = adapters->keep};
  return tn_weights_load(run, executor, map, &base, NULL);
}

/* The names of Tenon's adapters are those of the model; PEFT has a prefix in front of the base's. */
static tn_status weights_adapter_source(tn_run *run, const tn_weights_source *given,
                                        const tn_adapter_note *note, tn_weights_source *source) {
  *source = *given;
  source->prefix = source->rename = source->transpose = "";
  if (!note->peft) return TN_OK;
  source->prefix = tn_arena_printf(&run->arena, "%s%s", TN_PEFT_PREFIX, run->settings.weights.prefix);
  return source->prefix != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status weights_load_adapters(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                       const tn_weights_source *given, tn_safetensors *file,
                                       const tn_adapter_note *note, tn_weights_counts *counts) {
  tn_weights_source source;
  if (given->is_base)
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: is a file of adapters, expected the weights that they belong to; merge it first "
                    "(tenon checkpoint merge)",
                    given->path);
  TN_TRY(weights_load_base(run, executor, map, given, note));
  TN_TRY(weights_adapter_source(run, given, note, &source));
  return weights_read_open_file(run, executor, map, &source, file, note, counts);
}

/* Adapters that are trained from here on belong to this file. */
static tn_status weights_note_base(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                   const tn_weights_source *source) {
  if (run->settings.adapters.n == 0 || !(source->kinds & TN_STATES_OF_MODEL)) return TN_OK;
  char *absolute = realpath(source->path, NULL);
  run->adapter_base = tn_arena_strdup(&run->arena, absolute != NULL ? absolute : source->path);
  free(absolute);
  return run->adapter_base != NULL ? tn_adapters_begin(run, executor, map) : TN_ENOMEM;
}

static tn_status weights_load_open_file(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                        const tn_weights_source *source, tn_safetensors *file,
                                        tn_weights_counts *counts) {
  tn_adapter_note note;
  tn_status status = tn_adapter_note_read(&run->env, file, source->path, &note);
  bool adapters = note.adapters && (source->kinds & TN_STATES_OF_MODEL);
  if (status == TN_OK)
    status = adapters ? weights_load_adapters(run, executor, map, source, file, &note, counts)
                      : weights_read_open_file(run, executor, map, source, file, &note, counts);
  tn_adapter_note_close(&note);
  return status == TN_OK && !adapters ? weights_note_base(run, executor, map, source) : status;
}

tn_status tn_weights_load(tn_run *run, tn_executor *executor, const tn_state_map *map,
                          const tn_weights_source *source, tn_weights_counts *counts) {
  tn_safetensors *file = NULL;
  TN_TRY(tn_safetensors_open(&run->env, source->path, &file));
  tn_status status = weights_load_open_file(run, executor, map, source, file, counts);
  if (status == TN_OK && !source->is_base) tn_class_names_of_weights(run, file);
  if (status == TN_OK && !source->is_base) status = tn_learnt_of_weights(run, file, source->path);
  if (status == TN_OK && !source->is_base) status = tn_target_units_of_weights(run, file);
  tn_safetensors_close(file);
  return status;
}

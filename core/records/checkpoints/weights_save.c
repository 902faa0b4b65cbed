/* core/records/checkpoints/weights_save.c: writes state to safetensors, by path. */
#include <stdlib.h>

#include "core/formats/safetensors.h"
#include "core/records/checkpoints/adapter_note.h"
#include "core/records/learnt/class_names.h"
#include "core/records/learnt/learnt.h"
#include "core/records/checkpoints/stored_states.h"
#include "core/records/learnt/target_units.h"
#include "core/records/checkpoints/weights.h"

static tn_status weights_append_state(tn_run *run, tn_executor *executor, const tn_stored_state *stored,
                                      tn_safetensors_writer *writer) {
  const tn_placement *state = stored->state;
  size_t bytes = tn_type_bytes(&state->type);
  void *data = tn_alloc(&run->env, bytes ? bytes : 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_executor_read(executor, state->path, data, bytes);
  if (status == TN_OK) status = tn_stored_state_check_finite(&run->env, stored, data);
  if (status == TN_OK) status = tn_safetensors_append(writer, data, bytes);
  tn_release(&run->env, data);
  return status;
}

enum { MOST_NOTES = 5 };

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
                                      const tn_safetensor_note *notes, int32_t n_notes, const char *path,
                                      tn_file_sum *sum) {
  int32_t n = states->n;
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

/* Leaves out the parameters and buffers that are never trained. */
static void weights_keep_trained(const tn_run *run, tn_stored_states *states) {
  int32_t n = 0;
  for (int32_t i = 0; i < states->n; i++) {
    const tn_stored_state *s = &states->by_name[i];
    bool of_model = ((1u << s->state->what) & TN_STATES_OF_MODEL) != 0;
    if (!of_model || tn_frozen_until(&run->settings.freeze, s->name) != TN_FROZEN_FOREVER)
      states->by_name[n++] = *s;
  }
  states->n = n;
}

static tn_status weights_save_states(tn_run *run, tn_executor *executor, tn_stored_states *states,
                                     const char *adapters, const char *path, tn_file_sum *sum) {
  tn_safetensor_note notes[MOST_NOTES];
  int32_t n = weights_list_notes(run, notes);
  if (adapters != NULL) notes[n++] = (tn_safetensor_note){TN_ADAPTER_NOTE, adapters};
  return weights_write_states(run, executor, states, notes, n, path, sum);
}

tn_status tn_weights_save(tn_run *run, tn_executor *executor, const tn_state_map *map, uint32_t kinds,
                          const char *path, tn_file_sum *sum) {
  tn_arena arena = tn_arena_new(&run->env);
  tn_stored_states states;
  char *adapters = NULL;
  bool alone = (kinds & TN_STATES_OF_MODEL) != 0 && tn_adapters_are_trained(map);
  tn_status status = tn_stored_states_list(&arena, map, kinds, true, &states);
  if (status == TN_OK && alone) status = tn_adapter_note_write(run, map, &adapters);
  if (status == TN_OK && alone) weights_keep_trained(run, &states);
  if (status == TN_OK) status = weights_save_states(run, executor, &states, adapters, path, sum);
  free(adapters);
  tn_arena_free(&arena);
  return status;
}

static tn_status weights_name_as_peft(const tn_run *run, tn_arena *arena, tn_stored_states *states) {
  for (int32_t i = 0; i < states->n; i++) {
    tn_stored_state *s = &states->by_name[i];
    s->name = tn_arena_printf(arena, "%s%s%s", TN_PEFT_PREFIX, run->settings.weights.prefix, s->name);
    if (s->name == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

tn_status tn_weights_save_peft(tn_run *run, tn_executor *executor, const tn_state_map *map,
                               const char *path) {
  static const tn_safetensor_note format = {"format", "pt"};
  tn_arena arena = tn_arena_new(&run->env);
  tn_stored_states states;
  tn_file_sum sum;
  tn_status status = tn_stored_states_list(&arena, map, 1u << TN_STATE_PARAM, true, &states);
  if (status == TN_OK) {
    weights_keep_trained(run, &states);
    status = weights_name_as_peft(run, &arena, &states);
  }
  if (status == TN_OK) status = weights_write_states(run, executor, &states, &format, 1, path, &sum);
  tn_arena_free(&arena);
  return status;
}

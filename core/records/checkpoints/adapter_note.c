#include "core/records/checkpoints/adapter_note.h"

#include <stdlib.h>
#include <string.h>

#include "core/run/result.h"

/* ---- reading ---- */

static bool adapter_note_is_peft(const tn_safetensors *file) {
  for (int32_t i = 0; i < tn_safetensors_count(file); i++) {
    const char *name = tn_safetensors_at(file, i)->name;
    if (tn_text_starts(name, TN_PEFT_PREFIX) && tn_adapter_owns(name)) return true;
  }
  return false;
}

tn_status tn_adapter_note_read(const void *handle, const tn_safetensors *file, const char *path,
                               tn_adapter_note *note) {
  const char *text = tn_safetensors_metadata(file, TN_ADAPTER_NOTE);
  *note = (tn_adapter_note){.peft = text == NULL && adapter_note_is_peft(file)};
  note->adapters = text != NULL || note->peft;
  if (text == NULL) return TN_OK;
  note->json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  if (json_is_string(json_object_get(note->json, "base")) &&
      json_is_object(json_object_get(note->json, "scale")))
    return TN_OK;
  return tn_failf(handle, TN_EINVAL,
                  "%s: its note '" TN_ADAPTER_NOTE "' is no JSON object with a base and scales; the file is "
                  "damaged, take another checkpoint",
                  path);
}

void tn_adapter_note_close(tn_adapter_note *note) {
  json_decref(note->json);
  note->json = NULL;
}

const char *tn_adapter_note_text(const tn_adapter_note *note, const char *key) {
  const char *text = json_string_value(json_object_get(note->json, key));
  return text != NULL ? text : "";
}

bool tn_adapter_note_scale(const tn_adapter_note *note, const tn_adapters *adapters, const char *layer,
                           double *scale) {
  const json_t *noted = json_object_get(json_object_get(note->json, "scale"), layer);
  const tn_adapter *adapter = adapters != NULL ? tn_adapters_find(adapters, layer) : NULL;
  *scale = json_is_number(noted) ? json_number_value(noted) : adapter != NULL ? adapter->scale : 0;
  return json_is_number(noted) || adapter != NULL;
}

/* ---- writing ---- */

bool tn_adapters_are_trained(const tn_state_map *map) {
  for (size_t i = 0; i < map->states.n; i++)
    if (map->states.v[i].what == TN_STATE_PARAM && tn_adapter_layer(map->states.v[i].path) > 0) return true;
  return false;
}

static json_t *adapter_note_scales(const tn_run *run, const tn_state_map *map) {
  json_t *scales = json_object();
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    size_t n = state->what == TN_STATE_PARAM ? tn_adapter_layer(state->path) : 0;
    char *layer = n > 0 ? strndup(state->path, n) : NULL;
    const tn_adapter *adapter = layer != NULL ? tn_adapters_find(&run->settings.adapters, layer) : NULL;
    if (adapter != NULL) json_object_set_new(scales, layer, json_real(adapter->scale));
    free(layer);
  }
  return scales;
}

tn_status tn_adapter_note_write(const tn_run *run, const tn_state_map *map, char **text) {
  const tn_weights_section *w = &run->settings.weights;
  json_t *note = json_pack("{s:o, s:o, s:o, s:o, s:o}", "base", tn_json_text(run->adapter_base), "prefix",
                           tn_json_text(w->prefix), "rename", tn_json_text(w->rename), "transpose",
                           tn_json_text(w->transpose), "scale", adapter_note_scales(run, map));
  *text = note != NULL ? json_dumps(note, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  json_decref(note);
  return *text != NULL ? TN_OK : TN_ENOMEM;
}

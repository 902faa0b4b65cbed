#include "core/records/checkpoints/adapter_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/records/checkpoints/adapter_note.h"
#include "core/records/checkpoints/weights.h"
#include "core/run/result.h"

const char *const tn_peft_files[2] = {"adapter_model.safetensors", "adapter_config.json"};

/* A layer's name in PEFT: that of the model of the file, "transformer.h.0.attn.c_attn". */
static json_t *peft_name(const tn_run *run, const char *path, size_t n) {
  tn_text text = tn_text_new(&run->env);
  tn_text_add(&text, run->settings.weights.prefix);
  tn_text_addn(&text, path, n);
  json_t *name = text.failed ? NULL : tn_json_text(text.v);
  tn_text_free(&text);
  return name;
}

typedef struct peft_layers {
  json_t *names, *ranks, *alphas, *trained;
  bool transposed; /* the file has a weight as (in, out), as layers of class Conv1D */
} peft_layers;

/* The alpha that gives the layer its scale: PEFT has one use_rslora for all, that of the first adapter. */
static double peft_alpha(const tn_settings *s, const tn_adapter *a) {
  bool rooted = s->adapters.v[0].rslora;
  double rank = (double)a->rank;
  return rooted == (a->rslora != 0) ? a->alpha : a->scale * (rooted ? sqrt(rank) : rank);
}

static void peft_add_adapter(const tn_run *run, const char *path, size_t n, peft_layers *l) {
  const tn_settings *s = &run->settings;
  tn_words transpose;
  char *layer = strndup(path, n);
  const tn_adapter *a = layer != NULL ? tn_adapters_find(&s->adapters, layer) : NULL;
  tn_arena arena = tn_arena_new(&run->env);
  json_t *name = peft_name(run, path, n);
  if (a != NULL && name != NULL) {
    json_array_append(l->names, name);
    if (a->rank != s->adapters.v[0].rank)
      json_object_set_new(l->ranks, json_string_value(name), json_integer(a->rank));
    if (peft_alpha(s, a) != s->adapters.v[0].alpha)
      json_object_set_new(l->alphas, json_string_value(name), json_real(peft_alpha(s, a)));
    const char *full = tn_arena_printf(&arena, "%s.weight", layer);
    if (full != NULL && tn_words_split(&arena, s->weights.transpose, &transpose) == TN_OK)
      l->transposed = l->transposed || tn_words_match(&transpose, full);
  }
  json_decref(name);
  tn_arena_free(&arena);
  free(layer);
}

/* A layer that is trained in full is listed once. */
static void peft_add_trained(const tn_run *run, const char *path, peft_layers *l) {
  const char *dot = strrchr(path, '.');
  json_t *name = peft_name(run, path, dot != NULL ? (size_t)(dot - path) : strlen(path)), *known;
  size_t i;
  bool listed = false;
  json_array_foreach(l->trained, i, known) listed = listed || json_equal(known, name);
  if (name != NULL && !listed) json_array_append(l->trained, name);
  json_decref(name);
}

static peft_layers peft_list_layers(const tn_run *run, const tn_state_map *map) {
  peft_layers l = {json_array(), json_object(), json_object(), json_array(), false};
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    if (state->what != TN_STATE_PARAM || state->path[0] == '@') continue;
    size_t n = tn_adapter_layer(state->path);
    if (n > 0)
      peft_add_adapter(run, state->path, n, &l);
    else if (!tn_adapter_owns(state->path) &&
             tn_frozen_until(&run->settings.freeze, state->path) != TN_FROZEN_FOREVER)
      peft_add_trained(run, state->path, &l);
  }
  return l;
}

static json_t *peft_config(const tn_run *run, const tn_state_map *map) {
  peft_layers l = peft_list_layers(run, map);
  const tn_adapter *first = &run->settings.adapters.v[0];
  if (json_array_size(l.trained) == 0) {
    json_decref(l.trained);
    l.trained = json_null();
  }
  return json_pack("{s:s, s:s, s:o, s:b, s:I, s:f, s:f, s:b, s:b, s:b, s:b, s:o, s:o, s:o, s:o}", "peft_type",
                   "LORA", "bias", "none", "base_model_name_or_path", tn_json_text(run->adapter_base),
                   "inference_mode", 1, "r", (json_int_t)first->rank, "lora_alpha", first->alpha,
                   "lora_dropout", first->dropout, "use_rslora", first->rslora, "use_dora",
                   first->type == TN_ADAPT_DORA, "init_lora_weights", 1, "fan_in_fan_out", l.transposed,
                   "target_modules", l.names, "rank_pattern", l.ranks, "alpha_pattern", l.alphas,
                   "modules_to_save", l.trained);
}

static tn_status peft_write_config(const tn_run *run, const tn_state_map *map, const char *path) {
  json_t *config = peft_config(run, map);
  char *text = config != NULL ? json_dumps(config, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
  tn_status status = text != NULL ? tn_file_write_atomic(&run->env, path, text, strlen(text)) : TN_ENOMEM;
  free(text);
  json_decref(config);
  return status;
}

tn_status tn_peft_files_write(tn_run *run, tn_executor *executor, const tn_state_map *map,
                              const char *folder) {
  if (!tn_adapters_are_trained(map)) return TN_OK;
  char *model = tn_path_join(&run->env, folder, tn_peft_files[0]),
       *config = tn_path_join(&run->env, folder, tn_peft_files[1]);
  tn_status status = model != NULL && config != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = tn_weights_save_peft(run, executor, map, model);
  if (status == TN_OK) status = peft_write_config(run, map, config);
  tn_release(&run->env, model);
  tn_release(&run->env, config);
  return status;
}

#include "core/records/learnt/learnt.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/tokenizer/calls.h"

/* A vocabulary of a million words has less. The header of a file of weights holds 100 MB at most. */
enum { LEARNT_LIMIT = 32 << 20 };

/* Prints `value` into the run's memory. */
static tn_status learnt_print(tn_run *run, const json_t *value, const char **text) {
  char *printed = json_dumps(value, JSON_COMPACT);
  *text = printed != NULL ? tn_arena_strdup(&run->arena, printed) : NULL;
  free(printed);
  return *text != NULL ? TN_OK : TN_ENOMEM;
}

/* The object {NAME: text}. */
static tn_status learnt_wrap(tn_run *run, const char *name, const char *text, json_t **note) {
  json_error_t error;
  size_t n = strlen(text);
  *note = NULL;
  if (n > LEARNT_LIMIT)
    return tn_failf(&run->env, TN_EINVAL,
                    "source '%s': what it has learnt has %zu bytes, expected at most %d; are the values of a "
                    "vocabulary all different?",
                    name, n, LEARNT_LIMIT);
  json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(value)) {
    const char *why = value != NULL ? "it is another value" : error.text;
    json_decref(value);
    return tn_failf(&run->env, TN_EABI, "source '%s': its callback learnt gives no JSON object: %s", name,
                    why);
  }
  *note = json_pack("{s:o}", name, value);
  return *note != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_learnt_of_data(tn_run *run, tn_loader *loader, const tn_source *source) {
  const char *text;
  json_t *note;
  TN_TRY(tn_loader_learnt(loader, &text));
  if (text == NULL) return TN_OK;
  TN_TRY(learnt_wrap(run, source->item.name, text, &note));
  tn_status status = learnt_print(run, note, &run->learnt);
  json_decref(note);
  return status;
}

/* The tokenizer of a file of GGUF, as the source `text` would note it. */
static tn_status learnt_of_gguf(tn_run *run, tn_gguf *file, const char **note) {
  char *json;
  TN_TRY(tn_gguf_tokenizer_json(&run->env, file, &json));
  if (json == NULL) return TN_OK;
  *note = tn_arena_printf(&run->arena, "{\"text\": %s}", json);
  tn_release(&run->env, json);
  return *note != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_learnt_of_weights(tn_run *run, const tn_safetensors *file, const char *path) {
  const char *note = tn_safetensors_metadata(file, TN_LEARNT_NOTE);
  if (tn_safetensors_gguf(file) != NULL) TN_TRY(learnt_of_gguf(run, tn_safetensors_gguf(file), &note));
  if (note == NULL || (run->learnt != NULL && tn_text_equal(run->learnt, note))) return TN_OK;
  if (run->learnt != NULL) {
    tn_logf(
        &run->env, TN_LOG_WARN,
        "%s: these weights were trained with other vocabularies, means or deviations than the data of this "
        "run have; to keep those of the weights, resume their run",
        path);
    return TN_OK;
  }
  run->learnt = tn_arena_strdup(&run->arena, note);
  return run->learnt != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_learnt_text(tn_run *run, const tn_source *source, const char **text) {
  json_error_t error;
  *text = NULL;
  if (run->learnt == NULL || source->learnt == NULL) return TN_OK;
  json_t *note = json_loads(run->learnt, JSON_REJECT_DUPLICATES, &error);
  if (note == NULL)
    return tn_failf(&run->env, TN_EINVAL, "the weights' note %s is no JSON: %s", TN_LEARNT_NOTE, error.text);
  const json_t *value = json_object_get(note, source->item.name);
  tn_status status = value != NULL ? learnt_print(run, value, text) : TN_OK;
  json_decref(note);
  return status;
}

/* core/commands/import_gguf.c: tn_import_gguf. */
#include <string.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/gguf/gguf_model.h"
#include "core/plugin/context.h"
#include "core/run/result.h"
#include "core/tokenizer/calls.h"
#include "tenon/import.h"

/* The files that are written; tokenizer.json is there if the file has a tokenizer. */
typedef struct gguf_places {
  const char *configuration;
  char *weights, *tokenizer;
  char *json; /* of the tokenizer; NULL: none */
} gguf_places;

/* "net.safetensors" beside "net.ini". */
static char *gguf_beside(const void *handle, const char *configuration, const char *ending) {
  tn_text path = tn_text_new(handle);
  size_t n = strlen(configuration);
  tn_text_addn(&path, configuration, tn_text_ends(configuration, ".ini") ? n - strlen(".ini") : n);
  tn_text_add(&path, ending);
  return tn_text_take(&path);
}

static tn_status gguf_refuse_old(const void *handle, const gguf_places *places) {
  const char *const paths[] = {places->configuration, places->weights, places->tokenizer};
  for (int i = 0; i < 3; i++)
    if (tn_file_exists(paths[i]))
      return tn_failf(handle, TN_EINVAL,
                      "%s: exists, and is not overwritten; remove it, or name another output", paths[i]);
  return TN_OK;
}

static const char *gguf_base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* "net" of "folder/net.safetensors". */
static tn_status gguf_write_configuration(const void *handle, tn_gguf *file, const tn_gguf_decoder *decoder,
                                          const gguf_places *places) {
  tn_text text = tn_text_new(handle), name = tn_text_new(handle);
  const char *weights = gguf_base(places->weights);
  tn_text_addn(&name, weights, strlen(weights) - strlen(".safetensors"));
  tn_gguf_decoder_write(file, decoder, name.v != NULL ? name.v : "gguf", weights, &text);
  tn_status status = text.failed || name.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK) status = tn_file_write_atomic(handle, places->configuration, text.v, text.n);
  tn_text_free(&text);
  tn_text_free(&name);
  return status;
}

/* The configuration is last: where it is, the others are. */
static tn_status gguf_write_files(const void *handle, tn_gguf *file, const tn_gguf_decoder *decoder,
                                  const gguf_places *places) {
  TN_TRY(tn_gguf_write_weights(handle, file, places->json, places->weights));
  tn_status status = TN_OK;
  if (places->json != NULL)
    status = tn_file_write_atomic(handle, places->tokenizer, places->json, strlen(places->json));
  if (status == TN_OK) status = gguf_write_configuration(handle, file, decoder, places);
  if (status == TN_OK) return TN_OK;
  unlink(places->weights);
  if (places->json != NULL) unlink(places->tokenizer);
  return status;
}

static json_t *gguf_result(const tn_gguf *file, const gguf_places *places) {
  int64_t parameters = 0;
  for (int32_t i = 0; i < tn_gguf_count(file); i++) parameters += tn_type_count(&tn_gguf_at(file, i)->type);
  return json_pack("{s:o, s:o, s:o, s:i, s:I}", "configuration", tn_json_text(places->configuration),
                   "weights", tn_json_text(places->weights), "tokenizer",
                   places->json != NULL ? tn_json_text(places->tokenizer) : json_null(), "tensors",
                   (int)tn_gguf_count(file), "parameters", (json_int_t)parameters);
}

static tn_status gguf_import(tn_context *context, tn_gguf *file, gguf_places *places, char **json) {
  tn_gguf_decoder decoder;
  TN_TRY(gguf_refuse_old(context, places));
  TN_TRY(tn_gguf_decoder_read(context, file, &decoder));
  TN_TRY(tn_gguf_tokenizer_json(context, file, &places->json));
  TN_TRY(gguf_write_files(context, file, &decoder, places));
  return tn_json_take(context, gguf_result(file, places), json);
}

tn_status tn_import_gguf(tn_context *context, const char *path, const char *configuration, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, path, "path");
  TN_NEED(context, configuration, "configuration");
  gguf_places places = {configuration, gguf_beside(context, configuration, ".safetensors"),
                        gguf_beside(context, configuration, ".tokenizer.json"), NULL};
  tn_gguf *file = NULL;
  tn_status status = places.weights != NULL && places.tokenizer != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = tn_gguf_open(context, path, &file);
  if (status == TN_OK) status = gguf_import(context, file, &places, json);
  tn_gguf_close(file);
  tn_release(context, places.weights);
  tn_release(context, places.tokenizer);
  tn_release(context, places.json);
  return status;
}

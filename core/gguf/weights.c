/* core/gguf/weights.c: the tensors of a file of GGUF as a file of safetensors. */
#include "core/base/arena.h"
#include "core/formats/safetensors.h"
#include "core/gguf/gguf_model.h"

static tn_status gguf_weights_append(const void *handle, const tn_gguf *file, const tn_gguf_tensor *tensor,
                                     tn_safetensors_writer *writer) {
  size_t bytes = tn_type_bytes(&tensor->type);
  TN_TRY(tn_check_stop(handle));
  float *values = tn_alloc(handle, bytes + 1);
  tn_status status = values != NULL ? tn_gguf_read(file, handle, tensor, values) : TN_ENOMEM;
  if (status == TN_OK) status = tn_safetensors_append(writer, values, bytes);
  tn_release(handle, values);
  return status;
}

static tn_status gguf_weights_write(const void *handle, const tn_gguf *file, const tn_safetensor_named *named,
                                    const tn_safetensor_note *note, const char *path) {
  tn_safetensors_writer *writer;
  int32_t n = tn_gguf_count(file);
  TN_TRY(tn_safetensors_begin(handle, path, named, n, note, note->value != NULL, &writer));
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = gguf_weights_append(handle, file, tn_gguf_at(file, i), writer);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

tn_status tn_gguf_write_weights(const void *handle, const tn_gguf *file, const char *json, const char *path) {
  tn_arena arena = tn_arena_new(handle);
  int32_t n = tn_gguf_count(file);
  tn_safetensor_named *named = tn_arena_alloc(&arena, tn_size_mul((size_t)n + 1, sizeof *named));
  tn_safetensor_note note = {"tenon.data",
                             json != NULL ? tn_arena_printf(&arena, "{\"text\": %s}", json) : NULL};
  tn_status status = named != NULL && (json == NULL) == (note.value == NULL) ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    named[i] = (tn_safetensor_named){tn_gguf_at(file, i)->name, tn_gguf_at(file, i)->type};
  if (status == TN_OK) status = gguf_weights_write(handle, file, named, &note, path);
  tn_arena_free(&arena);
  return status;
}

/* core/onnx/file/onnx_file.c: the file, and the model that it holds. */
#include "core/onnx/file/onnx_messages.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file/file.h"

/* ---- functions ---- */

static tn_status onnx_add_function(tn_onnx_file *f, const tn_proto_field *field) {
  tn_onnx_function *v = tn_arena_grow(&f->arena, f->functions, (size_t)f->n_functions, sizeof *v);
  if (v == NULL) return TN_ENOMEM;
  f->functions = v;
  return onnx_read_function(f, field->bytes, &v[f->n_functions++]);
}

static tn_status onnx_read_opset(tn_onnx_file *f, tn_proto message) {
  const char *domain = "";
  int64_t version = 0;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &domain));
    if (field.number == 2) version = (int64_t)field.value;
  }
  if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) f->opset = version;
  return message.bad ? onnx_damaged(f, "the version") : TN_OK;
}

static tn_status onnx_read_entry(tn_onnx_file *f, tn_proto message) {
  tn_onnx_entry entry = {"", ""};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &entry.key));
    if (field.number == 2) TN_TRY(onnx_take_text(f, &field, &entry.value));
  }
  if (message.bad) return onnx_damaged(f, "metadata");
  tn_onnx_entry *grown = tn_arena_grow(&f->arena, f->entries, (size_t)f->n_entries, sizeof *grown);
  if (grown == NULL) return TN_ENOMEM;
  f->entries = grown;
  f->entries[f->n_entries++] = entry;
  return TN_OK;
}

const char *tn_onnx_entry_of(const tn_onnx_file *f, const char *key) {
  for (int64_t i = 0; i < f->n_entries; i++)
    if (strcmp(f->entries[i].key, key) == 0) return f->entries[i].value;
  return NULL;
}

static tn_status onnx_read_model(tn_onnx_file *f) {
  tn_proto message = tn_proto_of(f->bytes, f->count);
  bool has_graph = false;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 2: TN_TRY(onnx_take_text(f, &field, &f->producer)); break;
    case 7:
      has_graph = true;
      TN_TRY(onnx_read_graph(f, field.bytes, &f->graph));
      break;
    case 8: TN_TRY(onnx_read_opset(f, field.bytes)); break;
    case 14: TN_TRY(onnx_read_entry(f, field.bytes)); break;
    case 25: TN_TRY(onnx_add_function(f, &field)); break;
    default: break;
    }
  if (message.bad || !has_graph) return onnx_damaged(f, "the file");
  if (f->opset > 0) return TN_OK;
  return tn_failf(f->env, TN_EINVAL, "%s: names no version of the operators, expected opset_import", f->path);
}

/* ---- the file ---- */

static tn_status onnx_map(tn_onnx_file *f) {
  tn_open_file open;
  TN_TRY(tn_file_open(f->env, f->path, O_RDONLY, &open));
  void *at = open.bytes > 0 ? mmap(NULL, (size_t)open.bytes, PROT_READ, MAP_PRIVATE, open.fd, 0) : NULL;
  tn_status status = at == MAP_FAILED ? tn_file_fail(f->env, f->path, "mapped") : TN_OK;
  close(open.fd);
  if (status != TN_OK || at == NULL) return status != TN_OK ? status : onnx_damaged(f, "the file");
  f->bytes = at;
  f->count = (size_t)open.bytes;
  return TN_OK;
}

tn_status tn_onnx_open(tn_env *env, const char *path, tn_onnx_file *file) {
  *file = (tn_onnx_file){.env = env, .path = path, .arena = tn_arena_new(env), .producer = ""};
  TN_TRY(onnx_map(file));
  return onnx_read_model(file);
}

void tn_onnx_close(tn_onnx_file *file) {
  if (file->bytes != NULL) munmap((void *)file->bytes, file->count);
  tn_arena_free(&file->arena);
  file->bytes = NULL;
}

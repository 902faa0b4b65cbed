/* core/formats/safetensors_header.c: parsing and validation of the JSON header.
 *
 * Jansson rejects duplicate keys, invalid UTF-8, numbers beyond 64 bits, and nesting that would exhaust
 * the stack. It allocates with malloc, because its allocator is process-wide. */
#include "core/formats/safetensors_header.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/formats/input.h"

#define METADATA_KEY "__metadata__"

typedef struct safetensors_parser {
  const void *handle;
  tn_arena *arena;
  const char *path;
  uint64_t data_offset, data_bytes;
} safetensors_parser;

/* The types of the format; TN_ANY where Tenon has no such type. */
typedef struct stored_type {
  const char *word;
  size_t bytes;
  int32_t dtype;
} stored_type;

static const stored_type stored_types[] = {
    {"BOOL", 1, TN_BOOL},   {"U8", 1, TN_U8},     {"I32", 4, TN_I32},     {"I64", 8, TN_I64},
    {"F16", 2, TN_F16},     {"BF16", 2, TN_BF16}, {"F32", 4, TN_F32},     {"F64", 8, TN_F64},
    {"I8", 1, TN_I8},       {"I16", 2, TN_ANY},   {"U16", 2, TN_ANY},     {"U32", 4, TN_ANY},
    {"U64", 8, TN_ANY},     {"C64", 8, TN_ANY},   {"F8_E4M3", 1, TN_ANY}, {"F8_E5M2", 1, TN_ANY},
    {"F8_E8M0", 1, TN_ANY},
};
enum { STORED_TYPES = sizeof(stored_types) / sizeof(stored_types[0]) };

const char *tn_safetensors_word(int32_t dtype) {
  for (int i = 0; i < STORED_TYPES; i++)
    if (stored_types[i].dtype == dtype && dtype != TN_ANY) return stored_types[i].word;
  return NULL;
}

static const stored_type *safetensors_find_type(const char *word) {
  for (int i = 0; i < STORED_TYPES; i++)
    if (strcmp(stored_types[i].word, word) == 0) return &stored_types[i];
  return NULL;
}

static tn_status safetensors_no_memory(const safetensors_parser *p) {
  return tn_failf(p->handle, TN_ENOMEM, "%s: out of memory for its header", p->path);
}

static tn_status safetensors_refuse(const safetensors_parser *p, const char *name, const char *format, ...)
    TN_PRINTF(3, 4);
static tn_status safetensors_refuse(const safetensors_parser *p, const char *name, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tn_failv(p->handle, TN_EINVAL, NULL, format, args);
  va_end(args);
  return tn_wrap(p->handle, TN_EINVAL, "%s: tensor \"%.100s\"", p->path, name);
}

/* ---- one tensor --------------------------------------------------------------------------------- */

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}: exactly these three members. */
static tn_status safetensors_check_members(const safetensors_parser *p, const char *name, json_t *entry) {
  static const char *const wanted[] = {"dtype", "shape", "data_offsets"};
  const char *key;
  json_t *value;
  if (!json_is_object(entry))
    return safetensors_refuse(p, name, "not an object, expected {dtype, shape, data_offsets}");
  for (int i = 0; i < 3; i++)
    if (json_object_get(entry, wanted[i]) == NULL) return safetensors_refuse(p, name, "has no %s", wanted[i]);
  json_object_foreach(entry, key, value) {
    if (strcmp(key, wanted[0]) != 0 && strcmp(key, wanted[1]) != 0 && strcmp(key, wanted[2]) != 0)
      return safetensors_refuse(p, name, "has an unknown member \"%.60s\"", key);
  }
  return TN_OK;
}

static tn_status safetensors_read_type(const safetensors_parser *p, const char *name, json_t *word,
                                       tn_safetensor *tensor, size_t *element) {
  if (!json_is_string(word)) return safetensors_refuse(p, name, "dtype is not a text");
  const stored_type *type = safetensors_find_type(json_string_value(word));
  if (type == NULL)
    return safetensors_refuse(p, name, "dtype \"%.60s\" is unknown, expected one such as F32",
                              json_string_value(word));
  tensor->stored = type->word;
  tensor->type.dtype = type->dtype;
  *element = type->bytes;
  return TN_OK;
}

static tn_status safetensors_read_shape(const safetensors_parser *p, const char *name, json_t *shape,
                                        tn_type *type) {
  if (!json_is_array(shape)) return safetensors_refuse(p, name, "shape is not a list");
  size_t rank = json_array_size(shape);
  if (rank > TN_MAX_RANK)
    return safetensors_refuse(p, name, "has %zu dimensions, at most %d are supported", rank, TN_MAX_RANK);
  type->rank = (int32_t)rank;
  for (size_t i = 0; i < rank; i++) {
    json_t *dim = json_array_get(shape, i);
    if (!json_is_integer(dim) || json_integer_value(dim) < 0)
      return safetensors_refuse(p, name, "dimension %zu of its shape is not an integer >= 0", i);
    type->dims[i] = json_integer_value(dim);
  }
  return TN_OK;
}

static tn_status safetensors_read_offsets(const safetensors_parser *p, const char *name, json_t *offsets,
                                          uint64_t *begin, uint64_t *end) {
  json_t *b = json_array_get(offsets, 0), *e = json_array_get(offsets, 1);
  if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(e))
    return safetensors_refuse(p, name, "data_offsets is not [begin, end]");
  int64_t from = json_integer_value(b), to = json_integer_value(e);
  if (from < 0 || to < from || (uint64_t)to > p->data_bytes)
    return safetensors_refuse(
        p, name, "data_offsets [%" PRId64 ", %" PRId64 "] do not lie within the %" PRIu64 " bytes of data",
        from, to, p->data_bytes);
  *begin = (uint64_t)from;
  *end = (uint64_t)to;
  return TN_OK;
}

static tn_status safetensors_read_tensor(const safetensors_parser *p, const char *name, json_t *entry,
                                         tn_safetensor *tensor) {
  size_t element = 0;
  int64_t bytes;
  uint64_t begin = 0, end = 0;
  TN_TRY(safetensors_check_members(p, name, entry));
  TN_TRY(safetensors_read_type(p, name, json_object_get(entry, "dtype"), tensor, &element));
  TN_TRY(safetensors_read_shape(p, name, json_object_get(entry, "shape"), &tensor->type));
  TN_TRY(safetensors_read_offsets(p, name, json_object_get(entry, "data_offsets"), &begin, &end));
  if (!tn_checked_bytes(tensor->type.dims, tensor->type.rank, element, &bytes))
    return safetensors_refuse(p, name, "its shape has more bytes than can be counted");
  if (end - begin != (uint64_t)bytes)
    return safetensors_refuse(p, name,
                              "data_offsets span %" PRIu64 " bytes, but %s of its shape needs %" PRId64,
                              end - begin, tensor->stored, bytes);
  tensor->offset = p->data_offset + begin;
  tensor->bytes = (uint64_t)bytes;
  tensor->name = tn_arena_strdup(p->arena, name);
  return tensor->name != NULL ? TN_OK : safetensors_no_memory(p);
}

/* ---- the whole header --------------------------------------------------------------------------- */

/* Orders tensors by offset; an empty tensor comes before a tensor at the same offset. */
static int safetensors_compare_offsets(const void *a, const void *b) {
  const tn_safetensor *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int safetensors_compare_names(const void *a, const void *b) {
  return strcmp(((const tn_safetensor *)a)->name, ((const tn_safetensor *)b)->name);
}

/* Checks that the tensors cover the data exactly, without overlap and without gaps, so that a file cannot
 * contain hidden data. */
static tn_status safetensors_check_offsets(const safetensors_parser *p, tn_safetensors_header *header) {
  uint64_t next = p->data_offset;
  if (header->n_tensors > 0)
    qsort(header->tensors, (size_t)header->n_tensors, sizeof(tn_safetensor), safetensors_compare_offsets);
  for (int32_t i = 0; i < header->n_tensors; i++) {
    const tn_safetensor *tensor = &header->tensors[i];
    if (tensor->offset < next) return safetensors_refuse(p, tensor->name, "overlaps with another tensor");
    if (tensor->offset > next)
      return safetensors_refuse(p, tensor->name, "begins after a gap of %" PRIu64 " bytes",
                                tensor->offset - next);
    next += tensor->bytes;
  }
  if (next != p->data_offset + p->data_bytes)
    return tn_failf(p->handle, TN_EINVAL, "%s: its last %" PRIu64 " bytes belong to no tensor", p->path,
                    p->data_offset + p->data_bytes - next);
  return TN_OK;
}

static tn_status safetensors_read_metadata(const safetensors_parser *p, json_t *metadata,
                                           tn_safetensors_header *header) {
  const char *key;
  json_t *value;
  if (!json_is_object(metadata))
    return tn_failf(p->handle, TN_EINVAL, "%s: " METADATA_KEY " is not an object", p->path);
  header->notes =
      tn_arena_alloc(p->arena, tn_size_mul(json_object_size(metadata), sizeof(tn_safetensor_note)));
  if (header->notes == NULL) return safetensors_no_memory(p);
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value))
      return tn_failf(p->handle, TN_EINVAL, "%s: " METADATA_KEY ": \"%.100s\" is not a text", p->path, key);
    tn_safetensor_note note = {tn_arena_strdup(p->arena, key),
                               tn_arena_strdup(p->arena, json_string_value(value))};
    if (note.key == NULL || note.value == NULL) return safetensors_no_memory(p);
    header->notes[header->n_notes++] = note;
  }
  return TN_OK;
}

static tn_status safetensors_read_members(const safetensors_parser *p, json_t *root,
                                          tn_safetensors_header *header) {
  const char *key;
  json_t *value;
  header->tensors = tn_arena_alloc(p->arena, tn_size_mul(json_object_size(root), sizeof(tn_safetensor)));
  if (header->tensors == NULL) return safetensors_no_memory(p);
  json_object_foreach(root, key, value) {
    if (strcmp(key, METADATA_KEY) == 0)
      TN_TRY(safetensors_read_metadata(p, value, header));
    else
      TN_TRY(safetensors_read_tensor(p, key, value, &header->tensors[header->n_tensors++]));
  }
  TN_TRY(safetensors_check_offsets(p, header));
  if (header->n_tensors > 0)
    qsort(header->tensors, (size_t)header->n_tensors, sizeof(tn_safetensor), safetensors_compare_names);
  return TN_OK;
}

tn_status tn_safetensors_parse(const void *handle, tn_arena *arena, const char *path, const char *json,
                               size_t n, uint64_t data_offset, uint64_t data_bytes,
                               tn_safetensors_header *header) {
  safetensors_parser p = {handle, arena, path, data_offset, data_bytes};
  json_error_t error;
  *header = (tn_safetensors_header){0};
  if (n == 0 || json[0] != '{')
    return tn_failf(handle, TN_EINVAL, "%s: not a safetensors file: its header does not start with '{'",
                    path);
  json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: its header is no valid JSON: byte %d: %s", path, error.position,
                    error.text);
  tn_status status = safetensors_read_members(&p, root, header);
  json_decref(root);
  return status;
}

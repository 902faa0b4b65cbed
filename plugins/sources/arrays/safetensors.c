/* plugins/sources/arrays/safetensors.c: an array of a safetensors file: eight bytes of length, a JSON object
 * with type, shape and offsets of each array, then the arrays (huggingface.co/docs/safetensors, "Format"). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "plugins/sources/arrays/array.h"

enum { TENSORS_LONGEST_HEADER = 100000000, TENSORS_LISTED = 200 };

typedef struct tensors {
  const void *handle;
  const char *path, *name; /* name: of the array */
  json_t *root;
} tensors;

static tn_status tensors_fail(const tensors *t, const char *what) {
  return tn_fail(t->handle, TN_EINVAL, NULL, "%s/%s: %s: the header is damaged", t->path, t->name, what);
}

static int32_t tensors_is_array(const char *key) { return strcmp(key, "__metadata__") != 0; }

/* The names in the file, as far as a message has room. */
static void tensors_list(json_t *root, char text[TENSORS_LISTED]) {
  const char *key;
  json_t *value;
  size_t n = 0;
  text[0] = '\0';
  json_object_foreach(root, key, value) {
    if (!tensors_is_array(key) || n + strlen(key) + 8 >= TENSORS_LISTED) continue;
    n += (size_t)snprintf(text + n, TENSORS_LISTED - n, "%s%s", n > 0 ? ", " : "", key);
  }
}

/* The array of the name; without one, that of the field's name, or the only one. */
static tn_status tensors_choose(tensors *t, const array_place *p, json_t **entry) {
  char names[TENSORS_LISTED];
  const char *key, *only = NULL;
  json_t *value;
  size_t all = 0;
  json_object_foreach(t->root, key, value) {
    if (!tensors_is_array(key)) continue;
    only = key;
    all++;
  }
  t->name = p->member[0] != '\0' ? p->member : p->preferred;
  if (p->member[0] == '\0' && all == 1) t->name = only;
  *entry = tensors_is_array(t->name) ? json_object_get(t->root, t->name) : NULL;
  if (*entry != NULL) return TN_OK;
  tensors_list(t->root, names);
  return tn_fail(t->handle, TN_EINVAL, NULL, "%s: has no array '%s', expected one of: %s", t->path, t->name,
                 names);
}

static tn_status tensors_read_type(const tensors *t, json_t *entry, array *a) {
  const char *word = json_string_value(json_object_get(entry, "dtype"));
  char lower[8] = "";
  if (word == NULL) return tensors_fail(t, "has no dtype");
  for (size_t i = 0; i + 1 < sizeof lower && word[i] != '\0'; i++)
    lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] - 'A' + 'a' : word[i]);
  a->element = strlen(word) < sizeof lower ? element_named(lower, strlen(lower)) : (array_element){0};
  if (a->element.kind != ELEMENT_NONE) return TN_OK;
  return tn_fail(t->handle, TN_EINVAL, NULL,
                 "%s/%s: has elements of type %.20s, expected BOOL, whole numbers, F16, BF16, F32 or F64",
                 t->path, t->name, word);
}

static tn_status tensors_read_shape(const tensors *t, json_t *entry, array *a) {
  json_t *shape = json_object_get(entry, "shape");
  size_t rank = json_array_size(shape);
  if (!json_is_array(shape)) return tensors_fail(t, "has no shape");
  if (rank > TN_MAX_RANK)
    return tn_fail(t->handle, TN_EINVAL, NULL, "%s/%s: has %zu dimensions, expected at most %d", t->path,
                   t->name, rank, TN_MAX_RANK);
  a->rank = (int32_t)rank;
  for (size_t i = 0; i < rank; i++) {
    json_t *dim = json_array_get(shape, i);
    if (!json_is_integer(dim) || json_integer_value(dim) < 0)
      return tensors_fail(t, "its shape has a dimension that is no number >= 0");
    a->dims[i] = json_integer_value(dim);
  }
  return TN_OK;
}

static tn_status tensors_read_data(const tensors *t, json_t *entry, const uint8_t *data, uint64_t count,
                                   array *a) {
  char where[1024];
  json_t *offsets = json_object_get(entry, "data_offsets"), *begin = json_array_get(offsets, 0),
         *end = json_array_get(offsets, 1);
  if (!json_is_integer(begin) || !json_is_integer(end)) return tensors_fail(t, "has no data_offsets");
  int64_t from = json_integer_value(begin), to = json_integer_value(end);
  if (from < 0 || to < from || (uint64_t)to > count)
    return tn_fail(
        t->handle, TN_EINVAL, NULL,
        "%s/%s: lies from byte %lld to %lld of the data, expected within %llu: the file is cut off or "
        "damaged",
        t->path, t->name, (long long)from, (long long)to, (unsigned long long)count);
  a->data = data + from;
  snprintf(where, sizeof where, "%s/%s", t->path, t->name);
  return array_check_bytes(t->handle, where, a, (uint64_t)(to - from));
}

static tn_status tensors_read(tensors *t, const array_place *p, const uint8_t *data, uint64_t count,
                              array *a) {
  json_t *entry = NULL;
  TN_TRY(tensors_choose(t, p, &entry));
  TN_TRY(tensors_read_type(t, entry, a));
  TN_TRY(tensors_read_shape(t, entry, a));
  return tensors_read_data(t, entry, data, count, a);
}

tn_status safetensors_find(const void *handle, const array_place *place, array *a) {
  json_error_t error;
  tensors t = {.handle = handle, .path = place->path};
  uint64_t length = a->file.count >= 8 ? bytes_u64(a->file.bytes) : UINT64_MAX;
  if (length > TENSORS_LONGEST_HEADER || length > a->file.count - 8)
    return tn_fail(
        handle, TN_EINVAL, NULL,
        "%s: has %zu bytes, but its header does not end within them: it is no safetensors file, or cut "
        "off",
        place->path, a->file.count);
  t.root = json_loadb((const char *)a->file.bytes + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(t.root)) {
    json_decref(t.root);
    return tn_fail(handle, TN_EINVAL, NULL, "%s: its header is no JSON object: byte %d: %s", place->path,
                   error.position, error.text);
  }
  tn_status status = tensors_read(&t, place, a->file.bytes + 8 + length, a->file.count - 8 - length, a);
  json_decref(t.root);
  return status;
}

/* tests/integration/precision/checkpoint.h: reads single states from a checkpoint's files. */
#pragma once

#include "program.h"

/* The bytes of a tensor in a safetensors file (8 bytes of header length, header, data); it must exist. */
static inline const char *checkpoint_tensor(const char *path, const char *name, size_t *bytes) {
  size_t n;
  uint64_t header;
  const char *file = file_read(path, &n);
  memcpy(&header, file, sizeof header);
  json_t *json = json_loadb(file + 8, (size_t)header, 0, NULL);
  const json_t *offsets = json_object_get(json_object_get(json, name), "data_offsets");
  if (offsets == NULL) fail_msg("%s: no tensor '%s'", path, name);
  size_t start = (size_t)json_integer_value(json_array_get(offsets, 0));
  *bytes = (size_t)json_integer_value(json_array_get(offsets, 1)) - start;
  json_decref(json);
  return file + 8 + header + start;
}

static inline int checkpoint_has(const char *path, const char *name) {
  size_t n;
  char quoted[160];
  uint64_t header;
  const char *file = file_read(path, &n);
  memcpy(&header, file, sizeof header);
  snprintf(quoted, sizeof quoted, "\"%s\"", name);
  const char *found = strstr(file + 8, quoted);
  return found != NULL && found < file + 8 + header;
}

static inline int64_t checkpoint_count(const char *path, const char *name) {
  size_t bytes;
  int64_t count;
  const char *data = checkpoint_tensor(path, name, &bytes);
  assert_int_equal(bytes, sizeof count);
  memcpy(&count, data, sizeof count);
  return count;
}

static inline double checkpoint_f32(const char *path, const char *name) {
  size_t bytes;
  float value;
  const char *data = checkpoint_tensor(path, name, &bytes);
  assert_int_equal(bytes, sizeof value);
  memcpy(&value, data, sizeof value);
  return (double)value;
}

static inline int checkpoint_same(const char *a, const char *b, const char *name) {
  size_t n, m;
  const char *x = checkpoint_tensor(a, name, &n), *y = checkpoint_tensor(b, name, &m);
  return n == m && memcmp(x, y, n) == 0;
}

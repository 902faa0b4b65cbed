/* tests/integration/cli/tensors.h: f32 tensors of a safetensors file. */
#pragma once

#include "program.h"

/* The file's tensor; NULL: it has none of that name. Owned by the harness until the test ends. */
static inline const float *tensor_find(const char *path, const char *name, size_t *count) {
  size_t n, begin, end;
  uint64_t header;
  const char *bytes = file_read(path, &n);
  memcpy(&header, bytes, sizeof header);
  json_t *json = json_loadb(bytes + 8, (size_t)header, 0, NULL);
  assert_non_null(json);
  const json_t *offsets = json_object_get(json_object_get(json, name), "data_offsets");
  begin = (size_t)json_integer_value(json_array_get(offsets, 0));
  end = (size_t)json_integer_value(json_array_get(offsets, 1));
  json_decref(json);
  *count = (end - begin) / sizeof(float);
  return end > begin ? (const float *)(const void *)(bytes + 8 + header + begin) : NULL;
}

static inline int tensor_exists(const char *path, const char *name) {
  size_t n;
  return tensor_find(path, name, &n) != NULL;
}

/* The greatest difference between the tensors of that name in two files; NaN where one is. */
static inline double tensor_distance(const char *a, const char *b, const char *name) {
  size_t n = 0, m = 0;
  double most = 0;
  const float *x = tensor_find(a, name, &n), *y = tensor_find(b, name, &m);
  if (x == NULL || y == NULL || n != m) fail_msg("'%s' is not the same kind of tensor in both", name);
  for (size_t i = 0; x && y && i < n; i++) {
    double d = (double)x[i] - (double)y[i];
    if (d < 0) d = -d;
    if (d > most || d != d) most = d;
  }
  return most;
}

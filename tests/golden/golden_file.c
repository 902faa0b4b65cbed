#include "golden_file.h"

#include <stdio.h>
#include <string.h>

bool golden_next(const tn_safetensors *file, const char **cursor, golden_case *c) {
  if (*cursor == NULL) *cursor = tn_safetensors_metadata(file, "cases");
  if (*cursor == NULL || **cursor == '\0') return false;
  size_t n = strcspn(*cursor, "\n");
  snprintf(c->name, sizeof c->name, "%.*s", (int)n, *cursor);
  c->graph = tn_safetensors_metadata(file, c->name);
  *cursor += n + ((*cursor)[n] == '\n');
  return c->graph != NULL;
}

/* ---- elements ---- */

#define READ(TYPE)                                                                                           \
  do {                                                                                                       \
    TYPE v;                                                                                                  \
    memcpy(&v, at, sizeof v);                                                                                \
    return (double)v;                                                                                        \
  } while (0)

static double element(int32_t dtype, const char *at) {
  uint32_t wide = 0;
  float f;
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: READ(uint8_t);
  case TN_I8: READ(int8_t);
  case TN_I32: READ(int32_t);
  case TN_I64: READ(int64_t);
  case TN_F16: READ(_Float16);
  case TN_BF16:
    memcpy((char *)&wide + 2, at, 2);
    memcpy(&f, &wide, sizeof f);
    return (double)f;
  case TN_F32: READ(float);
  default: READ(double);
  }
}

double *golden_tensor(const tn_safetensors *file, const void *handle, const char *name, const char *kind,
                      const char *tensor, tn_type *type) {
  char key[256];
  snprintf(key, sizeof key, "%s/%s/%s", name, kind, tensor);
  const tn_safetensor *t = tn_safetensors_find(file, key);
  if (t == NULL) return NULL;
  *type = t->type;
  size_t count = (size_t)tn_type_count(type), size = tn_dtype_size(type->dtype);
  char *raw = tn_alloc(handle, count * size + 1);
  double *values = tn_alloc(handle, (count + 1) * sizeof *values);
  bool read =
      raw != NULL && values != NULL && tn_safetensors_read(file, handle, t, raw, count * size) == TN_OK;
  for (size_t i = 0; read && i < count; i++) values[i] = element(type->dtype, raw + i * size);
  tn_release(handle, raw);
  if (read) return values;
  tn_release(handle, values);
  return NULL;
}

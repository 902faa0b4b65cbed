/* tests/fakecuda/cudnn/body.c: see body.h. */
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/body.h"

fakednn_body *fakednn_body_new(int32_t type) {
  fakednn_body *body = calloc(1, sizeof *body);
  if (!body) return NULL;
  atomic_init(&body->references, 1);
  body->type = type;
  return body;
}

fakednn_body *fakednn_body_keep(fakednn_body *body) {
  if (body) atomic_fetch_add(&body->references, 1);
  return body;
}

static void drop_value(fakednn_value *value) {
  fakednn_body **parts = value->data;
  if (value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < value->count; i++) fakednn_body_drop(parts[i]);
  }
  free(value->data);
}

void fakednn_body_drop(fakednn_body *body) {
  if (!body || atomic_fetch_sub(&body->references, 1) > 1) return;
  if (body->release) body->release(body);
  for (int i = 0; i < body->n_values; i++) drop_value(&body->values[i]);
  free(body);
}

size_t fakednn_type_size(int32_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
  case CUDNN_TYPE_CHAR: return 1;
  case CUDNN_TYPE_FRACTION: return sizeof(cudnnFraction_t);
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
  default: return 4;
  }
}

static fakednn_value *find_value(const fakednn_body *body, int32_t name) {
  for (int i = 0; i < body->n_values; i++) {
    if (body->values[i].name == name) return (fakednn_value *)&body->values[i];
  }
  return NULL;
}

bool fakednn_store(fakednn_body *body, int32_t name, int32_t type, int64_t count, const void *data) {
  size_t bytes = (size_t)count * fakednn_type_size(type);
  fakednn_value *value = find_value(body, name), made = {name, type, count, malloc(bytes ? bytes : 1)};
  if (!made.data || (!value && body->n_values == FAKEDNN_VALUES)) return free(made.data), false;
  if (bytes) memcpy(made.data, data, bytes);
  fakednn_body **parts = made.data;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; i++) fakednn_body_keep(parts[i]);
  }
  if (value)
    drop_value(value);
  else
    value = &body->values[body->n_values++];
  *value = made;
  return true;
}

const fakednn_value *fakednn_value_of(const fakednn_body *body, int32_t name) {
  return find_value(body, name);
}

int64_t fakednn_count_of(const fakednn_body *body, int32_t name) {
  const fakednn_value *value = find_value(body, name);
  return value ? value->count : 0;
}

int64_t fakednn_integer(const fakednn_body *body, int32_t name, int64_t at, int64_t otherwise) {
  const fakednn_value *value = find_value(body, name);
  if (!value || at >= value->count) return otherwise;
  switch (fakednn_type_size(value->type)) {
  case 1: return ((const bool *)value->data)[at];
  case 4: return ((const int32_t *)value->data)[at];
  default: return ((const int64_t *)value->data)[at];
  }
}

double fakednn_number(const fakednn_body *body, int32_t name, double otherwise) {
  const fakednn_value *value = find_value(body, name);
  if (!value) return otherwise;
  if (value->type == CUDNN_TYPE_FLOAT) return *(const float *)value->data;
  if (value->type == CUDNN_TYPE_DOUBLE) return *(const double *)value->data;
  return (double)fakednn_integer(body, name, 0, 0);
}

fakednn_body *fakednn_part(const fakednn_body *body, int32_t name, int64_t at) {
  const fakednn_value *value = find_value(body, name);
  return value && at < value->count ? ((fakednn_body **)value->data)[at] : NULL;
}

const void *fakednn_pointer(const fakednn_body *body, int32_t name, int64_t at) {
  const fakednn_value *value = find_value(body, name);
  if (!value || at >= value->count) return NULL;
  return value->type == CUDNN_TYPE_CHAR ? value->data : ((const void **)value->data)[at];
}

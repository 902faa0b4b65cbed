/* plugins/sources/shards/shard_field.c: the values in members of samples. */
#include "plugins/sources/shards/shard_field.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/arrays/array.h"
#include "plugins/sources/image/image.h"
#include "plugins/sources/shards/shard_json.h"

/* ---- classes ---- */

/* A whole number, with blanks around it. */
static int32_t shard_class_in_text(const shard_bytes *m, int64_t *number) {
  char *end;
  errno = 0;
  *number = strtoll(m->bytes, &end, 10);
  if (end == m->bytes || errno != 0) return 0;
  while (isspace((unsigned char)*end)) end++;
  return end == m->bytes + m->n;
}

static int32_t shard_field_is_json(const shard_field *f) { return f->key[0] != '\0'; }

int32_t shard_field_peek_class(const shard_field *f, const shard_bytes *m, int64_t *number) {
  int32_t found;
  if (shard_field_is_json(f)) {
    json_t *root = json_loadb(m->bytes, m->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    found = shard_json_class(f, root, number);
    json_decref(root);
  } else {
    found = shard_class_in_text(m, number);
  }
  return found && *number >= 0 && *number < INT32_MAX;
}

static tn_status shard_class_of_json(const void *handle, const shard_field *f, const shard_bytes *m,
                                     int64_t *number) {
  json_t *root;
  TN_TRY(shard_json_open(handle, m, &root));
  int32_t found = shard_json_class(f, root, number);
  json_decref(root);
  return found ? TN_OK : shard_json_fail(handle, f, m, "a whole number, the class,");
}

tn_status shard_field_class(const void *handle, const shard_field *f, const shard_bytes *m, int64_t *number) {
  int64_t most = f->classes > 0 ? f->classes : INT32_MAX;
  if (shard_field_is_json(f))
    TN_TRY(shard_class_of_json(handle, f, m, number));
  else if (!shard_class_in_text(m, number))
    return tn_fail(handle, TN_EINVAL, NULL, "%s: is '%.40s', expected a whole number, the class", m->where,
                   m->bytes);
  if (*number >= 0 && *number < most) return TN_OK;
  return tn_fail(handle, TN_EINVAL, "classes", "%s: is class %lld, expected 0 to %lld", m->where,
                 (long long)*number, (long long)(most - 1));
}

/* ---- pictures ---- */

typedef struct shard_picture {
  tn_sample *sample;
  const shard_fields *fields;
  int32_t field;
} shard_picture;

static tn_status shard_picture_planes(image_sink *sink) {
  const shard_picture *p = sink->context;
  const tn_type *described = &p->fields->v[p->field].type;
  tn_type type = {TN_U8, 3, {3, sink->height, sink->width}};
  for (int d = 1; d < 3; d++)
    if (described->dims[d] >= 0 && described->dims[d] != type.dims[d])
      return tn_fail(
          p->sample, TN_EINVAL, "size",
          "%s: has %lld x %lld pixels, expected %lld x %lld like the others; set size = 0, and begin "
          "the transforms with resize([%lld, %lld])",
          sink->path, (long long)sink->width, (long long)sink->height, (long long)described->dims[2],
          (long long)described->dims[1], (long long)described->dims[1], (long long)described->dims[2]);
  sink->to = tn_sample_field(p->sample, p->field, &type);
  return sink->to != NULL ? TN_OK : TN_ENOMEM;
}

static int shard_picture_stopping(const image_sink *sink) {
  return tn_sample_stopping(((const shard_picture *)sink->context)->sample);
}

/* Decodes only the size where the sink has no planes. */
static tn_status shard_picture_decode(const void *handle, const shard_fields *fields, const shard_bytes *m,
                                      image_sink *sink) {
  sink->handle = handle;
  sink->path = m->where;
  sink->most_pixels = fields->most_pixels;
  sink->at_least = fields->at_least;
  sink->ignores_orientation = fields->ignores_orientation;
  return image_decode(sink, (const uint8_t *)m->bytes, m->n);
}

static tn_status shard_picture_read(tn_sample *s, const shard_fields *fields, int32_t i,
                                    const shard_bytes *m) {
  shard_picture picture = {s, fields, i};
  image_sink sink = {.planes = shard_picture_planes, .stopping = shard_picture_stopping, .context = &picture};
  return shard_picture_decode(s, fields, m, &sink);
}

/* ---- numbers ---- */

/* Whether a value of a sample has a shape that the field's description allows. */
static tn_status shard_check_shape(const void *handle, const shard_field *f, const shard_bytes *m,
                                   const tn_type *type) {
  const char *what = f->key[0] != '\0' ? f->key : f->name;
  if (type->rank != f->type.rank)
    return tn_fail(handle, TN_EINVAL, NULL, "%s: '%s' has %d dimensions, expected %d as in the first sample",
                   m->where, what, (int)type->rank, (int)f->type.rank);
  for (int32_t d = 0; d < type->rank; d++) {
    if (f->type.dims[d] < 0 || f->type.dims[d] == type->dims[d]) continue;
    return tn_fail(handle, TN_EINVAL, NULL,
                   "%s: '%s' has %lld numbers, expected %lld as in the first sample (dimension %d; "
                   "list(...) is for lengths that differ)",
                   m->where, what, (long long)type->dims[d], (long long)f->type.dims[d], (int)d);
  }
  return TN_OK;
}

static tn_status shard_numbers_read(tn_sample *s, const shard_field *f, int32_t i, const shard_bytes *m) {
  json_t *root;
  tn_type type;
  float *to;
  TN_TRY(shard_json_open(s, m, &root));
  tn_status status = shard_json_type(s, f, m, root, &type);
  if (status == TN_OK) status = shard_check_shape(s, f, m, &type);
  if (status == TN_OK) status = (to = tn_sample_field(s, i, &type)) != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = shard_json_numbers(s, f, m, root, &type, to);
  json_decref(root);
  return status;
}

static tn_status shard_numbers_measure(const void *handle, const shard_field *f, const shard_bytes *m,
                                       tn_type *type) {
  json_t *root;
  TN_TRY(shard_json_open(handle, m, &root));
  tn_status status = shard_json_type(handle, f, m, root, type);
  json_decref(root);
  return status;
}

static tn_status shard_array_measure(const void *handle, const shard_field *f, const shard_bytes *m,
                                     tn_type *type) {
  array a = {.rank = 0};
  TN_TRY(npy_find(handle, m->where, (const uint8_t *)m->bytes, m->n, &a));
  *type = (tn_type){element_dtype(&a.element, f->role), a.rank, {0}};
  for (int32_t d = 0; d < a.rank; d++) type->dims[d] = a.dims[d];
  return TN_OK;
}

static tn_status shard_array_read(tn_sample *s, const shard_field *f, int32_t i, const shard_bytes *m) {
  array a = {.rank = 0};
  tn_type type;
  double value;
  TN_TRY(shard_array_measure(s, f, m, &type));
  TN_TRY(shard_check_shape(s, f, m, &type));
  TN_TRY(npy_find(s, m->where, (const uint8_t *)m->bytes, m->n, &a));
  type.dtype = f->type.dtype;
  if (!element_converts(&a.element, type.dtype))
    return tn_fail(s, TN_EINVAL, NULL, "%s: has elements of type %s, expected %s as in the first sample",
                   m->where, element_name(&a.element), tn_dtype_name(type.dtype));
  void *to = tn_sample_field(s, i, &type);
  if (to == NULL) return TN_ENOMEM;
  if (element_read(&a.element, a.data, type.dtype, to, tn_type_count(&type), &value) < 0) return TN_OK;
  return tn_fail(s, TN_EINVAL, NULL, "%s: has the number %g, which %s cannot hold", m->where, value,
                 tn_dtype_name(type.dtype));
}

/* ---- texts ---- */

/* Numbers as a field: cut and filled up to the length, if there is one. `wide` are ids, otherwise bytes. */
static tn_status shard_text_write(tn_sample *s, const shard_fields *fields, int32_t i, const int32_t *ids,
                                  const char *bytes, int64_t n) {
  tn_type type = {TN_I32, 1, {fields->length > 0 ? fields->length : n}};
  int32_t *to = tn_sample_field(s, i, &type);
  if (to == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < type.dims[0]; k++)
    to[k] = k >= n ? (int32_t)fields->pad : ids != NULL ? ids[k] : (uint8_t)bytes[k];
  return TN_OK;
}

static tn_status shard_text_encode(tn_sample *s, const shard_fields *fields, int32_t i, const char *text,
                                   size_t n) {
  if (fields->v[i].kind == SHARD_TEXT) return shard_text_write(s, fields, i, NULL, text, (int64_t)n);
  tn_token_ids ids = {NULL, 0, 0};
  static const int32_t none;
  tn_status status = tn_tokenizer_encode(s, fields->tokenizer, text, n, TN_TOKENIZE_TEMPLATE, &ids);
  if (status == TN_OK)
    status = shard_text_write(s, fields, i, ids.v != NULL ? ids.v : &none, NULL, (int64_t)ids.n);
  tn_delete(s, ids.v);
  return status;
}

static tn_status shard_text_read(tn_sample *s, const shard_fields *fields, int32_t i, const shard_bytes *m) {
  const shard_field *f = &fields->v[i];
  json_t *root;
  if (!shard_field_is_json(f)) return shard_text_encode(s, fields, i, m->bytes, m->n);
  TN_TRY(shard_json_open(s, m, &root));
  const json_t *value = shard_json_find(f, root);
  tn_status status = json_is_string(value) ? shard_text_encode(s, fields, i, json_string_value(value),
                                                               json_string_length(value))
                                           : shard_json_fail(s, f, m, "a text");
  json_decref(root);
  return status;
}

/* ---- all kinds ---- */

int32_t shard_field_is_measured(const shard_field *f) {
  return f->kind == SHARD_IMAGE || f->kind == SHARD_NUMBERS || f->kind == SHARD_ARRAY;
}

tn_status shard_field_measure(const void *handle, const shard_fields *fields, int32_t i, const shard_bytes *m,
                              tn_type *type) {
  const shard_field *f = &fields->v[i];
  if (f->kind == SHARD_NUMBERS) return shard_numbers_measure(handle, f, m, type);
  if (f->kind == SHARD_ARRAY) return shard_array_measure(handle, f, m, type);
  image_sink sink = {0};
  tn_status status = shard_picture_decode(handle, fields, m, &sink);
  *type = (tn_type){TN_U8, 3, {3, sink.height, sink.width}};
  return status;
}

static tn_status shard_class_read(tn_sample *s, const shard_field *f, int32_t i, const shard_bytes *m) {
  int32_t *to = tn_sample_field(s, i, NULL);
  int64_t number;
  if (to == NULL) return TN_ENOMEM;
  TN_TRY(shard_field_class(s, f, m, &number));
  *to = (int32_t)number;
  return TN_OK;
}

tn_status shard_field_read(tn_sample *s, const shard_fields *fields, int32_t i, const shard_bytes *m) {
  const shard_field *f = &fields->v[i];
  switch (f->kind) {
  case SHARD_IMAGE: return shard_picture_read(s, fields, i, m);
  case SHARD_CLASS: return shard_class_read(s, f, i, m);
  case SHARD_NUMBERS: return shard_numbers_read(s, f, i, m);
  case SHARD_ARRAY: return shard_array_read(s, f, i, m);
  default: return shard_text_read(s, fields, i, m);
  }
}

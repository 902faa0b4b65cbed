/* plugins/sources/shards/shard_field.c: the values in members of samples. */
#include "plugins/sources/shards/shard_field.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "plugins/sources/image/image.h"

/* ---- numbers of JSON ---- */

/* The value that "a.b" names. */
static const json_t *shard_json_find(const json_t *root, const char *key) {
  char word[SHARD_ENDINGS];
  while (*key != '\0' && root != NULL) {
    size_t n = strcspn(key, ".");
    memcpy(word, key, n);
    word[n] = '\0';
    root = json_object_get(root, word);
    key += n + (key[n] == '.');
  }
  return root;
}

static int32_t shard_json_number(const json_t *value, double *number) {
  *number = json_is_true(value) ? 1 : json_number_value(value);
  return json_is_number(value) || json_is_boolean(value);
}

static tn_status shard_json_fail(const void *handle, const shard_field *f, const shard_bytes *m,
                                 const char *expected) {
  return tn_fail(handle, TN_EINVAL, NULL, "%s: has no '%s', expected %s there", m->where,
                 f->key[0] != '\0' ? f->key : "value", expected);
}

/* The caller gives the document back (json_decref). */
static tn_status shard_json_open(const void *handle, const shard_bytes *m, json_t **root) {
  json_error_t error;
  *root = json_loadb(m->bytes, m->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
  if (*root != NULL) return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL, "%s: damaged JSON at byte %d: %s", m->where, error.position,
                 error.text);
}

/* A number, or a list of numbers: `rank` and `count`. Writes them if `to` is not NULL. */
static tn_status shard_json_numbers(const void *handle, const shard_field *f, const shard_bytes *m,
                                    const json_t *root, tn_type *type, float *to) {
  static const char expected[] = "a number or a list of numbers";
  const json_t *value = shard_json_find(root, f->key);
  size_t n = json_is_array(value) ? json_array_size(value) : 1;
  tn_type found = {TN_F32, json_is_array(value), {(int64_t)n}};
  if (to != NULL && (found.rank != type->rank || (found.rank == 1 && found.dims[0] != type->dims[0])))
    return tn_fail(handle, TN_EINVAL, NULL, "%s: '%s' has %zu numbers, expected %lld as in the first sample",
                   m->where, f->key, n, type->rank == 0 ? 1LL : (long long)type->dims[0]);
  for (size_t i = 0; i < n; i++) {
    double number;
    if (!shard_json_number(found.rank == 1 ? json_array_get(value, i) : value, &number))
      return shard_json_fail(handle, f, m, expected);
    if (to != NULL) to[i] = (float)number;
  }
  *type = found;
  return n > 0 ? TN_OK : shard_json_fail(handle, f, m, expected);
}

static tn_status shard_field_numbers(const void *handle, const shard_field *f, const shard_bytes *m,
                                     tn_type *type, float *to) {
  json_t *root;
  TN_TRY(shard_json_open(handle, m, &root));
  tn_status status = shard_json_numbers(handle, f, m, root, type, to);
  json_decref(root);
  return status;
}

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

static int32_t shard_class_in_json(const shard_field *f, const json_t *root, int64_t *number) {
  const json_t *value = shard_json_find(root, f->key);
  *number = json_integer_value(value);
  return json_is_integer(value);
}

static int32_t shard_field_is_json(const shard_field *f) { return f->key[0] != '\0'; }

int32_t shard_field_peek_class(const shard_field *f, const shard_bytes *m, int64_t *number) {
  int32_t found;
  if (shard_field_is_json(f)) {
    json_t *root = json_loadb(m->bytes, m->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    found = shard_class_in_json(f, root, number);
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
  int32_t found = shard_class_in_json(f, root, number);
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

/* ---- all kinds ---- */

static tn_status shard_text_read(tn_sample *s, int32_t i, const shard_bytes *m) {
  tn_type type = {TN_I32, 1, {(int64_t)m->n}};
  int32_t *to = tn_sample_field(s, i, &type);
  if (to == NULL) return TN_ENOMEM;
  for (size_t k = 0; k < m->n; k++) to[k] = (uint8_t)m->bytes[k];
  return TN_OK;
}

tn_status shard_field_measure(const void *handle, const shard_fields *fields, int32_t i, const shard_bytes *m,
                              tn_type *type) {
  const shard_field *f = &fields->v[i];
  *type = (tn_type){TN_I32, f->kind == SHARD_TEXT, {-1}};
  if (f->kind == SHARD_NUMBERS) return shard_field_numbers(handle, f, m, type, NULL);
  if (f->kind != SHARD_IMAGE) return TN_OK;
  image_sink sink = {0};
  tn_status status = shard_picture_decode(handle, fields, m, &sink);
  *type = (tn_type){TN_U8, 3, {3, sink.height, sink.width}};
  return status;
}

tn_status shard_field_read(tn_sample *s, const shard_fields *fields, int32_t i, const shard_bytes *m) {
  const shard_field *f = &fields->v[i];
  int64_t number;
  if (f->kind == SHARD_IMAGE) return shard_picture_read(s, fields, i, m);
  if (f->kind == SHARD_TEXT) return shard_text_read(s, i, m);
  void *to = tn_sample_field(s, i, NULL);
  tn_type type = f->type;
  if (to == NULL) return TN_ENOMEM;
  if (f->kind == SHARD_NUMBERS) return shard_field_numbers(s, f, m, &type, to);
  TN_TRY(shard_field_class(s, f, m, &number));
  *(int32_t *)to = (int32_t)number;
  return TN_OK;
}

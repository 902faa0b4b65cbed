/* core/exec/device/device_file.c: the properties of a device as JSON. */
#include "core/exec/device/device_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"

enum { LARGEST_DEVICE_FILE = 1 << 20 };

/* ---- the members ---- */

enum { MEMBER_FLAG, MEMBER_INT32, MEMBER_INT64, MEMBER_REAL };

typedef struct device_member {
  const char *name;
  int32_t type;
  bool required;
  size_t offset;
} device_member;

#define MEMBER(name, type, required)                                                                         \
  { #name, type, required, offsetof(tn_device_properties, name) }

/* The numbers. Beside them are family, name, accepts, extension, count, host_bytes_per_s, matrix_flops_per_s and
 * details. */
static const device_member device_members[] = {MEMBER(host_addressable, MEMBER_FLAG, false),
                                               MEMBER(threads, MEMBER_INT32, false),
                                               MEMBER(arch, MEMBER_INT32, false),
                                               MEMBER(processors, MEMBER_INT32, false),
                                               MEMBER(memory_bytes, MEMBER_INT64, true),
                                               MEMBER(free_bytes, MEMBER_INT64, false),
                                               MEMBER(cache_bytes, MEMBER_INT64, false),
                                               MEMBER(bytes_per_s, MEMBER_REAL, true),
                                               MEMBER(link_bytes_per_s, MEMBER_REAL, false),
                                               MEMBER(vector_flops_per_s, MEMBER_REAL, true),
                                               MEMBER(launch_s, MEMBER_REAL, false)};
enum { N_DEVICE_MEMBERS = sizeof device_members / sizeof *device_members };

static const char *const other_members[] = {
    "family", "name", "accepts", "extension", "count", "host_bytes_per_s", "matrix_flops_per_s", "details"};
enum { N_OTHER_MEMBERS = sizeof other_members / sizeof *other_members };

static const device_member *device_file_find_member(const char *name) {
  for (int32_t i = 0; i < N_DEVICE_MEMBERS; i++)
    if (tn_text_equal(device_members[i].name, name)) return &device_members[i];
  return NULL;
}

/* ---- messages ---- */

/* The line of the first "key" in the file; 0: it is not there. */
static int32_t device_file_line(const tn_device_file *file, const char *key) {
  size_t length = strlen(key);
  int32_t line = 1;
  for (const char *c = file->content; *c != '\0'; c++) {
    line += *c == '\n';
    if (*c == '"' && strncmp(c + 1, key, length) == 0 && c[1 + length] == '"') return line;
  }
  return 0;
}

tn_status tn_device_file_fail(tn_env *env, const tn_device_file *file, const char *key, const char *format,
                              ...) {
  int32_t line = device_file_line(file, key);
  va_list list;
  va_start(list, format);
  tn_status status = tn_failv(env, TN_EINVAL, NULL, format, list);
  va_end(list);
  return line == 0 ? tn_wrap(env, status, "%s", file->path)
                   : tn_wrap(env, status, "%s:%d", file->path, (int)line);
}

static tn_status device_file_fail_unknown(tn_env *env, const tn_device_file *file, const char *key) {
  const char *names[N_DEVICE_MEMBERS + N_OTHER_MEMBERS];
  for (int32_t i = 0; i < N_DEVICE_MEMBERS; i++) names[i] = device_members[i].name;
  for (int32_t i = 0; i < N_OTHER_MEMBERS; i++) names[N_DEVICE_MEMBERS + i] = other_members[i];
  const char *nearest = tn_text_nearest(key, names, N_DEVICE_MEMBERS + N_OTHER_MEMBERS);
  return tn_device_file_fail(env, file, key, "a device has no property '%s'%s%s%s", key,
                             nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                             nearest != NULL ? "'?" : "; see `tenon doctor --device-json`");
}

static tn_status device_file_fail_type(tn_env *env, const tn_device_file *file, const char *key,
                                       const char *expected) {
  return tn_device_file_fail(env, file, key, "property '%s' is not %s", key, expected);
}

/* ---- reading ---- */

static tn_status device_file_read_text(tn_env *env, tn_arena *arena, const tn_device_file *file,
                                       const json_t *json, const char *key, const char **text) {
  const json_t *value = json_object_get(json, key);
  *text = NULL;
  if (value == NULL) return TN_OK;
  if (!json_is_string(value) || json_string_length(value) == 0)
    return device_file_fail_type(env, file, key, "a text");
  *text = tn_arena_strdup(arena, json_string_value(value));
  return *text != NULL ? TN_OK : TN_ENOMEM;
}

/* 151e9 is a whole number too. */
static tn_status device_file_read_whole(tn_env *env, const tn_device_file *file, const json_t *value,
                                        const char *key, int64_t most, int64_t *whole) {
  double number = json_number_value(value);
  if (!json_is_number(value) || !(number >= 0) || number > (double)most || number != floor(number))
    return device_file_fail_type(env, file, key, "a whole number from 0");
  *whole = json_is_integer(value) ? (int64_t)json_integer_value(value) : (int64_t)number;
  return TN_OK;
}

static tn_status device_file_read_real(tn_env *env, const tn_device_file *file, const json_t *value,
                                       const char *key, double *real) {
  *real = json_number_value(value);
  if (json_is_number(value) && *real > 0) return TN_OK;
  return device_file_fail_type(env, file, key, "a number above 0");
}

/* Sets `bytes` bytes of the properties, from the member's offset on. */
static void device_file_set(tn_device_file *file, const device_member *member, const void *value,
                            size_t bytes) {
  char all[sizeof file->properties];
  memcpy(all, &file->properties, sizeof all);
  memcpy(all + member->offset, value, bytes);
  memcpy(&file->properties, all, sizeof all);
}

static tn_status device_file_read_member(tn_env *env, tn_device_file *file, const json_t *value,
                                         const device_member *member) {
  int64_t whole = 0;
  double real = 0;
  if (member->type == MEMBER_FLAG) {
    if (!json_is_boolean(value)) return device_file_fail_type(env, file, member->name, "true or false");
    int32_t flag = json_is_true(value);
    device_file_set(file, member, &flag, sizeof flag);
  } else if (member->type == MEMBER_REAL) {
    TN_TRY(device_file_read_real(env, file, value, member->name, &real));
    device_file_set(file, member, &real, sizeof real);
  } else {
    bool small = member->type == MEMBER_INT32;
    int64_t most = small ? INT32_MAX : (int64_t)1 << 60;
    TN_TRY(device_file_read_whole(env, file, value, member->name, most, &whole));
    int32_t narrow = (int32_t)whole;
    if (small)
      device_file_set(file, member, &narrow, sizeof narrow);
    else
      device_file_set(file, member, &whole, sizeof whole);
  }
  return TN_OK;
}

static tn_status device_file_read_rates(tn_env *env, tn_device_file *file, json_t *rates) {
  const char *name;
  json_t *value;
  if (rates == NULL) return TN_OK;
  if (!json_is_object(rates))
    return device_file_fail_type(env, file, "matrix_flops_per_s", "an object of rates by dtype");
  json_object_foreach(rates, name, value) {
    int32_t dtype = TN_BOOL;
    while (dtype < TN_DTYPES && !tn_text_equal(name, tn_dtype_name(dtype))) dtype++;
    if (dtype == TN_DTYPES)
      return tn_device_file_fail(env, file, name,
                                 "property 'matrix_flops_per_s' names '%s', which is no dtype", name);
    TN_TRY(device_file_read_real(env, file, value, name, &file->properties.matrix_flops_per_s[dtype]));
  }
  return TN_OK;
}

static tn_status device_file_keep_text(tn_env *env, tn_arena *arena, tn_device_file *file,
                                       const json_t *text) {
  if (text == NULL) return TN_OK;
  if (!json_is_object(text)) return device_file_fail_type(env, file, "details", "an object");
  char *dump = json_dumps(text, JSON_COMPACT);
  file->properties.details = dump != NULL ? tn_arena_strdup(arena, dump) : NULL;
  free(dump);
  return file->properties.details != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status device_file_read_others(tn_env *env, tn_arena *arena, const json_t *json,
                                         tn_device_file *file) {
  const char *name = NULL;
  const json_t *count = json_object_get(json, "count");
  int64_t devices = 1;
  TN_TRY(device_file_read_text(env, arena, file, json, "family", &file->family));
  TN_TRY(device_file_read_text(env, arena, file, json, "accepts", &file->accepts));
  TN_TRY(device_file_read_text(env, arena, file, json, "extension", &file->extension));
  TN_TRY(device_file_read_text(env, arena, file, json, "name", &name));
  if (count != NULL) TN_TRY(device_file_read_whole(env, file, count, "count", INT32_MAX, &devices));
  const json_t *host = json_object_get(json, "host_bytes_per_s");
  if (host != NULL) TN_TRY(device_file_read_real(env, file, host, "host_bytes_per_s", &file->host_bytes_per_s));
  if (devices < 1) return device_file_fail_type(env, file, "count", "a whole number from 1");
  file->count = (int32_t)devices;
  if (name != NULL) snprintf(file->properties.name, sizeof file->properties.name, "%s", name);
  TN_TRY(device_file_read_rates(env, file, json_object_get(json, "matrix_flops_per_s")));
  return device_file_keep_text(env, arena, file, json_object_get(json, "details"));
}

static tn_status device_file_check_required(tn_env *env, const tn_device_file *file, const json_t *json) {
  static const char *const texts[] = {"family", "name"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (json_object_get(json, texts[i]) == NULL)
      return tn_failf(env, TN_EINVAL, "%s: property '%s' is missing", file->path, texts[i]);
  for (int32_t i = 0; i < N_DEVICE_MEMBERS; i++)
    if (device_members[i].required && json_object_get(json, device_members[i].name) == NULL)
      return tn_failf(env, TN_EINVAL, "%s: property '%s' is missing", file->path, device_members[i].name);
  return TN_OK;
}

static bool device_file_is_other(const char *key) {
  for (int32_t i = 0; i < N_OTHER_MEMBERS; i++)
    if (tn_text_equal(other_members[i], key)) return true;
  return false;
}

static tn_status device_file_fill(tn_env *env, tn_arena *arena, json_t *json, tn_device_file *file) {
  const char *key;
  json_t *value;
  if (!json_is_object(json))
    return tn_failf(env, TN_EINVAL, "%s: is not a JSON object with the properties of a device", file->path);
  json_object_foreach(json, key, value) {
    const device_member *member = device_file_find_member(key);
    if (member == NULL && !device_file_is_other(key)) return device_file_fail_unknown(env, file, key);
    if (member != NULL) TN_TRY(device_file_read_member(env, file, value, member));
  }
  TN_TRY(device_file_check_required(env, file, json));
  TN_TRY(device_file_read_others(env, arena, json, file));
  if (file->properties.threads == 0) file->properties.threads = 1;
  return TN_OK;
}

tn_status tn_device_file_read(tn_env *env, tn_arena *arena, const char *path, tn_device_file *file) {
  char *text = NULL;
  size_t count = 0;
  json_error_t error;
  *file = (tn_device_file){.path = path, .properties = {.struct_size = sizeof file->properties}};
  TN_TRY(tn_file_read(env, path, LARGEST_DEVICE_FILE, &text, &count));
  file->content = tn_arena_strdup(arena, text);
  json_t *json = json_loadb(text, count, JSON_REJECT_DUPLICATES, &error);
  tn_release(env, text);
  if (json == NULL) return tn_failf(env, TN_EINVAL, "%s:%d: %s", path, error.line, error.text);
  tn_status status = file->content != NULL ? device_file_fill(env, arena, json, file) : TN_ENOMEM;
  json_decref(json);
  return status;
}

/* ---- writing ---- */

static json_t *device_file_member_json(const tn_device_properties *p, const device_member *member) {
  const char *from = (const char *)p + member->offset;
  switch (member->type) {
  case MEMBER_FLAG: return json_boolean(*(const int32_t *)(const void *)from);
  case MEMBER_INT32: return json_integer(*(const int32_t *)(const void *)from);
  case MEMBER_INT64: return json_integer(*(const int64_t *)(const void *)from);
  default: return json_real(*(const double *)(const void *)from);
  }
}

static bool device_file_is_known(const json_t *value) {
  return !json_is_number(value) || json_number_value(value) > 0;
}

static json_t *device_file_rates_json(const tn_device_properties *p) {
  json_t *rates = json_object();
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++)
    if (p->matrix_flops_per_s[dtype] > 0)
      json_object_set_new(rates, tn_dtype_name(dtype), json_real(p->matrix_flops_per_s[dtype]));
  return rates;
}

/* Numbers that are unknown are left out. */
json_t *tn_device_file_json(const char *family, const char *accepts, int32_t count,
                            const tn_device_properties *p) {
  json_t *json = json_pack("{s:s, s:s, s:s*, s:i}", "family", family, "name", p->name, "accepts", accepts,
                           "count", (int)count);
  for (int32_t i = 0; i < N_DEVICE_MEMBERS; i++) {
    json_t *value = device_file_member_json(p, &device_members[i]);
    if (device_file_is_known(value))
      json_object_set_new(json, device_members[i].name, value);
    else
      json_decref(value);
  }
  json_object_set_new(json, "matrix_flops_per_s", device_file_rates_json(p));
  json_t *text = p->details != NULL ? json_loads(p->details, 0, NULL) : NULL;
  if (text != NULL) json_object_set_new(json, "details", text);
  return json;
}

/* core/run/result.c: results of runs as JSON text. */
#include "core/run/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text/text.h"

json_t *tn_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *tn_json_metrics(const tn_metric *metrics, int32_t n) {
  json_t *object = json_object();
  for (int32_t i = 0; i < n; i++)
    json_object_set_new(object, metrics[i].name, tn_json_real(metrics[i].value));
  return object;
}

/* Each byte that belongs to no character becomes U+FFFD. NULL: out of memory. */
static json_t *result_repair_text(const char *text, size_t n) {
  static const char replacement[] = "\xEF\xBF\xBD";
  char *repaired = malloc(3 * n + 1);
  size_t length = 0;
  for (size_t i = 0; repaired != NULL && i < n;) {
    size_t bytes = tn_text_character_bytes(text + i, n - i);
    memcpy(repaired + length, bytes > 0 ? text + i : replacement, bytes > 0 ? bytes : 3);
    length += bytes > 0 ? bytes : 3;
    i += bytes > 0 ? bytes : 1;
  }
  json_t *json = repaired != NULL ? json_stringn(repaired, length) : NULL;
  free(repaired);
  return json;
}

static json_t *result_text(const char *text, size_t n) {
  json_t *json = json_stringn(text, n);
  return json != NULL ? json : result_repair_text(text, n);
}

json_t *tn_json_text(const char *text) {
  return result_text(text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

json_t *tn_json_text_or_null(const char *text) { return text != NULL ? tn_json_text(text) : json_null(); }

json_t *tn_json_library(const tn_backend_library *l) {
  return json_pack("{s:s, s:s, s:o}", "name", l->name, "version", l->version, "path",
                   tn_json_text_or_null(l->path));
}

json_t *tn_json_lines(const char *text) {
  json_t *list = json_array();
  while (text != NULL && *text != '\0') {
    size_t n = strcspn(text, "\n");
    json_array_append_new(list, result_text(text, n));
    text += n + (text[n] == '\n');
  }
  return list;
}

tn_status tn_json_take(const void *handle, json_t *json, char **text) {
  char *dump = json ? json_dumps(json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(json);
  *text = dump ? tn_strdup(handle, dump) : NULL;
  free(dump);
  return *text ? TN_OK : tn_failf(handle, TN_ENOMEM, "no memory for the result");
}

static double result_mib(int64_t bytes) { return (double)bytes / 1048576.0; }

void tn_json_add_memory(tn_device *device, json_t *result) {
  tn_device_memory_use use;
  if (result == NULL || !tn_device_read_memory_use(device, &use)) return;
  json_object_set_new(result, "memory",
                      json_pack("{s:f, s:f, s:f, s:f, s:f}", "device_mib", result_mib(use.all), "others_mib",
                                result_mib(use.others), "allocated_mib", result_mib(use.allocated),
                                "libraries_mib", result_mib(use.libraries), "free_mib",
                                result_mib(use.free)));
}

json_t *tn_json_type(const tn_type *type) {
  char text[256];
  int n = snprintf(text, sizeof text, "%s[", tn_dtype_name(type->dtype));
  for (int32_t i = 0; i < type->rank && n < (int)sizeof text - 24; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", i ? ", " : "", (long long)type->dims[i]);
  snprintf(text + n, sizeof text - (size_t)n, "]");
  return json_string(text);
}

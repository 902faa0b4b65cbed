/* core/run/result.h: results of runs as JSON text. */
#pragma once

#include <jansson.h>

#include "core/run/run.h"

/* null where the number is not finite: JSON has neither infinities nor NaN. */
json_t *tn_json_real(double value);
/* {"loss": 0.1, "accuracy": 0.97} */
json_t *tn_json_metrics(const tn_metric *metrics, int32_t n);
/* A text from outside, such as a path: each byte that is not UTF-8 becomes U+FFFD; NULL: "". */
json_t *tn_json_text(const char *text);
/* "f32[3, 32, 32]" */
json_t *tn_json_type(const tn_type *type);
/* tn_json_text; NULL: null. */
json_t *tn_json_text_or_null(const char *text);
/* {"name", "version", "path"}; the path may be null. */
json_t *tn_json_library(const tn_backend_library *library);
/* The lines of a text, as tn_run_info.remarks, as a list; NULL: an empty one. */
json_t *tn_json_lines(const char *text);
/* Prints and releases the object; *text is the caller's (tn_string_free). A NULL object is a lack of memory.
 */
tn_status tn_json_take(const void *handle, json_t *json, char **text);
/* Adds "memory", the device's memory by its use in MiB, where the backend says it. */
void tn_json_add_memory(tn_device *device, json_t *result);

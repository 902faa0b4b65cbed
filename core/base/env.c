/* core/base/env.c: error records and log lines. Nothing here allocates, so that out of memory can be
 * reported like any other error. */
#include "core/base/env.h"

#include <stdio.h>
#include <string.h>

static tn_error_record *env_record(const void *handle) {
  return handle != NULL ? ((const tn_env *)handle)->record : NULL;
}

void tn_error_record_init_root(tn_env *env, tn_error_record *record, const tn_api *api) {
  memset(record, 0, sizeof(*record));
  env->api = api;
  env->record = record;
}

void tn_error_record_init(tn_env *env, tn_error_record *record, const tn_env *like) {
  tn_error_record_init_root(env, record, like->api);
  if (like->record == NULL) return;
  record->allocator = like->record->allocator;
  record->sink = like->record->sink;
}

/* Replaces control characters: a value from outside must neither break the line of a message nor send
 * control sequences to a terminal. */
static void env_make_one_line(char *text) {
  for (char *p = text; *p != '\0'; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = ' ';
}

/* Ends a truncated text with an ellipsis, cut between two UTF-8 characters. */
static void env_mark_cut(char *text, size_t capacity) {
  size_t n = capacity - 4;
  while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
  memcpy(text + n, "...", 4);
}

static void env_format_line(char *text, size_t capacity, const char *format, va_list args) {
  int n = vsnprintf(text, capacity, format, args);
  if (n < 0)
    snprintf(text, capacity, "%s", format);
  else if ((size_t)n >= capacity)
    env_mark_cut(text, capacity);
  env_make_one_line(text);
}

tn_status tn_failv(const void *handle, tn_status code, const char *option, const char *format, va_list args) {
  tn_error_record *record = env_record(handle);
  if (record == NULL) return code;
  /* Formats into a copy, because the arguments may point into the record's text. */
  char text[sizeof(record->text)], blamed[sizeof(record->option)];
  env_format_line(text, sizeof(text), format, args);
  snprintf(blamed, sizeof(blamed), "%s", option != NULL ? option : "");
  memcpy(record->text, text, strlen(text) + 1);
  memcpy(record->option, blamed, strlen(blamed) + 1);
  record->code = code;
  return code;
}

tn_status tn_failf(const void *handle, tn_status code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tn_failv(handle, code, NULL, format, args);
  va_end(args);
  return code;
}

tn_status tn_fail_lines(const void *handle, tn_status code, const char *const *lines, int32_t n,
                        int32_t most) {
  enum { REST = 64 }; /* "and 12 more mistakes" */
  tn_error_record *record = env_record(handle);
  if (record == NULL) return code;
  char text[sizeof(record->text)];
  size_t used = 0;
  int32_t told = 0;
  for (; told < n && told < most; told++) {
    size_t length = strlen(lines[told]), room = sizeof(text) - used - REST;
    if (told > 0 && length + 1 > room) break;
    if (length + 1 > room) length = room - 1;
    if (told > 0) text[used++] = '\n';
    memcpy(text + used, lines[told], length);
    used += length;
  }
  text[used] = '\0';
  if (told < n) snprintf(text + used, REST, "\nand %d more mistakes", (int)(n - told));
  memcpy(record->text, text, strlen(text) + 1);
  record->option[0] = '\0';
  record->code = code;
  return code;
}

tn_status tn_wrap(const void *handle, tn_status status, const char *format, ...) {
  tn_error_record *record = env_record(handle);
  if (record == NULL || status == TN_OK || status == TN_EOF) return status;
  char context[sizeof(record->text)], text[sizeof(record->text)];
  va_list args;
  va_start(args, format);
  env_format_line(context, sizeof(context), format, args);
  va_end(args);
  /* A callee that returned a code without a message leaves an older text, which does not apply. */
  int said = record->code == status && record->text[0] != '\0';
  int n = snprintf(text, sizeof(text), "%s: %s", context, said ? record->text : tn_status_name(status));
  if (n >= (int)sizeof(text)) env_mark_cut(text, sizeof(text));
  memcpy(record->text, text, strlen(text) + 1);
  if (!said) record->option[0] = '\0';
  record->code = status;
  return status;
}

tn_status tn_error_move(const void *to, const void *from) {
  tn_error_record *target = env_record(to), *source = env_record(from);
  if (source == NULL) return TN_OK;
  tn_status code = source->code;
  if (target == NULL || target == source) return code;
  target->code = code;
  memcpy(target->option, source->option, sizeof(target->option));
  memcpy(target->text, source->text, sizeof(target->text));
  tn_error_clear(from);
  return code;
}

void tn_error_clear(const void *handle) {
  tn_error_record *record = env_record(handle);
  if (record == NULL) return;
  record->code = TN_OK;
  record->option[0] = record->text[0] = '\0';
}

const char *tn_error_text(const void *handle) {
  const tn_error_record *record = env_record(handle);
  return record != NULL ? record->text : "";
}

const char *tn_status_name(tn_status status) {
  static const char *const names[] = {
      [TN_OK] = "ok",
      [TN_EOF] = "end",
      [TN_EINVAL] = "invalid",
      [TN_EIO] = "input or output failed",
      [TN_EUNSUPPORTED] = "unsupported",
      [TN_EUNAVAILABLE] = "unavailable",
      [TN_ENOMEM] = "out of memory",
      [TN_EDEVICE] = "device failed",
      [TN_EABI] = "incompatible plugin",
      [TN_ESTOPPED] = "stopped",
      [TN_ENONFINITE] = "not finite",
      [TN_ECOMM] = "communication failed",
      [TN_EINTERNAL] = "internal fault",
  };
  int32_t count = (int32_t)(sizeof(names) / sizeof(names[0]));
  return status >= 0 && status < count ? names[status] : "unknown status";
}

void tn_logf(const void *handle, int32_t level, const char *format, ...) {
  const tn_error_record *record = env_record(handle);
  if (record == NULL || record->sink.write == NULL || level > record->sink.level) return;
  char line[2048];
  va_list args;
  va_start(args, format);
  env_format_line(line, sizeof(line), format, args);
  va_end(args);
  record->sink.write(record->sink.context, level, line);
}

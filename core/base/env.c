/* core/base/env.c: error records and log lines. Nothing here allocates, so that out of memory can be
 * reported like any other error. */
#include "core/base/env.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tenon/context.h"

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
  record->stop = like->record->stop;
  record->parts = like->record->parts;
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
  tn_text_make_plain(text); /* a value from outside must not break the line of a message either */
}

/* Whether the text has the word, which may stand in quotes or brackets. */
static bool env_names_word(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
    char before = at > text ? at[-1] : ' ', after = at[n];
    if (!isalnum((unsigned char)before) && before != '_' && !isalnum((unsigned char)after) && after != '_')
      return true;
  }
  return false;
}

void tn_error_name_option(const void *handle) {
  tn_error_record *record = env_record(handle);
  if (record == NULL || record->option[0] == '\0' || env_names_word(record->text, record->option)) return;
  size_t n = strlen(record->option), length = strlen(record->text), room = sizeof(record->text) - 1;
  size_t kept = n + 2 + length < room ? length : room - n - 2;
  memmove(record->text + n + 2, record->text, kept);
  record->text[n + 2 + kept] = '\0';
  memcpy(record->text, record->option, n);
  memcpy(record->text + n, ": ", 2);
  if (kept < length) env_mark_cut(record->text, sizeof(record->text));
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

/* The text behind "CONTEXT: ", where it has that context already, as an older text of the same place has;
 * else the whole text. */
static const char *env_behind_context(const char *text, const char *context) {
  size_t n = strlen(context);
  if (n == 0) return text; /* it would be found behind the end as well */
  for (const char *at = strstr(text, context); at != NULL; at = strstr(at + 1, context))
    if ((at == text || (at - text >= 2 && memcmp(at - 2, ": ", 2) == 0)) && strncmp(at + n, ": ", 2) == 0)
      return at + n + 2;
  return text;
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
  bool said = record->code == status && record->text[0] != '\0';
  int n = said ? snprintf(text, sizeof(text), "%s: %s", context, env_behind_context(record->text, context))
               : snprintf(text, sizeof(text), "%s: %s", context, tn_status_unsaid(status));
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

#define TN_UNSAID "failed without a message: "

/* One text, so that neither function formats: the name is behind TN_UNSAID. */
const char *tn_status_unsaid(tn_status status) {
  static const char *const texts[] = {
      [TN_OK] = TN_UNSAID "ok",
      [TN_EOF] = TN_UNSAID "end",
      [TN_EINVAL] = TN_UNSAID "invalid",
      [TN_EIO] = TN_UNSAID "input or output failed",
      [TN_EUNSUPPORTED] = TN_UNSAID "unsupported",
      [TN_EUNAVAILABLE] = TN_UNSAID "unavailable",
      [TN_ENOMEM] = TN_UNSAID "out of memory",
      [TN_EDEVICE] = TN_UNSAID "device failed",
      [TN_EABI] = TN_UNSAID "incompatible plugin",
      [TN_ESTOPPED] = TN_UNSAID "stopped",
      [TN_ENONFINITE] = TN_UNSAID "not finite",
      [TN_ECOMM] = TN_UNSAID "communication failed",
      [TN_EINTERNAL] = TN_UNSAID "internal fault",
  };
  int32_t count = (int32_t)(sizeof(texts) / sizeof(texts[0]));
  const char *text = status >= 0 && status < count ? texts[status] : TN_UNSAID "unknown status";
  return status == TN_ENOMEM ? text + sizeof TN_UNSAID - 1 : text; /* this code says it all */
}

const char *tn_status_name(tn_status status) {
  const char *text = tn_status_unsaid(status);
  return status == TN_ENOMEM ? text : text + sizeof TN_UNSAID - 1;
}

bool tn_stop_asked(const void *handle) {
  const tn_error_record *record = env_record(handle);
  return record != NULL && record->stop != NULL &&
         atomic_load_explicit(record->stop, memory_order_relaxed) != 0;
}

tn_status tn_check_stop(const void *handle) {
  return tn_stop_asked(handle) ? tn_failf(handle, TN_ESTOPPED, "stopped; nothing was saved") : TN_OK;
}

tn_status tn_read_struct(const void *handle, const char *name, const void *given, size_t least, void *full,
                         size_t size) {
  uint32_t room = 0;
  memset(full, 0, size);
  if (given == NULL) return TN_OK;
  memcpy(&room, given, sizeof room);
  if (room < least)
    return tn_failf(handle, TN_EINVAL, "%s.struct_size is %u; set it to sizeof(%s)", name, room, name);
  memcpy(full, given, room < size ? room : size);
  return TN_OK;
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

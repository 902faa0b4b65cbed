/* core/config/ini/lines.c: splits INI text into headers and keys. Constructs that inih 55 would misread
 * silently are resolved or rejected here, where the line number is known: comments (inih keeps them on
 * continuation lines), text after ']', indented headers, long names, control characters. */
#include "core/config/ini/lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

tn_ini_lines tn_ini_lines_of(const void *handle, tn_arena *arena, tn_ini_size *size, const char *file,
                             const char *text, size_t count) {
  tn_ini_lines lines = {
      .handle = handle, .arena = arena, .file = file, .at = text, .end = text + count, .size = size};
  if (count >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) lines.at += 3; /* a byte order mark */
  return lines;
}

tn_status tn_ini_check_limit(const void *handle, const char *file, int32_t line, int64_t count, int64_t most,
                             const char *what) {
  if (count <= most) return TN_OK;
  return tn_failf(handle, TN_EINVAL,
                  "%s:%d: the configuration has more than %lld %s, counted over all files that it includes, "
                  "expected at most %lld; include each file once, or make the configuration smaller",
                  file, line, (long long)most, what, (long long)most);
}

/* Fails with file and line of the line last read in front. */
static tn_status ini_lines_fail(const tn_ini_lines *lines, const char *format, ...) TN_PRINTF(2, 3);
static tn_status ini_lines_fail(const tn_ini_lines *lines, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tn_failv(lines->handle, TN_EINVAL, NULL, format, args);
  va_end(args);
  return tn_wrap(lines->handle, TN_EINVAL, "%s:%d", lines->file, lines->line);
}

static tn_status ini_lines_check_bytes(const tn_ini_lines *lines, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == 0) return ini_lines_fail(lines, "a zero byte in column %zu, expected UTF-8 text", i + 1);
    if (c == '\r')
      return ini_lines_fail(lines, "a carriage return in column %zu, expected lines that end in LF or CR LF",
                            i + 1);
    if ((c < 0x20 && c != '\t') || c == 0x7f)
      return ini_lines_fail(lines, "the control character 0x%02x in column %zu, expected text", c, i + 1);
  }
  return TN_OK;
}

/* The position of a comment: ';' or '#' at the start of the line or after a blank. n if the line has no
 * comment. */
static size_t ini_lines_before_comment(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if ((text[i] == ';' || text[i] == '#') && (i == 0 || tn_ini_is_blank(text[i - 1]))) return i;
  return n;
}

/* Reads one line into the arena, without line end, comment and trailing blanks. */
static tn_status ini_lines_take(tn_ini_lines *lines, char **line) {
  const char *text = lines->at, *newline = memchr(text, '\n', (size_t)(lines->end - text));
  size_t n = (size_t)((newline != NULL ? newline : lines->end) - text);
  lines->at = newline != NULL ? newline + 1 : lines->end;
  lines->line++;
  TN_TRY(tn_ini_check_limit(lines->handle, lines->file, lines->line, ++lines->size->lines, TN_INI_MOST_LINES,
                            "lines"));
  if (n > 0 && text[n - 1] == '\r') n--;
  TN_TRY(ini_lines_check_bytes(lines, text, n));
  n = ini_lines_before_comment(text, n);
  while (n > 0 && tn_ini_is_blank(text[n - 1])) n--;
  *line = tn_arena_alloc(lines->arena, n + 1);
  if (*line == NULL) return TN_ENOMEM;
  memcpy(*line, text, n);
  return TN_OK;
}

/* Appends the value of the variable "${NAME}" at *p and advances *p past it. */
static tn_status ini_lines_expand_variable(const tn_ini_lines *lines, const char **p, tn_text *text) {
  size_t n = 2;
  while (isalnum((unsigned char)(*p)[n]) || (*p)[n] == '_') n++;
  if (n == 2 || (*p)[n] != '}' || isdigit((unsigned char)(*p)[2]))
    return ini_lines_fail(lines, "'%s' is not a variable, expected ${NAME}, or $$ for a dollar", *p);
  char *name = tn_arena_copy(lines->arena, *p + 2, n - 1);
  if (name == NULL) return TN_ENOMEM;
  name[n - 2] = '\0';
  const char *value = getenv(name);
  if (value == NULL)
    return ini_lines_fail(lines, "${%s} is not set in the environment; set it, or write the value itself",
                          name);
  tn_text_add(text, value);
  *p += n + 1;
  lines->size->bytes += (int64_t)strlen(value);
  return tn_ini_check_limit(lines->handle, lines->file, lines->line, lines->size->bytes, TN_INI_MOST_BYTES,
                            "bytes");
}

static tn_status ini_lines_expand_into(const tn_ini_lines *lines, const char *p, tn_text *text) {
  while (*p != '\0') {
    size_t plain = strcspn(p, "$");
    tn_text_addn(text, p, plain);
    p += plain;
    if (p[0] == '$' && p[1] == '$') {
      tn_text_addn(text, "$", 1);
      p += 2;
    } else if (p[0] == '$' && p[1] == '{') {
      TN_TRY(ini_lines_expand_variable(lines, &p, text));
    } else if (p[0] == '$') {
      return ini_lines_fail(lines, "'%s' is not a variable, expected ${NAME}, or $$ for a dollar", p);
    }
  }
  return TN_OK;
}

/* Expands the variables in one line of a value. */
static tn_status ini_lines_expand(const tn_ini_lines *lines, const char *line, bool alone,
                                  const char **expanded) {
  *expanded = line;
  if (strchr(line, '$') == NULL) return TN_OK;
  tn_text text = tn_text_new(lines->handle);
  tn_status status = ini_lines_expand_into(lines, line, &text);
  if (status == TN_OK) {
    tn_text_addn(&text, "", 0);
    *expanded = text.failed ? NULL : tn_arena_strdup(lines->arena, text.v);
    if (*expanded == NULL) status = TN_ENOMEM;
  }
  tn_text_free(&text);
  if (status != TN_OK) return status;
  const char *flaw = tn_ini_line_flaw(*expanded, alone);
  return flaw == NULL ? TN_OK : ini_lines_fail(lines, "the value becomes '%s', but %s", *expanded, flaw);
}

static tn_status ini_lines_read_header(tn_ini_lines *lines, char *line, tn_ini_entry *entry) {
  char *close = strchr(line, ']');
  if (close == NULL) return ini_lines_fail(lines, "'%s' has no ']', expected a header such as [run]", line);
  const char *rest = close + 1 + strspn(close + 1, " \t");
  if (*rest != '\0')
    return ini_lines_fail(lines, "'%s' after the header, expected nothing or a comment", rest);
  *close = '\0';
  const char *where = tn_arena_printf(lines->arena, "%s:%d", lines->file, lines->line);
  if (where == NULL) return TN_ENOMEM;
  entry->kind = TN_INI_SECTION;
  entry->line = lines->line;
  return tn_ini_section_name(lines->handle, lines->arena, where, line + 1, &entry->name);
}

static tn_status ini_lines_add(tn_ini_lines *lines, const char *line, bool alone, tn_value_lines *value) {
  const char *expanded;
  TN_TRY(ini_lines_expand(lines, line, alone, &expanded));
  return tn_value_lines_add(lines->handle, value, expanded, lines->line);
}

/* Reads the continuation lines of a key: indented lines, possibly with blank lines between them. */
static tn_status ini_lines_continue_value(tn_ini_lines *lines, const char *key, tn_value_lines *value) {
  while (lines->at < lines->end) {
    tn_ini_lines before = *lines;
    char *line;
    TN_TRY(ini_lines_take(lines, &line));
    if (*line == '\0') continue;
    if (!tn_ini_is_blank(*line)) {
      *lines = before; /* this line starts the next entry */
      lines->size->lines--;
      return TN_OK;
    }
    const char *flaw = tn_ini_line_flaw(line, true);
    if (flaw != NULL)
      return ini_lines_fail(
          lines, "'%s' is indented and so continues the key '%s', but %s; headers begin in column 1",
          tn_text_trim(line), key, flaw);
    TN_TRY(ini_lines_add(lines, line, true, value));
  }
  return TN_OK;
}

static tn_status ini_lines_read_value(tn_ini_lines *lines, const char *first, tn_value_lines *value,
                                      tn_ini_entry *entry) {
  TN_TRY(ini_lines_add(lines, first + strspn(first, " \t"), false, value));
  TN_TRY(ini_lines_continue_value(lines, entry->name, value));
  /* tn_ini_print writes the first of several lines on a line of its own below the key. */
  const char *flaw = value->text.n > 1 ? tn_ini_line_flaw(value->text.v[0], true) : NULL;
  if (flaw != NULL)
    return ini_lines_fail(lines, "the value of '%s' begins with '%s', but %s", entry->name, value->text.v[0],
                          flaw);
  return tn_value_lines_join(lines->handle, lines->arena, value, entry);
}

static tn_status ini_lines_read_key(tn_ini_lines *lines, char *line, tn_ini_entry *entry) {
  size_t n = strcspn(line, "=:");
  if (line[n] == ':')
    return ini_lines_fail(
        lines, "'%s' has ':' where '=' was expected; lines of a model are indented below their key", line);
  if (line[n] == '\0') return ini_lines_fail(lines, "'%s' is neither '[section]' nor 'key = value'", line);
  line[n] = '\0';
  entry->kind = TN_INI_KEY;
  entry->line = lines->line;
  entry->name = tn_text_trim(line);
  const char *where = tn_arena_printf(lines->arena, "%s:%d", lines->file, lines->line);
  if (where == NULL) return TN_ENOMEM;
  TN_TRY(tn_ini_key_name(lines->handle, where, entry->name));
  tn_value_lines value = {{0}, {0}};
  tn_status status = ini_lines_read_value(lines, line + n + 1, &value, entry);
  tn_value_lines_free(lines->handle, &value);
  return status;
}

tn_status tn_ini_lines_next(tn_ini_lines *lines, tn_ini_entry *entry) {
  *entry = (tn_ini_entry){.kind = TN_INI_END};
  while (lines->at < lines->end) {
    char *line;
    TN_TRY(ini_lines_take(lines, &line));
    if (*line == '\0') continue;
    if (tn_ini_is_blank(*line))
      return ini_lines_fail(lines, "'%s' is indented, but there is no key above that it could continue; %s",
                            tn_text_trim(line), "headers and keys begin in column 1");
    TN_TRY(tn_ini_check_limit(lines->handle, lines->file, lines->line, ++lines->size->names,
                              TN_INI_MOST_NAMES, "sections and keys"));
    if (*line != '[') return ini_lines_read_key(lines, line, entry);
    lines->skipping = true;
    tn_status status = ini_lines_read_header(lines, line, entry);
    lines->skipping = status != TN_OK;
    return status;
  }
  return TN_OK;
}

void tn_ini_lines_skip_value(tn_ini_lines *lines) {
  while (lines->at < lines->end && strchr(" \t\r\n", *lines->at) != NULL && *lines->at != '\0') {
    const char *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    lines->at = newline != NULL ? newline + 1 : lines->end;
    lines->line++;
  }
}

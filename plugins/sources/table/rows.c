/* plugins/sources/table/rows.c: files into columns. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugins/sources/table/csv.h"

enum { FIRST_ROWS = 1024, SHOWN_BYTES = 60 };

/* ---- messages ---- */

const table_part *table_part_of(const table *t, int64_t row) {
  const table_part *part = t->parts;
  for (int32_t i = 1; i < t->n_parts && t->parts[i].first <= row; i++) part = &t->parts[i];
  return part;
}

/* The message names the cell; a long value is cut between two characters. */
tn_status table_fail_cell(const table *t, const void *handle, const char *column, int64_t row,
                          const char *value, size_t n, const char *format, ...) {
  char text[512];
  va_list args;
  size_t shown = n < SHOWN_BYTES ? n : SHOWN_BYTES;
  while (shown < n && shown > 0 && ((uint8_t)value[shown] & 0xC0) == 0x80) shown--;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return tn_fail(handle, TN_EINVAL, NULL, "%s:%u: column '%s', value '%.*s%s': %s",
                 table_part_of(t, row)->path, (unsigned)t->lines[row], column, (int)shown, value,
                 shown < n ? "..." : "", text);
}

/* ---- columns ---- */

table_column *table_column_add(table *t, const char *name, int32_t form) {
  for (int32_t i = 0; i < t->n_columns; i++)
    if (t->columns[i]->form == form && strcmp(t->columns[i]->name, name) == 0) return t->columns[i];
  if (t->n_columns == t->column_room) {
    int32_t room = t->column_room > 0 ? 2 * t->column_room : 16;
    table_column **columns = table_memory_take(&t->memory, (size_t)room * sizeof(*columns));
    if (columns == NULL) return NULL;
    if (t->n_columns > 0) memcpy(columns, t->columns, (size_t)t->n_columns * sizeof(*columns));
    t->columns = columns;
    t->column_room = room;
  }
  table_column *c = table_memory_take(&t->memory, sizeof(*c));
  char *copy = table_memory_copy(&t->memory, name, strlen(name));
  if (c == NULL || copy == NULL) return NULL;
  *c = (table_column){.name = copy, .form = form, .cell = -1};
  t->columns[t->n_columns++] = c;
  return c;
}

/* The array of a column in its form, and the bytes of an element. */
static void **rows_array(table_column *c, size_t *bytes) {
  *bytes = c->form == TABLE_WORDS   ? sizeof(*c->words)
           : c->form == TABLE_TEXTS ? sizeof(*c->texts)
                                    : sizeof(double);
  return c->form == TABLE_WORDS   ? (void **)&c->words
         : c->form == TABLE_TEXTS ? (void **)&c->texts
                                  : (void **)&c->numbers;
}

static tn_status rows_grow_array(const table *t, void **array, size_t bytes, int64_t room) {
  void *larger = tn_new(&t->env, (size_t)room * bytes);
  if (larger == NULL) return TN_ENOMEM;
  if (t->rows > 0) memcpy(larger, *array, (size_t)t->rows * bytes);
  tn_delete(&t->env, *array);
  *array = larger;
  return TN_OK;
}

static tn_status rows_set_room(table *t, int64_t room) {
  if (room > INT32_MAX)
    return tn_fail(&t->env, TN_EINVAL, NULL, "%s: has more than %d rows", t->parts[t->n_parts - 1].path,
                   INT32_MAX);
  for (int32_t i = 0; i < t->n_columns; i++) {
    size_t bytes;
    void **array = rows_array(t->columns[i], &bytes);
    TN_TRY(rows_grow_array(t, array, bytes, room));
  }
  void *lines = t->lines;
  tn_status status = rows_grow_array(t, &lines, sizeof(*t->lines), room);
  t->lines = lines;
  if (status == TN_OK) t->room = room;
  return status;
}

tn_status table_rows_grow(table *t) {
  return t->rows < t->room ? TN_OK : rows_set_room(t, t->room > 0 ? t->room + t->room / 2 : FIRST_ROWS);
}

tn_status table_rows_reserve(table *t, double rows) {
  double all = (double)t->rows + rows;
  if (all < (double)t->room) all = (double)t->room;
  if (all < FIRST_ROWS) all = FIRST_ROWS;
  return rows_set_room(t, all < (double)INT32_MAX ? (int64_t)all : INT32_MAX);
}

/* ---- cells ---- */

/* The length of the UTF-8 sequence at the beginning of n bytes (RFC 3629); 0: it is damaged. */
static size_t rows_character(const uint8_t *b, size_t n) {
  size_t length = b[0] < 0x80 ? 1 : b[0] < 0xC2 ? 0 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : b[0] < 0xF5 ? 4 : 0;
  if (length > n) return 0;
  for (size_t i = 1; i < length; i++)
    if ((b[i] & 0xC0) != 0x80) return 0;
  if (length < 3) return length;
  bool too_long = (b[0] == 0xE0 && b[1] < 0xA0) || (b[0] == 0xF0 && b[1] < 0x90);
  bool beyond = (b[0] == 0xED && b[1] > 0x9F) || (b[0] == 0xF4 && b[1] > 0x8F); /* surrogates, U+110000 */
  return too_long || beyond ? 0 : length;
}

static bool rows_is_text(const char *text, size_t n) {
  for (size_t at = 0, length; at < n; at += length) {
    length = rows_character((const uint8_t *)text + at, n - at);
    if (length == 0) return false;
  }
  return true;
}

/* pandas writes booleans as True and False, JSON has true and false. */
static bool rows_is_boolean(const char *text, size_t n, double *value) {
  *value = n == 4;
  return (n == 4 && (memcmp(text, "true", 4) == 0 || memcmp(text, "True", 4) == 0)) ||
         (n == 5 && (memcmp(text, "false", 5) == 0 || memcmp(text, "False", 5) == 0));
}

bool table_cell_number(const table *t, const char *text, size_t n, double *value) {
  enum { LONGEST = 400 };
  char copy[LONGEST];
  if (t->decimal == DECIMAL_POINT) return table_to_number(text, n, value);
  if (n == 0 || n > LONGEST || memchr(text, '.', n) != NULL) return false;
  for (size_t i = 0; i < n; i++) copy[i] = text[i] == ',' ? '.' : text[i];
  return table_to_number(copy, n, value);
}

static tn_status rows_store_number(table *t, table_column *c, const char *text, size_t n) {
  double *to = &c->numbers[t->rows];
  if (c->form == TABLE_NUMBERS && rows_is_boolean(text, n, to)) return TN_OK;
  if (c->form == TABLE_NUMBERS ? table_cell_number(t, text, n, to) : table_to_time(text, n, to)) return TN_OK;
  *to = NAN;
  if (table_is_missing(text, n)) return TN_OK;
  return table_fail_cell(
      t, &t->env, c->name, t->rows, text, n,
      c->form == TABLE_NUMBERS
          ? "is no number; expected one, or nothing for a missing value (a column of words is "
            "a category)"
          : "is no time; expected 2024-05-31, 2024-05-31T23:59:00Z, or seconds since 1970");
}

static tn_status rows_fail_encoding(const table *t, const table_column *c) {
  return table_fail_cell(t, &t->env, c->name, t->rows, "?", 1,
                         "is not UTF-8; convert the file, for example: iconv -f ISO-8859-1 -t UTF-8");
}

static tn_status rows_store_word(table *t, table_column *c, const char *text, size_t n) {
  int32_t word = table_vocabulary_find(&c->vocabulary, text, n);
  if (word == TABLE_ABSENT && !table_is_missing(text, n)) {
    if (!rows_is_text(text, n)) return rows_fail_encoding(t, c);
    word = table_vocabulary_add(&t->memory, &c->vocabulary, text, n);
  }
  c->words[t->rows] = word;
  return word != TABLE_FAILED ? TN_OK : TN_ENOMEM;
}

static tn_status rows_store_text(table *t, table_column *c, const char *text, size_t n) {
  table_word *to = &c->texts[t->rows];
  *to = (table_word){NULL, 0};
  if (table_is_missing(text, n)) return TN_OK;
  if (!rows_is_text(text, n)) return rows_fail_encoding(t, c);
  *to = (table_word){table_memory_copy(&t->memory, text, n), n};
  return to->text != NULL ? TN_OK : TN_ENOMEM;
}

tn_status table_column_store(table *t, table_column *c, const char *text, size_t n) {
  if (c->form == TABLE_WORDS) return rows_store_word(t, c, text, n);
  return c->form == TABLE_TEXTS ? rows_store_text(t, c, text, n) : rows_store_number(t, c, text, n);
}

void table_rows_keep(table *t, const int64_t *rows, int64_t n) {
  for (int32_t i = 0; i < t->n_columns; i++) {
    table_column *c = t->columns[i];
    for (int64_t k = 0; k < n; k++) {
      if (c->form == TABLE_WORDS)
        c->words[k] = c->words[rows[k]];
      else if (c->form == TABLE_TEXTS)
        c->texts[k] = c->texts[rows[k]];
      else
        c->numbers[k] = c->numbers[rows[k]];
    }
  }
  for (int64_t k = 0; k < n; k++) t->lines[k] = t->lines[rows[k]];
  t->rows = n;
}

tn_status table_rows_order(table *t, const int64_t *order) {
  for (int32_t i = 0; i <= t->n_columns; i++) {
    size_t bytes = sizeof(*t->lines);
    void *lines = t->lines, **array = i < t->n_columns ? rows_array(t->columns[i], &bytes) : &lines;
    char *ordered = tn_new(&t->env, (size_t)t->rows * bytes + 1);
    if (ordered == NULL) return TN_ENOMEM;
    for (int64_t k = 0; k < t->rows; k++)
      memcpy(ordered + (size_t)k * bytes, (const char *)*array + (size_t)order[k] * bytes, bytes);
    tn_delete(&t->env, *array);
    *array = ordered;
    if (i == t->n_columns) t->lines = lines;
  }
  t->room = t->rows;
  return TN_OK;
}

void table_column_release(table *t, table_column *c) {
  size_t bytes;
  void **array = rows_array(c, &bytes);
  if (--c->users > 0) return;
  tn_delete(&t->env, *array);
  *array = NULL;
}

void table_rows_free(table *t) {
  for (int32_t i = 0; i < t->n_columns; i++) {
    tn_delete(&t->env, t->columns[i]->numbers);
    tn_delete(&t->env, t->columns[i]->words);
    tn_delete(&t->env, t->columns[i]->texts);
    table_vocabulary_free(&t->env, &t->columns[i]->vocabulary);
  }
  tn_delete(&t->env, t->lines);
  t->lines = NULL;
  t->n_columns = 0;
  t->rows = t->room = 0;
  t->n_parts = 0;
}

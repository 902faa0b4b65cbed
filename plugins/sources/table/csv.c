/* plugins/sources/table/csv.c: one pass over the bytes finds rows and cells and stores the cells. A row that
 * the block cuts is read again with the next block; what it has stored is overwritten. */
#include "plugins/sources/table/csv.h"

#include <string.h>

enum { ROW_READ, ROW_END, ROW_CUT, ROW_FAILED };
enum { DETECT_ROWS = 32, SURVEY_ROWS = 1000 };

static int csv_fail(table_csv *csv, const char *what) {
  csv->status = TN_EINVAL;
  if (!csv->detecting)
    tn_fail(&csv->t->env, TN_EINVAL, NULL, "%s:%lld: %s", csv->in->path, (long long)csv->line, what);
  return ROW_FAILED;
}

/* ---- cells ---- */

static tn_status csv_take(table_csv *csv, const char *text, size_t n) {
  int32_t i = csv->cells;
  if (csv->row != NULL && i < csv->room) {
    char *copy = table_memory_copy(&csv->t->memory, text, n);
    csv->row[i] = (table_word){copy, n};
    return copy != NULL ? TN_OK : TN_ENOMEM;
  }
  if (csv->columns == NULL || i >= csv->wanted) return TN_OK;
  for (table_column *c = csv->columns[i]; c != NULL; c = c->next)
    TN_TRY(table_column_store(csv->t, c, text, n));
  return TN_OK;
}

static tn_status csv_hold(table_csv *csv, size_t n) {
  if (n <= csv->unquoted_size) return TN_OK;
  tn_delete(&csv->t->env, csv->unquoted);
  csv->unquoted = tn_new(&csv->t->env, 2 * n);
  csv->unquoted_size = csv->unquoted != NULL ? 2 * n : 0;
  return csv->unquoted != NULL ? TN_OK : TN_ENOMEM;
}

/* "a ""b""" becomes a "b". */
static tn_status csv_take_doubled(table_csv *csv, const char *text, size_t n) {
  size_t length = 0;
  TN_TRY(csv_hold(csv, n));
  for (size_t i = 0; i < n; i++) {
    csv->unquoted[length++] = text[i];
    i += text[i] == '"'; /* the second one of two */
  }
  return csv_take(csv, csv->unquoted, length);
}

/* The cell from a quote on. ROW_READ: *at is behind the closing quote. */
static int csv_quoted(table_csv *csv, const char **at, int64_t *lines) {
  const char *end = csv->in->bytes + csv->in->end, *first = *at + 1, *close = first;
  bool doubled = false;
  for (;; close += 2, doubled = true) {
    close = memchr(close, '"', (size_t)(end - close));
    if (close == NULL && csv->in->ended) return csv_fail(csv, "a quote is not closed");
    if (close == NULL || (close + 1 == end && !csv->in->ended)) return ROW_CUT;
    if (close[1] != '"') break;
  }
  size_t n = (size_t)(close - first);
  for (const char *c = first; (c = memchr(c, '\n', (size_t)(close - c))) != NULL; c++) ++*lines;
  if (memchr(first, 0, n) != NULL) return csv_fail(csv, "has a NUL byte");
  *at = close + 1;
  if (!csv->stops[(uint8_t) * *at]) return csv_fail(csv, "has text behind a closing quote");
  csv->status = doubled ? csv_take_doubled(csv, first, n) : csv_take(csv, first, n);
  return csv->status == TN_OK ? ROW_READ : ROW_FAILED;
}

/* A cell of a column of numbers is converted where it stands. */
static bool csv_number(const table_csv *csv, const char **at) {
  table_column *c = csv->columns != NULL && csv->cells < csv->wanted ? csv->columns[csv->cells] : NULL;
  if (c == NULL || c->next != NULL || c->form != TABLE_NUMBERS) return false;
  if (csv->t->decimal != DECIMAL_POINT) return false;
  const char *end = table_number_fast(*at, &c->numbers[csv->t->rows]);
  if (end == NULL || !csv->stops[(uint8_t)*end]) return false;
  *at = end;
  return true;
}

static int csv_cell(table_csv *csv, const char **at, int64_t *lines) {
  if (**at == '"') return csv_quoted(csv, at, lines);
  if (csv_number(csv, at)) return ROW_READ;
  const char *first = *at, *end = first;
  while (!csv->stops[(uint8_t)*end]) end++;
  *at = end;
  if (*end == '\0' && end == csv->in->bytes + csv->in->end && !csv->in->ended) return ROW_CUT;
  csv->status = csv_take(csv, first, (size_t)(end - first));
  return csv->status == TN_OK ? ROW_READ : ROW_FAILED;
}

/* ---- rows ---- */

/* Skips lines of blanks. */
static const char *csv_skip_empty(table_csv *csv, const char *at) {
  for (;;) {
    const char *c = at;
    while ((*c == ' ' || *c == '\t') && *c != csv->delimiter) c++;
    if (*c != '\n' && *c != '\r') return *c == '\0' && c == csv->in->bytes + csv->in->end ? c : at;
    bool two = c[0] == '\r' && c[1] == '\n';
    at = c + 1 + two;
    csv->line++;
  }
}

static int csv_check_cells(table_csv *csv) {
  if (csv->wanted < 0 || csv->cells == csv->wanted) return ROW_READ;
  csv->status = tn_fail(
      &csv->t->env, TN_EINVAL, NULL,
      "%s:%lld: has %d cells, expected %d as in the first row; is a delimiter in a cell without quotes?",
      csv->in->path, (long long)csv->line, csv->cells, csv->wanted);
  return ROW_FAILED;
}

/* The byte that ends a row was reached. */
static int csv_end_row(table_csv *csv, const char *at, int64_t lines) {
  const char *end = csv->in->bytes + csv->in->end;
  if (*at == '\0' && at < end) return csv_fail(csv, "has a NUL byte");
  if ((*at == '\0' || (*at == '\r' && at + 1 == end)) && !csv->in->ended) return ROW_CUT;
  int found = csv_check_cells(csv);
  if (*at == '\r' && at[1] == '\n') at++;
  csv->in->at = (size_t)(at - csv->in->bytes) + (at < end);
  csv->line += lines + 1;
  return found;
}

static int csv_try_row(table_csv *csv) {
  int64_t lines = 0, line = csv->line;
  const char *at = csv_skip_empty(csv, csv->in->bytes + csv->in->at);
  csv->cells = 0;
  if (at == csv->in->bytes + csv->in->end) {
    if (!csv->in->ended) csv->line = line;
    return csv->in->ended ? ROW_END : ROW_CUT;
  }
  csv->t->lines[csv->t->rows] = (uint32_t)csv->line;
  for (;;) {
    int found = csv_cell(csv, &at, &lines);
    if (found == ROW_CUT) csv->line = line;
    if (found != ROW_READ) return found;
    csv->cells++;
    if (*at != csv->delimiter) break;
    at++;
  }
  int ended = csv_end_row(csv, at, lines);
  if (ended == ROW_CUT) csv->line = line;
  return ended;
}

tn_status table_csv_row(table_csv *csv, bool *more) {
  for (;;) {
    int found = csv_try_row(csv);
    *more = found == ROW_READ;
    if (found == ROW_READ || found == ROW_END) return TN_OK;
    if (found == ROW_FAILED) return csv->status;
    TN_TRY(table_input_more(csv->in));
  }
}

/* ---- the delimiter ---- */

static void csv_set_delimiter(table_csv *csv, char delimiter) {
  memset(csv->stops, 0, sizeof(csv->stops));
  csv->delimiter = delimiter;
  csv->stops[(uint8_t)delimiter] = csv->stops['\n'] = csv->stops['\r'] = csv->stops[0] = true;
}

/* The cells of a row under a delimiter, where the first rows of the file all have as many; 0: they differ. */
static int32_t csv_try_delimiter(table_csv *csv, char delimiter, int32_t *first) {
  const size_t at = csv->in->at;
  int32_t cells = -1, rows = 0, found;
  csv_set_delimiter(csv, delimiter);
  for (*first = 0; (found = csv_try_row(csv)) == ROW_READ && rows < DETECT_ROWS; rows++) {
    if (rows == 0) *first = cells = csv->cells;
    if (csv->cells != cells) cells = 0;
  }
  csv->in->at = at;
  csv->line = 1;
  return found == ROW_FAILED ? 0 : cells;
}

/* The delimiter that gives all rows the same number of cells, and of several the one that gives most; or that
 * which divides the first row most often. */
static char csv_find_delimiter(table_csv *csv) {
  static const char candidates[] = ",;\t|";
  int32_t best = 1, best_first = 1, first;
  char delimiter = '\0', of_first = ',';
  csv->detecting = true;
  for (const char *c = candidates; *c != '\0'; c++) {
    int32_t cells = csv_try_delimiter(csv, *c, &first);
    if (cells > best) {
      best = cells;
      delimiter = *c;
    }
    if (first > best_first) {
      best_first = first;
      of_first = *c;
    }
  }
  csv->detecting = false;
  csv->status = TN_OK;
  return delimiter != '\0' ? delimiter : of_first;
}

tn_status table_csv_start(table *t, table_input *in, table_csv *csv) {
  static const char named[] = {'\0', ',', ';', '\t', '|', ' '};
  char delimiter = named[t->options->delimiter];
  *csv = (table_csv){.t = t, .in = in, .line = 1, .wanted = -1};
  TN_TRY(table_rows_grow(t));
  csv_set_delimiter(csv, delimiter != '\0' ? delimiter : csv_find_delimiter(csv));
  return TN_OK;
}

/* The kinds of cells that a column has. */
typedef struct csv_seen {
  bool number, other;
} csv_seen;

static void csv_look(const table_csv *csv, csv_seen *seen) {
  double value;
  for (int32_t i = 0; i < csv->wanted; i++) {
    const table_word *cell = &csv->row[i];
    bool number = table_cell_number(csv->t, cell->text, cell->n, &value);
    seen[i].number = seen[i].number || number;
    seen[i].other = seen[i].other || (!number && !table_is_missing(cell->text, cell->n));
  }
}

tn_status table_csv_survey(table_csv *csv, bool *numbers, int64_t *rows, size_t *bytes) {
  const size_t start = csv->in->at;
  const int64_t line = csv->line;
  csv_seen *seen = tn_new(&csv->t->env, (size_t)csv->wanted * sizeof(*seen));
  table_word *row = tn_new(&csv->t->env, (size_t)csv->wanted * sizeof(*row));
  int found = seen != NULL && row != NULL ? ROW_READ : ROW_FAILED;
  csv->row = row;
  csv->room = csv->wanted;
  csv->status = TN_ENOMEM;
  for (*rows = 0; found == ROW_READ && *rows <= SURVEY_ROWS; ++*rows) {
    found = csv_try_row(csv);
    if (found == ROW_READ) csv_look(csv, seen);
  }
  *rows -= found != ROW_READ;
  for (int32_t i = 0; seen != NULL && i < csv->wanted; i++) numbers[i] = seen[i].number && !seen[i].other;
  tn_delete(&csv->t->env, seen);
  tn_delete(&csv->t->env, row);
  *bytes = csv->in->at - start;
  csv->in->at = start;
  csv->line = line;
  csv->row = NULL;
  return found == ROW_FAILED ? csv->status : TN_OK;
}

void table_csv_end(table_csv *csv) {
  if (csv->t != NULL) tn_delete(&csv->t->env, csv->unquoted);
}

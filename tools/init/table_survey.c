/* tools/init/table_survey.c: which columns of a table are numbers, which have few different words or name
 * files, and which one is the target. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tools/init/sounds.h"
#include "tools/init/table.h"

enum { TABLE_CLASSES = 20, TABLE_COLUMNS = 4096, TABLE_LEAST_ROWS = 10, TABLE_SENTENCE = 16 };

/* ---- reading ---- */

/* Reads a cell at *at into `text`, cut to TABLE_CELL; returns the byte behind it. */
static char table_read_cell(const char **at, const char *end, char delimiter, char text[TABLE_CELL]) {
  int n = 0;
  bool quoted = *at < end && **at == '"';
  for (*at += quoted; *at < end; ++*at) {
    char c = **at;
    if (quoted && c == '"' && (*at + 1 == end || (*at)[1] != '"')) {
      quoted = false;
      continue;
    }
    if (quoted && c == '"') ++*at;
    if (!quoted && (c == delimiter || c == '\n' || c == '\r')) break;
    if (n < TABLE_CELL - 1) text[n++] = c;
  }
  text[n] = '\0';
  char stop = *at < end ? *(*at)++ : '\n';
  if (stop == '\r' && *at < end && **at == '\n') ++*at;
  return stop == '\r' ? '\n' : stop;
}

bool table_is_number(const char *text, double *value) {
  char *rest;
  *value = strtod(text, &rest);
  return rest != text && *rest == '\0' && !isalpha((unsigned char)text[text[0] == '-']);
}

static bool table_is_missing(const char *text) {
  static const char *const words[] = {"",     "NA",   "NaN",  "nan",  "N/A", "n/a",
                                      "NULL", "null", "None", "<NA>", "#N/A"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(text, words[i]) == 0) return true;
  return false;
}

static void table_note_word(table_words *few, const char *text) {
  for (int i = 0; i < few->n; i++)
    if (strcmp(few->text[i], text) == 0) return;
  if (few->n < TABLE_FEW && strlen(text) < TABLE_WORD - 1)
    snprintf(few->text[few->n++], TABLE_WORD, "%s", text);
  else
    few->many = true;
}

static void table_note_file(table_column *c, const char *text) {
  if (c->words == 0) snprintf(c->first, sizeof c->first, "%s", text);
  c->pictures += pictures_has_suffix(text);
  c->sounds += sounds_has_suffix(text);
  c->sentences += strlen(text) >= TABLE_SENTENCE && strchr(text, ' ') != NULL;
}

static void table_note_cell(table_column *c, const char *text, long long row) {
  double value;
  if (table_is_missing(text)) {
    c->missing++;
    return;
  }
  table_note_word(&c->few, text);
  if (!table_is_number(text, &value)) {
    table_note_file(c, text);
    c->words++;
    return;
  }
  c->whole = c->whole && value == (double)(long long)value;
  c->counts = c->counts && c->missing == 0 && (row == 0 || value == c->last + 1);
  c->last = value;
  c->numbers++;
}

/* The delimiter that the first row has most often outside of quotes. */
static char table_find_delimiter(const char *at, const char *end) {
  static const char candidates[] = ",;\t|";
  long long count[4] = {0};
  bool quoted = false;
  for (; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
    const char *found = *at != '\0' ? strchr(candidates, *at) : NULL;
    quoted ^= *at == '"';
    if (found != NULL && !quoted) count[found - candidates]++;
  }
  int best = 0;
  for (int i = 1; i < 4; i++)
    if (count[i] > count[best]) best = i;
  return candidates[best];
}

static bool table_add_column(table_survey *t, const char *name) {
  if (t->n % 16 == 0) {
    table_column *columns = realloc(t->columns, (size_t)(t->n + 16) * sizeof *columns);
    if (columns == NULL) return false;
    t->columns = columns;
  }
  table_column *c = &t->columns[t->n++];
  memset(c, 0, sizeof *c);
  c->whole = c->counts = true;
  snprintf(c->name, sizeof c->name, "%.*s", TABLE_WORD - 1, name);
  return t->n < TABLE_COLUMNS;
}

/* The names of the first row; without them columns are called 1, 2, 3. */
static bool table_read_header(table_survey *t, const char **at, const char *end) {
  const char *first = *at;
  char text[TABLE_CELL], stop;
  double value;
  t->header = true;
  do {
    stop = table_read_cell(at, end, t->delimiter, text);
    t->header = t->header && !table_is_number(text, &value);
    if (!table_add_column(t, text)) return false;
  } while (stop != '\n');
  if (t->header) return true;
  *at = first;
  for (int i = 0; i < t->n; i++) snprintf(t->columns[i].name, TABLE_WORD, "%d", i + 1);
  return true;
}

/* A row with another number of cells is left to the training, which names it. */
static void table_read_rows(table_survey *t, const char *at, const char *end) {
  char text[TABLE_CELL], stop = '\n';
  while (at < end) {
    int i = 0;
    if (*at == '\n' || *at == '\r') {
      at++;
      continue;
    }
    do {
      stop = table_read_cell(&at, end, t->delimiter, text);
      if (i < t->n) table_note_cell(&t->columns[i], text, t->rows);
      i++;
    } while (stop != '\n');
    t->rows++;
  }
}

/* ---- the target ---- */

static int table_find_target(const table_survey *t) {
  static const char *const names[] = {"target", "label", "y", "class"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (int i = 0; i < t->n; i++)
      if (strcasecmp(t->columns[i].name, names[k]) == 0) return i;
  return t->n - 1;
}

/* Words, or a few whole numbers. */
bool table_is_class(const table_column *c) {
  return c->words > 0 || (c->whole && !c->few.many && c->few.n <= TABLE_CLASSES / 2);
}

void table_first_file(const table_survey *t, const table_column *c, char path[PICTURES_PATH]) {
  const char *slash = strrchr(t->path, '/');
  int folder = slash != NULL && c->first[0] != '/' ? (int)(slash - t->path) + 1 : 0;
  snprintf(path, PICTURES_PATH, "%.*s%s", folder, t->path, c->first);
}

static bool table_names_files(const table_survey *t, const table_column *c, long long files) {
  char path[PICTURES_PATH];
  if (c->numbers > 0 || c->words == 0 || files < c->words) return false;
  table_first_file(t, c, path);
  return access(path, R_OK) == 0;
}

/* Names and numbers of tickets teach nothing: their words are nearly all different. */
table_use table_use_of(const table_survey *t, int i) {
  const table_column *c = &t->columns[i];
  if (i == t->target || c->name[0] == '\0' || c->numbers + c->words == 0) return COLUMN_OUT;
  if (c->words == 0) return c->counts && c->whole && t->rows > 2 ? COLUMN_OUT : COLUMN_NUMBER;
  if (table_names_files(t, c, c->pictures)) return COLUMN_PICTURE;
  if (table_names_files(t, c, c->sounds)) return COLUMN_SOUND;
  if (!c->few.many && 2 * c->few.n <= t->rows) return COLUMN_CATEGORY;
  return t->texts && c->numbers == 0 && 2 * c->sentences > c->words ? COLUMN_TEXT : COLUMN_OUT;
}

static int table_count_inputs(const table_survey *t) {
  int inputs = 0;
  for (int i = 0; i < t->n; i++) inputs += table_use_of(t, i) != COLUMN_OUT;
  return inputs;
}

/* ---- lines of JSON ---- */

/* Text, a number or a truth as it is in CSV; lists and objects as JSON. */
static void table_json_text(const json_t *value, char text[TABLE_CELL]) {
  char *dump =
      json_is_string(value) || json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  snprintf(text, TABLE_CELL, "%s",
           json_is_string(value) ? json_string_value(value)
           : dump != NULL        ? dump
                                 : "");
  free(dump);
}

static bool table_json_row(table_survey *t, const char *line, size_t n) {
  json_t *row = json_loadb(line, n, 0, NULL), *value;
  const char *key;
  bool good = json_is_object(row);
  if (good && t->n == 0) json_object_foreach(row, key, value) good = good && table_add_column(t, key);
  for (int i = 0; good && i < t->n; i++) {
    char text[TABLE_CELL];
    table_json_text(json_object_get(row, t->columns[i].name), text);
    table_note_cell(&t->columns[i], text, t->rows);
  }
  t->rows += good;
  json_decref(row);
  return good;
}

static bool table_read_json(table_survey *t, const char *at, const char *end) {
  t->json = t->header = true;
  for (const char *next; at < end; at = next) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    next = stop + (stop < end);
    const char *first = at;
    while (first < stop && isspace((unsigned char)*first)) first++;
    if (first < stop && !table_json_row(t, at, (size_t)(stop - at))) return false;
  }
  return true;
}

/* ---- the table ---- */

static bool table_read_csv(table_survey *t, const char *at, const char *end) {
  t->delimiter = table_find_delimiter(at, end);
  if (!table_read_header(t, &at, end)) return false;
  table_read_rows(t, at, end);
  return true;
}

int init_survey_table(const cli_args *args, const char *path, table_survey **found) {
  size_t n = 0;
  table_survey *t = calloc(1, sizeof *t);
  unsigned char *bytes = init_read_bytes(path, &n);
  *found = t;
  if (t != NULL) t->path = path;
  if (t == NULL || bytes == NULL) {
    int reason = errno;
    free(bytes);
    return cli_refuse(args, CLI_IO, "%s: cannot be read: %s", path, strerror(reason));
  }
  const char *at = (const char *)bytes, *end = at + n;
  if (n >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3;
  while (at < end && isspace((unsigned char)*at)) at++;
  bool read = at < end && *at == '{' ? table_read_json(t, at, end) : table_read_csv(t, at, end);
  free(bytes);
  if (!read || t->n < 2 || t->rows < TABLE_LEAST_ROWS)
    return cli_refuse(
        args, CLI_DATA,
        "%s: has %lld rows of %d columns, expected at least %d rows and 2 columns to learn from", path,
        t->rows, t->n, TABLE_LEAST_ROWS);
  t->target = table_find_target(t);
  t->texts = table_count_inputs(t) == 0;
  if (table_count_inputs(t) > 0) return CLI_OK;
  return cli_refuse(args, CLI_DATA,
                    "%s: beside '%s' no column has numbers, a few different words, sentences, or paths of "
                    "pictures or sounds that are there",
                    path, t->columns[t->target].name);
}

void init_free_table(table_survey *t) {
  if (t != NULL) free(t->columns);
  free(t);
}

bool init_is_table(const char *path) {
  const char *dot = strrchr(path, '.');
  static const char *const endings[] = {".csv", ".tsv", ".jsonl", ".ndjson"};
  for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof *endings; i++)
    if (strcasecmp(dot, endings[i]) == 0) return true;
  return false;
}

/* plugins/sources/table/read.c: a file of rows, as CSV or as lines of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plugins/sources/table/csv.h"

enum { MOST_CELLS = 65536 };

/* The names of the columns of a file. */
typedef struct read_header {
  const char **names;
  bool *numbers; /* which have numbers */
  int32_t n;
} read_header;

/* ---- which columns the fields have ---- */

static tn_status read_fail_absent(const table *t, const read_header *h, const char *name) {
  char list[600] = "";
  const char *near = NULL;
  size_t used = 0;
  for (int32_t i = 0; i < h->n; i++) {
    if (strcasecmp(h->names[i], name) == 0) near = h->names[i];
    if (used < sizeof(list) - 80)
      used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.60s", i > 0 ? ", " : "", h->names[i]);
  }
  return tn_fail(&t->env, TN_EINVAL, NULL, "%s: has no column '%s'%s%s%s, expected one of: %s",
                 t->parts[t->n_parts - 1].path, name, near != NULL ? " (is '" : "", near != NULL ? near : "",
                 near != NULL ? "' meant?)" : "", list);
}

static tn_status read_find_cell(const table *t, const read_header *h, const char *name, int32_t *cell) {
  *cell = -1;
  for (int32_t i = 0; i < h->n; i++) {
    if (strcmp(h->names[i], name) != 0) continue;
    if (*cell >= 0)
      return tn_fail(&t->env, TN_EINVAL, NULL,
                     "%s: has two columns '%s'; give them different names in the first row",
                     t->parts[t->n_parts - 1].path, name);
    *cell = i;
  }
  return *cell >= 0 ? TN_OK : read_fail_absent(t, h, name);
}

static bool read_is_used(const table *t, const char *name) {
  const table_options *o = t->options;
  const char *const others[] = {o->split_column, o->group, o->time, o->series, o->weight};
  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
    if (strcmp(name, others[i]) == 0) return true;
  for (int32_t i = 0; i < t->n_fields; i++)
    for (int32_t k = 0; k < t->fields[i].n; k++)
      if (!t->fields[i].rest && strcmp(t->fields[i].names[k], name) == 0) return true;
  return false;
}

/* `*` stands for the columns of numbers that nothing else uses; a column without a name is an index. */
static tn_status read_take_rest(table *t, table_field *f, const read_header *h) {
  f->names = table_memory_take(&t->memory, ((size_t)h->n + 1) * sizeof(*f->names));
  if (f->names == NULL) return TN_ENOMEM;
  f->n = 0;
  for (int32_t i = 0; i < h->n; i++)
    if (h->numbers[i] && h->names[i][0] != '\0' && !read_is_used(t, h->names[i]))
      f->names[f->n++] = h->names[i];
  if (f->n > 0) return TN_OK;
  return tn_fail(&t->env, TN_EINVAL, NULL, "field '%s': %s has no other column of numbers for *", f->name,
                 t->parts[t->n_parts - 1].path);
}

static tn_status read_bind_field(table *t, table_field *f, const read_header *h) {
  if (f->rest && !f->taught) TN_TRY(read_take_rest(t, f, h));
  f->column = table_memory_take(&t->memory, ((size_t)f->n + 1) * sizeof(*f->column));
  if (f->column == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < f->n; k++) {
    f->column[k] = table_column_add(t, f->names[k], f->kind->form);
    if (f->column[k] == NULL) return TN_ENOMEM;
    f->column[k]->users++;
  }
  return TN_OK;
}

static tn_status read_bind(table *t, const read_header *h) {
  if (t->n_columns > 0) return TN_OK;
  for (int32_t i = 0; i < t->n_fields; i++) TN_TRY(read_bind_field(t, &t->fields[i], h));
  TN_TRY(table_windows_columns(t));
  if (!t->divides) return TN_OK;
  TN_TRY(table_split_columns(t));
  return table_weight_column(t);
}

/* ---- CSV ---- */

static tn_status read_names(table *t, table_csv *csv, read_header *h) {
  table_word *cells = table_memory_take(&t->memory, MOST_CELLS * sizeof(*cells));
  bool more, has = t->options->header == HEADER_YES || t->options->header == HEADER_AUTO;
  const size_t start = csv->in->at;
  double number;
  if (cells == NULL) return TN_ENOMEM;
  csv->row = cells;
  csv->room = MOST_CELLS;
  TN_TRY(table_csv_row(csv, &more));
  csv->row = NULL;
  if (!more) return tn_fail(&t->env, TN_EINVAL, NULL, "%s: is empty, expected rows", csv->in->path);
  if (csv->cells > MOST_CELLS)
    return tn_fail(&t->env, TN_EINVAL, NULL, "%s: has %d columns, expected at most %d", csv->in->path,
                   csv->cells, MOST_CELLS);
  h->n = csv->wanted = csv->cells;
  for (int32_t i = 0; i < h->n && t->options->header == HEADER_AUTO; i++)
    has = has && !table_cell_number(t, cells[i].text, cells[i].n, &number);
  h->names = table_memory_take(&t->memory, ((size_t)h->n + 1) * sizeof(*h->names));
  h->numbers = table_memory_take(&t->memory, (size_t)h->n + 1);
  if (h->names == NULL || h->numbers == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < h->n; i++) {
    char place[16];
    snprintf(place, sizeof(place), "%d", i + 1);
    h->names[i] = has ? cells[i].text : table_memory_copy(&t->memory, place, strlen(place));
    if (h->names[i] == NULL) return TN_ENOMEM;
  }
  if (has) return TN_OK;
  csv->in->at = start;
  csv->line = 1;
  return TN_OK;
}

/* Sets the columns that each cell goes to. */
static tn_status read_connect(table *t, table_csv *csv, const read_header *h) {
  size_t bytes = ((size_t)h->n + 1) * sizeof(*csv->columns);
  csv->columns = table_memory_take(&t->memory, bytes);
  if (csv->columns == NULL) return TN_ENOMEM;
  memset(csv->columns, 0, bytes);
  for (int32_t i = 0; i < t->n_columns; i++) {
    table_column *c = t->columns[i];
    TN_TRY(read_find_cell(t, h, c->name, &c->cell));
    c->next = csv->columns[c->cell];
    csv->columns[c->cell] = c;
  }
  return TN_OK;
}

static tn_status read_csv_rows(table *t, table_csv *csv) {
  bool more = true;
  while (more) {
    TN_TRY(table_rows_grow(t));
    TN_TRY(table_csv_row(csv, &more));
    t->rows += more;
    if ((t->rows & 0xFFFF) == 0 && tn_env_stopping(&t->env))
      return tn_fail(&t->env, TN_ESTOPPED, NULL, "stopped");
  }
  return TN_OK;
}

static tn_status read_csv(table *t, table_input *in) {
  read_header h = {NULL, NULL, 0};
  table_csv csv;
  int64_t rows = 0;
  size_t bytes = 0;
  tn_status status = table_csv_start(t, in, &csv);
  if (status == TN_OK) status = read_names(t, &csv, &h);
  if (status == TN_OK) status = table_csv_survey(&csv, h.numbers, &rows, &bytes);
  if (status == TN_OK) status = read_bind(t, &h);
  if (status == TN_OK) status = read_connect(t, &csv, &h);
  if (status == TN_OK) /* as many rows as the first ones let expect */
    status = table_rows_reserve(t, bytes > 0 ? in->estimate / (double)bytes * (double)rows * 1.05 : 0);
  if (status == TN_OK) status = read_csv_rows(t, &csv);
  table_csv_end(&csv);
  return status;
}

/* ---- lines of JSON ---- */

/* The next line that is not blank; *n is 0 at the end. */
static tn_status read_line(table_input *in, int64_t *number, const char **line, size_t *n) {
  for (;;) {
    const char *first = in->bytes + in->at, *last = in->bytes + in->end;
    const char *end = memchr(first, '\n', (size_t)(last - first));
    if (end == NULL && !in->ended) {
      TN_TRY(table_input_more(in));
      continue;
    }
    if (end == NULL) end = last;
    in->at += (size_t)(end - first) + (end < last);
    ++*number;
    *line = first;
    *n = (size_t)(end - first);
    bool blank = strspn(first, " \t\r") >= *n;
    if (blank && end == last) *n = 0;
    if (!blank || end == last) return TN_OK;
  }
}

static tn_status read_json_value(table *t, table_column *c, const json_t *value) {
  char number[40];
  if (json_is_string(value))
    return table_column_store(t, c, json_string_value(value), json_string_length(value));
  if (json_is_boolean(value))
    return table_column_store(t, c, json_is_true(value) ? "true" : "false", json_is_true(value) ? 4 : 5);
  if (value == NULL || json_is_null(value)) return table_column_store(t, c, "", 0);
  if (json_is_number(value)) {
    int n = json_is_integer(value)
                ? snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value))
                : snprintf(number, sizeof(number), "%.17g", json_real_value(value));
    return table_column_store(t, c, number, (size_t)n);
  }
  char *text = json_dumps(value, JSON_COMPACT);
  tn_status status = text != NULL ? table_column_store(t, c, text, strlen(text)) : TN_ENOMEM;
  free(text);
  return status;
}

static tn_status read_json_row(table *t, const json_t *object) {
  TN_TRY(table_rows_grow(t));
  for (int32_t i = 0; i < t->n_columns; i++) {
    const json_t *value = json_object_get(object, t->columns[i]->name);
    t->columns[i]->cell += value != NULL;
    TN_TRY(read_json_value(t, t->columns[i], value));
  }
  t->rows++;
  return TN_OK;
}

/* The keys of the first object stand for the columns of `*`. */
static tn_status read_json_names(table *t, json_t *object, read_header *h) {
  const char *key;
  json_t *value;
  h->n = 0;
  h->names = table_memory_take(&t->memory, (json_object_size(object) + 1) * sizeof(*h->names));
  h->numbers = table_memory_take(&t->memory, json_object_size(object) + 1);
  if (h->names == NULL || h->numbers == NULL) return TN_ENOMEM;
  json_object_foreach(object, key, value) {
    h->names[h->n] = table_memory_copy(&t->memory, key, strlen(key));
    h->numbers[h->n] = json_is_number(value);
    if (h->names[h->n++] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status read_json_line(table *t, const char *path, int64_t number, const char *line, size_t n,
                                read_header *h) {
  json_error_t error;
  json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
  tn_status status = TN_OK;
  if (!json_is_object(object)) {
    status = tn_fail(&t->env, TN_EINVAL, NULL, "%s:%lld: is no JSON object: %s", path, (long long)number,
                     object == NULL ? error.text : "expected { at the beginning of each line");
  } else {
    if (h->names == NULL) {
      status = read_json_names(t, object, h);
      if (status == TN_OK) status = read_bind(t, h);
      for (int32_t i = 0; i < t->n_columns; i++) t->columns[i]->cell = 0;
      if (status == TN_OK) status = table_rows_reserve(t, 0);
    }
    if (status == TN_OK) t->lines[t->rows] = (uint32_t)number;
    if (status == TN_OK) status = read_json_row(t, object);
  }
  json_decref(object);
  return status;
}

static tn_status read_json(table *t, table_input *in) {
  read_header h = {NULL, NULL, 0};
  int64_t number = 0;
  const char *line;
  size_t n = 1;
  while (n > 0) {
    TN_TRY(read_line(in, &number, &line, &n));
    TN_TRY(table_rows_grow(t));
    if (n > 0) TN_TRY(read_json_line(t, in->path, number, line, n, &h));
    if ((number & 0xFFF) == 0 && tn_env_stopping(&t->env))
      return tn_fail(&t->env, TN_ESTOPPED, NULL, "stopped");
  }
  for (int32_t i = 0; i < t->n_columns; i++)
    if (t->columns[i]->cell == 0) return read_fail_absent(t, &h, t->columns[i]->name);
  return TN_OK;
}

/* ---- files ---- */

/* Files of other programs that users have beside their tables. */
static tn_status read_check_form(const table *t, const table_input *in) {
  static const struct {
    const char *magic, *what, *remedy;
  } forms[] = {{"PAR1", "Parquet",
                "python3 -c \"import pandas; pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)\""},
               {"ARROW1", "Arrow or Feather",
                "python3 -c \"import pandas; pandas.read_feather('FILE').to_csv('FILE.csv', index=False)\""},
               {"PK\3\4", "an archive, as a workbook of Excel is",
                "in Excel: save as CSV UTF-8; or: python3 -c \"import pandas; "
                "pandas.read_excel('FILE').to_csv('FILE.csv', index=False)\""},
               {"SQLite format 3", "a database of SQLite",
                "sqlite3 -header -csv FILE 'select * from TABLE' >FILE.csv"}};
  for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
    size_t n = strlen(forms[i].magic);
    if (in->end - in->at >= n && memcmp(in->bytes + in->at, forms[i].magic, n) == 0)
      return tn_fail(&t->env, TN_EUNSUPPORTED, NULL,
                     "%s: is %s, expected CSV or lines of JSON; convert it, %s", in->path, forms[i].what,
                     forms[i].remedy);
  }
  return TN_OK;
}

static tn_status read_add_part(table *t, const char *path) {
  table_part *parts = table_memory_take(&t->memory, ((size_t)t->n_parts + 1) * sizeof(*parts));
  const char *slash = strrchr(path, '/');
  if (parts == NULL) return TN_ENOMEM;
  if (t->n_parts > 0) memcpy(parts, t->parts, (size_t)t->n_parts * sizeof(*parts));
  t->parts = parts;
  table_part *part = &parts[t->n_parts++];
  *part = (table_part){
      .path = table_memory_copy(&t->memory, path, strlen(path)),
      .folder = table_memory_copy(&t->memory, path, slash != NULL ? (size_t)(slash - path) + 1 : 0),
      .first = t->rows};
  return part->path != NULL && part->folder != NULL ? TN_OK : TN_ENOMEM;
}

static bool read_is_json(const table *t, const table_input *in) {
  const char *at = in->bytes + in->at;
  if (t->options->format != FORMAT_AUTO) return t->options->format == FORMAT_JSON;
  return at[strspn(at, " \t\r\n")] == '{';
}

tn_status table_read(table *t, const char *path) {
  table_input in;
  TN_TRY(read_add_part(t, path));
  tn_status status = table_input_open(&t->env, path, &in);
  if (status == TN_OK) status = read_check_form(t, &in);
  bool json = status == TN_OK && read_is_json(t, &in);
  t->decimal = json ? DECIMAL_POINT : t->options->decimal;
  if (status == TN_OK) status = json ? read_json(t, &in) : read_csv(t, &in);
  table_input_close(&in);
  if (status != TN_OK || t->rows > t->parts[t->n_parts - 1].first) return status;
  return tn_fail(&t->env, TN_EINVAL, NULL, "%s: has no rows", path);
}

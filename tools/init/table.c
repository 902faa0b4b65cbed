/* tools/init/table.c: the configuration for a table: which columns are numbers, which have few different
 * words, and which one is the target. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/cli/cli.h"
#include "tools/init/init.h"

enum { TABLE_WORD = 64, TABLE_FEW = 64, TABLE_CLASSES = 20, TABLE_COLUMNS = 4096, TABLE_LEAST_ROWS = 10 };

typedef struct table_words {
  char text[TABLE_FEW][TABLE_WORD];
  int n;
  bool many; /* more of them, or a long one */
} table_words;

typedef struct table_column {
  char name[TABLE_WORD];
  long long numbers, words, missing;
  bool whole;  /* all numbers are whole */
  bool counts; /* each number is that of the row before plus one: an index */
  double last;
  table_words few;
} table_column;

struct table_survey {
  char delimiter;
  bool header;
  long long rows;
  int n, target;
  table_column *columns;
};

/* ---- reading ---- */

/* Reads a cell at *at into `text`, cut to TABLE_WORD; returns the byte behind it. */
static char table_read_cell(const char **at, const char *end, char delimiter, char text[TABLE_WORD]) {
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
    if (n < TABLE_WORD - 1) text[n++] = c;
  }
  text[n] = '\0';
  char stop = *at < end ? *(*at)++ : '\n';
  if (stop == '\r' && *at < end && **at == '\n') ++*at;
  return stop == '\r' ? '\n' : stop;
}

static bool table_is_number(const char *text, double *value) {
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

static void table_note_cell(table_column *c, const char *text, long long row) {
  double value;
  if (table_is_missing(text)) {
    c->missing++;
    return;
  }
  table_note_word(&c->few, text);
  if (!table_is_number(text, &value)) {
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
  snprintf(c->name, sizeof c->name, "%s", name);
  return t->n < TABLE_COLUMNS;
}

/* The names of the first row; without them columns are called 1, 2, 3. */
static bool table_read_header(table_survey *t, const char **at, const char *end) {
  const char *first = *at;
  char text[TABLE_WORD], stop;
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
  char text[TABLE_WORD], stop = '\n';
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
static bool table_is_class(const table_column *c) {
  return c->words > 0 || (c->whole && !c->few.many && c->few.n <= TABLE_CLASSES / 2);
}

typedef enum { COLUMN_NUMBER, COLUMN_CATEGORY, COLUMN_OUT } table_use;

/* Names and numbers of tickets teach nothing: their words are nearly all different. */
static table_use table_use_of(const table_survey *t, int i) {
  const table_column *c = &t->columns[i];
  if (i == t->target || c->name[0] == '\0' || c->numbers + c->words == 0) return COLUMN_OUT;
  if (c->words == 0) return c->counts && c->whole && t->rows > 2 ? COLUMN_OUT : COLUMN_NUMBER;
  return !c->few.many && 2 * c->few.n <= t->rows ? COLUMN_CATEGORY : COLUMN_OUT;
}

int init_survey_table(const cli_args *args, const char *path, table_survey **found) {
  size_t n = 0;
  table_survey *t = calloc(1, sizeof *t);
  unsigned char *bytes = init_read_bytes(path, &n);
  *found = t;
  if (t == NULL || bytes == NULL) {
    int reason = errno;
    free(bytes);
    return cli_refuse(args, CLI_IO, "%s: cannot be read: %s", path, strerror(reason));
  }
  const char *at = (const char *)bytes, *end = at + n;
  if (n >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3;
  t->delimiter = table_find_delimiter(at, end);
  bool read = table_read_header(t, &at, end);
  if (read) table_read_rows(t, at, end);
  free(bytes);
  if (!read || t->n < 2 || t->rows < TABLE_LEAST_ROWS)
    return cli_refuse(
        args, CLI_DATA,
        "%s: has %lld rows of %d columns, expected at least %d rows and 2 columns to learn from", path,
        t->rows, t->n, TABLE_LEAST_ROWS);
  t->target = table_find_target(t);
  int inputs = 0;
  for (int i = 0; i < t->n; i++) inputs += table_use_of(t, i) != COLUMN_OUT;
  if (inputs > 0) return CLI_OK;
  return cli_refuse(args, CLI_DATA, "%s: beside '%s' no column has numbers or a few different words", path,
                    t->columns[t->target].name);
}

void init_free_table(table_survey *t) {
  if (t != NULL) free(t->columns);
  free(t);
}

bool init_is_table(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL && (strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0);
}

/* ---- writing ---- */

/* A name of the model language that is not the one of another column. */
static void table_field_name(const table_survey *t, int i, char name[TABLE_WORD]) {
  int n = 0;
  for (const char *c = t->columns[i].name; *c != '\0' && n < 40; c++)
    name[n++] = isalnum((unsigned char)*c) ? *c : '_';
  name[n] = '\0';
  bool clash =
      n == 0 || !isalpha((unsigned char)name[0]) || strcmp(name, "numbers") == 0 || strcmp(name, "in") == 0;
  for (int k = 0; k < t->n; k++) clash = clash || (k != i && strcasecmp(t->columns[k].name, name) == 0);
  if (clash) snprintf(name, TABLE_WORD, "column_%d", i + 1);
}

static bool table_is_plain(const char *text, const char *also) {
  for (const char *c = text; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c) && strchr(also, *c) == NULL) return false;
  return *text != '\0';
}

static void table_write_column(FILE *to, const char *name) {
  fprintf(to, table_is_plain(name, "_") ? "%s" : "\"%s\"", name);
}

static int table_compare_words(const void *a, const void *b) {
  double x, y;
  bool numbers = table_is_number(a, &x) && table_is_number(b, &y);
  return numbers ? (x > y) - (x < y) : strcmp(a, b);
}

/* The classes, where they can be written: all of them are then known, also those that only validation has. */
static void table_write_classes(FILE *to, table_column *c) {
  for (int k = 0; k < c->few.n; k++)
    if (!table_is_plain(c->few.text[k], "_-. ")) return;
  qsort(c->few.text, (size_t)c->few.n, TABLE_WORD, table_compare_words);
  for (int k = 0; k < c->few.n; k++) fprintf(to, "%s%s", k == 0 ? ", classes=" : "|", c->few.text[k]);
}

static void table_write_left_out(FILE *to, const table_survey *t) {
  int n = 0;
  for (int i = 0; i < t->n; i++)
    if (i != t->target && table_use_of(t, i) == COLUMN_OUT)
      fprintf(to, "%s'%s'",
              n++ == 0 ? "# Left out, since they are empty, count the rows or have many different words: "
                       : ", ",
              t->columns[i].name);
  if (n > 0) fprintf(to, "\n");
}

static int table_write_fields(FILE *to, table_survey *t) {
  int numbers = 0;
  char name[TABLE_WORD];
  fprintf(to, "inputs =\n");
  for (int i = 0; i < t->n; i++) {
    if (table_use_of(t, i) != COLUMN_NUMBER) continue;
    fprintf(to, numbers++ == 0 ? "    numbers: numbers(" : ", ");
    table_write_column(to, t->columns[i].name);
  }
  if (numbers > 0) fprintf(to, ", missing=median, standardize=yes)\n");
  for (int i = 0; i < t->n; i++) {
    if (table_use_of(t, i) != COLUMN_CATEGORY) continue;
    table_field_name(t, i, name);
    fprintf(to, "    %s: category(", name);
    table_write_column(to, t->columns[i].name);
    fprintf(to, ", unknown=other, missing=class)\n");
  }
  return numbers;
}

static void table_write_target(FILE *to, table_survey *t, const char *name) {
  table_column *c = &t->columns[t->target];
  fprintf(to, "targets = %s: %s(", name, table_is_class(c) ? "category" : "number");
  table_write_column(to, c->name);
  if (table_is_class(c))
    table_write_classes(to, c);
  else
    fprintf(to, ", standardize=yes");
  fprintf(to, ")\n");
}

/* Categories go through tables of vectors, which are joined with the numbers. A vocabulary has two more
 * classes, for words that are new and for those that are missing. */
static void table_write_layers(FILE *to, const table_survey *t, int numbers) {
  char name[TABLE_WORD];
  int parts = numbers > 0;
  for (int i = 0; i < t->n; i++) {
    if (table_use_of(t, i) != COLUMN_CATEGORY) continue;
    table_field_name(t, i, name);
    fprintf(to, "    of_%s: embedding(rows=%d, width=%d) <- %s\n", name, t->columns[i].few.n + 2,
            t->columns[i].few.n < 8 ? 4 : 8, name);
    parts++;
  }
  fprintf(to, parts > 1 ? "    x: concat <- " : "    x: identity <- ");
  if (numbers > 0) fprintf(to, "numbers%s", parts > 1 ? ", " : "");
  for (int i = 0, k = numbers > 0; i < t->n; i++) {
    if (table_use_of(t, i) != COLUMN_CATEGORY) continue;
    table_field_name(t, i, name);
    fprintf(to, "of_%s%s", name, ++k < parts ? ", " : "");
  }
  fprintf(to, "\n    fc1: linear(64)\n         relu\n    fc2: linear(64)\n         relu\n");
}

static void table_write_model(FILE *to, const table_survey *t, const char *target, int numbers) {
  const table_column *c = &t->columns[t->target];
  char name[TABLE_WORD];
  bool class = table_is_class(c);
  fprintf(to, "\n[model]\ninputs = ");
  if (numbers > 0) fprintf(to, "numbers: f32[%d]", numbers);
  for (int i = 0, k = numbers > 0; i < t->n; i++) {
    if (table_use_of(t, i) != COLUMN_CATEGORY) continue;
    table_field_name(t, i, name);
    fprintf(to, "%s%s: i32[]", k++ > 0 ? ", " : "", name);
  }
  fprintf(to, "\ntargets = %s: %s\nlayers =\n", target, class ? "i32[]" : "f32[]");
  table_write_layers(to, t, numbers);
  if (class)
    fprintf(to, "    out: linear(%d)\nloss = cross_entropy\nmetrics = accuracy\n", c->few.n);
  else
    fprintf(to, "    fc3: linear(1)\n    out: reshape([])\nloss = mse\n");
}

void init_write_table(const init_file *f, table_survey *t, init_choice *choice) {
  char target[TABLE_WORD];
  long long batch = 64, rows = t->rows * 4 / 5;
  while (batch > 8 && batch * 20 > rows) batch /= 2;
  long long steps = rows / batch > 0 ? rows / batch : 1, epochs = 2000 / steps;
  epochs = epochs < 5 ? 5 : epochs > 100 ? 100 : epochs;
  *choice = (init_choice){t->n, batch, epochs};
  table_field_name(t, t->target, target);
  fprintf(f->to, "# A network for %lld rows, whose target is the column '%s'.\n", t->rows,
          t->columns[t->target].name);
  table_write_left_out(f->to, t);
  fprintf(f->to, "[run]\nname = %s\nepochs = %lld\n\n[data]\nsource = table\nfile = %s\n%s", f->name, epochs,
          f->path, t->header ? "" : "header = no\n");
  fprintf(f->to, "split = 0.2\nbatch = %lld\n", batch);
  int numbers = table_write_fields(f->to, t);
  table_write_target(f->to, t, target);
  table_write_model(f->to, t, target, numbers);
  fprintf(f->to,
          "\n[optimizer]\ntype = adamw\nlr = 2e-3\nweight_decay = 0.01\n\n[schedule]\ntype = cosine\n");
}

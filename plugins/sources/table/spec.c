/* plugins/sources/table/spec.c: the entries of `inputs` and `targets`: FIELD: KIND(COLUMN...,
 * OPTION=VALUE...).
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/sources/field_list.h"
#include "plugins/sources/table/table.h"

enum { SPEC_NAME = 256 }; /* room for the name of a field */
enum { SPEC_WORDS, SPEC_FLAG, SPEC_FILL, SPEC_TEXT, SPEC_LENGTH, SPEC_REAL };

/* An option of fields. */
typedef struct spec_choice {
  const char *name;
  uint32_t kinds; /* which of table_kind.choices have it */
  int32_t type;
  size_t offset;
  const char *expected; /* the words of SPEC_WORDS, or the expectation for messages */
} spec_choice;

static const spec_choice spec_choices[] = {
    {"missing", CHOICE_FILL | CHOICE_ABSENT, SPEC_FILL, offsetof(table_choices, missing), NULL},
    {"indicator", CHOICE_INDICATOR, SPEC_FLAG, offsetof(table_choices, indicator), "yes or no"},
    {"standardize", CHOICE_STANDARDIZE, SPEC_FLAG, offsetof(table_choices, standardize), "yes or no"},
    {"one_hot", CHOICE_ONE_HOT, SPEC_FLAG, offsetof(table_choices, one_hot), "yes or no"},
    {"index", CHOICE_INDEX, SPEC_FLAG, offsetof(table_choices, index), "yes or no"},
    {"unknown", CHOICE_UNKNOWN, SPEC_WORDS, offsetof(table_choices, unknown), "error|other"},
    {"order", CHOICE_ORDER, SPEC_WORDS, offsetof(table_choices, order), "sorted|appearance"},
    {"classes", CHOICE_CLASSES, SPEC_TEXT, offsetof(table_choices, classes), "words with | between them"},
    {"separator", CHOICE_SEPARATOR, SPEC_TEXT, offsetof(table_choices, separator), "one character"},
    {"parts", CHOICE_PARTS, SPEC_TEXT, offsetof(table_choices, parts), "words with | between them"},
    {"tokenizer", CHOICE_TOKENIZER, SPEC_TEXT, offsetof(table_choices, tokenizer),
     "a tokenizer.json, a SentencePiece .model, or bytes"},
    {"rate", CHOICE_SOUND, SPEC_LENGTH, offsetof(table_choices, rate), "a number from 1 to 16777216"},
    {"seconds", CHOICE_SOUND, SPEC_REAL, offsetof(table_choices, seconds), "a number"},
    {"length", CHOICE_LENGTH, SPEC_LENGTH, offsetof(table_choices, length), "a number from 1 to 16777216"},
    {"pad", CHOICE_LENGTH, SPEC_REAL, offsetof(table_choices, pad), "a number"}};
enum { SPEC_CHOICES = sizeof(spec_choices) / sizeof(*spec_choices) };

/* An entry while it is read. */
typedef struct spec_line {
  table *t;
  const field_list *list;
  int32_t number;
  const char *at, *end;
  table_field *field;
} spec_line;

static const char spec_form[] = "FIELD: KIND(COLUMN), such as age: number";

static tn_status spec_fail(const spec_line *l, const char *what, const char *value, size_t n) {
  return tn_fail(&l->t->env, TN_EINVAL, l->list->option, "%s: line %d: '%.*s': %s", l->list->option,
                 l->number, (int)(n < 80 ? n : 80), value, what);
}

/* ---- text ---- */

static void spec_skip_blanks(spec_line *l) {
  while (l->at < l->end && isspace((unsigned char)*l->at)) l->at++;
}

static bool spec_accept(spec_line *l, char c) {
  spec_skip_blanks(l);
  if (l->at == l->end || *l->at != c) return false;
  l->at++;
  return true;
}

static table_word spec_name(spec_line *l) {
  spec_skip_blanks(l);
  const char *first = l->at;
  while (l->at < l->end && (isalnum((unsigned char)*l->at) || *l->at == '_')) l->at++;
  return (table_word){first, (size_t)(l->at - first)};
}

/* A text in quotes, or up to a comma, a bracket or, of a name, an equals sign, without blanks around it. */
static table_word spec_argument(spec_line *l, bool name) {
  spec_skip_blanks(l);
  const char *first = l->at, *close = first < l->end && *first == '"'
                                          ? memchr(first + 1, '"', (size_t)(l->end - first - 1))
                                          : NULL;
  if (close != NULL) {
    l->at = close + 1;
    return (table_word){first + 1, (size_t)(close - first - 1)};
  }
  while (l->at < l->end && *l->at != ',' && *l->at != ')' && !(name && *l->at == '=')) l->at++;
  const char *last = l->at;
  while (last > first && isspace((unsigned char)last[-1])) last--;
  return (table_word){first, (size_t)(last - first)};
}

static bool spec_is(table_word word, const char *text) {
  return strlen(text) == word.n && memcmp(text, word.text, word.n) == 0;
}

/* ---- options ---- */

/* The number of a word in "a|b|c"; -1: it is another word. */
static int32_t spec_find_word(table_word word, const char *words) {
  for (int32_t i = 0; *words != '\0'; i++) {
    size_t n = strcspn(words, "|");
    if (word.n == n && memcmp(word.text, words, n) == 0) return i;
    words += n + (words[n] == '|');
  }
  return -1;
}

static tn_status spec_fill(spec_line *l, table_word value) {
  table_choices *c = &l->field->choices;
  bool words = (l->field->kind->choices & CHOICE_ABSENT) != 0;
  static const char fills[] = "error|mean|median", classes[] = "error|class";
  int32_t found = spec_find_word(value, words ? classes : fills);
  c->missing = words && found == 1 ? MISSING_CLASS : found;
  if (found >= 0) return TN_OK;
  if (!words && table_to_number(value.text, value.n, &c->constant)) {
    c->missing = MISSING_CONSTANT;
    return TN_OK;
  }
  return spec_fail(
      l, words ? "expected missing = error or class" : "expected missing = error, mean, median or a number",
      value.text, value.n);
}

static tn_status spec_set(spec_line *l, const spec_choice *choice, table_word value) {
  void *to = (char *)&l->field->choices + choice->offset;
  double number;
  bool fits = true;
  if (choice->type == SPEC_FILL) return spec_fill(l, value);
  if (choice->type == SPEC_WORDS || choice->type == SPEC_FLAG) {
    *(int32_t *)to = spec_find_word(value, choice->type == SPEC_FLAG ? "no|yes" : choice->expected);
    fits = *(int32_t *)to >= 0;
  } else if (choice->type == SPEC_TEXT) {
    *(const char **)to = table_memory_copy(&l->t->memory, value.text, value.n);
    if (*(const char **)to == NULL) return TN_ENOMEM;
    fits = value.n > 0;
  } else {
    fits = table_to_number(value.text, value.n, &number);
    if (fits && choice->type == SPEC_REAL) *(double *)to = number;
    if (fits && choice->type == SPEC_LENGTH) {
      fits = number >= 1 && number <= 16777216 && number == (double)(int64_t)number;
      *(int64_t *)to = fits ? (int64_t)number : 0;
    }
  }
  if (fits) return TN_OK;
  char text[128];
  snprintf(text, sizeof(text), "expected %s = %s", choice->name, choice->expected);
  return spec_fail(l, text, value.text, value.n);
}

/* A key that a kind has not is told which it has. */
static tn_status spec_option(spec_line *l, table_word key) {
  char text[400];
  int used = snprintf(text, sizeof(text), "%s has no such option; it has", l->field->kind->name);
  for (int32_t i = 0; i < SPEC_CHOICES; i++) {
    if ((spec_choices[i].kinds & l->field->kind->choices) == 0) continue;
    if (spec_is(key, spec_choices[i].name)) return spec_set(l, &spec_choices[i], spec_argument(l, false));
    used += snprintf(text + used, sizeof(text) - (size_t)used, " %s", spec_choices[i].name);
  }
  if (l->field->kind->choices == 0) snprintf(text, sizeof(text), "%s has no options", l->field->kind->name);
  return spec_fail(l, text, key.text, key.n);
}

/* ---- lines ---- */

static tn_status spec_add_column(spec_line *l, table_word name) {
  table_field *f = l->field;
  if (name.n == 0)
    return spec_fail(l, "expected the name of a column between commas", l->at, (size_t)(l->end - l->at));
  if (f->n > 0 && !f->kind->several)
    return spec_fail(l, "is a second column, and this kind has one; numbers and time have several", name.text,
                     name.n);
  const char **names = table_memory_take(&l->t->memory, ((size_t)f->n + 1) * sizeof(*names));
  if (names == NULL) return TN_ENOMEM;
  if (f->n > 0) memcpy(names, f->names, (size_t)f->n * sizeof(*names));
  names[f->n] = table_memory_copy(&l->t->memory, name.text, name.n);
  f->names = names;
  return names[f->n++] != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status spec_arguments(spec_line *l) {
  if (spec_accept(l, ')')) return TN_OK;
  do {
    table_word word = spec_argument(l, true);
    if (spec_accept(l, '='))
      TN_TRY(spec_option(l, word));
    else if (spec_is(word, "*") && l->field->kind->several && l->field->n == 0)
      l->field->rest = true;
    else
      TN_TRY(spec_add_column(l, word));
  } while (spec_accept(l, ','));
  if (spec_accept(l, ')')) return TN_OK;
  return spec_fail(l, "expected a comma or a closing bracket", l->at, (size_t)(l->end - l->at));
}

static tn_status spec_fail_kind(const spec_line *l, table_word name) {
  char text[300];
  int used = snprintf(text, sizeof(text), "is no kind of field, expected one of");
  for (int32_t i = 0; i < table_n_kinds; i++)
    used +=
        snprintf(text + used, sizeof(text) - (size_t)used, "%s %s", i > 0 ? "," : "", table_kinds[i]->name);
  return spec_fail(l, text, name.text, name.n);
}

static tn_status spec_kind(spec_line *l) {
  table_field *f = l->field;
  table_word kind = spec_name(l);
  for (int32_t i = 0; i < table_n_kinds; i++)
    if (spec_is(kind, table_kinds[i]->name)) f->kind = table_kinds[i];
  if (f->kind == NULL) return spec_fail_kind(l, kind);
  if (spec_accept(l, '(')) TN_TRY(spec_arguments(l));
  spec_skip_blanks(l);
  if (l->at < l->end)
    return spec_fail(l, "expected a comma, or the end of the line", l->at, (size_t)(l->end - l->at));
  if (f->n > 0 || f->rest) return TN_OK;
  return spec_add_column(l, (table_word){f->name, strlen(f->name)});
}

/* Makes room for one more field. */
static tn_status spec_grow(table *t) {
  table_field *fields = table_memory_take(&t->memory, ((size_t)t->n_fields + 1) * sizeof(*fields));
  if (fields == NULL) return TN_ENOMEM;
  if (t->n_fields > 0) memcpy(fields, t->fields, (size_t)t->n_fields * sizeof(*fields));
  t->fields = fields;
  return TN_OK;
}

static tn_status spec_field(table *t, const field_list *list, const field_entry *entry, int32_t role) {
  char name[SPEC_NAME];
  TN_TRY(field_list_name(list, entry, name, sizeof name));
  for (int32_t i = 0; i < t->n_fields; i++)
    if (strcmp(t->fields[i].name, name) == 0) return field_list_refuse_twice(list, name);
  TN_TRY(spec_grow(t));
  table_field *field = &t->fields[t->n_fields];
  *field = (table_field){.name = table_memory_copy(&t->memory, name, strlen(name)),
                         .role = role,
                         .other = -1,
                         .absent = -1,
                         .choices = {.separator = NULL}};
  if (field->name == NULL) return TN_ENOMEM;
  t->n_fields++;
  const char *at = entry->value.text;
  return spec_kind(&(spec_line){t, list, entry->line, at, at + entry->value.n, field});
}

tn_status table_spec_read(table *t, const char *option, const char *text, int32_t role) {
  field_list list = field_list_of(&t->env, option, spec_form, text);
  field_entry entry;
  while (field_list_next(&list, &entry)) TN_TRY(spec_field(t, &list, &entry, role));
  return TN_OK;
}

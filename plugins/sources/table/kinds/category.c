/* plugins/sources/table/kinds/category.c: a word as the number of its class, or several words as zeros and
 * ones. */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/table/kinds/kinds.h"

/* ---- the classes ---- */

static tn_status category_add(table *t, table_field *f, const char *text, size_t n) {
  return table_vocabulary_add(&t->memory, &f->words, text, n) != TABLE_FAILED ? TN_OK : TN_ENOMEM;
}

/* The words of classes = a|b|c, in this order. */
static tn_status category_take_given(table *t, table_field *f) {
  for (const char *at = f->choices.classes; *at != '\0';) {
    size_t n = strcspn(at, "|");
    TN_TRY(category_add(t, f, at, n));
    at += n + (at[n] == '|');
  }
  return TN_OK;
}

static tn_status category_learn_rows(table *t, table_field *f, const int64_t *rows, int64_t n) {
  const table_column *c = f->column[0];
  for (int64_t i = 0; i < n; i++) {
    int32_t word = c->words[rows[i]];
    if (word >= 0) TN_TRY(category_add(t, f, c->vocabulary.words[word].text, c->vocabulary.words[word].n));
  }
  return TN_OK;
}

static tn_status categories_learn_rows(table *t, table_field *f, const int64_t *rows, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    table_items items = table_items_of(f, f->column[0]->texts[rows[i]]);
    table_word item;
    while (table_items_next(&items, &item)) TN_TRY(category_add(t, f, item.text, item.n));
  }
  return TN_OK;
}

static tn_status category_learn(table *t, table_field *f, const int64_t *rows, int64_t n) {
  if (f->choices.classes != NULL) return category_take_given(t, f);
  TN_TRY(f->kind->form == TABLE_WORDS ? category_learn_rows(t, f, rows, n)
                                      : categories_learn_rows(t, f, rows, n));
  if (f->words.count == 0)
    return tn_fail(&t->env, TN_EINVAL, NULL, "%s: column '%s' has no word in the training rows",
                   t->parts[0].path, f->names[0]);
  return f->choices.order == ORDER_SORTED ? table_vocabulary_sort(&t->memory, &f->words) : TN_OK;
}

/* Names of the classes: the words, then `other` and `missing` where these have classes. */
static tn_status category_name_classes(table *t, table_field *f, int32_t *n) {
  *n = f->words.count;
  f->class_names = table_memory_take(&t->memory, ((size_t)*n + 2) * sizeof(*f->class_names));
  if (f->class_names == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < *n; i++) f->class_names[i] = f->words.words[i].text;
  if (f->choices.unknown == UNKNOWN_OTHER) f->class_names[f->other = (*n)++] = "other";
  if (f->choices.missing == MISSING_CLASS) f->class_names[f->absent = (*n)++] = "missing";
  return TN_OK;
}

static tn_status category_fail_unknown(const table *t, const table_field *f, int64_t row, table_word word) {
  char list[160] = "";
  size_t used = 0;
  int32_t shown = 0;
  for (; shown < f->words.count && used < sizeof(list) - 40; shown++)
    used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.30s", shown > 0 ? ", " : "",
                             f->words.words[shown].text);
  return table_fail_cell(
      t, &t->env, f->names[0], row, word.text, word.n,
      "is no class of the training rows, expected one of %s%s; unknown = other gives such words a "
      "class of their own",
      list, shown < f->words.count ? " ..." : "");
}

/* ---- one word ---- */

static tn_status category_code(const table *t, table_field *f, int64_t row) {
  const table_column *c = f->column[0];
  int32_t word = c->words[row], class = f->absent;
  if (word >= 0) {
    class = table_vocabulary_find(&f->words, c->vocabulary.words[word].text, c->vocabulary.words[word].n);
    if (class < 0) class = f->other;
    if (class < 0) return category_fail_unknown(t, f, row, c->vocabulary.words[word]);
  } else if (class < 0) {
    return table_fail_cell(t, &t->env, f->names[0], row, "", 0,
                           "is missing; missing = class gives missing values a class of their own");
  }
  f->codes[row] = class;
  return TN_OK;
}

static tn_status category_describe(table *t, table_field *f, tn_field *described) {
  int32_t n;
  TN_TRY(category_name_classes(t, f, &n));
  f->codes = tn_new(&t->env, (size_t)t->rows * sizeof(*f->codes) + 1);
  if (f->codes == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < t->rows; i++) TN_TRY(category_code(t, f, i));
  table_column_release(t, f->column[0]);
  *described = kind_field(f, (tn_type){TN_I32, 0, {0}});
  if (f->choices.one_hot) {
    described->type = (tn_type){TN_F32, 1, {n}};
  } else if (f->role == TN_FIELD_TARGET) {
    described->classes = n;
    described->class_names = f->class_names;
  }
  return TN_OK;
}

static void category_write(const table *t, const table_field *f, int64_t row, void *to) {
  (void)t;
  int32_t class = f->codes[row];
  if (!f->choices.one_hot) *(int32_t *)to = class;
  for (int64_t i = 0; i < f->width && f->choices.one_hot; i++) ((float *)to)[i] = i == class;
}

const table_kind kind_category = {.name = "category",
                                  .types = "i32[] or f32[classes]",
                                  .doc = "a word as the number of its class",
                                  .choices = CHOICE_ABSENT | CHOICE_UNKNOWN | CHOICE_ORDER | CHOICE_ONE_HOT |
                                             CHOICE_CLASSES,
                                  .form = TABLE_WORDS,
                                  .learn = category_learn,
                                  .describe = category_describe,
                                  .write = category_write};

/* ---- several words ---- */

static tn_status categories_check(const table *t, const table_field *f, int64_t row) {
  table_items items = table_items_of(f, f->column[0]->texts[row]);
  table_word item;
  while (table_items_next(&items, &item))
    if (f->other < 0 && table_vocabulary_find(&f->words, item.text, item.n) < 0)
      return category_fail_unknown(t, f, row, item);
  return TN_OK;
}

static tn_status categories_describe(table *t, table_field *f, tn_field *described) {
  int32_t n;
  TN_TRY(category_name_classes(t, f, &n));
  *described = kind_field(f, (tn_type){TN_F32, 1, {n}});
  if (f->role == TN_FIELD_TARGET) described->class_names = f->class_names;
  for (int64_t i = 0; i < t->rows; i++) TN_TRY(categories_check(t, f, i));
  return TN_OK;
}

static void categories_write(const table *t, const table_field *f, int64_t row, void *values) {
  (void)t;
  float *to = values;
  memset(to, 0, f->row_bytes);
  table_items items = table_items_of(f, f->column[0]->texts[row]);
  table_word item;
  while (table_items_next(&items, &item)) {
    int32_t class = table_vocabulary_find(&f->words, item.text, item.n);
    to[class >= 0 ? class : f->other] = 1;
  }
}

const table_kind kind_categories = {.name = "categories",
                                    .types = "f32[classes]",
                                    .doc = "several words in a cell as zeros and ones",
                                    .choices =
                                        CHOICE_UNKNOWN | CHOICE_ORDER | CHOICE_CLASSES | CHOICE_SEPARATOR,
                                    .form = TABLE_TEXTS,
                                    .learn = category_learn,
                                    .describe = categories_describe,
                                    .write = categories_write};

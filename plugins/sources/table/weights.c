/* plugins/sources/table/weights.c: the weights by which training draws samples: a column of numbers, or the
 * inverse of how often a value comes. */
#include <math.h>
#include <string.h>

#include "plugins/sources/table/table.h"

/* The column of balanced(COLUMN); *n is 0 where the option names a column of weights. */
static const char *weights_balanced(const table *t, size_t *n) {
  static const char form[] = "balanced(";
  const char *text = t->options->weight;
  size_t all = strlen(text), front = sizeof(form) - 1;
  bool is = all > front + 1 && memcmp(text, form, front) == 0 && text[all - 1] == ')';
  *n = is ? all - front - 1 : 0;
  return is ? text + front : text;
}

tn_status table_weight_column(table *t) {
  size_t n;
  const char *text = weights_balanced(t, &n);
  if (text[0] == '\0') return TN_OK;
  char *name = table_memory_copy(&t->memory, text, n > 0 ? n : strlen(text));
  table_column *c = name != NULL ? table_column_add(t, name, n > 0 ? TABLE_WORDS : TABLE_NUMBERS) : NULL;
  if (c == NULL) return TN_ENOMEM;
  c->users++;
  return TN_OK;
}

static const table_column *weights_column(const table *t, const char *name, size_t n, int32_t form) {
  for (int32_t i = 0; i < t->n_columns; i++)
    if (t->columns[i]->form == form && strlen(t->columns[i]->name) == n &&
        memcmp(t->columns[i]->name, name, n) == 0)
      return t->columns[i];
  return NULL;
}

/* A window is drawn by the row that it is to predict. */
static int64_t weights_row(const table *t, int64_t sample) {
  return t->windows != NULL ? t->windows[sample] + t->options->window : sample;
}

static tn_status weights_of_numbers(table *t, const table_column *c) {
  for (int64_t i = 0; i < t->samples; i++) {
    int64_t row = weights_row(t, i);
    t->weights[i] = c->numbers[row];
    if (!(t->weights[i] >= 0))
      return table_fail_cell(t, &t->env, c->name, row, "", 0,
                             "the weight is %s, expected a number of 0 or more",
                             isnan(t->weights[i]) ? "missing" : "negative");
  }
  return TN_OK;
}

static tn_status weights_of_words(table *t, const table_column *c) {
  int64_t *counts = tn_new(&t->env, (size_t)c->vocabulary.count * sizeof(*counts) + 1);
  tn_status status = counts != NULL ? TN_OK : TN_ENOMEM;
  for (int64_t i = 0; i < t->samples && status == TN_OK; i++) {
    int64_t row = weights_row(t, i);
    if (c->words[row] >= 0)
      counts[c->words[row]]++;
    else
      status = table_fail_cell(t, &t->env, c->name, row, "", 0, "is missing, and balances the rows");
  }
  for (int64_t i = 0; i < t->samples && status == TN_OK; i++)
    t->weights[i] = 1.0 / (double)counts[c->words[weights_row(t, i)]];
  tn_delete(&t->env, counts);
  return status;
}

tn_status table_weights_make(table *t) {
  size_t n;
  const char *name = weights_balanced(t, &n);
  if (name[0] == '\0') return TN_OK;
  t->weights = tn_new(&t->env, (size_t)t->samples * sizeof(*t->weights) + 1);
  if (t->weights == NULL) return TN_ENOMEM;
  return n > 0 ? weights_of_words(t, weights_column(t, name, n, TABLE_WORDS))
               : weights_of_numbers(t, weights_column(t, name, strlen(name), TABLE_NUMBERS));
}

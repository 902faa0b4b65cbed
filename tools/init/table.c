/* tools/init/table.c: the configuration for a table. */
#include "tools/init/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/cli/cli.h"
#include "tools/init/sounds.h"

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

/* ---- pictures, sounds and sentences ---- */

enum { TABLE_SIDE = 64, TABLE_TEXT_LENGTH = 256 };

static sounds_form table_sound_form(const table_survey *t, int i) {
  char path[PICTURES_PATH];
  table_first_file(t, &t->columns[i], path);
  return sounds_form_of(path);
}

static void table_write_file_field(FILE *to, const table_survey *t, int i) {
  table_use use = table_use_of(t, i);
  char name[TABLE_WORD];
  table_field_name(t, i, name);
  fprintf(to, "    %s: %s(", name, use == COLUMN_PICTURE ? "image" : use == COLUMN_SOUND ? "audio" : "text");
  table_write_column(to, t->columns[i].name);
  if (use == COLUMN_SOUND) {
    sounds_form form = table_sound_form(t, i);
    fprintf(to, ", rate=%lld, seconds=%g", form.rate, form.seconds);
  } else if (use == COLUMN_TEXT) {
    fprintf(to, ", length=%d", TABLE_TEXT_LENGTH);
  }
  fprintf(to, ")\n");
}

static void table_write_transforms(FILE *to, const table_survey *t) {
  char name[TABLE_WORD];
  int n = 0;
  for (int i = 0; i < t->n; i++) {
    table_use use = table_use_of(t, i);
    if (use != COLUMN_PICTURE && use != COLUMN_SOUND) continue;
    table_field_name(t, i, name);
    fprintf(to, n++ == 0 ? "transforms =\n    " : "    ");
    if (use == COLUMN_PICTURE)
      fprintf(to, "resize([%d, %d]), to_float <- %s\n", TABLE_SIDE, TABLE_SIDE, name);
    else
      sounds_write_mel(to, table_sound_form(t, i), name);
  }
}

static void table_write_file_type(FILE *to, const table_survey *t, int i, const char *name) {
  table_use use = table_use_of(t, i);
  if (use == COLUMN_PICTURE)
    fprintf(to, "%s: f32[3, %d, %d]", name, TABLE_SIDE, TABLE_SIDE);
  else if (use == COLUMN_SOUND)
    fprintf(to, "%s: f32[%d, %lld]", name, SOUNDS_BINS, sounds_frames(table_sound_form(t, i)));
  else
    fprintf(to, "%s: i32[%d]", name, TABLE_TEXT_LENGTH);
}

/* A vector of each file or sentence. */
static void table_write_file_layers(FILE *to, const table_survey *t, int i, const char *name) {
  table_use use = table_use_of(t, i);
  if (use == COLUMN_TEXT) {
    fprintf(to, "    %s_bytes: embedding(rows=256, width=32) <- %s\n    %s_states: gru(64)\n", name, name,
            name);
    fprintf(to, "    of_%s = mean(%s_states, axis=[1])\n", name, name);
    return;
  }
  if (use == COLUMN_SOUND)
    fprintf(to, "    %s_plane: reshape([1, %d, %lld]) <- %s\n", name, SOUNDS_BINS,
            sounds_frames(table_sound_form(t, i)), name);
  for (int k = 1, width = 16; k <= 3; k++, width *= 2) {
    fprintf(to, "    %s_conv%d: conv2d(%d, kernel=3, stride=2, padding=1, bias=no)", name, k, width);
    if (k == 1 && use == COLUMN_PICTURE) fprintf(to, " <- %s", name);
    fprintf(to, "\n    %s_bn%d: batch_norm\n    relu\n", name, k);
  }
  fprintf(to, "    of_%s: global_avg_pool\n", name);
}

/* ---- fields and layers ---- */

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
  for (int i = 0; i < t->n; i++)
    if (table_use_of(t, i) > COLUMN_CATEGORY) table_write_file_field(to, t, i);
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
static int table_write_vectors(FILE *to, const table_survey *t) {
  char name[TABLE_WORD];
  int vectors = 0;
  for (int i = 0; i < t->n; i++) {
    table_use use = table_use_of(t, i);
    if (use < COLUMN_CATEGORY) continue;
    table_field_name(t, i, name);
    if (use == COLUMN_CATEGORY)
      fprintf(to, "    of_%s: embedding(rows=%d, width=%d) <- %s\n", name, t->columns[i].few.n + 2,
              t->columns[i].few.n < 8 ? 4 : 8, name);
    else
      table_write_file_layers(to, t, i, name);
    vectors++;
  }
  return vectors;
}

static void table_write_layers(FILE *to, const table_survey *t, int numbers) {
  char name[TABLE_WORD];
  int parts = table_write_vectors(to, t) + (numbers > 0);
  fprintf(to, parts > 1 ? "    x: concat <- " : "    x: identity <- ");
  if (numbers > 0) fprintf(to, "numbers%s", parts > 1 ? ", " : "");
  for (int i = 0, k = numbers > 0; i < t->n; i++) {
    if (table_use_of(t, i) < COLUMN_CATEGORY) continue;
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
    table_use use = table_use_of(t, i);
    if (use < COLUMN_CATEGORY) continue;
    table_field_name(t, i, name);
    fprintf(to, "%s", k++ > 0 ? ", " : "");
    if (use == COLUMN_CATEGORY)
      fprintf(to, "%s: i32[]", name);
    else
      table_write_file_type(to, t, i, name);
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
  table_write_transforms(f->to, t);
  table_write_model(f->to, t, target, numbers);
  fprintf(f->to,
          "\n[optimizer]\ntype = adamw\nlr = 2e-3\nweight_decay = 0.01\n\n[schedule]\ntype = cosine\n");
}

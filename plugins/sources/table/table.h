/* plugins/sources/table/table.h: the parts of the source `table`. A file is read once, in blocks, into the
 * columns that fields use: numbers as f64, words as numbers of a vocabulary, other cells as text. Then the
 * rows are divided, the training rows teach the fields, and the rows of the other part are dropped. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "plugins/sources/sources.h"
#include "tenon/tokenizer.h"

/* ---- memory.c: memory that lives until close ---- */

typedef struct table_memory {
  const tn_env *env;
  struct table_block *last;
  char *at; /* the free part of one of the blocks */
  size_t left;
} table_memory;

/* Undefined bytes, aligned for numbers; NULL: TN_ENOMEM. */
void *table_memory_take(table_memory *m, size_t bytes);
/* NUL-terminated. */
char *table_memory_copy(table_memory *m, const char *text, size_t n);
void table_memory_free(table_memory *m);

/* ---- vocabulary.c: words, numbered in the order in which they are added ---- */

typedef struct table_word {
  const char *text; /* NUL-terminated */
  size_t n;
} table_word;

typedef struct table_vocabulary {
  table_word *words;
  int32_t count, room;
  int32_t *slots; /* number + 1; 0: free. A power of two of them */
  size_t n_slots;
} table_vocabulary;

enum { TABLE_ABSENT = -1, TABLE_FAILED = -2 };
/* The number of a word, or TABLE_ABSENT. */
int32_t table_vocabulary_find(const table_vocabulary *v, const char *text, size_t n);
/* The same; a word that is absent is added. TABLE_FAILED: out of memory. */
int32_t table_vocabulary_add(table_memory *m, table_vocabulary *v, const char *text, size_t n);
/* Numbers the words anew: by value where all of them are numbers, else by bytes. */
tn_status table_vocabulary_sort(table_memory *m, table_vocabulary *v);
void table_vocabulary_free(const tn_env *env, table_vocabulary *v);

/* ---- numbers.c: numbers and times as text ---- */

/* Parses a decimal number at `at`, which ends with a byte that belongs to no number, such as NUL. Returns its
 * end, or NULL for text that is no number or takes the exact conversion of table_to_number. Correctly
 * rounded. */
const char *table_number_fast(const char *at, double *value);
/* Whether all of the text is a finite number. Blanks around it are skipped. */
bool table_to_number(const char *text, size_t n, double *value);
/* Whether a cell counts as missing: empty, or one of the words that pandas takes for it. */
bool table_is_missing(const char *text, size_t n);
/* Seconds since 1970 of an ISO 8601 date or time, UTC unless it has an offset, or of a number of seconds. */
bool table_to_time(const char *text, size_t n, double *seconds);

/* ---- columns and fields ---- */

enum { TABLE_NUMBERS, TABLE_TIMES, TABLE_WORDS, TABLE_TEXTS }; /* the form in which a column is kept */

/* A column in one of these forms. */
typedef struct table_column {
  const char *name;
  int32_t form;
  int32_t cell;              /* its number among the cells of a row of the current file */
  struct table_column *next; /* another form of the same cell; NULL: none */
  int32_t users;             /* fields that have not released it yet */
  double *numbers;           /* TABLE_NUMBERS, TABLE_TIMES: NaN: missing */
  int32_t *words;            /* TABLE_WORDS: number in `vocabulary`, or TABLE_ABSENT: missing */
  table_word *texts;         /* TABLE_TEXTS: text NULL: missing */
  table_vocabulary vocabulary;
} table_column;

enum { MISSING_ERROR, MISSING_MEAN, MISSING_MEDIAN, MISSING_CONSTANT, MISSING_CLASS };
enum { UNKNOWN_ERROR, UNKNOWN_OTHER };
enum { ORDER_SORTED, ORDER_APPEARANCE };

/* The options of a field, of all kinds. */
typedef struct table_choices {
  int32_t missing, unknown, order;
  double constant; /* MISSING_CONSTANT */
  int32_t indicator, standardize, one_hot, index;
  const char *separator, *classes, *parts, *tokenizer;
  int64_t length; /* 0: varies */
  double pad;
  int64_t rate; /* samples a second; 0: not given */
  double seconds;
} table_choices;

typedef struct table_field {
  const char *name;
  int32_t role;
  const struct table_kind *kind;
  table_choices choices;
  bool rest;             /* all columns of numbers that no other field has */
  const char **names;    /* of the columns */
  int32_t n;             /* how many */
  table_column **column; /* them */
  /* learnt, or given */
  bool taught;
  double *fill, *mean, *deviation; /* [n], or NULL */
  table_vocabulary words;          /* the classes */
  const char **class_names;        /* with those for other and missing words */
  int32_t other, absent;           /* the classes of unknown and missing words, or -1 */
  tn_tokenizer *tokenizer;         /* NULL: the field has no tokens */
  /* the rows as they are given */
  float *values;    /* [rows, width] of numbers: filled and standardized */
  int32_t *codes;   /* [rows] of a category */
  int64_t width;    /* elements of a row of kinds with `write` */
  size_t row_bytes; /* their size */
} table_field;

typedef struct table_options {
  const char *file, *valid_file, *inputs, *targets;
  int32_t format, header, delimiter, decimal;
  double split;
  int64_t split_seed;
  const char *split_column, *split_value, *group, *time, *fold;
  const char *weight;
  int64_t window, horizon, stride;
  const char *series;
  int64_t max_pixels;
} table_options;

enum { FORMAT_AUTO, FORMAT_CSV, FORMAT_JSON };
enum { HEADER_AUTO, HEADER_YES, HEADER_NO };
enum { DECIMAL_POINT, DECIMAL_COMMA };

/* A file whose rows were read. */
typedef struct table_part {
  const char *path, *folder;
  int64_t first; /* its first row */
} table_part;

typedef struct table {
  tn_env env; /* that of open, for messages */
  const table_options *options;
  table_memory memory;
  table_field *fields;
  int32_t n_fields;
  table_column **columns;
  int32_t n_columns, column_room;
  table_part *parts;
  int32_t n_parts;
  int64_t rows, room;
  uint32_t *lines;     /* [rows] of the file */
  tn_field *described; /* [n_fields] */
  int64_t samples;     /* the rows, or the windows */
  int64_t *windows;    /* [samples]: the first row of each; NULL: a sample is a row */
  double *weights;     /* [samples]; NULL: none */
  int32_t decimal;     /* DECIMAL_... of the file that is read */
  bool divides;        /* the rows are divided into parts: not those of open_files */
  char *learnt;        /* JSON; NULL: nothing */
} table;

/* Fails with "FILE:LINE: column 'NAME', value 'VALUE': " in front; long values are cut. `row` is that of the
 * table, of which file and line are known. */
tn_status table_fail_cell(const table *t, const void *handle, const char *column, int64_t row,
                          const char *value, size_t n, const char *format, ...) TN_PRINTF(7, 8);
const table_part *table_part_of(const table *t, int64_t row);

/* ---- spec.c: the options `inputs` and `targets` ---- */

/* The options of fields, as bits of table_kind.choices. */
enum {
  CHOICE_FILL = 1 << 0,   /* missing = error, mean, median or a number */
  CHOICE_ABSENT = 1 << 1, /* missing = error or class */
  CHOICE_INDICATOR = 1 << 2,
  CHOICE_STANDARDIZE = 1 << 3,
  CHOICE_UNKNOWN = 1 << 4,
  CHOICE_ORDER = 1 << 5,
  CHOICE_ONE_HOT = 1 << 6,
  CHOICE_CLASSES = 1 << 7,
  CHOICE_SEPARATOR = 1 << 8,
  CHOICE_LENGTH = 1 << 9, /* with pad */
  CHOICE_PARTS = 1 << 10,
  CHOICE_INDEX = 1 << 11,
  CHOICE_TOKENIZER = 1 << 12,
  CHOICE_SOUND = 1 << 13 /* rate and seconds */
};

/* Reads the lines of an option, FIELD: KIND(COLUMN..., OPTION=VALUE...). */
tn_status table_spec_read(table *t, const char *option, const char *text, int32_t role);

/* ---- kinds.c ---- */

/* A kind of field. Callbacks may be NULL but for describe and read. */
typedef struct table_kind {
  const char *name, *types, *doc;
  uint32_t choices; /* the options that it has, a bit for each (spec.h) */
  int32_t form;     /* of its columns */
  bool several;     /* columns */
  bool files;       /* cells name files, which take time to read */
  /* Learns from the rows that are listed. */
  tn_status (*learn)(table *t, table_field *f, const int64_t *rows, int64_t n);
  /* Sets the type of a row, from the learnt state, and checks and converts the cells of all rows. */
  tn_status (*describe)(table *t, table_field *f, tn_field *described);
  /* One of the two. write: a row of a fixed size, whose values are in memory. read: the row of a sample. */
  void (*write)(const table *t, const table_field *f, int64_t row, void *to);
  tn_status (*read)(const table *t, const table_field *f, tn_sample *s, int32_t field);
} table_kind;

extern const table_kind *const table_kinds[];
extern const int32_t table_n_kinds;

/* ---- kinds/items.c: several items in a cell ---- */

typedef struct table_items {
  const char *at, *end;
  char separator; /* NUL: blanks, commas, semicolons and bars */
  bool json;      /* a list in brackets */
} table_items;

/* The items of a cell, which may be a list of JSON. */
table_items table_items_of(const table_field *f, table_word cell);
bool table_items_next(table_items *items, table_word *item);

/* The median of n numbers, at least one, which are moved. */
double table_median(double *v, int64_t n);

/* Means, deviations and fills of the columns of numbers or times, from the rows that are listed. */
tn_status table_learn_numbers(table *t, table_field *f, const int64_t *rows, int64_t n);
/* A value in the units that the model reads; NaN is filled. */
double table_scaled(const table_field *f, int32_t column, double value);
/* Fails where a number is missing that must not be, and where one does not fit f32. */
tn_status table_check_numbers(const table *t, const table_field *f);
/* Tells the units of a standardized target. */
void table_tell_units(const table_field *f, tn_field *described);

/* ---- rows.c: files into columns ---- */

/* A column in a form; it is added unless it is there. NULL: out of memory. */
table_column *table_column_add(table *t, const char *name, int32_t form);
/* Makes room for one more row, or for so many. Memory that is not written costs nothing. */
tn_status table_rows_grow(table *t);
tn_status table_rows_reserve(table *t, double rows);
/* table_to_number with the decimal mark of the file. */
bool table_cell_number(const table *t, const char *text, size_t n, double *value);
/* Stores a cell of row t->rows. */
tn_status table_column_store(table *t, table_column *column, const char *text, size_t n);
/* Keeps the rows that are listed, in ascending order. */
void table_rows_keep(table *t, const int64_t *rows, int64_t n);
/* Puts row order[i] at place i, of all rows. */
tn_status table_rows_order(table *t, const int64_t *order);
/* A field has read a column and does not need it any more: memory that no other field needs is freed. */
void table_column_release(table *t, table_column *column);
/* Forgets rows, columns and files. */
void table_rows_free(table *t);

/* ---- read.c ---- */

/* Reads a file, CSV or lines of JSON, behind the rows that are there. The first file decides which columns
 * the fields have. */
tn_status table_read(table *t, const char *path);

/* ---- split.c ---- */

/* Adds the columns that divide the rows. */
tn_status table_split_columns(table *t);
/* Lists the rows of a part. TN_EUNAVAILABLE: there is no validation part. The caller deletes *rows. */
tn_status table_split(const table *t, int32_t split, int64_t **rows, int64_t *n);

/* ---- windows.c: samples of several rows, in the order of time ---- */

static inline bool table_has_windows(const table *t) { return t->options->window > 0; }
/* Checks the options and adds the columns that order the rows. */
tn_status table_windows_columns(table *t);
/* Orders the rows of each file by their series, and within it by their times. */
tn_status table_windows_order(table *t);
/* The row behind the last one of the series that `row` belongs to. */
int64_t table_series_end(const table *t, int64_t row);
/* Finds the windows all of whose rows are listed. `rows` ascends. */
tn_status table_windows_find(table *t, const int64_t *rows, int64_t n);
/* Puts the dimension of rows in front of a field's type. */
tn_status table_windows_describe(table *t, tn_field *described);
/* The rows of a sample that a field has: the first one, and how many. */
static inline int64_t table_sample_rows(const table *t, const table_field *f, int64_t sample,
                                        int64_t *first) {
  bool target = f->role == TN_FIELD_TARGET;
  *first = t->windows == NULL ? sample : t->windows[sample] + (target ? t->options->window : 0);
  return t->windows == NULL ? 1 : target ? t->options->horizon : t->options->window;
}

/* ---- weights.c ---- */

/* Adds the column of the option `weight`. */
tn_status table_weight_column(table *t);
/* Sets t->weights, of the samples of the training part. */
tn_status table_weights_make(table *t);

/* ---- learnt.c ---- */

/* Writes what the fields have learnt to t->learnt. */
tn_status table_learnt_write(table *t);
/* Teaches the fields by the text of an earlier run. */
tn_status table_learnt_read(table *t, const char *text);

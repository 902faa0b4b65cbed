/* tools/init/table.h: a look at the columns of a table: CSV, or lines of JSON. */
#pragma once

#include "tools/init/init.h"

enum { TABLE_WORD = 64, TABLE_FEW = 64, TABLE_CELL = 512 };

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
  char first[TABLE_CELL]; /* the first word */
  long long pictures, sounds,
      sentences; /* words that end as names of such files; that have blanks and are long */
} table_column;

typedef enum {
  COLUMN_OUT,
  COLUMN_NUMBER,
  COLUMN_CATEGORY,
  COLUMN_PICTURE,
  COLUMN_SOUND,
  COLUMN_TEXT
} table_use;

struct table_survey {
  const char *path;
  char delimiter;
  bool header, json;
  bool texts; /* no other column teaches anything, so columns of sentences are inputs */
  long long rows;
  int n, target;
  table_column *columns;
};

/* Whether all of the text is a number. */
bool table_is_number(const char *text, double *value);
/* Words, or a few whole numbers. */
bool table_is_class(const table_column *c);
table_use table_use_of(const table_survey *t, int i);
/* The path of the file that the first word of a column names. */
void table_first_file(const table_survey *t, const table_column *c, char path[PICTURES_PATH]);

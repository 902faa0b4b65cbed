/* plugins/sources/table/csv.h: rows of cells between delimiters (RFC 4180), and how they are written. */
#pragma once

#include "plugins/sources/table/input.h"

typedef struct table_csv {
  table *t;
  table_input *in;
  char delimiter;
  bool detecting;         /* failures have no message */
  tn_status status;       /* of the row that failed */
  int64_t line;           /* of the next row; the first is 1 */
  int32_t cells;          /* of the row that was read last */
  int32_t wanted;         /* cells of every row; -1: any number */
  table_column **columns; /* [wanted]: what the cells go to; NULL: nowhere */
  table_word *row;        /* or where they are copied to: at most `room`; NULL: they are stored */
  int32_t room;
  char *unquoted; /* a cell with quotes in it */
  size_t unquoted_size;
  bool stops[256]; /* bytes that end a cell without quotes */
} table_csv;

/* Finds the delimiter, unless the options name it. */
tn_status table_csv_start(table *t, table_input *in, table_csv *csv);
/* Reads the next row; *more is false at the end. */
tn_status table_csv_row(table_csv *csv, bool *more);
/* Sets numbers[i] where the cells i of the rows in the current block are numbers or missing, and not all
 * missing. `rows` gets how many rows there are, and `bytes` how long they are. */
tn_status table_csv_survey(table_csv *csv, bool *numbers, int64_t *rows, size_t *bytes);
void table_csv_end(table_csv *csv);

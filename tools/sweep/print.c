/* tools/sweep/print.c: the table of a sweep. */
#include <math.h>
#include <string.h>

#include "tools/sweep/sweep.h"

enum { PRINT_NUMBER = 32, PRINT_COLUMN = 40 };

/* The width of an option's column: that of its name and of its longest value. */
static int print_width(const json_t *table, size_t option, const char *name) {
  size_t width = strlen(name);
  for (size_t i = 0; i < json_array_size(table); i++) {
    const json_t *values = json_object_get(json_array_get(table, i), "values");
    size_t n = json_string_length(json_array_get(values, option));
    if (n > width) width = n;
  }
  return width < PRINT_COLUMN ? (int)width : PRINT_COLUMN;
}

static const char *print_number(double value, char text[PRINT_NUMBER]) {
  if (isnan(value))
    snprintf(text, PRINT_NUMBER, "-");
  else
    snprintf(text, PRINT_NUMBER, "%.5g", value);
  return text;
}

/* "finished", or where its runs differ "3 finished, 1 failed". */
static void print_status(const json_t *runs, const json_t *row) {
  const json_t *names = json_object_get(row, "runs");
  json_t *counts = json_object(), *count;
  const char *status, *before = "";
  for (size_t i = 0; i < json_array_size(runs); i++) {
    const json_t *run = json_array_get(runs, i);
    if (cli_integer(run, "configuration") + 1 != cli_integer(row, "configuration")) continue;
    status = cli_text(run, "status");
    json_object_set_new(counts, status, json_integer(cli_integer(counts, status) + 1));
  }
  json_object_foreach(counts, status, count) {
    if (json_array_size(names) > 1)
      printf("%s%lld %s", before, json_integer_value(count), status);
    else
      printf("%s", status);
    before = ", ";
  }
  json_decref(counts);
}

static void print_row(const json_t *result, const json_t *row, bool repeats) {
  const json_t *options = json_object_get(result, "options"), *values = json_object_get(row, "values"),
               *names = json_object_get(row, "runs");
  char mean[PRINT_NUMBER], deviation[PRINT_NUMBER];
  for (size_t k = 0; k < json_array_size(options); k++) {
    int width =
        print_width(json_object_get(result, "ranking"), k, json_string_value(json_array_get(options, k)));
    printf("%-*.*s  ", width, width, json_string_value(json_array_get(values, k)));
  }
  printf("%12s", print_number(cli_number(row, "mean"), mean));
  if (repeats) printf(" %10s", print_number(cli_number(row, "std"), deviation));
  printf(" %7lld %9.1f  %-8s ", cli_integer(row, "epochs"), cli_number(row, "seconds"),
         json_string_value(json_array_get(names, 0)));
  print_status(json_object_get(result, "runs"), row);
  printf("\n");
}

void sweep_print(const json_t *result) {
  const json_t *options = json_object_get(result, "options"), *table = json_object_get(result, "ranking");
  bool repeats = json_array_size(json_object_get(result, "runs")) > json_array_size(table);
  for (size_t k = 0; k < json_array_size(options); k++) {
    const char *name = json_string_value(json_array_get(options, k));
    printf("%-*s  ", print_width(table, k, name), name);
  }
  printf("%12s", cli_text(result, "metric"));
  if (repeats) printf(" %10s", "std");
  printf(" %7s %9s  %-8s %s\n", "epochs", "seconds", repeats ? "runs" : "run", "status");
  for (size_t i = 0; i < json_array_size(table); i++) print_row(result, json_array_get(table, i), repeats);
}

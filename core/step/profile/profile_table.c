/* core/step/profile/profile_table.c: the table of a profile for people. */
#include <string.h>

#include "core/step/profile/step_profile.h"

/* Rows of each part; the JSON has all. */
enum { ROWS = 12 };

static double table_number(const json_t *row, const char *key) {
  return json_number_value(json_object_get(row, key));
}

/* All digits before the point, or some of those that count; never more than 8 columns up to 1e8. */
static void table_add_number(tn_text *text, int width, double value) {
  const char *format = value >= 1000    ? " %*.0f"
                       : value >= 1     ? " %*.4g"
                       : value >= 0.001 ? " %*.3g"
                                        : " %*.1e";
  tn_text_addf(text, format, width, value);
}

/* A rate that is not known is left out: nothing is counted for the op. */
static void table_add_rate(tn_text *text, double rate) {
  if (rate > 0)
    table_add_number(text, 7, rate);
  else
    tn_text_addf(text, " %7s", "");
}

static void table_end_line(tn_text *text) {
  while (!text->failed && text->n > 0 && text->v[text->n - 1] == ' ') text->v[--text->n] = '\0';
  tn_text_add(text, "\n");
}

static void table_add_row(tn_text *text, const char *key, const json_t *row) {
  tn_text_addf(text, "%-31.31s %8.0f", json_string_value(json_object_get(row, key)),
               table_number(row, "launches"));
  table_add_number(text, 8, table_number(row, "ms"));
  tn_text_addf(text, " %5.1f", table_number(row, "share") * 100);
  table_add_number(text, 7, table_number(row, "mean_us"));
  table_add_rate(text, table_number(row, "gflop_s"));
  table_add_rate(text, table_number(row, "gb_s"));
  table_end_line(text);
}

static void table_add_rows(tn_text *text, const char *key, const json_t *rows) {
  size_t n = json_array_size(rows);
  if (n == 0) return;
  tn_text_addf(text, "\n%-31s %8s %8s %5s %7s %7s %7s\n", key, "launches", "ms", "%", "mean us", "GFLOP/s",
               "GB/s");
  for (size_t i = 0; i < n && i < ROWS; i++) table_add_row(text, key, json_array_get(rows, i));
  if (n > ROWS) tn_text_addf(text, "... and %zu more\n", n - ROWS);
}

/* A line of the sums; nothing for a part that takes no time. */
static void table_add_sum(tn_text *text, const char *name, double ms, double wall_ms) {
  if (ms <= 0) return;
  tn_text_addf(text, "%-40s", name);
  table_add_number(text, 8, ms);
  tn_text_addf(text, " %5.1f\n", wall_ms > 0 ? ms / wall_ms * 100 : 0);
}

static void table_add_copies(tn_text *text, const char *name, const json_t *copies) {
  if (table_number(copies, "copies") == 0) return;
  tn_text_addf(text, "%-31s %8.0f", name, table_number(copies, "copies"));
  table_add_number(text, 8, table_number(copies, "ms"));
  tn_text_addf(text, " %21s", "");
  table_add_number(text, 7, table_number(copies, "gb_s"));
  tn_text_add(text, "\n");
}

static void table_add_loader(tn_text *text, const json_t *loader) {
  int workers = (int)table_number(loader, "workers");
  if (table_number(loader, "parts") == 0) return;
  if (workers > 0)
    tn_text_addf(text, "loader: %d thread%s", workers, workers == 1 ? "" : "s");
  else
    tn_text_add(text, "loader: in the thread of the steps");
  tn_text_addf(text, ", %.4g ms reading, %.4g ms in transforms\n", table_number(loader, "reading_ms"),
               table_number(loader, "transforms_ms"));
}

void tn_profile_table(const json_t *report, tn_text *text) {
  double wall = table_number(report, "wall_ms"), first = table_number(report, "first_step"),
         n = table_number(report, "steps"), of = table_number(report, "of_steps");
  const json_t *copies = json_object_get(report, "copies"), *loader = json_object_get(report, "loader");
  tn_text_addf(text, "profile of step%s %.0f", n == 1 ? "" : "s", first);
  if (n > 1) tn_text_addf(text, " to %.0f", first + n - 1);
  if (of > 0) tn_text_addf(text, " of %.0f", of);
  tn_text_addf(text, ": %.4g ms a step, %.4g samples/s\n", table_number(report, "step_ms"),
               table_number(report, "samples_per_s"));
  table_add_rows(text, "kernel", json_object_get(report, "kernels"));
  table_add_rows(text, "op", json_object_get(report, "ops"));
  tn_text_add(text, "\n");
  table_add_copies(text, "copies to the device", json_object_get(copies, "to_device"));
  table_add_copies(text, "copies to the host", json_object_get(copies, "to_host"));
  table_add_sum(text, "launches", table_number(report, "launched_ms"), wall);
  table_add_sum(text, "waits for collectives", table_number(report, "collective_wait_ms"), wall);
  table_add_sum(text, "between launches", table_number(report, "between_ms"), wall);
  table_add_sum(text, "all", wall, wall);
  table_add_sum(text, "the host waited for batches", table_number(loader, "waited_ms"), wall);
  table_add_loader(text, loader);
}

/* core/records/folders/sweep_table.c: tn_write_sweep: results.json, results.csv and report.html of a sweep.
 */
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/records/folders/sweep_results.h"
#include "core/records/folders/write_report.h"
#include "core/run/result.h"
#include "tenon/folders.h"

/* A cell of RFC 4180. */
static void sweep_add_cell(tn_text *text, const char *cell) {
  bool quoted = cell[strcspn(cell, ",\"\r\n")] != '\0';
  if (!quoted) {
    tn_text_add(text, cell);
    return;
  }
  tn_text_add(text, "\"");
  for (size_t i = 0; cell[i] != '\0'; i++) tn_text_addf(text, cell[i] == '"' ? "\"\"" : "%c", cell[i]);
  tn_text_add(text, "\"");
}

/* An empty cell where there is no number. */
static void sweep_add_number(tn_text *text, const json_t *value) {
  tn_text_add(text, ",");
  if (json_is_integer(value)) tn_text_addf(text, "%lld", (long long)json_integer_value(value));
  if (json_is_real(value)) tn_text_add_float(text, json_real_value(value));
}

static void sweep_add_csv_row(tn_text *text, const json_t *row) {
  static const char *const numbers[] = {"mean", "std", "scored", "epochs", "seconds"};
  tn_text_addf(text, "%lld", (long long)json_integer_value(json_object_get(row, "configuration")));
  const json_t *values = json_object_get(row, "values");
  for (size_t k = 0; k < json_array_size(values); k++) {
    tn_text_add(text, ",");
    sweep_add_cell(text, json_string_value(json_array_get(values, k)));
  }
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
    sweep_add_number(text, json_object_get(row, numbers[k]));
  tn_text_add(text, "\n");
}

/* configuration,optimizer.lr,...,accuracy,accuracy.std,runs,epochs,seconds */
static void sweep_add_csv(tn_text *text, const json_t *result) {
  const json_t *options = json_object_get(result, "options"), *table = json_object_get(result, "ranking");
  const char *metric = json_string_value(json_object_get(result, "metric"));
  tn_text_add(text, "configuration");
  for (size_t k = 0; k < json_array_size(options); k++) {
    tn_text_add(text, ",");
    sweep_add_cell(text, json_string_value(json_array_get(options, k)));
  }
  tn_text_addf(text, ",%s,%s.std,runs,epochs,seconds\n", metric, metric);
  for (size_t i = 0; i < json_array_size(table); i++) sweep_add_csv_row(text, json_array_get(table, i));
}

static tn_status sweep_write(tn_context *context, tn_arena *arena, const char *folder, const char *name,
                             const char *text) {
  const char *path = text != NULL ? tn_arena_printf(arena, "%s/%s", folder, name) : NULL;
  return path != NULL ? tn_file_write_atomic(context, path, text, strlen(text)) : TN_ENOMEM;
}

tn_status tn_write_sweep(tn_context *context, const char *folder) {
  TN_ENTER(context);
  TN_NEED(context, folder, "folder");
  tn_arena arena = tn_arena_new(context);
  tn_text csv = tn_text_new(context);
  json_t *result = NULL;
  char *text = NULL;
  tn_status status = tn_sweep_results(context, &arena, folder, &result);
  if (status == TN_OK) sweep_add_csv(&csv, result);
  if (status == TN_OK)
    status = csv.failed ? TN_ENOMEM : sweep_write(context, &arena, folder, "results.csv", csv.v);
  if (status == TN_OK) status = tn_json_take(context, result, &text);
  if (status == TN_OK) status = sweep_write(context, &arena, folder, "results.json", text);
  const char *page = tn_arena_printf(&arena, "%s/report.html", folder);
  if (status == TN_OK) status = page != NULL ? tn_report_write(context, &folder, 1, page) : TN_ENOMEM;
  if (text == NULL) json_decref(result);
  tn_release(context, text);
  tn_text_free(&csv);
  tn_arena_free(&arena);
  return status;
}

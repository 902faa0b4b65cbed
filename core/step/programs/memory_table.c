/* core/step/programs/memory_table.c: the memory report as JSON and as text. */
#include "core/run/result.h"
#include "core/step/programs/memory_report.h"

/* The names of the rows. `host`: memory of the host, also where the device has memory of its own. `always`:
 * the text has it also with 0 bytes. */
typedef struct memory_row_name {
  const char *name;
  bool host, always;
} memory_row_name;

static const memory_row_name memory_names[TN_USES] = {
    [TN_USE_PARAMETERS] = {"parameters", false, true},
    [TN_USE_COPIES] = {"low-precision copies", false, false},
    [TN_USE_GRADIENTS] = {"gradients", false, true},
    [TN_USE_OPTIMIZER] = {"optimizer state", false, true},
    [TN_USE_AVERAGES] = {"averages", false, false},
    [TN_USE_BUFFERS] = {"statistics and counters", false, false},
    [TN_USE_ACTIVATIONS] = {"activations", false, true},
    [TN_USE_WORKSPACES] = {"workspaces", false, true},
    [TN_USE_STREAMED] = {"streamed weights", false, false},
    [TN_USE_FRAGMENTATION] = {"fragmentation", false, true},
    [TN_USE_CONSTANTS] = {"constants", false, false},
    [TN_USE_INPUTS] = {"input ring", false, true},
    [TN_USE_OUTPUTS] = {"outputs", false, true},
    [TN_USE_STAGING] = {"staging on the host", true, false},
    [TN_USE_FALLBACKS] = {"fallbacks on the host", true, false},
    [TN_USE_LIBRARIES] = {"library memory", false, true},
    [TN_USE_GRAPH] = {"graph", false, false},
};

static double memory_mib(int64_t bytes) { return (double)bytes / 1048576.0; }

/* ---- text ---- */

static void memory_print_row(tn_text *text, const char *name, int64_t bytes, int64_t total) {
  tn_text_addf(text, "  %-26s %12.3f %6.1f\n", name, memory_mib(bytes),
               total > 0 ? 100.0 * (double)bytes / (double)total : 0.0);
}

static void memory_print_peak(tn_text *text, const tn_memory_report *report) {
  if (report->peak < 0)
    tn_text_addf(text, "peak before the first launch of program %s; held by:\n", report->program->name);
  else
    tn_text_addf(text, "peak at launch %d of %d of program %s, %s; held by:\n", (int)report->peak + 1,
                 (int)report->program->n_steps, report->program->name,
                 report->program->steps[report->peak].name);
  for (int32_t i = 0; i < report->n_holders; i++) {
    const tn_memory_holder *h = &report->holders[i];
    tn_text_addf(text, "  %12.3f  %-16s ", memory_mib(h->bytes), memory_names[h->row].name);
    if (h->last >= 0)
      tn_text_addf(text, "%s, launches %d-%d\n", h->name, (int)h->first + 1, (int)h->last + 1);
    else
      tn_text_addf(text, "%s\n", h->name);
  }
}

static void memory_print(tn_text *text, const tn_memory_report *report) {
  tn_text_addf(text, "%-28s %12s %6s\n", "memory by use", "MiB", "%");
  for (int32_t r = 0; r < TN_USES; r++)
    if (memory_names[r].always || report->rows[r] > 0)
      memory_print_row(text, memory_names[r].name, report->rows[r] > 0 ? report->rows[r] : 0,
                       report->total_bytes);
  memory_print_row(text, "total", report->total_bytes, report->total_bytes);
  tn_text_addf(text, "  %-26s %12.3f\n", "offloaded to the host", memory_mib(report->offloaded_bytes));
  if (report->placed_bytes > 0)
    tn_text_addf(text, "  %-26s %12.3f\n", "of it by [optimizer] place", memory_mib(report->placed_bytes));
  if (report->streamed_bytes > 0)
    tn_text_addf(text, "  %-26s %12.3f\n", "of it streamed weights", memory_mib(report->streamed_bytes));
  memory_print_peak(text, report);
}

/* ---- JSON ---- */

static json_t *memory_rows_json(const tn_memory_report *report) {
  json_t *list = json_array();
  for (int32_t r = 0; r < TN_USES; r++) {
    int64_t bytes = report->rows[r];
    json_t *one = json_pack("{s:s, s:o, s:b}", "name", memory_names[r].name, "bytes",
                            bytes < 0 ? json_null() : json_integer(bytes), "host", (int)memory_names[r].host);
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *memory_peak_json(const tn_memory_report *report) {
  const tn_program *p = report->program;
  json_t *values = json_array();
  for (int32_t i = 0; i < report->n_holders; i++) {
    const tn_memory_holder *h = &report->holders[i];
    json_array_append_new(values, json_pack("{s:s, s:s, s:I, s:i, s:i}", "name", h->name, "use",
                                            memory_names[h->row].name, "bytes", (json_int_t)h->bytes, "first",
                                            (int)h->first, "last", (int)h->last));
  }
  return json_pack("{s:s, s:i, s:i, s:s, s:o}", "program", p->name, "launch", (int)report->peak, "launches",
                   (int)p->n_steps, "name", report->peak < 0 ? "" : p->steps[report->peak].name, "values",
                   values);
}

static tn_status memory_add_curve(const tn_program *p, int32_t kind, const char *name, json_t *json) {
  int64_t *bytes = tn_alloc(p->env, tn_size_mul((size_t)p->n_steps + 1, sizeof *bytes));
  json_t *list = json_array();
  if (bytes != NULL) tn_live_memory_curve(&p->live, kind, p->n_steps, bytes);
  for (int32_t s = 1; bytes != NULL && s <= p->n_steps; s++)
    json_array_append_new(list, json_integer((json_int_t)bytes[s]));
  json_object_set_new(json, name, list);
  tn_status status = bytes != NULL ? TN_OK : TN_ENOMEM;
  tn_release(p->env, bytes);
  return status;
}

static tn_status memory_curves_json(const tn_program *p, json_t *json) {
  static const char *const names[TN_LIVE_KINDS] = {"activations", "gradients", "workspaces", "streamed"};
  for (int32_t kind = 0; kind < TN_LIVE_KINDS; kind++) TN_TRY(memory_add_curve(p, kind, names[kind], json));
  return TN_OK;
}

tn_status tn_memory_report_json(const tn_program_set *set, const tn_memory_report *report, json_t **json) {
  json_t *curves = json_object();
  tn_text text = tn_text_new(set->map->env);
  tn_status status = memory_curves_json(report->program, curves);
  memory_print(&text, report);
  *json = NULL;
  if (status == TN_OK && !text.failed)
    *json = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:O, s:o}", "rows", memory_rows_json(report),
                      "executor_bytes", (json_int_t)report->executor_bytes, "total_bytes",
                      (json_int_t)report->total_bytes, "offloaded_bytes", (json_int_t)report->offloaded_bytes,
                      "placed_bytes", (json_int_t)report->placed_bytes, "streamed_bytes",
                      (json_int_t)report->streamed_bytes, "libraries_measured", (int)report->measured, "peak",
                      memory_peak_json(report), "by_launch", curves, "lines", tn_json_lines(text.v));
  json_decref(curves);
  tn_text_free(&text);
  return *json != NULL ? TN_OK : tn_failf(set->map->env, TN_ENOMEM, "no memory for the table of memory");
}

tn_status tn_memory_report_add(const tn_program_set *set, int32_t slots, bool direct, tn_device *measured,
                               json_t *json) {
  tn_memory_report report;
  json_t *table = NULL;
  tn_arena arena = tn_arena_new(set->map->env);
  tn_status status = tn_memory_report_make(set, slots, direct, &arena, &report);
  if (status == TN_OK && measured != NULL) tn_memory_report_measure(measured, &report);
  if (status == TN_OK) status = tn_memory_report_json(set, &report, &table);
  if (status == TN_OK) json_object_set_new(json, "memory_table", table);
  tn_arena_free(&arena);
  return status;
}

/* ---- one line ---- */

enum { MEMORY_LINE_HOLDERS = 4, MEMORY_LINE_LEAST = 52429 /* 0.05 MiB */ };

const char *tn_memory_report_line(const tn_memory_report *report, tn_arena *arena) {
  const char *text = "";
  for (int32_t r = 0; r < TN_USE_LIBRARIES && text != NULL; r++)
    if (report->rows[r] >= MEMORY_LINE_LEAST)
      text = tn_arena_printf(arena, "%s%s%s %.1f MiB", text, *text != '\0' ? ", " : "", memory_names[r].name,
                             memory_mib(report->rows[r]));
  for (int32_t i = 0; i < MEMORY_LINE_HOLDERS && i < report->n_holders && text != NULL; i++)
    text = tn_arena_printf(arena, "%s%s%.2f MiB %s", text,
                           i > 0 ? ", " : "; the largest at the peak: ", memory_mib(report->holders[i].bytes),
                           report->holders[i].name);
  return text != NULL ? text : "";
}

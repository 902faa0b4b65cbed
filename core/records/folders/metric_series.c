#include "core/records/folders/metric_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/records/folders/run_lines.h"
#include "core/run/result.h"

enum { POINTS = 1024, NAMES = 40, FIXED = 4 };

/* The columns that every run has; the measures of training follow. */
static const char *const series_fixed[FIXED] = {"step", "lr", "per_s", "loss_scale"};

typedef struct series_point {
  double sum[NAMES];
  int32_t n[NAMES];
  int32_t steps;
} series_point;

typedef struct series_reader {
  series_point *points; /* POINTS of them */
  int32_t n, steps_per_point;
  char *names[NAMES]; /* of the measures, from FIXED on */
  int32_t n_names;
} series_reader;

/* The column of a measure, which may be new; -1: there are too many. */
static int32_t series_column(series_reader *r, const char *name) {
  for (int32_t i = FIXED; i < r->n_names; i++)
    if (strcmp(r->names[i], name) == 0) return i;
  if (r->n_names == NAMES || (r->names[r->n_names] = strdup(name)) == NULL) return -1;
  return r->n_names++;
}

static void series_add(series_point *p, int32_t column, const json_t *value) {
  if (column < 0 || !json_is_number(value)) return;
  p->sum[column] += json_number_value(value);
  p->n[column]++;
}

/* Halves the points. */
static void series_merge(series_reader *r) {
  for (int32_t i = 0; i < r->n / 2; i++) {
    series_point *a = &r->points[i], b = r->points[2 * i + 1];
    *a = r->points[2 * i];
    for (int32_t k = 0; k < NAMES; k++) {
      a->sum[k] += b.sum[k];
      a->n[k] += b.n[k];
    }
    a->steps += b.steps;
  }
  r->n /= 2;
  r->steps_per_point *= 2;
}

static series_point *series_next_point(series_reader *r) {
  if (r->n > 0 && r->points[r->n - 1].steps < r->steps_per_point) return &r->points[r->n - 1];
  if (r->n == POINTS) series_merge(r);
  r->points[r->n] = (series_point){.steps = 0};
  return &r->points[r->n++];
}

static void series_take_step(series_reader *r, const json_t *line) {
  const char *name;
  json_t *value;
  series_point *p = series_next_point(r);
  for (int32_t i = 0; i < FIXED; i++) series_add(p, i, json_object_get(line, series_fixed[i]));
  json_object_foreach(json_object_get(line, "train"), name, value) {
    series_add(p, series_column(r, name), value);
  }
  p->steps++;
}

static void series_take_line(void *context, const tn_text *text) {
  static const char step[] = "{\"event\": \"step\"";
  if (!tn_text_starts(text->v, step)) return;
  json_t *line = json_loadb(text->v, text->n, 0, NULL);
  if (line != NULL) series_take_step(context, line);
  json_decref(line);
}

static json_t *series_json(const series_reader *r, int32_t column) {
  json_t *list = json_array();
  for (int32_t i = 0; i < r->n; i++) {
    const series_point *p = &r->points[i];
    double mean = p->n[column] > 0 ? p->sum[column] / p->n[column] : (double)NAN;
    json_array_append_new(list, tn_json_real(mean));
  }
  return list;
}

static json_t *series_result(const series_reader *r) {
  json_t *all = json_object(), *train = json_object();
  for (int32_t i = 0; i < FIXED; i++) json_object_set_new(all, series_fixed[i], series_json(r, i));
  for (int32_t i = FIXED; i < r->n_names; i++) json_object_set_new(train, r->names[i], series_json(r, i));
  json_object_set_new(all, "train", train);
  return all;
}

tn_status tn_metric_series_read(const void *handle, const char *folder, json_t **series) {
  series_reader r = {.steps_per_point = 1, .n_names = FIXED};
  r.points = tn_alloc(handle, POINTS * sizeof *r.points);
  *series = NULL;
  tn_status status =
      r.points != NULL ? tn_run_lines_scan(handle, folder, "metrics.jsonl", series_take_line, &r) : TN_ENOMEM;
  if (status == TN_OK) *series = series_result(&r);
  for (int32_t i = FIXED; i < r.n_names; i++) free(r.names[i]);
  tn_release(handle, r.points);
  return status;
}

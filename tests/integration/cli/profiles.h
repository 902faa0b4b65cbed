/* tests/integration/cli/profiles.h: checks of profile.json and trace.json, by their own figures alone. */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "program.h"

static void profile_near(double a, double b, double scale) {
  if (!(fabs(a - b) <= 1e-6 * scale + 1e-9)) fail_msg("%.12g is not %.12g", a, b);
}

static double profile_sum(const json_t *rows, const char *key) {
  double sum = 0;
  for (size_t i = 0; i < json_array_size(rows); i++) sum += program_number(json_array_get(rows, i), key);
  return sum;
}

/* Each list of rows has all launches and all of their time, and the rates follow from the sums. */
static void profile_check_rows(const json_t *p, const char *list) {
  const json_t *rows = program_member(p, list), *launches = program_member(p, "launches");
  double wall = program_number(p, "wall_ms"), last = INFINITY;
  profile_near(profile_sum(rows, "ms"), profile_sum(launches, "ms"), wall);
  assert_true(profile_sum(rows, "launches") == profile_sum(launches, "launches"));
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const json_t *row = json_array_get(rows, i);
    double ms = program_number(row, "ms"), n = program_number(row, "launches");
    assert_true(ms >= 0 && n > 0);
    profile_near(program_number(row, "share"), ms / wall, 1);
    profile_near(program_number(row, "mean_us"), ms * 1e3 / n, ms * 1e3 / n);
    if (ms > 0) profile_near(program_number(row, "gb_s") * ms * 1e6, program_number(row, "bytes"), 1e12);
    if (strcmp(list, "launches") != 0) assert_true(ms <= last);
    last = ms;
  }
}

/* The time of the steps is that of the launches, of waits for collectives, and between them. */
static void profile_check_sums(const json_t *p, int steps, int batch) {
  double wall = program_number(p, "wall_ms");
  assert_int_equal(program_number(p, "steps"), steps);
  assert_int_equal(program_number(p, "samples"), steps * batch);
  assert_int_equal(program_number(p, "lost_spans"), 0);
  profile_near(program_number(p, "step_ms") * steps, wall, wall);
  double launched = program_number(p, "launched_ms"), between = program_number(p, "between_ms"),
         awaited = program_number(p, "collective_wait_ms");
  assert_true(launched > 0 && between >= 0 && awaited >= 0);
  profile_near(launched + between + awaited, wall, wall);
  double batches = program_number(p, "loader.waited_ms"), enqueuing = program_number(p, "host.enqueuing_ms"),
         waiting = program_number(p, "host.waiting_ms");
  assert_true(batches >= 0 && enqueuing > 0 && waiting >= 0 && batches + enqueuing + waiting <= wall);
  assert_true(program_number(p, "loader.reading_ms") >= 0 && program_number(p, "loader.transforms_ms") >= 0);
  profile_check_rows(p, "launches");
  profile_check_rows(p, "kernels");
  profile_check_rows(p, "ops");
}

/* ---- traces ---- */

/* The row of a name, or -1. */
static int trace_row(const json_t *trace, const char *name) {
  const json_t *events = program_member(trace, "traceEvents");
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    if (strcmp(program_text(e, "name"), "thread_name") == 0 &&
        strcmp(program_text(e, "args.name"), name) == 0)
      return (int)program_number(e, "tid");
  }
  return -1;
}

static int trace_is_span(const json_t *e, int row) {
  return strcmp(program_text(e, "ph"), "X") == 0 && (int)program_number(e, "tid") == row;
}

/* The spans of a row; name NULL: all of them. */
static int trace_count(const json_t *trace, const char *row, const char *category) {
  const json_t *events = program_member(trace, "traceEvents");
  int count = 0, number = trace_row(trace, row);
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    count += trace_is_span(e, number) && (!category || strcmp(program_text(e, "cat"), category) == 0);
  }
  return count;
}

typedef struct trace_span {
  double from, to;
} trace_span;

static int trace_compare_spans(const void *a, const void *b) {
  const trace_span *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to > y->to ? -1 : x->to < y->to;
}

/* Of two spans of a row one ends before the other begins, or lies in it. Times are microseconds. */
static void trace_check_row(const json_t *trace, int row) {
  const json_t *events = program_member(trace, "traceEvents");
  size_t n = 0, depth = 0, all = json_array_size(events);
  trace_span *spans = calloc(all + 1, sizeof *spans), *open = calloc(all + 1, sizeof *open);
  assert_true(spans != NULL && open != NULL);
  for (size_t i = 0; i < all; i++) {
    const json_t *e = json_array_get(events, i);
    if (!trace_is_span(e, row)) continue;
    double from = program_number(e, "ts"), took = program_number(e, "dur");
    assert_true(from >= 0 && took >= 0);
    spans[n++] = (trace_span){from, from + took};
  }
  qsort(spans, n, sizeof *spans, trace_compare_spans);
  for (size_t i = 0; i < n; i++) {
    while (depth > 0 && open[depth - 1].to <= spans[i].from + 1e-3) depth--;
    if (depth > 0 && spans[i].to > open[depth - 1].to + 1e-3)
      fail_msg("row %d: %f to %f crosses %f to %f", row, spans[i].from, spans[i].to, open[depth - 1].from,
               open[depth - 1].to);
    open[depth++] = spans[i];
  }
  free(spans);
  free(open);
}

/* Every row has a name and spans that do not cross. */
static void trace_check(const json_t *trace) {
  const json_t *events = program_member(trace, "traceEvents");
  int rows = 0;
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    if (strcmp(program_text(e, "name"), "thread_name") != 0) continue;
    trace_check_row(trace, (int)program_number(e, "tid"));
    rows++;
  }
  assert_true(rows > 1);
}

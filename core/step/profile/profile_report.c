/* core/step/profile/profile_report.c: the times of a profile, summed up over launches, kernels and ops. */
#include <math.h>

#include "core/compile/output/report.h"
#include "core/step/profile/taken_profile.h"

/* Milliseconds and counts of all spans of a kind. */
typedef struct tn_profile_sum {
  double ms;
  int64_t count, number; /* number: sum of tn_span.number */
  double reading_ms;
} tn_profile_sum;

typedef struct tn_profile_sums {
  tn_profile_sum of[TN_SPANS];
  double wall_ms, launched_ms; /* launched: on the compute stream and on the fallback */
  tn_profile_sum **launches;   /* per program and launch, in `arena` */
  tn_arena arena;
  int64_t lost;
} tn_profile_sums;

/* ---- sums ---- */

static void profile_add(tn_profile_sum *sum, const tn_span *span) {
  sum->ms += (span->end_s - span->start_s) * 1e3;
  sum->reading_ms += span->reading_s * 1e3;
  sum->number += span->number;
  sum->count++;
}

static tn_status profile_make_sums(const tn_step_profile *p, tn_profile_sums *sums) {
  int32_t n = p->what.executor != NULL ? p->what.set->n : 0;
  sums->arena = tn_arena_new(&p->what.run->env);
  sums->launches = tn_arena_alloc(&sums->arena, (size_t)n * sizeof *sums->launches + 1);
  for (int32_t i = 0; sums->launches != NULL && i < n; i++) {
    size_t bytes = (size_t)p->what.set->list[i]->n_steps * sizeof **sums->launches + 1;
    sums->launches[i] = tn_arena_alloc(&sums->arena, bytes);
    if (sums->launches[i] == NULL) return TN_ENOMEM;
  }
  return sums->launches != NULL ? TN_OK : TN_ENOMEM;
}

/* Launches on other streams, which are collectives, run beside those of the compute stream. */
static bool profile_is_computing(const tn_span *span) {
  return span->track == TN_TRACK_STREAM + TN_STREAM_COMPUTE || span->track == TN_TRACK_FALLBACK;
}

static tn_status profile_sum_up(const tn_step_profile *p, tn_profile_sums *sums) {
  size_t n;
  TN_TRY(profile_make_sums(p, sums));
  const tn_span *spans = tn_timeline_spans(p->timeline, &n, &sums->lost);
  sums->wall_ms = p->wall_s * 1e3;
  for (size_t i = 0; i < n; i++) {
    profile_add(&sums->of[spans[i].kind], &spans[i]);
    if (spans[i].kind != TN_SPAN_LAUNCH) continue;
    profile_add(&sums->launches[spans[i].program][spans[i].step], &spans[i]);
    if (profile_is_computing(&spans[i])) sums->launched_ms += (spans[i].end_s - spans[i].start_s) * 1e3;
  }
  return TN_OK;
}

/* ---- launches, kernels, ops ---- */

static double profile_number(const json_t *row, const char *key) {
  return json_number_value(json_object_get(row, key));
}

static double profile_rate(double amount, double ms) { return ms > 0 ? amount / (ms * 1e-3) * 1e-9 : 0.0; }

/* Adds rates and shares to the sums of a row; flops and bytes are of all its launches. */
static int profile_add_figures(json_t *row, double wall_ms) {
  double ms = profile_number(row, "ms"), launches = profile_number(row, "launches");
  int failed = json_object_set_new(row, "share", json_real(wall_ms > 0 ? ms / wall_ms : 0.0));
  failed |= json_object_set_new(row, "mean_us", json_real(launches > 0 ? ms * 1e3 / launches : 0.0));
  failed |= json_object_set_new(row, "gflop_s", json_real(profile_rate(profile_number(row, "flops"), ms)));
  failed |= json_object_set_new(row, "gb_s", json_real(profile_rate(profile_number(row, "bytes"), ms)));
  return failed;
}

static json_t *profile_launch(const tn_program *program, int32_t step, const json_t *op,
                              const tn_profile_sum *sum, double wall_ms) {
  double count = (double)sum->count;
  json_t *row = json_pack("{s:s, s:O, s:O, s:O, s:O, s:O, s:I, s:f, s:f, s:f}", "program", program->name,
                          "name", json_object_get(op, "name"), "op", json_object_get(op, "op"), "kernel",
                          json_object_get(op, "kernel"), "backend", json_object_get(op, "backend"), "dtype",
                          json_object_get(op, "dtype"), "launches", (json_int_t)sum->count, "ms", sum->ms,
                          "flops", profile_number(op, "flops") * count, "bytes",
                          tn_step_moved_bytes(&program->steps[step]) * count);
  if (row != NULL && profile_add_figures(row, wall_ms) == 0) return row;
  json_decref(row);
  return NULL;
}

/* In the order of the plan. NULL: out of memory. */
static json_t *profile_launches(const tn_step_profile *p, const tn_profile_sums *sums,
                                const json_t *programs) {
  json_t *list = json_array();
  int32_t n = p->what.executor != NULL ? p->what.set->n : 0;
  int failed = list == NULL;
  for (int32_t i = 0; i < n; i++)
    for (int32_t step = 0; !failed && step < p->what.set->list[i]->n_steps; step++) {
      const json_t *op = json_array_get(json_array_get(programs, (size_t)i), (size_t)step);
      if (sums->launches[i][step].count > 0)
        failed = json_array_append_new(
            list, profile_launch(p->what.set->list[i], step, op, &sums->launches[i][step], sums->wall_ms));
    }
  if (!failed) return list;
  json_decref(list);
  return NULL;
}

static int profile_add_to(json_t *row, const json_t *launch, const char *key) {
  double sum = profile_number(row, key) + profile_number(launch, key);
  return json_object_set_new(row, key, json_real(sum));
}

/* Adds a launch to the row of its kernel, or of its op. */
static int profile_add_to_row(json_t *rows, const char *key, const json_t *launch) {
  const char *name = json_string_value(json_object_get(launch, key));
  json_t *row = json_object_get(rows, name);
  if (row == NULL) {
    row = json_pack("{s:s, s:I}", key, name, "launches", (json_int_t)0);
    if (row == NULL || json_object_set_new(rows, name, row) != 0) return -1;
  }
  json_int_t launches = json_integer_value(json_object_get(row, "launches")) +
                        json_integer_value(json_object_get(launch, "launches"));
  return json_object_set_new(row, "launches", json_integer(launches)) | profile_add_to(row, launch, "ms") |
         profile_add_to(row, launch, "flops") | profile_add_to(row, launch, "bytes");
}

/* Moves the row with the most time from `rows` to the end of the list. */
static int profile_take_slowest(json_t *rows, json_t *list, double wall_ms) {
  const char *name, *slowest = NULL;
  double most = -1;
  json_t *row;
  json_object_foreach(rows, name, row) {
    if (profile_number(row, "ms") <= most) continue;
    most = profile_number(row, "ms");
    slowest = name;
  }
  row = json_object_get(rows, slowest);
  int failed = profile_add_figures(row, wall_ms) | json_array_append(list, row);
  return failed | json_object_del(rows, slowest);
}

/* Sums over the launches with the same value of `key`, the slowest first. NULL: out of memory. */
static json_t *profile_by(const char *key, const json_t *launches, double wall_ms) {
  json_t *rows = json_object(), *list = json_array(), *launch;
  int failed = rows == NULL || list == NULL;
  size_t i;
  json_array_foreach(launches, i, launch) failed = failed || profile_add_to_row(rows, key, launch);
  while (!failed && json_object_size(rows) > 0) failed = profile_take_slowest(rows, list, wall_ms);
  json_decref(rows);
  if (!failed) return list;
  json_decref(list);
  return NULL;
}

/* ---- the rest ---- */

static json_t *profile_copies(const tn_profile_sum *sum) {
  return json_pack("{s:I, s:f, s:I, s:f}", "copies", (json_int_t)sum->count, "ms", sum->ms, "bytes",
                   (json_int_t)sum->number, "gb_s", profile_rate((double)sum->number, sum->ms));
}

/* Without an executor the times of the device are left out, and without a loader those of its threads. */
static json_t *profile_describe(const tn_step_profile *p, const tn_profile_sums *sums,
                                const tn_profiled_steps *steps, json_t *launches) {
  const tn_profile_sum *of = sums->of;
  double n = steps->n > 0 ? (double)steps->n : 1, wall_s = sums->wall_ms * 1e-3;
  bool clock = p->what.executor != NULL && tn_executor_has_clock(p->what.executor);
  return json_pack(
      "{s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s, s:f, s:f, s:f, s:{s:o, s:o}, s:{s:i, s:I, s:f, s:f, "
      "s:f}, s:{s:f, s:f}, s:I, s:o, s:o, s:O}",
      "version", 1, "first_step", (json_int_t)steps->first, "steps", (json_int_t)steps->n, "of_steps",
      (json_int_t)steps->of, "samples", (json_int_t)steps->samples, "wall_ms", sums->wall_ms, "step_ms",
      sums->wall_ms / n, "samples_per_s", wall_s > 0 ? (double)steps->samples / wall_s : 0.0, "clock",
      clock ? "device" : "host", "launched_ms", sums->launched_ms, "collective_wait_ms", of[TN_SPAN_AWAIT].ms,
      "between_ms", sums->wall_ms - sums->launched_ms - of[TN_SPAN_AWAIT].ms, "copies", "to_device",
      profile_copies(&of[TN_SPAN_COPY_IN]), "to_host", profile_copies(&of[TN_SPAN_COPY_OUT]), "loader",
      "workers", (int)p->what.workers, "parts", (json_int_t)of[TN_SPAN_READ].count, "reading_ms",
      of[TN_SPAN_READ].reading_ms, "transforms_ms", of[TN_SPAN_READ].ms - of[TN_SPAN_READ].reading_ms,
      "waited_ms", of[TN_SPAN_WAIT_BATCH].ms, "host", "enqueuing_ms", of[TN_SPAN_RUN].ms, "waiting_ms",
      of[TN_SPAN_WAIT_STEP].ms, "lost_spans", (json_int_t)sums->lost, "kernels",
      profile_by("kernel", launches, sums->wall_ms), "ops", profile_by("op", launches, sums->wall_ms),
      "launches", launches);
}

tn_status tn_step_profile_report(tn_step_profile *p, const tn_profiled_steps *steps, json_t **report) {
  tn_profile_sums sums = {.lost = 0};
  json_t *programs = NULL, *launches = NULL;
  *report = NULL;
  tn_status status = profile_sum_up(p, &sums);
  if (status == TN_OK) status = tn_profile_programs(p, &programs);
  if (status == TN_OK) launches = profile_launches(p, &sums, programs);
  if (launches != NULL) *report = profile_describe(p, &sums, steps, launches);
  json_decref(programs);
  json_decref(launches);
  tn_arena_free(&sums.arena);
  if (status == TN_OK && *report == NULL)
    return tn_failf(&p->what.run->env, TN_ENOMEM, "out of memory for the profile");
  return status;
}

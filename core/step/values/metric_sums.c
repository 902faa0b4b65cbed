/* core/step/values/metric_sums.c: sums of losses and metrics, added on the host in step order. */
#include "core/step/values/metric_sums.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tenon/plugin/layer.h"

/* The rows of a metric of rows. */
struct tn_metric_rows {
  float *v;
  int64_t n, room; /* rows */
  double value;    /* of the metric */
  bool closed;
};

static const void *metric_sums_output(tn_executor *executor, int32_t index, int32_t slot, const char *measure,
                                      const char *part) {
  char name[256];
  snprintf(name, sizeof name, "%s.%s", measure, part);
  return tn_executor_output(executor, index, slot, name);
}

/* The rows of a batch of all ranks. */
static int64_t metric_sums_count_rows(const tn_program_set *set, int32_t index, const char *measure) {
  const tn_program *program = index >= 0 && index < set->n ? set->list[index] : NULL;
  char name[256];
  snprintf(name, sizeof name, "%s.rows", measure);
  for (int32_t i = 0; program != NULL && i < program->n_outputs; i++)
    if (tn_text_equal(program->outputs[i].name, name)) return program->outputs[i].type.dims[0];
  return 0;
}

tn_status tn_measure_outputs_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                  const tn_program_set *set, tn_measure_outputs *r) {
  int32_t n = set->n_measures;
  size_t count = tn_size_mul((size_t)slots, (size_t)n + 1);
  r->n = n;
  r->sum = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->sum));
  r->weight = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->weight));
  r->sums = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->sums));
  r->rows = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->rows));
  r->n_rows = tn_arena_alloc(arena, tn_size_mul((size_t)n + 1, sizeof *r->n_rows));
  if (r->sums == NULL || r->rows == NULL || r->n_rows == NULL) return TN_ENOMEM;
  r->skipped = tn_arena_alloc(arena, tn_size_mul((size_t)slots, sizeof *r->skipped));
  r->loss_scale = tn_arena_alloc(arena, tn_size_mul((size_t)slots, sizeof *r->loss_scale));
  if (r->sum == NULL || r->weight == NULL || r->skipped == NULL || r->loss_scale == NULL) return TN_ENOMEM;
  for (int32_t s = 0; s < slots; s++) {
    r->skipped[s] = tn_executor_output(executor, index, s, TN_OUTPUT_SKIPPED);
    r->loss_scale[s] = tn_executor_output(executor, index, s, TN_OUTPUT_LOSS_SCALE);
  }
  for (int32_t s = 0; s < slots; s++)
    for (int32_t i = 0; i < n; i++) {
      r->sum[s * n + i] = metric_sums_output(executor, index, s, set->measures[i].name, "sum");
      r->weight[s * n + i] = metric_sums_output(executor, index, s, set->measures[i].name, "weight");
      r->sums[s * n + i] = metric_sums_output(executor, index, s, set->measures[i].name, "sums");
      r->rows[s * n + i] = metric_sums_output(executor, index, s, set->measures[i].name, "rows");
    }
  for (int32_t i = 0; i < n; i++) r->n_rows[i] = metric_sums_count_rows(set, index, set->measures[i].name);
  return TN_OK;
}

tn_status tn_metric_sums_init(tn_arena *arena, const tn_program_set *set, tn_metric_sums *sums) {
  size_t n = (size_t)set->n_measures + 1;
  *sums = (tn_metric_sums){.measures = set->measures, .n = set->n_measures, .arena = arena};
  for (int32_t i = 0; i < set->n_measures; i++)
    if (set->measures[i].of_sums != NULL) sums->n_statistics += tn_type_count(&set->measures[i].row);
  sums->statistics =
      tn_arena_alloc(arena, tn_size_mul((size_t)sums->n_statistics + 1, sizeof *sums->statistics));
  sums->rows = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->rows));
  sums->told = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->told));
  if (sums->statistics == NULL || sums->rows == NULL || sums->told == NULL) return TN_ENOMEM;
  sums->sum = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->sum));
  sums->weight = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->weight));
  sums->means = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->means));
  return sums->sum && sums->weight && sums->means ? TN_OK : TN_ENOMEM;
}

void tn_metric_sums_reset(tn_metric_sums *sums) {
  for (int32_t i = 0; i < sums->n; i++) sums->sum[i] = sums->weight[i] = 0.0;
  for (int64_t i = 0; i < sums->n_statistics; i++) sums->statistics[i] = 0.0;
  for (int32_t i = 0; i < sums->n; i++) {
    sums->rows[i].n = 0;
    sums->rows[i].closed = false;
  }
  sums->steps = sums->samples = sums->skipped = 0;
}

void tn_metric_sums_reset_phase(tn_metric_sums *sums, const char *phase) {
  double *from = sums->statistics;
  for (int32_t i = 0; i < sums->n; i++) {
    const tn_measure *measure = &sums->measures[i];
    int64_t n = measure->of_sums != NULL ? tn_type_count(&measure->row) : 0;
    bool resets = measure->phase != NULL && strcmp(measure->phase, phase) == 0;
    for (int64_t k = 0; resets && k < n; k++) from[k] = 0.0;
    if (resets) sums->sum[i] = sums->weight[i] = 0.0;
    from += n;
  }
}

void tn_metric_sums_copy(tn_metric_sums *sums, const tn_metric_sums *from) {
  if (from->n != sums->n || from->n_statistics != sums->n_statistics) return;
  for (int64_t i = 0; i < sums->n_statistics; i++) sums->statistics[i] = from->statistics[i];
  for (int32_t i = 0; i < sums->n; i++) {
    sums->sum[i] = from->sum[i];
    sums->weight[i] = from->weight[i];
  }
  sums->steps = from->steps;
  sums->samples = from->samples;
  sums->skipped = from->skipped;
}

/* Adds the statistics of a measure, which begin at `to`. Returns their end. */
static double *metric_sums_add_statistics(const tn_measure *measure, const double *sums, double *to) {
  int64_t n = measure->of_sums != NULL ? tn_type_count(&measure->row) : 0;
  for (int64_t i = 0; sums != NULL && i < n; i++) to[i] += sums[i];
  return to + n;
}

void tn_metric_sums_add_batch(tn_metric_sums *sums, const tn_measure_outputs *r, int32_t slot) {
  double *to = sums->statistics;
  for (int32_t i = 0; i < sums->n; i++)
    to = metric_sums_add_statistics(&sums->measures[i], r->sums[slot * r->n + i], to);
  for (int32_t i = 0; i < sums->n; i++) {
    const float *sum = r->sum[slot * r->n + i], *weight = r->weight[slot * r->n + i];
    sums->sum[i] += sum ? (double)*sum : 0.0;
    sums->weight[i] += weight ? (double)*weight : 0.0;
  }
}

void tn_metric_sums_add(tn_metric_sums *sums, const tn_measure_outputs *r, int32_t slot, int64_t samples) {
  tn_metric_sums_add_batch(sums, r, slot);
  tn_metric_sums_count(sums, samples);
}

void tn_metric_sums_count(tn_metric_sums *sums, int64_t samples) {
  sums->steps++;
  sums->samples += samples;
}

/* ---- rows ---- */

/* Room for n more rows; rows are copied as the number of them doubles, so the arena holds twice as many. */
static tn_status metric_sums_grow(tn_metric_sums *sums, struct tn_metric_rows *rows, int64_t n, size_t row) {
  if (rows->n + n <= rows->room) return TN_OK;
  int64_t room = 2 * (rows->n + n);
  float *v = tn_arena_alloc(sums->arena, tn_size_mul((size_t)room, row));
  if (v == NULL) return TN_ENOMEM;
  if (rows->n > 0) memcpy(v, rows->v, (size_t)rows->n * row);
  rows->v = v;
  rows->room = room;
  return TN_OK;
}

/* Rows that pad a batch, of weight 0, are left out. */
tn_status tn_metric_sums_add_rows(tn_metric_sums *sums, const tn_measure_outputs *r, int32_t slot) {
  for (int32_t i = 0; i < sums->n; i++) {
    const float *from = r->rows[slot * r->n + i];
    struct tn_metric_rows *rows = &sums->rows[i];
    if (from == NULL) continue;
    size_t numbers = (size_t)tn_type_count(&sums->measures[i].row) + 1, row = numbers * sizeof *from;
    TN_TRY(metric_sums_grow(sums, rows, r->n_rows[i], row));
    for (int64_t k = 0; k < r->n_rows[i]; k++, from += numbers)
      if (from[numbers - 1] != 0) memcpy(rows->v + (size_t)rows->n++ * numbers, from, row);
  }
  return TN_OK;
}

tn_status tn_metric_sums_close(tn_metric_sums *sums) {
  for (int32_t i = 0; i < sums->n; i++) {
    struct tn_metric_rows *rows = &sums->rows[i];
    const tn_measure *measure = &sums->measures[i];
    if (measure->of_rows == NULL) continue;
    rows->value = NAN;
    TN_TRY(measure->of_rows(sums->arena->handle, rows->v, rows->n, &measure->row, &rows->value));
    rows->closed = true;
  }
  return TN_OK;
}

/* ---- means ---- */

/* The value of a measure of the mean of its elements, or of its statistics at `from`. */
static double metric_sums_value(const tn_metric_sums *sums, int32_t i, double mean, const double *from) {
  const tn_measure *measure = &sums->measures[i];
  if (measure->of_rows != NULL) return sums->rows[i].value;
  if (measure->of_sums != NULL) return measure->of_sums(from, &measure->row);
  if (measure->of_mean == TN_OF_MEAN_ROOT) return sqrt(mean);
  return measure->of_mean == TN_OF_MEAN_EXP ? exp(mean) : mean;
}

const tn_metric *tn_metric_sums_means(tn_metric_sums *sums) {
  double total = 0.0;
  const double *from = sums->statistics;
  sums->n_means = 1;
  for (int32_t i = 0; i < sums->n; i++) {
    const tn_measure *measure = &sums->measures[i];
    double mean = sums->weight[i] != 0.0 ? sums->sum[i] / sums->weight[i] : 0.0;
    if (measure->is_loss) total += measure->weight * mean;
    if (measure->of_rows == NULL || sums->rows[i].closed) {
      sums->told[sums->n_means] = measure;
      sums->means[sums->n_means++] = (tn_metric){measure->name, metric_sums_value(sums, i, mean, from)};
    }
    from += measure->of_sums != NULL ? tn_type_count(&measure->row) : 0;
  }
  sums->means[0] = (tn_metric){"loss", total};
  return sums->means;
}

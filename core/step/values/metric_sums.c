/* core/step/values/metric_sums.c: sums of losses and metrics, added on the host in step order. */
#include "core/step/values/metric_sums.h"

#include <math.h>
#include <stdio.h>

#include "tenon/plugin/layer.h"

static const float *metric_sums_output(tn_executor *executor, int32_t index, int32_t slot,
                                       const char *measure, const char *part) {
  char name[256];
  snprintf(name, sizeof name, "%s.%s", measure, part);
  return tn_executor_output(executor, index, slot, name);
}

tn_status tn_measure_outputs_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                  const tn_program_set *set, tn_measure_outputs *r) {
  int32_t n = set->n_measures;
  size_t count = tn_size_mul((size_t)slots, (size_t)n + 1);
  r->n = n;
  r->sum = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->sum));
  r->weight = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->weight));
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
    }
  return TN_OK;
}

tn_status tn_metric_sums_init(tn_arena *arena, const tn_program_set *set, tn_metric_sums *sums) {
  size_t n = (size_t)set->n_measures + 1;
  *sums = (tn_metric_sums){.measures = set->measures, .n = set->n_measures};
  sums->sum = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->sum));
  sums->weight = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->weight));
  sums->means = tn_arena_alloc(arena, tn_size_mul(n, sizeof *sums->means));
  return sums->sum && sums->weight && sums->means ? TN_OK : TN_ENOMEM;
}

void tn_metric_sums_reset(tn_metric_sums *sums) {
  for (int32_t i = 0; i < sums->n; i++) sums->sum[i] = sums->weight[i] = 0.0;
  sums->steps = sums->samples = sums->skipped = 0;
}

void tn_metric_sums_copy(tn_metric_sums *sums, const tn_metric_sums *from) {
  if (from->n != sums->n) return;
  for (int32_t i = 0; i < sums->n; i++) {
    sums->sum[i] = from->sum[i];
    sums->weight[i] = from->weight[i];
  }
  sums->steps = from->steps;
  sums->samples = from->samples;
  sums->skipped = from->skipped;
}

void tn_metric_sums_add_micro_batch(tn_metric_sums *sums, const tn_measure_outputs *r, int32_t slot) {
  for (int32_t i = 0; i < sums->n; i++) {
    const float *sum = r->sum[slot * r->n + i], *weight = r->weight[slot * r->n + i];
    sums->sum[i] += sum ? (double)*sum : 0.0;
    sums->weight[i] += weight ? (double)*weight : 0.0;
  }
}

void tn_metric_sums_add(tn_metric_sums *sums, const tn_measure_outputs *r, int32_t slot, int64_t samples) {
  tn_metric_sums_add_micro_batch(sums, r, slot);
  sums->steps++;
  sums->samples += samples;
}

const tn_metric *tn_metric_sums_means(tn_metric_sums *sums) {
  double total = 0.0;
  for (int32_t i = 0; i < sums->n; i++) {
    const tn_measure *measure = &sums->measures[i];
    double mean = sums->weight[i] != 0.0 ? sums->sum[i] / sums->weight[i] : 0.0;
    sums->means[i + 1] = (tn_metric){measure->name, measure->of_mean == TN_OF_MEAN_EXP ? exp(mean) : mean};
    if (measure->is_loss) total += measure->weight * mean;
  }
  sums->means[0] = (tn_metric){"loss", total};
  return sums->means;
}

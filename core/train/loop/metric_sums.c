/* core/train/loop/metric_sums.c: losses and metrics over many steps, summed on the host in step order. */
#include "core/train/run.h"

#include <stdio.h>

static const float *output(tn_executor *executor, int32_t index, int32_t slot, const char *measure,
                           const char *part) {
  char name[256];
  snprintf(name, sizeof name, "%s.%s", measure, part);
  return tn_executor_output(executor, index, slot, name);
}

tn_status tn_readings_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                           const tn_program_set *set, tn_readings *r) {
  int32_t n = set->n_measures;
  size_t count = tn_size_mul((size_t)slots, (size_t)n + 1);
  r->n = n;
  r->sum = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->sum));
  r->weight = tn_arena_alloc(arena, tn_size_mul(count, sizeof *r->weight));
  r->skipped = tn_arena_alloc(arena, tn_size_mul((size_t)slots, sizeof *r->skipped));
  r->loss_scale = tn_arena_alloc(arena, tn_size_mul((size_t)slots, sizeof *r->loss_scale));
  if (!r->sum || !r->weight || !r->skipped || !r->loss_scale) return TN_ENOMEM;
  for (int32_t s = 0; s < slots; s++) {
    r->skipped[s] = tn_executor_output(executor, index, s, TN_OUTPUT_SKIPPED);
    r->loss_scale[s] = tn_executor_output(executor, index, s, TN_OUTPUT_LOSS_SCALE);
  }
  for (int32_t s = 0; s < slots; s++)
    for (int32_t i = 0; i < n; i++) {
      r->sum[s * n + i] = output(executor, index, s, set->measures[i].name, "sum");
      r->weight[s * n + i] = output(executor, index, s, set->measures[i].name, "weight");
    }
  return TN_OK;
}

tn_status tn_tally_init(tn_arena *arena, const tn_program_set *set, tn_tally *tally) {
  size_t n = (size_t)set->n_measures + 1;
  *tally = (tn_tally){.measures = set->measures, .n = set->n_measures};
  tally->sum = tn_arena_alloc(arena, tn_size_mul(n, sizeof *tally->sum));
  tally->weight = tn_arena_alloc(arena, tn_size_mul(n, sizeof *tally->weight));
  tally->means = tn_arena_alloc(arena, tn_size_mul(n, sizeof *tally->means));
  return tally->sum && tally->weight && tally->means ? TN_OK : TN_ENOMEM;
}

void tn_tally_reset(tn_tally *tally) {
  for (int32_t i = 0; i < tally->n; i++) tally->sum[i] = tally->weight[i] = 0.0;
  tally->steps = tally->samples = tally->skipped = 0;
}

void tn_tally_restore(tn_tally *tally, const tn_tally *from) {
  if (from->n != tally->n) return;
  for (int32_t i = 0; i < tally->n; i++) {
    tally->sum[i] = from->sum[i];
    tally->weight[i] = from->weight[i];
  }
  tally->steps = from->steps;
  tally->samples = from->samples;
  tally->skipped = from->skipped;
}

void tn_tally_add_part(tn_tally *tally, const tn_readings *r, int32_t slot) {
  for (int32_t i = 0; i < tally->n; i++) {
    const float *sum = r->sum[slot * r->n + i], *weight = r->weight[slot * r->n + i];
    tally->sum[i] += sum ? (double)*sum : 0.0;
    tally->weight[i] += weight ? (double)*weight : 0.0;
  }
}

void tn_tally_add(tn_tally *tally, const tn_readings *r, int32_t slot, int64_t samples) {
  tn_tally_add_part(tally, r, slot);
  tally->steps++;
  tally->samples += samples;
}

const tn_metric *tn_tally_means(tn_tally *tally) {
  double total = 0.0;
  for (int32_t i = 0; i < tally->n; i++) {
    double mean = tally->weight[i] != 0.0 ? tally->sum[i] / tally->weight[i] : 0.0;
    tally->means[i + 1] = (tn_metric){tally->measures[i].name, mean};
    if (tally->measures[i].is_loss) total += tally->measures[i].weight * mean;
  }
  tally->means[0] = (tn_metric){"loss", total};
  return tally->means;
}

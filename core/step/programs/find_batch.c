/* core/step/programs/find_batch.c: the largest batch whose plan fits. Powers of two find a batch that fits
 * and one that does not; largest_batch.h searches the multiples of TN_BATCH_UNIT between them. Nothing runs.
 */
#include "core/step/programs/find_batch.h"

#include "core/base/system/system.h"
#include "core/step/programs/largest_batch.h"

/* The part of the memory that a plan may take: libraries and captures come to it. */
static const double find_batch_part = 0.9;

typedef struct batch_trial {
  const tn_batch_search *search;
  tn_found_batch *found;
  tn_status status; /* of the last plan */
  int64_t unit;     /* that a batch is counted in */
} batch_trial;

static int64_t find_batch_limit(const tn_run *run, const tn_target *target) {
  const tn_device_properties *p = &target->properties;
  int64_t there = p->free_bytes > 0 ? p->free_bytes : p->memory_bytes, host = tn_memory_available();
  if (p->host_addressable && host > 0 && (there == 0 || host < there)) there = host;
  there = (int64_t)(find_batch_part * (double)there);
  int64_t limit = run->settings.run.memory_limit;
  return limit > 0 && (there == 0 || limit < there) ? limit : there;
}

/* Staging buffers are memory of the host, which memory_limit counts. */
static int64_t find_batch_bytes(const batch_trial *t, const tn_program_set *set) {
  const tn_run *run = t->search->run;
  bool direct = t->search->target->properties.host_addressable != 0 || run->settings.run.memory_limit == 0;
  int32_t slots = tn_run_input_slots(run, tn_run_steps_per_launch(run));
  return tn_executor_planned_bytes(set->map, set->list, set->n, slots, direct);
}

static bool find_batch_try(batch_trial *t, int64_t batch, bool measured, int64_t *bytes) {
  const tn_batch_search *s = t->search;
  tn_program_request request = s->request;
  tn_target target = *s->target;
  tn_program_set set;
  if (!measured) target.tuner = NULL;
  request.batch[TN_PROGRAM_STEP] = batch;
  if (request.batch[TN_PROGRAM_EVAL] > 0)
    request.batch[TN_PROGRAM_EVAL] = batch < s->most_eval ? batch : s->most_eval;
  t->found->plans++;
  t->status = tn_programs_compile(s->run, &target, &request, &set);
  if (t->status != TN_OK) return false;
  *bytes = find_batch_bytes(t, &set);
  tn_programs_free(s->run, &set);
  if (*bytes > t->found->limit || batch <= t->found->batch) return true;
  t->found->batch = batch;
  t->found->bytes = *bytes;
  return true;
}

/* The bytes for a batch of so many units. */
static bool find_batch_plan(void *context, int64_t units, int64_t *bytes) {
  batch_trial *t = context;
  return find_batch_try(t, units * t->unit, false, bytes);
}

static int64_t find_batch_smaller(int64_t batch) {
  return batch > TN_BATCH_UNIT ? batch - TN_BATCH_UNIT : batch / 2;
}

/* Kernels that are measured may need more workspace than those that are estimated to be fast. Where that is
 * too much, the batch becomes smaller by the excess; a batch of 1 is left to the plan that runs. */
static tn_status find_batch_confirm(batch_trial *t) {
  tn_found_batch *found = t->found;
  int64_t bytes = 0, batch = found->batch;
  if (t->search->target->tuner == NULL) return TN_OK;
  for (found->batch = 0; found->batch == 0; batch = find_batch_smaller(batch)) {
    if (!find_batch_try(t, batch, true, &bytes)) return t->status;
    if (found->batch == 0 && batch == 1) *found = (tn_found_batch){1, bytes, found->limit, found->plans};
    int64_t share = (int64_t)((double)batch * (double)found->limit / (double)bytes) / TN_BATCH_UNIT;
    if (found->batch == 0 && share > 1 && (share + 1) * TN_BATCH_UNIT < batch)
      batch = (share + 1) * TN_BATCH_UNIT;
  }
  return TN_OK;
}

/* The first of unit, unit / 2, ..., 1 that fits. */
static tn_status find_batch_first(batch_trial *t, int64_t *first) {
  int64_t bytes = 0;
  while (*first > t->search->most) *first /= 2;
  for (;; *first /= 2) {
    if (!find_batch_plan(t, *first, &bytes)) return t->status;
    if (t->found->batch > 0) return TN_OK;
    if (*first <= 1) break;
  }
  return tn_failf(
      &t->search->run->env, TN_ENOMEM,
      "a batch of 1 needs %.1f MiB, and there are %.1f MiB; [run] memory_limit rematerializes what "
      "it can",
      (double)bytes / 1048576.0, (double)t->found->limit / 1048576.0);
}

tn_status tn_find_batch(const tn_batch_search *search, tn_found_batch *found) {
  batch_trial t = {.search = search, .found = found, .unit = 1};
  int64_t batch = TN_BATCH_UNIT, bytes = 0;
  bool certain;
  *found = (tn_found_batch){.limit = find_batch_limit(search->run, search->target)};
  TN_TRY(find_batch_first(&t, &batch));
  if (batch < TN_BATCH_UNIT) return find_batch_confirm(&t);
  t.unit = TN_BATCH_UNIT;
  int64_t units = 1, most = search->most / TN_BATCH_UNIT;
  while (found->batch == units * TN_BATCH_UNIT && units < most) {
    units = units > most / 2 ? most : 2 * units;
    if (!find_batch_plan(&t, units, &bytes)) break;
  }
  if (t.status == TN_OK && found->batch < units * TN_BATCH_UNIT)
    tn_largest_batch(find_batch_plan, &t, units, bytes, found->limit, &certain);
  if (t.status != TN_OK) tn_error_clear(&search->run->env); /* a batch that cannot be planned is too large */
  return find_batch_confirm(&t);
}

/* ---- the number in place of the word ---- */

tn_status tn_put_batch(tn_run *run, int64_t batch) {
  static const char *const names[] = {"data", "data.train"};
  const char *text = tn_arena_printf(&run->ini.arena, "%lld", (long long)batch);
  if (text == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < 2; i++) {
    tn_section *section = tn_ini_section(&run->ini, names[i]);
    tn_key *key = section != NULL ? tn_section_key(section, "batch") : NULL;
    if (key != NULL && tn_text_equal(key->value, "auto")) key->value = text;
  }
  for (int32_t split = 0; split < 2; split++) {
    tn_data_setting *data = &run->settings.data[split];
    if (!data->given || !data->batch_auto) continue;
    data->section.batch = batch;
    data->batch_auto = false;
  }
  return TN_OK;
}

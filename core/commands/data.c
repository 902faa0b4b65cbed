/* core/commands/data.c: tn_run_data: the batches of both parts of the data, as fields, classes and speed. */
#include "core/base/system/system.h"
#include "core/commands/data_fields.h"
#include "core/run/result.h"
#include "core/train/feed/feeder.h"

enum { DATA_SAMPLES = 1000, DATA_TIMED_BATCHES = 256 };
static const double DATA_TIMED_S = 2, DATA_LOOKED_S = 5;

/* One part of the data. */
typedef struct tn_data_part {
  tn_run *run;
  tn_arena arena;
  tn_loader_options options;
  tn_loader *loader;
  tn_batch *slots;
  int32_t n_slots;
  int64_t submitted; /* since the start of the epoch; chooses the slot */
  tn_data_fields fields;
  int64_t looked_at;
  double per_s;
  bool all; /* the classes of all samples were counted */
} tn_data_part;

/* All transforms are the host's, and every epoch reads anew. */
static tn_status data_open(tn_data_part *d, int32_t split) {
  int32_t slots = (int32_t)d->run->settings.data[TN_SPLIT_TRAIN].section.prefetch + 1;
  d->n_slots = slots > 1 ? slots : 2;
  TN_TRY(tn_feeder_options(d->run, split, NULL, d->n_slots, &d->options));
  d->options.cache_bytes = 0;
  TN_TRY(tn_loader_create(&d->run->env, &d->options, &d->loader));
  d->slots = tn_arena_alloc(&d->arena, tn_size_mul((size_t)d->n_slots, sizeof *d->slots));
  if (d->slots == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < d->n_slots; i++)
    TN_TRY(tn_loader_new_batch(d->loader, &d->arena, d->options.batch, &d->slots[i]));
  return tn_data_fields_start(&d->arena, d->loader, &d->fields);
}

static tn_status data_submit(tn_data_part *d) {
  return tn_loader_submit(d->loader, &d->slots[d->submitted++ % d->n_slots]);
}

static tn_status data_start_epoch(tn_data_part *d) {
  d->submitted = 0;
  TN_TRY(tn_loader_start(d->loader, 0, 0));
  for (int32_t i = 0; i < d->n_slots; i++) TN_TRY(data_submit(d));
  return TN_OK;
}

static tn_status data_time(tn_data_part *d) {
  double start = tn_clock_s(), now = start;
  int64_t samples, sum = 0;
  TN_TRY(data_start_epoch(d));
  for (int32_t i = 0; i < DATA_TIMED_BATCHES && now - start < DATA_TIMED_S; i++) {
    tn_status status = tn_loader_wait(d->loader, &samples);
    if (status == TN_EOF) break;
    TN_TRY(status);
    now = tn_clock_s();
    sum += samples;
    TN_TRY(data_submit(d));
  }
  d->per_s = (double)sum / (now - start);
  return TN_OK;
}

static tn_status data_look(tn_data_part *d, int64_t most, const char *picture) {
  int64_t samples, length;
  double start = tn_clock_s();
  TN_TRY(data_start_epoch(d));
  while (d->looked_at < most && (d->looked_at == 0 || tn_clock_s() - start < DATA_LOOKED_S)) {
    void *const *values = d->slots[(d->submitted - d->n_slots) % d->n_slots].fields;
    tn_status status = tn_loader_wait(d->loader, &samples);
    if (status == TN_EOF) break;
    TN_TRY(status);
    length = d->options.n_lengths > 0 ? d->options.lengths[tn_loader_length(d->loader)] : 0;
    tn_data_fields_add(&d->fields, values, samples, length);
    if (picture != NULL && d->looked_at == 0)
      TN_TRY(tn_data_write_picture(&d->run->env, d->loader, values, samples, picture));
    d->looked_at += samples;
    TN_TRY(data_submit(d));
  }
  return TN_OK;
}

/* Of all samples of the source, where it tells classes without reading the samples. */
static tn_status data_count_classes(tn_data_part *d) {
  int64_t count = tn_loader_cache(d->loader).count, number;
  if (d->fields.target < 0 || tn_loader_class_of(d->loader, 0, &number) == TN_EUNSUPPORTED) return TN_OK;
  int64_t classes = tn_loader_field(d->loader, d->fields.target)->classes;
  for (int64_t c = 0; c < classes; c++) d->fields.samples[c] = 0;
  for (int64_t i = 0; i < count; i++)
    if (tn_loader_class_of(d->loader, i, &number) == TN_OK && number >= 0 && number < classes)
      d->fields.samples[number]++;
  d->all = true;
  return TN_OK;
}

static json_t *data_json(const tn_data_part *d) {
  const tn_loader_options *o = &d->options;
  return json_pack("{s:o, s:I, s:I, s:i, s:o, s:o, s:s, s:I, s:o}", "source",
                   tn_json_text(o->source->item.name), "samples", (json_int_t)tn_loader_samples(d->loader),
                   "batch", (json_int_t)o->batch, "workers", (int)o->workers, "fields",
                   tn_data_fields_json(&d->fields), "classes", tn_data_classes_json(&d->fields), "counted",
                   d->all ? "all" : "seen", "looked_at", (json_int_t)d->looked_at, "per_s",
                   tn_json_real(d->per_s));
}

static tn_status data_examine(tn_run *run, int32_t split, int64_t most, const char *picture, json_t **json) {
  tn_data_part d = {.run = run, .arena = tn_arena_new(&run->env)};
  tn_status status = data_open(&d, split);
  if (status == TN_OK) status = data_time(&d);
  if (status == TN_OK) status = data_look(&d, most, picture);
  if (status == TN_OK) status = data_count_classes(&d);
  if (status == TN_OK) *json = data_json(&d);
  tn_loader_destroy(d.loader);
  tn_arena_free(&d.arena);
  return status;
}

/* Validation may be left out. */
static tn_status data_examine_valid(tn_run *run, int64_t most, json_t **json) {
  *json = json_null();
  if (!run->settings.data[TN_SPLIT_VALID].given) return TN_OK;
  tn_status status = data_examine(run, TN_SPLIT_VALID, most, NULL, json);
  if (status == TN_EUNAVAILABLE && tn_ini_section(&run->ini, "data.valid") == NULL) return TN_OK;
  return tn_feeder_require(run, status);
}

tn_status tn_run_data(tn_run *run, const tn_data_options *given, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  tn_data_options o;
  json_t *train = NULL, *valid = NULL;
  *json = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_data_options, samples, given, &o));
  if (o.samples < 0)
    return tn_failf(&run->env, TN_EINVAL, "%d samples to look at, expected >= 0", (int)o.samples);
  int64_t most = o.samples > 0 ? o.samples : DATA_SAMPLES;
  tn_status status = tn_feeder_require(run, data_examine(run, TN_SPLIT_TRAIN, most, o.picture, &train));
  if (status == TN_OK) status = data_examine_valid(run, most, &valid);
  if (status == TN_OK)
    return tn_json_take(run, json_pack("{s:o, s:o}", "train", train, "valid", valid), json);
  json_decref(train);
  json_decref(valid);
  return status;
}

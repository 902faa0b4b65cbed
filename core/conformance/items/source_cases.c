/* core/conformance/items/source_cases.c: sources: a sample is a function of seed, split and index (and of the
 * key, where the source does not keep samples), and of what the training part has learnt. The worker that
 * reads it, and the samples that the worker has read before, do not matter. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conformance/items/items.h"
#include "core/plugin/handles.h"
#include "tenon/plugin/source.h"

enum { SAMPLES = 48, FIELDS = 16, SEED = 11, OTHER_SEED_KEY = 77, PATTERN = 0xA5, OTHER_PATTERN = 0x5A };

/* ---- an open source ---- */

typedef struct source_open {
  const tn_source *source;
  void *self; /* NULL: not opened */
  tn_description description;
  int64_t n; /* samples that are read */
} source_open;

/* A worker: a handle with memory of its own. */
typedef struct source_reader {
  tn_sample_host host; /* first: field() converts it back */
  tn_error_record record;
  tn_scratch scratch;
  const source_open *open;
  tn_guarded field[FIELDS];
  tn_type type[FIELDS];
  uint8_t pattern;
  int64_t last; /* the sample read before; -1: none */
} source_reader;

/* A sample as it was read first. */
typedef struct source_sample {
  uint8_t *data[FIELDS];
  tn_type type[FIELDS];
} source_sample;

static tn_status source_begin(tn_check *check, const void *options, int32_t split, source_open *o) {
  tn_env *env = check->suite->env;
  *o = (source_open){.source = (const tn_source *)(const void *)check->entry->item,
                     .description = {.struct_size = sizeof o->description}};
  TN_TRY(o->source->open(env, options, split, SEED, &o->self));
  TN_TRY(o->source->describe(env, o->self, &o->description));
  const tn_description *d = &o->description;
  o->n = d->count < 0 || d->count > SAMPLES ? SAMPLES : d->count;
  if (d->n_fields < 1 || d->n_fields > FIELDS)
    tn_check_fail(check, "it describes %d fields, expected 1 to %d", d->n_fields, FIELDS);
  return TN_OK;
}

static void source_end(tn_check *check, source_open *o) {
  if (o->self != NULL) o->source->close(check->suite->env, o->self);
  o->self = NULL;
}

/* ---- reading ---- */

static bool source_type_fits(const tn_type *described, const tn_type *actual) {
  if (described->dtype != actual->dtype || described->rank != actual->rank) return false;
  for (int32_t i = 0; i < actual->rank; i++)
    if (actual->dims[i] < 0 || (described->dims[i] >= 0 && described->dims[i] != actual->dims[i]))
      return false;
  return true;
}

static void *source_give_field(tn_sample *sample, int32_t i, const tn_type *type) {
  source_reader *r = (source_reader *)(void *)sample;
  if (i < 0 || i >= r->open->description.n_fields) {
    tn_failf(sample, TN_EINVAL, "the source asks for field %d of %d", i, r->open->description.n_fields);
    return NULL;
  }
  const tn_field *field = tn_description_field(&r->open->description, i);
  r->type[i] = type != NULL ? *type : field->type;
  if (source_type_fits(&field->type, &r->type[i]))
    return tn_guarded_new(sample, &r->field[i], tn_type_bytes(&r->type[i]), r->pattern);
  tn_failf(sample, TN_EINVAL, "the source gives field '%s' a type that contradicts its description",
           field->name);
  return NULL;
}

static void source_reader_init(source_reader *r, tn_env *env, const source_open *open, uint8_t pattern) {
  *r = (source_reader){.open = open, .pattern = pattern, .last = -1, .host.field = source_give_field};
  tn_error_record_init(&r->host.pub.env, &r->record, env);
  r->host.pub.struct_size = sizeof r->host.pub;
  r->host.pub.scratch = &r->scratch;
}

static void source_reader_finish(source_reader *r) {
  for (int32_t i = 0; i < FIELDS; i++) tn_guarded_free(r, &r->field[i]);
  tn_release(r, r->scratch.memory);
}

/* Reads a sample; a failure has its text in the reader. */
static tn_status source_read_one(source_reader *r, int64_t index, uint64_t key) {
  for (int32_t i = 0; i < FIELDS; i++) tn_guarded_free(r, &r->field[i]);
  r->host.pub.index = index;
  r->host.pub.key = key;
  tn_error_clear(r);
  const tn_source *s = r->open->source;
  tn_status status =
      s->next != NULL ? s->next(&r->host.pub, r->open->self) : s->read(&r->host.pub, r->open->self);
  r->last = index;
  return status;
}

static uint64_t source_key(int64_t index) { return tn_hash_mix(SEED, (uint64_t)index); }

/* ---- comparing ---- */

/* The number of a class is below the number of classes. */
static void source_check_class(tn_check *check, const source_reader *r, int32_t i, int64_t index) {
  const tn_field *field = tn_description_field(&r->open->description, i);
  const void *data = tn_guarded_data(&r->field[i]);
  bool wide = r->type[i].dtype == TN_I64;
  if (field->classes <= 0 || (!wide && r->type[i].dtype != TN_I32)) return;
  for (int64_t k = 0; k < tn_type_count(&r->type[i]); k++) {
    int64_t found = wide ? ((const int64_t *)data)[k] : ((const int32_t *)data)[k];
    if (found < 0 || found >= field->classes)
      tn_check_fail(check, "sample %lld, field '%s': class %lld, expected 0 to %lld", (long long)index,
                    field->name, (long long)found, (long long)field->classes - 1);
  }
}

/* The fields that a reader holds: present, and inside of their memory. */
static void source_check_bounds(tn_check *check, const source_reader *r, int64_t index) {
  for (int32_t i = 0; i < r->open->description.n_fields && check->wrong[0] == '\0'; i++) {
    const char *name = tn_description_field(&r->open->description, i)->name;
    int64_t offset;
    if (r->field[i].block == NULL)
      tn_check_fail(check, "sample %lld: field '%s' is not written", (long long)index, name);
    else if (!tn_guarded_intact(&r->field[i], &offset))
      tn_check_fail(check, "sample %lld: byte %lld of field '%s' is written, which has %zu bytes",
                    (long long)index, (long long)offset, name, r->field[i].bytes);
    else
      source_check_class(check, r, i, index);
  }
}

/* Compares the sample that a reader holds with the first reading; `how` names the second one. */
static void source_compare(tn_check *check, const source_reader *r, const source_sample *first, int64_t index,
                           const char *how) {
  for (int32_t i = 0; i < r->open->description.n_fields && check->wrong[0] == '\0'; i++) {
    const char *name = tn_description_field(&r->open->description, i)->name;
    const uint8_t *now = tn_guarded_data(&r->field[i]), *before = first->data[i];
    if (!tn_type_equal(&r->type[i], &first->type[i])) {
      tn_check_fail(check, "sample %lld, field '%s': another size %s", (long long)index, name, how);
      return;
    }
    for (size_t k = 0; k < r->field[i].bytes && check->wrong[0] == '\0'; k++) {
      if (now[k] == before[k]) continue;
      if (now[k] == r->pattern && before[k] == PATTERN)
        tn_check_fail(check, "sample %lld: byte %zu of field '%s' is not written", (long long)index, k, name);
      else
        tn_check_fail(
            check,
            "sample %lld, field '%s', byte %zu: %u %s, expected %u as in the first reading; a sample depends "
            "on seed, split, index and key only",
            (long long)index, name, k, now[k], how, before[k]);
    }
  }
}

/* ---- the first reading ---- */

static tn_status source_keep(tn_check *check, const source_reader *r, source_sample *sample) {
  for (int32_t i = 0; i < r->open->description.n_fields; i++) {
    sample->type[i] = r->type[i];
    sample->data[i] =
        tn_arena_copy(&check->suite->arena, tn_guarded_data(&r->field[i]), r->field[i].bytes + 1);
    if (sample->data[i] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status source_read_failed(tn_check *check, const source_reader *r, int64_t index,
                                    tn_status status) {
  if (status == TN_ENOMEM && r->record.code == TN_OK) return status;
  tn_check_fail(check, "sample %lld cannot be read: %s", (long long)index,
                status == TN_EOF ? "the stream is at its end" : tn_error_text(r));
  return TN_OK;
}

/* Reads all samples in order, as one worker does. */
static tn_status source_read_first(tn_check *check, const source_open *o, source_sample *samples) {
  source_reader r;
  tn_status status = TN_OK;
  source_reader_init(&r, check->suite->env, o, PATTERN);
  for (int64_t i = 0; i < o->n && status == TN_OK && check->wrong[0] == '\0'; i++) {
    status = source_read_one(&r, i, source_key(i));
    if (status != TN_OK) {
      status = source_read_failed(check, &r, i, status);
      break;
    }
    source_check_bounds(check, &r, i);
    if (check->wrong[0] == '\0') status = source_keep(check, &r, &samples[i]);
  }
  source_reader_finish(&r);
  return status;
}

/* ---- other readings ---- */

/* Reads samples from, from + by, ... of the source and compares them with the first reading. */
static tn_status source_read_again(tn_check *check, const source_open *o, const source_sample *samples,
                                   int64_t from, int64_t by, uint64_t other_key, const char *how) {
  source_reader r;
  tn_status status = TN_OK;
  char place[128];
  source_reader_init(&r, check->suite->env, o, OTHER_PATTERN);
  for (int64_t i = from; i >= 0 && i < o->n && status == TN_OK && check->wrong[0] == '\0'; i += by) {
    if (r.last < 0)
      snprintf(place, sizeof place, "%s, as its first sample", how);
    else
      snprintf(place, sizeof place, "%s, after sample %lld", how, (long long)r.last);
    status = source_read_one(&r, i, source_key(i) ^ other_key);
    if (status == TN_OK) source_check_bounds(check, &r, i);
    if (status == TN_OK && check->wrong[0] == '\0') source_compare(check, &r, &samples[i], i, place);
    if (status != TN_OK) status = source_read_failed(check, &r, i, status);
  }
  source_reader_finish(&r);
  return status;
}

typedef struct source_thread {
  tn_check check; /* of its own, so that threads share nothing that they write */
  const source_open *open;
  const source_sample *samples;
  int64_t from;
  tn_status status;
  pthread_t id;
  bool started;
} source_thread;

static void *source_thread_run(void *context) {
  source_thread *t = context;
  TN_THREAD_STATE;
  t->status = source_read_again(&t->check, t->open, t->samples, t->from, 2, 0, "from one of two workers");
  return NULL;
}

/* Two workers at once, each with every other sample. */
static tn_status source_read_in_threads(tn_check *check, const source_open *o, const source_sample *samples) {
  source_thread threads[2];
  for (int64_t i = 0; i < 2; i++) {
    threads[i] = (source_thread){.check = *check, .open = o, .samples = samples, .from = i};
    threads[i].started = tn_thread_start(&threads[i].id, source_thread_run, &threads[i]) == 0;
    if (!threads[i].started) source_thread_run(&threads[i]);
  }
  for (int32_t i = 0; i < 2; i++) {
    if (threads[i].started) pthread_join(threads[i].id, NULL);
    if (threads[i].check.wrong[0] != '\0') tn_check_fail(check, "%s", threads[i].check.wrong);
  }
  return threads[0].status != TN_OK ? threads[0].status : threads[1].status;
}

/* ---- the checks ---- */

typedef tn_status source_look(tn_check *check, source_open *o, const void *options,
                              const source_sample *samples);

/* Opens the source in both splits, reads it once and looks at it. */
static tn_status source_with_samples(tn_check *check, source_look *look) {
  const tn_suite *suite = check->suite;
  tn_graph *graph = NULL;
  const void *options;
  source_sample *samples = tn_arena_alloc(&check->suite->arena, SAMPLES * sizeof *samples);
  if (samples == NULL) return TN_ENOMEM;
  TN_TRY(tn_graph_create(suite->env, suite->site.ops, &graph));
  tn_draw d = {.graph = graph, .settings = suite->site.settings};
  source_open o = {.self = NULL};
  tn_status status = tn_item_options(&d, check->entry->item, check->item, &options);
  if (status == TN_OK) status = source_begin(check, options, TN_SPLIT_TRAIN, &o);
  if (status == TN_OK && check->wrong[0] == '\0') status = source_read_first(check, &o, samples);
  if (status == TN_OK && check->wrong[0] == '\0') status = look(check, &o, options, samples);
  if (status != TN_OK && status != TN_ENOMEM && o.self == NULL && !tn_item_is_set(&d, check->item)) {
    snprintf(check->lacking, sizeof check->lacking,
             "it does not open with its default options, set others (--set %s.OPTION=VALUE): %s", check->item,
             tn_error_text(suite->env));
    status = TN_OK;
  }
  source_end(check, &o);
  tn_graph_destroy(graph);
  return status;
}

/* The first target with classes; -1: none. */
static int32_t source_class_field(const source_open *o) {
  for (int32_t i = 0; i < o->description.n_fields; i++) {
    const tn_field *field = tn_description_field(&o->description, i);
    if (field->role == TN_FIELD_TARGET && field->classes > 0) return i;
  }
  return -1;
}

/* class_of tells the class that read writes. */
static tn_status source_compare_classes(tn_check *check, const source_open *o, const source_sample *samples) {
  int32_t field = source_class_field(o);
  if (o->source->class_of == NULL || o->description.count < 0) return TN_OK;
  if (field < 0) {
    tn_check_fail(check, "it has class_of, but no target with classes");
    return TN_OK;
  }
  for (int64_t i = 0; i < o->n && check->wrong[0] == '\0'; i++) {
    const tn_type *type = &samples[i].type[field];
    int64_t told = -1, written = type->dtype == TN_I64
                                     ? *(const int64_t *)(const void *)samples[i].data[field]
                                     : *(const int32_t *)(const void *)samples[i].data[field];
    TN_TRY(o->source->class_of(check->suite->env, o->self, i, &told));
    if (told != written)
      tn_check_fail(check, "class_of gives sample %lld class %lld, but read writes %lld", (long long)i,
                    (long long)told, (long long)written);
  }
  return TN_OK;
}

static tn_status source_look_at_samples(tn_check *check, source_open *o, const void *options,
                                        const source_sample *samples) {
  (void)options;
  TN_TRY(source_compare_classes(check, o, samples));
  if (o->source->next != NULL || check->wrong[0] != '\0') return TN_OK;
  return source_read_again(check, o, samples, 0, 1, 0, "from the same worker");
}

static tn_status source_look_at_workers(tn_check *check, source_open *o, const void *options,
                                        const source_sample *samples) {
  (void)options;
  if (o->source->next != NULL) return TN_OK;
  TN_TRY(source_read_again(check, o, samples, o->n - 1, -1, 0, "from another worker"));
  return check->wrong[0] == '\0' ? source_read_in_threads(check, o, samples) : TN_OK;
}

/* The source opened a second time has as many samples, and the same ones. */
static tn_status source_look_at_seed(tn_check *check, source_open *o, const void *options,
                                     const source_sample *samples) {
  source_open second;
  tn_status status = source_begin(check, options, TN_SPLIT_TRAIN, &second);
  if (status == TN_OK && second.description.count != o->description.count)
    tn_check_fail(check, "opened again with the same seed it has %lld samples, expected %lld",
                  (long long)second.description.count, (long long)o->description.count);
  if (status == TN_OK && check->wrong[0] == '\0')
    status = source_read_again(check, &second, samples, 0, 1, 0,
                               "from the source opened again with the same seed");
  source_end(check, &second);
  return status;
}

static tn_status source_look_at_key(tn_check *check, source_open *o, const void *options,
                                    const source_sample *samples) {
  (void)options;
  if (!o->description.keep || o->source->next != NULL) return TN_OK;
  return source_read_again(check, o, samples, 0, 1, OTHER_SEED_KEY, "with another key, although keep is 1");
}

/* A stream tells how many samples lie behind it, and reads them again after a seek. */
static tn_status source_look_at_position(tn_check *check, source_open *o, const void *options,
                                         const source_sample *samples) {
  int64_t position = -1;
  tn_env *env = check->suite->env;
  (void)options;
  TN_TRY(o->source->tell(env, o->self, &position));
  if (position != o->n)
    tn_check_fail(check, "after %lld samples it tells %lld", (long long)o->n, (long long)position);
  TN_TRY(o->source->seek(env, o->self, o->n / 2));
  return source_read_again(check, o, samples, o->n / 2, 1, 0, "after a seek");
}

/* ---- what it learns ---- */

/* The learnt state of an open source, as compact JSON, which the caller frees; NULL: nothing, or a failed
 * check.
 */
static tn_status source_learnt(tn_check *check, const source_open *o, char **text) {
  json_error_t error;
  const char *told = NULL;
  *text = NULL;
  TN_TRY(o->source->learnt(check->suite->env, o->self, &told));
  if (told == NULL) return TN_OK;
  json_t *value = json_loads(told, JSON_REJECT_DUPLICATES, &error);
  if (json_is_object(value))
    *text = json_dumps(value, JSON_COMPACT);
  else
    tn_check_fail(check, "learnt gives no JSON object: %s", value != NULL ? "another value" : error.text);
  json_decref(value);
  return TN_OK;
}

/* Opens a part with the text that the training part gave; a failure has its text in suite->env. */
static tn_status source_begin_taught(tn_check *check, const void *options, int32_t split, const char *text,
                                     source_open *o) {
  tn_error_record *record = check->suite->env->record;
  record->learnt = text;
  tn_status status = source_begin(check, options, split, o);
  record->learnt = NULL;
  return status;
}

static tn_status source_compare_learnt(tn_check *check, const source_open *o, const char *part,
                                       const char *text) {
  char *again = NULL;
  TN_TRY(source_learnt(check, o, &again));
  if (check->wrong[0] == '\0' && (again == NULL || strcmp(again, text) != 0))
    tn_check_fail(check, "the %s part was given %.120s and tells %.120s, expected the same", part, text,
                  again != NULL ? again : "nothing");
  free(again);
  return TN_OK;
}

/* Both parts, opened with what the training part has learnt, tell the same; the training part has the same
 * samples. */
static tn_status source_open_taught(tn_check *check, const void *options, const source_sample *samples,
                                    const char *text) {
  source_open o = {.self = NULL};
  tn_status status = source_begin_taught(check, options, TN_SPLIT_TRAIN, text, &o);
  if (status == TN_OK)
    status = source_read_again(check, &o, samples, 0, 1, 0, "from the source opened with what it has learnt");
  if (status == TN_OK && check->wrong[0] == '\0') status = source_compare_learnt(check, &o, "training", text);
  source_end(check, &o);
  if (status != TN_OK || check->wrong[0] != '\0') return status;
  status = source_begin_taught(check, options, TN_SPLIT_VALID, text, &o);
  if (status == TN_EUNAVAILABLE) {
    tn_error_clear(check->suite->env);
    return TN_OK;
  }
  if (status == TN_OK) status = source_compare_learnt(check, &o, "validation", text);
  source_end(check, &o);
  return status;
}

static tn_status source_look_at_learnt(tn_check *check, source_open *o, const void *options,
                                       const source_sample *samples) {
  char *text = NULL;
  TN_TRY(source_learnt(check, o, &text));
  tn_status status = text != NULL ? source_open_taught(check, options, samples, text) : TN_OK;
  free(text);
  return status;
}

static tn_status check_samples(tn_check *check) { return source_with_samples(check, source_look_at_samples); }
static tn_status check_workers(tn_check *check) { return source_with_samples(check, source_look_at_workers); }
static tn_status check_seed(tn_check *check) { return source_with_samples(check, source_look_at_seed); }
static tn_status check_key(tn_check *check) { return source_with_samples(check, source_look_at_key); }
static tn_status check_learnt(tn_check *check) { return source_with_samples(check, source_look_at_learnt); }
static tn_status check_position(tn_check *check) {
  return source_with_samples(check, source_look_at_position);
}

tn_status tn_source_cases(tn_suite *suite, const tn_entry *entry, const char *item) {
  const tn_source *source = (const tn_source *)(const void *)entry->item;
  TN_TRY(tn_check_run(suite, entry, item, "samples", check_samples));
  TN_TRY(tn_check_run(suite, entry, item, "seed", check_seed));
  if (source->learnt != NULL) TN_TRY(tn_check_run(suite, entry, item, "learnt", check_learnt));
  if (source->next != NULL) return tn_check_run(suite, entry, item, "position", check_position);
  TN_TRY(tn_check_run(suite, entry, item, "workers", check_workers));
  return tn_check_run(suite, entry, item, "key", check_key);
}

/* core/exec/tune/measure.c: the tuner: keys and stored figures. */
#include "core/exec/tune/measure.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/file/file.h"
#include "core/exec/declines.h"
#include "core/exec/tune/measurement.h"
#include "core/exec/tune/tune_file.h"

typedef struct measuring_tuner {
  tn_tuner tuner; /* first: the handle of the compiler */
  tn_device *device;
  bool measure;
  int32_t unsteady; /* measurements that were not stored */
  tn_tune_file file;
} measuring_tuner;

/* ---- the key of a measurement ---- */

/* "*" marks cold operands. */
static void describe_types(tn_text *text, const tn_type *const *types, int32_t n, const uint8_t *cold) {
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < n; i++)
    tn_text_addf(text, " %s%s", types[i] != NULL ? tn_type_format(types[i], type) : "_",
                 cold != NULL && cold[i] ? "*" : "");
}

/* The libraries of the backend of the kernel's family; "" if it reports none. */
static const char *kernel_libraries(const tn_device *d, const tn_entry *entry) {
  const char *family = ((const tn_kernel *)entry->item)->family;
  if (d->extension != NULL && tn_text_equal(d->extension->item.name, family)) return d->extension_libraries;
  return tn_text_equal(d->backend->item.name, family) ? d->libraries : "";
}

/* Dims of operands and results imply the strides, and nearly always the padding. */
static void describe_variant(tn_text *text, const tn_device *device, const tn_tuning *tuning,
                             const tn_choice *choice) {
  const tn_entry *entry = tuning->entry;
  const tn_match *m = tuning->match;
  const char *libraries = kernel_libraries(device, entry);
  tn_text_addf(text, "%s %s%s%s \"%s\": %s", entry->item->name, entry->version != NULL ? entry->version : "",
               libraries[0] != '\0' ? " " : "", libraries, choice->name, tuning->nodes);
  describe_types(text, m->in, m->n_in, tuning->cold);
  tn_text_addf(text, " ->");
  describe_types(text, m->out, m->n_out, NULL);
}

/* A time in a replay and one of single launches have keys of their own, since a run that captures uses the
 * former alone. A run that does not capture uses both, and makes the latter. */
typedef struct measured_launch {
  tn_text text;
  uint64_t replayed, single;
  uint64_t key; /* of the two, that of a measurement in this process */
} measured_launch;

static bool are_launches_replayed(const measuring_tuner *t, const tn_choice *choice) {
  return t->tuner.time_replay != NULL && tn_device_captures(t->device) && choice->capturable;
}

static tn_status describe_launch(const measuring_tuner *t, const tn_tuning *tuning, const tn_choice *choice,
                                 measured_launch *launch) {
  *launch = (measured_launch){.text = tn_text_new(&t->device->env)};
  describe_variant(&launch->text, t->device, tuning, choice);
  if (launch->text.failed) return TN_ENOMEM;
  launch->single = tn_hash_text(TN_HASH_START, launch->text.v);
  launch->replayed = tn_hash_text(launch->single, "replayed");
  launch->key = are_launches_replayed(t, choice) ? launch->replayed : launch->single;
  return TN_OK;
}

/* ---- the tuner ---- */

/* A figure of a busy machine is of use in this run, where all variants suffer alike, and not in later ones.
 */
static void keep_measurement(measuring_tuner *t, const measured_launch *launch, const tn_measured *measured) {
  uint64_t key = measured->replayed ? launch->replayed : launch->single;
  if (measured->steady) tn_tune_file_add(&t->file, key, measured->seconds, launch->text.v);
  if (!measured->steady || key != launch->key) tn_tune_file_end(&t->file, launch->key);
  if (measured->steady) return;
  tn_tune_file_remember(&t->file, &(tn_timing){key, measured->seconds, false});
  tn_logf(&t->device->env, t->unsteady++ == 0 ? TN_LOG_INFO : TN_LOG_DEBUG,
          "the times of kernel %s differ by %.0f %%: the machine is busy, so they are used in this run and "
          "not stored",
          launch->text.v, measured->spread * 100);
}

/* The device has failed while a variant was measured, or before; this process cannot use it any more. */
static tn_status fail_measurement(measuring_tuner *t, tn_env *env, const tn_tuning *tuning,
                                  const tn_choice *choice, const tn_measured *measured,
                                  const measured_launch *launch) {
  const tn_error_record cause = t->device->record;
  if (!measured->tried) {
    tn_tune_file_end(&t->file, launch->key);
    return tn_error_move(env, &t->device->env);
  }
  bool noted = tn_tune_file_fault(&t->file, launch->key, launch->text.v);
  return tn_failf(
      env, TN_EDEVICE, "autotune: the device has failed while kernel %s, variant '%s', was measured: %s; %s",
      tuning->entry->item->name, choice->name, cause.text,
      noted ? "start again: this variant will then be left out" : "[backend] autotune = no measures nothing");
}

static void explain_failed_measurement(measuring_tuner *t, const tn_tuning *tuning, const tn_choice *choice,
                                       const tn_measured *measured) {
  tn_env *env = &t->device->env;
  int32_t level = measured->late ? TN_LOG_WARN : TN_LOG_DEBUG;
  bool declined =
      measured->declined && tn_decline_note(t->device, level, "autotune", tuning->entry, choice, tuning->key);
  if (!declined)
    tn_logf(env, TN_LOG_DEBUG, "kernel %s cannot be measured: %s", tuning->entry->item->name,
            tn_error_text(env));
  tn_error_clear(env);
}

/* Later calls find the figure, or a time of 0 for a launch that cannot be measured. */
static tn_status measure_variant(measuring_tuner *t, tn_env *env, const tn_tuning *tuning,
                                 const tn_choice *choice, const measured_launch *launch) {
  tn_measured measured;
  tn_tune_file_begin(&t->file, launch->key);
  tn_status status = tn_measure_launch(t->device, tuning, choice, &measured);
  if (measured.broken) return fail_measurement(t, env, tuning, choice, &measured, launch);
  if (status == TN_OK && measured.seconds > 0) {
    keep_measurement(t, launch, &measured);
    return TN_OK;
  }
  tn_tune_file_end(&t->file, launch->key);
  tn_tune_file_remember(&t->file, &(tn_timing){launch->key, 0, false});
  explain_failed_measurement(t, tuning, choice, &measured);
  return TN_OK;
}

/* The mark of a variant with which the device has failed. */
static tn_tune_mark *find_fault(measuring_tuner *t, const measured_launch *launch) {
  tn_tune_mark *mark = tn_tune_file_find_fault(&t->file, launch->replayed);
  return mark != NULL ? mark : tn_tune_file_find_fault(&t->file, launch->single);
}

static const tn_timing *find_time(measuring_tuner *t, const measured_launch *launch) {
  const tn_timing *timing = tn_tune_file_find(&t->file, launch->replayed);
  bool may_be_single = launch->key == launch->single;
  return timing != NULL || !may_be_single ? timing : tn_tune_file_find(&t->file, launch->single);
}

static tn_status time_variant(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                              double *seconds) {
  measuring_tuner *t = (measuring_tuner *)tuner;
  measured_launch launch;
  *seconds = 0;
  TN_TRY(tn_check_stop(env));
  tn_status status = describe_launch(t, tuning, choice, &launch);
  const tn_timing *timing = status == TN_OK ? find_time(t, &launch) : NULL;
  if (status == TN_OK && timing == NULL && t->measure && find_fault(t, &launch) == NULL) {
    status = measure_variant(t, env, tuning, choice, &launch);
    if (status == TN_OK) timing = find_time(t, &launch);
  }
  if (timing != NULL) *seconds = timing->seconds;
  tn_text_free(&launch.text);
  return status;
}

/* A figure that is not stored is of no use here: the next run would compare estimates, and choose otherwise.
 */
static tn_status time_replay(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                             double *seconds) {
  measuring_tuner *t = (measuring_tuner *)tuner;
  measured_launch launch;
  *seconds = 0;
  TN_TRY(tn_check_stop(env));
  tn_status status = describe_launch(t, tuning, choice, &launch);
  bool may_measure = status == TN_OK && t->measure && launch.key == launch.replayed &&
                     find_fault(t, &launch) == NULL && tn_tune_file_find(&t->file, launch.replayed) == NULL;
  if (may_measure) status = measure_variant(t, env, tuning, choice, &launch);
  const tn_timing *timing = status == TN_OK ? tn_tune_file_find(&t->file, launch.replayed) : NULL;
  if (timing != NULL && timing->stored) *seconds = timing->seconds;
  tn_text_free(&launch.text);
  return status;
}

static bool has_variant_faulted(tn_tuner *tuner, const tn_tuning *tuning, const tn_choice *choice) {
  measuring_tuner *t = (measuring_tuner *)tuner;
  measured_launch launch;
  tn_status status = describe_launch(t, tuning, choice, &launch);
  tn_tune_mark *mark = status == TN_OK ? find_fault(t, &launch) : NULL;
  if (mark != NULL && !mark->told)
    tn_logf(
        &t->device->env, TN_LOG_WARN,
        "autotune: kernel %s, variant '%s', is not measured, and not chosen where there is another: %s; to "
        "try it again, remove the lines that begin with %016" PRIx64 " from %s",
        tuning->entry->item->name, choice->name,
        mark->fault ? "the device failed while an earlier process measured it"
                    : "earlier processes ended while they measured it",
        mark->key, t->file.path);
  if (mark != NULL) mark->told = true;
  tn_text_free(&launch.text);
  return mark != NULL;
}

static bool knows_faults(tn_tuner *tuner) {
  return tn_tune_file_has_marks(&((measuring_tuner *)tuner)->file);
}

static void close_tuner(tn_device *device) {
  measuring_tuner *t = (measuring_tuner *)device->target.tuner;
  tn_tune_file_close(&t->file);
  tn_release(&device->env, t);
  device->target.tuner = NULL;
  device->close_tuner = NULL;
}

tn_status tn_tune_open(tn_device *device, const char *folder, bool measure) {
  const tn_device_properties *p = &device->target.properties;
  bool can_replay = device->backend->event_seconds != NULL && device->backend->capture != NULL;
  measuring_tuner *t = tn_alloc(&device->env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  *t = (measuring_tuner){
      .tuner = {time_variant, can_replay ? time_replay : NULL, has_variant_faulted, knows_faults},
      .device = device,
      .measure = measure,
      .file = {.env = &device->env}};
  device->target.tuner = &t->tuner;
  device->close_tuner = close_tuner;
  tn_text heading = tn_text_new(&device->env);
  tn_text_addf(&heading, "tenon measurements 4: %s, %d threads", p->name, (int)p->threads);
  tn_status status =
      heading.failed ? TN_ENOMEM : tn_tune_file_open(&device->env, folder, heading.v, &t->file);
  tn_text_free(&heading);
  if (status != TN_OK) close_tuner(device);
  return status;
}

void tn_tune_copy(tn_device *to, tn_device *from) {
  measuring_tuner *a = (measuring_tuner *)to->target.tuner, *b = (measuring_tuner *)from->target.tuner;
  for (size_t i = 0; a != NULL && b != NULL && i < b->file.timings.n; i++)
    tn_tune_file_remember(&a->file, &b->file.timings.v[i]);
}

char *tn_tune_folder(const void *handle) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache != NULL && cache[0] == '/') return tn_path_join(handle, cache, "tenon");
  return home != NULL && home[0] == '/' ? tn_path_join(handle, home, ".cache/tenon") : NULL;
}

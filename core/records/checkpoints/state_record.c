/* core/records/checkpoints/state_record.c: writes, reads and checks state.json. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

#include "core/records/checkpoints/checkpoint_files.h"
#include "core/run/result.h"

const char *const tn_checkpoint_files[TN_CHECKPOINT_FILES] = {"model.safetensors", "optimizer.safetensors",
                                                              "state.json"};

enum { TN_STATE_FORMAT = 2, TN_STATE_MAX_BYTES = 1 << 20, TN_CHECK_CHUNK = 1 << 20 };

/* ---- the checksum of itself ---- */

/* CRC-32C over the members other than "crc32c", sorted and without white space, so that reformatting the file
 * does not change it. False: out of memory. */
static bool state_record_checksum(json_t *json, uint32_t *crc) {
  json_t *bare = json_copy(json);
  if (bare) json_object_del(bare, "crc32c");
  char *text = bare ? json_dumps(bare, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  json_decref(bare);
  if (text == NULL) return false;
  tn_checksum sum;
  tn_checksum_start(&sum);
  tn_checksum_add(&sum, text, strlen(text));
  free(text);
  *crc = sum.crc;
  return true;
}

/* ---- writing ---- */

static json_t *state_record_files_json(const tn_state_record *record) {
  json_t *files = json_object();
  for (int i = 0; files && i < TN_CHECKPOINT_STATE; i++) {
    json_t *one = json_pack("{s:I, s:I}", "bytes", (json_int_t)record->files[i].bytes, "crc32c",
                            (json_int_t)record->files[i].crc);
    if (json_object_set_new(files, tn_checkpoint_files[i], one) == 0) continue;
    json_decref(files);
    return NULL;
  }
  return files;
}

/* The sums of the epoch so far. */
static json_t *state_record_sums_json(const tn_metric_sums *epoch) {
  json_t *sums = json_array(), *weights = json_array();
  for (int32_t i = 0; i < epoch->n; i++) {
    json_array_append_new(sums, tn_json_real(epoch->sum[i]));
    json_array_append_new(weights, tn_json_real(epoch->weight[i]));
  }
  json_t *statistics = json_array();
  for (int64_t i = 0; i < epoch->n_statistics; i++)
    json_array_append_new(statistics, tn_json_real(epoch->statistics[i]));
  return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "steps", (json_int_t)epoch->steps, "samples",
                   (json_int_t)epoch->samples, "skipped", (json_int_t)epoch->skipped, "sums", sums, "weights",
                   weights, "statistics", statistics);
}

/* The state of a schedule that has one. */
static bool state_record_add_schedule(const tn_state_record *record, json_t *json) {
  if (record->schedule[0] == '\0') return true;
  json_t *state = json_array();
  for (int i = 0; i < TN_SCHEDULE_STATE; i++)
    json_array_append_new(state, tn_json_real(record->progress.schedule[i]));
  json_t *schedule = json_pack("{s:s, s:o}", "type", record->schedule, "state", state);
  return json_object_set_new(json, "schedule", schedule) == 0;
}

static json_t *state_record_json(const tn_state_record *record) {
  const tn_progress *p = &record->progress;
  json_t *best = tn_json_real(p->best), *improved = tn_json_real(p->improved),
         *score = tn_json_real(p->score);
  json_t *json =
      json_pack("{s:i, s:I, s:I, s:I, s:I, s:b, s:f, s:o, s:o, s:o, s:I, s:o, s:I, s:s, s:o}", "format",
                TN_STATE_FORMAT, "step", (json_int_t)p->step, "epoch", (json_int_t)p->epoch, "batch",
                (json_int_t)p->batch, "epoch_samples", (json_int_t)p->epoch_samples, "ended", (int)p->ended,
                "seconds", p->seconds, "best", best, "score", score, "improved", improved, "waited",
                (json_int_t)p->waited, "tally", state_record_sums_json(&p->sums), "seed",
                (json_int_t)record->seed, "plan", record->plan, "files", state_record_files_json(record));
  uint32_t crc;
  if (json && state_record_add_schedule(record, json) && state_record_checksum(json, &crc) &&
      json_object_set_new(json, "crc32c", json_integer(crc)) == 0)
    return json;
  json_decref(json);
  return NULL;
}

tn_status tn_state_record_write(tn_run *run, const tn_state_record *record, const char *path) {
  json_t *json = state_record_json(record);
  char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
  json_decref(json);
  if (text == NULL) return tn_failf(&run->env, TN_ENOMEM, "no memory for %s", path);
  tn_status status = tn_file_write_atomic(&run->env, path, text, strlen(text));
  free(text);
  return status;
}

/* ---- reading ---- */

static void state_record_read_schedule(const json_t *json, tn_state_record *record) {
  const char *type = json_string_value(json_object_get(json, "type"));
  const json_t *state = json_object_get(json, "state");
  snprintf(record->schedule, sizeof record->schedule, "%s", type ? type : "");
  for (size_t i = 0; i < TN_SCHEDULE_STATE; i++)
    record->progress.schedule[i] = json_number_value(json_array_get(state, i));
}

static bool state_record_read_count(const json_t *json, const char *name, int64_t *value) {
  const json_t *number = json_object_get(json, name);
  if (!json_is_integer(number) || json_integer_value(number) < 0) return false;
  *value = json_integer_value(number);
  return true;
}

static bool state_record_read_files(const json_t *json, tn_state_record *record) {
  const json_t *files = json_object_get(json, "files");
  for (int i = 0; i < TN_CHECKPOINT_STATE; i++) {
    int64_t bytes, crc;
    const json_t *one = json_object_get(files, tn_checkpoint_files[i]);
    if (!state_record_read_count(one, "bytes", &bytes) || !state_record_read_count(one, "crc32c", &crc) ||
        crc > UINT32_MAX)
      return false;
    record->files[i] = (tn_file_sum){(uint64_t)bytes, (uint32_t)crc};
  }
  return true;
}

static bool state_record_read_numbers(tn_arena *arena, const json_t *array, int32_t n, double **numbers) {
  *numbers = tn_arena_alloc(arena, tn_size_mul((size_t)n + 1, sizeof **numbers));
  for (int32_t i = 0; *numbers && i < n; i++) {
    const json_t *number = json_array_get(array, (size_t)i);
    (*numbers)[i] = json_is_null(number) ? NAN : json_number_value(number);
  }
  return *numbers && json_array_size(array) == (size_t)n;
}

static bool state_record_read_sums(tn_arena *arena, const json_t *json, tn_metric_sums *epoch) {
  const json_t *sums = json_object_get(json, "sums"), *weights = json_object_get(json, "weights");
  const json_t *statistics = json_object_get(json, "statistics"); /* earlier versions wrote none */
  epoch->n_statistics = (int64_t)json_array_size(statistics);
  epoch->n = (int32_t)json_array_size(sums); /* the file's size limit of 1 MiB keeps this small */
  return state_record_read_count(json, "steps", &epoch->steps) &&
         state_record_read_count(json, "samples", &epoch->samples) &&
         state_record_read_count(json, "skipped", &epoch->skipped) &&
         state_record_read_numbers(arena, sums, epoch->n, &epoch->sum) &&
         state_record_read_numbers(arena, weights, epoch->n, &epoch->weight) &&
         state_record_read_numbers(arena, statistics, (int32_t)epoch->n_statistics, &epoch->statistics);
}

/* Earlier versions wrote the samples of each update, or nothing. */
static void state_record_read_samples(const json_t *json, tn_progress *p) {
  int64_t update = 0;
  if (state_record_read_count(json, "epoch_samples", &p->epoch_samples)) return;
  bool known = state_record_read_count(json, "update_samples", &update) && update > 0;
  if (!known || __builtin_mul_overflow(p->batch, update, &p->epoch_samples)) p->epoch_samples = -1;
}

static bool state_record_read_members(tn_arena *arena, const json_t *json, tn_state_record *record) {
  tn_progress *p = &record->progress;
  const json_t *best = json_object_get(json, "best"), *ended = json_object_get(json, "ended"),
               *improved = json_object_get(json, "improved"),
               *score = json_object_get(json, "score"); /* earlier versions wrote none */
  const char *plan = json_string_value(json_object_get(json, "plan"));
  p->best = json_is_number(best) ? json_number_value(best) : NAN;
  p->score = json_is_number(score) ? json_number_value(score) : NAN;
  p->improved = json_is_number(improved) ? json_number_value(improved) : NAN;
  if (!state_record_read_count(json, "waited", &p->waited)) p->waited = 0;
  p->ended = json_is_true(ended);
  p->seconds = json_number_value(json_object_get(json, "seconds"));
  snprintf(record->plan, sizeof record->plan, "%s", plan ? plan : "?");
  return state_record_read_sums(arena, json_object_get(json, "tally"), &p->sums) && json_is_boolean(ended) &&
         isfinite(p->seconds) && state_record_read_count(json, "step", &p->step) &&
         state_record_read_count(json, "epoch", &p->epoch) &&
         state_record_read_count(json, "batch", &p->batch) && (state_record_read_samples(json, p), true) &&
         json_is_integer(json_object_get(json, "seed")) && state_record_read_files(json, record);
}

static tn_status state_record_read_json(tn_arena *arena, json_t *json, const char *path,
                                        tn_state_record *record) {
  int64_t format = 0, recorded = -1;
  uint32_t crc = 0;
  if (!state_record_read_count(json, "format", &format) || format != TN_STATE_FORMAT)
    return tn_failf(arena->handle, TN_EINVAL,
                    "%s: has format %lld, expected %d; it was written by another version", path,
                    (long long)format, TN_STATE_FORMAT);
  if (!state_record_read_members(arena, json, record))
    return tn_failf(
        arena->handle, TN_EINVAL,
        "%s: step, epoch, batch, ended, seconds, tally, seed or files is missing or of a wrong kind", path);
  state_record_read_schedule(json_object_get(json, "schedule"), record);
  record->seed = json_integer_value(json_object_get(json, "seed"));
  if (!state_record_checksum(json, &crc)) return tn_failf(arena->handle, TN_ENOMEM, "no memory for %s", path);
  if (!state_record_read_count(json, "crc32c", &recorded) || recorded != crc)
    return tn_failf(arena->handle, TN_EINVAL,
                    "%s: is not as it was written: its checksum is %u, expected %lld", path, crc,
                    (long long)recorded);
  return TN_OK;
}

tn_status tn_state_record_read(tn_arena *arena, const char *path, tn_state_record *record) {
  json_error_t error;
  char *text = NULL;
  size_t count = 0;
  *record = (tn_state_record){.progress = {.best = NAN, .score = NAN, .improved = NAN}};
  TN_TRY(tn_file_read(arena->handle, path, TN_STATE_MAX_BYTES, &text, &count));
  json_t *json = json_loadb(text, count, JSON_REJECT_DUPLICATES, &error);
  tn_release(arena->handle, text);
  if (json == NULL) return tn_failf(arena->handle, TN_EINVAL, "%s:%d: %s", path, error.line, error.text);
  tn_status status = state_record_read_json(arena, json, path, record);
  json_decref(json);
  return status;
}

/* ---- the files beside it ---- */

static tn_status state_record_checksum_file(const void *handle, int fd, const char *path, tn_checksum *sum) {
  char *piece = tn_alloc(handle, TN_CHECK_CHUNK);
  if (piece == NULL) return TN_ENOMEM;
  ssize_t n;
  tn_checksum_start(sum);
  tn_status status = TN_OK;
  while (status == TN_OK && (n = read(fd, piece, TN_CHECK_CHUNK)) != 0) {
    if (n > 0) tn_checksum_add(sum, piece, (size_t)n);
    status = n < 0 && errno != EINTR ? tn_file_fail(handle, path, "read") : tn_check_stop(handle);
  }
  tn_release(handle, piece);
  return status;
}

tn_status tn_file_sum_compare(const void *handle, const char *path, const tn_file_sum *recorded,
                              uint64_t bytes, uint32_t crc) {
  if (bytes != recorded->bytes)
    return tn_failf(handle, TN_EINVAL, "%s: has %llu bytes, %llu were written", path,
                    (unsigned long long)bytes, (unsigned long long)recorded->bytes);
  if (crc == recorded->crc) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: is not as it was written: its checksum is %u, expected %u", path,
                  crc, recorded->crc);
}

static tn_status state_record_check_file(const void *handle, const tn_file_sum *recorded, const char *path) {
  tn_checksum sum;
  tn_open_file file;
  if (!tn_file_exists(path) && (errno == ENOENT || errno == ENOTDIR))
    return tn_failf(handle, TN_EINVAL, "%s: is missing", path);
  TN_TRY(tn_file_open(handle, path, O_RDONLY, &file));
  tn_status status = state_record_checksum_file(handle, file.fd, path, &sum);
  close(file.fd);
  return status == TN_OK ? tn_file_sum_compare(handle, path, recorded, sum.bytes, sum.crc) : status;
}

tn_status tn_state_record_check(const void *handle, const tn_state_record *record, const char *folder) {
  tn_status status = TN_OK;
  for (int i = 0; status == TN_OK && i < TN_CHECKPOINT_STATE; i++) {
    char *path = tn_path_join(handle, folder, tn_checkpoint_files[i]);
    status = path ? state_record_check_file(handle, &record->files[i], path) : TN_ENOMEM;
    tn_release(handle, path);
  }
  return status;
}

/* ---- a file by itself ---- */

/* The number of the checkpoint's file of this name; -1: it has another. */
static int checkpoint_find_file(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  for (int i = 0; i < TN_CHECKPOINT_STATE; i++)
    if (tn_text_equal(name, tn_checkpoint_files[i])) return i;
  return -1;
}

static tn_status checkpoint_read_sum(const void *handle, const char *state, int file, tn_file_sum *sum) {
  tn_arena arena = tn_arena_new(handle);
  tn_state_record record;
  tn_status status = tn_state_record_read(&arena, state, &record);
  if (status == TN_OK) *sum = record.files[file];
  tn_arena_free(&arena);
  return status;
}

tn_status tn_checkpoint_file_sum(const void *handle, const char *path, tn_file_sum *sum, bool *recorded) {
  int file = checkpoint_find_file(path);
  *recorded = false;
  if (file < 0) return TN_OK;
  char *folder = tn_path_folder(handle, path);
  char *state =
      folder != NULL ? tn_path_join(handle, folder, tn_checkpoint_files[TN_CHECKPOINT_STATE]) : NULL;
  tn_status status = state != NULL ? TN_OK : TN_ENOMEM;
  *recorded = status == TN_OK && tn_file_exists(state);
  if (*recorded) status = checkpoint_read_sum(handle, state, file, sum);
  tn_release(handle, state);
  tn_release(handle, folder);
  return status;
}

static tn_status checkpoint_compare_file(const void *handle, const char *path) {
  tn_file_sum sum;
  bool recorded;
  TN_TRY(tn_checkpoint_file_sum(handle, path, &sum, &recorded));
  return recorded ? state_record_check_file(handle, &sum, path) : TN_OK;
}

tn_status tn_checkpoint_file_check(const void *handle, const char *path) {
  tn_status status = checkpoint_compare_file(handle, path);
  return status == TN_EINVAL ? checkpoint_compare_file(handle, path) : status;
}

/* backends/sim/race/race.c: the race detector. Work states the bytes that it reads and writes. Two
 * overlapping accesses, one of them a write, must be ordered by their stream, by events, or by waits of the
 * host. The check is on vector clocks, so it finds a missing wait in every schedule, also where the accesses
 * did not collide in time.
 *
 * Accesses of the host are inferred. A copy from staging memory whose bytes differ from those of the last
 * copy from there shows a write of the host before the enqueuing. Bytes that change between enqueuing and
 * copying show a write that is too early. A read of the host that is too early gets 0xFF bytes (copy.c). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/capture.h"
#include "backends/sim/race/shadow.h"
#include "tenon/plugin/storage.h"

/* ---- names, kept longer than the launches that have them ---- */

enum { BUCKETS = 1024 };

typedef struct name {
  struct name *next;
  char text[];
} name;

struct tn_sim_names {
  name *buckets[BUCKETS];
};

static const char *race_keep_name(tn_sim_device *d, const char *text) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char *c = text; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  if (d->names == NULL) d->names = calloc(1, sizeof *d->names);
  if (d->names == NULL) return "?";
  name **bucket = &d->names->buckets[hash % BUCKETS];
  for (name *n = *bucket; n != NULL; n = n->next)
    if (strcmp(n->text, text) == 0) return n->text;
  size_t bytes = strlen(text) + 1;
  name *n = malloc(sizeof *n + bytes);
  if (n == NULL) return "?";
  n->next = *bucket;
  memcpy(n->text, text, bytes);
  *bucket = n;
  return n->text;
}

void tn_sim_names_delete(tn_sim_device *d) {
  for (int32_t i = 0; d->names != NULL && i < BUCKETS; i++)
    for (name *n = d->names->buckets[i], *next; n != NULL; n = next) next = n->next, free(n);
  free(d->names);
}

/* ---- messages ---- */

static const char *race_stream_name(const tn_sim_device *d, int32_t clock_index) {
  static const char *const roles[TN_STREAMS] = {"compute", "copy-in", "copy-out", "communication"};
  int32_t role = d->streams[(clock_index - 1) % TN_SIM_STREAMS].role;
  return role >= 0 && role < TN_STREAMS ? roles[role] : "other";
}

static void race_describe(const tn_sim_device *d, const tn_sim_access *a, char *text, size_t size) {
  const char *verb = a->write ? "writes" : "reads";
  if (a->clock_index == TN_SIM_HOST)
    snprintf(text, size, "the host (%s it before it enqueues '%s')", verb, a->name);
  else if (a->bytes > 0)
    snprintf(text, size, "'%s of %llu bytes' (%s it on the %s stream)", a->name, (unsigned long long)a->bytes,
             verb, race_stream_name(d, a->clock_index));
  else
    snprintf(text, size, "'%s' (%s it on the %s stream)", a->name, verb, race_stream_name(d, a->clock_index));
}

/* The wait that is missing between two accesses. */
static void race_missing_wait(const tn_sim_device *d, const tn_sim_access *first, const tn_sim_access *second,
                              char *text, size_t size) {
  if (second->clock_index == TN_SIM_HOST)
    snprintf(text, size, "the host must wait for an event that the %s stream records after '%s'",
             race_stream_name(d, first->clock_index), first->name);
  else if (first->clock_index == TN_SIM_HOST)
    snprintf(text, size, "the host must enqueue the one after the other");
  else
    snprintf(text, size, "the %s stream must await an event that the %s stream records after '%s'",
             race_stream_name(d, second->clock_index), race_stream_name(d, first->clock_index), first->name);
}

static tn_status race_failed(tn_sim_device *d, const char *format, ...) TN_PRINTF(2, 3);
static tn_status race_failed(tn_sim_device *d, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(d->report.text, sizeof d->report.text, format, args);
  va_end(args);
  return TN_EDEVICE;
}

static tn_status race_report(tn_sim_device *d, const tn_sim_block *block, uint64_t offset, uint64_t bytes,
                             const tn_sim_access *one, const tn_sim_access *other) {
  char first[256], second[256], missing[256];
  bool later = other->number <= one->number || one->clock_index == TN_SIM_HOST;
  const tn_sim_access *a = later ? other : one, *b = later ? one : other;
  race_describe(d, a, first, sizeof first);
  race_describe(d, b, second, sizeof second);
  race_missing_wait(d, a, b, missing, sizeof missing);
  return race_failed(
      d,
      "missing wait: nothing orders %s and %s, which share bytes %llu to %llu of a block of %llu bytes "
      "of %s memory; %s",
      first, second, (unsigned long long)offset, (unsigned long long)(offset + bytes),
      (unsigned long long)block->bytes, block->kind == TN_MEMORY_STAGING ? "staging" : "device", missing);
}

/* ---- accesses of work ---- */

/* The accessing queue or the host, with its clock. */
typedef struct actor {
  tn_sim_device *device;
  const tn_sim_clock *clock;
  tn_sim_access access; /* without `write` */
  bool captured;
} actor;

static tn_status race_access(actor *a, const void *address, uint64_t bytes, bool write, const char *what) {
  tn_sim_device *d = a->device;
  if (bytes == 0 || address == NULL) return TN_OK;
  tn_sim_block *block = tn_sim_block_find(d, address, bytes);
  if (block == NULL && !tn_sim_is_far(address) && a->access.bytes > 0)
    return TN_OK; /* a copy to or from unregistered host memory */
  if (block == NULL)
    return race_failed(d, "%s of %llu bytes at %p lies in no memory of the device", what,
                       (unsigned long long)bytes, address);
  if (block->shadow == NULL) return TN_OK;
  tn_sim_access conflict;
  uint64_t offset = (uint64_t)((const char *)tn_sim_real(address) - block->real);
  a->access.write = write;
  if (!tn_sim_shadow_access(block->shadow, offset, bytes, write, a->clock, &a->access, &conflict))
    return race_failed(d, "no memory to record an access");
  return conflict.when == 0 ? TN_OK : race_report(d, block, offset, bytes, &a->access, &conflict);
}

static uint64_t race_view_bytes(const tn_view *view) {
  return (uint64_t)tn_storage_of(&view->type, &view->layout).count * tn_dtype_size(view->type.dtype);
}

static tn_status race_access_launch(actor *a, const tn_launch *l) {
  for (int32_t i = 0; i < l->n_in; i++) {
    tn_status status = race_access(a, l->in[i].data, race_view_bytes(&l->in[i]), false, "an operand");
    if (status != TN_OK) return status;
  }
  for (int32_t i = 0; i < l->n_out; i++) {
    tn_status status = race_access(a, l->out[i].data, race_view_bytes(&l->out[i]), true, "a result");
    if (status != TN_OK) return status;
  }
  tn_status status = race_access(a, l->folded, (uint64_t)l->folded_bytes, true, "the folded memory");
  return status != TN_OK ? status
                         : race_access(a, l->workspace, (uint64_t)l->workspace_bytes, true, "the workspace");
}

uint64_t tn_sim_sum(const void *bytes, uint64_t n) {
  const char *at = bytes;
  uint64_t sum = n, word = 0;
  for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
    memcpy(&word, at, sizeof word);
    sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    sum ^= sum >> 29;
  }
  word = 0;
  memcpy(&word, at, n);
  return (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
}

void tn_sim_race_copied(tn_sim_device *d, const tn_sim_work *work) {
  if (!d->backend->options.check) return;
  pthread_mutex_lock(&d->lock);
  tn_sim_block *block = tn_sim_block_find(d, work->copy.to, work->copy.bytes);
  if (block != NULL && block->copied != NULL) {
    const char *to = tn_sim_real(work->copy.to);
    memcpy(block->copied + (to - block->real), to, work->copy.bytes);
  }
  pthread_mutex_unlock(&d->lock);
}

/* Records a write of the host to staging memory, where its bytes differ from those of the last copy. */
static tn_status race_access_as_host(const actor *a, const tn_sim_work *work) {
  tn_sim_block *block = tn_sim_block_find(a->device, work->copy.from, work->copy.bytes);
  if (!work->copy.follows && tn_sim_sum(work->copy.from, work->copy.bytes) != work->copy.sum)
    return race_failed(a->device,
                       "missing wait: the host has written to the memory since it enqueued the copy, which "
                       "had not been done; it must wait for an event behind the copy first");
  if (block == NULL || block->copied == NULL) return TN_OK;
  char *copied = block->copied + ((const char *)work->copy.from - block->real);
  if (memcmp(copied, work->copy.from, work->copy.bytes) == 0) return TN_OK;
  memcpy(copied, work->copy.from, work->copy.bytes);
  actor host = *a;
  host.clock = &work->host;
  host.access.clock_index = TN_SIM_HOST;
  host.access.when = work->host.at[TN_SIM_HOST];
  return race_access(&host, work->copy.from, work->copy.bytes, true, "staging memory");
}

static tn_status race_access_copy(actor *a, const tn_sim_work *work) {
  a->access.bytes = work->copy.bytes;
  bool hosts = work->copy.direction == TN_COPY_TO_DEVICE && !a->captured;
  TN_TRY(hosts ? race_access_as_host(a, work) : TN_OK);
  TN_TRY(race_access(a, work->copy.from, work->copy.bytes, false, "the beginning of a copy"));
  return race_access(a, work->copy.to, work->copy.bytes, true, "the end of a copy");
}

static tn_status race_access_task(actor *a, const tn_sim_task *task) {
  tn_status status = TN_OK;
  for (int32_t i = 0; i < task->n_reads && status == TN_OK; i++)
    status = race_access(a, task->reads[i].address, task->reads[i].bytes, false, "an operand of a task");
  for (int32_t i = 0; i < task->n_writes && status == TN_OK; i++)
    status = race_access(a, task->writes[i].address, task->writes[i].bytes, true, "a result of a task");
  return status;
}

static tn_status race_access_all(actor *a, const tn_sim_work *work) {
  switch (work->kind) {
  case TN_SIM_COPY: return race_access_copy(a, work);
  case TN_SIM_ZERO:
    a->access.bytes = work->copy.bytes;
    return race_access(a, work->copy.to, work->copy.bytes, true, "memory to fill");
  case TN_SIM_LAUNCH: return race_access_launch(a, work->launch.l);
  case TN_SIM_TASK: return race_access_task(a, &work->task.task);
  default: return TN_OK;
  }
}

tn_status tn_sim_race_check(tn_sim_queue *queue, const tn_sim_work *work) {
  tn_sim_device *d = queue->stream->device;
  if (!d->backend->options.check) return TN_OK;
  actor a = {.device = d, .clock = queue->clock, .captured = queue->capture != NULL};
  a.access.when = queue->clock->at[queue->clock_index];
  a.access.clock_index = queue->clock_index;
  a.access.number = queue->capture != NULL ? queue->capture->number : work->number;
  a.access.name = race_keep_name(d, tn_sim_work_kind(work));
  pthread_mutex_lock(&d->lock);
  tn_status status = race_access_all(&a, work);
  pthread_mutex_unlock(&d->lock);
  return status;
}

/* core/conformance/device/device.c: the device itself, without any kernel: memory, copies, streams, events,
 * capture. The blocks are large enough for a copy to take a while, so that what is not ordered shows. */
#include "core/conformance/device/device.h"

#include <string.h>

enum { BLOCK = TN_MACHINE_BLOCK, BLOCKS = TN_MACHINE_BLOCKS, ROUNDS = 24, LATE = 8, ODD = 13 };

static tn_status copy(const tn_machine *m, int32_t role, int32_t direction, void *to, const void *from,
                      uint64_t bytes) {
  return m->backend->copy(m->env, m->device->streams[role], direction, to, from, bytes);
}

tn_status tn_machine_move(const tn_machine *m, int32_t direction, void *to, const void *from,
                          uint64_t bytes) {
  TN_TRY(copy(m, TN_STREAM_COMPUTE, direction, to, from, bytes));
  return m->backend->stream_wait(m->env, m->device->streams[TN_STREAM_COMPUTE]);
}

static void write(char *at, int64_t bytes, int seed) {
  for (int64_t i = 0; i < bytes; i++) at[i] = (char)(seed * 31 + (int)(i % 251));
}

static bool holds(const char *at, int64_t bytes, int seed) {
  for (int64_t i = 0; i < bytes; i++)
    if (at[i] != (char)(seed * 31 + (int)(i % 251))) return false;
  return true;
}

void tn_machine_expect(tn_machine *m, bool holds_true, const char *wrong) {
  if (!holds_true && m->wrong == NULL) m->wrong = wrong;
}

/* ---- cases ---- */

/* Blocks of every size are aligned and lie apart. */
static tn_status try_memory(tn_machine *m) {
  static const int64_t sizes[] = {1, 63, 64, 65, 100, 4097, 12345, BLOCK - 1};
  enum { N = sizeof sizes / sizeof *sizes };
  void *blocks[N] = {NULL};
  tn_status status = TN_OK;
  for (int32_t i = 0; i < N && status == TN_OK; i++) {
    status = tn_device_memory(m->device, TN_MEMORY_DEVICE, sizes[i], &blocks[i]);
    tn_machine_expect(m, (uintptr_t)blocks[i] % 64 == 0,
                      "memory_new gives a block that is not aligned to 64 bytes");
    write(m->near[0], sizes[i], i);
    if (status == TN_OK)
      status = tn_machine_move(m, TN_COPY_TO_DEVICE, blocks[i], m->near[0], (uint64_t)sizes[i]);
  }
  for (int32_t i = 0; i < N && status == TN_OK; i++) {
    status = tn_machine_move(m, TN_COPY_TO_HOST, m->near[1], blocks[i], (uint64_t)sizes[i]);
    tn_machine_expect(m, holds(m->near[1], sizes[i], i),
                      "two blocks of memory overlap, or one forgets what is in it");
  }
  for (int32_t i = 0; i < N; i++) tn_device_memory_free(m->device, TN_MEMORY_DEVICE, blocks[i], sizes[i]);
  return status;
}

/* From and to any byte of a block, and memory that is not pinned. */
static tn_status try_copy(tn_machine *m) {
  char here[3 * ODD];
  write(m->near[0], BLOCK, 1);
  TN_TRY(tn_machine_move(m, TN_COPY_TO_DEVICE, m->far[0], m->near[0], BLOCK));
  write(here, sizeof here, 2);
  TN_TRY(tn_machine_move(m, TN_COPY_TO_DEVICE, m->far[0] + ODD, here, sizeof here));
  TN_TRY(tn_machine_move(m, TN_COPY_ON_DEVICE, m->far[1] + 1, m->far[0], BLOCK - 1));
  TN_TRY(tn_machine_move(m, TN_COPY_TO_HOST, m->near[1], m->far[1] + 1, BLOCK - 1));
  tn_machine_expect(m, holds(m->near[1] + ODD, sizeof here, 2), "a copy into a block brings other bytes");
  tn_machine_expect(m,
                    holds(m->near[1], ODD, 1) &&
                        memcmp(m->near[1] + 4 * ODD, m->near[0] + 4 * ODD, BLOCK - 1 - 4 * ODD) == 0,
                    "a copy into a block changes bytes beside it");
  memset(here, 0, sizeof here);
  TN_TRY(tn_machine_move(m, TN_COPY_TO_HOST, here, m->far[0] + ODD, sizeof here));
  tn_machine_expect(m, holds(here, sizeof here, 2), "a copy to memory of the process brings other bytes");
  return TN_OK;
}

static bool all_zero(const char *at, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++)
    if (at[i] != 0) return false;
  return true;
}

static tn_status try_zero(tn_machine *m) {
  void *compute = m->device->streams[TN_STREAM_COMPUTE];
  write(m->near[0], BLOCK, 3);
  TN_TRY(tn_machine_move(m, TN_COPY_TO_DEVICE, m->far[0], m->near[0], BLOCK));
  TN_TRY(m->backend->fill_zero(m->env, compute, m->far[0] + ODD, BLOCK - 2 * ODD));
  TN_TRY(tn_machine_move(m, TN_COPY_TO_HOST, m->near[1], m->far[0], BLOCK));
  tn_machine_expect(m, all_zero(m->near[1] + ODD, BLOCK - 2 * ODD),
                    "fill_zero leaves bytes that are not zero");
  tn_machine_expect(m, memcmp(m->near[1], m->near[0], ODD) == 0,
                    "fill_zero changes bytes in front of its range");
  tn_machine_expect(m, memcmp(m->near[1] + BLOCK - ODD, m->near[0] + BLOCK - ODD, ODD) == 0,
                    "fill_zero changes bytes behind its range");
  return TN_OK;
}

/* Work of one stream runs in order. */
static tn_status try_stream(tn_machine *m) {
  write(m->near[0], BLOCK, 4);
  TN_TRY(copy(m, TN_STREAM_COMPUTE, TN_COPY_TO_DEVICE, m->far[0], m->near[0], BLOCK));
  for (int32_t i = 1; i < ROUNDS; i++)
    TN_TRY(
        copy(m, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, m->far[i % BLOCKS], m->far[(i - 1) % BLOCKS], BLOCK));
  TN_TRY(copy(m, TN_STREAM_COMPUTE, TN_COPY_TO_HOST, m->near[1], m->far[(ROUNDS - 1) % BLOCKS], BLOCK));
  TN_TRY(m->backend->stream_wait(m->env, m->device->streams[TN_STREAM_COMPUTE]));
  tn_machine_expect(m, holds(m->near[1], BLOCK, 4),
                    "work of one stream does not run in order, or stream_wait returns early");
  return TN_OK;
}

/* `to` goes on behind what `from` has been given so far. */
static tn_status hand_over(const tn_machine *m, int32_t event, int32_t from, int32_t to) {
  TN_TRY(m->backend->event_record(m->env, m->events[event], m->device->streams[from]));
  return m->backend->event_await(m->env, m->events[event], m->device->streams[to]);
}

/* What is right comes late, behind copies of what is wrong: whoever does not wait for it takes those, even
 * where threads of streams get a processor late themselves. */
static tn_status copy_late(const tn_machine *m, int32_t role, int32_t direction, void *to, const void *wrong,
                           const void *right) {
  for (int32_t i = 0; i < LATE; i++) TN_TRY(copy(m, role, direction, to, wrong, BLOCK));
  return copy(m, role, direction, to, right, BLOCK);
}

/* In, across and out on three streams, with the same events again and again and nobody waiting in between. */
static tn_status try_events(tn_machine *m) {
  for (int32_t i = 0; i < 2; i++) write(m->near[i], BLOCK, 5 + i);
  TN_TRY(tn_machine_move(m, TN_COPY_TO_DEVICE, m->far[2], m->near[2], BLOCK)); /* something else */
  TN_TRY(m->backend->event_wait(m->env, m->events[0]));                        /* never recorded: done */
  TN_TRY(m->backend->event_await(m->env, m->events[0], m->device->streams[TN_STREAM_COPY_IN]));
  for (int32_t i = 0; i < ROUNDS; i++) {
    TN_TRY(copy_late(m, TN_STREAM_COPY_IN, TN_COPY_TO_DEVICE, m->far[0], m->near[1 - i % 2], m->near[i % 2]));
    TN_TRY(hand_over(m, 0, TN_STREAM_COPY_IN, TN_STREAM_COMPUTE));
    TN_TRY(copy_late(m, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, m->far[1], m->far[2], m->far[0]));
    TN_TRY(hand_over(m, 1, TN_STREAM_COMPUTE, TN_STREAM_COPY_OUT));
    TN_TRY(copy(m, TN_STREAM_COPY_OUT, TN_COPY_TO_HOST, m->near[2 + i % 2], m->far[1], BLOCK));
    TN_TRY(hand_over(m, 2, TN_STREAM_COPY_OUT, TN_STREAM_COPY_IN));
    if (i % 2 == 0) continue;
    TN_TRY(m->backend->event_wait(m->env, m->events[2]));
    for (int32_t k = 0; k < 2; k++) {
      tn_machine_expect(m, holds(m->near[2 + k], BLOCK, 5 + k),
                        "a stream does not wait for the event that it awaits");
      memset(m->near[2 + k], 0, BLOCK);
    }
  }
  return TN_OK;
}

/* The captured part: on the compute stream, and in between on another one. */
static tn_status record(const tn_machine *m) {
  TN_TRY(copy(m, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, m->far[1], m->far[0], BLOCK));
  TN_TRY(hand_over(m, 0, TN_STREAM_COMPUTE, TN_STREAM_COMM));
  TN_TRY(copy(m, TN_STREAM_COMM, TN_COPY_ON_DEVICE, m->far[2], m->far[1], BLOCK));
  TN_TRY(hand_over(m, 1, TN_STREAM_COMM, TN_STREAM_COMPUTE));
  return copy(m, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, m->far[3], m->far[2], BLOCK);
}

static tn_status replay(tn_machine *m, void *capture, int seed) {
  void *compute = m->device->streams[TN_STREAM_COMPUTE];
  write(m->near[0], BLOCK, seed);
  TN_TRY(copy(m, TN_STREAM_COMPUTE, TN_COPY_TO_DEVICE, m->far[0], m->near[0], BLOCK));
  TN_TRY(m->backend->capture_launch(m->env, capture, compute));
  TN_TRY(tn_machine_move(m, TN_COPY_TO_HOST, m->near[1], m->far[3], BLOCK));
  tn_machine_expect(m, holds(m->near[1], BLOCK, seed), "a replay does not do what was captured");
  return TN_OK;
}

static tn_status use_capture(tn_machine *m, void *capture) {
  TN_TRY(tn_machine_move(m, TN_COPY_TO_HOST, m->near[1], m->far[3], BLOCK));
  tn_machine_expect(m, holds(m->near[1], BLOCK, 7), "work runs while it is captured");
  for (int seed = 8; seed < 11; seed++) TN_TRY(replay(m, capture, seed));
  return TN_OK;
}

/* The events are new ones: what was recorded outside of a capture cannot be awaited inside. */
static tn_status try_capture(tn_machine *m) {
  void *compute = m->device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  if (m->backend->capture_begin == NULL) return TN_OK;
  write(m->near[0], BLOCK, 7);
  TN_TRY(tn_machine_move(m, TN_COPY_TO_DEVICE, m->far[3], m->near[0], BLOCK));
  TN_TRY(m->backend->capture_begin(m->env, m->device->device, compute));
  tn_status recorded = record(m);
  tn_status status = m->backend->capture_end(m->env, m->device->device, compute, &capture);
  if (recorded != TN_OK) status = recorded;
  if (status == TN_OK) status = use_capture(m, capture);
  if (capture != NULL) m->backend->capture_delete(m->env, capture);
  return status;
}

/* ---- all of them ---- */

typedef struct part {
  const char *name;
  tn_status (*run)(tn_machine *m);
} part;

static const part parts[] = {{"device/memory", try_memory},
                             {"device/copy", try_copy},
                             {"device/zero", try_zero},
                             {"device/stream", try_stream},
                             {"device/events", try_events},
                             {"device/capture", try_capture},
                             {"device/launch", tn_machine_try_launch},
                             {"device/calls", tn_machine_try_calls}};
static const part last = {"device/failure", tn_machine_try_failure};

static tn_status open_machine(tn_machine *m) {
  for (int32_t i = 0; i < BLOCKS; i++) {
    void *far = NULL, *near = NULL;
    TN_TRY(tn_device_memory(m->device, TN_MEMORY_DEVICE, BLOCK, &far));
    m->far[i] = far;
    TN_TRY(tn_device_memory(m->device, TN_MEMORY_STAGING, BLOCK, &near));
    m->near[i] = near;
  }
  for (int32_t i = 0; i < TN_MACHINE_EVENTS; i++)
    TN_TRY(m->backend->event_new(m->env, m->device->device, &m->events[i]));
  return TN_OK;
}

static void close_machine(tn_machine *m) {
  for (int32_t role = 0; role < TN_STREAMS; role++) m->backend->stream_wait(m->env, m->device->streams[role]);
  for (int32_t i = 0; i < TN_MACHINE_EVENTS; i++)
    if (m->events[i] != NULL) m->backend->event_delete(m->env, m->events[i]);
  for (int32_t i = 0; i < BLOCKS; i++) {
    tn_device_memory_free(m->device, TN_MEMORY_STAGING, m->near[i], BLOCK);
    tn_device_memory_free(m->device, TN_MEMORY_DEVICE, m->far[i], BLOCK);
  }
}

static tn_status try_part(tn_suite *suite, const part *one) {
  tn_device *device = suite->site.device;
  tn_machine m = {.suite = suite, .device = device, .backend = device->backend, .env = &device->env};
  tn_status status = open_machine(&m);
  if (status == TN_OK) status = one->run(&m);
  tn_text reason = tn_text_new(suite->env);
  if (status != TN_OK) tn_text_addf(&reason, "%s", tn_error_text(m.env));
  close_machine(&m);
  const char *wrong = status != TN_OK ? (reason.v != NULL ? reason.v : "out of memory") : m.wrong;
  status = TN_OK;
  if (wrong != NULL)
    status = tn_suite_fail(suite, one->name, wrong);
  else
    suite->passed++;
  tn_text_free(&reason);
  return status;
}

static tn_status run_part(tn_suite *suite, const part *one) {
  const char *only = suite->filter.op;
  size_t failed = suite->failed.n;
  if (suite->broken || (only[0] != '\0' && strcmp(only, "device") != 0 && strcmp(only, one->name) != 0))
    return TN_OK;
  tn_suite_begin(suite, one->name);
  TN_TRY(try_part(suite, one));
  return suite->failed.n > failed && one != &last ? tn_suite_look(suite, one->name) : TN_OK;
}

tn_status tn_suite_run_device(tn_suite *suite) {
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) TN_TRY(run_part(suite, &parts[i]));
  return TN_OK;
}

tn_status tn_suite_run_failure(tn_suite *suite) {
  return suite->options->plugin == NULL ? run_part(suite, &last) : TN_OK;
}

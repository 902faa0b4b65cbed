/* core/conformance/device/memory_cases.c: memory, copies, streams, events and capture, without kernels.
 * Blocks are so large that a copy takes a while, so a missing wait shows. */
#include <string.h>

#include "core/base/system/system.h"
#include "core/conformance/device/device_cases.h"

enum { BLOCK = TN_FIXTURE_BLOCK, BLOCKS = TN_FIXTURE_BLOCKS, ROUNDS = 24, LATE = 32, ODD = 13 };

/* Blocks of every size are aligned and do not overlap. */
tn_status tn_device_case_memory(tn_device_fixture *f) {
  static const int64_t sizes[] = {1, 63, 64, 65, 100, 4097, 12345, BLOCK - 1};
  enum { N = sizeof sizes / sizeof *sizes };
  void *blocks[N] = {NULL};
  tn_status status = TN_OK;
  for (int32_t i = 0; i < N && status == TN_OK; i++) {
    status = tn_device_memory(f->device, TN_MEMORY_DEVICE, sizes[i], &blocks[i]);
    tn_device_fixture_expect(f, (uintptr_t)blocks[i] % 64 == 0,
                             "memory_new gives a block that is not aligned to 64 bytes");
    tn_device_fixture_write(f->host_block[0], sizes[i], i);
    if (status == TN_OK)
      status = tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, blocks[i], f->host_block[0], (uint64_t)sizes[i]);
  }
  for (int32_t i = 0; i < N && status == TN_OK; i++) {
    status = tn_device_fixture_copy(f, TN_COPY_TO_HOST, f->host_block[1], blocks[i], (uint64_t)sizes[i]);
    tn_device_fixture_expect(f, tn_device_fixture_holds(f->host_block[1], sizes[i], i),
                             "two blocks of memory overlap, or a block loses its contents");
  }
  for (int32_t i = 0; i < N; i++) tn_device_memory_free(f->device, TN_MEMORY_DEVICE, blocks[i], sizes[i]);
  return status;
}

/* Copies start at any byte of a block and in memory that is not pinned. */
tn_status tn_device_case_copy(tn_device_fixture *f) {
  char here[3 * ODD];
  tn_device_fixture_write(f->host_block[0], BLOCK, 1);
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, f->device_block[0], f->host_block[0], BLOCK));
  tn_device_fixture_write(here, sizeof here, 2);
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, f->device_block[0] + ODD, here, sizeof here));
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_ON_DEVICE, f->device_block[1] + 1, f->device_block[0], BLOCK - 1));
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_HOST, f->host_block[1], f->device_block[1] + 1, BLOCK - 1));
  tn_device_fixture_expect(f, tn_device_fixture_holds(f->host_block[1] + ODD, sizeof here, 2),
                           "a copy into a block writes wrong bytes");
  tn_device_fixture_expect(
      f,
      tn_device_fixture_holds(f->host_block[1], ODD, 1) &&
          memcmp(f->host_block[1] + 4 * ODD, f->host_block[0] + 4 * ODD, BLOCK - 1 - 4 * ODD) == 0,
      "a copy into a block changes bytes outside its range");
  memset(here, 0, sizeof here);
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_HOST, here, f->device_block[0] + ODD, sizeof here));
  tn_device_fixture_expect(f, tn_device_fixture_holds(here, sizeof here, 2),
                           "a copy to memory of the process writes wrong bytes");
  return TN_OK;
}

static bool all_zero(const char *at, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++)
    if (at[i] != 0) return false;
  return true;
}

tn_status tn_device_case_zero(tn_device_fixture *f) {
  void *compute = f->device->streams[TN_STREAM_COMPUTE];
  tn_device_fixture_write(f->host_block[0], BLOCK, 3);
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, f->device_block[0], f->host_block[0], BLOCK));
  TN_TRY(f->backend->fill_zero(f->env, compute, f->device_block[0] + ODD, BLOCK - 2 * ODD));
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_HOST, f->host_block[1], f->device_block[0], BLOCK));
  tn_device_fixture_expect(f, all_zero(f->host_block[1] + ODD, BLOCK - 2 * ODD),
                           "fill_zero leaves bytes that are not zero");
  tn_device_fixture_expect(f, memcmp(f->host_block[1], f->host_block[0], ODD) == 0,
                           "fill_zero changes bytes before its range");
  tn_device_fixture_expect(f,
                           memcmp(f->host_block[1] + BLOCK - ODD, f->host_block[0] + BLOCK - ODD, ODD) == 0,
                           "fill_zero changes bytes after its range");
  return TN_OK;
}

/* Work of one stream runs in order. */
tn_status tn_device_case_stream(tn_device_fixture *f) {
  tn_device_fixture_write(f->host_block[0], BLOCK, 4);
  TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_TO_DEVICE, f->device_block[0],
                                        f->host_block[0], BLOCK));
  for (int32_t i = 1; i < ROUNDS; i++)
    TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE,
                                          f->device_block[i % BLOCKS], f->device_block[(i - 1) % BLOCKS],
                                          BLOCK));
  TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_TO_HOST, f->host_block[1],
                                        f->device_block[(ROUNDS - 1) % BLOCKS], BLOCK));
  TN_TRY(f->backend->stream_wait(f->env, f->device->streams[TN_STREAM_COMPUTE]));
  tn_device_fixture_expect(f, tn_device_fixture_holds(f->host_block[1], BLOCK, 4),
                           "work of one stream does not run in order, or stream_wait returns early");
  return TN_OK;
}

/* Stream `to` awaits the work enqueued on stream `from` so far. */
static tn_status await_stream(const tn_device_fixture *f, int32_t event, int32_t from, int32_t to) {
  TN_TRY(f->backend->event_record(f->env, f->events[event], f->device->streams[from]));
  return f->backend->event_await(f->env, f->events[event], f->device->streams[to]);
}

/* Enqueues copies of wrong bytes, then one of the right bytes. A stream that does not await the last copy
 * reads wrong bytes, even where the threads of streams are scheduled late. */
static tn_status copy_late(const tn_device_fixture *f, int32_t role, int32_t direction, void *to,
                           const void *wrong, const void *right) {
  for (int32_t i = 0; i < LATE; i++)
    TN_TRY(tn_device_fixture_enqueue_copy(f, role, direction, to, wrong, BLOCK));
  return tn_device_fixture_enqueue_copy(f, role, direction, to, right, BLOCK);
}

/* Polls event_done as a rank of several devices does, or blocks in event_wait. */
static tn_status wait_for_event(const tn_device_fixture *f, void *event, bool poll) {
  int32_t done = 0;
  if (!poll || f->backend->event_done == NULL) return f->backend->event_wait(f->env, event);
  while (done == 0) TN_TRY(f->backend->event_done(f->env, event, &done));
  return TN_OK;
}

/* Copies in, on the device, and out on three streams, with the same events in every round and no waits
 * between. */
tn_status tn_device_case_events(tn_device_fixture *f) {
  for (int32_t i = 0; i < 2; i++) tn_device_fixture_write(f->host_block[i], BLOCK, 5 + i);
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, f->device_block[2], f->host_block[2],
                                BLOCK)); /* other bytes */
  for (int32_t poll = 0; poll < 2; poll++)
    TN_TRY(wait_for_event(f, f->events[0], poll)); /* never recorded, so complete */
  TN_TRY(f->backend->event_await(f->env, f->events[0], f->device->streams[TN_STREAM_COPY_IN]));
  for (int32_t i = 0; i < ROUNDS; i++) {
    TN_TRY(copy_late(f, TN_STREAM_COPY_IN, TN_COPY_TO_DEVICE, f->device_block[0], f->host_block[1 - i % 2],
                     f->host_block[i % 2]));
    TN_TRY(await_stream(f, 0, TN_STREAM_COPY_IN, TN_STREAM_COMPUTE));
    TN_TRY(copy_late(f, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, f->device_block[1], f->device_block[2],
                     f->device_block[0]));
    TN_TRY(await_stream(f, 1, TN_STREAM_COMPUTE, TN_STREAM_COPY_OUT));
    TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COPY_OUT, TN_COPY_TO_HOST, f->host_block[2 + i % 2],
                                          f->device_block[1], BLOCK));
    TN_TRY(await_stream(f, 2, TN_STREAM_COPY_OUT, TN_STREAM_COPY_IN));
    if (i % 2 == 0) continue;
    TN_TRY(wait_for_event(f, f->events[2], i % 4 == 1));
    for (int32_t k = 0; k < 2; k++) {
      tn_device_fixture_expect(f, tn_device_fixture_holds(f->host_block[2 + k], BLOCK, 5 + k),
                               "a stream does not wait for the event that it awaits");
      memset(f->host_block[2 + k], 0, BLOCK);
    }
  }
  return TN_OK;
}

/* The device's clock does not run backwards, and not faster than the host's, which sees the waiting as well.
 */
tn_status tn_device_case_time(tn_device_fixture *f) {
  const tn_backend *b = f->backend;
  void *stream = f->device->streams[TN_STREAM_COMPUTE];
  if (b->event_seconds == NULL) return TN_OK;
  for (int32_t i = 0; i < ROUNDS; i++) {
    double seconds = -1, start_s = tn_clock_s();
    TN_TRY(b->event_record(f->env, f->events[0], stream));
    TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, f->device_block[1],
                                          f->device_block[0], BLOCK));
    TN_TRY(b->event_record(f->env, f->events[1], stream));
    TN_TRY(b->stream_wait(f->env, stream));
    TN_TRY(b->event_seconds(f->env, f->events[0], f->events[1], &seconds));
    tn_device_fixture_expect(f, seconds >= 0, "event_seconds is negative, or was not set");
    tn_device_fixture_expect(f, seconds <= 1.1 * (tn_clock_s() - start_s) + 1e-3,
                             "event_seconds is longer than the work took with its wait");
  }
  return TN_OK;
}

/* The captured work begins and ends on the compute stream and uses another stream between. */
static tn_status record_captured_work(void *arg) {
  const tn_device_fixture *f = arg;
  TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, f->device_block[1],
                                        f->device_block[0], BLOCK));
  TN_TRY(await_stream(f, 0, TN_STREAM_COMPUTE, TN_STREAM_COMM));
  TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMM, TN_COPY_ON_DEVICE, f->device_block[2],
                                        f->device_block[1], BLOCK));
  TN_TRY(await_stream(f, 1, TN_STREAM_COMM, TN_STREAM_COMPUTE));
  return tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_ON_DEVICE, f->device_block[3],
                                        f->device_block[2], BLOCK);
}

static tn_status check_replay(tn_device_fixture *f, void *capture, int seed) {
  void *compute = f->device->streams[TN_STREAM_COMPUTE];
  tn_device_fixture_write(f->host_block[0], BLOCK, seed);
  TN_TRY(tn_device_fixture_enqueue_copy(f, TN_STREAM_COMPUTE, TN_COPY_TO_DEVICE, f->device_block[0],
                                        f->host_block[0], BLOCK));
  TN_TRY(f->backend->capture_launch(f->env, capture, compute));
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_HOST, f->host_block[1], f->device_block[3], BLOCK));
  tn_device_fixture_expect(f, tn_device_fixture_holds(f->host_block[1], BLOCK, seed),
                           "a replay does not repeat the captured work");
  return TN_OK;
}

static tn_status check_capture(tn_device_fixture *f, void *capture) {
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_HOST, f->host_block[1], f->device_block[3], BLOCK));
  tn_device_fixture_expect(f, tn_device_fixture_holds(f->host_block[1], BLOCK, 7),
                           "work runs while it is captured");
  for (int seed = 8; seed < 11; seed++) TN_TRY(check_replay(f, capture, seed));
  return TN_OK;
}

/* The fixture has new events: an event that was recorded outside a capture cannot be awaited inside. */
tn_status tn_device_case_capture(tn_device_fixture *f) {
  void *compute = f->device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  if (f->backend->capture == NULL) return TN_OK;
  tn_device_fixture_write(f->host_block[0], BLOCK, 7);
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, f->device_block[3], f->host_block[0], BLOCK));
  tn_status status =
      f->backend->capture(f->env, f->device->device, compute, record_captured_work, f, &capture);
  if (status == TN_OK) status = check_capture(f, capture);
  if (capture != NULL) f->backend->capture_delete(f->env, capture);
  return status;
}

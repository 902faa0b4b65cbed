/* Programs on memory that the caller gives, on a device that runs as late as it may: a slot's launches are
 * pointed elsewhere only when its last run is over, and are deleted only when all are. */
#include <sys/wait.h>
#include <unistd.h>

#include "story.h"

enum { RUNS = 5 };

/* Five runs on memory that the caller gives, over two slots: a slot's launches are pointed elsewhere only
 * when its last run is over. */
static bool start_outside(story *s) {
  return story_well(
      s, tn_outside_create(&s->env, s->device, s->map, &s->hand.program, STORY_SLOTS, &s->outside));
}

static bool move(story *s, int32_t direction, void *to, const void *from) {
  const tn_backend *b = s->device->backend;
  void *stream = s->device->streams[TN_STREAM_COMPUTE];
  tn_status status = b->copy(&s->device->env, stream, direction, to, from, sizeof s->read);
  if (status == TN_OK) status = b->stream_wait(&s->device->env, stream);
  tn_error_move(&s->env, &s->device->env);
  return story_well(s, status);
}

static bool run_outside(story *s) {
  void *in[RUNS] = {NULL}, *out[RUNS] = {NULL};
  bool ok = true;
  for (int32_t i = 0; ok && i < RUNS; i++) {
    for (int32_t k = 0; k < STORY_N; k++) s->own[k] = (float)(10 * (i + 1) + k);
    ok = story_well(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->own, &in[i])) &&
         story_well(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->own, &out[i])) &&
         move(s, TN_COPY_TO_DEVICE, in[i], s->own) && move(s, TN_COPY_TO_DEVICE, out[i], s->own);
  }
  for (int32_t i = 0; ok && i < RUNS; i++) ok = story_well(s, tn_outside_run(s->outside, &in[i], &out[i]));
  for (int32_t i = 0; ok && i < RUNS; i++) {
    ok = move(s, TN_COPY_TO_HOST, s->read, out[i]);
    memcpy(s->results + s->n, s->read, sizeof s->read);
    s->n += STORY_N;
  }
  for (int32_t i = 0; i < RUNS; i++) {
    tn_device_memory_free(s->device, TN_MEMORY_DEVICE, in[i], sizeof s->own);
    tn_device_memory_free(s->device, TN_MEMORY_DEVICE, out[i], sizeof s->own);
  }
  return ok;
}

/* All on the compute stream, so that no other one stands for it. */
static void use_one_stream(story_program *p) {
  story_program_shorten(p);
  p->groups[1].role = TN_STREAM_COMPUTE;
  p->segments[0].awaits = -1;
}

/* The outside goes before any of its runs is over; then the memory does. */
static bool leave_early(story *s) {
  void *in = NULL, *out = NULL;
  bool ok = story_well(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->own, &in)) &&
            story_well(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->own, &out)) &&
            move(s, TN_COPY_TO_DEVICE, in, s->own) && story_well(s, tn_outside_run(s->outside, &in, &out));
  tn_outside_destroy(s->outside);
  s->outside = NULL;
  tn_device_memory_free(s->device, TN_MEMORY_DEVICE, in, sizeof s->own);
  tn_device_memory_free(s->device, TN_MEMORY_DEVICE, out, sizeof s->own);
  return ok;
}

static const tale running = {.change = story_program_shorten, .begin = start_outside, .tell = run_outside},
                  leaving = {.change = use_one_stream,
                             .begin = start_outside,
                             .tell = leave_early,
                             .leaves_early = true};

/* ---- cases ---- */

static void every_order_tells_the_same_story_captured_or_not(void **state) {
  (void)state;
  story_every_order(&running);
}

/* The last runs on each slot are waited for by nobody but the caller. Nothing is captured, whatever the
 * request says: a capture would keep the addresses of one run for all. */
static void a_wait_left_out_is_found(void **state) {
  (void)state;
  story_leave_out_twice(&running, "wait", TN_SIM_DROP_WAIT);
  story_leave_out_twice(&running, "await", TN_SIM_DROP_AWAIT);
  story_leave_out(&running, "record", TN_SIM_DROP_RECORD, true, "record:12 record:15 ");
  story_leave_out(&running, "record", TN_SIM_DROP_RECORD, false, "record:12 record:15 ");
}

/* The end waits for every stream, the compute stream first; here nothing else does. What is left out is a
 * launch whose operands are gone when it begins, so it is a process of its own that finds out, if need be by
 * its end. */
static void launches_are_deleted_after_the_last_of_them(void **state) {
  (void)state;
  char drop[64];
  int status = 0;
  story *whole = story_live(&leaving, "lazy", "rest:1000000", true);
  long long last = (long long)whole->seen[TN_SIM_DROP_REST];
  assert_string_equal(whole->said, "");
  free(whole);
  snprintf(drop, sizeof drop, "rest:%lld", last - TN_STREAMS + 1 + TN_STREAM_COMPUTE);
  pid_t child = fork();
  if (child == 0) _exit(story_live(&leaving, "lazy", drop, true)->said[0] != '\0');
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status == 0) fail_msg("nobody missed %s", drop);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_order_tells_the_same_story_captured_or_not),
      cmocka_unit_test(a_wait_left_out_is_found),
      cmocka_unit_test(launches_are_deleted_after_the_last_of_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

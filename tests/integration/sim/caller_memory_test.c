/* Programs on memory of the caller, on a device that runs work as late as allowed. The addresses of a slot
 * change only after its last run, and its launches are deleted only after all runs. */
#include <sys/wait.h>
#include <unistd.h>

#include "scenario.h"

enum { RUNS = 5 };

static bool create_caller_program(scenario *s) {
  return scenario_ok(s, tn_caller_program_create(&s->env, s->device, s->map, &s->hand.program, SCENARIO_SLOTS,
                                                 &s->caller_program));
}

static bool copy_and_wait(scenario *s, int32_t direction, void *to, const void *from) {
  const tn_backend *b = s->device->backend;
  void *stream = s->device->streams[TN_STREAM_COMPUTE];
  tn_status status = b->copy(&s->device->env, stream, direction, to, from, sizeof s->read);
  if (status == TN_OK) status = b->stream_wait(&s->device->env, stream);
  tn_error_move(&s->env, &s->device->env);
  return scenario_ok(s, status);
}

/* Five runs over two slots, each on memory of its own. */
static bool run_five(scenario *s) {
  void *in[RUNS] = {NULL}, *out[RUNS] = {NULL};
  bool ok = true;
  for (int32_t i = 0; ok && i < RUNS; i++) {
    for (int32_t k = 0; k < SCENARIO_N; k++) s->written[k] = (float)(10 * (i + 1) + k);
    ok = scenario_ok(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->written, &in[i])) &&
         scenario_ok(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->written, &out[i])) &&
         copy_and_wait(s, TN_COPY_TO_DEVICE, in[i], s->written) &&
         copy_and_wait(s, TN_COPY_TO_DEVICE, out[i], s->written);
  }
  for (int32_t i = 0; ok && i < RUNS; i++)
    ok = scenario_ok(s, tn_caller_program_run(s->caller_program, &in[i], &out[i]));
  for (int32_t i = 0; ok && i < RUNS; i++) {
    ok = copy_and_wait(s, TN_COPY_TO_HOST, s->read, out[i]);
    memcpy(s->results + s->n, s->read, sizeof s->read);
    s->n += SCENARIO_N;
  }
  for (int32_t i = 0; i < RUNS; i++) {
    tn_device_memory_free(s->device, TN_MEMORY_DEVICE, in[i], sizeof s->written);
    tn_device_memory_free(s->device, TN_MEMORY_DEVICE, out[i], sizeof s->written);
  }
  return ok;
}

/* All work is on the compute stream, so that a wait for another stream does not imply one for it. */
static void use_one_stream(scenario_program *p) {
  scenario_program_shorten(p);
  p->groups[1].role = TN_STREAM_COMPUTE;
  p->segments[0].awaits = (tn_awaits)TN_AWAITS_NONE;
}

/* Destroys the program while its run is under way, then frees the memory. */
static bool end_early(scenario *s) {
  void *in = NULL, *out = NULL;
  bool ok = scenario_ok(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->written, &in)) &&
            scenario_ok(s, tn_device_memory(s->device, TN_MEMORY_DEVICE, sizeof s->written, &out)) &&
            copy_and_wait(s, TN_COPY_TO_DEVICE, in, s->written) &&
            scenario_ok(s, tn_caller_program_run(s->caller_program, &in, &out));
  tn_caller_program_destroy(s->caller_program);
  s->caller_program = NULL;
  tn_device_memory_free(s->device, TN_MEMORY_DEVICE, in, sizeof s->written);
  tn_device_memory_free(s->device, TN_MEMORY_DEVICE, out, sizeof s->written);
  return ok;
}

static const scenario_kind running = {.change = scenario_program_shorten,
                                      .setup = create_caller_program,
                                      .act = run_five},
                           leaving = {.change = use_one_stream,
                                      .setup = create_caller_program,
                                      .act = end_early,
                                      .ends_early = true};

/* ---- cases ---- */

static void results_do_not_depend_on_order_or_capture(void **state) {
  (void)state;
  scenario_check_orders(&running);
}

/* Only the caller waits for the last run on each slot. Nothing is captured, even where the request allows it:
 * a capture would keep the addresses of one run. */
static void a_dropped_wait_is_detected(void **state) {
  (void)state;
  scenario_check_drops_both(&running, "wait", TN_SIM_DROP_WAIT);
  scenario_check_drops_both(&running, "await", TN_SIM_DROP_AWAIT);
  scenario_check_drops(&running, "record", TN_SIM_DROP_RECORD, true, "record:12 record:15 ");
  scenario_check_drops(&running, "record", TN_SIM_DROP_RECORD, false, "record:12 record:15 ");
}

/* Destroying the program waits for every stream, the compute stream first. With that wait dropped, a launch
 * reads freed operands and may crash, so the scenario runs in a child process. */
static void launches_are_deleted_after_the_last_of_them(void **state) {
  (void)state;
  char drop[64];
  int status = 0;
  scenario *complete = scenario_play(&leaving, "lazy", "rest:1000000", true);
  long long last = (long long)complete->seen[TN_SIM_DROP_REST];
  assert_string_equal(complete->message, "");
  free(complete);
  snprintf(drop, sizeof drop, "rest:%lld", last - TN_STREAMS + 1 + TN_STREAM_COMPUTE);
  pid_t child = fork();
  if (child == 0) _exit(scenario_play(&leaving, "lazy", drop, true)->message[0] != '\0');
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status == 0) fail_msg("dropping %s has no effect", drop);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_do_not_depend_on_order_or_capture),
      cmocka_unit_test(a_dropped_wait_is_detected),
      cmocka_unit_test(launches_are_deleted_after_the_last_of_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

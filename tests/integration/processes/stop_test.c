/* A request to stop is answered in every phase of a training, also by a process that waits for another. The
 * moment is one that a plugin makes (stops.c), never a time that has passed. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/integration/processes/launched.h"

/* Without an answer the processes wait for [distributed] timeout, an hour, and the test fails before that
 * (PROGRAM_HANG_S). So no duration is looked at. */
/* One process, or several. LAYER is a line of the model, SOURCE lines of [data]. */
static void write_stops(const char *layer, const char *source) {
  char text[2048];
  snprintf(
      text, sizeof text,
      "[run]\nname = model\nmax_steps = 60\nseed = 3\nthreads = 1\n[data]\nsource = stops\n%sbatch = 12\n"
      "workers = 0\n[model]\ninputs = image: f32[4]\nlayers =\n    %s\n    fc: linear(3)\n"
      "loss = cross_entropy\n[backend]\nuse = cpu\nautotune = no\n[distributed]\ntimeout = "
      "1h\n[plugins]\nload = %s\n",
      source, layer, STOPS);
  file_write("stops.ini", text);
}

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
}

/* ---- one process ---- */

static void stopped(const char *line) {
  int code = program_run("%s", line);
  if (code != 75) fail_msg("%s: exit code %d: %s", line, code, program_err);
  says("stopped; nothing was saved");
  assert_false(file_exists("o/model/checkpoints"));
}

static void while_the_model_is_built(void **state) {
  (void)state;
  write_stops("stops", "");
  stopped("train stops.ini --output o --quiet");
}

static void while_a_source_is_opened(void **state) {
  (void)state;
  write_stops("relu", "open = yes\n");
  stopped("train stops.ini --output o --quiet");
}

/* ---- several processes ---- */

/* Process `stays` has come to the layer; the others wait for it in an exchange, or in the communicator. All
 * but that one end before it goes on. */
static void others_end_first(int stays) {
  char layer[32];
  snprintf(layer, sizeof layer, "stops(%d)", stays);
  write_stops(layer, "");
  program_start("launch -n 3 stops.ini --output o --quiet");
  program_await(file_exists("stays"));
  for (int i = 0; i < 3; i++) launched_await(i);
  program_signal(SIGTERM);
  for (int i = 0; i < 3; i++)
    if (i != stays) launched_await_end(i);
  file_write("goes", "");
  int code = program_finish();
  if (code != 75) fail_msg("process %d stays: exit code %d: %s", stays, code, program_err);
  says("stopped; nothing was saved");
  assert_false(file_exists("o/model/checkpoints"));
}

static void while_others_wait_for_the_plan_of_process_0(void **state) {
  (void)state;
  others_end_first(0);
}

static void while_the_communicator_is_opened(void **state) {
  (void)state;
  others_end_first(1);
}

/* The others wait for its gradients. Without workers the samples are read when the step has begun. */
static void while_a_batch_does_not_come(void **state) {
  (void)state;
  write_stops("relu", "stays = 1\nshuffle = no\n");
  program_start("launch -n 2 stops.ini --output o --quiet --set run.save_every=2");
  program_await(file_exists("stays"));
  program_signal(SIGTERM);
  int code = program_finish();
  if (code != 75) fail_msg("exit code %d: %s", code, program_err);
  launched_says("rank 1 (");
  says("its next batch has not come for 5 s; the steps since the last checkpoint are lost");
  assert_true(file_exists("o/model/checkpoints/last/state.json"));
}

#define test(f) cmocka_unit_test_setup_teardown(f, launched_open, program_close)
int main(void) {
  const struct CMUnitTest tests[] = {
      test(while_the_model_is_built),
      test(while_a_source_is_opened),
      test(while_others_wait_for_the_plan_of_process_0),
      test(while_the_communicator_is_opened),
      test(while_a_batch_does_not_come),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

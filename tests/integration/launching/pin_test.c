/* [run] pin in training: threads run on the listed processors, the application's thread only while it
 * launches, and results have the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/model_file.h"
#include "tenon/session.h"

static const char model[] = "[run]\nseed = 5\n"
                            "[model]\ninputs = x: f32[400]\n"
                            "layers =\n"
                            "    a: linear(300)\n"
                            "       gelu\n"
                            "    b: linear(200)\n"
                            "       softmax\n";
enum { BATCH = 64, IN = 400, OUT = 200 };

static model_file file;

static int write_model(void **state) {
  (void)state;
  return model_file_write(&file, model);
}

static int remove_model(void **state) {
  (void)state;
  return model_file_remove(&file);
}

static void ok(tn_status status, const void *handle) {
  if (status != TN_OK) fail_msg("%s", tn_error_text(handle));
}

/* Threads of this process that may run on `processor` alone. */
static int32_t bound_to(int32_t processor) {
  struct dirent *entry;
  int32_t n = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  while ((entry = readdir(folder)) != NULL) {
    cpu_set_t set;
    pid_t thread = (pid_t)atoi(entry->d_name);
    if (thread == 0 || sched_getaffinity(thread, sizeof set, &set) != 0) continue;
    n += CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)processor, &set);
  }
  closedir(folder);
  return n;
}

/* The first two processors of this process. */
static void find_processors(int32_t *v) {
  cpu_set_t set;
  int32_t n = 0;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  for (int32_t i = 0; i < CPU_SETSIZE && n < 2; i++)
    if (CPU_ISSET((size_t)i, &set)) v[n++] = i;
  if (n < 2) skip();
}

typedef struct rig {
  tn_context *context;
  tn_run *run;
  tn_session *session;
  float in[BATCH * IN], out[BATCH * OUT];
} rig;

static rig *start(const char *backend, const char *pin) {
  rig *r = calloc(1, sizeof *r);
  char use[64], places[64];
  snprintf(use, sizeof use, "backend.use=%s", backend);
  snprintf(places, sizeof places, "run.pin=%s", pin);
  const char *set[] = {use, places, "run.threads=2", "backend.autotune=no"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 4};
  const tn_session_options session = {
      .struct_size = sizeof session, .infer = 1, .batch = BATCH, .weights = ""};
  assert_non_null(r);
  ok(tn_context_open(NULL, &r->context), r->context);
  ok(tn_run_open(r->context, file.path, &options, &r->run), r->context);
  ok(tn_session_open(r->run, &session, &r->session), r->run);
  ok(tn_session_bind(r->session, "x", r->in, sizeof r->in), r->session);
  ok(tn_session_bind(r->session, "output", r->out, sizeof r->out), r->session);
  for (int32_t i = 0; i < BATCH * IN; i++) r->in[i] = sinf(0.37f * (float)i);
  for (int32_t i = 0; i < 3; i++) ok(tn_session_infer(r->session, BATCH), r->session);
  return r;
}

static void stop(rig *r) {
  tn_session_close(r->session);
  tn_run_close(r->run);
  tn_context_close(r->context);
  free(r);
}

static void check_backend(const char *backend) {
  int32_t v[2];
  char pin[32];
  cpu_set_t before, after;
  find_processors(v);
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  rig *free_to_move = start(backend, "no");
  assert_int_equal(bound_to(v[0]) + bound_to(v[1]), 0);
  float *expected = malloc(sizeof free_to_move->out);
  assert_non_null(expected);
  memcpy(expected, free_to_move->out, sizeof free_to_move->out);
  stop(free_to_move);

  snprintf(pin, sizeof pin, "%d,%d", v[1], v[0]);
  rig *pinned = start(backend, pin);
  assert_true(bound_to(v[0]) >=
              1); /* the second thread; the first is this thread, which is no longer bound */
  assert_int_equal(bound_to(v[1]), 0);
  assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
  assert_true(CPU_EQUAL(&before, &after));
  assert_memory_equal(expected, pinned->out, sizeof pinned->out);
  stop(pinned);
  assert_int_equal(bound_to(v[0]) + bound_to(v[1]), 0);
  free(expected);
}

static void threads_of_the_reference_run_on_the_listed_processors(void **state) {
  (void)state;
  check_backend("cpu");
}

static void threads_of_the_fast_cpu_run_on_the_listed_processors(void **state) {
  (void)state;
  if (!FAST) skip();
  check_backend("onednn");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_of_the_reference_run_on_the_listed_processors),
      cmocka_unit_test(threads_of_the_fast_cpu_run_on_the_listed_processors),
  };
  return cmocka_run_group_tests(tests, write_model, remove_model);
}

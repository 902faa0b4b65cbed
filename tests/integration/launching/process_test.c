/* Processes: a child of fork() uses what its parent has opened, and threads that a limit forbids. Every case
 * runs in a child, which must end in time and by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/model_file.h"
#include "tenon/session.h"
#include "tenon/tensor.h"

/* The convolution runs on oneDNN's threads, the rest on those of the device. */
static const char model[] = "[run]\nseed = 5\n"
                            "[model]\ninputs = x: f32[16, 32, 32]\n"
                            "layers =\n"
                            "    a: conv2d(32, kernel=3, padding=1)\n"
                            "       gelu\n"
                            "       flatten\n"
                            "    b: linear(50)\n"
                            "       softmax\n";
enum { BATCH = 4, IN = 16 * 32 * 32, OUT = 50, PATIENCE_S = 60 };

static model_file file;

static int write_model(void **state) {
  (void)state;
  return model_file_write(&file, model);
}

static int remove_model(void **state) {
  (void)state;
  return model_file_remove(&file);
}

typedef struct rig {
  const char *backend;
  int32_t threads;
  tn_context *context;
  tn_run *run;
  tn_session *session;
  float in[BATCH * IN], out[BATCH * OUT];
} rig;

/* These return whether all went well, since a child reports by its exit code. */
static bool open_run(rig *r) {
  char use[64], threads[64];
  snprintf(use, sizeof use, "backend.use=%s", r->backend);
  snprintf(threads, sizeof threads, "run.threads=%d", (int)r->threads);
  const char *set[] = {use, threads, "backend.autotune=no"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 3};
  return tn_run_open(r->context, file.path, &options, &r->run) == TN_OK;
}

static tn_status open_session(rig *r) {
  const tn_session_options session = {
      .struct_size = sizeof session, .infer = 1, .batch = BATCH, .weights = ""};
  return tn_session_open(r->run, &session, &r->session);
}

static bool infer(rig *r) {
  return tn_session_bind(r->session, "x", r->in, sizeof r->in) == TN_OK &&
         tn_session_bind(r->session, "output", r->out, sizeof r->out) == TN_OK &&
         tn_session_infer(r->session, BATCH) == TN_OK;
}

static rig *start(const char *backend, int32_t threads) {
  rig *r = calloc(1, sizeof *r);
  assert_non_null(r);
  r->backend = backend;
  r->threads = threads;
  for (int32_t i = 0; i < BATCH * IN; i++) r->in[i] = sinf(0.37f * (float)i);
  assert_int_equal(tn_context_open(NULL, &r->context), TN_OK);
  assert_true(open_run(r));
  if (open_session(r) != TN_OK) fail_msg("%s", tn_error_text(r->run));
  assert_true(infer(r));
  return r;
}

static void stop(rig *r) {
  tn_session_close(r->session);
  tn_run_close(r->run);
  tn_context_close(r->context);
  free(r);
}

/* Runs a case in a child, whose exit code is the number of the check that failed. */
static void in_child(int (*body)(rig *r), rig *r) {
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(PATIENCE_S);
    _exit(body(r));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("%s: the child ended by signal %d", r->backend, WTERMSIG(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- fork ---- */

/* Everything about the parent's session fails, and closing it returns. */
static int use_what_the_parent_opened(rig *r) {
  float weight[50];
  if (tn_session_infer(r->session, BATCH) != TN_EUNAVAILABLE) return 1;
  if (strstr(tn_error_text(r->session), "open device and session in this process") == NULL) return 2;
  if (tn_session_read(r->session, "b.bias", weight, sizeof weight) != TN_EUNAVAILABLE) return 3;
  if (tn_session_infer(r->session, BATCH) != TN_EUNAVAILABLE) return 4;
  tn_session_close(r->session);
  return 0;
}

/* The child's own session, of the parent's context, and after the parent's has been given up. */
static int open_another_session(rig *r) {
  float expected[BATCH * OUT];
  memcpy(expected, r->out, sizeof expected);
  memset(r->out, 0, sizeof r->out);
  tn_session_close(r->session);
  tn_run_close(r->run);
  if (!open_run(r) || open_session(r) != TN_OK) return 1;
  if (!infer(r)) return 2;
  if (memcmp(expected, r->out, sizeof expected) != 0) return 3;
  tn_session_close(r->session);
  tn_run_close(r->run);
  tn_context_close(r->context);
  return 0;
}

static void check_fork(const char *backend) {
  float expected[BATCH * OUT];
  rig *r = start(backend, 2);
  memcpy(expected, r->out, sizeof expected);
  in_child(use_what_the_parent_opened, r);
  in_child(open_another_session, r);
  memset(r->out, 0, sizeof r->out);
  assert_true(infer(r)); /* the parent goes on */
  assert_memory_equal(expected, r->out, sizeof expected);
  stop(r);
}

static void a_child_cannot_use_devices_of_its_parent_on_the_reference(void **state) {
  (void)state;
  check_fork("cpu");
}

static void a_child_cannot_use_devices_of_its_parent_on_the_fast_cpu(void **state) {
  (void)state;
  if (!FAST) skip();
  check_fork("onednn");
}

static void a_child_cannot_use_devices_of_its_parent_on_simulated_devices(void **state) {
  (void)state;
  check_fork("sim");
}

/* ---- tensors ---- */

static tn_device *device;
static tn_tensor *tensor;

static int use_tensors_of_the_parent(rig *r) {
  static const tn_type type = {TN_F32, 1, {1000}};
  tn_tensor *other = NULL;
  float values[1000] = {0};
  (void)r;
  if (tn_tensor_new(device, &type, &other) != TN_EUNAVAILABLE) return 1;
  if (strstr(tn_error_text(device), "open device and session in this process") == NULL) return 2;
  if (tn_device_wait(device) != TN_EUNAVAILABLE) return 3;
  (void)tn_tensor_read(tensor, values, sizeof values); /* works on memory of the host */
  tn_tensor_delete(tensor);
  tn_device_close(device);
  return 0;
}

static void check_tensors(const char *backend) {
  static const tn_type type = {TN_F32, 1, {1000}};
  rig r = {.backend = backend};
  float values[1000] = {1, 2, 3};
  assert_int_equal(tn_context_open(NULL, &r.context), TN_OK);
  if (tn_device_open(r.context, backend, 0, NULL, &device) != TN_OK) fail_msg("%s", tn_error_text(r.context));
  assert_int_equal(tn_tensor_new(device, &type, &tensor), TN_OK);
  assert_int_equal(tn_tensor_write(tensor, values, sizeof values), TN_OK);
  in_child(use_tensors_of_the_parent, &r);
  memset(values, 0, sizeof values);
  assert_int_equal(tn_tensor_read(tensor, values, sizeof values), TN_OK);
  assert_true(values[2] == 3);
  tn_tensor_delete(tensor);
  tn_device_close(device);
  tn_context_close(r.context);
}

static void a_child_cannot_use_tensors_of_its_parent(void **state) {
  (void)state;
  check_tensors("cpu");
  check_tensors("sim");
}

/* ---- limits ---- */

enum { MANY = 32 };

static size_t address_space(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%lu", &pages) != 1) pages = 0;
  if (f != NULL) fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Room for the stacks of the device's threads, and for half of those of oneDNN. */
static int start_too_many_threads(rig *r) {
  pthread_attr_t attributes;
  size_t stack = 0;
  tn_session_close(r->session);
  tn_run_close(r->run);
  r->threads = MANY;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  struct rlimit limit = {address_space() + stack * (MANY + MANY / 2), RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0 || !open_run(r)) return 1;
  tn_status status = open_session(r);
  if (status == TN_OK) return 2; /* else the first launch would end the process */
  if (status != TN_EUNAVAILABLE) return 3;
  if (strstr(tn_error_text(r->run), "of 32 threads for oneDNN only ") == NULL) return 4;
  if (strstr(tn_error_text(r->run), "ulimit -v") == NULL) return 5;
  limit.rlim_cur = RLIM_INFINITY;
  if (setrlimit(RLIMIT_AS, &limit) != 0 || open_session(r) != TN_OK) return 6;
  return infer(r) ? 0 : 7;
}

static void threads_that_cannot_start_are_an_error(void **state) {
  (void)state;
  if (!FAST || !PLAIN) skip();
  rig *r = start("onednn", 2);
  in_child(start_too_many_threads, r);
  stop(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_cannot_use_devices_of_its_parent_on_the_reference),
      cmocka_unit_test(a_child_cannot_use_devices_of_its_parent_on_the_fast_cpu),
      cmocka_unit_test(a_child_cannot_use_devices_of_its_parent_on_simulated_devices),
      cmocka_unit_test(a_child_cannot_use_tensors_of_its_parent),
      cmocka_unit_test(threads_that_cannot_start_are_an_error),
  };
  return cmocka_run_group_tests(tests, write_model, remove_model);
}

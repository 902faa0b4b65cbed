/* After the first step, on every backend, the launching thread allocates and frees no memory and takes no
 * lock between taking a ready slot and the end of enqueuing a step.
 *
 * The test defines the functions that allocate and lock, so it receives all calls, those of plugins included.
 * Calls are counted between two marks of the calling thread: the linker wraps the loop's calls of
 * tn_feeder_next and tn_executor_run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/ops/ops.h"
#include "core/plugin/context.h"
#include "core/train/feed/feeder.h"
#include "tests/integration/cli/configs.h"

/* ---- counted functions ---- */

enum { PROGRAMS = 16 };

static __thread bool marked;
static int since_mark, calls, intervals;
static int runs[PROGRAMS]; /* of each program of the executor */
static const char *last_call;

static void note(const char *name) {
  if (!marked) return;
  since_mark++;
  last_call = name;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

void *malloc(size_t bytes) {
  note("malloc");
  return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
  note("calloc");
  return __libc_calloc(n, bytes);
}

void *realloc(void *block, size_t bytes) {
  note("realloc");
  return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  note("aligned_alloc");
  return __libc_memalign(alignment, bytes);
}

void free(void *block) {
  note("free");
  __libc_free(block);
}

/* Defines a function of pthread that counts the call and forwards it to libc. */
#define COUNTED(name, parameters, arguments)                                                                 \
  int name parameters {                                                                                      \
    static int(*real) parameters;                                                                            \
    note(#name);                                                                                             \
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
    return real arguments;                                                                                   \
  }

COUNTED(pthread_mutex_lock, (pthread_mutex_t * m), (m))
COUNTED(pthread_mutex_trylock, (pthread_mutex_t * m), (m))
COUNTED(pthread_mutex_unlock, (pthread_mutex_t * m), (m))
COUNTED(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
COUNTED(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
COUNTED(pthread_cond_signal, (pthread_cond_t * c), (c))
COUNTED(pthread_cond_broadcast, (pthread_cond_t * c), (c))
COUNTED(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))

/* ---- the marks ---- */

tn_status __real_tn_feeder_next(tn_feeder *feeder, int32_t *slot, int64_t *samples);
tn_status __wrap_tn_feeder_next(tn_feeder *feeder, int32_t *slot, int64_t *samples);
tn_status __real_tn_executor_run(tn_executor *executor, int32_t program, int32_t slot);
tn_status __wrap_tn_executor_run(tn_executor *executor, int32_t program, int32_t slot);

/* The first run of a program is not counted: it records captures. */
tn_status __wrap_tn_feeder_next(tn_feeder *feeder, int32_t *slot, int64_t *samples) {
  tn_status status = __real_tn_feeder_next(feeder, slot, samples);
  marked = status == TN_OK;
  since_mark = 0;
  return status;
}

tn_status __wrap_tn_executor_run(tn_executor *executor, int32_t program, int32_t slot) {
  tn_status status = __real_tn_executor_run(executor, program, slot);
  bool counts = marked && runs[program]++ > 0;
  marked = false;
  intervals += counts;
  calls += counts ? since_mark : 0;
  return status;
}

/* ---- runs ---- */

/* The test links the rooms of the core one by one, so it defines the table that the library has. */
const tn_plugin_entry tn_linked_plugins[] = {tn_core_ops, NULL};

static const char configuration[] = "[run]\nname = run\nepochs = 2\nseed = 3\nobservers = -progress\n"
                                    "[data]\nsource = digits\nepoch = 64\nbatch = 8\nworkers = 2\n"
                                    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                                    "[data.valid]\nepoch = 24\n" LENET "clip = 1\n"
                                    "[schedule]\ntype = cosine\nwarmup = 2\n";

static char folder[64], file[80];

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static int start(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/tenon-launching-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(file, sizeof file, "%s/model.ini", folder);
  FILE *f = fopen(file, "w");
  if (f == NULL) return -1;
  fputs(configuration, f);
  return fclose(f);
}

static int end(void **state) {
  (void)state;
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Trains with overrides and expects no counted call between the marks. */
static void train(const char *const *set, int32_t n_set) {
  tn_context *context = NULL;
  tn_run *run = NULL;
  char *json = NULL;
  const tn_run_options options = {
      .struct_size = sizeof options, .set = set, .n_set = n_set, .output = folder};
  calls = intervals = 0;
  memset(runs, 0, sizeof runs);
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  if (tn_run_open(context, file, &options, &run) != TN_OK) fail_msg("%s", tn_error_text(context));
  if (tn_run_train(run, &json) != TN_OK) fail_msg("%s", tn_error_text(run));
  tn_string_free(run, json);
  tn_run_close(run);
  tn_context_close(context);
  assert_true(intervals >= 14);
  if (calls > 0) fail_msg("%d calls in %d steps, the last of %s", calls, intervals, last_call);
}

#define TRAIN(...)                                                                                           \
  do {                                                                                                       \
    static const char *const set_[] = {__VA_ARGS__};                                                         \
    train(set_, (int32_t)(sizeof set_ / sizeof set_[0]));                                                    \
  } while (0)

static void on_the_cpu(void **state) {
  (void)state;
  TRAIN("backend.use=cpu", "run.threads=1");
  TRAIN("backend.use=cpu", "run.threads=3");
}

static void on_a_simulated_device(void **state) {
  (void)state;
  TRAIN("backend.use=sim", "backend.capture=no");
  TRAIN("backend.use=sim", "backend.capture=yes", "run.threads=2");
}

static void with_cuts_for_a_fallback(void **state) {
  (void)state;
  TRAIN("backend.use=sim", "backend.fallback=allow", "backend.sim.lacks=max_pool2d,conv2d_grad_weight",
        "run.threads=3");
}

#ifdef FAST_CPU
/* LeNet uses only kernels of the backend itself. Primitives of oneDNN allocate, which this test would count.
 */
static void on_the_fast_cpu(void **state) {
  (void)state;
  TRAIN("backend.use=onednn", "run.threads=1", "backend.autotune=no");
  TRAIN("backend.use=onednn", "run.threads=2", "backend.autotune=no");
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(on_the_cpu),
#ifdef FAST_CPU
      cmocka_unit_test(on_the_fast_cpu),
#endif
      cmocka_unit_test(on_a_simulated_device),
      cmocka_unit_test(with_cuts_for_a_fallback),
  };
  return cmocka_run_group_tests(tests, start, end);
}

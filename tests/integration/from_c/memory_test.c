/* tests/integration/from_c/memory_test.c: all host memory comes from the application's allocator; no library
 * of Tenon calls the allocator of libc. The test defines the functions of libc, so it receives every call
 * with its return address. Calls from libc itself and from other libraries (JSON, images, dynamic loading)
 * are allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/run.h"

/* ---- callers ---- */

enum { MOST_CALLERS = 4096 };
static atomic_int n_callers;
static const void *callers[MOST_CALLERS]; /* looked up after recording ends, since dladdr allocates */
static atomic_bool recording;

static void note(const void *caller) {
  if (!atomic_load(&recording)) return;
  for (int i = 0; i < atomic_load(&n_callers) && i < MOST_CALLERS; i++)
    if (callers[i] == caller) return;
  int at = atomic_fetch_add(&n_callers, 1);
  if (at < MOST_CALLERS) callers[at] = caller;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

#pragma GCC visibility push(default)
void *malloc(size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_calloc(n, bytes);
}

void *realloc(void *block, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}

#pragma GCC visibility pop

/* ---- an application ---- */

typedef struct ledger {
  atomic_llong live, asked;
} ledger;

static void *counted(void *user, void *block, size_t bytes) {
  ledger *l = user;
  if (bytes == 0) {
    if (block) atomic_fetch_sub(&l->live, 1);
    __libc_free(block);
    return NULL;
  }
  void *grown = __libc_realloc(block, bytes);
  atomic_fetch_add(&l->asked, 1);
  if (!block && grown) atomic_fetch_add(&l->live, 1);
  return grown;
}

static const char configuration[] =
    "[run]\nname = counted\nepochs = 1\nthreads = 2\n"
    "[backend]\nuse = cpu\n"
    "[data]\nsource = digits\nbatch = 8\nepoch = 32\nworkers = 2\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nbatch = 10\nepoch = 20\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "    conv: conv2d(4, kernel=5, stride=2)\n    bn: batch_norm\n          relu\n          flatten\n"
    "    fc:   linear(10)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = adamw\nlr = 0.01\n";

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static void train(const char *folder, ledger *l) {
  char file[128], *json = NULL;
  tn_context *context = NULL;
  tn_run *run = NULL;
  snprintf(file, sizeof file, "%s/counted.ini", folder);
  const tn_context_options options = {.struct_size = sizeof options, .realloc = counted, .realloc_user = l};
  const tn_run_options more = {.struct_size = sizeof more, .output = folder};
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  if (tn_run_open(context, file, &more, &run) != TN_OK) fail_msg("%s", tn_error_text(context));
  if (tn_run_train(run, &json) != TN_OK) fail_msg("%s", tn_error_text(run));
  tn_string_free(run, json);
  tn_run_close(run);
  tn_context_close(context);
}

/* "libtenon.so" or a plugin, "tenon-layers.so". */
static const char *tenon_library(const void *caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return NULL;
  const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
  return strncmp(name, "libtenon", 8) == 0 || strncmp(name, "tenon-", 6) == 0 ? name : NULL;
}

static void no_library_of_tenon_calls_the_allocator_of_libc(void **state) {
  (void)state;
  char folder[] = "/tmp/tenon-counted-XXXXXX", file[64];
  ledger l = {0};
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/counted.ini", folder);
  FILE *f = fopen(file, "w");
  assert_non_null(f);
  fputs(configuration, f);
  fclose(f);
  atomic_store(&recording, true);
  train(folder, &l);
  atomic_store(&recording, false);
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  assert_int_equal(atomic_load(&l.live), 0);
  assert_true(atomic_load(&l.asked) > 1000);
  assert_in_range(atomic_load(&n_callers), 1, MOST_CALLERS);
  for (int i = 0; i < atomic_load(&n_callers); i++) {
    const char *name = tenon_library(callers[i]);
    if (name != NULL) fail_msg("%s calls the allocator of libc at %p", name, callers[i]);
  }
}

/* Checks the test itself: calls of libraries reach the functions defined here. */
static void calls_of_libraries_are_recorded(void **state) {
  (void)state;
  tn_context *context = NULL;
  int found = 0;
  atomic_store(&n_callers, 0);
  atomic_store(&recording, true);
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  tn_context_close(context);
  atomic_store(&recording, false);
  for (int i = 0; i < atomic_load(&n_callers); i++) found += tenon_library(callers[i]) != NULL;
  assert_true(found > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_library_of_tenon_calls_the_allocator_of_libc),
      cmocka_unit_test(calls_of_libraries_are_recorded),
  };
  return cmocka_run_group_tests_name("memory of an application", tests, NULL, NULL);
}

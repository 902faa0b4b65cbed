/* The host fills in processors before `open` of a backend, and memory after `properties`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/system/system.h"
#include "core/plugin/handles.h"
#include "core/exec/device/open_backend.h"

typedef struct made_options {
  int64_t threads;
  int64_t memory;
} made_options;
typedef struct real_options {
  double threads;
} real_options;

static const tn_option free_options[] = {TN_OPT(made_options, threads, TN_OPT_INT, "0", ">= 0", "threads"),
                                         TN_OPT(made_options, memory, TN_OPT_SIZE, "0", ">= 0", "memory"),
                                         TN_OPT_END};
static const tn_option narrow_options[] = {
    TN_OPT(made_options, threads, TN_OPT_INT, "0", "[0, 1]", "threads"), TN_OPT_END};
static const tn_option real_table[] = {TN_OPT(real_options, threads, TN_OPT_FLOAT, "0", ">= 0", "threads"),
                                       TN_OPT_END};

static tn_status describe_made(tn_env *env, void *self, int32_t index, tn_device_properties *properties) {
  (void)env;
  assert_int_equal(index, 2);
  assert_int_equal(properties->struct_size, sizeof *properties);
  assert_int_equal(properties->arch, 0);
  properties->struct_size = 24; /* as a plugin of older headers would */
  properties->memory_bytes = *(const int64_t *)self;
  return TN_OK;
}

static const tn_backend unbound = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "free", "for tests", made_options, free_options),
    .properties = describe_made};
static const tn_backend narrow = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "narrow", "for tests", made_options, narrow_options)};
static const tn_backend real = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "real", "for tests", real_options, real_table)};
static const tn_backend plain = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "plain", "for tests")};

static tn_error_record record;
static tn_env env;

static int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  return 0;
}

/* The options of a backend, finished; threads < 0: not set. */
static const void *finished(tn_arena *arena, const tn_backend *backend, int64_t threads) {
  tn_options options;
  assert_int_equal(tn_options_start(&env, arena, &backend->item, &options), TN_OK);
  if (threads >= 0) assert_int_equal(tn_options_set_int(&env, &options, "threads", threads), TN_OK);
  assert_int_equal(tn_backend_finish_options(&env, &options), TN_OK);
  return options.data;
}

static void no_threads_are_all_processors(void **state) {
  (void)state;
  tn_arena arena = tn_arena_new(&env);
  assert_int_equal(((const made_options *)finished(&arena, &unbound, -1))->threads, tn_cpu_count());
  assert_int_equal(((const made_options *)finished(&arena, &unbound, 0))->threads, tn_cpu_count());
  assert_int_equal(((const made_options *)finished(&arena, &unbound, 7))->threads, 7);
  tn_arena_free(&arena);
}

static void a_range_limits_the_processors(void **state) {
  (void)state;
  tn_arena arena = tn_arena_new(&env);
  assert_int_equal(((const made_options *)finished(&arena, &narrow, -1))->threads, 1);
  tn_arena_free(&arena);
}

static void other_options_stay_as_they_are(void **state) {
  (void)state;
  tn_arena arena = tn_arena_new(&env);
  assert_true(((const real_options *)finished(&arena, &real, -1))->threads == 0);
  assert_non_null(finished(&arena, &plain, -1));
  tn_arena_free(&arena);
}

static void memory_without_a_size_is_the_hosts(void **state) {
  (void)state;
  tn_device_properties p = {.arch = 90}; /* of an earlier description */
  int64_t memory = 0;
  assert_int_equal(tn_backend_describe(&env, &unbound, &memory, 2, &p), TN_OK);
  assert_int_equal(p.struct_size, sizeof p);
  assert_int_equal(p.memory_bytes, tn_memory_total());
  assert_true(p.free_bytes > 0 && p.free_bytes <= p.memory_bytes);
  memory = 1 << 20;
  assert_int_equal(tn_backend_describe(&env, &unbound, &memory, 2, &p), TN_OK);
  assert_int_equal(p.memory_bytes, 1 << 20);
  assert_int_equal(p.free_bytes, 0);
}

static int32_t made_library(tn_env *where, void *backend, int32_t index, tn_backend_library *library) {
  static const char *const versions[] = {"4.1", "2"};
  (void)where;
  assert_int_equal(library->struct_size, sizeof *library);
  assert_null(library->name);
  if (index >= *(const int32_t *)backend) return 0;
  library->name = index == 0 ? "acmeBLAS" : "acmeRNG";
  library->version = versions[index];
  return 1;
}

static void libraries_are_listed_in_one_text(void **state) {
  (void)state;
  static const char *const expected[] = {"", "acmeBLAS 4.1", "acmeBLAS 4.1, acmeRNG 2"};
  const tn_backend backend = {.library = made_library};
  tn_arena arena = tn_arena_new(&env);
  for (int32_t n = 0; n < 3; n++)
    assert_string_equal(tn_backend_libraries(&env, &backend, &n, &arena), expected[n]);
  tn_arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(no_threads_are_all_processors, start),
      cmocka_unit_test_setup(a_range_limits_the_processors, start),
      cmocka_unit_test_setup(other_options_stay_as_they_are, start),
      cmocka_unit_test_setup(memory_without_a_size_is_the_hosts, start),
      cmocka_unit_test_setup(libraries_are_listed_in_one_text, start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

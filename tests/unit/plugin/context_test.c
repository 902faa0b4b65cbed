/* Contexts: allocator, log, plugin folders. */
#include "tests/unit/plugin/copy.h"

#include "core/plugin/handles.h"

#include "core/plugin/context.h"

static test_env B;
static folder F;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  B.env.api = &tn_host_api;
  folder_make(&F);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

static tn_context_options options_for(const char *path) {
  return (tn_context_options){.struct_size = sizeof(tn_context_options),
                              .realloc = test_env_realloc,
                              .realloc_user = &B,
                              .log = test_env_log,
                              .log_user = &B,
                              .log_level = TN_LOG_WARN,
                              .plugin_folder = path};
}

static void a_context_opens_with_a_folder_and_closes(void **state) {
  (void)state;
  tn_context *context;
  const tn_entry *entry;
  folder_copy(&F, &B, "first", "first.so");
  tn_context_options options = options_for(F.path);
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  assert_ptr_equal(((tn_env *)context)->api, &tn_host_api);
  assert_int_equal(tn_registry_find(tn_context_registry(context), context, TN_LAYER, "alpha", &entry), TN_OK);
  assert_int_equal(tn_context_close(context), 0);
  assert_int_equal(tn_context_close(NULL), 0);
}

static void without_options_it_uses_malloc_and_says_nothing(void **state) {
  (void)state;
  tn_context *context;
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  tn_logf(context, TN_LOG_ERROR, "dropped");
  tn_context_close(context);
}

static void a_context_that_a_thread_may_use_stays(void **state) {
  (void)state;
  tn_context *context;
  tn_context_options options = options_for("");
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  context->kept = true;
  assert_int_equal(tn_context_close(context), 1);
  assert_ptr_equal(((tn_env *)context)->api, &tn_host_api); /* it is not freed */
  context->kept = false;
  assert_int_equal(tn_context_close(context), 0);
}

static void an_empty_folder_means_none(void **state) {
  (void)state;
  tn_context *context;
  int32_t n;
  tn_context_options options = options_for("");
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  tn_registry_folders(tn_context_registry(context), &n);
  assert_int_equal(n, 0);
  tn_context_close(context);
}

static void the_build_tree_of_this_program_is_found(void **state) {
  (void)state;
  tn_context *context;
  int32_t n;
  tn_context_options options = options_for(NULL);
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  const char *const *folders = tn_registry_folders(tn_context_registry(context), &n);
  for (int32_t i = 0; i < n; i++)
    assert_true(strstr(folders[i], "/backends") != NULL || strstr(folders[i], "/plugins") != NULL);
  tn_context_close(context);
}

static void a_missing_folder_is_explained_by_the_context(void **state) {
  (void)state;
  tn_context *context;
  tn_context_options options = options_for(folder_path(&F, "none"));
  assert_int_equal(tn_context_open(&options, &context), TN_EUNAVAILABLE);
  assert_non_null(context);
  assert_contains(tn_error_text(context), "no such plugin folder can be opened");
  tn_context_close(context);
}

static void a_forgotten_struct_size_is_explained(void **state) {
  (void)state;
  tn_context *context;
  tn_context_options options = options_for("");
  options.struct_size = 0;
  assert_int_equal(tn_context_open(&options, &context), TN_EINVAL);
  assert_contains(tn_error_text(context), "struct_size is 0; set it to sizeof(tn_context_options)");
  tn_context_close(context);
}

static void options_of_an_older_header_are_taken_as_far_as_they_go(void **state) {
  (void)state;
  tn_context *context;
  tn_context_options options = options_for("never read");
  options.struct_size = (uint32_t)offsetof(tn_context_options, log_user);
  options.log = NULL;
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  tn_context_close(context);
}

static void a_plugin_file_loads(void **state) {
  (void)state;
  tn_context *context;
  tn_context_options options = options_for("");
  folder_copy(&F, &B, "first", "acme.so");
  folder_copy(&F, &B, "library", "library.so");
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  assert_int_equal(tn_context_load(context, folder_path(&F, "acme.so")), TN_OK);
  assert_true(tn_registry_has(tn_context_registry(context), TN_LAYER, "beta"));
  assert_int_equal(tn_context_load(context, folder_path(&F, "library.so")), TN_EABI);
  assert_contains(tn_error_text(context), "not a Tenon plugin");
  tn_context_close(context);
}

static void the_index_of_a_folder_is_written(void **state) {
  (void)state;
  tn_context *context;
  tn_context_options options = options_for("");
  folder_copy(&F, &B, "first", "acme.so");
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  assert_int_equal(tn_context_write_index(context, F.path), TN_OK);
  assert_int_equal(access(folder_path(&F, "tenon.index"), R_OK), 0);
  assert_int_equal(tn_context_write_index(context, folder_path(&F, "none")), TN_EUNAVAILABLE);
  tn_context_close(context);
}

static int destroyed;
static void destroy_ops(void *ops) { destroyed += *(int *)ops; }

static void what_others_keep_in_a_context_goes_with_it(void **state) {
  (void)state;
  tn_context *context;
  int ops = 3;
  tn_context_options options = options_for("");
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  context->ops = &ops;
  context->ops_destroy = destroy_ops;
  destroyed = 0;
  tn_context_close(context);
  assert_int_equal(destroyed, 3);
}

static void two_contexts_share_nothing(void **state) {
  (void)state;
  tn_context *a, *b;
  tn_context_options options = options_for("");
  folder_copy(&F, &B, "first", "acme.so");
  assert_int_equal(tn_context_open(&options, &a), TN_OK);
  assert_int_equal(tn_context_open(&options, &b), TN_OK);
  assert_int_equal(tn_context_load(a, folder_path(&F, "acme.so")), TN_OK);
  assert_false(tn_registry_has(tn_context_registry(b), TN_LAYER, "alpha"));
  assert_int_equal(tn_context_load(b, F.shown), TN_OK);
  tn_context_close(a);
  assert_true(tn_registry_has(tn_context_registry(b), TN_LAYER, "alpha"));
  tn_context_close(b);
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  tn_status status = TN_ENOMEM;
  folder_copy(&F, &B, "first", "first.so");
  for (long left = 0; left < 200 && status != TN_OK; left++) {
    tn_context *context;
    tn_context_options options = options_for(F.path);
    test_env_allow(&B, left);
    status = tn_context_open(&options, &context);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_true(context != NULL || left == 0);
    test_env_allow(&B, -1);
    tn_context_close(context);
    assert_int_equal(B.live, 0);
  }
  assert_int_equal(status, TN_OK);
}

static void the_version_is_a_text(void **state) {
  (void)state;
  assert_non_null(strchr(tn_version(), '.'));
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(a_context_opens_with_a_folder_and_closes),
      CASE(without_options_it_uses_malloc_and_says_nothing),
      CASE(a_context_that_a_thread_may_use_stays),
      CASE(an_empty_folder_means_none),
      CASE(the_build_tree_of_this_program_is_found),
      CASE(a_missing_folder_is_explained_by_the_context),
      CASE(a_forgotten_struct_size_is_explained),
      CASE(options_of_an_older_header_are_taken_as_far_as_they_go),
      CASE(a_plugin_file_loads),
      CASE(the_index_of_a_folder_is_written),
      CASE(what_others_keep_in_a_context_goes_with_it),
      CASE(two_contexts_share_nothing),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
      CASE(the_version_is_a_text),
  };
  return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}

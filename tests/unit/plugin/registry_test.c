/* Lookup of items in plugin folders, in files, and in linked plugins. */
#include "tests/unit/plugin/copy.h"

#include "core/plugin/handles.h"

#include "core/plugin/registry.h"
#include "tenon/plugin/kernel.h"
#include "tenon/plugin/layer.h"

static test_env B;
static folder F;
static tn_registry *R;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  B.env.api = &tn_host_api;
  folder_make(&F);
  R = NULL;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tn_registry_destroy(R);
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

static void create(void) { assert_ok(&B, tn_registry_create(&B, F.path, &R)); }

static const tn_entry *found(uint32_t kind, const char *name) {
  const tn_entry *entry;
  assert_ok(&B, tn_registry_find(R, &B, kind, name, &entry));
  assert_string_equal(entry->item->name, name);
  assert_int_equal(entry->item->kind, kind);
  return entry;
}

static void not_found(uint32_t kind, const char *name, tn_status want, const char *part) {
  const tn_entry *entry;
  assert_error(&B, tn_registry_find(R, &B, kind, name, &entry), want, part);
  assert_null(entry);
}

/* ---- linked in ---- */

static tn_status build(tn_build *b, const void *options) { return (void)b, (void)options, TN_OK; }
static const tn_layer_kind linked_layer = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "alpha", "a layer"), .max_in = 1, .build = build};
static const tn_item *const linked_items[] = {&linked_layer.item, NULL};
static const tn_plugin linked = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "linked", "0.3", "MIT",
                                 TN_BUILD_TEXT,     linked_items};

static void an_item_that_is_linked_in_is_found(void **state) {
  (void)state;
  assert_ok(&B, tn_registry_create(&B, "", &R));
  assert_ok(&B, tn_registry_add(R, &B, &linked, ""));
  const tn_entry *entry = found(TN_LAYER, "alpha");
  assert_string_equal(entry->plugin, "linked");
  assert_string_equal(entry->version, "0.3");
  assert_string_equal(entry->file, "");
}

static void adding_the_same_descriptor_again_changes_nothing(void **state) {
  (void)state;
  const tn_entry *entries;
  int32_t n;
  assert_ok(&B, tn_registry_create(&B, "", &R));
  assert_ok(&B, tn_registry_add(R, &B, &linked, ""));
  assert_ok(&B, tn_registry_add(R, &B, &linked, ""));
  assert_ok(&B, tn_registry_list(R, &B, TN_LAYER, &entries, &n));
  assert_int_equal(n, 1);
}

static void a_twin_of_something_linked_in_is_refused_as_a_whole(void **state) {
  (void)state;
  const tn_plugin other = linked;
  assert_ok(&B, tn_registry_create(&B, "", &R));
  assert_ok(&B, tn_registry_add(R, &B, &linked, ""));
  assert_error(&B, tn_registry_add(R, &B, &other, ""), TN_EUNAVAILABLE,
               "layer \"alpha\" is there already, from linked; rename it");
  folder_copy(&F, &B, "first", "first.so");
  assert_error(&B, tn_registry_load(R, &B, folder_path(&F, "first.so")), TN_EUNAVAILABLE,
               "layer \"alpha\" is there already");
  assert_false(tn_registry_has(R, TN_LAYER, "beta"));
}

/* ---- folders ---- */

static void items_of_a_folder_are_found(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "tenon-first.so");
  folder_copy(&F, &B, "second", "tenon-second.so");
  create();
  const tn_entry *entry = found(TN_LAYER, "beta");
  assert_string_equal(entry->plugin, "first");
  assert_string_equal(entry->file, folder_path(&F, "tenon-first.so"));
  found(TN_SCHEDULE, "alpha");
  assert_true(tn_registry_has(R, TN_KERNEL, "relu"));
  assert_false(tn_registry_has(R, TN_BACKEND, "relu"));
}

static void plugins_in_a_folder_of_their_own_are_found_one_level_deep(void **state) {
  (void)state;
  assert_int_equal(mkdir(folder_path(&F, "one"), 0755), 0);
  assert_int_equal(mkdir(folder_path(&F, "one/two"), 0755), 0);
  assert_int_equal(mkdir(folder_path(&F, ".hidden"), 0755), 0);
  folder_copy(&F, &B, "first", "one/tenon-first.so");
  folder_copy(&F, &B, "second", "one/two/tenon-second.so");
  folder_copy(&F, &B, "second", ".hidden/tenon-second.so");
  create();
  assert_true(tn_registry_has(R, TN_LAYER, "alpha"));
  assert_false(tn_registry_has(R, TN_SCHEDULE, "alpha"));
}

static void other_files_and_broken_links_are_passed_over(void **state) {
  (void)state;
  folder_write(&F, "notes.txt", "x", 1);
  folder_write(&F, "libold.so.1", "x", 1);
  folder_write(&F, ".so", "x", 1);
  assert_int_equal(symlink("nowhere.so", folder_path(&F, "gone.so")), 0);
  folder_copy(&F, &B, "first", "first.so");
  create();
  assert_true(tn_registry_has(R, TN_LAYER, "alpha"));
  assert_string_equal(B.log, "");
}

static void a_missing_folder_is_an_error(void **state) {
  (void)state;
  assert_error(&B, tn_registry_create(&B, folder_path(&F, "none"), &R), TN_EUNAVAILABLE,
               "no such plugin folder can be opened");
  assert_null(R);
}

static void a_folder_that_everybody_may_write_is_refused(void **state) {
  (void)state;
  assert_int_equal(chmod(F.path, 0777), 0);
  assert_error(&B, tn_registry_create(&B, F.path, &R), TN_EUNAVAILABLE, "everybody may write the folder");
}

static void a_second_folder_can_be_added(void **state) {
  (void)state;
  int32_t n;
  assert_int_equal(mkdir(folder_path(&F, "a"), 0755), 0);
  assert_int_equal(mkdir(folder_path(&F, "b"), 0755), 0);
  folder_copy(&F, &B, "first", "a/first.so");
  folder_copy(&F, &B, "second", "b/second.so");
  assert_ok(&B, tn_registry_create(&B, folder_path(&F, "a"), &R));
  assert_ok(&B, tn_registry_add_folder(R, &B, folder_path(&F, "b")));
  found(TN_LAYER, "alpha");
  found(TN_SCHEDULE, "alpha");
  const char *const *folders = tn_registry_folders(R, &n);
  assert_int_equal(n, 2);
  assert_string_equal(folders[1], folder_path(&F, "b"));
}

static void a_refused_file_is_a_warning_and_the_others_still_work(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "first.so");
  folder_copy(&F, &B, "future", "future.so");
  folder_write(&F, "text.so", "no object", 9);
  create();
  found(TN_LAYER, "alpha");
  assert_contains(B.log, "future.so: built for plugin interface 3");
  assert_contains(B.log, "text.so: cannot be opened");
}

static void a_failed_search_names_the_refused_files(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "first.so");
  folder_copy(&F, &B, "minor", "minor.so");
  create();
  not_found(TN_LAYER, "epsilon", TN_EUNAVAILABLE, "no layer is called \"epsilon\"; there is alpha, beta");
  assert_contains(tn_error_text(&B), "a plugin was refused: ");
  char minor[64];
  snprintf(minor, sizeof minor, "minor: found %d, wanted %d", TN_ABI_MINOR + 1, TN_ABI_MINOR);
  assert_contains(tn_error_text(&B), minor);
  folder_copy(&F, &B, "empty", "empty.so");
  tn_registry_destroy(R);
  create();
  not_found(TN_LAYER, "epsilon", TN_EUNAVAILABLE, "2 plugins were refused, the first one: ");
}

static void of_two_files_with_a_twin_the_later_one_is_refused(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "a.so");
  folder_copy(&F, &B, "twin", "b.so");
  create();
  assert_string_equal(found(TN_LAYER, "alpha")->plugin, "first");
  assert_contains(B.log, "b.so: layer \"alpha\" is there already, from ");
  assert_contains(B.log, "a.so; rename it, or leave out one of the two plugins");
  assert_false(tn_registry_has(R, TN_LAYER, "delta"));
}

/* ---- messages ---- */

static void the_nearest_name_is_suggested(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "first.so");
  create();
  not_found(TN_LAYER, "alpah", TN_EUNAVAILABLE, "no layer is called \"alpah\"; did you mean \"alpha\"?");
}

static void an_empty_kind_says_where_plugins_were_searched(void **state) {
  (void)state;
  create();
  not_found(TN_OBSERVER, "bar", TN_EUNAVAILABLE, "no observer is called \"bar\"; plugins were searched in ");
  assert_contains(tn_error_text(&B), F.path);
  tn_registry_destroy(R);
  assert_ok(&B, tn_registry_create(&B, "", &R));
  not_found(TN_OBSERVER, "bar", TN_EUNAVAILABLE, "no plugin folder was searched");
}

/* ---- files by name ---- */

static void a_file_outside_the_folder_loads_by_path(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "acme.so");
  assert_ok(&B, tn_registry_create(&B, "", &R));
  assert_ok(&B, tn_registry_load(R, &B, folder_path(&F, "acme.so")));
  assert_string_equal(found(TN_LAYER, "alpha")->file, F.shown);
}

static void loading_a_file_twice_changes_nothing(void **state) {
  (void)state;
  char other[600];
  folder_copy(&F, &B, "first", "acme.so");
  create();
  assert_ok(&B, tn_registry_load(R, &B, folder_path(&F, "acme.so")));
  assert_ok(&B, tn_registry_load(R, &B, folder_path(&F, "acme.so")));
  snprintf(other, sizeof(other), "%s/hard.so", F.path);
  assert_int_equal(link(folder_path(&F, "acme.so"), other), 0);
  assert_ok(&B, tn_registry_load(R, &B, other));
  found(TN_LAYER, "alpha");
}

static void a_bare_name_stands_for_a_file_of_the_folder(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "tenon-first.so");
  folder_copy(&F, &B, "second", "second.so");
  create();
  assert_ok(&B, tn_registry_load(R, &B, "first"));
  assert_ok(&B, tn_registry_load(R, &B, "second"));
  assert_error(&B, tn_registry_load(R, &B, "third"), TN_EUNAVAILABLE,
               "no plugin folder holds tenon-third.so");
}

static void nothing_is_loaded_from_the_current_folder_by_a_bare_name(void **state) {
  (void)state;
  char here[512];
  assert_non_null(getcwd(here, sizeof(here)));
  folder_copy(&F, &B, "first", "first.so");
  assert_ok(&B, tn_registry_create(&B, "", &R));
  assert_int_equal(chdir(F.path), 0);
  tn_status status = tn_registry_load(R, &B, "first");
  assert_int_equal(chdir(here), 0);
  assert_int_equal(status, TN_EUNAVAILABLE);
}

static void a_file_that_was_repaired_can_be_loaded_again(void **state) {
  (void)state;
  assert_ok(&B, tn_registry_create(&B, "", &R));
  folder_write(&F, "acme.so", "no object", 9);
  assert_error(&B, tn_registry_load(R, &B, folder_path(&F, "acme.so")), TN_EUNAVAILABLE, "cannot be opened");
  assert_int_equal(unlink(F.shown), 0);
  folder_copy(&F, &B, "first", "acme.so");
  assert_ok(&B, tn_registry_load(R, &B, folder_path(&F, "acme.so")));
  found(TN_LAYER, "beta");
}

static void a_loaded_twin_of_the_folder_is_refused(void **state) {
  (void)state;
  assert_int_equal(mkdir(folder_path(&F, "plugins"), 0755), 0);
  folder_copy(&F, &B, "first", "plugins/first.so");
  folder_copy(&F, &B, "twin", "twin.so");
  assert_ok(&B, tn_registry_create(&B, folder_path(&F, "plugins"), &R));
  assert_error(&B, tn_registry_load(R, &B, folder_path(&F, "twin.so")), TN_EUNAVAILABLE,
               "twin.so: layer \"alpha\" is there already, from ");
}

/* ---- lists ---- */

static void a_list_is_sorted_by_name(void **state) {
  (void)state;
  const tn_entry *entries;
  int32_t n;
  folder_copy(&F, &B, "first", "first.so");
  folder_copy(&F, &B, "second", "second.so");
  create();
  assert_ok(&B, tn_registry_list(R, &B, TN_KERNEL, &entries, &n));
  assert_int_equal(n, 3);
  assert_string_equal(entries[0].item->name, "gelu");
  assert_string_equal(((const tn_kernel *)entries[1].item)->family, "here");
  assert_string_equal(((const tn_kernel *)entries[2].item)->family, "there");
  assert_ok(&B, tn_registry_list(R, &B, TN_PRECISION, &entries, &n));
  assert_int_equal(n, 0);
}

static void kernels_are_listed_by_family(void **state) {
  (void)state;
  const tn_entry *entries;
  int32_t n;
  folder_copy(&F, &B, "first", "first.so");
  folder_copy(&F, &B, "second", "second.so");
  create();
  assert_ok(&B, tn_registry_kernels(R, &B, "there", &entries, &n));
  assert_int_equal(n, 2);
  assert_ok(&B, tn_registry_kernels(R, &B, "here", &entries, &n));
  assert_int_equal(n, 1);
  assert_ok(&B, tn_registry_kernels(R, &B, "nowhere", &entries, &n));
  assert_int_equal(n, 0);
}

static void a_list_stays_valid_when_plugins_are_added(void **state) {
  (void)state;
  const tn_entry *before, *after;
  int32_t n;
  folder_copy(&F, &B, "first", "first.so");
  assert_ok(&B, tn_registry_create(&B, "", &R));
  assert_ok(&B, tn_registry_load(R, &B, folder_path(&F, "first.so")));
  assert_ok(&B, tn_registry_list(R, &B, TN_KERNEL, &before, &n));
  assert_int_equal(n, 1);
  folder_copy(&F, &B, "second", "second.so");
  assert_ok(&B, tn_registry_load(R, &B, folder_path(&F, "second.so")));
  assert_ok(&B, tn_registry_list(R, &B, TN_KERNEL, &after, &n));
  assert_int_equal(n, 3);
  assert_string_equal(before[0].item->name, "relu");
  const tn_entry *again;
  assert_ok(&B, tn_registry_list(R, &B, TN_KERNEL, &again, &n));
  assert_ptr_equal(again, after);
}

static tn_status everything(void) {
  const tn_entry *entries;
  int32_t n;
  TN_TRY(tn_registry_create(&B, F.path, &R));
  TN_TRY(tn_registry_add(R, &B, &linked, ""));
  TN_TRY(tn_registry_list(R, &B, TN_KERNEL, &entries, &n));
  TN_TRY(tn_registry_kernels(R, &B, "there", &entries, &n));
  TN_TRY(tn_registry_find(R, &B, TN_SCHEDULE, "gamma_steps", &entries));
  tn_status missing = tn_registry_find(R, &B, TN_SCHEDULE, "gama_steps", &entries);
  return missing == TN_EUNAVAILABLE ? TN_OK : missing;
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  folder_copy(&F, &B, "second", "second.so");
  tn_status status = TN_ENOMEM;
  for (long left = 0; left < 200 && status != TN_OK; left++) {
    test_env_allow(&B, left);
    status = everything();
    test_env_allow(&B, -1);
    tn_registry_destroy(R);
    R = NULL;
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_int_equal(B.live, 0);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(an_item_that_is_linked_in_is_found),
      CASE(adding_the_same_descriptor_again_changes_nothing),
      CASE(a_twin_of_something_linked_in_is_refused_as_a_whole),
      CASE(items_of_a_folder_are_found),
      CASE(plugins_in_a_folder_of_their_own_are_found_one_level_deep),
      CASE(other_files_and_broken_links_are_passed_over),
      CASE(a_missing_folder_is_an_error),
      CASE(a_folder_that_everybody_may_write_is_refused),
      CASE(a_second_folder_can_be_added),
      CASE(a_refused_file_is_a_warning_and_the_others_still_work),
      CASE(a_failed_search_names_the_refused_files),
      CASE(of_two_files_with_a_twin_the_later_one_is_refused),
      CASE(the_nearest_name_is_suggested),
      CASE(an_empty_kind_says_where_plugins_were_searched),
      CASE(a_file_outside_the_folder_loads_by_path),
      CASE(loading_a_file_twice_changes_nothing),
      CASE(a_bare_name_stands_for_a_file_of_the_folder),
      CASE(nothing_is_loaded_from_the_current_folder_by_a_bare_name),
      CASE(a_file_that_was_repaired_can_be_loaded_again),
      CASE(a_loaded_twin_of_the_folder_is_refused),
      CASE(a_list_is_sorted_by_name),
      CASE(kernels_are_listed_by_family),
      CASE(a_list_stays_valid_when_plugins_are_added),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
  };
  return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}

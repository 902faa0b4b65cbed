/* The index: what it saves, and that it cannot mislead. Whether a file has been opened shows in the
 * list of objects that the process has mapped. */
#include "tests/unit/plugin/copy.h"

#include "core/plugin/handles.h"

#include <link.h>
#include <sys/wait.h>

#include "core/plugin/registry.h"

static test_env B;
static folder F;
static tn_registry *R;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  B.env.api = &tn_host_api;
  folder_make(&F);
  folder_copy(&F, &B, "first", "tenon-first.so");
  assert_int_equal(mkdir(folder_path(&F, "deep er"), 0755), 0);
  folder_copy(&F, &B, "second", "deep er/tenon-second.so");
  R = NULL;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tn_registry_destroy(R);
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

static int same_object(struct dl_phdr_info *info, size_t size, void *path) {
  (void)size;
  return strcmp(info->dlpi_name, path) == 0;
}

static bool is_mapped(const char *name) {
  folder_path(&F, name);
  return dl_iterate_phdr(same_object, F.shown) != 0;
}

/* Writes the index in a process of its own, as a build does, so that this one has opened no file yet. */
static void write_index(void) {
  int result;
  pid_t child = fork();
  if (child == 0) _exit(tn_registry_write_index(&B, F.path));
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
}

static void create(void) { assert_ok(&B, tn_registry_create(&B, F.path, &R)); }

static void find(uint32_t kind, const char *name) {
  const tn_entry *entry;
  assert_ok(&B, tn_registry_find(R, &B, kind, name, &entry));
}

static void read_index(char *text, size_t capacity) {
  FILE *file = fopen(folder_path(&F, "tenon.index"), "rb");
  assert_non_null(file);
  text[fread(text, 1, capacity - 1, file)] = '\0';
  fclose(file);
}

/* The head of an index of this interface. */
static const char *index_head(void) {
  static char head[256];
  snprintf(head, sizeof head, "tenon.index 1\ninterface %d.%d %s\n", TN_ABI_MAJOR, TN_ABI_MINOR,
           TN_BUILD_TEXT);
  return head;
}

static void the_index_lists_every_item_with_its_file(void **state) {
  (void)state;
  char text[4096];
  write_index();
  read_index(text, sizeof(text));
  assert_ptr_equal(strstr(text, index_head()), text);
  assert_memory_equal(text + strlen(index_head()), "file ", 5);
  assert_contains(text, " deep er/tenon-second.so\nschedule alpha\nschedule gamma_steps\n"
                        "kernel relu there\nkernel gelu there\n");
  assert_contains(text, " tenon-first.so\nlayer beta\nlayer alpha\nkernel relu here\n");
}

static void only_the_file_of_the_item_is_opened(void **state) {
  (void)state;
  write_index();
  create();
  assert_true(tn_registry_has(R, TN_LAYER, "alpha"));
  assert_false(is_mapped("tenon-first.so"));
  find(TN_LAYER, "alpha");
  assert_true(is_mapped("tenon-first.so"));
  assert_false(is_mapped("deep er/tenon-second.so"));
  find(TN_SCHEDULE, "alpha");
  assert_true(is_mapped("deep er/tenon-second.so"));
}

static void kernels_of_one_family_open_only_its_files(void **state) {
  (void)state;
  const tn_entry *entries;
  int32_t n;
  write_index();
  create();
  assert_ok(&B, tn_registry_kernels(R, &B, "there", &entries, &n));
  assert_int_equal(n, 2);
  assert_false(is_mapped("tenon-first.so"));
}

static void a_name_is_suggested_from_files_that_are_not_open(void **state) {
  (void)state;
  const tn_entry *entry;
  write_index();
  create();
  assert_error(&B, tn_registry_find(R, &B, TN_LAYER, "bata", &entry), TN_EUNAVAILABLE,
               "did you mean \"beta\"?");
  assert_false(is_mapped("tenon-first.so"));
}

static void a_file_that_the_index_lacks_is_opened_and_listed(void **state) {
  (void)state;
  write_index();
  folder_copy(&F, &B, "twin", "other.so");
  create();
  /* It has a twin in a file of the index, which is not open: it is refused none the less. */
  assert_false(tn_registry_has(R, TN_LAYER, "delta"));
  assert_contains(B.log, "other.so: layer \"alpha\" is there already, from ");
  assert_false(is_mapped("tenon-first.so"));
}

static void a_file_that_has_changed_is_opened_and_listed_anew(void **state) {
  (void)state;
  write_index();
  assert_int_equal(unlink(folder_path(&F, "tenon-first.so")), 0);
  folder_copy(&F, &B, "twin", "tenon-first.so");
  create();
  find(TN_LAYER, "delta");
  assert_false(tn_registry_has(R, TN_LAYER, "beta"));
  assert_false(is_mapped("deep er/tenon-second.so"));
}

static void a_file_that_is_gone_takes_its_items_along(void **state) {
  (void)state;
  write_index();
  assert_int_equal(unlink(folder_path(&F, "tenon-first.so")), 0);
  create();
  assert_false(tn_registry_has(R, TN_LAYER, "alpha"));
  assert_true(tn_registry_has(R, TN_SCHEDULE, "alpha"));
}

static void times_that_a_package_cut_to_seconds_still_match(void **state) {
  (void)state;
  struct stat st;
  write_index();
  assert_int_equal(stat(folder_path(&F, "tenon-first.so"), &st), 0);
  const struct timespec times[2] = {{.tv_sec = st.st_mtime}, {.tv_sec = st.st_mtime}};
  assert_int_equal(utimensat(AT_FDCWD, F.shown, times, 0), 0);
  create();
  assert_true(tn_registry_has(R, TN_LAYER, "alpha"));
  assert_false(is_mapped("tenon-first.so"));
}

static void a_refused_file_is_left_out_of_the_index(void **state) {
  (void)state;
  char text[4096];
  folder_copy(&F, &B, "future", "future.so");
  assert_ok(&B, tn_registry_write_index(&B, F.path));
  assert_contains(B.log, "future.so: built for plugin interface 3");
  read_index(text, sizeof(text));
  assert_null(strstr(text, "future.so"));
}

static void a_damaged_index_is_a_warning_and_everything_is_listed(void **state) {
  (void)state;
  static const char *const bad[] = {"file x 1 tenon-first.so\n",
                                    "file 1\n",
                                    "layer stray\n",
                                    "file 1 2 a.so\nplanet mars\n",
                                    "file 1 2 a.so\nkernel relu\n",
                                    "file 1 2 a.so\nlayer a b\n",
                                    "file 1 2 a.so\nlayer\n",
                                    "file 1 2 a.so\n\n",
                                    "file 1 2 a.so\nkernel relu cpu x\n"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    char text[512];
    snprintf(text, sizeof(text), "%s%s", index_head(), bad[i]);
    folder_write(&F, "tenon.index", text, strlen(text));
    B.log[0] = '\0';
    create();
    find(TN_LAYER, "alpha");
    assert_contains(B.log, "tenon.index:");
    assert_contains(B.log, "damaged, so every plugin is opened");
    tn_registry_destroy(R);
    R = NULL;
  }
}

static void an_index_of_another_interface_is_passed_over(void **state) {
  (void)state;
  static const char text[] = "tenon.index 1\ninterface 9.9 ptr64\nfile 1 2 tenon-first.so\nlayer wrong\n";
  folder_write(&F, "tenon.index", text, sizeof(text) - 1);
  create();
  find(TN_LAYER, "alpha");
  assert_false(tn_registry_has(R, TN_LAYER, "wrong"));
  assert_contains(B.log, "written for another interface");
}

static void an_index_that_everybody_may_write_is_ignored(void **state) {
  (void)state;
  write_index();
  assert_int_equal(chmod(folder_path(&F, "tenon.index"), 0666), 0);
  create();
  find(TN_LAYER, "alpha");
  assert_contains(B.log, "tenon.index: ignored, since everybody may write it");
}

static void the_index_cannot_lead_out_of_its_folder(void **state) {
  (void)state;
  char text[1024], outside[256];
  struct stat st;
  folder elsewhere;
  const tn_entry *entry;
  folder_make(&elsewhere);
  folder_copy(&elsewhere, &B, "twin", "evil.so");
  assert_int_equal(stat(folder_path(&elsewhere, "evil.so"), &st), 0);
  snprintf(outside, sizeof(outside), "../%s/evil.so", strrchr(elsewhere.path, '/') + 1);
  snprintf(text, sizeof(text), "%sfile %lld %lld %s\nlayer delta\n", index_head(),
           (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, (long long)st.st_size, outside);
  folder_write(&F, "tenon.index", text, strlen(text));
  create();
  assert_error(&B, tn_registry_find(R, &B, TN_LAYER, "delta", &entry), TN_EUNAVAILABLE, "no layer");
  assert_int_equal(dl_iterate_phdr(same_object, elsewhere.shown), 0);
  folder_remove(&elsewhere);
}

static void an_index_that_promises_too_much_is_found_out(void **state) {
  (void)state;
  char text[1024];
  struct stat st;
  const tn_entry *entry;
  assert_int_equal(stat(folder_path(&F, "tenon-first.so"), &st), 0);
  snprintf(text, sizeof(text), "%sfile %lld %lld tenon-first.so\nlayer omega\n", index_head(),
           (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, (long long)st.st_size);
  folder_write(&F, "tenon.index", text, strlen(text));
  create();
  assert_error(&B, tn_registry_find(R, &B, TN_LAYER, "omega", &entry), TN_EUNAVAILABLE,
               "no layer is called \"omega\"");
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(the_index_lists_every_item_with_its_file),
      CASE(only_the_file_of_the_item_is_opened),
      CASE(kernels_of_one_family_open_only_its_files),
      CASE(a_name_is_suggested_from_files_that_are_not_open),
      CASE(a_file_that_the_index_lacks_is_opened_and_listed),
      CASE(a_file_that_has_changed_is_opened_and_listed_anew),
      CASE(a_file_that_is_gone_takes_its_items_along),
      CASE(times_that_a_package_cut_to_seconds_still_match),
      CASE(a_refused_file_is_left_out_of_the_index),
      CASE(a_damaged_index_is_a_warning_and_everything_is_listed),
      CASE(an_index_of_another_interface_is_passed_over),
      CASE(an_index_that_everybody_may_write_is_ignored),
      CASE(the_index_cannot_lead_out_of_its_folder),
      CASE(an_index_that_promises_too_much_is_found_out),
  };
  return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}

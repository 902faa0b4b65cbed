/* Which files are opened as plugins, and why others are not. */
#include "tests/unit/plugin/copy.h"

#include <elf.h>
#include <fenv.h>

#include "core/plugin/handles.h"

#include "core/base/file/trusted_file.h"
#include "core/plugin/loader.h"

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

static void refuses_path(const char *path, tn_status want, const char *part) {
  char *real;
  assert_error(&B, tn_trusted_file(&B, "plugin", path, &real), want, part);
  assert_null(real);
}

/* Copies, checks and opens one of the made plugins. */
static tn_status open_made(const char *made, const tn_plugin **plugin) {
  char *real;
  folder_copy(&F, &B, made, "it.so");
  assert_ok(&B, tn_trusted_file(&B, "plugin", folder_path(&F, "it.so"), &real));
  tn_status status = tn_plugin_open(&B, real, plugin);
  tn_release(&B, real);
  return status;
}

static void a_plugin_opens(void **state) {
  (void)state;
  const tn_plugin *plugin;
  assert_ok(&B, open_made("first", &plugin));
  assert_string_equal(plugin->name, "first");
}

static void a_constructor_does_not_change_the_environment(void **state) {
  (void)state;
  const tn_plugin *plugin;
  assert_ok(&B, open_made("fast", &plugin));
  assert_string_equal(plugin->name, "fast");
  assert_int_equal(fegetround(), FE_TONEAREST);
}

static void a_missing_file_is_unavailable(void **state) {
  (void)state;
  refuses_path(folder_path(&F, "nowhere.so"), TN_EUNAVAILABLE, "nowhere.so: no such plugin can be opened");
  refuses_path("", TN_EUNAVAILABLE, "No such file");
}

static void a_folder_or_a_device_is_no_plugin(void **state) {
  (void)state;
  refuses_path(F.path, TN_EUNAVAILABLE, "not a regular file");
  refuses_path("/dev/null", TN_EUNAVAILABLE, "not a regular file");
}

static void a_file_that_everybody_may_write_is_refused(void **state) {
  (void)state;
  folder_copy(&F, &B, "first", "open.so");
  assert_int_equal(chmod(folder_path(&F, "open.so"), 0666), 0);
  refuses_path(F.shown, TN_EUNAVAILABLE, "everybody may write the file");
  assert_contains(tn_error_text(&B), "chmod o-w '");
}

static void a_folder_that_everybody_may_write_is_refused(void **state) {
  (void)state;
  char *real;
  folder_copy(&F, &B, "first", "it.so");
  assert_int_equal(chmod(F.path, 0777), 0);
  refuses_path(folder_path(&F, "it.so"), TN_EUNAVAILABLE, "everybody may write the folder");
  assert_error(&B, tn_trusted_folder(&B, "plugin", F.path, &real), TN_EUNAVAILABLE,
               "everybody may write the folder");
  assert_int_equal(chmod(F.path, 01777), 0);
  refuses_path(folder_path(&F, "it.so"), TN_EUNAVAILABLE, "everybody may write the folder");
}

static void a_link_is_judged_by_where_it_leads(void **state) {
  (void)state;
  char target[600];
  assert_int_equal(mkdir(folder_path(&F, "open"), 0755), 0);
  assert_int_equal(chmod(F.shown, 0777), 0);
  folder_copy(&F, &B, "first", "open/it.so");
  snprintf(target, sizeof(target), "%s/open/it.so", F.path);
  assert_int_equal(symlink(target, folder_path(&F, "link.so")), 0);
  refuses_path(F.shown, TN_EUNAVAILABLE, "everybody may write the folder");
}

static void a_path_is_made_absolute_so_that_no_search_path_matters(void **state) {
  (void)state;
  char *real, here[512], indirect[600];
  assert_non_null(getcwd(here, sizeof(here)));
  folder_copy(&F, &B, "first", "it.so");
  assert_int_equal(mkdir(folder_path(&F, "sub"), 0755), 0);
  snprintf(indirect, sizeof(indirect), "%s/sub/../it.so", F.path);
  assert_ok(&B, tn_trusted_file(&B, "plugin", indirect, &real));
  assert_string_equal(real, folder_path(&F, "it.so"));
  tn_release(&B, real);
  assert_int_equal(chdir(F.path), 0);
  assert_ok(&B, tn_trusted_file(&B, "plugin", "it.so", &real));
  assert_string_equal(real, folder_path(&F, "it.so"));
  tn_release(&B, real);
  assert_int_equal(chdir(here), 0);
}

static void a_text_file_is_refused_with_the_linkers_reason(void **state) {
  (void)state;
  const tn_plugin *plugin;
  folder_write(&F, "text.so", "not an object", 13);
  assert_error(&B, tn_plugin_open(&B, folder_path(&F, "text.so"), &plugin), TN_EUNAVAILABLE,
               "text.so: cannot be opened: ");
  assert_null(plugin);
  folder_write(&F, "none.so", "", 0);
  assert_error(&B, tn_plugin_open(&B, folder_path(&F, "none.so"), &plugin), TN_EUNAVAILABLE,
               "cannot be opened");
}

static void a_missing_library_is_named(void **state) {
  (void)state;
  const tn_plugin *plugin;
  assert_error(&B, open_made("unresolved", &plugin), TN_EUNAVAILABLE, "undefined symbol: made_nowhere");
  assert_ptr_equal(strstr(strstr(tn_error_text(&B), "it.so") + 1, "it.so"), NULL);
}

static void a_plugin_of_another_interface_is_told_from_a_library(void **state) {
  (void)state;
  const tn_plugin *plugin;
  assert_error(&B, open_made("future", &plugin), TN_EABI, "built for plugin interface 3, this host has 0");
}

/* The constructors of `future` and `library` set a variable of the environment. */
static void a_refused_object_runs_no_code(void **state) {
  (void)state;
  const tn_plugin *plugin;
  unsetenv("TENON_TEST_CONSTRUCTED");
  assert_error(&B, open_made("future", &plugin), TN_EABI, "built for plugin interface 3");
  assert_null(getenv("TENON_TEST_CONSTRUCTED"));
  assert_error(&B, open_made("library", &plugin), TN_EABI, "not a Tenon plugin");
  assert_null(getenv("TENON_TEST_CONSTRUCTED"));
}

/* Replaces bytes of a plugin's header. */
static void refuses_header(size_t at, const void *bytes, size_t n, const char *part) {
  const tn_plugin *plugin;
  folder_copy(&F, &B, "first", "odd.so");
  int file = open(folder_path(&F, "odd.so"), O_WRONLY);
  assert_int_equal(pwrite(file, bytes, n, (off_t)at), (ssize_t)n);
  close(file);
  assert_error(&B, tn_plugin_open(&B, F.shown, &plugin), TN_EUNAVAILABLE, part);
}

static void an_object_of_another_machine_is_named(void **state) {
  (void)state;
  const uint16_t arm = EM_AARCH64, unknown = 12345, program = ET_EXEC, size = 5;
  const uint8_t bits = ELFCLASS32, order = ELFDATA2MSB;
  const uint64_t far = UINT64_MAX - 3;
#if defined(__x86_64__)
  refuses_header(offsetof(Elf64_Ehdr, e_machine), &arm, 2, "built for aarch64 (machine 183), this is x86-64");
#else
  (void)arm;
#endif
  refuses_header(offsetof(Elf64_Ehdr, e_machine), &unknown, 2, "built for another machine (machine 12345)");
  refuses_header(EI_CLASS, &bits, 1, "built for a 32-bit little-endian machine");
  refuses_header(EI_DATA, &order, 1, "built for a 64-bit big-endian machine");
  refuses_header(offsetof(Elf64_Ehdr, e_type), &program, 2, "it is no shared object; link it with -shared");
  refuses_header(offsetof(Elf64_Ehdr, e_phentsize), &size, 2, "damaged or cut off");
  refuses_header(offsetof(Elf64_Ehdr, e_phoff), &far, 8, "damaged or cut off");
}

static void a_folder_above_that_others_may_write_is_refused(void **state) {
  (void)state;
  char *real;
  assert_int_equal(mkdir(folder_path(&F, "open"), 0755), 0);
  assert_int_equal(mkdir(folder_path(&F, "open/own"), 0755), 0);
  folder_copy(&F, &B, "first", "open/own/it.so");
  assert_int_equal(chmod(folder_path(&F, "open"), 0777), 0);
  refuses_path(folder_path(&F, "open/own/it.so"), TN_EUNAVAILABLE, "everybody may write the folder");
  assert_contains(tn_error_text(&B), "open; run: chmod o-w '");
  assert_error(&B, tn_trusted_folder(&B, "plugin", folder_path(&F, "open/own"), &real), TN_EUNAVAILABLE,
               "everybody may write the folder");
  assert_int_equal(chmod(folder_path(&F, "open"), 01777), 0);
  assert_ok(&B, tn_trusted_file(&B, "plugin", folder_path(&F, "open/own/it.so"), &real));
  tn_release(&B, real);
}

/* Only root can make a file another user's. */
static void root_runs_no_plugin_of_another_user(void **state) {
  (void)state;
  if (geteuid() != 0) skip();
  folder_copy(&F, &B, "first", "it.so");
  assert_int_equal(chown(folder_path(&F, "it.so"), 12345, 0), 0);
  refuses_path(F.shown, TN_EUNAVAILABLE, "runs as root and user 12345 owns the file");
  assert_contains(tn_error_text(&B), "run: chown root '");
  assert_int_equal(chown(F.shown, 0, 0), 0);
  assert_int_equal(chown(F.path, 12345, 0), 0);
  refuses_path(folder_path(&F, "it.so"), TN_EUNAVAILABLE, "user 12345 owns the folder");
}

static void a_library_without_the_symbol_is_no_plugin(void **state) {
  (void)state;
  const tn_plugin *plugin;
  assert_error(
      &B, open_made("library", &plugin), TN_EABI,
      "not a Tenon plugin: symbol: found no tn_plugin_v0, wanted the one that TN_PLUGIN(...) exports");
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(a_plugin_opens),
      CASE(a_constructor_does_not_change_the_environment),
      CASE(a_missing_file_is_unavailable),
      CASE(a_folder_or_a_device_is_no_plugin),
      CASE(a_file_that_everybody_may_write_is_refused),
      CASE(a_folder_that_everybody_may_write_is_refused),
      CASE(a_link_is_judged_by_where_it_leads),
      CASE(a_path_is_made_absolute_so_that_no_search_path_matters),
      CASE(a_text_file_is_refused_with_the_linkers_reason),
      CASE(a_missing_library_is_named),
      CASE(a_plugin_of_another_interface_is_told_from_a_library),
      CASE(a_refused_object_runs_no_code),
      CASE(an_object_of_another_machine_is_named),
      CASE(a_folder_above_that_others_may_write_is_refused),
      CASE(root_runs_no_plugin_of_another_user),
      CASE(a_library_without_the_symbol_is_no_plugin),
  };
  return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}

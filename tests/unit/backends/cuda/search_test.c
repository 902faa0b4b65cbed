/* tests/unit/backends/cuda/search_test.c: where libraries are looked for, and the messages where they are not
 * found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/shared/nvidia_search.h"
#include "tests/unit/backends/cuda/rig.h"

static char folder[160];

static int open_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/tenon-search-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int close_folder(void **state) {
  char command[256];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

/* A library of the system under another name. */
static void add_library(const char *name) {
  char path[256];
  void *zlib = dlopen("libz.so.1", RTLD_NOW);
  Dl_info info;
  assert_non_null(zlib);
  assert_int_not_equal(dladdr(dlsym(zlib, "zlibVersion"), &info), 0);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(symlink(info.dli_fname, path), 0);
  dlclose(zlib);
}

static void add_folder(const char *name) {
  char command[320];
  snprintf(command, sizeof command, "mkdir -p %s%s", folder, name);
  assert_int_equal(system(command), 0);
}

static tn_status find(const char *folders, const char *first, const char *second, char path[TN_NVIDIA_PATH]) {
  tn_nvidia_wanted wanted = {"the library of the test", {first, second}, "add it"};
  tn_env env = cuda_rig_env();
  void *handle;
  tn_status status = tn_nvidia_find_library(&env, folders, &wanted, &handle, path);
  assert_true((status == TN_OK) == (handle != NULL));
  if (handle != NULL) dlclose(handle);
  return status;
}

static void a_library_of_a_given_folder_is_found(void **state) {
  (void)state;
  char path[TN_NVIDIA_PATH], folders[256];
  add_library("libtest_of_tenon.so.2");
  snprintf(folders, sizeof folders, "/nowhere:%s", folder);
  assert_int_equal(find(folders, "libtest_of_tenon.so.3", "libtest_of_tenon.so.2", path), TN_OK);
  assert_non_null(strstr(path, "libtest_of_tenon.so.2"));
}

static void a_library_does_not_change_the_environment(void **state) {
  (void)state;
  char path[TN_NVIDIA_PATH], link[256];
  snprintf(link, sizeof link, "%s/librounding.so.1", folder);
  assert_int_equal(symlink(ROUNDING, link), 0);
  assert_int_equal(find(folder, "librounding.so.1", NULL, path), TN_OK);
  assert_int_equal(fegetround(), FE_TONEAREST);
}

static void a_missing_library_says_where_it_was_looked_for(void **state) {
  (void)state;
  char path[TN_NVIDIA_PATH];
  assert_int_equal(find(folder, "libtest_of_tenon.so.3", "libtest_of_tenon.so.2", path), TN_EUNAVAILABLE);
  assert_non_null(strstr(cuda_rig_text, "the library of the test is not found: no libtest_of_tenon.so.3 or "
                                        "libtest_of_tenon.so.2 in "));
  assert_non_null(strstr(cuda_rig_text, folder));
  assert_non_null(strstr(cuda_rig_text, "; add it"));
}

static void a_file_that_does_not_load_says_why(void **state) {
  (void)state;
  char file[256], path[TN_NVIDIA_PATH];
  snprintf(file, sizeof file, "%s/libtest_of_tenon.so.2", folder);
  FILE *f = fopen(file, "w");
  assert_non_null(f);
  fputs("no library", f);
  fclose(f);
  assert_int_equal(find(folder, "libtest_of_tenon.so.2", NULL, path), TN_EUNAVAILABLE);
  assert_non_null(strstr(cuda_rig_text, "cannot be loaded: "));
  assert_non_null(strstr(cuda_rig_text, file));
}

/* The stub of the driver lies below the toolkit's libraries, which are found from CUDA_PATH. A name with a
 * folder is not looked for in the working folder, where the loader would take it from. */
static void a_file_of_a_folder_below_is_found(void **state) {
  (void)state;
  static const char stub[] = "stubs/libtest_of_tenon.so.2";
  char path[TN_NVIDIA_PATH], *home = strdup(folder), *before = getcwd(NULL, 0);
  add_folder("/lib64/stubs");
  strcat(folder, "/lib64/stubs");
  add_library("libtest_of_tenon.so.2");
  *strstr(folder, "/stubs") = '\0';
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(find("", stub, NULL, path), TN_EUNAVAILABLE);
  strcpy(folder, home);
  setenv("CUDA_PATH", folder, 1);
  assert_int_equal(find("", stub, NULL, path), TN_OK);
  assert_non_null(strstr(path, "/lib64/stubs/libtest_of_tenon.so.2"));
  unsetenv("CUDA_PATH");
  assert_int_equal(chdir(before), 0);
  free(home);
  free(before);
}

static void python_packages_are_looked_at(void **state) {
  (void)state;
  char path[TN_NVIDIA_PATH], command[320];
  char *home = strdup(folder);
  snprintf(command, sizeof command, "mkdir -p %s/lib/python3.11/site-packages/nvidia/cu13/lib", folder);
  assert_int_equal(system(command), 0);
  strcat(folder, "/lib/python3.11/site-packages/nvidia/cu13/lib");
  add_library("libtest_of_tenon.so.2");
  strcpy(folder, home);
  assert_int_equal(find("", "libtest_of_tenon.so.2", NULL, path), TN_EUNAVAILABLE);
  setenv("VIRTUAL_ENV", home, 1);
  assert_int_equal(find("", "libtest_of_tenon.so.2", NULL, path), TN_OK);
  assert_non_null(strstr(path, "site-packages/nvidia/cu13/lib"));
  unsetenv("VIRTUAL_ENV");
  free(home);
}

/* PATH with FOLDER/bin first; *before is the former one. */
static void put_first_in_path(const char *bin, char **before) {
  char path[4096];
  *before = strdup(getenv("PATH"));
  snprintf(path, sizeof path, "%s%s:%s", folder, bin, *before);
  setenv("PATH", path, 1);
}

static void add_package_in(const char *prefix) {
  char *home = strdup(folder);
  strcat(folder, prefix);
  add_folder("/lib/python3.12/site-packages/nvidia/cudnn/lib");
  strcat(folder, "/lib/python3.12/site-packages/nvidia/cudnn/lib");
  add_library("libtest_of_tenon.so.2");
  strcpy(folder, home);
  free(home);
}

static void add_file(const char *name) {
  char file[256];
  snprintf(file, sizeof file, "%s%s", folder, name);
  FILE *f = fopen(file, "w");
  assert_non_null(f);
  fclose(f);
  assert_int_equal(chmod(file, 0755), 0);
}

/* Without VIRTUAL_ENV, as in a command that has not activated the environment. */
static void packages_of_the_first_python_are_looked_at(void **state) {
  (void)state;
  char path[TN_NVIDIA_PATH], *before;
  add_folder("/venv/bin");
  add_file("/venv/bin/python3");
  put_first_in_path("/venv/bin", &before);
  assert_int_equal(find("", "libtest_of_tenon.so.2", NULL, path), TN_EUNAVAILABLE);
  add_package_in("/venv");
  assert_int_equal(find("", "libtest_of_tenon.so.2", NULL, path), TN_OK);
  setenv("PATH", before, 1);
  assert_int_equal(find("", "libtest_of_tenon.so.2", NULL, path), TN_EUNAVAILABLE);
  free(before);
}

/* The environment's python3 is a link to the one that has the packages. */
static void packages_behind_a_linked_python_are_looked_at(void **state) {
  (void)state;
  char path[TN_NVIDIA_PATH], target[256], link[256], *before;
  add_folder("/base/bin");
  add_folder("/venv/bin");
  add_file("/base/bin/python3");
  snprintf(target, sizeof target, "%s/base/bin/python3", folder);
  snprintf(link, sizeof link, "%s/venv/bin/python3", folder);
  assert_int_equal(symlink(target, link), 0);
  add_package_in("/base");
  put_first_in_path("/venv/bin", &before);
  assert_int_equal(find("", "libtest_of_tenon.so.2", NULL, path), TN_OK);
  setenv("PATH", before, 1);
  free(before);
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)

int main(void) {
  const struct CMUnitTest tests[] = {test(a_library_of_a_given_folder_is_found),
                                     test(a_library_does_not_change_the_environment),
                                     test(a_missing_library_says_where_it_was_looked_for),
                                     test(a_file_of_a_folder_below_is_found),
                                     test(a_file_that_does_not_load_says_why),
                                     test(python_packages_are_looked_at),
                                     test(packages_of_the_first_python_are_looked_at),
                                     test(packages_behind_a_linked_python_are_looked_at)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

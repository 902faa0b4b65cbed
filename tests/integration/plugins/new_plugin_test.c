/* `tenon new-plugin KIND NAME` for every kind: what it writes is built by Meson against the build tree, and
 * its tests are green. */
#include <sys/stat.h>
#include <unistd.h>

#include "workshop.h"

static const char *const kinds[] = {"op",     "kernel",    "layer",     "loss",     "optimizer", "schedule",
                                    "source", "transform", "precision", "observer", "backend"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int set_up(void **state) {
  (void)state;
  workshop_open();
  setenv("TENON", BUILD_FOLDER "/tools/tenon", 1);
  setenv("PKG_CONFIG_PATH", BUILD_FOLDER "/meson-uninstalled", 1);
  setenv("CC", COMPILER, 1);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  return 0;
}

static void says(const char *text) {
  if (strstr(workshop_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, workshop_err);
}

/* Together as subprojects of one project, so that the compiler is examined once. Warnings are errors. */
static void every_kind_builds_and_passes_its_tests(void **state) {
  (void)state;
  FILE *file = fopen("meson.build", "w");
  assert_non_null(file);
  fputs("project('all', 'c', default_options: ['werror=true'])\n", file);
  assert_int_equal(mkdir("subprojects", 0777), 0);
  for (int i = 0; i < KINDS; i++) {
    workshop_do("$TENON new-plugin %s subprojects/own_%s", kinds[i], kinds[i]);
    fprintf(file, "subproject('own_%s')\n", kinds[i]);
  }
  assert_int_equal(fclose(file), 0);
  workshop_do("%s setup build >setup.txt 2>&1 || { tail -5 setup.txt >&2; false; }", MESON);
  workshop_do("%s test -C build --print-errorlogs >test.txt 2>&1 || { tail -60 test.txt >&2; false; }",
              MESON);
  workshop_do("grep -q 'Ok: *%d' test.txt || { cat test.txt >&2; false; }", KINDS + KINDS - 2);
  workshop_do("grep -q 'lowest loss' build/subprojects/own_observer/own_observer.txt");
}

/* The new plugin is the example with another name. */
static void the_code_is_the_example_under_another_name(void **state) {
  (void)state;
  workshop_do("$TENON new-plugin optimizer sharp");
  workshop_do("sed 's/\\btiger\\b/sharp/g' %s/tiger.c | diff - sharp/sharp.c", EXAMPLES_FOLDER);
  workshop_do("test $(wc -l <sharp/README) = 3");
  workshop_do("cd sharp && %s setup build >/dev/null && %s compile -C build >/dev/null", MESON, MESON);
  json_t *items = workshop_tenon("inspect sharp --plugin sharp/build/sharp.so");
  assert_int_equal(json_array_size(json_object_get(items, "items")), 1);
  json_decref(items);
}

/* The line that is printed can be typed as it is, also where Tenon is not installed. */
static void the_line_that_is_printed_works(void **state) {
  (void)state;
  workshop_do(
      "(unset PKG_CONFIG_PATH; $TENON new-plugin schedule stairs | sed -n '2s/&& meson test.*//p' >line.sh; "
      "sh -e ./line.sh >/dev/null)");
  workshop_do("test -f stairs/build/build.ninja");
}

/* The test that comes with a plugin finds a mistake in it. */
static void the_test_fails_where_the_plugin_is_wrong(void **state) {
  (void)state;
  workshop_do("$TENON new-plugin op bend && sed -i 's/\"y = x/\"y = log(x)/' bend/bend.c");
  workshop_do("cd bend && %s setup build >/dev/null", MESON);
  assert_int_not_equal(workshop_run("%s test -C bend/build >test.txt 2>&1", MESON), 0);
  workshop_do("grep -q 'conformance *FAIL' test.txt");
}

static void wrong_arguments_are_told_and_nothing_is_written(void **state) {
  (void)state;
  assert_int_equal(workshop_run("$TENON new-plugin optimiser x1"), 2);
  says("did you mean 'optimizer'?");
  assert_int_equal(workshop_run("$TENON new-plugin op Gate"), 2);
  says("expected lower-case letters");
  assert_int_equal(workshop_run("$TENON new-plugin op double"), 2);
  assert_int_equal(workshop_run("$TENON new-plugin op relu"), 2);
  says("is installed");
  assert_int_equal(workshop_run("$TENON new-plugin schedule factor"), 2);
  says("uses this name");
  assert_int_equal(access("relu", F_OK), -1);
  workshop_do("mkdir taken");
  assert_int_equal(workshop_run("$TENON new-plugin op taken"), 65);
  says("taken: cannot be made: File exists");
  workshop_do("rmdir taken");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_builds_and_passes_its_tests),
      cmocka_unit_test(the_code_is_the_example_under_another_name),
      cmocka_unit_test(the_line_that_is_printed_works),
      cmocka_unit_test(the_test_fails_where_the_plugin_is_wrong),
      cmocka_unit_test(wrong_arguments_are_told_and_nothing_is_written),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

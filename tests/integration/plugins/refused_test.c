/* Plugins that no host may take as they are, given to the program as their users would: each is refused with
 * the field, the value found, the value wanted and a remedy, and the program ends with 69; or it is adapted.
 */
#include "workshop.h"

#include "tenon/api.h"

enum { REFUSED = 69, NO_DATA = 74 };

static int set_up(void **state) {
  (void)state;
  workshop_open();
  setenv("TENON", PROGRAM, 1);
  setenv("WRONG", WRONG_FOLDER, 1);
  workshop_write("net.ini",
                 "[run]\noutput =\nmax_steps = 1\n"
                 "[data]\nsource = random\nshape = 4\nclasses = 2\nsamples = 8\nbatch = 4\n"
                 "[model]\ninputs = image: f32[4]\nlayers = fc: linear(2)\nloss = cross_entropy\n");
  workshop_write("dry.ini",
                 "[data]\nsource = dry\nbatch = 4\n"
                 "[model]\ninputs = image: f32[4]\nlayers = fc: linear(2)\nloss = cross_entropy\n");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  return 0;
}

static void expect_error(const char *text) {
  if (strstr(workshop_err, text) == NULL) fail_msg("'%s' lacks '%s'", workshop_err, text);
}

/* `plugin` is refused when it is loaded. */
static void refuses(const char *plugin, const char *text) {
  int code = workshop_run("$TENON plan net.ini --plugin %s", plugin);
  expect_error(text);
  expect_error(plugin[0] == '.' ? plugin + 2 : strrchr(plugin, '/'));
  assert_int_equal(code, REFUSED);
  assert_string_equal(workshop_out, "");
}

static void another_major_version_is_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_major.so", "built for plugin interface 1, this host has 0; rebuild the plugin");
  refuses("$WRONG/wrong_major_inside.so", "major: found 7, wanted 0; rebuild the plugin");
}

/* The text of a plugin whose minor version is the next. */
static const char *newer_minor(void) {
  static char text[64];
  snprintf(text, sizeof text, "minor: found %d, wanted %d; rebuild the plugin", TN_ABI_MINOR + 1,
           TN_ABI_MINOR);
  return text;
}

static void a_newer_minor_version_is_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_minor.so", newer_minor());
}

static void a_shared_object_without_the_entry_is_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_symbol.so",
          "symbol: found no tn_plugin_v0, wanted the one that TN_PLUGIN(...) exports");
}

static void a_missing_library_is_named(void **state) {
  (void)state;
  refuses("$WRONG/wrong_library.so", "undefined symbol: wrong_nowhere");
}

static void truncated_structs_are_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_truncated.so", "struct_size: found 48, wanted at least 56; rebuild the plugin");
  refuses("$WRONG/wrong_truncated_item.so",
          "schedule \"late\": struct_size: found 40, wanted at least 48; correct its descriptor");
}

static void a_missing_callback_is_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_callback.so", "schedule \"late\": factor: found NULL, wanted a value");
}

static void a_required_feature_that_is_unknown_is_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_feature.so", "requires: found the feature bits 0x10, wanted none but 0x0");
}

static void a_build_for_another_machine_is_refused_with_every_difference(void **state) {
  (void)state;
  refuses("$WRONG/wrong_machine.so",
          "build pointers: found ptr32, wanted ptr64; build byte order: found be, wanted le");
}

static void a_name_that_no_ini_could_hold_is_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_name.so", "schedule \"too late\": name: found \"too late\", wanted letters, digits");
}

static void names_that_exist_already_are_refused(void **state) {
  (void)state;
  refuses("$WRONG/wrong_twice.so", "schedule \"late\" is there twice; rename one of the two");
  refuses("$WRONG/wrong_twin.so", "schedule \"cosine\" is there already, from ");
}

static void an_unknown_kind_is_left_out_and_the_rest_is_used(void **state) {
  (void)state;
  workshop_do("$TENON train net.ini --plugin $WRONG/wrong_kind.so --set schedule.type=half");
  expect_error("wrong_kind.so: item \"dream\" is of kind 77, which this host does not know; left out");
}

static void what_everybody_may_write_is_refused(void **state) {
  (void)state;
  workshop_do(
      "mkdir -m 755 open closed; cp $WRONG/wrong_kind.so open/a.so; cp $WRONG/wrong_kind.so closed/b.so");
  workshop_do("chmod o+w open closed/b.so");
  refuses("./open/a.so", "refused, since everybody may write the folder");
  refuses("./closed/b.so", "refused, since everybody may write the file");
  expect_error("run: chmod o-w '");
}

static void what_is_no_plugin_at_all_is_refused(void **state) {
  (void)state;
  workshop_write("text.so", "no shared object");
  refuses("./text.so", "cannot be opened: ");
  refuses("./none.so", "no such plugin can be opened: No such file or directory");
}

static void a_refusal_names_the_line_of_the_ini(void **state) {
  (void)state;
  workshop_do("{ cat net.ini; echo '[plugins]'; echo \"load = $WRONG/wrong_minor.so\"; } >named.ini");
  assert_int_equal(workshop_run("$TENON plan named.ini"), REFUSED);
  expect_error("named.ini:15: [plugins] load: ");
  expect_error(newer_minor());
}

static void an_absent_plugin_may_be_marked_as_such(void **state) {
  (void)state;
  workshop_do("{ cat net.ini; echo '[plugins]'; echo 'load = none.so?, cuda_of_the_future?'; } >marked.ini");
  workshop_do("$TENON plan marked.ini");
  assert_int_equal(workshop_run("$TENON plan marked.ini --set plugins.load=cuda_of_the_future"), REFUSED);
  expect_error("no plugin folder holds tenon-cuda_of_the_future.so");
}

static void a_bare_name_stands_for_a_plugin_of_the_plugin_folder(void **state) {
  (void)state;
  if (STATIC_PLUGINS) skip(); /* the folder is empty */
  workshop_do("{ cat net.ini; echo '[plugins]'; echo 'load = sources, transforms?'; } >bare.ini");
  workshop_do("$TENON config show bare.ini");
  assert_non_null(strstr(workshop_out, "load = sources, transforms?"));
}

static void a_source_that_does_not_open_ends_the_run(void **state) {
  (void)state;
  assert_int_equal(workshop_run("$TENON train dry.ini --plugin $WRONG/wrong_source.so"), NO_DATA);
  expect_error("dry.ini:2: ");
  expect_error("source 'dry': the well is dry");
}

static void a_backend_that_does_not_open_is_passed_over_for_the_next(void **state) {
  (void)state;
  const char *reason = "backend 'broken': its library is of version 3, expected 4; install libbroken4";
  assert_int_equal(
      workshop_run("$TENON train net.ini --plugin $WRONG/wrong_backend.so --set backend.use=broken"),
      REFUSED);
  expect_error(reason);
  workshop_do("$TENON train net.ini --plugin $WRONG/wrong_backend.so --set backend.use=broken,cpu");
  expect_error(reason);
  expect_error("; trying 'cpu'");
  workshop_do("$TENON train net.ini --plugin $WRONG/wrong_backend.so"); /* auto prefers it to all others */
  expect_error("not used   backend 'broken': its library is of version 3, expected 4; see `tenon");
  assert_null(strstr(workshop_err, "trying"));
  workshop_do("$TENON doctor --plugin $WRONG/wrong_backend.so");
  assert_non_null(strstr(workshop_out, "install libbroken4"));
}

static void an_observer_that_does_not_open_ends_the_run(void **state) {
  (void)state;
  assert_int_equal(workshop_run("$TENON train net.ini --plugin $WRONG/wrong_observer.so"), REFUSED);
  expect_error("observer 'deaf': it receives no events");
}

/* Both variants of the kernel decline when they are prepared; the run goes on with the next kernel. */
static void a_kernel_that_cannot_be_prepared_is_replaced(void **state) {
  (void)state;
  int code =
      workshop_run("$TENON train net.ini --set backend.use=cpu --verbose --plugin $WRONG/wrong_prepare.so");
  expect_error("kernel late_matmul first declined when it was prepared: no engine for variant 1");
  expect_error("kernel late_matmul second declined when it was prepared: no engine for variant 2");
  assert_int_equal(code, 0);
}

/* config.ini of a run folder may be another user's. */
static void code_that_a_run_folder_names_is_not_loaded(void **state) {
  (void)state;
  workshop_do("{ cat net.ini; echo '[plugins]'; echo \"load = $WRONG/wrong_kind.so\"; } >own.ini");
  workshop_do("$TENON train own.ini --set run.output=out --set run.name=r");
  assert_int_equal(workshop_run("$TENON eval out/r"), REFUSED);
  expect_error("out/r/config.ini:");
  expect_error("wrong_kind.so is code, and the folder may be another user's; name it with --plugin, or give "
               "--trust");
  workshop_do("$TENON eval out/r --trust");
  workshop_do("$TENON eval out/r --plugin $WRONG/wrong_kind.so");
  workshop_do("$TENON eval out/r --set plugins.load=$WRONG/wrong_kind.so");
  workshop_do("$TENON eval out/r/config.ini --weights out/r");
  workshop_do("$TENON report out/r --output r.html && $TENON checkpoint show out/r && $TENON runs out");
}

/* A plugin of the plugin folders is the user's own. */
static void a_run_folder_may_name_installed_plugins(void **state) {
  (void)state;
  workshop_do("{ cat net.ini; echo '[plugins]'; echo 'load = layers, none.so?'; } >named.ini");
  workshop_do("$TENON train named.ini --set run.output=out --set run.name=named");
  workshop_do("$TENON eval out/named");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_major_version_is_refused),
      cmocka_unit_test(a_newer_minor_version_is_refused),
      cmocka_unit_test(a_shared_object_without_the_entry_is_refused),
      cmocka_unit_test(a_missing_library_is_named),
      cmocka_unit_test(truncated_structs_are_refused),
      cmocka_unit_test(a_missing_callback_is_refused),
      cmocka_unit_test(a_required_feature_that_is_unknown_is_refused),
      cmocka_unit_test(a_build_for_another_machine_is_refused_with_every_difference),
      cmocka_unit_test(a_name_that_no_ini_could_hold_is_refused),
      cmocka_unit_test(names_that_exist_already_are_refused),
      cmocka_unit_test(an_unknown_kind_is_left_out_and_the_rest_is_used),
      cmocka_unit_test(what_everybody_may_write_is_refused),
      cmocka_unit_test(what_is_no_plugin_at_all_is_refused),
      cmocka_unit_test(a_refusal_names_the_line_of_the_ini),
      cmocka_unit_test(an_absent_plugin_may_be_marked_as_such),
      cmocka_unit_test(a_bare_name_stands_for_a_plugin_of_the_plugin_folder),
      cmocka_unit_test(a_source_that_does_not_open_ends_the_run),
      cmocka_unit_test(a_backend_that_does_not_open_is_passed_over_for_the_next),
      cmocka_unit_test(an_observer_that_does_not_open_ends_the_run),
      cmocka_unit_test(a_kernel_that_cannot_be_prepared_is_replaced),
      cmocka_unit_test(code_that_a_run_folder_names_is_not_loaded),
      cmocka_unit_test(a_run_folder_may_name_installed_plugins),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

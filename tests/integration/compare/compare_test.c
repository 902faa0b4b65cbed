/* `tenon compare` as a user calls it: backends that agree, three kernels that are broken on purpose, and
 * mistakes in the command line. */
#include <math.h>

#include "nets.h"
#include "program.h"

static const char mlp_ini[] =
    "[run]\nname = run\nseed = 1\n[data]\nsource = digits\nepoch = 96\nbatch = 8\nworkers = 1\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "         flatten\n    fc1: linear(32)\n         relu\n    fc2: linear(10)\n"
    "loss = cross_entropy\n[optimizer]\ntype = adamw\nlr = 0.002\n";

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

/* ---- backends that agree ---- */

/* Every launch is compared, and both train to nearly the same losses. */
static void agree(const char *ini, const char *arguments) {
  file_write("model.ini", ini);
  const json_t *r = program_json(0, "compare model.ini --steps 4 %s", arguments),
               *losses = json_object_get(r, "losses");
  assert_true(json_is_true(json_object_get(r, "agree")));
  assert_int_equal(program_number(r, "departing"), 0);
  assert_int_equal(program_number(r, "skipped"), 0);
  assert_true(program_number(r, "compared") > 10);
  assert_int_equal(json_array_size(losses), 4);
  assert_true(program_number(json_array_get(losses, 0), "difference") < 0.01);
  assert_false(file_exists("departs.safetensors"));
}

static void agree_in_each_precision(const char *ini, const char *backends) {
  static const char *const policies[] = {"fp32", "bf16", "fp16"};
  for (int i = 0; i < 3; i++) {
    char arguments[160];
    snprintf(arguments, sizeof arguments, "--backends %s --set precision.policy=%s", backends, policies[i]);
    agree(ini, arguments);
  }
}

static void a_resnet_agrees(void **state) {
  (void)state;
  agree_in_each_precision(resnet_ini, "cpu,onednn");
  agree(resnet_ini, "--backends cpu,sim");
}

static void a_transformer_agrees(void **state) {
  (void)state;
  agree_in_each_precision(transformer_ini, "cpu,onednn");
  agree(transformer_ini, "--backends cpu,sim");
}

/* The sum of the gradients of two micro-batches, and the update. */
static void micro_batches_agree(void **state) {
  (void)state;
  agree(mlp_ini, "--backends cpu,onednn --set optimizer.accumulate=2");
}

/* Launches on the fallback have their operands on the host. */
static void launches_on_the_fallback_agree(void **state) {
  (void)state;
  agree(lenet_ini, "--backends cpu,sim --set backend.fallback=allow "
                   "--set backend.sim.lacks=max_pool2d,max_pool2d_grad");
}

/* The differences are those of the same steps without `compare`: what it reads and launches again changes
 * nothing. */
static void watching_changes_no_loss(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  const json_t *once = program_json(0, "compare model.ini --backends cpu,onednn --steps 3 --launches 1");
  double watched = program_number(json_array_get(json_object_get(once, "losses"), 2), "tested");
  const json_t *often = program_json(0, "compare model.ini --backends cpu,onednn --steps 3 --launches 5");
  assert_true(watched == program_number(json_array_get(json_object_get(often, "losses"), 2), "tested"));
  const json_t *trained =
      program_json(0, "train model.ini --set backend.use=onednn --set run.max_steps=1 --output out");
  assert_true(fabs(program_number(trained, "train.loss") -
                   program_number(json_array_get(json_object_get(once, "losses"), 0), "tested")) < 1e-6);
}

/* A run that diverges ends the comparison with the step whose loss is not finite. */
static void a_loss_that_is_not_finite_ends_it(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  const json_t *r =
      program_json(0, "compare model.ini --backends cpu,onednn --steps 40 --set optimizer.type=sgd "
                      "--set optimizer.lr=1e30");
  const json_t *losses = program_member(r, "losses");
  size_t n = json_array_size(losses);
  assert_true(n > 1 && n < 40);
  assert_int_equal(program_number(r, "steps"), n);
  assert_true(json_is_null(json_object_get(json_array_get(losses, n - 1), "tested")));
  assert_true(json_is_real(json_object_get(json_array_get(losses, 0), "tested")));
}

/* ---- kernels that are broken on purpose ---- */

/* The first launch that departs is one of the broken kernel. */
static const json_t *find(const char *ini, const char *plugin, const char *kernel) {
  file_write("model.ini", ini);
  const json_t *r = program_json(
      3, "compare model.ini --backends cpu,onednn --steps 2 --plugin " BROKEN "/broken_%s.so", plugin);
  const json_t *first = program_member(r, "first"), *launches = program_member(r, "launches"), *one;
  size_t i;
  assert_true(json_is_false(json_object_get(r, "agree")));
  assert_string_equal(program_text(first, "kernel"), kernel);
  assert_string_equal(program_text(first, "verdict"), "departs");
  assert_string_equal(program_text(r, "file"), "departs.safetensors");
  json_array_foreach(launches, i, one) {
    int departs = strcmp(program_text(one, "verdict"), "agrees") != 0 &&
                  strcmp(program_text(one, "verdict"), "rounding") != 0;
    if (departs) assert_string_equal(program_text(one, "kernel"), kernel);
  }
  return first;
}

/* The file repeats the launch with the same difference, and without the plugin it names the kernel that is
 * missing. */
static void repeats(const char *plugin, const json_t *first) {
  const json_t *again = program_json(
      3,
      "compare model.ini --backends cpu,onednn --repeat departs.safetensors --plugin " BROKEN "/broken_%s.so",
      plugin);
  static const char *const same[] = {"kernel", "variant", "verdict"};
  for (int i = 0; i < 3; i++) assert_string_equal(program_text(again, same[i]), program_text(first, same[i]));
  assert_true(program_number(again, "largest") == program_number(first, "largest"));
  assert_int_equal(program_number(again, "repetition"), program_number(first, "repetition"));
  assert_true(json_equal(program_member(again, "at"), program_member(first, "at")));
  assert_int_equal(program_run("compare model.ini --backends cpu,onednn --repeat departs.safetensors"), 69);
  says("does not take the ops of the file");
}

static void a_wrong_corner_is_found(void **state) {
  (void)state;
  const json_t *first = find(mlp_ini, "corner", "corner_matmul"), *at = program_member(first, "at");
  assert_string_equal(program_text(first, "name"), "fc1");
  assert_non_null(strstr(program_text(first, "where"), "model.ini:"));
  assert_int_equal(json_integer_value(json_array_get(at, 0)), 7);
  assert_int_equal(json_integer_value(json_array_get(at, 1)), 31);
  assert_int_equal(program_number(first, "repetition"), 1);
  repeats("corner", first);
}

static void a_wrong_layout_is_found(void **state) {
  (void)state;
  const json_t *first = find(resnet_ini, "layout", "layout_moments");
  assert_string_equal(program_text(first, "variant"), "blocks of 8");
  repeats("layout", first);
}

static void a_wrong_eleventh_launch_is_found(void **state) {
  (void)state;
  const json_t *first = find(mlp_ini, "eleventh", "eleventh_matmul");
  assert_int_equal(program_number(first, "repetition"), 11);
  assert_true(json_is_true(json_object_get(first, "unsteady")));
  repeats("eleventh", first);
  assert_int_equal(
      program_run("compare model.ini --backends cpu,onednn --steps 2 --launches 4 --plugin " BROKEN
                  "/broken_eleventh.so"),
      0);
}

static void bits_that_vary_are_found(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  const json_t *r = program_json(3, "compare model.ini --backends cpu,onednn --steps 1 --plugin " BROKEN
                                    "/broken_unsteady.so");
  assert_string_equal(program_text(r, "first.kernel"), "unsteady_matmul");
  assert_string_equal(program_text(r, "first.verdict"), "unsteady");
  assert_int_equal(program_number(r, "first.repetition"), 2);
  assert_true(program_number(r, "first.share") < 1);
  r = program_json(3, "compare model.ini --backends cpu,onednn --repeat departs.safetensors --plugin " BROKEN
                      "/broken_unsteady.so");
  assert_string_equal(program_text(r, "verdict"), "unsteady");
}

/* A fault of the trusted backend is not blamed on the tested one. */
static void a_wrong_reference_is_named(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  const json_t *r = program_json(3, "compare model.ini --backends onednn,cpu --steps 1 --plugin " BROKEN
                                    "/broken_corner.so");
  assert_string_equal(program_text(r, "first.verdict"), "reference departs");
  assert_true(program_number(r, "first.reference_share_of_f64") >
              4 * program_number(r, "first.tested_share_of_f64"));
}

static void the_text_names_the_op(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  assert_int_equal(
      program_run("compare model.ini --backends cpu,onednn --steps 2 --output op.safetensors --plugin " BROKEN
                  "/broken_corner.so"),
      3);
  assert_non_null(strstr(program_out, "the first op that departs: matmul, 'fc1' (model.ini:"));
  assert_non_null(strstr(program_out, "kernel corner_matmul of plugin broken; [7, 31] is "));
  assert_non_null(strstr(program_out, "--repeat op.safetensors"));
  assert_int_equal(
      program_run("compare model.ini --backends cpu,onednn --repeat op.safetensors --plugin " BROKEN
                  "/broken_corner.so"),
      3);
  assert_non_null(strstr(program_out, "kernel corner_matmul of plugin broken, departs: "));
}

/* ---- mistakes ---- */

static void the_backends_are_checked(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  static const struct {
    const char *arguments, *text;
    int code;
  } wrong[] = {{"", "Expected --backends A,B", 2},
               {"--backends cpu", "expected two names", 2},
               {"--backends cpu,", "expected two names", 2},
               {"--backends ,cpu", "expected two names", 2},
               {"--backends cpu,sim,onednn", "expected two names", 2},
               {"--backends cpu,cpu", "cannot be compared with itself", 2},
               {"--backends cpu,onedn", "did you mean \"onednn\"?", 69},
               {"--backends cpy,onednn", "did you mean \"cpu\"?", 69},
               {"--backends cpu,onednn --steps 0", "expected a number from 1", 2},
               {"--backends cpu,onednn --launches x", "expected a number from 1", 2},
               {"--backends sim,cpu --set distributed.devices=2 --set backend.sim.devices=2",
                "distributed.devices=1", 65}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    int code = program_run("compare model.ini %s", wrong[i].arguments);
    if (code != wrong[i].code) fail_msg("'%s' ended with %d: %s", wrong[i].arguments, code, program_err);
    says(wrong[i].text);
  }
}

static void repeat_fails(const char *file, int code, const char *text) {
  int found = program_run("compare model.ini --backends cpu,onednn --repeat %s", file);
  if (found != code) fail_msg("%s ended with %d: %s", file, found, program_err);
  says(text);
}

/* A file of another program, without a launch, and one whose graph is cut. */
static void files_to_repeat_are_checked(void **state) {
  (void)state;
  static const char other[] = "\x02\0\0\0\0\0\0\0{}";
  find(mlp_ini, "corner", "corner_matmul");
  size_t n;
  char *bytes = file_read("departs.safetensors", &n), *graph = strstr(bytes + 8, "matmul(");
  assert_non_null(graph);
  repeat_fails("absent.safetensors", 74, "absent.safetensors");
  repeat_fails("model.ini", 65, "not a safetensors file");
  file_write_bytes("other.safetensors", other, sizeof other - 1);
  repeat_fails("other.safetensors", 65,
               "has no tenon.graph; expected a file that `tenon compare` has written");
  memcpy(graph, "matmul)", 7);
  file_write_bytes("cut.safetensors", bytes, n);
  repeat_fails("cut.safetensors", 65, "cut.safetensors: tenon.graph");
}

/* The result is printed all the same. */
static void a_file_that_cannot_be_written_is_logged(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  const json_t *r = program_json(
      3, "compare model.ini --backends cpu,onednn --steps 1 --output absent/op.safetensors --plugin " BROKEN
         "/broken_corner.so");
  assert_true(json_is_null(json_object_get(r, "file")));
  says("the launch that departs was not written: ");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_resnet_agrees, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_transformer_agrees, program_open, program_close),
      cmocka_unit_test_setup_teardown(micro_batches_agree, program_open, program_close),
      cmocka_unit_test_setup_teardown(launches_on_the_fallback_agree, program_open, program_close),
      cmocka_unit_test_setup_teardown(watching_changes_no_loss, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_loss_that_is_not_finite_ends_it, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_corner_is_found, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_layout_is_found, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_eleventh_launch_is_found, program_open, program_close),
      cmocka_unit_test_setup_teardown(bits_that_vary_are_found, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_wrong_reference_is_named, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_text_names_the_op, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_backends_are_checked, program_open, program_close),
      cmocka_unit_test_setup_teardown(files_to_repeat_are_checked, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written_is_logged, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The examples of docs/plugins, built as a stranger builds them, with cc and pkg-config against an installed
 * Tenon, and used as a stranger uses them, from an INI or with --plugin. */
#include <math.h>
#include <stdbool.h>

#include "workshop.h"

static const char *const examples[] = {"best_watch",  "bf16_products", "cutout",   "fused_linear",  "gauge",
                                       "layer_scale", "tiger",         "log_cosh", "plain_backend", "poly",
                                       "rings",       "round_table",   "serf",     "stop_below",    "swish"};
enum { N_EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

/* A net of two layers that tells two rings apart; the activation and one more plugin are open. */
static const char net[] = "[run]\n"
                          "seed = 1\n"
                          "epochs = 2\n"
                          "threads = 2\n"
                          "output =\n"
                          "[plugins]\n"
                          "load = rings.so%s\n"
                          "[data]\n"
                          "source = rings\n"
                          "count = 256\n"
                          "batch = 32\n"
                          "[model]\n"
                          "inputs = point: f32[2]\n"
                          "layers =\n"
                          "    fc1: linear(16)\n"
                          "    %s\n"
                          "    fc2: linear(2)\n"
                          "loss = cross_entropy\n"
                          "metrics = accuracy\n"
                          "[optimizer]\n"
                          "lr = 0.2\n";

static void write_net(const char *name, const char *plugins, const char *activation) {
  char text[2048];
  snprintf(text, sizeof(text), net, plugins, activation);
  workshop_write(name, text);
}

static int set_up(void **state) {
  (void)state;
  workshop_open();
  workshop_install();
  for (int i = 0; i < N_EXAMPLES; i++)
    workshop_do(
        "%s -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -o %s.so %s/%s.c $(pkg-config --cflags tenon)",
        COMPILER, examples[i], EXAMPLES_FOLDER, examples[i]);
  write_net("relu.ini", "", "relu");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  return 0;
}

static double trained(const json_t *result, const char *path) {
  assert_string_equal(json_string_value(json_object_get(result, "status")), "finished");
  return workshop_number(result, path);
}

/* Trains and returns the loss over the validation set. */
static double loss_of(const char *arguments) {
  json_t *result = workshop_tenon("train %s", arguments);
  double loss = trained(result, "valid.loss");
  json_decref(result);
  return loss;
}

static void assert_near(double a, double b, double relative) {
  if (!(fabs(a - b) <= relative * fabs(b))) fail_msg("%.9g is not within %g of %.9g", a, relative, b);
}

/* How many ops of the plan some kernel takes. */
static int taken_by(const char *arguments, const char *kernel) {
  json_t *plan = workshop_tenon("plan %s", arguments), *op;
  size_t i;
  int n = 0;
  json_array_foreach(json_object_get(plan, "ops"), i, op) n +=
      strcmp(json_string_value(json_object_get(op, "kernel")), kernel) == 0;
  json_decref(plan);
  return n;
}

/* ---- ops and kernels ---- */

static void an_op_with_attribute_gradient_and_kernel_trains(void **state) {
  (void)state;
  write_net("swish.ini", ", swish.so", "swish(beta=1.5)");
  assert_true(loss_of("swish.ini") < 0.63);
  assert_true(taken_by("swish.ini", "swish_cpu") > 0);
}

static void an_attribute_reaches_the_kernel_and_the_gradient(void **state) {
  (void)state;
  write_net("swish_1.ini", ", swish.so", "swish");
  write_net("silu.ini", "", "silu");
  assert_near(loss_of("swish_1.ini"), loss_of("silu.ini"), 1e-5);
  assert_true(fabs(loss_of("swish.ini") - loss_of("swish_1.ini")) > 1e-4);
}

static void a_wrong_attribute_is_reported_with_its_line(void **state) {
  (void)state;
  write_net("swosh.ini", ", swish.so", "swish(bta=1.5)");
  assert_int_equal(workshop_run("$TENON plan swosh.ini"), 65);
  assert_non_null(strstr(workshop_err, "swosh.ini:16"));
  assert_non_null(strstr(workshop_err, "beta"));
}

static void a_formula_needs_no_kernel(void **state) {
  (void)state;
  write_net("serf.ini", ", serf.so", "serf");
  assert_true(loss_of("serf.ini") < 0.63);
  assert_true(taken_by("serf.ini --set backend.use=cpu", "pointwise") > 0);
  assert_int_equal(taken_by("serf.ini --set backend.use=cpu", "serf"), 0);
}

static void a_fused_kernel_speeds_up_a_model_that_never_heard_of_it(void **state) {
  (void)state;
  assert_int_equal(taken_by("relu.ini", "fused_linear_relu"), 0);
  assert_true(taken_by("relu.ini --plugin ./fused_linear.so", "fused_linear_relu") > 0);
  assert_near(loss_of("relu.ini --plugin ./fused_linear.so"), loss_of("relu.ini"), 1e-4);
}

static void the_plan_lists_who_declined_and_why(void **state) {
  (void)state;
  json_t *plan = workshop_tenon("plan swish.ini");
  char *text = json_dumps(plan, 0);
  assert_non_null(strstr(text, "\"swish is not among its ops\""));
  free(text);
  json_decref(plan);
}

/* ---- the other kinds ---- */

static void a_layer_with_a_parameter_trains(void **state) {
  (void)state;
  write_net("layer_scale.ini", ", layer_scale.so", "gamma: layer_scale(0.5)\n    relu");
  assert_true(loss_of("layer_scale.ini") < 0.69);
  json_t *plan = workshop_tenon("plan layer_scale.ini"), *plain = workshop_tenon("plan relu.ini");
  double more = workshop_number(plan, "state_bytes") - workshop_number(plain, "state_bytes");
  assert_true(more >= 16 * 4);
  json_decref(plan);
  json_decref(plain);
}

static void a_layer_refuses_what_it_cannot_do_with_the_line_of_the_model(void **state) {
  (void)state;
  write_net("flat.ini", ", layer_scale.so", "one: linear(1)\n    reshape([])\n    gamma: layer_scale(0.5)");
  assert_int_equal(workshop_run("$TENON plan flat.ini"), 65);
  assert_non_null(
      strstr(workshop_err,
             "flat.ini:18: layer_scale 'gamma' on (f32[32]): the input has rank 1, expected at least 2"));
}

/* Near 0 the loss is half of the squared error, so it is lower than that and nearly as low. */
static void a_loss_trains(void **state) {
  (void)state;
  write_net("log_cosh.ini", ", log_cosh.so", "relu\n    fc3: linear(1)\n    reshape([])");
  workshop_do("sed -i '/fc2/d; /metrics/d' log_cosh.ini");
  double own = loss_of("log_cosh.ini --set model.loss=log_cosh --set optimizer.lr=0.001");
  double half = loss_of("log_cosh.ini --set model.loss=mse --set optimizer.lr=0.0005") / 2;
  assert_true(own > 0.3 * half && own < half);
}

static void an_optimizer_trains(void **state) {
  (void)state;
  const char arguments[] = "relu.ini --plugin ./tiger.so --set optimizer.type=tiger --set optimizer.lr=0.01";
  double loss = loss_of(arguments);
  assert_true(loss < 0.63);
  assert_true(fabs(loss - loss_of("relu.ini")) > 1e-4);
}

static void a_schedule_lowers_the_rate(void **state) {
  (void)state;
  double slow = loss_of("relu.ini --plugin ./poly.so --set schedule.type=poly --set schedule.power=3");
  assert_true(slow > loss_of("relu.ini"));
}

static void a_source_gives_the_same_samples_to_any_number_of_workers(void **state) {
  (void)state;
  double one = loss_of("relu.ini --set data.workers=1"), three = loss_of("relu.ini --set data.workers=3");
  assert_true(one == three);
  assert_true(one != loss_of("relu.ini --set data.noise=0.5"));
}

/* The validation part is far higher, and so all of it is high in the deviations of the training part. A
 * later evaluation, which sees that part alone, has them from the weights. */
static void what_a_source_has_learnt_travels_with_the_weights(void **state) {
  (void)state;
  workshop_write("gauge.ini",
                 "[run]\nepochs = 1\noutput = gauges\nname = run\n[plugins]\nload = gauge.so\n"
                 "[data]\nsource = gauge\nbatch = 64\n[data.valid]\nlevel = 60\n"
                 "[model]\ninputs = reading: f32[1]\ntargets = high: f32[1]\nlayers = fc: linear(1)\n"
                 "loss = mse\n[optimizer]\nlr = 0.1\n");
  json_t *result = workshop_tenon("train gauge.ini");
  double loss = trained(result, "valid.loss");
  json_decref(result);
  assert_true(loss > 5); /* of readings from 20 on, as in [data.train], it would be below 1 */
  workshop_do(
      "grep -aq 'tenon.data.*gauge.*mean.*2[0-9].*deviation' gauges/run/checkpoints/last/model.safetensors");
  result = workshop_tenon("eval gauge.ini");
  assert_near(workshop_number(result, "loss"), loss, 1e-6);
  json_decref(result);
  json_decref(
      workshop_tenon("train gauge.ini --resume gauges/run --set run.epochs=2 --set data.train.level=25"));
  workshop_do("grep -aq 'mean...2[123]' gauges/run/checkpoints/last/model.safetensors");
  assert_int_equal(workshop_run("$TENON conformance ./gauge.so"), 0);
}

static void a_transform_changes_training_and_leaves_validation_alone(void **state) {
  (void)state;
  workshop_write("cutout.ini",
                 "[run]\nmax_steps = 2\noutput =\n[plugins]\nload = cutout.so\n"
                 "[data]\nsource = random\nshape = 1, 8, 8\nclasses = 4\nsamples = 64\nbatch = 16\n"
                 "[data.train]\ntransforms = cutout(5)\n"
                 "[model]\ninputs = image: f32[1, 8, 8]\nlayers =\n    flatten\n    fc: linear(4)\n"
                 "loss = cross_entropy\n[optimizer]\nlr = 0\n");
  json_t *cut = workshop_tenon("train cutout.ini");
  json_t *whole = workshop_tenon("train cutout.ini --set 'data.train.transforms='");
  assert_true(trained(cut, "train.loss") != trained(whole, "train.loss"));
  assert_true(trained(cut, "valid.loss") == trained(whole, "valid.loss"));
  json_t *device = workshop_tenon("train cutout.ini --set data.device_transforms=1");
  assert_true(trained(cut, "train.loss") == trained(device, "train.loss"));
  json_decref(device);
  json_decref(cut);
  json_decref(whole);
}

static void a_precision_policy_changes_the_numbers_but_little(void **state) {
  (void)state;
  double low = loss_of("relu.ini --plugin ./bf16_products.so --set precision.policy=bf16_products");
  double full = loss_of("relu.ini");
  assert_true(low != full);
  assert_near(low, full, 0.01);
}

static void an_observer_hears_the_run(void **state) {
  (void)state;
  double best = 0;
  loss_of("relu.ini --plugin ./best_watch.so --set run.observers=best_watch --set "
          "observer.best_watch.file=best.txt");
  FILE *file = fopen("best.txt", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "lowest loss %lf", &best), 1);
  fclose(file);
  assert_true(best > 0.3 && best < 0.7);
}

/* At the end of an epoch, where the run ends before the next step; then in mid-epoch, after the steps that
 * run. */
static void an_observer_ends_the_run(void **state) {
  static const char stop[] =
      "relu.ini --plugin ./stop_below.so --set run.observers=stop_below --set run.epochs=500 "
      "--set run.output=stops --set run.name=run";
  (void)state;
  json_t *result = workshop_tenon("train %s --set observer.stop_below.loss=0.5", stop);
  assert_string_equal(json_string_value(json_object_get(result, "status")), "observer");
  const char *reason = json_string_value(json_object_get(result, "reason"));
  assert_ptr_equal(strstr(reason, "observer 'stop_below': the loss is 0."), reason);
  double epochs = workshop_number(result, "epochs");
  assert_true(epochs > 2 && epochs < 500);
  assert_true(workshop_number(result, "valid.loss") < 0.5 && workshop_number(result, "steps") == 8 * epochs);
  json_decref(result);
  workshop_do("test -f stops/run/checkpoints/last/model.safetensors");
  workshop_do("tail -1 stops/run/history.jsonl | grep -q '\"status\": \"observer\", \"reason\": \"observer "
              ".stop_below'");
  /* a resumed run goes on until it is asked again: one more epoch, where the loss is small already */
  result = workshop_tenon("train %s --set observer.stop_below.loss=0.5 --resume stops/run", stop);
  assert_string_equal(json_string_value(json_object_get(result, "status")), "observer");
  assert_true(workshop_number(result, "epochs") == epochs + 1);
  json_decref(result);
  result =
      workshop_tenon("train %s --set observer.stop_below.loss=0.6 --set observer.stop_below.steps=yes", stop);
  assert_string_equal(json_string_value(json_object_get(result, "status")), "observer");
  assert_true(workshop_number(result, "steps") > 0 && workshop_number(result, "epochs") < epochs);
  assert_true(workshop_number(result, "valid.loss") < 0.7); /* it was validated where it ended */
  json_decref(result);
}

/* All devices end at the same step. */
static void an_observer_ends_a_run_on_several_devices(void **state) {
  (void)state;
  json_t *result = workshop_tenon(
      "train relu.ini --plugin ./stop_below.so --plugin ./plain_backend.so --plugin ./round_table.so --set "
      "backend.use=plain --set distributed.devices=2 --set distributed.communicator=round_table --set "
      "run.epochs=500 "
      "--set run.observers=stop_below --set observer.stop_below.loss=0.5 --set "
      "observer.stop_below.steps=yes");
  assert_string_equal(json_string_value(json_object_get(result, "status")), "observer");
  json_decref(result);
}

/* A file in the plugin folder that cannot be loaded. */
static void the_doctor_names_a_plugin_that_cannot_be_loaded(void **state) {
  (void)state;
  if (STATIC_PLUGINS) skip(); /* there is no plugin folder */
  workshop_do("echo no plugin >$(pkg-config --variable=plugindir tenon)/broken.so");
  workshop_do("$TENON doctor >doctor.txt 2>doctor.err");
  workshop_do("grep -q '^missing    .*/broken.so: .*/broken.so: ' doctor.txt");
  workshop_do("grep -q \"^plugins    $(realpath $(pkg-config --variable=plugindir tenon)): [0-9]* files\" "
              "doctor.txt");
  workshop_do("rm $(pkg-config --variable=plugindir tenon)/broken.so");
}

static void a_backend_gives_the_losses_of_the_reference(void **state) {
  (void)state;
  double plain = loss_of("relu.ini --plugin ./plain_backend.so --set backend.use=plain");
  assert_true(plain == loss_of("relu.ini --set backend.use=cpu"));
}

static void a_communicator_sums_what_devices_have(void **state) {
  (void)state;
  double one = loss_of("relu.ini --plugin ./plain_backend.so --set backend.use=plain");
  double four =
      loss_of("relu.ini --plugin ./plain_backend.so --plugin ./round_table.so --set backend.use=plain "
              "--set distributed.devices=4 --set distributed.communicator=round_table");
  assert_true(fabs(one - four) < 1e-5);
  workshop_do("$TENON inspect round_table --plugin ./round_table.so | grep -q 'sums between threads'");
  assert_int_equal(workshop_run("$TENON train relu.ini --plugin ./plain_backend.so --set backend.use=plain "
                                "--set distributed.devices=4 2>none.txt"),
                   69);
  workshop_do("grep -q 'no communicator that is installed serves devices of backend' none.txt");
}

/* ---- loaded files ---- */

/* The dynamic linker reports the plugins that a run loads. */
static bool opened(const char *plugin) {
  return workshop_run("grep -q 'calling init: .*/tenon-%s.so' linker.*", plugin) == 0;
}

static void an_installed_run_opens_only_the_plugins_that_it_names(void **state) {
  (void)state;
  if (STATIC_PLUGINS) skip(); /* there are no files to open */
  workshop_do("LD_DEBUG=files LD_DEBUG_OUTPUT=linker $TENON train relu.ini");
  assert_true(opened("layers") && opened("losses") && opened("optimizers"));
  assert_false(opened("sources"));
  assert_false(opened("transforms"));
  workshop_do("rm linker.*; LD_DEBUG=files LD_DEBUG_OUTPUT=linker $TENON config explain run.seed");
  assert_false(opened("[a-z]*"));
}

static void every_public_header_is_installed(void **state) {
  (void)state;
  workshop_do("diff -r 'root%s/%s/tenon' '%s/../../../include/tenon'", PREFIX, INCLUDEDIR, EXAMPLES_FOLDER);
}

/* ---- size ---- */

static int lines_of(const char *example) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/%s.c", EXAMPLES_FOLDER, example);
  FILE *file = fopen(path, "r");
  int lines = 0;
  assert_non_null(file);
  for (int c = fgetc(file); c != EOF; c = fgetc(file)) lines += c == '\n';
  fclose(file);
  return lines;
}

static int most_lines_of(const char *example) {
  if (strcmp(example, "round_table") == 0) return 180;
  return strcmp(example, "swish") == 0 ? 120 : 80;
}

static void every_example_is_short(void **state) {
  (void)state;
  for (int i = 0; i < N_EXAMPLES; i++) {
    int lines = lines_of(examples[i]), most = most_lines_of(examples[i]);
    if (lines > most) fail_msg("%s.c has %d lines, expected at most %d", examples[i], lines, most);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_op_with_attribute_gradient_and_kernel_trains),
      cmocka_unit_test(an_attribute_reaches_the_kernel_and_the_gradient),
      cmocka_unit_test(a_wrong_attribute_is_reported_with_its_line),
      cmocka_unit_test(a_formula_needs_no_kernel),
      cmocka_unit_test(a_fused_kernel_speeds_up_a_model_that_never_heard_of_it),
      cmocka_unit_test(the_plan_lists_who_declined_and_why),
      cmocka_unit_test(a_layer_with_a_parameter_trains),
      cmocka_unit_test(a_layer_refuses_what_it_cannot_do_with_the_line_of_the_model),
      cmocka_unit_test(a_loss_trains),
      cmocka_unit_test(an_optimizer_trains),
      cmocka_unit_test(a_schedule_lowers_the_rate),
      cmocka_unit_test(a_source_gives_the_same_samples_to_any_number_of_workers),
      cmocka_unit_test(what_a_source_has_learnt_travels_with_the_weights),
      cmocka_unit_test(a_transform_changes_training_and_leaves_validation_alone),
      cmocka_unit_test(a_precision_policy_changes_the_numbers_but_little),
      cmocka_unit_test(an_observer_hears_the_run),
      cmocka_unit_test(the_doctor_names_a_plugin_that_cannot_be_loaded),
      cmocka_unit_test(an_observer_ends_the_run),
      cmocka_unit_test(an_observer_ends_a_run_on_several_devices),
      cmocka_unit_test(a_backend_gives_the_losses_of_the_reference),
      cmocka_unit_test(a_communicator_sums_what_devices_have),
      cmocka_unit_test(an_installed_run_opens_only_the_plugins_that_it_names),
      cmocka_unit_test(every_public_header_is_installed),
      cmocka_unit_test(every_example_is_short),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

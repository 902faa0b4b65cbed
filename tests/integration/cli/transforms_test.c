/* Transforms on the device: training has the bits of the same transforms on the host, on every backend. */
#include "transform_runs.h"

static void train_on_every_backend(const char *transforms, int n, int height, int width) {
  static const char *const backends[] = {"cpu", "sim", "onednn"};
  write_model(transforms, height, width);
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) train_both_ways(backends[i], n, "");
}

static void each_transform_has_the_bits_of_the_host(void **state) {
  (void)state;
  train_on_every_backend("to_float", 1, 28, 28);
  train_on_every_backend("normalize(mean=0.13, std=0.31)", 1, 28, 28);
  train_on_every_backend("to_float, center_crop([20, 23])", 1, 20, 23);
  train_on_every_backend("random_crop(28, padding=4), to_float", 2, 28, 28);
  train_on_every_backend("random_crop([20, 25]), center_crop([20, 25]), to_float", 3, 20, 25);
  train_on_every_backend("to_float, random_crop(24), center_crop(24)", 2, 24, 24);
  train_on_every_backend("random_flip, to_float", 2, 28, 28);
  train_on_every_backend("to_float, random_flip(p=0.3, direction=vertical)", 1, 28, 28);
  train_on_every_backend("resize([37, 19]), to_float", 2, 37, 19);
  train_on_every_backend("resize(13), to_float", 2, 13, 13);
}

static void every_suffix_of_a_chain_has_the_bits_of_the_host(void **state) {
  (void)state;
  train_on_every_backend(chain, 5, 36, 36);
}

static void so_it_is_with_micro_batches_ranks_and_low_precision(void **state) {
  (void)state;
  write_model(chain, 36, 36);
  train_both_ways("sim", 5, "--set optimizer.accumulate=2");
  train_both_ways("sim", 5,
                  "--set distributed.devices=2 --set backend.sim.devices=2 --set data.valid.batch=10");
  train_both_ways("cpu", 5, "--set precision.policy=bf16");
  train_both_ways("sim", 5, "--set backend.sim.order=lazy --set backend.capture=no --set data.workers=0");
}

/* Differentiation replaces global_avg_pool by its decomposition, and moves the states of the model to the
 * front of the graph. The policy must tell the model from the transforms all the same: the products of resize
 * have sums up to 2^24, which only f32 holds. */
static void low_precision_leaves_them_in_f32_for_every_model(void **state) {
  (void)state;
  static const char deep_model[] =
      "[run]\nname = run\nepochs = 1\nseed = 3\n[data]\nsource = digits\nepoch = 40\nbatch = 8\nworkers = 1\n"
      "transforms = resize([33, 19]), to_float\n[data.valid]\nbatch = 20\nepoch = 20\n"
      "[model]\ninputs = image: f32[1, 33, 19]\nlayers =\n"
      "    c1: conv2d(4, kernel=3)\n    n1: batch_norm\n    relu\n"
      "    c2: conv2d(4, kernel=3)\n    n2: batch_norm\n    relu\n"
      "    c3: conv2d(4, kernel=3)\n    n3: batch_norm\n    global_avg_pool\n    fc: linear(10)\n"
      "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.05\n";
  file_write("model.ini", deep_model);
  train_both_ways("cpu", 2, "--set precision.policy=bf16");
  train_both_ways("sim", 2, "--set precision.policy=fp16");
}

static void evaluation_uses_them(void **state) {
  (void)state;
  write_model(chain, 36, 36);
  program_json(0, "train model.ini --output o --set backend.use=cpu");
  static const char ask[] =
      "eval model.ini --weights o/run/checkpoints/last/model.safetensors --set backend.use=%s";
  double loss = program_number(program_json(0, ask, "cpu"), "loss");
  assert_true(program_number(program_json(0, ask, "sim"), "loss") == loss);
}

/* "train random_crop device, ..." of a plan. */
static const char *places(const json_t *plan) {
  static char text[1024];
  const json_t *one;
  size_t i;
  text[0] = '\0';
  json_array_foreach(program_member(plan, "transforms"), i, one) {
    const char *reason = json_string_value(json_object_get(one, "reason"));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s %s%s%s", i > 0 ? ", " : "",
             json_string_value(json_object_get(one, "data")), json_string_value(json_object_get(one, "name")),
             json_string_value(json_object_get(one, "on")), reason != NULL ? ": " : "",
             reason != NULL ? reason : "");
  }
  return text;
}

/* A batch of 8: images, labels i32, weights f32, the rate, draws of two pairs. */
static void the_plan_says_where_transforms_run(void **state) {
  (void)state;
  write_model(chain, 36, 36);
  const json_t *cpu = program_json(0, "plan model.ini --set backend.use=cpu");
  assert_string_equal(
      places(cpu), "train random_crop host, train random_flip host, train resize host, train center_crop "
                   "host, train normalize host, valid resize host, valid center_crop host, valid normalize "
                   "host");
  const json_t *sim = program_json(0, "plan model.ini --set backend.use=sim");
  assert_string_equal(places(sim),
                      "train random_crop device, train random_flip device, train resize device, train "
                      "center_crop device, train normalize device, valid resize device, valid center_crop "
                      "device, valid normalize device");
  double saved = program_number(cpu, "batch_bytes") - program_number(sim, "batch_bytes");
  assert_true(saved == 8 * (36 * 36 * 4 - 28 * 28 - 2 * 2 * 4));
}

static void auto_stops_where_the_batch_would_grow_or_a_transform_has_no_build(void **state) {
  (void)state;
  write_model("center_crop(20), random_flip, to_float", 20, 20);
  assert_string_equal(places(program_json(0, "plan model.ini --set backend.use=sim")),
                      "train center_crop host: would make the batch larger on the device, train random_flip "
                      "device, train to_float device, valid center_crop host: would make the batch larger on "
                      "the device, valid to_float device");
  write_model("random_flip, random_resized_crop(20), to_float", 20, 20);
  assert_string_equal(places(program_json(0, "plan model.ini --set backend.use=sim "
                                             "--set data.valid.transforms=resize(20),to_float")),
                      "train random_flip host, train random_resized_crop host: has no form for the device "
                      "(build), train to_float device, valid resize host: would make the batch larger on the "
                      "device, valid to_float device");
}

/* The sizes of the operands are those of the data. */
static void a_plan_without_data_has_all_transforms_on_the_host(void **state) {
  (void)state;
  write_model("to_float", 28, 28);
  const json_t *plan = program_json(0, "plan model.ini --set backend.use=sim --set data.source=image_folder "
                                       "--set data.folder=missing");
  assert_string_equal(places(plan), "train to_float host, valid to_float host");
  const char *warning = strstr(program_err, "the plan has all transforms on the host: ");
  assert_non_null(warning);
  assert_null(strstr(warning + 1, "the plan has all transforms on the host: ")); /* once for both splits */
  assert_non_null(strstr(program_err, "missing: there is no such folder"));
  assert_int_not_equal(program_run("train model.ini --set backend.use=sim --set data.source=image_folder "
                                   "--set data.folder=missing"),
                       0);
  assert_non_null(strstr(program_err, "missing: there is no such folder"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(each_transform_has_the_bits_of_the_host),
      CASE(every_suffix_of_a_chain_has_the_bits_of_the_host),
      CASE(so_it_is_with_micro_batches_ranks_and_low_precision),
      CASE(low_precision_leaves_them_in_f32_for_every_model),
      CASE(evaluation_uses_them),
      CASE(the_plan_says_where_transforms_run),
      CASE(a_plan_without_data_has_all_transforms_on_the_host),
      CASE(auto_stops_where_the_batch_would_grow_or_a_transform_has_no_build),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* [adapt]: adapters of low rank, their files, and merged weights. make_adapters.py and compare_lora.py of
 * tests/golden compare them with PEFT's. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tensors.h"

#define NET                                                                                                  \
  "[run]\nname = net\nseed = 3\nmax_steps = 12\n"                                                            \
  "[data]\nsource = digits\nbatch = 16\nepoch = 320\ntransforms = to_float\n"                                \
  "[data.valid]\nbatch = 50\nepoch = 50\n"                                                                   \
  "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"                                                      \
  "    conv:  conv2d(4, kernel=5, padding=2)\n           relu\n           max_pool(4)\n           flatten\n" \
  "    fc1:   linear(12)\n           relu\n    fc2:   linear(10)\n"                                          \
  "loss = cross_entropy\nmetrics = accuracy\n"                                                               \
  "[optimizer]\ntype = adamw\nlr = 0.02\n"
#define ADAPT "[adapt]\nmatch = conv, fc1\nrank = 4\nalpha = 8\ntrain = fc2.*\n"

static const char base[] = "base/net/checkpoints/last/model.safetensors",
                  adapters[] = "out/lora/checkpoints/last/model.safetensors",
                  peft[] = "out/lora/checkpoints/last/adapter_model.safetensors";

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

/* The base, in base/, and adapters.ini beside it. */
static void write_base(const char *more) {
  char text[2048];
  file_write("net.ini", NET);
  snprintf(text, sizeof text, "%s" ADAPT "%s[weights]\nfile = %s\n", NET, more, base);
  file_write("adapters.ini", text);
  assert_int_equal(program_run("train net.ini --output base --set run.max_steps=4"), 0);
}

static void train(const char *more) {
  if (program_run("train adapters.ini --output out --set run.name=lora %s", more) != 0)
    fail_msg("%s", program_err);
}

static double loss_of(const char *words) { return program_number(program_json(0, "eval %s", words), "loss"); }

/* The types of [adapt], and lines of it. */
static const char *const types[] = {"lora", "dora"};
static const char *of_type(int type, const char *more) {
  static char text[128];
  snprintf(text, sizeof text, "type = %s\n%s", types[type], more);
  return text;
}

static void clear(void) {
  assert_int_equal(system("rm -rf base out half again merged.safetensors elsewhere.safetensors"), 0);
}

static void adapters_and_the_head_are_trained_and_saved_alone(void **state) {
  (void)state;
  write_base("dropout = 0.1\n");
  train("");
  static const char *const kept[] = {"conv.weight", "conv.bias", "fc1.weight", "fc1.bias"},
                           *const saved[] = {"conv.lora_A.weight", "conv.lora_B.weight", "fc1.lora_A.weight",
                                             "fc1.lora_B.weight",  "fc2.weight",         "fc2.bias"};
  char name[64];
  size_t n = 0;
  for (int i = 0; i < 4; i++) assert_false(tensor_exists(adapters, kept[i]));
  for (int i = 0; i < 6; i++) {
    assert_true(tensor_exists(adapters, saved[i]));
    snprintf(name, sizeof name, "base_model.model.%s", saved[i]);
    assert_true(tensor_exists(peft, name));
  }
  const float *up = tensor_find(adapters, "fc1.lora_B.weight", &n);
  assert_int_equal(n, 12 * 4);
  double most = 0;
  for (size_t i = 0; i < n; i++) most = up[i] > most ? up[i] : most;
  assert_true(most > 1e-3); /* zeros at first */
  assert_true(tensor_distance(base, adapters, "fc2.weight") > 0);
  const json_t *plan = file_json("out/lora/plan.json");
  assert_int_equal(program_number(plan, "parameters"), 4 * 25 + 4 * 4 + 4 * 196 + 12 * 4 + 12 * 10 + 10);
  const json_t *config = file_json("out/lora/checkpoints/last/adapter_config.json");
  assert_int_equal(program_number(config, "r"), 4);
  assert_string_equal(json_string_value(json_array_get(json_object_get(config, "modules_to_save"), 0)),
                      "fc2");
  assert_true(json_is_false(json_object_get(config, "use_dora")));
}

/* The norms begin as those of the base, and are trained. */
static void norms_of_units_are_trained_and_saved(void **state) {
  (void)state;
  size_t n = 0, m = 0;
  write_base(of_type(1, ""));
  train("--set run.epochs=0 --set run.max_steps=0");
  const float *norms = tensor_find(adapters, "fc1.lora_magnitude_vector", &n),
              *weight = tensor_find(base, "fc1.weight", &m);
  assert_true(norms != NULL && weight != NULL && n == 12 && m == 12 * 196);
  for (int i = 0; i < 12; i++) {
    double sum = 0;
    for (int k = 0; k < 196; k++) sum += (double)weight[i * 196 + k] * weight[i * 196 + k];
    assert_true(fabs((double)norms[i] - sqrt(sum)) < 1e-6 * sqrt(sum));
  }
  assert_true(tensor_exists(peft, "base_model.model.conv.lora_magnitude_vector"));
  assert_true(
      json_is_true(json_object_get(file_json("out/lora/checkpoints/last/adapter_config.json"), "use_dora")));
  assert_int_equal(rename("out", "again"), 0);
  train("");
  assert_true(tensor_distance("again/lora/checkpoints/last/model.safetensors", adapters,
                              "fc1.lora_magnitude_vector") > 1e-3);
  assert_int_equal(program_number(file_json("out/lora/plan.json"), "parameters"),
                   4 * 25 + 4 * 4 + 4 * 196 + 12 * 4 + 12 * 10 + 10 + 4 + 12);
}

/* Validation reads the adapters beside the weights; evaluation and the merged file have them in the weights.
 */
static void expect_merged(int type) {
  write_base(of_type(type, ""));
  const json_t *result = program_json(0, "train adapters.ini --output out --set run.name=lora");
  double trained = program_number(result, "valid.loss"), before = loss_of("net.ini --weights base/net");
  double merged = loss_of("adapters.ini --weights out/lora/checkpoints/last");
  assert_true(before - trained > 1e-3);
  assert_true(merged - trained < 1e-5 && trained - merged < 1e-5);
  assert_int_equal(program_run("checkpoint merge out/lora/checkpoints/last merged.safetensors"), 0);
  double file = loss_of("net.ini --weights merged.safetensors");
  assert_true(file - merged < 1e-6 && merged - file < 1e-6);
  assert_true(tensor_distance(base, "merged.safetensors", "conv.bias") == 0);
  assert_true(tensor_distance(base, "merged.safetensors", "fc1.weight") > 1e-3);
  assert_int_equal(program_run("checkpoint merge out/lora merged.safetensors"), 65);
  says("exists, and is not overwritten");
  assert_int_equal(program_run("checkpoint merge base/net other.safetensors"), 65);
  says("holds no adapters that a run with [adapt] has written");
}

static void merged_weights_give_the_same_numbers(void **state) {
  (void)state;
  for (int type = 0; type < 2; type++) {
    expect_merged(type);
    clear();
  }
}

static void expect_resumed(int type) {
  write_base(of_type(type, "dropout = 0.2\n"));
  train("");
  assert_int_equal(program_run("train adapters.ini --output half --set run.name=lora --set run.max_steps=5"),
                   0);
  assert_int_equal(program_run("train adapters.ini --output half --set run.name=lora --resume auto"), 0);
  files_equal("half/lora/checkpoints/last/model.safetensors", adapters);
  files_equal("half/lora/checkpoints/last/optimizer.safetensors",
              "out/lora/checkpoints/last/optimizer.safetensors");
}

static void a_run_with_adapters_resumes(void **state) {
  (void)state;
  for (int type = 0; type < 2; type++) {
    expect_resumed(type);
    clear();
  }
}

/* From the run's own file, and from that of PEFT, which does not name its base. */
static void expect_loaded(int type) {
  static const char *const names[] = {"conv.lora_A.weight", "conv.lora_B.weight", "fc1.lora_B.weight",
                                      "fc2.bias"};
  static const char again[] = "again/lora/checkpoints/last/model.safetensors";
  char more[256];
  write_base(of_type(type, ""));
  train("");
  for (int way = 0; way < 2; way++) {
    snprintf(more, sizeof more, "--set run.max_steps=0 --set run.epochs=0 --weights %s%s",
             way ? peft : "out/lora/checkpoints/last",
             way ? " --set weights.base=base/net/checkpoints/last/model.safetensors" : "");
    assert_int_equal(program_run("train adapters.ini --output again --set run.name=lora %s", more), 0);
    for (int i = 0; i < 4; i++) assert_true(tensor_distance(again, adapters, names[i]) == 0);
  }
  double whole = loss_of("adapters.ini --weights out/lora/checkpoints/last");
  snprintf(more, sizeof more, "adapters.ini --weights %s --set weights.base=%s", peft, base);
  assert_true(loss_of(more) == whole);
}

static void adapters_are_loaded_again(void **state) {
  (void)state;
  for (int type = 0; type < 2; type++) {
    expect_loaded(type);
    clear();
  }
}

static void missing_parts_are_named(void **state) {
  (void)state;
  write_base("");
  train("");
  assert_int_equal(program_run("eval net.ini --weights out/lora"), 65);
  says("holds adapters alone, and the configuration has no [adapt]");
  assert_int_equal(program_run("eval adapters.ini --weights %s", peft), 65);
  says("give their place, as in [weights] base = gpt2.safetensors");
  assert_int_equal(program_run("eval adapters.ini --weights %s --set weights.base=%s", peft, adapters), 65);
  says("is a file of adapters, expected the weights that they belong to");
  assert_int_equal(program_run("train adapters.ini --set weights.file="), 65);
  says("[adapt] without weights: adapters are trained beside weights that stay as they are");
  assert_int_equal(rename(base, "elsewhere.safetensors"), 0);
  assert_int_equal(program_run("eval adapters.ini --weights out/lora/checkpoints/last"), 65);
  says("net/checkpoints/last/model.safetensors are not there");
  assert_int_equal(
      program_run(
          "eval adapters.ini --weights out/lora/checkpoints/last --set weights.base=elsewhere.safetensors"),
      0);
}

/* Embeddings, and adapters of several ranks; the groups of the optimizer divide them. */
static void expect_several(const char *type) {
  static const char text[] =
      "[run]\nname = lm\nseed = 1\nmax_steps = 6\n"
      "[data]\nsource = random\nfields = x: i32[8] 0..31\ntargets = y: i32[]\nclasses = 4\nbatch = 8\n"
      "[model]\ninputs = x: i32[8]\ntargets = y: i32[]\nlayers =\n    wte: embedding(32, 6)\n    flatten\n"
      "    mix: linear(8)\n    fc: linear(4)\nloss = cross_entropy\n[optimizer]\ntype = adamw\nlr = 0.01\n";
  char more[1024];
  file_write("lm.ini", text);
  assert_int_equal(program_run("train lm.ini --output base"), 0);
  snprintf(more, sizeof more,
           "%s[group.up]\nmatch = *.lora_B.weight\nlr = 0.1\n[adapt]\ntype = %s\nmatch = wte\nrank = "
           "2\n[adapt.rest]\ntype = %s\nmatch = *\nrank = 3\nrslora = "
           "yes\n[weights]\nfile = base/lm\n",
           text, type, type);
  file_write("lora.ini", more);
  if (program_run("train lora.ini --output out --set run.max_steps=6") != 0) fail_msg("%s", program_err);
  const char *last = "out/lm/checkpoints/last/model.safetensors";
  size_t n;
  tensor_find(last, "wte.lora_embedding_A", &n);
  assert_int_equal(n, 2 * 32);
  tensor_find(last, "fc.lora_B.weight", &n);
  assert_int_equal(n, 4 * 3);
  assert_int_equal(program_run("checkpoint merge out/lm/checkpoints/last merged.safetensors"), 0);
  double merged = loss_of("lm.ini --weights merged.safetensors"),
         own = loss_of("lora.ini --weights out/lm/checkpoints/last");
  assert_true(merged - own < 1e-6 && own - merged < 1e-6);
  const json_t *config = file_json("out/lm/checkpoints/last/adapter_config.json");
  assert_int_equal(json_integer_value(json_object_get(json_object_get(config, "rank_pattern"), "fc")), 3);
}

static void embeddings_and_several_adapters(void **state) {
  (void)state;
  for (int type = 0; type < 2; type++) {
    expect_several(types[type]);
    clear();
  }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {CASE(adapters_and_the_head_are_trained_and_saved_alone),
                                     CASE(norms_of_units_are_trained_and_saved),
                                     CASE(merged_weights_give_the_same_numbers),
                                     CASE(a_run_with_adapters_resumes),
                                     CASE(adapters_are_loaded_again),
                                     CASE(missing_parts_are_named),
                                     CASE(embeddings_and_several_adapters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

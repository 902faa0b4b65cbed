/* `tenon checkpoint average`: means of weights, greedy soups, and running statistics of the mean. */
#include <math.h>
#include <stdbool.h>

#include "configs.h"
#include "program.h"

/* A batch norm, whose running statistics belong to its weights. */
static const char norm_ini[] =
    "[run]\nname = norm\nepochs = 1\n[data]\nsource = random\nshape = 4\nclasses = 3\n"
    "samples = 96\nbatch = 8\nworkers = 0\n[model]\ninputs = image: f32[4]\nlayers =\n"
    "    fc1: linear(8)\n    bn: batch_norm\n        relu\n    fc2: linear(3)\n"
    "loss = cross_entropy\nmetrics = accuracy\n[optimizer]\ntype = adamw\nlr = 0.01\n"
    "[group.no_decay]\nmatch = *.bias\nlr = 0.02\nweight_decay = 0\n[backend]\nuse = cpu\n";

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it printed: %s", text, program_err);
}

static void train_two(void) {
  file_write("norm.ini", norm_ini);
  assert_int_equal(program_run("train norm.ini --quiet --set run.name=a --set run.seed=1"), 0);
  assert_int_equal(program_run("train norm.ini --quiet --set run.name=b --set run.seed=2"), 0);
}

/* Element 0 of a tensor, as a .npy file. */
static double first_of(const char *weights, const char *tensor) {
  char path[256];
  float value;
  size_t n;
  static int count;
  snprintf(path, sizeof path, "arrays%d", ++count);
  assert_int_equal(program_run("checkpoint convert %s %s", weights, path), 0);
  snprintf(path, sizeof path, "arrays%d/%s.npy", count, tensor);
  const char *bytes = file_read(path, &n);
  const unsigned char *head = (const unsigned char *)bytes;
  memcpy(&value, bytes + 10 + head[8] + 256 * head[9], sizeof value);
  return value;
}

static void the_mean_has_new_running_statistics(void **state) {
  (void)state;
  train_two();
  const json_t *r = program_json(0, "checkpoint average runs/a runs/b -o soup.safetensors");
  assert_true(json_is_true(program_member(r, "renewed")));
  assert_int_equal(json_array_size(program_member(r, "from")), 2);
  r = program_json(0, "checkpoint average runs/a runs/b --keep-statistics -o plain.safetensors");
  assert_false(json_is_true(program_member(r, "renewed")));
  double mean = (first_of("runs/a", "fc1.weight") + first_of("runs/b", "fc1.weight")) / 2;
  assert_true(fabs(first_of("plain.safetensors", "fc1.weight") - mean) < 1e-6);
  mean = (first_of("runs/a", "bn.running_var") + first_of("runs/b", "bn.running_var")) / 2;
  assert_true(fabs(first_of("plain.safetensors", "bn.running_var") - mean) < 1e-5);
  /* the pass over the data changes the running statistics alone, and leaves no other file */
  r = program_json(3, "checkpoint diff soup.safetensors plain.safetensors");
  const json_t *tensors = program_member(r, "tensors");
  for (size_t i = 0; i < json_array_size(tensors); i++) {
    const json_t *t = json_array_get(tensors, i);
    bool statistic = strstr(program_text(t, "path"), "running_") != NULL;
    assert_int_equal(program_number(t, "largest") > 0, statistic);
  }
  assert_int_equal(program_run("eval norm.ini --quiet --weights soup.safetensors"), 0);
  assert_false(file_exists("runs/statistics"));
}

static void a_greedy_soup_is_as_good_as_its_best_part(void **state) {
  (void)state;
  train_two();
  const json_t *r =
      program_json(0, "checkpoint average runs/a runs/b --greedy --keep-statistics -o soup.safetensors");
  double alone = program_number(r, "best_alone");
  assert_string_equal(program_text(r, "metric"), "accuracy");
  assert_true(program_number(program_json(0, "eval norm.ini --quiet --weights soup.safetensors"),
                             "accuracy") >= alone);
}

static void weights_of_other_models_are_refused(void **state) {
  (void)state;
  train_two();
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet --set backend.use=cpu"), 0);
  program_expect(program_run("checkpoint average runs/a runs/noise -o soup.safetensors"), 65);
  says("expected weights of one model");
  program_expect(program_run("checkpoint average runs/a runs/b -o runs/a"), 65);
  says("runs/a: exists, and is not overwritten");
  program_expect(program_run("checkpoint average runs/a runs/b"), 2);
  says("expected -o FILE.safetensors");
  program_expect(program_run("checkpoint average runs/a nowhere -o soup.safetensors"), 74);
  assert_int_equal(program_run("checkpoint convert runs/a a.safetensors"), 0);
  program_expect(program_run("checkpoint average a.safetensors --greedy -o soup.safetensors"), 65);
  says("a.safetensors: is not in a run folder, and --greedy needs its config.ini");
  assert_false(file_exists("soup.safetensors"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {IN_FOLDER(the_mean_has_new_running_statistics),
                                     IN_FOLDER(a_greedy_soup_is_as_good_as_its_best_part),
                                     IN_FOLDER(weights_of_other_models_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

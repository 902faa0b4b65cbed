/* [data] balance: every class equally often, from a source that tells the classes of its samples. */
#include <math.h>

#include "program.h"

enum { SAMPLES = 120, PIXELS = 4 };

/* 100 pictures of class 0, 16 of class 1 and 4 of class 2, in the format of MNIST. With `blank` ones a model
 * can learn nothing but how often the classes come. */
static void write_data(int blank) {
  unsigned char images[16 + SAMPLES * PIXELS] = {0, 0, 8, 3, 0, 0, 0, SAMPLES, 0, 0, 0, 2, 0, 0, 0, 2},
                                      labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, 0, SAMPLES};
  for (int i = 0; i < SAMPLES; i++) {
    labels[8 + i] = i < 100 ? 0 : i < 116 ? 1 : 2;
    for (int k = 0; k < PIXELS; k++)
      images[16 + i * PIXELS + k] = (unsigned char)(blank ? 0 : (i * 37 + k * 11) % 251);
  }
  file_write_bytes("images", images, sizeof images);
  file_write_bytes("labels", labels, sizeof labels);
  file_write("net.ini", "[run]\nname = run\nepochs = 40\n"
                        "[data]\nsource = idx\nimages = images\nlabels = labels\nbatch = 12\n"
                        "transforms = to_float\n"
                        "[model]\ninputs = image: f32[1, 2, 2]\nlayers =\n    flatten\n    fc: linear(3)\n"
                        "loss = cross_entropy\nmetrics = accuracy\n"
                        "[optimizer]\ntype = sgd\nlr = 0.1\n");
}

/* The loss of the best guess is the entropy of the classes: of 1/3 each, ln 3. */
static void the_model_sees_every_class_equally_often(void **state) {
  (void)state;
  write_data(1);
  const double even = log(3), p[] = {100 / 120.0, 16 / 120.0, 4 / 120.0};
  double uneven = 0;
  for (int i = 0; i < 3; i++) uneven -= p[i] * log(p[i]);
  const json_t *r = program_json(0, "train net.ini --set data.balance=yes --set optimizer.lr=0.01");
  assert_true(fabs(program_number(r, "train.loss") - even) < 0.01);
  r = program_json(0, "train net.ini --set optimizer.lr=0.3");
  assert_true(fabs(program_number(r, "train.loss") - uneven) < 0.02);
}

static void the_first_lines_have_the_sizes_of_the_classes(void **state) {
  (void)state;
  write_data(0);
  const json_t *r = program_json(0, "train net.ini --set data.balance=yes --set run.epochs=1");
  assert_int_equal(program_number(r, "steps"), 10); /* an epoch is as long as before */
  assert_string_equal(json_string_value(json_array_get(program_member(r, "remarks"), 0)),
                      "balance: every class equally often; a class has 4 to 100 samples");
}

static void a_balanced_run_is_resumed(void **state) {
  (void)state;
  write_data(0);
  program_json(0, "train net.ini --output whole --set data.balance=yes --set run.epochs=3");
  program_json(0, "train net.ini --output parts --set data.balance=yes --set run.epochs=3 "
                  "--set run.max_steps=14");
  program_json(0, "train net.ini --output parts --set data.balance=yes --set run.epochs=3 --resume auto");
  checkpoints_equal("whole", "parts");
  program_json(0,
               "train net.ini --output other --set data.balance=yes --set run.epochs=3 --set data.workers=0");
  checkpoints_equal("whole", "other");
}

static void several_devices_have_the_samples_of_one(void **state) {
  (void)state;
  write_data(0);
  static const char run[] = "train net.ini --set data.balance=yes --set run.epochs=2 --set backend.use=sim";
  double one = program_number(program_json(0, "%s", run), "train.loss");
  const json_t *two = program_json(0, "%s --set backend.sim.devices=2 --set distributed.devices=2", run);
  assert_int_equal(program_number(two, "devices"), 2);
  assert_true(fabs(program_number(two, "train.loss") - one) < 1e-5);
  const json_t *plain = program_json(0, "train net.ini --set run.epochs=2 --set backend.use=sim");
  assert_true(fabs(program_number(plain, "train.loss") - one) > 1e-2);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(the_model_sees_every_class_equally_often),
      CASE(the_first_lines_have_the_sizes_of_the_classes),
      CASE(a_balanced_run_is_resumed),
      CASE(several_devices_have_the_samples_of_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

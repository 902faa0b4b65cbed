/* `tenon data`: the batches that training and validation get. */
#include <math.h>

#include "configs.h"
#include "program.h"

static const char numbers_ini[] =
    "[data]\nsource = random\nshape = [2]\nclasses = 3\nbatch = 8\nepoch = 64\n"
    "[model]\ninputs = x: f32[2]\nlayers =\n    fc: linear(3)\nloss = cross_entropy\n";

static void fields_classes_and_speed_are_told(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *r = program_json(0, "data digits.ini --set data.epoch=256");
  const json_t *fields = program_member(r, "train.fields"), *image = json_array_get(fields, 0),
               *label = json_array_get(fields, 1);
  assert_string_equal(program_text(r, "train.source"), "digits");
  assert_int_equal(program_number(r, "train.samples"), 256);
  assert_int_equal(program_number(r, "train.looked_at"), 256);
  assert_true(program_number(r, "train.per_s") > 0);
  assert_string_equal(program_text(image, "name"), "image");
  assert_string_equal(program_text(image, "role"), "input");
  assert_string_equal(program_text(image, "type"), "f32[1, 28, 28]");
  assert_true(program_number(image, "min") < program_number(image, "mean"));
  assert_true(program_number(image, "mean") < program_number(image, "max"));
  assert_true(program_number(image, "deviation") > 0);
  assert_int_equal(program_number(image, "number"), 256 * 28 * 28);
  assert_int_equal(program_number(image, "missing"), 0);
  assert_int_equal(program_number(label, "classes"), 10);
  assert_int_equal(json_array_size(program_member(r, "train.classes")), 10);
  double sum = 0;
  for (size_t i = 0; i < 10; i++)
    sum += program_number(json_array_get(program_member(r, "train.classes"), i), "samples");
  assert_int_equal(sum, 256);
  assert_true(json_is_object(program_member(r, "valid")));
  assert_int_equal(program_run("data digits.ini --set data.epoch=256"), 0);
  assert_non_null(strstr(program_out, "training    digits: 256 samples in an epoch"));
  assert_non_null(strstr(program_out, "input   image"));
  assert_non_null(strstr(program_out, "classes 0 "));
  assert_false(file_exists("runs"));
}

static void the_first_batch_is_a_picture(void **state) {
  (void)state;
  static const unsigned char head[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  char bytes[24];
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("data digits.ini --picture batch.png --set data.epoch=64 --set data.batch=9"),
                   0);
  assert_non_null(strstr(program_out, "batch.png is written: the first batch of training"));
  FILE *file = fopen("batch.png", "rb");
  assert_non_null(file);
  assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
  fclose(file);
  assert_memory_equal(bytes, head, sizeof head);
  assert_int_equal(bytes[19], 3 * 28 + 2 * 2); /* width, of three tiles */
}

static void mistakes_are_named(void **state) {
  (void)state;
  file_write("numbers.ini", numbers_ini);
  assert_int_equal(program_run("data numbers.ini --picture x.png"), 65);
  assert_non_null(strstr(program_err,
                         "x.png: no field is a picture, expected one of u8 or f32[1 or 3, height, "
                         "width]"));
  assert_false(file_exists("x.png"));
  assert_int_equal(program_run("data numbers.ini --set data.source=none"), 65);
  assert_int_equal(program_run("data missing.ini"), 74);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(fields_classes_and_speed_are_told),
      CASE(the_first_batch_is_a_picture),
      CASE(mistakes_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `tenon predict` and `tenon eval --classes` on pictures: the transforms of validation, and names that travel
 * with the weights. */
#include <png.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "npy_files.h"

static const char colors_ini[] =
    "[run]\nname = colors\nepochs = 3\n"
    "[data]\nsource = image_folder\nfolder = pictures\nbatch = 2\n"
    "transforms =\n    resize([4, 4])\n    to_float\n    normalize(mean=0.5, std=0.25)\n"
    "[data.train]\nsize = 0\n[data.valid]\nsize = 0\n"
    "[model]\ninputs = image: f32[3, 4, 4]\nlayers =\n    flatten\n    fc: linear(2)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = sgd\nlr = 0.1\n";

/* A picture of one color. */
static void write_picture(const char *path, unsigned side, unsigned char red, unsigned char blue) {
  unsigned char pixels[3 * 16 * 16];
  assert_true(side <= 16);
  for (unsigned i = 0; i < side * side; i++) {
    pixels[3 * i] = red;
    pixels[3 * i + 1] = 0;
    pixels[3 * i + 2] = blue;
  }
  png_image image = {.version = PNG_IMAGE_VERSION, .width = side, .height = side, .format = PNG_FORMAT_RGB};
  assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

static void write_class(const char *part, const char *name, unsigned char red, unsigned char blue) {
  char path[64];
  snprintf(path, sizeof path, "pictures/%s", part);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "pictures/%s/%s", part, name);
  mkdir(path, 0777);
  for (unsigned i = 0; i < 8; i++) {
    snprintf(path, sizeof path, "pictures/%s/%s/%u.png", part, name, i);
    write_picture(path, 4 + i, (unsigned char)(red - i), (unsigned char)(blue - i));
  }
}

/* Trains on red and blue pictures, then moves them away. */
static int set_up(void **state) {
  if (program_open(state) != 0) return -1;
  mkdir("pictures", 0777);
  for (int part = 0; part < 2; part++) {
    write_class(part ? "valid" : "train", "blue \"sky\"", 20, 220);
    write_class(part ? "valid" : "train", "red", 220, 20);
  }
  file_write("colors.ini", colors_ini);
  assert_int_equal(program_run("train colors.ini"), 0);
  return rename("pictures", "kept");
}

static const char *top_name(const json_t *r, size_t i) {
  const json_t *one = json_array_get(program_member(r, "predictions"), i);
  return json_string_value(json_object_get(json_array_get(json_object_get(one, "top"), 0), "name"));
}

static void a_picture_gets_the_names_of_training(void **state) {
  (void)state;
  write_picture("a.png", 9, 255, 0);
  write_picture("b.png", 16, 0, 255);
  const json_t *r = program_json(0, "predict colors.ini --input a.png --input b.png");
  assert_int_equal(program_number(r, "rows"), 2);
  assert_string_equal(top_name(r, 0), "red");
  assert_string_equal(top_name(r, 1), "blue \"sky\"");
  assert_int_equal(program_run("predict colors.ini --input a.png --top 1"), 0);
  assert_non_null(strstr(program_out, "a.png   red "));
  assert_null(strstr(program_out, "sky"));
  assert_int_equal(program_run("predict colors.ini --input b.png --csv"), 0);
  assert_non_null(
      strstr(program_out, "input,rank,class,name,probability\n\"b.png\",1,0,\"blue \"\"sky\"\"\","));
}

/* A spreadsheet takes a text for a formula that begins with one of =, +, - and @; not behind an apostrophe.
 */
static void csv_has_no_formulas(void **state) {
  (void)state;
  static const char *const names[] = {"=HYPERLINK(1).png", "+1.png", "@a.png"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char line[64];
    write_picture(names[i], 9, 255, 0);
    assert_int_equal(program_run("predict colors.ini --input %s --csv", names[i]), 0);
    snprintf(line, sizeof line, "\n\"'%s\",1,", names[i]);
    if (strstr(program_out, line) == NULL) fail_msg("%s: %s", names[i], program_out);
  }
}

/* A class folder in another encoding keeps the names of the others. */
static void a_class_that_is_not_utf_8_has_a_name(void **state) {
  (void)state;
  assert_int_equal(rename("kept", "pictures"), 0);
  for (int part = 0; part < 2; part++) write_class(part ? "valid" : "train", "vert\xe9", 20, 20);
  char text[sizeof colors_ini];
  memcpy(text, colors_ini, sizeof text);
  *strstr(text, "2)\nloss") = '3';
  file_write("latin.ini", text);
  assert_int_equal(program_run("train latin.ini --output latin"), 0);
  write_picture("a.png", 9, 255, 0);
  const json_t *r = program_json(0, "predict latin/colors --input a.png --top 3");
  const json_t *top = json_object_get(json_array_get(program_member(r, "predictions"), 0), "top");
  assert_int_equal(json_array_size(top), 3);
  for (size_t i = 0; i < 3; i++) assert_non_null(program_text(json_array_get(top, i), "name"));
}

/* More pictures than a batch, in the order of their paths, with those in folders of folders. */
static void a_folder_stands_for_its_pictures(void **state) {
  (void)state;
  const json_t *r = program_json(0, "predict colors.ini --input kept/valid --output y.npy");
  const json_t *list = program_member(r, "predictions");
  assert_int_equal(json_array_size(list), 16);
  for (size_t i = 0; i < 16; i++) assert_string_equal(top_name(r, i), i < 8 ? "blue \"sky\"" : "red");
  assert_string_equal(json_string_value(json_object_get(json_array_get(list, 8), "input")),
                      "kept/valid/red/0.png");
  read_npy("y.npy", "16, 2", 32);
  mkdir("empty", 0777);
  assert_int_equal(program_run("predict colors.ini --input kept/valid/"), 0);
  assert_null(strstr(program_out, "//"));
  assert_int_equal(program_run("predict colors.ini --input empty"), 65);
  assert_non_null(strstr(program_err, "empty: has no .jpg, .png, .webp, .tiff or .avif files"));
  assert_int_equal(program_run("predict colors.ini --input none.png"), 74);
  assert_int_equal(program_run("predict colors.ini --input colors.ini"), 65);
  assert_non_null(strstr(program_err, "colors.ini: is neither JPEG, PNG, WebP, TIFF nor AVIF"));
}

/* Bytes of an array go through the transforms as the picture does, and floats do not. */
static void bytes_are_transformed_and_floats_are_not(void **state) {
  (void)state;
  unsigned char bytes[48];
  float floats[48];
  for (int i = 0; i < 48; i++) {
    bytes[i] = i < 16 ? 200 : i < 32 ? 0 : 10;
    floats[i] = ((float)bytes[i] / 255 - 0.5f) / 0.25f;
  }
  write_picture("p.png", 4, 200, 10);
  write_array("u8.npy", "|u1", 1, "3, 4, 4", bytes, sizeof bytes);
  write_npy("f32.npy", 1, "3, 4, 4", floats, 48);
  float y[3][2];
  static const char *const inputs[] = {"p.png", "u8.npy", "f32.npy"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(program_run("predict colors.ini --input %s --output y.npy", inputs[i]), 0);
    memcpy(y[i], read_npy("y.npy", "1, 2", 2), sizeof y[i]);
  }
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  for (int k = 0; k < 2; k++) assert_true(y[2][k] > y[0][k] - 1e-5f && y[2][k] < y[0][k] + 1e-5f);
}

/* Every picture is recognized; with the classes exchanged none is. */
static void classes_are_examined(void **state) {
  (void)state;
  assert_int_equal(rename("kept", "pictures"), 0);
  const json_t *r = program_json(0, "eval runs/colors --classes");
  assert_int_equal(program_number(r, "samples"), 16);
  assert_true(program_number(r, "means.f1") == 1 && program_number(r, "means.auc") == 1);
  assert_int_equal(json_array_size(program_member(r, "worst")), 0);
  rename("pictures/valid/red", "pictures/valid/other");
  rename("pictures/valid/blue \"sky\"", "pictures/valid/red");
  rename("pictures/valid/other", "pictures/valid/blue \"sky\"");
  r = program_json(0, "eval runs/colors --classes");
  assert_true(program_number(r, "means.recall") == 0 && program_number(r, "means.auc") == 0);
  const json_t *worst = program_member(r, "worst"), *first = json_array_get(worst, 0);
  assert_int_equal(json_array_size(worst), 16);
  assert_int_equal(strncmp(program_text(first, "picture"), "data:image/bmp;base64,Qk", 24), 0);
  assert_non_null(strstr(program_text(first, "input"), ".png"));
  assert_true(program_number(first, "probability") > 0.5);
  assert_int_equal(json_array_size(program_member(file_json("runs/colors/evaluation.json"), "worst")), 16);
  assert_int_equal(program_run("eval runs/colors --classes"), 0);
  assert_non_null(strstr(program_out, "true, predicted as:"));
  assert_int_equal(program_run("report runs/colors"), 0);
  assert_non_null(strstr(file_read("runs/colors/report.html", NULL), "data:image/bmp;base64,Qk"));
}

/* The data of training are drawn digits, of one channel. */
static void a_model_of_other_data_takes_pictures(void **state) {
  (void)state;
  file_write("digits.ini",
             "[run]\nname = digits\nepochs = 1\n[data]\nsource = digits\nbatch = 8\nepoch = 16\n"
             "transforms = to_float\n[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n    flatten\n"
             "    fc: linear(10)\nloss = cross_entropy\n");
  assert_int_equal(program_run("train digits.ini"), 0);
  mkdir("some", 0777);
  write_picture("some/a.png", 16, 255, 0);
  assert_int_equal(program_run("predict runs/digits --input some/a.png"), 65);
  assert_non_null(strstr(
      program_err, "'image' is f32[1, 16, 16] behind the transforms, the model's input f32[1, 28, 28]"));
  const json_t *r =
      program_json(0, "predict runs/digits --input some --set data.transforms=resize([28,28]),to_float");
  assert_int_equal(json_array_size(program_member(r, "predictions")), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_picture_gets_the_names_of_training, set_up, program_close),
      cmocka_unit_test_setup_teardown(a_folder_stands_for_its_pictures, set_up, program_close),
      cmocka_unit_test_setup_teardown(bytes_are_transformed_and_floats_are_not, set_up, program_close),
      cmocka_unit_test_setup_teardown(classes_are_examined, set_up, program_close),
      cmocka_unit_test_setup_teardown(csv_has_no_formulas, set_up, program_close),
      cmocka_unit_test_setup_teardown(a_class_that_is_not_utf_8_has_a_name, set_up, program_close),
      cmocka_unit_test_setup_teardown(a_model_of_other_data_takes_pictures, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

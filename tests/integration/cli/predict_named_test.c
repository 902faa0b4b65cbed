/* `tenon predict` with several inputs and outputs by name, of several element types. */
#include "configs.h"
#include "npy_files.h"
#include "tensors.h"

static const char named_ini[] = "[model]\ninputs = x: f32[3], ids: i32[2], mask: bool[3]\nlayers =\n"
                                "    y = x if mask else 0\n    q = ids // 3\n    r = ids % 3\n"
                                "    other = not mask\n    d = x // 0.5\n    m = x % -0.5\n"
                                "outputs = y, q, r, other, d, m\n";

static const void *array_of(const char *file, const char *name) {
  size_t n;
  const void *array = tensor_find(file, name, &n);
  if (array == NULL) fail_msg("%s has no array %s", file, name);
  return array;
}

static void write_inputs(void) {
  const float x[6] = {1.25f, -1.25f, 0.75f, -0.5f, 2, -3};
  const int32_t ids[4] = {7, -7, 2, -9};
  const char mask[6] = {1, 0, 1, 0, 0, 1};
  file_write("named.ini", named_ini);
  write_npy("x.npy", 2, "3", x, 6);
  write_array("ids.npy", "<i4", 2, "2", ids, sizeof ids);
  write_array("mask.npy", "|b1", 2, "3", mask, sizeof mask);
}

static const char named_files[] = "--input mask=mask.npy --input x=x.npy --input ids=ids.npy";

static void every_output_is_in_the_file_by_its_name(void **state) {
  (void)state;
  static const float y[6] = {1.25f, 0, 0.75f, 0, 0, -3}, d[6] = {2, -3, 1, -1, 4, -6},
                     m[6] = {-0.25f, -0.25f, -0.25f, 0, 0, 0};
  static const int32_t q[4] = {2, -3, 0, -3}, r[4] = {1, 2, 2, 0};
  static const char other[6] = {0, 1, 0, 1, 1, 0};
  write_inputs();
  const json_t *result = program_json(0, "predict named.ini %s --output all.safetensors", named_files);
  assert_int_equal(program_number(result, "rows"), 2);
  assert_int_equal(json_array_size(program_member(result, "outputs")), 6);
  assert_string_equal(program_text(json_array_get(program_member(result, "outputs"), 3), "name"), "other");
  assert_string_equal(program_text(json_array_get(program_member(result, "outputs"), 3), "row"), "bool[3]");
  assert_memory_equal(array_of("all.safetensors", "y"), y, sizeof y);
  assert_memory_equal(array_of("all.safetensors", "q"), q, sizeof q);
  assert_memory_equal(array_of("all.safetensors", "r"), r, sizeof r);
  assert_memory_equal(array_of("all.safetensors", "other"), other, sizeof other);
  assert_memory_equal(array_of("all.safetensors", "d"), d, sizeof d);
  for (int i = 0; i < 6; i++) assert_true(((const float *)array_of("all.safetensors", "m"))[i] == m[i]);
}

static void a_csv_file_has_a_column_for_each_number(void **state) {
  (void)state;
  write_inputs();
  assert_int_equal(program_run("predict named.ini %s --output all.csv", named_files), 0);
  assert_string_equal(file_read("all.csv", NULL),
                      "input,y_1,y_2,y_3,q_1,q_2,r_1,r_2,other_1,other_2,other_3,d_1,d_2,d_3,m_1,m_2,m_3\n"
                      "mask.npy[0],1.25,0,0.75,2,-3,1,2,0,1,0,2,-3,1,-0.25,-0.25,-0.25\n"
                      "mask.npy[1],0,0,-3,0,-3,2,0,1,1,0,-1,4,-6,-0,0,-0\n");
  assert_int_equal(program_run("predict named.ini %s --output q=one.csv", named_files), 0);
  assert_string_equal(file_read("one.csv", NULL), "input,q_1,q_2\nmask.npy[0],2,-3\nmask.npy[1],0,-3\n");
}

static void one_output_goes_to_a_file_of_its_own(void **state) {
  (void)state;
  write_inputs();
  assert_int_equal(program_run("predict named.ini %s --output y=y.npy", named_files), 0);
  assert_true(read_npy("y.npy", "2, 3", 6)[5] == -3);
}

/* The outputs of one run are the inputs of another. */
static void inputs_come_from_one_file(void **state) {
  (void)state;
  write_inputs();
  file_write("first.ini", "[model]\ninputs = x: f32[3]\nlayers =\n    a = 2 * x\n    b = x + 1\n"
                          "outputs = a, b\n");
  file_write("second.ini", "[model]\ninputs = a: f32[3], b: f32[3]\nlayers =\n    y = a - b\n");
  assert_int_equal(program_run("predict first.ini --input x.npy --output ab.safetensors"), 0);
  assert_int_equal(program_run("predict second.ini --input ab.safetensors --output y.npy"), 0);
  assert_true(read_npy("y.npy", "2, 3", 6)[0] == 0.25f);
  assert_int_equal(program_run("predict second.ini --input a=ab.safetensors --input b=x.npy --output y.npy"),
                   0);
  assert_true(read_npy("y.npy", "2, 3", 6)[0] == 1.25f);
}

static void wrong_names_and_types_say_what_was_expected(void **state) {
  (void)state;
  const int64_t wide[4] = {1, 2, 3, 4};
  static const char *const wrong[][2] = {
      {"--input x=x.npy --input ids=wide.npy --input mask=mask.npy --output y=z.npy",
       "wide.npy: holds i64[2, 2], expected i32[rows, 2] for the model's input 'ids'; in NumPy "
       "x.astype('int32')"},
      {"--input x=x.npy --input ids=ids.npy --output y=z.npy",
       "there is no array for the model's input 'mask'; give --input mask=FILE.npy"},
      {"--input x=x.npy --input x=x.npy --output y=z.npy",
       "x.npy and x.npy: both are for the model's input 'x', expected one"},
      {"--input z=x.npy --output y=z.npy", "x.npy: the model has no input 'z', expected x, ids, mask"},
      {"--input some.safetensors --output y=z.npy",
       "some.safetensors: the model has no input 'a', expected x, ids, mask"},
      {"--input x=some.safetensors --output y=z.npy", "some.safetensors: has no array 'x'"},
      {"--input x=x.npy --input ids=ids.npy --input mask=mask.npy --output z.npy",
       "z.npy: the model has 6 outputs, y, q, r, other, d, m; name a FILE.safetensors for all of them, or "
       "one "
       "as in y=z.npy"},
      {"--input x=x.npy --input ids=ids.npy --input mask=mask.npy --output w=z.npy",
       "w=z.npy: the model has no output 'w', expected one of: y, q, r, other, d, m"},
      {"--input x=x.npy --input ids=ids.npy --input mask=mask.npy",
       "the model's output is no scores of classes; name a file for it: --output FILE.safetensors"}};
  write_inputs();
  write_array("wide.npy", "<i8", 2, "2", wide, sizeof wide);
  file_write("first.ini", "[model]\ninputs = x: f32[3]\nlayers =\n    a = 2 * x\n    b = x + 1\n"
                          "outputs = a, b\n");
  assert_int_equal(program_run("predict first.ini --input x.npy --output some.safetensors"), 0);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("predict named.ini %s", wrong[i][0]), 65);
    if (strstr(program_err, wrong[i][1]) == NULL) fail_msg("expected '%s' in: %s", wrong[i][1], program_err);
    assert_false(file_exists("z.npy"));
  }
  file_write("sum.ini",
             "[model]\ninputs = x: f32[3]\nlayers =\n    y = 2 * x\n    s = sum(x)\noutputs = y, s\n");
  assert_int_equal(program_run("predict sum.ini --input x.npy --output z.safetensors"), 65);
  assert_non_null(strstr(
      program_err, "sum.ini: the model's output 's' is f32[] for 2 samples, expected one row per sample"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_output_is_in_the_file_by_its_name, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_csv_file_has_a_column_for_each_number, program_open, program_close),
      cmocka_unit_test_setup_teardown(one_output_goes_to_a_file_of_its_own, program_open, program_close),
      cmocka_unit_test_setup_teardown(inputs_come_from_one_file, program_open, program_close),
      cmocka_unit_test_setup_teardown(wrong_names_and_types_say_what_was_expected, program_open,
                                      program_close),
  };
  return cmocka_run_group_tests_name("predict named", tests, NULL, NULL);
}

/* `tenon predict` from .npy to .npy. */
#include <math.h>

#include "configs.h"
#include "program.h"

static const char identity_ini[] = "[data]\nsource = random\nshape = 2, 2\nclasses = 2\nbatch = 4\n"
                                   "[model]\ninputs = x: f32[2, 2]\nlayers = relu\n";

/* A .npy file of version 1.0 with f32 rows. */
static void write_npy(const char *path, int64_t rows, const char *dims, const float *values, size_t n) {
  char bytes[4096];
  char header[128];
  int length =
      snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %s), }",
               (long long)rows, dims);
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  size_t padded = ((size_t)length + 10 + 1 + 63) / 64 * 64 - 10;
  bytes[8] = (char)(padded & 0xff);
  bytes[9] = (char)(padded >> 8);
  memset(bytes + 10, ' ', padded);
  memcpy(bytes + 10, header, (size_t)length);
  bytes[10 + padded - 1] = '\n';
  assert_true(10 + padded + n * sizeof *values <= sizeof bytes);
  if (n > 0) memcpy(bytes + 10 + padded, values, n * sizeof *values);
  file_write_bytes(path, bytes, 10 + padded + n * sizeof *values);
}

/* The rows of a .npy file whose header says `shape`. */
static const float *read_npy(const char *path, const char *shape, size_t count) {
  size_t n;
  const char *bytes = file_read(path, &n);
  assert_memory_equal(bytes, "\x93NUMPY", 6);
  size_t start = 10 + (size_t)(unsigned char)bytes[8] + ((size_t)(unsigned char)bytes[9] << 8);
  char expected[64];
  snprintf(expected, sizeof expected, "'shape': (%s)", shape);
  if (strstr(bytes + 10, expected) == NULL) fail_msg("expected %s in %s", expected, bytes + 10);
  assert_int_equal(n - start, count * sizeof(float));
  return (const float *)(const void *)(bytes + start);
}

/* Seven rows in batches of four: the last one is short. */
static void rows_come_back_in_order(void **state) {
  (void)state;
  float x[28];
  for (int i = 0; i < 28; i++) x[i] = (float)(i % 2 ? i : -i);
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 7, "2, 2", x, 28);
  const json_t *r = program_json(0, "predict identity.ini --input x.npy --output y.npy");
  assert_int_equal(program_number(r, "rows"), 7);
  assert_string_equal(program_text(r, "output"), "y.npy");
  const float *y = read_npy("y.npy", "7, 2, 2", 28);
  for (int i = 0; i < 28; i++) assert_true(y[i] == (x[i] > 0 ? x[i] : 0));
}

static void no_rows_give_no_rows(void **state) {
  (void)state;
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 0, "2, 2", NULL, 0);
  assert_int_equal(program_run("predict identity.ini --input x.npy --output y.npy"), 0);
  read_npy("y.npy", "0, 2, 2", 0);
}

static void the_batch_does_not_matter(void **state) {
  (void)state;
  float x[36 * 5];
  for (int i = 0; i < 36 * 5; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  write_npy("x.npy", 5, "1, 6, 6", x, 36 * 5);
  const char *weights = "runs/noise/checkpoints/best/model.safetensors";
  for (int batch = 1; batch <= 5; batch++)
    assert_int_equal(
        program_run("predict noise.ini --weights %s --input x.npy --output y%d.npy --set data.batch=%d",
                    weights, batch, batch),
        0);
  const float *one = read_npy("y1.npy", "5, 4", 20);
  for (int batch = 2; batch <= 5; batch++) {
    char path[16];
    snprintf(path, sizeof path, "y%d.npy", batch);
    const float *y = read_npy(path, "5, 4", 20);
    for (int i = 0; i < 20; i++) assert_true(fabsf(y[i] - one[i]) < 1e-5f);
  }
}

static void rows_must_have_the_type_of_the_models_input(void **state) {
  (void)state;
  const float x[6] = {0};
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 2, "3", x, 6);
  assert_int_equal(program_run("predict identity.ini --input x.npy --output y.npy"), 65);
  assert_non_null(
      strstr(program_err, "x.npy: holds f32[2, 3], expected f32[rows, 2, 2] for the model's input 'x'"));
  assert_false(file_exists("y.npy"));
  assert_int_equal(program_run("predict identity.ini --input none.npy --output y.npy"), 74);
  file_write("x.npy", "no array");
  assert_int_equal(program_run("predict identity.ini --input x.npy --output y.npy"), 65);
}

static void the_output_must_be_writable(void **state) {
  (void)state;
  const float x[4] = {0};
  file_write("identity.ini", identity_ini);
  write_npy("x.npy", 1, "2, 2", x, 4);
  assert_int_equal(program_run("predict identity.ini --input x.npy --output no/such/folder/y.npy"), 74);
}

static void a_model_that_learns_needs_weights(void **state) {
  (void)state;
  const float x[36] = {0};
  file_write("noise.ini", noise_ini);
  write_npy("x.npy", 1, "1, 6, 6", x, 36);
  assert_int_equal(program_run("predict noise.ini --input x.npy --output y.npy"), 65);
  assert_non_null(strstr(program_err, "--weights"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(rows_come_back_in_order, program_open, program_close),
      cmocka_unit_test_setup_teardown(no_rows_give_no_rows, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_batch_does_not_matter, program_open, program_close),
      cmocka_unit_test_setup_teardown(rows_must_have_the_type_of_the_models_input, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(the_output_must_be_writable, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_model_that_learns_needs_weights, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

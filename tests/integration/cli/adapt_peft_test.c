/* Adapters of low rank after ten steps, beside those of PEFT (tests/golden/make_adapters.py). compare_lora.py
 * there compares those of GPT-2. */
#include <math.h>
#include <stdlib.h>

#include "tensors.h"

/* The rows of make_adapters.py. */
static void write_rows(void) {
  enum { ROWS = 20, PIXELS = 12 };
  int32_t words[ROWS][2], label[ROWS];
  float image[ROWS][PIXELS];
  for (int i = 0; i < ROWS; i++) {
    label[i] = (i * i + i / 3) % 3;
    words[i][0] = (i + label[i]) % 4;
    words[i][1] = i / 2 % 4;
    for (int j = 0; j < PIXELS; j++) image[i][j] = (float)((i * 37 + j * 11 + i * j * 5) % 251) / 256 - 0.5F;
  }
  file_write_bytes("words.bin", words, sizeof words);
  file_write_bytes("label.bin", label, sizeof label);
  file_write_bytes("image.bin", image, sizeof image);
}

/* The base, in base/, and net.ini with adapters of a type. */
static void write_adapted(const char *type) {
  char text[4096];
  write_rows();
  file_write("base.ini", file_read(ADAPTERS "/net.ini", NULL));
  snprintf(text, sizeof text,
           "%s[weights]\nfile = base/net\n[adapt]\ntype = %s\nmatch = wte, conv, fc1\nrank = 2\nalpha = "
           "4\ntrain = fc2.*\n",
           file_read("base.ini", NULL), type);
  file_write("net.ini", text);
  if (program_run("train base.ini --quiet --output base --set run.epochs=0") != 0)
    fail_msg("%s", program_err);
}

static const char adapted[] = "out/net/checkpoints/last/model.safetensors";

static void expect_golden(const char *type, const char *name, const json_t *golden) {
  size_t n = 0;
  const float *values = tensor_find(adapted, name, &n);
  if (values == NULL) fail_msg("%s: no %s", type, name);
  assert_int_equal(n, json_array_size(golden));
  for (size_t i = 0; i < n; i++) {
    double want = json_number_value(json_array_get(golden, i));
    if (!(fabs((double)values[i] - want) <= 2e-6 * (1 + fabs(want))))
      fail_msg("%s: %s[%zu] is %.8g, PEFT has %.8g", type, name, i, (double)values[i], want);
  }
}

/* A table, a convolution and a linear layer, on one device and on two. */
static void ten_steps_are_those_of_peft(void **state) {
  (void)state;
  static const char *const types[] = {"lora", "dora"};
  static const char *const ways[] = {
      "", "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2"};
  static const size_t parameters[] = {8, 11};
  for (int i = 0; i < 4; i++) {
    const json_t *golden = json_object_get(file_json(ADAPTERS "/golden.json"), types[i / 2]), *want;
    const char *name;
    write_adapted(types[i / 2]);
    if (program_run("train net.ini --quiet --output out %s", ways[i % 2]) != 0) fail_msg("%s", program_err);
    assert_int_equal(json_object_size(golden), parameters[i / 2]);
    json_object_foreach((json_t *)(uintptr_t)golden, name, want) expect_golden(types[i / 2], name, want);
    assert_int_equal(system("rm -rf base out"), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ten_steps_are_those_of_peft, program_open, program_close)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <png.h>

#include "core/formats/png.h"
#include "tests/support/test_env.h"

static char path[] = "/tmp/tenon-png-XXXXXX";

static int start(void **state) {
  (void)state;
  strcpy(path, "/tmp/tenon-png-XXXXXX");
  int fd = mkstemp(path);
  return fd < 0 || close(fd) != 0;
}

static int stop(void **state) {
  (void)state;
  return unlink(path);
}

/* Reads with libpng and compares. */
static void expect_pixels(int width, int height, const uint8_t *rgb) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  assert_true(png_image_begin_read_from_file(&image, path));
  assert_int_equal(image.width, width);
  assert_int_equal(image.height, height);
  image.format = PNG_FORMAT_RGB;
  uint8_t *read = malloc(PNG_IMAGE_SIZE(image));
  assert_non_null(read);
  assert_true(png_image_finish_read(&image, NULL, read, 0, NULL));
  assert_memory_equal(read, rgb, (size_t)(3 * width * height));
  free(read);
}

/* tn_png_encode gives the bytes of the file. */
static void expect_bytes(test_env *t, int width, int height, const uint8_t *rgb) {
  uint8_t *bytes;
  size_t n;
  assert_int_equal(tn_png_encode(t, width, height, rgb, &bytes, &n), TN_OK);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  for (size_t i = 0; i < n; i++) assert_int_equal(fgetc(file), bytes[i]);
  assert_int_equal(fgetc(file), EOF);
  fclose(file);
  tn_release(t, bytes);
}

/* The rows fill less than a stored block, exactly one, and several. */
static void libpng_reads_the_pixels(void **state) {
  (void)state;
  static const int sizes[][2] = {{1, 1}, {7, 3}, {21844 / 4, 4}, {300, 200}};
  test_env t;
  test_env_start(&t);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int n = 3 * sizes[i][0] * sizes[i][1];
    uint8_t *rgb = malloc((size_t)n);
    assert_non_null(rgb);
    for (int k = 0; k < n; k++) rgb[k] = (uint8_t)(k * 7 + k / 256);
    assert_int_equal(tn_png_write(&t, path, sizes[i][0], sizes[i][1], rgb), TN_OK);
    expect_pixels(sizes[i][0], sizes[i][1], rgb);
    expect_bytes(&t, sizes[i][0], sizes[i][1], rgb);
    free(rgb);
  }
  assert_int_equal(t.live, 0);
}

static void libpng_reads_a_palette(void **state) {
  (void)state;
  static const uint8_t pixels[] = {0, 2, 1, 1, 0, 2}, palette[] = {1, 2, 3, 40, 50, 60, 255, 0, 9};
  uint8_t rgb[3 * sizeof pixels];
  test_env t;
  test_env_start(&t);
  for (size_t i = 0; i < sizeof pixels; i++) memcpy(rgb + 3 * i, palette + 3 * pixels[i], 3);
  assert_int_equal(tn_png_write_indexed(&t, path, 3, 2, pixels, palette, 3), TN_OK);
  expect_pixels(3, 2, rgb);
  assert_int_equal(t.live, 0);
}

static void sizes_beyond_the_format_are_refused(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  const uint8_t rgb[3] = {0};
  assert_int_equal(tn_png_write(&t, "x.png", 0, 1, rgb), TN_EINVAL);
  assert_non_null(
      strstr(tn_error_text(&t), "x.png: a picture of 0 x 1 pixels, expected sides of 1 to 65535"));
  assert_int_equal(tn_png_write(&t, "x.png", 1, 65536, rgb), TN_EINVAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(libpng_reads_the_pixels, start, stop),
      cmocka_unit_test_setup_teardown(libpng_reads_a_palette, start, stop),
      cmocka_unit_test(sizes_beyond_the_format_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

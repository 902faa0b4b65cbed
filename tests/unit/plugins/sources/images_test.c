/* tests/unit/plugins/sources/images_test.c: pictures of unusual kinds have Pillow's pixels (make_images.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/plugin/handles.h"
#include "plugins/sources/image/image.h"

static tn_error_record record;
static tn_env env;
static uint8_t pixels[3 * 64];

static tn_status planes(image_sink *sink) {
  if (sink->height * sink->width > 64) return TN_EINVAL;
  sink->to = pixels;
  return TN_OK;
}

/* TN_EUNSUPPORTED where the build lacks the library. */
static tn_status decode_as(const char *name, int indices, image_sink *sink) {
  static char path[4096];
  uint8_t *bytes;
  size_t count;
  snprintf(path, sizeof path, "%s/images/%s", FILES, name);
  if (source_read_file(&env, path, 1 << 20, &bytes, &count) != TN_OK) fail_msg("%s", tn_error_text(&env));
  *sink = (image_sink){
      .handle = &env, .path = path, .most_pixels = 64, .planes = planes, .keeps_palette = indices};
  tn_status status = image_decode(sink, bytes, count);
  tn_delete(&env, bytes);
  return status;
}

static tn_status decode(const char *name, image_sink *sink) { return decode_as(name, 0, sink); }

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/* The greatest difference of a byte from hexadecimal digits. */
static int difference(const char *digits, int64_t n) {
  int most = 0;
  for (int64_t i = 0; i < n; i++) {
    int d = abs(pixels[i] - (digit(digits[2 * i]) * 16 + digit(digits[2 * i + 1])));
    most = d > most ? d : most;
  }
  return most;
}

static void pictures_have_the_pixels_of_pillow(void **state) {
  (void)state;
  static char line[1024], digits[1024];
  char name[64];
  int height, width, bound, seen = 0, lacking = 0;
  FILE *list = fopen(FILES "/images/pixels.txt", "r");
  assert_non_null(list);
  tn_error_record_init_root(&env, &record, &tn_host_api);
  while (fgets(line, sizeof line, list) != NULL) {
    image_sink sink;
    assert_int_equal(sscanf(line, "%63s %d %d %d %1023s", name, &height, &width, &bound, digits), 5);
    seen++;
    tn_status status = decode(name, &sink);
    lacking += status == TN_EUNSUPPORTED;
    if (status == TN_EUNSUPPORTED) continue;
    if (status != TN_OK) fail_msg("%s", tn_error_text(&env));
    if (sink.height != height || sink.width != width)
      fail_msg("%s is %d x %d, expected %d x %d", name, (int)sink.height, (int)sink.width, height, width);
    int most = difference(digits, (int64_t)3 * height * width);
    if (most > bound) fail_msg("%s differs by %d, expected at most %d", name, most, bound);
  }
  fclose(list);
  assert_true(seen >= 48);
  if (lacking > 0) print_message("%d of %d pictures are of formats that this build lacks\n", lacking, seen);
}

static void palettes_give_their_numbers_where_these_are_asked_for(void **state) {
  (void)state;
  char name[64], digits[256];
  int height, width, seen = 0;
  image_sink sink;
  FILE *list = fopen(FILES "/images/indices.txt", "r");
  assert_non_null(list);
  tn_error_record_init_root(&env, &record, &tn_host_api);
  while (fscanf(list, "%63s %d %d %255s", name, &height, &width, digits) == 4) {
    if (decode_as(name, 1, &sink) != TN_OK) fail_msg("%s", tn_error_text(&env));
    assert_int_equal(sink.height * sink.width, height * width);
    assert_int_equal(difference(digits, height * width), 0);
    assert_memory_equal(pixels, pixels + 2 * height * width, (size_t)(height * width));
    seen++;
  }
  fclose(list);
  assert_int_equal(seen, 3);
  assert_int_equal(decode_as("rgb.tif", 1, &sink),
                   decode("rgb.tif", &sink)); /* without a palette nothing changes */
}

/* Every beginning of a file is an error, or a picture whose end is missing, and no more. */
static void parts_of_pictures_are_no_crash(void **state) {
  (void)state;
  static const char *const names[] = {"exif6.png", "cmyk.jpg", "exif5.webp",
                                      "lzw.tif",   "jpeg.tif", "rgb.avif"};
  static char path[4096];
  tn_error_record_init_root(&env, &record, &tn_host_api);
  for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
    uint8_t *bytes;
    size_t count;
    int refused = 0;
    snprintf(path, sizeof path, "%s/images/%s", FILES, names[f]);
    assert_int_equal(source_read_file(&env, path, 1 << 20, &bytes, &count), TN_OK);
    for (size_t n = 0; n < count; n += 3) {
      image_sink sink = {.handle = &env, .path = path, .most_pixels = 64, .planes = planes};
      refused += image_decode(&sink, bytes, n) != TN_OK;
    }
    assert_true(refused > 1);
    tn_delete(&env, bytes);
  }
}

static void larger_pictures_are_refused_before_they_are_decoded(void **state) {
  (void)state;
  static const char *const names[] = {"rgb.tif", "lossless.webp", "rgb.avif", "rgba.png"};
  static char path[4096];
  tn_error_record_init_root(&env, &record, &tn_host_api);
  for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
    uint8_t *bytes;
    size_t count;
    snprintf(path, sizeof path, "%s/images/%s", FILES, names[f]);
    assert_int_equal(source_read_file(&env, path, 1 << 20, &bytes, &count), TN_OK);
    image_sink sink = {.handle = &env, .path = path, .most_pixels = 34, .planes = planes};
    tn_status status = image_decode(&sink, bytes, count);
    if (status != TN_EUNSUPPORTED) assert_int_equal(status, TN_EINVAL);
    tn_delete(&env, bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pictures_have_the_pixels_of_pillow),
      cmocka_unit_test(palettes_give_their_numbers_where_these_are_asked_for),
      cmocka_unit_test(parts_of_pictures_are_no_crash),
      cmocka_unit_test(larger_pictures_are_refused_before_they_are_decoded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

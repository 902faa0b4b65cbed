#include <stdio.h>
#include <sys/stat.h>

#include <jpeglib.h>
#include <png.h>

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source image_folder_source;

enum { HIGH = 6, WIDE = 9 };

static char *folder;

static int start(void **state) {
  (void)state;
  folder = make_folder();
  return 0;
}

static int stop(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

static void put_folder(const char *name) { assert_int_equal(mkdir(in_folder(folder, name), 0777), 0); }

/* Channel c of pixel (x, y) of a smooth picture, for which the error of JPEG is small. */
static uint8_t shade(int c, int x, int y) {
  return (uint8_t)(c == 0 ? 20 * x + 10 : c == 1 ? 30 * y + 20 : 128);
}

/* EXIF data of the next JPEG; 0: it has none. */
static int exif_orientation, exif_big;

static void put_exif(struct jpeg_compress_struct *info) {
  uint8_t little[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I',  42,
                      0,    8,   0,   0,   0, 2, 0,   0x0F, 1,
                      2,    0,   1,   0,   0, 0, 0,   0,    0,
                      0, /* another entry: the maker */
                      0x12, 1,   3,   0,   1, 0, 0,   0,    (uint8_t)exif_orientation,
                      0,    0,   0,   0,   0, 0, 0};
  uint8_t big[] = {'E', 'x', 'i', 'f', 0,    0, 'M', 'M', 0, 42, 0, 0, 0,
                   8,   0,   1,   1,   0x12, 0, 3,   0,   0, 0,  1, 0, (uint8_t)exif_orientation,
                   0,   0,   0,   0,   0,    0};
  if (exif_orientation != 0)
    jpeg_write_marker(info, JPEG_APP0 + 1, exif_big ? big : little, exif_big ? sizeof big : sizeof little);
}

static void put_jpeg(const char *name, int high, int wide, J_COLOR_SPACE space, int components) {
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  uint8_t row[64 * 4];
  FILE *file = fopen(in_folder(folder, name), "wb");
  assert_non_null(file);
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  jpeg_stdio_dest(&info, file);
  info.image_width = (JDIMENSION)wide;
  info.image_height = (JDIMENSION)high;
  info.input_components = components;
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  if (exif_orientation != 0) /* colours at full size: each pixel has its own */
    info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  put_exif(&info);
  for (int y = 0; y < high; y++) {
    for (int x = 0; x < wide; x++)
      for (int c = 0; c < components; c++) row[x * components + c] = c < 3 ? shade(c, x, y) : 255;
    uint8_t *rows[] = {row};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  fclose(file);
}

/* A grey progressive picture of `scans` scans, each with one bit of one coefficient. */
static void put_progressive(const char *name, int scans) {
  static jpeg_scan_info script[704];
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  uint8_t row[16] = {0};
  uint8_t *rows[] = {row};
  FILE *file = fopen(in_folder(folder, name), "wb");
  assert_non_null(file);
  assert_in_range(scans, 1, 704);
  for (int i = 0; i < scans; i++) /* coefficient i / 11, and 10 bits that follow on the first */
    script[i] = (jpeg_scan_info){1, {0}, i / 11, i / 11, i % 11 == 0 ? 0 : 11 - i % 11, 10 - i % 11};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  jpeg_stdio_dest(&info, file);
  info.image_width = info.image_height = 16;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  info.scan_info = script;
  info.num_scans = scans;
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < 16; y++) jpeg_write_scanlines(&info, rows, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  fclose(file);
}

/* `type` is PNG_COLOR_TYPE_...; a palette has red equal to the index, green 100, blue 200. */
static void put_png(const char *name, int type, int depth, int interlaced) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
  png_infop info = png_create_info_struct(png);
  FILE *file = fopen(in_folder(folder, name), "wb");
  int channels = type == PNG_COLOR_TYPE_RGB          ? 3
                 : type == PNG_COLOR_TYPE_RGBA       ? 4
                 : type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                                     : 1;
  uint8_t row[WIDE * 8];
  png_color palette[256];
  assert_non_null(file);
  png_init_io(png, file);
  png_set_IHDR(png, info, WIDE, HIGH, depth, type, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  for (int i = 0; i < 256; i++) palette[i] = (png_color){(png_byte)i, 100, 200};
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 256);
  png_write_info(png, info);
  int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; pass++) {
    for (int y = 0; y < HIGH; y++) {
      memset(row, 0, sizeof(row));
      for (int x = 0; x < WIDE * channels; x++) {
        uint8_t value = shade(x % channels, x / channels, y);
        if (depth == 16)
          row[2 * x] = row[2 * x + 1] = value;
        else if (depth == 1)
          row[x / 8] |= (uint8_t)((x & 1) << (7 - x % 8));
        else
          row[x] = value;
      }
      png_write_row(png, row);
    }
  }
  png_write_end(png, NULL);
  png_destroy_write_struct(&png, &info);
  fclose(file);
}

static void expect_picture(const probe *p, int tolerance) {
  const uint8_t *image = p->value[0];
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < HIGH; y++)
      for (int x = 0; x < WIDE; x++)
        assert_in_range(image[(c * HIGH + y) * WIDE + x] + tolerance - shade(c, x, y), 0, 2 * tolerance);
}

/* Opens train/ and asserts success. */
static void open_train(probe *p, const char *const *pairs) {
  if (probe_open(p, &image_folder_source, pairs, TN_SPLIT_TRAIN) != TN_OK) fail_msg("%s", probe_error(p));
}

static void put_two_classes(void) {
  put_folder("train");
  put_folder("train/cat");
  put_folder("train/ant");
  put_jpeg("train/cat/b.jpg", HIGH, WIDE, JCS_RGB, 3);
  put_jpeg("train/cat/a.JPEG", HIGH, WIDE, JCS_RGB, 3);
  put_png("train/ant/z.png", PNG_COLOR_TYPE_RGB, 8, 0);
}

static void classes_and_files_are_sorted(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  write_file(in_folder(folder, "train/ant/notes.txt"), "x", 1);
  write_file(in_folder(folder, "train/ant/.hidden.png"), "x", 1);
  write_file(in_folder(folder, "train/readme.png"), "x", 1);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(p.description.count, 3);
  assert_int_equal(p.description.fields[1].classes, 2);
  assert_string_equal(p.description.fields[1].class_names[0], "ant");
  assert_string_equal(p.description.fields[1].class_names[1], "cat");
  for (int64_t i = 0; i < 3; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_OK);
    assert_int_equal(*(int32_t *)p.value[1], i > 0);
    expect_picture(&p, i > 0 ? 16 : 0);
  }
  probe_close(&p);
}

static void classes_lie_deeper_where_it_is_asked_for(void **state) {
  (void)state;
  probe p;
  const char *const folders[] = {"train",     "train/cat", "train/cat/black", "train/cat/white",
                                 "train/dog", "valid",     "valid/cat",       "valid/cat/white"};
  for (size_t i = 0; i < 8; i++) put_folder(folders[i]);
  put_jpeg("train/cat/black/1.jpg", HIGH, WIDE, JCS_RGB, 3);
  put_jpeg("train/cat/white/2.jpg", HIGH, WIDE, JCS_RGB, 3);
  put_jpeg("train/dog/3.jpg", HIGH, WIDE, JCS_RGB, 3);
  put_jpeg("valid/cat/white/4.jpg", HIGH, WIDE, JCS_RGB, 3);
  write_file(in_folder(folder, "train/.DS_Store"), "x", 1);
  write_file(in_folder(folder, "train/dog/Thumbs.db"), "x", 1);
  write_file(in_folder(folder, "train/dog/._3.jpg"), "x", 1);
  open_train(&p, PAIRS("folder", folder, "nested", "yes"));
  assert_int_equal(p.description.count, 3);
  assert_int_equal(p.description.fields[1].classes, 3);
  assert_string_equal(p.description.fields[1].class_names[0], "cat/black");
  assert_string_equal(p.description.fields[1].class_names[1], "cat/white");
  assert_string_equal(p.description.fields[1].class_names[2], "dog");
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 2);
  probe_close(&p);
  assert_int_equal(
      probe_open(&p, &image_folder_source, PAIRS("folder", folder, "nested", "yes"), TN_SPLIT_VALID), TN_OK);
  assert_int_equal(p.description.count, 1);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 1);
  probe_close(&p);
  probe_refused(
      &image_folder_source, PAIRS("folder", folder), TN_SPLIT_TRAIN, TN_EINVAL,
      "train/cat: has no .jpg, .png, .webp, .tiff or .avif files; where they are in further folders, "
      "set nested = yes");
}

static void pictures_of_one_size_have_a_fixed_type(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(p.description.fields[0].type.dims[1], HIGH);
  assert_int_equal(p.description.fields[0].type.dims[2], WIDE);
  probe_close(&p);
  open_train(&p, PAIRS("folder", folder, "size", "0"));
  assert_int_equal(p.description.fields[0].type.dims[1], -1);
  probe_close(&p);
  put_jpeg("train/cat/a.JPEG", HIGH, WIDE + 1, JCS_RGB, 3);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(p.description.fields[0].type.dims[2], -1);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_int_equal(p.type[0].dims[2], WIDE + 1);
  probe_close(&p);
}

static void a_picture_of_another_size_is_an_error(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  put_jpeg("train/cat/b.jpg", HIGH, WIDE + 1, JCS_RGB, 3);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(probe_read(&p, 2, 0), TN_EINVAL);
  assert_non_null(strstr(probe_error(&p),
                         "train/cat/b.jpg: has 10 x 6 pixels, expected 9 x 6 like the others; set size = 0, "
                         "and begin the transforms with resize([6, 9])"));
  probe_close(&p);
}

static void every_kind_of_png_becomes_rgb(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int type, depth, interlaced;
  } kinds[] = {
      {"train/x/a.png", PNG_COLOR_TYPE_RGB, 8, 1},        {"train/x/b.png", PNG_COLOR_TYPE_RGBA, 8, 0},
      {"train/x/c.png", PNG_COLOR_TYPE_RGB, 16, 0},       {"train/x/d.png", PNG_COLOR_TYPE_GRAY, 8, 0},
      {"train/x/e.png", PNG_COLOR_TYPE_GRAY_ALPHA, 8, 1}, {"train/x/f.png", PNG_COLOR_TYPE_PALETTE, 8, 0},
      {"train/x/g.png", PNG_COLOR_TYPE_GRAY, 1, 0}};
  probe p;
  put_folder("train");
  put_folder("train/x");
  for (size_t i = 0; i < 7; i++) put_png(kinds[i].name, kinds[i].type, kinds[i].depth, kinds[i].interlaced);
  open_train(&p, PAIRS("folder", folder));
  for (int64_t i = 0; i < 7; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_OK);
    if (i < 3) expect_picture(&p, 0);
    const uint8_t *red = p.value[0], *green = red + HIGH * WIDE, *blue = green + HIGH * WIDE;
    for (int k = 0; i >= 3 && k < HIGH * WIDE; k++) {
      int expected = i == 6 ? k % WIDE % 2 * 255 : shade(0, k % WIDE, k / WIDE);
      assert_int_equal(red[k], expected);
      assert_int_equal(green[k], i == 5 ? 100 : expected);
      assert_int_equal(blue[k], i == 5 ? 200 : expected);
    }
  }
  probe_close(&p);
}

static void grey_and_cmyk_jpegs_become_rgb(void **state) {
  (void)state;
  probe p;
  put_folder("train");
  put_folder("train/x");
  put_jpeg("train/x/cmyk.jpg", HIGH, WIDE, JCS_CMYK, 4);
  put_jpeg("train/x/grey.jpg", HIGH, WIDE, JCS_GRAYSCALE, 1);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  expect_picture(&p, 4); /* the library writes an Adobe marker: inks are inverted, and black is 255 */
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  const uint8_t *image = p.value[0];
  for (int k = 0; k < HIGH * WIDE; k++) {
    assert_in_range(image[k] + 4 - shade(0, k % WIDE, k / WIDE), 0, 8);
    assert_true(image[k] == image[HIGH * WIDE + k] && image[k] == image[2 * HIGH * WIDE + k]);
  }
  probe_close(&p);
}

/* The place of stored pixel (x, y) in a displayed picture of this width and height (EXIF 2.3, tag 274). */
static int displayed_place(int orientation, int x, int y, int wide, int high) {
  int across[] = {0, x, wide - 1 - x, wide - 1 - x, x, y, wide - 1 - y, wide - 1 - y, y};
  int down[] = {0, y, y, high - 1 - y, high - 1 - y, x, x, high - 1 - x, high - 1 - x};
  return down[orientation] * wide + across[orientation];
}

static void expect_turned(const probe *p, int orientation) {
  int wide = orientation >= 5 ? HIGH : WIDE, high = orientation >= 5 ? WIDE : HIGH;
  assert_int_equal(p->type[0].dims[1], high);
  assert_int_equal(p->type[0].dims[2], wide);
  const uint8_t *image = p->value[0];
  for (int c = 0; c < 3; c++)
    for (int k = 0; k < HIGH * WIDE; k++) {
      int x = k % WIDE, y = k / WIDE,
          found = image[c * HIGH * WIDE + displayed_place(orientation, x, y, wide, high)];
      if (abs(found - shade(c, x, y)) > 4)
        fail_msg("orientation %d: channel %d of (%d, %d) is %d, expected %d", orientation, c, x, y, found,
                 shade(c, x, y));
    }
}

/* A phone writes the sensor's rows, and how it was held. */
static void photos_are_turned_as_they_were_taken(void **state) {
  (void)state;
  probe p;
  put_folder("train");
  put_folder("train/x");
  for (exif_big = 0; exif_big < 2; exif_big++)
    for (exif_orientation = 1; exif_orientation <= 8; exif_orientation++) {
      put_jpeg("train/x/a.jpg", HIGH, WIDE, JCS_RGB, 3);
      open_train(&p, PAIRS("folder", folder));
      assert_int_equal(probe_read(&p, 0, 0), TN_OK);
      expect_turned(&p, exif_orientation);
      probe_close(&p);
      open_train(&p, PAIRS("folder", folder, "orientation", "ignore"));
      assert_int_equal(probe_read(&p, 0, 0), TN_OK);
      expect_turned(&p, 1);
      probe_close(&p);
    }
  exif_orientation = 6;
  put_jpeg("train/x/a.jpg", HIGH, WIDE, JCS_CMYK, 4);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  expect_turned(&p, 6);
  probe_close(&p);
  exif_orientation = 9; /* no such orientation: as it is stored */
  put_jpeg("train/x/a.jpg", HIGH, WIDE, JCS_RGB, 3);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  expect_turned(&p, 1);
  probe_close(&p);
  exif_orientation = exif_big = 0;
}

static size_t read_whole(const char *name, uint8_t *bytes, size_t most) {
  FILE *file = fopen(in_folder(folder, name), "rb");
  size_t count = fread(bytes, 1, most, file);
  fclose(file);
  return count;
}

/* Replaces a valid file by its first `count` bytes; if `at` is not 0, that byte is changed. */
static void break_file(const char *name, size_t count, size_t at) {
  static uint8_t bytes[65536];
  size_t whole = read_whole(name, bytes, sizeof(bytes));
  if (at > 0) bytes[at] ^= 0xFF;
  write_file(in_folder(folder, name), bytes, count < whole ? count : whole);
}

static void expect_damage(const char *name, int64_t index, const char *text) {
  probe p;
  open_train(&p, PAIRS("folder", folder, "size", "[6, 9]"));
  assert_int_equal(probe_read(&p, index, 0), TN_EINVAL);
  if (strstr(probe_error(&p), name) == NULL || strstr(probe_error(&p), text) == NULL)
    fail_msg("'%s' lacks '%s' or '%s'", probe_error(&p), name, text);
  probe_close(&p);
}

/* Pixel (x, y) of a picture decoded at 1 / parts is the mean of parts x parts pixels. */
static void expect_reduced(const probe *p, int parts, int high, int wide) {
  const uint8_t *image = p->value[0];
  assert_int_equal(p->type[0].dims[1], (high + parts - 1) / parts);
  assert_int_equal(p->type[0].dims[2], (wide + parts - 1) / parts);
  int64_t plane = p->type[0].dims[1] * p->type[0].dims[2];
  /* only where the shades do not wrap around, and not near those places */
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < 4 / parts; y++)
      for (int x = 0; x < 8 / parts; x++) {
        int mean = (shade(c, x * parts, y * parts) + shade(c, (x + 1) * parts - 1, (y + 1) * parts - 1)) / 2;
        assert_in_range(image[c * plane + y * p->type[0].dims[2] + x] + 24 - mean, 0, 48);
      }
}

static void jpegs_may_be_decoded_smaller_as_far_as_is_allowed(void **state) {
  (void)state;
  static const struct {
    const char *at_least;
    int parts;
  } cases[] = {{"0", 1},  {"41", 1}, {"40", 1}, {"21", 1}, {"20", 2},
               {"11", 2}, {"10", 4}, {"6", 4},  {"5", 8},  {"1", 8}};
  put_folder("train");
  put_folder("train/cat");
  put_jpeg("train/cat/a.jpg", 40, 63, JCS_RGB, 3);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    probe p;
    open_train(&p, PAIRS("folder", folder, "at_least", cases[i].at_least));
    assert_int_equal(p.description.fields[0].type.dims[1], (40 + cases[i].parts - 1) / cases[i].parts);
    assert_int_equal(probe_read(&p, 0, 0), TN_OK);
    expect_reduced(&p, cases[i].parts, 40, 63);
    probe_close(&p);
  }
  /* the limit applies to the size in the file, not to the decoded size */
  probe_refused(&image_folder_source, PAIRS("folder", folder, "at_least", "1", "max_pixels", "1000"),
                TN_SPLIT_TRAIN, TN_EINVAL, "has 63 x 40 pixels");
}

static void damaged_files_are_errors_with_their_path(void **state) {
  (void)state;
  static const size_t cuts[] = {4, 30, 200, 400};
  put_two_classes();
  for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
    put_jpeg("train/cat/b.jpg", HIGH, WIDE, JCS_RGB, 3);
    break_file("train/cat/b.jpg", cuts[i], 0);
    expect_damage("train/cat/b.jpg", 2, "damaged JPEG");
    put_png("train/ant/z.png", PNG_COLOR_TYPE_RGB, 8, 0);
    break_file("train/ant/z.png", cuts[i] < 100 ? cuts[i] + 8 : 60, 0);
    expect_damage("train/ant/z.png", 0, "damaged PNG");
  }
  put_png("train/ant/z.png", PNG_COLOR_TYPE_RGB, 8, 0);
  break_file("train/ant/z.png", SIZE_MAX, 20); /* the checksum is wrong */
  expect_damage("train/ant/z.png", 0, "damaged PNG");
  write_file(in_folder(folder, "train/ant/z.png"), "GIF89a", 6);
  expect_damage("train/ant/z.png", 0, "is neither JPEG, PNG, WebP, TIFF nor AVIF");
  write_file(in_folder(folder, "train/ant/z.png"), "", 0);
  expect_damage("train/ant/z.png", 0, "is neither JPEG, PNG, WebP, TIFF nor AVIF");
}

/* Files are in the order ant/z, cat/a, cat/b. */
static void sizes_are_those_of_pictures_that_are_not_damaged(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  write_file(in_folder(folder, "train/ant/z.png"), "", 0);
  open_train(&p, PAIRS("folder", folder));
  assert_int_equal(p.description.fields[0].type.dims[1], HIGH);
  assert_int_equal(probe_read(&p, 0, 0), TN_EINVAL);
  assert_non_null(strstr(probe_error(&p), "ant/z.png: is neither JPEG, PNG, WebP, TIFF nor AVIF"));
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  probe_close(&p);
  break_file("train/cat/a.JPEG", 200, 0);
  probe_refused(&image_folder_source, PAIRS("folder", folder), TN_SPLIT_TRAIN, TN_EINVAL,
                "train/cat/a.JPEG: damaged JPEG");
}

static void a_jpeg_of_too_many_scans_is_refused(void **state) {
  (void)state;
  probe p;
  put_folder("train");
  put_folder("train/x");
  put_progressive("train/x/a.jpg", 500);
  put_progressive("train/x/b.jpg", 501);
  put_progressive("train/x/c.jpg", 704);
  open_train(&p, PAIRS("folder", folder, "size", "16"));
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  for (int64_t i = 1; i < 3; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_EINVAL);
    if (strstr(probe_error(&p), i == 1 ? "train/x/b.jpg" : "train/x/c.jpg") == NULL ||
        strstr(probe_error(&p), "more than 500 scans") == NULL)
      fail_msg("%s", probe_error(&p));
  }
  probe_close(&p);
}

static int32_t stops_after_3[1];
static int32_t stop_the_fourth_time(const tn_sample *s) {
  (void)s;
  return stops_after_3[0]++ >= 3;
}

static void decoding_ends_when_the_sample_is_not_wanted_any_more(void **state) {
  (void)state;
  probe p;
  put_folder("train");
  put_folder("train/x");
  put_progressive("train/x/a.jpg", 300);
  open_train(&p, PAIRS("folder", folder, "size", "16"));
  p.host.pub.struct_size = sizeof(p.host.pub);
  p.host.pub.stopping = stop_the_fourth_time;
  assert_int_equal(probe_read(&p, 0, 0), TN_ESTOPPED);
  assert_non_null(strstr(probe_error(&p), "train/x/a.jpg: stopped"));
  assert_int_equal(stops_after_3[0], 4);
  probe_close(&p);
}

static void pictures_beyond_the_limit_are_refused(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  open_train(&p, PAIRS("folder", folder, "max_pixels", "53", "size", "0"));
  for (int64_t i = 0; i < 3; i += 2) {
    assert_int_equal(probe_read(&p, i, 0), TN_EINVAL);
    assert_non_null(strstr(probe_error(&p), "has 9 x 6 pixels, expected at most 53"));
  }
  probe_close(&p);
}

static void validation_shares_the_numbers_of_training(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  put_folder("val");
  put_folder("val/cat");
  put_jpeg("val/cat/q.jpg", HIGH, WIDE, JCS_RGB, 3);
  assert_int_equal(probe_open(&p, &image_folder_source, PAIRS("folder", folder), TN_SPLIT_VALID), TN_OK);
  assert_int_equal(p.description.count, 1);
  assert_int_equal(p.description.fields[1].classes, 2);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 1);
  probe_close(&p);
  put_folder("val/dog");
  probe_refused(&image_folder_source, PAIRS("folder", folder), TN_SPLIT_VALID, TN_EINVAL,
                "has a class 'dog' that");
}

static void a_subfolder_may_be_named(void **state) {
  (void)state;
  probe p;
  put_two_classes();
  const char *train = in_folder(folder, "train");
  open_train(&p, PAIRS("folder", train, "subfolder", "."));
  assert_int_equal(p.description.count, 3);
  probe_close(&p);
  probe_refused(&image_folder_source, PAIRS("folder", train), TN_SPLIT_TRAIN, TN_EUNAVAILABLE,
                "has no train/");
}

static void put_pictures(const char *class, int n) {
  char path[64];
  put_folder(class);
  for (int i = 0; i < n; i++) {
    snprintf(path, sizeof path, "%s/%d.png", class, i);
    put_png(path, PNG_COLOR_TYPE_GRAY, 8, 0);
  }
}

/* The names of the files of both parts, which no two share. */
static int names_of_part(probe *p, const char *const *pairs, int32_t part, char names[16][64]) {
  assert_int_equal(probe_open(p, &image_folder_source, pairs, part), TN_OK);
  int n = (int)p->description.count;
  for (int i = 0; i < n; i++) {
    char path[512];
    assert_int_equal(image_folder_source.name(&p->host.pub.env, p->self, i, path, sizeof path), TN_OK);
    const char *tail = strstr(path, "train/");
    assert_non_null(tail);
    snprintf(names[i], 64, "%s", tail);
    assert_int_equal(probe_read(p, i, 0), TN_OK);
    assert_int_equal(*(const int32_t *)p->value[1], tail[6] == 'b');
    probe_expect_class(p, i, tail[6] == 'b');
  }
  probe_close(p);
  return n;
}

/* Of ten and of three pictures a fifth: two and one. */
static void a_part_of_training_may_validate(void **state) {
  (void)state;
  probe p;
  char names[16][64];
  const char *const *pairs = PAIRS("folder", folder, "split", "0.2");
  put_folder("train");
  put_pictures("train/a", 10);
  put_pictures("train/b", 3);
  int valid = names_of_part(&p, pairs, TN_SPLIT_VALID, names);
  assert_int_equal(valid, 3);
  assert_int_equal(names_of_part(&p, pairs, TN_SPLIT_TRAIN, names + valid), 10);
  for (int i = 0; i < 13; i++)
    for (int k = 0; k < i; k++) assert_string_not_equal(names[i], names[k]);
  put_folder("valid");
  probe_refused(&image_folder_source, pairs, TN_SPLIT_TRAIN, TN_EINVAL, "split = 0.2 has no effect beside");
}

static void folders_without_pictures_are_refused(void **state) {
  (void)state;
  probe_refused(&image_folder_source, PAIRS("folder", in_folder(folder, "none")), TN_SPLIT_TRAIN, TN_EIO,
                "none: there is no such folder");
  probe_refused(&image_folder_source, PAIRS("folder", folder), TN_SPLIT_VALID, TN_EUNAVAILABLE,
                "has no valid/, val/ or test/");
  put_folder("train");
  probe_refused(&image_folder_source, PAIRS("folder", folder), TN_SPLIT_TRAIN, TN_EINVAL,
                "holds no class folders");
  put_folder("train/a");
  probe_refused(&image_folder_source, PAIRS("folder", folder), TN_SPLIT_TRAIN, TN_EINVAL,
                "train/a: has no .jpg");
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  put_two_classes(); /* sample 0 is a PNG */
  probe_starve(&image_folder_source, PAIRS("folder", folder));
  put_jpeg("train/ant/a.jpg", HIGH, WIDE, JCS_RGB, 3);
  probe_starve(&image_folder_source, PAIRS("folder", folder));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(classes_and_files_are_sorted),
      CASE(classes_lie_deeper_where_it_is_asked_for),
      CASE(pictures_of_one_size_have_a_fixed_type),
      CASE(a_picture_of_another_size_is_an_error),
      CASE(every_kind_of_png_becomes_rgb),
      CASE(grey_and_cmyk_jpegs_become_rgb),
      CASE(jpegs_may_be_decoded_smaller_as_far_as_is_allowed),
      CASE(photos_are_turned_as_they_were_taken),
      CASE(damaged_files_are_errors_with_their_path),
      CASE(sizes_are_those_of_pictures_that_are_not_damaged),
      CASE(a_jpeg_of_too_many_scans_is_refused),
      CASE(decoding_ends_when_the_sample_is_not_wanted_any_more),
      CASE(pictures_beyond_the_limit_are_refused),
      CASE(validation_shares_the_numbers_of_training),
      CASE(a_subfolder_may_be_named),
      CASE(a_part_of_training_may_validate),
      CASE(folders_without_pictures_are_refused),
      CASE(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

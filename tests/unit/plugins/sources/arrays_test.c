#include <math.h>

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source arrays_source;

/* The files of make_files.py have ten rows: x[i] counts from 6 i, y[i] is 7 i mod 4, mask counts mod 3. */
enum { ROWS = 10 };

static char *folder; /* for files that a test damages */

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

static void open_or_fail(probe *p, const char *const *pairs, int32_t split) {
  if (probe_open(p, &arrays_source, pairs, split) != TN_OK) fail_msg("%s", probe_error(p));
}

#define IN_FILES(...) PAIRS("folder", FILES, __VA_ARGS__)

static void check_type(const probe *p, int i, const char *name, tn_type type, int64_t classes) {
  const tn_field *f = &p->description.fields[i];
  assert_string_equal(f->name, name);
  assert_true(tn_type_equal(&f->type, &type));
  assert_int_equal(f->classes, classes);
}

/* x as f32[2, 3], y as i32, of each row. */
static void check_rows(probe *p) {
  assert_int_equal(p->description.count, ROWS);
  check_type(p, 0, "x", (tn_type){TN_F32, 2, {2, 3}}, 0);
  check_type(p, 1, "y", (tn_type){TN_I32, 0, {0}}, 4);
  for (int i = 0; i < ROWS; i++) {
    assert_int_equal(probe_read(p, i, 0), TN_OK);
    for (int k = 0; k < 6; k++) assert_true(((float *)p->value[0])[k] == (float)(6 * i + k));
    assert_int_equal(*(int32_t *)p->value[1], 7 * i % 4);
    probe_expect_class(p, i, 7 * i % 4);
  }
  probe_close(p);
}

static void a_field_is_the_row_of_any_format(void **state) {
  (void)state;
  static const char *const x[] = {"x: x.npy", "x: x_big.npy", "x: all.npz", "x: packed.npz/x"},
                           *const y[] = {"y: y.npy", "y: all.npz/y 0..3", "y:packed.npz", "y: zip64.npz",
                                         "y: all.safetensors/y"};
  probe p;
  for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
    open_or_fail(&p, IN_FILES("inputs", x[i % 4], "targets", y[i]), TN_SPLIT_TRAIN);
    check_rows(&p);
  }
  char path[1024];
  snprintf(path, sizeof path, "x: %s/x.npy", FILES);
  open_or_fail(&p, PAIRS("inputs", path, "targets", "y: y.npy", "folder", FILES), TN_SPLIT_TRAIN);
  check_rows(&p);
}

static void rows_are_read_as_the_field_says(void **state) {
  (void)state;
  probe p;
  open_or_fail(&p,
               IN_FILES("inputs", "half: x_half.npy as f32[6], raw: x.raw u8[2, 2] +16", "targets",
                        "small: y_i16_big.npy\nflag: all.safetensors/flag"),
               TN_SPLIT_TRAIN);
  check_type(&p, 0, "half", (tn_type){TN_F32, 1, {6}}, 0);
  check_type(&p, 1, "raw", (tn_type){TN_U8, 2, {2, 2}}, 0);
  check_type(&p, 2, "small", (tn_type){TN_I32, 0, {0}}, 2); /* from -2 to 1 */
  check_type(&p, 3, "flag", (tn_type){TN_BOOL, 0, {0}}, 0);
  assert_int_equal(probe_read(&p, 9, 0), TN_OK);
  for (int k = 0; k < 6; k++) assert_true(((float *)p.value[0])[k] == (float)(54 + k) / 4);
  for (int k = 0; k < 4; k++) assert_int_equal(((uint8_t *)p.value[1])[k], (36 + k) % 3);
  assert_int_equal(*(int32_t *)p.value[2], 63 % 4 - 2);
  assert_int_equal(*(uint8_t *)p.value[3], 63 % 4 > 1);
  probe_close(&p);
  open_or_fail(&p,
               IN_FILES("inputs", "w: wide.npy, m: all.npz/mask as f64[2, 2], y: y_i16_big.npy as f32[1]"),
               TN_SPLIT_TRAIN);
  check_type(&p, 0, "w", (tn_type){TN_I64, 0, {0}}, 0);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_true(*(int64_t *)p.value[0] == (int64_t)1 << 40);
  assert_true(((double *)p.value[1])[3] == 7 % 3);
  assert_true(*(float *)p.value[2] == 1);
  probe_close(&p);
}

/* Halves with all kinds of exponents, as NumPy has them. */
static void halves_become_floats(void **state) {
  (void)state;
  static const uint16_t bits[] = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400,
                                  0x3c00, 0xc000, 0x7bff, 0x7c00, 0xfc00};
  static const float values[] = {0, -0.0f, 0x1p-24f, 0x3ffp-24f, 0x1p-14f, 1, -2, 65504, INFINITY, -INFINITY};
  probe p;
  write_file(in_folder(folder, "half.bin"), bits, sizeof bits);
  open_or_fail(&p, PAIRS("folder", folder, "inputs", "x: half.bin f16[10] as f32"), TN_SPLIT_TRAIN);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_memory_equal(p.value[0], values, sizeof values);
  probe_close(&p);
  open_or_fail(&p, PAIRS("folder", folder, "inputs", "x: half.bin bf16[10] as f32"), TN_SPLIT_TRAIN);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_true(((float *)p.value[0])[5] == 0x1p-7f);
  probe_close(&p);
}

/* ---- parts ---- */

/* Training and validation have all rows, each once and in their order. */
static void check_parts(const char *split, const char *at, int64_t held, const int32_t *valid) {
  const char *const *options =
      IN_FILES("inputs", "x: x.npy", "targets", "y: y.npy", "split", split, "split_at", at);
  int seen[ROWS] = {0};
  probe p;
  for (int32_t part = 0; part < 2; part++) {
    open_or_fail(&p, options, part);
    assert_int_equal(p.description.count, part == TN_SPLIT_VALID ? held : ROWS - held);
    assert_int_equal(p.description.fields[1].classes, 4);
    for (int64_t i = 0, last = -1; i < p.description.count; i++) {
      char name[32];
      assert_int_equal(probe_read(&p, i, 0), TN_OK);
      int row = (int)(*(float *)p.value[0] / 6);
      seen[row]++;
      assert_true(row > last);
      last = row;
      if (part == TN_SPLIT_VALID && valid != NULL) assert_int_equal(row, valid[i]);
      assert_int_equal(arrays_source.name(&p.host.pub.env, p.self, i, name, sizeof name), TN_OK);
      assert_int_equal(atoi(name + 4), row);
    }
    probe_close(&p);
  }
  for (int i = 0; i < ROWS; i++) assert_int_equal(seen[i], 1);
}

static void validation_has_a_row_of_each_stretch(void **state) {
  (void)state;
  static const char *const parts[] = {"0.1", "0.2", "0.3", "0.5", "0.7", "0.9"};
  static const int32_t end[] = {8, 9};
  for (int i = 0; i < 6; i++) check_parts(parts[i], "drawn", (int64_t)(10 * atof(parts[i]) + 0.5), NULL);
  check_parts("0.2", "end", 2, end);
}

static void validation_may_have_files_of_its_own(void **state) {
  (void)state;
  probe p;
  open_or_fail(&p,
               IN_FILES("inputs", "x: x.npy", "targets", "y: y.npy", "valid", "y: all.npz/y, x: all.npz/x"),
               TN_SPLIT_VALID);
  check_rows(&p);
  static const int64_t more[] = {0, 6, 1, 2, 3, 0, 0};
  write_file(in_folder(folder, "y.bin"), more, sizeof more);
  char train[1200];
  snprintf(train, sizeof train, "y: %s/y.bin i64[]", folder);
  for (int32_t part = 0; part < 2; part++) {
    open_or_fail(&p, IN_FILES("inputs", "x: short.npy", "targets", train, "valid", "y: y.npy, x: x.npy"),
                 part);
    assert_int_equal(p.description.fields[1].classes, 7);
    assert_int_equal(p.description.count, part == TN_SPLIT_VALID ? ROWS : 7);
    probe_close(&p);
  }
}

/* ---- mistakes and damage ---- */

static void a_mask_has_no_class_beyond_its_range(void **state) {
  (void)state;
  static const uint8_t masks[] = {0, 1, 2, 1, /* row 1 */ 2, 3, 0, 1};
  probe p;
  write_file(in_folder(folder, "masks.bin"), masks, sizeof masks);
  open_or_fail(
      &p, PAIRS("folder", folder, "inputs", "x: masks.bin u8[4]", "targets", "y: masks.bin u8[2, 2] 0..2"),
      TN_SPLIT_TRAIN);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(probe_read(&p, 1, 0), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&p.host.pub.env), "masks.bin: row 1 has class 3, expected 0 to 2"));
  probe_close(&p);
}

#define REFUSED(text, ...)                                                                                   \
  probe_refused(&arrays_source, IN_FILES(__VA_ARGS__), TN_SPLIT_TRAIN, TN_EINVAL, text)

static void texts_of_fields_are_checked(void **state) {
  (void)state;
  REFUSED("inputs names no field", "inputs", ", ");
  REFUSED("'x.npy' is no field, expected NAME: FILE", "inputs", "x.npy");
  REFUSED("'x:' is no field", "inputs", "x:");
  REFUSED("the field 'x' appears twice", "inputs", "x: x.npy, x: y.npy");
  REFUSED("the field 'x' appears twice", "inputs", "x: x.npy", "targets", "x: y.npy");
  REFUSED("x.npy: says the type of its numbers itself", "inputs", "x: x.npy f32[6]");
  REFUSED("x.raw: is neither .npy, .npz nor .safetensors", "inputs", "x: x.raw");
  REFUSED("x.raw: has 56 bytes, expected 15 in front of rows of 4", "inputs", "x: x.raw u8[4] +15");
  REFUSED("x.raw: its rows have no bytes", "inputs", "x: x.raw u8[0]");
  REFUSED("a row has 6 numbers", "inputs", "x: x.npy as f32[7]");
  REFUSED("has numbers of type f32, which are not read as i32", "inputs", "x: x.npy as i32");
  REFUSED("short.npy of field 'z' has 7 rows, but ", "inputs", "x: x.npy, z: short.npy");
  REFUSED("row 1 has class 3, expected 0 to 2", "inputs", "x: x.npy", "targets", "y: y.npy 0..2");
  REFUSED("wide.npy: row 1 has 1099511627776, which i32 cannot hold; `as i64`", "inputs", "x: x.npy",
          "targets", "y: wide.npy");
  probe_refused(&arrays_source, PAIRS("inputs", "x: x.npy"), TN_SPLIT_TRAIN, TN_EINVAL,
                "x.npy is relative, and folder is not set");
  probe_refused(&arrays_source, IN_FILES("inputs", "x: none.npy"), TN_SPLIT_TRAIN, TN_EIO,
                "none.npy: cannot open");
}

static void parts_are_checked(void **state) {
  (void)state;
  probe_refused(&arrays_source, IN_FILES("inputs", "x: x.npy"), TN_SPLIT_VALID, TN_EUNAVAILABLE,
                "no rows are for validation; set split = 0.1");
  REFUSED("split = 0.01 of 10 rows leaves none", "inputs", "x: x.npy", "split", "0.01");
  REFUSED("split = 0.5 has no effect beside valid", "inputs", "x: x.npy", "split", "0.5", "valid",
          "x: x.npy");
  REFUSED("valid: the field 'z' is neither in inputs nor in targets", "inputs", "x: x.npy", "valid",
          "z: x.npy");
  REFUSED("valid: the field 'y' is missing", "inputs", "x: x.npy", "targets", "y: y.npy", "valid",
          "x: x.npy");
  REFUSED("has rows of another type or size than", "inputs", "x: x.npy", "valid", "x: y.npy");
  REFUSED("y.npy of field 'y' has class 3, expected 0 to 1", "inputs", "x: x.npy", "targets",
          "y: y_i16_big.npy 0..1", "valid", "x: x.npy, y: y.npy");
}

static void arrays_that_are_no_rows_of_numbers_are_refused(void **state) {
  (void)state;
  REFUSED("x_fortran.npy: is stored in Fortran order", "inputs", "x: x_fortran.npy");
  REFUSED("objects.npy: has elements of type '|O', which are Python objects", "inputs", "x: objects.npy");
  REFUSED("all.npz: has no array 'z', expected one of: x, y, mask", "inputs", "z: all.npz");
  REFUSED("all.npz: has no array 'q', expected one of: x, y, mask", "inputs", "x: all.npz/q");
  REFUSED("all.safetensors: has no array 'z', expected one of: ", "inputs", "z: all.safetensors");
}

static uint8_t bytes[4096];
static size_t count;

static void take(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", FILES, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  count = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
}

/* The place of a text in the file that was taken. */
static uint8_t *place(const char *text) {
  void *found = memmem(bytes, count, text, strlen(text));
  assert_non_null(found);
  return found;
}

/* Writes the bytes as NAME, and opens it. */
static void damaged(const char *name, const char *text) {
  char field[64];
  snprintf(field, sizeof field, "y: %s", name);
  write_file(in_folder(folder, name), bytes, count);
  probe_refused(&arrays_source, PAIRS("folder", folder, "inputs", field), TN_SPLIT_TRAIN, TN_EINVAL, text);
}

static void damaged_npy_files_are_refused(void **state) {
  (void)state;
  take("y.npy"), count = 0;
  damaged("y.npy", "y.npy: does not begin with \\x93NUMPY");
  take("y.npy"), bytes[6] = 4;
  damaged("y.npy", "y.npy: has version 4 of the .npy format");
  take("y.npy"), bytes[8] = 255, bytes[9] = 3;
  damaged("y.npy", "y.npy: has 208 bytes, but a header of 1023: it is cut off");
  take("y.npy"), count -= 1;
  damaged("y.npy", "y.npy: has 79 bytes of data, but its shape and type need 80");
  take("y.npy"), place("10,)")[0] = '9';
  damaged("y.npy", "y.npy: has 80 bytes of data, but its shape and type need 720");
  take("y.npy"), memcpy(place("(10,)"), "(-1,)", 5);
  damaged("y.npy", "y.npy: its header is damaged at byte 51, expected dimensions");
  take("y.npy"), memcpy(place("shape"), "shapo", 5);
  damaged("y.npy", "expected descr, fortran_order and shape, each once");
  take("y.npy"), memcpy(place("(10,), }            "), "(9999999999999999999", 20);
  damaged("y.npy", "expected dimensions");
  take("y.npy"), memcpy(place("'<i8'"), "[<i8]", 5);
  damaged("y.npy", "y.npy: is a structured array");
  take("y.npy"), memcpy(place("<i8"), "<c8", 3);
  damaged("y.npy", "y.npy: has elements of type '<c8', expected bool, whole numbers or floats; convert it");
  take("y.npy"), memcpy(place("(10,)"), "(0,) ", 5), count = 128;
  damaged("y.npy", "y.npy: has no rows");
}

/* Sets a number of n bytes. */
static void put_number(uint8_t *at, uint64_t value, int n) {
  for (int i = 0; i < n; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void damaged_archives_are_refused(void **state) {
  (void)state;
  take("all.npz"), count -= 1;
  damaged("y.npz", "y.npz: has no directory at its end: the archive is cut off");
  take("all.npz"), put_number(place("PK\x05\x06") + 16, 1 << 20, 4);
  damaged("y.npz", "y.npz: its directory lies outside of the file");
  take("all.npz"), put_number(place("PK\x05\x06") + 16, 1, 4);
  damaged("y.npz", "y.npz: its directory has an entry without its mark");
  take("all.npz"), put_number(place("PK\x01\x02") + 30, 60000, 2);
  damaged("y.npz", "y.npz: an entry of its directory is too long");
  take("zip64.npz"), put_number(place("PK\x06\x07") + 8, UINT64_MAX - 8, 8);
  damaged("y.npz", "y.npz: its 64-bit directory is not there");
  take("zip64.npz"), put_number(place("PK\x06\x06") + 48, UINT64_MAX - 8, 8);
  damaged("y.npz", "y.npz: its directory lies outside of the file");
  uint8_t *entry = (take("zip64.npz"), place("PK\x01\x02"));
  put_number(entry + 46 + 5 + 4, 1 << 20, 8); /* the size */
  damaged("y.npz", "y.npz: a stored member has two sizes");
  put_number(entry + 46 + 5 + 12, 1 << 20, 8);
  damaged("y.npz", "y.npz: a member lies outside of the file");
  entry = (take("zip64.npz"), place("PK\x01\x02"));
  put_number(entry + 46 + 5 + 20, UINT64_MAX - 4, 8);
  damaged("y.npz", "y.npz: a member lies outside of the file");
  entry = (take("zip64.npz"), place("PK\x01\x02"));
  put_number(entry + 10, 14, 2);
  damaged("y.npz", "y.npz: is encrypted or packed by method 14, expected numpy.savez");
}

static void damaged_deflated_members_are_refused(void **state) {
  (void)state;
  uint8_t *entry = (take("packed.npz"), place("PK\x01\x02"));
  put_number(entry + 24, 1 << 30, 4);
  write_file(in_folder(folder, "x.npz"), bytes, count);
  probe_refused(&arrays_source, PAIRS("folder", folder, "inputs", "x: x.npz"), TN_SPLIT_TRAIN, TN_EINVAL,
                "x.npz: a member declares more bytes than it can hold");
  entry = (take("packed.npz"), place("PK\x01\x02"));
  entry[16] ^= 1; /* the checksum */
  write_file(in_folder(folder, "x.npz"), bytes, count);
  probe_refused(&arrays_source, PAIRS("folder", folder, "inputs", "x: x.npz"), TN_SPLIT_TRAIN, TN_EINVAL,
                "x.npz: a member is not as it was written");
  entry = (take("packed.npz"), place("PK\x01\x02"));
  put_number(entry + 24, 100, 4); /* fewer bytes than it unpacks to */
  write_file(in_folder(folder, "x.npz"), bytes, count);
  probe_refused(&arrays_source, PAIRS("folder", folder, "inputs", "x: x.npz"), TN_SPLIT_TRAIN, TN_EINVAL,
                "x.npz: a member is not as it was written");
}

static void damaged_tensors_are_refused(void **state) {
  (void)state;
  static const char name[] = "y.safetensors";
  take("all.safetensors"), count = 7;
  damaged(name, "y.safetensors: has 7 bytes, but its header does not end within them");
  take("all.safetensors"), put_number(bytes, UINT64_MAX - 3, 8);
  damaged(name, "y.safetensors: has 274 bytes, but its header does not end within them");
  take("all.safetensors"), bytes[8] = '[';
  damaged(name, "y.safetensors: its header is no JSON object: byte ");
  take("all.safetensors"), count -= 60;
  damaged(name, "expected within ");
  take("all.safetensors"), memcpy(place("\"I32\""), "\"C64\"", 5);
  damaged(name, "y.safetensors/y: has elements of type C64");
  take("all.safetensors"), memcpy(place("[10]"), "[-1]", 4);
  damaged(name, "its shape has a dimension that is no number >= 0");
  take("all.safetensors"), memcpy(place("\"I32\""), "\"I64\"", 5);
  damaged(name, "y.safetensors/y: has 40 bytes of data, but its shape and type need 80");
  take("all.safetensors"), memcpy(place("\"I32\",\"shape\""), "\"I32\",\"shapo\"", 13);
  damaged(name, "y.safetensors/y: has no shape: the header is damaged");
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  probe_starve(&arrays_source, IN_FILES("inputs", "x: packed.npz", "targets", "y: y.npy", "valid",
                                        "x: x.npy, y: packed.npz"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_field_is_the_row_of_any_format),
      CASE(rows_are_read_as_the_field_says),
      CASE(halves_become_floats),
      CASE(validation_has_a_row_of_each_stretch),
      CASE(validation_may_have_files_of_its_own),
      CASE(a_mask_has_no_class_beyond_its_range),
      CASE(texts_of_fields_are_checked),
      CASE(parts_are_checked),
      CASE(arrays_that_are_no_rows_of_numbers_are_refused),
      CASE(damaged_npy_files_are_refused),
      CASE(damaged_archives_are_refused),
      CASE(damaged_deflated_members_are_refused),
      CASE(damaged_tensors_are_refused),
      CASE(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

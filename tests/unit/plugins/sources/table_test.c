/* The source `table`: cells as pandas reads them, the kinds of fields, and messages. */
#include <jansson.h>
#include <math.h>
#include <png.h>

#include "plugins/sources/table/table.h"
#include "tests/unit/plugins/sources/table_probe.h"

static void refuses(const char *text, const char *inputs, const char *message) {
  probe p;
  assert_int_equal(table_open_part(&p, TN_SPLIT_TRAIN, text, inputs, "", NULL), TN_EINVAL);
  if (strstr(probe_error(&p), message) == NULL) fail_msg("'%s' lacks '%s'", probe_error(&p), message);
}

/* ---- pandas ---- */

enum { ABSENT = -12345 };

static void expect_number(probe *p, int64_t row, const json_t *value) {
  float expected = json_is_null(value) ? ABSENT : (float)json_number_value(value);
  if (table_number_at(p, row, 0, 0) != expected)
    fail_msg("row %d is %.9g, expected %.9g", (int)row, table_number_at(p, row, 0, 0), expected);
}

static void expect_text(probe *p, int64_t row, const json_t *value) {
  assert_int_equal(probe_read(p, row, 0), TN_OK);
  assert_int_equal(p->type[0].dims[0], json_string_length(value)); /* 0 of null */
  for (size_t i = 0; i < json_string_length(value); i++)
    assert_int_equal(((const int32_t *)p->value[0])[i], (uint8_t)json_string_value(value)[i]);
}

static void expect_column(const char *file, const json_t *column) {
  char inputs[256], path[1024];
  const char *name = json_string_value(json_array_get(column, 0));
  int numbers = strcmp(json_string_value(json_array_get(column, 1)), "number") == 0;
  const json_t *values = json_array_get(column, 2), *value;
  size_t i;
  snprintf(inputs, sizeof inputs, numbers ? "x: number(\"%s\", missing=%d)" : "x: text(\"%s\")", name,
           ABSENT);
  snprintf(path, sizeof path, "%s/%s", TABLES, file);
  const char *decimal = strcmp(file, "decimal_comma.csv") == 0 ? "comma" : "point";
  const char *pairs[] = {"file", path, "inputs", inputs, "decimal", decimal, NULL};
  probe p;
  if (probe_open(&p, &table_source, pairs, TN_SPLIT_TRAIN) != TN_OK)
    fail_msg("%s: %s", file, probe_error(&p));
  if (p.description.count != (int64_t)json_array_size(values))
    fail_msg("%s: %d rows, expected %d", file, (int)p.description.count, (int)json_array_size(values));
  json_array_foreach(values, i, value) {
    if (numbers)
      expect_number(&p, (int64_t)i, value);
    else
      expect_text(&p, (int64_t)i, value);
  }
  probe_close(&p);
}

static void awkward_tables_are_read_as_pandas_reads_them(void **state) {
  (void)state;
  json_t *all = json_load_file(TABLES "/expected.json", 0, NULL), *columns, *column;
  const char *file;
  size_t i;
  assert_int_equal(json_object_size(all), 30);
  json_object_foreach(all, file, columns) json_array_foreach(columns, i, column) expect_column(file, column);
  json_decref(all);
}

/* ---- numbers ---- */

/* Numbers of all lengths and exponents have the bits that strtod gives them. */
static void numbers_are_rounded_correctly(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(7, 0);
  for (int i = 0; i < 20000; i++) {
    char text[64];
    double value = 0;
    uint64_t digits = ((uint64_t)tn_rng_u32(&rng) << 32 | tn_rng_u32(&rng)) >> tn_rng_below(&rng, 60);
    int n = snprintf(text, sizeof text,
                     i % 3 == 0   ? "%llu.%lld"
                     : i % 3 == 1 ? "-%llu.%llde-5"
                                  : "%llue%lld",
                     (unsigned long long)digits, (long long)tn_rng_below(&rng, i % 3 == 2 ? 40 : 1000000));
    assert_true(table_to_number(text, (size_t)n, &value));
    double expected = strtod(text, NULL);
    if (memcmp(&value, &expected, sizeof value) != 0)
      fail_msg("%s is %.17g, expected %.17g", text, value, expected);
  }
}

static void what_is_no_number_is_none(void **state) {
  (void)state;
  static const char *const words[] = {"",    "-",   "+",   ".",   "e5",    "1e", "0x10",
                                      "inf", "nan", "1,5", "1 2", "1e999", "--1"};
  double value;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    assert_false(table_to_number(words[i], strlen(words[i]), &value));
}

static void times_are_seconds_since_1970(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double seconds;
  } times[] = {{"1970-01-01", 0},
               {"2000-02-29T12:30:15Z", 951827415},
               {"2000-02-29 12:30:15.25+02:00", 951820215.25},
               {"1969-12-31T23:59-0100", 3540},
               {"1700000000.5", 1700000000.5}};
  double value;
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    assert_true(table_to_time(times[i].text, strlen(times[i].text), &value));
    assert_true(value == times[i].seconds);
  }
  assert_false(table_to_time("2023-02-29", 10, &value));
  assert_false(table_to_time("2023-13-01", 10, &value));
  assert_false(table_to_time("2023-01-01T25:00", 16, &value));
}

/* Of 2, 4, missing and 9 the mean is 5, the median 4, the deviation the root of 26/3. */
static void numbers_are_filled_and_standardized(void **state) {
  (void)state;
  const char text[] = "a,b\n2,1\n4,2\n,3\n9,4\n";
  probe p;
  table_open(&p, text, "x: numbers(a, b, missing=median, indicator=yes)",
             "y: number(a, missing=mean, standardize=yes)");
  assert_int_equal(p.description.fields[0].type.dims[0], 4);
  assert_true(table_number_at(&p, 2, 0, 0) == 4 && table_number_at(&p, 2, 0, 1) == 3);
  assert_true(table_number_at(&p, 2, 0, 2) == 1 && table_number_at(&p, 2, 0, 3) == 0 &&
              table_number_at(&p, 1, 0, 2) == 0);
  assert_true(table_number_at(&p, 2, 1, 0) == 0);
  assert_true(fabs(table_number_at(&p, 3, 1, 0) - 4 / sqrt(26 / 3.0)) < 1e-6);
  probe_close(&p);
}

/* `*` is a and d: b is used, c has words, and a column without a name is an index. */
static void a_star_is_the_other_columns_of_numbers(void **state) {
  (void)state;
  probe p;
  table_open(&p, ",a,b,c,d\n0,1,2,x,3\n1,4,5,y,6\n", "x: numbers(*)", "y: number(b)");
  assert_int_equal(p.description.fields[0].type.dims[0], 2);
  assert_true(table_number_at(&p, 1, 0, 0) == 4 && table_number_at(&p, 1, 0, 1) == 6);
  probe_close(&p);
}

/* ---- words ---- */

static void classes_are_sorted_by_value_or_by_letters(void **state) {
  (void)state;
  const char text[] = "n,w\n10,pear\n9,apple\n10,\n";
  probe p;
  table_open(&p, text, "n: category", "w: category(missing=class)");
  assert_int_equal(table_class_at(&p, 0, 0), 1);
  assert_int_equal(table_class_at(&p, 1, 0), 0);
  assert_int_equal(p.description.fields[1].classes, 3);
  assert_string_equal(p.description.fields[1].class_names[0], "apple");
  assert_string_equal(p.description.fields[1].class_names[2], "missing");
  for (int64_t row = 0; row < 3; row++) {
    static const int expected[] = {1, 0, 2};
    assert_int_equal(table_class_at(&p, row, 1), expected[row]);
    probe_expect_class(&p, row, expected[row]);
  }
  probe_close(&p);
  table_open(&p, text, "n: category(order=appearance)",
             "w: category(one_hot=yes, classes=pear|apple, missing=class)");
  assert_int_equal(table_class_at(&p, 0, 0), 0);
  assert_int_equal(p.description.fields[1].type.dims[0], 3);
  assert_true(table_number_at(&p, 0, 1, 0) == 1 && table_number_at(&p, 1, 1, 1) == 1 &&
              table_number_at(&p, 2, 1, 2) == 1);
  probe_close(&p);
}

static void several_words_are_zeros_and_ones(void **state) {
  (void)state;
  probe p;
  table_open(&p, "g\ncrime|war\n\nwar\n", "g: categories", "");
  assert_int_equal(p.description.count, 2); /* an empty line is no row */
  assert_true(table_number_at(&p, 0, 0, 0) == 1 && table_number_at(&p, 0, 0, 1) == 1);
  assert_true(table_number_at(&p, 1, 0, 0) == 0 && table_number_at(&p, 1, 0, 1) == 1);
  probe_close(&p);
}

static void sequences_and_texts_are_padded(void **state) {
  (void)state;
  probe p;
  table_open(&p, "s,t\n1 2.5,ab\n\"[3, 4, 5]\",\n",
             "s: sequence(length=3, pad=-1)\nt: text(length=3)\nv: sequence(s)\n", "");
  assert_true(table_number_at(&p, 0, 0, 1) == 2.5F && table_number_at(&p, 0, 0, 2) == -1 &&
              table_number_at(&p, 1, 0, 2) == 5);
  assert_int_equal(p.description.fields[2].type.dims[0], -1);
  assert_int_equal(p.type[2].dims[0], 3);
  assert_int_equal(((const int32_t *)p.value[1])[0], 0);
  assert_int_equal(table_class_at(&p, 0, 1), 'a');
  probe_close(&p);
}

static void a_text_becomes_tokens(void **state) {
  (void)state;
  probe p;
  table_open(&p, "t\nab\nabcd\n", "t: tokens(tokenizer=bytes, length=3, pad=7)", "");
  assert_int_equal(table_class_at(&p, 0, 0), 'a');
  assert_int_equal(((const int32_t *)p.value[0])[2], 7);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_int_equal(((const int32_t *)p.value[0])[2], 'c');
  char *learnt = NULL;
  const char *text;
  assert_int_equal(table_source.learnt(&p.host.pub.env, p.self, &text), TN_OK);
  learnt = strdup(text);
  probe_close(&p);
  const char *pairs[] = {"file", in_folder(table_folder, "t.csv"), "inputs", "t: tokens(tokenizer=gone.json)",
                         NULL};
  assert_int_equal(probe_open_taught(&p, &table_source, pairs, TN_SPLIT_TRAIN, learnt), TN_OK);
  assert_int_equal(table_class_at(&p, 1, 0), 'a');
  assert_int_equal(p.type[0].dims[0], 4);
  probe_close(&p);
  free(learnt);
  refuses("t\na\n", "t: tokens", "expected tokenizer = FILE");
}

/* 2024-02-29 was a Thursday. */
static void a_time_has_parts(void **state) {
  (void)state;
  probe p;
  table_open(&p, "t\n2024-02-29T18:05:00\n", "t: time(parts=year|month|day|weekday|hour|minute|of_day)", "");
  static const float expected[] = {2024, 2, 29, 3, 18, 5, (18 * 60 + 5) / 1440.0F};
  for (int i = 0; i < 7; i++) assert_true(table_number_at(&p, 0, 0, i) == expected[i]);
  probe_close(&p);
}

static void lines_of_json_are_rows(void **state) {
  (void)state;
  probe p;
  table_open(&p, "{\"a\": 1, \"w\": \"x\", \"s\": [1, 2]}\n\n{\"a\": null, \"w\": \"y\", \"s\": []}\n",
             "a: number(missing=7)\nw: category\ns: sequence(length=2)", "");
  assert_int_equal(p.description.count, 2);
  assert_true(table_number_at(&p, 0, 0, 0) == 1 && table_number_at(&p, 1, 0, 0) == 7);
  assert_int_equal(table_class_at(&p, 1, 1), 1);
  assert_true(table_number_at(&p, 0, 2, 1) == 2 && table_number_at(&p, 1, 2, 1) == 0);
  char name[1024];
  assert_int_equal(table_source.name(&p.host.pub.env, p.self, 1, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "t.csv:3"));
  probe_close(&p);
}

/* ---- pictures ---- */

/* A picture of 2 x 3 pixels: the values 0 to 5 in grey, or in colour. */
static void put_picture(const char *name, uint32_t format) {
  static const uint8_t grey[] = {0, 1, 2, 3, 4, 5},
                       colour[] = {9, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5};
  png_image image = {.version = PNG_IMAGE_VERSION, .width = 2, .height = 3, .format = format};
  const uint8_t *pixels = format == PNG_FORMAT_GRAY ? grey : colour;
  assert_int_equal(png_image_write_to_file(&image, in_folder(table_folder, name), 0, pixels, 0, NULL), 1);
}

static void pictures_and_masks_lie_beside_the_table(void **state) {
  (void)state;
  put_picture("grey.png", PNG_FORMAT_GRAY);
  put_picture("red.png", PNG_FORMAT_RGB);
  probe p;
  table_open(&p, "picture,mask\nred.png,grey.png\nred.png,red.png\n",
             "picture: image\nmask: mask\nclasses: mask(mask, index=yes)", "");
  assert_int_equal(p.description.keep, 1);
  assert_int_equal(p.description.fields[1].type.dims[1], 3);
  assert_int_equal(p.description.fields[2].type.dims[1], 2);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(((const uint8_t *)p.value[0])[0], 9);
  assert_int_equal(((const uint8_t *)p.value[0])[6], 0);
  assert_int_equal(((const uint8_t *)p.value[1])[4], 4);
  assert_int_equal(((const int32_t *)p.value[2])[5], 5);
  assert_int_equal(probe_read(&p, 1, 0), TN_EINVAL);
  assert_non_null(
      strstr(probe_error(&p), "t.csv:3: column 'mask', value 'red.png': is a picture in colours"));
  probe_close(&p);
  write_file(in_folder(table_folder, "text.png"), "no picture", 10);
  refuses("p\ntext.png\n", "p: image", "t.csv:2: ");
  refuses("p\n\"\"\nred.png\n", "p: image", "is missing, expected the path of a file");
}

/* A .npy file of two numbers for each row. */
static void arrays_lie_beside_the_table(void **state) {
  (void)state;
  char npy[128 + 8] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  memset(npy + strlen(npy + 10) + 10, ' ', 127 - 10 - strlen(npy + 10));
  npy[127] = '\n';
  for (int i = 0; i < 2; i++) {
    const float values[] = {(float)i, 7};
    memcpy(npy + 128, values, sizeof values);
    write_file(in_folder(table_folder, i == 0 ? "0.npy" : "1.npy"), npy, sizeof npy);
  }
  probe p;
  table_open(&p, "a\n0.npy\n1.npy\n", "a: array", "");
  assert_int_equal(p.description.fields[0].type.dims[0], 2);
  assert_true(table_number_at(&p, 1, 0, 0) == 1 && table_number_at(&p, 0, 0, 1) == 7);
  probe_close(&p);
  refuses("a\n2.npy\n", "a: array", "t.csv:2: column 'a', value '2.npy': cannot open");
}

/* ---- messages ---- */

static void a_wrong_table_is_told_with_file_and_line(void **state) {
  (void)state;
  static const struct {
    const char *text, *inputs, *message;
  } wrong[] = {
      {"a,b\n1,2\n3,many\n", "b: number", "t.csv:3: column 'b', value 'many': is no number"},
      {"a,b\n1,2\n3,\n", "b: number", "t.csv:3: column 'b', value '': is missing; set missing = mean"},
      {"a,b\n1,\"x\ny\"\n3,4,5\n", "a: number", "t.csv:4: has 3 cells, expected 2"},
      {"a,b\n1,\"x\n", "a: number", "t.csv:2: a quote is not closed"},
      {"a,b\n1,\"x\"y\n", "a: number", "t.csv:2: has text behind a closing quote"},
      {"a,b\n1,2\n", "c: number(A)", "has no column 'A' (is 'a' meant?), expected one of: a, b"},
      {"a,a\n1,2\n", "a: number", "has two columns 'a'"},
      {"", "a: number", "is empty"},
      {"a,b\n", "a: number", "has no rows"},
      {"t\nsoon\n", "t: time", "is no time; expected 2024-05-31"},
      {"s\n1 x\n", "s: sequence", "value 'x': is no number"},
      {"s\n1 2 3\n", "s: sequence(length=2)", "has 3 numbers, expected at most 2"},
      {"w\nx\n", "w: category(classes=y|z)",
       "value 'x': is no class of the training rows, expected one of y, z"},
      {"w,v\nx,1\n,2\n", "w: category", "is missing; missing = class"},
      {"w\n\xE9\n", "w: category", "is not UTF-8"},
      {"w\n\xED\xA0\x80\n", "w: category", "is not UTF-8"},
      {"w\n\xF0\x80\x80\x80\n", "w: text", "is not UTF-8"},
      {"\xFF\xFE"
       "a",
       "a: number", "is UTF-16"},
      {"{\"a\": 1}\n{\"a\": }\n", "a: number", "t.csv:2: is no JSON object"},
      {"{\"a\": 1}\n", "b: number", "has no column 'b'"},
      {"a\n1e39\n", "a: number", "does not fit f32"},
      {"p\nnone.png\n", "p: image", "cannot open"},
      {"a\n1\n", "a number", "inputs: line 1: 'a number' is no field, expected FIELD: KIND(COLUMN)"},
      {"a\n1\n", "a: nomber", "is no kind of field, expected one of number,"},
      {"a\n1\n", "a: number(a, b)", "'b': is a second column"},
      {"a\n1\n", "a: number(missing=never)", "expected missing = error, mean, median or a number"},
      {"a\n1\n", "a: number(order=sorted)", "number has no such option; it has missing standardize"},
      {"a\n1\n", "a: number, a: number", "the field 'a' appears twice"},
      {"a\n1\n", "a: number(a", "expected a comma or a closing bracket"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    refuses(wrong[i].text, wrong[i].inputs, wrong[i].message);
}

static void a_cell_has_boxes(void **state) {
  (void)state;
  probe p;
  table_open(&p, "b\n1 2 3 4; 5 6 7 8\n\"[[1.5, 2, 3, 4]]\"\nNA\n",
             "all: boxes(b)\nb: boxes(length=2, pad=-1)", "");
  assert_int_equal(p.description.fields[0].type.dims[0], -1);
  assert_int_equal(p.description.fields[1].type.dims[0], 2);
  static const int64_t boxes[3] = {2, 1, 0};
  static const float last[3] = {8, -1, -1};
  for (int64_t i = 0; i < 3; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_OK);
    assert_int_equal(p.type[0].dims[0], boxes[i]);
    assert_float_equal(((const float *)p.value[1])[7], last[i], 0);
  }
  probe_close(&p);
  refuses("b\n1 2 3\n", "b: boxes",
          "t.csv:2: column 'b', value '1 2 3': has 3 numbers, expected four for each box");
  refuses("b\n1 2 3 x\n", "b: boxes", "value 'x': is no number of a box");
  refuses("b\n1 2 3 4 5 6 7 8\n", "b: boxes(length=1)", "has 2 boxes, expected at most 1");
}

/* A WAV of one number, 0.5. */
static void sounds_lie_beside_the_table(void **state) {
  (void)state;
  static const char sound[] = "RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
                              "data\2\0\0\0\0\x40";
  probe p;
  write_file(in_folder(table_folder, "a.wav"), sound, sizeof sound - 1);
  write_file(in_folder(table_folder, "text.wav"), "no sound", 8);
  table_open(&p, "path\na.wav\ntext.wav\n",
             "s: audio(path, rate=8000, seconds=0.0005)\nall: audio(path, rate=8000)", "");
  assert_int_equal(p.description.keep, 1);
  assert_int_equal(p.description.fields[0].type.dims[0], 4);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(p.type[1].dims[0], 1);
  assert_true(((const float *)p.value[0])[0] == 0.5F && ((const float *)p.value[0])[1] == 0);
  assert_int_equal(probe_read(&p, 1, 0), TN_EINVAL);
  assert_non_null(strstr(probe_error(&p), "t.csv:3: "));
  assert_non_null(strstr(probe_error(&p), "text.wav: is no sound"));
  probe_close(&p);
  refuses("s\na.wav\n", "s: audio", "field 's': expected rate = 16000");
  refuses("s\nnone.wav\n", "s: audio(rate=8000)", "paths are relative to the folder of the table");
}

static void files_of_other_forms_are_told_how_to_convert(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } forms[] = {{"PAR1\x15\x04", "t.csv: is Parquet, expected CSV or lines of JSON; convert it, python3 -c"},
               {"ARROW1", "is Arrow or Feather"},
               {"PK\x03\x04", "as a workbook of Excel is"},
               {"SQLite format 3", "is a database of SQLite"}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    probe p;
    assert_int_equal(table_open_part(&p, TN_SPLIT_TRAIN, forms[i].text, "a: number", "", NULL),
                     TN_EUNSUPPORTED);
    if (strstr(probe_error(&p), forms[i].message) == NULL)
      fail_msg("'%s' lacks '%s'", probe_error(&p), forms[i].message);
  }
}

static void a_nul_byte_is_refused(void **state) {
  (void)state;
  write_file(in_folder(table_folder, "t.csv"), "a,b\n1,x\0y\n", 10);
  const char *pairs[] = {"file", in_folder(table_folder, "t.csv"), "inputs", "a: number", NULL};
  probe_refused(&table_source, pairs, TN_SPLIT_TRAIN, TN_EINVAL, "t.csv:2: has a NUL byte");
}

/* Rows that blocks cut are read whole: one of 3 MiB between short ones. */
static void rows_longer_than_a_block_are_read(void **state) {
  (void)state;
  enum { LONG = 3 << 20 };
  char *text = malloc(LONG + 64);
  size_t used = (size_t)sprintf(text, "a,t\n1,x\n2,\"");
  memset(text + used, 'y', LONG);
  memcpy(text + used + LONG, "\"\n3,z\n", 7);
  probe p;
  table_open(&p, text, "a: number\nt: text", "");
  assert_int_equal(p.description.count, 3);
  assert_true(table_number_at(&p, 2, 0, 0) == 3);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_int_equal(p.type[1].dims[0], LONG);
  probe_close(&p);
  free(text);
}

/* 3 MiB of short rows, which blocks cut at every place: no part of a word becomes a class. */
static void cells_are_cut_by_no_block(void **state) {
  (void)state;
  enum { CUT_ROWS = 150000 };
  char *text = malloc((size_t)CUT_ROWS * 32 + 16), *to = text + sprintf(text, "n,w\n");
  for (int i = 0; i < CUT_ROWS; i++)
    to += sprintf(to, "-%d.5,%s\n", i, i % 3 == 0 ? "crimson" : "\"sea \"\"green\"\"\"");
  probe p;
  table_open(&p, text, "n: number", "w: category");
  assert_int_equal(p.description.count, CUT_ROWS);
  assert_int_equal(p.description.fields[1].classes, 2);
  for (int64_t i = 0; i < CUT_ROWS; i += 7) {
    assert_true(table_number_at(&p, i, 0, 0) == -(float)i - 0.5F);
    probe_expect_class(&p, i, i % 3 != 0);
  }
  probe_close(&p);
  free(text);
}

static void lack_of_memory_is_an_error(void **state) {
  (void)state;
  const char text[] = "a,w,g\n1,x,p|q\n2,y,q\n";
  write_file(in_folder(table_folder, "t.csv"), text, strlen(text));
  const char *const pairs[] = {"file",   in_folder(table_folder, "t.csv"),
                               "inputs", "a: number(standardize=yes)\nw: category\ng: categories",
                               "split",  "0",
                               NULL};
  probe_starve(&table_source, pairs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(awkward_tables_are_read_as_pandas_reads_them),
      cmocka_unit_test(numbers_are_rounded_correctly),
      cmocka_unit_test(what_is_no_number_is_none),
      cmocka_unit_test(times_are_seconds_since_1970),
      cmocka_unit_test(numbers_are_filled_and_standardized),
      cmocka_unit_test(a_star_is_the_other_columns_of_numbers),
      cmocka_unit_test(classes_are_sorted_by_value_or_by_letters),
      cmocka_unit_test(several_words_are_zeros_and_ones),
      cmocka_unit_test(sequences_and_texts_are_padded),
      cmocka_unit_test(a_text_becomes_tokens),
      cmocka_unit_test(a_time_has_parts),
      cmocka_unit_test(lines_of_json_are_rows),
      cmocka_unit_test(pictures_and_masks_lie_beside_the_table),
      cmocka_unit_test(arrays_lie_beside_the_table),
      cmocka_unit_test(a_wrong_table_is_told_with_file_and_line),
      cmocka_unit_test(a_cell_has_boxes),
      cmocka_unit_test(sounds_lie_beside_the_table),
      cmocka_unit_test(files_of_other_forms_are_told_how_to_convert),
      cmocka_unit_test(a_nul_byte_is_refused),
      cmocka_unit_test(rows_longer_than_a_block_are_read),
      cmocka_unit_test(cells_are_cut_by_no_block),
      cmocka_unit_test(lack_of_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, table_start, table_stop);
}

/* The source `table`: the parts of its rows, and the state that fields learn. */
#include "plugins/sources/table/table.h"
#include "tests/unit/plugins/sources/table_probe.h"

static const char *learnt_of(probe *p) {
  const char *text = NULL;
  assert_int_equal(table_source.learnt(&p->host.pub.env, p->self, &text), TN_OK);
  assert_non_null(text);
  return text;
}

/* ---- parts ---- */

/* 200 rows: the row's number, a group of four rows, a day, and a part. */
static const char *two_hundred_rows(void) {
  static char text[16384];
  size_t used = (size_t)sprintf(text, "row,group,day,part\n");
  for (int i = 0; i < 200; i++)
    used += (size_t)sprintf(text + used, "%d,g%d,2024-01-%02d,%s\n", i, i / 4, (i * 7) % 30 + 1,
                            i % 10 == 3 ? "valid" : "train");
  return text;
}

/* Marks in `part` the rows of each part: 1 training, 2 validation. Returns the number of rows for validation.
 */
static int divide(const char *const *more, uint8_t part[200]) {
  int valid = 0;
  memset(part, 0, 200);
  for (int32_t split = 0; split < 2; split++) {
    probe p;
    if (table_open_part(&p, split, two_hundred_rows(), "row: number", "", more) != TN_OK)
      fail_msg("%s", probe_error(&p));
    for (int64_t i = 0; i < p.description.count; i++)
      part[(int)table_number_at(&p, i, 0, 0)] |= (uint8_t)(split + 1);
    valid += split == 1 ? (int)p.description.count : 0;
    probe_close(&p);
  }
  for (int i = 0; i < 200; i++) assert_in_range(part[i], 1, 2); /* in one of them */
  return valid;
}

static void a_fraction_of_the_rows_is_for_validation(void **state) {
  (void)state;
  uint8_t part[200], other[200];
  static const char *const more[] = {"split", "0.2", NULL}, *const seed[] = {"split", "0.2", "split_seed",
                                                                             "1", NULL};
  assert_in_range(divide(more, part), 25, 55);
  divide(seed, other);
  assert_memory_not_equal(part, other, 200);
}

static void a_group_is_in_one_part(void **state) {
  (void)state;
  uint8_t part[200];
  static const char *const more[] = {"split", "0.3", "group", "group", NULL};
  assert_in_range(divide(more, part), 30, 90);
  for (int i = 0; i < 200; i++) assert_int_equal(part[i], part[i / 4 * 4]);
}

static void the_last_times_are_for_validation(void **state) {
  (void)state;
  uint8_t part[200];
  static const char *const more[] = {"split", "0.2", "time", "day", NULL};
  assert_in_range(divide(more, part), 40, 46);
  int first = 99, last = 0;
  for (int i = 0; i < 200; i++) {
    int day = (i * 7) % 30 + 1;
    if (part[i] == 2 && day < first) first = day;
    if (part[i] == 1 && day > last) last = day;
  }
  assert_true(last < first);
}

static void a_column_says_the_part(void **state) {
  (void)state;
  uint8_t part[200];
  static const char *const more[] = {"split_column", "part", NULL};
  assert_int_equal(divide(more, part), 20);
  for (int i = 0; i < 200; i++) assert_int_equal(part[i], i % 10 == 3 ? 2 : 1);
}

/* Every row is for validation in one of five folds. */
static void folds_divide_the_rows(void **state) {
  (void)state;
  int in[200] = {0};
  for (int k = 1; k <= 5; k++) {
    char text[16];
    uint8_t part[200];
    snprintf(text, sizeof text, "%d/5", k);
    const char *const more[] = {"fold", text, "group", "group", NULL};
    divide(more, part);
    for (int i = 0; i < 200; i++) in[i] += part[i] == 2;
  }
  for (int i = 0; i < 200; i++) assert_int_equal(in[i], 1);
}

static void two_ways_to_divide_are_refused(void **state) {
  (void)state;
  probe p;
  static const char *const two[] = {"split", "0.2", "fold", "1/5", NULL},
                           *const idle[] = {"group", "a", NULL}, *const fold[] = {"fold", "6/5", NULL};
  static const struct {
    const char *const *more;
    const char *message;
  } cases[] = {
      {two, "expected one of them"}, {idle, "has no effect without split or fold"}, {fold, "such as 2/5"}};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(table_open_part(&p, TN_SPLIT_TRAIN, "a\n1\n2\n", "a: number", "", cases[i].more),
                     TN_EINVAL);
    assert_non_null(strstr(probe_error(&p), cases[i].message));
  }
  assert_int_equal(table_open_part(&p, TN_SPLIT_VALID, "a\n1\n", "a: number", "", NULL), TN_EUNAVAILABLE);
}

/* ---- windows ---- */

/* Two series, rows of both mixed and out of order: a has the times 0 to 9, b 0 to 4; value is 10 times the
 * time, b's negative. */
static const char *two_series(void) {
  static char text[1024];
  size_t used = (size_t)sprintf(text, "name,day,value,weight\n");
  for (int i = 0; i < 10; i++) {
    int day = (i * 7) % 10;
    used += (size_t)sprintf(text + used, "a,%d,%d,%d\n", day, 10 * day, day % 2);
    if (i < 5) used += (size_t)sprintf(text + used, "b,%d,%d,1\n", 4 - i, -10 * (4 - i));
  }
  return text;
}

static void open_windows(probe *p, int32_t split, const char *targets, const char *const *more) {
  if (table_open_part(p, split, two_series(), "x: numbers(value)\nd: number(day)", targets, more) != TN_OK)
    fail_msg("%s", probe_error(p));
}

static void expect_window(probe *p, int64_t i, float first, float step, int n, float target) {
  assert_int_equal(probe_read(p, i, 0), TN_OK);
  for (int k = 0; k < n; k++) assert_float_equal(((const float *)p->value[0])[k], first + step * (float)k, 0);
  assert_float_equal(*(const float *)p->value[2], target, 0);
}

static void windows_follow_their_series_and_times(void **state) {
  (void)state;
  probe p;
  char name[1024];
  open_windows(&p, TN_SPLIT_TRAIN, "y: number(value)", PAIRS("window", "3", "series", "name", "time", "day"));
  assert_int_equal(p.description.count, 7 + 2);
  assert_int_equal(p.description.fields[0].type.rank, 2);
  assert_int_equal(p.description.fields[0].type.dims[0], 3);
  assert_int_equal(p.description.fields[1].type.rank, 1);
  assert_int_equal(p.description.fields[2].type.rank, 0);
  for (int i = 0; i < 7; i++) expect_window(&p, i, 10 * (float)i, 10, 3, 10 * (float)(i + 3));
  for (int i = 0; i < 2; i++) expect_window(&p, 7 + i, -10 * (float)i, -10, 3, -10 * (float)(i + 3));
  /* the last row of the window of days 0 to 2 is that of day 2, a's seventh, behind b's five */
  assert_int_equal(table_source.name(&p.host.pub.env, p.self, 0, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "t.csv:13"));
  probe_close(&p);
}

/* The last window ends with the last row. */
static void a_stride_and_a_longer_horizon(void **state) {
  (void)state;
  probe p;
  open_windows(&p, TN_SPLIT_TRAIN, "y: number(value, standardize=yes)",
               PAIRS("window", "2", "horizon", "2", "stride", "4", "series", "name", "time", "day"));
  assert_int_equal(p.description.count, 2 + 1);
  assert_int_equal(p.description.fields[2].type.dims[0], 2);
  assert_true(p.description.fields[2].scale[0] == p.description.fields[2].scale[1]);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_float_equal(((const float *)p.value[0])[0], 60, 0);
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_float_equal(((const float *)p.value[0])[0], -10, 0);
  probe_close(&p);
}

/* No window has rows of both parts: of ten rows the last three, of five the last one or two. */
static void the_end_of_each_series_is_for_validation(void **state) {
  (void)state;
  probe p;
  static const char *const more[] = {"window", "1", "series", "name", "time", "day", "split", "0.3", NULL},
                           *const by_series[] = {"window", "1", "series", "name", "split", "0.4", NULL};
  open_windows(&p, TN_SPLIT_TRAIN, "y: number(value)", by_series);
  assert_int_equal(p.description.count, (6 - 1) + (3 - 1));
  probe_close(&p);
  open_windows(&p, TN_SPLIT_VALID, "y: number(value)", by_series);
  assert_int_equal(p.description.count, (4 - 1) + (2 - 1));
  probe_close(&p);
  open_windows(&p, TN_SPLIT_VALID, "y: number(value)", more); /* the last days of all: of a alone */
  for (int64_t i = 0; i < p.description.count; i++) {
    assert_int_equal(probe_read(&p, i, 0), TN_OK);
    assert_true(*(const float *)p.value[1] >= 5);
  }
  probe_close(&p);
}

static void wrong_windows_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *inputs, *more[8], *message;
  } cases[] = {{"x: number(value)", {"horizon", "2"}, "have no effect without window"},
               {"x: text(name)", {"window", "2"}, "field 'x': text has no windows"},
               {"x: number(value)", {"window", "2", "fold", "1/2"}, "which cuts windows; set group"},
               {"x: number(value)", {"window", "99"}, "the longest of this part has 15"},
               {"x: number(value)", {"window", "2", "series", "none"}, "has no column 'none'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    probe p;
    tn_status status = table_open_part(&p, TN_SPLIT_TRAIN, two_series(), cases[i].inputs, "", cases[i].more);
    assert_int_equal(status, TN_EINVAL);
    if (strstr(probe_error(&p), cases[i].message) == NULL)
      fail_msg("'%s' lacks '%s'", probe_error(&p), cases[i].message);
  }
}

/* A file to predict on needs no targets: its last window ends with its last row. */
static void windows_of_files_need_no_horizon(void **state) {
  (void)state;
  probe p;
  const char *const more[] = {"window", "3", "series", "name", "time", "day", NULL};
  open_windows(&p, TN_SPLIT_TRAIN, "y: number(value)", more);
  const char *path = in_folder(table_folder, "t.csv");
  void *files = NULL;
  tn_env *env = &p.host.pub.env;
  assert_int_equal(table_source.open_files(env, ((const table *)p.self)->options, &path, 1, &files), TN_OK);
  tn_description d = {.struct_size = sizeof d};
  assert_int_equal(table_source.describe(env, files, &d), TN_OK);
  assert_int_equal(d.count, 8 + 3);
  table_source.close(env, files);
  probe_close(&p);
}

/* ---- weights ---- */

static double weight_at(probe *p, int64_t i) {
  double weight = -1;
  assert_int_equal(table_source.weight_of(&p->host.pub.env, p->self, i, &weight), TN_OK);
  return weight;
}

static void rows_have_weights(void **state) {
  (void)state;
  probe p;
  double weight;
  static const char text[] = "a,w,c\n1,0.5,x\n2,3,x\n3,0,y\n";
  assert_int_equal(table_open_part(&p, TN_SPLIT_TRAIN, text, "a: number", "", PAIRS("weight", "w")), TN_OK);
  assert_true(weight_at(&p, 0) == 0.5 && weight_at(&p, 1) == 3 && weight_at(&p, 2) == 0);
  probe_close(&p);
  assert_int_equal(table_open_part(&p, TN_SPLIT_TRAIN, text, "a: number", "", PAIRS("weight", "balanced(c)")),
                   TN_OK);
  assert_true(weight_at(&p, 0) == 0.5 && weight_at(&p, 1) == 0.5 && weight_at(&p, 2) == 1);
  probe_close(&p);
  table_open(&p, text, "a: number", "");
  assert_int_equal(table_source.weight_of(&p.host.pub.env, p.self, 0, &weight), TN_EUNAVAILABLE);
  probe_close(&p);
}

/* A window is drawn by the weight of its first target. */
static void windows_have_weights(void **state) {
  (void)state;
  probe p;
  open_windows(&p, TN_SPLIT_TRAIN, "y: number(value)",
               PAIRS("window", "3", "series", "name", "time", "day", "weight", "weight"));
  assert_true(weight_at(&p, 0) == 1 && weight_at(&p, 1) == 0 && weight_at(&p, 7) == 1);
  probe_close(&p);
}

static void wrong_weights_are_refused(void **state) {
  (void)state;
  probe p;
  static const struct {
    const char *weight, *message;
  } cases[] = {{"w", "t.csv:3: column 'w', value '': the weight is negative"},
               {"v", "t.csv:2: column 'v', value '': the weight is missing"},
               {"balanced(c)", "t.csv:3: column 'c', value '': is missing, and balances the rows"},
               {"z", "has no column 'z'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(table_open_part(&p, TN_SPLIT_TRAIN, "a,w,v,c\n1,1,,x\n2,-1,2,\n", "a: number", "",
                                     PAIRS("weight", cases[i].weight)),
                     TN_EINVAL);
    if (strstr(probe_error(&p), cases[i].message) == NULL)
      fail_msg("'%s' lacks '%s'", probe_error(&p), cases[i].message);
  }
}

/* ---- learning ---- */

/* A validation file has the mean and the classes of the training file. */
static void a_file_for_validation_is_read_with_what_the_other_taught(void **state) {
  (void)state;
  probe p;
  const char *const more[] = {"valid_file", in_folder(table_folder, "v.csv"), NULL};
  write_file(in_folder(table_folder, "v.csv"), "w,a\nz,9\n", 8);
  const char inputs[] = "a: number(standardize=yes)\nw: category(unknown=other)";
  for (int taught = 0; taught < 2; taught++) {
    assert_int_equal(table_open_part(&p, TN_SPLIT_VALID, "a,w\n1,y\n3,x\n", inputs, "", more), TN_OK);
    assert_true(table_number_at(&p, 0, 0, 0) == 7);
    assert_int_equal(table_class_at(&p, 0, 1), 2);
    probe_close(&p);
  }
}

/* The text of a source teaches a source of other rows. */
static void what_was_learnt_is_used_in_place_of_learning(void **state) {
  (void)state;
  probe p, q;
  const char inputs[] = "x: numbers(*, missing=mean, standardize=yes)\nw: category";
  table_open(&p, "a,b,w\n1,5,y\n3,7,x\n", inputs, "");
  char *text = strdup(learnt_of(&p));
  probe_close(&p);
  write_file(in_folder(table_folder, "t.csv"), "b,w,c,a\n6,x,0,\n", 15);
  const char *pairs[] = {"file", in_folder(table_folder, "t.csv"), "inputs", inputs, NULL};
  assert_int_equal(probe_open_taught(&q, &table_source, pairs, TN_SPLIT_TRAIN, text), TN_OK);
  assert_true(table_number_at(&q, 0, 0, 0) == 0 && table_number_at(&q, 0, 0, 1) == 0); /* both are the mean */
  assert_int_equal(table_class_at(&q, 0, 1), 0);
  assert_string_equal(learnt_of(&q), text);
  probe_close(&q);
  static const struct {
    const char *inputs, *message;
  } wrong[] = {{"x: numbers(b, a, missing=mean, standardize=yes)\nw: category",
                "column 1 is 'b', and the weights were trained with 'a'"},
               {"x: numbers(*, standardize=yes)\nw: category", "missing or standardize has changed"},
               {"x: numbers(a, missing=mean, standardize=yes)", "the number of columns differs"},
               {"w: categories", "its kind was another one"},
               {"z: category(w)", "they have no such field"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    pairs[3] = wrong[i].inputs;
    assert_int_equal(probe_open_taught(&q, &table_source, pairs, TN_SPLIT_TRAIN, text), TN_EINVAL);
    if (strstr(probe_error(&q), wrong[i].message) == NULL)
      fail_msg("'%s' lacks '%s'", probe_error(&q), wrong[i].message);
  }
  free(text);
}

static void damaged_texts_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{}",
      "[]",
      "{\"fields\": 3}",
      "{\"fields\": {\"w\": {\"kind\": \"category\"}}}",
      "{\"fields\": {\"w\": {\"kind\": \"category\", \"columns\": [\"w\"], \"words\": [3]}}}",
      "{\"fields\": {\"w\": {\"kind\": \"category\", \"columns\": [3], \"words\": [\"x\"]}}}"};
  write_file(in_folder(table_folder, "t.csv"), "w\nx\n", 4);
  const char *pairs[] = {"file", in_folder(table_folder, "t.csv"), "inputs", "w: category", NULL};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    probe p;
    assert_int_equal(probe_open_taught(&p, &table_source, pairs, TN_SPLIT_TRAIN, texts[i]), TN_EINVAL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_fraction_of_the_rows_is_for_validation),
      cmocka_unit_test(a_group_is_in_one_part),
      cmocka_unit_test(the_last_times_are_for_validation),
      cmocka_unit_test(a_column_says_the_part),
      cmocka_unit_test(folds_divide_the_rows),
      cmocka_unit_test(two_ways_to_divide_are_refused),
      cmocka_unit_test(windows_follow_their_series_and_times),
      cmocka_unit_test(a_stride_and_a_longer_horizon),
      cmocka_unit_test(the_end_of_each_series_is_for_validation),
      cmocka_unit_test(wrong_windows_are_refused),
      cmocka_unit_test(windows_of_files_need_no_horizon),
      cmocka_unit_test(rows_have_weights),
      cmocka_unit_test(windows_have_weights),
      cmocka_unit_test(wrong_weights_are_refused),
      cmocka_unit_test(a_file_for_validation_is_read_with_what_the_other_taught),
      cmocka_unit_test(what_was_learnt_is_used_in_place_of_learning),
      cmocka_unit_test(damaged_texts_are_refused),
  };
  return cmocka_run_group_tests(tests, table_start, table_stop);
}

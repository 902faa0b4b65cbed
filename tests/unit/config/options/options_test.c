/* Options filled from text and from numbers, printed and compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <math.h>
#include <unistd.h>

#include "core/config/options/options.h"
#include "tests/support/test_env.h"

typedef struct sample {
  int32_t flag;
  int64_t count;
  double rate;
  const char *text, *path;
  int32_t mode;
  tn_ints sizes;
  tn_floats betas;
  int64_t memory;
  double time;
  int32_t dtype;
  const char *init;
} sample;

static const tn_option rows[] = {
    TN_OPT(sample, flag, TN_OPT_FLAG, "no", NULL, "a flag"),
    TN_OPT(sample, count, TN_OPT_INT, NULL, ">= 1", "how many"),
    TN_OPT(sample, rate, TN_OPT_FLOAT, "0.5", "[0, 1)", "a rate"),
    TN_OPT(sample, text, TN_OPT_TEXT, "word", NULL, "a text"),
    TN_OPT(sample, path, TN_OPT_PATH, "", "none|all", "a path"),
    TN_OPT(sample, mode, TN_OPT_ENUM, "zeros", "zeros|reflect|circular", "a mode"),
    TN_OPT(sample, sizes, TN_OPT_INTS, "[]", ">= 1", "sizes"),
    TN_OPT(sample, betas, TN_OPT_FLOATS, "[0.9, 0.999]", "[0, 1)", "betas"),
    TN_OPT(sample, memory, TN_OPT_SIZE, "64MiB", NULL, "memory"),
    TN_OPT(sample, time, TN_OPT_DURATION, "90s", NULL, "time"),
    TN_OPT(sample, dtype, TN_OPT_DTYPE, "any", NULL, "a type"),
    TN_OPT(sample, init, TN_OPT_INIT, "normal(0, 0.02)", NULL, "an initializer"),
    TN_OPT_END};
static const tn_item item = TN_ITEM(tn_item, TN_LAYER, "sample", "for tests", sample, rows);
static const tn_item plain = TN_ITEM_PLAIN(tn_item, TN_LAYER, "plain", "no options");

typedef struct fixture {
  test_env t;
  tn_arena arena;
  tn_options options;
  const sample *data;
} fixture;

static void start(fixture *f) {
  test_env_start(&f->t);
  f->arena = tn_arena_new(&f->t);
  if (tn_options_start(&f->t, &f->arena, &item, &f->options) != TN_OK) fail_msg("%s", tn_error_text(&f->t));
  f->data = f->options.data;
}

static void end(fixture *f) {
  tn_arena_free(&f->arena);
  assert_int_equal(f->t.live, 0);
}

static void is_set(fixture *f, const char *name, const char *text) {
  if (tn_options_set_text(&f->t, &f->options, name, text) != TN_OK) fail_msg("%s", tn_error_text(&f->t));
}

static void defaults_are_filled(void **state) {
  (void)state;
  fixture f;
  start(&f);
  assert_int_equal(f.data->flag, 0);
  assert_int_equal(f.data->count, 0);
  assert_true(f.data->rate == 0.5);
  assert_string_equal(f.data->text, "word");
  assert_string_equal(f.data->path, "");
  assert_int_equal(f.data->mode, 0);
  assert_int_equal(f.data->sizes.n, 0);
  assert_int_equal(f.data->betas.n, 2);
  assert_true(f.data->betas.v[1] == 0.999);
  assert_int_equal(f.data->memory, 64 << 20);
  assert_true(f.data->time == 90);
  assert_int_equal(f.data->dtype, TN_ANY);
  assert_string_equal(f.data->init, "normal(0, 0.02)");
  for (int i = 0; i < 12; i++) assert_false(f.options.given[i]);
  end(&f);
}

static void every_type_is_read_from_text(void **state) {
  (void)state;
  fixture f;
  start(&f);
  is_set(&f, "flag", "Yes");
  is_set(&f, "count", " 7 ");
  is_set(&f, "rate", "1e-3");
  is_set(&f, "text", "two words, and a comma");
  is_set(&f, "mode", "reflect");
  is_set(&f, "sizes", "[3, 5]");
  is_set(&f, "betas", "0.5");
  is_set(&f, "memory", "1.5 GiB");
  is_set(&f, "time", "2h");
  is_set(&f, "dtype", "bf16");
  is_set(&f, "init", "zeros");
  assert_int_equal(f.data->flag, 1);
  assert_int_equal(f.data->count, 7);
  assert_true(f.data->rate == 1e-3);
  assert_string_equal(f.data->text, "two words, and a comma");
  assert_int_equal(f.data->mode, 1);
  assert_int_equal(f.data->sizes.n, 2);
  assert_int_equal(f.data->sizes.v[1], 5);
  assert_int_equal(f.data->betas.n, 1);
  assert_true(f.data->betas.v[0] == 0.5);
  assert_int_equal(f.data->memory, 3 << 29);
  assert_true(f.data->time == 7200);
  assert_int_equal(f.data->dtype, TN_BF16);
  assert_string_equal(f.data->init, "zeros");
  assert_int_equal(tn_options_finish(&f.t, &f.options), TN_OK);
  end(&f);
}

static void lists_come_with_brackets_without_and_over_lines(void **state) {
  static const char *const texts[] = {"[1, 2, 3]", "1, 2, 3", "[1,\n 2,\n 3]", " [ 1,2 ,3 ] "};
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    fixture f;
    start(&f);
    is_set(&f, "sizes", texts[i]);
    assert_int_equal(f.data->sizes.n, 3);
    for (int64_t k = 0; k < 3; k++) assert_int_equal(f.data->sizes.v[k], k + 1);
    end(&f);
  }
}

static void flags_have_eight_spellings(void **state) {
  static const char *const texts[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
  (void)state;
  for (int i = 0; i < 8; i++) {
    fixture f;
    start(&f);
    is_set(&f, "flag", texts[i]);
    assert_int_equal(f.data->flag, i % 2);
    end(&f);
  }
}

static void paths_are_absolute_against_their_folder(void **state) {
  char here[1024], expected[1200];
  fixture f;
  (void)state;
  start(&f);
  f.options.folder = "/data/sets";
  is_set(&f, "path", "mnist");
  assert_string_equal(f.data->path, "/data/sets/mnist");
  end(&f);
  start(&f);
  f.options.folder = "/data/sets";
  is_set(&f, "path", "/mnist");
  assert_string_equal(f.data->path, "/mnist");
  end(&f);
  start(&f);
  f.options.folder = "/data/sets";
  is_set(&f, "path", "all"); /* a word of the range */
  assert_string_equal(f.data->path, "all");
  end(&f);
  start(&f);
  f.options.folder = "/data/sets";
  is_set(&f, "path", "./all");
  assert_string_equal(f.data->path, "/data/sets/./all");
  end(&f);
  assert_non_null(getcwd(here, sizeof(here)));
  start(&f);
  f.options.folder = "sub";
  is_set(&f, "path", "mnist");
  strcat(strcpy(expected, here), "/sub/mnist");
  assert_string_equal(f.data->path, expected);
  end(&f);
  start(&f);
  is_set(&f, "path", "mnist");
  strcat(strcpy(expected, here), "/mnist");
  assert_string_equal(f.data->path, expected);
  end(&f);
}

static void quotes_keep_blanks_and_commas(void **state) {
  (void)state;
  fixture f;
  start(&f);
  is_set(&f, "text", "\" a, \\\"b\\\" \\\\n \\n\"");
  assert_string_equal(f.data->text, " a, \"b\" \\n \n");
  end(&f);
}

static void numbers_serve_the_types_that_they_fit(void **state) {
  (void)state;
  fixture f;
  int64_t two[] = {3, 4};
  double halves[] = {0.25, 0.75};
  start(&f);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "flag", 1), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "count", 9), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "rate", 0), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "sizes", 3), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "memory", 512), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "mode", 2), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "dtype", TN_BF16), TN_OK);
  assert_int_equal(tn_options_set_int(&f.t, &f.options, "time", 2), TN_OK);
  assert_int_equal(tn_options_set_floats(&f.t, &f.options, "betas", 2, halves), TN_OK);
  assert_int_equal(f.data->count, 9);
  assert_int_equal(f.data->mode, 2);
  assert_int_equal(f.data->dtype, TN_BF16);
  assert_true(f.data->rate == 0 && f.data->time == 2);
  assert_int_equal(f.data->sizes.n, 1);
  assert_int_equal(f.data->sizes.v[0], 3);
  assert_true(f.data->betas.v[1] == 0.75);
  end(&f);
  start(&f);
  int64_t zeros[] = {0, 0, 0};
  assert_int_equal(tn_options_set_float(&f.t, &f.options, "rate", 0.75), TN_OK);
  assert_int_equal(tn_options_set_float(&f.t, &f.options, "time", 0.5), TN_OK);
  assert_int_equal(tn_options_set_ints(&f.t, &f.options, "sizes", 2, two), TN_OK);
  assert_int_equal(tn_options_set_ints(&f.t, &f.options, "betas", 3, zeros), TN_OK);
  two[0] = 99; /* the options have a copy */
  assert_int_equal(f.data->sizes.v[0], 3);
  assert_int_equal(f.data->betas.n, 3);
  end(&f);
  start(&f);
  assert_int_equal(tn_options_set_ints(&f.t, &f.options, "sizes", 0, NULL), TN_OK);
  assert_int_equal(tn_options_set_float(&f.t, &f.options, "betas", 0.5), TN_OK);
  assert_int_equal(f.data->sizes.n, 0);
  assert_int_equal(f.data->betas.n, 1);
  end(&f);
}

static void options_are_found_by_position_and_name(void **state) {
  (void)state;
  assert_string_equal(tn_options_at(&item, 0)->name, "flag");
  assert_string_equal(tn_options_at(&item, 11)->name, "init");
  assert_null(tn_options_at(&item, 12));
  assert_null(tn_options_at(&item, -1));
  assert_ptr_equal(tn_options_find(&item, "rate"), &rows[2]);
  assert_null(tn_options_find(&item, "rat"));
  assert_null(tn_options_at(&plain, 0));
}

static void an_item_without_options_has_a_block_all_the_same(void **state) {
  (void)state;
  test_env t;
  tn_options options;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  assert_int_equal(tn_options_start(&t, &arena, &plain, &options), TN_OK);
  assert_non_null(options.data);
  assert_int_equal(tn_options_finish(&t, &options), TN_OK);
  assert_int_equal(tn_options_set_text(&t, &options, "x", "1"), TN_EINVAL);
  assert_string_equal(tn_error_text(&t), "x: unknown, plain takes no options");
  tn_arena_free(&arena);
}

/* The option tables of newer plugins may have longer entries. */
static void rows_may_have_a_stride_of_their_own(void **state) {
  typedef struct wide_row {
    tn_option option;
    int64_t more;
  } wide_row;
  static const wide_row wide[] = {{TN_OPT(sample, rate, TN_OPT_FLOAT, "0.25", NULL, ""), 1},
                                  {TN_OPT(sample, count, TN_OPT_INT, "3", NULL, ""), 2},
                                  {TN_OPT_END, 3}};
  static const tn_item strange = {sizeof(tn_item), TN_LAYER,         "wide",        "",
                                  &wide[0].option, sizeof(wide_row), sizeof(sample)};
  test_env t;
  tn_options options;
  (void)state;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  assert_int_equal(tn_options_start(&t, &arena, &strange, &options), TN_OK);
  assert_int_equal(((sample *)options.data)->count, 3);
  assert_string_equal(tn_options_at(&strange, 1)->name, "count");
  assert_null(tn_options_at(&strange, 2));
  tn_arena_free(&arena);
}

static void what_differs_from_the_default_prints_and_reads_back(void **state) {
  (void)state;
  fixture f, g;
  start(&f);
  start(&g);
  is_set(&f, "flag", "yes");
  is_set(&f, "count", "5");
  is_set(&f, "rate", "0.1");
  is_set(&f, "text", "\"a, b\\n\"");
  is_set(&f, "mode", "circular");
  is_set(&f, "sizes", "[2, 3]");
  is_set(&f, "betas", "[]");
  is_set(&f, "memory", "1048576");
  is_set(&f, "time", "0.25");
  is_set(&f, "dtype", "f16");
  is_set(&f, "init", "uniform(-1, 1)");
  assert_false(tn_options_equal(&item, f.data, g.data));
  tn_text text = tn_text_new(&f.t);
  tn_options_print(&text, &item, f.data);
  assert_string_equal(text.v,
                      "flag=yes, count=5, rate=0.1, text=\"a, b\\n\", mode=circular, sizes=[2, 3], betas=[], "
                      "memory=1MiB, time=0.25s, dtype=f16, init=uniform(-1, 1)");
  tn_text_free(&text);
  for (int64_t i = 0; tn_options_at(&item, i) != NULL; i++) {
    const tn_option *option = tn_options_at(&item, i);
    tn_options_print_one(&text, option, f.data);
    is_set(&g, option->name, text.v != NULL ? text.v : "");
    tn_text_free(&text);
  }
  assert_true(tn_options_equal(&item, f.data, g.data));
  end(&g);
  end(&f);
}

static void only_required_options_print_when_the_rest_is_default(void **state) {
  (void)state;
  fixture f;
  start(&f);
  is_set(&f, "count", "5");
  is_set(&f, "rate", "0.5");
  tn_text text = tn_text_new(&f.t);
  tn_options_print(&text, &item, f.data);
  assert_string_equal(text.v, "count=5");
  tn_text_free(&text);
  end(&f);
}

static void not_a_number_equals_itself_as_an_option(void **state) {
  typedef struct one {
    double x;
  } one;
  static const tn_option one_row[] = {TN_OPT(one, x, TN_OPT_FLOAT, "nan", NULL, ""), TN_OPT_END};
  static const tn_item one_item = TN_ITEM(tn_item, TN_LAYER, "one", "", one, one_row);
  one a = {NAN}, b = {NAN}, c = {0.0}, d = {-0.0};
  (void)state;
  assert_true(tn_options_equal(&one_item, &a, &b));
  assert_false(tn_options_equal(&one_item, &c, &d));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_are_filled),
      cmocka_unit_test(every_type_is_read_from_text),
      cmocka_unit_test(lists_come_with_brackets_without_and_over_lines),
      cmocka_unit_test(flags_have_eight_spellings),
      cmocka_unit_test(paths_are_absolute_against_their_folder),
      cmocka_unit_test(quotes_keep_blanks_and_commas),
      cmocka_unit_test(numbers_serve_the_types_that_they_fit),
      cmocka_unit_test(options_are_found_by_position_and_name),
      cmocka_unit_test(an_item_without_options_has_a_block_all_the_same),
      cmocka_unit_test(rows_may_have_a_stride_of_their_own),
      cmocka_unit_test(what_differs_from_the_default_prints_and_reads_back),
      cmocka_unit_test(only_required_options_print_when_the_rest_is_default),
      cmocka_unit_test(not_a_number_equals_itself_as_an_option),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

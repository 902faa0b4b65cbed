/* Options that are refused, from text, from numbers, and in the item's own table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <math.h>

#include "core/config/options/options.h"
#include "tests/support/test_env.h"

typedef struct sample {
  int32_t flag;
  int64_t stride;
  double rate;
  const char *text;
  int32_t mode;
  tn_ints sizes;
  tn_floats betas;
  int64_t memory;
  double time;
  int32_t dtype;
} sample;

static const tn_option rows[] = {TN_OPT(sample, flag, TN_OPT_FLAG, "no", NULL, ""),
                                 TN_OPT(sample, stride, TN_OPT_INT, NULL, ">= 1", "step of the window"),
                                 TN_OPT(sample, rate, TN_OPT_FLOAT, "0.5", "[0, 1)", ""),
                                 TN_OPT(sample, text, TN_OPT_TEXT, "a", "a|b", ""),
                                 TN_OPT(sample, mode, TN_OPT_ENUM, "zeros", "zeros|reflect|circular", ""),
                                 TN_OPT(sample, sizes, TN_OPT_INTS, "[]", "> 0", ""),
                                 TN_OPT(sample, betas, TN_OPT_FLOATS, "[]", "(0, 1]", ""),
                                 TN_OPT(sample, memory, TN_OPT_SIZE, "0", "<= 1e9", ""),
                                 TN_OPT(sample, time, TN_OPT_DURATION, "0", "< 60", ""),
                                 TN_OPT(sample, dtype, TN_OPT_DTYPE, "f32", NULL, ""),
                                 TN_OPT_END};
static const tn_item item = TN_ITEM(tn_item, TN_LAYER, "sample", "", sample, rows);

typedef struct wrong {
  const char *name, *text, *message;
} wrong;

static const wrong texts[] = {
    {"strid", "1", "strid: unknown option of sample, did you mean 'stride'?"},
    {"colour", "1",
     "colour: unknown option of sample, expected one of flag, stride, rate, text, mode, sizes, betas, "
     "memory, time, "
     "dtype"},
    {"flag", "maybe", "flag: 'maybe' is neither yes nor no"},
    {"flag", "", "flag: '' is neither yes nor no"},
    {"flag", "2", "flag: '2' is neither yes nor no"},
    {"stride", "0", "stride: 0 is out of range, expected >= 1"},
    {"stride", "-9223372036854775808", "stride: -9223372036854775808 is out of range, expected >= 1"},
    {"stride", "1.5", "stride: '1.5' is not a whole number"},
    {"stride", "two", "stride: 'two' is not a whole number"},
    {"stride", "1\nseed = 3", "stride: '1 seed = 3' is not a whole number"},
    {"stride", "99999999999999999999", "stride: 99999999999999999999 does not fit into 64 bits"},
    {"rate", "1", "rate: 1 is out of range, expected [0, 1)"},
    {"rate", "-0.5", "rate: -0.5 is out of range, expected [0, 1)"},
    {"rate", "nan", "rate: nan is not a finite number, expected one in [0, 1)"},
    {"rate", "1,5", "rate: '1,5' is not a number"},
    {"rate", "0x1p-3", "rate: '0x1p-3' is not a number"},
    {"rate", "1e999", "rate: '1e999' is not a number"},
    {"text", "c", "text: 'c' is not one of a|b"},
    {"text", "\"a", "text: the text has no closing '\"'"},
    {"text", "\"a\"b", "text: 'b' after the closing '\"', expected nothing"},
    {"text", "\"a\\", "text: the text has no closing '\"'"},
    {"mode", "reflekt", "mode: 'reflekt' is not one of zeros|reflect|circular, did you mean 'reflect'?"},
    {"mode", "1", "mode: '1' is not one of zeros|reflect|circular"},
    {"sizes", "[1, 0]", "sizes: 0 is out of range, expected > 0"},
    {"sizes", "[1, 2", "sizes: '[1, 2' has no ']' at its end"},
    {"sizes", "1, 2]", "sizes: '2]' in the list is not a whole number"},
    {"sizes", "[1,, 2]", "sizes: the list has an empty entry"},
    {"sizes", "[1, 2,]", "sizes: the list has an empty entry"},
    {"sizes", "[1.5]", "sizes: '1.5' in the list is not a whole number"},
    {"sizes", "1 2", "sizes: '1 2' in the list is not a whole number"},
    {"sizes", "", "sizes: nothing given, expected a list such as [1, 2], or []"},
    {"betas", "[0.5, 1.5]", "betas: 1.5 is out of range, expected (0, 1]"},
    {"betas", "[0]", "betas: 0 is out of range, expected (0, 1]"},
    {"betas", "x", "betas: 'x' in the list is not a number"},
    {"memory", "64MX", "memory: '64MX' is not a size, expected bytes such as 512, 64MiB or 2GB"},
    {"memory", "-1", "memory: '-1' is not a size, expected bytes such as 512, 64MiB or 2GB"},
    {"memory", "2GB", "memory: 2000000000 is out of range, expected <= 1e9"},
    {"time", "5m", "time: '5m' is not a duration, expected a time such as 90s, 5min, 2h or 0.5"},
    {"time", "1min", "time: 60 is out of range, expected < 60"},
    {"dtype", "fp16", "dtype: 'fp16' is not an element type, did you mean 'f16'?"},
    {"dtype", "f8",
     "dtype: 'f8' is not an element type, expected f32, f16, bf16, f64, i32, i64, i8, u8, bool or any"},
};

static void every_wrong_text_has_its_message(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    test_env t;
    tn_options options;
    test_env_start(&t);
    tn_arena arena = tn_arena_new(&t);
    assert_int_equal(tn_options_start(&t, &arena, &item, &options), TN_OK);
    sample before = *(sample *)options.data;
    tn_status status = tn_options_set_text(&t, &options, texts[i].name, texts[i].text);
    if (status != TN_EINVAL || strcmp(tn_error_text(&t), texts[i].message) != 0)
      fail_msg("%s = %s\n   got: %s\nwanted: %s", texts[i].name, texts[i].text, tn_error_text(&t),
               texts[i].message);
    assert_memory_equal(&before, options.data, sizeof(before));
    tn_arena_free(&arena);
    assert_int_equal(t.live, 0);
  }
}

typedef struct numbers_fixture {
  test_env t;
  tn_arena arena;
  tn_options options;
} numbers_fixture;

static void refused(numbers_fixture *f, tn_status status, const char *message) {
  assert_int_equal(status, TN_EINVAL);
  assert_string_equal(tn_error_text(&f->t), message);
}

static void numbers_that_do_not_fit_are_refused(void **state) {
  static const int64_t ints[] = {1, -2};
  static const double floats[] = {0.5};
  numbers_fixture f;
  (void)state;
  test_env_start(&f.t);
  f.arena = tn_arena_new(&f.t);
  assert_int_equal(tn_options_start(&f.t, &f.arena, &item, &f.options), TN_OK);
  tn_options *o = &f.options;
  refused(&f, tn_options_set_int(&f, o, "stride", 0), "stride: 0 is out of range, expected >= 1");
  refused(&f, tn_options_set_int(&f, o, "strides", 1),
          "strides: unknown option of sample, did you mean 'stride'?");
  refused(&f, tn_options_set_int(&f, o, "flag", 2), "flag: 2 is neither 1 nor 0, for yes or no");
  refused(&f, tn_options_set_int(&f, o, "memory", -1), "memory: -1 is not a size, expected bytes from 0 on");
  refused(&f, tn_options_set_int(&f, o, "time", -1),
          "time: -1 is not a duration, expected seconds from 0 on");
  refused(&f, tn_options_set_float(&f, o, "time", NAN),
          "time: nan is not a duration, expected seconds from 0 on");
  refused(&f, tn_options_set_int(&f, o, "mode", 3),
          "mode: 3 is no position in zeros|reflect|circular, expected 0 .. 2");
  refused(&f, tn_options_set_int(&f, o, "mode", -1),
          "mode: -1 is no position in zeros|reflect|circular, expected 0 .. 2");
  refused(&f, tn_options_set_float(&f, o, "mode", 0.5), "mode: a fraction was given, expected a word");
  refused(&f, tn_options_set_int(&f, o, "dtype", TN_DTYPES),
          "dtype: 10 is not an element type, expected 0 .. 9, such as TN_F32");
  refused(&f, tn_options_set_float(&f, o, "stride", 2),
          "stride: a fraction was given, expected a whole number");
  refused(&f, tn_options_set_float(&f, o, "sizes", 2),
          "sizes: a fraction was given, expected a list of whole numbers");
  refused(&f, tn_options_set_float(&f, o, "rate", 1), "rate: 1 is out of range, expected [0, 1)");
  refused(&f, tn_options_set_ints(&f, o, "stride", 1, ints),
          "stride: a list of whole numbers was given, expected a whole number");
  refused(&f, tn_options_set_ints(&f, o, "sizes", 2, ints), "sizes: -2 is out of range, expected > 0");
  refused(&f, tn_options_set_ints(&f, o, "sizes", -1, ints),
          "sizes: a list of -1 entries, expected 0 or more");
  refused(&f, tn_options_set_floats(&f, o, "sizes", 1, floats),
          "sizes: a list of fractions was given, expected a list of whole numbers");
  tn_arena_free(&f.arena);
  assert_int_equal(f.t.live, 0);
}

static void an_option_given_twice_is_refused(void **state) {
  numbers_fixture f;
  (void)state;
  test_env_start(&f.t);
  f.arena = tn_arena_new(&f.t);
  assert_int_equal(tn_options_start(&f.t, &f.arena, &item, &f.options), TN_OK);
  assert_int_equal(tn_options_set_text(&f, &f.options, "stride", "1"), TN_OK);
  refused(&f, tn_options_set_int(&f, &f.options, "stride", 2), "stride: given twice");
  assert_int_equal(((sample *)f.options.data)->stride, 1);
  tn_arena_free(&f.arena);
}

static void a_required_option_that_is_missing_is_named(void **state) {
  numbers_fixture f;
  (void)state;
  test_env_start(&f.t);
  f.arena = tn_arena_new(&f.t);
  assert_int_equal(tn_options_start(&f.t, &f.arena, &item, &f.options), TN_OK);
  refused(&f, tn_options_finish(&f, &f.options),
          "stride: sample needs this option, expected a whole number (step of the window)");
  tn_arena_free(&f.arena);
}

typedef struct pair {
  int64_t a;
  double b;
} pair;

typedef struct wrong_table {
  tn_option rows[3];
  const char *message;
} wrong_table;

static const wrong_table tables[] = {
    {{TN_OPT(pair, a, 99, "1", NULL, ""), TN_OPT_END},
     "item 'made', option 'a': the type 99 is unknown, expected 1 to 15"},
    {{TN_OPT(pair, a, TN_OPT_FLAG, "no", NULL, ""), TN_OPT_END},
     "item 'made', option 'a': the field has 8 bytes, expected 4 for yes or no"},
    {{{"b", TN_OPT_FLOAT, 0, 16, 8, "1", NULL, ""}, TN_OPT_END},
     "item 'made', option 'b': the field at byte 16 ends outside the struct of 16 bytes"},
    {{{"b", TN_OPT_FLOAT, 0, UINT32_MAX - 3, 8, "1", NULL, ""}, TN_OPT_END},
     "item 'made', option 'b': the field at byte 4294967292 ends outside the struct of 16 bytes"},
    {{TN_OPT(pair, a, TN_OPT_INT, "0", ">= 1", ""), TN_OPT_END},
     "item 'made', default of a: 0 is out of range, expected >= 1"},
    {{TN_OPT(pair, a, TN_OPT_INT, "x", NULL, ""), TN_OPT_END},
     "item 'made', default of a: 'x' is not a whole number"},
    {{TN_OPT(pair, a, TN_OPT_INT, "1", "positive", ""), TN_OPT_END},
     "item 'made', option 'a': the range 'positive' does not suit a whole number"},
    {{TN_OPT(pair, a, TN_OPT_INT, "1", "[3, 2]", ""), TN_OPT_END},
     "item 'made', option 'a': the range '[3, 2]' does not suit a whole number"},
    {{TN_OPT(pair, a, TN_OPT_INT, "1", "> ", ""), TN_OPT_END},
     "item 'made', option 'a': the range '> ' does not suit a whole number"},
    {{TN_OPT(pair, a, TN_OPT_INT, "1", "[0; 2]", ""), TN_OPT_END},
     "item 'made', option 'a': the range '[0; 2]' does not suit a whole number"},
    {{TN_OPT(pair, a, TN_OPT_INT, "1", NULL, ""), TN_OPT(pair, a, TN_OPT_INT, "1", NULL, "")},
     "item 'made': the option 'a' is listed twice"},
    {{{"a", TN_OPT_TEXT, 0, 0, 8, "", NULL, ""}, {"b", TN_OPT_FLAG, 0, 4, 4, "no", NULL, ""}},
     "item 'made': the fields of the options 'a' (at byte 0) and 'b' (at byte 4) overlap"},
};

static void a_table_that_is_wrong_is_the_items_fault(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
    test_env t;
    tn_options options;
    test_env_start(&t);
    tn_arena arena = tn_arena_new(&t);
    tn_option ended[4] = {tables[i].rows[0], tables[i].rows[1], tables[i].rows[2], TN_OPT_END};
    tn_item made = TN_ITEM(tn_item, TN_LAYER, "made", "", pair, ended);
    tn_status status = tn_options_start(&t, &arena, &made, &options);
    if (status != TN_EABI || strcmp(tn_error_text(&t), tables[i].message) != 0)
      fail_msg("   got: %s\nwanted: %s", tn_error_text(&t), tables[i].message);
    tn_arena_free(&arena);
    assert_int_equal(t.live, 0);
  }
}

static void an_enum_without_words_is_the_items_fault(void **state) {
  static const char *const ranges[] = {NULL, "", "a||b", "a|b|a"};
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    test_env t;
    tn_options options;
    test_env_start(&t);
    tn_arena arena = tn_arena_new(&t);
    tn_option row[] = {TN_OPT(sample, mode, TN_OPT_ENUM, "a", ranges[i], ""), TN_OPT_END};
    tn_item made = TN_ITEM(tn_item, TN_LAYER, "made", "", sample, row);
    assert_int_equal(tn_options_start(&t, &arena, &made, &options), TN_EABI);
    tn_arena_free(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_wrong_text_has_its_message),
      cmocka_unit_test(numbers_that_do_not_fit_are_refused),
      cmocka_unit_test(an_option_given_twice_is_refused),
      cmocka_unit_test(a_required_option_that_is_missing_is_named),
      cmocka_unit_test(a_table_that_is_wrong_is_the_items_fault),
      cmocka_unit_test(an_enum_without_words_is_the_items_fault),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

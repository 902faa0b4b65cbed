/* Growable strings, matching, nearest names, hashing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/base/text/text.h"
#include "tenon/context.h"
#include "tests/support/test_env.h"

static void a_text_grows_and_is_handed_over(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_text text = tn_text_new(&t);
  for (int i = 0; i < 100; i++) tn_text_addf(&text, "%d,", i);
  tn_text_add(&text, "end");
  tn_text_addn(&text, "!!!", 1);
  char *taken = tn_text_take(&text);
  assert_memory_equal(taken, "0,1,2,", 6);
  assert_string_equal(taken + strlen(taken) - 7, "99,end!");
  assert_null(text.v);
  tn_release(&t, taken);
  char *empty = tn_text_take(&text);
  assert_string_equal(empty, "");
  tn_release(&t, empty);
  assert_int_equal(t.live, 0);
}

static void a_refused_byte_sticks_until_the_text_is_taken(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_text text = tn_text_new(&t);
  tn_text_add(&text, "short");
  t.fail_at = 1;
  for (int i = 0; i < 50; i++) tn_text_add(&text, "growing");
  assert_true(text.failed);
  t.fail_at = 0;
  tn_text_add(&text, "more");
  tn_error_clear(&t);
  assert_null(tn_text_take(&text));
  assert_int_equal(t.record.code, TN_ENOMEM);
  assert_int_equal(t.live, 0);
}

static void comparing_accepts_null(void **state) {
  (void)state;
  assert_true(tn_text_equal(NULL, NULL));
  assert_false(tn_text_equal("a", NULL));
  assert_false(tn_text_equal(NULL, "a"));
  assert_true(tn_text_equal("a", "a"));
  assert_true(tn_text_starts("block x", "block "));
  assert_false(tn_text_starts("blo", "block"));
  assert_true(tn_text_starts("x", ""));
}

static void trimming_cuts_both_ends(void **state) {
  (void)state;
  char text[] = " \t a b\n ", blank[] = "  ", empty[] = "";
  assert_string_equal(tn_text_trim(text), "a b");
  assert_string_equal(tn_text_trim(blank), "");
  assert_string_equal(tn_text_trim(empty), "");
}

static void patterns_match_as_in_a_shell(void **state) {
  (void)state;
  assert_true(tn_text_glob("*.bias", "layer1.0.conv1.bias"));
  assert_false(tn_text_glob("*.bias", "bias"));
  assert_true(tn_text_glob("*.bn?.weight", "a.bn1.weight"));
  assert_false(tn_text_glob("*.bn?.weight", "a.bn10.weight"));
  assert_true(tn_text_glob("*", ""));
  assert_true(tn_text_glob("", ""));
  assert_false(tn_text_glob("", "a"));
  assert_false(tn_text_glob("?", ""));
  assert_true(tn_text_glob("a*b*c", "aXbXbYc"));
  assert_false(tn_text_glob("a*b*c", "aXbXbYcd"));
  assert_true(tn_text_glob("**a**", "a"));
  /* Linear time; a naive matcher would take exponential time. */
  assert_false(tn_text_glob("*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void the_nearest_name_is_what_a_slip_would_make(void **state) {
  (void)state;
  const char *const names[] = {"lr", "momentum", "weight_decay", "dampening", "nesterov"};
  assert_string_equal(tn_text_nearest("momentun", names, 5), "momentum");
  assert_string_equal(tn_text_nearest("moemntum", names, 5), "momentum");
  assert_string_equal(tn_text_nearest("Momentum", names, 5), "momentum");
  assert_string_equal(tn_text_nearest("weight-decay", names, 5), "weight_decay");
  assert_string_equal(tn_text_nearest("weight", names, 5), "weight_decay");
  assert_string_equal(tn_text_nearest("l", names, 5) ? "near" : "far", "far");
  assert_string_equal(tn_text_nearest("rl", names, 5), "lr");
  assert_null(tn_text_nearest("epochs", names, 5));
  assert_null(tn_text_nearest("", names, 5));
  assert_null(tn_text_nearest("momentum", names, 0));
  char huge[200];
  memset(huge, 'm', 199);
  huge[199] = '\0';
  assert_null(tn_text_nearest(huge, names, 5));
}

static void hashes_are_fnv_1a_and_texts_end(void **state) {
  (void)state;
  assert_int_equal(tn_hash_bytes(TN_HASH_START, "a", 1), 0xaf63dc4c8601ec8cu);
  assert_int_equal(tn_hash_bytes(TN_HASH_START, "foobar", 6), 0x85944171f73967e8u);
  assert_int_equal(tn_hash_bytes(TN_HASH_START, "", 0), TN_HASH_START);
  uint64_t ab_c = tn_hash_text(tn_hash_text(TN_HASH_START, "ab"), "c");
  uint64_t a_bc = tn_hash_text(tn_hash_text(TN_HASH_START, "a"), "bc");
  assert_int_not_equal(ab_c, a_bc);
}

/* The text keeps its length, so that it can be changed in place. */
static void texts_from_outside_become_plain(void **state) {
  static const char *const texts[][2] = {
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"a\x1b[31m\nb\x7f", "a [31m b "},
      {"\xc2\x9b"
       "1m\xe2\x80\xae",
       "??1m???"},
      {"caf\xe9 \x9b"
       "2J",
       "caf? ?2J"},
      {"\xed\xa0\x80\xc0\xaf\xf5", "??????"},
      {"cut \xe2\x82", "cut ??"}};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char text[64];
    strcpy(text, texts[i][0]);
    tn_text_make_plain(text);
    assert_string_equal(text, texts[i][1]);
  }
  tn_text_make_plain(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_text_grows_and_is_handed_over),
      cmocka_unit_test(a_refused_byte_sticks_until_the_text_is_taken),
      cmocka_unit_test(comparing_accepts_null),
      cmocka_unit_test(trimming_cuts_both_ends),
      cmocka_unit_test(patterns_match_as_in_a_shell),
      cmocka_unit_test(the_nearest_name_is_what_a_slip_would_make),
      cmocka_unit_test(hashes_are_fnv_1a_and_texts_end),
      cmocka_unit_test(texts_from_outside_become_plain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Truncated, shuffled and random texts. Every text results in a value or in an error with a message,
 * nothing leaks, and accepted texts print back to the same. This is the room's fuzz test under the
 * sanitizers; its seed is fixed, so that failures are reproducible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stdlib.h>

#include "core/config/options/options.h"
#include "core/config/language/syntax.h"
#include "tests/support/test_env.h"
#include "tenon/random.h"

static const char seed_text[] =
    "# a\n[run]\nname = x ; c\nseed=3\nempty =\n\n[block a]\nargs = n=1, k=[1, 2]\nlayers =\n"
    "    c{i}: conv(64, k=(1 + 2) * 3, bias=no) * 2,\n      relu <- in, data.x if n > 1 and not k == 2\n"
    "    d: @c.0 <- c\n\tf(normal(0, 0.02), w=@a.b, z=-dim(in, 1) // 2 % 3)\n[list]\nv = [30, 60]\n";
static const char alphabet[] = "[]()=:,.;#@{}*+-/%<>!$\"\\ \t\n\r\n\n[] ax1_0";

static char *mutate(tn_rng *rng, const char *from) {
  size_t n = strlen(from);
  char *text = malloc(n + 64);
  assert_non_null(text);
  memcpy(text, from, n + 1);
  for (int64_t edits = 1 + tn_rng_below(rng, 6); edits > 0; edits--) {
    size_t at = (size_t)tn_rng_below(rng, (int64_t)n);
    size_t span = (size_t)tn_rng_below(rng, 8);
    switch (tn_rng_below(rng, 4)) {
    case 0: text[at] = alphabet[tn_rng_below(rng, (int64_t)sizeof(alphabet) - 1)]; break;
    case 1: text[at] = (char)(1 + tn_rng_below(rng, 255)); break;
    case 2: /* cut */
      if (at + span >= n || n - span < 2) break;
      memmove(text + at, text + at + span, n - at - span + 1);
      n -= span;
      break;
    default: /* insert */
      if (n + 1 >= strlen(from) + 60) break;
      memmove(text + at + 1, text + at, n - at + 1);
      text[at] = alphabet[tn_rng_below(rng, (int64_t)sizeof(alphabet) - 1)];
      n++;
    }
  }
  return text;
}

static void evaluate_all(test_env *t, tn_arena *arena, const tn_line *line) {
  for (int32_t i = 0; i < line->n_items; i++)
    for (int32_t k = 0; k < line->items[i].n_args; k++) {
      tn_value value;
      if (tn_expr_evaluate(t, arena, line->items[i].args[k].value, NULL, &value) == TN_OK)
        assert_non_null(tn_value_text(arena, &value));
    }
}

static void parse_models(test_env *t, const tn_ini *ini) {
  tn_arena arena = tn_arena_new(t);
  for (int32_t i = 0; i < ini->n_sections; i++)
    for (int32_t k = 0; k < ini->sections[i].n_keys; k++) {
      tn_line *lines;
      int32_t n;
      tn_error_clear(t);
      tn_status status = tn_syntax_lines(t, &arena, &ini->sections[i].keys[k], NULL, &lines, &n);
      if (status != TN_OK)
        assert_true(strncmp(tn_error_text(t), "t.ini:", 6) == 0);
      else
        for (int32_t l = 0; l < n; l++) evaluate_all(t, &arena, &lines[l]);
    }
  tn_arena_free(&arena);
}

static void check_print(test_env *t, const tn_ini *ini) {
  tn_text first = tn_text_new(t), second = tn_text_new(t);
  tn_ini back;
  assert_int_equal(tn_ini_print(t, ini, &first), TN_OK);
  if (tn_ini_parse(t, first.v != NULL ? first.v : "", "t.ini", ".", &back) != TN_OK)
    fail_msg("%s\n%s", tn_error_text(t), first.v);
  assert_int_equal(tn_ini_print(t, &back, &second), TN_OK);
  if (first.v != NULL) assert_string_equal(first.v, second.v);
  tn_ini_free(&back);
  tn_text_free(&first);
  tn_text_free(&second);
}

static int try_text(const char *text) {
  test_env t;
  tn_ini ini;
  test_env_start(&t);
  tn_status status = tn_ini_parse(&t, text, "t.ini", ".", &ini);
  if (status == TN_OK) {
    parse_models(&t, &ini);
    check_print(&t, &ini);
    tn_ini_free(&ini);
  } else {
    assert_int_equal(status, TN_EINVAL);
    assert_true(strncmp(tn_error_text(&t), "t.ini:", 6) == 0);
  }
  assert_int_equal(t.live, 0);
  return status == TN_OK;
}

static void mutated_configurations_are_read_or_refused(void **state) {
  tn_rng rng = tn_rng_at(1, 0);
  int read = 0;
  (void)state;
  assert_true(try_text(seed_text));
  for (int i = 0; i < 20000; i++) {
    char *text = mutate(&rng, seed_text);
    /* Includes name files, which this test does not cover. */
    if (strstr(text, "include") == NULL) read += try_text(text);
    free(text);
  }
  assert_in_range(read, 2000, 18000);
}

static void every_beginning_of_a_configuration_is_read_or_refused(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof(seed_text); n++) {
    char *text = calloc(1, n + 1);
    assert_non_null(text);
    memcpy(text, seed_text, n);
    try_text(text);
    free(text);
  }
}

static void random_expressions_are_evaluated_or_refused(void **state) {
  static const char *const pieces[] = {
      "1",     "2.5",  "a",     "yes", "(",    ")",    "[", "]",  ",",
      "+",     "-",    "*",     "/",   "//",   "%",    "<", "<-", "==",
      " and ", " or ", " not ", "f(",  "dim(", "@x.1", "=", " ",  "9007199254740992"};
  tn_rng rng = tn_rng_at(2, 0);
  int read = 0;
  (void)state;
  for (int i = 0; i < 20000; i++) {
    test_env t;
    char text[512] = "";
    tn_expr *expr;
    tn_value value;
    test_env_start(&t);
    tn_arena arena = tn_arena_new(&t);
    for (int64_t n = 1 + tn_rng_below(&rng, 9); n > 0; n--) strcat(text, pieces[tn_rng_below(&rng, 27)]);
    if (tn_syntax_expr(&t, &arena, text, &expr) == TN_OK) {
      read++;
      if (tn_expr_evaluate(&t, &arena, expr, NULL, &value) == TN_OK)
        assert_non_null(tn_value_text(&arena, &value));
      else
        assert_string_not_equal(tn_error_text(&t), "");
    }
    tn_arena_free(&arena);
    assert_int_equal(t.live, 0);
  }
  assert_in_range(read, 200, 19800);
}

typedef struct sample {
  int32_t flag, mode, dtype;
  int64_t count, size;
  double rate, time;
  const char *text, *init;
  tn_ints ints;
  tn_floats floats;
} sample;

static const tn_option rows[] = {TN_OPT(sample, flag, TN_OPT_FLAG, "no", NULL, ""),
                                 TN_OPT(sample, mode, TN_OPT_ENUM, "a", "a|bb|c", ""),
                                 TN_OPT(sample, dtype, TN_OPT_DTYPE, "any", NULL, ""),
                                 TN_OPT(sample, count, TN_OPT_INT, "0", NULL, ""),
                                 TN_OPT(sample, size, TN_OPT_SIZE, "0", NULL, ""),
                                 TN_OPT(sample, rate, TN_OPT_FLOAT, "0", NULL, ""),
                                 TN_OPT(sample, time, TN_OPT_DURATION, "0", NULL, ""),
                                 TN_OPT(sample, text, TN_OPT_TEXT, "", NULL, ""),
                                 TN_OPT(sample, init, TN_OPT_INIT, "zeros", NULL, ""),
                                 TN_OPT(sample, ints, TN_OPT_INTS, "[]", NULL, ""),
                                 TN_OPT(sample, floats, TN_OPT_FLOATS, "[]", NULL, ""),
                                 TN_OPT_END};
static const tn_item item = TN_ITEM(tn_item, TN_LAYER, "sample", "", sample, rows);

/* An accepted option prints as text that reads back to the same value. */
static int try_option(const char *name, const char *text) {
  test_env t;
  tn_options first, second;
  test_env_start(&t);
  tn_arena arena = tn_arena_new(&t);
  tn_text printed = tn_text_new(&t);
  assert_int_equal(tn_options_start(&t, &arena, &item, &first), TN_OK);
  assert_int_equal(tn_options_start(&t, &arena, &item, &second), TN_OK);
  int taken = tn_options_set_text(&t, &first, name, text) == TN_OK;
  if (taken) {
    tn_options_print_one(&printed, tn_options_find(&item, name), first.data);
    const char *again = printed.v != NULL ? printed.v : "";
    if (tn_options_set_text(&t, &second, name, again) != TN_OK) fail_msg("%s", tn_error_text(&t));
    if (!tn_options_equal(&item, first.data, second.data)) fail_msg("%s: %s became %s", name, text, again);
  }
  tn_text_free(&printed);
  tn_arena_free(&arena);
  assert_int_equal(t.live, 0);
  return taken;
}

static void random_texts_of_options_round_trip_or_are_refused(void **state) {
  static const char *const pieces[] = {"1", "23", ".",   "-",  "e5",  "inf", "nan", "MiB",
                                       "s", "h",  "yes", "bb", "f32", "[",   "]",   ",",
                                       " ", "\"", "\\",  "x",  "0",   "\n",  "(",   ")"};
  tn_rng rng = tn_rng_at(3, 0);
  int taken = 0;
  (void)state;
  for (int i = 0; i < 20000; i++) {
    char text[64] = "";
    for (int64_t n = tn_rng_below(&rng, 6); n > 0; n--) strcat(text, pieces[tn_rng_below(&rng, 24)]);
    taken += try_option(rows[tn_rng_below(&rng, 11)].name, text);
  }
  assert_in_range(taken, 1000, 19000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mutated_configurations_are_read_or_refused),
      cmocka_unit_test(every_beginning_of_a_configuration_is_read_or_refused),
      cmocka_unit_test(random_expressions_are_evaluated_or_refused),
      cmocka_unit_test(random_texts_of_options_round_trip_or_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

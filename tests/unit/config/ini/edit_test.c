/* Overrides and printing back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stdio.h>

#include "core/config/ini/ini.h"
#include "tests/support/test_env.h"

static tn_ini parse(test_env *t, const char *text) {
  tn_ini ini;
  if (tn_ini_parse(t, text, "t.ini", ".", &ini) != TN_OK) fail_msg("%s", tn_error_text(t));
  return ini;
}

static void is_set(test_env *t, tn_ini *ini, const char *assignment) {
  if (tn_ini_set(t, ini, assignment) != TN_OK) fail_msg("%s", tn_error_text(t));
}

static const char *value_of(const tn_ini *ini, const char *section, const char *key) {
  return tn_section_key(tn_ini_section(ini, section), key)->value;
}

/* The text of an ini as it prints, which must read back to an ini that prints the same. */
static void prints_as(test_env *t, const tn_ini *ini, const char *expected) {
  tn_text text = tn_text_new(t), again = tn_text_new(t);
  assert_int_equal(tn_ini_print(t, ini, &text), TN_OK);
  assert_string_equal(text.v, expected);
  tn_ini back = parse(t, text.v);
  assert_int_equal(back.n_sections, ini->n_sections);
  for (int32_t i = 0; i < ini->n_sections; i++) {
    assert_string_equal(back.sections[i].name, ini->sections[i].name);
    assert_int_equal(back.sections[i].n_keys, ini->sections[i].n_keys);
    for (int32_t k = 0; k < ini->sections[i].n_keys; k++) {
      assert_string_equal(back.sections[i].keys[k].name, ini->sections[i].keys[k].name);
      assert_string_equal(back.sections[i].keys[k].value, ini->sections[i].keys[k].value);
    }
  }
  assert_int_equal(tn_ini_print(t, &back, &again), TN_OK);
  assert_string_equal(again.v, expected);
  tn_ini_free(&back);
  tn_text_free(&text);
  tn_text_free(&again);
}

static void an_override_splits_at_the_last_dot_before_the_first_equals_sign(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[optimizer]\nlr = 0.1\n");
  is_set(&t, &ini, "optimizer.lr=0.2");
  is_set(&t, &ini, "group.no_decay.match=*.bias=x");
  is_set(&t, &ini, " block  a . args = n=3 ");
  assert_string_equal(value_of(&ini, "optimizer", "lr"), "0.2");
  assert_string_equal(value_of(&ini, "group.no_decay", "match"), "*.bias=x");
  assert_string_equal(value_of(&ini, "block a", "args"), "n=3");
  tn_section *section = tn_ini_section(&ini, "group.no_decay");
  assert_string_equal(tn_key_where(&ini, section, &section->keys[0]), "--set group.no_decay.match");
  assert_string_equal(tn_key_where(&ini, section, NULL), "--set group.no_decay");
  assert_int_equal(section->keys[0].line, 0);
  tn_ini_free(&ini);
  assert_int_equal(t.live, 0);
}

static void a_later_override_wins(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "");
  is_set(&t, &ini, "run.seed=1");
  is_set(&t, &ini, "run.seed=2");
  is_set(&t, &ini, "run.name=");
  assert_int_equal(ini.sections[0].n_keys, 2);
  assert_string_equal(value_of(&ini, "run", "seed"), "2");
  assert_string_equal(value_of(&ini, "run", "name"), "");
  tn_ini_free(&ini);
}

static void wrong_overrides_are_refused(void **state) {
  static const char *const cases[][2] = {
      {"run.seed", "--set run.seed: no '=', expected section.key=value"},
      {"seed=3", "--set seed=3: no '.' before '=', expected section.key=value"},
      {"seed=3.5", "--set seed=3.5: no '.' before '=', expected section.key=value"},
      {".seed=3", "--set .seed=3: the section's name is empty, expected one such as [run]"},
      {"run.=3", "--set run.=3: nothing before '=', expected 'key = value'"},
      {"run.a b=3", "--set run.a b=3: ' ' in the key 'a b', expected letters, digits, '_' and '-'"},
      {"r/n.a=3",
       "--set r/n.a=3: '/' in the section name [r/n], expected letters, digits, '_', '-', '.' and blanks"},
      {"run.name=a #b",
       "--set run.name=a #b: the value 'a #b' cannot be kept in a file: '#' or ';' after a blank "
       "begins a comment"},
      {"run.name=;b",
       "--set run.name=;b: the value ';b' cannot be kept in a file: '#' or ';' after a blank begins a "
       "comment"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    test_env t;
    test_env_start(&t);
    tn_ini ini = parse(&t, "[run]\nseed = 1\n");
    assert_int_equal(tn_ini_set(&t, &ini, cases[i][0]), TN_EINVAL);
    assert_string_equal(tn_error_text(&t), cases[i][1]);
    assert_int_equal(ini.n_sections, 1);
    tn_ini_free(&ini);
    assert_int_equal(t.live, 0);
  }
}

static void what_was_read_prints_back_the_same(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "; about\n[run]\nname=x ; c\nempty =\nprice = 5$$\n[model]\nlayers =\n  a: relu\n"
                         "     relu\n  b: relu\n[c]\n");
  prints_as(
      &t, &ini,
      "[run]\nname = x\nempty =\nprice = 5$$\n\n[model]\nlayers =\n    a: relu\n       relu\n    b: relu\n\n"
      "[c]\n");
  tn_ini_free(&ini);
}

static void values_with_a_first_line_beside_the_key_print_below_it(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[a]\nx = 1,\n   2,\n     3\n");
  prints_as(&t, &ini, "[a]\nx =\n    1,\n    2,\n      3\n");
  tn_ini_free(&ini);
}

static void a_value_that_begins_like_a_comment_stays_a_value(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[a]\nx =#fff\ny=;\n");
  prints_as(&t, &ini, "[a]\nx =#fff\ny =;\n");
  tn_ini_free(&ini);
}

static void overrides_of_several_lines_print_back_too(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "[b]\n");
  is_set(&t, &ini, "model.layers=\n  a: relu\n\n  ${x}\n");
  is_set(&t, &ini, "b.list=[c]");
  prints_as(&t, &ini, "[b]\nlist = [c]\n\n[model]\nlayers =\n    a: relu\n    $${x}\n");
  tn_ini_free(&ini);
  assert_int_equal(t.live, 0);
}

static void many_sections_and_keys_can_be_added(void **state) {
  (void)state;
  test_env t;
  test_env_start(&t);
  tn_ini ini = parse(&t, "");
  for (int i = 0; i < 400; i++) {
    char text[64];
    snprintf(text, sizeof(text), "s%d.k%d=%d", i % 20, i, i);
    is_set(&t, &ini, text);
  }
  assert_int_equal(ini.n_sections, 20);
  assert_int_equal(ini.sections[19].n_keys, 20);
  assert_string_equal(value_of(&ini, "s7", "k387"), "387");
  tn_ini_free(&ini);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_override_splits_at_the_last_dot_before_the_first_equals_sign),
      cmocka_unit_test(a_later_override_wins),
      cmocka_unit_test(wrong_overrides_are_refused),
      cmocka_unit_test(what_was_read_prints_back_the_same),
      cmocka_unit_test(values_with_a_first_line_beside_the_key_print_below_it),
      cmocka_unit_test(a_value_that_begins_like_a_comment_stays_a_value),
      cmocka_unit_test(overrides_of_several_lines_print_back_too),
      cmocka_unit_test(many_sections_and_keys_can_be_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

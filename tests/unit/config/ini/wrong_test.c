/* Invalid INI texts with their exact messages. inih 55 accepts many of them silently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <stdlib.h>

#include "core/config/ini/ini.h"
#include "tests/support/test_env.h"

typedef struct wrong {
  const char *what, *text, *message;
} wrong;

#define N50 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static const wrong cases[] = {
    {"a header without its bracket", "[run\n", "t.ini:1: '[run' has no ']', expected a header such as [run]"},
    {"text after the bracket", "\n[run] seed = 3\n",
     "t.ini:2: 'seed = 3' after the header, expected nothing or a comment"},
    {"a second bracket", "[run]]\n", "t.ini:1: ']' after the header, expected nothing or a comment"},
    {"an empty section name", "[ ]\n", "t.ini:1: the section's name is empty, expected one such as [run]"},
    {"a section name with a slash", "[data/train]\n",
     "t.ini:1: '/' in the section name [data/train], expected letters, digits, '_', '-', '.' and blanks"},
    {"a section name in UTF-8", "[d\xC3\xA4ta]\n",
     "t.ini:1: '\xC3\xA4' in the section name [d\xC3\xA4ta], expected letters, digits, '_', '-', '.' and "
     "blanks"},
    {"a section name of 50 bytes", "[" N50 "]\n",
     "t.ini:1: the section name [nnnnnnnnnnnnnnnnnnnn...] has 50 bytes, expected at most 49"},
    {"an indented header at the start", "  [run]\n",
     "t.ini:1: '[run]' is indented, but there is no key above that it could continue; headers and keys begin "
     "in "
     "column 1"},
    {"an indented header below a key", "[run]\nseed = 3\n  [data.train]\n",
     "t.ini:3: '[data.train]' is indented and so continues the key 'seed', but it looks like a section's "
     "header; "
     "headers begin in column 1"},
    {"an indented header with a comment", "[run]\nseed = 3\n\t[ data ] ; next\n",
     "t.ini:3: '[ data ]' is indented and so continues the key 'seed', but it looks like a section's header; "
     "headers "
     "begin in column 1"},
    {"an indented key below a header", "[run]\n  seed = 3\n",
     "t.ini:2: 'seed = 3' is indented, but there is no key above that it could continue; headers and keys "
     "begin in "
     "column 1"},
    {"a value of several lines that begins like a header", "[a]\nx = [b]\n  c\n",
     "t.ini:3: the value of 'x' begins with '[b]', but it looks like a section's header"},
    {"a word alone", "[run]\nseed\n", "t.ini:2: 'seed' is neither '[section]' nor 'key = value'"},
    {"a colon instead of '='", "[run]\nseed: 3\n",
     "t.ini:2: 'seed: 3' has ':' where '=' was expected; lines of a model are indented below their key"},
    {"a model line in column 1", "[model]\nlayers =\nconv1: conv2d(8, kernel=3)\n",
     "t.ini:3: 'conv1: conv2d(8, kernel=3)' has ':' where '=' was expected; lines of a model are indented "
     "below their "
     "key"},
    {"no key before '='", "[run]\n= 3\n", "t.ini:2: nothing before '=', expected 'key = value'"},
    {"a key with a blank", "[run]\nmax steps = 3\n",
     "t.ini:2: ' ' in the key 'max steps', expected letters, digits, '_' and '-'"},
    {"a key of 50 bytes", "[run]\n" N50 " = 3\n",
     "t.ini:2: the key 'nnnnnnnnnnnnnnnnnnnn...' has 50 bytes, expected at most 49"},
    {"a key given twice", "[run]\nseed = 1\n\nseed = 2\n",
     "t.ini:4: the key 'seed' is given twice, first in line 2"},
    {"a section given twice", "[run]\nseed = 1\n[data]\n[run]\nname = x\n",
     "t.ini:4: the section [run] is given twice, first in line 1; merge the two"},
    {"the same section, spelt with other blanks", "[block a]\n[ block  a ]\n",
     "t.ini:2: the section [block a] is given twice, first in line 1; merge the two"},
    {"a key before the first section", "seed = 3\n[run]\n",
     "t.ini:1: the key 'seed' stands before the first section, where only 'include' may"},
    {"include given twice", "include = /dev/null\ninclude = b.ini\n",
     "t.ini:2: the key 'include' is given twice, first in line 1"},
    {"a variable that is not set", "[run]\nname =\n  a\n  ${TENON_NOT_SET}\n",
     "t.ini:4: ${TENON_NOT_SET} is not set in the environment; set it, or write the value itself"},
    {"a variable without its brace", "[run]\nname = ${HOME\n",
     "t.ini:2: '${HOME' is not a variable, expected ${NAME}, or $$ for a dollar"},
    {"a variable without a name", "[run]\nname = a${}b\n",
     "t.ini:2: '${}b' is not a variable, expected ${NAME}, or $$ for a dollar"},
    {"a lone dollar", "[run]\nname = 5$\n",
     "t.ini:2: '$' is not a variable, expected ${NAME}, or $$ for a dollar"},
    {"a dollar with a bare name", "[run]\nname = $HOME/x\n",
     "t.ini:2: '$HOME/x' is not a variable, expected ${NAME}, or $$ for a dollar"},
    {"a variable that brings a comment", "[run]\nname = a ${TENON_TEST_COMMENT}\n",
     "t.ini:2: the value becomes 'a #1', but '#' or ';' after a blank begins a comment"},
    {"a variable that brings a line end", "[run]\nname = ${TENON_TEST_LINES}\n",
     "t.ini:2: the value becomes 'a b', but it has a control character"},
    {"a control character", "[run]\nname = a\x01\n",
     "t.ini:2: the control character 0x01 in column 9, expected text"},
    {"a carriage return inside a line", "[run]\rname = a\n",
     "t.ini:1: a carriage return in column 6, expected lines that end in LF or CR LF"},
    {"a second byte order mark", "[run]\n\xEF\xBB\xBFname = a\n",
     "t.ini:2: '\xEF\xBB\xBF' in the key '\xEF\xBB\xBFname', expected letters, digits, '_' and '-'"},
    {"a key that begins with '@'", "[run]\n@ = a\n",
     "t.ini:2: '@' in the key '@', expected letters, digits, '_' and '-'"},
    {"an include that is not there", "include = no/such.ini\n",
     "t.ini:1: include: no/such.ini: cannot be opened: No such file or directory"},
};

static void every_wrong_text_has_its_message(void **state) {
  (void)state;
  setenv("TENON_TEST_COMMENT", "#1", 1);
  setenv("TENON_TEST_LINES", "a\nb", 1);
  unsetenv("TENON_NOT_SET");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    test_env t;
    tn_ini ini;
    test_env_start(&t);
    tn_status status = tn_ini_parse(&t, cases[i].text, "t.ini", ".", &ini);
    if (status == TN_OK || strcmp(tn_error_text(&t), cases[i].message) != 0)
      fail_msg("%s: status %d\n   got: %s\nwanted: %s", cases[i].what, status, tn_error_text(&t),
               cases[i].message);
    assert_int_equal(ini.n_sections, 0);
    tn_ini_free(&ini);
    assert_int_equal(t.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_wrong_text_has_its_message)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

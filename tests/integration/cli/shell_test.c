/* Completions, the manual page and the exit codes say what the tables of commands and options say. */
#include <stdbool.h>
#include <stdlib.h>

#include "program.h"

enum { MOST = 64, NAME = 32 };

typedef struct names {
  char v[MOST][NAME];
  int n;
} names;

static void add(names *list, const char *word, size_t length) {
  assert_true(list->n < MOST && length < NAME);
  snprintf(list->v[list->n++], NAME, "%.*s", (int)length, word);
}

/* The commands of `tenon --help`: lines of two blanks and a word, up to the exit codes. */
static names commands(void) {
  names list = {.n = 0};
  assert_int_equal(program_run("--help"), 0);
  const char *end = strstr(program_out, "exit codes:");
  assert_non_null(end);
  for (const char *line = program_out; line < end; line = strchr(line, '\n') + 1)
    if (strncmp(line, "  ", 2) == 0) add(&list, line + 2, strcspn(line + 2, " "));
  assert_true(list.n > 12);
  return list;
}

/* The options of `tenon COMMAND -h`, without the hyphens; an option may be explained twice. */
static names options(const char *command) {
  names list = {.n = 0};
  assert_int_equal(program_run("%s -h", command), 0);
  for (const char *line = program_out; line[0]; line = strchr(line, '\n') + 1) {
    const char *at = strstr(line, "--");
    size_t end = strcspn(line, "\n"), n = at ? strcspn(at + 2, " \n") : 0;
    bool known = false;
    if (strncmp(line, "  -", 3) != 0 || at == NULL || at > line + end) continue;
    for (int i = 0; i < list.n; i++)
      known = known || (strlen(list.v[i]) == n && strncmp(list.v[i], at + 2, n) == 0);
    if (!known) add(&list, at + 2, n);
  }
  assert_true(list.n >= 4);
  return list;
}

/* Runs a line of the shell and returns its output. */
static void shell(const char *line, char *text, size_t size) {
  FILE *out = popen(line, "r");
  assert_non_null(out);
  size_t n = fread(text, 1, size - 1, out);
  text[n] = '\0';
  if (pclose(out) != 0) fail_msg("'%s' fails: %s", line, text);
}

static bool installed(const char *program) {
  char line[128];
  snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", program);
  return system(line) == 0;
}

static void write_script(const char *name) {
  assert_int_equal(program_run("completion %s", name), 0);
  file_write(name, program_out);
}

/* COMPREPLY after the words, "tenon trai": sorted, without repetitions, separated by blanks. */
static void complete(const char *words, char *text, size_t size) {
  char line[512];
  snprintf(line, sizeof line,
           "bash -c '. ./bash; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tenon; "
           "printf \"%%s\\n\" \"${COMPREPLY[@]}\"' | LC_ALL=C sort -u | tr '\\n' ' '",
           words);
  shell(line, text, size);
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static void completes(const char *words, const char *expected) {
  char text[4096];
  complete(words, text, sizeof text);
  if (strcmp(text, expected) != 0) fail_msg("'%s' gives '%s', expected '%s'", words, text, expected);
}

/* ---- bash ---- */

static void bash_offers_exactly_the_options_of_each_command(void **state) {
  (void)state;
  if (!installed("bash")) skip();
  names all = commands();
  write_script("bash");
  for (int i = 0; i < all.n; i++) {
    char expected[2048] = "", words[128];
    names list = options(all.v[i]);
    qsort(list.v, (size_t)list.n, NAME, by_text);
    for (int k = 0; k < list.n; k++)
      snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "--%s ", list.v[k]);
    snprintf(words, sizeof words, "tenon %s --", all.v[i]);
    completes(words, expected);
  }
}

static void bash_completes_commands_values_and_files(void **state) {
  (void)state;
  if (!installed("bash")) skip();
  write_script("bash");
  file_write("my net.ini", "");
  completes("tenon tr", "train ");
  completes("tenon che", "checkpoint ");
  completes("tenon checkpoint \"\"",
            ".stderr .stdout average bash convert diff ls merge my net.ini show verify ");
  completes("tenon checkpoint con", "convert ");
  completes("tenon checkpoint convert a b --dtype f", "f16 f32 f64 ");
  completes("tenon bench x.ini --mode l", "load ");
  completes("tenon train my", "my net.ini ");
  completes("tenon train x.ini --resume a", "auto ");
  completes("tenon new-plugin opt", "optimizer ");
}

/* ---- zsh, fish, man ---- */

/* The part of `text` from the line `from` to the next `to`. */
static char *part(const char *text, const char *from, const char *to) {
  const char *begin = strstr(text, from), *end = begin ? strstr(begin + strlen(from), to) : NULL;
  if (begin == NULL) fail_msg("there is no '%s'", from);
  size_t n = end ? (size_t)(end - begin) : strlen(begin);
  char *copy = calloc(n + 1, 1);
  assert_non_null(copy);
  memcpy(copy, begin, n);
  return copy;
}

static void contains(const char *text, const char *what, const char *where) {
  if (strstr(text, what) == NULL) fail_msg("%s lacks '%s': %s", where, what, text);
}

static void zsh_has_the_options_of_each_command(void **state) {
  (void)state;
  names all = commands();
  write_script("zsh");
  const char *script = file_read("zsh", NULL);
  for (int i = 0; i < all.n; i++) {
    char line[128];
    names list = options(all.v[i]);
    snprintf(line, sizeof line, "\n  %s)\n", all.v[i]);
    char *block = part(script, line, ";;");
    for (int k = 0; k < list.n; k++) {
      snprintf(line, sizeof line, "--%s[", list.v[k]);
      contains(block, line, all.v[i]);
    }
    free(block);
  }
  if (installed("zsh")) assert_int_equal(system("zsh -n zsh"), 0);
}

/* A quote that is not closed would break the script, which few machines can run. */
static void quotes_are_closed(const char *script) {
  int lines = 0;
  for (const char *line = script; *line; line = strchr(line, '\n') + 1, lines++) {
    int quotes = 0;
    for (const char *at = line; *at != '\n'; at++) {
      if (*at == '\\')
        at++;
      else
        quotes += *at == '\'';
    }
    if (quotes % 2 != 0) fail_msg("a quote is open in %.100s", line);
  }
  assert_true(lines > 100);
}

static void fish_has_the_options_of_each_command(void **state) {
  (void)state;
  names all = commands();
  write_script("fish");
  for (int i = 0; i < all.n; i++) {
    char line[160];
    names list = options(all.v[i]);
    for (int k = 0; k < list.n; k++) {
      snprintf(line, sizeof line, "-n '__fish_seen_subcommand_from %s' -l %s", all.v[i], list.v[k]);
      contains(file_read("fish", NULL), line, "fish");
    }
  }
  quotes_are_closed(file_read("fish", NULL));
  if (installed("fish")) assert_int_equal(system("fish -n fish"), 0);
}

/* "--dry-run" as the page writes it. */
static void escape(const char *word, char *text) {
  for (; *word; word++) {
    if (*word == '-') *text++ = '\\';
    *text++ = *word;
  }
  *text = '\0';
}

static void the_manual_page_has_commands_options_and_exit_codes(void **state) {
  (void)state;
  names all = commands();
  assert_int_equal(program_run("man"), 0);
  file_write("tenon.1", program_out);
  const char *page = file_read("tenon.1", NULL);
  char *common = part(page, ".SS Options of every command", ".SH");
  for (int i = 0; i < all.n; i++) {
    char line[128] = ".SS tenon ", option[64];
    names list = options(all.v[i]);
    escape(all.v[i], line + strlen(line));
    char *block = part(page, line, ".SS");
    for (int k = 0; k < list.n; k++) {
      snprintf(line, sizeof line, "--%s", list.v[k]);
      escape(line, option);
      contains(strstr(common, option) ? common : block, option, all.v[i]);
    }
    free(block);
  }
  free(common);
  contains(page, ".B 65\na wrong configuration", "the page");
  if (installed("groff"))
    assert_int_equal(system("groff -man -ww -Tascii tenon.1 >page.txt 2>&1 && ! grep -i warning page.txt"),
                     0);
}

/* ---- exit codes ---- */

/* The guides explain every code of `tenon --help`. */
static void the_guides_have_every_exit_code(void **state) {
  (void)state;
  static const char *const guides[] = {GUIDE "/runs.md", GUIDE "/results.md"};
  assert_int_equal(program_run("--help"), 0);
  int n = 0;
  for (const char *line = strstr(program_out, "exit codes:\n") + 12; *line; line = strchr(line, '\n') + 1) {
    char row[32];
    snprintf(row, sizeof row, "\n| %d |", atoi(line));
    for (int i = 0; i < 2; i++) contains(file_read(guides[i], NULL), row, guides[i]);
    n++;
  }
  assert_int_equal(n, 11);
}

static void unknown_shells_are_refused(void **state) {
  (void)state;
  assert_int_equal(program_run("completion csh"), 2);
  contains(program_err, "expected bash, zsh or fish", "stderr");
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(bash_offers_exactly_the_options_of_each_command),
      IN_FOLDER(bash_completes_commands_values_and_files),
      IN_FOLDER(zsh_has_the_options_of_each_command),
      IN_FOLDER(fish_has_the_options_of_each_command),
      IN_FOLDER(the_manual_page_has_commands_options_and_exit_codes),
      IN_FOLDER(the_guides_have_every_exit_code),
      IN_FOLDER(unknown_shells_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Measurements on disk: read back, shared between processes, other lines ignored. */
#include "core/exec/tune/tune_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/plugin/context.h"

static char folder[64], said[512];
static tn_context *context;
static tn_env *env;

static void hear(void *user, int32_t level, const char *text) {
  (void)user, (void)level;
  snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static int open_folder(void **state) {
  (void)state;
  const tn_context_options options = {.struct_size = sizeof options, .log = hear, .log_level = TN_LOG_WARN};
  snprintf(folder, sizeof folder, "/tmp/tenon-tune-XXXXXX");
  said[0] = '\0';
  if (mkdtemp(folder) == NULL || tn_context_open(&options, &context) != TN_OK) return -1;
  env = (tn_env *)context;
  return 0;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static int close_folder(void **state) {
  (void)state;
  tn_context_close(context);
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void start(tn_tune_file *f) {
  char inner[96];
  snprintf(inner, sizeof inner, "%s/a/b", folder);
  assert_int_equal(tn_tune_file_open(env, inner, "measurements of mine", f), TN_OK);
}

static void expect(tn_tune_file *f, uint64_t key, double seconds) {
  const tn_timing *found = tn_tune_file_find(f, key);
  assert_true(found != NULL && found->seconds == seconds);
}

static void measurements_are_read_back(void **state) {
  tn_tune_file f, g;
  (void)state;
  start(&f);
  assert_null(tn_tune_file_find(&f, 7));
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  tn_tune_file_add(&f, 8, 1e-7, "another");
  expect(&f, 7, 0.1);
  start(&g);
  expect(&g, 7, 0.1);
  expect(&g, 8, 1e-7);
  /* two writers; the newest measurement of a key is used */
  tn_tune_file_add(&f, 9, 3, "of the first");
  tn_tune_file_add(&g, 7, 0.2, "of the second");
  tn_tune_file_close(&f);
  start(&f);
  expect(&f, 7, 0.2);
  expect(&f, 9, 3);
  tn_tune_file_close(&f);
  tn_tune_file_close(&g);
  assert_string_equal(said, "");
}

static void append(const tn_tune_file *f, const char *text) {
  FILE *file = fopen(f->path, "a");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void other_lines_are_ignored(void **state) {
  tn_tune_file f, g;
  (void)state;
  start(&f);
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  append(&f, "nonsense\n"
             "0000000000000008 -1 negative\n"
             "0000000000000008 nan not a number\n"
             "0000000000000008 0x1p3 hexadecimal\n"
             "0000000000000008 0.5\n"
             "00000000000000090.5 no space\n"
             "0000000000000008 0.2");
  start(&g);
  expect(&g, 7, 0.1);
  assert_null(tn_tune_file_find(&g, 8));
  assert_non_null(strstr(said, "7 lines are not measurements and were ignored"));
  tn_tune_file_close(&f);
  tn_tune_file_close(&g);
}

static void another_heading_is_not_touched(void **state) {
  tn_tune_file f;
  struct stat before, after;
  (void)state;
  start(&f);
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  FILE *file = fopen(f.path, "w");
  assert_non_null(file);
  fputs("a file of another program\n0000000000000007 0.1 a kernel\n", file);
  fclose(file);
  tn_tune_file_close(&f);
  start(&f);
  assert_null(tn_tune_file_find(&f, 7));
  assert_non_null(strstr(said, "does not begin with \"measurements of mine\""));
  assert_int_equal(stat(f.path, &before), 0);
  tn_tune_file_add(&f, 7, 0.3, "a kernel");
  expect(&f, 7, 0.3);
  assert_int_equal(stat(f.path, &after), 0);
  assert_int_equal(before.st_size, after.st_size);
  tn_tune_file_close(&f);
}

/* ---- measurements that did not end ---- */

/* Another process, which begins a measurement and ends. */
static void begin_in_child(uint64_t key) {
  int status;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    tn_tune_file f;
    char inner[96];
    snprintf(inner, sizeof inner, "%s/a/b", folder);
    if (tn_tune_file_open(env, inner, "measurements of mine", &f) == TN_OK) tn_tune_file_begin(&f, key);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
}

static void a_fault_is_known_to_the_next_process(void **state) {
  tn_tune_file f;
  (void)state;
  start(&f);
  tn_tune_file_begin(&f, 7);
  assert_true(tn_tune_file_fault(&f, 7, "a kernel"));
  tn_tune_file_begin(&f, 8);
  tn_tune_file_end(&f, 8);
  tn_tune_file_close(&f);
  start(&f);
  assert_non_null(tn_tune_file_find_fault(&f, 7));
  assert_null(tn_tune_file_find_fault(&f, 8));
  tn_tune_file_close(&f);
  assert_string_equal(said, "");
}

/* One process may have been interrupted; two are no chance. */
static void two_processes_that_are_gone_are_a_fault(void **state) {
  tn_tune_file f;
  (void)state;
  begin_in_child(7);
  begin_in_child(8);
  start(&f);
  assert_null(tn_tune_file_find_fault(&f, 7));
  tn_tune_file_close(&f);
  begin_in_child(7);
  start(&f);
  const tn_tune_mark *mark = tn_tune_file_find_fault(&f, 7);
  assert_true(mark != NULL && !mark->fault);
  assert_null(tn_tune_file_find_fault(&f, 8));
  tn_tune_file_close(&f);
  assert_string_equal(said, "");
}

/* This process may still measure, and the file does not know about processes of other hosts. */
static void processes_that_may_still_run_are_no_fault(void **state) {
  tn_tune_file f;
  (void)state;
  start(&f);
  tn_tune_file_begin(&f, 7);
  tn_tune_file_begin(&f, 7);
  append(&f, "0000000000000008 begun 1 another.host\n0000000000000008 begun 2 another.host\n");
  tn_tune_file_close(&f);
  start(&f);
  assert_null(tn_tune_file_find_fault(&f, 7));
  assert_null(tn_tune_file_find_fault(&f, 8));
  tn_tune_file_close(&f);
  assert_string_equal(said, "");
}

/* Each process ends its own measurements; a figure shows that the variant works. */
static void ends_and_figures_take_marks_back(void **state) {
  tn_tune_file f;
  (void)state;
  for (int i = 0; i < 2; i++) begin_in_child(7);
  for (int i = 0; i < 2; i++) begin_in_child(8);
  start(&f);
  tn_tune_file_end(&f, 7);
  tn_tune_file_add(&f, 8, 0.1, "a kernel");
  tn_tune_file_close(&f);
  start(&f);
  assert_non_null(tn_tune_file_find_fault(&f, 7));
  assert_null(tn_tune_file_find_fault(&f, 8));
  tn_tune_file_close(&f);
}

/* ---- files that cannot be written ---- */

/* The folder is a file: measurements stay in memory. */
static void a_folder_that_cannot_be_made_is_a_warning(void **state) {
  tn_tune_file f;
  char path[96];
  (void)state;
  snprintf(path, sizeof path, "%s/a", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
  start(&f);
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  tn_tune_file_add(&f, 8, 0.1, "a kernel");
  expect(&f, 8, 0.1);
  char *first = strstr(said, "measurements of kernels are not stored");
  assert_non_null(first);
  assert_null(strstr(first + 1, "measurements of kernels are not stored"));
  tn_tune_file_close(&f);
}

/* Adds a measurement where the file may have so many bytes. */
static void add_within(tn_tune_file *f, uint64_t key, rlim_t bytes) {
  struct rlimit before, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = (struct rlimit){bytes, before.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  tn_tune_file_add(f, key, 0.5, "a kernel");
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
}

/* The disk is full in the middle of a line, and of a heading: nothing of them stays. */
static void half_a_line_is_taken_back(void **state) {
  tn_tune_file f;
  struct stat info;
  (void)state;
  start(&f);
  add_within(&f, 7, 10);
  assert_int_equal(stat(f.path, &info), 0);
  assert_int_equal(info.st_size, 0);
  tn_tune_file_close(&f);
  start(&f);
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  assert_int_equal(stat(f.path, &info), 0);
  off_t whole = info.st_size;
  add_within(&f, 8, (rlim_t)whole + 10);
  assert_int_equal(stat(f.path, &info), 0);
  assert_int_equal(info.st_size, whole);
  assert_non_null(strstr(said, "cannot be written: File too large"));
  tn_tune_file_close(&f);
  said[0] = '\0';
  start(&f);
  tn_tune_file_add(&f, 8, 0.2, "a kernel");
  tn_tune_file_close(&f);
  start(&f);
  expect(&f, 7, 0.1);
  expect(&f, 8, 0.2);
  tn_tune_file_close(&f);
  assert_string_equal(said, "");
}

/* Lines are not appended to a file that a link leads to. */
static void a_link_is_not_followed(void **state) {
  tn_tune_file f;
  char theirs[96];
  struct stat info;
  (void)state;
  start(&f);
  snprintf(theirs, sizeof theirs, "%s/theirs", folder);
  FILE *file = fopen(theirs, "w");
  assert_non_null(file);
  fclose(file);
  char *name = strrchr(f.path, '/');
  *name = '\0';
  assert_int_equal(tn_folder_make(env, f.path), TN_OK);
  *name = '/';
  assert_int_equal(symlink(theirs, f.path), 0);
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  tn_tune_file_remember(&f, &(tn_timing){8, 0.1, false});
  expect(&f, 8, 0.1);
  assert_int_equal(stat(theirs, &info), 0);
  assert_int_equal(info.st_size, 0);
  assert_int_equal(unlink(f.path), 0);
  tn_tune_file_close(&f);
}

static void without_a_folder_nothing_is_stored(void **state) {
  tn_tune_file f;
  (void)state;
  assert_int_equal(tn_tune_file_open(env, "", "measurements of mine", &f), TN_OK);
  tn_tune_file_add(&f, 7, 0.1, "a kernel");
  expect(&f, 7, 0.1);
  assert_null(f.path);
  tn_tune_file_close(&f);
  assert_string_equal(said, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(measurements_are_read_back),
      TEST(other_lines_are_ignored),
      TEST(another_heading_is_not_touched),
      TEST(a_fault_is_known_to_the_next_process),
      TEST(two_processes_that_are_gone_are_a_fault),
      TEST(processes_that_may_still_run_are_no_fault),
      TEST(ends_and_figures_take_marks_back),
      TEST(a_folder_that_cannot_be_made_is_a_warning),
      TEST(half_a_line_is_taken_back),
      TEST(a_link_is_not_followed),
      TEST(without_a_folder_nothing_is_stored),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The progress bar on a terminal: a pseudo-terminal of a given width, and what such a terminal shows. */
#include "configs.h"
#include "program.h"
#include "terminal.h"

#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_COLUMNS = 256 };

/* Trains on a terminal with so many columns. */
static void train_on_terminal(const char *options, int columns, int resize_at, int resized) {
  int terminal, end;
  char line[1024], *words[32], *rest = line;
  int n = 0;
  snprintf(line, sizeof line, "%s train noise.ini --set observer.progress.every=1ms %s", TENON, options);
  for (char *word; n < 31 && (word = strsep(&rest, " "));)
    if (*word) words[n++] = word;
  words[n] = NULL;
  pid_t child = terminal_start(words, columns, &terminal, &end);
  int status = terminal_read(child, terminal, end, resize_at, resized);
  close(end);
  close(terminal);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("it ended with %d: %s", status, terminal_output);
}

/* A terminal: the row that the cursor is in, and whether a bar ever ran over its edge. */
typedef struct screen {
  char row[MOST_COLUMNS + 1];
  int columns, at, longest, bars, validations, with_valid, summaries;
} screen;

static void screen_put(screen *s, char c) {
  if (strncmp(s->row, "tenon: ", 7) == 0 && s->at >= s->columns) return; /* a warning may take two rows */
  if (s->at >= s->columns) fail_msg("the row runs over %d columns: %s", s->columns, s->row);
  s->row[s->at++] = c;
  if (s->at > s->longest) s->longest = s->at;
}

/* The end of a redraw: the row holds a bar. */
static void screen_count_bar(screen *s) {
  if (s->at == 0) return;
  s->row[s->at] = '\0';
  if (strchr(s->row, '/') == NULL) fail_msg("no bar: %s", s->row);
  if (s->at > s->columns - 1) fail_msg("a bar of %d columns on %d: %s", s->at, s->columns, s->row);
  s->bars++;
  if (strstr(s->row, " val [") || strstr(s->row, " validation [")) s->validations++;
  if (strstr(s->row, "  val ") || strstr(s->row, "valid loss")) s->with_valid++;
}

/* Follows the bytes from the first bar on; the lines before it are the banner. */
static screen show(const char *bytes, int columns, int resized) {
  screen s = {.columns = columns};
  const char *at = strchr(strstr(bytes, "run        "), '\n');
  assert_non_null(at);
  for (at++; *at != '\0'; at++) {
    if (strncmp(at, "status ", 7) == 0) return s; /* the result, on stdout */
    if (*at == '\001') {
      s.columns = resized;
    } else if (*at == '\r') {
      s.at = 0;
    } else if (*at == '\n') {
      if (strncmp(s.row, "tenon: warning", 14) != 0 && strncmp(s.row, "epoch ", 6) != 0 &&
          strncmp(s.row, "  train", 7) != 0 && strncmp(s.row, "  valid", 7) != 0)
        fail_msg("a line for a bar: %s", s.row);
      s.summaries += strstr(s.row, "valid") != NULL;
      s.at = 0;
    } else if (*at == '\033') {
      at += 2;
      while (isdigit((unsigned char)*at)) at++;
      if (*at == 'K') screen_count_bar(&s);
      if (strchr("KAJ", *at) == NULL) fail_msg("an unknown control sequence ends in %c", *at);
    } else {
      screen_put(&s, *at);
      s.row[s.at] = '\0';
    }
  }
  return s;
}

/* The losses and metrics of the result are broken between two of them. */
static void the_result_fits(int columns) {
  const char *result = strstr(terminal_output, "\ntrain  "),
             *end = result ? strstr(result, "\nmemory ") : NULL;
  if (end == NULL) fail_msg("no result of a training: %s", terminal_output);
  size_t to = (size_t)(end - terminal_output);
  for (size_t at = (size_t)(result - terminal_output) + 1; at < to;
       at += strcspn(terminal_output + at, "\n") + 1) {
    int n = (int)strcspn(terminal_output + at, "\r\n");
    if (n > columns)
      fail_msg("a line of %d columns on %d, from byte %zu on: %s", n, columns, at, terminal_output);
  }
}

static void redraws_in_place(int columns) {
  file_write("noise.ini", noise_ini);
  train_on_terminal("--set data.samples=16000 --set data.valid.samples=8000 --set run.epochs=3", columns, 0,
                    0);
  screen s = show(terminal_output, columns, 0);
  if (s.bars < 10 || s.validations == 0 || s.with_valid == 0)
    fail_msg("%d bars, %d of validations, %d with its metrics: %s", s.bars, s.validations, s.with_valid,
             terminal_output);
  assert_int_equal(s.summaries, 3);
  the_result_fits(columns);
  assert_true(s.longest > columns * 6 / 10 || columns > 120); /* the width is used */
}

static void a_bar_fits_40_columns(void **state) {
  (void)state;
  redraws_in_place(40);
}
static void a_bar_fits_80_columns(void **state) {
  (void)state;
  redraws_in_place(80);
}
static void a_bar_fits_120_columns(void **state) {
  (void)state;
  redraws_in_place(120);
}
static void a_bar_fits_200_columns(void **state) {
  (void)state;
  redraws_in_place(200);
}

/* A window that gets narrower or wider while the run goes on. */
static void a_bar_follows_the_window(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  train_on_terminal("--set data.samples=100000 --set run.epochs=1", 120, 5, 60);
  const char *changed = strchr(terminal_output, '\001');
  assert_non_null(changed);
  const char *behind = strstr(changed, "\033[1A\033[J"); /* 120 columns were two rows of 60 */
  assert_non_null(behind);
  size_t longest = 0;
  for (const char *at = strchr(behind, '\r'); at && *at; at = strchr(at + 1, '\r')) {
    size_t n = strcspn(at + 1, "\r\n\033");
    if (n > longest) longest = n;
  }
  if (longest < 30 || longest > 59) fail_msg("a bar of %zu columns in a window of 60", longest);
}

static void without_a_terminal_there_is_no_bar(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set observer.progress.every=1ms"), 0);
  assert_null(strchr(program_err, '\r'));
  assert_null(strchr(program_err, '\033'));
  assert_non_null(strstr(program_err, "epoch 1/2"));
}

static void quiet_is_quiet(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet"), 0);
  assert_string_equal(program_err, "");
  assert_string_equal(program_out, "");
  program_json(0, "train noise.ini --quiet"); /* the result that was asked for */
  assert_string_equal(program_err, "");
  assert_non_null(strchr(program_out, '{'));
  train_on_terminal("--quiet", 80, 0, 0);
  assert_string_equal(terminal_output, "");
  assert_int_equal(program_run("train noise.ini --quiet --set optimizer.lr=1e30"), 76);
  assert_true(strncmp(program_err, "tenon: ", 7) == 0);
}

/* The first epoch is 1 on the screen and in files. */
static void epochs_count_from_one(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.observers=csv"), 0);
  const char *lines = file_read("runs/noise/metrics.jsonl", NULL);
  assert_true(strncmp(lines, "{\"event\": \"step\", \"epoch\": 1, ", 30) == 0);
  assert_non_null(strstr(lines, "{\"event\": \"epoch\", \"epoch\": 2, "));
  assert_null(strstr(lines, "\"epoch\": 0"));
  assert_null(strstr(lines, "\"epoch\": 3"));
  const char *csv = file_read("runs/noise/metrics.csv", NULL);
  assert_non_null(strstr(csv, "epoch,2,"));
  assert_null(strstr(csv, "step,0,"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_bar_fits_40_columns),    IN_FOLDER(a_bar_fits_80_columns),
      IN_FOLDER(a_bar_fits_120_columns),   IN_FOLDER(a_bar_fits_200_columns),
      IN_FOLDER(a_bar_follows_the_window), IN_FOLDER(without_a_terminal_there_is_no_bar),
      IN_FOLDER(quiet_is_quiet),           IN_FOLDER(epochs_count_from_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* [weights] map: a session whose parameters are the pages of a file: the same results, nothing is copied, the
 * file is never written, and a file that takes its place changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/session.h"

static const char settings[] = "[run]\nname = mapped\noutput =\n[model]\ninputs = tokens: i32[4]\nlayers =\n"
                               "    emb: embedding(50, 16)\n         mean(axis=1)\n    fc:  linear(7)\n";

enum { ROWS = 50, WIDTH = 16, OUTPUTS = 7, TABLE = ROWS * WIDTH };

static char folder[64];
static tn_context *context;

static int set_up(void **state) {
  (void)state;
  strcpy(folder, "/tmp/tenon-mapped-XXXXXX");
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  FILE *file = fopen("net.ini", "w");
  if (file == NULL || fputs(settings, file) < 0 || fclose(file) != 0) return -1;
  return tn_context_open(NULL, &context) == TN_OK ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  tn_context_close(context);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir("/") != 0 || system(command) != 0;
}

static tn_run *run;

static tn_session *open_session(const char *backend, const char *map, const char *weights) {
  char use[64], mapping[64];
  snprintf(use, sizeof use, "backend.use=%s", backend);
  snprintf(mapping, sizeof mapping, "weights.map=%s", map);
  const char *const set[] = {use, mapping};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 2};
  const tn_session_options wanted = {.struct_size = sizeof wanted, .infer = 1, .weights = weights};
  tn_session *session = NULL;
  assert_int_equal(tn_run_open(context, "net.ini", &options, &run), TN_OK);
  if (tn_session_open(run, &wanted, &session) != TN_OK) fail_msg("%s", tn_error_text(run));
  return session;
}

static void close_session(tn_session *session) {
  tn_session_close(session);
  tn_run_close(run);
}

static void save_weights(const char *path) {
  tn_session *session = open_session("cpu", "no", "");
  assert_int_equal(tn_session_save(session, path), TN_OK);
  close_session(session);
}

static int is_mapped(const char *name) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps) != NULL) found = found || strstr(line, name) != NULL;
  fclose(maps);
  return found;
}

static void infer(tn_session *session, float *out) {
  int32_t tokens[4] = {3, 49, 0, 17};
  assert_int_equal(tn_session_bind(session, "tokens", tokens, sizeof tokens), TN_OK);
  assert_int_equal(tn_session_bind(session, "output", out, OUTPUTS * sizeof *out), TN_OK);
  if (tn_session_infer(session, 1) != TN_OK) fail_msg("%s", tn_error_text(session));
}

static void results_are_those_of_copied_weights(void **state) {
  (void)state;
  float copied[OUTPUTS], mapped[OUTPUTS];
  static const char *const backends[] = {"cpu", "onednn,cpu", "sim"};
  save_weights("weights.safetensors");
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
    tn_session *session = open_session(backends[i], "no", "weights.safetensors");
    infer(session, copied);
    assert_false(is_mapped("weights.safetensors"));
    close_session(session);
    session = open_session(backends[i], "yes", "weights.safetensors");
    infer(session, mapped);
    /* memory of its own, as sim has it, gets copies */
    assert_true(is_mapped("weights.safetensors") == (i < 2));
    close_session(session);
    assert_false(is_mapped("weights.safetensors"));
    assert_memory_equal(copied, mapped, sizeof copied);
  }
}

static void a_small_file_is_read_unless_it_is_asked_for(void **state) {
  (void)state;
  save_weights("weights.safetensors");
  tn_session *session = open_session("cpu", "auto", "weights.safetensors");
  assert_false(is_mapped("weights.safetensors"));
  close_session(session);
}

static size_t read_file(const char *path, char **bytes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  *bytes = malloc(1 << 20);
  assert_non_null(*bytes);
  size_t n = fread(*bytes, 1, 1 << 20, file);
  fclose(file);
  return n;
}

static void weights_that_are_written_stay_in_the_process(void **state) {
  (void)state;
  float table[TABLE], now[TABLE];
  char *before, *after;
  save_weights("weights.safetensors");
  size_t n = read_file("weights.safetensors", &before);
  tn_session *session = open_session("cpu", "yes", "weights.safetensors");
  for (int i = 0; i < TABLE; i++) table[i] = (float)i;
  assert_int_equal(tn_session_write(session, "emb.weight", table, sizeof table), TN_OK);
  assert_int_equal(tn_session_read(session, "emb.weight", now, sizeof now), TN_OK);
  assert_memory_equal(table, now, sizeof table);
  assert_int_equal(read_file("weights.safetensors", &after), n);
  assert_memory_equal(before, after, n);
  assert_int_equal(tn_session_load(session, "weights.safetensors"), TN_OK); /* the values of the file again */
  assert_int_equal(tn_session_read(session, "emb.weight", now, sizeof now), TN_OK);
  assert_memory_not_equal(table, now, sizeof table);
  close_session(session);
  free(before);
  free(after);
}

/* As every program that writes by a rename does. */
static void a_file_in_its_place_changes_nothing(void **state) {
  (void)state;
  float before[OUTPUTS], after[OUTPUTS], zeros[TABLE] = {0};
  save_weights("weights.safetensors");
  tn_session *session = open_session("cpu", "no", "weights.safetensors");
  assert_int_equal(tn_session_write(session, "emb.weight", zeros, sizeof zeros), TN_OK);
  assert_int_equal(tn_session_save(session, "other.safetensors"), TN_OK);
  close_session(session);
  session = open_session("cpu", "yes", "weights.safetensors");
  infer(session, before);
  assert_int_equal(rename("other.safetensors", "weights.safetensors"), 0);
  infer(session, after);
  assert_memory_equal(before, after, sizeof before);
  assert_int_equal(tn_session_load(session, "weights.safetensors"), TN_OK);
  infer(session, after);
  assert_memory_not_equal(before, after, sizeof before);
  close_session(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_are_those_of_copied_weights),
      cmocka_unit_test(a_small_file_is_read_unless_it_is_asked_for),
      cmocka_unit_test(weights_that_are_written_stay_in_the_process),
      cmocka_unit_test(a_file_in_its_place_changes_nothing),
  };
  return cmocka_run_group_tests_name("mapped weights", tests, set_up, tear_down);
}

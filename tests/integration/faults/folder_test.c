/* Run folders that several processes want, that a killed run has left, and that hold symbolic links. */
#include "configs.h"
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVES ENDLESS " --set run.save_every=5"

/* The steps in metrics.jsonl are 1, 2, 3 ...; returns the last. */
static int steps_in_order(const char *path) {
  char *rest = file_read(path, NULL);
  int steps = 0;
  for (char *line; (line = strsep(&rest, "\n"));) {
    const char *step = strstr(line, "\"event\": \"step\"") ? strstr(line, "\"step\": ") : NULL;
    if (step == NULL) continue;
    assert_int_equal(atoi(step + 8), steps + 1);
    steps++;
  }
  return steps;
}

static void is_refused_for(pid_t holder, const char *resume) {
  char process[64];
  snprintf(process, sizeof process, "runs/noise: is in use by process %ld on ", (long)holder);
  assert_int_equal(program_run("train noise.ini --resume %s", resume), 69);
  if (strstr(program_err, process) == NULL) fail_msg("%s: %s", process, program_err);
  assert_non_null(strstr(program_err, ", since 2"));
}

/* ---- several processes ---- */

static void a_second_process_is_told_who_uses_the_folder(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " SAVES);
  program_await_lines("runs/noise/metrics.jsonl", 20);
  pid_t first = program_swap(0);
  is_refused_for(first, "auto");
  is_refused_for(first, "runs/noise");
  /* readers need no lock, and a new run has a folder of its own */
  assert_int_equal(program_run("eval noise.ini --weights runs/noise/checkpoints/last/model.safetensors"), 0);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=2"), 0);
  assert_true(file_exists("runs/noise-2"));
  program_swap(first);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  int steps = steps_in_order("runs/noise/metrics.jsonl");
  assert_true(steps >= 20);
  assert_int_equal(program_number(file_json("runs/noise/checkpoints/last/state.json"), "step"), steps);
  assert_int_equal(
      program_run("train noise.ini --resume runs/noise --set run.epochs=100000000000 --set run.max_steps=%d",
                  steps + 3),
      0);
  assert_int_equal(steps_in_order("runs/noise/metrics.jsonl"), steps + 3);
}

static void the_lock_of_a_killed_process_is_gone(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " SAVES);
  program_await_lines("runs/noise/metrics.jsonl", 20);
  program_kill();
  int recorded = file_lines("runs/noise/metrics.jsonl");
  assert_int_equal(program_run("train noise.ini --resume auto --set run.max_steps=%d", recorded + 5), 0);
  assert_false(file_exists("runs/noise-2"));
}

/* Whichever process is first trains; the other is refused, or finds the run complete. */
static void of_two_at_once_one_trains(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  for (int i = 1; i <= 8; i++) {
    program_start("train noise.ini --quiet --resume auto --set run.epochs=100 --set run.max_steps=%d",
                  40 * i);
    pid_t first = program_swap(0);
    int second = program_run(
        "train noise.ini --quiet --resume auto --set run.epochs=100 --set run.max_steps=%d", 40 * i);
    program_swap(first);
    int one = program_finish();
    if ((one != 0 && one != 69) || (second != 0 && second != 69) || one + second > 69)
      fail_msg("exit codes %d and %d", one, second);
    assert_int_equal(steps_in_order("runs/noise/metrics.jsonl"), 40 * i);
    assert_int_equal(program_number(file_json("runs/noise/checkpoints/last/state.json"), "step"), 40 * i);
  }
  assert_false(file_exists("runs/noise-2"));
}

/* The program with a shim that refuses some calls (shim.c). */
static int run_refusing(const char *what, const char *line) {
  char options[256];
  const char *given = getenv("ASAN_OPTIONS");
  snprintf(options, sizeof options, "%s%sverify_asan_link_order=0", given ? given : "", given ? ":" : "");
  setenv("ASAN_OPTIONS", options, 1);
  setenv("LD_PRELOAD", SHIM, 1);
  setenv(what, "1", 1);
  int code = program_run("%s", line);
  unsetenv("LD_PRELOAD");
  unsetenv(what);
  return code;
}

static void a_file_system_without_locks_gives_a_warning(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(run_refusing("TENON_NO_LOCKS", "train noise.ini"), 0);
  assert_non_null(strstr(program_err, "runs/noise: its file system has no locks (No locks available)"));
}

/* state.json of a folder that a training exchanges is there when looked for, and gone when opened. */
static void a_checkpoint_that_vanishes_before_it_is_read_was_not_completed(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  assert_int_equal(program_run("checkpoint verify runs/noise"), 0);
  const char *record = "runs/noise/checkpoints/last.new/state.json";
  for (int i = 0; i < 2; i++) {
    size_t n;
    char *bytes = file_read("runs/noise/checkpoints/last/state.json", &n);
    mkdir("runs/noise/checkpoints/last.new", 0777);
    file_write_bytes(record, bytes, n);
    assert_int_equal(
        run_refusing("TENON_LATE_READER", i ? "checkpoint ls runs/noise" : "checkpoint verify runs/noise"),
        0);
    assert_false(file_exists(record));
    assert_non_null(strstr(program_out, "holds no state.json"));
  }
}

static void a_lock_that_cannot_be_taken_ends_the_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  assert_int_equal(unlink("runs/noise/.lock"), 0);
  assert_int_equal(mkdir("runs/noise/.lock", 0777), 0);
  assert_int_equal(program_run("train noise.ini --resume auto"), 65);
  assert_non_null(
      strstr(program_err, "the run folder cannot be locked: runs/noise/.lock: is not a regular file"));
}

/* ---- a run that ended before its first checkpoint ---- */

static void kill_before_the_first_checkpoint(void) {
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini --quiet --set data.samples=8000000 --set data.cache=0");
  program_await_lines("runs/noise/metrics.jsonl", 30);
  program_kill();
  assert_false(file_exists("runs/noise/checkpoints"));
}

static void its_folder_is_used_anew(void **state) {
  (void)state;
  kill_before_the_first_checkpoint();
  file_write("runs/noise/notes.txt", "mine");
  const json_t *r = program_json(0, "train noise.ini --resume auto");
  assert_string_equal(program_text(r, "run"), "runs/noise");
  assert_non_null(strstr(program_err, "runs/noise: ended before its first checkpoint"));
  assert_int_equal(program_number(r, "steps"), 20);
  assert_int_equal(steps_in_order("runs/noise/metrics.jsonl"), 20);
  assert_int_equal(file_lines("runs/noise/metrics.csv"), 20 * 3 + 2 * 6 + 1);
  assert_string_equal(file_read("runs/noise/notes.txt", NULL), "mine");
  assert_false(file_exists("runs/noise-2"));
}

/* `auto` is the newest run, with or without a checkpoint. */
static void it_is_preferred_to_an_older_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output older"), 0);
  kill_before_the_first_checkpoint();
  assert_int_equal(rename("runs/noise", "older/noise-2"), 0);
  const json_t *r = program_json(0, "train noise.ini --output older --resume auto");
  assert_string_equal(program_text(r, "run"), "older/noise-2");
  r = program_json(0, "train noise.ini --output older --resume older/noise");
  assert_string_equal(program_text(r, "run"), "older/noise");
}

static void an_empty_folder_is_used_and_a_strange_one_is_not(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(mkdir("runs", 0777), 0);
  assert_int_equal(mkdir("runs/noise", 0777), 0);
  assert_string_equal(program_text(program_json(0, "train noise.ini --resume auto"), "run"), "runs/noise");
  assert_int_equal(mkdir("runs/other", 0777), 0);
  file_write("runs/other/mine.txt", "mine");
  assert_string_equal(
      program_text(program_json(0, "train noise.ini --resume auto --set run.name=other"), "run"),
      "runs/other-2");
}

/* ---- a place that takes no checkpoint ---- */

/* Told before the first step, of which there is no record. */
static void is_told_at_the_start(int code, const char *text) {
  if (code != 74 && code != 65) fail_msg("exit code %d: %s", code, program_err);
  if (strstr(program_err, "a checkpoint of this run cannot be written: ") == NULL ||
      strstr(program_err, text) == NULL)
    fail_msg("no '%s' in: %s", text, program_err);
  assert_int_equal(system("test -z \"$(find . -name metrics.jsonl)\""), 0);
}

/* The files of the run have room in the path, those of a checkpoint do not. */
static void a_path_too_long_for_checkpoints_is_told_at_the_start(void **state) {
  (void)state;
  static char output[4096], part[200];
  file_write("noise.ini", noise_ini);
  memset(part, 'd', 149);
  while (strlen(output) < 4040 - 150) strcat(strcat(output, part), "/");
  part[4040 - strlen(output)] = '\0';
  strcat(output, part);
  int code = program_run("train noise.ini --output %s", output);
  is_told_at_the_start(code, "File name too long; a path has 4095 bytes at most");
  assert_int_equal(system("rm -rf ddd*"), 0);
}

static void a_file_in_the_way_is_told_at_the_start(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(mkdir("runs", 0777), 0);
  assert_int_equal(mkdir("runs/noise", 0777), 0);
  file_write("runs/noise/config.ini", noise_ini);
  file_write("runs/noise/checkpoints", "in the way");
  is_told_at_the_start(program_run("train noise.ini --resume auto"), "runs/noise/checkpoints");
}

static void a_lack_of_room_is_told_at_the_start(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  int code = run_refusing("TENON_NO_ROOM", "train noise.ini");
  is_told_at_the_start(code, " bytes, but 100 are free there; make room, or name another folder");
  assert_false(file_exists("runs/noise/checkpoints"));
}

/* ---- config.ini ---- */

static void the_configuration_is_that_of_the_last_process(void **state) {
  (void)state;
  static const char *const files[] = {"config-1.ini", "config-2.ini", "config.ini"};
  file_write("noise.ini", noise_ini);
  for (int i = 0; i < 3; i++)
    assert_int_equal(program_run("train noise.ini --set optimizer.lr=0.0%d --set run.max_steps=%d%s", i + 1,
                                 5 * i + 5, i ? " --resume auto" : ""),
                     0);
  for (int i = 0; i < 3; i++) {
    char path[64], lr[32], steps[32];
    snprintf(path, sizeof path, "runs/noise/%s", files[i]);
    snprintf(lr, sizeof lr, "lr = 0.0%d\n", i + 1);
    snprintf(steps, sizeof steps, "max_steps = %d\n", 5 * i + 5);
    const char *text = file_read(path, NULL);
    if (strstr(text, lr) == NULL || strstr(text, steps) == NULL) fail_msg("%s: %s", path, text);
  }
  assert_int_equal(
      program_run("train noise.ini --set optimizer.lr=0.03 --set run.max_steps=15 --resume auto"), 0);
  assert_false(file_exists("runs/noise/config-3.ini"));
}

/* ---- symbolic links ---- */

/* A run that was interrupted after 8 steps, and another complete one, whose files must stay. */
static void make_two_runs(void) {
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output base"), 0);
  assert_int_equal(program_run("train noise.ini --output copy"), 0);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=8"), 0);
}

static void base_is_as_before(void) {
  static const char *const files[] = {"config.ini",
                                      "metrics.jsonl",
                                      "metrics.csv",
                                      "plan.json",
                                      "checkpoints/last/model.safetensors",
                                      "checkpoints/last/optimizer.safetensors",
                                      "checkpoints/last/state.json",
                                      "checkpoints/best/state.json"};
  struct stat info;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char path[128];
    snprintf(path, sizeof path, "base/noise/%s", files[i]);
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) fail_msg("%s is gone", path);
  }
  files_equal("base/noise/checkpoints/last/model.safetensors",
              "copy/noise/checkpoints/last/model.safetensors");
  assert_int_equal(steps_in_order("base/noise/metrics.jsonl"), 20);
  assert_int_equal(file_lines("base/noise/metrics.csv"), file_lines("copy/noise/metrics.csv"));
  assert_int_equal(program_number(file_json("base/noise/checkpoints/last/state.json"), "step"), 20);
}

static int is_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

/* Replaces NAME of the interrupted run by a link to `target`. */
static void link_to(const char *name, const char *target) {
  char path[128], aside[160], full[4096], folder[2048];
  snprintf(path, sizeof path, "runs/noise/%s", name);
  snprintf(aside, sizeof aside, "%s.aside", path);
  if (rename(path, aside) != 0) assert_int_equal(errno, ENOENT);
  assert_non_null(getcwd(folder, sizeof folder));
  snprintf(full, sizeof full, "%s/base/noise/%s", folder, target);
  assert_int_equal(symlink(full, path), 0);
}

/* The review's case: `last` leads to a checkpoint of another run. It is loaded, and then replaced. */
static void a_link_called_last_is_replaced_itself(void **state) {
  (void)state;
  make_two_runs();
  link_to("checkpoints/last", "checkpoints/last");
  const json_t *r = program_json(0, "train noise.ini --resume auto --set run.epochs=3");
  assert_int_equal(program_number(r, "steps"), 30);
  assert_false(is_link("runs/noise/checkpoints/last"));
  assert_int_equal(program_number(file_json("runs/noise/checkpoints/last/state.json"), "step"), 30);
  base_is_as_before();
}

static void links_with_temporary_names_are_removed_themselves(void **state) {
  (void)state;
  static const char *const names[] = {"last.new", "last.old", "best", "best.new", "best.old"};
  make_two_runs();
  for (int i = 0; i < 5; i++) {
    char name[64];
    snprintf(name, sizeof name, "checkpoints/%s", names[i]);
    link_to(name, "checkpoints/best");
  }
  assert_int_equal(program_run("train noise.ini --resume auto --set run.epochs=4"), 0);
  assert_false(is_link("runs/noise/checkpoints/last"));
  assert_false(is_link("runs/noise/checkpoints/best"));
  base_is_as_before();
}

/* Without exchanges of names (renameat2) the old checkpoint passes through NAME.old. */
static void links_are_removed_without_exchange_as_well(void **state) {
  (void)state;
  make_two_runs();
  link_to("checkpoints/last", "checkpoints/last");
  link_to("checkpoints/last.old", "checkpoints/last");
  assert_int_equal(run_refusing("TENON_NO_EXCHANGE", "train noise.ini --resume auto --set run.epochs=3"), 0);
  base_is_as_before();
}

static void a_link_to_nothing_is_replaced_itself(void **state) {
  (void)state;
  make_two_runs();
  assert_int_equal(symlink("/nowhere", "runs/noise/checkpoints/last.new"), 0);
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  assert_false(is_link("runs/noise/checkpoints/last.new"));
}

/* Saving would replace the other run's checkpoints. */
static void a_linked_folder_of_checkpoints_is_refused(void **state) {
  (void)state;
  make_two_runs();
  link_to("checkpoints", "checkpoints");
  assert_int_equal(program_run("train noise.ini --resume auto --set run.epochs=3"), 65);
  assert_non_null(strstr(program_err, "runs/noise/checkpoints: is a symbolic link"));
  base_is_as_before();
}

/* The metric files are cut on resuming. */
static void linked_files_of_the_run_are_not_written_through(void **state) {
  (void)state;
  static const char *const refused[] = {"metrics.jsonl", "metrics.csv", ".lock"}, *const replaced[] = {
                                                                                      "config.ini",
                                                                                      "plan.json"};
  for (int i = 0; i < 3; i++) {
    if (!file_exists("base")) make_two_runs();
    link_to(refused[i], refused[i]);
    assert_int_equal(program_run("train noise.ini --resume auto --set run.max_steps=9"), 65);
    assert_non_null(strstr(program_err, refused[i]));
    base_is_as_before();
    char path[64], aside[80];
    snprintf(path, sizeof path, "runs/noise/%s", refused[i]);
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(aside, path), 0);
  }
  for (int i = 0; i < 2; i++) link_to(replaced[i], replaced[i]);
  assert_int_equal(program_run("train noise.ini --resume auto --set optimizer.lr=0.01"), 0);
  assert_false(is_link("runs/noise/config.ini"));
  base_is_as_before();
  files_equal("base/noise/config.ini", "copy/noise/config.ini");
}

/* A whole run folder may lie elsewhere. */
static void a_run_folder_may_be_a_link(void **state) {
  (void)state;
  make_two_runs();
  assert_int_equal(rename("runs/noise", "elsewhere"), 0);
  assert_int_equal(symlink("../elsewhere", "runs/noise"), 0);
  const json_t *r = program_json(0, "train noise.ini --resume auto");
  assert_int_equal(program_number(r, "steps"), 20);
  assert_int_equal(steps_in_order("elsewhere/metrics.jsonl"), 20);
}

#define test(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
int main(void) {
  const struct CMUnitTest tests[] = {
      test(a_second_process_is_told_who_uses_the_folder),
      test(the_lock_of_a_killed_process_is_gone),
      test(of_two_at_once_one_trains),
      test(a_file_system_without_locks_gives_a_warning),
      test(a_checkpoint_that_vanishes_before_it_is_read_was_not_completed),
      test(a_lock_that_cannot_be_taken_ends_the_run),
      test(its_folder_is_used_anew),
      test(it_is_preferred_to_an_older_run),
      test(an_empty_folder_is_used_and_a_strange_one_is_not),
      test(a_path_too_long_for_checkpoints_is_told_at_the_start),
      test(a_file_in_the_way_is_told_at_the_start),
      test(a_lack_of_room_is_told_at_the_start),
      test(the_configuration_is_that_of_the_last_process),
      test(a_link_called_last_is_replaced_itself),
      test(links_with_temporary_names_are_removed_themselves),
      test(links_are_removed_without_exchange_as_well),
      test(a_link_to_nothing_is_replaced_itself),
      test(a_linked_folder_of_checkpoints_is_refused),
      test(linked_files_of_the_run_are_not_written_through),
      test(a_run_folder_may_be_a_link),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

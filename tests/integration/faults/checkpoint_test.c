/* Damaged checkpoints: resuming finds the newest valid one, and reports and keeps damaged ones. */
#include "configs.h"
#include "program.h"

#include <stdlib.h>
#include <unistd.h>

#define HOME "runs/noise/checkpoints/"

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected \"%s\" in: %s", text, program_err);
}

static int step_of(const char *name) {
  char path[128];
  snprintf(path, sizeof path, HOME "%s/state.json", name);
  return (int)program_number(file_json(path), "step");
}

static void move(const char *from, const char *to) {
  char a[128], b[128];
  snprintf(a, sizeof a, HOME "%s", from);
  snprintf(b, sizeof b, HOME "%s", to);
  assert_int_equal(rename(a, b), 0);
}

static void copy(const char *from, const char *to) {
  char command[256];
  snprintf(command, sizeof command, "cp -r " HOME "%s " HOME "%s", from, to);
  assert_int_equal(system(command), 0);
}

static void flip_bit(const char *path, long at) {
  size_t n;
  char *bytes = file_read(path, &n);
  bytes[at < 0 ? (long)n + at : at] ^= 4;
  file_write_bytes(path, bytes, n);
}

static void cut(const char *path) {
  size_t n;
  char *bytes = file_read(path, &n);
  file_write_bytes(path, bytes, n - 9);
}

static void same_end(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "whole/noise/checkpoints/%s/model.safetensors", name);
  files_equal("runs/noise/checkpoints/last/model.safetensors", path);
  files_equal("runs/noise/checkpoints/last/optimizer.safetensors",
              "whole/noise/checkpoints/last/optimizer.safetensors");
}

/* A complete run for comparison, and one in runs/noise with `best` of step 10 and `last` of step 13. */
static void train_some(void) {
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output whole"), 0);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=10"), 0);
  assert_int_equal(step_of("best"), 10);
  assert_int_equal(
      program_run("train noise.ini --set run.max_steps=13 --set data.valid.epoch=8 --set run.best=loss "
                  "--resume auto"),
      0);
  if (step_of("best") != 10) copy("best", "older");
  assert_int_equal(step_of("last"), 13);
}

/* Damage to `last`, and the expected message. */
typedef struct damage {
  const char *file;
  int how; /* 'c'ut, 'f'lip the last byte's bit, 'm'iddle, 'r'emove */
  const char *says;
} damage;

static void apply(const damage *d) {
  char path[128];
  snprintf(path, sizeof path, HOME "last/%s", d->file);
  if (d->how == 'c') cut(path);
  if (d->how == 'f') flip_bit(path, -1);
  if (d->how == 'm') flip_bit(path, 20);
  if (d->how == 'r') assert_int_equal(unlink(path), 0);
}

static void a_damaged_checkpoint_is_reported_and_the_older_one_loaded(void **state) {
  (void)state;
  static const damage damages[] = {
      {"model.safetensors", 'c', "bytes, "},
      {"model.safetensors", 'f', "is not as it was written"},
      {"model.safetensors", 'm', "is not as it was written"},
      {"model.safetensors", 'r', "is missing"},
      {"optimizer.safetensors", 'c', "bytes, "},
      {"optimizer.safetensors", 'f', "is not as it was written"},
      {"optimizer.safetensors", 'r', "is missing"},
      {"state.json", 'c', "state.json:"},
      {"state.json", 'm', "state.json"},
      {"state.json", 'r', "holds no state.json"},
  };
  train_some();
  copy("last", "good");
  copy("best", "kept_best");
  int best = step_of("best");
  char kept[64], text[64];
  for (int i = 0; i < (int)(sizeof damages / sizeof *damages); i++) {
    assert_int_equal(system("rm -rf " HOME "last " HOME "best"), 0);
    copy("good", "last");
    copy("kept_best", "best");
    apply(&damages[i]);
    assert_int_equal(program_run("train noise.ini --resume auto --set run.max_steps=%d", best + 1), 0);
    says(damages[i].file);
    says(damages[i].says);
    snprintf(text, sizeof text, "best, which is of step %d", best);
    says(text);
    if (i > 0)
      snprintf(kept, sizeof kept, HOME "last.bad-%d", i + 1);
    else
      snprintf(kept, sizeof kept, HOME "last.bad");
    assert_true(file_exists(kept));
    assert_int_equal(step_of("last"), best + 1);
  }
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  same_end("last");
}

static void an_interrupted_exchange_is_completed(void **state) {
  (void)state;
  train_some();
  copy("last", "good");
  /* written, not yet published */
  move("last", "last.new");
  copy("best", "last");
  assert_int_equal(program_run("train noise.ini --resume auto --set run.max_steps=14"), 0);
  says("last.new, which is of step 13");
  assert_int_equal(step_of("last"), 14);
  assert_false(file_exists(HOME "last.new"));
  /* between two renames, where folders cannot be exchanged */
  move("last", "last.old");
  assert_int_equal(program_run("train noise.ini --resume auto --set run.max_steps=15"), 0);
  says("last.old, which is of step 14");
  assert_false(file_exists(HOME "last.old"));
  /* killed while writing: without state.json, and without a warning */
  copy("last", "last.new");
  assert_int_equal(unlink(HOME "last.new/state.json"), 0);
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  assert_null(strstr(program_err, "last.new"));
  assert_false(file_exists(HOME "last.new"));
  same_end("last");
}

static void another_models_checkpoint_is_left_alone(void **state) {
  (void)state;
  train_some();
  copy("last", "good");
  assert_int_equal(program_run("train noise.ini --set data.classes=3 --output other --set run.max_steps=15 "
                               "--set run.observers=-jsonl"),
                   0);
  file_write("other.ini", noise_ini);
  assert_int_equal(program_run("train other.ini --resume auto --set model.layers=flatten,relu"), 2 * 0 + 65);
  assert_int_equal(step_of("last"), 13);
  assert_false(file_exists(HOME "last.bad"));
}

static void files_of_the_user_are_never_deleted(void **state) {
  (void)state;
  train_some();
  file_write(HOME "last/notes.txt", "the good one");
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  says("are kept in");
  assert_true(file_exists(HOME "last.new.kept/notes.txt"));
  assert_false(file_exists(HOME "last/notes.txt"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_reported_and_the_older_one_loaded, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(an_interrupted_exchange_is_completed, program_open, program_close),
      cmocka_unit_test_setup_teardown(another_models_checkpoint_is_left_alone, program_open, program_close),
      cmocka_unit_test_setup_teardown(files_of_the_user_are_never_deleted, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Failures while the program runs: exit codes, messages, and the files that remain. */
#include "configs.h"
#include "npy_files.h"
#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

static void a_loss_that_is_not_finite_ends_the_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(76, "train noise.ini --set optimizer.lr=1e30");
  assert_string_equal(program_text(r, "status"), "non-finite");
  assert_true(json_is_null(program_member(r, "train.loss")));
  says("no checkpoint had been written");
  assert_false(file_exists("runs/noise/checkpoints/last"));
}

static void the_last_good_checkpoint_is_kept(void **state) {
  (void)state;
  size_t n, m;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.epochs=1"), 0);
  const char *before = file_read("runs/noise/checkpoints/last/model.safetensors", &n);
  const json_t *r = program_json(76, "train noise.ini --resume auto --set optimizer.lr=1e30");
  assert_true(program_number(r, "steps") > 10);
  says("runs/noise/checkpoints/last is the last good one");
  const char *after = file_read("runs/noise/checkpoints/last/model.safetensors", &m);
  assert_int_equal(n, m);
  assert_memory_equal(before, after, n);
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
}

/* One step an epoch. The loss is finite before the step that makes the parameters infinite. */
static void a_validation_loss_that_is_not_finite_ends_the_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(76, "train noise.ini --set data.batch=80 --set optimizer.lr=1e30");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(json_is_number(program_member(r, "train.loss")));
  assert_true(json_is_null(program_member(r, "valid.loss")));
  assert_false(file_exists("runs/noise/checkpoints/last"));
}

static void an_output_that_cannot_be_written_is_an_io_error(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  file_write("runs", "a file, not a folder");
  assert_int_equal(program_run("train noise.ini"), 74);
  says("runs");
  assert_int_equal(program_run("train noise.ini --output /proc/nowhere"), 74);
  says("/proc/nowhere");
}

/* The disk is full in the second run: the checkpoint of the first one stays complete. */
static void a_checkpoint_that_cannot_be_written_leaves_the_old_one(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.epochs=1 --set run.observers=-jsonl,-csv"), 0);
  size_t n, m;
  const char *before = file_read("runs/noise/checkpoints/last/model.safetensors", &n);
  program_limit_files(n - 1);
  assert_int_equal(program_run("train noise.ini --resume auto --set run.observers=-jsonl,-csv"), 74);
  says("checkpoint");
  says("File too large");
  program_limit_files(0);
  const char *after = file_read("runs/noise/checkpoints/last/model.safetensors", &m);
  assert_int_equal(n, m);
  assert_memory_equal(before, after, n);
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
  assert_false(file_exists("runs/noise/checkpoints/last.new"));
}

static void write_states(const char *text) {
  file_write("runs/noise/checkpoints/last/state.json", text);
  file_write("runs/noise/checkpoints/best/state.json", text);
}

/* Resuming beside an undamaged checkpoint is tested in tests/integration/faults. */
static void damaged_checkpoints_are_refused(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  write_states("{\"step\": 3");
  assert_int_equal(program_run("train noise.ini --resume auto"), 65);
  says("last/state.json");
  says("holds no other checkpoint");
  write_states("{\"format\": 9, \"step\": 3, \"epoch\": 0, \"batch\": 3}");
  assert_int_equal(program_run("train noise.ini --resume auto"), 65);
  says("another version");
  write_states("{\"format\": 2, \"step\": 3, \"epoch\": 0, \"batch\": 300, \"seed\": 0}");
  assert_int_equal(program_run("train noise.ini --resume auto"), 65);
  says("missing or of a wrong kind");
  assert_true(file_exists("runs/noise/checkpoints/last/model.safetensors"));
  assert_true(file_exists("runs/noise/checkpoints/best/model.safetensors"));
}

static void flip_a_bit(const char *path) {
  size_t n;
  uint64_t header;
  char *bytes = file_read(path, &n);
  memcpy(&header, bytes, sizeof header);
  bytes[8 + header + 43] ^= 0x40;
  file_write_bytes(path, bytes, n);
}

#define BEST "runs/noise/checkpoints/best/model.safetensors"
#define LAST "runs/noise/checkpoints/last/model.safetensors"

/* Every command that reads weights: of a run it takes the other checkpoint, a file by itself is refused. */
static void weights_that_are_not_as_they_were_written_are_not_used(void **state) {
  (void)state;
  static const char *const commands[] = {
      "eval noise.ini --weights %s",
      "eval noise.ini --classes --weights %s",
      "predict noise.ini --input x.npy --output y.npy --weights %s",
      "train noise.ini --output other --set run.max_steps=1 --weights %s",
      "checkpoint convert %s out.safetensors",
      "checkpoint diff %s kept.safetensors",
  };
  const float x[36] = {0};
  size_t n;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  write_npy("x.npy", 1, "1, 6, 6", x, 36);
  const char *kept = file_read(LAST, &n);
  file_write_bytes("kept.safetensors", kept, n);
  flip_a_bit(BEST);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    int code = program_run(commands[i], "runs/noise"); /* diff: 1 where there are differences */
    if (code != 0) fail_msg("%s: %d: %s", commands[i], code, program_err);
    says(BEST ": is not as it was written: its checksum is");
    says("; the weights are those of ");
    assert_int_equal(program_run(commands[i], BEST), 65);
    says("is not as it was written");
  }
  flip_a_bit(LAST);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    assert_int_equal(program_run(commands[i], "runs/noise"), 65);
}

/* The checkpoint's record is there, its weights are not. */
static void weights_that_a_checkpoint_has_lost_are_missed(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  assert_int_equal(unlink(BEST), 0);
  assert_int_equal(program_run("eval runs/noise"), 0);
  says(BEST ": is missing; the weights are those of ");
  assert_int_equal(rename("runs/noise/checkpoints/best", "best"), 0);
  assert_int_equal(mkdir("runs/noise/checkpoints/best", 0777), 0);
  assert_int_equal(program_run("eval runs/noise"), 0);
  says(BEST ": is missing; the weights are those of ");
  assert_int_equal(rmdir("runs/noise/checkpoints/best"), 0);
  file_write("runs/noise/checkpoints/best", "a file");
  assert_int_equal(program_run("eval runs/noise"), 0);
  says("runs/noise/checkpoints/best: is not a folder; the weights are those of ");
  assert_int_equal(program_run("checkpoint show runs/noise"), 0);
  says("runs/noise/checkpoints/best: is not a folder; the weights are those of ");
  assert_int_equal(unlink(LAST), 0);
  assert_int_equal(program_run("eval runs/noise"), 65);
  says("runs/noise/checkpoints/best: is not a folder");
}

static void weights_must_fit_the_model(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  const char *weights = "runs/noise/checkpoints/last/model.safetensors";
  assert_int_equal(program_run("eval noise.ini --weights %s --set model.metrics=", weights), 0);
  file_write("other.ini", noise_ini);
  assert_int_equal(program_run("eval other.ini --weights %s --set data.classes=3", weights), 0);
  assert_int_equal(program_run("eval other.ini --weights %s --set weights.prefix=net.", weights), 65);
  says("net.fc");
  assert_int_equal(
      program_run("eval other.ini --weights %s --set weights.prefix=net. --set weights.skip=*", weights), 0);
  assert_int_equal(program_run("eval noise.ini --weights nothing.safetensors"), 74);
  says("--weights");
}

static void a_missing_device_is_unavailable(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set backend.use=none-such"), 69);
  assert_int_equal(program_run("train noise.ini --set backend.use=none-such,cpu --set run.max_steps=1"), 0);
  says("trying 'cpu'");
  assert_int_equal(program_run("train noise.ini --plugin ./no-such.so"), 69);
  says("no-such.so");
}

/* A result that cannot be written to stdout is a failure. */
static void a_result_that_cannot_be_written_is_an_io_error(void **state) {
  (void)state;
  if (!file_exists("/dev/full")) skip();
  file_write("noise.ini", noise_ini);
  program_stdout("/dev/full");
  assert_int_equal(program_run("plan noise.ini --json"), 74);
  program_stdout(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_loss_that_is_not_finite_ends_the_run, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_last_good_checkpoint_is_kept, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_validation_loss_that_is_not_finite_ends_the_run, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(an_output_that_cannot_be_written_is_an_io_error, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(a_checkpoint_that_cannot_be_written_leaves_the_old_one, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(damaged_checkpoints_are_refused, program_open, program_close),
      cmocka_unit_test_setup_teardown(weights_that_are_not_as_they_were_written_are_not_used, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(weights_that_a_checkpoint_has_lost_are_missed, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(weights_must_fit_the_model, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_missing_device_is_unavailable, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_result_that_cannot_be_written_is_an_io_error, program_open,
                                      program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A resumed run with other settings than before: it compiles for them, names the differences, and refuses
 * settings with which it cannot go on. */
#include "configs.h"
#include "program.h"

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

static void remarks(const json_t *result, const char *text) {
  const json_t *list = program_member(result, "remarks");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) return;
  fail_msg("no remark '%s', it said: %s", text, program_err);
}

static int count_remarks(const json_t *result) {
  return (int)json_array_size(program_member(result, "remarks"));
}

/* The kernels and plugins of all launches of a run's plan.json, one after the other. */
static void list_kernels(const char *path, char *text, size_t n) {
  const json_t *programs = program_member(file_json(path), "programs"), *program, *launch;
  size_t i, k, at = 0;
  *text = '\0';
  json_array_foreach(programs, i, program) {
    json_array_foreach(json_object_get(program, "launches"), k, launch) {
      at += (size_t)snprintf(text + at, at < n ? n - at : 0, "%s of %s\n", program_text(launch, "kernel"),
                             program_text(launch, "plugin"));
      assert_true(at < n);
    }
  }
}

static void another_backend_gets_its_own_kernels(void **state) {
  (void)state;
  static char resumed[1 << 16], fresh[1 << 16];
  file_write("digits.ini", digits_ini);
  if (program_run("train digits.ini --output fresh --set backend.use=onednn --set run.max_steps=5") != 0)
    skip();
  assert_int_equal(program_run("train digits.ini --output r --set backend.use=cpu --set run.max_steps=5"), 0);
  const json_t *r = program_json(0, "train digits.ini --output r --resume auto --set backend.use=onednn");
  assert_string_equal(program_text(r, "backend"), "onednn");
  remarks(r, "backend cpu -> onednn");
  remarks(r, "[backend] use = cpu -> onednn");
  assert_null(strstr(program_err, "with the kernels of its plan.json"));
  list_kernels("r/digits/plan.json", resumed, sizeof resumed);
  list_kernels("fresh/digits/plan.json", fresh, sizeof fresh);
  assert_string_equal(resumed, fresh);
}

static void the_same_run_has_nothing_to_say(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=7"), 0);
  const json_t *r = program_json(0, "train noise.ini --set run.max_steps=7 --resume auto");
  assert_int_equal(count_remarks(r), 0);
  says("with the kernels of its plan.json");
  assert_null(strstr(program_err, "note "));
}

static void each_other_setting_is_a_line(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  const json_t *r = program_json(0, "train noise.ini --resume auto --set run.epochs=3 --set optimizer.lr=0.1 "
                                    "--set schedule.warmup=3 --set run.threads=1");
  remarks(r, "[run] epochs = 2 -> 3");
  remarks(r, "[run] threads = 0 -> 1");
  remarks(r, "[optimizer] lr = 0.05 -> 0.1");
  remarks(r, "[schedule] warmup = 0 -> 3");
  says("with the kernels of its plan.json"); /* none of them reaches the compiler */
  assert_int_equal(count_remarks(r), 4);
  r = program_json(0, "train noise.ini --resume auto --set run.epochs=4 --set optimizer.clip=1 "
                      "--set precision.policy=bf16");
  remarks(r, "[optimizer] clip = 0 -> 1");
  remarks(r, "[precision] policy = fp32 -> bf16");
  assert_null(strstr(program_err, "with the kernels of its plan.json"));
}

/* 10 updates of 16 samples; 2400 samples in an epoch. */
static void another_batch_goes_on_at_the_same_sample(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("train digits.ini --set run.max_steps=10 --output a"), 0);
  assert_int_equal(program_run("train digits.ini --set run.max_steps=10 --output b"), 0);
  const json_t *r = program_json(0, "train digits.ini --output a --resume auto --set data.batch=32");
  remarks(r, "[data] batch = 16 -> 32");
  remarks(r, "epoch 1 goes on at update 6 of 75, behind 160 of its samples");
  assert_int_equal(program_number(r, "steps"), 10 + 70 + 75);
  assert_int_equal(program_number(r, "epochs"), 2);
  r = program_json(0, "train digits.ini --output b --resume auto --set data.batch=48");
  remarks(r, "epoch 1 goes on at update 4 of 50, behind 144 of its samples; 16 samples come a second time");
  assert_int_equal(program_number(r, "steps"), 10 + 47 + 50);
}

static void a_shorter_epoch_has_ended(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("train digits.ini --set run.max_steps=10"), 0);
  const json_t *r = program_json(0, "train digits.ini --resume auto --set data.epoch=80");
  remarks(r, "epoch 1 has no samples left: it had taken 160");
  assert_int_equal(program_number(r, "steps"), 10 + 5);
}

static void another_optimizer_is_named(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=5"), 0);
  assert_int_equal(program_run("train noise.ini --resume auto --set optimizer.type=adamw"), 65);
  says("--set optimizer.type: [optimizer] type = adamw, but runs/noise was trained with sgd");
  says("resume with the same type, or begin a new run from its weights: --weights "
       "runs/noise/checkpoints/last/model.safetensors without --resume");
  assert_int_equal(
      program_run("train noise.ini --resume auto --set group.body.freeze=yes --set group.body.match=fc1.*"),
      65);
  says("groups with freeze = yes match fc1.*, but in runs/noise they matched nothing");
  assert_int_equal(program_run("train noise.ini --resume auto --set optimizer.momentum=0"), 65);
  says("optimizer.safetensors: has 'fc1.bias.momentum', 'fc1.weight.momentum', 'fc2.bias.momentum', "
       "'fc2.weight.momentum', which the model does not have; the optimizer or its options have changed");
  assert_int_equal(program_run("train noise.ini --set optimizer.type=adamw --set optimizer.momentum=0.9 "
                               "--weights runs/noise/checkpoints/last/model.safetensors"),
                   65); /* momentum is not adamw's */
  assert_int_equal(program_run("train noise.ini --resume auto"), 0);
}

static void weights_beside_resume_are_those_of_the_start_or_refused(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output w --set run.max_steps=1"), 0);
  assert_int_equal(program_run("train noise.ini --output v --set run.max_steps=2"), 0);
  const char *again = "train noise.ini --resume auto --weights w/noise/checkpoints/last/model.safetensors";
  const json_t *r = program_json(0, "%s --set run.max_steps=5", again);
  remarks(r, "there is no run 'noise' with a checkpoint to resume: a new one begins");
  says("note       there is no run 'noise'"); /* on the screen, too */
  r = program_json(0, "%s --set run.max_steps=5", again);
  says("w/noise/checkpoints/last/model.safetensors: not");
  assert_int_equal(count_remarks(r), 1);
  assert_int_equal(
      program_run("train noise.ini --resume auto --weights v/noise/checkpoints/last/model.safetensors"), 65);
  says("v/noise/checkpoints/last/model.safetensors beside --resume: runs/noise began with ");
  says(
      "w/noise/checkpoints/last/model.safetensors and goes on with the weights of its checkpoint; leave out");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(another_backend_gets_its_own_kernels, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_same_run_has_nothing_to_say, program_open, program_close),
      cmocka_unit_test_setup_teardown(each_other_setting_is_a_line, program_open, program_close),
      cmocka_unit_test_setup_teardown(another_batch_goes_on_at_the_same_sample, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_shorter_epoch_has_ended, program_open, program_close),
      cmocka_unit_test_setup_teardown(another_optimizer_is_named, program_open, program_close),
      cmocka_unit_test_setup_teardown(weights_beside_resume_are_those_of_the_start_or_refused, program_open,
                                      program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

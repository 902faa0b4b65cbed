/* The output of each command: the fields of the results, and the text. */
#include <math.h>

#include "configs.h"
#include "program.h"

static void train_reports_its_results(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini");
  assert_string_equal(program_text(r, "status"), "finished");
  assert_string_equal(program_text(r, "run"), "runs/noise");
  assert_int_equal(program_number(r, "epochs"), 2);
  assert_int_equal(program_number(r, "steps"), 20);
  assert_true(program_number(r, "first_step_s") > 0);
  assert_true(program_number(r, "seconds") > 0);
  assert_true(program_number(r, "train.loss") > 0);
  assert_true(program_number(r, "train.accuracy") >= 0 && program_number(r, "train.accuracy") <= 1);
  assert_true(program_number(r, "valid.loss") > 0);
  assert_true(program_number(r, "valid.cross_entropy") == program_number(r, "valid.loss"));
  assert_true(program_number(r, "planned_peak_mib") > 0);
  assert_true(program_number(r, "stall_s") >= 0);
}

static void train_prints_text_without_json(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini"), 0);
  assert_non_null(strstr(program_out, "finished after 20 steps"));
  assert_non_null(strstr(program_out, "accuracy"));
  assert_non_null(strstr(program_out, "runs/noise"));
  assert_non_null(strstr(program_err, "epoch 2/2"));
  assert_non_null(strstr(program_err, "run        runs/noise, new\n"));
}

/* The first lines of a run, in 80 columns. */
static void train_begins_with_the_facts_about_the_run(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  static const char *const facts[] = {
      "backend    cpu\n",
      ", 2 threads, fp32\n",
      "data       random: 80 samples, 80 for validation, 4 classes, batch 8\n",
      "model      660 parameters, ",
      " MiB of memory planned\nrun  ",
      "run        runs/noise, new\n"};
  assert_int_equal(
      program_run("train noise.ini --set backend.use=cpu --set run.threads=2 --set run.max_steps=2"), 0);
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if (strstr(program_err, facts[i]) == NULL) fail_msg("'%s' is not in: %s", facts[i], program_err);
  for (const char *line = program_err; *line != '\0' && strncmp(line, "epoch", 5) != 0;) {
    size_t n = strcspn(line, "\n");
    assert_true(n <= 80);
    line += n + (line[n] == '\n');
  }
  assert_int_equal(program_run("train noise.ini --set backend.use=sim --resume runs/noise"), 0);
  assert_non_null(strstr(program_err, "backend    sim\n"));
  assert_non_null(strstr(program_err, "run        runs/noise, resumed after step 2\n"
                                      "note       backend cpu -> sim\n"));
  assert_int_equal(program_run("train noise.ini --quiet --set run.output="), 0);
  assert_null(strstr(program_err, "backend"));
  assert_int_equal(program_run("train noise.ini --set run.output="), 0);
  assert_non_null(strstr(program_err, "run        nothing is written\n"));
  assert_null(strstr(program_err, "backend    sim")); /* auto never takes it */
  assert_non_null(strstr(program_err, "; the fastest here (use = auto)\n"));
}

/* The batch of the first lines, by which the progress counts the time that is left. */
static void an_update_of_several_batches_has_the_samples_of_all(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set optimizer.accumulate=5"), 0);
  if (strstr(program_err, ", batch 8, 40 samples\n           an update\n") == NULL)
    fail_msg("%s", program_err);
}

/* The planned peak equals the measured peak to the byte, and the plan has the same value. */
static void peak_is_as_planned(const char *name, const char *text, const char *more) {
  char ini[64];
  snprintf(ini, sizeof ini, "%s.ini", name);
  file_write(ini, text);
  const json_t *plan = program_json(0, "plan %s %s", ini, more);
  const json_t *r = program_json(0, "train %s --set run.max_steps=3 %s", ini, more);
  int64_t measured = (int64_t)program_number(r, "measured_peak_bytes");
  assert_true(measured > 0);
  assert_int_equal(measured, (int64_t)program_number(r, "planned_peak_bytes"));
  assert_int_equal(measured, (int64_t)program_number(plan, "peak_bytes"));
  assert_true(program_number(r, "measured_peak_mib") == program_number(r, "planned_peak_mib"));
  char path[128];
  snprintf(path, sizeof path, "%s/plan.json", program_text(r, "run"));
  assert_int_equal(measured, (int64_t)program_number(file_json(path), "peak_bytes"));
}

static double row_of(const json_t *table, const char *name) {
  const json_t *rows = program_member(table, "rows"), *row;
  size_t i;
  json_array_foreach(rows, i, row) if (strcmp(program_text(row, "name"), name) ==
                                       0) return json_number_value(json_object_get(row, "bytes"));
  fail_msg("no row %s", name);
  return 0;
}

/* Two layers, 16 x 36 + 16 and 4 x 16 + 4 numbers, each at a multiple of 16 elements; momentum, and an
 * average of them. */
static void plan_has_a_table_of_memory(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *table =
      program_member(program_json(0, "plan noise.ini --set optimizer.ema=0.9"), "memory_table");
  const double bytes = 4 * (576 + 16 + 64 + 16);
  assert_true(row_of(table, "parameters") == bytes);
  assert_true(row_of(table, "gradients") == bytes);
  assert_true(row_of(table, "optimizer state") == bytes);
  assert_true(row_of(table, "averages") == bytes);
  assert_true(program_number(table, "offloaded_bytes") == 0);
  const json_t *values = program_member(table, "peak.values");
  assert_int_equal(json_array_size(values), 10);
  for (size_t i = 1; i < 10; i++)
    assert_true(program_number(json_array_get(values, i - 1), "bytes") >=
                program_number(json_array_get(values, i), "bytes"));
  size_t launches = (size_t)program_number(table, "peak.launches"),
         peak = (size_t)program_number(table, "peak.launch");
  static const char *const kinds[] = {"activations", "gradients", "workspaces", "streamed"};
  double sums[2] = {0, 0};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const json_t *curve = json_object_get(program_member(table, "by_launch"), kinds[k]);
    assert_int_equal(json_array_size(curve), launches);
    sums[0] += json_number_value(json_array_get(curve, peak));
    sums[1] += json_number_value(json_array_get(curve, 0));
  }
  assert_true(sums[0] >= sums[1] && sums[0] > 0);
}

/* plan, doctor and bench print it; train with --verbose alone. */
static void the_table_of_memory_is_printed(void **state) {
  (void)state;
  static const char line[] = "\n  optimizer state ", peak[] = "peak at launch ";
  file_write("noise.ini", noise_ini);
  static const char *const commands[] = {"plan noise.ini", "doctor noise.ini", "bench noise.ini"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_equal(program_run("%s", commands[i]), 0);
    if (strstr(program_out, line) == NULL || strstr(program_out, peak) == NULL)
      fail_msg("%s: %s", commands[i], program_out);
  }
  assert_int_equal(program_run("train noise.ini --verbose --set run.max_steps=1"), 0);
  assert_non_null(strstr(program_err, "debug:   optimizer state "));
  assert_int_equal(program_run("train noise.ini --set run.max_steps=1"), 0);
  assert_null(strstr(program_err, "optimizer state "));
  assert_true(program_number(program_json(0, "doctor noise.ini"), "memory_table.total_bytes") > 0);
  assert_int_equal(program_run("doctor missing.ini"), 74);
  assert_non_null(strstr(program_err, "missing.ini"));
}

static void planned_memory_equals_measured_memory(void **state) {
  (void)state;
  peak_is_as_planned("noise", noise_ini, "");
  peak_is_as_planned("noise", noise_ini, "--set data.batch=1 --set data.prefetch=5");
  peak_is_as_planned("noise", noise_ini, "--set optimizer.momentum=0");
}

static void planned_memory_holds_with_every_kind_of_state(void **state) {
  (void)state;
  peak_is_as_planned("digits", digits_ini, "");
  peak_is_as_planned("digits", digits_ini, "--set data.workers=0 --set run.threads=1");
}

/* To the bit where both have the same kernels. In `eval` parameters are constants, so that a fast backend may
 * fold batch_norm into the convolution in front of it. */
static void eval_gives_the_bits_that_training_recorded(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *r = program_json(0, "train digits.ini --set run.max_steps=20 --set backend.use=cpu");
  const json_t *e = program_json(0, "eval digits.ini --weights runs/digits/checkpoints/best/model.safetensors"
                                    " --set backend.use=cpu");
  assert_true(program_number(e, "loss") == program_number(r, "valid.loss"));
}

static void eval_gives_the_numbers_that_training_recorded(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *r = program_json(0, "train digits.ini --set run.max_steps=60");
  const json_t *e =
      program_json(0, "eval digits.ini --weights runs/digits/checkpoints/best/model.safetensors");
  assert_int_equal(program_number(e, "samples"), 250);
  double loss = program_number(r, "valid.loss");
  assert_true(fabs(program_number(e, "loss") - loss) < 1e-6 * loss);
  assert_true(program_number(e, "accuracy") == program_number(r, "valid.accuracy"));
  double best = program_number(file_json("runs/digits/checkpoints/best/state.json"), "best");
  assert_true(fabs(program_number(e, "accuracy") - best) < 1e-8);
  assert_int_equal(program_run("eval digits.ini --weights runs/digits/checkpoints/best/model.safetensors"),
                   0);
  assert_non_null(strstr(program_out, "accuracy"));
}

static void plan_lists_launches_and_their_kernels(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *plan = program_json(0, "plan digits.ini");
  const json_t *ops = program_member(plan, "ops");
  assert_int_equal(json_array_size(ops), program_number(plan, "launches"));
  assert_int_equal(strlen(program_text(plan, "hash")), 16);
  assert_int_equal(json_array_size(program_member(plan, "fallbacks")), 0);
  assert_true(program_number(plan, "bound_bytes") <= program_number(plan, "peak_bytes"));
  static const char *const texts[] = {"name", "op", "kernel", "backend", "layout"};
  static const char *const numbers[] = {"flops", "bytes", "cost_ms"};
  for (size_t i = 0; i < json_array_size(ops); i++) {
    const json_t *op = json_array_get(ops, i);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
      assert_true(*program_text(op, texts[k]) != '\0');
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
      assert_true(program_number(op, numbers[k]) >= 0);
    assert_true(json_is_boolean(program_member(op, "measured")));
    const json_t *rejected = program_member(op, "rejected");
    for (size_t k = 0; k < json_array_size(rejected); k++) {
      assert_true(*program_text(json_array_get(rejected, k), "kernel") != '\0');
      assert_true(*program_text(json_array_get(rejected, k), "reason") != '\0');
    }
  }
}

static void plan_sets_the_bytes_of_a_step_beside_the_fused_minimum(void **state) {
  double bytes = 0;
  (void)state;
  file_write("digits.ini", digits_ini);
  const json_t *plan = program_json(0, "plan digits.ini --set backend.use=cpu"),
               *ops = program_member(plan, "ops");
  const double fused = program_number(plan, "fused_bytes"), samples = program_number(plan, "samples");
  for (size_t i = 0; i < json_array_size(ops); i++) bytes += program_number(json_array_get(ops, i), "bytes");
  assert_int_equal(program_number(plan, "bytes"), bytes);
  assert_true(0 < fused && fused < bytes);
  plan = program_json(0, "plan digits.ini --set backend.use=cpu --set data.batch=%d", (int)(2 * samples));
  assert_true(program_number(plan, "samples") == 2 * samples);
  assert_true(fused < program_number(plan, "fused_bytes") && program_number(plan, "fused_bytes") < 2 * fused);
  assert_int_equal(program_run("plan digits.ini --set backend.use=cpu"), 0);
  assert_non_null(strstr(program_out, "\nbytes a step: "));
  assert_non_null(strstr(program_out, " a sample), fused minimum "));
}

static void plan_needs_no_data_and_runs_nothing(void **state) {
  (void)state;
  file_write("digits.ini", digits_ini);
  assert_int_equal(program_run("plan digits.ini --set data.source=idx --set data.folder=/no/such/folder"), 0);
  assert_non_null(strstr(program_out, "7962 parameters"));
  assert_false(file_exists("runs"));
}

static void plan_shows_the_graph_after_a_pass(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  static const char *const passes[] = {"model",  "update",        "precision", "chunk",
                                       "select", "layout",        "recompute", "constants",
                                       "join",   "rematerialize", "schedule",  "memory"};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    char head[64];
    snprintf(head, sizeof head, "# program step after %s\n", passes[i]);
    assert_int_equal(program_run("plan noise.ini --dump-after %s", passes[i]), 0);
    assert_ptr_equal(strstr(program_out, head), program_out);
    assert_non_null(strstr(program_out, "fc1"));
  }
}

static void bench_measures_training_and_inference(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  static const char *const modes[] = {"train", "infer"};
  for (int i = 0; i < 2; i++) {
    const json_t *r = program_json(
        0, "bench noise.ini --set backend.use=cpu --mode %s --batch 4 --steps 2 --rounds 3", modes[i]);
    const json_t *ms = program_member(r, "ms");
    double least = json_number_value(json_array_get(ms, 0)),
           median = json_number_value(json_array_get(ms, 1)), most = json_number_value(json_array_get(ms, 2));
    assert_int_equal(json_array_size(ms), 3);
    assert_true(least > 0 && least <= median && median <= most);
    assert_string_equal(program_text(r, "mode"), modes[i]);
    assert_string_equal(program_text(r, "backend"), "cpu");
    assert_string_equal(program_text(r, "dtype"), "fp32");
    assert_int_equal(program_number(r, "batch"), 4);
    assert_true(program_number(r, "threads") >= 1);
    assert_true(fabs(program_number(r, "per_s") - 4 / median * 1e3) < 4 / median);
    assert_true(program_number(r, "first_step_s") > 0);
    assert_true(program_number(r, "peak_rss_mib") > 0);
    assert_true(program_number(r, "planned_peak_mib") > 0);
  }
  assert_int_equal(program_run("bench noise.ini --mode train --steps 1 --rounds 1"), 0);
  assert_non_null(strstr(program_out, "ms a step"));
}

static void bench_measures_the_loader(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "bench noise.ini --mode load --batch 4 --steps 2 --rounds 3");
  const json_t *ms = program_member(r, "ms");
  double median = json_number_value(json_array_get(ms, 1));
  assert_int_equal(json_array_size(ms), 3);
  assert_string_equal(program_text(r, "mode"), "load");
  assert_string_equal(program_text(r, "source"), "random");
  assert_int_equal(program_number(r, "batch"), 4);
  assert_true(median > 0 && fabs(program_number(r, "per_s") - 4 / median * 1e3) < 4 / median);
  assert_true(program_number(r, "first_per_s") > 0);
  assert_true(program_number(r, "first_batch_s") > 0);
  assert_int_equal(program_number(r, "kept"), 0); /* random samples are made, not read */
  assert_int_equal(program_run("bench noise.ini --mode load --steps 1 --rounds 1"), 0);
  assert_non_null(strstr(program_out, "ms a batch"));
}

static void inspect_lists_installed_items(void **state) {
  (void)state;
  const json_t *items = program_member(program_json(0, "inspect"), "items");
  static const char *const kinds[] = {"backend",  "op",     "kernel",   "layer",     "optimizer",
                                      "schedule", "source", "observer", "precision", "transform"};
  assert_true(json_array_size(items) > 50);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    int found = 0;
    for (size_t i = 0; i < json_array_size(items); i++)
      found += strcmp(program_text(json_array_get(items, i), "kind"), kinds[k]) == 0;
    if (found == 0) fail_msg("no %s is listed", kinds[k]);
  }
  const json_t *sgd = json_array_get(program_member(program_json(0, "inspect sgd"), "items"), 0);
  assert_string_equal(program_text(sgd, "kind"), "optimizer");
  assert_string_equal(program_text(json_array_get(program_member(sgd, "options"), 0), "name"), "lr");
  assert_int_equal(program_run("inspect conv2d"), 0);
  assert_non_null(strstr(program_out, "kernel"));
}

static void config_checks_shows_and_explains(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_string_equal(program_text(program_json(0, "config check noise.ini"), "status"), "ok");
  assert_int_equal(program_run("config show noise.ini --set run.seed=3"), 0);
  assert_non_null(strstr(program_out, "seed = 3"));
  const json_t *run = program_json(0, "config explain run");
  assert_string_equal(program_text(run, "section"), "run");
  assert_true(json_array_size(program_member(run, "keys")) > 5);
  const json_t *seed = program_json(0, "config explain run.seed");
  assert_int_equal(json_array_size(program_member(seed, "keys")), 1);
  assert_int_equal(program_run("config explain model.inputs"), 0);
  assert_non_null(strstr(program_out, "fields that the model takes"));
}

/* The options of the optimizer in the file are removed when --set replaces the optimizer. */
static void options_of_a_replaced_item_are_removed(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  file_write("adam.ini", "include = noise.ini\n[optimizer]\ntype = adamw\n");
  const char *const commands[] = {"config show noise.ini --set optimizer.type=adamw", "config show adam.ini"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_equal(program_run("%s", commands[i]), 0);
    assert_non_null(strstr(program_out, "type = adamw"));
    assert_null(strstr(program_out, "momentum"));
  }
  assert_int_equal(
      program_run("config show noise.ini --set optimizer.type=adamw --set optimizer.momentum=0.5"), 65);
  assert_non_null(strstr(program_err, "momentum: unknown key"));
}

static void doctor_describes_the_machine(void **state) {
  (void)state;
  const json_t *r = program_json(0, "doctor");
  assert_true(program_number(r, "processors") >= 1);
  assert_true(program_number(r, "memory_mib") > 0);
  const json_t *cpu = json_array_get(program_member(r, "backends"), 0);
  assert_true(*program_text(cpu, "name") != '\0');
  assert_true(program_number(r, "free_mib") > 0 &&
              program_number(r, "free_mib") <= program_number(r, "memory_mib"));
  assert_true(*program_text(r, "system") && *program_text(r, "compiler"));
  (void)program_text(r, "processor"), (void)program_text(r, "instructions"), (void)program_text(r, "commit");
  assert_int_equal(program_run("doctor"), 0);
  static const char *const lines[] = {"tenon      ", "machine    ",        "processor  ",  "isa        ",
                                      "memory     ", "\nbackend    cpu\n", "\nmissing    "};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (strstr(program_out, lines[i]) == NULL) fail_msg("no line '%s' in %s", lines[i], program_out);
}

/* The files of the plugin folders, with their versions; libraries with the files that they were loaded from.
 */
static void doctor_lists_plugins_and_libraries(void **state) {
  (void)state;
  const json_t *r = program_json(0, "doctor"), *plugins = program_member(r, "plugins"), *one;
  const char *found = NULL;
  size_t i;
  json_array_foreach((json_t *)plugins, i, one) {
    if (strcmp(program_text(one, "name"), "observers") == 0) found = program_text(one, "file");
    assert_true(*program_text(one, "version") && program_text(one, "file")[0] == '/');
  }
  if (json_array_size(plugins) > 0) { /* a static build has no files */
    assert_non_null(found);
    const char *folder = json_string_value(json_array_get(program_member(r, "folders"), 1));
    assert_memory_equal(found, folder, strlen(folder));
  }
  json_array_foreach((json_t *)program_member(r, "backends"), i, one) {
    const json_t *library = json_array_get(program_member(one, "libraries"), 0);
    if (strcmp(program_text(one, "name"), "onednn") == 0 && library != NULL)
      assert_true(program_text(library, "path")[0] == '/');
  }
}

/* Each backend that cannot be used is missing, with the reason. */
static void doctor_says_what_is_missing(void **state) {
  (void)state;
  const json_t *r = program_json(0, "doctor"), *missing = program_member(r, "missing"), *one;
  size_t i, k = 0;
  json_array_foreach((json_t *)program_member(r, "backends"), i, one) {
    if (json_object_get(one, "reason") == NULL) continue;
    const json_t *told = json_array_get(missing, k++);
    assert_string_equal(program_text(told, "name"), program_text(one, "name"));
    assert_string_equal(program_text(told, "reason"), program_text(one, "reason"));
  }
  assert_int_equal(program_run("doctor"), 0);
  if (json_array_size(missing) == 0) assert_non_null(strstr(program_out, "\nmissing    nothing\n"));
  for (k = 0; k < json_array_size(missing); k++)
    assert_non_null(strstr(program_out, program_text(json_array_get(missing, k), "reason")));
}

static void every_command_has_help(void **state) {
  (void)state;
  static const char *const commands[] = {"train", "eval",    "predict", "bench",
                                         "plan",  "inspect", "config",  "doctor"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_equal(program_run("%s --help", commands[i]), 0);
    assert_ptr_equal(strstr(program_out, "usage: tenon "), program_out);
  }
  assert_int_equal(program_run("--help"), 0);
  assert_int_equal(program_run("--version"), 0);
  assert_int_equal(program_run(" "), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(train_reports_its_results, program_open, program_close),
      cmocka_unit_test_setup_teardown(train_prints_text_without_json, program_open, program_close),
      cmocka_unit_test_setup_teardown(train_begins_with_the_facts_about_the_run, program_open, program_close),
      cmocka_unit_test_setup_teardown(an_update_of_several_batches_has_the_samples_of_all, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(plan_has_a_table_of_memory, program_open, program_close),
      cmocka_unit_test_setup_teardown(the_table_of_memory_is_printed, program_open, program_close),
      cmocka_unit_test_setup_teardown(planned_memory_equals_measured_memory, program_open, program_close),
      cmocka_unit_test_setup_teardown(planned_memory_holds_with_every_kind_of_state, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(eval_gives_the_bits_that_training_recorded, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(eval_gives_the_numbers_that_training_recorded, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(plan_lists_launches_and_their_kernels, program_open, program_close),
      cmocka_unit_test_setup_teardown(plan_sets_the_bytes_of_a_step_beside_the_fused_minimum, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(plan_needs_no_data_and_runs_nothing, program_open, program_close),
      cmocka_unit_test_setup_teardown(plan_shows_the_graph_after_a_pass, program_open, program_close),
      cmocka_unit_test_setup_teardown(bench_measures_training_and_inference, program_open, program_close),
      cmocka_unit_test_setup_teardown(bench_measures_the_loader, program_open, program_close),
      cmocka_unit_test_setup_teardown(inspect_lists_installed_items, program_open, program_close),
      cmocka_unit_test_setup_teardown(config_checks_shows_and_explains, program_open, program_close),
      cmocka_unit_test_setup_teardown(options_of_a_replaced_item_are_removed, program_open, program_close),
      cmocka_unit_test_setup_teardown(doctor_describes_the_machine, program_open, program_close),
      cmocka_unit_test_setup_teardown(doctor_lists_plugins_and_libraries, program_open, program_close),
      cmocka_unit_test_setup_teardown(doctor_says_what_is_missing, program_open, program_close),
      cmocka_unit_test_setup_teardown(every_command_has_help, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

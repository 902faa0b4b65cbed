/* Metrics of counts, moments, ranks, boxes and words: those of scikit-learn, pycocotools and jiwer
 * (tests/golden/make_metrics.py), over batches whose last one is short, on one device and on two. */
#include <math.h>

#include "program.h"

/* A configuration of the golden files: the files and types of its fields, the loss, and the operands of
 * metrics. */
typedef struct golden_case {
  const char *name, *inputs, *targets, *input_types, *target_types, *loss, *operands;
} golden_case;

static const golden_case cases[] = {
    {"classes", "s: scores.npy", "y: label.npy", "s: f32[4]", "y: i32[]", "cross_entropy", ""},
    {"labels", "s: scores.npy", "y: labels.npy", "s: f32[4]", "y: i32[4]", "binary_cross_entropy", ""},
    {"one", "s: scores.npy", "y: labels.npy", "s: f32[4]", "y: i32[4]", "binary_cross_entropy",
     " <- fc[:, 1], y[:, 1]"},
    {"numbers", "s: guess.npy", "y: years.npy", "s: f32[4]", "y: f32[4]", "mse", ""},
    {"maps", "s: maps.npy", "y: mask.npy", "s: f32[3, 4]", "y: i32[4]", "cross_entropy(axis=1, ignore=255)",
     ""},
    {"boxes", "s: boxes.npy, scores: box_scores.npy, labels: found_labels.npy",
     "true_boxes: true_boxes.npy, true_labels: true_labels.npy",
     "s: f32[12, 4], scores: f32[12], labels: i32[12]", "true_boxes: f32[4, 4], true_labels: i32[4]",
     "mse <- fc, s", " <- fc, scores, labels, true_boxes, true_labels"},
    {"words", "s: speech.npy, steps: steps.npy, length: length.npy", "y: text.npy",
     "s: f32[14, 4], steps: i32[], length: i32[]", "y: i32[8]", "ctc <- fc, y, steps, length",
     " <- fc, y, steps, length"},
    {"steps", "s: speech.npy", "y: steps_text.npy", "s: f32[14, 4]", "y: i32[14]", "cross_entropy", ""}};

/* The metrics of a section of golden.json get the names m0, m1, ... */
static void write_config(const golden_case *c, const json_t *values) {
  static char text[8192], metrics[4096];
  const char *metric;
  const json_t *value;
  size_t n = 0;
  int i = 0;
  json_object_foreach((json_t *)(uintptr_t)values, metric, value) {
    n += (size_t)snprintf(metrics + n, sizeof metrics - n, "    m%d: %s%s\n", i++, metric, c->operands);
    assert_non_null(value);
  }
  snprintf(text, sizeof text,
           "[run]\nname = run\n[data]\nsource = arrays\nfolder = " METRICS "\nbatch = 16\n"
           "inputs = %s\ntargets = %s\nvalid = %s, %s\n"
           "[model]\ninputs = %s\ntargets = %s\nlayers = fc: linear(4, bias=no) <- s\n"
           "loss = %s\nmetrics =\n%s[optimizer]\ntype = sgd\nlr = 0\n",
           c->inputs, c->targets, c->inputs, c->targets, c->input_types, c->target_types, c->loss, metrics);
  file_write("net.ini", text);
}

static void check_values(const golden_case *c, const json_t *values, const json_t *found, const char *how) {
  const char *metric;
  const json_t *value;
  int i = 0;
  json_object_foreach((json_t *)(uintptr_t)values, metric, value) {
    char name[16];
    snprintf(name, sizeof name, "m%d", i++);
    double expected = json_number_value(value), is = program_number(found, name);
    if (!(fabs(is - expected) <= 1e-6 * fmax(1, fabs(expected))))
      fail_msg("%s: %s%s is %.9g, expected %.9g", c->name, metric, how, is, expected);
  }
}

static void metrics_are_those_of_the_references(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const golden_case *c = &cases[i];
    const json_t *values = json_object_get(file_json(METRICS "/golden.json"), c->name);
    assert_true(json_object_size(values) > 1);
    write_config(c, values);
    check_values(c, values, program_json(0, "eval net.ini --weights " METRICS "/same.safetensors"), "");
    const json_t *two =
        program_json(0, "train net.ini --weights " METRICS "/same.safetensors --set run.max_steps=1 "
                        "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2");
    check_values(c, values, program_member(two, "valid"), " on two devices");
  }
}

/* Sums of a training go on behind a pause in the middle of an epoch, and over the parts of an update. */
static void sums_of_training_go_on(void **state) {
  (void)state;
  json_t *values = json_pack("{s:f, s:f, s:f}", "r2", 0.0, "rmse", 0.0, "mae", 0.0);
  write_config(&cases[3], values);
  json_decref(values);
  static const char options[] =
      "--weights " METRICS "/same.safetensors --set data.shuffle=no --set data.last=pad";
  const json_t *whole = program_json(0, "train net.ini --output whole %s", options);
  program_json(0, "train net.ini --output parts --set run.max_steps=5 %s", options);
  const json_t *rest = program_json(0, "train net.ini --output parts --resume auto --set data.shuffle=no "
                                       "--set data.last=pad");
  const json_t *micro = program_json(
      0, "train net.ini --output micro --set data.batch=8 --set optimizer.accumulate=2 %s", options);
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "train.m%d", i);
    double expected = program_number(whole, name);
    assert_true(program_number(rest, name) == expected);
    assert_true(fabs(program_number(micro, name) - expected) < 1e-6 * fabs(expected));
  }
  const json_t *golden = file_json(METRICS "/golden.json");
  assert_true(fabs(program_number(whole, "train.m0") - program_number(golden, "numbers.r2")) < 1e-4);
}

/* Training has no metric of ranks; validation has it, and it may choose the best checkpoint. */
static void ranks_are_of_validation(void **state) {
  (void)state;
  json_t *values = json_pack("{s:f, s:f}", "auroc", 0.0, "f1", 0.0);
  write_config(&cases[0], values);
  json_decref(values);
  const json_t *r =
      program_json(0, "train net.ini --set run.observers=jsonl --set run.epochs=2 --set run.best=m0 "
                      "--set optimizer.lr=0.1");
  assert_null(json_object_get(program_member(r, "train"), "m0"));
  double valid = program_number(r, "valid.m0");
  assert_true(valid > 0.5 && program_number(r, "train.m1") > 0);
  assert_true(
      fabs(program_number(program_json(0, "eval runs/run --weights runs/run/checkpoints/last"), "m0") -
           valid) < 1e-12);
  assert_true(program_number(file_json("runs/run/checkpoints/best/state.json"), "best") > valid - 1e-6);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(metrics_are_those_of_the_references),
      CASE(sums_of_training_go_on),
      CASE(ranks_are_of_validation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Augmentation, soft targets, schedules and clipping as a user writes them: each a line of the INI file. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "npy_files.h"
#include "tensors.h"

/* Digits with open transforms, channels, target and loss, and more sections. */
static void write_net(const char *transforms, int channels, const char *target, const char *loss,
                      const char *more) {
  char text[2048];
  snprintf(
      text, sizeof text,
      "[run]\nname = run\nseed = 5\nepochs = 2\n[data]\nsource = digits\nbatch = 8\nepoch = 96\nworkers = 1\n"
      "transforms = %s\n[data.valid]\nbatch = 20\nepoch = 60\n"
      "[model]\ninputs = image: f32[%d, 28, 28]\ntargets = label: %s\nlayers =\n"
      "    conv: conv2d(4, kernel=5, stride=2)\n    relu\n    flatten\n    fc: linear(10)\n"
      "loss = %s\nmetrics = accuracy, top_k(3)\n"
      "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0\n%s",
      transforms, channels, target, loss, more);
  file_write("net.ini", text);
}

static const json_t *train(const char *output, const char *more) {
  return program_json(0, "train net.ini --output %s --set backend.use=cpu %s", output, more);
}

/* ---- transforms ---- */

static void same_for_any_workers(void) {
  train("zero", "--set data.workers=0");
  train("three", "--set data.workers=3");
  checkpoints_equal("zero", "three");
}

static void every_augmentation_trains_the_same_for_any_number_of_workers(void **state) {
  (void)state;
  write_net(
      "grayscale(3), color_jitter(0.4, 0.4, 0.4, 0.1), rand_augment, trivial_augment, "
      "random_grayscale(0.5),\n"
      "    random_rotation(15, interpolation=bilinear), gaussian_blur(3), normalize(mean=0.13, std=0.31),\n"
      "    random_erasing(0.5, noise=yes)",
      3, "i32[]", "cross_entropy", "");
  same_for_any_workers();
}

/* Without learning, the losses show the pictures: training has others, validation has not. */
static void each_augmentation_is_for_training_only(void **state) {
  (void)state;
  static const char *const lines[] = {"color_jitter(0.8)",       "rand_augment(2, 20)",
                                      "trivial_augment",         "random_rotation(90)",
                                      "random_erasing(1)",       "gaussian_blur(5, sigma=[1, 2])",
                                      "color_jitter(contrast=2)"};
  write_net("to_float", 1, "i32[]", "cross_entropy", "");
  const json_t *plain = train("plain", "--set optimizer.lr=0");
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char transforms[128], output[32];
    snprintf(transforms, sizeof transforms, "%s, to_float", lines[i]);
    snprintf(output, sizeof output, "o%zu", i);
    write_net(transforms, 1, "i32[]", "cross_entropy", "");
    const json_t *with = train(output, "--set optimizer.lr=0");
    assert_true(program_number(with, "valid.loss") == program_number(plain, "valid.loss"));
    assert_true(program_number(with, "train.loss") != program_number(plain, "train.loss"));
  }
}

static void a_transform_that_does_not_fit_is_named(void **state) {
  (void)state;
  write_net("to_float, color_jitter(0.4)", 1, "i32[]", "cross_entropy", "");
  assert_int_equal(program_run("train net.ini --output o"), 65);
  assert_non_null(strstr(program_err,
                         "transform 'color_jitter': a field is f32, expected u8; put this transform in "
                         "front of to_float and normalize"));
  write_net("gaussian_blur(61), to_float", 1, "i32[]", "cross_entropy", "");
  assert_int_equal(program_run("train net.ini --output o"), 65);
  assert_non_null(
      strstr(program_err, "transform 'gaussian_blur': kernel_size: a picture of 28 x 28 is too small"));
  write_net("to_float, mixup(0.2)", 1, "i32[]", "cross_entropy", "");
  assert_int_equal(program_run("train net.ini --output o"), 65);
  assert_non_null(strstr(program_err, "expected both: <- image, label"));
  write_net("to_float\n    mixup(0.2) <- image, label", 1, "i32[]", "cross_entropy", "");
  assert_int_equal(program_run("train net.ini --output o"), 65);
  assert_non_null(strstr(program_err, "field 1 is i32, expected f32; put to_float or normalize in front"));
}

/* ---- soft targets ---- */

static void near(const json_t *a, const json_t *b, const char *path, double tolerance) {
  double x = program_number(a, path), y = program_number(b, path);
  if (!(fabs(x - y) <= tolerance)) fail_msg("%s is %.9g and %.9g", path, x, y);
}

/* label_smoothing mixes each target with all classes, so this compares mixed targets, too. */
static void a_one_hot_target_has_the_loss_of_its_class(void **state) {
  (void)state;
  static const char *const losses[] = {"cross_entropy", "cross_entropy(label_smoothing=0.2)"};
  for (int i = 0; i < 2; i++) {
    char hard[16], soft[16];
    snprintf(hard, sizeof hard, "hard%d", i);
    snprintf(soft, sizeof soft, "soft%d", i);
    write_net("to_float", 1, "i32[]", losses[i], "");
    const json_t *expected = train(hard, "");
    write_net("to_float\n    one_hot(10) <- label", 1, "f32[10]", losses[i], "");
    const json_t *found = train(soft, "");
    near(found, expected, "train.loss", 1e-5);
    near(found, expected, "valid.loss", 1e-5);
    near(found, expected, "valid.accuracy", 0);
    near(found, expected, "valid.top_k", 0);
    assert_true(program_number(found, "valid.accuracy") > 0.2);
  }
}

static void label_smoothing_raises_the_loss(void **state) {
  (void)state;
  write_net("to_float", 1, "i32[]", "cross_entropy(label_smoothing=0.3)", "");
  const json_t *smooth = train("smooth", "--set run.epochs=6");
  write_net("to_float", 1, "i32[]", "cross_entropy", "");
  const json_t *plain = train("plain", "--set run.epochs=6");
  assert_true(program_number(smooth, "valid.loss") > program_number(plain, "valid.loss") + 0.1);
}

static void mixup_and_cutmix_train_the_same_for_any_number_of_workers(void **state) {
  (void)state;
  write_net("to_float\n    one_hot(10) <- label\n    mixup(0.4, p=0.5) <- image, label\n    cutmix(1, p=0.5) "
            "<- image, label",
            1, "f32[10]", "cross_entropy", "");
  same_for_any_workers();
}

/* A mixture of halves has no pure target: without pairs of one class, the loss is at least ln 2. */
static void mixed_targets_have_a_loss_of_their_own(void **state) {
  (void)state;
  static const char more[] =
      "--set run.epochs=8 --set optimizer.lr=0.03 --set optimizer.momentum=0.9 --set data.epoch=480";
  write_net("to_float\n    one_hot(10) <- label\n    mixup(1000) <- image, label", 1, "f32[10]",
            "cross_entropy", "");
  const json_t *mixed = train("mixed", more);
  write_net("to_float\n    one_hot(10) <- label", 1, "f32[10]", "cross_entropy", "");
  const json_t *plain = train("plain", more);
  assert_true(program_number(plain, "train.loss") < 0.9);
  assert_true(program_number(mixed, "train.loss") > 1.2);
  assert_true(program_number(mixed, "valid.accuracy") > 0.4);
}

/* one_hot concerns the label, which pictures to predict have not. */
static void a_run_with_mixtures_is_examined_and_predicts(void **state) {
  (void)state;
  static const uint8_t pixels[2 * 28 * 28];
  write_net("to_float\n    one_hot(10) <- label\n    mixup(0.4) <- image, label", 1, "f32[10]",
            "cross_entropy", "");
  train("soft", "");
  const json_t *classes = program_json(0, "eval net.ini --weights soft/run --classes");
  assert_int_equal(json_array_size(program_member(classes, "confusion")), 10);
  assert_int_equal(program_number(classes, "samples"), 60);
  write_array("x.npy", "|u1", 2, "1, 28, 28", pixels, sizeof pixels); /* bytes go through the transforms */
  const json_t *found = program_json(0, "predict net.ini --weights soft/run --input x.npy");
  assert_int_equal(json_array_size(program_member(found, "predictions")), 2);
}

static void a_resumed_run_continues_the_mixtures(void **state) {
  (void)state;
  write_net("random_rotation(20), to_float\n    one_hot(10) <- label\n    mixup(0.4) <- image, label", 1,
            "f32[10]", "cross_entropy", "[schedule]\ntype = one_cycle\nsteps = 24\n");
  train("whole", "");
  train("parts", "--set run.max_steps=17");
  train("parts", "--resume auto");
  checkpoints_equal("parts", "whole");
}

/* ---- schedules and clipping ---- */

/* The learning rate of each step of run `output`. */
static int read_rates(const char *output, double *rates, int most) {
  char path[128];
  size_t bytes;
  int n = 0;
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", output);
  char *text = file_read(path, &bytes);
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    json_t *json = json_loads(line, 0, NULL);
    assert_non_null(json);
    if (strcmp(program_text(json, "event"), "step") == 0 && n < most) rates[n++] = program_number(json, "lr");
    json_decref(json);
  }
  return n;
}

/* Two epochs of 12 steps; the factors at steps 0, 7, 12 and 23 are those of torch.optim.lr_scheduler. */
static void schedules_are_a_line_each(void **state) {
  (void)state;
  static const struct {
    const char *lines;
    double factor[4];
  } cases[] = {
      {"type = one_cycle", {0.04, 0.9944154, 0.7336354, 4e-6}},
      {"type = one_cycle\nanneal = linear", {0.04, 0.9523811, 0.6547633, 4e-6}},
      {"type = polynomial\npower = 2", {1, 0.5017361, 0.25, 0.0017361}},
      {"type = exponential\ngamma = 0.5", {1, 1, 0.5, 0.5}},
      {"type = multistep\nmilestones = [7, 20]\nunit = steps", {1, 0.1, 0.1, 0.01}},
      {"type = cosine_restarts\nt_0 = 1", {1, 0.3705905, 1, 0.0170371}},
  };
  static const int at[4] = {0, 7, 12, 23};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char more[256], output[16];
    double rates[24];
    snprintf(more, sizeof more, "[schedule]\n%s\n", cases[i].lines);
    snprintf(output, sizeof output, "s%zu", i);
    write_net("to_float", 1, "i32[]", "cross_entropy", more);
    train(output, "--set run.observers=jsonl");
    assert_int_equal(read_rates(output, rates, 24), 24);
    for (int k = 0; k < 4; k++)
      if (!(fabs(rates[at[k]] - 0.05 * cases[i].factor[k]) <= 1e-8))
        fail_msg("%s: lr %.9g at step %d, expected %.9g", cases[i].lines, rates[at[k]], at[k],
                 0.05 * cases[i].factor[k]);
  }
}

/* The learning rates of the epochs; those of an epoch are equal. */
static void read_epoch_rates(const char *output, int epochs, double *rates) {
  double steps[200];
  assert_int_equal(read_rates(output, steps, 200), 12 * epochs);
  for (int i = 0; i < 12 * epochs; i++) {
    if (i % 12 == 0) rates[i / 12] = steps[i];
    assert_true(steps[i] == rates[i / 12]);
  }
}

/* No loss is better by 100 %, so the rate drops after the second epoch, and after each further one. */
static void plateau_follows_the_validation(void **state) {
  (void)state;
  double rates[5];
  write_net("to_float", 1, "i32[]", "cross_entropy",
            "[schedule]\ntype = plateau\npatience = 0\nthreshold = 1\ngamma = 0.5\nfloor = 0.2\n");
  train("falls", "--set run.observers=jsonl --set run.epochs=5");
  read_epoch_rates("falls", 5, rates);
  static const double expected[5] = {1, 1, 0.5, 0.25, 0.2};
  for (int i = 0; i < 5; i++) assert_true(fabs(rates[i] - 0.05 * expected[i]) < 1e-8);
  train("rises", "--set run.observers=jsonl --set run.epochs=3 --set schedule.threshold=0 --set "
                 "schedule.threshold_mode=abs");
  read_epoch_rates("rises", 3, rates);
  assert_true(rates[2] == rates[0]); /* the loss falls */
  train("metric", "--set run.observers=jsonl --set run.epochs=3 --set schedule.threshold=0 --set "
                  "schedule.threshold_mode=abs --set schedule.metric=accuracy");
  read_epoch_rates("metric", 3, rates);
  assert_true(rates[2] == rates[0]); /* accuracy rises, and more is better */
  train("mode", "--set run.observers=jsonl --set run.epochs=3 --set schedule.threshold=0 --set "
                "schedule.threshold_mode=abs --set schedule.metric_mode=max");
  read_epoch_rates("mode", 3, rates);
  assert_true(rates[2] == 0.5 * rates[0]); /* the loss falls, and more would be better */
}

static void a_resumed_run_continues_its_plateau(void **state) {
  (void)state;
  write_net("random_rotation(20), to_float", 1, "i32[]", "cross_entropy",
            "[schedule]\ntype = plateau\npatience = 1\nthreshold = 1\ngamma = 0.5\n");
  train("whole", "--set run.epochs=6");
  train("parts", "--set run.epochs=6 --set run.max_steps=31");
  train("parts", "--set run.epochs=6 --resume auto --set run.max_steps=48");
  train("parts", "--set run.epochs=6 --resume auto");
  checkpoints_equal("parts", "whole");
}

/* A run that goes on with plateau begins with its full rate, also from a checkpoint of another schedule. */
static void another_schedule_begins_anew(void **state) {
  (void)state;
  double rates[36];
  write_net("to_float", 1, "i32[]", "cross_entropy",
            "[schedule]\ntype = plateau\npatience = 0\nthreshold = 1\ngamma = 0.5\n");
  train("one", "--set run.epochs=2 --set run.observers=jsonl");
  train("one", "--set run.epochs=3 --set run.observers=jsonl --resume auto --set schedule.type=constant");
  assert_int_equal(read_rates("one", rates, 36), 36);
  assert_true(rates[35] == rates[0]);
  const json_t *saved = file_json("one/run/checkpoints/last/state.json");
  assert_null(json_object_get(saved, "schedule"));
}

/* Options that schedules move, besides those of the optimizer. */
enum { MIXUP, DROPOUT, SMOOTHING, AUXILIARY, AVERAGE, MOVED };

static void write_moved(const double v[MOVED], bool soft, const char *more) {
  char text[2048];
  snprintf(text, sizeof text,
           "[run]\nname = run\nseed = 5\nepochs = 2\n"
           "[data]\nsource = digits\nbatch = 8\nepoch = 64\nworkers = 1\ntransforms = to_float\n%s%.0g%s"
           "[data.valid]\nepoch = 40\ntransforms = to_float\n%s"
           "[model]\ninputs = image: f32[1, 28, 28]\ntargets = label: %s\nlayers =\n"
           "    flatten\n    fc1: linear(16)\n    relu\n    dropout(%g)\n    fc: linear(10)\n"
           "loss =\n    main: cross_entropy(label_smoothing=%g)\n    aux: cross_entropy(weight=%g)\n"
           "[optimizer]\ntype = sgd\nlr = 0.2\nema = %g\n%s",
           soft ? "    one_hot(10) <- label\n    mixup(" : "# ", v[MIXUP],
           soft ? ") <- image, label\n" : "\n", soft ? "    one_hot(10) <- label\n" : "",
           soft ? "f32[10]" : "i32[]", v[DROPOUT], v[SMOOTHING], v[AUXILIARY], v[AVERAGE], more);
  file_write("net.ini", text);
}

/* A schedule of the factor a half gives the results of half the value. */
static void expect_half(const char *section, int which, bool soft) {
  double v[MOVED] = {0.8, 0.6, 0.2, 0.4, 0.9};
  char more[160];
  snprintf(more, sizeof more, "[schedule.%s]\nfactor = 0.5\n", section);
  write_moved(v, soft, "");
  const json_t *plain = train("plain", "");
  write_moved(v, soft, more);
  const json_t *moved = train("moved", "");
  v[which] *= 0.5;
  write_moved(v, soft, "");
  const json_t *half = train("half", "");
  double want = program_number(half, "valid.loss"), found = program_number(moved, "valid.loss");
  if (!(fabs(found - want) <= 1e-6 * want)) fail_msg("%s: loss %.9g, expected %.9g", section, found, want);
  assert_true(fabs(program_number(plain, "valid.loss") - want) > 1e-4);
  assert_true(fabs(program_number(moved, "train.loss") - program_number(half, "train.loss")) <= 1e-5);
  assert_int_equal(system("rm -rf plain moved half"), 0);
}

static void schedules_move_options_of_the_model_and_of_transforms(void **state) {
  (void)state;
  expect_half("mixup.alpha", MIXUP, true);
  expect_half("dropout.p", DROPOUT, false);
  expect_half("ema", AVERAGE, false);
}

/* The validation has the configured losses, so the weights that are reached are compared. */
static void schedules_move_losses(void **state) {
  (void)state;
  static const char a[] = "moved/run/checkpoints/last/model.safetensors",
                    b[] = "half/run/checkpoints/last/model.safetensors",
                    c[] = "plain/run/checkpoints/last/model.safetensors";
  static const struct {
    const char *section;
    int which;
    bool soft;
  } cases[] = {{"cross_entropy.label_smoothing", SMOOTHING, false},
               {"cross_entropy.label_smoothing", SMOOTHING, true},
               {"loss.aux", AUXILIARY, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double v[MOVED] = {0.8, 0.6, 0.2, 0.4, 0.9};
    char more[160];
    snprintf(more, sizeof more, "[schedule.%s]\nfactor = 0.5\n", cases[i].section);
    write_moved(v, cases[i].soft, "");
    train("plain", "");
    write_moved(v, cases[i].soft, more);
    train("moved", "");
    v[cases[i].which] *= 0.5;
    write_moved(v, cases[i].soft, "");
    train("half", "");
    double distance = tensor_distance(a, b, "fc.weight");
    if (!(distance <= 1e-6)) fail_msg("%s: differs by %g", cases[i].section, distance);
    assert_true(tensor_distance(a, c, "fc.weight") > 1e-4);
    assert_int_equal(system("rm -rf plain moved half"), 0);
  }
}

/* One step moves no number by more than lr clip_value, and most of them by as much. */
static void clip_value_bounds_each_number(void **state) {
  (void)state;
  static const char first[] = "first/run/checkpoints/last/model.safetensors",
                    clipped[] = "clipped/run/checkpoints/last/model.safetensors";
  write_net("to_float", 1, "i32[]", "cross_entropy", "");
  train("first", "--set run.max_steps=0 --set run.epochs=0");
  train("clipped", "--set run.max_steps=1 --set optimizer.clip_value=1e-3 --set optimizer.lr=1");
  size_t n = 0, m = 0, full = 0;
  const float *a = tensor_find(first, "fc.bias", &n), *b = tensor_find(clipped, "fc.bias", &m);
  assert_true(a != NULL && b != NULL && n == 10 && m == 10);
  for (size_t i = 0; i < n; i++) {
    double moved = fabs((double)a[i] - (double)b[i]);
    assert_true(moved <= 1e-3 * (1 + 1e-5));
    full += moved > 0.999e-3;
  }
  assert_true(full >= 8);
}

static void the_items_are_in_inspect(void **state) {
  (void)state;
  static const char *const items[][2] = {{"one_cycle", "pct_start"},
                                         {"polynomial", "power"},
                                         {"exponential", "gamma"},
                                         {"multistep", "milestones"},
                                         {"cosine_restarts", "t_mult"},
                                         {"plateau", "patience"},
                                         {"color_jitter", "saturation"},
                                         {"random_erasing", "noise"},
                                         {"rand_augment", "num_ops"},
                                         {"trivial_augment", "num_magnitude_bins"},
                                         {"grayscale", "num_output_channels"},
                                         {"random_grayscale", "p"},
                                         {"random_rotation", "degrees"},
                                         {"gaussian_blur", "kernel_size"},
                                         {"one_hot", "classes"},
                                         {"mixup", "alpha"},
                                         {"cutmix", "alpha"},
                                         {"cross_entropy", "label_smoothing"}};
  for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
    assert_int_equal(program_run("inspect %s", items[i][0]), 0);
    if (strstr(program_out, items[i][1]) == NULL) fail_msg("inspect %s lacks %s", items[i][0], items[i][1]);
  }
  assert_int_equal(program_run("config explain schedule.gamma"), 0);
  assert_non_null(strstr(program_out, "multistep: factor of each drop"));
  assert_non_null(strstr(program_out, "exponential: factor after each unit"));
  assert_int_equal(program_run("config explain optimizer.clip_value"), 0);
  assert_non_null(strstr(program_out, "greatest magnitude of each number of the gradient"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

static void a_run_within_its_warmup_is_told(void **state) {
  (void)state;
  const char *text = "net.ini:30: warmup = 30, but the run has 24 steps: the learning rate only rises";
  write_net("to_float", 1, "i32[]", "cross_entropy", "[schedule]\ntype = cosine\nwarmup = 30\n");
  train("runs", "");
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s' in: %s", text, program_err);
  train("longer", "--set run.epochs=3");
  assert_null(strstr(program_err, "warmup"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(every_augmentation_trains_the_same_for_any_number_of_workers),
      CASE(each_augmentation_is_for_training_only),
      CASE(a_transform_that_does_not_fit_is_named),
      CASE(a_one_hot_target_has_the_loss_of_its_class),
      CASE(label_smoothing_raises_the_loss),
      CASE(mixup_and_cutmix_train_the_same_for_any_number_of_workers),
      CASE(mixed_targets_have_a_loss_of_their_own),
      CASE(a_run_with_mixtures_is_examined_and_predicts),
      CASE(a_resumed_run_continues_the_mixtures),
      CASE(schedules_are_a_line_each),
      CASE(plateau_follows_the_validation),
      CASE(a_resumed_run_continues_its_plateau),
      CASE(another_schedule_begins_anew),
      CASE(a_run_within_its_warmup_is_told),
      CASE(schedules_move_options_of_the_model_and_of_transforms),
      CASE(schedules_move_losses),
      CASE(clip_value_bounds_each_number),
      CASE(the_items_are_in_inspect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
